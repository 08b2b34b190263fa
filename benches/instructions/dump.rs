//! Reads what callgrind dumped: instructions, but for the driver's.
//!
//! The format is described in valgrind's manual, "Callgrind Format Specification".

use std::{error::Error, fs, path::Path};

/// What callgrind calls its dumps, before a dot and their number.
pub(crate) const FILE: &str = "dump";

/// The instructions of one dump that were not executed by the driver.
pub(crate) fn instructions(dump: &Path) -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string(dump).map_err(|error| format!("{}: {error}", dump.display()))?;
    let mut total = 0;
    let mut in_driver = false;
    let mut driver_number = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(object) = line.strip_prefix("ob=") {
            // `(1) name` at the first mention of an object, `(1)` later.
            let (number, name) = object.split_once(' ').unwrap_or((object, ""));
            if name.contains("libcuda.so") {
                driver_number = Some(number.to_owned());
            }
            in_driver = driver_number.as_deref() == Some(number);
        } else if let Some(object) = line.strip_prefix("cob=") {
            let (number, name) = object.split_once(' ').unwrap_or((object, ""));
            if name.contains("libcuda.so") {
                driver_number = Some(number.to_owned());
            }
        } else if line.starts_with("calls=") {
            // The next line holds the cost of what was called, which is counted there.
            lines.next();
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) && !in_driver
        {
            let cost = line.split_whitespace().nth(1).unwrap_or("0");
            total += cost.parse::<u64>()?;
        }
    }
    Ok(total)
}
