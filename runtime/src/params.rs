//! The packed parameter block of one launch.

use std::ffi::c_void;

use cudarc::driver::sys::CUstream;

use crate::{
    arg::KernelArg,
    attributes::Attributes,
    call::Span,
    driver::{DriverCode, LaunchConfig},
    launch::{Dims, Grid},
    load::Loaded,
};

/// The parameters of a kernel as the device gets them: each at its offset, padding zero.
///
/// `SIZE` is exactly the end of the last parameter: a driver refuses a larger block, and takes a
/// smaller one for parameters that are zero.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Params<const SIZE: usize> {
    bytes: [u8; SIZE],
}

impl<const SIZE: usize> AsMut<[u8]> for Params<SIZE> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl<const SIZE: usize> Params<SIZE> {
    /// No parameter set yet.
    #[must_use]
    #[inline(always)]
    pub const fn zeroed() -> Params<SIZE> {
        Params { bytes: [0; SIZE] }
    }

    /// Sets the parameter at `offset` bytes.
    ///
    /// # Panics
    ///
    /// If it does not fit, which `#[kernel]` rules out.
    #[inline(always)]
    pub fn set<T: KernelArg>(&mut self, offset: usize, value: &T) {
        let place = &mut self.bytes[offset..][..T::LAYOUT.size];
        // SAFETY: `place` is as long as the type's size says.
        unsafe { value.write(place.as_mut_ptr()) };
    }

    /// Sets the parameter at `offset` bytes to the address of an array.
    #[inline(always)]
    pub fn set_pointer(&mut self, offset: usize, array: Span) {
        self.set(offset, &array.pointer());
    }

    /// Enqueues the kernel with these parameters.
    ///
    /// # Safety
    ///
    /// The arguments must be what the kernel takes, its arrays acquired for the stream, and the
    /// stream of the kernel's context and alive. Whichever context is current, the driver launches
    /// in that of the kernel or not at all.
    #[inline(always)]
    pub(crate) unsafe fn launch(
        &mut self,
        kernel: &Loaded,
        dims: Dims,
        stream: CUstream,
    ) -> DriverCode {
        let none = std::ptr::null_mut();
        if SIZE == 0 {
            // SAFETY: the kernel takes no parameters; the caller vouches for all else.
            return unsafe { launch(kernel, dims, stream, none, none) };
        }
        if !kernel.packed {
            // SAFETY: the block is this one's; the caller vouches for all else.
            return unsafe { launch_by_pointers(kernel, dims.numbers(), stream, &mut self.bytes) };
        }
        let mut size = SIZE;
        let mut extra = extra(&mut self.bytes, &mut size);
        // SAFETY: `extra` describes a block that is laid out as the kernel's own; the caller
        // vouches for all else.
        unsafe { launch(kernel, dims, stream, none, extra.as_mut_ptr()) }
    }

    /// Enqueues the kernel with these parameters and attributes.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Params::launch); events among the attributes must be of that context, too.
    #[inline(always)]
    pub(crate) unsafe fn launch_with(
        &mut self,
        kernel: &Loaded,
        dims: Dims,
        stream: CUstream,
        attributes: &Attributes<'_>,
    ) -> DriverCode {
        // SAFETY: the block is this one's; the caller vouches for all else.
        unsafe { launch_with(kernel, dims.numbers(), stream, attributes, &mut self.bytes) }
    }

    #[cold]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<const SIZE: usize> AsRef<[u8]> for Params<SIZE> {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// `cuLaunchKernel`. The driver has read the parameters when it returns.
///
/// # Safety
///
/// As for [`Params::launch`]; `params` or `extra` must describe the kernel's parameters.
#[inline(always)]
unsafe fn launch(
    kernel: &Loaded,
    dims: Dims,
    stream: CUstream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> DriverCode {
    // SAFETY: the caller vouches for all of it.
    unsafe {
        (kernel.driver.launch_kernel)(
            kernel.function,
            dims.grid.x,
            dims.grid.y,
            dims.grid.z,
            dims.block.x,
            dims.block.y,
            dims.block.z,
            dims.shared_mem_bytes,
            stream,
            params,
            extra,
        )
    }
}

/// One pointer for each parameter, where the driver lays the block out otherwise.
///
/// # Safety
///
/// As for [`Params::launch`]; `bytes` must be the kernel's parameter block.
#[cold]
#[inline(never)]
unsafe fn launch_by_pointers(
    kernel: &Loaded,
    dims: [u32; 7],
    stream: CUstream,
    bytes: &mut [u8],
) -> DriverCode {
    let dims = Dims::from_numbers(dims);
    with_pointers(kernel, bytes, |params| {
        // SAFETY: there is a pointer for each parameter; the caller vouches for all else.
        unsafe { launch(kernel, dims, stream, params, std::ptr::null_mut()) }
    })
}

/// Calls `then` with a pointer for each parameter.
fn with_pointers<R>(
    kernel: &Loaded,
    bytes: &mut [u8],
    then: impl FnOnce(*mut *mut c_void) -> R,
) -> R {
    let base = bytes.as_mut_ptr();
    // The offsets lie within the block: the macro took both from one PTX entry.
    let pointer = |offset: usize| base.wrapping_add(offset).cast::<c_void>();
    let params = kernel.declaration.params;
    let mut few = [std::ptr::null_mut(); 64];
    if params.len() <= few.len() {
        for (place, param) in few.iter_mut().zip(params) {
            *place = pointer(param.offset);
        }
        return then(few.as_mut_ptr());
    }
    let mut many: Vec<_> = params.iter().map(|param| pointer(param.offset)).collect();
    then(many.as_mut_ptr())
}

/// `cuLaunchKernelEx`, for a launch that has attributes; else as every launch.
///
/// # Safety
///
/// As for [`Params::launch_with`]; `bytes` must be the kernel's parameter block.
#[cold]
#[inline(never)]
pub(crate) unsafe fn launch_with(
    kernel: &Loaded,
    dims: [u32; 7],
    stream: CUstream,
    attributes: &Attributes<'_>,
    bytes: &mut [u8],
) -> DriverCode {
    let dims = Dims::from_numbers(dims);
    let sys = attributes.to_sys();
    let config = LaunchConfig {
        grid: kernel.needs.grid_of_driver(dims.grid.into()),
        block: dims.block.into(),
        shared_mem_bytes: dims.shared_mem_bytes,
        stream,
        attributes: sys.as_slice().as_ptr(),
        attribute_count: sys.count(),
    };
    let enqueue = |params: *mut *mut c_void, extra: *mut *mut c_void| {
        // Without the function, a launch that has attributes was refused before.
        match kernel.driver.launch_kernel_ex {
            Some(launch_kernel_ex) if sys.count() > 0 => {
                // SAFETY: the configuration and its attributes outlive the call; the caller vouches
                // for all else.
                unsafe { launch_kernel_ex(&raw const config, kernel.function, params, extra) }
            }
            _ => {
                let [x, y, z] = config.grid;
                let grid = Grid { x, y, z };
                let dims = Dims { grid, ..dims };
                // SAFETY: the caller vouches for all of it.
                unsafe { launch(kernel, dims, stream, params, extra) }
            }
        }
    };
    with_block(kernel, attributes.take_packed(kernel), bytes, enqueue)
}

/// Shows a block of parameters to a call of the driver, as `kernelParams` and `extra`, of which the
/// one that is not used is null: `extra` unless it is to be `packed`.
#[inline(always)]
pub(crate) fn with_block<R>(
    kernel: &Loaded,
    packed: bool,
    bytes: &mut [u8],
    call: impl FnOnce(*mut *mut c_void, *mut *mut c_void) -> R,
) -> R {
    let none = std::ptr::null_mut();
    if bytes.is_empty() {
        return call(none, none);
    }
    if !packed {
        return with_pointers(kernel, bytes, |params| call(params, none));
    }
    let mut size = bytes.len();
    let mut extra = extra(bytes, &mut size);
    call(none, extra.as_mut_ptr())
}

/// What tells the driver of a packed block.
#[inline(always)]
fn extra(bytes: &mut [u8], size: &mut usize) -> [*mut c_void; 5] {
    /// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `_SIZE` and `_END`.
    const BUFFER_POINTER: *mut c_void = std::ptr::without_provenance_mut(1);
    const BUFFER_SIZE: *mut c_void = std::ptr::without_provenance_mut(2);
    const END: *mut c_void = std::ptr::null_mut();
    [
        BUFFER_POINTER,
        bytes.as_mut_ptr().cast(),
        BUFFER_SIZE,
        (&raw mut *size).cast(),
        END,
    ]
}
