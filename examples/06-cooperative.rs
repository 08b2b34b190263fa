//! A sum in one launch: the blocks of a cooperative grid wait for each other between its two steps.
//!
//! All blocks of such a grid must run at a time. How many do depends on the kernel and the device, so
//! the program asks; a grid of one block more is refused before anything runs.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode};

use gridcall::{Launch, cudarc::driver::sys::CUdevice_attribute, kernel, stride};

#[kernel(ptx = "../kernels/cooperative.ptx")]
unsafe extern "C" {
    /// out[0] ← the sum of x; `parts` has room for one part a block.
    ///
    /// The kernel's code shows that it waits for its grid: without #[cooperative], this file would
    /// not compile.
    #[cooperative]
    #[rank(1)]
    #[requires(x.len() >= n, n >= 0, parts.len() >= grid.x, out.len() >= 1)]
    #[requires(block.x >= 32, block.x <= 1024)]
    safe fn grid_sum(x: &[f32], parts: &mut [f32], out: &mut [f32], n: i32);
}

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    println!("device: {}", ctx.name()?);
    let stream = ctx.default_stream();

    let kernel = grid_sum::load(&ctx)?;
    let block = kernel.suggested_block(0)?;
    let each = kernel.max_active_blocks_per_multiprocessor(block.x, 0)?;
    let multiprocessors =
        ctx.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let most = each * multiprocessors.unsigned_abs();
    println!("{most} blocks of {} threads run at a time", block.x);

    let n = 100_000;
    let x = stream.clone_htod(&vec![1.0_f32; 100_000])?;
    let mut parts = stream.alloc_zeros::<f32>(most as usize)?;
    let mut out = stream.alloc_zeros::<f32>(1)?;

    // As many blocks as that, or as the elements need.
    let launch = stride(n).block(block);
    grid_sum(&stream, launch, &x, &mut parts, &mut out, n)?;
    let sum = stream.clone_dtoh(&out)?[0];
    println!("sum: {sum}");
    if sum != 100_000.0 {
        return Err(format!("the sum of {n} ones is {sum}").into());
    }

    let mut parts = stream.alloc_zeros::<f32>(most as usize + 1)?;
    let launch = Launch::new(most + 1, block);
    let error = grid_sum(&stream, launch, &x, &mut parts, &mut out, n).unwrap_err();
    println!("refused: {error}");
    Ok(())
}
