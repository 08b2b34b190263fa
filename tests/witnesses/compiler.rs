//! The CUDA compiler as a witness. Without one, these tests say that they were skipped.

use std::panic::catch_unwind;

use gridcall::{Float4, Int4, KernelArg, kernel};

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

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Window {
        pub(super) first: i32,
        pub(super) gain: f32,
    }

    #[kernel(ptx = "witnesses/variables.ptx", cuda = "witnesses/variables.cu")]
    unsafe extern "C" {
        pub(super) static mut taps: [f32; 5];
        pub(super) static mut windows: [Window; 2];
        pub(super) static mut limit: u32;
        pub(super) static mut hits: u32;
        pub(super) static marks: [bool; 4];
        #[name("wide")]
        pub(super) static mut WIDE: [Float4; 2];
        #[name("wide")]
        pub(super) static mut NARROW: [[f32; 4]; 2];
        pub(super) static ramp: [f32; 3];
        #[name("hidden")]
        pub(super) static mut HIDDEN: [f32; 3];
        pub(super) static bytes: [u8; 8];
        #[name("_ZZ3useE5calls")]
        pub(super) static mut CALLS: u32;
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

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Window {
        pub(super) gain: f32,
        pub(super) first: i32,
    }

    #[kernel(ptx = "witnesses/variables.ptx", cuda = "witnesses/variables.cu")]
    unsafe extern "C" {
        pub(super) static mut taps: [u32; 5];
        pub(super) static mut windows: [Window; 2];
        pub(super) static mut limit: i32;
        pub(super) static marks: [u8; 4];
        #[name("wide")]
        pub(super) static mut WIDE: [Int4; 2];
        pub(super) static mut ramp: [f32; 3];
        #[name("hidden")]
        pub(super) static mut HIDDEN: [i32; 3];
        pub(super) static bytes: [i8; 8];
    }
}

/// Declared as the PTX is that was compiled before the source changed: other variables are in it.
mod stale {
    use super::*;

    #[kernel(ptx = "witnesses/stale.ptx", cuda = "witnesses/variables.cu")]
    unsafe extern "C" {
        pub(super) static mut taps: [f32; 7];
        pub(super) static mut limit: u32;
        pub(super) static mut hits: u32;
        pub(super) static flags: [bool; 4];
        #[name("wide")]
        pub(super) static mut WIDE: [Eight; 1];
        #[name("_ZZ3useE5calls")]
        pub(super) static mut CALLS: u64;
        #[name("_ZZ3useE4gone")]
        pub(super) static mut GONE: u32;
    }

    /// Aligned to more than the source does.
    #[derive(Clone, Copy, KernelArg)]
    #[repr(C, align(32))]
    pub(super) struct Eight {
        pub(super) all: [f32; 8],
    }
}

/// Kernels that call functions.
mod calling {
    use gridcall::DeviceFn;

    use super::*;

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Line {
        pub(super) slope: f32,
        pub(super) offset: f64,
    }

    #[kernel(ptx = "../kernels/functions.ptx", cuda = "../kernels/functions.cu")]
    unsafe extern "C" {
        pub(super) fn map(op: DeviceFn<fn(f32) -> f32>, x: &[f32], y: &mut [f32], n: u32);
        pub(super) fn map_in_place(op: DeviceFn<fn(f32) -> f32>, y: &mut [f32], n: u32);
        pub(super) fn zip(x: &[f32], y: &mut [f32], n: u32, fold: DeviceFn<fn(f32, f32) -> f32>);
        pub(super) fn draw(on: DeviceFn<fn(Line, f32) -> f64>, line: Line, y: &mut [f64]);
        pub(super) fn compare(
            test: DeviceFn<fn(i16, bool) -> bool>,
            limit: i16,
            strict: bool,
            y: &mut [u8],
        );
        pub(super) fn tally(count: DeviceFn<fn(*mut u32, u64)>, counter: &mut [u32]);
    }
}

/// Functions of other types, by names that only a compiler looks behind.
mod calling_others {
    use gridcall::DeviceFn;

    use super::*;

    #[derive(Clone, Copy, KernelArg)]
    #[repr(C)]
    pub(super) struct Line {
        pub(super) scale: f32,
        pub(super) offset: f64,
    }

    pub(super) type Op = fn(i32) -> f32;
    pub(super) type Fold = fn(f32, f32) -> u32;
    pub(super) type OnLine = fn(Line, f32) -> f64;
    pub(super) type Test = fn(i16, bool) -> u16;

    #[kernel(ptx = "../kernels/functions.ptx", cuda = "../kernels/functions.cu")]
    unsafe extern "C" {
        pub(super) fn map(op: DeviceFn<Op>, x: &[f32], y: &mut [f32], n: u32);
        pub(super) fn zip(x: &[f32], y: &mut [f32], n: u32, fold: DeviceFn<Fold>);
        pub(super) fn draw(on: DeviceFn<OnLine>, line: super::calling::Line, y: &mut [f64]);
        pub(super) fn compare(test: DeviceFn<Test>, limit: i16, strict: bool, y: &mut [u8]);
    }
}

#[test]
fn right_declarations_hold() {
    gridcall::verify!(right::drift, right::condense);
}

#[test]
fn functions_are_compared_in_full() {
    use calling::*;
    gridcall::verify!(map, map_in_place, zip, draw, compare, tally);
    if !gridcall::__private::has_compiler() {
        println!("not run, as there is no CUDA compiler");
        return;
    }
    let said = catch_unwind(|| {
        use calling_others::*;
        gridcall::verify!(map, zip, draw, compare);
    });
    let said = said.unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    for line in [
        "parameter 0, `op`, of `map` is `DeviceFn<Op>`: parameter 0 of the function is `i32`, but the source declares `float`",
        "parameter 3, `fold`, of `zip` is `DeviceFn<Fold>`: the result of the function is `u32`, but the source declares `float`",
        "parameter 0, `on`, of `draw` is `DeviceFn<OnLine>`: parameter 0 of the function: field `scale`, but the struct in \
         the source has no such field",
        "parameter 0, `test`, of `compare` is `DeviceFn<Test>`: the result of the function is `u16`, but the source declares `",
    ] {
        assert!(said.contains(line), "no `{line}` in\n{said}");
    }
    assert!(!said.contains("parameter 1 of the function"), "{said}");
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

#[test]
fn right_variables_hold() {
    use right::*;
    gridcall::verify!(
        taps, windows, limit, hits, marks, WIDE, NARROW, ramp, HIDDEN, bytes, CALLS
    );
}

fn differences(verify: impl FnOnce() + std::panic::UnwindSafe) -> Vec<String> {
    let said = catch_unwind(verify).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    let (first, lines) = said.split_once('\n').unwrap();
    assert_eq!(first, "declarations differ from their CUDA source:");
    let line = |line: &str| {
        let (place, line) = line.split_once(": ").unwrap();
        assert!(place.contains("witnesses/compiler.rs:"), "{place}");
        line.to_owned()
    };
    lines.lines().map(line).collect()
}

#[test]
fn differences_of_variables_name_their_types() {
    if !gridcall::__private::has_compiler() {
        println!("not run, as there is no CUDA compiler");
        return;
    }
    use wrong::*;
    let said = differences(|| {
        gridcall::verify!(taps, windows, limit, marks, WIDE, ramp, HIDDEN, bytes);
    });
    let expected = [
        "`taps` is `[u32; 5]`, but the source declares `real[5]`",
        "`windows` is `[Window; 2]`: field `gain` is at offset 0, but its offset in the source is `4`",
        "`windows` is `[Window; 2]`: field `first` is at offset 4, but its offset in the source is `0`",
        "`limit` is `i32`, but the source declares `count_t`",
        "`marks` is `[u8; 4]`, but the source declares `bool[4]`",
        "`WIDE` is `[Int4; 2]`, but the source declares `real[8]`",
        "`ramp` is `static mut`, but it never changes in the source, which declares `const real[3]`",
        "`HIDDEN` is `[i32; 3]`, but the source declares `real[3]`",
        "`bytes` is `[i8; 8]`, but the source declares `unsigned char[8]`",
    ];
    assert_eq!(said, expected, "{said:#?}");
}

#[test]
fn a_source_that_has_changed_is_told() {
    if !gridcall::__private::has_compiler() {
        println!("not run, as there is no CUDA compiler");
        return;
    }
    use stale::*;
    let said = differences(|| {
        gridcall::verify!(taps, limit, hits, flags, WIDE, CALLS, GONE);
    });
    let expected = [
        "`flags` is `flags` of the source, but the compiler says `identifier \"flags\" is undefined`",
        "`taps` is `[f32; 7]`, of 28 bytes, but its bytes in the source are `20`",
        "`WIDE` is `[Eight; 1]`: field `all`, but the struct in the source has no such field",
        "`WIDE` is `[Eight; 1]`, aligned to 32 bytes, but the source aligns it to `16`",
        "`limit` is `limit` in `.global` at witnesses/stale.ptx:16, but the source now puts it in `.const`: \
         compile the PTX again",
        "`CALLS` is `_ZZ3useE5calls` in `.global` at witnesses/stale.ptx:21, but the source now declares it \
         `.global .u32`: compile the PTX again",
        "`GONE` is `_ZZ3useE4gone` in `.global` at witnesses/stale.ptx:22, but the source now gives no such \
         variable: compile the PTX again",
    ];
    assert_eq!(said, expected, "{said:#?}");
}

/// Every spelling of a parameter, by the compiler itself.
#[test]
fn the_signatures_hold() {
    use crate::right::sm_75::*;
    include!("all.rs");
}
