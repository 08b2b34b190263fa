//! Awaiting the device: launches and copies as futures that own what they need until it is done.
//! Works in any executor; here it is tokio, on one thread.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode, sync::Arc};

use gridcall::{Buffer, Pinned, after, cover, cudarc::driver::CudaContext, kernel};
use tokio::task::JoinSet;

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← a·y
    #[requires(y.len() >= n)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

const N: usize = 1 << 16;

fn main() -> ExitCode {
    gridcall_examples::run(|| {
        tokio::runtime::Builder::new_current_thread()
            .build()?
            .block_on(example())
    })
}

async fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    scale::load(&ctx)?;

    // Eight requests at a time, while one thread serves them all.
    let mut requests = JoinSet::new();
    for request in 1..=8_u8 {
        let ctx = ctx.clone();
        requests.spawn(async move {
            let answer = serve(&ctx, f32::from(request)).await;
            answer.map_err(|error| error.to_string())
        });
    }
    let mut sum = 0.0;
    while let Some(answer) = requests.join_next().await {
        sum += answer??;
    }
    println!("the answers add up to {sum}");
    if sum != 72.0 {
        return Err("the answers are wrong".into());
    }
    Ok(())
}

/// Doubles `number` on the device, N times over.
async fn serve(ctx: &Arc<CudaContext>, number: f32) -> Result<f32, Box<dyn Error>> {
    let stream = ctx.new_stream()?;
    let mut y = Buffer::<f32>::zeroed(&stream, N)?;

    // The copy owns the pinned memory until it is done; dropping the future would be fine too.
    let input = y.upload(&stream, Pinned::from_slice(ctx, &vec![number; N])?)?;
    scale(&stream, cover(N), &mut y, 2.0, i32::try_from(N)?)?;
    let input = input.await?;

    // The same memory for the way back.
    let output = y.download(&stream, input)?.await?;

    // Anything can be owned until the device is done: here the buffer itself.
    let y = after(&stream, y)?.await?;
    drop(y);
    Ok(output[N - 1])
}
