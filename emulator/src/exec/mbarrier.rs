//! `mbarrier`: a barrier that is an object in shared memory.
//!
//! Its 64 bits hold, from the lowest: 20 bits of threads expected in a phase, 20 bits still pending, a
//! lock against use before `init`, the phase's parity, and 22 bits, signed, of bytes that copies still have to
//! bring. A phase is over when nobody and no byte is missing.

use super::access::{Reach, addresses};
use super::code::{Dest, Ordering, Reg, Target};
use super::context::Context;
use super::fault::FaultKind;
use super::local::lanes;
use super::memory::GlobalMemory;
use super::space::Place;
use super::step::reach;
use super::trouble::Trouble;
use super::warp::{Group, Warp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MBarrierKind {
    Init {
        count: Reg,
    },
    Invalidate,
    /// `arrive`, with how many arrivals, whether they leave for good, and the bytes that a copy is to bring.
    Arrive {
        count: Option<Reg>,
        drop: bool,
        expect: Option<Reg>,
    },
    /// `expect_tx` and `complete_tx`: bytes that come, and that came.
    Transfer {
        bytes: Reg,
        completes: bool,
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
const BYTES: u32 = 42;
const OBJECT: u128 = u64::MAX as u128;

/// So many bytes can be missing at most.
pub(crate) const MOST_BYTES: i64 = (1 << 20) - 1;

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
    settle(expected | pending.saturating_sub(count) << 20 | rest)
}

/// The object after the bytes missing changed.
pub(crate) fn transfer(object: u128, by: i64) -> u128 {
    let missing = missing(object) + by;
    let kept = object & !(u128::MAX << BYTES);
    settle(kept | u128::from(missing.cast_unsigned()) << BYTES & OBJECT)
}

/// Begins the next phase if nothing is missing.
fn settle(object: u128) -> u128 {
    if object >> 20 & COUNT == 0 && object >> BYTES == 0 {
        (object | (object & COUNT) << 20) ^ PARITY
    } else {
        object
    }
}

/// The bytes missing; fewer than none if more came than were expected.
pub(crate) fn missing(object: u128) -> i64 {
    (object as u64).cast_signed() >> BYTES
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

/// What is missing for the phase to end, for a report.
pub(crate) fn wanted(object: u128) -> String {
    let arrivals = pending(object as u64);
    match missing(object) {
        0 => format!("{arrivals} arrivals are missing"),
        bytes if bytes < 0 => format!(
            "{arrivals} arrivals are missing, and {} bytes came that were not expected",
            -bytes
        ),
        bytes => format!("{arrivals} arrivals and {bytes} bytes are missing"),
    }
}

/// There is no barrier at an address.
pub(crate) fn no_barrier(address: u64) -> Trouble {
    Trouble::new(
        FaultKind::IllegalAddress,
        format!("`mbarrier` at {address:#x}, where no barrier was made by `mbarrier.init`"),
    )
}

impl Warp {
    /// Runs the operation, and says which lanes have to wait.
    pub(crate) fn mbarrier<M: GlobalMemory>(
        &mut self,
        cx: &mut Context<'_, M>,
        here: Group,
        op: &MBarrierOp,
    ) -> Result<u32, Trouble> {
        let rank = cx.place.rank as usize;
        cx.shared[rank].fence(self.place.index as usize);
        let targets = addresses(&self.frames[here.frame as usize], &op.target);
        let mut waiting = 0;
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
                let mut site = Site { warp: self, cx };
                site.reach()
                    .store_bytes(local_end, lane, place, order, &object[..8])
                    .map_err(blame)?;
                continue;
            }
            let word = |reg: Reg| frame.lane(reg, lane) & 0xffff_ffff;
            let count = match op.kind {
                MBarrierKind::Arrive {
                    count: Some(count), ..
                } => word(count),
                _ => 1,
            };
            let by = match op.kind {
                MBarrierKind::Arrive {
                    expect: Some(bytes),
                    ..
                }
                | MBarrierKind::Transfer {
                    bytes,
                    completes: false,
                } => word(bytes).cast_signed(),
                MBarrierKind::Transfer {
                    bytes,
                    completes: true,
                } => -word(bytes).cast_signed(),
                _ => 0,
            };
            let state = match op.kind {
                MBarrierKind::Test { state, .. } => frame.lane(state, lane),
                _ => 0,
            };
            if matches!(op.kind, MBarrierKind::Test { .. }) {
                self.receive(cx, place)
                    .map_err(|trouble| trouble.by(lane))?;
            }
            let mut site = Site { warp: self, cx };
            let old = site
                .reach()
                .update(local_end, lane, place, 8, &mut |object| match op.kind {
                    _ if !is_valid(object) => object,
                    MBarrierKind::Arrive { drop, expect, .. } => {
                        let object = if expect.is_some() && in_range(object, by) {
                            transfer(object, by)
                        } else {
                            object
                        };
                        arrive(object, count, drop)
                    }
                    MBarrierKind::Transfer { .. } if in_range(object, by) => transfer(object, by),
                    MBarrierKind::Invalidate => 0,
                    _ => object,
                })
                .map_err(blame)?;
            if !is_valid(old) {
                return Err(blame(no_barrier(targets[lane])));
            }
            if !in_range(old, by) {
                return Err(blame(Trouble::new(
                    FaultKind::BulkCopy,
                    format!(
                        "`mbarrier` at {:#x} is to wait for {} bytes, where {MOST_BYTES} are the most",
                        targets[lane],
                        missing(old) + by
                    ),
                )));
            }
            if let Place::Shared(other, _) = place {
                let other = other.map_or(rank, |other| other as usize);
                if !matches!(op.kind, MBarrierKind::Test { .. })
                    && let Some(shared) = cx.shared.get_mut(other)
                {
                    shared.news += 1;
                }
            }
            let answer = match op.kind {
                MBarrierKind::Test { parity, waits, .. } => {
                    let over = is_over(old, state, parity);
                    if waits && !over {
                        waiting |= 1 << lane;
                        continue;
                    }
                    u128::from(over)
                }
                _ => old,
            };
            self.frames[here.frame as usize].set_lane(op.to, lane, answer);
        }
        Ok(waiting)
    }

    /// What the barrier at which a lane waits still lacks.
    pub(crate) fn lacks<M>(&self, cx: &Context<'_, M>, group: &Group, op: &MBarrierOp) -> String {
        let lane = group.mask.trailing_zeros() as usize % 32;
        let address = addresses(&self.frames[group.frame as usize], &op.target)[lane];
        let object = match op.target.space.place(address) {
            Place::Shared(rank, offset) => {
                let rank = rank.unwrap_or(cx.place.rank) as usize;
                cx.shared.get(rank).and_then(|shared| shared.peek(offset))
            }
            _ => None,
        };
        match object {
            Some(object) => format!("{address:#x}: {}", wanted(u128::from(object))),
            None => format!("{address:#x}"),
        }
    }
}

/// Whether the bytes missing stay within what a barrier can count.
fn in_range(object: u128, by: i64) -> bool {
    (-MOST_BYTES..=MOST_BYTES).contains(&(missing(object) + by))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_when_nobody_and_no_byte_is_missing() {
        let object = initial(2);
        let object = transfer(object, 48);
        assert_eq!(missing(object), 48);
        let object = arrive(arrive(object, 1, false), 1, false);
        assert!(!is_over(object, 0, true));
        let object = transfer(object, -16);
        assert!(!is_over(object, 0, true));
        let object = transfer(object, -32);
        assert!(is_over(object, 0, true) && !is_over(object, 1, true));
        assert_eq!(
            (pending(object as u64), missing(object), is_valid(object)),
            (2, 0, true)
        );
        // Bytes may come before they are expected.
        let object = transfer(object, -64);
        assert_eq!(missing(object), -64);
        let object = arrive(object, 2, false);
        assert!(!is_over(object, 1, true));
        assert!(is_over(transfer(object, 64), 1, true));
    }

    #[test]
    fn what_is_missing_is_told() {
        assert_eq!(wanted(initial(3)), "3 arrivals are missing");
        assert_eq!(
            wanted(transfer(initial(1), 32)),
            "1 arrivals and 32 bytes are missing"
        );
        assert_eq!(
            wanted(arrive(transfer(initial(1), -32), 1, false)),
            "0 arrivals are missing, and 32 bytes came that were not expected"
        );
    }
}
