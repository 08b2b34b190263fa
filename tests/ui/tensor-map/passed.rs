use gridcall::{
    TensorMap, TensorMapMut,
    cudarc::driver::{CudaSlice, CudaStream},
    kernel,
};

#[kernel(ptx = "kernels/tensor_map.ptx")]
unsafe extern "C" {
    safe fn load_tile(map: TensorMap<f32>, out: &mut [f32], row: i32, column: i32);
    safe fn fill_tile(value: f32, map: TensorMapMut<f32>, row: i32, column: i32);
}

fn arrays(stream: &CudaStream, x: &CudaSlice<f32>, y: &mut CudaSlice<f32>) {
    let _ = load_tile(stream, (1, 256), x, y, 0, 0);
}

fn element(stream: &CudaStream, x: &CudaSlice<f64>, y: &mut CudaSlice<f32>) {
    let map = TensorMap::tiled(x, [64]).unwrap();
    let _ = load_tile(stream, (1, 256), &map, y, 0, 0);
}

fn read_only(stream: &CudaStream, x: &CudaSlice<f32>) {
    let mut map = TensorMap::tiled(x, [64]).unwrap();
    let _ = fill_tile(stream, (1, 256), 1.0, &mut map, 0, 0);
}

fn of_structs(x: &CudaSlice<[f32; 3]>) {
    let _ = TensorMap::tiled(x, [64]);
}

fn written_meanwhile(stream: &CudaStream, x: &mut CudaSlice<f32>, y: &mut CudaSlice<f32>) {
    let map = TensorMapMut::tiled(x, [64]).unwrap();
    let other = TensorMap::tiled(x, [64]).unwrap();
    let _ = load_tile(stream, (1, 256), &other, y, 0, 0);
    drop(map);
}

fn main() {}
