use gridcall::{kernel, nvrtc::Program};

#[kernel]
unsafe extern "C" {
    #[instances(T = { f32, f64 })]
    pub safe fn scale<T>(y: &mut [T], by: T, n: u32);
    pub safe fn fill(y: &mut [f32], by: f32, n: u32);
}

fn main() {
    let _ = Program::new("").instance::<scale, i32>();
    let _ = Program::new("").instance::<fill, f32>();
    let _ = Program::new("").kernel::<scale>();
}
