//! What child processes took of the processor, as Linux counts it.

use std::{error::Error, fs, time::Duration};

/// User and system time of all children that have ended, and of theirs.
pub(crate) fn time_of_children() -> Result<Duration, Box<dyn Error>> {
    // proc_pid_stat(5): the fields behind the name, which is in parentheses, begin with the third;
    // cutime and cstime are the sixteenth and the seventeenth, in hundredths of a second.
    const TICKS_A_SECOND: u64 = 100;
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let times = fields.split_whitespace().skip(13).take(2);
    let ticks: Vec<u64> = times.map(str::parse).collect::<Result<_, _>>()?;
    let ticks: u64 = ticks.iter().sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_A_SECOND))
}
