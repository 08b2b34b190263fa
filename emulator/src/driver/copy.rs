//! Copies and memsets: what they check when called, and what they do at their turn.

use std::sync::Arc;

use super::border::Host;
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::stream::StreamKind;
use super::work::{Op, Work};
use super::{Call, Driver};
use crate::exec::Access;
use crate::memory::{Allocation, Kind, Memory, Stage, Token};
use crate::report::ReportKind;

/// A copy of rows, between any two places.
#[derive(Clone, Debug)]
pub(crate) struct CopyWork {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The source, where it was consumed by the call.
    pub(crate) consumed: Option<Arc<[u8]>>,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
    /// From row to row and from slice to slice.
    pub(crate) from_steps: [u64; 2],
    pub(crate) to_steps: [u64; 2],
}

impl CopyWork {
    pub(crate) fn line(from: u64, to: u64, bytes: u64) -> Self {
        Self {
            from,
            to,
            consumed: None,
            width: bytes,
            height: 1,
            depth: 1,
            from_steps: [0; 2],
            to_steps: [0; 2],
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.width * self.height * self.depth
    }

    /// Where it goes, in words.
    pub(crate) fn direction(&self, memory: &Memory) -> &'static str {
        let device = |address| {
            memory.is_device_address(address)
                || memory
                    .find(address)
                    .and_then(|token| memory.get(token))
                    .is_some_and(|allocation| allocation.kind == Kind::Managed)
        };
        match (
            self.consumed.is_none() && device(self.from),
            device(self.to),
        ) {
            (false, false) => "from host to host",
            (false, true) => "from host to device",
            (true, false) => "from device to host",
            (true, true) => "from device to device",
        }
    }

    /// The last byte of each side, behind its first.
    fn extent(&self, steps: [u64; 2]) -> u64 {
        let rows = self.height.saturating_sub(1).saturating_mul(steps[0]);
        let slices = self.depth.saturating_sub(1).saturating_mul(steps[1]);
        rows.saturating_add(slices).saturating_add(self.width)
    }

    pub(crate) fn source_extent(&self) -> u64 {
        self.extent(self.from_steps)
    }

    pub(crate) fn target_extent(&self) -> u64 {
        self.extent(self.to_steps)
    }
}

/// A memset of rows of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillWork {
    pub(crate) to: u64,
    pub(crate) value: u32,
    /// The bytes of an element: 1, 2 or 4.
    pub(crate) element: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) pitch: u64,
}

impl FillWork {
    pub(crate) fn bytes(&self) -> u64 {
        self.width * self.element * self.height
    }

    pub(crate) fn extent(&self) -> u64 {
        self.height.saturating_sub(1).saturating_mul(self.pitch)
            + self.width.saturating_mul(self.element)
    }
}

/// A place that an operation reads or writes.
enum Place {
    Known(Token),
    /// The host's own memory, for whose validity the caller vouches.
    Pageable(Host),
}

impl Driver {
    /// Finds a place at its turn.
    fn place(&mut self, op: &Op, address: u64, bytes: u64) -> Answer<Place> {
        let found = self.memory.find_range(address, bytes);
        if let Some((token, allocation)) =
            found.and_then(|token| Some((token, self.memory.get(token)?)))
        {
            if allocation.stage == Stage::Live {
                return Ok(Place::Known(token));
            }
            let words = self.memory.describe(address);
            let message = format!(
                "use before allocation: {} uses {words}, which its stream has not allocated yet",
                op.info
            );
            let device = op.info.device;
            return Err(self.refuse(
                ReportKind::UseBeforeAllocation,
                device,
                Code::ILLEGAL_ADDRESS,
                message,
            ));
        }
        if self.memory.is_device_address(address) || self.memory.overlaps(address, bytes) {
            let freed = self.memory.freed_words(address).is_some();
            let words = self.memory.describe(address);
            let kind = if freed {
                ReportKind::UseAfterFree
            } else {
                ReportKind::Fault
            };
            let message = format!("{} uses {bytes} bytes at {address:#x}: {words}", op.info);
            let device = op.info.device;
            return Err(self.refuse(kind, device, Code::ILLEGAL_ADDRESS, message));
        }
        Host::from_number(address).map(Place::Pageable)
    }

    pub(crate) fn step_copy(&mut self, op: &mut Op, copy: &CopyWork) -> Answer {
        for slice in 0..copy.depth {
            for row in 0..copy.height {
                let from = slice * copy.from_steps[1] + row * copy.from_steps[0];
                let to = slice * copy.to_steps[1] + row * copy.to_steps[0];
                self.copy_row(op, copy, from, to)?;
            }
        }
        Ok(())
    }

    fn copy_row(&mut self, op: &mut Op, copy: &CopyWork, from: u64, to: u64) -> Answer {
        let width = usize::try_from(copy.width).map_err(|_| Code::INVALID_VALUE)?;
        let (source, target) = (copy.from + from, copy.to + to);
        let mut written = None;
        let bytes = if let Some(consumed) = &copy.consumed {
            let start = usize::try_from(from).map_err(|_| Code::INVALID_VALUE)?;
            consumed
                .get(start..start + width)
                .ok_or(Code::INVALID_VALUE)?
                .to_vec()
        } else {
            match self.place(op, source, copy.width)? {
                Place::Known(token) => {
                    let mut bytes = vec![0; width];
                    self.memory.read(token, source, &mut bytes);
                    written = self.memory.written(token, source, width);
                    op.touched
                        .add(token, source..source + copy.width, Access::Read);
                    bytes
                }
                Place::Pageable(host) => host.read(width),
            }
        };
        match self.place(op, target, copy.width)? {
            Place::Known(token) => {
                self.memory.write(token, target, &bytes);
                if let Some(written) = written {
                    self.memory.forget_written(token, target, &written);
                }
                op.touched
                    .add(token, target..target + copy.width, Access::Write);
            }
            Place::Pageable(host) => host.write(&bytes),
        }
        Ok(())
    }

    pub(crate) fn step_fill(&mut self, op: &mut Op, fill: FillWork) -> Answer {
        let width = fill.width * fill.element;
        let length = usize::try_from(width).map_err(|_| Code::INVALID_VALUE)?;
        let pattern = fill.value.to_le_bytes();
        let element = usize::try_from(fill.element).unwrap_or(1).min(4);
        let mut bytes = vec![pattern[0]; length];
        if element > 1 {
            for part in bytes.chunks_exact_mut(element) {
                part.copy_from_slice(&pattern[..element]);
            }
        }
        for row in 0..fill.height {
            let target = fill.to + row * fill.pitch;
            match self.place(op, target, width)? {
                Place::Known(token) => {
                    self.memory.write(token, target, &bytes);
                    op.touched.add(token, target..target + width, Access::Write);
                }
                Place::Pageable(_) => return Err(Code::ILLEGAL_ADDRESS),
            }
        }
        Ok(())
    }

    /// Refuses an address that is not wholly in memory that the device reaches.
    pub(crate) fn check_device_range(&mut self, stream: usize, address: u64, bytes: u64) -> Answer {
        if bytes == 0 || self.memory.find_range(address, bytes).is_some() {
            return Ok(());
        }
        Err(self.refuse_range(stream, address, bytes))
    }

    fn refuse_range(&mut self, stream: usize, address: u64, bytes: u64) -> Code {
        let device = self.device_of_stream(stream);
        let words = self.memory.describe(address);
        let kind = if self.memory.freed_words(address).is_some() {
            ReportKind::UseAfterFree
        } else {
            ReportKind::InvalidArgument
        };
        self.refuse(
            kind,
            device,
            Code::INVALID_VALUE,
            format!("a copy or memset of {bytes} bytes at {address:#x}: {words}"),
        )
    }

    pub(crate) fn device_of_stream(&self, stream: usize) -> u32 {
        self.get_stream(stream)
            .and_then(|stream| self.get_context(stream.context))
            .map_or(0, |context| context.device)
    }

    /// Whether a range lies in the host's own memory, which no kernel reaches; refuses what lies
    /// partly in memory the driver knows.
    pub(crate) fn is_pageable(&mut self, stream: usize, address: u64, bytes: u64) -> Answer<bool> {
        if self.memory.find_range(address, bytes).is_some() {
            return Ok(false);
        }
        if self.memory.is_device_address(address) || self.memory.overlaps(address, bytes) {
            return Err(self.refuse_range(stream, address, bytes));
        }
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(true)
    }
}

/// What the two sides of a copy have to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Device,
    Host,
    Any,
}

impl Call {
    /// Enqueues a copy. A pageable source is consumed and a pageable destination filled when this
    /// returns; otherwise both are used at their turn.
    fn copy(
        &mut self,
        stream: usize,
        from: (u64, Side),
        to: (u64, Side),
        bytes: usize,
        wait: bool,
    ) -> Answer {
        let key = self.stream(stream)?;
        let bytes = bytes as u64;
        if bytes == 0 {
            return Ok(());
        }
        for (address, side) in [from, to] {
            if side == Side::Device {
                self.check_device_range(key, address, bytes)?;
            }
        }
        let mut copy = CopyWork::line(from.0, to.0, bytes);
        let from_pageable = from.1 != Side::Device && self.is_pageable(key, from.0, bytes)?;
        let to_pageable = to.1 != Side::Device && self.is_pageable(key, to.0, bytes)?;
        let capturing = self.get_stream(key)?.capture.is_some();
        if wait {
            let context = self.get_stream(key)?.context;
            self.forbid_while_capturing(context)?;
            self.forbid_on_capturing(key)?;
        }
        if from_pageable && !capturing && !to_pageable {
            let length = usize::try_from(bytes).map_err(|_| Code::INVALID_VALUE)?;
            copy.consumed = Some(Host::from_number(from.0)?.read(length).into());
        }
        let Some(op) = self.submit(key, Work::Copy(Box::new(copy)))? else {
            return Ok(());
        };
        if to_pageable || wait {
            self.wait_and_know(key, op)?;
        }
        Ok(())
    }

    /// Enqueues a copy from one context to another. In the default stream, it is behind what the default
    /// streams of both have been given, and what they are given next is behind it.
    fn copy_between(
        &mut self,
        stream: usize,
        from: (u64, usize),
        to: (u64, usize),
        bytes: usize,
    ) -> Answer {
        let ends = [
            self.get_context(from.1)?.legacy,
            self.get_context(to.1)?.legacy,
        ];
        let key = self.stream(stream)?;
        let ordered = self.get_stream(key)?.kind == StreamKind::Legacy;
        let others = ends.into_iter().filter(|end| ordered && *end != key);
        for end in others.clone() {
            self.put_behind(key, end)?;
        }
        self.copy(
            stream,
            (from.0, Side::Device),
            (to.0, Side::Device),
            bytes,
            false,
        )?;
        for end in others {
            self.put_behind(end, key)?;
        }
        Ok(())
    }

    /// Waits for one operation, after which the host knows what it is behind.
    pub(crate) fn wait_and_know(&mut self, stream: usize, op: u64) -> Answer {
        let clock = self.ops.get(&op).map(|op| op.clock.clone());
        self.wait(&[op]);
        let state = self.get_stream(stream)?;
        let (group, context) = (state.group, state.context);
        let clock = clock.unwrap_or_else(|| state.clock.clone());
        self.host_joins(group, &clock);
        self.flush_printed(context);
        match self.get_context(context)?.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// A memset without a stream: the host waits where it could look at what is written.
    fn fill_now(&mut self, to: u64, value: u32, element: u64, count: usize) -> Answer {
        self.fill(0, to, value, element, count)?;
        let visible = self
            .memory
            .find(to)
            .and_then(|token| self.memory.get(token))
            .is_some_and(Allocation::host_visible);
        if visible {
            let key = self.stream(0)?;
            self.synchronize_stream(key)?;
        }
        Ok(())
    }

    fn fill(&mut self, stream: usize, to: u64, value: u32, element: u64, count: usize) -> Answer {
        let key = self.stream(stream)?;
        if !to.is_multiple_of(element) {
            return Err(Code::INVALID_VALUE);
        }
        let width = count as u64;
        let bytes = width.checked_mul(element).ok_or(Code::INVALID_VALUE)?;
        if bytes == 0 {
            return Ok(());
        }
        self.check_device_range(key, to, bytes)?;
        let fill = FillWork {
            to,
            value,
            element,
            width,
            height: 1,
            pitch: bytes,
        };
        self.submit(key, Work::Fill(fill))?;
        Ok(())
    }
}

driver_api! {
    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz(call, to: u64, from: Host, bytes: usize, stream: usize) {
        call.copy(stream, (from.address(), Side::Host), (to, Side::Device), bytes, false)
    }

    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz(call, to: Host, from: u64, bytes: usize, stream: usize) {
        call.copy(stream, (from, Side::Device), (to.address(), Side::Host), bytes, false)
    }

    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz(call, to: u64, from: u64, bytes: usize, stream: usize) {
        call.copy(stream, (from, Side::Device), (to, Side::Device), bytes, false)
    }

    fn cuMemcpyAsync | cuMemcpyAsync_ptsz(call, to: u64, from: u64, bytes: usize, stream: usize) {
        call.copy(stream, (from, Side::Any), (to, Side::Any), bytes, false)
    }

    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz(call, to: u64, to_context: usize, from: u64, from_context: usize, bytes: usize, stream: usize) {
        call.copy_between(stream, (from, from_context), (to, to_context), bytes)
    }

    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptsz(call, to: u64, from: Host, bytes: usize) {
        call.copy(0, (from.address(), Side::Host), (to, Side::Device), bytes, true)
    }

    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptsz(call, to: Host, from: u64, bytes: usize) {
        call.copy(0, (from, Side::Device), (to.address(), Side::Host), bytes, true)
    }

    /// Between two places on a device the host need not wait.
    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptsz(call, to: u64, from: u64, bytes: usize) {
        call.copy(0, (from, Side::Device), (to, Side::Device), bytes, false)
    }

    fn cuMemcpy | cuMemcpy_ptsz(call, to: u64, from: u64, bytes: usize) {
        call.copy(0, (from, Side::Any), (to, Side::Any), bytes, true)
    }

    fn cuMemcpyPeer | cuMemcpyPeer_ptsz(call, to: u64, to_context: usize, from: u64, from_context: usize, bytes: usize) {
        call.copy_between(0, (from, from_context), (to, to_context), bytes)
    }

    fn cuMemsetD8Async | cuMemsetD8Async_ptsz(call, to: u64, value: u8, count: usize, stream: usize) {
        call.fill(stream, to, u32::from(value), 1, count)
    }

    fn cuMemsetD16Async | cuMemsetD16Async_ptsz(call, to: u64, value: u16, count: usize, stream: usize) {
        call.fill(stream, to, u32::from(value), 2, count)
    }

    fn cuMemsetD32Async | cuMemsetD32Async_ptsz(call, to: u64, value: u32, count: usize, stream: usize) {
        call.fill(stream, to, value, 4, count)
    }

    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptsz(call, to: u64, value: u8, count: usize) {
        call.fill_now(to, u32::from(value), 1, count)
    }

    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptsz(call, to: u64, value: u16, count: usize) {
        call.fill_now(to, u32::from(value), 2, count)
    }

    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptsz(call, to: u64, value: u32, count: usize) {
        call.fill_now(to, value, 4, count)
    }
}
