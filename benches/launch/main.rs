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
    graphs::{self, NODES},
    line_up::{self, Kernel, LineUp},
    scene::{Scene, Streams},
};

use crate::{machine::Machine, timing::Plan};

const USAGE: &str = "usage: launch [--rounds N] [--batches N] [--launches N] [--only TEXT]..
  rounds    rounds for each table after one of warm-up, at least 20 (default 40)
  batches   batches of each round and contender (default 8)
  launches  launches of each batch, fewer than the driver's queue holds (default 500);
            a sixteenth of them where uses are recorded, as each takes many entries
  only      prints the tables with this text, or another one that is given so, in their titles";

fn main() -> ExitCode {
    match Tables::asked_for().and_then(|tables| tables.print_all()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What is asked for.
struct Tables {
    plan: Plan,
    /// Texts of which one must be in a table's title; none for all tables.
    only: Vec<String>,
}

impl Tables {
    fn asked_for() -> Result<Tables, Box<dyn Error>> {
        let mut plan = Plan {
            rounds: 40,
            batches: 8,
            launches: 500,
            to_the_end: false,
        };
        let mut only = Vec::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(option) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            let place = match option.as_str() {
                "--rounds" => &mut plan.rounds,
                "--batches" => &mut plan.batches,
                "--launches" => &mut plan.launches,
                "--only" => {
                    only.push(value);
                    continue;
                }
                _ => return Err(USAGE.into()),
            };
            *place = value.parse().ok().filter(|&value| value > 0).ok_or(USAGE)?;
        }
        if plan.rounds < 20 {
            return Err(USAGE.into());
        }
        Ok(Tables { plan, only })
    }

    fn print_all(&self) -> Result<(), Box<dyn Error>> {
        let plan = &self.plan;
        let one = Scene::new(Streams::One)?;
        println!("{}", Machine::ask(&one)?);
        println!("{plan}.");
        for kernel in Kernel::ALL {
            let title = format!("{}, one stream", kernel.describe("CudaSlice"));
            self.print(&title, &one, plan, || line_up::slices(&one, kernel))?;
        }
        let several = Scene::new(Streams::Several)?;
        let kernel = Kernel::Empty12;
        let title = format!("{}, several streams", kernel.describe("Buffer"));
        self.print(&title, &several, plan, || {
            line_up::buffers(&several, kernel)
        })?;
        let arrays = "Buffer (five also read by another stream)";
        let title = format!("{}, several streams", kernel.describe(arrays));
        self.print(&title, &several, plan, || {
            line_up::shared_buffers(&several, kernel)
        })?;
        self.print_graphs(&one, "the default stream")?;
        self.print_graphs(&several, "a stream that can be captured")?;
        self.print_updates(&one)?;
        let plan = plan.for_recorded_uses();
        println!("\n{plan}.");
        for kernel in Kernel::ALL {
            let arrays = kernel.describe("CudaSlice");
            let title = format!("{arrays}, several streams, uses recorded");
            self.print(&title, &several, &plan, || {
                line_up::slices(&several, kernel)
            })?;
        }
        Ok(())
    }

    /// A graph of a hundred launches with eight buffers and two scalars each.
    fn print_graphs(&self, scene: &Scene, stream: &str) -> Result<(), Box<dyn Error>> {
        let plan = self.plan.for_graphs();
        println!("\n{plan}.");
        let arrays = Kernel::Empty10.describe("buffers");
        let title = format!("a graph of {NODES} launches, each of {arrays}, on {stream}");
        let replays = || graphs::replays(scene);
        self.print(&format!("{title}, host time"), scene, &plan, replays)?;
        let title = format!("{title}, end to end");
        self.print(&title, scene, &plan.to_the_end(), replays)
    }

    /// Updates of a node of such graphs, which call the driver and enqueue nothing.
    fn print_updates(&self, scene: &Scene) -> Result<(), Box<dyn Error>> {
        println!("\n{}.", self.plan);
        for kernel in [Kernel::Empty4, Kernel::Empty10] {
            let arrays = kernel.describe("buffers");
            let title = format!("a graph of {NODES} launches, each of {arrays}, one node updated");
            self.print(&title, scene, &self.plan, || graphs::updates(scene, kernel))?;
        }
        Ok(())
    }

    /// Times and prints one table, if it is asked for.
    fn print(
        &self,
        title: &str,
        scene: &Scene,
        plan: &Plan,
        line_up: impl FnOnce() -> Result<LineUp, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        if self.only.is_empty() || self.only.iter().any(|text| title.contains(&**text)) {
            table::print(title, &timing::time(scene, line_up()?, plan)?);
        }
        Ok(())
    }
}
