//! Counts what a launch costs the host: instructions, heap allocations, driver calls.
//!
//! `measure` launches under callgrind with the counting driver beside this file; `report` reads
//! what callgrind dumped and prints the table. `run.sh` does both.

mod allocations;
mod driver;
mod dump;
mod measure;
mod report;
mod row;

use std::{error::Error, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["measure", folder] => measure::measure(Path::new(folder)),
        ["report", folder] => report::report(Path::new(folder)),
        _ => Err("usage: instructions measure|report FOLDER".into()),
    };
    exit_code(done)
}

fn exit_code(done: Result<(), Box<dyn Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
