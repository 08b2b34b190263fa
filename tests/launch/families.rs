//! Generic declarations, one for several entries.

use std::sync::Arc;

use gridcall::{AsDeviceView, cover, cudarc::driver::CudaStream, kernel};

use crate::support::ramp;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← y + x
    #[instances(T = { f64 => "add_f64" })]
    #[requires(a.len() >= n, b.len() >= n, out.len() >= n)]
    pub safe fn plus<T>(a: &[T], b: &[T], out: &mut [T], n: i32);
}

#[kernel(ptx = "../kernels/mangled.ptx")]
unsafe extern "C" {
    /// y ← y + v, for every type that the template has an instance of.
    #[requires(y.len() >= n)]
    safe fn add<T>(y: &mut [T], v: T, n: i32);
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// # Safety
    ///
    /// All arrays have `n` elements.
    #[instances(T = { f64 => "add_f64" })]
    fn plus_unchecked<T>(a: &[T], b: &[T], out: &mut [T], n: i32);
}

#[kernel]
unsafe extern "C" {
    #[instances(T = { f64 => "add_f64" })]
    #[requires(a.len() >= n, b.len() >= n, out.len() >= n)]
    safe fn plus_later<T>(a: &[T], b: &[T], out: &mut [T], n: i32);
}

#[test]
fn each_type_has_its_entry() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&ramp(100)).unwrap();
    add(&stream, cover(100), &mut y, 1.0_f32, 100).unwrap();
    let expected: Vec<f32> = ramp(100).iter().map(|x| x + 1.0).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);

    let mut y = stream.clone_htod(&[1.0_f64, 2.0]).unwrap();
    add(&stream, cover(2), &mut y, 0.5, 2).unwrap();
    add {
        y: &mut y,
        v: 0.5,
        n: 2,
    }
    .launch(&stream, cover(2))
    .unwrap();
    let handle = add::load::<f64>(&device).unwrap();
    let arguments = add {
        y: &mut y,
        v: 1.0,
        n: 2,
    }
    .arguments();
    handle.launch(&stream, cover(2), arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0, 4.0]);
    let error = add(&stream, cover(2), &mut y, 1.0, 3).unwrap_err();
    assert!(error.to_string().contains("y.len() >= n"), "{error}");
}

/// In generic code, the type need not be known.
fn twice<T: AsDeviceView<f64>>(stream: &Arc<CudaStream>, x: &T) -> Vec<f64> {
    let mut out = stream.alloc_zeros::<f64>(2).unwrap();
    plus(stream, cover(2), x, x, &mut out, 2).unwrap();
    stream.clone_dtoh(&out).unwrap()
}

#[test]
fn listed_instances_are_launched() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f64, 2.0]).unwrap();
    assert_eq!(twice(&stream, &x), [2.0, 4.0]);
    let mut out = stream.alloc_zeros::<f64>(2).unwrap();
    // SAFETY: all have two elements.
    unsafe { plus_unchecked(&stream, cover(2), &x, &x, &mut out, 2) }.unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [2.0, 4.0]);
}

#[test]
fn an_instance_is_taken_from_a_module() {
    let device = device!();
    let stream = device.default_stream();
    let module =
        gridcall::Module::from_ptx(&device, include_str!("../../kernels/vector.ptx")).unwrap();
    // SAFETY: the module holds the kernel that is declared.
    let kernel = unsafe { plus_later::load_from::<f64>(&module) }.unwrap();
    let x = stream.clone_htod(&[1.0_f64, 2.0]).unwrap();
    let mut out = stream.alloc_zeros::<f64>(2).unwrap();
    let arguments = plus_later {
        a: &x,
        b: &x,
        out: &mut out,
        n: 2,
    }
    .arguments();
    kernel.launch(&stream, cover(2), arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [2.0, 4.0]);
}
