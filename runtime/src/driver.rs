//! The driver's functions that we call ourselves, resolved once from the library that is loaded.
//!
//! cudarc has bindings for most of them. Ours are for the launch path, where a resolved pointer
//! costs one load; for functions newer than the oldest bindings a user may have chosen; and for
//! programs in which cudarc links the driver instead of opening it, where asking cudarc whether
//! the driver is there is not possible.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::{
    DriverError,
    sys::{CUcontext, CUdevice, CUevent, CUfunction, CUmemoryPool, CUmodule, CUstream},
};
use libloading::Library;

use crate::{
    attributes::SysAttribute,
    error::{LoadError, LoadErrorKind},
};

/// A `CUresult` that need not be one that any bindings know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct DriverCode(pub(crate) c_uint);

pub(crate) const SUCCESS: DriverCode = DriverCode(0);
pub(crate) const NOT_INITIALIZED: DriverCode = DriverCode(3);

/// The functions, by their names in the driver's header without the prefix.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "the names are the driver's")]
pub(crate) struct Driver {
    pub(crate) init: unsafe extern "C" fn(c_uint) -> DriverCode,
    pub(crate) driver_get_version: unsafe extern "C" fn(*mut c_int) -> DriverCode,
    pub(crate) device_get_count: unsafe extern "C" fn(*mut c_int) -> DriverCode,
    pub(crate) device_get_attribute:
        unsafe extern "C" fn(*mut c_int, c_int, CUdevice) -> DriverCode,
    pub(crate) ctx_get_current: unsafe extern "C" fn(*mut CUcontext) -> DriverCode,
    pub(crate) stream_is_capturing: unsafe extern "C" fn(CUstream, *mut c_uint) -> DriverCode,
    pub(crate) stream_synchronize: unsafe extern "C" fn(CUstream) -> DriverCode,
    pub(crate) module_load_data_ex: unsafe extern "C" fn(
        *mut CUmodule,
        *const c_void,
        c_uint,
        *mut c_uint,
        *mut *mut c_void,
    ) -> DriverCode,
    pub(crate) module_unload: unsafe extern "C" fn(CUmodule) -> DriverCode,
    pub(crate) module_get_function:
        unsafe extern "C" fn(*mut CUfunction, CUmodule, *const c_char) -> DriverCode,
    pub(crate) func_get_attribute:
        unsafe extern "C" fn(*mut c_int, c_uint, CUfunction) -> DriverCode,
    pub(crate) func_set_attribute: unsafe extern "C" fn(CUfunction, c_uint, c_int) -> DriverCode,
    pub(crate) occupancy_max_active_blocks_per_multiprocessor:
        unsafe extern "C" fn(*mut c_int, CUfunction, c_int, usize) -> DriverCode,
    pub(crate) launch_kernel: LaunchKernel,
    /// Bindings of CUDA 13 have `_v2` alone, which a driver of CUDA 12.7 has not.
    pub(crate) event_elapsed_time: unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> DriverCode,
    get_error_name: unsafe extern "C" fn(DriverCode, *mut *const c_char) -> DriverCode,
    get_error_string: unsafe extern "C" fn(DriverCode, *mut *const c_char) -> DriverCode,
    /// Since CUDA 12.4.
    pub(crate) func_get_param_info:
        Option<unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> DriverCode>,
    /// Since CUDA 12.4.
    pub(crate) module_get_function_count:
        Option<unsafe extern "C" fn(*mut c_uint, CUmodule) -> DriverCode>,
    /// Since CUDA 12.4.
    pub(crate) module_enumerate_functions:
        Option<unsafe extern "C" fn(*mut CUfunction, c_uint, CUmodule) -> DriverCode>,
    /// Since CUDA 12.3.
    pub(crate) func_get_name:
        Option<unsafe extern "C" fn(*mut *const c_char, CUfunction) -> DriverCode>,
    /// Since CUDA 11.2; its types differ between bindings.
    pub(crate) mem_pool_set_access:
        Option<unsafe extern "C" fn(CUmemoryPool, *const PoolAccess, usize) -> DriverCode>,
    /// Since CUDA 11.8.
    pub(crate) launch_kernel_ex: Option<LaunchKernelEx>,
    /// Since CUDA 11.8.
    pub(crate) occupancy_max_active_clusters:
        Option<unsafe extern "C" fn(*mut c_int, CUfunction, *const LaunchConfig) -> DriverCode>,
    /// Missing only in drivers that run nothing.
    pub(crate) occupancy_max_potential_block_size: Option<
        unsafe extern "C" fn(
            *mut c_int,
            *mut c_int,
            CUfunction,
            Option<extern "C" fn(c_int) -> usize>,
            usize,
            c_int,
        ) -> DriverCode,
    >,
    /// Missing only in drivers that run nothing.
    pub(crate) ctx_get_stream_priority_range:
        Option<unsafe extern "C" fn(*mut c_int, *mut c_int) -> DriverCode>,
    /// Since CUDA 12.0.
    pub(crate) stream_get_id: Option<unsafe extern "C" fn(CUstream, *mut u64) -> DriverCode>,
    /// Since CUDA 12.0.
    pub(crate) tensor_map_encode_tiled: Option<TensorMapEncodeTiled>,
    /// Since CUDA 12.0.
    pub(crate) tensor_map_encode_im2col: Option<TensorMapEncodeIm2col>,
    /// Keeps the functions where they are.
    library: Library,
}

/// `CUmemAccessDesc`: who may do what.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PoolAccess {
    location: c_uint,
    device: CUdevice,
    flags: c_uint,
}

impl PoolAccess {
    /// `CU_MEM_LOCATION_TYPE_DEVICE`, `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
    pub(crate) fn read_and_write(device: CUdevice) -> PoolAccess {
        PoolAccess {
            location: 1,
            device,
            flags: 3,
        }
    }
}

/// `CUlaunchConfig`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_mem_bytes: c_uint,
    pub(crate) stream: CUstream,
    pub(crate) attributes: *const SysAttribute,
    pub(crate) attribute_count: c_uint,
}

type LaunchKernelEx = unsafe extern "C" fn(
    *const LaunchConfig,
    CUfunction,
    *mut *mut c_void,
    *mut *mut c_void,
) -> DriverCode;

type LaunchKernel = unsafe extern "C" fn(
    CUfunction,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    CUstream,
    *mut *mut c_void,
    *mut *mut c_void,
) -> DriverCode;

/// With the numbers of the driver's enums: type, interleave, swizzle, promotion and fill.
type TensorMapEncodeTiled = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> DriverCode;

type TensorMapEncodeIm2col = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    *mut c_void,
    *const u64,
    *const u64,
    *const c_int,
    *const c_int,
    c_uint,
    c_uint,
    *const u32,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
) -> DriverCode;

#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";

/// The driver, opened at the first call.
///
/// That there is none is not remembered: one may be installed into the process later.
pub(crate) fn driver() -> Result<&'static Driver, LoadError> {
    match DRIVER.get() {
        Some(driver) => Ok(driver),
        None => open().map(keep),
    }
}

/// What tells a stream from all others of its context, also of those that are gone: the driver's own
/// number where it gives one, else one that no other use has, so that one stream may count as several.
///
/// # Safety
///
/// The stream must live, and its context be current.
pub(crate) unsafe fn stream_id(stream: CUstream) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    let mut id = 0;
    let asked = driver().ok().and_then(|driver| driver.stream_get_id);
    let told = asked.is_some_and(|stream_get_id| {
        // SAFETY: by the caller; `id` takes the answer.
        let code = unsafe { stream_get_id(stream, &raw mut id) };
        code.result().is_ok()
    });
    if told {
        id
    } else {
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

/// Opens the driver and keeps it, if it has devices, and how many; else it is closed again, so that
/// another can take its name.
pub(crate) fn devices() -> Result<u32, LoadError> {
    if let Some(driver) = DRIVER.get() {
        return driver.count_devices();
    }
    let driver = open()?;
    let count = driver.count_devices()?;
    if count > 0 {
        keep(driver);
    }
    Ok(count)
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

fn keep(driver: Driver) -> &'static Driver {
    DRIVER.get_or_init(|| driver)
}

fn open() -> Result<Driver, LoadError> {
    // SAFETY: opening the driver runs its initialisers, which every CUDA program does.
    let library = unsafe { Library::new(LIBRARY) }.map_err(|error| {
        LoadError::from(LoadErrorKind::NoDriver {
            library: LIBRARY,
            // The loader's own words are one level down.
            reason: std::error::Error::source(&error)
                .unwrap_or(&error)
                .to_string(),
        })
    })?;
    macro_rules! function {
        ($name:literal) => {{
            // SAFETY: the type of the field it is assigned to is the function's type in cuda.h.
            let function = unsafe { library.get($name) };
            *function.map_err(|_| {
                LoadError::from(LoadErrorKind::OldDriver {
                    function: std::str::from_utf8($name).unwrap_or_default(),
                })
            })?
        }};
    }
    macro_rules! newer {
        ($name:literal) => {{
            // SAFETY: the type of the field it is assigned to is the function's type in cuda.h.
            let function = unsafe { library.get($name) };
            function.ok().map(|function| *function)
        }};
    }
    Ok(Driver {
        init: function!(b"cuInit"),
        driver_get_version: function!(b"cuDriverGetVersion"),
        device_get_count: function!(b"cuDeviceGetCount"),
        device_get_attribute: function!(b"cuDeviceGetAttribute"),
        ctx_get_current: function!(b"cuCtxGetCurrent"),
        stream_is_capturing: function!(b"cuStreamIsCapturing"),
        stream_synchronize: function!(b"cuStreamSynchronize"),
        module_load_data_ex: function!(b"cuModuleLoadDataEx"),
        module_unload: function!(b"cuModuleUnload"),
        module_get_function: function!(b"cuModuleGetFunction"),
        func_get_attribute: function!(b"cuFuncGetAttribute"),
        func_set_attribute: function!(b"cuFuncSetAttribute"),
        occupancy_max_active_blocks_per_multiprocessor: function!(
            b"cuOccupancyMaxActiveBlocksPerMultiprocessor"
        ),
        launch_kernel: function!(b"cuLaunchKernel"),
        event_elapsed_time: function!(b"cuEventElapsedTime"),
        get_error_name: function!(b"cuGetErrorName"),
        get_error_string: function!(b"cuGetErrorString"),
        func_get_param_info: newer!(b"cuFuncGetParamInfo"),
        module_get_function_count: newer!(b"cuModuleGetFunctionCount"),
        module_enumerate_functions: newer!(b"cuModuleEnumerateFunctions"),
        func_get_name: newer!(b"cuFuncGetName"),
        mem_pool_set_access: newer!(b"cuMemPoolSetAccess"),
        stream_get_id: newer!(b"cuStreamGetId"),
        launch_kernel_ex: newer!(b"cuLaunchKernelEx"),
        occupancy_max_active_clusters: newer!(b"cuOccupancyMaxActiveClusters"),
        occupancy_max_potential_block_size: newer!(b"cuOccupancyMaxPotentialBlockSize"),
        ctx_get_stream_priority_range: newer!(b"cuCtxGetStreamPriorityRange"),
        tensor_map_encode_tiled: newer!(b"cuTensorMapEncodeTiled"),
        tensor_map_encode_im2col: newer!(b"cuTensorMapEncodeIm2col"),
        library,
    })
}

impl Driver {
    /// A function of the driver that is not on the launch path, by its name.
    ///
    /// # Safety
    ///
    /// `F` must be the function's type.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &[u8]) -> Option<F> {
        // SAFETY: by the caller.
        unsafe { self.library.get::<F>(name) }.ok().map(|f| *f)
    }

    fn count_devices(&self) -> Result<u32, LoadError> {
        let unusable = |code| LoadErrorKind::DriverUnusable {
            code,
            cure: cure(code),
        };
        // SAFETY: the flags must be 0.
        unsafe { (self.init)(0) }.result().map_err(unusable)?;
        let mut count = 0;
        // SAFETY: `count` takes the answer.
        unsafe { (self.device_get_count)(&raw mut count) }
            .result()
            .map_err(unusable)?;
        Ok(count.unsigned_abs())
    }

    /// The CUDA version the driver supports: 1000 × major + 10 × minor.
    pub(crate) fn version(&self) -> Result<u32, DriverCode> {
        let mut version = 0;
        // SAFETY: `version` is a place for the answer.
        unsafe { (self.driver_get_version)(&raw mut version) }.result()?;
        Ok(version.unsigned_abs())
    }

    /// The attribute of a device, by its number in `CUdevice_attribute`.
    pub(crate) fn device_attribute(
        &self,
        device: CUdevice,
        attribute: c_int,
    ) -> Result<u32, DriverCode> {
        let mut value = 0;
        // SAFETY: `value` is a place for the answer; the driver refuses unknown devices.
        unsafe { (self.device_get_attribute)(&raw mut value, attribute, device) }.result()?;
        Ok(value.unsigned_abs())
    }

    /// The attribute of a function, by its number in `CUfunction_attribute`.
    ///
    /// # Safety
    ///
    /// `function` must be loaded.
    pub(crate) unsafe fn function_attribute(
        &self,
        function: CUfunction,
        attribute: c_uint,
    ) -> Result<u32, DriverCode> {
        let mut value = 0;
        // SAFETY: `value` is a place for the answer and, by the caller, the function is loaded.
        unsafe { (self.func_get_attribute)(&raw mut value, attribute, function) }.result()?;
        Ok(value.unsigned_abs())
    }
}

/// What helps against an answer of `cuInit`.
fn cure(code: DriverCode) -> &'static str {
    match code.0 {
        34 => "; the library found is the CUDA toolkit's stub: put the driver's own before it",
        100 => {
            "; there is no CUDA device on this machine, or none is visible (CUDA_VISIBLE_DEVICES)"
        }
        803 => "; the driver library does not fit the kernel module: reboot, or update both",
        _ => "",
    }
}

impl DriverCode {
    /// The number, as in `CUresult`.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0
    }

    /// The driver's name of the error, such as `CUDA_ERROR_INVALID_VALUE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.text(|driver| driver.get_error_name)
            .unwrap_or("unknown error")
    }

    /// The driver's description of the error.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.text(|driver| driver.get_error_string)
            .unwrap_or("no description")
    }

    /// Whether the error is of a kernel that ran, and stays with its context for good
    /// ([the driver's description of each](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html)).
    pub(crate) fn breaks_context(self) -> bool {
        // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, and HARDWARE_STACK_ERROR to LAUNCH_FAILED.
        matches!(self.0, 700 | 702 | 710 | 714..=719)
    }

    #[inline(always)]
    pub(crate) fn result(self) -> Result<(), DriverCode> {
        if self == SUCCESS { Ok(()) } else { Err(self) }
    }

    fn text(
        self,
        function: impl Fn(&Driver) -> unsafe extern "C" fn(DriverCode, *mut *const c_char) -> DriverCode,
    ) -> Option<&'static str> {
        let function = function(driver().ok()?);
        let mut text = std::ptr::null();
        // SAFETY: `text` is a place for the answer; an unknown code is refused.
        let answer = unsafe { function(self, &raw mut text) };
        if answer != SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: on success the text is a C string that lives as long as the driver.
        unsafe { CStr::from_ptr(text) }.to_str().ok()
    }
}

impl From<DriverError> for DriverCode {
    fn from(error: DriverError) -> DriverCode {
        DriverCode(error.0 as c_uint)
    }
}

impl fmt::Display for DriverCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.0, self.description())
    }
}

impl fmt::Debug for DriverCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for DriverCode {}
