//! Accesses of all lanes of a warp to one allocation, which are checked together.

use super::super::code::{Dest, Ordering, Reg};
use super::super::frame::Frame;
use super::super::local::lanes;
use super::super::memory::{Access, GlobalMemory, Window};
use super::super::space::{SHARED, Space};
use super::super::sync::Lanes;
use super::super::types::Type;
use super::{Reach, bitmap, extend, to_usize, to_usize_wide};

impl<M: GlobalMemory> Reach<'_, M> {
    /// The window that holds the accesses of all lanes, if one does and they are aligned.
    #[inline]
    pub(super) fn window_of(
        &mut self,
        low: u64,
        high: u64,
        size: u32,
        addresses: &[u64; 32],
        mask: u32,
    ) -> Option<Window> {
        let window = self.windows.find(self.memory, low).ok()?;
        let inside = high.checked_add(u64::from(size))? <= window.end;
        let union = if mask == u32::MAX {
            addresses.iter().fold(0, |union, address| union | address)
        } else {
            lanes(mask).fold(0, |union, lane| union | addresses[lane])
        };
        let aligned = union & (u64::from(size) - 1) == 0;
        (inside && aligned && !window.host_visible && self.races.is_none()).then_some(window)
    }

    /// False if a lane has to be looked at by itself.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the parts of one load")]
    pub(super) fn load_window(
        &mut self,
        frame: &mut Frame,
        mask: u32,
        window: &Window,
        addresses: &[u64; 32],
        ty: Type,
        order: Ordering,
        to: &[Dest],
    ) -> bool {
        let element = ty.bytes();
        let size = element * to.len() as u32;
        *self.looked = true;
        let bytes = self.memory.bytes(window);
        if let Some(written) = &bytes.written
            && !order.masked
        {
            let unwritten =
                |lane: usize| !bitmap::any(written, addresses[lane] - window.start, size);
            if lanes(mask).any(unwritten) {
                return false;
            }
        }
        let data = &*bytes.data;
        let dense = is_dense(addresses, mask, size);
        for (at, to) in (0_u64..).zip(to) {
            let skip = at * u64::from(element);
            match (element, to.reg) {
                (4, Reg::W(index)) => {
                    let mut row = [0; 32];
                    if dense && to_usize(size) == 4 {
                        let start = to_usize_wide(addresses[0] - window.start);
                        let Some(piece) = data.get(start..start + 128) else {
                            return false;
                        };
                        for (word, bytes) in row.iter_mut().zip(piece.chunks_exact(4)) {
                            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                        }
                    } else {
                        for lane in lanes(mask) {
                            row[lane] = word(data, addresses[lane] - window.start + skip);
                        }
                    }
                    frame.put_words(index, mask, &row);
                }
                (8, Reg::D(index)) => {
                    let mut row = [0; 32];
                    for lane in lanes(mask) {
                        row[lane] = double(data, addresses[lane] - window.start + skip);
                    }
                    frame.put_doubles(index, mask, &row);
                }
                (16, _) => {
                    for lane in lanes(mask) {
                        let at = addresses[lane] - window.start + skip;
                        let value =
                            u128::from(double(data, at)) | u128::from(double(data, at + 8)) << 64;
                        frame.set_lane(*to, lane, value);
                    }
                }
                _ => {
                    let mut row = [0; 32];
                    for lane in lanes(mask) {
                        let value = part(data, addresses[lane] - window.start + skip, element);
                        row[lane] = extend(value, ty, to.bits);
                    }
                    frame.write(*to, mask, &row);
                }
            }
        }
        self.touch(window, addresses, mask, size, dense, Access::Read);
        true
    }

    #[inline]
    fn touch(
        &mut self,
        window: &Window,
        addresses: &[u64; 32],
        mask: u32,
        size: u32,
        dense: bool,
        access: Access,
    ) {
        if dense {
            self.memory.touch(
                window,
                addresses[0]..addresses[31] + u64::from(size),
                access,
            );
            return;
        }
        let mut run = 0..0;
        for lane in lanes(mask) {
            let (start, end) = (addresses[lane], addresses[lane] + u64::from(size));
            if start == run.end && run.start != run.end {
                run.end = end;
            } else if start < run.start || end > run.end {
                if run.start != run.end {
                    self.memory.touch(window, run, access);
                }
                run = start..end;
            }
        }
        if run.start != run.end {
            self.memory.touch(window, run, access);
        }
    }

    #[inline]
    pub(super) fn store_window(
        &mut self,
        frame: &Frame,
        mask: u32,
        window: &Window,
        addresses: &[u64; 32],
        element: u32,
        from: &[Reg],
    ) {
        let size = element * from.len() as u32;
        let dense = is_dense(addresses, mask, size);
        *self.changed = true;
        let mut bytes = self.memory.bytes(window);
        if let Some(written) = &mut bytes.written {
            if dense {
                bitmap::set(written, addresses[0] - window.start, 32 * size);
            } else {
                for lane in lanes(mask) {
                    bitmap::set(written, addresses[lane] - window.start, size);
                }
            }
        }
        let data = &mut *bytes.data;
        for (at, from) in (0_u64..).zip(from) {
            let skip = at * u64::from(element);
            match (element, *from) {
                (4, Reg::W(index)) => {
                    let row = &frame.words[index as usize];
                    if dense && size == 4 {
                        let start = to_usize_wide(addresses[0] - window.start);
                        if let Some(piece) = data.get_mut(start..start + 128) {
                            for (bytes, word) in piece.chunks_exact_mut(4).zip(row) {
                                bytes.copy_from_slice(&word.to_le_bytes());
                            }
                        }
                    } else {
                        for lane in lanes(mask) {
                            let at = to_usize_wide(addresses[lane] - window.start + skip);
                            if let Some(piece) = data.get_mut(at..at + 4) {
                                piece.copy_from_slice(&row[lane].to_le_bytes());
                            }
                        }
                    }
                }
                (8, Reg::D(index)) => {
                    let row = &frame.doubles[index as usize];
                    for lane in lanes(mask) {
                        let at = to_usize_wide(addresses[lane] - window.start + skip);
                        if let Some(piece) = data.get_mut(at..at + 8) {
                            piece.copy_from_slice(&row[lane].to_le_bytes());
                        }
                    }
                }
                (element, from) => {
                    for lane in lanes(mask) {
                        let at = to_usize_wide(addresses[lane] - window.start + skip);
                        let value = frame.lane_wide(from, lane).to_le_bytes();
                        let element = to_usize(element);
                        if let Some(piece) = data.get_mut(at..at + element) {
                            piece.copy_from_slice(&value[..element]);
                        }
                    }
                }
            }
        }
        self.touch(window, addresses, mask, size, dense, Access::Write);
    }
}

/// Lowest and highest address, if all lanes go to global memory.
#[inline(always)]
pub(super) fn global_range(space: Space, addresses: &[u64; 32], mask: u32) -> Option<(u64, u64)> {
    if !matches!(space, Space::Global | Space::Const | Space::Generic) {
        return None;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    if mask == u32::MAX {
        for address in addresses {
            low = low.min(*address);
            high = high.max(*address);
        }
    } else {
        for lane in lanes(mask) {
            low = low.min(addresses[lane]);
            high = high.max(addresses[lane]);
        }
    }
    (high < SHARED).then_some((low, high))
}

/// Whether all 32 lanes follow one another without a gap.
#[inline(always)]
fn is_dense(addresses: &[u64; 32], mask: u32, size: u32) -> bool {
    let first = addresses[0];
    mask == u32::MAX
        && (0_u64..)
            .zip(addresses)
            .fold(true, |dense, (lane, address)| {
                dense & (*address == first.wrapping_add(lane * u64::from(size)))
            })
}

#[inline(always)]
fn word(data: &[u8], at: u64) -> u32 {
    let at = to_usize_wide(at);
    data.get(at..at + 4)
        .map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

#[inline(always)]
fn double(data: &[u8], at: u64) -> u64 {
    u64::from(word(data, at)) | u64::from(word(data, at + 4)) << 32
}

fn part(data: &[u8], at: u64, size: u32) -> u64 {
    let at = to_usize_wide(at);
    let mut wide = [0; 8];
    if let Some(piece) = data.get(at..at + to_usize(size)) {
        wide[..piece.len()].copy_from_slice(piece);
    }
    u64::from_le_bytes(wide)
}
