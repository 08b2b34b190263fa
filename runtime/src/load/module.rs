//! The module of an image in one context, which all declarations over the image share.

use std::{
    ffi::{CStr, CString, c_uint, c_void},
    fmt, ptr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use cudarc::driver::{
    CudaContext,
    sys::{CUfunction, CUmodule},
};

use super::{
    Found,
    explain::{explain_load, readable_log},
    failed,
};
use crate::{
    declaration::{Declaration, Image},
    driver::{Driver, DriverCode, SUCCESS},
    error::{LoadError, LoadErrorKind},
    module::instead,
    symbol::Claims,
    trace,
};

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
    pub(super) handle: CUmodule,
    /// What messages call it.
    pub(super) name: String,
    /// The ordinal of the context's device.
    device: usize,
    pub(super) context: Weak<CudaContext>,
    pub(super) driver: &'static Driver,
    /// What is relied on of its variables.
    pub(super) claims: Claims,
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
    pub(super) fn shared(
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

    pub(super) fn function(
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
