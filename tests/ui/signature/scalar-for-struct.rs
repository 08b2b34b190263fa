use gridcall::kernel;

#[kernel(ptx = "kernels/structs.ptx")]
unsafe extern "C" {
    safe fn step(b: u64, v: &mut [[f32; 3]], g: [f32; 4], n: i32);
}

fn main() {}
