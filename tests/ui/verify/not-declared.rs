use gridcall::kernel;

#[kernel(ptx = "kernels/vector.ptx", cuda = "kernels/vector.cu")]
unsafe extern "C" {
    #[instances(T = { f32 => "relu" })]
    safe fn relu<T>(y: &mut [T], n: i32);
}

struct Other;

fn main() {
    gridcall::verify!(Other);
    gridcall::verify!(relu<f32>);
}
