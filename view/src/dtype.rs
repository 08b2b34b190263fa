//! Element types by name, for arrays whose type is known only at run time.

use std::fmt;

#[cfg(any(feature = "candle", feature = "dlpack"))]
use crate::ViewError;

/// The element type of a device array.
///
/// Two types of one size are two types: nothing is reinterpreted without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Two binary32: real, imaginary.
    Complex64,
    /// Two binary64: real, imaginary.
    Complex128,
    /// 8 bits: 3 of exponent, 4 of mantissa.
    F8E3M4,
    /// 8 bits: 4 of exponent, 3 of mantissa, with infinities.
    F8E4M3,
    /// As `F8E4M3Fnuz`, with an exponent bias of 11.
    F8E4M3B11Fnuz,
    /// 8 bits: 4 of exponent, 3 of mantissa, finite; CUDA's `__nv_fp8_e4m3`.
    F8E4M3Fn,
    /// As `F8E4M3Fn`, with an exponent bias of 8 and no negative zero.
    F8E4M3Fnuz,
    /// 8 bits: 5 of exponent, 2 of mantissa; CUDA's `__nv_fp8_e5m2`.
    F8E5M2,
    /// As `F8E5M2`, finite and with no negative zero.
    F8E5M2Fnuz,
    /// 8 bits of exponent, unsigned: powers of two; CUDA's `__nv_fp8_e8m0`.
    F8E8M0Fnu,
}

impl DType {
    /// The size of one element in bytes.
    ///
    /// ```
    /// assert_eq!(gridcall_view::DType::BF16.size(), 2);
    /// ```
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::F8E3M4
            | DType::F8E4M3
            | DType::F8E4M3B11Fnuz
            | DType::F8E4M3Fn
            | DType::F8E4M3Fnuz
            | DType::F8E5M2
            | DType::F8E5M2Fnuz
            | DType::F8E8M0Fnu => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 | DType::Complex64 => 8,
            DType::Complex128 => 16,
        }
    }

    /// Whether elements of this type may be taken for others by whoever asks for it.
    #[cfg(any(feature = "candle", feature = "dlpack"))]
    pub(crate) fn check_reinterpretation(self, other: DType) -> Result<(), ViewError> {
        if self.size() != other.size() {
            return Err(ViewError::other(format!(
                "elements of {self} have {} bytes, those of {other} have {}",
                self.size(),
                other.size()
            )));
        }
        if other == DType::Bool && self != DType::Bool {
            return Err(ViewError::other(format!(
                "elements of {self} cannot be taken for bool: not every byte is 0 or 1"
            )));
        }
        Ok(())
    }

    /// The name, as Rust spells it where it has one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::Complex64 => "Complex<f32>",
            DType::Complex128 => "Complex<f64>",
            DType::F8E3M4 => "f8e3m4",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E4M3B11Fnuz => "f8e4m3b11fnuz",
            DType::F8E4M3Fn => "f8e4m3fn",
            DType::F8E4M3Fnuz => "f8e4m3fnuz",
            DType::F8E5M2 => "f8e5m2",
            DType::F8E5M2Fnuz => "f8e5m2fnuz",
            DType::F8E8M0Fnu => "f8e8m0fnu",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that has a [`DType`].
///
/// # Safety
///
/// The type must be laid out as its `DTYPE` says.
pub unsafe trait Element: Copy + 'static {
    /// The name of this type at run time.
    const DTYPE: DType;
}

// SAFETY: a Rust bool is one byte, 0 or 1.
unsafe impl Element for bool {
    const DTYPE: DType = DType::Bool;
}
// SAFETY: the type is the one named.
unsafe impl Element for u8 {
    const DTYPE: DType = DType::U8;
}
// SAFETY: the type is the one named.
unsafe impl Element for u16 {
    const DTYPE: DType = DType::U16;
}
// SAFETY: the type is the one named.
unsafe impl Element for u32 {
    const DTYPE: DType = DType::U32;
}
// SAFETY: the type is the one named.
unsafe impl Element for u64 {
    const DTYPE: DType = DType::U64;
}
// SAFETY: the type is the one named.
unsafe impl Element for i8 {
    const DTYPE: DType = DType::I8;
}
// SAFETY: the type is the one named.
unsafe impl Element for i16 {
    const DTYPE: DType = DType::I16;
}
// SAFETY: the type is the one named.
unsafe impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
// SAFETY: the type is the one named.
unsafe impl Element for i64 {
    const DTYPE: DType = DType::I64;
}
// SAFETY: f32 is binary32.
unsafe impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
// SAFETY: f64 is binary64.
unsafe impl Element for f64 {
    const DTYPE: DType = DType::F64;
}
#[cfg(feature = "half")]
// SAFETY: half::f16 is a transparent binary16.
unsafe impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}
#[cfg(feature = "half")]
// SAFETY: half::bf16 is a transparent bfloat16.
unsafe impl Element for half::bf16 {
    const DTYPE: DType = DType::BF16;
}
#[cfg(feature = "num-complex")]
// SAFETY: Complex is repr(C) with the real part first.
unsafe impl Element for num_complex::Complex<f32> {
    const DTYPE: DType = DType::Complex64;
}
#[cfg(feature = "num-complex")]
// SAFETY: Complex is repr(C) with the real part first.
unsafe impl Element for num_complex::Complex<f64> {
    const DTYPE: DType = DType::Complex128;
}
#[cfg(feature = "float8")]
// SAFETY: float8::F8E4M3 is a transparent byte whose only special values are two NaNs: e4m3fn.
unsafe impl Element for float8::F8E4M3 {
    const DTYPE: DType = DType::F8E4M3Fn;
}
#[cfg(feature = "float8")]
// SAFETY: float8::F8E5M2 is a transparent byte with the exponents of f16: e5m2.
unsafe impl Element for float8::F8E5M2 {
    const DTYPE: DType = DType::F8E5M2;
}
