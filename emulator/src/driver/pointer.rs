//! What the driver says of a pointer.

use super::Driver;
use super::border::{In, Out, Untyped};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use crate::memory::{Allocation, Kind};

const CONTEXT: u32 = 1;
const MEMORY_TYPE: u32 = 2;
const DEVICE_POINTER: u32 = 3;
const HOST_POINTER: u32 = 4;
const SYNC_MEMOPS: u32 = 6;
const BUFFER_ID: u32 = 7;
const IS_MANAGED: u32 = 8;
const DEVICE_ORDINAL: u32 = 9;
const RANGE_START: u32 = 11;
const RANGE_SIZE: u32 = 12;
const MAPPED: u32 = 13;
const MEMPOOL: u32 = 17;

/// What memory an address is of, for a program: host or device.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

impl Driver {
    /// Writes one attribute. What is asked of an address in no allocation is null.
    fn pointer_attribute(&self, attribute: u32, value: Untyped, address: u64) -> Answer {
        let allocation = self
            .memory
            .find(address)
            .and_then(|token| self.memory.get(token));
        let on_host =
            |allocation: &Allocation| matches!(allocation.kind, Kind::Pinned | Kind::Registered);
        match attribute {
            CONTEXT => value
                .out::<usize>()
                .set(allocation.map_or(0, |allocation| allocation.context)),
            MEMORY_TYPE => value.out::<u32>().set(match allocation {
                Some(allocation) if on_host(allocation) => HOST,
                Some(_) => DEVICE,
                None => 0,
            }),
            DEVICE_POINTER => {
                value
                    .out::<u64>()
                    .set(if allocation.is_some() { address } else { 0 })
            }
            HOST_POINTER => {
                let reachable = allocation.is_some_and(Allocation::host_visible);
                value.out::<u64>().set(if reachable { address } else { 0 })
            }
            // Tokens, sharing with other processes and direct access by other devices there is not.
            SYNC_MEMOPS | 10 | 14 | 15 => value.out::<u32>().set(0),
            BUFFER_ID | RANGE_START => value
                .out::<u64>()
                .set(allocation.map_or(0, |allocation| allocation.start)),
            IS_MANAGED => value.out::<u32>().set(u32::from(
                allocation.is_some_and(|allocation| allocation.kind == Kind::Managed),
            )),
            DEVICE_ORDINAL => value.out::<i32>().set(match allocation {
                Some(allocation) => i32::try_from(allocation.device).unwrap_or(-2),
                None => -2,
            }),
            RANGE_SIZE => value
                .out::<u64>()
                .set(allocation.map_or(0, |allocation| allocation.size)),
            MAPPED => value.out::<u32>().set(u32::from(allocation.is_some())),
            MEMPOOL => value.out::<usize>().set(match allocation {
                Some(Allocation {
                    kind: Kind::Pool(pool),
                    ..
                }) => *pool,
                _ => 0,
            }),
            16 => value
                .out::<u32>()
                .set(if allocation.is_some() { 3 } else { 0 }),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

driver_api! {
    fn cuPointerGetAttributes(call, count: u32, attributes: In<u32>, data: In<Untyped>, pointer: u64) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        for index in 0..count as usize {
            call.pointer_attribute(attributes.at(index)?, data.at(index)?, pointer)?;
        }
        Ok(())
    }

    fn cuPointerGetAttribute(call, data: Untyped, attribute: u32, pointer: u64) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        if call.memory.find(pointer).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        call.pointer_attribute(attribute, data, pointer)
    }

    fn cuMemGetAddressRange_v2(call, base: Out<u64>, size: Out<usize>, pointer: u64) {
        call.context()?;
        let allocation = call
            .memory
            .find(pointer)
            .and_then(|token| call.memory.get(token))
            .ok_or(Code::NOT_FOUND)?;
        base.set_if_wanted(allocation.start);
        size.set_if_wanted(usize::try_from(allocation.size).unwrap_or(usize::MAX));
        Ok(())
    }
}
