//! The launch path: describe, check, pack, acquire, one driver call, finish.
//!
//! The steps are called by the code that `#[kernel]` generates, in that order, once for each
//! argument. On success nothing here allocates, locks or looks up. The driver is asked one thing
//! beside the launch: for safe kernels, whether a stream that can be captured is; and, where several
//! streams are in use or it is a default stream of a thread, which context is current.

#![expect(
    clippy::missing_errors_doc,
    reason = "called by generated code only; users read of the errors at the kernel's function"
)]

mod finish;
mod node;
mod overlap;
mod purpose;
mod refusal;
mod shape;
mod steps;
mod stream;

use cudarc::driver::CudaStream;
use gridcall_view::StreamRef;

use crate::{
    attributes::Attributes,
    describe::{Arrays, LaunchDescription},
    error::{LaunchError, LaunchErrorKind},
    graph::Replayed,
    kernel::{Arguments, Declared, Safe, Safety},
    launch::{Dims, Launch},
    load::Loaded,
    symbol::Acquired,
};

use self::{
    refusal::{error, not_loaded},
    shape::resolve,
    stream::rebind,
};

pub use self::{finish::Finish, overlap::Span, purpose::Purpose, steps::Call};
pub(crate) use self::{
    node::{FOREIGN, attributes_of_node, check_again, check_node, has_attributes},
    purpose::Stop,
    shape::resolve_examined,
    stream::begin,
};

/// Launches a safe kernel, through the one that is loaded for the stream's context.
#[inline(always)]
pub fn launch<A>(arguments: A, stream: &CudaStream, launch: Launch<'_>) -> Result<(), LaunchError>
where
    A: Arguments<Declared: Declared<Safety = Safe>>,
{
    // SAFETY: every caller of a safe kernel is safe, as its declaration vouches.
    unsafe { launch_unsafe(arguments, stream, launch) }
}

/// Launches any kernel, through the one that is loaded for the stream's context.
///
/// # Safety
///
/// What the kernel's declaration asks of its callers.
#[inline(always)]
pub unsafe fn launch_unsafe<A: Arguments>(
    arguments: A,
    stream: &CudaStream,
    launch: Launch<'_>,
) -> Result<(), LaunchError> {
    launch_loaded(loaded::<A>(stream)?, stream, launch, arguments)
}

/// The kernel that these are arguments of, loaded in the stream's context.
#[inline(always)]
pub(crate) fn loaded<A: Arguments>(stream: &CudaStream) -> Result<&Loaded, LaunchError> {
    let kernel = A::Declared::cell();
    match kernel.find(stream) {
        Ok(loaded) => Ok(loaded),
        Err(error) => Err(not_loaded(
            kernel,
            <A::Declared as Declared>::Safety::SAFE,
            error,
        )),
    }
}

/// How a kernel is enqueued.
#[derive(Clone, Copy)]
struct How<'a> {
    /// With these, if it has any.
    attributes: Option<&'a Attributes<'a>>,
    /// By this graph, which has them.
    replayed: Option<&'a Replayed>,
}

impl How<'_> {
    const PLAIN: How<'static> = How {
        attributes: None,
        replayed: None,
    };
}

/// Describes, checks and packs the arguments, acquires them, enqueues the kernel and finishes: with a
/// shape that was resolved, on a stream that [`begin`] looked at.
///
/// No function, since handing the arguments on to one copies them.
macro_rules! launch_resolved {
    ($kernel:expr, $stream:expr, $dims:expr, $how:expr, $arguments:ident: $ty:ident) => {{
        let (kernel, stream, dims) = ($kernel, $stream, $dims);
        let How {
            attributes,
            replayed,
        } = $how;
        let mut call = Call::new(kernel, StreamRef::from(stream), dims);
        call.replayed = replayed;
        // What has attributes is launched out of line.
        call.mixed.set(attributes.is_some());
        let mut params = $arguments.check(&call)?;
        if dims.is_empty() {
            return Ok(());
        }
        let touches = <$ty::Declared as Declared>::TOUCHES;
        if $ty::ARRAYS == 0 && !touches && attributes.is_none() {
            // SAFETY: the parameters are those of these arguments.
            return unsafe { $arguments.run(&call, &mut params) };
        }
        let settled = call.all_settled();
        let together = touches || kernel.synchronous || call.mixed.get();
        if together || !settled && !call.is_alone(stream) {
            let dims = dims.numbers();
            // SAFETY: the parameters are those of these arguments.
            return unsafe {
                launch_in_order(kernel, stream, dims, $how, $arguments, &mut params)
            };
        }
        // SAFETY: all arrays are settled on the stream, or if some are not, cudarc orders nothing now,
        // and what decides that is the same for the stream and for those. `Call::finish` looks again,
        // and waits.
        let alone = unsafe { StreamRef::from(stream).alone() };
        let mut call = Call::new(kernel, alone, dims);
        call.replayed = replayed;
        call.goes_on = true;
        call.waits_late.set(!settled);
        // SAFETY: the parameters are those of these arguments.
        unsafe { $arguments.run(&call, &mut params) }
    }};
}

/// Launches a kernel that is loaded in the stream's context.
#[inline(always)]
pub(crate) fn launch_loaded<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: Launch<'_>,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let safe = <A::Declared as Declared>::Safety::SAFE;
    begin(kernel, stream, safe, launch.dynamic_shared_mem_bytes())?;
    if launch.attributes.any() || A::Declared::EXAMINED && kernel.needs.any() {
        // A copy, so that only this puts it into memory.
        let copy = launch;
        return launch_examined(kernel, stream, &copy, arguments);
    }
    let dims = resolve::<A::Declared>(kernel, launch)?;
    launch_resolved!(kernel, stream, dims, How::PLAIN, arguments: A)
}

/// Launches a kernel as a graph, which is its own.
#[inline(always)]
pub(crate) fn launch_replayed<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: Launch<'_>,
    replayed: &Replayed,
    mut arguments: A,
) -> Result<(), LaunchError> {
    // A capture would take what the graph does now, which nobody could update.
    begin(kernel, stream, true, launch.dynamic_shared_mem_bytes())?;
    if launch.attributes.any() || A::Declared::EXAMINED && kernel.needs.any() {
        // A copy, so that only this puts it into memory.
        let copy = launch;
        return replay_examined(kernel, stream, &copy, replayed, arguments);
    }
    replayed.ask(&Attributes::NONE);
    let dims = resolve::<A::Declared>(kernel, launch)?;
    let how = How {
        attributes: None,
        replayed: Some(replayed),
    };
    launch_resolved!(kernel, stream, dims, how, arguments: A)
}

/// Launches a kernel with attributes, its own or those of this launch, as a graph.
#[cold]
#[inline(never)]
fn replay_examined<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: &Launch<'_>,
    replayed: &Replayed,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let attributes = attributes_of_node(kernel, launch)?;
    replayed.ask(&attributes);
    rebind(kernel, stream)?;
    let dims = resolve_examined::<A::Declared>(kernel, stream.context().cu_ctx(), launch)?;
    let how = How {
        attributes: Some(&attributes),
        replayed: Some(replayed),
    };
    launch_resolved!(kernel, stream, dims, how, arguments: A)
}

/// Launches a kernel with attributes, its own or those of this launch.
#[cold]
#[inline(never)]
fn launch_examined<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: &Launch<'_>,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let context = stream.context().cu_ctx();
    let dims = resolve_examined::<A::Declared>(kernel, context, launch)?;
    let attributes = launch.attributes.of_launch(kernel);
    let call = Call::new(kernel, StreamRef::from(stream), dims);
    let mut params = arguments.check(&call)?;
    if dims.is_empty() {
        return Ok(());
    }
    let how = How {
        attributes: Some(&attributes),
        replayed: None,
    };
    let dims = dims.numbers();
    // SAFETY: the parameters are those of these arguments.
    unsafe { launch_in_order(kernel, stream, dims, how, arguments, &mut params) }
}

/// Launches a kernel of which all but the arguments was checked.
#[inline(always)]
pub(crate) fn launch_prepared<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    dims: Dims,
    attributes: Option<&Attributes<'_>>,
    mut arguments: A,
) -> Result<(), LaunchError> {
    let safe = <A::Declared as Declared>::Safety::SAFE;
    begin(kernel, stream, safe, 0)?;
    let how = How {
        attributes,
        replayed: None,
    };
    launch_resolved!(kernel, stream, dims, how, arguments: A)
}

/// The end of a launch that has attributes, that is waited for, or whose arrays and symbols are to
/// be ordered with what other streams do.
///
/// # Safety
///
/// As for [`Arguments::run`].
#[inline(never)]
unsafe fn launch_in_order<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    dims: [u32; 7],
    how: How<'_>,
    arguments: A,
    params: &mut A::Params,
) -> Result<(), LaunchError> {
    // Arrays are acquired in the stream's context.
    rebind(kernel, stream)?;
    let symbol = |symbol| error(kernel, LaunchErrorKind::Symbol(symbol));
    let acquired = match &kernel.touched {
        None => None,
        Some(touched) => {
            // SAFETY: the stream is borrowed, in the module's context, which is current.
            let acquired = unsafe { Acquired::new(&touched.0, stream.cu_stream()) };
            acquired.map_err(symbol)?
        }
    };
    let dims = Dims::from_numbers(dims);
    // What is acquired cannot be looked at any more.
    let arrays = kernel.synchronous.then(|| Arrays::of(&arguments));
    let mut call = Call::new(kernel, StreamRef::from(stream).of_one_launch(), dims);
    call.arrays = arrays.as_ref();
    call.attributes = how.attributes;
    call.replayed = how.replayed;
    // SAFETY: the caller vouches for the parameters.
    unsafe { arguments.run(&call, params) }?;
    match acquired {
        None => Ok(()),
        Some(acquired) => acquired.finish().map_err(symbol),
    }
}

/// Describes the launch of a kernel through the one that is loaded for the stream's context.
pub fn describe<A: Arguments>(
    arguments: &mut A,
    stream: &CudaStream,
    launch: Launch<'_>,
) -> Result<LaunchDescription, LaunchError> {
    let kernel = A::Declared::cell();
    match kernel.find(stream) {
        Ok(loaded) => describe_loaded(loaded, stream, launch, arguments),
        Err(error) => Err(not_loaded(kernel, false, error)),
    }
}

/// Describes the launch of a kernel that is loaded in the stream's context.
pub(crate) fn describe_loaded<A: Arguments>(
    kernel: &Loaded,
    stream: &CudaStream,
    launch: Launch<'_>,
    arguments: &mut A,
) -> Result<LaunchDescription, LaunchError> {
    // For the opt-in to shared memory.
    rebind(kernel, stream)?;
    let dims = if launch.attributes.any() || kernel.needs.any() {
        resolve_examined::<A::Declared>(kernel, stream.context().cu_ctx(), &launch)?
    } else {
        resolve::<A::Declared>(kernel, launch)?
    };
    let params = arguments.check(&Call::new(kernel, StreamRef::from(stream), dims))?;
    let arrays = Arrays::of(arguments);
    let attributes = launch.attributes.of_launch(kernel);
    let (dims, stream, params) = (dims.numbers(), stream.cu_stream(), params.as_ref());
    Ok(LaunchDescription::new(
        kernel,
        dims,
        stream,
        params,
        &arrays,
        Some(&attributes),
    ))
}
