//! CUDA's vector types, with CUDA's alignments
//! ([CUDA C++ Programming Guide, built-in vector types](https://docs.nvidia.com/cuda/cuda-c-programming-guide/#built-in-vector-types)).
//!
//! There is none for `long`, which has 8 bytes on Linux and 4 on Windows: use the type of that
//! size.

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

use crate::{arg::KernelArg, layout::ArgLayout};

/// A vector type: its name, CUDA's name, its scalar, its alignment and its fields.
/// `float4` of a text that may go on behind it.
const fn kind(cuda: &'static str) -> &'static str {
    let mut len = 0;
    while len < cuda.len() && cuda.as_bytes()[len].is_ascii_alphanumeric() {
        len += 1;
    }
    cuda.split_at(len).0
}

macro_rules! vectors {
    ($($name:ident, $cuda:literal, $scalar:ty, $align:literal, ($($field:ident),+);)+) => {$(
        #[doc = concat!("CUDA's `", $cuda, "`, aligned to ", $align, " bytes.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C, align($align))]
        pub struct $name {
            $(
                #[doc = concat!("The component `", stringify!($field), "`.")]
                pub $field: $scalar,
            )+
        }

        impl $name {
            /// The vector of these components.
            #[must_use]
            pub const fn new($($field: $scalar),+) -> $name {
                $name { $($field),+ }
            }
        }

        impl From<[$scalar; 0 $(+ { stringify!($field); 1 })+]> for $name {
            fn from([$($field),+]: [$scalar; 0 $(+ { stringify!($field); 1 })+]) -> $name {
                $name { $($field),+ }
            }
        }

        impl From<$name> for [$scalar; 0 $(+ { stringify!($field); 1 })+] {
            fn from(vector: $name) -> Self {
                [$(vector.$field),+]
            }
        }

        // SAFETY: size and alignment are CUDA's, by the assertion below, and the type has no
        // padding: what is written is exactly its bytes.
        unsafe impl KernelArg for $name {
            const LAYOUT: ArgLayout = ArgLayout::of_scalar::<$name>(crate::layout::Class::Bytes, kind($cuda));

            #[inline(always)]
            unsafe fn write(&self, to: *mut u8) {
                // SAFETY: the caller provides room for the size of the type, at any alignment.
                unsafe { to.cast::<$name>().write_unaligned(*self) }
            }
        }

        // SAFETY: `repr(C)` without padding, of scalars that are themselves valid on the device.
        unsafe impl DeviceRepr for $name {}
        // SAFETY: all its scalars are valid as zeros.
        unsafe impl ValidAsZeroBits for $name {}
        // SAFETY: as above.
        unsafe impl bytemuck::Zeroable for $name {}
        // SAFETY: its scalars are integers or floats, which any bits are, and it has no padding,
        // by the assertion below.
        unsafe impl bytemuck::Pod for $name {}

        const _: () = assert!(
            size_of::<$name>() == size_of::<$scalar>() * (0 $(+ { stringify!($field); 1 })+)
                && align_of::<$name>() == $align
        );
    )+};
}

vectors! {
    Char1, "char1", i8, 1, (x);
    Char2, "char2", i8, 2, (x, y);
    Char3, "char3", i8, 1, (x, y, z);
    Char4, "char4", i8, 4, (x, y, z, w);
    UChar1, "uchar1", u8, 1, (x);
    UChar2, "uchar2", u8, 2, (x, y);
    UChar3, "uchar3", u8, 1, (x, y, z);
    UChar4, "uchar4", u8, 4, (x, y, z, w);
    Short1, "short1", i16, 2, (x);
    Short2, "short2", i16, 4, (x, y);
    Short3, "short3", i16, 2, (x, y, z);
    Short4, "short4", i16, 8, (x, y, z, w);
    UShort1, "ushort1", u16, 2, (x);
    UShort2, "ushort2", u16, 4, (x, y);
    UShort3, "ushort3", u16, 2, (x, y, z);
    UShort4, "ushort4", u16, 8, (x, y, z, w);
    Int1, "int1", i32, 4, (x);
    Int2, "int2", i32, 8, (x, y);
    Int3, "int3", i32, 4, (x, y, z);
    Int4, "int4", i32, 16, (x, y, z, w);
    UInt1, "uint1", u32, 4, (x);
    UInt2, "uint2", u32, 8, (x, y);
    UInt3, "uint3` and `dim3", u32, 4, (x, y, z);
    UInt4, "uint4", u32, 16, (x, y, z, w);
    LongLong1, "longlong1", i64, 8, (x);
    LongLong2, "longlong2", i64, 16, (x, y);
    LongLong3, "longlong3", i64, 8, (x, y, z);
    LongLong4, "longlong4` and `longlong4_16a", i64, 16, (x, y, z, w);
    ULongLong1, "ulonglong1", u64, 8, (x);
    ULongLong2, "ulonglong2", u64, 16, (x, y);
    ULongLong3, "ulonglong3", u64, 8, (x, y, z);
    ULongLong4, "ulonglong4` and `ulonglong4_16a", u64, 16, (x, y, z, w);
    Float1, "float1", f32, 4, (x);
    Float2, "float2", f32, 8, (x, y);
    Float3, "float3", f32, 4, (x, y, z);
    Float4, "float4", f32, 16, (x, y, z, w);
    Double1, "double1", f64, 8, (x);
    Double2, "double2", f64, 16, (x, y);
    Double3, "double3", f64, 8, (x, y, z);
    Double4, "double4` and `double4_16a", f64, 16, (x, y, z, w);
}

#[cfg(feature = "half")]
vectors! {
    Half2, "__half2", half::f16, 4, (x, y);
    BFloat162, "__nv_bfloat162", half::bf16, 4, (x, y);
}
