//! Opens a device.

use std::{
    ffi::c_int,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use cudarc::driver::CudaContext;

use crate::{
    driver::{DriverCode, driver},
    error::{LoadError, LoadErrorKind},
};

/// The primary context of a device, counted from 0, through cudarc.
///
/// As long as anyone holds it, every call returns the same object: cudarc decides for each context
/// object whether several streams are in use, and two objects would not know of each other's.
///
/// Unlike `CudaContext::new`, which panics where there is no driver, this returns an error that
/// says what was looked for.
///
/// ```no_run
/// let ctx = gridcall::device(0)?;
/// println!("{}", ctx.name()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If there is no driver (`libcuda.so.1`, on Windows `nvcuda.dll`), it is too old or cannot be
/// used, or there is no such device.
pub fn device(ordinal: usize) -> Result<Arc<CudaContext>, LoadError> {
    let driver = driver()?;
    // SAFETY: the flags must be 0.
    let code = unsafe { (driver.init)(0) };
    code.result()
        .map_err(|code| LoadErrorKind::DriverUnusable {
            code,
            cure: cure(code),
        })?;
    let mut count: c_int = 0;
    // SAFETY: `count` takes the answer.
    let code = unsafe { (driver.device_get_count)(&raw mut count) };
    code.result()
        .map_err(|code| LoadErrorKind::DriverUnusable {
            code,
            cure: cure(code),
        })?;
    let count = count.unsigned_abs();
    if ordinal >= count as usize {
        return Err(LoadErrorKind::NoDevice { ordinal, count }.into());
    }
    static OPEN: Mutex<Vec<Weak<CudaContext>>> = Mutex::new(Vec::new());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|context| context.strong_count() > 0);
    if let Some(context) = open
        .iter()
        .filter_map(Weak::upgrade)
        .find(|context| context.ordinal() == ordinal)
    {
        return Ok(context);
    }
    let context =
        CudaContext::new(ordinal).map_err(|source| LoadErrorKind::Context { ordinal, source })?;
    open.push(Arc::downgrade(&context));
    Ok(context)
}

/// What helps against an answer of `cuInit`.
fn cure(code: DriverCode) -> &'static str {
    match code.code() {
        34 => "; the library found is the CUDA toolkit's stub: put the driver's own before it",
        100 => {
            "; there is no CUDA device on this machine, or none is visible (CUDA_VISIBLE_DEVICES)"
        }
        803 => "; the driver library does not fit the kernel module: reboot, or update both",
        _ => "",
    }
}
