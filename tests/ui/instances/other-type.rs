use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/mangled.ptx")]
unsafe extern "C" {
    safe fn add<T>(y: &mut [T], v: T, n: i32);
}

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    #[instances(T = { f64 => "add_f64" })]
    safe fn plus<T>(a: &[T], b: &[T], out: &mut [T], n: i32);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = gridcall::device(0)?.default_stream();
    let mut y = stream.clone_htod(&[1_i32])?;
    add(&stream, cover(1), &mut y, 1, 1)?;
    let x = stream.clone_htod(&[1.0_f32])?;
    let mut out = stream.clone_htod(&[1.0_f32])?;
    plus(&stream, cover(1), &x, &x, &mut out, 1)?;
    Ok(())
}
