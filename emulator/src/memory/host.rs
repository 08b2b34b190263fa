//! Memory that host and device both reach at one address: pinned, managed and registered.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A multiple of every page size that Linux uses on the processors we know.
const PAGE: usize = 65536;

/// A mapping of its own, between two pages that nobody can touch.
#[derive(Debug)]
pub(crate) struct Block {
    base: usize,
    length: usize,
}

impl Block {
    /// Maps room for `size` bytes, all zero.
    pub(crate) fn map(size: usize) -> io::Result<Self> {
        let length = size
            .checked_next_multiple_of(PAGE)
            .and_then(|room| room.checked_add(2 * PAGE))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let block = Self {
            base: base.expose_provenance(),
            length,
        };
        // SAFETY: the pages between the first and the last of the mapping just made, which nobody
        // else knows of.
        let opened = unsafe {
            libc::mprotect(
                base.wrapping_byte_add(PAGE),
                length - 2 * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if opened != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(block)
    }

    pub(crate) fn start(&self) -> u64 {
        (self.base + PAGE) as u64
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Takes the memory away but keeps the addresses, so that whoever still uses them faults.
    pub(crate) fn close(&self) {
        let base = std::ptr::with_exposed_provenance_mut(self.base);
        // SAFETY: replaces this block's own mapping, which its owner has freed, by one without
        // access; `length` is that of the mapping.
        unsafe {
            libc::mmap(
                base,
                self.length,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            );
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let base = std::ptr::with_exposed_provenance_mut(self.base);
        // SAFETY: unmaps what `map` mapped; the block's owner has freed it, so that by the driver's
        // contract nobody uses it any more.
        unsafe { libc::munmap(base, self.length) };
    }
}

/// Memory both sides use while a kernel runs: every access is atomic in itself where it is aligned, as
/// host threads may look at the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    start: u64,
    size: u64,
}

impl Shared {
    /// # Safety
    ///
    /// The bytes must stay mapped, readable and writable as long as the value is used, and the host
    /// may touch them only as the driver's contract lets it.
    pub(crate) unsafe fn new(start: u64, size: u64) -> Self {
        Self { start, size }
    }

    fn place(self, address: u64, length: usize) -> *mut u8 {
        let inside = address >= self.start
            && address - self.start <= self.size
            && length as u64 <= self.size - (address - self.start);
        assert!(
            inside,
            "{length} bytes at {address:#x} lie outside of the window"
        );
        std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
    }

    pub(crate) fn load(self, address: u64, bytes: &mut [u8]) {
        let place = self.place(address, bytes.len());
        match (bytes.len(), place.addr() % bytes.len().max(1)) {
            (8, 0) => {
                // SAFETY: inside the window, aligned, and mapped by the contract of `new`.
                let value = unsafe { AtomicU64::from_ptr(place.cast()) };
                bytes.copy_from_slice(&value.load(Ordering::Acquire).to_ne_bytes());
            }
            (4, 0) => {
                // SAFETY: as above.
                let value = unsafe { AtomicU32::from_ptr(place.cast()) };
                bytes.copy_from_slice(&value.load(Ordering::Acquire).to_ne_bytes());
            }
            (2, 0) => {
                // SAFETY: as above.
                let value = unsafe { AtomicU16::from_ptr(place.cast()) };
                bytes.copy_from_slice(&value.load(Ordering::Acquire).to_ne_bytes());
            }
            (16.., 0) if bytes.len().is_multiple_of(8) => {
                for (index, part) in bytes.chunks_exact_mut(8).enumerate() {
                    self.load(address + 8 * index as u64, part);
                }
            }
            _ => {
                for (index, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: `index` is below the length that `place` was checked for.
                    let place = unsafe { place.add(index) };
                    // SAFETY: inside the window and mapped by the contract of `new`.
                    let value = unsafe { AtomicU8::from_ptr(place) };
                    *byte = value.load(Ordering::Acquire);
                }
            }
        }
    }

    pub(crate) fn store(self, address: u64, bytes: &[u8]) {
        let place = self.place(address, bytes.len());
        match (bytes.len(), place.addr() % bytes.len().max(1)) {
            (8, 0) => {
                // SAFETY: inside the window, aligned, and mapped by the contract of `new`.
                let value = unsafe { AtomicU64::from_ptr(place.cast()) };
                value.store(u64::from_ne_bytes(array(bytes)), Ordering::Release);
            }
            (4, 0) => {
                // SAFETY: as above.
                let value = unsafe { AtomicU32::from_ptr(place.cast()) };
                value.store(u32::from_ne_bytes(array(bytes)), Ordering::Release);
            }
            (2, 0) => {
                // SAFETY: as above.
                let value = unsafe { AtomicU16::from_ptr(place.cast()) };
                value.store(u16::from_ne_bytes(array(bytes)), Ordering::Release);
            }
            (16.., 0) if bytes.len().is_multiple_of(8) => {
                for (index, part) in bytes.chunks_exact(8).enumerate() {
                    self.store(address + 8 * index as u64, part);
                }
            }
            _ => {
                for (index, byte) in bytes.iter().enumerate() {
                    // SAFETY: `index` is below the length that `place` was checked for.
                    let place = unsafe { place.add(index) };
                    // SAFETY: inside the window and mapped by the contract of `new`.
                    let value = unsafe { AtomicU8::from_ptr(place) };
                    value.store(*byte, Ordering::Release);
                }
            }
        }
    }

    /// Copies in and out in bulk, where no kernel looks on.
    pub(crate) fn copy_out(self, address: u64, bytes: &mut [u8]) {
        let place = self.place(address, bytes.len());
        // SAFETY: inside the window and mapped by the contract of `new`; the host does not touch what
        // an operation it enqueued reads; `bytes` is apart from the window.
        unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
    }

    pub(crate) fn copy_in(self, address: u64, bytes: &[u8]) {
        let place = self.place(address, bytes.len());
        // SAFETY: as in `copy_out`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
    }

    /// Replaces aligned bytes in one step. Sixteen bytes are one step among kernels only: the host
    /// has no such operation either.
    pub(crate) fn update(
        self,
        address: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> u128 {
        macro_rules! exchange {
            ($atomic:ty, $int:ty) => {{
                let place = self.place(address, size as usize);
                assert!(
                    place.addr() % size as usize == 0,
                    "{address:#x} is misaligned"
                );
                // SAFETY: inside the window, aligned, and mapped by the contract of `new`.
                let value = unsafe { <$atomic>::from_ptr(place.cast()) };
                let mut seen = value.load(Ordering::Acquire);
                loop {
                    #[allow(clippy::cast_possible_truncation, reason = "the operation's own width")]
                    let new = update(u128::from(seen)) as $int;
                    match value.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(old) => break u128::from(old),
                        Err(other) => seen = other,
                    }
                }
            }};
        }
        match size {
            1 => exchange!(AtomicU8, u8),
            2 => exchange!(AtomicU16, u16),
            4 => exchange!(AtomicU32, u32),
            8 => exchange!(AtomicU64, u64),
            _ => {
                let mut bytes = [0; 16];
                self.load(address, &mut bytes);
                let old = u128::from_ne_bytes(bytes);
                self.store(address, &update(old).to_ne_bytes());
                old
            }
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded_at_every_width() {
        let block = Block::map(100).expect("a mapping");
        // SAFETY: the block lives to the end of the test and nobody else knows of it.
        let shared = unsafe { Shared::new(block.start(), 100) };
        for width in [1, 2, 3, 4, 8, 16] {
            let bytes: Vec<u8> = (1..=width).collect();
            let mut back = vec![0; bytes.len()];
            shared.store(block.start() + 16, &bytes);
            shared.load(block.start() + 16, &mut back);
            assert_eq!(back, bytes);
        }
    }

    #[test]
    fn an_update_returns_what_was_there() {
        let block = Block::map(16).expect("a mapping");
        // SAFETY: the block lives to the end of the test and nobody else knows of it.
        let shared = unsafe { Shared::new(block.start(), 16) };
        for size in [1, 2, 4, 8, 16] {
            shared.store(block.start(), &[0; 16]);
            assert_eq!(shared.update(block.start(), size, &mut |old| old + 7), 0);
            assert_eq!(shared.update(block.start(), size, &mut |old| old * 2), 7);
            assert_eq!(shared.update(block.start(), size, &mut |old| old), 14);
        }
    }
}
