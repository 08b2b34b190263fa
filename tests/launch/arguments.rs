//! Does every kind of value reach the kernel bit for bit? Structs are in `structs`.

use gridcall::{
    BFloat162, Char2, Char4, DevicePointer, Double2, Float2, Float3, Float4, Half2, Int2, Int3,
    Int4, KernelArg, LongLong2, Short2, Short4, UChar4, UInt2, UInt3, UInt4, ULongLong2, UShort2,
    cover,
    cudarc::driver::{DevicePtr, DevicePtrMut},
    kernel,
};
use half::{bf16, f16};
use num_complex::Complex;

use crate::{
    kernels::{many10, scale, transpose},
    support::ramp,
};

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    /// # Safety
    ///
    /// None: the pointer is not followed.
    #[requires(out.len() >= 120)]
    unsafe fn echo_scalars(
        b: bool,
        i8: i8,
        i16: i16,
        i32: i32,
        i64: i64,
        u8: u8,
        u16: u16,
        u32: u32,
        u64: u64,
        size: usize,
        f32: f32,
        f64: f64,
        f16: f16,
        bf16: bf16,
        pointer: *const f32,
        #[align(8)] out: &mut [u8],
    );

    #[requires(out.len() >= 336)]
    safe fn echo_vectors(
        c2: Char2,
        c4: Char4,
        uc4: UChar4,
        s2: Short2,
        s4: Short4,
        us2: UShort2,
        i2: Int2,
        i3: Int3,
        i4: Int4,
        u2: UInt2,
        u3: UInt3,
        u4: UInt4,
        f2: Float2,
        f3: Float3,
        f4: Float4,
        l2: LongLong2,
        ul2: ULongLong2,
        d2: Double2,
        h2: Half2,
        b2: BFloat162,
        d3: UInt3,
        #[align(16)] out: &mut [u8],
    );

    /// The same vectors in other words: arrays where C has no alignment of its own, complex
    /// numbers, a handle in two halves.
    #[name("echo_vectors")]
    #[requires(out.len() >= 336)]
    safe fn echo_others(
        c2: Char2,
        c4: Char4,
        uc4: UChar4,
        s2: Short2,
        s4: Short4,
        us2: UShort2,
        i2: Int2,
        i3: [i32; 3],
        i4: Int4,
        u2: UInt2,
        u3: [u32; 3],
        u4: UInt4,
        f2: Complex<f32>,
        f3: [f32; 3],
        f4: Float4,
        l2: i128,
        ul2: u128,
        d2: Complex<f64>,
        h2: Half2,
        b2: BFloat162,
        d3: [u32; 3],
        #[align(16)] out: &mut [u8],
    );

    #[requires(a.len() >= n, b.len() >= n, out.len() >= n)]
    safe fn all_eq(a: &[f32], b: &[f32], n: i32, invert: bool, out: &mut [bool]);

    #[name("all_eq")]
    #[requires(a.len() >= 4, b.len() >= 4, out.len() >= 4)]
    safe fn compare(a: &[f32], b: &[f32], n: Count, how: Comparison, out: &mut [bool]);

    safe fn nothing();

    #[requires(x_or_null.is_none() || x_or_null.len() >= n, out.len() >= n)]
    safe fn maybe(x_or_null: Option<&[f32]>, out: &mut [f32], n: i32);
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// Copies eight halves at a time.
    #[name("copy4")]
    #[requires(x.len() >= n4 * 8, y.len() >= n4 * 8)]
    safe fn copy_halves(#[align(16)] x: &[f16], #[align(16)] y: &mut [f16], n4: i32);

    #[name("copy4")]
    #[requires(x.len() >= n4, y.len() >= n4)]
    safe fn copy_complex(
        #[align(16)] x: &[Complex<f64>],
        #[align(16)] y: &mut [Complex<f64>],
        n4: i32,
    );

    /// # Safety
    ///
    /// Both must point to `n` floats of the stream's device that nobody else uses meanwhile.
    #[name("copy")]
    unsafe fn copy_raw(input: *const f32, out: *mut f32, n: i32);

    #[requires(out.len() >= n)]
    safe fn pad(out: &mut [f32], n: usize);
}

/// At most four: the arrays of `compare` have four elements.
#[derive(Clone, Copy, KernelArg)]
#[repr(transparent)]
struct Count(i32);

#[derive(Clone, Copy, KernelArg)]
#[repr(u8)]
enum Comparison {
    Equal = 0,
    Unequal = 1,
}

/// The values of `echo_scalars` in order, each as the bits of its slot.
struct Scalars {
    b: bool,
    i64: i64,
    u64: u64,
    f32: u32,
    f64: u64,
    half: u16,
}

impl Scalars {
    fn slots(&self) -> [u64; 15] {
        let i = self.i64.to_le_bytes();
        let u = self.u64.to_le_bytes();
        let signed = |bytes: usize| low(&i[..bytes]);
        let unsigned = |bytes: usize| low(&u[..bytes]);
        [
            u64::from(self.b),
            signed(1),
            signed(2),
            signed(4),
            signed(8),
            unsigned(1),
            unsigned(2),
            unsigned(4),
            unsigned(8),
            unsigned(8),
            u64::from(self.f32),
            self.f64,
            u64::from(self.half),
            u64::from(!self.half),
            self.u64,
        ]
    }
}

/// The bytes as the low ones of a word.
fn low(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[test]
fn every_scalar_arrives_bit_for_bit() {
    let device = device!();
    let stream = device.default_stream();
    let quiet_nan_with_payload = (0x7fc1_2345, 0x7ff9_8765_4321_0fed);
    for values in [
        Scalars {
            b: true,
            i64: -2,
            u64: 0xfedc_ba98_7654_3210,
            f32: 1.5_f32.to_bits(),
            f64: (-1.0_f64 / 3.0).to_bits(),
            half: 0x3c01,
        },
        Scalars {
            b: false,
            i64: i64::MIN + 0x0101_0101_0101_0180,
            u64: 0,
            f32: quiet_nan_with_payload.0,
            f64: quiet_nan_with_payload.1,
            half: 0x8000,
        },
        Scalars {
            b: true,
            i64: 0x7f7f_7f7f_7f7f_7f7f,
            u64: u64::MAX,
            f32: 1,
            f64: (-0.0_f64).to_bits(),
            half: 0x7bff,
        },
    ] {
        let [_, i8, i16, i32, _, u8, u16, u32, ..] = values.slots();
        let mut out = stream.clone_htod(&[0xee_u8; 120]).unwrap();
        // SAFETY: the kernel does not follow the pointer.
        unsafe {
            echo_scalars(
                &stream,
                (1, 1),
                values.b,
                i8.to_le_bytes()[0].cast_signed(),
                i16::from_le_bytes(first(i16)),
                i32::from_le_bytes(first(i32)),
                values.i64,
                u8.to_le_bytes()[0],
                u16::from_le_bytes(first(u16)),
                u32::from_le_bytes(first(u32)),
                values.u64,
                usize::try_from(values.u64).unwrap(),
                f32::from_bits(values.f32),
                f64::from_bits(values.f64),
                f16::from_bits(values.half),
                bf16::from_bits(!values.half),
                DevicePointer::from_address(values.u64),
                &mut out,
            )
        }
        .unwrap();
        let sizes = [1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 4, 8, 2, 2, 8];
        let mut expected = [0xee_u8; 120];
        for ((slot, word), size) in expected.chunks_mut(8).zip(values.slots()).zip(sizes) {
            slot[..size].copy_from_slice(&word.to_le_bytes()[..size]);
        }
        assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
    }
}

fn first<const N: usize>(word: u64) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&word.to_le_bytes()[..N]);
    bytes
}

/// Slots of 16 bytes, each filled from its start with distinct bytes.
fn vector_slots() -> [u8; 336] {
    let sizes = [
        2, 4, 4, 4, 8, 4, 8, 12, 16, 8, 12, 16, 8, 12, 16, 16, 16, 16, 4, 4, 12,
    ];
    let mut slots = [0xee_u8; 336];
    let mut next = 0x10_u8;
    for (slot, size) in slots.chunks_mut(16).zip(sizes) {
        for byte in &mut slot[..size] {
            *byte = next;
            // No exponent of ones, so that no float is a NaN.
            next = if next == 0x6f { 0x10 } else { next + 1 };
        }
    }
    slots
}

/// Reads a scalar at a slot and an index within it.
macro_rules! component {
    ($slots:ident, $scalar:ty, $slot:literal, $index:literal) => {{
        let size = size_of::<$scalar>();
        let bytes = &$slots[16 * $slot + size * $index..][..size];
        <$scalar>::from_le_bytes(bytes.try_into().unwrap())
    }};
}

macro_rules! vector {
    ($slots:ident, $scalar:ty, $slot:literal, 2) => {
        [
            component!($slots, $scalar, $slot, 0),
            component!($slots, $scalar, $slot, 1),
        ]
    };
    ($slots:ident, $scalar:ty, $slot:literal, 3) => {
        [
            component!($slots, $scalar, $slot, 0),
            component!($slots, $scalar, $slot, 1),
            component!($slots, $scalar, $slot, 2),
        ]
    };
    ($slots:ident, $scalar:ty, $slot:literal, 4) => {
        [
            component!($slots, $scalar, $slot, 0),
            component!($slots, $scalar, $slot, 1),
            component!($slots, $scalar, $slot, 2),
            component!($slots, $scalar, $slot, 3),
        ]
    };
}

#[test]
fn every_vector_arrives_bit_for_bit() {
    let device = device!();
    let stream = device.default_stream();
    let slots = vector_slots();
    let mut out = stream.clone_htod(&[0xee_u8; 336]).unwrap();
    echo_vectors(
        &stream,
        (1, 1),
        vector!(slots, i8, 0, 2).into(),
        vector!(slots, i8, 1, 4).into(),
        vector!(slots, u8, 2, 4).into(),
        vector!(slots, i16, 3, 2).into(),
        vector!(slots, i16, 4, 4).into(),
        vector!(slots, u16, 5, 2).into(),
        vector!(slots, i32, 6, 2).into(),
        vector!(slots, i32, 7, 3).into(),
        vector!(slots, i32, 8, 4).into(),
        vector!(slots, u32, 9, 2).into(),
        vector!(slots, u32, 10, 3).into(),
        vector!(slots, u32, 11, 4).into(),
        vector!(slots, f32, 12, 2).into(),
        vector!(slots, f32, 13, 3).into(),
        vector!(slots, f32, 14, 4).into(),
        vector!(slots, i64, 15, 2).into(),
        vector!(slots, u64, 16, 2).into(),
        vector!(slots, f64, 17, 2).into(),
        vector!(slots, f16, 18, 2).into(),
        vector!(slots, bf16, 19, 2).into(),
        vector!(slots, u32, 20, 3).into(),
        &mut out,
    )
    .unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), slots);
}

#[test]
fn arrays_and_complex_numbers_arrive_as_vectors() {
    let device = device!();
    let stream = device.default_stream();
    let slots = vector_slots();
    let f2 = vector!(slots, f32, 12, 2);
    let d2 = vector!(slots, f64, 17, 2);
    let mut out = stream.clone_htod(&[0xee_u8; 336]).unwrap();
    echo_others(
        &stream,
        (1, 1),
        vector!(slots, i8, 0, 2).into(),
        vector!(slots, i8, 1, 4).into(),
        vector!(slots, u8, 2, 4).into(),
        vector!(slots, i16, 3, 2).into(),
        vector!(slots, i16, 4, 4).into(),
        vector!(slots, u16, 5, 2).into(),
        vector!(slots, i32, 6, 2).into(),
        vector!(slots, i32, 7, 3),
        vector!(slots, i32, 8, 4).into(),
        vector!(slots, u32, 9, 2).into(),
        vector!(slots, u32, 10, 3),
        vector!(slots, u32, 11, 4).into(),
        Complex::new(f2[0], f2[1]),
        vector!(slots, f32, 13, 3),
        vector!(slots, f32, 14, 4).into(),
        component!(slots, i128, 15, 0),
        component!(slots, u128, 16, 0),
        Complex::new(d2[0], d2[1]),
        vector!(slots, f16, 18, 2).into(),
        vector!(slots, bf16, 19, 2).into(),
        vector!(slots, u32, 20, 3),
        &mut out,
    )
    .unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), slots);
}

#[test]
fn bools_go_in_and_come_out() {
    let device = device!();
    let stream = device.default_stream();
    let a = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let b = stream.clone_htod(&[1.0_f32, 0.0, 3.0, 0.0]).unwrap();
    let mut out = stream.alloc_zeros::<bool>(4).unwrap();
    all_eq(&stream, cover(4), &a, &b, 4, false, &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [true, false, true, false]);
    all_eq(&stream, cover(4), &a, &b, 4, true, &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [false, true, false, true]);
}

#[test]
fn an_enum_and_a_newtype_arrive_as_their_scalars() {
    let device = device!();
    let stream = device.default_stream();
    let a = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let b = stream.clone_htod(&[1.0_f32, 0.0, 3.0, 0.0]).unwrap();
    for (how, expected) in [
        (Comparison::Equal, [true, false, true, false]),
        (Comparison::Unequal, [false, true, false, false]),
    ] {
        let mut out = stream.alloc_zeros::<bool>(4).unwrap();
        compare(&stream, cover(4), &a, &b, Count(3), how, &mut out).unwrap();
        assert_eq!(
            stream.clone_dtoh(&out).unwrap()[..3],
            expected[..3],
            "the count is 3"
        );
    }
}

#[test]
fn a_kernel_may_take_nothing() {
    let device = device!();
    let stream = device.default_stream();
    nothing(&stream, (3, 32)).unwrap();
    nothing {}.launch(&stream, cover(1000)).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn an_optional_array_is_there_or_null() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(100)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(100).unwrap();
    maybe(&stream, cover(100), Some(&x), &mut out, 100).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(100));
    maybe(&stream, cover(100), Some(&x.slice(40..)), &mut out, 60).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap()[..60], ramp(100)[40..]);
    maybe(&stream, cover(100), None, &mut out, 100).unwrap();
    // An option that the caller keeps.
    let kept = [Some(&x), None];
    for x in kept {
        maybe(&stream, cover(100), x.map(|x| x as _), &mut out, 100).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [-1.0; 100]);
    let named = maybe {
        x_or_null: Some(&x),
        out: &mut out,
        n: 100,
    };
    named.launch(&stream, cover(100)).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(100));
}

#[test]
fn ten_arguments_keep_their_places() {
    let device = device!();
    let stream = device.default_stream();
    let arrays: Vec<_> = (1..=7_u8)
        .map(|k| stream.clone_htod(&[f32::from(k); 64]).unwrap())
        .collect();
    let mut y = stream.alloc_zeros::<f32>(64).unwrap();
    let x = |k: usize| &arrays[k];
    many10(
        &stream,
        cover(64),
        x(0),
        x(1),
        x(2),
        x(3),
        x(4),
        x(5),
        x(6),
        &mut y,
        0.5,
        63,
    )
    .unwrap();
    let mut expected = [14.0; 64];
    expected[63] = 0.0;
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_literal_takes_the_declared_type() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    scale(&stream, cover(4), &mut y, 20.0, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [20.0, 40.0, 60.0, 80.0]);
}

#[test]
fn a_size_has_all_its_bits() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<f32>(300).unwrap();
    pad(&stream, cover(300), &mut out, 299).unwrap();
    let mut expected = [1.0; 300];
    expected[299] = 0.0;
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn named_arguments_say_which_is_which() {
    let device = device!();
    let stream = device.default_stream();
    let input = stream.clone_htod(&ramp(15)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(15).unwrap();
    transpose {
        input: &input,
        out: &mut out,
        rows: 3,
        cols: 5,
        total: 15,
    }
    .launch(&stream, cover(15))
    .unwrap();
    let expected: Vec<f32> = (0..15_u16).map(|i| f32::from(i % 3 * 5 + i / 3)).collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn halves_are_elements() {
    let device = device!();
    let stream = device.default_stream();
    let halves: Vec<f16> = (0..32_u8)
        .map(|k| f16::from_bits(0x3c00 + u16::from(k)))
        .collect();
    let x = stream.clone_htod(&halves).unwrap();
    let mut y = stream.alloc_zeros::<f16>(32).unwrap();
    copy_halves(&stream, cover(4), &x, &mut y, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), halves);
}

#[test]
fn complex_numbers_are_elements() {
    let device = device!();
    let stream = device.default_stream();
    let parts = [1.0_f64, -2.0, 3.0, -4.0];
    let x = stream.clone_htod(&parts).unwrap();
    let mut y = stream.alloc_zeros::<f64>(4).unwrap();
    // SAFETY: a complex number is two floats, and all bits of floats are valid.
    let x = unsafe { x.transmute::<Complex<f64>>(2) }.unwrap();
    // SAFETY: as above.
    let mut complex = unsafe { y.transmute_mut::<Complex<f64>>(2) }.unwrap();
    copy_complex(&stream, cover(2), &x, &mut complex, 2).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), parts);
}

#[test]
fn raw_pointers_are_passed_as_they_are() {
    let device = device!();
    let stream = device.default_stream();
    let input = stream.clone_htod(&ramp(64)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(64).unwrap();
    {
        let (from, _read) = input.device_ptr(&stream);
        let (to, _written) = out.device_ptr_mut(&stream);
        let from = DevicePointer::from_address(from + 4 * 32);
        let to = gridcall::DevicePointerMut::from_address(to);
        // SAFETY: 32 floats lie behind each address, on the stream's device, and all work on
        // them is on this stream.
        unsafe { copy_raw(&stream, cover(32), from, to, 32) }.unwrap();
    }
    let copied = stream.clone_dtoh(&out).unwrap();
    assert_eq!(copied[..32], ramp(64)[32..]);
    assert_eq!(copied[32..], [0.0; 32]);
}
