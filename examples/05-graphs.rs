//! A graph: an iterative solver whose steps are built once, and then launched together, many times.
//!
//! It solves `a·x = b` for one number in each place, by x ← x + ω·(b − a·x), in as many places as
//! there are elements. A node's arguments change while it runs, and the end is awaited.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode};

use gridcall::{Buffer, Graph, cover, kernel};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

/// The equation's factor, the places, and the steps of one launch.
const A: f32 = 0.5;
const N: u16 = 4096;
const STEPS: usize = 10;

fn main() -> ExitCode {
    gridcall_examples::run(|| {
        tokio::runtime::Builder::new_current_thread()
            .build()?
            .block_on(example())
    })
}

async fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    let stream = ctx.new_stream()?;
    let n = u32::from(N);
    let b: Vec<f32> = (0..N).map(f32::from).collect();

    // Arrays are given to the graph once: here it owns them, and gives them back at the end.
    // `graph.read(&b)` and `graph.write(&mut x)` would borrow them for as long as it lives.
    let mut graph = Graph::new(&ctx)?;
    let b = graph.own(Buffer::from_slice(&stream, &b)?)?;
    let mut x = graph.own(Buffer::<f32>::zeroed(&stream, N.into())?)?;
    let mut r = graph.own(Buffer::<f32>::zeroed(&stream, N.into())?)?;

    // Nodes run as if one after another, as they are added: what waits for what is found from the
    // arrays that each reads and writes.
    let mut corrections = Vec::new();
    for _ in 0..STEPS {
        // r ← b − a·x
        graph.copy(b, r)?;
        graph.add(
            cover(n),
            saxpy {
                n,
                a: -A,
                x: &x,
                y: &mut r,
            },
        )?;
        // x ← x + ω·r
        corrections.push(graph.add(
            cover(n),
            saxpy {
                n,
                a: 1.0,
                x: &r,
                y: &mut x,
            },
        )?);
    }
    let mut graph = graph.instantiate()?;

    // One launch for all of them. It is one use of each array: a buffer is ordered with whatever
    // other streams do with it, as at any launch.
    for _ in 0..2 {
        graph.launch(&stream)?;
    }

    // Longer strides from here on: other arguments, checked as those of a launch.
    for &node in &corrections {
        graph.update(
            node,
            cover(n),
            saxpy {
                n,
                a: 1.5,
                x: &r,
                y: &mut x,
            },
        )?;
    }

    // As a future, the launch owns the graph until it is done.
    let graph = graph.run(&stream)?.await?;

    let solution = graph.into_buffers().take(x)?.to_vec()?;
    let errors = (0..N).zip(&solution).map(|(i, x)| x - f32::from(i) / A);
    let worst = errors.map(f32::abs).fold(0.0, f32::max);
    println!("after {} steps, the largest error is {worst}", 3 * STEPS);
    if worst > 0.01 {
        return Err("the solution is wrong".into());
    }
    Ok(())
}
