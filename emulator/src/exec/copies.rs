//! `cp.async`: copies to shared memory that are issued now and arrive when they are waited for, as late as
//! they may.

use super::access::Reach;
use super::code::Ordering;
use super::memory::GlobalMemory;
use super::space::Place;
use super::trouble::Trouble;

/// A copy that was issued and has not arrived.
#[derive(Clone, Copy, Debug)]
struct Pending {
    lane: u8,
    /// The number of the thread's group that it belongs to.
    group: u32,
    place: Place,
    size: u8,
    bytes: [u8; 16],
}

#[derive(Debug, Default)]
pub(crate) struct Copies {
    pending: Vec<Pending>,
    /// How many groups each lane has committed.
    committed: [u32; 32],
}

impl Copies {
    pub(crate) fn issue(&mut self, lane: usize, place: Place, data: &[u8]) {
        let mut bytes = [0; 16];
        bytes[..data.len()].copy_from_slice(data);
        let size = data.len() as u8;
        let pending = Pending {
            lane: lane as u8,
            group: self.committed[lane],
            place,
            size,
            bytes,
        };
        self.pending.push(pending);
    }

    pub(crate) fn commit(&mut self, lane: usize) {
        self.committed[lane] += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Lets arrive what the lanes of a mask wait for: all but their latest `left` groups, or all that they
    /// issued.
    pub(crate) fn arrive<M: GlobalMemory>(
        &mut self,
        reach: &mut Reach<'_, M>,
        mask: u32,
        left: Option<u32>,
    ) -> Result<(), Trouble> {
        let mut kept = Vec::new();
        for copy in std::mem::take(&mut self.pending) {
            let lane = usize::from(copy.lane);
            let done = left.is_none_or(|left| copy.group + left < self.committed[lane]);
            if mask >> lane & 1 == 1 && done {
                let bytes = &copy.bytes[..usize::from(copy.size)];
                reach
                    .store_bytes(0, lane, copy.place, Ordering::default(), bytes)
                    .map_err(|trouble| trouble.by(lane))?;
            } else {
                kept.push(copy);
            }
        }
        self.pending = kept;
        Ok(())
    }
}
