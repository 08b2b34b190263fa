//! Blocks that read each other's shared memory, and a kernel that begins before the one in front of it
//! has ended.
//!
//! Needs compute capability 9.0, or the emulator; on an older GPU it says so and ends.

use std::{error::Error, process::ExitCode, time::Instant};

use gridcall::{Launch, cover, kernel};

#[kernel(ptx = "../kernels/clusters.ptx")]
unsafe extern "C" {
    /// y[i] ← what the same thread of the next block of the cluster has of x
    #[rank(1)]
    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x, shared_mem_bytes >= block.x * 4)]
    safe fn ring(x: &[i32], y: &mut [i32]);
}

#[kernel(ptx = "../kernels/dependent.ptx")]
unsafe extern "C" {
    /// Lets the next kernel begin, waits so many nanoseconds, and writes y = 1, 2, ..
    #[requires(grid.blocks() == 1, block.threads() == block.x, y.len() >= n, times.len() >= 2)]
    safe fn first(y: &mut [i32], times: &mut [i64], n: i32, duration: i64);

    /// y ← 2 x, after it has waited for the kernel in front
    #[requires(grid.blocks() == 1, block.threads() == block.x, x.len() >= n, y.len() >= n, times.len() >= 2)]
    safe fn second(x: &[i32], y: &mut [i32], times: &mut [i64], n: i32);
}

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    println!("device: {}", ctx.name()?);
    let capability = ctx.compute_capability()?;
    if capability < (9, 0) {
        println!(
            "it has compute capability {capability:?}, and neither clusters nor dependent launches"
        );
        return Ok(());
    }
    let stream = ctx.default_stream();

    // Three blocks are covered; the launch makes them four, which are two clusters.
    let x = stream.clone_htod(&(0..128).collect::<Vec<i32>>())?;
    let mut y = stream.alloc_zeros::<i32>(128)?;
    let launch = cover(96).block(32).shared::<i32>(32).cluster(2);
    ring(&stream, launch, &x, &mut y)?;
    let seen = stream.clone_dtoh(&y)?;
    println!(
        "the first threads of four blocks read {:?}",
        [seen[0], seen[32], seen[64], seen[96]]
    );
    if [seen[0], seen[32], seen[64], seen[96]] != [32, 0, 96, 64] {
        return Err("blocks read from others than their neighbours".into());
    }
    let launch = Launch::new(3, 32).shared::<i32>(32).cluster(2);
    let error = ring(&stream, launch, &x, &mut y).unwrap_err();
    println!("refused: {error}");

    // The second kernel begins at once, and waits where it needs what the first one writes. It is
    // prepared, as in a loop over many layers.
    let mut between = stream.alloc_zeros::<i32>(1000)?;
    let mut y = stream.alloc_zeros::<i32>(1000)?;
    let (mut of_first, mut of_second) = (stream.alloc_zeros(2)?, stream.alloc_zeros(2)?);
    let first = first::load(&ctx)?.prepare(&stream, (1, 128))?;
    for (name, launch) in [
        ("one after the other", Launch::new(1, 128)),
        (
            "dependent",
            Launch::new(1, 128).programmatic_stream_serialization(),
        ),
    ] {
        let second = second::load(&ctx)?.prepare(&stream, launch)?;
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..10 {
            first.launch(self::first {
                y: &mut between,
                times: &mut of_first,
                n: 1000,
                duration: 100_000,
            })?;
            second.launch(self::second {
                x: &between,
                y: &mut y,
                times: &mut of_second,
                n: 1000,
            })?;
        }
        stream.synchronize()?;
        println!("ten pairs, {name}: {:?}", start.elapsed());
        let result = stream.clone_dtoh(&y)?;
        if !(1..=1000).map(|i| 2 * i).eq(result) {
            return Err("the second kernel did not wait".into());
        }
    }
    Ok(())
}
