//! Device addresses, for kernels whose callers vouch for them.

use std::{fmt, marker::PhantomData};

use gridcall_view::{AsDeviceView, AsDeviceViewMut, Layout, View, ViewError, ViewErrorKind};

use crate::{
    arg::KernelArg,
    layout::{ArgLayout, Class},
};

/// The address of device memory that a kernel reads.
///
/// For `*const T` parameters and for fields of structs, both in `unsafe` kernels only: an address
/// neither orders the kernel after what wrote the memory nor keeps it from being freed once the
/// launch has returned. [`DevicePointer::of`] an array borrows it for `'a`.
///
/// ```no_run
/// use gridcall::{DevicePointer, KernelArg, kernel};
///
/// /// `struct Table { const float* data; unsigned len; };`
/// #[derive(Clone, Copy, KernelArg)]
/// #[repr(C)]
/// struct Table<'a> {
///     data: DevicePointer<'a, f32>,
///     len: u32,
/// }
///
/// /// # Safety
/// ///
/// /// All work on the memory of the table is on the stream of the launch.
/// #[kernel(ptx = "../kernels/structs.ptx")]
/// unsafe fn look(t: Table<'_>, out: &mut [f32]);
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let stream = gridcall::device(0)?.default_stream();
/// let data = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
/// let mut out = stream.alloc_zeros::<f32>(4)?;
/// let table = Table { data: DevicePointer::of(&data)?, len: 3 };
/// // SAFETY: it is.
/// unsafe { look(&stream, (1, 4), table, &mut out) }?;
/// assert_eq!(stream.clone_dtoh(&out)?, [1.0, 2.0, 3.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[repr(transparent)]
pub struct DevicePointer<'a, T> {
    address: u64,
    elements: PhantomData<&'a [T]>,
}

/// The address of device memory that a kernel writes. See [`DevicePointer`].
///
/// While there is one of an array, there is no other use of the array:
///
/// ```compile_fail,E0502
/// use gridcall::{DevicePointer, DevicePointerMut, ViewError, cudarc::driver::CudaSlice};
/// fn both(array: &mut CudaSlice<f32>) -> Result<(), ViewError> {
///     let written = DevicePointerMut::of(array)?;
///     let read = DevicePointer::of(array)?;
///     println!("{written:?} {read:?}");
///     Ok(())
/// }
/// ```
#[repr(transparent)]
pub struct DevicePointerMut<'a, T> {
    address: u64,
    elements: PhantomData<&'a mut [T]>,
}

impl<'a, T> DevicePointer<'a, T> {
    /// The pointer to the first element of a device array, which is borrowed meanwhile.
    ///
    /// Nothing is waited for: what was to be done before the array is read must be in order with the
    /// launch already, as when all is on one stream.
    ///
    /// # Errors
    ///
    /// If the array holds elements of another type, or they do not follow one another.
    pub fn of(array: &'a (impl AsDeviceView<T> + ?Sized)) -> Result<Self, ViewError> {
        let view = array.describe()?;
        address(&view, || array.make_contiguous()).map(Self::from_address)
    }
}

impl<'a, T> DevicePointerMut<'a, T> {
    /// The pointer to the first element of a device array, which is borrowed meanwhile.
    ///
    /// Nothing is waited for: what was to be done before the array is written must be in order with
    /// the launch already, as when all is on one stream.
    ///
    /// # Errors
    ///
    /// If the array holds elements of another type, they do not follow one another, or may not be
    /// written.
    pub fn of(array: &'a mut (impl AsDeviceViewMut<T> + ?Sized)) -> Result<Self, ViewError> {
        let view = array.describe_mut()?;
        if view.is_read_only() {
            return Err(ViewErrorKind::ReadOnly.into());
        }
        address(&view, || array.make_contiguous_mut()).map(Self::from_address)
    }
}

/// Where an array begins whose elements follow one another.
fn address(view: &View<'_>, cure: impl FnOnce() -> &'static str) -> Result<u64, ViewError> {
    match view.layout() {
        Layout::Strided { shape, strides } if !view.is_contiguous() => {
            Err(ViewErrorKind::NotContiguous {
                shape: shape.to_vec(),
                strides: strides.to_vec(),
                cure: cure(),
            }
            .into())
        }
        _ => Ok(view.pointer()),
    }
}

macro_rules! pointer {
    ($($pointer:ident, $cuda:literal;)+) => {$(
        impl<'a, T> $pointer<'a, T> {
            /// The null pointer.
            pub const NULL: $pointer<'a, T> = $pointer::from_address(0);

            #[doc = concat!("The pointer to a device address, `", $cuda, "` on the device.")]
            ///
            /// ```
            #[doc = concat!("use gridcall::", stringify!($pointer), ";")]
            #[doc = concat!("let samples: ", stringify!($pointer), "<'_, f32> = ", stringify!($pointer), "::from_address(0x7f00);")]
            /// assert_eq!(samples.address(), 0x7f00);
            /// ```
            #[must_use]
            pub const fn from_address(address: u64) -> $pointer<'a, T> {
                $pointer { address, elements: PhantomData }
            }

            /// The device address.
            #[must_use]
            pub const fn address(self) -> u64 {
                self.address
            }
        }

        impl<T> Clone for $pointer<'_, T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $pointer<'_, T> {}

        impl<T> fmt::Debug for $pointer<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.address)
            }
        }

        // SAFETY: the address is plain data; kernels that take one are unsafe to launch.
        unsafe impl<T> Send for $pointer<'_, T> {}
        // SAFETY: as for `Send`.
        unsafe impl<T> Sync for $pointer<'_, T> {}

        // SAFETY: a device pointer has 8 bytes, of which all are written.
        unsafe impl<T> KernelArg for $pointer<'_, T> {
            const LAYOUT: ArgLayout =
                ArgLayout {
                    size: 8,
                    align: 8,
                    class: Class::Integer,
                    has_pointer: true,
                    kind: "pointer",
                    name: "",
                    fields: &[],
                };

            #[inline(always)]
            unsafe fn write(&self, to: *mut u8) {
                // SAFETY: the caller provides room for 8 bytes, at any alignment.
                unsafe { to.cast::<u64>().write_unaligned(self.address) }
            }
        }
    )+};
}

pointer! {
    DevicePointer, "const T*";
    DevicePointerMut, "T*";
}
