//! The types an instruction names, as the interpreter needs them: width, kind and number format.

use super::number::Format;

macro_rules! types {
    ($($name:ident = $text:literal $bits:literal $kind:ident,)*) => {
        /// A type modifier.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Type { $($name,)* }

        impl Type {
            /// Reads a modifier without its dot.
            pub(crate) fn parse(text: &str) -> Option<Self> {
                Some(match text { $($text => Self::$name,)* _ => return None })
            }

            pub(crate) fn bits(self) -> u32 {
                match self { $(Self::$name => $bits,)* }
            }

            pub(crate) fn kind(self) -> Kind {
                match self { $(Self::$name => Kind::$kind,)* }
            }
        }
    };
}

/// What the bits of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Predicate,
    Bits,
    Unsigned,
    Signed,
    Float,
    Packed,
}

types! {
    Pred = "pred" 1 Predicate,
    B8 = "b8" 8 Bits,
    B16 = "b16" 16 Bits,
    B32 = "b32" 32 Bits,
    B64 = "b64" 64 Bits,
    B128 = "b128" 128 Bits,
    U8 = "u8" 8 Unsigned,
    U16 = "u16" 16 Unsigned,
    U32 = "u32" 32 Unsigned,
    U64 = "u64" 64 Unsigned,
    S8 = "s8" 8 Signed,
    S16 = "s16" 16 Signed,
    S32 = "s32" 32 Signed,
    S64 = "s64" 64 Signed,
    F16 = "f16" 16 Float,
    Bf16 = "bf16" 16 Float,
    Tf32 = "tf32" 32 Float,
    F32 = "f32" 32 Float,
    F64 = "f64" 64 Float,
    F16x2 = "f16x2" 32 Packed,
    Bf16x2 = "bf16x2" 32 Packed,
    U16x2 = "u16x2" 32 Packed,
    S16x2 = "s16x2" 32 Packed,
    E4m3x2 = "e4m3x2" 16 Packed,
    E5m2x2 = "e5m2x2" 16 Packed,
}

impl Type {
    pub(crate) fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind() == Kind::Signed
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Unsigned | Kind::Signed)
    }

    /// The number format of a floating-point type, or of the halves of a packed one.
    pub(crate) fn format(self) -> Option<Format> {
        Some(match self {
            Self::F16 | Self::F16x2 => Format::F16,
            Self::Bf16 | Self::Bf16x2 => Format::Bf16,
            Self::Tf32 => Format::Tf32,
            Self::F32 => Format::F32,
            Self::F64 => Format::F64,
            Self::E4m3x2 => Format::E4m3,
            Self::E5m2x2 => Format::E5m2,
            _ => return None,
        })
    }
}

/// The lowest `bits` bits.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The lowest `bits` bits, read as a signed number.
pub(crate) fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    (value << unused).cast_signed() >> unused
}
