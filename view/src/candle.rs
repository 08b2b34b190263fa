//! Tensors of candle, and what its custom ops are handed of them, as arguments.
//!
//! A custom op is handed a `CudaStorage` and a `Layout`: [`StorageView`] shows both to a kernel that
//! reads, [`StorageViewMut`] to one that writes. Outside of ops, [`StorageView::of`] shows a tensor;
//! it holds the tensor's lock for reading, so that no op in place replaces the memory meanwhile.
//! What a kernel cannot take is refused by the launch, which knows the kernel and the parameter.
//!
//! The memory is cudarc's, and its uses are waited for and recorded as those of a `CudaSlice`. The
//! usual device of candle works on the default stream of whatever thread calls it, whose uses cudarc
//! does not record: launch on `storage.device.cuda_stream()`, on the thread that works with the
//! tensor.

use std::{fmt, slice::from_raw_parts};

use candle_core::{
    CudaStorage, Layout, Storage, StorageRef, Tensor, cuda_backend::CudaStorageSlice,
};
use cudarc_019::driver::CudaSlice;

use crate::{AsDeviceView, AsDeviceViewMut, DType, Element, Guard, StreamRef, View, ViewError};

/// The memory of a tensor, as it lies, for kernels that read it.
///
/// ```no_run
/// use candle_core::{Device, Tensor};
/// use gridcall_view::{AsDeviceView, candle::StorageView};
///
/// let x = Tensor::arange(0_f32, 18., &Device::new_cuda(0)?)?.reshape((6, 3))?;
/// let rows = x.narrow(0, 2, 3)?;
/// let rows = StorageView::of(&rows);
/// assert_eq!(AsDeviceView::<f32>::describe(&rows)?.len(), 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StorageView<'a> {
    storage: Held<'a>,
    layout: &'a Layout,
    /// What the elements are taken for, if not for what they are.
    taken_for: Option<DType>,
}

/// The memory that an op in place was handed, as it lies, for kernels that write it.
///
/// ```no_run
/// use candle_core::{CudaStorage, Layout};
/// use gridcall_view::{AsDeviceViewMut, candle::StorageViewMut};
///
/// // In `InplaceOp1::cuda_fwd`.
/// fn cuda_fwd(storage: &mut CudaStorage, layout: &Layout) -> candle_core::Result<()> {
///     let y = StorageViewMut::new(storage, layout);
///     let view = AsDeviceViewMut::<f32>::describe_mut(&y).map_err(candle_core::Error::wrap)?;
///     println!("{} elements", view.len());
///     Ok(())
/// }
/// ```
pub struct StorageViewMut<'a> {
    storage: &'a mut CudaStorage,
    layout: &'a Layout,
}

enum Held<'a> {
    /// By the op, whose caller holds the lock.
    ByOp(&'a CudaStorage),
    Locked(StorageRef<'a>),
}

impl<'a> StorageView<'a> {
    /// What a custom op was handed.
    #[must_use]
    pub fn new(storage: &'a CudaStorage, layout: &'a Layout) -> StorageView<'a> {
        StorageView {
            storage: Held::ByOp(storage),
            layout,
            taken_for: None,
        }
    }

    /// A tensor, locked for reading as long as this lives.
    ///
    /// Until then ops in place on the tensor wait: one on this thread would wait for ever, and so
    /// would another view of the same tensor on this thread, while such an op waits on another.
    #[must_use]
    pub fn of(tensor: &'a Tensor) -> StorageView<'a> {
        let (storage, layout) = tensor.storage_and_layout();
        StorageView {
            storage: Held::Locked(storage),
            layout,
            taken_for: None,
        }
    }

    /// The same bytes as elements of another type of the same size: u32 as i32, say, to which
    /// candle converts on the host only. Nothing does so unasked.
    ///
    /// ```no_run
    /// use candle_core::{Device, Tensor};
    /// use gridcall_view::{DType, candle::StorageView};
    ///
    /// let indices = Tensor::new(&[3_u32, 2, 1, 0], &Device::new_cuda(0)?)?;
    /// let indices = StorageView::of(&indices).reinterpret(DType::I32)?;
    /// # let _ = indices;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the sizes differ, the elements would become `bool`, which not every byte is, or the tensor
    /// is none that a kernel can take.
    pub fn reinterpret(mut self, dtype: DType) -> Result<StorageView<'a>, ViewError> {
        let storage = &self.storage()?.slice;
        let found = slice(storage)
            .ok_or_else(|| wrong_type(dtype, storage))?
            .dtype();
        found.check_reinterpretation(dtype)?;
        self.taken_for = Some(dtype);
        Ok(self)
    }

    fn storage(&self) -> Result<&CudaStorage, ViewError> {
        match &self.storage {
            Held::ByOp(storage) => Ok(storage),
            Held::Locked(storage) => match &**storage {
                Storage::Cuda(storage) => Ok(storage),
                Storage::Cpu(_) | Storage::Metal(_) => Err(ViewError::other(
                    "the tensor is not on a CUDA device; move it there first: `.to_device(&Device::new_cuda(0)?)?`",
                )),
            },
        }
    }

    fn slice<T: Element>(&self) -> Result<&dyn Slice, ViewError> {
        let storage = &self.storage()?.slice;
        slice(storage)
            .filter(|slice| self.taken_for.unwrap_or(slice.dtype()) == T::DTYPE)
            .ok_or_else(|| wrong_type(T::DTYPE, storage))
    }
}

impl<'a> StorageViewMut<'a> {
    /// What an op in place was handed.
    #[must_use]
    pub fn new(storage: &'a mut CudaStorage, layout: &'a Layout) -> StorageViewMut<'a> {
        StorageViewMut { storage, layout }
    }

    fn slice<T: Element>(&self) -> Result<&dyn Slice, ViewError> {
        let storage = &self.storage.slice;
        slice(storage)
            .filter(|slice| slice.dtype() == T::DTYPE)
            .ok_or_else(|| wrong_type(T::DTYPE, storage))
    }
}

// SAFETY: the elements are those of a slice of `T` that the layout reaches, all of which are within
// it; the slice is asked for everything else. It is borrowed, by an op or under the tensor's lock,
// so that nobody replaces it.
unsafe impl<T: Element> AsDeviceView<T> for StorageView<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        laid_out(self.slice::<T>()?.view()?, self.layout, size_of::<T>())
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.slice::<T>()?.read(stream)
    }

    fn make_contiguous(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

// SAFETY: as for reading; the storage is exclusively borrowed.
unsafe impl<T: Element> AsDeviceViewMut<T> for StorageViewMut<'_> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        laid_out(self.slice::<T>()?.view()?, self.layout, size_of::<T>())
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.slice::<T>()?;
        write(&mut self.storage.slice, stream)
    }

    fn make_contiguous_mut(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

const MAKE_CONTIGUOUS: &str = "make it contiguous first: `.contiguous()?`";

/// An array of cudarc's, whatever its elements.
trait Slice {
    fn dtype(&self) -> DType;
    fn view(&self) -> Result<View<'_>, ViewError>;
    fn read<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError>;
}

impl<T: Element> Slice for CudaSlice<T> {
    fn dtype(&self) -> DType {
        T::DTYPE
    }

    fn view(&self) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    fn read<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.acquire(stream)
    }
}

/// The array of a storage. `None` where bytes stand for elements of another size.
fn slice(storage: &CudaStorageSlice) -> Option<&dyn Slice> {
    Some(match storage {
        CudaStorageSlice::U8(slice) => slice,
        CudaStorageSlice::U32(slice) => slice,
        CudaStorageSlice::I16(slice) => slice,
        CudaStorageSlice::I32(slice) => slice,
        CudaStorageSlice::I64(slice) => slice,
        CudaStorageSlice::BF16(slice) => slice,
        CudaStorageSlice::F16(slice) => slice,
        CudaStorageSlice::F32(slice) => slice,
        CudaStorageSlice::F64(slice) => slice,
        CudaStorageSlice::F8E4M3(slice) => slice,
        CudaStorageSlice::F6E2M3(_)
        | CudaStorageSlice::F6E3M2(_)
        | CudaStorageSlice::F4(_)
        | CudaStorageSlice::F8E8M0(_) => return None,
    })
}

fn write<'a>(
    storage: &'a mut CudaStorageSlice,
    stream: StreamRef<'a>,
) -> Result<Guard<'a>, ViewError> {
    match storage {
        CudaStorageSlice::U32(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::I16(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::I32(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::I64(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::BF16(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::F16(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::F32(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::F64(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::F8E4M3(slice) => slice.acquire_mut(stream),
        CudaStorageSlice::U8(slice)
        | CudaStorageSlice::F6E2M3(slice)
        | CudaStorageSlice::F6E3M2(slice)
        | CudaStorageSlice::F4(slice)
        | CudaStorageSlice::F8E8M0(slice) => slice.acquire_mut(stream),
    }
}

/// The part of a slice that a layout reaches.
fn laid_out<'a>(slice: View<'a>, layout: &'a Layout, size: usize) -> Result<View<'a>, ViewError> {
    let (shape, strides) = (layout.dims(), layout.stride());
    let outside = || {
        ViewError::other(format!(
            "the storage has {} elements, and shape {shape:?} with strides {strides:?} from element {} on reaches beyond them",
            slice.len(),
            layout.start_offset()
        ))
    };
    let mut pointer = slice.pointer();
    if !shape.contains(&0) {
        let last = shape
            .iter()
            .zip(strides)
            .try_fold(layout.start_offset(), |last, (&extent, &stride)| {
                last.checked_add((extent - 1).checked_mul(stride)?)
            });
        if last.is_none_or(|last| last >= slice.len()) {
            return Err(outside());
        }
        pointer += (layout.start_offset() * size) as u64;
    }
    // SAFETY: the two types have one layout. Strides that are too large for an `isize` would be
    // negative; those lead nowhere, as the others were found to lead to elements of the slice.
    let strides = unsafe { from_raw_parts(strides.as_ptr().cast::<isize>(), strides.len()) };
    let view = View::strided(pointer, shape, strides, slice.place()).ok_or_else(outside)?;
    Ok(view.exclusive().tracked_by(slice.tracker()))
}

#[cold]
fn wrong_type(expected: DType, storage: &CudaStorageSlice) -> ViewError {
    let found = match storage {
        CudaStorageSlice::U8(_) => "U8",
        CudaStorageSlice::U32(_) => "U32",
        CudaStorageSlice::I16(_) => "I16",
        CudaStorageSlice::I32(_) => "I32",
        CudaStorageSlice::I64(_) => "I64",
        CudaStorageSlice::BF16(_) => "BF16",
        CudaStorageSlice::F16(_) => "F16",
        CudaStorageSlice::F32(_) => "F32",
        CudaStorageSlice::F64(_) => "F64",
        CudaStorageSlice::F8E4M3(_) => "F8E4M3",
        CudaStorageSlice::F6E2M3(_) => "F6E2M3",
        CudaStorageSlice::F6E3M2(_) => "F6E3M2",
        CudaStorageSlice::F4(_) => "F4",
        CudaStorageSlice::F8E8M0(_) => "F8E8M0",
    };
    let found = format!("DType::{found}");
    let wanted = match expected {
        DType::U8 => "U8",
        DType::U32 => "U32",
        DType::I16 => "I16",
        DType::I32 => "I32",
        DType::I64 => "I64",
        DType::BF16 => "BF16",
        DType::F16 => "F16",
        DType::F32 => "F32",
        DType::F64 => "F64",
        DType::F8E4M3Fn => "F8E4M3",
        _ => {
            let cure = format!("candle has no dtype of {expected}; declare what its tensors hold");
            return ViewError::wrong_type(expected, found, cure);
        }
    };
    // candle has no kernels for these.
    let converted = match expected {
        DType::I16 | DType::I32 => format!(
            "convert it on the host first: `.to_device(&Device::Cpu)?.to_dtype(DType::{wanted})?`"
        ),
        _ => format!("convert it first: `.to_dtype(DType::{wanted})?`"),
    };
    let cure = match slice(storage) {
        Some(slice) if slice.dtype().size() == expected.size() => {
            format!("{converted}, or, if the bits are meant, use `StorageView::reinterpret`")
        }
        _ => converted,
    };
    ViewError::wrong_type(expected, found, cure)
}

impl fmt::Debug for StorageView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageView")
            .field("layout", self.layout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StorageViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageViewMut")
            .field("layout", self.layout)
            .finish_non_exhaustive()
    }
}
