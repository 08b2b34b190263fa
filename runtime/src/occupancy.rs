//! How many blocks of a kernel run at a time, and which block keeps most threads at work.
//!
//! The driver knows, and is asked once: the last answer is remembered with what it was asked for, in
//! one word, so that a launch which asks for the same again takes no lock.

use std::{
    ffi::{c_int, c_uint},
    ptr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    attributes::{Attributes, Cluster},
    driver::{DriverCode, LaunchConfig},
    error::GeometryError,
    launch::Block,
    load::Loaded,
};

/// What the driver answered.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// The threads of the suggested block (11 bits) for a size of shared memory (20 bits).
    block: AtomicU64,
    /// The blocks that run at a time (17 bits), of so many threads (11 bits) and so much shared
    /// memory (20 bits), in clusters (three times 5 bits).
    resident: AtomicU64,
    /// Whether clusters of more than 8 blocks are allowed.
    large_clusters: AtomicBool,
}

/// No device has as much shared memory a block.
const SHARED_MEM: u32 = 20;
const THREADS: u32 = 11;
const CLUSTER: u32 = 5;
const RESIDENT: u32 = 17;
/// Marks a word that holds an answer.
const ANSWERED: u64 = 1 << 63;

impl Loaded {
    /// The block with which most threads of a multiprocessor are at work, along so many axes.
    #[inline(never)]
    pub(crate) fn suggested_block(
        &self,
        rank: usize,
        shared_mem_bytes: u32,
    ) -> Result<Block, GeometryError> {
        if self.fixed_block.is_some() {
            return Ok(self.default_block(rank));
        }
        Ok(arrange(self.suggested_threads(shared_mem_bytes)?, rank))
    }

    fn suggested_threads(&self, shared_mem_bytes: u32) -> Result<u32, GeometryError> {
        let question = fits(shared_mem_bytes, SHARED_MEM)
            .then(|| ANSWERED | u64::from(shared_mem_bytes) << THREADS);
        remember(&self.remembered.block, question, THREADS, || {
            self.ask_block(shared_mem_bytes)
        })
    }

    #[cold]
    fn ask_block(&self, shared_mem_bytes: u32) -> Result<u32, GeometryError> {
        const CALL: &str = "cuOccupancyMaxPotentialBlockSize";
        let Some(ask) = self.driver.occupancy_max_potential_block_size else {
            return Err(GeometryError::NoOccupancy { call: CALL });
        };
        self.enter().map_err(GeometryError::Context)?;
        let (mut grid, mut threads) = (0, 0);
        // SAFETY: the function is loaded in the context that is current, and both places take an
        // answer.
        let code = unsafe {
            ask(
                &raw mut grid,
                &raw mut threads,
                self.function,
                None,
                shared_mem_bytes as usize,
                0,
            )
        };
        code.result()
            .map_err(|code| GeometryError::Occupancy { call: CALL, code })?;
        Ok(threads
            .unsigned_abs()
            .clamp(1, self.max_threads_per_block.max(1)))
    }

    /// The blocks that the device runs at a time: of one kind of cluster, if there is one.
    #[inline(never)]
    pub(crate) fn resident_blocks(
        &self,
        block: Block,
        shared_mem_bytes: u32,
        cluster: Option<Cluster>,
    ) -> Result<u32, GeometryError> {
        let threads = u32::try_from(block.threads()).unwrap_or(u32::MAX);
        let axes = cluster.map_or([0; 3], <[u32; 3]>::from);
        let memorable = fits(shared_mem_bytes, SHARED_MEM)
            && fits(threads, THREADS)
            && axes.iter().all(|&blocks| fits(blocks, CLUSTER));
        let question = axes
            .iter()
            .fold(u64::from(shared_mem_bytes), |word, &blocks| {
                word << CLUSTER | u64::from(blocks)
            });
        let question = ANSWERED | (question << THREADS | u64::from(threads)) << RESIDENT;
        let question = memorable.then_some(question);
        remember(&self.remembered.resident, question, RESIDENT, || {
            self.ask_resident(block, shared_mem_bytes, cluster)
        })
    }

    #[cold]
    fn ask_resident(
        &self,
        block: Block,
        shared_mem_bytes: u32,
        cluster: Option<Cluster>,
    ) -> Result<u32, GeometryError> {
        self.enter().map_err(GeometryError::Context)?;
        let Some(cluster) = cluster else {
            let threads = u32::try_from(block.threads()).unwrap_or(u32::MAX);
            let each = self
                .active_blocks(threads, shared_mem_bytes as usize)
                .map_err(|(call, code)| GeometryError::Occupancy { call, code })?;
            return Ok(each.saturating_mul(self.limits.multiprocessors));
        };
        const CALL: &str = "cuOccupancyMaxActiveClusters";
        let Some(ask) = self.driver.occupancy_max_active_clusters else {
            return Err(GeometryError::NoOccupancy { call: CALL });
        };
        let mut attributes = Attributes::NONE;
        if self.needs.required_cluster.is_none() {
            attributes.cluster(cluster);
        }
        let attributes = attributes.to_sys();
        let config = LaunchConfig {
            // As small a grid as there is.
            grid: self.needs.grid_of_driver(cluster.into()),
            block: block.into(),
            shared_mem_bytes,
            stream: ptr::null_mut(),
            attributes: attributes.as_slice().as_ptr(),
            attribute_count: attributes.count(),
        };
        let mut clusters: c_int = 0;
        // SAFETY: the function is loaded in the context that is current; the configuration and its
        // attributes outlive the call, and `clusters` takes the answer.
        let code = unsafe { ask(&raw mut clusters, self.function, &raw const config) };
        code.result()
            .map_err(|code| GeometryError::Occupancy { call: CALL, code })?;
        let blocks = u64::from(clusters.unsigned_abs()) * cluster.blocks();
        Ok(u32::try_from(blocks).unwrap_or(u32::MAX))
    }

    /// The blocks of so many threads that one multiprocessor runs at a time. The context must be
    /// current.
    pub(crate) fn active_blocks(
        &self,
        threads: u32,
        shared_mem_bytes: usize,
    ) -> Result<u32, (&'static str, DriverCode)> {
        let mut blocks = 0;
        // What exceeds an int exceeds every block, which the driver says.
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the function is loaded; `blocks` takes the answer. A driver refuses what is of
        // another context than the current one.
        let code = unsafe {
            (self.driver.occupancy_max_active_blocks_per_multiprocessor)(
                &raw mut blocks,
                self.function,
                threads,
                shared_mem_bytes,
            )
        };
        let call = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
        code.result().map_err(|code| (call, code))?;
        Ok(blocks.unsigned_abs())
    }

    /// Allows clusters of more than 8 blocks, for all later launches too.
    pub(crate) fn allow_large_clusters(&self) -> Result<(), DriverCode> {
        if self.remembered.large_clusters.load(Ordering::Relaxed) {
            return Ok(());
        }
        const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_uint = 14;
        // A context that cannot be made current is one that the driver refuses to go on in.
        let _ = self.enter();
        // SAFETY: the function is loaded as long as `self` is.
        let code = unsafe {
            (self.driver.func_set_attribute)(self.function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        };
        code.result()?;
        self.remembered
            .large_clusters
            .store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The last answer, if this is what was asked then, or a new one. The question is above the `bits` of
/// its answer; one that does not fit there is none, and asked each time.
#[inline(always)]
fn remember<E>(
    last: &AtomicU64,
    question: Option<u64>,
    bits: u32,
    ask: impl FnOnce() -> Result<u32, E>,
) -> Result<u32, E> {
    let Some(question) = question else {
        return ask();
    };
    let known = last.load(Ordering::Relaxed);
    if known >> bits == question >> bits {
        return Ok(low(known, bits));
    }
    let answer = ask()?;
    if fits(answer, bits) {
        last.store(question | u64::from(answer), Ordering::Relaxed);
    }
    Ok(answer)
}

/// So many threads along one, two or three axes: in two and three, whole warps side by side.
fn arrange(threads: u32, rank: usize) -> Block {
    if !threads.is_multiple_of(32) || rank == 1 {
        return Block::from(threads);
    }
    match rank {
        2 => Block::from((32, threads / 32)),
        _ if threads.is_multiple_of(64) => Block::from((8, 8, threads / 64)),
        _ => Block::from((8, 4, threads / 32)),
    }
}

fn fits(value: u32, bits: u32) -> bool {
    u64::from(value) >> bits == 0
}

/// The lowest bits of a word, at most 32.
#[expect(clippy::cast_possible_truncation, reason = "the bits above are masked")]
fn low(word: u64, bits: u32) -> u32 {
    (word & ((1 << bits) - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_threads_that_were_suggested() {
        for threads in (1..=1024).filter(|threads| *threads < 32 || threads % 32 == 0) {
            for rank in 1..=3 {
                let block = arrange(threads, rank);
                assert_eq!(block.threads(), u64::from(threads), "{block:?}");
                assert!(block.z <= 64, "{block:?}");
            }
        }
        assert_eq!(arrange(1024, 2), Block::from((32, 32)));
        assert_eq!(arrange(96, 3), Block::from((8, 4, 3)));
    }

    #[test]
    fn what_was_asked_last_is_not_asked_again() {
        let last = AtomicU64::new(0);
        let mut asked = Vec::new();
        let mut ask = |question: u32, answer| {
            let key = fits(question, SHARED_MEM).then(|| ANSWERED | u64::from(question) << THREADS);
            let answer = remember(&last, key, THREADS, || {
                asked.push(question);
                answer
            });
            answer.map_err(|()| "refused")
        };
        assert_eq!(ask(0, Err(())), Err("refused"));
        for _ in 0..3 {
            assert_eq!(ask(0, Ok(768)), Ok(768));
        }
        for _ in 0..3 {
            assert_eq!(ask(48 * 1024, Ok(512)), Ok(512));
        }
        // Too large to be remembered, the question and the answer.
        for _ in 0..2 {
            assert_eq!(ask(1 << SHARED_MEM, Ok(256)), Ok(256));
            assert_eq!(ask(7, Ok(1 << THREADS)), Ok(1 << THREADS));
        }
        assert_eq!(ask(48 * 1024, Ok(0)), Ok(512));
        let large = 1 << SHARED_MEM;
        assert_eq!(asked, [0, 0, 48 * 1024, large, 7, large, 7]);
    }

    #[test]
    fn what_is_remembered_fits_a_word() {
        const { assert!(SHARED_MEM + 3 * CLUSTER + THREADS + RESIDENT <= 63) };
        assert_eq!(low(0b1011, 3), 0b011);
        assert!(fits(1024, THREADS) && !fits(2048, THREADS));
    }
}
