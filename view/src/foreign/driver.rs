//! The driver's functions that ordering needs, resolved once from the library that is loaded.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    fmt,
    sync::OnceLock,
};

use crate::ViewError;

#[cfg(test)]
pub(crate) mod fake;

/// A `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) c_uint);

impl Code {
    pub(crate) const SUCCESS: Code = Code(0);
    pub(crate) const NOT_READY: Code = Code(600);
    pub(crate) const CAPTURED_EVENT: Code = Code(907);

    /// Whether a stream that is being captured, perhaps on another thread, kept the driver from
    /// answering.
    pub(crate) fn is_of_capture(self) -> bool {
        (900..=908).contains(&self.0)
    }
}

type Handle = *mut c_void;

/// The functions, by their names in the driver's header without the prefix.
pub(crate) struct Driver {
    pub(crate) ctx_push_current: unsafe extern "C" fn(Handle) -> Code,
    pub(crate) ctx_pop_current: unsafe extern "C" fn(*mut Handle) -> Code,
    pub(crate) ctx_synchronize: unsafe extern "C" fn() -> Code,
    #[cfg(feature = "pyo3")]
    pub(crate) device_get_count: unsafe extern "C" fn(*mut c_int) -> Code,
    #[cfg(feature = "pyo3")]
    pub(crate) pointer_get_attribute: unsafe extern "C" fn(Handle, c_uint, u64) -> Code,
    #[cfg(feature = "pyo3")]
    pub(crate) mem_alloc_async: unsafe extern "C" fn(*mut u64, usize, Handle) -> Code,
    #[cfg(feature = "pyo3")]
    pub(crate) mem_free_async: unsafe extern "C" fn(u64, Handle) -> Code,
    pub(crate) device_get: unsafe extern "C" fn(*mut c_int, c_int) -> Code,
    pub(crate) primary_ctx_retain: unsafe extern "C" fn(*mut Handle, c_int) -> Code,
    pub(crate) primary_ctx_release: unsafe extern "C" fn(c_int) -> Code,
    pub(crate) stream_get_ctx: unsafe extern "C" fn(Handle, *mut Handle) -> Code,
    pub(crate) stream_get_flags: unsafe extern "C" fn(Handle, *mut c_uint) -> Code,
    pub(crate) stream_is_capturing: unsafe extern "C" fn(Handle, *mut c_uint) -> Code,
    pub(crate) stream_wait_event: unsafe extern "C" fn(Handle, Handle, c_uint) -> Code,
    pub(crate) event_create: unsafe extern "C" fn(*mut Handle, c_uint) -> Code,
    pub(crate) event_record: unsafe extern "C" fn(Handle, Handle) -> Code,
    pub(crate) event_query: unsafe extern "C" fn(Handle) -> Code,
    pub(crate) event_destroy: unsafe extern "C" fn(Handle) -> Code,
    pub(crate) thread_exchange_stream_capture_mode: unsafe extern "C" fn(*mut c_uint) -> Code,
    get_error_name: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    get_error_string: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    /// Keeps the functions where they are; none in tests.
    _library: Option<libloading::Library>,
}

#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";

/// The driver, opened at the first call.
#[inline]
#[cfg_attr(
    test,
    expect(
        clippy::unnecessary_wraps,
        reason = "only the tests' driver is always there"
    )
)]
pub(crate) fn driver() -> Result<&'static Driver, ViewError> {
    #[cfg(test)]
    return Ok(&fake::FAKE);
    #[cfg(not(test))]
    opened()
}

#[cfg_attr(test, expect(dead_code, reason = "tests open no driver"))]
fn opened() -> Result<&'static Driver, ViewError> {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let driver = open()?;
    Ok(DRIVER.get_or_init(|| driver))
}

#[cold]
fn open() -> Result<Driver, ViewError> {
    // SAFETY: opening the driver runs its initialisers, which every CUDA program does.
    let library = unsafe { libloading::Library::new(LIBRARY) }.map_err(|error| {
        ViewError::other(format!(
            "its uses must be ordered by the CUDA driver, and {LIBRARY} cannot be opened: {error}"
        ))
    })?;
    macro_rules! function {
        ($name:literal) => {{
            // SAFETY: the type of the field it is assigned to is the function's type in cuda.h.
            let function = unsafe { library.get($name) };
            *function.map_err(|error| ViewError::driver("opening the CUDA driver", error))?
        }};
    }
    Ok(Driver {
        ctx_push_current: function!(b"cuCtxPushCurrent_v2"),
        ctx_pop_current: function!(b"cuCtxPopCurrent_v2"),
        ctx_synchronize: function!(b"cuCtxSynchronize"),
        #[cfg(feature = "pyo3")]
        device_get_count: function!(b"cuDeviceGetCount"),
        #[cfg(feature = "pyo3")]
        pointer_get_attribute: function!(b"cuPointerGetAttribute"),
        #[cfg(feature = "pyo3")]
        mem_alloc_async: function!(b"cuMemAllocAsync"),
        #[cfg(feature = "pyo3")]
        mem_free_async: function!(b"cuMemFreeAsync"),
        device_get: function!(b"cuDeviceGet"),
        primary_ctx_retain: function!(b"cuDevicePrimaryCtxRetain"),
        primary_ctx_release: function!(b"cuDevicePrimaryCtxRelease_v2"),
        stream_get_ctx: function!(b"cuStreamGetCtx"),
        stream_get_flags: function!(b"cuStreamGetFlags"),
        stream_is_capturing: function!(b"cuStreamIsCapturing"),
        stream_wait_event: function!(b"cuStreamWaitEvent"),
        event_create: function!(b"cuEventCreate"),
        event_record: function!(b"cuEventRecord"),
        event_query: function!(b"cuEventQuery"),
        event_destroy: function!(b"cuEventDestroy_v2"),
        thread_exchange_stream_capture_mode: function!(b"cuThreadExchangeStreamCaptureMode"),
        get_error_name: function!(b"cuGetErrorName"),
        get_error_string: function!(b"cuGetErrorString"),
        _library: Some(library),
    })
}

impl Driver {
    /// The answer of the driver's function `call` as a result.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, code: Code) -> Result<(), ViewError> {
        if code == Code::SUCCESS {
            return Ok(());
        }
        Err(ViewError::driver(call, self.describe(code)))
    }

    #[cold]
    fn describe(&self, code: Code) -> DriverError {
        let text = |function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code| {
            let mut text = std::ptr::null();
            // SAFETY: `text` is a place for the answer; an unknown code is refused.
            let answer = unsafe { function(code, &raw mut text) };
            if answer != Code::SUCCESS || text.is_null() {
                return None;
            }
            // SAFETY: on success the text is a C string that lives as long as the driver.
            unsafe { CStr::from_ptr(text) }.to_str().ok()
        };
        DriverError {
            code: code.0,
            name: text(self.get_error_name).unwrap_or("unknown error"),
            description: text(self.get_error_string).unwrap_or("no description"),
        }
    }
}

/// A failure of the driver in its own words.
#[derive(Debug)]
struct DriverError {
    code: u32,
    name: &'static str,
    description: &'static str,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name, self.code, self.description)
    }
}

impl std::error::Error for DriverError {}
