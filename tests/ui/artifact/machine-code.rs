use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cubin = "kernels/nothing.cubin")]
unsafe fn relu(y: &mut [f32], n: i32);

#[kernel(ptx = "kernels/vector.ptx", cubin = "kernels/vector.ptx")]
unsafe fn scale(y: &mut [f32], a: f32, n: i32);

#[kernel(ptx = "kernels/vector.ptx", cubin = ["kernels/pick.sm_90.cubin", "kernels/cut.cubin"])]
unsafe fn fill(y: &mut [f32], v: f32, n: i32);

#[kernel(ptx = "kernels/vector.ptx", cubin = "kernels/pick.sm_90.cubin")]
unsafe extern "C" {
    fn zero(y: &mut [f32]);
}

#[kernel(cubin = "kernels/pick.sm_90.cubin")]
unsafe fn pick(out: &mut [u32]);

#[kernel(ptx = "kernels/pick.sm_75.ptx", cubin = "kernels/pick.sm_80.cubin", cubin = "kernels/pick.sm_90.cubin")]
#[name("pick")]
unsafe fn pick_twice(out: &mut [u32]);

#[kernel(ptx = "kernels/pick.sm_75.ptx", cubin)]
#[name("pick")]
unsafe fn pick_nothing(out: &mut [u32]);

fn main() {}
