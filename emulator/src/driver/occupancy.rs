//! How many blocks fit a multiprocessor.

use super::Driver;
use super::border::{In, Out, SharedBytesFn, shared_bytes};
use super::codes::{Answer, Code};
use super::device::max_shared_opt_in;
use super::entry::driver_api;
use super::launch::LaunchConfig;
use crate::config::Config;
use crate::exec::Kernel;

/// What the system takes of shared memory for each block.
const RESERVED_SHARED: u32 = 1024;
const REGISTERS: u32 = 65536;

fn threads_per_multiprocessor(config: &Config) -> u32 {
    match config.compute_capability {
        (7, 5) => 1024,
        (8, 6..) => 1536,
        _ => 2048,
    }
}

fn most_blocks(config: &Config) -> u32 {
    match config.compute_capability {
        (7, 5) | (8, 6 | 7) => 16,
        (8, 9) => 24,
        _ => 32,
    }
}

fn shared_per_multiprocessor(config: &Config) -> u32 {
    max_shared_opt_in(config) + RESERVED_SHARED
}

/// PTX has registers without number; a compiler fits them into few.
fn registers(kernel: &Kernel) -> u32 {
    kernel.registers.clamp(16, 32)
}

/// How many blocks of so many threads and so much dynamic shared memory run on a multiprocessor at once.
pub(crate) fn blocks_per_multiprocessor(
    kernel: &Kernel,
    config: &Config,
    threads: u64,
    dynamic_shared: u32,
) -> u32 {
    let Ok(threads) = u32::try_from(threads) else {
        return 0;
    };
    if threads == 0 || threads > kernel.max_threads.unwrap_or(1024).min(1024) {
        return 0;
    }
    let threads = threads.next_multiple_of(32);
    let shared = kernel.shared_bytes.saturating_add(dynamic_shared);
    if shared > max_shared_opt_in(config) {
        return 0;
    }
    let by_shared = shared_per_multiprocessor(config) / (shared + RESERVED_SHARED);
    let by_threads = threads_per_multiprocessor(config) / threads;
    let by_registers = REGISTERS / (registers(kernel) * threads);
    by_shared
        .min(by_threads)
        .min(by_registers)
        .min(most_blocks(config))
}

impl Driver {
    fn occupancy(
        &mut self,
        function: usize,
        block_size: i32,
        dynamic_shared: usize,
    ) -> Answer<i32> {
        let function = self.resolve_function(function)?;
        let threads = u64::try_from(block_size).map_err(|_| Code::INVALID_VALUE)?;
        if threads == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let dynamic_shared = u32::try_from(dynamic_shared).unwrap_or(u32::MAX);
        let blocks = blocks_per_multiprocessor(
            self.kernel(function)?,
            self.config_of(function)?,
            threads,
            dynamic_shared,
        );
        Ok(i32::try_from(blocks).unwrap_or(i32::MAX))
    }

    /// The block size with the most threads at work, and the blocks that fill the device with it.
    fn best_block(
        &mut self,
        function: usize,
        shared: impl Fn(i32) -> usize,
        limit: i32,
    ) -> Answer<(i32, i32)> {
        let function = self.resolve_function(function)?;
        let most = self.kernel(function)?.max_threads.unwrap_or(1024).min(1024);
        let most = i32::try_from(most).unwrap_or(1024);
        let most = if limit > 0 { most.min(limit) } else { most };
        let multiprocessors =
            i32::try_from(self.config_of(function)?.multiprocessors).unwrap_or(i32::MAX);
        let mut best = (0, 0, 0);
        let mut block = most;
        while block > 0 {
            let each = self.occupancy(function, block, shared(block))?;
            if each * block > best.0 {
                best = (each * block, each, block);
            }
            block = if block % 32 == 0 {
                block - 32
            } else {
                block - block % 32
            };
        }
        Ok((best.1.saturating_mul(multiprocessors), best.2))
    }

    fn clusters(&mut self, function: usize, config: &LaunchConfig, blocks: u32) -> Answer<i32> {
        let threads = config.block.iter().product::<u32>();
        let threads = i32::try_from(threads).map_err(|_| Code::INVALID_VALUE)?;
        let each = self.occupancy(function, threads, config.shared as usize)?;
        let multiprocessors = self.config_of(function)?.multiprocessors;
        let at_once = u32::try_from(each)
            .unwrap_or(0)
            .saturating_mul(multiprocessors);
        Ok(i32::try_from(at_once / blocks.max(1)).unwrap_or(i32::MAX))
    }
}

driver_api! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(call, blocks: Out<i32>, function: usize, block_size: i32, shared: usize) {
        let answer = call.occupancy(function, block_size, shared)?;
        blocks.set(answer)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        call, blocks: Out<i32>, function: usize, block_size: i32, shared: usize, flags: u32
    ) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let answer = call.occupancy(function, block_size, shared)?;
        blocks.set(answer)
    }

    fn cuOccupancyMaxPotentialBlockSize(
        call, grid: Out<i32>, block: Out<i32>, function: usize, shared_of: SharedBytesFn, shared: usize, limit: i32
    ) {
        let (blocks, size) = call.best_block(function, |block| shared_of.map_or(shared, |shared_of| shared_bytes(shared_of, block)), limit)?;
        grid.set(blocks)?;
        block.set(size)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        call, grid: Out<i32>, block: Out<i32>, function: usize, shared_of: SharedBytesFn, shared: usize, limit: i32, flags: u32
    ) {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let (blocks, size) = call.best_block(function, |block| shared_of.map_or(shared, |shared_of| shared_bytes(shared_of, block)), limit)?;
        grid.set(blocks)?;
        block.set(size)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(call, bytes: Out<usize>, function: usize, blocks: i32, block_size: i32) {
        let resolved = call.resolve_function(function)?;
        let blocks = u32::try_from(blocks).ok().filter(|blocks| *blocks > 0).ok_or(Code::INVALID_VALUE)?;
        if call.occupancy(resolved, block_size, 0)? < i32::try_from(blocks).unwrap_or(i32::MAX) {
            return Err(Code::INVALID_VALUE);
        }
        let config = call.config_of(resolved)?;
        let each = (shared_per_multiprocessor(config) / blocks)
            .saturating_sub(RESERVED_SHARED)
            .min(max_shared_opt_in(config));
        let left = each.saturating_sub(call.kernel(resolved)?.shared_bytes);
        bytes.set(left as usize)
    }

    fn cuOccupancyMaxActiveClusters(call, clusters: Out<i32>, function: usize, config: In<LaunchConfig>) {
        let function = call.resolve_function(function)?;
        let config = config.get()?;
        let kernel = call.kernel(function)?;
        let (asked, required) = (config.shape()?.cluster, kernel.required_cluster);
        let cluster = asked.or(required);
        let is_whole = |cluster: [u32; 3]| {
            let axes = config.grid.iter().zip(cluster);
            kernel.counts_clusters || axes.into_iter().all(|(grid, each)| each != 0 && grid % each == 0)
        };
        if required.is_some() && cluster != required || !cluster.is_none_or(is_whole) {
            return Err(Code::INVALID_CLUSTER_SIZE);
        }
        let blocks = cluster.map_or(1, |cluster| cluster.iter().product());
        let answer = call.clusters(function, &config, blocks)?;
        clusters.set(answer)
    }

    fn cuOccupancyMaxPotentialClusterSize(call, size: Out<i32>, function: usize, config: In<LaunchConfig>) {
        let function = call.resolve_function(function)?;
        let config = config.get()?;
        let most = if call.config_of(function)?.compute_capability.0 < 9 {
            1
        } else if call.function(function)?.non_portable_cluster {
            16
        } else {
            8
        };
        let mut best = 0;
        for blocks in [1, 2, 4, 8, 16] {
            if blocks <= most && call.clusters(function, &config, blocks)? > 0 {
                best = blocks;
            }
        }
        size.set(i32::try_from(best).unwrap_or(0))
    }
}
