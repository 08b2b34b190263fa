//! Streams and threads: a kernel is loaded once and launched from many threads, each on a stream
//! of its own; what one stream wrote, another reads in order.

use std::{error::Error, process::ExitCode, sync::Arc, thread};

use gridcall::{
    cover,
    cudarc::driver::{CudaContext, CudaSlice},
    kernel,
};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← v in all n elements
    #[requires(y.len() >= n)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);

    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

const N: u32 = 1 << 16;

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    // Loading at start-up, not at the first launch, shows what is wrong with a kernel early.
    saxpy::load(&ctx)?;

    // Written on one stream, read on the others: the launches wait for what they must.
    let writer = ctx.new_stream()?;
    let mut x = writer.alloc_zeros::<f32>(N as usize)?;
    fill(&writer, cover(N), &mut x, 1.0, i32::try_from(N)?)?;
    let x = Arc::new(x);

    let workers: Vec<_> = (1..=4_u8)
        .map(|worker| {
            let (ctx, x) = (ctx.clone(), x.clone());
            thread::spawn(move || work(&ctx, &x, worker).map_err(|error| error.to_string()))
        })
        .collect();
    for (worker, thread) in (1..=4).zip(workers) {
        let sum = thread.join().map_err(|_| "a worker panicked")??;
        println!("worker {worker}: every element is {sum}");
    }
    Ok(())
}

/// Adds `worker` times x to zeros, a hundred times over. No duty to bind the context: a launch
/// makes its stream's context current on whatever thread it is called.
fn work(
    ctx: &Arc<CudaContext>,
    x: &Arc<CudaSlice<f32>>,
    worker: u8,
) -> Result<f32, Box<dyn Error>> {
    let stream = ctx.new_stream()?;
    let mut y = stream.alloc_zeros::<f32>(N as usize)?;
    for _ in 0..100 {
        saxpy(&stream, cover(N), N, f32::from(worker), x, &mut y)?;
    }
    let y = stream.clone_dtoh(&y)?;
    let expected = 100.0 * f32::from(worker);
    if let Some(i) = y.iter().position(|&element| element != expected) {
        return Err(format!("y[{i}] is {}, not {expected}", y[i]).into());
    }
    Ok(expected)
}
