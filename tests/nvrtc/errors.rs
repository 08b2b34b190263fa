//! Does everything that can go wrong end in an error that says what to do?

use gridcall::nvrtc::{Cache, CompileErrorKind, NameExpression, Program};

use crate::folder::Folder;

fn program(text: &str) -> Program {
    Program::new(text)
        .name("kernels/wrong.cu")
        .cache(Cache::off())
}

#[track_caller]
fn said(program: &Program, arch: &str) -> String {
    program.compile_for(arch).unwrap_err().to_string()
}

#[test]
fn an_error_has_its_file_and_line() {
    nvrtc!();
    let error = program("#include \"part.cuh\"\n\n__global__ void k(float* y) {\n  *y = 1.0f\n}\n")
        .header("part.cuh", "")
        .compile_for("compute_75")
        .unwrap_err();
    assert!(
        matches!(error.kind(), CompileErrorKind::Source { .. }),
        "{error}"
    );
    let log = error.log().unwrap();
    assert!(
        log.contains("kernels/wrong.cu(5): error: expected a \";\""),
        "{log}"
    );
    let shown = error.to_string();
    assert!(
        shown.starts_with("cannot compile kernels/wrong.cu for compute_75:\n"),
        "{shown}"
    );
    assert!(shown.contains("kernels/wrong.cu(5): error"), "{shown}");

    let in_header = program("#include \"part.cuh\"\n").header("part.cuh", "\nint f() { return }");
    let shown = said(&in_header, "compute_75");
    assert!(
        shown.contains("part.cuh(2): error: expected an expression"),
        "{shown}"
    );
}

#[test]
fn a_missing_header_is_named() {
    nvrtc!();
    let shown = said(&program("\n#include \"nowhere.cuh\"\n"), "compute_75");
    assert!(
        shown.contains("kernels/wrong.cu(2): catastrophic error"),
        "{shown}"
    );
    assert!(shown.contains("\"nowhere.cuh\""), "{shown}");
    assert!(shown.contains("`Program::include_path`"), "{shown}");
    let other = said(&program("int f() { return }"), "compute_75");
    assert!(!other.contains("include_path"), "{other}");
}

#[test]
fn warnings_are_kept() {
    nvrtc!();
    let compiled = program("__global__ void k(float* y) {\n  int unused;\n  *y = 1;\n}")
        .compile_for("compute_75")
        .unwrap();
    assert!(
        compiled
            .log()
            .contains("kernels/wrong.cu(2): warning #177-D"),
        "{}",
        compiled.log()
    );
}

#[test]
fn what_nvrtc_does_not_know_is_told() {
    nvrtc!();
    let shown = said(&program("").option("--nonsense"), "compute_75");
    assert!(shown.contains("unrecognized option --nonsense"), "{shown}");
    let shown = said(&program("").option("-arch=sm_90"), "compute_75");
    assert!(
        shown.starts_with("option `-arch=sm_90`: the architecture is the device's"),
        "{shown}"
    );
    let shown = said(&program(""), "compute_12");
    assert!(
        shown.contains("invalid value for --gpu-architecture"),
        "{shown}"
    );
    let shown = said(&program(""), "turing");
    assert_eq!(
        shown,
        "`turing` is no architecture: write `compute_90` for PTX, or `sm_90` for machine code too"
    );
    let shown = said(&program("").name_expression("absent<float>"), "compute_75");
    assert!(
        shown.contains("identifier \"absent\" is undefined"),
        "{shown}"
    );
}

#[test]
fn what_no_compiler_is_asked_for_is_told() {
    nvrtc!();
    let array = NameExpression::template("scale").ty::<[f32; 3]>();
    let shown = said(&program("").name_expression(array), "compute_75");
    assert!(
        shown.contains(
            "an argument of the template `scale` has no name in C++: [f32; 3]; write the whole name"
        ),
        "{shown}"
    );
    let shown = said(&program("a\0b"), "compute_75");
    assert_eq!(shown, "nvrtcCreateProgram failed: a text holds a NUL");
    let shown = said(&Program::from_file("no/such/file.cu"), "compute_75");
    assert!(
        shown.starts_with("cannot read no/such/file.cu: "),
        "{shown}"
    );
    // The relative path is one of the working folder's.
    let folder = std::env::current_dir().unwrap();
    assert!(
        shown.ends_with(&format!("working folder, {}", folder.display())),
        "{shown}"
    );
}

#[test]
fn a_missing_library_is_no_panic() {
    in_child!(without_device[("GRIDCALL_NVRTC", "no/such/libnvrtc.so")], {
        let shown = said(&program(""), "compute_75");
        assert!(
            shown.starts_with(
                "no NVRTC found: `no/such/libnvrtc.so` cannot be opened; install the CUDA toolkit"
            ),
            "{shown}"
        );
        assert!(shown.contains("GRIDCALL_NVRTC"), "{shown}");
    });
}

#[test]
fn a_library_that_is_another_is_no_panic() {
    let folder = Folder::new(this_test!());
    folder.write("libnvrtc.so", "no library");
    let other = folder.path("libnvrtc.so");
    in_child!(
        without_device[("GRIDCALL_NVRTC", other.to_str().unwrap())],
        {
            let shown = said(&program(""), "compute_75");
            // The file is that of the process which started this one.
            assert!(
                shown.contains("libnvrtc.so` ("),
                "the reason is missing: {shown}"
            );
        }
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_without_the_functions_is_no_panic() {
    in_child!(without_device[("GRIDCALL_NVRTC", "libc.so.6")], {
        let shown = said(&program(""), "compute_75");
        assert!(shown.contains("too old: it has no `nvrtc"), "{shown}");
    });
}
