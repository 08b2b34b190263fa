//! Structs and CUDA's vector types by value, and the named form of the arguments.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode};

use gridcall::{Float3, Float4, KernelArg, cover, kernel};

/// `struct Grid { float x0, dx; int n; };`
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Grid {
    x0: f32,
    dx: f32,
    n: i32,
}

/// `struct Ball { int id; float4 pos; };` A `float4` is aligned to 16 bytes, so 12 bytes of
/// padding stand behind `id`; they reach the device as zeros.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
struct Ball {
    id: i32,
    pos: Float4,
}

#[kernel(ptx = "../kernels/structs.ptx")]
unsafe extern "C" {
    /// Iterations of z ← z² + c on a square of `g.n` by `g.n` points.
    #[requires(out.len() >= g.n * g.n)]
    safe fn julia(out: &mut [u32], g: Grid);

    /// v[i] ← v[i] + g·b.pos.w + b.pos.xyz, except for i = b.id.
    #[requires(v.len() >= n)]
    safe fn step(b: Ball, v: &mut [Float3], g: Float3, n: i32);
}

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    let stream = ctx.default_stream();

    let side = 24_i32;
    let grid = Grid {
        x0: -1.5,
        dx: 3.0 / 24.0,
        n: side,
    };
    let points = usize::try_from(side * side)?;
    let mut steps = stream.alloc_zeros::<u32>(points)?;
    julia(&stream, cover(points), &mut steps, grid)?;
    let steps = stream.clone_dtoh(&steps)?;
    for row in steps.chunks(24) {
        let line: String = row
            .iter()
            .map(|&n| if n >= 200 { '#' } else { '.' })
            .collect();
        println!("{line}");
    }

    let host_v = vec![Float3::new(1.0, 2.0, 3.0); 4];
    let mut v = stream.clone_htod(&host_v)?;
    let b = Ball {
        id: 2,
        pos: Float4::new(0.5, 0.0, -0.5, 10.0),
    };
    // By name: `b` and `g` cannot be exchanged, and a field left out does not compile.
    step {
        b,
        v: &mut v,
        g: Float3::new(0.0, 1.0, 0.0),
        n: 4,
    }
    .launch(&stream, cover(4))?;
    let v = stream.clone_dtoh(&v)?;
    println!("v[0] = {:?}, v[2] = {:?} (left alone)", v[0], v[2]);
    if v[0] != Float3::new(1.5, 12.0, 2.5) || v[2] != host_v[2] {
        return Err("step computed something else than the CPU".into());
    }
    Ok(())
}
