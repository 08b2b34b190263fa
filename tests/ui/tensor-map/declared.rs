use gridcall::kernel;

#[kernel(ptx = "kernels/tensor_map.ptx")]
unsafe extern "C" {
    safe fn load_tile(map: &[f32], out: &mut [f32], row: i32, column: i32);
    #[name("load_tile")]
    safe fn other(map: TensorMap<f32>, out: TensorMapMut<f32>, row: i32, column: i32);
    #[name("fill_tile")]
    safe fn aligned(value: f32, #[align(128)] map: TensorMapMut<f32>, row: i32, column: i32);
}

fn main() {}
