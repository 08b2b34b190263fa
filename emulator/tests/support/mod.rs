//! Memory for kernels under test: allocations in a list, with everything the interpreter told of them.

#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the memory of a test is small"
)]

use std::ops::Range;
use std::sync::Arc;

use gridcall_emulator::exec::{
    Access, Bytes, DeviceInfo, Fault, GlobalMemory, Grid, Launch, MemoryFault, Order, Program,
    Progress, Stats, Window,
};

/// One allocation.
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
    /// One bit a byte; empty if all was written.
    pub(crate) written: Vec<u64>,
    pub(crate) writable: bool,
    pub(crate) host_visible: bool,
}

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) printed: Vec<u8>,
    pub(crate) touched: Vec<(Range<u64>, Access)>,
    next: u64,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            next: 0x7000_0000_0000,
            ..Self::default()
        }
    }

    /// An allocation that holds these bytes.
    pub(crate) fn hold(&mut self, bytes: Vec<u8>) -> u64 {
        let start = self.next;
        self.next += (bytes.len() as u64).next_multiple_of(256) + 256;
        let allocation = Allocation {
            start,
            bytes,
            written: Vec::new(),
            writable: true,
            host_visible: false,
        };
        self.allocations.push(allocation);
        start
    }

    /// An allocation to which nothing was written.
    pub(crate) fn allocate(&mut self, size: usize) -> u64 {
        let start = self.hold(vec![0; size]);
        if let Some(last) = self.allocations.last_mut() {
            last.written = vec![0; size.div_ceil(64)];
        }
        start
    }

    pub(crate) fn hold_u32(&mut self, values: &[u32]) -> u64 {
        self.hold(
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        )
    }

    pub(crate) fn hold_f32(&mut self, values: &[f32]) -> u64 {
        self.hold(
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        )
    }

    pub(crate) fn hold_f64(&mut self, values: &[f64]) -> u64 {
        self.hold(
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        )
    }

    pub(crate) fn bytes_at(&self, start: u64) -> &[u8] {
        &self
            .allocations
            .iter()
            .find(|allocation| allocation.start == start)
            .unwrap()
            .bytes
    }

    pub(crate) fn u32s(&self, start: u64) -> Vec<u32> {
        self.bytes_at(start)
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    pub(crate) fn f32s(&self, start: u64) -> Vec<f32> {
        self.u32s(start).into_iter().map(f32::from_bits).collect()
    }

    pub(crate) fn u64s(&self, start: u64) -> Vec<u64> {
        self.bytes_at(start)
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    pub(crate) fn f64s(&self, start: u64) -> Vec<f64> {
        self.u64s(start).into_iter().map(f64::from_bits).collect()
    }

    /// Places the variables of a program, and gives their addresses.
    pub(crate) fn place(&mut self, program: &Program) -> Vec<u64> {
        let mut symbols = Vec::new();
        for variable in program.variables() {
            let mut bytes = variable.initial.clone();
            bytes.resize(variable.size as usize, 0);
            symbols.push(self.hold(bytes));
        }
        for (variable, start) in program.variables().iter().zip(&symbols) {
            for relocation in &variable.relocations {
                let value = relocation.value(symbols[relocation.variable]).to_le_bytes();
                let allocation = self
                    .allocations
                    .iter_mut()
                    .find(|allocation| allocation.start == *start)
                    .unwrap();
                let at = relocation.offset as usize;
                let size = relocation.size as usize;
                allocation.bytes[at..at + size].copy_from_slice(&value[..size]);
            }
        }
        symbols
    }
}

impl GlobalMemory for Memory {
    fn window(&mut self, address: u64) -> Result<Window, MemoryFault> {
        let found = self.allocations.iter().enumerate().find(|(_, allocation)| {
            allocation.start <= address
                && address < allocation.start + allocation.bytes.len() as u64
        });
        match found {
            Some((token, allocation)) => Ok(Window {
                start: allocation.start,
                end: allocation.start + allocation.bytes.len() as u64,
                token: token as u64,
                writable: allocation.writable,
                host_visible: allocation.host_visible,
            }),
            None => Err(MemoryFault::Unmapped(String::new())),
        }
    }

    fn bytes(&mut self, window: &Window) -> Bytes<'_> {
        let allocation = &mut self.allocations[window.token as usize];
        let written = (!allocation.written.is_empty()).then_some(allocation.written.as_mut_slice());
        Bytes {
            data: &mut allocation.bytes,
            written,
        }
    }

    fn load(&mut self, window: &Window, address: u64, data: &mut [u8]) {
        let at = (address - window.start) as usize;
        data.copy_from_slice(&self.allocations[window.token as usize].bytes[at..at + data.len()]);
    }

    fn store(&mut self, window: &Window, address: u64, data: &[u8]) {
        let at = (address - window.start) as usize;
        self.allocations[window.token as usize].bytes[at..at + data.len()].copy_from_slice(data);
    }

    fn update(
        &mut self,
        window: &Window,
        address: u64,
        size: u32,
        update: &mut dyn FnMut(u128) -> u128,
    ) -> u128 {
        let mut bytes = [0; 16];
        self.load(window, address, &mut bytes[..size as usize]);
        let old = u128::from_le_bytes(bytes);
        let new = update(old).to_le_bytes();
        self.store(window, address, &new[..size as usize]);
        old
    }

    fn touch(&mut self, _: &Window, range: Range<u64>, access: Access) {
        if self.touched.len() < 1 << 12 {
            self.touched.push((range, access));
        }
    }

    fn print(&mut self, text: &[u8]) {
        self.printed.extend(text);
    }
}

/// Parameters, packed as a driver packs them.
#[derive(Default)]
pub(crate) struct Params {
    bytes: Vec<u8>,
}

impl Params {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(mut self, bytes: &[u8], align: usize) -> Self {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(align), 0);
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.add(&value.to_le_bytes(), 8)
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.add(&value.to_le_bytes(), 4)
    }

    pub(crate) fn f32(self, value: f32) -> Self {
        self.add(&value.to_le_bytes(), 4)
    }

    pub(crate) fn f64(self, value: f64) -> Self {
        self.add(&value.to_le_bytes(), 8)
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.bytes
    }
}

/// A launch of a kernel with one block of 32 threads, to be adjusted.
pub(crate) fn launch(
    program: &Arc<Program>,
    kernel: &str,
    params: Vec<u8>,
    symbols: Vec<u64>,
) -> Launch {
    Launch {
        program: Arc::clone(program),
        kernel: program
            .kernel(kernel)
            .unwrap_or_else(|| panic!("a kernel {kernel}")),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1, 1, 1],
        dynamic_shared: 0,
        params,
        cooperative: false,
        symbols: Arc::new(symbols),
        workspace: 0,
        device: DeviceInfo::default(),
        order: Order::Deterministic,
        step_budget: 50_000_000,
        check_global_races: false,
    }
}

/// Runs a launch to its end; places the module's variables if nobody did.
pub(crate) fn run(memory: &mut Memory, mut launch: Launch) -> Result<Stats, Box<Fault>> {
    if launch.symbols.is_empty() {
        launch.symbols = Arc::new(memory.place(&launch.program));
    }
    let mut grid = Grid::new(launch)?;
    loop {
        match grid.run(memory, 1 << 20) {
            Progress::Done(stats) => return Ok(stats),
            Progress::Fault(fault) => return Err(fault),
            Progress::Running { .. } => {}
        }
    }
}

pub(crate) fn lower(text: &str) -> Arc<Program> {
    match Program::lower(text) {
        Ok(program) => Arc::new(program),
        Err(error) => panic!("{error}"),
    }
}
