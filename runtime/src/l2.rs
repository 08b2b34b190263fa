//! The part of a device's L2 cache that is set aside for persisting accesses.

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, sys};

use crate::current::Current;

/// What of the L2 cache of a device is set aside for
/// [persisting](crate::AccessProperty::Persisting) accesses, which other accesses then do not push out
/// ([L2 set-aside]).
///
/// The driver sets a part aside by itself (of an H200's 60 MB, 11.8). What all launches make persist shares
/// it, whoever they are of. In MIG mode there is none, and under the multi-process service it is set where
/// that is started.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use gridcall::PersistingL2;
/// let ctx = gridcall::device(0)?;
/// let l2 = PersistingL2::of(&ctx);
/// let (before, most) = (l2.bytes()?, l2.max_bytes()?);
/// let granted = l2.set_bytes(most / 2)?;
/// assert!(granted >= most / 2 && l2.bytes()? == granted);
/// // For what runs next.
/// l2.set_bytes(before)?;
/// # Ok(())
/// # }
/// ```
///
/// [L2 set-aside]: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#l2-cache-set-aside-for-persisting-accesses
#[derive(Clone, Debug)]
pub struct PersistingL2 {
    context: Arc<CudaContext>,
}

/// Why nothing of the L2 cache was set aside, given back or told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum L2Error {
    /// More than the device can set aside.
    #[error(
        "cannot set {asked} bytes of the L2 cache of device {device} aside, {limit} are the most"
    )]
    TooLarge {
        /// The bytes asked for.
        asked: usize,
        /// The device's limit in bytes; 0 if nothing can be set aside.
        limit: usize,
        /// The device.
        device: usize,
    },
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        source: DriverError,
    },
}

impl PersistingL2 {
    /// That of the context's device.
    #[must_use]
    pub fn of(context: &Arc<CudaContext>) -> PersistingL2 {
        PersistingL2 {
            context: context.clone(),
        }
    }

    /// The most bytes that can be set aside; 0 before compute capability 8.0.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn max_bytes(&self) -> Result<usize, L2Error> {
        use sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE as MOST;
        let most = self.context.attribute(MOST);
        let most = most.map_err(|source| failed("cuDeviceGetAttribute", source))?;
        Ok(usize::try_from(most).unwrap_or(0))
    }

    /// The bytes that are set aside now; the driver's choice until somebody says so.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn bytes(&self) -> Result<usize, L2Error> {
        let _current = self.enter()?;
        let mut bytes = 0;
        // SAFETY: the context is current, and `bytes` takes the answer.
        unsafe { sys::cuCtxGetLimit(&raw mut bytes, LIMIT) }
            .result()
            .map_err(|source| failed("cuCtxGetLimit", source))?;
        Ok(bytes)
    }

    /// Sets so many bytes aside, and gives back how many the driver made of them: it takes the next larger of
    /// a few sizes (ten on an H200). It stays so for all that use the context.
    ///
    /// # Errors
    ///
    /// If it is more than [`max_bytes`](PersistingL2::max_bytes), or the driver refuses.
    pub fn set_bytes(&self, bytes: usize) -> Result<usize, L2Error> {
        let limit = self.max_bytes()?;
        if bytes > limit {
            return Err(L2Error::TooLarge {
                asked: bytes,
                limit,
                device: self.context.ordinal(),
            });
        }
        let _current = self.enter()?;
        // SAFETY: the context is current.
        unsafe { sys::cuCtxSetLimit(LIMIT, bytes) }
            .result()
            .map_err(|source| failed("cuCtxSetLimit", source))?;
        self.bytes()
    }

    /// Lets all that persists in the cache be pushed out again, as what was accessed normally. Do so when a
    /// part of a program is done with what it kept: otherwise it takes the place of what the next would
    /// keep for a long time.
    ///
    /// Kernels that are still enqueued may make more persist; wait for them first.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn reset(&self) -> Result<(), L2Error> {
        let _current = self.enter()?;
        // SAFETY: the context is current.
        unsafe { sys::cuCtxResetPersistingL2Cache() }
            .result()
            .map_err(|source| failed("cuCtxResetPersistingL2Cache", source))
    }

    fn enter(&self) -> Result<Current, L2Error> {
        Current::enter(&self.context).map_err(|source| failed("cuCtxSetCurrent", source))
    }
}

const LIMIT: sys::CUlimit = sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE;

#[cold]
fn failed(call: &'static str, source: DriverError) -> L2Error {
    L2Error::Driver { call, source }
}
