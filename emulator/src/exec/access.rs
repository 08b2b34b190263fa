//! Loads, stores and atomic operations of a warp, in every state space, with all checks.
//!
//! Most accesses of a warp lie in one allocation: the addresses are checked together then, and the lanes
//! handled one by one only where that fails.

use super::code::{Dest, Ordering, Reg, Target};
use super::fault::FaultKind;
use super::frame::Frame;
use super::local::{LocalMemory, lanes};
use super::memory::{Access, GlobalMemory, MemoryFault, Window};
use super::races::GlobalRaces;
use super::shared::{SharedMemory, Strength, Who};
use super::space::{Place, SHARED, SHARED_STRIDE, Space};
use super::sync::Lanes;
use super::trouble::Trouble;
use super::types::{Type, mask as low_bits, sign_extend};

/// Windows that were found before, the latest first.
#[derive(Debug, Default)]
pub(crate) struct WindowCache {
    windows: Vec<Window>,
}

impl WindowCache {
    const KEPT: usize = 8;

    pub(crate) fn clear(&mut self) {
        self.windows.clear();
    }

    #[inline]
    fn find<M: GlobalMemory>(
        &mut self,
        memory: &mut M,
        address: u64,
    ) -> Result<Window, MemoryFault> {
        let at = self
            .windows
            .iter()
            .position(|w| w.start <= address && address < w.end);
        match at {
            Some(0) => Ok(self.windows[0]),
            Some(at) => {
                self.windows.swap(0, at);
                Ok(self.windows[0])
            }
            None => {
                let window = memory.window(address)?;
                self.windows.truncate(Self::KEPT - 1);
                self.windows.insert(0, window);
                Ok(window)
            }
        }
    }
}

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

    /// The window that holds the accesses of all lanes, if one does and they are aligned.
    #[inline]
    fn window_of(
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
    fn load_window(
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
            let unwritten = |lane: usize| !any(written, addresses[lane] - window.start, size);
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

    /// Loads from the block's own shared memory; all registers are set at the end, so that it can be run
    /// again.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the parts of one load")]
    fn load_shared(
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
    fn store_shared(
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

    fn block_of(&self, rank: Option<u32>, lane: usize) -> Result<(usize, Option<Who>), Trouble> {
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

    fn global_window(&mut self, address: u64, size: u32, what: &str) -> Result<Window, Trouble> {
        let window = self.window_around(address, u64::from(size), what)?;
        check_aligned("global", address, size)?;
        Ok(window)
    }

    /// The allocation that holds a range, which may begin anywhere.
    fn window_around(&mut self, address: u64, size: u64, what: &str) -> Result<Window, Trouble> {
        let found = self.windows.find(self.memory, address);
        let window = match found {
            Ok(window) => window,
            Err(fault) => return Err(outside(address, size, what, &fault)),
        };
        if address.saturating_add(size) > window.end {
            let beyond = address.saturating_add(size) - window.end;
            let whose = self.memory.describe(address);
            return Err(Trouble::new(
                FaultKind::IllegalAddress,
                format!(
                    "{what} of {size} bytes at {address:#x}, of which {beyond} lie past the end of {whose}"
                ),
            ));
        }
        Ok(window)
    }

    /// Whether a bulk copy can go to a range of global memory, and whether something was written there for one
    /// that reads it.
    pub(crate) fn check_global(
        &mut self,
        address: u64,
        size: u64,
        stores: bool,
        reads: bool,
    ) -> Result<(), Trouble> {
        let window = self.window_around(address, size, "bulk copy")?;
        if stores && !window.writable {
            let whose = self.memory.describe(address);
            return Err(Trouble::new(
                FaultKind::ReadOnly,
                format!(
                    "bulk copy of {size} bytes at {address:#x} to memory that the kernel may only read: {whose}"
                ),
            ));
        }
        if reads && !window.host_visible {
            let bytes = self.memory.bytes(&window);
            let at = address - window.start;
            if bytes
                .written
                .is_some_and(|written| !any(written, at, size as u32))
            {
                let whose = self.memory.describe(address);
                let mut trouble = Trouble::uninitialised("global", address, size as u32);
                trouble.message = format!("{}: {whose}", trouble.message);
                return Err(trouble);
            }
        }
        Ok(())
    }

    /// Reads a range of global memory that was checked.
    pub(crate) fn read_global(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Trouble> {
        let size = bytes.len() as u64;
        let window = self.window_around(address, size, "bulk copy")?;
        if window.host_visible {
            self.memory.load(&window, address, bytes);
        } else {
            let at = to_usize_wide(address - window.start);
            if let Some(piece) = self.memory.bytes(&window).data.get(at..at + bytes.len()) {
                bytes.copy_from_slice(piece);
            }
        }
        if let Some(races) = &mut self.races {
            races.read(self.block, address, size as u32, false)?;
        }
        self.memory
            .touch(&window, address..address + size, Access::Read);
        Ok(())
    }

    /// Writes a range of global memory that was checked.
    pub(crate) fn write_global(&mut self, address: u64, bytes: &[u8]) -> Result<(), Trouble> {
        let size = bytes.len() as u64;
        let window = self.window_around(address, size, "bulk copy")?;
        if window.host_visible {
            self.memory.store(&window, address, bytes);
        } else {
            let to = self.memory.bytes(&window);
            let at = address - window.start;
            if let Some(written) = to.written {
                set(written, at, size as u32);
            }
            let at = to_usize_wide(at);
            if let Some(piece) = to.data.get_mut(at..at + bytes.len()) {
                piece.copy_from_slice(bytes);
            }
        }
        if let Some(races) = &mut self.races {
            races.write(self.block, address, size as u32, false)?;
        }
        self.memory
            .touch(&window, address..address + size, Access::Write);
        Ok(())
    }

    fn load_global(
        &mut self,
        address: u64,
        bytes: &mut [u8],
        order: Ordering,
    ) -> Result<(), Trouble> {
        let size = bytes.len() as u32;
        *self.looked = true;
        let window = self.global_window(address, size, "load")?;
        if window.host_visible {
            self.memory.load(&window, address, bytes);
        } else {
            let from = self.memory.bytes(&window);
            let at = address - window.start;
            if !order.masked
                && from
                    .written
                    .as_ref()
                    .is_some_and(|written| !any(written, at, size))
            {
                let whose = self.memory.describe(address);
                let mut trouble = Trouble::uninitialised("global", address, size);
                trouble.message = format!("{}: {whose}", trouble.message);
                return Err(trouble);
            }
            let at = to_usize_wide(at);
            if let Some(piece) = from.data.get(at..at + bytes.len()) {
                bytes.copy_from_slice(piece);
            }
        }
        if let Some(races) = &mut self.races {
            races.read(self.block, address, size, order.strong)?;
        }
        self.memory
            .touch(&window, address..address + u64::from(size), Access::Read);
        Ok(())
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

    #[inline]
    fn store_window(
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
                set(written, addresses[0] - window.start, 32 * size);
            } else {
                for lane in lanes(mask) {
                    set(written, addresses[lane] - window.start, size);
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
            Place::Global(address) => {
                let window = self.global_window(address, size, "store")?;
                if !window.writable {
                    let whose = self.memory.describe(address);
                    return Err(Trouble::new(
                        FaultKind::ReadOnly,
                        format!(
                            "store of {size} bytes at {address:#x} to memory that the kernel may only read: {whose}"
                        ),
                    ));
                }
                if window.host_visible {
                    self.memory.store(&window, address, bytes);
                } else {
                    let to = self.memory.bytes(&window);
                    let at = address - window.start;
                    if let Some(written) = to.written {
                        set(written, at, size);
                    }
                    let at = to_usize_wide(at);
                    if let Some(piece) = to.data.get_mut(at..at + bytes.len()) {
                        piece.copy_from_slice(bytes);
                    }
                }
                if let Some(races) = &mut self.races {
                    races.write(self.block, address, size, order.strong)?;
                }
                self.memory
                    .touch(&window, address..address + u64::from(size), Access::Write);
                Ok(())
            }
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

    fn update_global(
        &mut self,
        address: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, Trouble> {
        *self.looked = true;
        let window = self.global_window(address, size, "atomic operation")?;
        if !window.writable {
            let whose = self.memory.describe(address);
            return Err(Trouble::new(
                FaultKind::ReadOnly,
                format!(
                    "atomic operation at {address:#x} on memory that the kernel may only read: {whose}"
                ),
            ));
        }
        let old = if window.host_visible {
            self.memory.update(&window, address, size, update)
        } else {
            let bytes = self.memory.bytes(&window);
            let at = address - window.start;
            if let Some(written) = bytes.written {
                if !any(written, at, size) {
                    let whose = self.memory.describe(address);
                    let mut trouble = Trouble::uninitialised("global", address, size);
                    trouble.message = format!("{}: {whose}", trouble.message);
                    return Err(trouble);
                }
                set(written, at, size);
            }
            let at = to_usize_wide(at);
            let mut wide = [0; 16];
            let Some(piece) = bytes.data.get_mut(at..at + to_usize(size)) else {
                return Ok(0);
            };
            wide[..piece.len()].copy_from_slice(piece);
            let old = u128::from_le_bytes(wide);
            piece.copy_from_slice(&update(old).to_le_bytes()[..to_usize(size)]);
            old
        };
        if let Some(races) = &mut self.races {
            races.write(self.block, address, size, true)?;
        }
        self.memory
            .touch(&window, address..address + u64::from(size), Access::Atomic);
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

/// Lowest and highest address, if all lanes go to global memory.
#[inline(always)]
fn global_range(space: Space, addresses: &[u64; 32], mask: u32) -> Option<(u64, u64)> {
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

/// What to take off the addresses, if all lanes go to their own block's shared memory.
#[inline(always)]
fn shared_base(space: Space, addresses: &[u64; 32], mask: u32) -> Option<u64> {
    let base = match space {
        Space::Shared => 0,
        Space::Generic => SHARED,
        _ => return None,
    };
    let own = lanes(mask).all(|lane| addresses[lane].wrapping_sub(base) < SHARED_STRIDE);
    own.then_some(base)
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

fn to_usize(value: u32) -> usize {
    value as usize
}

fn to_usize_wide(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX / 2)
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

fn outside(address: u64, size: u64, what: &str, fault: &MemoryFault) -> Trouble {
    let why = match fault {
        _ if address < 4096 => "a null pointer".to_owned(),
        MemoryFault::Unmapped(why) if why.is_empty() => "outside of every allocation".to_owned(),
        MemoryFault::Freed(why) if why.is_empty() => "in memory that was freed".to_owned(),
        MemoryFault::Host(why) if why.is_empty() => "an address of pageable host memory".to_owned(),
        MemoryFault::Unmapped(why) | MemoryFault::Freed(why) | MemoryFault::Host(why) => {
            why.clone()
        }
    };
    Trouble::new(
        FaultKind::IllegalAddress,
        format!("{what} of {size} bytes at {address:#x}: {why}"),
    )
}

/// Whether any of the bytes has its bit.
#[inline]
fn any(bits: &[u64], from: u64, count: u32) -> bool {
    pieces(from, u64::from(count))
        .any(|(at, mask)| bits.get(at).is_some_and(|word| word & mask != 0))
}

#[inline]
fn set(bits: &mut [u64], from: u64, count: u32) {
    for (at, mask) in pieces(from, u64::from(count)) {
        if let Some(word) = bits.get_mut(at) {
            *word |= mask;
        }
    }
}

/// The words of a bitmap, with the bits of each, that stand for some bytes.
#[inline]
fn pieces(from: u64, count: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut at = from;
    let end = from + count;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let shift = at % 64;
            let here = (64 - shift).min(end - at);
            let word = to_usize_wide(at / 64);
            at += here;
            (word, low_bits(here as u32) << shift)
        })
    })
}
