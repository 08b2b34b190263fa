//! A graph: an iterative solver whose steps are built once, and then launched together, many times.
//!
//! It solves `a·x = b` for one number in each place, by x ← x + ω·(b − a·x), in as many places as
//! there are elements. A node's arguments change while it runs, and the end is awaited. Then another
//! solver goes on until it has converged, which the device decides by itself.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode, sync::Arc};

use gridcall::{
    Buffer, Graph, cover,
    cudarc::driver::{CudaContext, CudaStream},
    kernel,
};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

#[kernel(ptx = "../kernels/conditional.ptx")]
unsafe extern "C" {
    /// next[i] ← (b[i] + x[i - 1] + x[i + 1]) / 3, a step towards 3·x[i] - x[i - 1] - x[i + 1] = b[i]
    #[requires(b.len() >= n, x.len() >= n, next.len() >= n)]
    safe fn jacobi(b: &[f32], x: &[f32], next: &mut [f32], n: u32);

    /// Goes on as long as x and y differ anywhere by more than tolerance
    #[requires(x.len() >= n, y.len() >= n, rounds.len() >= 1, grid.x * grid.y * grid.z == 1)]
    safe fn differ(
        go_on: GraphCondition,
        x: &[f32],
        y: &[f32],
        tolerance: f32,
        rounds: &mut [u32],
        n: u32,
    );
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
    until_it_converges(&ctx, &stream)
}

/// A loop in a graph: one launch, and as many rounds as it takes.
fn until_it_converges(
    ctx: &Arc<CudaContext>,
    stream: &Arc<CudaStream>,
) -> Result<(), Box<dyn Error>> {
    let n = u32::from(N);
    let mut graph = Graph::new(ctx)?;
    let b = graph.own(Buffer::from_slice(stream, &[1.0; N as usize])?)?;
    let mut x = graph.own(Buffer::<f32>::zeroed(stream, N.into())?)?;
    let mut y = graph.own(Buffer::<f32>::zeroed(stream, N.into())?)?;
    let mut rounds = graph.own(Buffer::<u32>::zeroed(stream, 1)?)?;

    // What the loop goes on by: 1 when a launch begins, and then what `differ` sets.
    let go_on = graph.condition(1)?;
    graph.while_(go_on, |body| {
        body.add(
            cover(n),
            jacobi {
                b: &b,
                x: &x,
                next: &mut y,
                n,
            },
        )?;
        body.add(
            cover(n),
            jacobi {
                b: &b,
                x: &y,
                next: &mut x,
                n,
            },
        )?;
        body.add(
            (1, 256),
            differ {
                go_on,
                x: &x,
                y: &y,
                tolerance: 1e-6,
                rounds: &mut rounds,
                n,
            },
        )
    })?;
    let mut graph = graph.instantiate()?;
    graph.launch(stream)?;

    let rounds = graph.slice(rounds)?.to_vec()?[0];
    let solution = graph.into_buffers().take(x)?.to_vec()?;
    let middle = solution[solution.len() / 2];
    println!("after {rounds} rounds, the middle is {middle}");
    if (middle - 1.0).abs() > 1e-4 {
        return Err("the solution is wrong".into());
    }
    Ok(())
}
