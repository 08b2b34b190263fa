//! Kernels that break their context: what is told, by which call, and that nothing panics after it.
//!
//! Each runs in a process of its own. A run under compute-sanitizer leaves this module out.

use gridcall::{
    LaunchError, LaunchErrorKind, LoadErrorKind, cover,
    cudarc::driver::{DriverError, sys::CUresult},
    kernel,
};

use crate::{
    kernels::{fill, saxpy},
    support::ramp,
};

const SYNC: [(&str, &str); 1] = [("GRIDCALL_SYNC", "1")];
const NO_SYNC: [(&str, &str); 1] = [("GRIDCALL_SYNC", "0")];

const TRAP_NOW_LINE: u32 = line!() + 7;

#[kernel(ptx = "../kernels/faults.ptx")]
unsafe extern "C" {
    /// # Safety
    ///
    /// One element a thread.
    unsafe fn trap_now(y: &mut [i32], index: i32);

    /// # Safety
    ///
    /// `n` elements.
    unsafe fn assert_fails(y: &[i32], n: i32);

    /// # Safety
    ///
    /// None but what the tests here are about.
    unsafe fn out_of_bounds(y: &mut [f32], i: i64);

    /// # Safety
    ///
    /// None but what the tests here are about.
    unsafe fn read_out_of_bounds(y: &[f32], i: i64, out: &mut [f32]);

    /// # Safety
    ///
    /// None but what the tests here are about.
    unsafe fn misaligned(y: &mut [u8], bytes: i64);
}

/// The code with which the kernel failed while it ran.
#[track_caller]
fn fault(result: Result<(), LaunchError>) -> u32 {
    let error = result.expect_err("the kernel fails");
    match error.kind() {
        LaunchErrorKind::Fault { code, .. } => code.code(),
        _ => panic!("{error}"),
    }
}

/// An innocent launch in a context that a trap broke.
#[track_caller]
fn assert_broken(error: &LaunchError) {
    let LaunchErrorKind::Broken(code) = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(code.code(), 719);
    let text = error.to_string();
    assert!(
        text.contains("the context is broken: an earlier kernel failed in it with "),
        "{text}"
    );
}

#[test]
fn a_trap_is_told_with_all_that_is_known_of_the_launch() {
    in_child!(SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.default_stream();
        let mut y = stream.alloc_zeros::<i32>(64).unwrap();
        // SAFETY: 64 threads for 64 elements; this process has nothing to lose.
        unsafe { trap_now(&stream, (2, 32), &mut y, 64) }.unwrap();
        // SAFETY: as above.
        let error = unsafe { trap_now(&stream, (2, 32), &mut y, 5) }.unwrap_err();
        let text = error.to_string();
        let declared = format!(
            "kernel `trap_now`: declared at {}:{TRAP_NOW_LINE}, failed while it ran: ",
            file!()
        );
        assert!(text.starts_with(&declared), "{text}");
        assert!(text.contains("(719)"), "{text}");
        let mut arguments = trap_now {
            y: &mut y,
            index: 5,
        };
        let launch = arguments.describe(&stream, (2, 32)).unwrap().to_string();
        assert!(text.ends_with(&format!("\n  {launch}")), "{text}\n{launch}");
    });
}

#[test]
fn a_launch_that_is_waited_for_works_as_ever() {
    in_child!(SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.new_stream().unwrap();
        let x = stream.clone_htod(&ramp(64)).unwrap();
        let mut y = stream.alloc_zeros::<f32>(64).unwrap();
        let kernel = saxpy::load(&device).unwrap();
        for _ in 0..3 {
            saxpy(&stream, cover(64), 64, 1.0, &x, &mut y).unwrap();
            let arguments = saxpy {
                n: 64,
                a: 1.0,
                x: &x,
                y: &mut y,
            };
            kernel.launch(&stream, cover(64), arguments).unwrap();
        }
        let expected: Vec<f32> = ramp(64).iter().map(|x| 6.0 * x).collect();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    });
}

#[test]
fn an_illegal_write_is_told_by_its_own_launch() {
    in_child!(SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.default_stream();
        let mut y = stream.alloc_zeros::<f32>(64).unwrap();
        // SAFETY: this process has nothing to lose.
        let code = fault(unsafe { out_of_bounds(&stream, (1, 1), &mut y, 1 << 40) });
        assert_eq!(code, 700);
    });
}

#[test]
fn an_illegal_read_is_told_by_its_own_launch() {
    in_child!(SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.default_stream();
        let y = stream.alloc_zeros::<f32>(64).unwrap();
        let mut out = stream.alloc_zeros::<f32>(1).unwrap();
        // SAFETY: this process has nothing to lose.
        let code = fault(unsafe { read_out_of_bounds(&stream, (1, 1), &y, 1 << 40, &mut out) });
        assert_eq!(code, 700);
    });
}

#[test]
fn a_misaligned_write_is_told_by_its_own_launch() {
    in_child!(SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.default_stream();
        let mut y = stream.alloc_zeros::<u8>(64).unwrap();
        // SAFETY: within the array and aligned.
        unsafe { misaligned(&stream, (1, 1), &mut y, 16) }.unwrap();
        // SAFETY: this process has nothing to lose.
        let code = fault(unsafe { misaligned(&stream, (1, 1), &mut y, 4) });
        assert_eq!(code, 716);
    });
}

#[test]
fn a_failed_assertion_is_told_by_its_own_launch() {
    in_child!(SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.default_stream();
        let y = stream.clone_htod(&[42, 42, 41, 42]).unwrap();
        // SAFETY: two elements of four, then four.
        unsafe { assert_fails(&stream, cover(2), &y, 2) }.unwrap();
        // SAFETY: as above.
        let code = fault(unsafe { assert_fails(&stream, cover(4), &y, 4) });
        assert_eq!(code, 710);
    });
}

#[test]
fn a_broken_context_is_told_as_broken_earlier_and_nothing_panics() {
    in_child!(NO_SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.new_stream().unwrap();
        let second = device.new_stream().unwrap();
        let x = stream.clone_htod(&ramp(64)).unwrap();
        let mut y = stream.alloc_zeros::<f32>(64).unwrap();
        let mut other = second.alloc_zeros::<f32>(64).unwrap();
        let mut broken = stream.alloc_zeros::<i32>(64).unwrap();
        let kernel = saxpy::load(&device).unwrap();
        fill(&second, cover(64), &mut other, 1.0, 64).unwrap();

        // The launch itself succeeds; the failure comes to light at a synchronisation.
        // SAFETY: 64 threads for 64 elements; this process has nothing to lose.
        unsafe { trap_now(&stream, (2, 32), &mut broken, 5) }.unwrap();
        let error = stream.synchronize().unwrap_err();
        assert_eq!(error, DriverError(CUresult::CUDA_ERROR_LAUNCH_FAILED));

        // Launches of innocent kernels fail for good, each as the innocent one it is.
        for _ in 0..2 {
            let error = fill(&second, cover(64), &mut other, 1.0, 64).unwrap_err();
            assert_broken(&error);
            let arguments = saxpy {
                n: 64,
                a: 1.0,
                x: &x,
                y: &mut y,
            };
            let error = kernel.launch(&stream, cover(64), arguments).unwrap_err();
            assert_broken(&error);
        }

        // A drop that fails stores its error in the context, and the next launch fetches it.
        drop(x);
        let error = fill(&second, cover(64), &mut other, 1.0, 64).unwrap_err();
        assert!(error.to_string().contains("an earlier "), "{error}");
        drop(broken);
        drop(kernel);
        drop(second);
        drop(y);
        drop(other);
        drop(stream);
        drop(device);
    });
}

#[test]
fn a_broken_context_tells_loading_too() {
    in_child!(NO_SYNC, {
        let device = gridcall::device(0).unwrap();
        let stream = device.default_stream();
        let mut broken = stream.alloc_zeros::<i32>(64).unwrap();
        // SAFETY: 64 threads for 64 elements; this process has nothing to lose.
        unsafe { trap_now(&stream, (2, 32), &mut broken, 5) }.unwrap();
        stream.synchronize().unwrap_err();
        let Err(error) = saxpy::load(&device) else {
            panic!("a kernel was loaded in a broken context");
        };
        let LoadErrorKind::Broken(code) = error.kind() else {
            panic!("{error}");
        };
        assert_eq!(code.code(), 719);
        let mut y = stream.null::<f32>();
        assert!(y.is_err() || fill(&stream, cover(1), y.as_mut().unwrap(), 1.0, 0).is_err());
    });
}
