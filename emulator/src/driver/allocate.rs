//! Allocating and freeing: at once, in the order of a stream, on the host and for both sides.

use super::border::{Host, Out};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::work::Work;
use super::{Call, Driver};
use crate::failure::Place;
use crate::memory::{Kind, Request, Stage, Token, describe};
use crate::report::ReportKind;

impl Driver {
    /// Allocates for the user of a context.
    pub(crate) fn allocate(
        &mut self,
        context: usize,
        kind: Kind,
        size: u64,
        stage: Stage,
    ) -> Answer<Token> {
        let device = self.get_context(context)?.device;
        let owner = self.devices.get_mut(&device).ok_or(Code::INVALID_DEVICE)?;
        if owner.failures.strike(Place::Allocation) {
            let message =
                format!("an allocation of {size} bytes fails because the test asked for it");
            return Err(self.refuse(ReportKind::Injected, device, Code::OUT_OF_MEMORY, message));
        }
        let limit = owner.config.memory_bytes;
        let on_device = !matches!(kind, Kind::Pinned | Kind::Managed);
        if on_device && self.memory.used(device).saturating_add(size) > limit {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.memory
            .allocate(Request {
                kind,
                size,
                device,
                context,
                stage,
                align: 1,
            })
            .ok_or(Code::OUT_OF_MEMORY)
    }

    pub(crate) fn address(&self, token: Token) -> u64 {
        self.memory
            .get(token)
            .map_or(0, |allocation| allocation.start)
    }

    /// Frees at the turn of a stream-ordered free.
    pub(crate) fn free_now(&mut self, token: Token) {
        if self
            .memory
            .get(token)
            .is_some_and(|allocation| allocation.of_graph)
        {
            self.memory.recycle(token);
            return;
        }
        if let Some(allocation) = self.memory.get(token)
            && let Kind::Pool(pool) = allocation.kind
        {
            let size = allocation.size;
            self.give_back_to_pool(pool, size);
        }
        self.memory.free(token);
    }

    /// What a free is about: an allocation that starts there and that no free was enqueued for.
    fn find_to_free(
        &mut self,
        context: usize,
        address: u64,
        fits: impl Fn(&Kind) -> bool,
    ) -> Answer<Token> {
        let device = self.get_context(context)?.device;
        if let Some(token) = self.memory.starting_at(address)
            && let Some(allocation) = self.memory.get(token)
            && fits(&allocation.kind)
        {
            if !allocation.free_enqueued {
                return Ok(token);
            }
            let message = format!("double free: {} is freed already", describe(allocation));
            return Err(self.refuse(
                ReportKind::UseAfterFree,
                device,
                Code::INVALID_VALUE,
                message,
            ));
        }
        let words = self.memory.describe(address);
        let kind = if self.memory.freed_words(address).is_some() {
            ReportKind::UseAfterFree
        } else {
            ReportKind::InvalidArgument
        };
        let message =
            format!("a free of {address:#x}, where no allocation of that kind starts: {words}");
        Err(self.refuse(kind, device, Code::INVALID_VALUE, message))
    }
}

impl Call {
    /// Frees at once, after all that runs on the device, as a driver does.
    fn free_after_all(&mut self, token: Token) {
        let Some(device) = self.memory.get(token).map(|allocation| allocation.device) else {
            return;
        };
        let contexts: Vec<usize> = self
            .contexts
            .iter()
            .filter(|(_, context)| context.device == device)
            .map(|(handle, _)| *handle)
            .collect();
        for context in contexts {
            let _ = self.synchronize_context(context);
        }
        self.memory.free(token);
    }

    /// Frees memory of a stream's order at once: nothing is waited for, so whatever the host has not
    /// waited for is unordered with it.
    fn free_pool_memory(&mut self, context: usize, token: Token) -> Answer {
        let context = self.get_context(context)?;
        let (device, group) = (context.device, context.group);
        let unordered = match (self.memory.get(token), self.groups.get(&group)) {
            (Some(allocation), Some(group)) => allocation
                .history
                .unordered(&group.host)
                .map(|op| (describe(allocation), op)),
            _ => None,
        };
        if let Some((memory, op)) = unordered {
            self.report(crate::report::Report {
                kind: ReportKind::UseAfterFree,
                device: device as usize,
                code: None,
                kernel: None,
                fault: None,
                message: format!(
                    "use after free: the host frees {memory}, but has not waited for {op}, which uses it: \
                     synchronise first, or free in the order of the stream"
                ),
            });
        }
        self.free_now(token);
        Ok(())
    }

    /// A graph frees only what a graph has allocated.
    fn free_in_capture(&mut self, stream: usize, address: u64) -> Answer {
        let of_graph = self.memory.starting_at(address).filter(|token| {
            self.memory
                .get(*token)
                .is_some_and(|allocation| allocation.of_graph)
        });
        let Some(token) = of_graph else {
            let device = self.device_of_stream(stream);
            let words = self.memory.describe(address);
            let message =
                format!("a captured free of {address:#x}, which no graph has allocated: {words}");
            return Err(self.refuse(
                ReportKind::InvalidArgument,
                device,
                Code::INVALID_VALUE,
                message,
            ));
        };
        self.submit(stream, Work::Free(token))?;
        Ok(())
    }

    pub(crate) fn allocate_in_order(
        &mut self,
        stream: usize,
        pool: usize,
        bytes: usize,
    ) -> Answer<u64> {
        let key = self.stream(stream)?;
        if bytes == 0 {
            return Ok(0);
        }
        let capturing = self.get_stream(key)?.capture.is_some();
        let context = self.get_stream(key)?.context;
        let size = bytes as u64;
        self.take_from_pool(pool, size)?;
        let token = match self.allocate(context, Kind::Pool(pool), size, Stage::Pending) {
            Ok(token) => token,
            Err(code) => {
                self.give_back_to_pool(pool, size);
                return Err(code);
            }
        };
        if capturing && let Some(allocation) = self.memory.get_mut(token) {
            // Each launch takes it; until then there is nothing to free.
            allocation.of_graph = true;
            allocation.free_enqueued = true;
        }
        let address = self.address(token);
        self.submit(key, Work::Allocate(token))?;
        Ok(address)
    }
}

driver_api! {
    fn cuMemAlloc_v2(call, pointer: Out<u64>, bytes: usize) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        pointer.check()?;
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let token = call.allocate(context, Kind::Device, bytes as u64, Stage::Live)?;
        pointer.set(call.address(token))
    }

    fn cuMemAllocPitch_v2(call, pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        pointer.check()?;
        pitch.check()?;
        if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(Code::INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
        let token = call.allocate(context, Kind::Device, bytes as u64, Stage::Live)?;
        pitch.set(row)?;
        pointer.set(call.address(token))
    }

    fn cuMemFree_v2(call, pointer: u64) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        if pointer == 0 {
            return Ok(());
        }
        let token = call.find_to_free(context, pointer, |kind| {
            matches!(kind, Kind::Device | Kind::Pool(_) | Kind::Managed)
        })?;
        let of_pool = call
            .memory
            .get(token)
            .is_some_and(|allocation| matches!(allocation.kind, Kind::Pool(_)));
        if of_pool {
            return call.free_pool_memory(context, token);
        }
        call.free_after_all(token);
        Ok(())
    }

    fn cuMemAllocAsync | cuMemAllocAsync_ptsz(call, pointer: Out<u64>, bytes: usize, stream: usize) {
        pointer.check()?;
        let key = call.stream(stream)?;
        let device = call.device_of_stream(key);
        let state = call.devices.get(&device).ok_or(Code::INVALID_DEVICE)?;
        if !state.config.memory_pools {
            return Err(Code::NOT_SUPPORTED);
        }
        let pool = state.pool;
        let address = call.allocate_in_order(stream, pool, bytes)?;
        pointer.set(address)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz(call, pointer: Out<u64>, bytes: usize, pool: usize, stream: usize) {
        pointer.check()?;
        let address = call.allocate_in_order(stream, pool, bytes)?;
        pointer.set(address)
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz(call, pointer: u64, stream: usize) {
        let key = call.stream(stream)?;
        if pointer == 0 {
            return Ok(());
        }
        if call.get_stream(key)?.capture.is_some() {
            return call.free_in_capture(key, pointer);
        }
        let context = call.get_stream(key)?.context;
        let token = call.find_to_free(context, pointer, |kind| matches!(kind, Kind::Pool(_) | Kind::Device))?;
        if let Some(allocation) = call.memory.get_mut(token) {
            allocation.free_enqueued = true;
        }
        call.submit(key, Work::Free(token))?;
        Ok(())
    }

    fn cuMemGetInfo_v2(call, free: Out<usize>, total: Out<usize>) {
        let context = call.context()?;
        let device = call.get_context(context)?.device;
        let limit = call.devices.get(&device).map_or(0, |device| device.config.memory_bytes);
        let left = limit.saturating_sub(call.memory.used(device));
        free.set(usize::try_from(left).unwrap_or(usize::MAX))?;
        total.set(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    fn cuMemHostAlloc(call, pointer: Out<usize>, bytes: usize, flags: u32) {
        let address = call.allocate_pinned(bytes, flags)?;
        pointer.set(address)
    }

    fn cuMemAllocHost_v2(call, pointer: Out<usize>, bytes: usize) {
        let address = call.allocate_pinned(bytes, 0)?;
        pointer.set(address)
    }

    fn cuMemFreeHost(call, pointer: Host) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        if pointer.is_null() {
            return Ok(());
        }
        let token = call.find_to_free(context, pointer.address(), |kind| *kind == Kind::Pinned)?;
        call.free_after_all(token);
        Ok(())
    }

    fn cuMemHostGetDevicePointer_v2(call, device: Out<u64>, host: Host, flags: u32) {
        call.context()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let address = host.address();
        let mapped = call
            .memory
            .find(address)
            .and_then(|token| call.memory.get(token))
            .is_some_and(|allocation| matches!(allocation.kind, Kind::Pinned | Kind::Registered));
        if !mapped {
            return Err(Code::INVALID_VALUE);
        }
        device.set(address)
    }

    fn cuMemHostGetFlags(call, flags: Out<u32>, host: Host) {
        call.context()?;
        let pinned = call
            .memory
            .find(host.address())
            .and_then(|token| call.memory.get(token))
            .is_some_and(|allocation| allocation.kind == Kind::Pinned);
        if !pinned {
            return Err(Code::INVALID_VALUE);
        }
        flags.set(DEVICE_MAP)
    }

    fn cuMemHostRegister_v2(call, pointer: Host, bytes: usize, flags: u32) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        if pointer.is_null() || bytes == 0 || flags & !0xf != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (start, size) = (pointer.address(), bytes as u64);
        if call.memory.is_device_address(start) {
            return Err(Code::INVALID_VALUE);
        }
        if call.memory.overlaps(start, size) {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let device = call.get_context(context)?.device;
        call.memory.register(start, Request {
            kind: Kind::Registered,
            size,
            device,
            context,
            stage: Stage::Live,
            align: 1,
        });
        Ok(())
    }

    fn cuMemHostUnregister(call, pointer: Host) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        let registered = call.memory.starting_at(pointer.address()).filter(|token| {
            call.memory
                .get(*token)
                .is_some_and(|allocation| allocation.kind == Kind::Registered)
        });
        let token = registered.ok_or(Code::HOST_MEMORY_NOT_REGISTERED)?;
        call.free_after_all(token);
        Ok(())
    }

    fn cuMemAllocManaged(call, pointer: Out<u64>, bytes: usize, flags: u32) {
        let context = call.context()?;
        call.forbid_while_capturing(context)?;
        pointer.check()?;
        // Global or host: a single stream's only later.
        if bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(Code::INVALID_VALUE);
        }
        let token = call.allocate(context, Kind::Managed, bytes as u64, Stage::Live)?;
        pointer.set(call.address(token))
    }

    fn cuMemAdvise_v2(call, pointer: u64, bytes: usize, advice: u32, location: Location) {
        call.context()?;
        let _ = location;
        if !matches!(advice, 1..=6) {
            return Err(Code::INVALID_VALUE);
        }
        call.check_managed(pointer, bytes)
    }

    fn cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz(call, pointer: u64, bytes: usize, location: Location, flags: u32, stream: usize) {
        let key = call.stream(stream)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.check_managed(pointer, bytes)?;
        if location.kind == DEVICE {
            call.device(location.id)?;
        }
        call.submit(key, Work::Nothing)?;
        Ok(())
    }
}

/// The flag of pinned memory that the device reaches, as all is.
const DEVICE_MAP: u32 = 2;
/// The kind of a location that is a device.
const DEVICE: u32 = 1;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) kind: u32,
    pub(crate) id: i32,
}

impl Driver {
    fn allocate_pinned(&mut self, bytes: usize, flags: u32) -> Answer<usize> {
        let context = self.context()?;
        self.forbid_while_capturing(context)?;
        if bytes == 0 || flags & !7 != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let token = self.allocate(context, Kind::Pinned, bytes as u64, Stage::Live)?;
        usize::try_from(self.address(token)).map_err(|_| Code::OUT_OF_MEMORY)
    }

    fn check_managed(&mut self, address: u64, bytes: usize) -> Answer {
        let managed = self
            .memory
            .find_range(address, bytes as u64)
            .and_then(|token| self.memory.get(token))
            .is_some_and(|allocation| allocation.kind == Kind::Managed);
        if managed {
            Ok(())
        } else {
            Err(Code::INVALID_VALUE)
        }
    }
}
