//! Who is measured: every way to launch one kernel with one kind of array.

use std::error::Error;

use gridcall::{AsDeviceView, AsDeviceViewMut};

use crate::{
    Contender,
    bare::{ByPointer, BySys, Form, Prepared},
    builder::Builder,
    kernels::{empty0, empty4, empty10, empty12},
    ours::{Function, Handle, Ready, Replayed},
    scene::{Arguments, Scene, Slices, Views},
};

/// A kernel that does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// No parameters.
    Empty0,
    /// Two arrays and two scalars.
    Empty4,
    /// Eight arrays and two scalars.
    Empty10,
    /// Ten arrays and two scalars.
    Empty12,
}

/// One way to launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `cuLaunchKernel` by a resolved pointer, with an array of pointers to parameters.
    Bare,
    /// The same through `sys::cuLaunchKernel`.
    BareSys,
    /// `cuLaunchKernel` by a resolved pointer, with a packed buffer.
    Packed,
    /// The same through `sys::cuLaunchKernel`.
    PackedSys,
    /// Our function.
    Function,
    /// Our handle.
    Handle,
    /// Our handle, with the launch prepared.
    Prepared,
    /// Our handle, as a graph of one node, which is given another scalar each time.
    Replayed,
    /// cudarc's launch builder.
    Builder,
    /// `cuGraphLaunch` by a resolved pointer.
    BareReplay,
    /// The same, of nodes with packed buffers.
    PackedReplay,
    /// Our graph, launched.
    Replay,
    /// `cuGraphExecKernelNodeSetParams` by a resolved pointer, with an array of pointers to
    /// parameters.
    BareUpdate,
    /// The same, with a packed buffer.
    PackedUpdate,
    /// A node of our graph, updated.
    Update,
}

/// Every way to launch, the bare call first.
pub type LineUp = Vec<(Way, Box<dyn Contender>)>;

impl Kernel {
    /// All of them.
    pub const ALL: [Kernel; 4] = [
        Kernel::Empty0,
        Kernel::Empty4,
        Kernel::Empty10,
        Kernel::Empty12,
    ];

    /// The number of arrays it takes.
    #[must_use]
    pub fn arrays(self) -> usize {
        match self {
            Kernel::Empty0 => 0,
            Kernel::Empty4 => 2,
            Kernel::Empty10 => 8,
            Kernel::Empty12 => 10,
        }
    }

    /// The number of scalars it takes.
    #[must_use]
    pub fn scalars(self) -> usize {
        match self {
            Kernel::Empty0 => 0,
            Kernel::Empty4 | Kernel::Empty10 | Kernel::Empty12 => 2,
        }
    }

    /// What it takes, in words, the arrays as `arrays`.
    #[must_use]
    pub fn describe(self, arrays: &str) -> String {
        match self.arrays() {
            0 => "no parameters".to_owned(),
            count => format!("{count} {arrays}, {} scalars", self.scalars()),
        }
    }

    pub(crate) fn entry(self) -> &'static str {
        match self {
            Kernel::Empty0 => "empty0",
            Kernel::Empty4 => "empty4",
            Kernel::Empty10 => "empty10",
            Kernel::Empty12 => "empty12",
        }
    }
}

impl Way {
    /// What a table calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Bare => "cuLaunchKernel, parameter array",
            Way::BareSys => "cuLaunchKernel, parameter array, by cudarc's `sys`",
            Way::Packed => "cuLaunchKernel, packed",
            Way::PackedSys => "cuLaunchKernel, packed, by cudarc's `sys`",
            Way::Function => "gridcall, function",
            Way::Handle => "gridcall, handle",
            Way::Prepared => "gridcall, prepared",
            Way::Replayed => "gridcall, replayed as a graph of one",
            Way::Builder => "cudarc, launch builder",
            Way::BareReplay => "cuGraphLaunch, nodes of parameter arrays",
            Way::PackedReplay => "cuGraphLaunch, packed nodes",
            Way::Replay => "gridcall, launch of a graph",
            Way::BareUpdate => "cuGraphExecKernelNodeSetParams, parameter array",
            Way::PackedUpdate => "cuGraphExecKernelNodeSetParams, packed",
            Way::Update => "gridcall, update of a node",
        }
    }
}

/// With arrays that are `CudaSlice`s.
///
/// # Errors
///
/// If the driver refuses something.
pub fn slices(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    beside_slices(scene, kernel, Scene::slices)
}

/// With arrays that are views of `CudaSlice`s.
///
/// # Errors
///
/// If the driver refuses something.
pub fn views(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    let mut line_up = bare(scene, kernel)?;
    line_up.extend(ours(scene, kernel, Scene::views)?);
    line_up.push((
        Way::Builder,
        builder::<Views>(scene, kernel, scene.views()?)?,
    ));
    Ok(line_up)
}

/// With arrays that are `Buffer`s, beside cudarc's builder with `CudaSlice`s.
///
/// # Errors
///
/// If the driver refuses something.
pub fn buffers(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    beside_slices(scene, kernel, Scene::buffers)
}

/// With arrays that are `Tensor`s, beside cudarc's builder with `CudaSlice`s.
///
/// # Errors
///
/// If the driver refuses something.
pub fn tensors(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    beside_slices(scene, kernel, Scene::tensors)
}

/// With arrays that are `TypedTensor`s, beside cudarc's builder with `CudaSlice`s.
///
/// # Errors
///
/// If the driver refuses something.
pub fn typed_tensors(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    beside_slices(scene, kernel, Scene::typed_tensors)
}

/// With buffers of which half are also read by another stream.
///
/// # Errors
///
/// If the driver refuses something.
pub fn shared_buffers(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    beside_slices(scene, kernel, Scene::shared_buffers)
}

fn beside_slices<R, W>(
    scene: &Scene,
    kernel: Kernel,
    arguments: impl Fn(&Scene) -> Result<Arguments<R, W>, Box<dyn Error>>,
) -> Result<LineUp, Box<dyn Error>>
where
    R: AsDeviceView<f32> + 'static,
    W: AsDeviceViewMut<f32> + 'static,
{
    let mut line_up = bare(scene, kernel)?;
    line_up.extend(ours(scene, kernel, arguments)?);
    line_up.push((
        Way::Builder,
        builder::<Slices>(scene, kernel, scene.slices()?)?,
    ));
    Ok(line_up)
}

fn bare(scene: &Scene, kernel: Kernel) -> Result<LineUp, Box<dyn Error>> {
    let function = scene.function(kernel.entry())?;
    let prepared = |form| {
        let read = kernel.arrays().saturating_sub(1);
        let arguments = scene.slices()?;
        Ok::<_, Box<dyn Error>>(Prepared::new(
            &function,
            scene.stream(),
            arguments,
            read,
            form,
        ))
    };
    Ok(vec![
        (Way::Bare, Box::new(ByPointer::new(prepared(Form::Array)?)?)),
        (Way::BareSys, Box::new(BySys::new(prepared(Form::Array)?))),
        (
            Way::Packed,
            Box::new(ByPointer::new(prepared(Form::Packed)?)?),
        ),
        (
            Way::PackedSys,
            Box::new(BySys::new(prepared(Form::Packed)?)),
        ),
    ])
}

fn ours<R, W>(
    scene: &Scene,
    kernel: Kernel,
    arguments: impl Fn(&Scene) -> Result<Arguments<R, W>, Box<dyn Error>>,
) -> Result<LineUp, Box<dyn Error>>
where
    R: AsDeviceView<f32> + 'static,
    W: AsDeviceViewMut<f32> + 'static,
{
    let stream = || scene.stream().clone();
    let context = scene.context();
    let (one, other, third) = (arguments(scene)?, arguments(scene)?, arguments(scene)?);
    let fourth = arguments(scene)?;
    macro_rules! contenders {
        ($kernel:ident) => {
            vec![
                (
                    Way::Function,
                    Box::new(Function::<$kernel, _>::new(stream(), one)),
                ),
                (
                    Way::Handle,
                    Box::new(Handle::new($kernel::load(context)?, stream(), other)),
                ),
                (
                    Way::Prepared,
                    Box::new(Ready::<$kernel, _>::new(
                        &$kernel::load(context)?,
                        &stream(),
                        third,
                    )?),
                ),
                (
                    Way::Replayed,
                    Box::new(Replayed::new(
                        $kernel::load(context)?.replay()?,
                        stream(),
                        fourth,
                    )),
                ),
            ]
        };
    }
    Ok(match kernel {
        Kernel::Empty0 => contenders!(empty0),
        Kernel::Empty4 => contenders!(empty4),
        Kernel::Empty10 => contenders!(empty10),
        Kernel::Empty12 => contenders!(empty12),
    })
}

fn builder<A: 'static>(
    scene: &Scene,
    kernel: Kernel,
    arguments: A,
) -> Result<Box<dyn Contender>, Box<dyn Error>>
where
    Builder<0, A>: Contender,
    Builder<4, A>: Contender,
    Builder<10, A>: Contender,
    Builder<12, A>: Contender,
{
    let function = scene.function(kernel.entry())?;
    let stream = scene.stream().clone();
    Ok(match kernel {
        Kernel::Empty0 => Box::new(Builder::<0, A>::new(function, stream, arguments)),
        Kernel::Empty4 => Box::new(Builder::<4, A>::new(function, stream, arguments)),
        Kernel::Empty10 => Box::new(Builder::<10, A>::new(function, stream, arguments)),
        Kernel::Empty12 => Box::new(Builder::<12, A>::new(function, stream, arguments)),
    })
}
