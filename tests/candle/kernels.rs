//! The kernels of these tests.

use gridcall::kernel;

#[kernel(ptx = "../../kernels/vector.ptx")]
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

    /// out[i] ← x[idx[i]]
    #[requires(idx.len() >= n, out.len() >= n)]
    pub(crate) unsafe fn gather(x: &[f32], idx: &[i32], out: &mut [f32], n: i32);
}

#[kernel(ptx = "../../kernels/strided.ptx")]
unsafe extern "C" {
    /// out ← input
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    pub(crate) safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);

    /// out ← a + b
    #[requires(a.extent(0) == out.extent(0), a.extent(1) == out.extent(1))]
    #[requires(b.extent(0) == out.extent(0), b.extent(1) == out.extent(1))]
    pub(crate) safe fn add_2d(a: Strided<f32, 2>, b: Strided<f32, 2>, out: StridedMut<f32, 2>);
}
