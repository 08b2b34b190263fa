//! Do structs reach the kernel field for field, and their padding as zeros?

use std::mem::MaybeUninit;

use gridcall::{
    AsDeviceView, AsDeviceViewMut, Buffer, DevicePointer, DevicePointerMut, Float3, Float4, Guard,
    KernelArg, Place, Shaped, StreamRef, View, ViewError, cover, kernel,
};

use crate::support::ramp;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Table<'a> {
    data: DevicePointer<'a, f32>,
    len: u32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Ball {
    id: i32,
    pos: Float4,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct P {
    kind: u8,
    count: u32,
    flag: u8,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Polynomial {
    coefficient: [f32; 4],
    degree: i32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Inner {
    mark: i8,
    weight: f64,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Outer {
    tag: i16,
    inner: Inner,
    tail: f32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(64))]
struct Wide {
    value: [i32; 16],
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Big {
    value: [u32; 2048],
}

#[kernel(ptx = "../kernels/structs.ptx")]
unsafe extern "C" {
    #[requires(g.n <= 1000, out.len() >= g.n * g.n)]
    safe fn julia(out: &mut [u32], g: Grid);

    /// # Safety
    ///
    /// The table must point to `len` floats of the stream's device that nobody writes meanwhile.
    unsafe fn look(t: Table<'_>, out: &mut [f32]);

    #[requires(v.len() >= n)]
    safe fn step(b: Ball, v: &mut [Float3], g: Float3, n: i32);

    #[requires(p.degree < 4, x.len() >= n, out.len() >= n)]
    safe fn evaluate(p: Polynomial, x: &[f32], out: &mut [f32], n: i32);

    #[requires(out.len() >= 4)]
    safe fn nested(o: Outer, out: &mut [f64]);

    #[requires(out.len() >= 18)]
    safe fn wide_between(before: i8, w: Wide, after: i8, out: &mut [i32]);

    #[requires(out.len() >= 12)]
    safe fn dump_p(p: P, out: &mut [u8]);

    #[requires(out.len() >= 32)]
    safe fn dump_ball(b: Ball, out: &mut [u8]);

    #[requires(out.len() >= 32)]
    safe fn dump_outer(o: Outer, out: &mut [u8]);

    #[requires(out.len() >= 20)]
    safe fn dump_polynomial(p: Polynomial, out: &mut [u8]);
}

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    #[requires(i < 2048, out.len() >= 1)]
    safe fn big_param(b: Big, out: &mut [u32], i: u32);
}

/// 32,752 bytes, so that the parameters are as many bytes as there may be, 32,764.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Most {
    values: [u32; 8188],
}

#[kernel(ptx = "../kernels/handwritten/most_parameters.ptx")]
unsafe extern "C" {
    #[requires(i < 8188, out.len() >= 2)]
    safe fn most_parameters(values: Most, out: &mut [u32], i: u32);
}

/// The value in a place whose every byte, padding too, was set before.
macro_rules! over_garbage {
    ($ty:ident { $($field:ident: $value:expr),+ $(,)? }) => {{
        let mut place = MaybeUninit::<$ty>::uninit();
        // SAFETY: the place is as large as the type.
        unsafe { place.as_mut_ptr().cast::<u8>().write_bytes(0xaa, size_of::<$ty>()) };
        $(
            // SAFETY: the field lies within the place and is aligned there.
            unsafe { (&raw mut (*place.as_mut_ptr()).$field).write($value) };
        )+
        place
    }};
}

/// The bytes of the fields, one after another at their offsets, zeros between.
fn at_offsets(size: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (offset, field) in fields {
        bytes[*offset..][..field.len()].copy_from_slice(field);
    }
    bytes
}

#[test]
fn padding_arrives_as_zeros() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.clone_htod(&[0xee_u8; 12]).unwrap();
    let p = over_garbage!(P {
        kind: 3,
        count: 0x0403_0201,
        flag: 7
    });
    // SAFETY: all its fields are written.
    dump_p(&stream, (1, 1), unsafe { p.assume_init() }, &mut out).unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [3, 0, 0, 0, 1, 2, 3, 4, 7, 0, 0, 0]
    );

    let mut out = stream.clone_htod(&[0xee_u8; 32]).unwrap();
    let ball = over_garbage!(Ball {
        id: -2,
        pos: Float4::new(1.0, 2.0, 3.0, 4.0)
    });
    // SAFETY: all its fields are written.
    dump_ball(&stream, (1, 1), unsafe { ball.assume_init() }, &mut out).unwrap();
    let expected = at_offsets(
        32,
        &[
            (0, &(-2_i32).to_le_bytes()),
            (16, &1.0_f32.to_le_bytes()),
            (20, &2.0_f32.to_le_bytes()),
            (24, &3.0_f32.to_le_bytes()),
            (28, &4.0_f32.to_le_bytes()),
        ],
    );
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn padding_of_nested_structs_arrives_as_zeros() {
    let device = device!();
    let stream = device.default_stream();
    let inner = over_garbage!(Inner {
        mark: -1,
        weight: 0.1
    });
    // SAFETY: all its fields are written.
    let inner = unsafe { inner.assume_init() };
    let outer = over_garbage!(Outer {
        tag: 0x0102,
        inner: inner,
        tail: -3.5,
    });
    // SAFETY: all its fields are written.
    let outer = unsafe { outer.assume_init() };
    let mut out = stream.clone_htod(&[0xee_u8; 32]).unwrap();
    dump_outer(&stream, (1, 1), outer, &mut out).unwrap();
    let expected = at_offsets(
        32,
        &[
            (0, &[2, 1]),
            (8, &[0xff]),
            (16, &0.1_f64.to_le_bytes()),
            (24, &(-3.5_f32).to_le_bytes()),
        ],
    );
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);

    let mut out = stream.alloc_zeros::<f64>(4).unwrap();
    nested(&stream, (1, 1), outer, &mut out).unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [f64::from(0x0102), -1.0, 0.1, -3.5]
    );
}

#[test]
fn an_array_in_a_struct_keeps_its_order() {
    let device = device!();
    let stream = device.default_stream();
    let p = Polynomial {
        coefficient: [1.0, -2.0, 0.5, 0.25],
        degree: 2,
    };
    let mut out = stream.clone_htod(&[0xee_u8; 20]).unwrap();
    dump_polynomial(&stream, (1, 1), p, &mut out).unwrap();
    let mut expected: Vec<u8> = p.coefficient.iter().flat_map(|c| c.to_le_bytes()).collect();
    expected.extend(2_i32.to_le_bytes());
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);

    let x = stream.clone_htod(&ramp(8)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(8).unwrap();
    evaluate(&stream, cover(8), p, &x, &mut out, 8).unwrap();
    let expected: Vec<f32> = ramp(8)
        .iter()
        .map(|x| 1.0 - 2.0 * x + 0.5 * x * x)
        .collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn a_parameter_aligned_to_64_bytes_is_found() {
    let device = device!();
    let stream = device.default_stream();
    let mut value = [0; 16];
    for (place, k) in value.iter_mut().zip(1000_i32..) {
        *place = k;
    }
    let mut out = stream.alloc_zeros::<i32>(18).unwrap();
    wide_between(&stream, (1, 1), -5, Wide { value }, 6, &mut out).unwrap();
    let mut expected = vec![-5];
    expected.extend(value);
    expected.push(6);
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn eight_kibibytes_of_parameters_arrive() {
    let device = device!();
    let stream = device.default_stream();
    let mut value = [0; 2048];
    for (place, k) in value.iter_mut().zip(0_u32..) {
        *place = k.wrapping_mul(0x9e37_79b9);
    }
    let mut out = stream.alloc_zeros::<u32>(3).unwrap();
    for (place, i) in [0_u32, 1023, 2047].into_iter().enumerate() {
        let mut out = out.slice_mut(place..);
        big_param(&stream, (1, 1), Big { value }, &mut out, i).unwrap();
    }
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [value[0], value[1023], value[2047]]
    );
}

#[test]
fn as_many_parameters_as_there_may_be_arrive() {
    let device = device!();
    let stream = device.default_stream();
    let mut k = 0_u32;
    let values = std::array::from_fn(|_| {
        k = k.wrapping_add(0x9e37_79b9);
        k
    });
    let mut out = stream.alloc_zeros::<u32>(2).unwrap();
    for i in [0_u32, 4000, 8187] {
        most_parameters(&stream, (1, 1), Most { values }, &mut out, i).unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [values[i as usize], i]);
    }
}

#[test]
fn vectors_are_elements_and_fields() {
    let device = device!();
    let stream = device.default_stream();
    let mut v = stream.alloc_zeros::<Float3>(5).unwrap();
    let b = Ball {
        id: 2,
        pos: Float4::new(1.0, 2.0, 3.0, 0.5),
    };
    let g = Float3::new(10.0, 20.0, 30.0);
    step(&stream, cover(5), b, &mut v, g, 5).unwrap();
    let moved = Float3::new(6.0, 12.0, 18.0);
    let rest = Float3::default();
    assert_eq!(
        stream.clone_dtoh(&v).unwrap(),
        [moved, moved, rest, moved, moved]
    );
}

#[test]
fn a_struct_of_scalars_is_taken_by_value() {
    let device = device!();
    let stream = device.default_stream();
    let g = Grid {
        x0: -1.5,
        dx: 0.1,
        n: 31,
    };
    let mut out = stream.alloc_zeros::<u32>(31 * 31).unwrap();
    // The kernel is of one dimension.
    julia(&stream, cover(31 * 31), &mut out, g).unwrap();
    let steps = stream.clone_dtoh(&out).unwrap();
    // The corner is far outside, the centre inside.
    assert_eq!(steps[0], 0);
    assert!(steps.iter().any(|&s| s > 20));
}

#[test]
fn a_pointer_in_a_struct_is_followed() {
    let device = device!();
    let stream = device.default_stream();
    let data = stream.clone_htod(&ramp(20)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(16).unwrap();
    let data = data.slice(4..);
    let table = Table {
        data: DevicePointer::of(&data).unwrap(),
        len: 12,
    };
    // SAFETY: the table is within `data`, and all work on it is on this stream.
    unsafe { look(&stream, cover(16), table, &mut out) }.unwrap();
    let mut expected = ramp(20)[4..].to_vec();
    expected[12..].fill(0.0);
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn a_pointer_is_of_an_array_that_a_kernel_could_take() {
    let device = device!();
    let stream = device.default_stream();
    let mut buffer = Buffer::<f32>::zeroed(&stream, 6).unwrap();
    let address = buffer.describe().unwrap().pointer();
    assert_eq!(DevicePointer::of(&buffer).unwrap().address(), address);
    let written = DevicePointerMut::of(&mut buffer).unwrap();
    assert_eq!(written.address(), address);
    let mut columns = Shaped::strided(&mut buffer, 0, [3, 2], [1, 3]);
    let refused = "the array is not contiguous: shape [3, 2], strides [1, 3] in elements; make it \
                   contiguous first, or declare the parameter `Strided<T, N>`";
    let read = DevicePointer::of(&columns).unwrap_err();
    assert_eq!(read.to_string(), refused);
    let written = DevicePointerMut::of(&mut columns).unwrap_err();
    assert_eq!(written.to_string(), refused);
    let mut frozen = Frozen(address);
    assert_eq!(DevicePointer::of(&frozen).unwrap().address(), address);
    let written = DevicePointerMut::of(&mut frozen).unwrap_err();
    assert_eq!(
        written.to_string(),
        "the kernel writes to it, but its owner lends it read-only; pass a writable copy"
    );
}

/// Six floats that are not to be written.
struct Frozen(u64);

// SAFETY: the floats are there, as nobody uses them.
unsafe impl AsDeviceView<f32> for Frozen {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(View::new(self.0, 6, Place::Device(0)).read_only())
    }

    fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

// SAFETY: as above.
unsafe impl AsDeviceViewMut<f32> for Frozen {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    fn acquire_mut<'a>(&'a mut self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}
