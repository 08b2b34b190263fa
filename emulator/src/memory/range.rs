//! The range of addresses that device memory takes, which the host cannot touch.

use std::io;
use std::ops::Range;

/// Addresses that are taken but belong to no memory: the host faults on them.
#[derive(Debug)]
pub(crate) struct Reserved {
    range: Range<u64>,
    next: u64,
}

const SIZES: [usize; 5] = [1 << 42, 1 << 40, 1 << 38, 1 << 36, 1 << 34];
const ALIGNMENT: u64 = 512;
const RED_ZONE: u64 = 256;

impl Reserved {
    pub(crate) fn none() -> Self {
        Self {
            range: 0..0,
            next: 0,
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.range.is_empty()
    }

    /// Takes the largest range that this process is allowed.
    pub(crate) fn take() -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::OutOfMemory);
        for size in SIZES {
            // SAFETY: a new private mapping at an address of the kernel's choice: it takes nothing
            // from anyone, and nothing can be read or written through it.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    size,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if base == libc::MAP_FAILED {
                last = io::Error::last_os_error();
                continue;
            }
            let start = base.addr() as u64;
            return Ok(Self {
                range: start..start + size as u64,
                next: start,
            });
        }
        Err(last)
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        self.range.contains(&address)
    }

    /// The next piece, aligned to 512 bytes, as textures need, and to no more unless asked, behind a red zone. Addresses come back
    /// only when all are used up, so that freed memory is known for what it is.
    pub(crate) fn place(&mut self, size: u64, align: u64) -> Option<u64> {
        let step = 2 * ALIGNMENT;
        let start = match align {
            0..=ALIGNMENT => (self.next + RED_ZONE).next_multiple_of(step) + ALIGNMENT,
            more => (self.next + RED_ZONE).next_multiple_of(more),
        };
        let end = start.checked_add(size)?.checked_add(RED_ZONE)?;
        if end > self.range.end {
            return None;
        }
        self.next = start + size;
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_to_512_bytes_and_apart() {
        let mut reserved = Reserved::take().expect("address space");
        let mut end = 0;
        for size in [1, 4096, 100, 0, 512] {
            let start = reserved.place(size, 1).expect("room");
            assert_eq!(start % 1024, 512);
            assert!(start >= end + RED_ZONE);
            assert!(reserved.contains(start));
            end = start + size;
        }
        assert_eq!(reserved.place(u64::MAX, 1), None);
    }
}
