//! Opens a device.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::CudaContext;

use crate::{
    driver::devices,
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
/// With the feature `emulator`, a machine without a driver or without devices gets the emulator's,
/// which all that uses CUDA in this process then sees. `GRIDCALL_DRIVER=cuda` in the environment
/// takes the driver alone, `GRIDCALL_DRIVER=emulator` the emulator also where there is a driver.
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
/// used, there is no such device, or the emulator that was asked for cannot be installed.
pub fn device(ordinal: usize) -> Result<Arc<CudaContext>, LoadError> {
    let count = select()?;
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

/// Settles on the driver or on the emulator in its place, and counts the devices.
fn select() -> Result<u32, LoadError> {
    let choice = std::env::var_os("GRIDCALL_DRIVER").unwrap_or_default();
    match choice.to_str() {
        Some("cuda") => devices(),
        Some("emulator") => emulator(),
        Some("") if cfg!(feature = "emulator") => match devices() {
            Ok(count) if count > 0 => Ok(count),
            _ => emulator(),
        },
        Some("") => devices(),
        _ => {
            let choice = choice.to_string_lossy().into_owned();
            Err(LoadErrorKind::UnknownChoice { choice }.into())
        }
    }
}

#[cfg(feature = "emulator")]
fn emulator() -> Result<u32, LoadError> {
    gridcall_emulator::install().map_err(LoadErrorKind::Emulator)?;
    devices()
}

#[cfg(not(feature = "emulator"))]
fn emulator() -> Result<u32, LoadError> {
    Err(LoadErrorKind::NoEmulator.into())
}
