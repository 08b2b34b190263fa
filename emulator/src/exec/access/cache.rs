//! Where an address was last found.

use super::super::memory::{GlobalMemory, MemoryFault, Window};

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
    pub(super) fn find<M: GlobalMemory>(
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
