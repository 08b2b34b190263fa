//! Shared memory of a block, and who may touch what when.
//!
//! Time counts what orders accesses: barriers, warp-level synchronisation, fences. Each granule remembers
//! its last writer and, for every warp, its last reader; an access races if another thread's is not ordered
//! before it. Times grow from block to block, so nothing is cleared in between.

use super::bulk::Incoming;
use super::fault::FaultKind;
use super::trouble::Trouble;

/// Times are kept in 26 bits beside a lane.
const LAST_TIME: u32 = (1 << 26) - 2;

/// The mark of a granule that several lanes of a warp read.
const SEVERAL: u32 = 63;

/// A thread of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) warp: usize,
    pub(crate) lane: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    time: u32,
    thread: u16,
    /// It was an atomic or otherwise strong operation.
    strong: bool,
}

/// How an access takes part in races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    Weak,
    /// Volatile, relaxed or atomic: two of them do not race.
    Strong,
}

#[derive(Debug)]
pub(crate) struct SharedMemory {
    bytes: Vec<u8>,
    /// One for a byte that was written.
    written: Vec<u8>,
    granule: u32,
    /// The granule as a shift.
    shift: u32,
    warps: usize,
    writers: Vec<Writer>,
    /// For each granule and warp: the time of the last read, and its lane in the lowest six bits.
    readers: Vec<u32>,
    /// For each granule, the time of the last read by anyone.
    last_read: Vec<u32>,
    now: u32,
    /// `seen[w * warps + v]`: up to which time warp `w` is ordered behind accesses of warp `v`.
    seen: Vec<u32>,
    /// For each warp, up to which time it is ordered behind all others.
    floors: Vec<u32>,
    fence: Vec<u32>,
    /// Something was accessed at the present time.
    busy: bool,
    /// Bulk copies that are under way to this memory.
    pub(crate) incoming: Vec<Incoming>,
    /// Grows whenever whoever waits at an `mbarrier` in this memory has to look again.
    pub(crate) news: u64,
}

impl SharedMemory {
    /// `granule` is the smallest access that the kernel makes, 4 at most.
    pub(crate) fn new(size: usize, granule: u32, warps: usize) -> Self {
        let granules = size.div_ceil(granule as usize);
        Self {
            bytes: vec![0; size],
            written: vec![0; size],
            granule,
            shift: granule.trailing_zeros(),
            warps,
            writers: vec![Writer::default(); granules],
            readers: vec![0; granules * warps],
            last_read: vec![0; granules],
            now: 1,
            seen: vec![0; warps * warps],
            floors: vec![0; warps],
            fence: vec![0; warps],
            busy: false,
            incoming: Vec::new(),
            news: 0,
        }
    }

    /// Begins a new block.
    pub(crate) fn begin(&mut self) {
        self.incoming.clear();
        self.written.fill(0);
        self.order_all();
    }

    /// Orders all that was before all that comes.
    fn order_all(&mut self) {
        if self.now >= LAST_TIME {
            self.writers.fill(Writer::default());
            self.readers.fill(0);
            self.last_read.fill(0);
            self.now = 1;
        }
        let now = self.now;
        self.seen.fill(now);
        self.floors.fill(now);
        self.fence.fill(now);
        self.tick();
    }

    fn tick(&mut self) {
        self.now = (self.now + 1).min(LAST_TIME);
        self.busy = false;
    }

    /// The warps of the mask met at a barrier.
    pub(crate) fn barrier(&mut self, warps: u32) {
        if self.now >= LAST_TIME {
            // Forgetting is the only way on: no race is reported across this point.
            return self.order_all();
        }
        let now = self.now;
        let members = || super::local::lanes(warps).filter(|warp| *warp < self.warps);
        let mut joined = vec![0; self.warps];
        for member in members() {
            let row = &self.seen[member * self.warps..][..self.warps];
            for (join, seen) in joined.iter_mut().zip(row) {
                *join = (*join).max(*seen);
            }
        }
        for member in members() {
            joined[member] = now;
        }
        let members: Vec<usize> = members().collect();
        for member in members {
            self.seen[member * self.warps..][..self.warps].copy_from_slice(&joined);
            self.set_floor(member);
        }
        self.tick();
    }

    /// The lanes of a warp met.
    pub(crate) fn warp_sync(&mut self, warp: usize) {
        if self.busy && warp < self.warps {
            self.seen[warp * self.warps + warp] = self.now;
            self.set_floor(warp);
            self.tick();
        }
    }

    /// A warp fenced: taken as ordered behind every warp that fenced before.
    pub(crate) fn fence(&mut self, warp: usize) {
        if warp >= self.warps {
            return;
        }
        let row = &mut self.seen[warp * self.warps..][..self.warps];
        row[warp] = self.now;
        for (seen, fence) in row.iter_mut().zip(&mut self.fence) {
            *seen = (*seen).max(*fence);
            *fence = *seen;
        }
        self.set_floor(warp);
        self.tick();
    }

    fn set_floor(&mut self, warp: usize) {
        let row = &self.seen[warp * self.warps..][..self.warps];
        self.floors[warp] = row.iter().copied().min().unwrap_or(0);
    }

    /// Loads up to 8 bytes for one lane where nothing is wrong with it; else the other way has to be gone.
    #[inline(always)]
    pub(crate) fn quick_load<const SIZE: usize>(&mut self, who: Who, offset: u64) -> Option<u64> {
        let at = usize::try_from(offset).ok()?;
        let end = at.checked_add(SIZE)?;
        let written: [u8; SIZE] = self.written.get(at..end)?.try_into().ok()?;
        if at % SIZE != 0 || written.iter().all(|byte| *byte == 0) {
            return None;
        }
        let floor = self.floors[who.warp];
        let thread = (who.warp * 32 + who.lane) as u16;
        let lane = who.lane as u32;
        for index in at >> self.shift..=(end - 1) >> self.shift {
            let writer = self.writers[index];
            if writer.time > floor && writer.thread != thread {
                return None;
            }
            let entry = &mut self.readers[index * self.warps + who.warp];
            let several = *entry >> 6 == self.now && *entry & 63 != lane;
            *entry = self.now << 6 | if several { SEVERAL } else { lane };
            self.last_read[index] = self.now;
        }
        self.busy = true;
        let mut wide = [0; 8];
        wide[..SIZE].copy_from_slice(&self.bytes[at..end]);
        Some(u64::from_le_bytes(wide))
    }

    /// Stores up to 8 bytes for one lane where nothing is wrong with it, and says whether it did.
    #[inline(always)]
    pub(crate) fn quick_store<const SIZE: usize>(
        &mut self,
        who: Who,
        offset: u64,
        value: u64,
    ) -> bool {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(end) = at.checked_add(SIZE).filter(|end| *end <= self.bytes.len()) else {
            return false;
        };
        if at % SIZE != 0 {
            return false;
        }
        let floor = self.floors[who.warp];
        let thread = (who.warp * 32 + who.lane) as u16;
        for index in at >> self.shift..=(end - 1) >> self.shift {
            let writer = &mut self.writers[index];
            let ordered = writer.time <= floor || writer.thread == thread;
            if !ordered || self.last_read[index] > floor {
                return false;
            }
            *writer = Writer {
                time: self.now,
                thread,
                strong: false,
            };
        }
        self.busy = true;
        self.bytes[at..end].copy_from_slice(&value.to_le_bytes()[..SIZE]);
        self.written[at..end].fill(1);
        true
    }

    /// Whether some byte of a range was written; a range that is not there does not count as unwritten.
    pub(crate) fn any_written(&self, offset: u64, size: u32) -> bool {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let range = at..at.saturating_add(size as usize);
        self.written
            .get(range)
            .is_none_or(|written| written.contains(&1))
    }

    fn range(&self, offset: u64, size: u32) -> Result<usize, Trouble> {
        let inside = offset
            .checked_add(u64::from(size))
            .is_some_and(|end| end <= self.bytes.len() as u64);
        if !inside {
            return Err(self.outside(offset, size));
        }
        if !offset.is_multiple_of(u64::from(size)) {
            return Err(Trouble::misaligned("shared", offset, size));
        }
        Ok(offset as usize)
    }

    fn outside(&self, offset: u64, size: u32) -> Trouble {
        Trouble::new(
            FaultKind::IllegalAddress,
            format!(
                "access of {size} bytes of shared memory at {offset:#x}, outside of the block's {} bytes",
                self.bytes.len()
            ),
        )
    }

    /// Loads up to 16 bytes at a multiple of their number; `who` is none for another block of the cluster.
    pub(crate) fn load(
        &mut self,
        who: Option<Who>,
        offset: u64,
        size: u32,
        strength: Strength,
    ) -> Result<u128, Trouble> {
        let at = self.range(offset, size)?;
        let end = at + size as usize;
        if let Some(who) = who {
            self.note_read(who, at, size, strength)?;
        }
        Ok(value(&self.bytes[at..end]))
    }

    pub(crate) fn store(
        &mut self,
        who: Option<Who>,
        offset: u64,
        size: u32,
        new: u128,
        strength: Strength,
    ) -> Result<(), Trouble> {
        let at = self.range(offset, size)?;
        let end = at + size as usize;
        let bytes = new.to_le_bytes();
        let bytes = &bytes[..size as usize];
        if let Some(who) = who {
            let same =
                self.bytes[at..end] == *bytes && self.written[at..end].iter().all(|w| *w == 1);
            self.note_write(who, at, size, same, strength)?;
        }
        self.bytes[at..end].copy_from_slice(bytes);
        self.written[at..end].fill(1);
        Ok(())
    }

    /// Replaces a value by what `update` makes of it, and returns what was there.
    pub(crate) fn update(
        &mut self,
        who: Option<Who>,
        offset: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, Trouble> {
        let at = self.range(offset, size)?;
        let end = at + size as usize;
        if self.written[at..end].iter().all(|written| *written == 0) {
            return Err(Trouble::uninitialised("shared", offset, size));
        }
        if let Some(who) = who {
            self.note_write(who, at, size, false, Strength::Strong)?;
        }
        let old = value(&self.bytes[at..end]);
        let new = update(old).to_le_bytes();
        self.bytes[at..end].copy_from_slice(&new[..size as usize]);
        self.written[at..end].fill(1);
        Ok(old)
    }

    /// Writes bytes that lie within the memory, of one granule at least.
    pub(crate) fn put(&mut self, who: Option<Who>, offset: u64, new: &[u8]) -> Result<(), Trouble> {
        let at = offset as usize;
        let range = at..at + new.len();
        if let Some(who) = who {
            let same = self.bytes[range.clone()] == *new
                && self.written[range.clone()].iter().all(|w| *w == 1);
            self.note_write(who, at, new.len() as u32, same, Strength::Weak)?;
        }
        self.bytes[range.clone()].copy_from_slice(new);
        self.written[range].fill(1);
        Ok(())
    }

    /// Reads bytes that lie within the memory.
    pub(crate) fn take(
        &mut self,
        who: Option<Who>,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), Trouble> {
        let at = offset as usize;
        if let Some(who) = who {
            self.note_read(who, at, bytes.len() as u32, Strength::Weak)?;
        }
        bytes.copy_from_slice(&self.bytes[at..at + bytes.len()]);
        Ok(())
    }

    /// Eight bytes as they are, if they lie within the memory.
    pub(crate) fn peek(&self, offset: u64) -> Option<u64> {
        let at = usize::try_from(offset).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The bytes from an offset on, for text that is printed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn note_read(
        &mut self,
        who: Who,
        at: usize,
        size: u32,
        strength: Strength,
    ) -> Result<(), Trouble> {
        self.busy = true;
        let granule = self.granule as usize;
        for index in at / granule..(at + size as usize).div_ceil(granule) {
            let writer = self.writers[index];
            if let Some(other) = self.racing_writer(who, writer, strength) {
                return Err(race(at, "load", who, "a store", other));
            }
            if strength == Strength::Weak {
                let entry = &mut self.readers[index * self.warps + who.warp];
                let lane = who.lane as u32;
                let several = *entry >> 6 == self.now && *entry & 63 != lane;
                *entry = self.now << 6 | if several { SEVERAL } else { lane };
                self.last_read[index] = self.now;
            }
        }
        Ok(())
    }

    fn racing_writer(&self, who: Who, writer: Writer, strength: Strength) -> Option<Who> {
        let other = Who {
            warp: usize::from(writer.thread) / 32,
            lane: usize::from(writer.thread) % 32,
        };
        let ordered = writer.time <= self.seen[who.warp * self.warps + other.warp];
        let both_strong = writer.strong && strength == Strength::Strong;
        (!ordered && other != who && !both_strong).then_some(other)
    }

    fn note_write(
        &mut self,
        who: Who,
        at: usize,
        size: u32,
        same: bool,
        strength: Strength,
    ) -> Result<(), Trouble> {
        self.busy = true;
        let granule = self.granule as usize;
        for index in at / granule..(at + size as usize).div_ceil(granule) {
            let writer = self.writers[index];
            if let Some(other) = self.racing_writer(who, writer, strength)
                && !same
            {
                let how = if writer.strong {
                    "an atomic operation"
                } else {
                    "a store"
                };
                return Err(race(at, "store", who, how, other));
            }
            let seen = &self.seen[who.warp * self.warps..][..self.warps];
            let readers = &self.readers[index * self.warps..][..self.warps];
            let unordered = readers
                .iter()
                .zip(seen)
                .position(|(read, seen)| read >> 6 > *seen);
            if unordered.is_some() && !same {
                let racing = readers
                    .iter()
                    .zip(seen)
                    .enumerate()
                    .find(|(warp, (read, seen))| {
                        let itself = *warp == who.warp && **read & 63 == who.lane as u32;
                        **read >> 6 > **seen && !itself
                    });
                if let Some((warp, (read, _))) = racing {
                    let lane = if *read & 63 == SEVERAL {
                        (who.lane + 1) % 32
                    } else {
                        (*read & 63) as usize
                    };
                    return Err(race(at, "store", who, "a load", Who { warp, lane }));
                }
            }
            self.writers[index] = Writer {
                time: self.now,
                thread: (who.warp * 32 + who.lane) as u16,
                strong: strength == Strength::Strong,
            };
        }
        Ok(())
    }
}

fn race(at: usize, what: &str, who: Who, other_what: &str, other: Who) -> Trouble {
    let mut trouble = Trouble::new(
        FaultKind::SharedRace,
        format!(
            "race in shared memory at {at:#x}: {what} by thread {} of the block is not ordered behind {other_what} \
             by thread {}; a `__syncthreads()` between them is missing",
            who.warp * 32 + who.lane,
            other.warp * 32 + other.lane,
        ),
    );
    trouble.lane = Some(who.lane);
    trouble.address = Some(at as u64);
    trouble
}

fn value(bytes: &[u8]) -> u128 {
    let mut all = [0; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(all)
}
