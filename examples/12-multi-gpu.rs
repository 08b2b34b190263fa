//! Two GPUs of one machine, each with one half of a bar in which heat spreads. After each step the
//! halves exchange the cells at the cut, by copies between the devices; at the end they add up
//! their heat, by NCCL if it is there, and otherwise by peer access. Where there is one device,
//! both halves are on it.
//!
//! Needs one GPU or more; on the emulator, `GRIDCALL_EMULATED_DEVICES=2` makes two. NCCL is opened as `libnccl.so`.

use std::{error::Error, mem, process::ExitCode, sync::Arc};

use cudarc::nccl;
use gridcall::{
    Buffer, LoadErrorKind, after, cover,
    cudarc::driver::{CudaContext, CudaStream},
    kernel,
};

#[kernel(ptx = "../kernels/heat.ptx")]
unsafe extern "C" {
    /// One step of a part of `n` cells, between the cells before and after it
    #[requires(input.len() >= n, out.len() >= n)]
    #[requires(before.is_none() || before.len() >= 1, after.is_none() || after.len() >= 1)]
    safe fn diffuse(
        before: Option<&[f32]>,
        input: &[f32],
        after: Option<&[f32]>,
        out: &mut [f32],
        share: f32,
        n: i32,
    );
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// out[0] ← out[0] + the sum of x
    #[requires(x.len() >= n, out.len() >= 1)]
    safe fn sum_into(x: &[f32], out: &mut [f32], n: i32);
}

/// Cells of a half.
const N: usize = 1 << 16;
const CELLS: i32 = 1 << 16;
const STEPS: usize = 50;
const SHARE: f32 = 0.25;

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

/// One half of the bar, on its device.
struct Half {
    stream: Arc<CudaStream>,
    cells: Buffer<f32>,
    /// What the next step writes.
    next: Buffer<f32>,
    /// The nearest cell of the other half.
    beyond: Buffer<f32>,
    heat: Buffer<f32>,
}

impl Half {
    fn new(ctx: &Arc<CudaContext>, cells: &[f32]) -> Result<Half, Box<dyn Error>> {
        let stream = ctx.new_stream()?;
        Ok(Half {
            cells: Buffer::from_slice(&stream, cells)?,
            next: Buffer::zeroed(&stream, N)?,
            beyond: Buffer::zeroed(&stream, 1)?,
            heat: Buffer::zeroed(&stream, 1)?,
            stream,
        })
    }
}

fn example() -> Result<(), Box<dyn Error>> {
    let contexts = open()?;
    // As much heat as an f32 counts exactly.
    let mut bar = vec![0.0; 2 * N];
    bar[N - 64..N].fill(1024.0);
    let [mut left, mut right] = [
        Half::new(&contexts[0], &bar[..N])?,
        Half::new(&contexts[1], &bar[N..])?,
    ];

    // Nobody waits on the host, nor says what waits for what: each buffer knows who used it last,
    // whatever the device.
    for _ in 0..STEPS {
        left.beyond
            .copy_from(&left.stream, right.cells.slice(..1)?)?;
        right
            .beyond
            .copy_from(&right.stream, left.cells.slice(N - 1..)?)?;
        let (stream, cells, next) = (&left.stream, &left.cells, &mut left.next);
        diffuse(
            stream,
            cover(N),
            None,
            cells,
            Some(&left.beyond),
            next,
            SHARE,
            CELLS,
        )?;
        let (stream, cells, next) = (&right.stream, &right.cells, &mut right.next);
        diffuse(
            stream,
            cover(N),
            Some(&right.beyond),
            cells,
            None,
            next,
            SHARE,
            CELLS,
        )?;
        for half in [&mut left, &mut right] {
            mem::swap(&mut half.cells, &mut half.next);
        }
    }
    let cells = [left.cells.to_vec()?, right.cells.to_vec()?].concat();
    if cells != on_the_host(bar) {
        return Err("the halves are not what the host computes".into());
    }
    println!(
        "{STEPS} steps: {} cells, all as the host computes them",
        cells.len()
    );

    let (total, way) = total(left, right)?;
    println!("heat: {total}, added up by {way}");
    // In 50 steps each of 64 · 1024 is cut into quarters, and sums round.
    if (total - 65536.0).abs() > 0.5 {
        return Err("heat was lost".into());
    }
    Ok(())
}

/// Two devices, or one for both.
fn open() -> Result<[Arc<CudaContext>; 2], Box<dyn Error>> {
    let first = gridcall::device(0)?;
    let second = match gridcall::device(1) {
        Ok(second) => second,
        Err(error) if matches!(error.kind(), LoadErrorKind::NoDevice { .. }) => {
            println!("one device, {}: both halves are on it", first.name()?);
            return Ok([first.clone(), first]);
        }
        Err(error) => return Err(error.into()),
    };
    println!("two devices: {} and {}", first.name()?, second.name()?);
    Ok([first, second])
}

fn on_the_host(mut bar: Vec<f32>) -> Vec<f32> {
    for _ in 0..STEPS {
        let last = bar.len() - 1;
        bar = (0..=last)
            .map(|i| {
                let (left, here, right) = (bar[i.saturating_sub(1)], bar[i], bar[last.min(i + 1)]);
                SHARE.mul_add((left - here) + (right - here), here)
            })
            .collect();
    }
    bar
}

/// The heat of both halves, and how it was added up.
fn total(mut left: Half, mut right: Half) -> Result<(f32, String), Box<dyn Error>> {
    for half in [&mut left, &mut right] {
        sum_into(&half.stream, cover(N), &half.cells, &mut half.heat, CELLS)?;
    }
    let why_not = match all_reduce(&mut left, &mut right)? {
        Ok(way) => {
            let (one, other) = (left.heat.to_vec()?[0], right.heat.to_vec()?[0]);
            if one != other {
                return Err(format!("device 0 has {one}, device 1 {other}").into());
            }
            return Ok((one, way));
        }
        Err(why_not) => why_not,
    };
    // A kernel on the first device reads what the second one has.
    let other = right.heat.peer(left.stream.context())?;
    sum_into(&left.stream, cover(1), &other, &mut left.heat, 1)?;
    Ok((left.heat.to_vec()?[0], format!("peer access ({why_not})")))
}

/// Puts the sum of both halves into both. Says how, or why NCCL does not.
fn all_reduce(left: &mut Half, right: &mut Half) -> Result<Result<String, String>, Box<dyn Error>> {
    if left.stream.context().ordinal() == right.stream.context().ordinal() {
        return Ok(Err("NCCL needs two devices".to_owned()));
    }
    // SAFETY: opening NCCL runs its initialisers, as in every program that uses it.
    if !unsafe { nccl::sys::is_culib_present() } {
        return Ok(Err("there is no libnccl.so".to_owned()));
    }
    let streams = vec![left.stream.clone(), right.stream.clone()];
    let comms = match nccl::Comm::from_devices(streams) {
        Ok(comms) => comms,
        Err(error) => return Ok(Err(format!("NCCL does not start: {error:?}"))),
    };
    let version = nccl::result::get_nccl_version().map_err(|error| format!("{error:?}"))?;
    // Nothing is enqueued before the group ends, and nothing else on these streams meanwhile.
    let mut reduce = || -> Result<(), nccl::result::NcclError> {
        nccl::group_start()?;
        for (comm, half) in comms.iter().zip([&mut *left, &mut *right]) {
            comm.all_reduce_in_place(&mut half.heat, &nccl::ReduceOp::Sum)?;
        }
        nccl::group_end()?;
        Ok(())
    };
    reduce().map_err(|error| format!("NCCL: {error:?}"))?;
    // A communicator must not go before its work is done.
    for half in [&*left, &*right] {
        after(&half.stream, ())?.wait()?;
    }
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    Ok(Ok(format!("NCCL {major}.{minor}.{patch}")))
}
