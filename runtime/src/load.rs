//! Loads a declared kernel into a context: module, function, limits.

mod explain;
mod module;
mod symbol;

use std::{
    ffi::c_uint,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use cudarc::driver::{CudaContext, DriverError, sys::CUfunction};

use crate::{
    attributes::{Attributes, Cluster, Needs},
    declaration::{Declaration, Touch, Variant},
    driver::{Driver, DriverCode, LaunchConfig, SUCCESS, driver},
    error::{GeometryError, LoadError, LoadErrorKind},
    launch::{Block, Dims},
    occupancy::Remembered,
    symbol::Touched,
    trace, variant,
};

pub(crate) use self::{
    explain::{hint, readable_log, runs_on},
    module::Module,
};

/// A kernel in one context, with all that a launch compares against.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) declaration: &'static Declaration,
    pub(crate) driver: &'static Driver,
    pub(crate) function: CUfunction,
    /// Whether one packed buffer may carry the parameters.
    pub(crate) packed: bool,
    /// Whether each launch is followed by a synchronisation (`GRIDCALL_SYNC=1`).
    pub(crate) synchronous: bool,
    /// The ordinal of the context's device.
    pub(crate) device: usize,
    pub(crate) limits: Limits,
    /// Threads of a block that this kernel can run with, by its registers and launch bound.
    pub(crate) max_threads_per_block: u32,
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// Bytes of static shared memory.
    pub(crate) static_shared_mem: u32,
    /// Bytes of dynamic shared memory that need no further opt-in.
    granted_shared_mem: AtomicU32,
    /// What the declaration and the image ask of every launch.
    pub(crate) needs: Needs,
    /// What occupancy says of it, as far as it was asked for.
    pub(crate) remembered: Remembered,
    /// The block the kernel must be launched with.
    pub(crate) fixed_block: Option<FixedBlock>,
    /// The launch bound that the kernel was compiled with.
    pub(crate) maxntid: Option<[u32; 3]>,
    /// The block of a launch that names none, by the number of its axes.
    default_blocks: [Block; 3],
    /// Whether that block is within every limit; a fixed one need not be.
    pub(crate) default_block_fits: bool,
    /// The symbols that each launch uses, where they are written.
    pub(crate) touched: Option<Touched>,
    /// Keeps the function loaded.
    module: Arc<Module>,
}

/// The one block that a kernel is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedBlock {
    pub(crate) block: Block,
    /// Whether the PTX says so (`.reqntid`), not the declaration.
    pub(crate) by_ptx: bool,
}

/// What the device allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads_per_block: u32,
    /// Bytes of shared memory a block, with the opt-in.
    shared_mem_per_block: u32,
    pub(crate) multiprocessors: u32,
    /// The compute capability.
    pub(crate) capability: (u32, u32),
    /// Whether it runs cooperative grids.
    pub(crate) cooperative: bool,
    /// Whether it runs clusters of blocks.
    pub(crate) clusters: bool,
    /// The least priority of a launch and the greatest, which is a lower number.
    pub(crate) priorities: (i32, i32),
    /// Bytes of an access policy window; 0 if it takes none.
    pub(crate) access_policy_window: u32,
    pub(crate) mem_sync_domains: u32,
    /// The version of CUDA that the driver supports.
    pub(crate) driver: (u32, u32),
}

// SAFETY: the handles are the driver's, which takes them on any thread; all else is plain data.
unsafe impl Send for Loaded {}
// SAFETY: nothing behind a shared reference changes but the atomic.
unsafe impl Sync for Loaded {}

/// A kernel as it is found in a module.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) entry: &'a str,
    /// The module, as messages call it.
    pub(crate) path: &'a str,
    pub(crate) reqntid: Option<[u32; 3]>,
    pub(crate) maxntid: Option<[u32; 3]>,
    pub(crate) needs: Needs,
    /// The variables of the module that it uses; none if that cannot be told.
    pub(crate) touches: Option<&'a [Touch<'a>]>,
}

/// Makes the context current, unless something is wrong with it.
pub(crate) fn enter(context: &CudaContext) -> Result<&'static Driver, LoadError> {
    let driver = driver()?;
    context.check_err().map_err(LoadErrorKind::Earlier)?;
    context
        .bind_to_thread()
        .map_err(|source| LoadErrorKind::Context {
            ordinal: context.ordinal(),
            source,
        })?;
    Ok(driver)
}

impl Loaded {
    /// Loads the kernel; its module, if another declaration has not loaded it already.
    ///
    /// The context is current afterwards.
    pub(crate) fn load(
        declaration: &'static Declaration,
        context: &Arc<CudaContext>,
    ) -> Result<Loaded, LoadError> {
        let kernel = declaration.kernel;
        // No PTX has version 0.0: it stands for a file that was not there.
        let absent = |variant: &&Variant| variant.image.version == (0, 0);
        if let Some(absent) = declaration.variants.iter().find(absent) {
            let path = absent.image.path;
            return Err(LoadErrorKind::SignaturesOnly { kernel, path }.into());
        }
        let _range = trace::load(kernel, context);
        let driver = enter(context)?;
        let images = declaration.variants.iter().map(|variant| variant.image);
        let images: Vec<_> = images.collect();
        let best = variant::best(kernel, &images, driver, context)?;
        let variant = &declaration.variants[best];
        let module = Module::shared(kernel, variant.image, driver, context)?;
        let path = module.name.clone();
        let found = Found {
            entry: variant.entry,
            path: &path,
            reqntid: variant.reqntid,
            maxntid: variant.maxntid,
            needs: variant.needs,
            touches: Some(variant.touches),
        };
        let is_code = path != variant.image.path;
        let loaded = Loaded::from_module(declaration, context, module, &found)?;
        if is_code && loaded.takes_more() {
            return Err(loaded.more_parameters(&path));
        }
        Ok(loaded)
    }

    /// Finds the kernel in a module that is loaded in this context, which is current.
    pub(crate) fn from_module(
        declaration: &'static Declaration,
        context: &Arc<CudaContext>,
        module: Arc<Module>,
        found: &Found<'_>,
    ) -> Result<Loaded, LoadError> {
        let driver = module.driver;
        let function = module.function(declaration, found)?;
        let kernel = declaration.kernel;
        let touched = match found.touches {
            Some(touches) => module.claims.touch(kernel, touches, context),
            None => module
                .claims
                .touch_all(kernel, declaration.statics_mut, context),
        };
        let touched = touched.map_err(|message| LoadErrorKind::Mismatch { kernel, message })?;
        let packed = check_parameters(declaration, driver, function, found.path)?;
        let limits = Limits::of(driver, context)
            .map_err(|code| failed(declaration, "cuDeviceGetAttribute", code))?;
        // The numbers are those of CUfunction_attribute: MAX_THREADS_PER_BLOCK,
        // SHARED_SIZE_BYTES, NUM_REGS and MAX_DYNAMIC_SHARED_SIZE_BYTES.
        let attribute = |number| {
            // SAFETY: the function was loaded just now, and the module that holds it lives.
            unsafe { driver.function_attribute(function, number) }
                .map_err(|code| failed(declaration, "cuFuncGetAttribute", code))
        };
        let max_threads_per_block = attribute(0)?;
        let needs = needs(declaration, driver, function, found.needs)?;
        let by_ptx = found.reqntid.is_some();
        let fixed_block = found.reqntid.or(declaration.block).map(|dims| FixedBlock {
            block: block(dims),
            by_ptx,
        });
        Ok(Loaded {
            declaration,
            driver,
            function,
            packed,
            synchronous: std::env::var_os("GRIDCALL_SYNC").is_some_and(|value| value == "1"),
            device: context.ordinal(),
            limits,
            max_threads_per_block,
            registers: attribute(4)?,
            static_shared_mem: attribute(1)?,
            granted_shared_mem: AtomicU32::new(attribute(8)?),
            needs,
            remembered: Remembered::default(),
            fixed_block,
            maxntid: found.maxntid,
            default_blocks: default_blocks(found.maxntid, fixed_block, max_threads_per_block),
            default_block_fits: fixed_block
                .is_none_or(|fixed| fixed.block.threads() <= u64::from(max_threads_per_block)),
            touched,
            module,
        })
    }

    /// The module that the kernel is of.
    #[inline(always)]
    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Makes the kernel's context current.
    #[cold]
    pub(crate) fn enter(&self) -> Result<(), DriverError> {
        match self.module.context.upgrade() {
            Some(context) => context.bind_to_thread(),
            // Whoever launches holds the context.
            None => Ok(()),
        }
    }

    /// The error of a kernel that takes more parameters than are declared.
    #[cold]
    pub(crate) fn more_parameters(&self, path: &str) -> LoadError {
        let Declaration { kernel, params, .. } = *self.declaration;
        let declared = match params.len() {
            1 => "1 parameter".to_owned(),
            count => format!("{count} parameters"),
        };
        let message = format!("it declares {declared}, and the kernel in {path} takes more");
        LoadErrorKind::Mismatch { kernel, message }.into()
    }

    /// Whether the driver tells of a parameter behind the declared ones.
    #[cold]
    pub(crate) fn takes_more(&self) -> bool {
        let Some(param_info) = self.driver.func_get_param_info else {
            return false;
        };
        let (mut offset, mut size) = (0, 0);
        let next = self.declaration.params.len();
        // SAFETY: the function is loaded, and both places take an answer.
        let code = unsafe { param_info(self.function, next, &raw mut offset, &raw mut size) };
        code == SUCCESS
    }

    /// The block of a launch that names none and has so many axes.
    #[inline(always)]
    pub(crate) fn default_block(&self, rank: usize) -> Block {
        match rank {
            1 => self.default_blocks[0],
            2 => self.default_blocks[1],
            _ => self.default_blocks[2],
        }
    }

    /// Whether so many bytes of dynamic shared memory need an opt-in that was not given yet.
    #[inline(always)]
    pub(crate) fn is_to_grant(&self, bytes: u64) -> bool {
        // That none need one is mostly known to the compiler.
        bytes > 0 && bytes > u64::from(self.granted_shared_mem.load(Ordering::Relaxed))
    }

    /// Bytes of dynamic shared memory that a launch may ask for at most.
    pub(crate) fn max_dynamic_shared_mem(&self) -> u32 {
        self.limits
            .shared_mem_per_block
            .saturating_sub(self.static_shared_mem)
    }

    /// Opts in to more dynamic shared memory, for all later launches too.
    ///
    /// The grant only grows: another thread may be about to launch with what it was granted.
    #[cold]
    pub(crate) fn grant_shared_mem(&self, bytes: u64) -> Result<(), GeometryError> {
        let most = self.max_dynamic_shared_mem();
        let Some(bytes) = u32::try_from(bytes).ok().filter(|&bytes| bytes <= most) else {
            return Err(GeometryError::SharedMemory {
                asked: bytes,
                limit: self.limits.shared_mem_per_block,
                fixed: self.static_shared_mem,
            });
        };
        static GRANTING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = GRANTING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_to_grant(u64::from(bytes)) {
            return Ok(());
        }
        // Below the limit of a block, which is far below an int's.
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_uint = 8;
        // SAFETY: the function is loaded as long as `self` is, in the context that is current.
        let code = unsafe {
            (self.driver.func_set_attribute)(self.function, MAX_DYNAMIC_SHARED_SIZE_BYTES, value)
        };
        code.result()
            .map_err(|code| GeometryError::OptIn { asked: bytes, code })?;
        self.granted_shared_mem.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// What the driver may have objected to, for the message after a launch that failed.
    #[cold]
    pub(crate) fn explain(&self, dims: Dims, attributes: Option<&Attributes<'_>>) -> String {
        let limits = &self.limits;
        let asked = attributes.map_or_else(String::new, |asked| {
            format!(
                "; it was launched with {asked:#}, {} blocks of {} threads and {} bytes of dynamic shared memory; the device has compute capability {}.{} and {} multiprocessors, the driver supports CUDA {}.{}",
                dims.grid.blocks(),
                dims.block.threads(),
                dims.shared_mem_bytes,
                limits.capability.0,
                limits.capability.1,
                limits.multiprocessors,
                limits.driver.0,
                limits.driver.1,
            )
        });
        format!(
            "; the kernel takes {} registers a thread and {} bytes of static shared memory, and runs with at most {} threads a block; the device allows {} threads and {} bytes of shared memory a block{asked}",
            self.registers,
            self.static_shared_mem,
            self.max_threads_per_block,
            limits.threads_per_block,
            limits.shared_mem_per_block,
        )
    }
}

impl Limits {
    fn of(driver: &Driver, context: &CudaContext) -> Result<Limits, DriverCode> {
        // The numbers are those of CUdevice_attribute: MAX_THREADS_PER_BLOCK, MAX_BLOCK_DIM_X to
        // _Z, MAX_GRID_DIM_X to _Z, MAX_SHARED_MEMORY_PER_BLOCK and its _OPTIN, MULTIPROCESSOR_COUNT,
        // COMPUTE_CAPABILITY_MAJOR and _MINOR, COOPERATIVE_LAUNCH, MAX_ACCESS_POLICY_WINDOW_SIZE; and
        // CLUSTER_LAUNCH and MEM_SYNC_DOMAIN_COUNT, which drivers before CUDA 11.8 and 12.0 do not know.
        let attribute = |number| driver.device_attribute(context.cu_device(), number);
        let default_shared_mem = attribute(8)?;
        let version = driver.version()?;
        Ok(Limits {
            multiprocessors: attribute(16)?,
            capability: (attribute(75)?, attribute(76)?),
            cooperative: attribute(95)? != 0,
            clusters: attribute(120).unwrap_or(0) != 0,
            priorities: priorities(driver)?,
            access_policy_window: attribute(109).unwrap_or(0),
            mem_sync_domains: attribute(126).unwrap_or(0),
            driver: (version / 1000, version % 1000 / 10),
            threads_per_block: attribute(1)?,
            block: [attribute(2)?, attribute(3)?, attribute(4)?],
            grid: [attribute(5)?, attribute(6)?, attribute(7)?],
            shared_mem_per_block: attribute(97)?.max(default_shared_mem),
        })
    }
}

/// The least priority of a launch in the current context, and the greatest.
fn priorities(driver: &Driver) -> Result<(i32, i32), DriverCode> {
    let (mut least, mut greatest) = (0, 0);
    if let Some(range) = driver.ctx_get_stream_priority_range {
        // SAFETY: both places take an answer.
        unsafe { range(&raw mut least, &raw mut greatest) }.result()?;
    }
    Ok((least, greatest))
}

/// Whether a packed buffer may be used; an error if the loaded kernel takes other parameters.
fn check_parameters(
    declaration: &'static Declaration,
    driver: &Driver,
    function: CUfunction,
    path: &str,
) -> Result<bool, LoadError> {
    // Beyond 16 bytes ptxas aligns by the place of the whole block, not within it.
    let mut packed = declaration.params.iter().all(|param| param.align <= 16);
    let Some(param_info) = driver.func_get_param_info else {
        return Ok(packed);
    };
    for (index, param) in declaration.params.iter().enumerate() {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded, and both places take an answer.
        let code = unsafe { param_info(function, index, &raw mut offset, &raw mut size) };
        let found = match code {
            SUCCESS if size == param.size => {
                packed &= offset == param.offset;
                continue;
            }
            SUCCESS => format!("{size} bytes at offset {offset}"),
            // A driver that does not answer is no witness.
            DriverCode(801) => return Ok(packed),
            DriverCode(1) => format!("{index} parameters"),
            code => return Err(failed(declaration, "cuFuncGetParamInfo", code)),
        };
        return Err(LoadErrorKind::Parameters {
            kernel: declaration.kernel,
            path: path.to_owned(),
            index,
            name: param.name,
            declared: param.size,
            offset: param.offset,
            found,
        }
        .into());
    }
    Ok(packed)
}

/// What the kernel asks of every launch; of clusters, the driver tells what is not in a text.
fn needs(
    declaration: &Declaration,
    driver: &Driver,
    function: CUfunction,
    known: Needs,
) -> Result<Needs, LoadError> {
    // The numbers are those of CUfunction_attribute: CLUSTER_SIZE_MUST_BE_SET and
    // REQUIRED_CLUSTER_WIDTH, _HEIGHT and _DEPTH. Drivers before CUDA 11.8 do not know them.
    let attribute = |number| {
        // SAFETY: the function was loaded just now, and the module that holds it lives.
        unsafe { driver.function_attribute(function, number) }.unwrap_or(0)
    };
    let told = [attribute(11), attribute(12), attribute(13)];
    let told = (!told.contains(&0)).then_some(told);
    let counts_clusters = match (known.required_cluster, told) {
        // There is no text that says it.
        (None, Some(cluster)) => counts_clusters(driver, function, cluster.into()),
        _ => known.counts_clusters,
    };
    let needs = Needs {
        counts_clusters,
        required_cluster: known.required_cluster.or(told),
        explicit_cluster: known.explicit_cluster || attribute(10) != 0,
        ..known
    };
    match (needs.cluster, needs.required_cluster) {
        (Some(declared), Some(required)) if declared != required => {
            let message = format!(
                "it declares clusters of {}, the loaded kernel is compiled for {} alone",
                Cluster::from(declared),
                Cluster::from(required)
            );
            let kernel = declaration.kernel;
            Err(LoadErrorKind::Mismatch { kernel, message }.into())
        }
        _ => Ok(needs),
    }
}

/// Whether the driver takes the grid of a kernel in clusters of the required size, and not in blocks:
/// then a grid of one is not too small for a cluster of several blocks (H200). The context must be
/// current.
fn counts_clusters(driver: &Driver, function: CUfunction, cluster: Cluster) -> bool {
    let Some(ask) = driver.occupancy_max_active_clusters else {
        return false;
    };
    if cluster.blocks() == 1 {
        return false;
    }
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`, without which the answer to a larger
    /// cluster would be the same as to a wrong one. Its launches ask for that, too.
    const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_uint = 14;
    // SAFETY: the function was loaded just now, and the module that holds it lives.
    let _ = unsafe { (driver.func_set_attribute)(function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) };
    let config = LaunchConfig {
        grid: [1; 3],
        block: [1; 3],
        shared_mem_bytes: 0,
        stream: ptr::null_mut(),
        attributes: ptr::null(),
        attribute_count: 0,
    };
    let mut clusters = 0;
    // SAFETY: the function is loaded in the context that is current, the configuration has no
    // attributes, and `clusters` takes the answer.
    let code = unsafe { ask(&raw mut clusters, function, &raw const config) };
    code == SUCCESS
}

/// The blocks for launches of one, two and three axes that name none.
fn default_blocks(
    maxntid: Option<[u32; 3]>,
    fixed: Option<FixedBlock>,
    max_threads: u32,
) -> [Block; 3] {
    if let Some(fixed) = fixed {
        return [fixed.block; 3];
    }
    let bound = maxntid.unwrap_or([u32::MAX; 3]);
    [[256, 1, 1], [16, 16, 1], [8, 8, 4]].map(|mut dims: [u32; 3]| {
        for (dim, bound) in dims.iter_mut().zip(bound) {
            *dim = (*dim).min(bound.max(1));
        }
        // Halve the largest until the kernel can run with it; powers of two stay powers of two.
        while dims.iter().product::<u32>() > max_threads.max(1) {
            if let Some(largest) = dims.iter_mut().max() {
                *largest /= 2;
            }
        }
        block(dims)
    })
}

fn block([x, y, z]: [u32; 3]) -> Block {
    Block { x, y, z }
}

#[cold]
pub(crate) fn failed(declaration: &Declaration, call: &'static str, code: DriverCode) -> LoadError {
    if code.breaks_context() {
        return LoadErrorKind::Broken(code).into();
    }
    LoadErrorKind::Driver {
        kernel: declaration.kernel,
        call,
        code,
    }
    .into()
}
