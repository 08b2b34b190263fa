//! How long kernels take on the device: measured by events, from sizes that fit a cache to sizes
//! that do not, and told as bandwidth. A launch is also described in one line, for a log.
//!
//! Needs a GPU of any kind. On the emulator the times are those of the host.

use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};

use gridcall::{Buffer, LaunchError, Timer, cover, cudarc::driver::CudaStream, kernel, timed};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·x + y
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);

    /// y ← a·y
    #[requires(y.len() >= n)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);

    /// out ← input
    #[requires(input.len() >= n, out.len() >= n)]
    safe fn copy(input: &[f32], out: &mut [f32], n: i32);
}

/// A launch is short beside the time that the host takes to enqueue it: so many in a round.
const LAUNCHES: u32 = 20;
const ROUNDS: usize = 10;
/// No larger size is tried once a launch takes so long.
const ENOUGH: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    println!("device: {}", ctx.name()?);
    let stream = ctx.new_stream()?;

    // One launch, and its time as a value: to be waited for, or awaited.
    let x = Buffer::from_slice(&stream, &[1.0; 1000])?;
    let mut y = Buffer::<f32>::zeroed(&stream, 1000)?;
    let mut arguments = saxpy {
        n: 1000,
        a: 2.0,
        x: &x,
        y: &mut y,
    };
    println!("{}", arguments.describe(&stream, cover(1000))?);
    let elapsed = timed(&stream, |stream| arguments.launch(stream, cover(1000)))?;
    println!("took {:.1?}", elapsed.wait()?);
    assert_eq!(y.to_vec()?, [2.0; 1000]);

    println!(
        "\n{:>12} {:>8} {:>12} {:>10}",
        "elements", "kernel", "a launch", "GB/s"
    );
    for exponent in (16..=28).step_by(4) {
        let n = 1_usize << exponent;
        let longest = measure(&stream, n)?;
        if longest > ENOUGH {
            break;
        }
    }
    Ok(())
}

/// Measures each kernel with `n` elements, and returns the longest time of a launch.
fn measure(stream: &Arc<CudaStream>, n: usize) -> Result<Duration, Box<dyn Error>> {
    let (count, signed) = (u32::try_from(n)?, i32::try_from(n)?);
    let x = Buffer::<f32>::zeroed(stream, n)?;
    let mut y = Buffer::<f32>::zeroed(stream, n)?;
    let mut timer = Timer::new(stream)?;
    let mut longest = Duration::ZERO;
    let mut row = |name, arrays, launch: &mut Launch<'_>| -> Result<(), Box<dyn Error>> {
        let rounds = timer.rounds(ROUNDS, |stream| {
            (0..LAUNCHES).try_for_each(|_| launch(stream))
        })?;
        let time = rounds.median() / LAUNCHES;
        // Elements of the arrays that are read or written, four bytes each.
        let bytes = 4.0 * f64::from(count) * f64::from(arrays);
        let bandwidth = bytes / time.as_secs_f64() / 1e9;
        println!("{n:>12} {name:>8} {time:>12.1?} {bandwidth:>10.1}");
        longest = longest.max(time);
        Ok(())
    };
    row("copy", 2, &mut |stream| {
        copy(stream, cover(n), &x, &mut y, signed)
    })?;
    row("scale", 2, &mut |stream| {
        scale(stream, cover(n), &mut y, 1.0, signed)
    })?;
    row("saxpy", 3, &mut |stream| {
        saxpy(stream, cover(n), count, 2.0, &x, &mut y)
    })?;
    Ok(longest)
}

type Launch<'a> = dyn FnMut(&Arc<CudaStream>) -> Result<(), LaunchError> + 'a;
