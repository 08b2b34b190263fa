//! Which lines ran, and how often: for a report in the format of lcov.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Grid;

/// How often the lines of kernels ran.
///
/// Lines are those of the source where the PTX has `.loc`, else those of the PTX. A line counts as often as its
/// most frequent instruction was run by a warp.
///
/// ```
/// use gridcall_emulator::exec::Coverage;
///
/// let mut coverage = Coverage::default();
/// // coverage.add(&grid, "kernel.ptx") after each run
/// assert_eq!(coverage.lcov(), "");
/// # coverage.clear();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    files: BTreeMap<String, File>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct File {
    lines: BTreeMap<u32, u64>,
    /// The first line of each function, and how often it was entered.
    functions: BTreeMap<String, (u32, u64)>,
}

impl Coverage {
    /// Adds what a grid ran so far; `ptx` is the name of its text, for lines without a source.
    pub fn add(&mut self, grid: &Grid, ptx: &str) {
        let (kernel, counts) = grid.counts();
        let mut ran: BTreeMap<(String, u32), u64> = BTreeMap::new();
        let mut entered: BTreeMap<&str, (String, u32, u64)> = BTreeMap::new();
        for (pc, function, file, line) in grid.program().reachable_lines(kernel) {
            let file = file.unwrap_or_else(|| ptx.to_owned());
            let count = counts.get(pc as usize).copied().unwrap_or(0);
            entered
                .entry(function)
                .or_insert_with(|| (file.clone(), line, count));
            let most = ran.entry((file, line)).or_default();
            *most = count.max(*most);
        }
        for ((file, line), count) in ran {
            *self
                .files
                .entry(file)
                .or_default()
                .lines
                .entry(line)
                .or_default() += count;
        }
        for (function, (file, line, count)) in entered {
            let functions = &mut self.files.entry(file).or_default().functions;
            functions.entry(function.to_owned()).or_insert((line, 0)).1 += count;
        }
    }

    /// How often a line ran; none if it holds no instruction.
    #[must_use]
    pub fn line(&self, file: &str, line: u32) -> Option<u64> {
        self.files.get(file)?.lines.get(&line).copied()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.files.clear();
    }

    /// The report, as `genhtml` and editors read it.
    #[must_use]
    pub fn lcov(&self) -> String {
        let mut report = String::new();
        for (name, file) in &self.files {
            // Writing to a string cannot fail.
            let _ = writeln!(report, "TN:\nSF:{name}");
            for (function, (line, _)) in &file.functions {
                let _ = writeln!(report, "FN:{line},{function}");
            }
            for (function, (_, count)) in &file.functions {
                let _ = writeln!(report, "FNDA:{count},{function}");
            }
            let hit = file
                .functions
                .values()
                .filter(|(_, count)| *count > 0)
                .count();
            let _ = writeln!(report, "FNF:{}\nFNH:{hit}", file.functions.len());
            for (line, count) in &file.lines {
                let _ = writeln!(report, "DA:{line},{count}");
            }
            let hit = file.lines.values().filter(|count| **count > 0).count();
            let _ = writeln!(report, "LF:{}\nLH:{hit}\nend_of_record", file.lines.len());
        }
        report
    }
}
