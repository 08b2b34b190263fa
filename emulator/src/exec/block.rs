//! A block of threads: its warps take turns until all have ended.

use super::barrier::{Barriers, ClusterBarrier, Opened};
use super::bulk::Incoming;
use super::context::{BlockPlace, Context, Running, Setting, WarpPlace};
use super::fault::{Fault, FaultKind};
use super::memory::GlobalMemory;
use super::program::Program;
use super::random::Random;
use super::shared::SharedMemory;
use super::trouble::Trouble;
use super::warp::{Outcome, State, Warp};

/// How long a warp runs before another has its turn.
const TURN: u64 = 8192;

#[derive(Debug)]
pub(crate) struct Block {
    place: BlockPlace,
    warps: Vec<Warp>,
    barriers: Barriers,
    next: usize,
}

/// The parts of a grid that a block runs on.
pub(crate) struct Ground<'a, M> {
    pub(crate) program: &'a Program,
    pub(crate) setting: &'a Setting,
    pub(crate) running: &'a mut Running,
    pub(crate) memory: &'a mut M,
    pub(crate) shared: &'a mut [SharedMemory],
    pub(crate) cluster: &'a mut ClusterBarrier,
}

macro_rules! context {
    ($self:ident, $ground:ident) => {
        Context {
            program: $ground.program,
            code: $ground.program.code(),
            setting: $ground.setting,
            running: &mut *$ground.running,
            memory: &mut *$ground.memory,
            shared: &mut *$ground.shared,
            place: $self.place,
            barriers: &mut $self.barriers,
            cluster: &mut *$ground.cluster,
        }
    };
}

impl Block {
    pub(crate) fn new<M: GlobalMemory>(ground: &mut Ground<'_, M>, place: BlockPlace) -> Self {
        let launch = &ground.setting.launch;
        let threads: u32 = launch.block.iter().product();
        let warps = threads.div_ceil(32);
        let kernel = Program::kernel_function(launch.kernel);
        let mut block = Self {
            place,
            warps: Vec::new(),
            barriers: Barriers::default(),
            next: 0,
        };
        block.barriers.live = threads;
        block.barriers.warps = low_bits(warps);
        ground.shared[place.rank as usize].begin();
        for index in 0..warps {
            let lanes = low_bits((threads - index * 32).min(32));
            let mut cx = context!(block, ground);
            let warp = Warp::new(&mut cx, kernel, WarpPlace { index, lanes });
            block.warps.push(warp);
        }
        block
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.warps.is_empty()
    }

    /// Runs at most about `steps` instructions, and says how many; fewer if all threads ended, or wait for
    /// another block of the cluster.
    pub(crate) fn run<M: GlobalMemory>(
        &mut self,
        ground: &mut Ground<'_, M>,
        steps: u64,
        mut random: Option<&mut Random>,
    ) -> Result<u64, Box<Fault>> {
        let mut used = 0;
        let mut idle = 0;
        while used < steps && !self.warps.is_empty() {
            let turn = match &mut random {
                Some(random) => {
                    self.next = random.below(self.warps.len() as u64) as usize;
                    1 + random.below(TURN)
                }
                None => TURN,
            };
            self.next %= self.warps.len();
            let at = self.next;
            let mut cx = context!(self, ground);
            let (outcome, ran) = self.warps[at].run(&mut cx, turn.min(steps - used))?;
            used += ran;
            ground.running.steps += ran;
            match outcome {
                Outcome::Slice => idle = 0,
                Outcome::Blocked => idle = if ran == 0 { idle + 1 } else { 0 },
                Outcome::Ended => {
                    let mut cx = context!(self, ground);
                    self.warps[at].dissolve(&mut cx);
                }
            }
            let opened = std::mem::take(&mut self.barriers.opened);
            if !opened.is_empty() {
                idle = 0;
                for opened in opened {
                    self.open(ground, opened)?;
                }
            }
            if outcome == Outcome::Ended {
                let last = self.warps.remove(at);
                if self.warps.is_empty() {
                    self.check_arrived(ground, &last)?;
                }
                idle = 0;
            } else {
                self.next = at + 1;
            }
            let news = ground.shared[self.place.rank as usize].news;
            if idle > 0 && self.is_stuck(ground.cluster, news) {
                if self.waits_for_cluster() {
                    break;
                }
                let cx = context!(self, ground);
                return Err(deadlock(&self.warps, &cx));
            }
        }
        Ok(used)
    }

    /// Whether all bulk copies to the block have arrived by its end.
    fn check_arrived<M: GlobalMemory>(
        &mut self,
        ground: &mut Ground<'_, M>,
        last: &Warp,
    ) -> Result<(), Box<Fault>> {
        let incoming = &ground.shared[self.place.rank as usize].incoming;
        let Some(trouble) = Incoming::unawaited(incoming) else {
            return Ok(());
        };
        let pc = trouble.pc.unwrap_or(0);
        let cx = context!(self, ground);
        Err(last.fault(&cx, pc, last.place.lanes, trouble))
    }

    fn open<M: GlobalMemory>(
        &mut self,
        ground: &mut Ground<'_, M>,
        opened: Opened,
    ) -> Result<(), Box<Fault>> {
        if let Some(pc) = opened.without
            && let Some(warp) = self.barriers.bypassed(pc, ground.program.joins())
        {
            let cx = context!(self, ground);
            let waiting = self
                .warps
                .iter()
                .find(|warp| warp.groups.iter().any(|group| group.pc == pc));
            if let Some(waiting) = waiting {
                let mask = waiting.live;
                let message = format!(
                    "divergent barrier: threads wait at line {}, which warp {warp} of the block went around",
                    cx.program.position(pc).line
                );
                let trouble = Trouble::new(FaultKind::DivergentBarrier, message);
                return Err(waiting.fault(&cx, pc, mask, trouble));
            }
        }
        ground.running.changed = true;
        ground.shared[self.place.rank as usize].barrier(opened.warps);
        for warp in &mut self.warps {
            warp.release(opened, ground.program.code());
        }
        Ok(())
    }

    /// Some thread waits for what another block of the cluster may do.
    fn waits_for_cluster(&self) -> bool {
        self.warps
            .iter()
            .flat_map(|warp| &warp.groups)
            .any(|group| matches!(group.state, State::Cluster { .. } | State::Phase { .. }))
    }

    /// Some thread waits at an `mbarrier`.
    pub(crate) fn waits_for_phase(&self) -> bool {
        self.warps
            .iter()
            .flat_map(|warp| &warp.groups)
            .any(|group| matches!(group.state, State::Phase { .. }))
    }

    /// Lets those that wait at an `mbarrier` look elsewhere.
    pub(crate) fn time_out(&mut self, code: &[super::code::Inst]) {
        for warp in &mut self.warps {
            warp.time_out(code);
        }
    }

    /// No thread of the block can go on before another block does.
    pub(crate) fn is_stuck(&self, cluster: &ClusterBarrier, news: u64) -> bool {
        !self
            .warps
            .iter()
            .flat_map(|warp| &warp.groups)
            .any(|group| match group.state {
                State::Ready => true,
                State::Cluster { phase } => cluster.phase > phase,
                State::Phase { news: seen } => seen != news,
                _ => false,
            })
    }

    /// The fault of a block in which nobody can go on.
    pub(crate) fn deadlock_in<M: GlobalMemory>(
        &mut self,
        ground: &mut Ground<'_, M>,
    ) -> Box<Fault> {
        let cx = context!(self, ground);
        deadlock(&self.warps, &cx)
    }

    pub(crate) fn place(&self) -> BlockPlace {
        self.place
    }
}

fn deadlock<M>(warps: &[Warp], cx: &Context<'_, M>) -> Box<Fault> {
    let waits: Vec<String> = warps
        .iter()
        .flat_map(|warp| warp.waits(cx))
        .take(8)
        .collect();
    let groups = || warps.iter().flat_map(|warp| &warp.groups);
    let at_barrier = groups().any(|group| matches!(group.state, State::Barrier { .. }));
    let for_lanes = groups().any(|group| matches!(group.state, State::Sync { .. }));
    let (kind, what) = match (at_barrier, for_lanes) {
        (true, _) => (
            FaultKind::DivergentBarrier,
            "divergent barrier: no thread can go on",
        ),
        (false, true) => (
            FaultKind::BadMask,
            "threads wait for lanes that do not come",
        ),
        (false, false) => (FaultKind::Deadlock, "no thread can go on"),
    };
    let trouble = Trouble::new(kind, format!("{what}: {}", waits.join("; ")));
    let blamed = warps
        .iter()
        .find_map(|warp| Some((warp, warp.groups.first()?)));
    match blamed {
        Some((warp, group)) => warp.fault(cx, group.pc, group.mask, trouble),
        None => Box::new(Fault {
            kind,
            kernel: cx.program.kernels()[cx.setting.launch.kernel].name.clone(),
            block: Some(cx.place.ctaid),
            thread: None,
            position: None,
            source: None,
            address: None,
            registers: Vec::new(),
            message: trouble.message,
        }),
    }
}

fn low_bits(count: u32) -> u32 {
    if count >= 32 {
        u32::MAX
    } else {
        (1 << count) - 1
    }
}
