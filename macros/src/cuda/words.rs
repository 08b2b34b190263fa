//! The types that C++ and CUDA's headers name.

use super::model::{Scalar, Type, Vector};

const UNSIGNED: bool = false;
const SIGNED: bool = true;

/// The integer of so many bytes.
const fn int(size: usize, signed: bool) -> Scalar {
    Scalar::Int { size, signed }
}

/// `long` of the host that compiles; nvcc follows it.
const LONG: usize = if cfg!(windows) { 4 } else { 8 };

const FLOAT: Scalar = Scalar::Float { size: 4 };
const DOUBLE: Scalar = Scalar::Float { size: 8 };

/// The words that make up a built-in type, such as `unsigned long int`, in any order.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each word stands or does not"
)]
pub(super) struct Builtin {
    base: Option<Scalar>,
    void: bool,
    unsigned: bool,
    signed: bool,
    short: bool,
    long: u32,
}

impl Builtin {
    /// Takes a word; false if it is none of a built-in type.
    pub(super) fn take(&mut self, word: &str) -> bool {
        match word {
            "void" => self.void = true,
            "unsigned" => self.unsigned = true,
            "signed" | "__signed__" => self.signed = true,
            "short" => self.short = true,
            "long" => self.long += 1,
            "int" => self.base = Some(int(4, SIGNED)),
            "bool" | "_Bool" => self.base = Some(Scalar::Bool),
            "char" => self.base = Some(Scalar::Char),
            "float" => self.base = Some(FLOAT),
            "double" => self.base = Some(DOUBLE),
            "__int128" => self.base = Some(int(16, SIGNED)),
            "char8_t" => self.base = Some(int(1, UNSIGNED)),
            "char16_t" => self.base = Some(int(2, UNSIGNED)),
            "char32_t" => self.base = Some(int(4, UNSIGNED)),
            "__int64" => self.base = Some(int(8, SIGNED)),
            _ => return false,
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        !(self.void || self.unsigned || self.signed || self.short)
            && self.long == 0
            && self.base.is_none()
    }

    pub(super) fn ty(&self) -> Type {
        if self.void {
            return Type::Void;
        }
        let signed = !self.unsigned;
        let scalar = match (self.base, self.short, self.long) {
            (Some(Scalar::Char), false, 0) if self.unsigned || self.signed => int(1, signed),
            (Some(Scalar::Int { size: 4, .. }) | None, true, 0) => int(2, signed),
            (Some(Scalar::Int { size: 4, .. }) | None, false, 1) => int(LONG, signed),
            (Some(Scalar::Int { size: 4, .. }) | None, false, 2) => int(8, signed),
            (None, false, 0) => int(4, signed),
            (Some(Scalar::Int { size, .. }), false, 0) if self.unsigned || self.signed => {
                int(size, signed)
            }
            (Some(scalar), false, 0) if !self.unsigned && !self.signed => scalar,
            _ => return Type::Unknown,
        };
        Type::Scalar(scalar)
    }
}

/// A type that a standard header or CUDA's own declares.
pub(super) fn of_headers(name: &str) -> Option<Type> {
    let bare = name
        .strip_prefix("std::")
        .or(name.strip_prefix("cuda::std::"))
        .unwrap_or(name);
    if let Some(scalar) = standard(bare) {
        return Some(Type::Scalar(scalar));
    }
    if bare != name {
        return None;
    }
    let scalar = match name {
        "uint" => int(4, UNSIGNED),
        "ushort" => int(2, UNSIGNED),
        "uchar" | "u_char" => int(1, UNSIGNED),
        "ulong" => int(LONG, UNSIGNED),
        "__half" | "half" | "nv_half" => Scalar::Half,
        "__nv_bfloat16" | "nv_bfloat16" => Scalar::Bfloat16,
        "__nv_fp8_e4m3" => Scalar::Fp8E4m3,
        "__nv_fp8_e5m2" => Scalar::Fp8E5m2,
        "CUdeviceptr"
        | "cudaGraphConditionalHandle"
        | "CUgraphConditionalHandle"
        | "cudaTextureObject_t"
        | "cudaSurfaceObject_t"
        | "CUtexObject"
        | "CUsurfObject" => int(8, UNSIGNED),
        _ => return vector(name).map(Type::Vector),
    };
    Some(Type::Scalar(scalar))
}

fn standard(name: &str) -> Option<Scalar> {
    Some(match name {
        "size_t" | "uintptr_t" | "uint64_t" | "uintmax_t" => int(8, UNSIGNED),
        "ssize_t" | "ptrdiff_t" | "intptr_t" | "int64_t" | "intmax_t" => int(8, SIGNED),
        "uint32_t" => int(4, UNSIGNED),
        "int32_t" => int(4, SIGNED),
        "uint16_t" => int(2, UNSIGNED),
        "int16_t" => int(2, SIGNED),
        "uint8_t" | "byte" => int(1, UNSIGNED),
        "int8_t" => int(1, SIGNED),
        _ => return None,
    })
}

/// The vectors with their own names; `typedef`s of them are the type that they stand for.
const VECTORS: [(&str, &str, Scalar, usize, usize); 8] = [
    ("dim3", "dim3", int(4, UNSIGNED), 3, 4),
    ("cuFloatComplex", "float2", FLOAT, 2, 8),
    ("cuComplex", "float2", FLOAT, 2, 8),
    ("cuDoubleComplex", "double2", DOUBLE, 2, 16),
    ("__half2", "__half2", Scalar::Half, 2, 4),
    ("half2", "__half2", Scalar::Half, 2, 4),
    ("__nv_bfloat162", "__nv_bfloat162", Scalar::Bfloat16, 2, 4),
    ("nv_bfloat162", "__nv_bfloat162", Scalar::Bfloat16, 2, 4),
];

/// The elements of `char1` to `double4`.
const ELEMENTS: [(&str, [&str; 4], Scalar); 12] = [
    ("char", ["char1", "char2", "char3", "char4"], int(1, SIGNED)),
    (
        "uchar",
        ["uchar1", "uchar2", "uchar3", "uchar4"],
        int(1, UNSIGNED),
    ),
    (
        "short",
        ["short1", "short2", "short3", "short4"],
        int(2, SIGNED),
    ),
    (
        "ushort",
        ["ushort1", "ushort2", "ushort3", "ushort4"],
        int(2, UNSIGNED),
    ),
    ("int", ["int1", "int2", "int3", "int4"], int(4, SIGNED)),
    (
        "uint",
        ["uint1", "uint2", "uint3", "uint4"],
        int(4, UNSIGNED),
    ),
    (
        "long",
        ["long1", "long2", "long3", "long4"],
        int(LONG, SIGNED),
    ),
    (
        "ulong",
        ["ulong1", "ulong2", "ulong3", "ulong4"],
        int(LONG, UNSIGNED),
    ),
    (
        "longlong",
        ["longlong1", "longlong2", "longlong3", "longlong4"],
        int(8, SIGNED),
    ),
    (
        "ulonglong",
        ["ulonglong1", "ulonglong2", "ulonglong3", "ulonglong4"],
        int(8, UNSIGNED),
    ),
    ("float", ["float1", "float2", "float3", "float4"], FLOAT),
    (
        "double",
        ["double1", "double2", "double3", "double4"],
        DOUBLE,
    ),
];

/// A vector of CUDA, by its name in C++.
pub(crate) fn vector(name: &str) -> Option<Vector> {
    if let Some(&(_, name, scalar, lanes, align)) = VECTORS.iter().find(|(word, ..)| *word == name)
    {
        return Some(Vector {
            name,
            scalar,
            lanes,
            align,
        });
    }
    let lanes = match name.as_bytes().last()? {
        digit @ b'1'..=b'4' => usize::from(digit - b'0'),
        _ => return None,
    };
    let element = &name[..name.len() - 1];
    let &(_, names, scalar) = ELEMENTS.iter().find(|(word, ..)| *word == element)?;
    let size = scalar.size();
    let align = match lanes {
        2 => 2 * size,
        4 => (4 * size).min(16),
        _ => size,
    };
    Some(Vector {
        name: names[lanes - 1],
        scalar,
        lanes,
        align,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(words: &str) -> Type {
        let mut builtin = Builtin::default();
        for word in words.split(' ') {
            assert!(builtin.take(word), "{word}");
        }
        builtin.ty()
    }

    #[test]
    fn integers_are_spelled_in_any_order() {
        for (words, size, signed) in [
            ("int", 4, true),
            ("unsigned", 4, false),
            ("unsigned int", 4, false),
            ("int unsigned", 4, false),
            ("short", 2, true),
            ("unsigned short int", 2, false),
            ("long long", 8, true),
            ("long unsigned int long", 8, false),
            ("long int", LONG, true),
            ("signed char", 1, true),
            ("char unsigned", 1, false),
            ("unsigned __int128", 16, false),
        ] {
            assert_eq!(builtin(words), Type::Scalar(int(size, signed)), "{words}");
        }
        assert_eq!(builtin("char"), Type::Scalar(Scalar::Char));
        assert_eq!(builtin("long double"), Type::Unknown);
        assert_eq!(builtin("unsigned float"), Type::Unknown);
    }

    #[test]
    fn vectors_are_aligned_as_cuda_does() {
        for (name, lanes, align) in [
            ("float2", 2, 8),
            ("float3", 3, 4),
            ("double4", 4, 16),
            ("uchar4", 4, 4),
            ("int1", 1, 4),
        ] {
            let vector = vector(name).unwrap();
            assert_eq!((vector.lanes, vector.align), (lanes, align), "{name}");
        }
        assert_eq!(of_headers("float5"), None);
        assert_eq!(of_headers("std::size_t"), Some(Type::Scalar(int(8, false))));
        assert_eq!(of_headers("std::float4"), None);
        assert_eq!(of_headers("cuComplex"), vector("float2").map(Type::Vector));
    }
}
