//! A warp: its lanes, who of them stand where, and which go next.
//!
//! Lanes that stand at one place of one call are a group. Of the groups that can go on, the one in the deepest
//! call at the lowest address goes, until it meets another or would pass it; so lanes that parted come
//! together again where their ways do. One that keeps others waiting for long makes room for them.

mod barrier;
mod call;
mod report;
mod sync;

use super::bulk::BulkGroups;
use super::code::{Op, Reg};
use super::context::{Context, WarpPlace};
use super::copies::Copies;
use super::fault::{Fault, FaultKind};
use super::frame::{Frame, NONE};
use super::local::{LocalMemory, lanes};
use super::memory::GlobalMemory;
use super::step::{Execute, Stop};
use super::trouble::Trouble;
use crate::simd;

pub(crate) use sync::{Parts, member_lanes};

/// How long a group may keep others waiting.
pub(crate) const FAIR: u64 = 4096;

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// The other lanes of a mask.
    Sync {
        members: u32,
    },
    Barrier {
        id: usize,
        aligned: bool,
    },
    /// The cluster's barrier to open once more than this often.
    Cluster {
        phase: u64,
    },
    /// The phase of an `mbarrier` to end; it looks again when there is news.
    Phase {
        news: u64,
    },
}

/// Lanes that stand at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) frame: u32,
    pub(crate) depth: u32,
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) state: State,
    /// When it last ran for fairness' sake.
    pub(crate) turn: u64,
}

/// Why a warp stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It can go on.
    Slice,
    /// All its lanes wait.
    Blocked,
    /// All its lanes ended.
    Ended,
}

#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) place: WarpPlace,
    pub(crate) live: u32,
    pub(crate) frames: Vec<Frame>,
    free: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    pub(crate) local: LocalMemory,
    pub(crate) copies: Copies,
    pub(crate) bulk: BulkGroups,
    /// For each lane, when the cluster's barrier it arrived at is to open.
    cluster_phase: [u64; 32],
    turn: u64,
    yields: bool,
    /// Where a load of shared memory that nobody had written was put off.
    put_off: Option<u32>,
}

impl Warp {
    /// A warp whose lanes stand at the kernel's entry.
    pub(crate) fn new<M>(cx: &mut Context<'_, M>, kernel: usize, place: WarpPlace) -> Self {
        let mut frame = cx.new_frame(kernel, place, 0);
        frame.parent = NONE;
        frame.depth = 0;
        frame.mask = place.lanes;
        let mut local = LocalMemory::default();
        local.enter(place.lanes, 0, frame.local_end);
        let entry = cx.program.functions()[kernel].entry;
        Self {
            place,
            live: place.lanes,
            frames: vec![frame],
            free: Vec::new(),
            groups: vec![Group {
                frame: 0,
                depth: 0,
                pc: entry,
                mask: place.lanes,
                state: State::Ready,
                turn: 0,
            }],
            local,
            copies: Copies::default(),
            bulk: BulkGroups::default(),
            cluster_phase: [0; 32],
            turn: 0,
            yields: false,
            put_off: None,
        }
    }

    /// Runs at most about `steps` instructions, and says how many it ran.
    pub(crate) fn run<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        steps: u64,
    ) -> Result<(Outcome, u64), Box<Fault>> {
        let mut left = steps;
        self.yields = false;
        let mut waited = 0;
        while left > 0 && !self.yields {
            let alone = self.groups.len() == 1;
            let fair = !alone && waited >= FAIR;
            let news = cx.shared[cx.place.rank as usize].news;
            let Some(at) = self.pick(cx.cluster.phase, news, fair) else {
                let outcome = if self.live == 0 {
                    Outcome::Ended
                } else {
                    Outcome::Blocked
                };
                return Ok((outcome, steps - left));
            };
            let mut group = self.groups.swap_remove(at);
            if fair {
                waited = 0;
                self.turn += 1;
                group.turn = self.turn;
            }
            if !alone {
                self.merge_into(&mut group);
            }
            let others = self.groups.iter().any(|other| other.state == State::Ready);
            let limit = if fair { u32::MAX } else { self.limit(&group) };
            let budget = if others { left.min(FAIR) } else { left };
            let mut frame = std::mem::take(&mut self.frames[group.frame as usize]);
            let job = Execute {
                warp: self,
                frame: &mut frame,
                group,
                limit,
                budget,
                cx,
            };
            let (group, used, stop) = simd::widest(job);
            self.frames[group.frame as usize] = frame;
            left = left.saturating_sub(used);
            waited = if others { waited + used } else { 0 };
            match stop {
                Stop::Pause => self.groups.push(group),
                Stop::Slow { active } => {
                    self.slow(cx, group, active)
                        .map_err(|trouble| self.fault(cx, group.pc, active, trouble))?;
                }
                Stop::Trouble { active, trouble } => {
                    // Another warp may be about to write: then it is a race, which says more.
                    let early = trouble.kind == FaultKind::Uninitialised && trouble.retries;
                    if !early
                        || cx.barriers.live == self.live.count_ones()
                        || self.put_off == Some(group.pc)
                    {
                        return Err(self.fault(cx, group.pc, active, trouble));
                    }
                    self.put_off = Some(group.pc);
                    self.yields = true;
                    self.groups.push(group);
                }
            }
        }
        Ok((Outcome::Slice, steps - left))
    }

    /// The group to go next.
    fn pick(&mut self, cluster_phase: u64, latest: u64, fair: bool) -> Option<usize> {
        for group in &mut self.groups {
            let wakes = match group.state {
                State::Cluster { phase } => cluster_phase > phase,
                State::Phase { news } => latest != news,
                _ => false,
            };
            if wakes {
                group.state = State::Ready;
            }
        }
        let ready = self
            .groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.state == State::Ready);
        let best = if fair {
            ready.min_by_key(|(_, group)| group.turn)
        } else {
            ready.min_by_key(|(_, group)| (u32::MAX - group.depth, group.pc))
        };
        best.map(|(at, _)| at)
    }

    /// Takes in the groups that stand at the same place.
    fn merge_into(&mut self, group: &mut Group) {
        self.groups.retain(|other| {
            let same =
                other.state == State::Ready && other.frame == group.frame && other.pc == group.pc;
            if same {
                group.mask |= other.mask;
                group.turn = group.turn.max(other.turn);
            }
            !same
        });
    }

    /// The address at which a group meets or passes another.
    fn limit(&self, group: &Group) -> u32 {
        self.groups
            .iter()
            .filter(|other| {
                other.state == State::Ready && other.depth == group.depth && other.pc > group.pc
            })
            .map(|other| other.pc)
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Runs an operation that concerns more than the registers and memory of one group.
    fn slow<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        group: Group,
        active: u32,
    ) -> Result<(), Trouble> {
        let rest = group.mask & !active;
        if rest != 0 {
            self.groups.push(Group {
                mask: rest,
                pc: group.pc + 1,
                ..group
            });
        }
        if active == 0 {
            return Ok(());
        }
        let here = Group {
            mask: active,
            ..group
        };
        let next = Group {
            pc: group.pc + 1,
            ..here
        };
        let code = cx.code;
        match &code[group.pc as usize].op {
            Op::Return => self.leave(cx, here)?,
            Op::Exit => self.exit(cx, here.frame, active)?,
            Op::Call(call) => self.call(cx, here, call)?,
            Op::BranchTable { targets, index } => self.branch_table(here, targets, *index)?,
            Op::Sync(op) => self.sync(cx, here, op)?,
            Op::Matrix(op) => self.matrix(cx, here, op)?,
            Op::Barrier(barrier) => self.barrier(cx, here, barrier)?,
            Op::ClusterArrive => {
                cx.shared[cx.place.rank as usize].fence(self.place.index as usize);
                for lane in lanes(active) {
                    self.cluster_phase[lane] = cx.cluster.phase;
                }
                cx.cluster.arrive(active.count_ones());
                cx.running.changed = true;
                self.groups.push(next);
            }
            Op::ClusterWait => {
                let phase = lanes(active)
                    .map(|lane| self.cluster_phase[lane])
                    .max()
                    .unwrap_or(0);
                if cx.cluster.phase > phase {
                    cx.shared[cx.place.rank as usize].fence(self.place.index as usize);
                    self.groups.push(next);
                } else {
                    self.groups.push(Group {
                        state: State::Cluster { phase },
                        ..here
                    });
                }
            }
            Op::Sleep => {
                self.yields = true;
                self.groups.push(next);
            }
            Op::Join(join) => {
                self.join(cx, *join)?;
                self.groups.push(next);
            }
            Op::MBarrier(op) => {
                let waiting = self.mbarrier(cx, here, op)?;
                let news = cx.shared[cx.place.rank as usize].news;
                for (mask, group) in [
                    (active & !waiting, next),
                    (
                        waiting,
                        Group {
                            state: State::Phase { news },
                            ..here
                        },
                    ),
                ] {
                    if mask != 0 {
                        self.groups.push(Group { mask, ..group });
                    }
                }
            }
            Op::Bulk(op) => {
                self.bulk(cx, here, op)?;
                self.groups.push(next);
            }
            Op::Trap => return Err(Trouble::new(FaultKind::Trap, "the kernel ran into `trap`")),
            _ => {
                return Err(Trouble::new(
                    FaultKind::NotSupported,
                    "the kernel ran into an instruction that is not supported",
                ));
            }
        }
        Ok(())
    }

    fn branch_table(&mut self, here: Group, targets: &[u32], index: Reg) -> Result<(), Trouble> {
        let frame = &self.frames[here.frame as usize];
        let mut left = here.mask;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let wanted = frame.lane(index, lane);
            let Some(&pc) = usize::try_from(wanted)
                .ok()
                .and_then(|wanted| targets.get(wanted))
            else {
                return Err(Trouble::new(
                    FaultKind::InvalidPc,
                    format!("`brx.idx` to target {wanted} of {}", targets.len()),
                )
                .by(lane));
            };
            let mask = same_lanes(frame, index, left);
            left &= !mask;
            self.groups.push(Group { pc, mask, ..here });
        }
        Ok(())
    }

    /// Gives the frames back.
    pub(crate) fn dissolve<M>(&mut self, cx: &mut Context<'_, M>) {
        for frame in self.frames.drain(..) {
            if !frame.words.is_empty() || !frame.doubles.is_empty() || !frame.predicates.is_empty()
            {
                cx.running.pool.give_back(frame);
            }
        }
    }
}

/// The lanes of a mask whose register holds what that of the lowest holds.
pub(crate) fn same_lanes(frame: &Frame, reg: Reg, mask: u32) -> u32 {
    let wanted = frame.lane(reg, mask.trailing_zeros() as usize % 32);
    let same = lanes(mask).filter(|lane| frame.lane(reg, *lane) == wanted);
    same.fold(0, |same, lane| same | 1 << lane)
}
