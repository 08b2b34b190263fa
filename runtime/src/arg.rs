//! What a kernel takes by value.

use crate::layout::{ArgLayout, Class};

/// A value that a kernel takes by value: a scalar, an array of scalars, a CUDA vector type or a
/// struct.
///
/// For structs, derive it:
///
/// ```
/// use gridcall::KernelArg;
///
/// #[derive(Clone, Copy, KernelArg)]
/// #[repr(C)]
/// struct Window { first: u32, step: f32, open: bool }
/// # let _ = Window { first: 0, step: 1.0, open: true };
/// ```
///
/// # Safety
///
/// `LAYOUT` must be how CUDA C++ passes the type, and [`write`](KernelArg::write) must write no
/// byte beyond `LAYOUT`'s size.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel by value",
    label = "not a kernel argument",
    note = "a struct needs `#[derive(Clone, Copy, gridcall::KernelArg)]` and `#[repr(C)]`; arrays on the device are declared `&[T]` or `&mut [T]`"
)]
pub unsafe trait KernelArg: Copy {
    /// Size, alignment and class of the parameter.
    #[doc(hidden)]
    const LAYOUT: ArgLayout;

    /// Writes the value as the device reads it. Bytes that are padding keep what they were.
    ///
    /// # Safety
    ///
    /// `to` must be writable for the size in `LAYOUT`; it need not be aligned.
    #[doc(hidden)]
    unsafe fn write(&self, to: *mut u8);
}

/// Scalars that the device has in the same size, alignment and bits.
macro_rules! scalar {
    ($($class:ident: $($scalar:ty = $kind:literal),+;)+) => {$($(
        // SAFETY: the type has the size and alignment of its CUDA counterpart and no padding;
        // what is written is exactly its bytes.
        unsafe impl KernelArg for $scalar {
            const LAYOUT: ArgLayout = ArgLayout::of_scalar::<$scalar>(Class::$class, $kind);

            #[inline(always)]
            unsafe fn write(&self, to: *mut u8) {
                // SAFETY: the caller provides room for the size of the type, at any alignment.
                unsafe { to.cast::<$scalar>().write_unaligned(*self) }
            }
        }
    )+)+};
}

scalar! {
    Integer: bool = "bool", u8 = "u8", u16 = "u16", u32 = "u32", u64 = "u64", usize = "u64";
    Integer: i8 = "i8", i16 = "i16", i32 = "i32", i64 = "i64", isize = "i64";
    Float: f32 = "f32", f64 = "f64";
    // .align 16 .b8 [16], as clang and nvcc pass __int128.
    Bytes: u128 = "u128", i128 = "i128";
}

#[cfg(feature = "half")]
scalar! {
    // .align 2 .b8 [2], since __half and __nv_bfloat16 are structs to the compiler.
    Bytes: half::f16 = "f16", half::bf16 = "bf16";
}

#[cfg(feature = "float8")]
scalar! {
    // .align 1 .b8 [1], since the fp8 types are structs to the compiler.
    Bytes: float8::F8E4M3 = "e4m3", float8::F8E5M2 = "e5m2";
}

#[cfg(feature = "num-complex")]
macro_rules! complex {
    ($($part:ty = $kind:literal),+) => {$(
        // SAFETY: cuComplex is float2 (double2): both parts in order, aligned to their sum. Rust
        // aligns to one part, which matters only inside a struct, where the layout check sees it.
        unsafe impl KernelArg for num_complex::Complex<$part> {
            const LAYOUT: ArgLayout =
                ArgLayout::of_bytes(2 * size_of::<$part>(), 2 * size_of::<$part>(), $kind);

            #[inline(always)]
            unsafe fn write(&self, to: *mut u8) {
                // SAFETY: the caller provides room for both parts, at any alignment.
                unsafe { to.cast::<[$part; 2]>().write_unaligned([self.re, self.im]) }
            }
        }
    )+};
}

#[cfg(feature = "num-complex")]
complex!(f32 = "float2", f64 = "double2");

// SAFETY: C passes an array inside a struct as its elements one after another, aligned as one of
// them; each element writes within its own size.
unsafe impl<T: KernelArg, const N: usize> KernelArg for [T; N] {
    const LAYOUT: ArgLayout = ArgLayout::of_array(T::LAYOUT, N, size_of::<T>());

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) {
        for (index, element) in self.iter().enumerate() {
            // SAFETY: the element lies within the N sizes that the caller provides room for.
            let to = unsafe { to.add(index * T::LAYOUT.size) };
            // SAFETY: as above, with room for one element.
            unsafe { element.write(to) };
        }
    }
}
