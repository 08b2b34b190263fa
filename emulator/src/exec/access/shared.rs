//! Shared memory of the cluster's blocks.

use super::super::code::{Dest, Ordering, Reg};
use super::super::fault::FaultKind;
use super::super::frame::Frame;
use super::super::local::lanes;
use super::super::memory::GlobalMemory;
use super::super::shared::Who;
use super::super::space::{Place, SHARED, SHARED_STRIDE, Space};
use super::super::sync::Lanes;
use super::super::trouble::Trouble;
use super::super::types::Type;
use super::{Reach, blame, extend, to_usize};

impl<M: GlobalMemory> Reach<'_, M> {
    /// Loads from the block's own shared memory; all registers are set at the end, so that it can be run
    /// again.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the parts of one load")]
    pub(super) fn load_shared(
        &mut self,
        frame: &mut Frame,
        mask: u32,
        base: u64,
        addresses: &[u64; 32],
        ty: Type,
        order: Ordering,
        to: &[Dest],
    ) -> Result<(), Trouble> {
        let element = ty.bytes();
        let size = element * to.len() as u32;
        let mut rows = [[0; 32]; 4];
        let whole = element <= 8 && to.len() <= 4;
        for lane in lanes(mask) {
            let offset = addresses[lane] - base;
            let who = Who {
                warp: self.warp,
                lane,
            };
            let mut done = whole && offset.is_multiple_of(u64::from(size));
            if done {
                for (at, row) in (0_u64..).zip(&mut rows[..to.len()]) {
                    let shared = &mut self.shared[self.rank];
                    let offset = offset + at * u64::from(element);
                    let value = match element {
                        1 => shared.quick_load::<1>(who, offset),
                        2 => shared.quick_load::<2>(who, offset),
                        4 => shared.quick_load::<4>(who, offset),
                        _ => shared.quick_load::<8>(who, offset),
                    };
                    match value {
                        Some(value) => row[lane] = value,
                        None => done = false,
                    }
                }
            }
            if !done {
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..to_usize(size)];
                let place = Place::Shared(None, offset);
                self.load_bytes(frame.local_end, lane, place, order, bytes)
                    .map_err(|trouble| {
                        blame(
                            Trouble {
                                retries: true,
                                ..trouble
                            },
                            lane,
                            addresses[lane],
                        )
                    })?;
                if !whole {
                    // Sixteen bytes in one register.
                    let mut wide = [0; 16];
                    wide.copy_from_slice(bytes);
                    rows[0][lane] = u128::from_le_bytes(wide) as u64;
                    rows[1][lane] = (u128::from_le_bytes(wide) >> 64) as u64;
                    continue;
                }
                for (row, bytes) in rows.iter_mut().zip(bytes.chunks_exact(to_usize(element))) {
                    let mut wide = [0; 8];
                    wide[..bytes.len()].copy_from_slice(bytes);
                    row[lane] = u64::from_le_bytes(wide);
                }
            }
        }
        if let (
            [
                Dest {
                    reg: Reg::Q(index), ..
                },
            ],
            false,
        ) = (to, whole)
        {
            frame.put_doubles(*index, mask, &rows[0]);
            frame.put_doubles(*index + 1, mask, &rows[1]);
            return Ok(());
        }
        for (row, to) in rows.iter().zip(to) {
            match (element, to.reg) {
                (4, Reg::W(index)) => frame.put_words(index, mask, &row.map(|value| value as u32)),
                (8, Reg::D(index)) => frame.put_doubles(index, mask, row),
                _ => frame.write(*to, mask, &row.map(|value| extend(value, ty, to.bits))),
            }
        }
        Ok(())
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the parts of one store")]
    pub(super) fn store_shared(
        &mut self,
        frame: &Frame,
        mask: u32,
        base: u64,
        addresses: &[u64; 32],
        size: u32,
        order: Ordering,
        from: Reg,
    ) -> Result<(), Trouble> {
        *self.changed = true;
        for lane in lanes(mask) {
            let offset = addresses[lane] - base;
            let value = frame.lane(from, lane);
            let who = Who {
                warp: self.warp,
                lane,
            };
            let shared = &mut self.shared[self.rank];
            let done = match size {
                1 => shared.quick_store::<1>(who, offset, value),
                2 => shared.quick_store::<2>(who, offset, value),
                4 => shared.quick_store::<4>(who, offset, value),
                _ => shared.quick_store::<8>(who, offset, value),
            };
            if !done {
                let bytes = value.to_le_bytes();
                let place = Place::Shared(None, offset);
                self.store_bytes(
                    frame.local_end,
                    lane,
                    place,
                    order,
                    &bytes[..to_usize(size)],
                )
                .map_err(|trouble| blame(trouble, lane, addresses[lane]))?;
            }
        }
        Ok(())
    }

    pub(super) fn block_of(
        &self,
        rank: Option<u32>,
        lane: usize,
    ) -> Result<(usize, Option<Who>), Trouble> {
        let own = Some(Who {
            warp: self.warp,
            lane,
        });
        match rank.map(|rank| rank as usize) {
            None => Ok((self.rank, own)),
            Some(rank) if rank == self.rank => Ok((rank, own)),
            Some(rank) if rank < self.shared.len() => Ok((rank, None)),
            Some(rank) => Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!(
                    "access of shared memory of block {rank} of a cluster of {}",
                    self.shared.len()
                ),
            )),
        }
    }
}

/// What to take off the addresses, if all lanes go to their own block's shared memory.
#[inline(always)]
pub(super) fn shared_base(space: Space, addresses: &[u64; 32], mask: u32) -> Option<u64> {
    let base = match space {
        Space::Shared => 0,
        Space::Generic => SHARED,
        _ => return None,
    };
    let own = lanes(mask).all(|lane| addresses[lane].wrapping_sub(base) < SHARED_STRIDE);
    own.then_some(base)
}
