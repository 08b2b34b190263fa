//! Does a kernel load once where it can, and tell why where it cannot?

use std::{sync::Barrier, thread};

use gridcall::{
    Kernel, LaunchErrorKind, LoadError, LoadErrorKind, Safe, cover,
    cudarc::driver::{sys, sys::CUmodule},
    kernel,
};

use crate::{
    kernels::{axpy, fill, saxpy, scale, slow_add},
    support::ramp,
};

#[kernel(ptx = "../kernels/handwritten/bad_instruction.ptx")]
unsafe fn bad_instruction(y: &mut [u32]);

#[kernel(ptx = "../kernels/handwritten/undefined_function.ptx")]
unsafe fn undefined_function(y: &mut [u32]);

#[kernel(ptx = "../kernels/handwritten/future_version.ptx")]
unsafe fn future_version(y: &mut [u32]);

#[kernel(ptx = "../kernels/handwritten/unknown_target.ptx")]
unsafe fn unknown_target(y: &mut [u32]);

/// There is no such file: `build.rs` lets the crate compile without.
#[kernel(ptx = "launch/images/made_elsewhere.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn made_elsewhere(y: &mut [f32], n: i32);
    static mut made_there: [f32; 4];
}

#[kernel(ptx = "../kernels/mangled.ptx")]
unsafe extern "C" {
    /// A template instance, which is weak.
    #[name("_Z3addIdEvPT_S0_i")]
    #[requires(y.len() >= n)]
    safe fn add_f64(y: &mut [f64], v: f64, n: i32);

    /// One of two overloads.
    #[name("_Z3addPfi")]
    #[requires(y.len() >= n)]
    safe fn increment(y: &mut [f32], n: i32);
}

/// The load error, whichever way it comes.
fn refused<K>(loaded: Result<K, LoadError>) -> LoadError {
    match loaded {
        Ok(_) => panic!("the driver took it"),
        Err(error) => error,
    }
}

#[test]
fn a_bad_instruction_is_told_with_file_and_line() {
    let device = device!();
    let error = refused(bad_instruction::load(&device));
    let LoadErrorKind::Jit { path, log, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(*path, "../kernels/handwritten/bad_instruction.ptx");
    assert!(
        log.contains("../kernels/handwritten/bad_instruction.ptx, line 14"),
        "{log}"
    );
    let text = error.to_string();
    assert!(
        text.starts_with(
            "kernel `bad_instruction`: the driver cannot compile \
             `../kernels/handwritten/bad_instruction.ptx`: "
        ),
        "{text}"
    );

    // The first launch says the same, and nothing is broken by it.
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<u32>(1).unwrap();
    // SAFETY: the kernel cannot be loaded.
    let error = unsafe { bad_instruction(&stream, (1, 1), &mut y) }.unwrap_err();
    let LaunchErrorKind::Load(error) = error.kind() else {
        panic!("{error}");
    };
    assert_eq!(error.to_string(), text);
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    fill(&stream, cover(4), &mut y, 1.0, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 4]);
}

#[test]
fn an_undefined_function_comes_with_advice() {
    let device = device!();
    let error = refused(undefined_function::load(&device));
    let LoadErrorKind::Jit { log, hint, .. } = error.kind() else {
        panic!("{error}");
    };
    assert!(log.contains("defined_elsewhere"), "{log}");
    assert!(hint.contains("-rdc"), "{error}");
}

#[test]
fn a_kernel_that_was_not_there_to_compile_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(4).unwrap();
    let missing = "the crate was compiled with signatures only, as `launch/images/made_elsewhere.ptx` \
                   was missing; make that file, and compile the crate again without \
                   GRIDCALL_SIGNATURES_ONLY";
    let kernel = format!("kernel `made_elsewhere`: {missing}");
    let error = refused(made_elsewhere::load(&device));
    assert_eq!(error.to_string(), kernel);
    let error = made_elsewhere(&stream, cover(4), &mut y, 4).unwrap_err();
    assert_eq!(error.to_string(), kernel);
    let error = made_there.read(&stream).unwrap_err();
    assert_eq!(error.to_string(), format!("symbol `made_there`: {missing}"));
}

#[test]
fn ptx_newer_than_the_driver_names_both_versions() {
    let device = device!();
    let error = refused(future_version::load(&device));
    let LoadErrorKind::PtxTooNew {
        ptx: (99, 0),
        driver,
        ..
    } = error.kind()
    else {
        panic!("{error}");
    };
    let cuda = format!("CUDA {}.{}", driver / 1000, driver % 1000 / 10);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "kernel `future_version`: `../kernels/handwritten/future_version.ptx` is PTX ISA 99.0, \
             and this driver supports up to "
        ) && text.contains(&cuda),
        "{text}"
    );
}

#[test]
fn ptx_for_another_architecture_names_both() {
    let device = device!();
    let (major, minor) = device.compute_capability().unwrap();
    let error = refused(unknown_target::load(&device));
    assert!(
        matches!(
            error.kind(),
            LoadErrorKind::WrongTarget {
                target: "sm_999",
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains(&format!("compute capability {major}.{minor}")),
        "{error}"
    );
}

#[test]
fn mangled_and_weak_entries_are_found() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f64>(8).unwrap();
    add_f64(&stream, cover(8), &mut y, 0.5, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.5; 8]);
    let mut y = stream.alloc_zeros::<f32>(8).unwrap();
    increment(&stream, cover(8), &mut y, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 8]);
}

#[test]
fn a_handle_launches_what_it_loaded() {
    struct Model {
        saxpy: Kernel<saxpy>,
    }

    let device = device!();
    let stream = device.default_stream();
    let model = Model {
        saxpy: saxpy::load(&device).unwrap(),
    };
    let x = stream.clone_htod(&ramp(100)).unwrap();
    let mut y = stream.alloc_zeros::<f32>(100).unwrap();
    for _ in 0..3 {
        let arguments = saxpy {
            n: 100,
            a: 1.0,
            x: &x,
            y: &mut y,
        };
        model.saxpy.launch(&stream, cover(100), arguments).unwrap();
    }
    let expected: Vec<f32> = ramp(100).iter().map(|x| 3.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);

    let again = model.saxpy.clone();
    assert_eq!(again.cu_function(), model.saxpy.cu_function());
    assert_eq!(
        saxpy::load(&device).unwrap().cu_function(),
        model.saxpy.cu_function()
    );
    assert!(again.max_threads_per_block() >= 256);
    assert_eq!(again.static_shared_mem_bytes(), 0);
    let shown = format!("{again:?}");
    assert!(
        shown.contains("saxpy") && shown.contains("vector.ptx"),
        "{shown}"
    );
}

#[test]
fn kernels_of_one_file_share_a_module() {
    let device = device!();
    let module = |function| {
        let mut module: CUmodule = std::ptr::null_mut();
        // SAFETY: the function is loaded, and the place takes the answer.
        let code = unsafe { sys::cuFuncGetModule(&raw mut module, function) };
        code.result().unwrap();
        module
    };
    let saxpy = saxpy::load(&device).unwrap();
    let axpy = axpy::load(&device).unwrap();
    let slow_add = slow_add::load(&device).unwrap();
    assert_eq!(module(saxpy.cu_function()), module(axpy.cu_function()));
    assert_ne!(module(saxpy.cu_function()), module(slow_add.cu_function()));
}

#[test]
fn sixteen_threads_load_one_kernel_at_once() {
    let device = device!();
    let start = Barrier::new(16);
    let functions: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16_u8)
            .map(|k| {
                let (device, start) = (&device, &start);
                scope.spawn(move || {
                    let stream = device.new_stream().unwrap();
                    let mut y = stream.clone_htod(&ramp(64)).unwrap();
                    start.wait();
                    scale(&stream, cover(64), &mut y, f32::from(k), 64).unwrap();
                    let expected: Vec<f32> = ramp(64).iter().map(|y| f32::from(k) * y).collect();
                    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
                    scale::load(device).unwrap().cu_function() as usize
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(functions.iter().all(|function| *function == functions[0]));
}

#[test]
fn handles_may_be_shared_and_sent() {
    fn is_shared_and_sent<T: Send + Sync + 'static>() {}
    is_shared_and_sent::<Kernel<saxpy>>();
    is_shared_and_sent::<Kernel<saxpy, Safe>>();
    is_shared_and_sent::<LoadError>();
    is_shared_and_sent::<gridcall::LaunchError>();
    is_shared_and_sent::<gridcall::Launch>();
    is_shared_and_sent::<gridcall::Prepared<'_, saxpy>>();
}
