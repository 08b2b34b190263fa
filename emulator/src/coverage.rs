//! Which lines of kernels have run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::exec::{Grid, Program};

/// How often the lines of a module have run, counted by warps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The kernels of the module.
    pub kernels: Vec<String>,
    /// Lines of the PTX text.
    pub ptx: BTreeMap<u32, u64>,
    /// Lines of the sources it was compiled from, where it says so (`-lineinfo`).
    pub sources: BTreeMap<(String, u32), u64>,
}

impl Coverage {
    /// The counts in the format of lcov's tracefiles: for the sources if they are known, else for the
    /// PTX, under the name given.
    ///
    /// # Examples
    ///
    /// ```
    /// let coverage = gridcall_emulator::Coverage::default();
    /// assert_eq!(coverage.lcov("saxpy.ptx"), "TN:\nSF:saxpy.ptx\nend_of_record\n");
    /// ```
    #[must_use]
    pub fn lcov(&self, ptx: &str) -> String {
        let mut files: BTreeMap<&str, Vec<(u32, u64)>> = BTreeMap::new();
        for ((file, line), count) in &self.sources {
            files.entry(file).or_default().push((*line, *count));
        }
        if files.is_empty() {
            let lines = self.ptx.iter().map(|(line, count)| (*line, *count));
            files.insert(ptx, lines.collect());
        }
        let mut text = String::new();
        for (file, lines) in files {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "TN:\nSF:{file}");
            for (line, count) in lines {
                let _ = writeln!(text, "DA:{line},{count}");
            }
            text.push_str("end_of_record\n");
        }
        text
    }
}

/// The counts of all modules launched on a device.
#[derive(Debug, Default)]
pub(crate) struct Counted(Vec<(Arc<Program>, Vec<u64>)>);

impl Counted {
    /// Adds what a launch counted.
    pub(crate) fn add(&mut self, grid: &Grid) {
        let program = grid.program();
        let known = self
            .0
            .iter_mut()
            .find(|(known, _)| Arc::ptr_eq(known, program));
        match known {
            Some((_, counts)) => {
                for (sum, count) in counts.iter_mut().zip(grid.counts()) {
                    *sum += count;
                }
            }
            None => self.0.push((Arc::clone(program), grid.counts().to_vec())),
        }
    }

    pub(crate) fn coverage(&self) -> Vec<Coverage> {
        self.0
            .iter()
            .map(|(program, counts)| lines(program, counts))
            .collect()
    }
}

/// A line has run as often as the instruction of it that ran most often.
fn lines(program: &Program, counts: &[u64]) -> Coverage {
    let mut coverage = Coverage {
        kernels: program
            .kernels()
            .iter()
            .map(|kernel| kernel.name.clone())
            .collect(),
        ..Coverage::default()
    };
    for (pc, count) in (0..).zip(counts) {
        let line = program.position(pc).line;
        if line > 0 {
            let sum = coverage.ptx.entry(line).or_default();
            *sum = (*sum).max(*count);
        }
        if let Some(source) = program.source(pc) {
            let sum = coverage
                .sources
                .entry((source.file, source.line))
                .or_default();
            *sum = (*sum).max(*count);
        }
    }
    coverage
}
