//! Is a kernel taken from a module that is known only when the program runs, and the best of
//! several images?

use std::{env, ffi::c_void, fs, ptr, sync::Arc};

use gridcall::{
    LoadErrorKind, Module, cover,
    cudarc::driver::{CudaContext, sys},
    kernel,
};

use crate::support::ramp;

const VECTOR: &str = include_str!("../../kernels/vector.ptx");

#[kernel]
unsafe extern "C" {
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

/// Declarations of kernels that no module has.
mod absent {
    use gridcall::kernel;

    #[kernel]
    unsafe extern "C" {
        pub(super) fn no_such_kernel(y: &mut [f32], n: i32);
        pub(super) fn rleu(y: &mut [f32], n: i32);
        pub(super) fn add(y: &mut [f32], n: i32);
        pub(super) fn square(y: &mut [f32], n: i32);
        pub(super) fn requierd(y: &mut [f32], n: i32);
        pub(super) fn helper(y: &mut [f32], n: i32);
    }
}

/// Declarations that are not those of the kernels.
mod wrong {
    use gridcall::kernel;

    #[kernel]
    unsafe extern "C" {
        pub(super) fn saxpy(n: u32, a: f32, x: &[f32]);
        pub(super) fn axpy(n: i32, a: f64, x: &[f32], y: &mut [f32]);
        pub(super) fn relu(y: &[f32], n: i32);
        pub(super) fn scale(y: u64, a: f32, n: i32);
        pub(super) fn fill(y: &mut [f32], v: f32, n: i32, more: u32);
    }
}

/// Writes the number of the architecture that its image is for.
#[kernel(ptx = [
    "launch/images/pick.sm_75.ptx",
    "launch/images/pick.sm_80.ptx",
    "launch/images/pick.sm_121a.ptx",
])]
unsafe extern "C" {
    #[requires(out.len() >= 1)]
    safe fn pick(out: &mut [u32]);
}

#[kernel(ptx = [
    "launch/images/pick.sm_120a.ptx",
    "launch/images/pick.sm_121a.ptx",
])]
#[name("pick")]
unsafe fn pick_far(out: &mut [u32]);

/// What ptxas makes of the kernel for `sm_80` and `sm_90` writes 1080 and 1090.
#[kernel(
    ptx = "launch/images/pick.sm_75.ptx",
    cubin = ["launch/images/pick.sm_80.cubin", "launch/images/pick.sm_90.cubin"],
)]
unsafe extern "C" {
    #[name("pick")]
    #[requires(out.len() >= 1)]
    safe fn pick_cubin(out: &mut [u32]);
}

/// The same two in one file, and no PTX for any device.
#[kernel(
    ptx = ["launch/images/pick.sm_120a.ptx", "launch/images/pick.sm_121a.ptx"],
    cubin = "launch/images/pick.fatbin",
)]
unsafe extern "C" {
    #[name("pick")]
    #[requires(out.len() >= 1)]
    safe fn pick_fatbin(out: &mut [u32]);
}

/// What was compiled from another source, for `sm_90`, takes a second parameter.
#[kernel(
    ptx = "launch/images/pick.sm_75.ptx",
    cubin = "launch/images/pick_more.sm_90.cubin"
)]
unsafe extern "C" {
    #[name("pick")]
    #[requires(out.len() >= 1)]
    safe fn pick_more(out: &mut [u32]);
}

/// Takes the kernel from a module and runs it.
fn runs(context: &Arc<CudaContext>, module: &Module) {
    // SAFETY: both images are made of the kernel that is declared.
    let kernel = unsafe { saxpy::load_from(module) }.unwrap();
    let stream = context.default_stream();
    let x = stream.clone_htod(&ramp(1000)).unwrap();
    let mut y = stream.clone_htod(&ramp(1000)).unwrap();
    let arguments = saxpy {
        n: 1000,
        a: 2.0,
        x: &x,
        y: &mut y,
    };
    kernel.launch(&stream, cover(1000), arguments).unwrap();
    let expected: Vec<f32> = ramp(1000).iter().map(|x| 3.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_kernel_is_taken_from_text() {
    let device = device!();
    let module = Module::from_ptx(&device, VECTOR).unwrap();
    assert!(module.entries().unwrap().contains(&"saxpy"));
    runs(&device, &module);
}

#[test]
fn a_kernel_is_taken_from_a_file() {
    let device = device!();
    let path = std::env::temp_dir().join(format!("gridcall-{}.ptx", std::process::id()));
    fs::write(&path, VECTOR).unwrap();
    let module = Module::from_file(&device, &path);
    fs::remove_file(&path).unwrap();
    runs(&device, &module.unwrap());
    let error = Module::from_file(&device, &path).unwrap_err();
    assert!(
        matches!(error.kind(), LoadErrorKind::Read { .. }),
        "{error}"
    );
}

/// What the driver's linker makes of PTX.
pub(crate) fn cubin(context: &CudaContext, text: &str) -> Vec<u8> {
    context.bind_to_thread().unwrap();
    let mut state = ptr::null_mut();
    let text = [text.as_bytes(), b"\0"].concat();
    let (mut image, mut size) = (ptr::null_mut::<c_void>(), 0);
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "one object from its making to its end"
    )]
    // SAFETY: the text ends with a NUL and is as long as is said; the image is copied before the
    // state that holds it is destroyed.
    unsafe {
        sys::cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &raw mut state)
            .result()
            .unwrap();
        sys::cuLinkAddData_v2(
            state,
            sys::CUjitInputType::CU_JIT_INPUT_PTX,
            text.as_ptr().cast_mut().cast(),
            text.len(),
            c"text".as_ptr(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
        .result()
        .unwrap();
        sys::cuLinkComplete(state, &raw mut image, &raw mut size)
            .result()
            .unwrap();
        let cubin = std::slice::from_raw_parts(image.cast::<u8>(), size).to_vec();
        sys::cuLinkDestroy(state).result().unwrap();
        cubin
    }
}

#[test]
fn a_kernel_is_taken_from_a_cubin() {
    let device = device!();
    let image = cubin(&device, VECTOR);
    if !image.starts_with(b"\x7fELF") {
        println!("not run, as this driver's linker makes no cubin");
        return;
    }
    // SAFETY: the driver made the image.
    let module = unsafe { Module::from_image(&device, &image) }.unwrap();
    assert_eq!(module.entries(), None);
    runs(&device, &module);
    // SAFETY: what is refused is never launched.
    let too_few = unsafe { wrong::saxpy::load_from(&module) }.err();
    // SAFETY: as above.
    let too_wide = unsafe { wrong::axpy::load_from(&module) }.err();
    // SAFETY: as above.
    let too_many = unsafe { wrong::fill::load_from(&module) }.err();
    // SAFETY: as above.
    let absent = unsafe { absent::rleu::load_from(&module) }.err();
    for (error, text) in [
        (
            too_few,
            "it declares 3 parameters, and the kernel in the image takes more",
        ),
        (too_wide, "parameter 1, `a`, is 8 bytes"),
        (too_many, "parameter 3, `more`"),
        (
            absent,
            "finds no entry `rleu` in the image; did you mean `relu`?",
        ),
    ] {
        let error = error.unwrap().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn what_differs_from_the_text_is_told_with_its_line() {
    let device = device!();
    let module = Module::from_ptx(&device, VECTOR).unwrap();
    let line = |part: &str| {
        let at = VECTOR.lines().position(|line| line.contains(part)).unwrap();
        format!("the PTX:{}", at + 1)
    };
    for (error, texts) in [
        (
            // SAFETY: what is refused is never launched.
            unsafe { wrong::saxpy::load_from(&module) }.err(),
            [
                format!(
                    "it declares 3 parameters, the PTX entry at {} has 4",
                    line(".entry saxpy(")
                ),
                "it takes (.u32, .f32, .u64, .u64)".to_owned(),
            ],
        ),
        (
            // SAFETY: as above.
            unsafe { wrong::axpy::load_from(&module) }.err(),
            [
                "parameter 1, `a`, is `f64` (8 bytes)".to_owned(),
                format!(
                    "but {} declares `.f32` (4 bytes)",
                    line(".f32 axpy_param_1,")
                ),
            ],
        ),
        (
            // SAFETY: as above.
            unsafe { wrong::relu::load_from(&module) }.err(),
            [
                "parameter 0, `y`, is `&[f32]`, but the kernel writes to it at the PTX:".to_owned(),
                String::new(),
            ],
        ),
        (
            // SAFETY: as above.
            unsafe { wrong::scale::load_from(&module) }.err(),
            [
                "parameter 0, `y`, is `u64`, but the kernel takes it for an address at the PTX:"
                    .to_owned(),
                String::new(),
            ],
        ),
    ] {
        let error = error.unwrap();
        assert!(matches!(error.kind(), LoadErrorKind::Mismatch { .. }));
        for text in texts {
            assert!(error.to_string().contains(&text), "no `{text}` in {error}");
        }
    }
}

#[test]
fn an_entry_that_is_not_there_is_told_with_what_is() {
    const FEW: &str = include_str!("../../kernels/handwritten/required.ptx");
    const CPP: &str = include_str!("../../kernels/mangled.ptx");
    const FUNCTION: &str = ".version 8.0\n.target sm_75\n.address_size 64\n\
                            .visible .func helper(.param .b64 y) { ret; }\n";
    let device = device!();
    let [vector, few, cpp, function] =
        [VECTOR, FEW, CPP, FUNCTION].map(|text| Module::from_ptx(&device, text).unwrap());
    for (error, text) in [
        (
            // SAFETY: what is refused is never launched.
            unsafe { absent::no_such_kernel::load_from(&vector) }.err(),
            "kernel `no_such_kernel`: no entry `no_such_kernel` in the PTX; it has 14 entries, such \
             as `saxpy`, `axpy`, `scale`, `fill`, `zero`, `gather`, `relu`, `copy`",
        ),
        (
            // SAFETY: as above.
            unsafe { absent::rleu::load_from(&vector) }.err(),
            "kernel `rleu`: no entry `rleu` in the PTX; did you mean `relu`?",
        ),
        (
            // SAFETY: as above.
            unsafe { absent::requierd::load_from(&few) }.err(),
            "kernel `requierd`: no entry `requierd` in the PTX; did you mean `required`? it has \
             `required`, `required_2d`",
        ),
        (
            // SAFETY: as above.
            unsafe { absent::add::load_from(&cpp) }.err(),
            "kernel `add`: no entry `add` in the PTX; as C++ names it there is `_Z3addPfi`, \
             `_Z3addPdi`, `_Z3addIfEvPT_S0_i`, `_Z3addIdEvPT_S0_i`: choose it by #[name(\"..\")], or \
             declare it `extern \"C\"`",
        ),
        (
            // SAFETY: as above.
            unsafe { absent::square::load_from(&cpp) }.err(),
            "kernel `square`: no entry `square` in the PTX; as C++ names it there is \
             `_ZN5stats6squareEPfi`: choose it by #[name(\"..\")], or declare it `extern \"C\"`",
        ),
        (
            // SAFETY: as above.
            unsafe { absent::helper::load_from(&function) }.err(),
            "kernel `helper`: `helper` is a device function at the PTX:4, not a kernel: declare it \
             `__global__`",
        ),
        (
            // SAFETY: as above.
            unsafe { absent::add::load_from(&function) }.err(),
            "kernel `add`: no entry `add` in the PTX: it has no kernels at all",
        ),
    ] {
        assert_eq!(error.unwrap().to_string(), text);
    }
}

#[test]
fn what_is_no_ptx_is_told() {
    let device = device!();
    let error = Module::from_ptx(
        &device,
        ".version 8.0\n.target sm_75\n.entry k(.param .u99 n) {}",
    );
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "not the PTX that it should be: the PTX:3:17: expected a type, found `.u99`"
    );
    let source = "extern \"C\" __global__ void k(unsigned n) {}";
    let error = Module::from_ptx(&device, source).unwrap_err().to_string();
    assert_eq!(
        error,
        "not the PTX that it should be: the PTX:1:1: this is not PTX: it begins with `extern` \
         instead of `.version`; compile CUDA source first, by NVRTC or `nvcc -ptx`"
    );
    let path = env::temp_dir().join(format!("{}-no.ptx", std::process::id()));
    fs::write(
        &path,
        ".version 8.0\n.target sm_75\n.entry k(.param .u99 n) {}",
    )
    .unwrap();
    let error = Module::from_file(&device, &path).unwrap_err().to_string();
    fs::remove_file(&path).unwrap();
    let place = format!("should be: {}:3:17: expected a type", path.display());
    assert!(error.contains(&place), "{error}");
    let bad = include_str!("../../kernels/handwritten/bad_instruction.ptx");
    let error = Module::from_ptx(&device, bad).unwrap_err();
    let LoadErrorKind::Module { log, .. } = error.kind() else {
        panic!("{error}")
    };
    assert!(log.contains("the PTX, line 14"), "{log}");
}

#[test]
fn the_best_image_is_loaded() {
    let device = device!();
    let (major, minor) = device.compute_capability().unwrap();
    let expected = match 10 * major + minor {
        121 => 121,
        80.. => 80,
        _ => 75,
    };
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    pick(&stream, cover(1), &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [expected]);
}

#[test]
fn machine_code_for_the_device_is_loaded_in_place_of_ptx() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    let code = match device.compute_capability().unwrap() {
        _ if gridcall_emulator::is_installed() => None,
        (8, _) => Some(1080),
        (9, 0) => Some(1090),
        _ => None,
    };
    pick_cubin(&stream, cover(1), &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [code.unwrap_or(75)]);
    let fat = pick_fatbin(&stream, cover(1), &mut out);
    match code {
        Some(number) => {
            fat.unwrap();
            assert_eq!(stream.clone_dtoh(&out).unwrap(), [number]);
        }
        None => {
            let error = fat.unwrap_err().to_string();
            assert!(error.contains("is compiled for `sm_120a`"), "{error}");
        }
    }
    // An emulator is given none, which it would have to report.
    let reports = gridcall_emulator::reports();
    let refused = |report: &gridcall_emulator::Report| report.message.contains("machine code");
    assert!(!reports.iter().any(refused));
}

#[test]
fn machine_code_of_other_parameters_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    let launched = pick_more(&stream, cover(1), &mut out);
    if gridcall_emulator::is_installed() || device.compute_capability().unwrap() != (9, 0) {
        launched.unwrap();
        return;
    }
    assert_eq!(
        launched.unwrap_err().to_string(),
        "kernel `pick_more`: it declares 1 parameter, and the kernel in \
         launch/images/pick_more.sm_90.cubin takes more"
    );
}

#[test]
fn images_are_listed_where_none_fits() {
    let device = device!();
    let (major, _) = device.compute_capability().unwrap();
    if major >= 12 {
        return;
    }
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(1).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { pick_far(&stream, cover(1), &mut out) }.unwrap_err();
    let listed = "there are `launch/images/pick.sm_120a.ptx` for `sm_120a`, \
                  `launch/images/pick.sm_121a.ptx` for `sm_121a`";
    assert!(error.to_string().contains(listed), "{error}");
}
