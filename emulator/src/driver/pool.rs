//! Memory pools: limits, accounts and who may reach their memory.

use super::Driver;
use super::allocate::Location;
use super::border::{In, Out, Untyped};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use std::collections::HashSet;

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: u32,
    default: bool,
    /// It takes no more, and goes with the last of its memory.
    destroyed: bool,
    /// The most bytes it may hold; 0 for no limit.
    limit: u64,
    used: u64,
    high: u64,
    release_threshold: u64,
    reuse: [i32; 3],
    reachable: HashSet<u32>,
}

impl Pool {
    fn new(device: u32, default: bool, limit: u64) -> Self {
        Self {
            device,
            default,
            destroyed: false,
            limit,
            used: 0,
            high: 0,
            release_threshold: 0,
            reuse: [1; 3],
            reachable: HashSet::new(),
        }
    }

    fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.high = self.high.max(self.used);
    }

    pub(crate) fn reachable_from(&self, device: u32) -> bool {
        self.device == device || self.reachable.contains(&device)
    }
}

impl Driver {
    pub(crate) fn make_default_pool(&mut self, device: u32) {
        let handle = self.new_handle();
        self.pools.insert(handle, Pool::new(device, true, 0));
        if let Some(device) = self.devices.get_mut(&device) {
            device.pool = handle;
            device.default_pool = handle;
        }
    }

    /// Takes back what was freed.
    pub(crate) fn give_back_to_pool(&mut self, handle: usize, bytes: u64) {
        if let Some(pool) = self.pools.get_mut(&handle) {
            pool.used = pool.used.saturating_sub(bytes);
        }
        self.forget_pool(handle);
    }

    fn forget_pool(&mut self, handle: usize) {
        if self
            .pools
            .get(&handle)
            .is_some_and(|pool| pool.destroyed && pool.used == 0)
        {
            self.pools.remove(&handle);
        }
    }

    /// Takes memory from a pool, as far as it may hold more.
    pub(crate) fn take_from_pool(&mut self, handle: usize, bytes: u64) -> Answer {
        let pool = self.pool(handle)?;
        if pool.limit != 0 && pool.used.saturating_add(bytes) > pool.limit {
            return Err(Code::OUT_OF_MEMORY);
        }
        pool.take(bytes);
        Ok(())
    }

    fn pool(&mut self, handle: usize) -> Answer<&mut Pool> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        match self.pools.get_mut(&handle) {
            Some(pool) if !pool.destroyed => Ok(pool),
            _ => Err(Code::INVALID_HANDLE),
        }
    }
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    allocation_type: u32,
    handle_types: u32,
    location: Location,
    security: usize,
    max_size: usize,
    reserved: [u64; 7],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AccessDescription {
    location: Location,
    flags: u32,
}

const DEVICE: u32 = 1;
const PINNED: u32 = 1;
const READ_WRITE: u32 = 3;

/// What an attribute of a pool is.
enum Attribute {
    Reuse(usize),
    ReleaseThreshold,
    Current,
    High,
}

fn attribute(number: u32) -> Answer<Attribute> {
    Ok(match number {
        1..=3 => Attribute::Reuse(number as usize - 1),
        4 => Attribute::ReleaseThreshold,
        5 | 7 => Attribute::Current,
        6 | 8 => Attribute::High,
        _ => return Err(Code::INVALID_VALUE),
    })
}

driver_api! {
    fn cuDeviceGetDefaultMemPool(call, pool: Out<usize>, device: i32) {
        let (_, device) = call.device(device)?;
        pool.set(device.default_pool)
    }

    fn cuDeviceGetMemPool(call, pool: Out<usize>, device: i32) {
        let (_, device) = call.device(device)?;
        pool.set(device.pool)
    }

    fn cuDeviceSetMemPool(call, device: i32, pool: usize) {
        let (ordinal, _) = call.device(device)?;
        if call.pool(pool)?.device != ordinal {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(device) = call.devices.get_mut(&ordinal) {
            device.pool = pool;
        }
        Ok(())
    }

    fn cuMemPoolCreate(call, pool: Out<usize>, properties: In<Properties>) {
        pool.check()?;
        let properties = properties.get()?;
        if properties.allocation_type != PINNED || properties.location.kind != DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        if properties.handle_types != 0 || properties.security != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let (ordinal, device) = call.device(properties.location.id)?;
        if !device.config.memory_pools {
            return Err(Code::NOT_SUPPORTED);
        }
        let handle = call.new_handle();
        call.pools.insert(handle, Pool::new(ordinal, false, properties.max_size as u64));
        pool.set(handle)
    }

    fn cuMemPoolDestroy(call, pool: usize) {
        if call.pool(pool)?.default {
            return Err(Code::INVALID_VALUE);
        }
        // What was allocated stays until it is freed.
        call.pool(pool)?.destroyed = true;
        call.forget_pool(pool);
        for device in call.devices.values_mut() {
            if device.pool == pool {
                device.pool = device.default_pool;
            }
        }
        Ok(())
    }

    fn cuMemPoolGetAttribute(call, pool: usize, attrib: u32, value: Untyped) {
        let pool = call.pool(pool)?;
        match attribute(attrib)? {
            Attribute::Reuse(index) => value.out::<i32>().set(pool.reuse[index]),
            Attribute::ReleaseThreshold => value.out::<u64>().set(pool.release_threshold),
            Attribute::Current => value.out::<u64>().set(pool.used),
            Attribute::High => value.out::<u64>().set(pool.high),
        }
    }

    fn cuMemPoolSetAttribute(call, pool: usize, attrib: u32, value: Untyped) {
        let pool = call.pool(pool)?;
        match attribute(attrib)? {
            Attribute::Reuse(index) => pool.reuse[index] = value.out::<i32>().get()?,
            Attribute::ReleaseThreshold => pool.release_threshold = value.out::<u64>().get()?,
            Attribute::Current => return Err(Code::INVALID_VALUE),
            // Only setting it back to nothing is allowed.
            Attribute::High => {
                if value.out::<u64>().get()? != 0 {
                    return Err(Code::INVALID_VALUE);
                }
                pool.high = pool.used;
            }
        }
        Ok(())
    }

    fn cuMemPoolTrimTo(call, pool: usize, keep: usize) {
        // Nothing is kept beyond what is in use.
        let _ = keep;
        call.pool(pool)?;
        Ok(())
    }

    fn cuMemPoolSetAccess(call, pool: usize, map: In<AccessDescription>, count: usize) {
        let owner = call.pool(pool)?.device;
        for description in map.array(count)? {
            if description.location.kind != DEVICE {
                return Err(Code::INVALID_VALUE);
            }
            let (ordinal, other) = call.device(description.location.id)?;
            let group = other.group;
            let reachable = call.devices.get(&owner).is_some_and(|device| device.group == group);
            if !reachable {
                return Err(Code::INVALID_DEVICE);
            }
            let pool = call.pool(pool)?;
            match description.flags {
                0 if ordinal == owner => return Err(Code::INVALID_VALUE),
                0 => {
                    pool.reachable.remove(&ordinal);
                }
                READ_WRITE => {
                    pool.reachable.insert(ordinal);
                }
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        Ok(())
    }

    fn cuMemPoolGetAccess(call, flags: Out<u32>, pool: usize, location: In<Location>) {
        let location = location.get()?;
        let (ordinal, _) = call.device(location.id)?;
        let reachable = call.pool(pool)?.reachable_from(ordinal);
        flags.set(if reachable { READ_WRITE } else { 0 })
    }
}
