//! Where an address lies, for protocols that do not say.

use std::{ffi::c_int, sync::OnceLock};

use super::driver::{Code, driver};
use crate::{Place, ViewError};

/// Whether the machine has one device only, so that no array needs to be asked for its own.
#[inline]
pub(crate) fn one_device() -> bool {
    static ONE: OnceLock<bool> = OnceLock::new();
    *ONE.get_or_init(|| {
        let Ok(driver) = driver() else { return false };
        let mut count = 0;
        // SAFETY: `count` takes the answer.
        let code = unsafe { (driver.device_get_count)(&raw mut count) };
        code == Code::SUCCESS && count == 1
    })
}

/// The place of the memory at an address.
pub(crate) fn place_of(pointer: u64) -> Result<Place, ViewError> {
    /// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, `_IS_MANAGED` and `_DEVICE_ORDINAL`.
    const MEMORY_TYPE: u32 = 2;
    const IS_MANAGED: u32 = 8;
    const DEVICE_ORDINAL: u32 = 9;
    /// `CU_MEMORYTYPE_HOST`.
    const HOST: c_int = 1;
    let driver = driver()?;
    let attribute = |attribute| {
        let mut value: c_int = 0;
        // SAFETY: each of these attributes has four bytes at most; an unknown address is refused.
        let code =
            unsafe { (driver.pointer_get_attribute)((&raw mut value).cast(), attribute, pointer) };
        if code == Code::SUCCESS {
            return Ok(value);
        }
        Err(ViewError::other(format!(
            "the driver knows no memory at its address {pointer:#x}; it is plain host memory, or has been freed"
        )))
    };
    if attribute(IS_MANAGED)? != 0 || attribute(MEMORY_TYPE)? == HOST {
        return Ok(Place::Everywhere);
    }
    Ok(Place::Device(attribute(DEVICE_ORDINAL)?))
}
