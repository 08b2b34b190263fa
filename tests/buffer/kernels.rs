//! Declarations that more than one theme launches.

use gridcall::kernel;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);

    /// y ← a·y
    #[requires(y.len() >= n)]
    pub(crate) safe fn scale(y: &mut [f32], a: f32, n: i32);

    /// y ← v
    #[requires(y.len() >= n)]
    pub(crate) safe fn fill(y: &mut [f32], v: f32, n: i32);

    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    pub(crate) safe fn copy(input: &[f32], out: &mut [f32], n: i32);
}

#[kernel(ptx = "../kernels/timing.ptx")]
unsafe extern "C" {
    /// y ← y + v for each thread, after so many cycles
    #[requires(y.len() >= grid.x * block.x)]
    pub(crate) safe fn slow_add(y: &mut [f32], v: f32, cycles: i64);

    /// y ← x, what x holds after so many cycles
    #[requires(x.len() >= n, y.len() >= n)]
    pub(crate) safe fn slow_copy(x: &[f32], y: &mut [f32], n: i32, cycles: i64);

    /// Waits until flag[0] is not 0; seen[0] is what it then is
    pub(crate) unsafe fn spin_flag(flag: &[i32], seen: &mut [i32]);
}

#[kernel(ptx = "../kernels/faults.ptx")]
unsafe extern "C" {
    /// Stops with a trap in the thread of this index
    pub(crate) unsafe fn trap_now(y: &mut [i32], index: i32);
}
