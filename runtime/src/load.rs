//! Loads a declared kernel into a context: module, function, limits.

use std::{
    ffi::{CStr, CString, c_uint, c_void},
    fmt, ptr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use cudarc::driver::{
    CudaContext, DriverError,
    sys::{self, CUfunction, CUmodule},
};

use crate::{
    attributes::{Attributes, Cluster, Needs},
    declaration::{Declaration, Image, StaticDeclaration, Touch, Variable, Variant},
    driver::{Driver, DriverCode, LaunchConfig, SUCCESS, driver},
    error::{GeometryError, LoadError, LoadErrorKind},
    launch::{Block, Dims},
    module::instead,
    occupancy::Remembered,
    symbol::{Claims, LoadedSymbol, Touched},
    trace, variant,
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

/// Why the driver did not load an image.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: DriverCode,
    /// The compiler's own words.
    pub(crate) log: Vec<u8>,
}

/// A loaded image.
#[derive(Debug)]
pub(crate) struct Module {
    handle: CUmodule,
    /// What messages call it.
    name: String,
    /// The ordinal of the context's device.
    device: usize,
    context: Weak<CudaContext>,
    driver: &'static Driver,
    /// What is relied on of its variables.
    claims: Claims,
}

// SAFETY: the handle is the driver's, which takes it on any thread.
unsafe impl Send for Module {}
// SAFETY: what changes behind a shared reference is locked.
unsafe impl Sync for Module {}

/// The module of one image in one context, while it is being loaded and after.
struct Slot {
    context: Weak<CudaContext>,
    image: &'static Image,
    module: Mutex<Weak<Module>>,
}

impl Module {
    /// Whether the driver says what parameters a kernel takes.
    pub(crate) fn tells_parameters(&self) -> bool {
        self.driver.func_get_param_info.is_some()
    }

    /// The image's module in this context: the one that another declaration over the same PTX has
    /// loaded, or a new one. So that they share the image's variables, and the JIT runs once.
    fn shared(
        kernel: &'static str,
        image: &'static Image,
        driver: &'static Driver,
        context: &Arc<CudaContext>,
    ) -> Result<Arc<Module>, LoadError> {
        static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
        let slot = {
            let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
            slots.retain(|slot| slot.context.strong_count() > 0);
            let here = slots.iter().find(|slot| {
                ptr::eq(slot.context.as_ptr(), Arc::as_ptr(context))
                    && slot.image.ptx == image.ptx
                    && slot.image.code == image.code
            });
            match here {
                Some(slot) => slot.clone(),
                None => {
                    let slot = Arc::new(Slot {
                        context: Arc::downgrade(context),
                        image,
                        module: Mutex::new(Weak::new()),
                    });
                    slots.push(slot.clone());
                    slot
                }
            }
        };
        let mut module = slot.module.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = module.upgrade() {
            return Ok(module);
        }
        let loaded = match Module::from_code(kernel, image, driver, context)? {
            Some(loaded) => loaded,
            None => {
                let _range = trace::compile(image.path, context);
                Module::load(driver, context, image.path, image.ptx)
                    .map_err(|refused| explain_load(kernel, image, driver, context, &refused))?
            }
        };
        let loaded = Arc::new(loaded);
        *module = Arc::downgrade(&loaded);
        Ok(loaded)
    }

    /// The first machine code beside an image that is for the context's device, if one is.
    fn from_code(
        kernel: &'static str,
        image: &'static Image,
        driver: &'static Driver,
        context: &Arc<CudaContext>,
    ) -> Result<Option<Module>, LoadError> {
        const NO_BINARY_FOR_GPU: DriverCode = DriverCode(209);
        // Of a fatbin that has no machine code for the device, but PTX.
        const UNSUPPORTED_PTX_VERSION: DriverCode = DriverCode(222);
        // It runs PTX alone, and would report each file that it is given.
        #[cfg(feature = "emulator")]
        if gridcall_emulator::is_installed() {
            return Ok(None);
        }
        for code in image.code {
            let _range = trace::compile(code.path, context);
            match Module::load(driver, context, code.path, code.bytes) {
                Ok(module) => return Ok(Some(module)),
                Err(refused)
                    if [NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION].contains(&refused.code) => {}
                Err(refused) if refused.code.breaks_context() => {
                    return Err(LoadErrorKind::Broken(refused.code).into());
                }
                Err(Refused { code: answer, log }) => {
                    return Err(LoadErrorKind::MachineCode {
                        kernel,
                        path: code.path,
                        code: answer,
                        log: readable_log(&log, code.path),
                    }
                    .into());
                }
            }
        }
        Ok(None)
    }

    /// Loads an image of any form that the driver knows. The context must be current.
    pub(crate) fn load(
        driver: &'static Driver,
        context: &Arc<CudaContext>,
        name: &str,
        image: &[u8],
    ) -> Result<Module, Refused> {
        const ERROR_LOG_BUFFER: c_uint = 5;
        const ERROR_LOG_BUFFER_SIZE_BYTES: c_uint = 6;
        let mut log = vec![0_u8; 16 * 1024];
        let mut options = [ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES];
        // An option's value is passed in the place of its pointer.
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(log.len()),
        ];
        // Text ends with a NUL; other forms know where they end.
        let text = [image, b"\0"].concat();
        let mut handle = ptr::null_mut();
        // SAFETY: the image is a text that ends with a NUL, or has its length in its head; the log is as long as its size option says, and both
        // outlive the call; the context is current.
        let code = unsafe {
            (driver.module_load_data_ex)(
                &raw mut handle,
                text.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if code != SUCCESS {
            return Err(Refused { code, log });
        }
        Ok(Module {
            handle,
            name: name.to_owned(),
            device: context.ordinal(),
            context: Arc::downgrade(context),
            driver,
            claims: Claims::default(),
        })
    }

    fn function(
        &self,
        declaration: &'static Declaration,
        found: &Found<'_>,
    ) -> Result<CUfunction, LoadError> {
        let not_there = || LoadErrorKind::NoEntry {
            kernel: declaration.kernel,
            entry: found.entry.to_owned(),
            path: found.path.to_owned(),
            instead: self
                .entries()
                .map_or_else(String::new, |names| instead(found.entry, &names)),
        };
        const NOT_FOUND: DriverCode = DriverCode(500);
        let name = CString::new(found.entry).map_err(|_| not_there())?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, the name is a C string, `function` takes the answer.
        let code = unsafe {
            (self.driver.module_get_function)(&raw mut function, self.handle, name.as_ptr())
        };
        match code {
            SUCCESS => Ok(function),
            NOT_FOUND => Err(not_there().into()),
            code => Err(failed(declaration, "cuModuleGetFunction", code)),
        }
    }

    /// The names of its kernels, if the driver tells them. The module's context must be current.
    fn entries(&self) -> Option<Vec<&str>> {
        let (enumerate, get_name) = (
            self.driver.module_enumerate_functions?,
            self.driver.func_get_name?,
        );
        let get_count = self.driver.module_get_function_count?;
        let mut count = 0;
        // SAFETY: the module is loaded, and `count` takes the answer.
        unsafe { get_count(&raw mut count, self.handle) }
            .result()
            .ok()?;
        let mut functions = vec![ptr::null_mut(); count as usize];
        // SAFETY: the module is loaded, and there is room for so many functions.
        unsafe { enumerate(functions.as_mut_ptr(), count, self.handle) }
            .result()
            .ok()?;
        let name = |function| {
            let mut name = ptr::null();
            // SAFETY: the function is the module's, which is loaded; `name` takes the answer.
            unsafe { get_name(&raw mut name, function) }.result().ok()?;
            if name.is_null() {
                return None;
            }
            // SAFETY: on success it is a C string that lives as long as the module.
            unsafe { CStr::from_ptr(name) }.to_str().ok()
        };
        functions.into_iter().map(name).collect()
    }
}

impl LoadedSymbol {
    /// Loads the symbol; its module, if another declaration has not loaded it already. The context
    /// must be current.
    pub(crate) fn load(
        declaration: &'static StaticDeclaration,
        driver: &'static Driver,
        context: &Arc<CudaContext>,
    ) -> Result<LoadedSymbol, LoadError> {
        let name = declaration.name;
        let images: Vec<_> = declaration
            .variants
            .iter()
            .map(|variable| variable.image)
            .collect();
        if let Some(absent) = images.iter().find(|image| image.version == (0, 0)) {
            let (kernel, path) = (name, absent.path);
            let absent = LoadErrorKind::SignaturesOnly { kernel, path };
            return Err(of_symbol(name, absent.into()));
        }
        let found = variant::best(name, &images, driver, context).and_then(|best| {
            let &Variable { image, symbol, .. } = &declaration.variants[best];
            let module = Module::shared(name, image, driver, context)?;
            Ok((module, symbol))
        });
        let (module, symbol) = found.map_err(|error| of_symbol(name, error))?;
        let path = module.name.clone();
        LoadedSymbol::from_module(declaration, context, module, symbol, &path)
    }

    /// Finds the symbol in a module that is loaded in this context, which is current.
    pub(crate) fn from_module(
        declaration: &'static StaticDeclaration,
        context: &Arc<CudaContext>,
        module: Arc<Module>,
        symbol: &str,
        path: &str,
    ) -> Result<LoadedSymbol, LoadError> {
        let name = declaration.name;
        let mismatch = |message| LoadErrorKind::Symbol { name, message };
        let not_there = || {
            mismatch(format!(
                "the driver finds no variable `{symbol}` in `{path}`"
            ))
        };
        let c_name = CString::new(symbol).map_err(|_| not_there())?;
        let (mut pointer, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name is a C string, both places take an answer.
        let code = unsafe {
            sys::cuModuleGetGlobal_v2(
                &raw mut pointer,
                &raw mut bytes,
                module.handle,
                c_name.as_ptr(),
            )
        };
        match code {
            sys::CUresult::CUDA_SUCCESS => {}
            sys::CUresult::CUDA_ERROR_NOT_FOUND => return Err(not_there().into()),
            code => {
                let code = DriverCode(code as c_uint);
                if code.breaks_context() {
                    return Err(LoadErrorKind::Broken(code).into());
                }
                return Err(mismatch(format!("cuModuleGetGlobal failed: {code}")).into());
            }
        }
        let declared = declaration.layout.size;
        if bytes != declared {
            let message = format!(
                "it is `{}` ({declared} bytes), but `{symbol}` in `{path}` has {bytes} bytes",
                declaration.ty
            );
            return Err(mismatch(message).into());
        }
        let uses = if declaration.mutable {
            let tracker = module.claims.track(symbol, context).map_err(mismatch)?;
            Some([(tracker.clone(), false), (tracker, true)])
        } else {
            let by = format!("`static {name}`");
            module.claims.keep(symbol, &by).map_err(mismatch)?;
            None
        };
        Ok(LoadedSymbol {
            name,
            pointer,
            uses,
            module,
        })
    }
}

/// As messages call it.
impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on device {}", self.name, self.device)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A context that is gone has taken its modules with it. One whose object is gone while
        // the context lives on (a primary context that another library retains) keeps the module:
        // from here it cannot be told from the former.
        if let Some(context) = self.context.upgrade()
            && context.bind_to_thread().is_ok()
        {
            // SAFETY: the module was loaded in this context, which lives and is current, and no
            // function of it can be launched any more. A failure leaves it loaded.
            unsafe { (self.driver.module_unload)(self.handle) };
        }
    }
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

/// What is wrong with a module, told of a symbol in it and not of a kernel.
#[cold]
fn of_symbol(name: &'static str, error: LoadError) -> LoadError {
    let text = error.to_string();
    match text.strip_prefix(&format!("kernel `{name}`: ")) {
        Some(message) => LoadErrorKind::Symbol {
            name,
            message: message.to_owned(),
        }
        .into(),
        None => error,
    }
}

/// Why the driver refused an image, as far as it and the image tell.
#[cold]
fn explain_load(
    kernel: &'static str,
    image: &'static Image,
    driver: &Driver,
    context: &CudaContext,
    refused: &Refused,
) -> LoadError {
    let &Refused { code, ref log } = refused;
    if code.breaks_context() {
        return LoadErrorKind::Broken(code).into();
    }
    // COMPUTE_CAPABILITY_MAJOR and _MINOR.
    let attribute = |number| driver.device_attribute(context.cu_device(), number);
    let (Ok(major), Ok(minor)) = (attribute(75), attribute(76)) else {
        return jit(kernel, image, code, log);
    };
    let capability = (major, minor);
    const UNSUPPORTED_PTX_VERSION: DriverCode = DriverCode(222);
    if code == UNSUPPORTED_PTX_VERSION
        && let Ok(driver) = driver.version()
    {
        return LoadErrorKind::PtxTooNew {
            kernel,
            path: image.path,
            ptx: image.version,
            driver,
            capability,
        }
        .into();
    }
    if !runs_on(image.target, capability) {
        let target = image.target;
        return LoadErrorKind::WrongTarget {
            kernel,
            path: image.path,
            target,
            capability,
        }
        .into();
    }
    jit(kernel, image, code, log)
}

/// What the driver's compiler says of an image.
#[cold]
fn jit(kernel: &'static str, image: &'static Image, code: DriverCode, log: &[u8]) -> LoadError {
    let log = readable_log(log, image.path);
    let hint = hint(code, &log);
    LoadErrorKind::Jit {
        kernel,
        path: image.path,
        code,
        log,
        hint,
    }
    .into()
}

/// Whether PTX for `target` can be compiled for a device of this compute capability: for its own
/// architecture and every later one; with an `a` for its own alone; with an `f` for later ones of
/// the same major number ([PTX ISA, `.target`]).
///
/// [PTX ISA, `.target`]: https://docs.nvidia.com/cuda/parallel-thread-execution/#ptx-module-directives-target
pub(crate) fn runs_on(target: &str, (major, minor): (u32, u32)) -> bool {
    let Some(arch) = target
        .split(',')
        .next()
        .and_then(|t| t.trim().strip_prefix("sm_"))
    else {
        return true;
    };
    let digits = arch.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let Ok(number) = digits.parse::<u32>() else {
        return true;
    };
    let device = major * 10 + minor;
    match &arch[digits.len()..] {
        "a" => number == device,
        "f" => number / 10 == major && number <= device,
        _ => number <= device,
    }
}

/// The compiler's log with the file's name in place of its own words for it.
pub(crate) fn readable_log(log: &[u8], path: &str) -> String {
    let log = log.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(log)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| format!("\n  {}", line.replace("ptxas application ptx input", path)))
        .collect()
}

pub(crate) fn hint(code: DriverCode, log: &str) -> &'static str {
    const JIT_COMPILER_NOT_FOUND: DriverCode = DriverCode(221);
    if code == JIT_COMPILER_NOT_FOUND {
        "\n  the driver's compiler library, libnvidia-ptxjitcompiler.so.1, is missing: in a container, mount it with the driver's other libraries"
    } else if log.contains("Unresolved extern function") {
        "\n  the PTX calls a function that it does not define: compile without relocatable device code (-rdc), or link the objects first"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_missing_is_named() {
        assert!(hint(DriverCode(221), "").contains("libnvidia-ptxjitcompiler.so.1"));
        let unresolved = hint(DriverCode(218), "Unresolved extern function 'f'");
        assert!(unresolved.contains("-rdc"), "{unresolved}");
        assert_eq!(hint(DriverCode(218), "syntax error"), "");
    }

    #[test]
    fn targets_run_on_their_own_and_later_devices() {
        for (target, capability, runs) in [
            ("sm_75", (7, 5), true),
            ("sm_75", (9, 0), true),
            ("sm_90", (8, 9), false),
            ("sm_90a", (9, 0), true),
            ("sm_90a", (10, 0), false),
            ("sm_100f", (10, 3), true),
            ("sm_100f", (12, 0), false),
            ("sm_103f", (10, 0), false),
            ("sm_20, map_f64_to_f32", (9, 0), true),
            ("sm_120", (9, 0), false),
            ("compute_unknown", (9, 0), true),
        ] {
            assert_eq!(
                runs_on(target, capability),
                runs,
                "{target} on {capability:?}"
            );
        }
    }

    #[test]
    fn the_log_names_the_file() {
        let log = b"ptxas application ptx input, line 12; error   : Unknown symbol 'x'\n\n\0rest";
        assert_eq!(
            readable_log(log, "kernels/bad.ptx"),
            "\n  kernels/bad.ptx, line 12; error   : Unknown symbol 'x'"
        );
    }
}
