//! The address space that host, devices and kernels share: which allocation an address lies in, whose it
//! is, its bytes, and who touched them.
//!
//! Device memory lies in a reserved range that the host faults on, its bytes elsewhere; pinned, managed
//! and registered memory lies where the host has it.

mod history;
mod host;
mod intervals;
mod range;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;

pub(crate) use history::{Conflict, History, Touched};
pub(crate) use view::KernelMemory;

use crate::exec::MemoryFault;
use host::{Block, Shared};
use range::Reserved;

/// An index into the allocations; never used again for another one.
pub(crate) type Token = usize;

/// What an allocation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cuMemAlloc`.
    Device,
    /// From a pool, in the order of a stream; the handle of the pool.
    Pool(usize),
    /// A CUDA array, whose address nobody knows.
    Array,
    /// `cuMemHostAlloc`.
    Pinned,
    /// `cuMemAllocManaged`.
    Managed,
    /// `cuMemHostRegister`.
    Registered,
    /// A variable of a module.
    Variable {
        name: String,
        constant: bool,
        /// The host reaches it too.
        managed: bool,
    },
    /// What the driver itself needs.
    Internal,
}

impl Kind {
    /// Whether the user has to free it.
    fn is_users(&self) -> bool {
        !matches!(self, Self::Variable { .. } | Self::Internal)
    }

    /// Whether it takes device memory.
    fn is_on_device(&self) -> bool {
        matches!(
            self,
            Self::Device | Self::Pool(_) | Self::Array | Self::Variable { .. } | Self::Internal
        )
    }
}

/// Where the bytes are.
#[derive(Debug)]
enum Store {
    /// Behind the reserved range; one bit a byte says whether it was written, none that all were.
    Device {
        bytes: Vec<u8>,
        written: Option<Vec<u64>>,
    },
    /// Where the address says; the block is ours.
    Owned(Block),
    /// Where the address says; the memory is the user's.
    Borrowed,
}

/// How far an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its address is known but the stream has not come to it.
    Pending,
    Live,
}

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) device: u32,
    pub(crate) context: usize,
    pub(crate) stage: Stage,
    pub(crate) history: History,
    /// A free was enqueued: the user may not enqueue another.
    pub(crate) free_enqueued: bool,
    /// A graph allocates and frees it at each launch; the address stays.
    pub(crate) of_graph: bool,
    store: Store,
}

impl Allocation {
    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.size
    }

    pub(crate) fn host_visible(&self) -> bool {
        !matches!(self.store, Store::Device { .. })
    }

    /// The memory both sides use.
    fn shared(&self) -> Shared {
        // SAFETY: an owned block is mapped as long as the allocation exists, and registered memory by
        // the contract of `cuMemHostRegister` until it is unregistered; both only then go away.
        unsafe { Shared::new(self.start, self.size) }
    }
}

/// What was freed, for reports.
#[derive(Debug)]
struct Freed {
    size: u64,
    words: String,
}

/// An allocation that nobody freed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leak {
    /// The device it belongs to.
    pub device: usize,
    /// Its number, counted from 1 in the order of allocation.
    pub number: u64,
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// What it is, such as `pinned host memory`.
    pub kind: &'static str,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "allocation #{} of device {}, {} bytes of {}, was never freed",
            self.number, self.device, self.size, self.kind
        )
    }
}

/// What a new allocation is to be.
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) device: u32,
    pub(crate) context: usize,
    pub(crate) stage: Stage,
    pub(crate) align: u64,
}

/// All allocations of the process.
#[derive(Debug)]
pub(crate) struct Memory {
    reserved: Reserved,
    slots: Vec<Option<Box<Allocation>>>,
    by_start: BTreeMap<u64, Token>,
    freed: BTreeMap<u64, Freed>,
    freed_order: VecDeque<u64>,
    closed: VecDeque<Block>,
    closed_bytes: usize,
    numbers: BTreeMap<u32, u64>,
    used: BTreeMap<u32, u64>,
}

/// So many freed allocations are remembered by name.
const REMEMBERED: usize = 65536;
/// So many bytes of freed host memory keep their addresses.
const CLOSED_BYTES: usize = 1 << 32;
/// What copies of memory that was never written deliver.
const POISON: u8 = 0xa5;

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            reserved: Reserved::none(),
            slots: Vec::new(),
            by_start: BTreeMap::new(),
            freed: BTreeMap::new(),
            freed_order: VecDeque::new(),
            closed: VecDeque::new(),
            closed_bytes: 0,
            numbers: BTreeMap::new(),
            used: BTreeMap::new(),
        }
    }

    /// Takes the range for device memory, before the first allocation.
    pub(crate) fn reserve(&mut self) -> io::Result<()> {
        if self.reserved.is_none() {
            self.reserved = Reserved::take()?;
        }
        Ok(())
    }

    /// Allocates, if the host has the memory; `None` if not. Limits of the device are the caller's.
    pub(crate) fn allocate(&mut self, request: Request) -> Option<Token> {
        let size = usize::try_from(request.size).ok()?;
        let (start, store) = match request.kind {
            Kind::Pinned | Kind::Managed | Kind::Variable { managed: true, .. } => {
                let block = Block::map(size).ok()?;
                (block.start(), Store::Owned(block))
            }
            _ => {
                let bytes = zeroed(size)?;
                let written = match request.kind {
                    Kind::Device | Kind::Pool(_) | Kind::Array => Some(zeroed(size.div_ceil(64))?),
                    _ => None,
                };
                let start = self.reserved.place(request.size, request.align)?;
                (start, Store::Device { bytes, written })
            }
        };
        Some(self.insert(request, start, store))
    }

    /// Takes the user's own memory in.
    pub(crate) fn register(&mut self, start: u64, request: Request) -> Token {
        self.insert(request, start, Store::Borrowed)
    }

    fn insert(&mut self, request: Request, start: u64, store: Store) -> Token {
        let number = if request.kind.is_users() {
            let number = self.numbers.entry(request.device).or_default();
            *number += 1;
            *number
        } else {
            0
        };
        if request.kind.is_on_device() {
            *self.used.entry(request.device).or_default() += request.size;
        }
        let token = self.slots.len();
        self.by_start.insert(start, token);
        self.slots.push(Some(Box::new(Allocation {
            start,
            size: request.size,
            number,
            kind: request.kind,
            device: request.device,
            context: request.context,
            stage: request.stage,
            history: History::default(),
            free_enqueued: false,
            of_graph: false,
            store,
        })));
        token
    }

    /// Frees. Only a description stays.
    pub(crate) fn free(&mut self, token: Token) {
        let Some(allocation) = self.slots.get_mut(token).and_then(Option::take) else {
            return;
        };
        self.by_start.remove(&allocation.start);
        if allocation.kind.is_on_device()
            && let Some(used) = self.used.get_mut(&allocation.device)
        {
            *used = used.saturating_sub(allocation.size);
        }
        if let Store::Borrowed = allocation.store {
            return;
        }
        let words = describe(&allocation);
        let start = allocation.start;
        let size = allocation.size;
        self.freed.insert(start, Freed { size, words });
        self.freed_order.push_back(start);
        if self.freed_order.len() > REMEMBERED
            && let Some(oldest) = self.freed_order.pop_front()
        {
            self.freed.remove(&oldest);
        }
        if let Store::Owned(block) = allocation.store {
            block.close();
            self.closed_bytes += block.length();
            self.closed.push_back(block);
            while self.closed_bytes > CLOSED_BYTES
                && let Some(block) = self.closed.pop_front()
            {
                self.closed_bytes -= block.length();
                self.freed.remove(&block.start());
            }
        }
    }

    /// Frees what a graph allocates anew at its next launch.
    pub(crate) fn recycle(&mut self, token: Token) {
        if let Some(allocation) = self.get_mut(token) {
            allocation.stage = Stage::Pending;
            if let Store::Device { bytes, written } = &mut allocation.store {
                *written = Some(vec![0; bytes.len().div_ceil(64)]);
            }
        }
    }

    pub(crate) fn get(&self, token: Token) -> Option<&Allocation> {
        self.slots.get(token)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut Allocation> {
        self.slots.get_mut(token)?.as_deref_mut()
    }

    /// The allocation that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<Token> {
        let (_, token) = self.by_start.range(..=address).next_back()?;
        let allocation = self.get(*token)?;
        (address - allocation.start < allocation.size).then_some(*token)
    }

    /// The allocation that holds a whole range.
    pub(crate) fn find_range(&self, address: u64, size: u64) -> Option<Token> {
        let token = self.find(address)?;
        let allocation = self.get(token)?;
        (size <= allocation.size - (address - allocation.start)).then_some(token)
    }

    /// The allocation that begins at an address.
    pub(crate) fn starting_at(&self, address: u64) -> Option<Token> {
        self.by_start.get(&address).copied()
    }

    /// Whether a range touches any host memory that is pinned, managed or registered.
    pub(crate) fn overlaps(&self, start: u64, size: u64) -> bool {
        self.find(start).is_some()
            || self
                .by_start
                .range(start..start.saturating_add(size))
                .next()
                .is_some()
    }

    /// Whether an address can only be one of device memory.
    pub(crate) fn is_device_address(&self, address: u64) -> bool {
        self.reserved.contains(address)
    }

    /// The bytes of device memory in use.
    pub(crate) fn used(&self, device: u32) -> u64 {
        self.used.get(&device).copied().unwrap_or(0)
    }

    /// Counts the allocations of a device from 1 again.
    pub(crate) fn forget_numbers(&mut self, device: u32) {
        self.numbers.remove(&device);
        self.used.remove(&device);
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = (Token, &Allocation)> {
        self.by_start
            .values()
            .filter_map(|token| Some((*token, self.get(*token)?)))
    }

    /// What the user of a device has not freed.
    pub(crate) fn leaks(&self, device: u32) -> Vec<Leak> {
        let mut leaks: Vec<_> = self
            .tokens()
            .map(|(_, allocation)| allocation)
            .filter(|allocation| {
                let idle = allocation.of_graph && allocation.stage == Stage::Pending;
                allocation.device == device && allocation.kind.is_users() && !idle
            })
            .map(|allocation| Leak {
                device: device as usize,
                number: allocation.number,
                address: allocation.start,
                size: allocation.size,
                kind: kind_words(&allocation.kind),
            })
            .collect();
        leaks.sort_by_key(|leak| leak.number);
        leaks
    }

    /// Copies out of an allocation. What was never written comes as a pattern that catches the eye.
    pub(crate) fn read(&self, token: Token, address: u64, bytes: &mut [u8]) {
        let Some(allocation) = self.get(token) else {
            return;
        };
        let Store::Device {
            bytes: from,
            written,
        } = &allocation.store
        else {
            allocation.shared().copy_out(address, bytes);
            return;
        };
        let Ok(offset) = usize::try_from(address - allocation.start) else {
            return;
        };
        bytes.copy_from_slice(&from[offset..offset + bytes.len()]);
        if let Some(written) = written {
            for (index, byte) in bytes.iter_mut().enumerate() {
                if !bit(written, offset + index) {
                    *byte = POISON;
                }
            }
        }
    }

    /// Copies into an allocation.
    pub(crate) fn write(&mut self, token: Token, address: u64, bytes: &[u8]) {
        let Some(allocation) = self.get_mut(token) else {
            return;
        };
        if allocation.host_visible() {
            allocation.shared().copy_in(address, bytes);
            return;
        }
        let Ok(offset) = usize::try_from(address - allocation.start) else {
            return;
        };
        if let Store::Device { bytes: to, written } = &mut allocation.store {
            to[offset..offset + bytes.len()].copy_from_slice(bytes);
            if bytes.len() == to.len() {
                *written = None;
            }
            if let Some(written) = written {
                set_bits(written, offset..offset + bytes.len());
            }
        }
    }

    /// Which bytes of a range were written, where that is known.
    pub(crate) fn written(&self, token: Token, address: u64, size: usize) -> Option<Vec<bool>> {
        let allocation = self.get(token)?;
        let Store::Device {
            written: Some(written),
            ..
        } = &allocation.store
        else {
            return None;
        };
        let offset = usize::try_from(address - allocation.start).ok()?;
        Some(
            (offset..offset + size)
                .map(|index| bit(written, index))
                .collect(),
        )
    }

    /// Takes back that bytes were written, after a copy of bytes that were not.
    pub(crate) fn forget_written(&mut self, token: Token, address: u64, which: &[bool]) {
        let Some(allocation) = self.get_mut(token) else {
            return;
        };
        let start = allocation.start;
        let Store::Device { written, bytes } = &mut allocation.store else {
            return;
        };
        if which.iter().all(|written| *written) {
            return;
        }
        let Ok(offset) = usize::try_from(address - start) else {
            return;
        };
        let words = bytes.len().div_ceil(64);
        let bits = written.get_or_insert_with(|| vec![u64::MAX; words]);
        for (index, written) in which.iter().enumerate() {
            let index = offset + index;
            if !written {
                bits[index / 64] &= !(1 << (index % 64));
            }
        }
    }

    /// An address in words, such as `4 bytes past the end of allocation #3, 4096 bytes`.
    pub(crate) fn describe(&self, address: u64) -> String {
        if let Some(allocation) = self.find(address).and_then(|token| self.get(token)) {
            let offset = address - allocation.start;
            return format!("byte {offset} of {}", describe(allocation));
        }
        if let Some(freed) = self.freed_at(address) {
            return format!("freed memory, once {}", freed.words);
        }
        let before = self
            .by_start
            .range(..=address)
            .next_back()
            .and_then(|(_, token)| self.get(*token));
        let after = self
            .by_start
            .range(address..)
            .next()
            .and_then(|(_, token)| self.get(*token));
        let past = before.map(|before| (address - before.range().end, before));
        let until = after.map(|after| (after.start - address, after));
        let until_next = until.map_or(u64::MAX, |(distance, _)| distance);
        if let Some((distance, allocation)) = past
            && distance < NEAR.min(until_next)
        {
            let words = describe(allocation);
            return format!("{} past the end of {words}", count(distance));
        }
        if let Some((distance, allocation)) = until
            && distance < NEAR
        {
            return format!("{} before {}", count(distance), describe(allocation));
        }
        if address < 65536 {
            return "a null pointer, or an offset from one".into();
        }
        if self.reserved.contains(address) {
            return "no allocation is near".into();
        }
        "pageable host memory, or no address at all: kernels reach the host's memory only where it is \
         pinned, managed or registered"
            .into()
    }

    /// Why an address is in no allocation.
    pub(crate) fn missing(&self, address: u64) -> MemoryFault {
        let words = self.describe(address);
        if self.freed_at(address).is_some() {
            MemoryFault::Freed(words)
        } else if address < 65536 || self.reserved.contains(address) {
            MemoryFault::Unmapped(words)
        } else {
            MemoryFault::Host(words)
        }
    }

    /// What was freed at an address.
    pub(crate) fn freed_words(&self, address: u64) -> Option<String> {
        self.freed_at(address).map(|freed| freed.words.clone())
    }

    fn freed_at(&self, address: u64) -> Option<&Freed> {
        let (start, freed) = self.freed.range(..=address).next_back()?;
        (address - start < freed.size.max(1)).then_some(freed)
    }
}

/// So close to an allocation an address is taken to have been meant for it.
const NEAR: u64 = 1 << 20;

fn count(bytes: u64) -> String {
    if bytes == 1 {
        "1 byte".into()
    } else {
        format!("{bytes} bytes")
    }
}

fn kind_words(kind: &Kind) -> &'static str {
    match kind {
        Kind::Device | Kind::Pool(_) => "device memory",
        Kind::Array => "a CUDA array",
        Kind::Pinned => "pinned host memory",
        Kind::Managed => "managed memory",
        Kind::Registered => "registered host memory",
        Kind::Variable { .. } => "a variable",
        Kind::Internal => "the driver",
    }
}

/// An allocation in words.
pub(crate) fn describe(allocation: &Allocation) -> String {
    match &allocation.kind {
        Kind::Variable { name, .. } => format!("variable `{name}`, {}", count(allocation.size)),
        Kind::Internal => "the driver's own memory".into(),
        Kind::Device | Kind::Pool(_) => {
            format!(
                "allocation #{}, {}",
                allocation.number,
                count(allocation.size)
            )
        }
        kind => format!(
            "allocation #{}, {} of {}",
            allocation.number,
            count(allocation.size),
            kind_words(kind)
        ),
    }
}

fn bit(bits: &[u64], index: usize) -> bool {
    bits[index / 64] >> (index % 64) & 1 == 1
}

fn set_bits(bits: &mut [u64], range: Range<usize>) {
    let mut index = range.start;
    while index < range.end {
        if index.is_multiple_of(64) && range.end - index >= 64 {
            bits[index / 64] = u64::MAX;
            index += 64;
        } else {
            bits[index / 64] |= 1 << (index % 64);
            index += 1;
        }
    }
}

/// Zeroed elements, without an abort where there is no room: the kernel gives the pages when touched.
fn zeroed<T: Zero>(length: usize) -> Option<Vec<T>> {
    let mut probe: Vec<T> = Vec::new();
    probe.try_reserve_exact(length).ok()?;
    drop(probe);
    Some(vec![T::ZERO; length])
}

trait Zero: Copy {
    const ZERO: Self;
}

impl Zero for u8 {
    const ZERO: Self = 0;
}

impl Zero for u64 {
    const ZERO: Self = 0;
}
