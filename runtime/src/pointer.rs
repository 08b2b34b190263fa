//! Device addresses, for kernels whose callers vouch for them.

use std::{fmt, marker::PhantomData};

use crate::{
    arg::KernelArg,
    layout::{ArgLayout, Class},
};

/// The address of device memory that a kernel reads.
///
/// For `*const T` parameters and for fields of structs, both in `unsafe` kernels only: an address
/// neither orders the kernel after what wrote the memory nor keeps it from being freed. `'a` may
/// be tied to the array it was taken from.
///
/// ```
/// use gridcall::DevicePointer;
/// let samples: DevicePointer<'_, f32> = DevicePointer::from_address(0x7f00_0000_0000);
/// assert_eq!(samples.address(), 0x7f00_0000_0000);
/// ```
#[repr(transparent)]
pub struct DevicePointer<'a, T> {
    address: u64,
    elements: PhantomData<&'a [T]>,
}

/// The address of device memory that a kernel writes. See [`DevicePointer`].
///
/// ```
/// use gridcall::DevicePointerMut;
/// assert_eq!(DevicePointerMut::<u8>::NULL.address(), 0);
/// ```
#[repr(transparent)]
pub struct DevicePointerMut<'a, T> {
    address: u64,
    elements: PhantomData<&'a mut [T]>,
}

macro_rules! pointer {
    ($($pointer:ident, $cuda:literal;)+) => {$(
        impl<'a, T> $pointer<'a, T> {
            /// The null pointer.
            pub const NULL: $pointer<'a, T> = $pointer::from_address(0);

            #[doc = concat!("The pointer to a device address, `", $cuda, "` on the device.")]
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
