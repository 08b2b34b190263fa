//! candle's tensors as arguments of kernels, inside custom ops.
//!
//! A custom op of candle is handed storages and layouts. [`read`] and [`write`] make arguments of
//! them, with their offset, shape and strides; element types are candle's own and are compared at
//! the launch. A new array of the op is a cudarc array and an argument as it is. Launch on the
//! device's own stream, `storage.device.cuda_stream()`, on which candle orders all its work.
//!
//! candle needs the CUDA toolkit to build, and links the CUDA driver.
//!
//! ```no_run
//! use candle_core::{
//!     CpuStorage, CudaStorage, CustomOp1, Layout, Result, Shape, backend::BackendStorage,
//!     cuda_backend::CudaDType,
//! };
//! use gridcall::{cover, kernel};
//!
//! #[kernel(ptx = "../kernels/vector.ptx")]
//! unsafe extern "C" {
//!     /// out ← input
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
//!     fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
//!         candle_core::bail!("for CUDA only")
//!     }
//!     fn cuda_fwd(&self, storage: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
//!         let stream = storage.device.cuda_stream();
//!         let len = layout.shape().elem_count();
//!         let mut out = stream.alloc_zeros::<f32>(len).map_err(candle_core::Error::wrap)?;
//!         let input = gridcall_candle::read(storage, layout);
//!         let n = i32::try_from(len).map_err(candle_core::Error::wrap)?;
//!         copy(&stream, cover(n), &input, &mut out, n).map_err(candle_core::Error::wrap)?;
//!         let out = f32::wrap_cuda_slice(out, storage.device.clone());
//!         Ok((out, layout.shape().clone()))
//!     }
//! }
//! ```

use candle_core::{
    CudaStorage, DType as CandleType, Layout, backend::BackendStorage, cuda_backend::CudaDType,
};
use gridcall::{AsDeviceView, AsDeviceViewMut, Element, Guard, StreamRef, View, ViewError};

/// A tensor that a kernel reads: the elements of `storage` that `layout` names.
#[must_use]
pub fn read<'a>(storage: &'a CudaStorage, layout: &'a Layout) -> Read<'a> {
    Read {
        storage,
        dims: Dims::of(layout),
    }
}

/// A tensor that a kernel writes, in an op that works in place.
#[must_use]
pub fn write<'a>(storage: &'a mut CudaStorage, layout: &'a Layout) -> Write<'a> {
    Write {
        storage,
        dims: Dims::of(layout),
    }
}

/// A tensor that a kernel reads. Made by [`read`].
#[derive(Debug)]
pub struct Read<'a> {
    storage: &'a CudaStorage,
    dims: Dims,
}

/// A tensor that a kernel writes. Made by [`write`].
#[derive(Debug)]
pub struct Write<'a> {
    storage: &'a mut CudaStorage,
    dims: Dims,
}

// SAFETY: the elements are the storage's, a cudarc array that is borrowed and is asked for
// everything else; that they lie in it is checked.
unsafe impl<T: Element + CudaDType> AsDeviceView<T> for Read<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.dims.view::<T>(self.storage)
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        slice::<T>(self.storage)?.acquire(stream)
    }

    fn make_contiguous(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

// SAFETY: as for `Read`.
unsafe impl<T: Element + CudaDType> AsDeviceView<T> for Write<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.dims.view::<T>(self.storage)
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        slice::<T>(self.storage)?.acquire(stream)
    }

    fn make_contiguous(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

// SAFETY: as for `Read`; the storage is exclusively borrowed.
unsafe impl<T: Element + CudaDType> AsDeviceViewMut<T> for Write<'_> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.dims.view::<T>(self.storage)
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let found = self.storage.dtype();
        match T::as_cuda_slice_mut(self.storage) {
            Ok(slice) => slice.acquire_mut(stream),
            Err(_) => Err(wrong_type::<T>(found)),
        }
    }

    fn make_contiguous_mut(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

const MAKE_CONTIGUOUS: &str = "make it contiguous first: `.contiguous()?`";

/// A layout in gridcall's terms.
#[derive(Debug)]
struct Dims {
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// The last element that the indices reach; none if there are none, or it is no number.
    last: Option<usize>,
}

impl Dims {
    fn of(layout: &Layout) -> Dims {
        let (shape, strides) = (layout.dims(), layout.stride());
        let last = shape.iter().zip(strides).try_fold(
            layout.start_offset(),
            |last, (&extent, &stride)| {
                extent
                    .checked_sub(1)?
                    .checked_mul(stride)?
                    .checked_add(last)
            },
        );
        Dims {
            offset: layout.start_offset(),
            shape: shape.to_vec(),
            // One that is no isize leads beyond every storage, as `last` shows.
            strides: strides
                .iter()
                .map(|&stride| isize::try_from(stride).unwrap_or(isize::MAX))
                .collect(),
            last,
        }
    }

    fn view<T: Element + CudaDType>(&self, storage: &CudaStorage) -> Result<View<'_>, ViewError> {
        let all = slice::<T>(storage)?;
        let view = all.describe()?;
        let empty = self.shape.contains(&0);
        if !empty && self.last.is_none_or(|last| last >= view.len()) {
            return Err(ViewError::other(format!(
                "its layout, shape {:?} with strides {:?} from element {} on, reaches beyond its storage of {} elements",
                self.shape,
                self.strides,
                self.offset,
                view.len()
            )));
        }
        let bytes = if empty {
            0
        } else {
            self.offset * size_of::<T>()
        };
        let shaped = View::strided(
            view.pointer() + bytes as u64,
            &self.shape,
            &self.strides,
            view.place(),
        );
        let shaped = shaped
            .ok_or_else(|| ViewError::other("its shape and strides contradict each other"))?;
        Ok(shaped.tracked_by(view.tracker()).exclusive())
    }
}

fn slice<T: Element + CudaDType>(
    storage: &CudaStorage,
) -> Result<&gridcall::cudarc::driver::CudaSlice<T>, ViewError> {
    T::as_cuda_slice(storage).map_err(|_| wrong_type::<T>(storage.dtype()))
}

#[cold]
fn wrong_type<T: Element>(found: CandleType) -> ViewError {
    let name = candle_name(T::DTYPE);
    ViewError::wrong_type(
        T::DTYPE,
        format!("DType::{found:?}"),
        match name {
            Some(name) => format!("convert it first: `.to_dtype(DType::{name})?`"),
            None => "candle has no such tensors".to_owned(),
        },
    )
}

/// The element type as candle's users write it.
fn candle_name(dtype: gridcall::DType) -> Option<&'static str> {
    Some(match dtype {
        gridcall::DType::U8 => "U8",
        gridcall::DType::U32 => "U32",
        gridcall::DType::I16 => "I16",
        gridcall::DType::I32 => "I32",
        gridcall::DType::I64 => "I64",
        gridcall::DType::F16 => "F16",
        gridcall::DType::BF16 => "BF16",
        gridcall::DType::F32 => "F32",
        gridcall::DType::F64 => "F64",
        gridcall::DType::F8E4M3Fn => "F8E4M3",
        _ => return None,
    })
}
