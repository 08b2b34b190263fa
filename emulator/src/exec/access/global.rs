//! Global memory, an access of one thread at a time.

use super::super::code::Ordering;
use super::super::fault::FaultKind;
use super::super::memory::{Access, GlobalMemory, MemoryFault, Window};
use super::super::trouble::Trouble;
use super::{Reach, bitmap, check_aligned, to_usize, to_usize_wide};

impl<M: GlobalMemory> Reach<'_, M> {
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
            let what = format!("bulk copy of {size} bytes at {address:#x} to");
            return Err(self.read_only(address, &what));
        }
        if reads && !window.host_visible {
            let bytes = self.memory.bytes(&window);
            let at = address - window.start;
            if bytes
                .written
                .is_some_and(|written| !bitmap::any(written, at, size as u32))
            {
                return Err(self.unwritten(address, size as u32));
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
        self.put(&window, address, bytes);
        if let Some(races) = &mut self.races {
            races.write(self.block, address, size as u32, false)?;
        }
        self.memory
            .touch(&window, address..address + size, Access::Write);
        Ok(())
    }

    pub(super) fn load_global(
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
                    .is_some_and(|written| !bitmap::any(written, at, size))
            {
                return Err(self.unwritten(address, size));
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

    pub(super) fn store_global(
        &mut self,
        address: u64,
        bytes: &[u8],
        order: Ordering,
    ) -> Result<(), Trouble> {
        let size = bytes.len() as u32;
        let window = self.global_window(address, size, "store")?;
        if !window.writable {
            let what = format!("store of {size} bytes at {address:#x} to");
            return Err(self.read_only(address, &what));
        }
        self.put(&window, address, bytes);
        if let Some(races) = &mut self.races {
            races.write(self.block, address, size, order.strong)?;
        }
        self.memory
            .touch(&window, address..address + u64::from(size), Access::Write);
        Ok(())
    }

    pub(super) fn update_global(
        &mut self,
        address: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, Trouble> {
        *self.looked = true;
        let window = self.global_window(address, size, "atomic operation")?;
        if !window.writable {
            let what = format!("atomic operation at {address:#x} on");
            return Err(self.read_only(address, &what));
        }
        let old = if window.host_visible {
            self.memory.update(&window, address, size, update)
        } else {
            let bytes = self.memory.bytes(&window);
            let at = address - window.start;
            if let Some(written) = bytes.written {
                if !bitmap::any(written, at, size) {
                    return Err(self.unwritten(address, size));
                }
                bitmap::set(written, at, size);
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

    fn put(&mut self, window: &Window, address: u64, bytes: &[u8]) {
        if window.host_visible {
            self.memory.store(window, address, bytes);
            return;
        }
        let to = self.memory.bytes(window);
        let at = address - window.start;
        if let Some(written) = to.written {
            bitmap::set(written, at, bytes.len() as u32);
        }
        let at = to_usize_wide(at);
        if let Some(piece) = to.data.get_mut(at..at + bytes.len()) {
            piece.copy_from_slice(bytes);
        }
    }

    fn unwritten(&mut self, address: u64, size: u32) -> Trouble {
        let mut trouble = Trouble::uninitialised("global", address, size);
        trouble.message = format!("{}: {}", trouble.message, self.memory.describe(address));
        trouble
    }

    fn read_only(&mut self, address: u64, what: &str) -> Trouble {
        let whose = self.memory.describe(address);
        Trouble::new(
            FaultKind::ReadOnly,
            format!("{what} memory that the kernel may only read: {whose}"),
        )
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
