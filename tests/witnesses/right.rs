//! A right declaration of every kernel of `signatures.cu` compiles, with all witnesses heard.

#![allow(dead_code, reason = "compiling is the test")]

use gridcall::{
    Char3, DevicePointer, DevicePointerMut, Double2, Float2, Float3, Float4, Int3, KernelArg,
    LongLong2, UChar4,
};
use half::{bf16, f16};
use num_complex::Complex;

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(4))]
#[kernel_arg(opaque)]
pub(crate) struct Half2 {
    pub(crate) low: f16,
    pub(crate) high: f16,
}

/// `__nv_fp8_e4m3` is a struct of one byte.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
#[kernel_arg(opaque)]
pub(crate) struct Fp8 {
    pub(crate) bits: u8,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(u8)]
pub(crate) enum Colour {
    Red,
    Green,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(u32)]
pub(crate) enum Level {
    Low,
    High,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(i64)]
pub(crate) enum Wide {
    Zero,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct Pair {
    pub(crate) id: i32,
    pub(crate) value: f32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct Mixed {
    pub(crate) d: f64,
    pub(crate) c: i8,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct Nested<'a> {
    pub(crate) p: Pair,
    pub(crate) q: DevicePointerMut<'a, f32>,
    pub(crate) s: i16,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct WithPointer<'a> {
    pub(crate) data: DevicePointer<'a, f32>,
    pub(crate) n: i32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(16))]
pub(crate) struct Aligned16 {
    pub(crate) f: f32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(64))]
pub(crate) struct Aligned64 {
    pub(crate) i: i32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct ArrayInside {
    pub(crate) v: [i32; 5],
}

/// A union of a float, a double and an int.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
#[kernel_arg(opaque)]
pub(crate) struct Either {
    pub(crate) bits: u64,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
#[kernel_arg(opaque)]
pub(crate) struct Packed {
    pub(crate) bytes: [u8; 5],
}

/// Two fields of 3 and 29 bits.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
#[kernel_arg(opaque)]
pub(crate) struct Bits {
    pub(crate) word: u32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct Derived {
    pub(crate) id: i32,
    pub(crate) extra: i8,
}

/// A struct without fields has a byte in C++.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
#[kernel_arg(opaque)]
pub(crate) struct Empty {
    pub(crate) byte: u8,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub(crate) struct Big {
    pub(crate) c: [i8; 4096],
}

macro_rules! declare {
    ($ptx:literal) => {
        use super::*;
        use gridcall::kernel;

        #[kernel(ptx = $ptx, cuda = "witnesses/signatures.cu")]
        unsafe extern "C" {
            pub(crate) unsafe fn c_bool(v: bool, out: &mut [i32]);
            pub(crate) unsafe fn c_char(v: i8, out: &mut [i32]);
            pub(crate) unsafe fn c_schar(v: i8, out: &mut [i32]);
            pub(crate) unsafe fn c_uchar(v: u8, out: &mut [i32]);
            pub(crate) unsafe fn c_short(v: i16, out: &mut [i32]);
            pub(crate) unsafe fn c_ushort(v: u16, out: &mut [i32]);
            pub(crate) unsafe fn c_int(v: i32, out: &mut [i32]);
            pub(crate) unsafe fn c_uint(v: u32, out: &mut [i32]);
            pub(crate) unsafe fn c_long(v: i64, out: &mut [i32]);
            pub(crate) unsafe fn c_ulong(v: u64, out: &mut [i32]);
            pub(crate) unsafe fn c_longlong(v: i64, out: &mut [i32]);
            pub(crate) unsafe fn c_ulonglong(v: u64, out: &mut [i32]);
            pub(crate) unsafe fn c_size(v: usize, out: &mut [i32]);
            pub(crate) unsafe fn c_i8(v: i8, out: &mut [i32]);
            pub(crate) unsafe fn c_u16(v: u16, out: &mut [i32]);
            pub(crate) unsafe fn c_i64(v: i64, out: &mut [i32]);
            pub(crate) unsafe fn c_float(v: f32, out: &mut [i32]);
            pub(crate) unsafe fn c_double(v: f64, out: &mut [i32]);
            pub(crate) unsafe fn c_half(v: f16, out: &mut [i32]);
            pub(crate) unsafe fn c_bf16(v: bf16, out: &mut [i32]);
            pub(crate) unsafe fn c_half2(v: Half2, out: &mut [i32]);
            pub(crate) unsafe fn c_fp8(v: Fp8, out: &mut [i32]);
            pub(crate) unsafe fn c_float2(v: Float2, out: &mut [i32]);
            pub(crate) unsafe fn c_float3(v: Float3, out: &mut [i32]);
            pub(crate) unsafe fn c_float4(v: Float4, out: &mut [i32]);
            pub(crate) unsafe fn c_double2(v: Double2, out: &mut [i32]);
            pub(crate) unsafe fn c_int3(v: Int3, out: &mut [i32]);
            pub(crate) unsafe fn c_uchar4(v: UChar4, out: &mut [i32]);
            pub(crate) unsafe fn c_char3(v: Char3, out: &mut [i32]);
            pub(crate) unsafe fn c_longlong2(v: LongLong2, out: &mut [i32]);
            pub(crate) unsafe fn c_cfloat(v: Complex<f32>, out: &mut [i32]);
            pub(crate) unsafe fn c_cdouble(v: Complex<f64>, out: &mut [i32]);
            pub(crate) unsafe fn c_enum_u8(v: Colour, out: &mut [i32]);
            pub(crate) unsafe fn c_enum_int(v: Level, out: &mut [i32]);
            pub(crate) unsafe fn c_enum_class(v: Wide, out: &mut [i32]);
            pub(crate) unsafe fn c_pair(v: Pair, out: &mut [i32]);
            pub(crate) unsafe fn c_mixed(v: Mixed, out: &mut [i32]);
            pub(crate) unsafe fn c_nested(v: Nested<'_>, out: &mut [i32]);
            pub(crate) unsafe fn c_with_pointer(v: WithPointer<'_>, out: &mut [i32]);
            pub(crate) unsafe fn c_aligned16(v: Aligned16, out: &mut [i32]);
            pub(crate) unsafe fn c_aligned64(v: Aligned64, out: &mut [i32]);
            pub(crate) unsafe fn c_array_inside(v: ArrayInside, out: &mut [i32]);
            pub(crate) unsafe fn c_union(v: Either, out: &mut [i32]);
            pub(crate) unsafe fn c_packed(v: Packed, out: &mut [i32]);
            pub(crate) unsafe fn c_bits(v: Bits, out: &mut [i32]);
            pub(crate) unsafe fn c_derived(v: Derived, out: &mut [i32]);
            pub(crate) unsafe fn c_empty(v: Empty, out: &mut [i32]);
            pub(crate) unsafe fn c_big(v: Big, out: &mut [i32]);
            pub(crate) unsafe fn c_grid_constant(v: WithPointer<'_>, out: &mut [i32]);
            pub(crate) unsafe fn c_const_int(v: i32, out: &mut [i32]);
            pub(crate) unsafe fn c_float_ptr(v: &mut [f32], out: &mut [i32]);
            pub(crate) unsafe fn c_float_cptr(v: &[f32], out: &mut [i32]);
            pub(crate) unsafe fn c_float_cptr_restrict(v: &[f32], out: &mut [i32]);
            pub(crate) unsafe fn c_double_cptr(v: &[f64], out: &mut [i32]);
            pub(crate) unsafe fn c_int_ptr(v: &mut [i32], out: &mut [i32]);
            pub(crate) unsafe fn c_int_cptr(v: &[i32], out: &mut [i32]);
            pub(crate) unsafe fn c_uint_cptr(v: &[u32], out: &mut [i32]);
            pub(crate) unsafe fn c_longlong_cptr(v: &[i64], out: &mut [i32]);
            pub(crate) unsafe fn c_size_cptr(v: &[usize], out: &mut [i32]);
            pub(crate) unsafe fn c_uchar_cptr(v: &[u8], out: &mut [i32]);
            pub(crate) unsafe fn c_bool_ptr(v: &mut [bool], out: &mut [i32]);
            pub(crate) unsafe fn c_half_cptr(v: &[f16], out: &mut [i32]);
            pub(crate) unsafe fn c_bf16_ptr(v: &mut [bf16], out: &mut [i32]);
            pub(crate) unsafe fn c_float4_cptr(v: &[Float4], out: &mut [i32]);
            pub(crate) unsafe fn c_float3_ptr(v: &mut [Float3], out: &mut [i32]);
            pub(crate) unsafe fn c_pair_cptr(v: &[Pair], out: &mut [i32]);
            pub(crate) unsafe fn c_pair_ptr(v: &mut [Pair], out: &mut [i32]);
            pub(crate) unsafe fn c_void_ptr(v: &mut [i32], out: &mut [i32]);
            pub(crate) unsafe fn c_ptr_ptr(v: &[u64], out: &mut [i32]);
            pub(crate) unsafe fn c_volatile_ptr(v: &[i32], out: &mut [i32]);
            pub(crate) unsafe fn c_atomic_ptr(v: &mut [i32], out: &mut [i32]);
            pub(crate) unsafe fn c_inout_ptr(v: &mut [f32], out: &mut [i32]);
            pub(crate) unsafe fn c_unused_ptr(v: &[f32], out: &mut [i32]);
            pub(crate) unsafe fn m_bool(v: bool, out: &mut [i32]);
            pub(crate) unsafe fn m_char(v: i8, out: &mut [i32]);
            pub(crate) unsafe fn m_schar(v: i8, out: &mut [i32]);
            pub(crate) unsafe fn m_uchar(v: u8, out: &mut [i32]);
            pub(crate) unsafe fn m_short(v: i16, out: &mut [i32]);
            pub(crate) unsafe fn m_ushort(v: u16, out: &mut [i32]);
            pub(crate) unsafe fn m_int(v: i32, out: &mut [i32]);
            pub(crate) unsafe fn m_uint(v: u32, out: &mut [i32]);
            pub(crate) unsafe fn m_long(v: i64, out: &mut [i32]);
            pub(crate) unsafe fn m_ulong(v: u64, out: &mut [i32]);
            pub(crate) unsafe fn m_longlong(v: i64, out: &mut [i32]);
            pub(crate) unsafe fn m_ulonglong(v: u64, out: &mut [i32]);
            pub(crate) unsafe fn m_size(v: usize, out: &mut [i32]);
            pub(crate) unsafe fn m_i8(v: i8, out: &mut [i32]);
            pub(crate) unsafe fn m_u16(v: u16, out: &mut [i32]);
            pub(crate) unsafe fn m_i64(v: i64, out: &mut [i32]);
            pub(crate) unsafe fn m_float(v: f32, out: &mut [i32]);
            pub(crate) unsafe fn m_double(v: f64, out: &mut [i32]);
            pub(crate) unsafe fn m_half(v: f16, out: &mut [i32]);
            pub(crate) unsafe fn m_bf16(v: bf16, out: &mut [i32]);
            pub(crate) unsafe fn m_half2(v: Half2, out: &mut [i32]);
            pub(crate) unsafe fn m_fp8(v: Fp8, out: &mut [i32]);
            pub(crate) unsafe fn m_float2(v: Float2, out: &mut [i32]);
            pub(crate) unsafe fn m_float3(v: Float3, out: &mut [i32]);
            pub(crate) unsafe fn m_float4(v: Float4, out: &mut [i32]);
            pub(crate) unsafe fn m_double2(v: Double2, out: &mut [i32]);
            pub(crate) unsafe fn m_int3(v: Int3, out: &mut [i32]);
            pub(crate) unsafe fn m_uchar4(v: UChar4, out: &mut [i32]);
            pub(crate) unsafe fn m_char3(v: Char3, out: &mut [i32]);
            pub(crate) unsafe fn m_longlong2(v: LongLong2, out: &mut [i32]);
            pub(crate) unsafe fn m_cfloat(v: Complex<f32>, out: &mut [i32]);
            pub(crate) unsafe fn m_cdouble(v: Complex<f64>, out: &mut [i32]);
            pub(crate) unsafe fn m_enum_u8(v: Colour, out: &mut [i32]);
            pub(crate) unsafe fn m_enum_int(v: Level, out: &mut [i32]);
            pub(crate) unsafe fn m_enum_class(v: Wide, out: &mut [i32]);
            pub(crate) unsafe fn m_pair(v: Pair, out: &mut [i32]);
            pub(crate) unsafe fn m_mixed(v: Mixed, out: &mut [i32]);
            pub(crate) unsafe fn m_nested(v: Nested<'_>, out: &mut [i32]);
            pub(crate) unsafe fn m_with_pointer(v: WithPointer<'_>, out: &mut [i32]);
            pub(crate) unsafe fn m_aligned16(v: Aligned16, out: &mut [i32]);
            pub(crate) unsafe fn m_aligned64(v: Aligned64, out: &mut [i32]);
            pub(crate) unsafe fn m_array_inside(v: ArrayInside, out: &mut [i32]);
            pub(crate) unsafe fn m_union(v: Either, out: &mut [i32]);
            pub(crate) unsafe fn m_packed(v: Packed, out: &mut [i32]);
            pub(crate) unsafe fn m_bits(v: Bits, out: &mut [i32]);
            pub(crate) unsafe fn m_derived(v: Derived, out: &mut [i32]);
            pub(crate) unsafe fn m_empty(v: Empty, out: &mut [i32]);
            pub(crate) unsafe fn m_big(v: Big, out: &mut [i32]);
            pub(crate) unsafe fn m_grid_constant(v: WithPointer<'_>, out: &mut [i32]);
            pub(crate) unsafe fn m_const_int(v: i32, out: &mut [i32]);
            pub(crate) unsafe fn m_float_ptr(v: &mut [f32], out: &mut [i32]);
            pub(crate) unsafe fn m_float_cptr(v: &[f32], out: &mut [i32]);
            pub(crate) unsafe fn m_float_cptr_restrict(v: &[f32], out: &mut [i32]);
            pub(crate) unsafe fn m_double_cptr(v: &[f64], out: &mut [i32]);
            pub(crate) unsafe fn m_int_ptr(v: &mut [i32], out: &mut [i32]);
            pub(crate) unsafe fn m_int_cptr(v: &[i32], out: &mut [i32]);
            pub(crate) unsafe fn m_uint_cptr(v: &[u32], out: &mut [i32]);
            pub(crate) unsafe fn m_longlong_cptr(v: &[i64], out: &mut [i32]);
            pub(crate) unsafe fn m_size_cptr(v: &[usize], out: &mut [i32]);
            pub(crate) unsafe fn m_uchar_cptr(v: &[u8], out: &mut [i32]);
            pub(crate) unsafe fn m_bool_ptr(v: &mut [bool], out: &mut [i32]);
            pub(crate) unsafe fn m_half_cptr(v: &[f16], out: &mut [i32]);
            pub(crate) unsafe fn m_bf16_ptr(v: &mut [bf16], out: &mut [i32]);
            pub(crate) unsafe fn m_float4_cptr(v: &[Float4], out: &mut [i32]);
            pub(crate) unsafe fn m_float3_ptr(v: &mut [Float3], out: &mut [i32]);
            pub(crate) unsafe fn m_pair_cptr(v: &[Pair], out: &mut [i32]);
            pub(crate) unsafe fn m_pair_ptr(v: &mut [Pair], out: &mut [i32]);
            pub(crate) unsafe fn m_void_ptr(v: &mut [i32], out: &mut [i32]);
            pub(crate) unsafe fn m_ptr_ptr(v: &[u64], out: &mut [i32]);
            pub(crate) unsafe fn m_volatile_ptr(v: &[i32], out: &mut [i32]);
            pub(crate) unsafe fn m_atomic_ptr(v: &mut [i32], out: &mut [i32]);
            pub(crate) unsafe fn m_inout_ptr(v: &mut [f32], out: &mut [i32]);
            pub(crate) unsafe fn m_unused_ptr(v: &[f32], out: &mut [i32]);
            pub(crate) unsafe fn c_saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
            pub(crate) unsafe fn m_saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
            pub(crate) unsafe fn c_bounded(
                input: &[f32],
                out: &mut [f32],
                rows: i32,
                cols: i32,
                invert: bool,
            );
            pub(crate) unsafe fn m_scoped(p: Pair, k: i64, x: &[f64], y: &mut [f64]);
            #[name("m_add<float>")]
            pub(crate) unsafe fn m_add_float(x: &[f32], y: &[f32], z: &mut [f32], n: i32);
            #[name("m_add<double>")]
            pub(crate) unsafe fn m_add_double(x: &[f64], y: &[f64], z: &mut [f64], n: i32);
            pub(crate) unsafe fn m_add(x: &[i32], y: &[i32], z: &mut [i32], n: i32);
            pub(crate) unsafe fn m_over(y: &mut [f32]);
            #[name("m_over")]
            pub(crate) unsafe fn m_over_other(y: &mut [f64]);
            pub(crate) unsafe fn c_none();
        }
    };
}

#[allow(dead_code)]
pub(crate) mod sm_75 {
    declare!("../ptx/tests/corpus/signatures.nvcc13.sm_75.ptx");
}

#[allow(dead_code)]
mod sm_100 {
    declare!("../ptx/tests/corpus/signatures.nvcc13.sm_100.ptx");
}
