//! Streams and threads: a kernel is loaded once and launched from many threads, each on a stream
//! of its own. Buffers see to it that what one stream writes, another reads afterwards.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode, thread};

use gridcall::{Buffer, BufferSliceMut, cover, cudarc::driver::CudaStream, kernel};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← v in all n elements
    #[requires(y.len() >= n)]
    safe fn fill(y: &mut [f32], v: f32, n: i32);

    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
}

const N: usize = 1 << 16;
/// What one worker writes.
const PART: usize = N / 4;

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    // Loading at start-up, not at the first launch, shows what is wrong with a kernel early.
    saxpy::load(&ctx)?;

    // Written on one stream, read on four others, and dropped: nobody waits on the host.
    let main = ctx.new_stream()?;
    let mut x = Buffer::<f32>::zeroed(&main, PART)?;
    fill(&main, cover(PART), &mut x, 1.0, i32::try_from(PART)?)?;
    let mut y = Buffer::<f32>::zeroed(&main, N)?;

    // Four parts of one buffer, each written by a thread on a stream of its own, side by side.
    let (head, tail) = y.split_at_mut(2 * PART)?;
    let (first, second) = head.into_split_at(PART)?;
    let (third, fourth) = tail.into_split_at(PART)?;
    thread::scope(|scope| {
        let workers: Vec<_> = [first, second, third, fourth]
            .into_iter()
            .zip([1.0, 2.0, 3.0, 4.0])
            .map(|(mut part, a)| {
                let (ctx, x) = (&ctx, &x);
                scope.spawn(move || {
                    let stream = ctx.new_stream().map_err(|error| error.to_string())?;
                    work(&stream, a, x, &mut part).map_err(|error| error.to_string())
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    drop(x);

    // The main stream goes on with what the four have written, whose streams are gone already.
    let mut sum = Buffer::<f32>::zeroed(&main, PART)?;
    for part in 0..4 {
        let part = y.slice(part * PART..(part + 1) * PART)?;
        saxpy(
            &main,
            cover(PART),
            u32::try_from(PART)?,
            1.0,
            &part,
            &mut sum,
        )?;
    }
    let sum = sum.to_vec()?;
    println!("every element of the sum is {}", sum[0]);
    if sum.iter().any(|&element| element != 1000.0) {
        return Err("the sum is wrong".into());
    }
    Ok(())
}

/// Adds a·x to a part, a hundred times over. No duty to bind the context: a launch makes its
/// stream's context current on whatever thread it is called.
fn work(
    stream: &CudaStream,
    a: f32,
    x: &Buffer<f32>,
    part: &mut BufferSliceMut<'_, f32>,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..100 {
        saxpy(stream, cover(PART), u32::try_from(PART)?, a, x, part)?;
    }
    Ok(())
}
