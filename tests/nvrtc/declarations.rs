//! Is a declaration that is not that of the source refused, by the compiler's own word?

use gridcall::{
    KernelArg, kernel,
    nvrtc::{Cache, CompileErrorKind, Program},
};

const SOURCE: &str = "
    struct Window { float first; int count; double step; };
    __global__ void smooth(const float* x, float* y, Window w, unsigned n) { y[n] = x[0] * w.step; }
    extern \"C\" __device__ void cudaGraphSetConditional(cudaGraphConditionalHandle, unsigned);
    __global__ void set(cudaGraphConditionalHandle c, unsigned v) { cudaGraphSetConditional(c, v); }
    template <class T> __global__ void add(const T* x, T* y, long long n) { y[n] += x[n]; }
";

mod right {
    use super::*;

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Window {
        pub(super) first: f32,
        pub(super) count: i32,
        pub(super) step: f64,
    }

    #[kernel]
    unsafe extern "C" {
        pub(super) fn smooth(x: &[f32], y: &mut [f32], w: Window, n: u32);
        pub(super) fn set(c: GraphCondition, v: u32);
        #[instances(T = { f32, i32 })]
        pub(super) fn add<T>(x: &[T], y: &mut [T], n: i64);
    }
}

mod wrong {
    use super::*;

    /// The fields of the same sizes, in another order and of other types.
    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Window {
        pub(super) count: i32,
        pub(super) first: f32,
        pub(super) step: i64,
    }

    #[kernel]
    unsafe extern "C" {
        pub(super) fn smooth(x: &[i32], y: &mut [f32], w: Window, n: i32);
        #[name("smooth")]
        pub(super) fn written(x: &mut [f32], y: &mut [f32], w: super::right::Window, n: u32);
        #[name("smooth")]
        pub(super) fn too_few(x: &[f32], y: &mut [f32]);
        #[instances(T = { f32, u32 })]
        pub(super) fn add<T>(x: &[T], y: &mut [T], n: u64);
        pub(super) fn set(c: GraphCondition, v: GraphCondition);
        pub(super) fn no_such_kernel(x: &[f32]);
        #[name("_Z6smoothPKfPf6Windowj")]
        pub(super) fn lowered(x: &[f32], y: &mut [f32], w: super::right::Window, n: u32);
    }
}

fn program() -> Program {
    Program::new(SOURCE).name("smooth.cu").cache(Cache::off())
}

#[track_caller]
fn refused(program: &Program, texts: &[&str]) {
    let error = program.compile_for("compute_75").unwrap_err();
    assert!(
        matches!(error.kind(), CompileErrorKind::Declarations { .. }),
        "{error}"
    );
    for text in texts {
        assert!(error.to_string().contains(text), "no `{text}` in {error}");
    }
}

#[test]
fn right_declarations_compile_without_a_word() {
    nvrtc!();
    for standard in ["c++11", "c++14", "c++17", "c++20"] {
        let compiled = program()
            .option(format!("--std={standard}"))
            .kernel::<right::smooth>()
            .kernel::<right::set>()
            .instance::<right::add, f32>()
            .instance::<right::add, i32>()
            .compile_for("compute_75")
            .unwrap();
        assert_eq!(compiled.log(), "", "{standard}");
    }
}

#[test]
fn each_difference_is_told() {
    nvrtc!();
    let line = |part: &str| {
        include_str!("declarations.rs")
            .lines()
            .position(|line| line.contains(part))
            .unwrap()
            + 1
    };
    refused(
        &program().kernel::<wrong::smooth>(),
        &[
            "declarations differ from smooth.cu:",
            &format!(
                "nvrtc/declarations.rs:{}: parameter 0, `x`, of `smooth` is `&[i32]`, but the source declares `const float*`",
                line("fn smooth(x: &[i32]")
            ),
            "parameter 2, `w`, of `smooth` is `Window`: field `count` is at offset 0, but its offset in the source is `4`",
            "field `step` is `i64`, but the source declares `double`",
            "parameter 3, `n`, of `smooth` is `i32`, but the source declares `unsigned int`",
        ],
    );
    refused(
        &program().kernel::<wrong::written>(),
        &[
            "parameter 0, `x`, of `written` is `&mut [f32]`, but the kernel only reads `const float*`",
        ],
    );
    refused(
        &program().kernel::<wrong::too_few>(),
        &["`too_few` declares 2 parameters, but the number in the source is `4`"],
    );
    refused(
        &program().kernel::<wrong::set>(),
        &["parameter 1, `v`, of `set` is `GraphCondition`, but the source declares `unsigned int`"],
    );
    refused(
        &program().instance::<wrong::add, u32>(),
        &["parameter 2, `n`, of `add` is `u64`, but the source declares `long long`"],
    );
}

/// The PTX would have nothing against it.
#[test]
fn a_kernel_is_compared_when_it_is_taken() {
    nvrtc!();
    let device = device!();
    let module = program()
        .instance::<right::add, f32>()
        .load(&device)
        .unwrap();
    // SAFETY: what is refused is never launched.
    let error = unsafe { wrong::smooth::load_from(&module) }
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("`n`, of `smooth` is `i32`, but the source declares `unsigned int`"),
        "{error}"
    );
    // SAFETY: as above.
    let error = unsafe { wrong::add::load_from::<f32>(&module) }
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("`n`, of `add` is `u64`, but the source declares `long long`"),
        "{error}"
    );
    // SAFETY: what is loaded is as declared.
    unsafe { right::smooth::load_from(&module) }.unwrap();
    // SAFETY: as above.
    unsafe { right::add::load_from::<f32>(&module) }.unwrap();
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    nvrtc!();
    let error = program()
        .kernel::<wrong::no_such_kernel>()
        .compile_for("compute_75")
        .unwrap_err();
    let said = error.to_string();
    assert!(
        matches!(error.kind(), CompileErrorKind::NoKernel { .. }),
        "{said}"
    );
    assert!(
        said.starts_with(
            "smooth.cu compiles, but has no kernel `no_such_kernel`, or more than one:"
        ),
        "{said}"
    );
    assert!(
        said.contains("identifier \"no_such_kernel\" is undefined"),
        "{said}"
    );
    let error = program()
        .kernel::<wrong::lowered>()
        .compile_for("compute_75")
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("kernel `lowered` is declared by its lowered name `_Z6smoothPKfPf6Windowj`"),
        "{said}"
    );
}

/// What is wrong in the source itself is told alone.
#[test]
fn an_error_of_the_source_comes_first() {
    nvrtc!();
    let error = Program::new("__global__ void smooth(const float* x) {\n  undeclared = 1;\n}")
        .name("smooth.cu")
        .kernel::<wrong::smooth>()
        .cache(Cache::off())
        .compile_for("compute_75")
        .unwrap_err();
    let log = error.log().unwrap();
    assert!(
        log.contains("smooth.cu(2): error: identifier \"undeclared\" is undefined"),
        "{log}"
    );
    assert!(!log.contains("gridcall"), "{log}");
}
