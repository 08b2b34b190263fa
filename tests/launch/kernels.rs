//! Declarations that more than one theme launches. Special ones stand beside their tests.

use gridcall::kernel;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);

    /// y ← a·x + y, the count signed
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn axpy(n: i32, a: f32, x: &[f32], y: &mut [f32]);

    /// y ← a·y
    #[requires(y.len() >= n)]
    pub(crate) safe fn scale(y: &mut [f32], a: f32, n: i32);

    /// y ← v
    #[requires(y.len() >= n)]
    pub(crate) safe fn fill(y: &mut [f32], v: f32, n: i32);

    /// y ← max(y, 0)
    #[requires(y.len() >= n)]
    pub(crate) safe fn relu(y: &mut [f32], n: i32);

    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    pub(crate) safe fn copy(input: &[f32], out: &mut [f32], n: i32);

    /// y ← x, sixteen bytes at a time
    #[requires(x.len() >= n4 * 4, y.len() >= n4 * 4)]
    pub(crate) safe fn copy4(#[align(16)] x: &[f32], #[align(16)] y: &mut [f32], n4: i32);

    /// out ← a + b
    #[requires(a.len() >= n, b.len() >= n, out.len() >= n)]
    pub(crate) safe fn add_f64(a: &[f64], b: &[f64], out: &mut [f64], n: i32);

    /// `out` ← `input` transposed
    #[requires(input.len() >= rows * cols, out.len() >= rows * cols, total <= rows * cols)]
    pub(crate) safe fn transpose(input: &[f32], out: &mut [f32], rows: i32, cols: i32, total: i32);
}

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    /// y ← alpha·(a + b + c + d + e + f + g)
    #[requires(
        a.len() >= n,
        b.len() >= n,
        c.len() >= n,
        d.len() >= n,
        e.len() >= n,
        f.len() >= n,
        g.len() >= n,
        y.len() >= n
    )]
    pub(crate) safe fn many10(
        a: &[f32],
        b: &[f32],
        c: &[f32],
        d: &[f32],
        e: &[f32],
        f: &[f32],
        g: &[f32],
        y: &mut [f32],
        alpha: f32,
        n: i32,
    );
}

#[kernel(ptx = "../kernels/grid.ptx")]
unsafe extern "C" {
    /// Twelve values a thread: gridDim, blockDim, blockIdx, threadIdx
    #[requires(out.len() >= grid.blocks() * block.threads() * 12)]
    pub(crate) safe fn where_am_i(out: &mut [u32]);

    /// out[0] ← out[0] + 1 for each thread
    #[requires(out.len() >= 1)]
    pub(crate) safe fn count_threads(out: &mut [u64]);
}

#[kernel(ptx = "../kernels/timing.ptx")]
unsafe extern "C" {
    /// y ← y + v for each thread, after so many cycles
    #[requires(y.len() >= grid.x * block.x)]
    pub(crate) safe fn slow_add(y: &mut [f32], v: f32, cycles: i64);

    /// y ← x, after so many cycles
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn slow_copy(x: &[f32], y: &mut [f32], n: i32, cycles: i64);

    /// Waits until `flag[0]` is not 0, and copies it to `seen[0]`.
    ///
    /// # Safety
    ///
    /// Both must have an element, and someone must write the flag.
    pub(crate) unsafe fn spin_flag(flag: &[i32], seen: &mut [i32]);
}
