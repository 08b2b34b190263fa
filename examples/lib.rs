//! What the examples share: how they end.

use std::{error::Error, process::ExitCode};

/// Runs an example, and ends it with one line where it cannot go on.
pub fn run(example: impl FnOnce() -> Result<(), Box<dyn Error>>) -> ExitCode {
    match example() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
