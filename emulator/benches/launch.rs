//! How many elements a second `axpy` does, launched through cudarc, and what a launch costs.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "numbers for people to read"
)]

use std::time::Instant;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gridcall_emulator::install()?;
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let ptx = include_str!("../../ptx/tests/corpus/axpy.nvrtc13.sm_75.ptx");
    let axpy = context
        .load_module(Ptx::from_src(ptx))?
        .load_function("axpy")?;
    for (n, rounds) in [(1u64 << 22, 4), (1, 20_000)] {
        let x = stream.clone_htod(&vec![1.0f32; n as usize])?;
        let mut y = stream.clone_htod(&vec![1.0f32; n as usize])?;
        let start = Instant::now();
        for _ in 0..rounds {
            let mut launch = stream.launch_builder(&axpy);
            launch.arg(&2.0f32).arg(&x).arg(&mut y).arg(&n);
            // SAFETY: the arguments are those of the kernel, and the arrays have `n` elements.
            unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }?;
        }
        stream.synchronize()?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{n} elements: {:.1} million elements a second, {:.1} us a launch",
            n as f64 * f64::from(rounds) / seconds / 1e6,
            seconds * 1e6 / f64::from(rounds)
        );
    }
    Ok(())
}
