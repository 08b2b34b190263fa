//! Loads, stores and atomic operations of a warp, in every state space, with all checks.
//!
//! Most accesses of a warp lie in one allocation: the addresses are checked together then, and the lanes
//! handled one by one only where that fails.

mod bitmap;
mod cache;
mod global;
mod shared;
mod window;

use super::code::{Dest, Ordering, Reg, Target};
use super::fault::FaultKind;
use super::frame::Frame;
use super::local::{LocalMemory, lanes};
use super::memory::GlobalMemory;
use super::races::GlobalRaces;
use super::shared::{SharedMemory, Strength};
use super::space::{Place, Space};
use super::sync::Lanes;
use super::trouble::Trouble;
use super::types::{Type, mask as low_bits, sign_extend};
use shared::shared_base;
use window::global_range;

pub(crate) use cache::WindowCache;

/// All memory a warp can reach.
pub(crate) struct Reach<'a, M> {
    pub(crate) memory: &'a mut M,
    pub(crate) windows: &'a mut WindowCache,
    /// The shared memories of the cluster's blocks.
    pub(crate) shared: &'a mut [SharedMemory],
    /// The warp's own block among them.
    pub(crate) rank: usize,
    pub(crate) warp: usize,
    pub(crate) params: &'a [u8],
    pub(crate) local: &'a mut LocalMemory,
    pub(crate) races: Option<&'a mut GlobalRaces>,
    pub(crate) block: u64,
    /// Set when memory changed.
    pub(crate) changed: &'a mut bool,
    /// Set when global memory was read.
    pub(crate) looked: &'a mut bool,
}

/// The addresses of all lanes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "32-bit addresses wrap")]
pub(crate) fn addresses(frame: &Frame, target: &Target) -> [u64; 32] {
    match target.base {
        Reg::W(index) => {
            let offset = target.offset as u32;
            frame.words[index as usize].map(|base| u64::from(base.wrapping_add(offset)))
        }
        Reg::D(index) => {
            let offset = target.offset.cast_unsigned();
            frame.doubles[index as usize].map(|base| base.wrapping_add(offset))
        }
        reg => frame.read(reg),
    }
}

impl<M: GlobalMemory> Reach<'_, M> {
    #[inline]
    pub(crate) fn load(
        &mut self,
        frame: &mut Frame,
        mask: u32,
        target: &Target,
        ty: Type,
        order: Ordering,
        to: &[Dest],
    ) -> Result<(), Trouble> {
        let addresses = addresses(frame, target);
        let size = ty.bytes() * to.len() as u32;
        if order.fence {
            self.shared[self.rank].fence(self.warp);
        }
        if let Some((low, high)) = global_range(target.space, &addresses, mask)
            && let Some(window) = self.window_of(low, high, size, &addresses, mask)
            && self.load_window(frame, mask, &window, &addresses, ty, order, to)
        {
            return Ok(());
        }
        if target.space == Space::Local && to.len() == 1 && size == 4 && mask == u32::MAX {
            let offset = addresses[0];
            if addresses.iter().all(|address| *address == offset)
                && offset.is_multiple_of(4)
                && offset + 4 <= u64::from(frame.local_end)
                && let (Reg::W(to), Some(row)) = (to[0].reg, self.local.row(offset as u32))
            {
                frame.put_words(to, mask, row);
                return Ok(());
            }
        }
        if !order.strong
            && size <= 16
            && let Some(base) = shared_base(target.space, &addresses, mask)
        {
            return self.load_shared(frame, mask, base, &addresses, ty, order, to);
        }
        // A load that changes none of the registers of its address can be run again.
        let again = to.iter().all(|to| to.reg != target.base);
        for lane in lanes(mask) {
            let place = target.space.place(addresses[lane]);
            let retries = again && matches!(place, Place::Shared(None, _));
            self.load_lane(frame, lane, place, ty, order, to)
                .map_err(|trouble| blame(Trouble { retries, ..trouble }, lane, addresses[lane]))?;
        }
        Ok(())
    }

    fn load_lane(
        &mut self,
        frame: &mut Frame,
        lane: usize,
        place: Place,
        ty: Type,
        order: Ordering,
        to: &[Dest],
    ) -> Result<(), Trouble> {
        let element = ty.bytes();
        let size = element * to.len() as u32;
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..to_usize(size)];
        self.load_bytes(frame.local_end, lane, place, order, bytes)?;
        for (to, bytes) in to.iter().zip(bytes.chunks_exact(to_usize(element))) {
            let mut wide = [0; 16];
            wide[..bytes.len()].copy_from_slice(bytes);
            let value = u128::from_le_bytes(wide);
            let value = if element == 16 {
                value
            } else {
                u128::from(extend(value as u64, ty, to.bits))
            };
            frame.set_lane(*to, lane, value);
        }
        Ok(())
    }

    /// Loads a power of two of bytes for one lane.
    pub(crate) fn load_bytes(
        &mut self,
        local_end: u32,
        lane: usize,
        place: Place,
        order: Ordering,
        bytes: &mut [u8],
    ) -> Result<(), Trouble> {
        let size = bytes.len() as u32;
        match place {
            Place::Global(address) => self.load_global(address, bytes, order),
            Place::Shared(rank, offset) => {
                let (rank, who) = self.block_of(rank, lane)?;
                check_aligned("shared", offset, size)?;
                if !order.masked && !self.shared[rank].any_written(offset, size) {
                    return Err(Trouble::uninitialised("shared", offset, size));
                }
                for (at, piece) in (0_u64..).step_by(16).zip(bytes.chunks_mut(16)) {
                    let value = self.shared[rank].load(
                        who,
                        offset + at,
                        piece.len() as u32,
                        strength(order),
                    )?;
                    piece.copy_from_slice(&value.to_le_bytes()[..piece.len()]);
                }
                Ok(())
            }
            Place::Local(offset) => {
                let offset = check_local(offset, size, local_end)?;
                let mut written = false;
                for (at, piece) in (0_u32..).step_by(8).zip(bytes.chunks_mut(8)) {
                    let (value, some) = self.local.peek(lane, offset + at, piece.len() as u32);
                    piece.copy_from_slice(&value.to_le_bytes()[..piece.len()]);
                    written |= some;
                }
                if written || order.masked || order.copied {
                    Ok(())
                } else {
                    Err(Trouble::uninitialised("local", u64::from(offset), size))
                }
            }
            Place::Param(offset) => {
                let start = to_usize_wide(offset);
                let end = start.saturating_add(bytes.len());
                let Some(piece) = self.params.get(start..end) else {
                    return Err(Trouble::new(
                        FaultKind::IllegalAddress,
                        format!(
                            "load of {size} bytes at {offset} of the kernel's {} bytes of parameters",
                            self.params.len()
                        ),
                    ));
                };
                bytes.copy_from_slice(piece);
                Ok(())
            }
        }
    }

    #[inline]
    pub(crate) fn store(
        &mut self,
        frame: &Frame,
        mask: u32,
        target: &Target,
        ty: Type,
        order: Ordering,
        from: &[Reg],
    ) -> Result<(), Trouble> {
        let addresses = addresses(frame, target);
        let size = ty.bytes() * from.len() as u32;
        if order.fence {
            self.shared[self.rank].fence(self.warp);
        }
        if let Some((low, high)) = global_range(target.space, &addresses, mask)
            && let Some(window) = self.window_of(low, high, size, &addresses, mask)
            && window.writable
        {
            self.store_window(frame, mask, &window, &addresses, ty.bytes(), from);
            return Ok(());
        }
        if target.space == Space::Local && from.len() == 1 && size == 4 && mask == u32::MAX {
            let offset = addresses[0];
            if addresses.iter().all(|address| *address == offset)
                && offset.is_multiple_of(4)
                && offset + 4 <= u64::from(frame.local_end)
                && let (Reg::W(from), Some(row)) = (from[0], self.local.row_mut(offset as u32))
            {
                *row = frame.words[from as usize];
                return Ok(());
            }
        }
        if !order.strong
            && let [from] = from
            && size <= 8
            && let Some(base) = shared_base(target.space, &addresses, mask)
        {
            return self.store_shared(frame, mask, base, &addresses, size, order, *from);
        }
        let element = to_usize(ty.bytes());
        for lane in lanes(mask) {
            let mut bytes = [0; 64];
            for (piece, from) in bytes.chunks_exact_mut(element).zip(from) {
                piece.copy_from_slice(&frame.lane_wide(*from, lane).to_le_bytes()[..element]);
            }
            let place = target.space.place(addresses[lane]);
            self.store_bytes(
                frame.local_end,
                lane,
                place,
                order,
                &bytes[..to_usize(size)],
            )
            .map_err(|trouble| blame(trouble, lane, addresses[lane]))?;
        }
        Ok(())
    }

    pub(crate) fn store_bytes(
        &mut self,
        local_end: u32,
        lane: usize,
        place: Place,
        order: Ordering,
        bytes: &[u8],
    ) -> Result<(), Trouble> {
        let size = bytes.len() as u32;
        // Nobody else sees what a thread does to its own memory.
        *self.changed |= matches!(place, Place::Global(_) | Place::Shared(..));
        match place {
            Place::Global(address) => self.store_global(address, bytes, order),
            Place::Shared(rank, offset) => {
                let (rank, who) = self.block_of(rank, lane)?;
                check_aligned("shared", offset, size)?;
                for (at, piece) in (0_u64..).step_by(16).zip(bytes.chunks(16)) {
                    let mut wide = [0; 16];
                    wide[..piece.len()].copy_from_slice(piece);
                    let value = u128::from_le_bytes(wide);
                    self.shared[rank].store(
                        who,
                        offset + at,
                        piece.len() as u32,
                        value,
                        strength(order),
                    )?;
                }
                Ok(())
            }
            Place::Local(offset) => {
                let offset = check_local(offset, size, local_end)?;
                for (at, piece) in (0_u32..).step_by(8).zip(bytes.chunks(8)) {
                    let mut wide = [0; 8];
                    wide[..piece.len()].copy_from_slice(piece);
                    self.local.store(
                        lane,
                        offset + at,
                        piece.len() as u32,
                        u64::from_le_bytes(wide),
                    );
                }
                Ok(())
            }
            Place::Param(_) => Err(Trouble::new(
                FaultKind::ReadOnly,
                "store to a parameter of the kernel, which it may only read",
            )),
        }
    }

    /// Replaces the value at an address, for one lane, and returns what was there.
    pub(crate) fn update(
        &mut self,
        local_end: u32,
        lane: usize,
        place: Place,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, Trouble> {
        let mut changes = false;
        let update = &mut |old: u128| {
            let new = update(old);
            changes |= new != old;
            new
        };
        let old = match place {
            Place::Global(address) => self.update_global(address, size, update)?,
            Place::Shared(rank, offset) => {
                let (rank, who) = self.block_of(rank, lane)?;
                self.shared[rank].update(who, offset, size, update)?
            }
            Place::Local(_) | Place::Param(_) => {
                let order = Ordering {
                    masked: false,
                    copied: false,
                    strong: true,
                    fence: false,
                };
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..to_usize(size)];
                self.load_bytes(local_end, lane, place, order, bytes)?;
                let mut wide = [0; 16];
                wide[..bytes.len()].copy_from_slice(bytes);
                let old = u128::from_le_bytes(wide);
                let new = update(old).to_le_bytes();
                self.store_bytes(local_end, lane, place, order, &new[..to_usize(size)])?;
                old
            }
        };
        *self.changed |= changes;
        Ok(old)
    }

    /// One byte for one lane, if it can be read: for text that is printed.
    pub(crate) fn peek_byte(&mut self, lane: usize, address: u64) -> Option<u8> {
        match Space::Generic.place(address) {
            Place::Global(address) => {
                let window = self.windows.find(self.memory, address).ok()?;
                if window.host_visible {
                    let mut byte = [0];
                    self.memory.load(&window, address, &mut byte);
                    return Some(byte[0]);
                }
                let at = to_usize_wide(address - window.start);
                self.memory.bytes(&window).data.get(at).copied()
            }
            Place::Shared(rank, offset) => {
                let rank = rank.map_or(self.rank, |rank| rank as usize);
                self.shared
                    .get(rank)?
                    .bytes()
                    .get(to_usize_wide(offset))
                    .copied()
            }
            Place::Local(offset) => {
                let offset = u32::try_from(offset).ok()?;
                Some(self.local.peek(lane, offset, 1).0 as u8)
            }
            Place::Param(offset) => self.params.get(to_usize_wide(offset)).copied(),
        }
    }
}

fn blame(mut trouble: Trouble, lane: usize, address: u64) -> Trouble {
    trouble.lane = Some(lane);
    trouble.address = Some(address);
    trouble
}

fn strength(order: Ordering) -> Strength {
    if order.strong {
        Strength::Strong
    } else {
        Strength::Weak
    }
}

fn to_usize(value: u32) -> usize {
    value as usize
}

fn to_usize_wide(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX / 2)
}

/// Extends a loaded value to the width of its register.
fn extend(value: u64, ty: Type, bits: u32) -> u64 {
    if ty.is_signed() {
        sign_extend(value, ty.bits()).cast_unsigned() & low_bits(bits)
    } else {
        value & low_bits(ty.bits())
    }
}

fn check_aligned(space: &str, address: u64, size: u32) -> Result<(), Trouble> {
    if address.is_multiple_of(u64::from(size)) {
        Ok(())
    } else {
        Err(Trouble::misaligned(space, address, size))
    }
}

fn check_local(offset: u64, size: u32, end: u32) -> Result<u32, Trouble> {
    let inside = offset
        .checked_add(u64::from(size))
        .is_some_and(|last| last <= u64::from(end));
    match u32::try_from(offset) {
        Ok(offset) if inside => {
            check_aligned("local", u64::from(offset), size)?;
            Ok(offset)
        }
        _ => Err(Trouble::new(
            FaultKind::IllegalAddress,
            format!(
                "access of {size} bytes of local memory at {offset:#x}, outside of the thread's {end} bytes"
            ),
        )),
    }
}
