//! A kernel whose PTX the build script makes.

use gridcall::{cover, kernel};

#[kernel(
    ptx = concat!(env!("OUT_DIR"), "/kernels/saxpy.ptx"),
    cuda = "kernels/saxpy.cu"
)]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ctx = gridcall::device(0)?;
    let stream = ctx.default_stream();
    let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.clone_htod(&[10.0_f32, 20.0, 30.0])?;
    saxpy(&stream, cover(3), 3, 2.0, &x, &mut y)?;
    println!("{:?}", stream.clone_dtoh(&y)?);
    Ok(())
}
