//! Kernels that do nothing, with as many parameters as their names say.

use gridcall::kernel;

#[kernel(ptx = "../kernels/scalars.ptx")]
unsafe extern "C" {
    /// No parameters.
    #[requires(grid.x >= 1, block.x <= 1024)]
    pub safe fn empty0();

    /// Two arrays and two scalars.
    #[requires(x.len() >= n, y.len() >= n)]
    pub safe fn empty4(x: &[f32], y: &mut [f32], alpha: f32, n: i32);

    /// Eight arrays and two scalars.
    #[requires(a.len() >= n, y.len() >= n)]
    pub safe fn empty10(
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

    /// Ten arrays and two scalars.
    #[requires(a.len() >= n, y.len() >= n)]
    pub safe fn empty12(
        a: &[f32],
        b: &[f32],
        c: &[f32],
        d: &[f32],
        e: &[f32],
        f: &[f32],
        g: &[f32],
        h: &[f32],
        i: &[f32],
        y: &mut [f32],
        alpha: f32,
        n: i32,
    );
}
