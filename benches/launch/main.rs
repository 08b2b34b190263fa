//! Times launches on a GPU: host nanoseconds a launch, and their ratio to the bare call's.
//!
//! Everyone launches in turn within one process, in short batches, and the stream is drained
//! between batches outside the timed part, so that the driver's queue never fills. The binary needs
//! nothing of Rust, and no PTX file, where it runs.

mod machine;
mod statistics;
mod table;
mod timing;

use std::{error::Error, process::ExitCode};

use gridcall_benches::{
    graphs,
    line_up::{self, Kernel},
    scene::{Scene, Streams},
};

use crate::{machine::Machine, timing::Plan};

const USAGE: &str = "usage: launch [--rounds N] [--batches N] [--launches N]
  rounds    rounds for each table after one of warm-up, at least 20 (default 40)
  batches   batches of each round and contender (default 8)
  launches  launches of each batch, fewer than the driver's queue holds (default 500);
            a sixteenth of them where uses are recorded, as each takes many entries";

fn main() -> ExitCode {
    match plan().and_then(|plan| run(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let one = Scene::new(Streams::One)?;
    println!("{}", Machine::ask(&one)?);
    println!("{plan}.");
    for kernel in Kernel::ALL {
        let line_up = line_up::slices(&one, kernel)?;
        let title = format!("{}, one stream", kernel.describe("CudaSlice"));
        table::print(&title, &timing::time(&one, line_up, plan)?);
    }
    let several = Scene::new(Streams::Several)?;
    let kernel = Kernel::Empty12;
    for (arrays, line_up) in [
        ("Buffer", line_up::buffers(&several, kernel)?),
        (
            "Buffer (five also read by another stream)",
            line_up::shared_buffers(&several, kernel)?,
        ),
    ] {
        let title = format!("{}, several streams", kernel.describe(arrays));
        table::print(&title, &timing::time(&several, line_up, plan)?);
    }
    graphs(&one, "the default stream", &plan.for_graphs())?;
    graphs(
        &several,
        "a stream that can be captured",
        &plan.for_graphs(),
    )?;
    let plan = plan.for_recorded_uses();
    println!("\n{plan}.");
    for kernel in Kernel::ALL {
        let line_up = line_up::slices(&several, kernel)?;
        let title = format!(
            "{}, several streams, uses recorded",
            kernel.describe("CudaSlice")
        );
        table::print(&title, &timing::time(&several, line_up, &plan)?);
    }
    Ok(())
}

/// A graph of a hundred launches with eight buffers and two scalars each.
fn graphs(scene: &Scene, stream: &str, plan: &Plan) -> Result<(), Box<dyn Error>> {
    println!("\n{plan}.");
    let nodes = graphs::NODES;
    let kernel = Kernel::Empty10.describe("buffers");
    let title = format!("a graph of {nodes} launches, each of {kernel}, on {stream}");
    let replays = timing::time(scene, graphs::replays(scene)?, plan)?;
    table::print(&format!("{title}, host time"), &replays);
    let replays = timing::time(scene, graphs::replays(scene)?, &plan.to_the_end())?;
    table::print(&format!("{title}, end to end"), &replays);
    let updates = timing::time(scene, graphs::updates(scene)?, plan)?;
    table::print(&format!("{title}, one node updated"), &updates);
    Ok(())
}

fn plan() -> Result<Plan, Box<dyn Error>> {
    let mut plan = Plan {
        rounds: 40,
        batches: 8,
        launches: 500,
        to_the_end: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let place = match option.as_str() {
            "--rounds" => &mut plan.rounds,
            "--batches" => &mut plan.batches,
            "--launches" => &mut plan.launches,
            _ => return Err(USAGE.into()),
        };
        let value = arguments.next().and_then(|value| value.parse().ok());
        *place = value.filter(|&value| value > 0).ok_or(USAGE)?;
    }
    if plan.rounds < 20 {
        return Err(USAGE.into());
    }
    Ok(plan)
}
