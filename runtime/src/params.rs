//! The packed parameter block of one launch.

use std::ffi::c_void;

use crate::{
    arg::KernelArg, call::Span, declaration::Declaration, driver::DriverCode, load::Loaded,
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
    /// The arguments must be what the kernel takes, its arrays acquired for the stream, the stream
    /// of the kernel's context and alive, and that context current.
    #[inline(always)]
    pub(crate) unsafe fn launch(
        &mut self,
        kernel: &Loaded,
        grid: [u32; 3],
        block: [u32; 3],
        shared_mem_bytes: u32,
        stream: cudarc::driver::sys::CUstream,
    ) -> DriverCode {
        /// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `_SIZE` and `_END`.
        const BUFFER_POINTER: *mut c_void = std::ptr::without_provenance_mut(1);
        const BUFFER_SIZE: *mut c_void = std::ptr::without_provenance_mut(2);
        const END: *mut c_void = std::ptr::null_mut();
        let launch = |params: *mut *mut c_void, extra: *mut *mut c_void| {
            // SAFETY: the caller vouches for kernel, stream and context; `params` and `extra`
            // describe a block that is laid out as the kernel's own, and the driver has read them
            // when the call returns.
            unsafe {
                (kernel.driver.launch_kernel)(
                    kernel.function,
                    grid[0],
                    grid[1],
                    grid[2],
                    block[0],
                    block[1],
                    block[2],
                    shared_mem_bytes,
                    stream,
                    params,
                    extra,
                )
            }
        };
        let none = std::ptr::null_mut();
        if SIZE == 0 {
            return launch(none, none);
        }
        if !kernel.packed {
            return self.launch_by_pointers(kernel.declaration, |params| launch(params, none));
        }
        let mut size = SIZE;
        let mut extra = [
            BUFFER_POINTER,
            self.bytes.as_mut_ptr().cast(),
            BUFFER_SIZE,
            (&raw mut size).cast(),
            END,
        ];
        launch(none, extra.as_mut_ptr())
    }

    /// One pointer for each parameter, where the driver lays the block out otherwise.
    #[cold]
    fn launch_by_pointers(
        &mut self,
        declaration: &Declaration,
        launch: impl FnOnce(*mut *mut c_void) -> DriverCode,
    ) -> DriverCode {
        let base = self.bytes.as_mut_ptr();
        // The offsets lie within the block: the macro took both from one PTX entry.
        let pointer = |offset: usize| base.wrapping_add(offset).cast::<c_void>();
        let params = declaration.params;
        let mut few = [std::ptr::null_mut(); 64];
        if params.len() <= few.len() {
            for (place, param) in few.iter_mut().zip(params) {
                *place = pointer(param.offset);
            }
            return launch(few.as_mut_ptr());
        }
        let mut many: Vec<_> = params.iter().map(|param| pointer(param.offset)).collect();
        launch(many.as_mut_ptr())
    }

    #[cold]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
