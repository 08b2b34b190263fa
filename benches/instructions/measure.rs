//! Launches in every way, and notes what callgrind does not see.

use std::{error::Error, fmt::Write, fs, path::Path};

use gridcall_benches::{
    graphs,
    line_up::{self, Kernel, LineUp, Way},
    measured,
    scene::{Scene, Streams},
};

use crate::{allocations, driver::Driver, row::Row};

/// Launches of the shorter of the two measurements of each way; the longer has twice as many.
pub(crate) const LAUNCHES: usize = 1000;

/// Launches everyone, and writes a row for each pair of callgrind's dumps into `folder`.
pub(crate) fn measure(folder: &Path) -> Result<(), Box<dyn Error>> {
    let driver = Driver::open()?;
    let mut rows = String::new();
    for streams in [Streams::One, Streams::Several] {
        let scene = Scene::new(streams)?;
        for kernel in Kernel::ALL {
            let mut measure = |arrays: &str, promised: Option<usize>, line_up: LineUp| {
                let group = group(streams, kernel, arrays);
                let ours = |way| matches!(way, Way::Function | Way::Handle | Way::Prepared);
                let budget = |way| promised.filter(|_| ours(way));
                measure_all(&driver, &group, line_up, budget, &mut rows)
            };
            let one_stream = (streams == Streams::One).then(|| budget(kernel, 45));
            measure("CudaSlice", one_stream, line_up::slices(&scene, kernel)?)?;
            if kernel.arrays() > 0 {
                measure("CudaView", one_stream, line_up::views(&scene, kernel)?)?;
                let buffers = line_up::buffers(&scene, kernel)?;
                measure("Buffer", Some(budget(kernel, 20)), buffers)?;
                // Tensors of one stream are settled on it whatever else there is.
                let tensors = line_up::tensors(&scene, kernel)?;
                measure("Tensor", Some(budget(kernel, 80)), tensors)?;
                let tensors = line_up::typed_tensors(&scene, kernel)?;
                measure("TypedTensor", Some(budget(kernel, 80)), tensors)?;
            }
            if kernel == Kernel::Empty12 && streams == Streams::Several {
                let line_up = line_up::shared_buffers(&scene, kernel)?;
                measure("Buffer (five also read by another stream)", None, line_up)?;
            }
        }
        let stream = match streams {
            Streams::One => "the default stream",
            Streams::Several => "a stream that can be captured",
        };
        let mut measure = |what: &str, kernel: Kernel, line_up: LineUp| {
            let nodes = graphs::NODES;
            let arrays = kernel.describe("buffers");
            let group = format!("{what} of {nodes} launches, each of {arrays}, on {stream}");
            let budget = |way| graph_budget(kernel, way);
            measure_all(&driver, &group, line_up, budget, &mut rows)
        };
        measure("a graph", Kernel::Empty10, graphs::replays(&scene)?)?;
        for kernel in [Kernel::Empty4, Kernel::Empty10] {
            measure("one node", kernel, graphs::updates(&scene, kernel)?)?;
        }
    }
    fs::write(folder.join(Row::FILE), rows)?;
    Ok(())
}

/// Lets everyone launch, and adds a row for each.
fn measure_all(
    driver: &Driver,
    group: &str,
    line_up: LineUp,
    budget: impl Fn(Way) -> Option<usize>,
    rows: &mut String,
) -> Result<(), Box<dyn Error>> {
    for (way, mut contender) in line_up {
        let mut row = Row::new(group, way.name(), budget(way));
        // The first launch resolves functions.
        contender.launch()?;
        let calls = driver.calls();
        let allocations = allocations::count();
        measured(&mut *contender, LAUNCHES)?;
        measured(&mut *contender, 2 * LAUNCHES)?;
        row.allocations = a_launch(allocations::count() - allocations);
        for ((name, after), (_, before)) in driver.calls().into_iter().zip(calls) {
            match a_launch(after - before).as_str() {
                "0" => {}
                "1" => write!(row.calls, "{name} ")?,
                times => write!(row.calls, "{times}×{name} ")?,
            }
        }
        writeln!(rows, "{row}")?;
    }
    Ok(())
}

fn group(streams: Streams, kernel: Kernel, arrays: &str) -> String {
    let streams = match streams {
        Streams::One => "one stream",
        Streams::Several => "several streams, uses recorded",
    };
    format!("{}, {streams}", kernel.describe(arrays))
}

/// The instructions that a launch may take above the bare call, with so many for each array.
fn budget(kernel: Kernel, array: usize) -> usize {
    100 + array * kernel.arrays() + 8 * kernel.scalars()
}

/// The instructions that a graph's launch may take above the bare call, however many arrays it has; and
/// a node's update.
fn graph_budget(kernel: Kernel, way: Way) -> Option<usize> {
    match way {
        Way::Replay => Some(100),
        Way::Update => Some(budget(kernel, 20)),
        _ => None,
    }
}

/// A count of all measured launches, for one of them.
fn a_launch(count: u64) -> String {
    let launches = 3 * LAUNCHES as u64;
    if count.is_multiple_of(launches) {
        (count / launches).to_string()
    } else {
        format!("{count}/{launches}")
    }
}
