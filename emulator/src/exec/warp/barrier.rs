//! A warp at barriers.

use super::super::barrier::{Arrival, BARRIERS, Opened};
use super::super::code::{Barrier, BarrierKind, Dest, Inst, Op};
use super::super::context::Context;
use super::super::fault::FaultKind;
use super::super::memory::GlobalMemory;
use super::super::sync::Lanes;
use super::super::trouble::Trouble;
use super::{Group, State, Warp, report::list};

impl Warp {
    pub(super) fn barrier<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        barrier: &Barrier,
    ) -> Result<(), Trouble> {
        let frame = &self.frames[here.frame as usize];
        let first = here.mask.trailing_zeros() as usize;
        let number = frame.lane(barrier.id, first);
        let expected = barrier.count.map(|count| frame.lane(count, first) as u32);
        let Some(id) = usize::try_from(number).ok().filter(|id| *id < BARRIERS) else {
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
    pub(crate) fn release(&mut self, opened: Opened, code: &[Inst]) {
        for group in &mut self.groups {
            if !matches!(group.state, State::Barrier { id, .. } if id == opened.id) {
                continue;
            }
            if let Op::Barrier(barrier) = &code[group.pc as usize].op {
                let frame = &mut self.frames[group.frame as usize];
                match barrier.kind {
                    BarrierKind::Popc { to, .. } => {
                        let dest = Dest { reg: to, bits: 32 };
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
    pub(super) fn join<M>(&mut self, cx: &mut Context<'_, M>, join: u32) -> Result<(), Trouble> {
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
    pub(crate) fn time_out(&mut self, code: &[Inst]) {
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
}

fn expectation(expected: Option<u32>) -> String {
    match expected {
        Some(expected) => format!("{expected} threads"),
        None => "all threads".to_owned(),
    }
}
