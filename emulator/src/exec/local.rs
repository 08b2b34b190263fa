//! Local memory of a warp: what each thread has for itself, by words, the lanes side by side, so that
//! lanes at one offset lie together.
//!
//! Every byte knows whether it was written since the function that owns it was entered.

pub(crate) const LANES: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct LocalMemory {
    words: Vec<[u32; LANES]>,
    /// A bit a byte.
    written: Vec<[u8; LANES]>,
}

impl LocalMemory {
    /// Makes the bytes from `start` to `end` exist, not yet written, for the lanes of `mask`.
    pub(crate) fn enter(&mut self, mask: u32, start: u32, end: u32) {
        let (first, last) = (start as usize / 4, end.div_ceil(4) as usize);
        if self.words.len() < last {
            self.words.resize(last, [0; LANES]);
            self.written.resize(last, [0; LANES]);
        }
        for row in &mut self.written[first.min(last)..last] {
            if mask == u32::MAX {
                *row = [0; LANES];
            } else {
                for lane in lanes(mask) {
                    row[lane] = 0;
                }
            }
        }
    }

    /// The value, and whether any byte of the eight aligned ones around it was written: a copy of a struct
    /// reads its padding too, byte by byte.
    pub(crate) fn peek(&self, lane: usize, offset: u32, size: u32) -> (u64, bool) {
        let at = offset as usize / 4;
        let word = |at: usize| self.words.get(at).map_or(0, |row| row[lane]);
        let written = |at: usize| self.written.get(at).map_or(0, |row| row[lane]);
        let some = written(at & !1) | written(at | 1) != 0;
        if size == 8 {
            let value = u64::from(word(at)) | u64::from(word(at + 1)) << 32;
            return (value, some);
        }
        let byte = offset % 4;
        let value = u64::from(word(at) >> (8 * byte)) & super::types::mask(8 * size);
        (value, some)
    }

    pub(crate) fn store(&mut self, lane: usize, offset: u32, size: u32, value: u64) {
        let at = offset as usize / 4;
        if size == 8 {
            self.store(lane, offset, 4, value & 0xffff_ffff);
            self.store(lane, offset + 4, 4, value >> 32);
            return;
        }
        let byte = offset % 4;
        let bits = super::types::mask(8 * size) as u32;
        if let (Some(words), Some(written)) = (self.words.get_mut(at), self.written.get_mut(at)) {
            let kept = words[lane] & !(bits << (8 * byte));
            words[lane] = kept | (value as u32 & bits) << (8 * byte);
            written[lane] |= byte_mask(size) << byte;
        }
    }

    /// The word of every lane at an offset, if each is there and was written.
    pub(crate) fn row(&self, offset: u32) -> Option<&[u32; LANES]> {
        let at = offset as usize / 4;
        let written = self.written.get(at)?;
        written
            .iter()
            .all(|bytes| *bytes != 0)
            .then(|| &self.words[at])
    }

    /// The word of every lane at an offset, to be written whole.
    pub(crate) fn row_mut(&mut self, offset: u32) -> Option<&mut [u32; LANES]> {
        let at = offset as usize / 4;
        *self.written.get_mut(at)? = [0xf; LANES];
        self.words.get_mut(at)
    }
}

fn byte_mask(size: u32) -> u8 {
    match size {
        1 => 1,
        2 => 3,
        _ => 15,
    }
}

/// The lanes of a mask, lowest first.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            lane
        })
    })
}
