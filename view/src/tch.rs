//! Tensors of tch, PyTorch's library in Rust, as arguments.
//!
//! [`TensorView`] shows a tensor to a kernel that reads, [`TensorViewMut`] to one that writes, which
//! autograd does not see. What a kernel cannot take is refused by the launch, which knows the kernel
//! and the parameter.
//!
//! # Order
//!
//! tch works on the legacy default stream, and offers no other. A launch there needs nothing; on
//! another stream it waits for what tch has enqueued, and what tch enqueues later waits for the launch.
//! PyTorch reuses memory in the order of its stream, so that a tensor may be dropped at once. Where
//! somebody beside tch sets PyTorch's current stream, Python for example, use
//! [`Tensor::from_parts`](crate::Tensor::from_parts) with that one.

use std::fmt;

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLTensor};
use tch::{Device, Kind, Tensor};

use crate::{
    AsDeviceView, AsDeviceViewMut, BorrowedTensor, DType, Element, ForeignStream, Guard, Order,
    StreamRef, View, ViewError,
};

/// A tensor as it lies, for kernels that read it.
///
/// ```no_run
/// use gridcall_view::{AsDeviceView, tch::TensorView};
/// use tch::{Device, Kind, Tensor};
///
/// let x = Tensor::arange(18, (Kind::Float, Device::Cuda(0))).view([6, 3]);
/// let rows = x.narrow(0, 2, 3);
/// assert_eq!(AsDeviceView::<f32>::describe(&TensorView::new(&rows))?.len(), 9);
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
pub struct TensorView<'a> {
    tensor: &'a Tensor,
    read: Read<'a>,
}

/// A tensor as it lies, for kernels that write it.
///
/// ```no_run
/// use gridcall_view::{AsDeviceViewMut, tch::TensorViewMut};
/// use tch::{Device, Kind, Tensor};
///
/// let mut y = Tensor::zeros([4], (Kind::Float, Device::Cuda(0)));
/// let y = TensorViewMut::new(&mut y);
/// assert_eq!(AsDeviceViewMut::<f32>::describe_mut(&y)?.len(), 4);
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
pub struct TensorViewMut<'a> {
    tensor: &'a mut Tensor,
    read: Read<'a>,
}

impl<'a> TensorView<'a> {
    /// Reads where a tensor is and how it lies.
    #[must_use]
    pub fn new(tensor: &'a Tensor) -> TensorView<'a> {
        let read = Read::new(tensor);
        TensorView { tensor, read }
    }
}

impl<'a> TensorViewMut<'a> {
    /// Reads where a tensor is and how it lies.
    #[must_use]
    pub fn new(tensor: &'a mut Tensor) -> TensorViewMut<'a> {
        let read = Read::new(tensor);
        TensorViewMut { tensor, read }
    }
}

/// What a tensor says of itself, or why no kernel can take it.
struct Read<'a>(Result<(Kind, BorrowedTensor<'a>), Box<str>>);

impl<'a> Read<'a> {
    fn new(tensor: &Tensor) -> Read<'a> {
        Read(read(tensor).map_err(|error| error.to_string().into()))
    }

    /// The tensor, if its elements are of the asked type and where they were.
    fn of<T: Element>(&self, tensor: &Tensor) -> Result<&BorrowedTensor<'a>, ViewError> {
        let (kind, borrowed) = match &self.0 {
            Ok(read) => read,
            Err(reason) => return Err(ViewError::other(String::from(&**reason))),
        };
        if dtype(*kind).map(|(dtype, _)| dtype) != Some(T::DTYPE) {
            return Err(wrong_type(T::DTYPE, *kind));
        }
        // Another handle of the same tensor may have been resized since.
        let view = AsDeviceView::<T>::describe(borrowed)?;
        if view.pointer() != tensor.data_ptr().addr() as u64 {
            return Err(ViewError::other(
                "its memory was given to another since it was viewed, by a resize; view it anew",
            ));
        }
        Ok(borrowed)
    }

    fn of_mut<T: Element>(
        &mut self,
        tensor: &Tensor,
    ) -> Result<&mut BorrowedTensor<'a>, ViewError> {
        self.of::<T>(tensor)?;
        match &mut self.0 {
            Ok((_, borrowed)) => Ok(borrowed),
            Err(reason) => Err(ViewError::other(String::from(&**reason))),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "PyTorch made the number of an i8"
)]
fn read<'a>(tensor: &Tensor) -> Result<(Kind, BorrowedTensor<'a>), ViewError> {
    if !tensor.defined() {
        return Err(ViewError::other(
            "the tensor is undefined; give it a value first",
        ));
    }
    let Device::Cuda(device) = tensor.device() else {
        return Err(ViewError::other(
            "the tensor is not on a CUDA device; move it there first: `.to_device(Device::Cuda(0))`",
        ));
    };
    if !matches!(tensor.f_sparse_dim(), Ok(0)) {
        return Err(ViewError::other(
            "the tensor is sparse, and a kernel's array is not; make it dense first: `.to_dense(None, false)`",
        ));
    }
    if tensor.is_neg() {
        return Err(ViewError::other(
            "the tensor is negated lazily: its memory holds the elements with the other sign; pass `.resolve_neg()`",
        ));
    }
    if tensor.is_conj() {
        return Err(ViewError::other(
            "the tensor is conjugated lazily: its memory holds the elements as they were before; pass `.resolve_conj()`",
        ));
    }
    let known = tensor.f_kind().ok();
    let known = known.and_then(|kind| Some((kind, dtype(kind)?.1)));
    let Some((kind, dtype)) = known else {
        return Err(ViewError::other(
            "its elements are of a kind which no element type here stands for; convert it first: `.to_kind(..)`",
        ));
    };
    let (mut shape, mut strides) = (tensor.size(), tensor.stride());
    let given = DLTensor {
        data: tensor.data_ptr(),
        device: DLDevice {
            device_type: DLDeviceType::CUDA,
            device_id: device as i32,
        },
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let given = &raw const given;
    // SAFETY: it is read by the call alone, as that says, whatever the lifetime.
    let given: &'a DLTensor = unsafe { &*given };
    // SAFETY: the tensor is as PyTorch says, which is asked anew before each use whether the memory
    // is still the tensor's. All of tch's work is on this stream, in whose order PyTorch reuses memory.
    let borrowed =
        unsafe { BorrowedTensor::new(given, Order::Stream(ForeignStream::LEGACY_DEFAULT)) };
    Ok((kind, borrowed?))
}

// SAFETY: the tensor is borrowed, its memory was asked for, and what its library does with it is
// ordered by the stream.
unsafe impl<T: Element> AsDeviceView<T> for TensorView<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        AsDeviceView::<T>::describe(self.read.of::<T>(self.tensor)?)
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        AsDeviceView::<T>::acquire(self.read.of::<T>(self.tensor)?, stream)
    }

    fn make_contiguous(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

// SAFETY: as for reading; the joins order reads and writes alike.
unsafe impl<T: Element> AsDeviceViewMut<T> for TensorViewMut<'_> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        AsDeviceViewMut::<T>::describe_mut(self.read.of::<T>(self.tensor)?)
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        AsDeviceViewMut::<T>::acquire_mut(self.read.of_mut::<T>(self.tensor)?, stream)
    }

    fn make_contiguous_mut(&self) -> &'static str {
        MAKE_CONTIGUOUS
    }
}

const MAKE_CONTIGUOUS: &str = "make it contiguous first: `.contiguous()`";

/// A kind as element type, here and in DLPack.
fn dtype(kind: Kind) -> Option<(DType, DLDataType)> {
    Some(match kind {
        Kind::Bool => (DType::Bool, DLDataType::BOOL),
        Kind::Uint8 => (DType::U8, DLDataType::U8),
        Kind::Int8 => (DType::I8, DLDataType::I8),
        Kind::Int16 => (DType::I16, DLDataType::I16),
        Kind::Int => (DType::I32, DLDataType::I32),
        Kind::Int64 => (DType::I64, DLDataType::I64),
        Kind::Half => (DType::F16, DLDataType::F16),
        Kind::BFloat16 => (DType::BF16, DLDataType::BF16),
        Kind::Float => (DType::F32, DLDataType::F32),
        Kind::Double => (DType::F64, DLDataType::F64),
        Kind::ComplexFloat => (DType::Complex64, DLDataType::C64),
        Kind::ComplexDouble => (DType::Complex128, DLDataType::C128),
        Kind::Float8e5m2 => (DType::F8E5M2, DLDataType::F8E5M2),
        Kind::Float8e4m3fn => (DType::F8E4M3Fn, DLDataType::F8E4M3FN),
        Kind::Float8e5m2fnuz => (DType::F8E5M2Fnuz, DLDataType::F8E5M2FNUZ),
        Kind::Float8e4m3fnuz => (DType::F8E4M3Fnuz, DLDataType::F8E4M3FNUZ),
        _ => return None,
    })
}

#[cold]
fn wrong_type(expected: DType, found: Kind) -> ViewError {
    const KINDS: [Kind; 16] = [
        Kind::Bool,
        Kind::Uint8,
        Kind::Int8,
        Kind::Int16,
        Kind::Int,
        Kind::Int64,
        Kind::Half,
        Kind::BFloat16,
        Kind::Float,
        Kind::Double,
        Kind::ComplexFloat,
        Kind::ComplexDouble,
        Kind::Float8e5m2,
        Kind::Float8e4m3fn,
        Kind::Float8e5m2fnuz,
        Kind::Float8e4m3fnuz,
    ];
    let wanted = KINDS
        .iter()
        .find(|kind| dtype(**kind).is_some_and(|(dtype, _)| dtype == expected));
    let cure = match wanted {
        Some(kind) => format!("convert it first: `.to_kind(Kind::{kind:?})`"),
        None => format!("tch has no kind of {expected}; declare what its tensors hold"),
    };
    ViewError::wrong_type(expected, format!("Kind::{found:?}"), cure)
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TensorView").field(self.tensor).finish()
    }
}

impl fmt::Debug for TensorViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TensorViewMut").field(self.tensor).finish()
    }
}
