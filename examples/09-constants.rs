//! Constants: the taps of a filter in `__constant__` memory, which the host changes between launches
//! on two streams, and a counter in `__device__` memory, which it reads back.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode};

use gridcall::{cover, kernel};

#[kernel(ptx = "../kernels/symbols.ptx", cuda = "../kernels/symbols.cu")]
unsafe extern "C" {
    /// `__constant__ float taps[5];`
    #[name("taps")]
    static mut TAPS: [f32; 5];

    /// `__device__ uint64_t hits;`
    #[name("hits")]
    static mut HITS: u64;

    /// `__device__ const float ramp[4];`
    #[name("ramp")]
    static RAMP: [f32; 4];

    /// y ← taps * x, with zeros beyond the ends
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn filter(x: &[f32], y: &mut [f32], n: u32);

    /// hits ← hits + 1 for each element above the limit
    #[requires(x.len() >= n)]
    safe fn count_above(x: &[f32], n: u32, limit: f32);
}

const N: u32 = 1 << 16;

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    let (blur, edges) = (ctx.new_stream()?, ctx.new_stream()?);
    // One step in the middle.
    let signal: Vec<f32> = (0..N).map(|i| f32::from(u8::from(i >= N / 2))).collect();
    let x = blur.clone_htod(&signal)?;
    let mut blurred = blur.alloc_zeros::<f32>(N as usize)?;
    let mut edge = edges.alloc_zeros::<f32>(N as usize)?;

    // Each launch sees the taps that were written before it, though both kernels may run at the same
    // time as the host goes on: the second write waits, on the device, for the first filter.
    TAPS.write(&blur, &[0.2; 5])?;
    filter(&blur, cover(N), &x, &mut blurred, N)?;
    TAPS.write(&edges, &[0.0, -1.0, 0.0, 1.0, 0.0])?;
    filter(&edges, cover(N), &x, &mut edge, N)?;

    // Kernels that count come one after the other, and the host reads behind both.
    HITS.write(&blur, &0)?;
    count_above(&blur, cover(N), &blurred, N, 0.1)?;
    count_above(&edges, cover(N), &edge, N, 0.5)?;
    let hits = HITS.read(&blur)?;

    let (blurred, edge) = (blur.clone_dtoh(&blurred)?, edges.clone_dtoh(&edge)?);
    let middle = N as usize / 2;
    println!("blurred: {:.1?}", &blurred[middle - 3..middle + 3]);
    println!("edges:   {:.1?}", &edge[middle - 3..middle + 3]);
    println!("above the limits: {hits}");

    // What nobody writes can be passed to kernels as an array, too.
    let mut ramp = blur.alloc_zeros::<f32>(4)?;
    TAPS.write(&blur, &[0.0, 0.0, 2.0, 0.0, 0.0])?;
    filter(&blur, cover(4), &RAMP.view(&ctx)?, &mut ramp, 4)?;
    println!("twice the ramp: {:?}", blur.clone_dtoh(&ramp)?);

    // The step is half of the signal, and two more; of the edge there are two elements; the end of
    // the signal is one as well, which points down.
    if hits != u64::from(N / 2 + 2) + 2 {
        return Err("the counts are wrong".into());
    }
    if edge[middle - 1..=middle] != [1.0, 1.0] {
        return Err("the edge is wrong".into());
    }
    Ok(())
}
