//! How fast kernels run: thread instructions a second in a loop of arithmetic, elements a second of axpy.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    clippy::many_single_char_names,
    clippy::match_same_arms,
    clippy::similar_names,
    clippy::too_many_lines,
    reason = "the values of a test are small, and wanted exactly"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use support::{Memory, Params, launch, lower, run};

const LOOP: &str = "
.version 8.5
.target sm_90
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 rounds) {
    .reg .pred %p<2>;
    .reg .b32 %r<12>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    cvt.rn.f32.u32 %f1, %r2;
    mov.f32 %f2, 0f3F800000;
    mov.f32 %f3, 0f3F000000;
    mov.u32 %r3, 0;
    mov.u32 %r6, %r2;
loop:
    fma.rn.f32 %f4, %f1, %f3, %f2;
    mul.f32 %f5, %f4, 0f3F7D70A4;
    add.f32 %f1, %f5, %f3;
    mad.lo.s32 %r6, %r6, 1664525, 1013904223;
    shr.u32 %r4, %r6, 3;
    xor.b32 %r6, %r6, %r4;
    fma.rn.f32 %f2, %f2, %f3, %f5;
    and.b32 %r5, %r6, 1023;
    add.s32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra loop;
    add.f32 %f6, %f1, %f2;
    cvt.rn.f32.u32 %f7, %r5;
    add.f32 %f6, %f6, %f7;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f6;
    ret;
}";

const AXPY: &str = "
.version 8.5
.target sm_90
.address_size 64
.visible .entry axpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<8>;
    ld.param.u32 %r2, [n];
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra done;
    cvta.to.global.u64 %rd3, %rd2;
    cvta.to.global.u64 %rd4, %rd1;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd6, %rd4, %rd5;
    ld.global.f32 %f2, [%rd6];
    add.s64 %rd7, %rd3, %rd5;
    ld.global.f32 %f3, [%rd7];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd7], %f4;
done:
    ret;
}";

/// The best of a few runs, in seconds.
fn best(mut job: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            job();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let program = lower(LOOP);
    let mut instructions = 0;
    let seconds = best(|| {
        let mut memory = Memory::new();
        let out = memory.hold(vec![0; 4 * 256]);
        let mut spin = launch(
            &program,
            "spin",
            Params::new().u64(out).u32(20_000).done(),
            Vec::new(),
        );
        spin.block = [256, 1, 1];
        spin.step_budget = 0;
        instructions = run(&mut memory, spin)
            .expect("a loop that ends")
            .thread_instructions;
    });
    println!(
        "compute loop: {:.0} million thread instructions a second",
        instructions as f64 / seconds / 1e6
    );

    let program = lower(AXPY);
    let n = 1 << 22;
    let mut memory = Memory::new();
    let x = memory.hold_f32(&vec![1.0; n]);
    let y = memory.hold_f32(&vec![2.0; n]);
    let seconds = best(|| {
        let params = Params::new().u32(n as u32).f32(2.0).u64(x).u64(y).done();
        let mut axpy = launch(&program, "axpy", params, Vec::new());
        axpy.block = [256, 1, 1];
        axpy.grid = [(n as u32).div_ceil(256), 1, 1];
        axpy.step_budget = 0;
        run(&mut memory, axpy).expect("an axpy without a fault");
    });
    println!(
        "axpy: {:.1} million elements a second",
        n as f64 / seconds / 1e6
    );
}
