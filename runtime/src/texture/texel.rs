//! The types that texture units read.

use cudarc::driver::sys::CUarray_format as Format;

/// An element of an array that can be a texture: a number of at most 32 bits, or a vector of two or
/// four.
///
/// # Safety
///
/// `format` and `CHANNELS` must be those of the type.
#[diagnostic::on_unimplemented(
    message = "arrays of `{Self}` cannot be textures",
    label = "not an element of textures",
    note = "textures hold numbers of at most 32 bits, and vectors of two or four: `f32`, `UChar4`"
)]
pub unsafe trait Texel {
    /// The numbers of an element.
    #[doc(hidden)]
    const CHANNELS: u32;
    /// Whether they are floating-point numbers.
    #[doc(hidden)]
    const IS_FLOAT: bool;

    /// What a number is.
    #[doc(hidden)]
    fn format() -> Format;
}

macro_rules! texel {
    ($($format:ident, $float:literal: $($ty:ty = $channels:literal),+;)+) => {$($(
        // SAFETY: the type is as many numbers of this format side by side.
        unsafe impl Texel for $ty {
            const CHANNELS: u32 = $channels;
            const IS_FLOAT: bool = $float;

            fn format() -> Format {
                Format::$format
            }
        }
    )+)+};
}

texel! {
    CU_AD_FORMAT_UNSIGNED_INT8, false: u8 = 1, crate::UChar2 = 2, crate::UChar4 = 4;
    CU_AD_FORMAT_UNSIGNED_INT16, false: u16 = 1, crate::UShort2 = 2, crate::UShort4 = 4;
    CU_AD_FORMAT_UNSIGNED_INT32, false: u32 = 1, crate::UInt2 = 2, crate::UInt4 = 4;
    CU_AD_FORMAT_SIGNED_INT8, false: i8 = 1, crate::Char2 = 2, crate::Char4 = 4;
    CU_AD_FORMAT_SIGNED_INT16, false: i16 = 1, crate::Short2 = 2, crate::Short4 = 4;
    CU_AD_FORMAT_SIGNED_INT32, false: i32 = 1, crate::Int2 = 2, crate::Int4 = 4;
    CU_AD_FORMAT_FLOAT, true: f32 = 1, crate::Float2 = 2, crate::Float4 = 4;
}

#[cfg(feature = "half")]
texel! {
    CU_AD_FORMAT_HALF, true: half::f16 = 1;
}
