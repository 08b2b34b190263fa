//! The kernels of these tests.

use gridcall::kernel;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);

    /// y ← a·y
    #[requires(y.len() >= n)]
    pub(crate) safe fn scale(y: &mut [f32], a: f32, n: i32);

    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    pub(crate) safe fn copy(input: &[f32], out: &mut [f32], n: i32);

    /// y ← x, sixteen bytes at a time
    #[requires(x.len() >= n4 * 4, y.len() >= n4 * 4)]
    pub(crate) safe fn copy4(#[align(16)] x: &[f32], #[align(16)] y: &mut [f32], n4: i32);

    /// out[i] ← x[idx[i]]
    #[requires(idx.len() >= n, out.len() >= n)]
    pub(crate) unsafe fn gather(x: &[f32], idx: &[i32], out: &mut [f32], n: i32);

    /// out[r] ← the sum of row r of x
    #[requires(x.len() >= rows * cols, out.len() >= rows)]
    pub(crate) safe fn rowsum(x: &[f32], out: &mut [f32], rows: i32, cols: i32);
}

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    /// out[i] ← whether a[i] is b[i], or is not
    #[requires(a.len() >= n, b.len() >= n, out.len() >= n)]
    pub(crate) safe fn all_eq(a: &[f32], b: &[f32], n: i32, invert: bool, out: &mut [bool]);
}

#[kernel(ptx = "../kernels/timing.ptx")]
unsafe extern "C" {
    /// y ← y + v for each thread, after so many cycles
    #[requires(y.len() >= grid.x * block.x)]
    pub(crate) safe fn slow_add(y: &mut [f32], v: f32, cycles: i64);

    /// y ← x, after so many cycles
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn slow_copy(x: &[f32], y: &mut [f32], n: i32, cycles: i64);

    /// Waits for the host
    pub(crate) unsafe fn spin_flag(flag: &[i32], seen: &mut [i32]);
}

#[kernel(ptx = "../kernels/strided.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() == y.len())]
    pub(crate) safe fn saxpy_1d(a: f32, x: Strided<f32, 1>, y: StridedMut<f32, 1>);

    /// out ← input
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    pub(crate) safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);

    /// out ← a + b
    #[requires(a.extent(0) == out.extent(0), a.extent(1) == out.extent(1))]
    #[requires(b.extent(0) == out.extent(0), b.extent(1) == out.extent(1))]
    pub(crate) safe fn add_2d(a: Strided<f32, 2>, b: Strided<f32, 2>, out: StridedMut<f32, 2>);

    /// out[i] ← the sum of x[i] over the last dimension
    #[requires(out.len() >= n, x.extent(0) * x.extent(1) >= n)]
    pub(crate) safe fn sum_last(x: Strided<i32, 3>, out: &mut [i32], n: i32);
}
