//! `mbarrier`: a barrier that is an object in shared memory.
//!
//! Its 64 bits hold, from the lowest: 20 bits of threads expected in a phase, 20 bits still pending, a
//! lock against use before `init`, the phase's parity, and 22 bits of bytes that copies still have to bring.

use super::access::{Reach, addresses};
use super::code::{Dest, Ordering, Reg, Target};
use super::context::Context;
use super::fault::FaultKind;
use super::local::lanes;
use super::memory::GlobalMemory;
use super::step::reach;
use super::trouble::Trouble;
use super::warp::{Group, Warp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MBarrierKind {
    Init {
        count: Reg,
    },
    Invalidate,
    /// `arrive`, with how many arrivals, and whether they leave for good.
    Arrive {
        count: Option<Reg>,
        drop: bool,
    },
    /// `test_wait` and `try_wait`, for a state or for a parity.
    Test {
        state: Reg,
        parity: bool,
        waits: bool,
    },
    PendingCount {
        state: Reg,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MBarrierOp {
    pub(crate) kind: MBarrierKind,
    pub(crate) target: Target,
    pub(crate) to: Dest,
}

const COUNT: u128 = (1 << 20) - 1;
const VALID: u128 = 1 << 40;
const PARITY: u128 = 1 << 41;

/// The object as `init` makes it.
pub(crate) fn initial(count: u64) -> u128 {
    let count = u128::from(count) & COUNT;
    count | count << 20 | VALID
}

pub(crate) fn is_valid(object: u128) -> bool {
    object & VALID != 0
}

/// The object after some arrivals.
pub(crate) fn arrive(object: u128, count: u64, drop: bool) -> u128 {
    let expected = object & COUNT;
    let pending = object >> 20 & COUNT;
    let count = u128::from(count);
    let expected = if drop {
        expected.saturating_sub(count)
    } else {
        expected
    };
    let rest = object & !(COUNT | COUNT << 20);
    match pending.saturating_sub(count) {
        0 => expected | expected << 20 | rest ^ PARITY,
        pending => expected | pending << 20 | rest,
    }
}

/// Whether the phase that `state` was in is over.
pub(crate) fn is_over(object: u128, state: u64, parity: bool) -> bool {
    let now = object & PARITY != 0;
    let then = if parity {
        state & 1 == 1
    } else {
        u128::from(state) & PARITY != 0
    };
    now != then
}

pub(crate) fn pending(state: u64) -> u64 {
    state >> 20 & ((1 << 20) - 1)
}

impl Warp {
    pub(crate) fn mbarrier<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &MBarrierOp,
    ) -> Result<(), Trouble> {
        let rank = cx.place.rank as usize;
        cx.shared[rank].fence(self.place.index as usize);
        let targets = addresses(&self.frames[here.frame as usize], &op.target);
        for lane in lanes(here.mask) {
            let frame = &self.frames[here.frame as usize];
            if let MBarrierKind::PendingCount { state } = op.kind {
                let count = pending(frame.lane(state, lane));
                self.frames[here.frame as usize].set_lane(op.to, lane, u128::from(count));
                continue;
            }
            let place = op.target.space.place(targets[lane]);
            let local_end = frame.local_end;
            let blame = |trouble: Trouble| trouble.at(lane, targets[lane]);
            if let MBarrierKind::Init { count } = op.kind {
                let object = initial(frame.lane(count, lane)).to_le_bytes();
                let order = Ordering {
                    masked: false,
                    copied: false,
                    strong: true,
                    fence: false,
                };
                let warp = &mut *self;
                let mut site = Site { warp, cx };
                site.reach()
                    .store_bytes(local_end, lane, place, order, &object[..8])
                    .map_err(blame)?;
                continue;
            }
            let count = match op.kind {
                MBarrierKind::Arrive {
                    count: Some(count), ..
                } => frame.lane(count, lane) & 0xffff_ffff,
                _ => 1,
            };
            let state = match op.kind {
                MBarrierKind::Test { state, .. } => frame.lane(state, lane),
                _ => 0,
            };
            let mut site = Site {
                warp: &mut *self,
                cx,
            };
            let old = site
                .reach()
                .update(local_end, lane, place, 8, &mut |object| match op.kind {
                    MBarrierKind::Arrive { drop, .. } => arrive(object, count, drop),
                    MBarrierKind::Invalidate => 0,
                    _ => object,
                })
                .map_err(blame)?;
            if !is_valid(old) {
                return Err(blame(Trouble::new(
                    FaultKind::IllegalAddress,
                    format!(
                        "`mbarrier` at {:#x}, where no barrier was made by `mbarrier.init`",
                        targets[lane]
                    ),
                )));
            }
            let answer = match op.kind {
                MBarrierKind::Test { parity, .. } => u128::from(is_over(old, state, parity)),
                _ => old,
            };
            self.frames[here.frame as usize].set_lane(op.to, lane, answer);
        }
        if matches!(op.kind, MBarrierKind::Test { waits: true, .. }) {
            self.give_way();
        }
        Ok(())
    }
}

struct Site<'a, 'b, M> {
    warp: &'a mut Warp,
    cx: &'a mut Context<'b, M>,
}

impl<M: GlobalMemory> Site<'_, '_, M> {
    fn reach(&mut self) -> Reach<'_, M> {
        reach!(self)
    }
}
