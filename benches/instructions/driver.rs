//! Asks the counting driver how often its functions were called.

use std::{
    error::Error,
    ffi::{CStr, c_char},
};

use libloading::Library;

type DriverCalls = unsafe extern "C" fn(usize, *mut u64) -> *const c_char;

/// The counting driver.
pub(crate) struct Driver {
    calls: DriverCalls,
    _library: Library,
}

impl Driver {
    /// Finds it, instead of a real one.
    pub(crate) fn open() -> Result<Driver, Box<dyn Error>> {
        // SAFETY: neither the counting driver nor a real one does anything unusual when opened.
        let library = unsafe { Library::new("libcuda.so.1") }?;
        // SAFETY: the type is the function's in driver.c.
        let calls = *unsafe { library.get::<DriverCalls>(b"driver_calls") }
            .map_err(|_| "the driver found is not the counting one; start this by run.sh")?;
        Ok(Driver {
            calls,
            _library: library,
        })
    }

    /// The driver's functions, and how often each was called so far.
    pub(crate) fn calls(&self) -> Vec<(&'static str, u64)> {
        let mut all = Vec::new();
        loop {
            let mut count = 0;
            // SAFETY: `count` takes the answer; an index behind the last is answered with null.
            let name = unsafe { (self.calls)(all.len(), &raw mut count) };
            if name.is_null() {
                return all;
            }
            // SAFETY: the names are constants of the library, which stays loaded with cudarc.
            let name = unsafe { CStr::from_ptr(name) };
            all.push((name.to_str().unwrap_or("?"), count));
        }
    }
}
