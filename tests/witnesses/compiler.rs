//! The CUDA compiler as a witness. Without one, these tests say that they were skipped.

use std::panic::catch_unwind;

use gridcall::{KernelArg, kernel};

mod right {
    use super::*;

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Particle {
        pub(super) x: f32,
        pub(super) y: f32,
        pub(super) id: i32,
    }

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Cloud {
        pub(super) first: Particle,
        pub(super) weight: [f32; 3],
    }

    #[kernel(ptx = "witnesses/hidden.ptx", cuda = "witnesses/hidden.cu")]
    unsafe extern "C" {
        pub(super) fn drift(p: Particle, x: &[f32], y: &mut [f32], n: u32);
        pub(super) fn condense(all: &[Particle], out: &mut [Cloud], n: u32);
    }
}

mod wrong {
    use super::*;

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Particle {
        pub(super) y: f32,
        pub(super) x: f32,
        pub(super) id: u32,
    }

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Cloud {
        pub(super) first: Particle,
        pub(super) mass: [f32; 3],
    }

    #[kernel(ptx = "witnesses/hidden.ptx", cuda = "witnesses/hidden.cu")]
    unsafe extern "C" {
        pub(super) fn drift(p: Particle, x: &[i32], y: &mut [f32], n: i32);
        pub(super) fn condense(all: &[Particle], out: &mut [Cloud], n: u32);
    }
}

#[test]
fn right_declarations_hold() {
    gridcall::verify!(right::drift, right::condense);
}

#[test]
fn differences_name_the_field() {
    if !gridcall::__private::has_compiler() {
        println!("not run, as there is no CUDA compiler");
        return;
    }
    let said = catch_unwind(|| gridcall::verify!(wrong::drift, wrong::condense)).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    for line in [
        "parameter 0, `p`, of `drift` is `Particle`: field `y` is at offset 0, but its offset in the source is `4`",
        "parameter 0, `p`, of `drift` is `Particle`: field `x` is at offset 4, but its offset in the source is `0`",
        "parameter 0, `p`, of `drift` is `Particle`: field `id` is `u32`, but the source declares `int`",
        "parameter 1, `x`, of `drift` is `&[i32]`, but the source declares `const real*`",
        "parameter 3, `n`, of `drift` is `i32`, but the source declares `count_t`",
        "parameter 1, `out`, of `condense` is `&mut [Cloud]`: field `first`: field `y` is at offset 0, but its \
         offset in the source is `4`",
        "parameter 1, `out`, of `condense` is `&mut [Cloud]`: field `mass`, but the struct in the source has \
         no such field",
    ] {
        assert!(said.contains(line), "no `{line}` in\n{said}");
    }
    assert!(said.contains("witnesses/compiler.rs:"), "{said}");
    assert!(!said.contains("`y`, of `drift`"), "{said}");
}

/// Every spelling of a parameter, by the compiler itself.
#[test]
fn the_signatures_hold() {
    use crate::right::sm_75::*;
    include!("all.rs");
}
