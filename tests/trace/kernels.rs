//! Declarations that both launch.

use gridcall::kernel;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

#[kernel(ptx = "../kernels/timing.ptx")]
unsafe extern "C" {
    /// Waits until flag[0] is not 0; seen[0] is what it then is
    pub(crate) unsafe fn spin_flag(flag: &[i32], seen: &mut [i32]);
}
