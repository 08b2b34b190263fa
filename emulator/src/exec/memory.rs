//! What the interpreter needs of global memory: which allocation an address lies in, its bytes, and
//! someone to tell what was touched.

use std::ops::Range;

use super::image::Image;

/// The piece of memory an address lies in: one allocation, without its red zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Whatever the memory needs to find the window again.
    pub token: u64,
    /// Kernels may write to it.
    pub writable: bool,
    /// The host may read and write it while a kernel runs (pinned, managed, registered): the
    /// interpreter then asks for every access with [`GlobalMemory::load`] and [`GlobalMemory::store`].
    pub host_visible: bool,
}

/// The bytes of a window that only kernels touch while the grid runs.
#[derive(Debug)]
pub struct Bytes<'a> {
    /// The window's bytes, from its start.
    pub data: &'a mut [u8],
    /// One bit a byte, set where something was written; `None` where all is.
    pub written: Option<&'a mut [u64]>,
}

/// How a range was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It was read.
    Read,
    /// It was written.
    Write,
    /// It was read and written by atomic operations.
    Atomic,
}

/// Why an address cannot be accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// No allocation holds the address: the text says what lies near, in the user's words, such as
    /// `4 bytes past the end of allocation #3, 4096 bytes`.
    Unmapped(String),
    /// The address belongs to memory that was freed.
    Freed(String),
    /// The address is one of pageable host memory.
    Host(String),
}

/// Memory that all threads of a grid see.
///
/// A grid keeps a [`Window`] it was given until [`Grid::run`](super::Grid::run) returns; windows may
/// change between two calls of it, but not during one.
pub trait GlobalMemory {
    /// Finds the allocation that holds `address`.
    ///
    /// # Errors
    ///
    /// Says what is wrong with an address that lies in none.
    fn window(&mut self, address: u64) -> Result<Window, MemoryFault>;

    /// The bytes of a window that is not visible to the host.
    fn bytes(&mut self, window: &Window) -> Bytes<'_>;

    /// Loads from a window that is visible to the host; the range lies within the window.
    fn load(&mut self, window: &Window, address: u64, data: &mut [u8]);

    /// Stores to a window that is visible to the host; the range lies within the window.
    fn store(&mut self, window: &Window, address: u64, data: &[u8]);

    /// Replaces 1, 2, 4, 8 or 16 aligned bytes of a window that is visible to the host by what `update`
    /// makes of them, in one step, and returns what was there.
    fn update(
        &mut self,
        window: &Window,
        address: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> u128;

    /// Notes that one instruction of a warp touched all of `range`, which lies within the window.
    fn touch(&mut self, window: &Window, range: Range<u64>, access: Access);

    /// Takes what the kernel printed.
    fn print(&mut self, text: &[u8]);

    /// Sets a condition of the graph that the kernel is a node of.
    ///
    /// # Errors
    ///
    /// Says why there is no such condition.
    fn set_condition(&mut self, handle: u64, value: u32) -> Result<(), String> {
        let _ = value;
        Err(format!(
            "{handle:#x} is the handle of no condition of a graph"
        ))
    }

    /// What a texture object stands for, and how it is read.
    ///
    /// # Errors
    ///
    /// Says what a number is that is no texture object.
    fn texture(&mut self, object: u64) -> Result<Image, String> {
        let _ = object;
        Err("no texture object".to_owned())
    }

    /// What a surface object stands for.
    ///
    /// # Errors
    ///
    /// Says what a number is that is no surface object.
    fn surface(&mut self, object: u64) -> Result<Image, String> {
        let _ = object;
        Err("no surface object".to_owned())
    }

    /// The allocation that holds `address`, in words for a report.
    fn describe(&mut self, address: u64) -> String {
        let _ = address;
        String::new()
    }
}
