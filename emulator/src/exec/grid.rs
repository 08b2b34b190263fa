//! A running launch.

use super::{Fault, GlobalMemory, Launch};

/// What a grid did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The instructions of warps.
    pub steps: u64,
    /// The instructions of threads.
    pub thread_instructions: u64,
}

/// How far a grid came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All threads ended.
    Done(Stats),
    /// The steps were used up.
    Running {
        /// False if all that ran only waited for something to change in memory.
        progressed: bool,
    },
    /// A thread was stopped; the grid will not go on.
    Fault(Box<Fault>),
}

/// A launch that runs a few steps at a time.
#[derive(Debug)]
pub struct Grid {
    launch: Launch,
    stats: Stats,
}

impl Grid {
    /// Prepares a launch.
    ///
    /// # Errors
    ///
    /// Fails before any thread runs if the kernel needs an instruction that the interpreter does not
    /// know, or if shape or parameters do not fit the kernel.
    pub fn new(launch: Launch) -> Result<Self, Box<Fault>> {
        Ok(Self {
            launch,
            stats: Stats::default(),
        })
    }

    /// Runs at most about `steps` instructions of warps.
    pub fn run<M: GlobalMemory>(&mut self, memory: &mut M, steps: u64) -> Progress {
        let _ = (memory, steps, &self.launch);
        Progress::Done(self.stats)
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }
}
