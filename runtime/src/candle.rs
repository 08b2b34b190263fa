//! Launching with candle's tensors, in its custom ops and outside.
//!
//! [`StorageView`] is an argument of a kernel that reads, [`StorageViewMut`] of one that writes; what
//! an op allocates is cudarc's, and an argument as it is. Errors become candle's by `?`.
//!
//! ```no_run
//! use candle_core::{CpuStorage, CudaStorage, CustomOp1, Layout, Result, Shape};
//! use gridcall::{candle::StorageView, cover, kernel};
//!
//! #[kernel(ptx = "../kernels/vector.ptx")]
//! unsafe extern "C" {
//!     #[requires(input.len() >= n, out.len() >= n)]
//!     safe fn copy(input: &[f32], out: &mut [f32], n: i32);
//! }
//!
//! struct Copy;
//!
//! impl CustomOp1 for Copy {
//!     fn name(&self) -> &'static str {
//!         "copy"
//!     }
//!
//!     fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
//!         candle_core::bail!("copy is for CUDA devices")
//!     }
//!
//!     fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
//!         let device = &x.device;
//!         let len = layout.shape().elem_count();
//!         let mut out = device.alloc_zeros::<f32>(len)?;
//!         let n = i32::try_from(len).map_err(candle_core::Error::wrap)?;
//!         let stream = device.cuda_stream();
//!         copy(&stream, cover(n), &StorageView::new(x, layout), &mut out, n)?;
//!         Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), layout.shape().clone()))
//!     }
//! }
//! ```
//!
//! candle links the driver, and its kernels are compiled by nvcc: a crate with this feature needs the
//! CUDA toolkit to build and a GPU to run. There is no emulator for it, since candle's devices need
//! cuBLAS and cuRAND.

pub use gridcall_view::candle::{StorageView, StorageViewMut};

use crate::{LaunchError, LoadError};

impl From<LaunchError> for candle_core::Error {
    #[cold]
    fn from(error: LaunchError) -> candle_core::Error {
        candle_core::Error::Cuda(Box::new(error)).bt()
    }
}

impl From<LoadError> for candle_core::Error {
    #[cold]
    fn from(error: LoadError) -> candle_core::Error {
        candle_core::Error::Cuda(Box::new(error)).bt()
    }
}
