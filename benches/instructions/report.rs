//! Prints the table.

use std::{error::Error, fs, path::Path};

use crate::{dump, measure::LAUNCHES, row::Row};

/// All that a safe launch may ask of the driver: on the legacy stream, and on one that can be
/// captured; the same of a graph; and a node's update.
const CALLS: [&str; 5] = [
    "cuLaunchKernel",
    "cuStreamIsCapturing cuLaunchKernel",
    "cuCtxGetCurrent cuGraphLaunch",
    "cuStreamIsCapturing cuGraphLaunch",
    "cuGraphExecKernelNodeSetParams_v2",
];

/// Reads the rows and the dumps in `folder`.
pub(crate) fn report(folder: &Path) -> Result<(), Box<dyn Error>> {
    let rows = fs::read_to_string(folder.join(Row::FILE))?;
    let mut group = String::new();
    let mut bare = 0;
    let mut kept = true;
    for (index, line) in rows.lines().enumerate() {
        let row = Row::parse(line).ok_or_else(|| format!("not a row: {line}"))?;
        let dump =
            |number: usize| dump::instructions(&folder.join(format!("{}.{number}", dump::FILE)));
        // Two dumps a row, counted from 1. Their difference is free of what a loop costs once.
        let (shorter, longer) = (dump(2 * index + 1)?, dump(2 * index + 2)?);
        let instructions = (longer - shorter).div_ceil(LAUNCHES as u64);
        if row.group != group {
            println!("\n**{}**\n", row.group);
            println!("| | instructions | above bare | at most | | allocations | driver calls |");
            println!("| --- | ---: | ---: | ---: | --- | ---: | --- |");
            bare = instructions;
        }
        let above = instructions.saturating_sub(bare);
        let (budget, verdict) = match row.budget {
            None => (String::new(), ""),
            Some(budget)
                if above <= budget as u64
                    && row.allocations == "0"
                    && CALLS.contains(&&*row.calls) =>
            {
                (budget.to_string(), "kept")
            }
            Some(budget) => {
                kept = false;
                (budget.to_string(), "**exceeded**")
            }
        };
        println!(
            "| {} | {instructions} | {above} | {budget} | {verdict} | {} | {} |",
            row.way, row.allocations, row.calls
        );
        group = row.group;
    }
    if kept {
        println!("\nEvery launch is within its budget.");
    } else {
        println!("\nA launch exceeds its budget.");
    }
    Ok(())
}
