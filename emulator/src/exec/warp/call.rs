//! Calls and returns: who stands in which frame, and what is passed between them.

use super::super::code::{Call, Callee, Op, Passed};
use super::super::code_base::At;
use super::super::context::Context;
use super::super::fault::FaultKind;
use super::super::frame::{Frame, NONE};
use super::super::local::lanes;
use super::super::memory::GlobalMemory;
use super::super::printf;
use super::super::trouble::Trouble;
use super::{Group, State, Warp, same_lanes};

/// The least that a call takes of a thread's stack.
const CALL_BYTES: u32 = 64;

impl Warp {
    fn new_frame(&mut self, frame: Frame) -> u32 {
        if let Some(at) = self.free.pop() {
            self.frames[at as usize] = frame;
            at
        } else {
            self.frames.push(frame);
            (self.frames.len() - 1) as u32
        }
    }

    pub(super) fn call<M: GlobalMemory>(
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
                printf::run(self, cx, here, call)?;
                self.groups.push(Group {
                    pc: here.pc + 1,
                    ..here
                });
                Ok(())
            }
            Callee::SetConditional => {
                printf::set_conditional(self, cx, here, call)?;
                self.groups.push(Group {
                    pc: here.pc + 1,
                    ..here
                });
                Ok(())
            }
            Callee::AssertFail => Err(printf::assertion(self, cx, here, call)),
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

    pub(super) fn leave<M: GlobalMemory>(
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
    pub(super) fn exit<M: GlobalMemory>(
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
}
