//! Devices: which there are, and what they say of themselves.

use super::Driver;
use super::border::{Host, Out, Text};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::group::Group;
use crate::config::{Config, Order};
use crate::exec::Coverage;
use crate::failure::Failures;

/// An emulated device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) config: Config,
    pub(crate) group: u64,
    pub(crate) primary: Primary,
    pub(crate) pool: usize,
    pub(crate) default_pool: usize,
    pub(crate) failures: Failures,
    pub(crate) coverage: Coverage,
}

/// The primary context of a device.
#[derive(Debug, Default)]
pub(crate) struct Primary {
    /// Its handle, the same each time it is retained.
    pub(crate) handle: usize,
    pub(crate) retained: u32,
    pub(crate) flags: u32,
}

/// The group of all devices that the process sees.
pub(crate) const VISIBLE: u64 = 0;
/// The ordinal of the first device that belongs to a test.
const FIRST_FRESH: u32 = 1000;

impl Driver {
    /// Makes the devices that the process sees.
    pub(crate) fn make_devices(&mut self) {
        for ordinal in 0..self.config.devices {
            let config = self.config.clone();
            self.make_device(ordinal, config, VISIBLE);
        }
    }

    /// Makes a device of its own.
    pub(crate) fn make_fresh_device(&mut self, config: Config) -> u32 {
        let last = self.devices.keys().next_back().copied().unwrap_or(0);
        let ordinal = (last + 1).max(FIRST_FRESH);
        let group = self.new_id();
        self.make_device(ordinal, config, group);
        ordinal
    }

    fn make_device(&mut self, ordinal: u32, config: Config, group: u64) {
        let seed = match config.order {
            Order::Random(seed) => seed,
            _ => 0,
        };
        self.groups.entry(group).or_insert_with(|| Group::new(seed));
        let handle = self.new_handle();
        self.devices.insert(
            ordinal,
            Device {
                config,
                group,
                primary: Primary {
                    handle,
                    ..Primary::default()
                },
                pool: 0,
                default_pool: 0,
                failures: Failures::default(),
                coverage: Coverage::default(),
            },
        );
        self.make_default_pool(ordinal);
    }

    /// Takes a device away with all it has, or makes it anew.
    pub(crate) fn reset_device(&mut self, ordinal: u32, again: bool) {
        let Some(device) = self.devices.get(&ordinal) else {
            return;
        };
        let (config, group) = (device.config.clone(), device.group);
        let contexts: Vec<usize> = self
            .contexts
            .iter()
            .filter(|(_, context)| context.device == ordinal)
            .map(|(handle, _)| *handle)
            .collect();
        for context in contexts {
            self.destroy_context(context);
        }
        let left: Vec<_> = self
            .memory
            .tokens()
            .filter(|(_, allocation)| allocation.device == ordinal)
            .map(|(token, _)| token)
            .collect();
        for token in left {
            self.memory.free(token);
        }
        self.memory.forget_numbers(ordinal);
        self.pools.retain(|_, pool| pool.device != ordinal);
        self.take_reports(|report| report.device == ordinal as usize);
        let handle = self
            .devices
            .remove(&ordinal)
            .map_or(0, |device| device.primary.handle);
        if again {
            self.make_device(ordinal, config, group);
            if let Some(device) = self.devices.get_mut(&ordinal) {
                device.primary.handle = handle;
            }
        } else if group != VISIBLE {
            self.groups.remove(&group);
        }
    }

    pub(crate) fn device(&self, ordinal: i32) -> Answer<(u32, &Device)> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        let ordinal = u32::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        let device = self.devices.get(&ordinal).ok_or(Code::INVALID_DEVICE)?;
        Ok((ordinal, device))
    }
}

/// As many attributes are known to some header, with room for those to come.
const LAST_ATTRIBUTE: u32 = 160;

/// What an H200 says of itself; what depends on the configuration comes from there.
fn attribute(config: &Config, attribute: u32) -> Option<i32> {
    let small = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    Some(match attribute {
        1..=3 | 111 => 1024,
        4 => 64,
        5 | 11 => 2_147_483_647,
        6 | 7 => 65535,
        8 => 49152,
        9 | 12 | 23 | 57 | 82 => 65536,
        10 | 51 | 106 => 32,
        13 => 1_980_000,
        14 | 30 => 512,
        15 | 19 | 31 | 32 | 41 | 44 | 78..=80 | 83 | 89..=91 | 95 | 99 => 1,
        16 => small(config.multiprocessors),
        21 | 22 | 56 | 70 => 131_072,
        24..=26 | 58..=60 => 16384,
        27 | 28 | 42 | 45 | 46 | 49 | 52 | 53 | 55 | 61 | 63 | 64 | 66 | 67 | 73 | 74 | 77 => 32768,
        29 | 39 | 43 | 62 | 65 => 2048,
        47 | 48 => 8192,
        54 | 68 => 2046,
        69 => 268_435_456,
        71 => 65000,
        72 => 2_097_120,
        36 => 3_201_000,
        37 => 6144,
        38 => 62_914_560,
        40 => 3,
        75 => small(config.compute_capability.0),
        76 => small(config.compute_capability.1),
        81 => small(max_shared_opt_in(config) + 1024),
        87 => 2,
        97 => small(max_shared_opt_in(config)),
        108 => small(persisting_l2(config)),
        109 => small(access_policy_window(config)),
        115 => i32::from(config.memory_pools),
        120 => i32::from(config.compute_capability.0 >= 9),
        126 => small(mem_sync_domains(config)),
        // What is left there is not: sharing with others, waiting for values.
        other if other <= LAST_ATTRIBUTE && other > 0 => 0,
        _ => return None,
    })
}

/// The bytes of the L2 cache that can be set aside for persisting accesses: ten steps of them.
pub(crate) fn persisting_l2(config: &Config) -> u32 {
    if config.compute_capability.0 < 8 {
        return 0;
    }
    10 * PERSISTING_L2_STEP
}

pub(crate) const PERSISTING_L2_STEP: u32 = 3_932_160;

/// The most bytes of an access policy window.
pub(crate) fn access_policy_window(config: &Config) -> u32 {
    if persisting_l2(config) == 0 {
        return 0;
    }
    134_217_728
}

pub(crate) fn mem_sync_domains(config: &Config) -> u32 {
    if config.compute_capability.0 < 9 {
        return 1;
    }
    4
}

/// The most shared memory of a block that opted in, by architecture.
pub(crate) fn max_shared_opt_in(config: &Config) -> u32 {
    1024 * match config.compute_capability {
        (7, 0 | 2) => 96,
        (7, _) => 64,
        (8, 0 | 7) => 163,
        (8, _) => 99,
        (9.., _) => 227,
        _ => 48,
    }
}

/// Thirty-two digits from the ordinal, alike in each run.
fn uuid(ordinal: u32) -> [u8; 16] {
    let mut uuid = *b"gridcall-em\0\0\0\0\0";
    uuid[12..].copy_from_slice(&ordinal.to_be_bytes());
    uuid
}

fn pci_bus_id(ordinal: u32) -> String {
    format!("0000:{:02x}:{:02x}.0", ordinal / 32, ordinal % 32)
}

fn write_text(text: &str, out: Out<u8>, length: i32) -> Answer {
    let room = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(1))
        .ok_or(Code::INVALID_VALUE)?;
    let bytes = &text.as_bytes()[..text.len().min(room)];
    for (index, byte) in bytes.iter().chain(&[0]).enumerate() {
        out.set_at(index, *byte)?;
    }
    Ok(())
}

/// `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    max_threads_per_block: i32,
    max_threads_dim: [i32; 3],
    max_grid_size: [i32; 3],
    shared_mem_per_block: i32,
    total_constant_memory: i32,
    simd_width: i32,
    mem_pitch: i32,
    regs_per_block: i32,
    clock_rate: i32,
    texture_align: i32,
}

driver_api! {
    fn cuInit(call, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if call.config.devices == 0 && call.devices.is_empty() {
            return Err(Code::NO_DEVICE);
        }
        call.initialised = true;
        Ok(())
    }

    fn cuDeviceGet(call, device: Out<i32>, ordinal: i32) {
        call.device(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetCount(call, count: Out<i32>) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        count.set(i32::try_from(call.config.devices).unwrap_or(i32::MAX))
    }

    fn cuDeviceGetName(call, name: Out<u8>, length: i32, device: i32) {
        call.device(device)?;
        write_text("gridcall emulated H200", name, length)
    }

    fn cuDeviceTotalMem_v2(call, bytes: Out<usize>, device: i32) {
        let (_, device) = call.device(device)?;
        bytes.set(usize::try_from(device.config.memory_bytes).unwrap_or(usize::MAX))
    }

    fn cuDeviceGetAttribute(call, value: Out<i32>, attrib: u32, device: i32) {
        let (_, device) = call.device(device)?;
        let answer = attribute(&device.config, attrib).ok_or(Code::INVALID_VALUE)?;
        value.set(answer)
    }

    fn cuDeviceComputeCapability(call, major: Out<i32>, minor: Out<i32>, device: i32) {
        let (_, device) = call.device(device)?;
        let (high, low) = device.config.compute_capability;
        major.set(i32::try_from(high).unwrap_or(i32::MAX))?;
        minor.set(i32::try_from(low).unwrap_or(i32::MAX))
    }

    fn cuDeviceGetUuid(call, id: Out<[u8; 16]>, device: i32) {
        let (ordinal, _) = call.device(device)?;
        id.set(uuid(ordinal))
    }

    fn cuDeviceGetUuid_v2(call, id: Out<[u8; 16]>, device: i32) {
        let (ordinal, _) = call.device(device)?;
        id.set(uuid(ordinal))
    }

    fn cuDeviceGetLuid(call, luid: Out<u8>, mask: Out<u32>, device: i32) {
        call.device(device)?;
        // Only Windows has these.
        let _ = (luid, mask);
        Err(Code::NOT_SUPPORTED)
    }

    fn cuDeviceGetPCIBusId(call, id: Out<u8>, length: i32, device: i32) {
        let (ordinal, _) = call.device(device)?;
        write_text(&pci_bus_id(ordinal), id, length)
    }

    fn cuDeviceGetByPCIBusId(call, device: Out<i32>, id: Text) {
        let wanted = id.get()?;
        let ordinal = call
            .devices
            .keys()
            .find(|ordinal| pci_bus_id(**ordinal).eq_ignore_ascii_case(&wanted))
            .and_then(|ordinal| i32::try_from(*ordinal).ok())
            .ok_or(Code::INVALID_DEVICE)?;
        device.set(ordinal)
    }

    fn cuDeviceGetProperties(call, properties: Out<Properties>, device: i32) {
        call.device(device)?;
        properties.set(Properties {
            max_threads_per_block: 1024,
            max_threads_dim: [1024, 1024, 64],
            max_grid_size: [2_147_483_647, 65535, 65535],
            shared_mem_per_block: 49152,
            total_constant_memory: 65536,
            simd_width: 32,
            mem_pitch: 2_147_483_647,
            regs_per_block: 65536,
            clock_rate: 1_980_000,
            texture_align: 512,
        })
    }

    fn cuDeviceCanAccessPeer(call, can: Out<i32>, device: i32, peer: i32) {
        let (ordinal, first) = call.device(device)?;
        let (other, second) = call.device(peer)?;
        can.set(i32::from(ordinal != other && first.group == second.group))
    }

    fn cuDeviceGetP2PAttribute(call, value: Out<i32>, attrib: u32, source: i32, destination: i32) {
        let (ordinal, first) = call.device(source)?;
        let (other, second) = call.device(destination)?;
        if ordinal == other {
            return Err(Code::INVALID_DEVICE);
        }
        let reachable = i32::from(first.group == second.group);
        value.set(match attrib {
            // Rank of the link, access, native atomics, access to arrays.
            1 | 4 => 0,
            2 | 3 => reachable,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuProfilerStart(_call) {
        Ok(())
    }

    fn cuProfilerStop(_call) {
        Ok(())
    }

    fn cuImportExternalMemory(_call, memory: Out<usize>, description: Host) {
        let _ = (memory, description);
        Err(Code::NOT_SUPPORTED)
    }

    fn cuExternalMemoryGetMappedBuffer(_call, pointer: Out<u64>, memory: usize, description: Host) {
        let _ = (pointer, memory, description);
        Err(Code::NOT_SUPPORTED)
    }

    fn cuDestroyExternalMemory(_call, memory: usize) {
        let _ = memory;
        Err(Code::NOT_SUPPORTED)
    }
}
