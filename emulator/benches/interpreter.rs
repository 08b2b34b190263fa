//! How fast kernels run: thread instructions a second in a loop of arithmetic, elements a second of axpy and
//! of blocks turned around across a barrier, multiplications a second of a product of matrices in shared
//! memory; and the same in plain Rust.

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

/// Each block of 256 elements turned around, through shared memory.
const REVERSE: &str = "
.version 8.5
.target sm_90
.address_size 64
.visible .entry reverse(.param .u64 x, .param .u64 y) {
    .reg .b32 %r<8>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<6>;
    .shared .align 4 .b8 tile[1024];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.f32 %f1, [%rd4];
    shl.b32 %r5, %r3, 2;
    mov.u32 %r6, tile;
    add.s32 %r7, %r6, %r5;
    st.shared.f32 [%r7], %f1;
    bar.sync 0;
    sub.s32 %r7, %r6, %r5;
    ld.shared.f32 %f2, [%r7+1020];
    add.s64 %rd5, %rd2, %rd3;
    st.global.f32 [%rd5], %f2;
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

/// What the loop computes, on one thread.
fn spin(thread: u32, rounds: u32) -> f32 {
    let (mut a, mut b, mut x, mut low) = (thread as f32, 1.0_f32, thread, 0);
    for _ in 0..rounds {
        let c = a.mul_add(0.5, b);
        let d = c * 0.99;
        a = d + 0.5;
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        x ^= x >> 3;
        b = b.mul_add(0.5, d);
        low = x & 1023;
    }
    a + b + low as f32
}

fn main() {
    compute_loop();
    axpy();
    barrier();
    product();
    empty();
}

fn compute_loop() {
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
    let seconds = best(|| {
        let sum: f32 = (0..256)
            .map(|thread| spin(std::hint::black_box(thread), 20_000))
            .sum();
        std::hint::black_box(sum);
    });
    println!(
        "  in plain Rust: {:.0} million of the same a second",
        instructions as f64 / seconds / 1e6
    );
}

fn axpy() {
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
    let (host_x, mut host_y) = (vec![1.0_f32; n], vec![2.0_f32; n]);
    let seconds = best(|| {
        for (y, x) in host_y.iter_mut().zip(&host_x) {
            *y = x.mul_add(std::hint::black_box(2.0), *y);
        }
    });
    println!(
        "  in plain Rust: {:.0} million elements a second",
        n as f64 / seconds / 1e6
    );
}

fn barrier() {
    let program = lower(REVERSE);
    let n = 1 << 22;
    let mut memory = Memory::new();
    let host_x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (x, y) = (memory.hold_f32(&host_x), memory.allocate(4 * n));
    let seconds = best(|| {
        let params = Params::new().u64(x).u64(y).done();
        let mut reverse = launch(&program, "reverse", params, Vec::new());
        reverse.block = [256, 1, 1];
        reverse.grid = [n as u32 / 256, 1, 1];
        reverse.step_budget = 0;
        run(&mut memory, reverse).expect("a turn without a fault");
    });
    println!(
        "a barrier in each block: {:.1} million elements a second",
        n as f64 / seconds / 1e6
    );
    let mut host_y = vec![0.0; n];
    let seconds = best(|| {
        for (y, x) in host_y.chunks_mut(256).zip(host_x.chunks(256)) {
            for (y, x) in y.iter_mut().zip(x.iter().rev()) {
                *y = std::hint::black_box(*x);
            }
        }
    });
    println!(
        "  in plain Rust: {:.0} million elements a second",
        n as f64 / seconds / 1e6
    );
    assert_eq!(memory.f32s(y), host_y, "the same elements");
}

fn product() {
    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ptx/tests/corpus");
    let text = std::fs::read_to_string(format!("{CORPUS}/matmul_tiled.nvrtc13.sm_90.ptx"))
        .expect("a text");
    let program = lower(&text);
    let n = 256;
    let mut memory = Memory::new();
    let (a, b) = (
        memory.hold_f32(&vec![0.5; n * n]),
        memory.hold_f32(&vec![2.0; n * n]),
    );
    let c = memory.allocate(4 * n * n);
    let mut stats = None;
    let seconds = best(|| {
        let params = Params::new()
            .u64(a)
            .u64(b)
            .u64(c)
            .u32(n as u32)
            .u32(n as u32)
            .u32(n as u32)
            .done();
        let mut product = launch(&program, "matmul_tiled", params, Vec::new());
        product.block = [16, 16, 1];
        product.grid = [n as u32 / 16, n as u32 / 16, 1];
        product.step_budget = 0;
        stats = Some(run(&mut memory, product).expect("a product without a fault"));
    });
    let instructions = stats.map_or(0, |stats| stats.thread_instructions);
    println!(
        "product of matrices: {:.0} million multiplications a second, {:.0} million thread instructions",
        (n * n * n) as f64 / seconds / 1e6,
        instructions as f64 / seconds / 1e6
    );
}

fn empty() {
    let program = lower(AXPY);
    let mut memory = Memory::new();
    let y = memory.hold_f32(&[1.0; 32]);
    let seconds = best(|| {
        for _ in 0..1000 {
            let params = Params::new().u32(0).f32(2.0).u64(y).u64(y).done();
            run(&mut memory, launch(&program, "axpy", params, Vec::new())).expect("a launch");
        }
    });
    println!(
        "a launch of one warp that does nothing: {:.2} microseconds",
        seconds * 1e3
    );
}
