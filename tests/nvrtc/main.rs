//! CUDA source that is compiled by NVRTC while the program runs.
//!
//! A test begins with `nvrtc!()`, which says so and ends the test where there is none;
//! `GRIDCALL_TEST_REQUIRE_NVRTC=1` makes that a failure.

#[expect(
    dead_code,
    reason = "shared with the tests of launching, which need more of it"
)]
#[macro_use]
#[path = "../launch/support.rs"]
mod support;

/// Goes on where there is NVRTC.
macro_rules! nvrtc {
    () => {
        if !crate::has_nvrtc(this_test!()) {
            return;
        }
    };
}

mod cache;
mod declarations;
mod errors;
mod folder;
mod programs;

// What `support` asks for.
mod kernels {
    use gridcall::kernel;

    #[kernel(ptx = "../kernels/timing.ptx")]
    unsafe extern "C" {
        /// # Safety
        ///
        /// Both must have an element, and someone must write the flag.
        pub(crate) unsafe fn spin_flag(flag: &[i32], seen: &mut [i32]);
    }
}

fn has_nvrtc(test: &str) -> bool {
    use gridcall::nvrtc::{Cache, CompileErrorKind, Program};

    let compiled = Program::new("")
        .cache(Cache::off())
        .compile_for("compute_75");
    let Err(error) = compiled else { return true };
    assert!(
        matches!(error.kind(), CompileErrorKind::NoLibrary { .. }),
        "{error}"
    );
    let required =
        std::env::var_os("GRIDCALL_TEST_REQUIRE_NVRTC").is_some_and(|value| value == "1");
    assert!(!required, "NVRTC is required: {error}");
    support::say(&format!("{test}: SKIPPED, for want of NVRTC: {error}"));
    false
}
