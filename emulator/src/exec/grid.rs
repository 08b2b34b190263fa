//! A running launch: which of its blocks are under way, and whose turn it is.

use super::barrier::ClusterBarrier;
use super::block::{Block, Ground};
use super::context::{BlockPlace, Running, Setting};
use super::fault::{Fault, FaultKind};
use super::launch::{Launch, Order};
use super::memory::GlobalMemory;
use super::program::Program;
use super::races::GlobalRaces;
use super::random::Random;
use super::shared::SharedMemory;
use std::sync::Arc;

/// How long a cluster of blocks runs before another has its turn, alone and among others, which may wait
/// for one another.
const TURN: u64 = 1 << 16;
const SHORT_TURN: u64 = 1 << 11;

/// After so many turns without an end, a block makes room for others though it changes memory.
const LONG: u64 = 1 << 10;

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
        /// False if no store changed memory, no barrier opened and no thread ended: all that ran may be
        /// waiting for something to change.
        progressed: bool,
    },
    /// A thread was stopped; the grid will not go on.
    Fault(Box<Fault>),
}

/// A launch that runs a few steps at a time.
#[derive(Debug)]
pub struct Grid {
    setting: Setting,
    program: Arc<Program>,
    running: Running,
    clusters: Vec<Cluster>,
    /// Shared memories that are not in use.
    idle: Vec<SharedMemory>,
    /// The clusters still to be started, as a position in their order, and how many there are.
    started: u64,
    total: u64,
    next: usize,
    random: Option<Random>,
    /// An odd number and an offset by which the order of clusters is permuted.
    stride: u64,
    stopped: Option<Box<Fault>>,
}

// Whoever drives a grid may do so from any thread.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Grid>();
};

/// Blocks that run together.
#[derive(Debug)]
struct Cluster {
    blocks: Vec<Block>,
    shared: Vec<SharedMemory>,
    barrier: ClusterBarrier,
    turns: u64,
    next: usize,
}

impl Grid {
    /// Prepares a launch.
    ///
    /// # Errors
    ///
    /// Fails before any thread runs if the kernel needs an instruction that the interpreter does not
    /// know, or if shape or parameters do not fit the kernel.
    pub fn new(launch: Launch) -> Result<Self, Box<Fault>> {
        let program = Arc::clone(&launch.program);
        super::check::launch(&program, &launch)?;
        let setting = super::check::setting(&program, launch);
        let clusters = setting.launch.grid.iter().zip(setting.launch.cluster);
        let total = clusters
            .map(|(blocks, cluster)| u64::from(blocks / cluster.max(1)))
            .product();
        let mut random = match setting.launch.order {
            Order::Deterministic => None,
            Order::Seeded(seed) => Some(Random::new(seed)),
        };
        let stride = random.as_mut().map_or(1, |random| coprime(random, total));
        let running = Running {
            counts: vec![0; program.code().len()],
            races: (setting.launch.check_global_races && !setting.launch.cooperative)
                .then(GlobalRaces::default),
            ..Running::default()
        };
        Ok(Self {
            setting,
            program,
            running,
            clusters: Vec::new(),
            idle: Vec::new(),
            started: 0,
            total,
            next: 0,
            random,
            stride,
            stopped: None,
        })
    }

    /// Runs at most about `steps` instructions of warps.
    pub fn run<M: GlobalMemory>(&mut self, memory: &mut M, steps: u64) -> Progress {
        if let Some(fault) = &self.stopped {
            return Progress::Fault(fault.clone());
        }
        self.running.windows.clear();
        match self.run_turns(memory, steps) {
            Ok(progress) => progress,
            Err(fault) => {
                self.clusters.clear();
                self.stopped = Some(fault.clone());
                Progress::Fault(fault)
            }
        }
    }

    fn run_turns<M: GlobalMemory>(
        &mut self,
        memory: &mut M,
        steps: u64,
    ) -> Result<Progress, Box<Fault>> {
        let end = self.running.steps.saturating_add(steps);
        let mut progressed = false;
        let mut stuck = 0;
        loop {
            self.start(memory);
            if self.clusters.is_empty() {
                return Ok(Progress::Done(self.stats()));
            }
            if self.running.steps >= end {
                return Ok(Progress::Running { progressed });
            }
            self.check_budget()?;
            if let Some(random) = &mut self.random {
                self.next = random.below(self.clusters.len() as u64) as usize;
            }
            self.next %= self.clusters.len();
            let at = self.next;
            self.running.changed = false;
            let before = self.running.steps;
            let turn = if self.clusters.len() == 1 {
                TURN
            } else {
                SHORT_TURN
            };
            let turn = turn.min(end - self.running.steps);
            let ended = self.run_cluster(memory, at, turn)?;
            progressed |= self.running.changed;
            if ended {
                let cluster = self.clusters.remove(at);
                self.idle.extend(cluster.shared);
                stuck = 0;
                continue;
            }
            // A block that waits for others must not keep them from starting.
            let cluster = &mut self.clusters[at];
            cluster.turns += 1;
            let waits = !self.running.changed || cluster.turns.is_multiple_of(LONG);
            stuck = if self.running.steps == before {
                stuck + 1
            } else {
                0
            };
            if waits && !self.is_full() {
                self.start_one(memory);
            }
            if stuck > self.clusters.len() && self.is_full() {
                let cluster = &mut self.clusters[at];
                let mut ground = Ground {
                    program: &self.program,
                    setting: &self.setting,
                    running: &mut self.running,
                    memory,
                    shared: &mut cluster.shared,
                    cluster: &mut cluster.barrier,
                };
                if let Some(block) = cluster.blocks.first_mut() {
                    return Err(block.deadlock_in(&mut ground));
                }
            }
            self.next = at + 1;
        }
    }

    /// Whether no more blocks can be under way.
    fn is_full(&self) -> bool {
        let device = &self.setting.launch.device;
        let resident = u64::from(device.multiprocessors.max(1))
            * u64::from(device.blocks_per_multiprocessor.max(1));
        let size: u64 = self
            .setting
            .launch
            .cluster
            .iter()
            .map(|extent| u64::from(*extent))
            .product();
        self.started == self.total || self.clusters.len() as u64 * size.max(1) >= resident
    }

    /// Starts the blocks that have to be under way.
    fn start<M: GlobalMemory>(&mut self, memory: &mut M) {
        if self.clusters.is_empty() && self.started < self.total {
            self.start_one(memory);
        }
        if self.setting.launch.cooperative {
            while self.started < self.total {
                self.start_one(memory);
            }
        }
        // A random order has a few blocks under way at once.
        if self.random.is_some() {
            while self.clusters.len() < 4 && !self.is_full() {
                self.start_one(memory);
            }
        }
    }

    fn start_one<M: GlobalMemory>(&mut self, memory: &mut M) {
        if self.started >= self.total {
            return;
        }
        let wide = u128::from(self.started) * u128::from(self.stride) % u128::from(self.total);
        let index = u64::try_from(wide).unwrap_or(0);
        self.started += 1;
        let launch = &self.setting.launch;
        let size = launch.cluster;
        let across = [0, 1, 2].map(|axis| u64::from(launch.grid[axis] / size[axis].max(1)));
        let cluster = [
            index % across[0],
            index / across[0] % across[1],
            index / (across[0] * across[1]),
        ]
        .map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        let blocks: u32 = size.iter().product();
        let threads: u32 = launch.block.iter().product();
        let warps = threads.div_ceil(32) as usize;
        let (grid, bytes, granule) = (launch.grid, self.setting.shared_bytes, self.setting.granule);
        let mut started = Cluster {
            blocks: Vec::new(),
            shared: Vec::new(),
            barrier: ClusterBarrier::new(threads * blocks),
            turns: 0,
            next: 0,
        };
        for _ in 0..blocks {
            let shared = self.idle.pop();
            started
                .shared
                .push(shared.unwrap_or_else(|| SharedMemory::new(bytes as usize, granule, warps)));
        }
        for rank in 0..blocks {
            let within = [
                rank % size[0],
                rank / size[0] % size[1],
                rank / (size[0] * size[1]),
            ];
            let ctaid = [0, 1, 2].map(|axis| cluster[axis] * size[axis] + within[axis]);
            let index = u64::from(ctaid[0])
                + u64::from(grid[0])
                    * (u64::from(ctaid[1]) + u64::from(grid[1]) * u64::from(ctaid[2]));
            let place = BlockPlace {
                index,
                ctaid,
                rank,
                cluster_ctaid: within,
                cluster,
            };
            let mut ground = Ground {
                program: &self.program,
                setting: &self.setting,
                running: &mut self.running,
                memory,
                shared: &mut started.shared,
                cluster: &mut started.barrier,
            };
            started.blocks.push(Block::new(&mut ground, place));
        }
        self.clusters.push(started);
    }

    /// Runs a cluster for a turn, and says whether all of it has ended.
    fn run_cluster<M: GlobalMemory>(
        &mut self,
        memory: &mut M,
        at: usize,
        turn: u64,
    ) -> Result<bool, Box<Fault>> {
        let Some(cluster) = self.clusters.get_mut(at) else {
            return Ok(true);
        };
        let count = cluster.blocks.len();
        let mut left = turn;
        let mut idle = 0;
        while left > 0 && idle < count {
            cluster.next %= count;
            let block = &mut cluster.blocks[cluster.next];
            if block.has_ended() {
                idle += 1;
                cluster.next += 1;
                continue;
            }
            let mut ground = Ground {
                program: &self.program,
                setting: &self.setting,
                running: &mut self.running,
                memory,
                shared: &mut cluster.shared,
                cluster: &mut cluster.barrier,
            };
            let share = if count == 1 {
                left
            } else {
                left.min(SHORT_TURN)
            };
            let used = block.run(&mut ground, share, self.random.as_mut())?;
            left = left.saturating_sub(used);
            idle = if used == 0 { idle + 1 } else { 0 };
            cluster.next += 1;
        }
        let ended = cluster.blocks.iter().all(Block::has_ended);
        let stuck = |block: &Block| {
            let news = cluster.shared[block.place().rank as usize].news;
            block.has_ended() || block.is_stuck(&cluster.barrier, news)
        };
        if !ended && idle >= count && cluster.blocks.iter().all(stuck) {
            // Whoever waits at an `mbarrier` may look elsewhere after a while. If nobody does, and nothing
            // changed since they did last, nothing ever will.
            let waits = cluster.blocks.iter().any(Block::waits_for_phase);
            if waits && (self.running.changed || self.running.looked) {
                self.running.looked = false;
                for block in &mut cluster.blocks {
                    block.time_out(self.program.code());
                }
                return Ok(false);
            }
            let mut ground = Ground {
                program: &self.program,
                setting: &self.setting,
                running: &mut self.running,
                memory,
                shared: &mut cluster.shared,
                cluster: &mut cluster.barrier,
            };
            if let Some(block) = cluster.blocks.iter_mut().find(|block| !block.has_ended()) {
                return Err(block.deadlock_in(&mut ground));
            }
        }
        Ok(ended)
    }

    fn check_budget(&self) -> Result<(), Box<Fault>> {
        let budget = self.setting.launch.step_budget;
        if budget == 0 || self.running.steps < budget {
            return Ok(());
        }
        let hottest = self
            .running
            .counts
            .iter()
            .enumerate()
            .max_by_key(|(_, count)| **count);
        let pc = hottest.map_or(0, |(pc, _)| pc as u32);
        let position = self.program.position(pc);
        let block = self
            .clusters
            .first()
            .and_then(|cluster| cluster.blocks.first());
        Err(Box::new(Fault {
            kind: FaultKind::StepBudget,
            kernel: self.program.kernels()[self.setting.launch.kernel]
                .name
                .clone(),
            block: block.map(|block| block.place().ctaid),
            thread: None,
            position: Some(position),
            source: self.program.source(pc),
            address: None,
            registers: Vec::new(),
            message: format!(
                "the step budget of {budget} warp instructions is used up; line {} ran most often, {} times",
                position.line,
                hottest.map_or(0, |(_, count)| *count)
            ),
        }))
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            steps: self.running.steps,
            thread_instructions: self.running.thread_instructions,
        }
    }

    /// The program it runs.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The kernel it runs, and how often each micro-operation ran.
    pub(crate) fn counts(&self) -> (usize, &[u64]) {
        (self.setting.launch.kernel, &self.running.counts)
    }
}

/// A number that shares no divisor with `total`, so that its multiples visit every block once.
fn coprime(random: &mut Random, total: u64) -> u64 {
    for _ in 0..64 {
        let candidate = 1 + random.below(total.max(1));
        if gcd(candidate, total) == 1 {
            return candidate;
        }
    }
    1
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
