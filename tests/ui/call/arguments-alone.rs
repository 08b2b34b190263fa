#![deny(unused_must_use)]

use gridcall::{cover, kernel};

#[kernel(ptx = "kernels/vector.ptx")]
unsafe extern "C" {
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

#[kernel(ptx = "kernels/mangled.ptx")]
unsafe extern "C" {
    safe fn add<T>(y: &mut [T], v: T, n: i32);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = gridcall::device(0)?.default_stream();
    let mut y = stream.clone_htod(&[1.0_f32])?;
    scale { y: &mut y, a: 2.0, n: 1 }.launch(&stream, cover(1))?;
    scale { y: &mut y, a: 2.0, n: 1 };
    add { y: &mut y, v: 2.0_f32, n: 1 };
    Ok(())
}
