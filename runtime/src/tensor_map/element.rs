//! The types that the tensor memory accelerator copies.

/// An element of an array that can be mapped.
///
/// The accelerator copies bits: signed numbers of 8 and 16 bits are copied as unsigned ones.
///
/// # Safety
///
/// `DATA_TYPE` must be a `CUtensorMapDataType` of the type's size, and `IS_FLOAT` only be said of
/// floating-point ones.
#[diagnostic::on_unimplemented(
    message = "arrays of `{Self}` cannot be mapped",
    label = "not an element of tensor maps",
    note = "map an array of scalars; of vectors and structs the array of their scalars, with one more dimension"
)]
pub unsafe trait TensorElement {
    /// The number in `CUtensorMapDataType`.
    #[doc(hidden)]
    const DATA_TYPE: u32;
    /// Whether it is a floating-point type.
    #[doc(hidden)]
    const IS_FLOAT: bool;
}

macro_rules! element {
    ($($ty:ty = $number:literal, $float:literal;)+) => {$(
        // SAFETY: the numbers are those of cuda.h, for types of this size.
        unsafe impl TensorElement for $ty {
            const DATA_TYPE: u32 = $number;
            const IS_FLOAT: bool = $float;
        }
    )+};
}

element! {
    u8 = 0, false;
    i8 = 0, false;
    u16 = 1, false;
    i16 = 1, false;
    u32 = 2, false;
    i32 = 3, false;
    u64 = 4, false;
    usize = 4, false;
    i64 = 5, false;
    isize = 5, false;
    f32 = 7, true;
    f64 = 8, true;
}

#[cfg(feature = "half")]
element! {
    half::f16 = 6, true;
    half::bf16 = 9, true;
}

#[cfg(feature = "float8")]
element! {
    float8::F8E4M3 = 0, false;
    float8::F8E5M2 = 0, false;
}
