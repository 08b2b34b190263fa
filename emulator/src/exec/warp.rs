//! A warp: its lanes, who of them stand where, and which go next.
//!
//! Lanes that stand at one place of one call are a group. Of the groups that can go on, the one in the deepest
//! call at the lowest address goes, until it meets another or would pass it; so lanes that parted come
//! together again where their ways do. One that keeps others waiting for long makes room for them.

use super::barrier::{Arrival, Opened};
use super::bulk::BulkGroups;
use super::code::{Barrier, BarrierKind, Call, Callee, Op, Passed, Reg};
use super::code_base::At;
use super::context::{Context, WarpPlace};
use super::copies::Copies;
use super::fault::{Fault, FaultKind};
use super::frame::{Frame, NONE};
use super::local::{LocalMemory, lanes};
use super::memory::GlobalMemory;
use super::step::{Execute, Stop};
use super::sync::{Lanes, Members, SyncOp};
use super::trouble::Trouble;
use crate::simd;

/// How long a group may keep others waiting.
pub(crate) const FAIR: u64 = 4096;

/// The least that a call takes of a thread's stack.
const CALL_BYTES: u32 = 64;

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

    fn new_frame(&mut self, frame: Frame) -> u32 {
        if let Some(at) = self.free.pop() {
            self.frames[at as usize] = frame;
            at
        } else {
            self.frames.push(frame);
            (self.frames.len() - 1) as u32
        }
    }

    fn call<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        call: &Call,
    ) -> Result<(), Trouble> {
        match &call.callee {
            Callee::Function(function) => self.enter(cx, here, *function, call),
            Callee::Indirect {
                address,
                returns,
                params,
            } => {
                let mut left = here.mask;
                while left != 0 {
                    let frame = &self.frames[here.frame as usize];
                    let lane = left.trailing_zeros() as usize;
                    let wanted = frame.lane(*address, lane);
                    let mask = same_lanes(frame, *address, left);
                    left &= !mask;
                    let can_be_called = |index: &usize| {
                        let function = cx.program.functions().get(*index);
                        function.is_some_and(|f| f.has_body && !f.is_kernel)
                    };
                    let at = cx.program.code_base().at(wanted);
                    let function = match at {
                        At::Function(index) => Some(index).filter(can_be_called),
                        At::OtherProgram | At::Nothing => None,
                    };
                    let function = function.ok_or_else(|| {
                        let what = match at {
                            At::OtherProgram => "a function of another module",
                            _ => "no function",
                        };
                        Trouble::new(
                            FaultKind::InvalidPc,
                            format!("call of {wanted:#x}, which is the address of {what}"),
                        )
                        .at(lane, wanted)
                    })?;
                    let described = &cx.program.functions()[function];
                    let size = |passed: &Passed| match passed {
                        Passed::Bytes { size, .. } => *size,
                        Passed::Register(dest) => dest.bits.div_ceil(8),
                    };
                    let fits = described.params.iter().map(size).eq(params.iter().copied())
                        && described
                            .returns
                            .iter()
                            .map(size)
                            .eq(returns.iter().copied());
                    if !fits {
                        return Err(Trouble::new(
                            FaultKind::InvalidPc,
                            format!(
                                "call of `{}` by a prototype that does not fit it",
                                described.name
                            ),
                        )
                        .at(lane, wanted));
                    }
                    self.enter(cx, Group { mask, ..here }, function, call)?;
                }
                Ok(())
            }
            Callee::Printf => {
                super::printf::run(self, cx, here, call)?;
                self.groups.push(Group {
                    pc: here.pc + 1,
                    ..here
                });
                Ok(())
            }
            Callee::SetConditional => {
                super::printf::set_conditional(self, cx, here, call)?;
                self.groups.push(Group {
                    pc: here.pc + 1,
                    ..here
                });
                Ok(())
            }
            Callee::AssertFail => Err(super::printf::assertion(self, cx, here, call)),
        }
    }

    fn enter<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        function: usize,
        call: &Call,
    ) -> Result<(), Trouble> {
        let base = self.frames[here.frame as usize]
            .local_end
            .next_multiple_of(16);
        let described = &cx.program.functions()[function];
        let used = base.saturating_add(described.local_bytes);
        let stack = used.saturating_add(CALL_BYTES.saturating_mul(here.depth));
        let limit = cx.setting.launch.device.local_bytes_per_thread;
        if stack > limit {
            return Err(Trouble::new(
                FaultKind::StackOverflow,
                format!(
                    "call of `{}` at depth {} needs more than the {limit} bytes of stack a thread has",
                    described.name,
                    here.depth + 1
                ),
            ));
        }
        let entry = described.entry;
        let mut frame = cx.new_frame(function, self.place, base);
        frame.parent = here.frame;
        frame.call = here.pc;
        frame.depth = here.depth + 1;
        frame.mask = here.mask;
        self.local.enter(here.mask, base, frame.local_end);
        let callee = self.new_frame(frame);
        for (formal, actual) in described.params.iter().zip(&call.arguments) {
            self.pass(here.mask, (here.frame, *actual), (callee, *formal));
        }
        self.groups.push(Group {
            frame: callee,
            depth: here.depth + 1,
            pc: entry,
            state: State::Ready,
            ..here
        });
        Ok(())
    }

    fn leave<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
    ) -> Result<(), Trouble> {
        let frame = &self.frames[here.frame as usize];
        let (parent, call_at, function) = (frame.parent, frame.call, frame.function);
        if parent == NONE {
            return self.exit(cx, here.frame, here.mask);
        }
        let code = cx.code;
        if let Op::Call(call) = &code[call_at as usize].op {
            let formals = &cx.program.functions()[function].returns;
            for (formal, actual) in formals.iter().zip(&call.returns) {
                self.pass(here.mask, (here.frame, *formal), (parent, *actual));
            }
        }
        self.release_lanes(cx, here.frame, here.mask);
        self.groups.push(Group {
            frame: parent,
            depth: here.depth - 1,
            pc: call_at + 1,
            state: State::Ready,
            ..here
        });
        Ok(())
    }

    fn release_lanes<M>(&mut self, cx: &mut Context<'_, M>, at: u32, mask: u32) {
        let frame = &mut self.frames[at as usize];
        frame.mask &= !mask;
        if frame.mask == 0 {
            let frame = std::mem::take(frame);
            cx.running.pool.give_back(frame);
            self.free.push(at);
        }
    }

    /// Hands a value from one frame to another.
    fn pass(&mut self, mask: u32, from: (u32, Passed), to: (u32, Passed)) {
        let (from_base, to_base) = (
            self.frames[from.0 as usize].local_base,
            self.frames[to.0 as usize].local_base,
        );
        for lane in lanes(mask) {
            match (from.1, to.1) {
                (Passed::Register(source), Passed::Register(dest)) => {
                    let value = self.frames[from.0 as usize].lane_wide(source.reg, lane);
                    self.frames[to.0 as usize].set_lane(dest, lane, value);
                }
                (Passed::Register(source), Passed::Bytes { offset, size }) => {
                    let value = self.frames[from.0 as usize]
                        .lane_wide(source.reg, lane)
                        .to_le_bytes();
                    for (at, byte) in (0..size).zip(value) {
                        self.local
                            .store(lane, to_base + offset + at, 1, u64::from(byte));
                    }
                }
                (Passed::Bytes { offset, size }, Passed::Register(dest)) => {
                    let mut value = [0; 16];
                    for (at, byte) in (0..size).zip(&mut value) {
                        *byte = self.local.peek(lane, from_base + offset + at, 1).0 as u8;
                    }
                    self.frames[to.0 as usize].set_lane(dest, lane, u128::from_le_bytes(value));
                }
                (
                    Passed::Bytes { offset, size },
                    Passed::Bytes {
                        offset: to_offset,
                        size: to_size,
                    },
                ) => {
                    for at in 0..size.min(to_size) {
                        let (byte, written) = self.local.peek(lane, from_base + offset + at, 1);
                        if written {
                            self.local.store(lane, to_base + to_offset + at, 1, byte);
                        }
                    }
                }
            }
        }
    }

    /// Ends lanes, in whatever call they are.
    fn exit<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        frame: u32,
        mask: u32,
    ) -> Result<(), Trouble> {
        self.leave_groups(cx, mask)?;
        let mut at = frame;
        while at != NONE {
            let parent = self.frames[at as usize].parent;
            self.release_lanes(cx, at, mask);
            at = parent;
        }
        self.live &= !mask;
        cx.running.changed = true;
        let ended = mask.count_ones();
        cx.barriers.live = cx.barriers.live.saturating_sub(ended);
        cx.barriers.thread_ended();
        cx.cluster.thread_ended(ended);
        // Those that waited for them need not any more, and look again.
        for group in &mut self.groups {
            if matches!(group.state, State::Sync { members } if members & mask != 0) {
                group.state = State::Ready;
            }
        }
        Ok(())
    }

    fn sync<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &SyncOp,
    ) -> Result<(), Trouble> {
        let Some(reg) = op.members else {
            return self.meet(
                cx,
                here,
                op,
                Members {
                    present: here.mask,
                    absent: 0,
                },
            );
        };
        // Lanes that name different members, such as the tiles of a warp, meet apart.
        let mut left = here.mask;
        while left != 0 {
            let frame = &self.frames[here.frame as usize];
            let mask = same_lanes(frame, reg, left);
            let members = member_lanes(frame, reg, mask, self.live)?;
            left &= !mask;
            self.meet(cx, Group { mask, ..here }, op, members)?;
        }
        Ok(())
    }

    fn meet<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &SyncOp,
        members: Members,
    ) -> Result<(), Trouble> {
        let Some(parts) = self.assemble(here, members.present) else {
            return Ok(());
        };
        op.kind.run(
            &mut Parts {
                frames: &mut self.frames,
                parts: &parts,
            },
            members,
        )?;
        cx.shared[cx.place.rank as usize].warp_sync(self.place.index as usize);
        for part in parts {
            self.groups.push(Group {
                pc: here.pc + 1,
                state: State::Ready,
                ..part
            });
        }
        Ok(())
    }

    /// The groups that hold all members and stand at one instruction; if some are missing, this one waits.
    pub(crate) fn assemble(&mut self, here: Group, members: u32) -> Option<Vec<Group>> {
        let waits = |group: &Group| group.pc == here.pc && group.state == State::Sync { members };
        let mut parts = vec![here];
        parts.extend(self.groups.iter().filter(|group| waits(group)));
        let present = parts.iter().fold(0, |present, part| present | part.mask);
        if members & !present != 0 {
            self.groups.push(Group {
                state: State::Sync { members },
                ..here
            });
            return None;
        }
        self.groups.retain(|group| !waits(group));
        Some(parts)
    }

    fn barrier<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        barrier: &Barrier,
    ) -> Result<(), Trouble> {
        let frame = &self.frames[here.frame as usize];
        let first = here.mask.trailing_zeros() as usize;
        let number = frame.lane(barrier.id, first);
        let expected = barrier.count.map(|count| frame.lane(count, first) as u32);
        let Some(id) = usize::try_from(number)
            .ok()
            .filter(|id| *id < super::barrier::BARRIERS)
        else {
            return Err(Trouble::new(
                FaultKind::DivergentBarrier,
                format!("barrier {number} of the 16 that a block has"),
            ));
        };
        if let Some(expected) = expected
            && (expected == 0 || expected % 32 != 0)
        {
            return Err(Trouble::new(
                FaultKind::DivergentBarrier,
                format!("barrier for {expected} threads, which is no multiple of 32"),
            ));
        }
        let elsewhere = self.groups.iter().find(|group| {
            barrier.aligned
                && group.pc != here.pc
                && matches!(group.state, State::Barrier { id: other, aligned: true } if other == id)
        });
        if let Some(other) = elsewhere {
            return Err(Trouble::new(
                FaultKind::DivergentBarrier,
                format!(
                    "divergent barrier: lanes {} of the warp wait at line {}, and lanes {} at line {}",
                    list(here.mask),
                    cx.program.position(here.pc).line,
                    list(other.mask),
                    cx.program.position(other.pc).line
                ),
            ));
        }
        let vote = match barrier.kind {
            BarrierKind::Popc { flag, .. } | BarrierKind::Logic { flag, .. } => {
                Some((frame.flag(flag) & here.mask).count_ones())
            }
            _ => None,
        };
        let leader = self.live & self.live.wrapping_neg();
        let absent = if here.mask & leader != 0 {
            32 - self.live.count_ones()
        } else {
            0
        };
        let waits = barrier.kind != BarrierKind::Arrive;
        let threads = here.mask.count_ones();
        let arrival = Arrival {
            id,
            expected,
            warp: self.place.index,
            threads,
            counted: threads + absent,
            vote,
            pc: here.pc,
        };
        if waits {
            self.groups.push(Group {
                state: State::Barrier {
                    id,
                    aligned: barrier.aligned,
                },
                ..here
            });
        } else {
            self.groups.push(Group {
                pc: here.pc + 1,
                ..here
            });
        }
        if !cx.barriers.arrive(arrival) {
            let waiting = cx.barriers.waiting(id);
            return Err(Trouble::new(
                FaultKind::DivergentBarrier,
                format!(
                    "divergent barrier {id}: it is to wait for {}, but threads that arrived before said {}",
                    expectation(expected),
                    expectation(waiting.expected)
                ),
            ));
        }
        Ok(())
    }

    /// Lets go those that waited at a barrier.
    pub(crate) fn release(&mut self, opened: Opened, code: &[super::code::Inst]) {
        for group in &mut self.groups {
            if !matches!(group.state, State::Barrier { id, .. } if id == opened.id) {
                continue;
            }
            if let Op::Barrier(barrier) = &code[group.pc as usize].op {
                let frame = &mut self.frames[group.frame as usize];
                match barrier.kind {
                    BarrierKind::Popc { to, .. } => {
                        let dest = super::code::Dest { reg: to, bits: 32 };
                        frame.write(dest, group.mask, &[u64::from(opened.votes); 32]);
                    }
                    BarrierKind::Logic { to, all, .. } => {
                        let yes = if all {
                            opened.votes == opened.voters
                        } else {
                            opened.votes != 0
                        };
                        frame.set_flags(to, group.mask, if yes { u32::MAX } else { 0 });
                    }
                    BarrierKind::Sync | BarrierKind::Arrive => {}
                }
            }
            group.state = State::Ready;
            group.pc += 1;
        }
    }

    /// Lanes pass where the ways around a barrier meet: no lane of the warp may wait at it.
    fn join<M>(&mut self, cx: &mut Context<'_, M>, join: u32) -> Result<(), Trouble> {
        let program = cx.program;
        let inside = program.join(join);
        cx.barriers.passed(join, self.place.index);
        let waiting = self.groups.iter().find(|group| {
            matches!(group.state, State::Barrier { aligned: true, .. })
                && inside.contains(&group.pc)
        });
        match waiting {
            Some(group) => Err(Trouble::new(
                FaultKind::DivergentBarrier,
                format!(
                    "divergent barrier: lanes {} of the warp wait at line {}, which the others went around",
                    list(group.mask),
                    cx.program.position(group.pc).line
                ),
            )),
            None => Ok(()),
        }
    }

    /// Lets those that wait at an `mbarrier` look elsewhere: the instruction answers that the phase goes on.
    pub(crate) fn time_out(&mut self, code: &[super::code::Inst]) {
        for group in &mut self.groups {
            if let State::Phase { .. } = group.state
                && let Op::MBarrier(op) = &code[group.pc as usize].op
            {
                self.frames[group.frame as usize].write(op.to, group.mask, &[0; 32]);
                group.state = State::Ready;
                group.pc += 1;
            }
        }
    }

    /// What each group waits for, for a report.
    pub(crate) fn waits<M>(&self, cx: &Context<'_, M>) -> Vec<String> {
        self.groups
            .iter()
            .map(|group| {
                let line = cx.program.position(group.pc).line;
                let threads = list(group.mask);
                let warp = self.place.index;
                let what = match group.state {
                    State::Ready => "can go on".to_owned(),
                    State::Sync { members } => {
                        format!("wait for lanes {}", list(members & !group.mask))
                    }
                    State::Barrier { id, .. } => format!("wait at barrier {id}"),
                    State::Cluster { .. } => "wait for the cluster".to_owned(),
                    State::Phase { .. } => match &cx.code[group.pc as usize].op {
                        Op::MBarrier(op) => {
                            format!("wait at `mbarrier` {}", self.lacks(cx, group, op))
                        }
                        _ => "wait at an `mbarrier`".to_owned(),
                    },
                };
                format!("warp {warp} lanes {threads} at line {line} {what}")
            })
            .collect()
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

    /// The line of the source; that of the call, where the function called has none.
    fn source<M>(
        &self,
        cx: &Context<'_, M>,
        pc: u32,
        frame: Option<&Frame>,
    ) -> Option<super::fault::SourceLine> {
        let mut found = cx.program.source(pc);
        let mut frame = frame;
        while let (None, Some(callee)) = (&found, frame) {
            if callee.parent == NONE {
                break;
            }
            found = cx.program.source(callee.call);
            frame = self.frames.get(callee.parent as usize);
        }
        found
    }

    /// Turns a trouble into a fault, with all that is known of where it happened.
    pub(crate) fn fault<M>(
        &self,
        cx: &Context<'_, M>,
        pc: u32,
        active: u32,
        trouble: Trouble,
    ) -> Box<Fault> {
        let pc = trouble.pc.unwrap_or(pc);
        let lane = trouble.lane.unwrap_or(active.trailing_zeros() as usize) % 32;
        let frame = self
            .frames
            .iter()
            .filter(|frame| frame.mask >> lane & 1 == 1)
            .max_by_key(|frame| frame.depth);
        let registers = match (trouble.address, frame) {
            (Some(_), Some(frame)) => cx.program.address_registers(pc, frame, lane),
            _ => Vec::new(),
        };
        Box::new(Fault {
            kind: trouble.kind,
            kernel: cx.program.kernels()[cx.setting.launch.kernel].name.clone(),
            block: Some(cx.place.ctaid),
            thread: Some(self.place.thread(lane, cx.setting.launch.block)),
            position: Some(cx.program.position(pc)),
            source: self.source(cx, pc, frame),
            address: trouble.address,
            registers,
            message: trouble.message,
        })
    }
}

/// The lanes of a mask whose register holds what that of the lowest holds.
pub(crate) fn same_lanes(frame: &Frame, reg: Reg, mask: u32) -> u32 {
    let wanted = frame.lane(reg, mask.trailing_zeros() as usize % 32);
    let same = lanes(mask).filter(|lane| frame.lane(reg, *lane) == wanted);
    same.fold(0, |same, lane| same | 1 << lane)
}

/// The lanes that take part: those that the member mask of all lanes of `active` names and that have not
/// ended; and the others that it names.
#[inline]
pub(crate) fn member_lanes(
    frame: &Frame,
    reg: Reg,
    active: u32,
    live: u32,
) -> Result<Members, Trouble> {
    let named = frame.lane(reg, active.trailing_zeros() as usize % 32) as u32;
    if active & !named != 0 {
        let lane = (active & !named).trailing_zeros() as usize;
        return Err(Trouble::new(
            FaultKind::BadMask,
            format!("lane {lane} runs the instruction, but its member mask {named:#010x} does not name it"),
        )
        .by(lane));
    }
    Ok(Members {
        present: named & live,
        absent: named & !live,
    })
}

fn expectation(expected: Option<u32>) -> String {
    match expected {
        Some(expected) => format!("{expected} threads"),
        None => "all threads".to_owned(),
    }
}

/// Lanes as people write them: `0-15, 17`.
pub(crate) fn list(mask: u32) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for lane in lanes(mask) {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => parts.push((lane, lane)),
        }
    }
    let texts = parts.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Lanes of several groups, each in its own frame.
pub(crate) struct Parts<'a> {
    pub(crate) frames: &'a mut [Frame],
    pub(crate) parts: &'a [Group],
}

impl Lanes for Parts<'_> {
    fn read(&self, reg: Reg) -> [u64; 32] {
        let mut values = [0; 32];
        for part in self.parts {
            let read = self.frames[part.frame as usize].read(reg);
            for lane in lanes(part.mask) {
                values[lane] = read[lane];
            }
        }
        values
    }

    fn write(&mut self, to: super::code::Dest, mask: u32, values: &[u64; 32]) {
        for part in self.parts {
            self.frames[part.frame as usize].write(to, mask & part.mask, values);
        }
    }

    fn flags(&self, flag: super::code::Flag) -> u32 {
        self.parts.iter().fold(0, |flags, part| {
            flags | self.frames[part.frame as usize].flag(flag) & part.mask
        })
    }

    fn set_flags(&mut self, predicate: u32, mask: u32, flags: u32) {
        for part in self.parts {
            self.frames[part.frame as usize].put_flags(predicate, mask & part.mask, flags);
        }
    }
}
