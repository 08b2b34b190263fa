//! Memory as a kernel sees it.

use std::ops::Range;

use super::{Memory, Stage, Store, Token, Touched, describe};
use crate::driver::{Objects, Reach, Values};
use crate::exec::{Access, Bytes, GlobalMemory, Image, MemoryFault, Window};

/// The memory of one kernel while it runs.
pub(crate) struct KernelMemory<'a> {
    pub(crate) memory: &'a mut Memory,
    pub(crate) reach: &'a Reach,
    pub(crate) objects: &'a Objects,
    pub(crate) touched: &'a mut Touched,
    pub(crate) printed: &'a mut Vec<u8>,
    /// The conditions of the graph that it is a node of.
    pub(crate) conditions: Option<&'a Values>,
    /// Set when the kernel came to memory that its stream has not allocated yet.
    pub(crate) too_early: &'a mut bool,
}

impl KernelMemory<'_> {
    fn token(window: &Window) -> Token {
        usize::try_from(window.token).unwrap_or(usize::MAX)
    }
}

impl GlobalMemory for KernelMemory<'_> {
    fn window(&mut self, address: u64) -> Result<Window, MemoryFault> {
        let found = self.memory.find(address);
        let Some((token, allocation)) =
            found.and_then(|token| Some((token, self.memory.get(token)?)))
        else {
            return Err(self.memory.missing(address));
        };
        if allocation.stage == Stage::Pending {
            *self.too_early = true;
            return Err(MemoryFault::Unmapped(format!(
                "{}, which its stream has not allocated yet",
                self.memory.describe(address)
            )));
        }
        if !self.reach.allows(allocation) {
            return Err(MemoryFault::Unmapped(format!(
                "{} belongs to another context (device {}), to which this one has no peer access",
                describe(allocation),
                allocation.device
            )));
        }
        let range = allocation.range();
        Ok(Window {
            start: range.start,
            end: range.end,
            token: token as u64,
            writable: !matches!(
                allocation.kind,
                super::Kind::Variable { constant: true, .. }
            ),
            host_visible: allocation.host_visible(),
        })
    }

    fn bytes(&mut self, window: &Window) -> Bytes<'_> {
        match self.memory.get_mut(Self::token(window)) {
            Some(allocation) => match &mut allocation.store {
                Store::Device { bytes, written } => Bytes {
                    data: bytes,
                    written: written.as_deref_mut(),
                },
                Store::Owned(_) | Store::Borrowed => Bytes {
                    data: &mut [],
                    written: None,
                },
            },
            None => Bytes {
                data: &mut [],
                written: None,
            },
        }
    }

    fn load(&mut self, window: &Window, address: u64, data: &mut [u8]) {
        if let Some(allocation) = self.memory.get(Self::token(window)) {
            allocation.shared().load(address, data);
        }
    }

    fn store(&mut self, window: &Window, address: u64, data: &[u8]) {
        if let Some(allocation) = self.memory.get(Self::token(window)) {
            allocation.shared().store(address, data);
        }
    }

    fn update(
        &mut self,
        window: &Window,
        address: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> u128 {
        self.memory
            .get(Self::token(window))
            .map_or(0, |allocation| {
                allocation.shared().update(address, size, update)
            })
    }

    fn touch(&mut self, window: &Window, range: Range<u64>, access: Access) {
        self.touched.add(Self::token(window), range, access);
    }

    fn print(&mut self, text: &[u8]) {
        self.printed.extend_from_slice(text);
    }

    fn set_condition(&mut self, handle: u64, value: u32) -> Result<(), String> {
        match self.conditions {
            Some(conditions) if conditions.set(handle, value) => Ok(()),
            Some(_) => Err(format!(
                "{handle:#x} is the handle of no condition of the kernel's graph"
            )),
            None => Err(format!(
                "condition {handle:#x} is set by a kernel that is in no graph with conditions"
            )),
        }
    }

    fn describe(&mut self, address: u64) -> String {
        self.memory.describe(address)
    }

    fn texture(&mut self, object: u64) -> Result<Image, String> {
        self.objects.texture(self.reach.context, object)
    }

    fn surface(&mut self, object: u64) -> Result<Image, String> {
        self.objects.surface(self.reach.context, object)
    }
}
