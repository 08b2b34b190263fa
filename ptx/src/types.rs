//! The words of PTX that declarations share: scalar types, state spaces, linkage.

use std::fmt;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* #[doc = concat!("`", $word, "`")] $variant,)*
        }

        impl $name {
            /// The word with its dot, as PTX writes it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            pub(crate) fn from_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The type of one element.
    ///
    /// ```
    /// assert_eq!(gridcall_ptx::ScalarType::F64.size(), 8);
    /// assert_eq!(gridcall_ptx::ScalarType::F64.to_string(), ".f64");
    /// ```
    ScalarType {
        B8 = ".b8",
        B16 = ".b16",
        B32 = ".b32",
        B64 = ".b64",
        B128 = ".b128",
        U8 = ".u8",
        U16 = ".u16",
        U32 = ".u32",
        U64 = ".u64",
        S8 = ".s8",
        S16 = ".s16",
        S32 = ".s32",
        S64 = ".s64",
        F16 = ".f16",
        F16x2 = ".f16x2",
        Bf16 = ".bf16",
        Bf16x2 = ".bf16x2",
        F32 = ".f32",
        F64 = ".f64",
        Pred = ".pred",
        TexRef = ".texref",
        SamplerRef = ".samplerref",
        SurfRef = ".surfref",
    }
}

/// A texture, sampler or surface is known by a 64-bit number.
const HANDLE_SIZE: usize = 8;

impl ScalarType {
    /// The bytes of one element, which are also its natural alignment.
    ///
    /// A predicate counts as one byte, a reference to a texture, sampler or surface as a 64-bit handle.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::B8 | Self::U8 | Self::S8 | Self::Pred => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F32 | Self::F16x2 | Self::Bf16x2 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::TexRef | Self::SamplerRef | Self::SurfRef => HANDLE_SIZE,
            Self::B128 => 16,
        }
    }

    /// Whether it is one floating-point number, or a pair of halves.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2 | Self::F32 | Self::F64
        )
    }

    /// What a scalar of this type holds.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::B8 | Self::B16 | Self::B32 | Self::B64 | Self::B128 | Self::Pred => Class::Bits,
            Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::S8
            | Self::S16
            | Self::S32
            | Self::S64 => Class::Integer,
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => Class::Float,
            Self::F16x2 | Self::Bf16x2 => Class::Bytes,
            Self::TexRef | Self::SamplerRef | Self::SurfRef => Class::Opaque,
        }
    }
}

/// What a parameter holds, as far as PTX says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// An integer, signed or not, or a pointer: compilers write both signs as `.u32`, and a pointer as `.u64`.
    Integer,
    /// A floating-point number.
    Float,
    /// A scalar without a type, `.b32`: an integer, a pointer or a floating-point number of that size.
    Bits,
    /// An array or a vector: a struct, a vector type, a half, a 128-bit integer.
    Bytes,
    /// A reference to a texture, a sampler or a surface, which is not passed in the buffer of parameters.
    Opaque,
}

words! {
    /// Where a variable lives, or a pointer points.
    StateSpace {
        Reg = ".reg",
        Const = ".const",
        Global = ".global",
        Local = ".local",
        Param = ".param",
        Shared = ".shared",
        Tex = ".tex",
    }
}

/// Who sees a name outside the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Linkage {
    /// `.visible`: every module.
    Visible,
    /// `.weak`: every module, and another definition may take its place.
    Weak,
    /// `.extern`: defined in another module.
    Extern,
    /// `.common`: every module, all definitions being one.
    Common,
    /// No word: this module alone.
    #[default]
    None,
}

impl Linkage {
    pub(crate) fn from_word(word: &str) -> Option<Linkage> {
        match word {
            ".visible" => Some(Linkage::Visible),
            ".weak" => Some(Linkage::Weak),
            ".extern" => Some(Linkage::Extern),
            ".common" => Some(Linkage::Common),
            _ => None,
        }
    }
}
