//! `cuLaunchKernel` itself, its parameters prepared outside the measured part.

use std::{
    error::Error,
    ffi::{c_uint, c_void},
    ptr,
};

use gridcall::cudarc::driver::{
    CudaFunction, CudaStream, DevicePtr,
    sys::{self, CUfunction, CUresult, CUstream},
};
use libloading::Library;

use crate::{
    Contender,
    scene::{BLOCKS, Slices, THREADS},
};

/// Through a pointer to the driver's function that was resolved once.
pub struct ByPointer {
    launch_kernel: LaunchKernel,
    prepared: Prepared,
}

/// Through cudarc's binding of the function, `sys::cuLaunchKernel`.
pub struct BySys {
    prepared: Prepared,
}

/// How the parameters are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A pointer to each parameter.
    Array,
    /// One buffer that holds them all, and its size.
    Packed,
}

/// What the driver's function takes.
pub struct Prepared {
    function: CUfunction,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    /// Where the factor is; null if the kernel takes nothing.
    alpha: *mut f32,
    /// What the parameters point to.
    arguments: Slices,
}

/// The same, kept for the rest of the process.
pub struct Leaked {
    /// `kernelParams`, or null.
    pub kernel_params: *mut *mut c_void,
    /// `extra`, or null.
    pub extra: *mut *mut c_void,
    /// The factor among what they point to.
    pub alpha: *mut f32,
}

type LaunchKernel = unsafe extern "C" fn(
    CUfunction,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    CUstream,
    *mut *mut c_void,
    *mut *mut c_void,
) -> CUresult;

impl Prepared {
    /// A kernel that takes the first `read` of the arrays and the last one, then `alpha` and `n`;
    /// or nothing, if `read` is 0.
    #[must_use]
    pub fn new(
        function: &CudaFunction,
        stream: &CudaStream,
        arguments: Slices,
        read: usize,
        form: Form,
    ) -> Prepared {
        let mut prepared = Prepared {
            function: function.cu_function(),
            stream: stream.cu_stream(),
            kernel_params: ptr::null_mut(),
            extra: ptr::null_mut(),
            alpha: ptr::null_mut(),
            arguments,
        };
        if read == 0 {
            return prepared;
        }
        let arguments = &prepared.arguments;
        let mut words: Vec<u64> = arguments.read[..read]
            .iter()
            .chain([&arguments.written])
            .map(|array| array.device_ptr(stream).0)
            .collect();
        let scalars = 8 * words.len();
        // Two parameters of four bytes, little endian.
        words.push(
            u64::from(arguments.alpha.to_bits()) | u64::from(arguments.n.unsigned_abs()) << 32,
        );
        let size = size_of_val(&*words);
        // Kept for the rest of the process, as is each list of pointers.
        let base: *mut c_void = words.leak().as_mut_ptr().cast();
        prepared.alpha = base.wrapping_byte_add(scalars).cast();
        match form {
            Form::Array => {
                let offsets = (0..scalars).step_by(8).chain([scalars, scalars + 4]);
                let pointers: Vec<_> = offsets.map(|at| base.wrapping_byte_add(at)).collect();
                prepared.kernel_params = pointers.leak().as_mut_ptr();
            }
            Form::Packed => {
                /// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `_SIZE` and `_END`.
                const BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
                const BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);
                const END: *mut c_void = ptr::null_mut();
                let size: *mut usize = Box::leak(Box::new(size));
                let list = vec![BUFFER_POINTER, base, BUFFER_SIZE, size.cast(), END];
                prepared.extra = list.leak().as_mut_ptr();
            }
        }
        prepared
    }
}

impl Prepared {
    /// Keeps what the parameters point to for the rest of the process.
    #[must_use]
    pub fn leak(self) -> Leaked {
        std::mem::forget(self.arguments);
        Leaked {
            kernel_params: self.kernel_params,
            extra: self.extra,
            alpha: self.alpha,
        }
    }
}

impl ByPointer {
    /// Resolves the driver's function.
    ///
    /// # Errors
    ///
    /// If there is no driver.
    pub fn new(prepared: Prepared) -> Result<ByPointer, Box<dyn Error>> {
        // SAFETY: opening the driver runs its initialisers, which every CUDA program does.
        let library = unsafe { Library::new("libcuda.so.1") }?;
        // SAFETY: the type is the function's in cuda.h.
        let launch_kernel = *unsafe { library.get::<LaunchKernel>(b"cuLaunchKernel") }?;
        // The driver stays loaded, and the function with it.
        std::mem::forget(library);
        Ok(ByPointer {
            launch_kernel,
            prepared,
        })
    }
}

impl BySys {
    /// Launches what is prepared.
    #[must_use]
    pub fn new(prepared: Prepared) -> BySys {
        BySys { prepared }
    }
}

impl Contender for ByPointer {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let launch = &self.prepared;
        // SAFETY: the parameters are those of the kernel; what they point to, the kernel's module
        // and the stream outlive the contender; the stream's context is current.
        let code = unsafe {
            (self.launch_kernel)(
                launch.function,
                BLOCKS,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                launch.stream,
                launch.kernel_params,
                launch.extra,
            )
        };
        code.result().map_err(Into::into)
    }
}

impl Contender for BySys {
    fn launch(&mut self) -> Result<(), Box<dyn Error>> {
        let launch = &self.prepared;
        // SAFETY: as for `ByPointer`.
        let code = unsafe {
            sys::cuLaunchKernel(
                launch.function,
                BLOCKS,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                launch.stream,
                launch.kernel_params,
                launch.extra,
            )
        };
        code.result().map_err(Into::into)
    }
}
