//! Is a launch told in one line, with all that is known of it?

use gridcall::{
    DevicePointer, DevicePointerMut, Float4, KernelArg, LaunchErrorKind, Module, Shaped, cover,
    cudarc::driver::{CudaSlice, CudaStream, DevicePtr},
    kernel,
};

use crate::kernels::saxpy;

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Ball {
    id: i32,
    pos: Float4,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Big {
    value: [u32; 2048],
}

#[kernel(ptx = "../kernels/structs.ptx")]
unsafe extern "C" {
    #[requires(out.len() >= 32)]
    safe fn dump_ball(b: Ball, out: &mut [u8]);
}

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    #[requires(out.len() >= 1, i < 2048)]
    safe fn big_param(b: Big, out: &mut [u32], i: u32);

    #[requires(x_or_null.is_none() || x_or_null.len() >= n, out.len() >= n)]
    safe fn maybe(x_or_null: Option<&[f32]>, out: &mut [f32], n: i32);
}

#[kernel(ptx = "../kernels/cooperative.ptx")]
unsafe extern "C" {
    #[cooperative]
    #[requires(n >= 1, rounds >= 0, a.len() >= n, b.len() >= n)]
    safe fn rotate(a: &mut [i32], b: &mut [i32], n: i32, rounds: i32);
}

#[kernel(ptx = "../kernels/strided.ptx")]
unsafe extern "C" {
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// # Safety
    ///
    /// Never launched here.
    #[name("copy")]
    unsafe fn copy_raw(input: *const f32, out: *mut f32, n: i32);
}

#[kernel]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn relu(y: &mut [f32], n: i32);
}

/// A text with each address in place of a `@`.
fn with(text: &str, addresses: &[u64]) -> String {
    let mut addresses = addresses.iter();
    let parts = text.split('@').map(|part| match addresses.next() {
        Some(address) => format!("{part}{address:#x}"),
        None => part.to_owned(),
    });
    parts.collect()
}

fn address<T>(array: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    array.device_ptr(stream).0
}

#[test]
fn scalars_and_arrays_are_told() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let x = stream.clone_htod(&[1.0_f32; 1000]).unwrap();
    let mut y = stream.clone_htod(&[2.0_f32; 1024]).unwrap();
    let at = [
        stream.cu_stream() as u64,
        address(&x, &stream),
        address(&y, &stream),
    ];
    let mut arguments = saxpy {
        n: 1000,
        a: 0.5,
        x: &x,
        y: &mut y,
    };
    let launch = cover(1000).block(128).shared_mem_bytes(64);
    let described = arguments.describe(&stream, launch).unwrap();
    let text = with(
        "saxpy: grid (8, 1, 1), block (128, 1, 1), 64 bytes of dynamic shared memory, device 0, \
         stream @; n: u32 = 1000, a: f32 = 0.5, x: &[f32] = 1000 elements at @, y: &mut [f32] = \
         1024 elements at @",
        &at,
    );
    assert_eq!(described.to_string(), text);
    assert_eq!(format!("{described:?}"), text);
    assert_eq!(described.kernel(), "saxpy");
    assert_eq!(described.device(), 0);
    assert_eq!(<[u32; 3]>::from(described.grid()), [8, 1, 1]);
    assert_eq!(<[u32; 3]>::from(described.block()), [128, 1, 1]);
    assert_eq!(described.shared_mem_bytes(), 64);
    // Nothing was launched, and the arguments are as good as before.
    let kernel = saxpy::load(&device).unwrap();
    let by_handle = kernel.describe(&stream, launch, &mut arguments).unwrap();
    assert_eq!(by_handle.to_string(), text);
    arguments.launch(&stream, launch).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap()[..1000], [2.5; 1000]);
}

/// What is said behind the launch's shape.
fn arguments(text: &str) -> &str {
    text.split_once("; ").unwrap().1
}

#[test]
fn structs_are_told_by_their_fields() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u8>(32).unwrap();
    let at = [address(&out, &stream)];
    let b = Ball {
        id: -7,
        pos: Float4::new(1.0, 2.0, 3.0, 4.5),
    };
    let text = dump_ball { b, out: &mut out }
        .describe(&stream, (1, 1))
        .unwrap()
        .to_string();
    let expected = "b: Ball = { id: -7, pos: [1, 2, 3, 4.5] }, out: &mut [u8] = 32 elements at @";
    assert_eq!(arguments(&text), with(expected, &at));

    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    let at = [address(&out, &stream)];
    let mut value = [0; 2048];
    value[1] = 9;
    let b = Big { value };
    let out = &mut out;
    let text = big_param { b, out, i: 3 }
        .describe(&stream, (1, 1))
        .unwrap()
        .to_string();
    let expected = "b: Big = { value: [0, 9, 0, 0, 0, 0, 0, 0, ..] of 2048 }, out: &mut [u32] = 1 \
                    elements at @, i: u32 = 3";
    assert_eq!(arguments(&text), with(expected, &at));
}

#[test]
fn arrays_of_all_kinds_are_told() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32; 6]).unwrap();
    let mut y = stream.clone_htod(&[1.0_f32; 6]).unwrap();
    let (at_x, at_y) = (address(&x, &stream), address(&y, &stream));

    let none = maybe {
        x_or_null: None,
        out: &mut y,
        n: 6,
    }
    .describe(&stream, cover(6));
    assert_eq!(
        arguments(&none.unwrap().to_string()),
        with(
            "x_or_null: Option<&[f32]> = none, out: &mut [f32] = 6 elements at @, n: i32 = 6",
            &[at_y]
        )
    );
    let some = maybe {
        x_or_null: Some(&x),
        out: &mut y,
        n: 6,
    }
    .describe(&stream, cover(6));
    assert_eq!(
        arguments(&some.unwrap().to_string()),
        with(
            "x_or_null: Option<&[f32]> = 6 elements at @, out: &mut [f32] = 6 elements at @, n: \
             i32 = 6",
            &[at_x, at_y]
        )
    );

    let columns = Shaped::strided(&x, 1, [2, 2], [3, 1]);
    let mut out = Shaped::new(&mut y, [2, 2]);
    let strided = copy_2d {
        input: &columns,
        out: &mut out,
    }
    .describe(&stream, cover((2, 2)));
    assert_eq!(
        arguments(&strided.unwrap().to_string()),
        with(
            "input: Strided<f32, 2> = shape [2, 2], strides [3, 1] at @, out: StridedMut<f32, 2> = \
             shape [2, 2], strides [2, 1] at @",
            &[at_x + 4, at_y]
        )
    );

    let (input, out) = (
        DevicePointer::from_address(at_x),
        DevicePointerMut::from_address(at_y),
    );
    let raw = copy_raw { input, out, n: 6 }.describe(&stream, cover(6));
    assert_eq!(
        arguments(&raw.unwrap().to_string()),
        with(
            "input: *const f32 = @, out: *mut f32 = @, n: i32 = 6",
            &[at_x, at_y]
        )
    );
}

#[test]
fn attributes_are_told() {
    let device = device!();
    let stream = device.default_stream();
    let mut a = stream.alloc_zeros::<i32>(4).unwrap();
    let mut b = stream.alloc_zeros::<i32>(4).unwrap();
    let described = rotate {
        a: &mut a,
        b: &mut b,
        n: 4,
        rounds: 1,
    }
    .describe(&stream, cover(4).block(32).priority(0))
    .unwrap();
    assert!(
        described.to_string().starts_with(
            "rotate: grid (1, 1, 1), block (32, 1, 1), 0 bytes of dynamic shared memory, a \
             cooperative grid, priority 0, device 0, stream "
        ),
        "{described}"
    );
}

#[test]
fn a_kernel_of_a_module_is_told() {
    let device = device!();
    let text = include_str!("../../kernels/vector.ptx");
    let module = Module::from_ptx(&device, text).unwrap();
    // SAFETY: it is the kernel that is declared.
    let kernel = unsafe { relu::load_from(&module) }.unwrap();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    let at = [address(&y, &stream)];
    let mut four = relu { y: &mut y, n: 4 };
    let described = kernel.describe(&stream, cover(4), &mut four).unwrap();
    assert_eq!(
        arguments(&described.to_string()),
        with("y: &mut [f32] = 4 elements at @, n: i32 = 4", &at)
    );
}

#[test]
fn what_would_be_refused_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut y = stream.clone_htod(&[2.0_f32; 4]).unwrap();
    let mut arguments = saxpy {
        n: 5,
        a: 0.5,
        x: &x,
        y: &mut y,
    };
    let error = arguments.describe(&stream, cover(5)).unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Requirement { .. }));
    arguments.n = 4;
    let error = arguments.describe(&stream, (0, 32)).unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Geometry(_)));
    let nothing = arguments.describe(&stream, cover(0)).unwrap();
    assert!(
        nothing
            .to_string()
            .starts_with("saxpy: grid (0, 1, 1), block (256, 1, 1)")
    );
}
