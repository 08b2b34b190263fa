//! An array of another library, kept alive by its owner.

use std::fmt;

use dlpark::{Managed, ManagedTensorBase, ffi::DLDevice};

use super::{TypedTensor, device, import};
use crate::{
    AsDeviceView, AsDeviceViewMut, DType, Element, Guard, Order, Place, StreamRef, View, ViewError,
    foreign::{Description, Dims, Owner, Uses},
};

/// A device array of another library: element type, shape and strides are known at run time.
///
/// It can be passed for arrays of any element type and is checked at each call; a
/// [`TypedTensor`] is checked once. It owns its share of the memory: dropped while kernels use
/// it, it lets its owner go when they are done. Dropped while the owner's stream is being captured,
/// it keeps its owner for good, since nobody can tell then when that is.
///
/// ```
/// use gridcall_view::{AsDeviceView, DType, Order, Place, Tensor};
/// # let address = 0x7000;
/// # let owner = ();
/// // SAFETY: `owner` keeps 6 floats at `address` on device 0, and no one else uses them.
/// let x = unsafe {
///     Tensor::from_parts(
///         address, DType::F32, &[2, 3], None, Place::Device(0), Order::Settled, Box::new(owner),
///     )
/// }?;
/// assert_eq!((x.shape(), x.strides()), (&[2, 3][..], &[3, 1][..]));
/// let error = AsDeviceView::<i32>::describe(&x).unwrap_err();
/// assert!(error.to_string().contains("expected elements of i32, the array holds f32"));
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
pub struct Tensor {
    pub(super) description: Description,
    /// As its owner put it; pinned and managed memory are one place.
    pub(super) device: DLDevice,
    pub(super) order: Order,
    pub(super) uses: Uses,
    /// `None` once it was handed on.
    owner: Option<Owner>,
}

impl Tensor {
    /// Takes over a tensor of DLPack, of the versioned or of the legacy struct.
    ///
    /// If it is refused, its owner is let go.
    ///
    /// # Errors
    ///
    /// If it is not where a kernel can reach it, has elements of less than a byte or of a kind
    /// that has no [`DType`], or contradicts itself.
    ///
    /// # Safety
    ///
    /// The tensor must say the truth, and its memory stay allocated until its deleter is called.
    /// `order` must be true of everyone else who uses the memory, until then.
    pub unsafe fn from_dlpack<M: ManagedTensorBase + 'static>(
        tensor: Managed<M>,
        order: Order,
    ) -> Result<Tensor, ViewError> {
        let read_only = tensor.flags().contains(dlpark::DlpackFlags::READ_ONLY);
        // SAFETY: by the caller, the tensor is what it says; it is not changed while it is owned.
        let described = unsafe { tensor.tensor() };
        // SAFETY: as above: its shape and strides have `ndim` numbers, where they are given.
        let description = unsafe { import::describe(described, read_only) }?;
        Ok(Tensor {
            description,
            device: described.device,
            order,
            uses: Uses::default(),
            owner: Some(Box::new(tensor.into_deleter())),
        })
    }

    /// Takes over a tensor of DLPack by its pointer, as C functions give it.
    ///
    /// # Errors
    ///
    /// As [`from_dlpack`](Tensor::from_dlpack), and if the pointer is null or the struct is of
    /// another major version: then its deleter is called, and nothing else of it is touched.
    ///
    /// # Safety
    ///
    /// `tensor` must be null or a tensor that is not used elsewhere any more; and as
    /// [`from_dlpack`](Tensor::from_dlpack).
    pub unsafe fn from_dlpack_ptr<M: ManagedTensorBase + 'static>(
        tensor: *mut M,
        order: Order,
    ) -> Result<Tensor, ViewError> {
        // SAFETY: passed on to the caller.
        let tensor = unsafe { Managed::from_raw(tensor) }
            .map_err(|error| ViewError::other(format!("not a tensor of DLPack 1: {error}")))?;
        // SAFETY: passed on to the caller.
        unsafe { Tensor::from_dlpack(tensor, order) }
    }

    /// An array from its parts. Without `strides` (in elements), the elements follow one another
    /// in row-major order. `owner` is dropped when the array is, and the device is done with it.
    ///
    /// # Errors
    ///
    /// If there is another number of strides than of extents, or they reach beyond all addresses.
    ///
    /// # Safety
    ///
    /// From `pointer` on, elements of `dtype` must lie as described in `place`, allocated until
    /// `owner` is dropped; and `order` must be true of everyone else who uses them, until then.
    pub unsafe fn from_parts(
        pointer: u64,
        dtype: DType,
        shape: &[usize],
        strides: Option<&[isize]>,
        place: Place,
        order: Order,
        owner: Box<dyn Send + Sync>,
    ) -> Result<Tensor, ViewError> {
        let dims = match strides {
            None => Dims::row_major(shape),
            Some(strides) if strides.len() == shape.len() => Dims::new(shape.len(), |index| {
                Ok::<_, ViewError>((shape[index], strides[index]))
            })?,
            Some(strides) => {
                return Err(ViewError::other(format!(
                    "shape {shape:?} has {} dimensions, strides {strides:?} have {}",
                    shape.len(),
                    strides.len()
                )));
            }
        };
        let description = Description::new(pointer, dtype, dims, place, false)?;
        Ok(Tensor {
            description,
            device: device::device(place),
            order,
            uses: Uses::default(),
            owner: Some(owner),
        })
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.description.dtype
    }

    /// The number of elements along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.description.dims.shape()
    }

    /// The distance, in elements, between neighbours along each dimension.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        self.description.dims.strides()
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.description.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.description.len == 0
    }

    /// Whether the elements follow one another in row-major order.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.description.contiguous
    }

    /// Whether the owner forbids writing.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.description.read_only
    }

    /// The device address of the first element.
    #[must_use]
    pub fn pointer(&self) -> u64 {
        self.description.pointer
    }

    /// Where the memory may be used.
    #[must_use]
    pub fn place(&self) -> Place {
        self.description.place
    }

    /// The same bytes as elements of another type of the same size: u32 as i32, bytes as fp8.
    /// Nothing does so unasked.
    ///
    /// # Errors
    ///
    /// If the sizes differ, or the elements would become `bool`, which not every byte is. The tensor
    /// is dropped then.
    pub fn reinterpret(mut self, dtype: DType) -> Result<Tensor, ViewError> {
        self.description.dtype.check_reinterpretation(dtype)?;
        self.description.dtype = dtype;
        Ok(self)
    }

    /// Checks the element type and the number of dimensions once and for all.
    ///
    /// # Errors
    ///
    /// If they are others than asked for. The tensor is dropped then.
    pub fn typed<T: Element, const N: usize>(self) -> Result<TypedTensor<T, N>, ViewError> {
        TypedTensor::new(self)
    }

    #[inline(always)]
    pub(super) fn use_on<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        let place = self.description.place;
        self.uses.acquire(self.order, place, stream)
    }

    #[inline(always)]
    fn view_of<T: Element>(&self) -> Result<View<'_>, ViewError> {
        if self.description.dtype == T::DTYPE {
            Ok(self.view())
        } else {
            Err(wrong_type(T::DTYPE, self.description.dtype))
        }
    }

    /// The view of elements that are known to be of the asked type.
    #[inline(always)]
    pub(super) fn view(&self) -> View<'_> {
        let settled = self.uses.settled().streams();
        self.description.view().settled_on(settled)
    }
}

// SAFETY: whoever made the tensor vouched that its memory lies as described until its owner is let
// go, which happens after it is dropped and the device is done. A launch on another stream than
// the owner's waits for that one and the other way round; where the owner has none, launches wait
// for each other by events.
unsafe impl<T: Element> AsDeviceView<T> for Tensor {
    #[inline(always)]
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.view_of::<T>()
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.use_on(stream)
    }
}

// SAFETY: as for reading; the joins order reads and writes alike.
unsafe impl<T: Element> AsDeviceViewMut<T> for Tensor {
    #[inline(always)]
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.view_of::<T>()
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.use_on(stream)
    }
}

#[cold]
pub(super) fn wrong_type(expected: DType, found: DType) -> ViewError {
    let cure = if expected.size() == found.size() && expected != DType::Bool {
        "convert it where it was made, or, if the bits are meant, use `Tensor::reinterpret`"
    } else {
        "convert it where it was made; elements are never converted here"
    };
    ViewError::wrong_type(expected, found.name(), cure)
}

impl Drop for Tensor {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            self.uses.release(self.order, owner);
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Description {
            pointer,
            dtype,
            dims,
            place,
            read_only,
            ..
        } = &self.description;
        f.debug_struct("Tensor")
            .field("pointer", &format_args!("{pointer:#x}"))
            .field("dtype", dtype)
            .field("shape", &dims.shape())
            .field("strides", &dims.strides())
            .field("place", place)
            .field("read_only", read_only)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
