//! Reads a `DLTensor`, trusting nothing that can be checked.

use std::slice;

use dlpark::ffi::DLTensor;

use super::{device::place, dtype::from_dlpack};
#[cfg(feature = "pyo3")]
use crate::foreign::Elements;
use crate::{
    ViewError,
    foreign::{Description, Dims},
};

/// The elements of a tensor, if they follow one another in row-major order and nothing else is to
/// be said: where there is, [`describe`] says it.
///
/// # Safety
///
/// As for [`describe`].
#[cfg(feature = "pyo3")]
#[inline]
pub(crate) unsafe fn elements(tensor: &DLTensor) -> Option<Elements> {
    let rank = usize::try_from(tensor.ndim).ok()?;
    // SAFETY: passed on to the caller.
    let shape = unsafe { numbers_at(tensor.shape, rank) }?;
    // SAFETY: passed on to the caller.
    let strides = unsafe { numbers_at(tensor.strides, rank) }?;
    let len = row_major(shape, strides)?;
    let pointer = (tensor.data.addr() as u64).checked_add(tensor.byte_offset)?;
    if tensor.data.is_null() {
        return None;
    }
    Elements::new(
        pointer,
        len,
        from_dlpack(tensor.dtype).ok()?,
        place(tensor.device).ok()?,
    )
}

/// The number of elements, if there are any and they follow one another in row-major order.
#[cfg(feature = "pyo3")]
#[inline(always)]
pub(crate) fn row_major(shape: &[i64], strides: &[i64]) -> Option<usize> {
    let mut len = 1_i64;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent < 1 || (extent != 1 && stride != len) {
            return None;
        }
        len = len.checked_mul(extent)?;
    }
    usize::try_from(len).ok()
}

/// What a tensor says of itself.
///
/// # Safety
///
/// Where they are not null, `shape` and `strides` must point to `ndim` numbers.
#[inline]
pub(crate) unsafe fn describe(
    tensor: &DLTensor,
    read_only: bool,
) -> Result<Description, ViewError> {
    let place = place(tensor.device)?;
    let dtype = from_dlpack(tensor.dtype)?;
    let rank = usize::try_from(tensor.ndim).map_err(|_| {
        ViewError::other(format!(
            "its owner says that it has {} dimensions",
            tensor.ndim
        ))
    })?;
    // SAFETY: passed on to the caller.
    let shape = unsafe { numbers_at(tensor.shape, rank) };
    // SAFETY: passed on to the caller.
    let strides = unsafe { numbers_at(tensor.strides, rank) };
    let dims = match (shape, strides) {
        (None, _) => {
            return Err(ViewError::other(format!(
                "its owner says that it has {rank} dimensions, and gives no shape"
            )));
        }
        (Some(shape), Some(strides)) => Dims::new(rank, |index| {
            Ok::<_, ViewError>((extent(shape[index])?, stride(strides[index])?))
        })?,
        // Before DLPack 1.2 no strides stood for contiguous elements, and the legacy struct tells no
        // version. From 1.2 on they are always given; that they are not can still mean nothing else.
        (Some(shape), None) => {
            let shape: Vec<usize> = shape.iter().map(|&n| extent(n)).collect::<Result<_, _>>()?;
            Dims::row_major(&shape)
        }
    };
    let base = tensor.data.addr() as u64;
    let pointer = match base {
        // So it is for tensors of size 0; of others it is refused.
        0 => 0,
        _ => base.checked_add(tensor.byte_offset).ok_or_else(|| {
            ViewError::other(format!(
                "it begins {} bytes behind the address {base:#x}, which is beyond all addresses",
                tensor.byte_offset
            ))
        })?,
    };
    Description::new(pointer, dtype, dims, place, read_only)
}

/// # Safety
///
/// `numbers` must be null or point to `rank` numbers.
#[inline]
pub(crate) unsafe fn numbers_at<'a>(numbers: *const i64, rank: usize) -> Option<&'a [i64]> {
    match (numbers.is_null(), rank) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: passed on to the caller.
        (false, _) => Some(unsafe { slice::from_raw_parts(numbers, rank) }),
    }
}

#[inline]
fn extent(number: i64) -> Result<usize, ViewError> {
    usize::try_from(number).map_err(|_| {
        ViewError::other(format!(
            "its owner says that a dimension has {number} elements"
        ))
    })
}

#[inline]
fn stride(number: i64) -> Result<isize, ViewError> {
    isize::try_from(number).map_err(|_| {
        ViewError::other(format!(
            "a stride of {number} elements is beyond all addresses"
        ))
    })
}
