//! What a launch says: kernel, shape, parameters, and the device it is to believe it runs on.

use std::sync::Arc;

use super::Program;

/// The device that special registers and limits speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The multiprocessors.
    pub multiprocessors: u32,
    /// The blocks a multiprocessor holds at most at once.
    pub blocks_per_multiprocessor: u32,
    /// The compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// What `%clock64` advances by a microsecond.
    pub clock_mhz: u32,
    /// The bytes of local memory a thread may use, stack included.
    pub local_bytes_per_thread: u32,
}

impl Default for DeviceInfo {
    fn default() -> Self {
        Self {
            multiprocessors: 132,
            blocks_per_multiprocessor: 32,
            compute_capability: (9, 0),
            clock_mhz: 1980,
            local_bytes_per_thread: 512 * 1024,
        }
    }
}

/// In which order warps and blocks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// One after another.
    #[default]
    Deterministic,
    /// In an order drawn from the seed.
    Seeded(u64),
}

/// One launch of one kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The module's code.
    pub program: Arc<Program>,
    /// The kernel, an index into [`Program::kernels`].
    pub kernel: usize,
    /// The blocks of the grid.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub block: [u32; 3],
    /// The blocks of a cluster; `[1, 1, 1]` if there is none.
    pub cluster: [u32; 3],
    /// The bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameters, each at its offset; padding is ignored.
    pub params: Vec<u8>,
    /// All blocks must run at once.
    pub cooperative: bool,
    /// The address of each of [`Program::variables`], in their order.
    pub symbols: Arc<Vec<u64>>,
    /// The address of 256 zeroed bytes for grid-wide barriers; 0 if there are none, as for a launch
    /// that is not cooperative.
    pub workspace: u64,
    /// The device.
    pub device: DeviceInfo,
    /// In which order warps and blocks run.
    pub order: Order,
    /// The warp instructions the launch may take in all; 0 for no limit.
    pub step_budget: u64,
    /// Report unordered accesses of global memory by two blocks; not for a cooperative launch, whose
    /// blocks can wait for one another.
    pub check_global_races: bool,
}
