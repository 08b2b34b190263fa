//! The kernels, checked against their PTX while this compiles.

use gridcall::kernel;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);

    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    pub safe fn copy(input: &[f32], out: &mut [f32], n: i32);

    /// y ← a·y
    #[requires(y.len() >= n)]
    pub safe fn scale(y: &mut [f32], a: f32, n: i32);
}

#[kernel(ptx = "../kernels/strided.ptx")]
unsafe extern "C" {
    /// out ← a + b
    #[requires(a.extent(0) == out.extent(0), a.extent(1) == out.extent(1))]
    #[requires(b.extent(0) == out.extent(0), b.extent(1) == out.extent(1))]
    pub safe fn add_2d(a: Strided<f32, 2>, b: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    /// out[i] ← whether a[i] is b[i], or is not
    #[requires(a.len() >= n, b.len() >= n, out.len() >= n)]
    pub safe fn all_eq(a: &[f32], b: &[f32], n: i32, invert: bool, out: &mut [bool]);

    /// Does nothing.
    pub safe fn empty4(x: &[f32], y: &mut [f32], a: f32, n: i32);
}
