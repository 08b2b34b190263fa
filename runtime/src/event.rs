//! A point of a stream.

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use cudarc::driver::{CudaContext, CudaEvent, DriverError, result, sys};

use crate::{
    current::Current,
    driver::{DriverCode, NOT_INITIALIZED, driver},
    relaxed::RelaxedCapture,
};

/// A driver's event that knows whether it has been recorded: one that has not counts as complete
/// for the driver, and must not for us.
#[derive(Debug)]
pub(crate) struct Event {
    raw: sys::CUevent,
    context: Arc<CudaContext>,
    recorded: AtomicBool,
    /// Never given to another.
    serial: u64,
    /// What the driver's event belongs to, if not to this.
    owner: Option<CudaEvent>,
}

// SAFETY: the driver's functions may be called with an event from any thread; the rest is plain.
unsafe impl Send for Event {}
// SAFETY: as for `Send`.
unsafe impl Sync for Event {}

/// `CU_EVENT_BLOCKING_SYNC`: a thread that waits sleeps. The device then interrupts the host, which
/// makes recording such an event take 1000 ns instead of 190 (H200).
const BLOCKING_SYNC: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

impl Event {
    /// An event for streams to wait for.
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Event, DriverError> {
        Event::with_flags(context, DISABLE_TIMING)
    }

    /// An event for the host to wait for, asleep.
    pub(crate) fn blocking(context: &Arc<CudaContext>) -> Result<Event, DriverError> {
        Event::with_flags(context, DISABLE_TIMING | BLOCKING_SYNC)
    }

    /// An event that notes when it is reached. A host that waits for it does not sleep.
    pub(crate) fn with_time(context: &Arc<CudaContext>) -> Result<Event, DriverError> {
        Event::with_flags(context, 0)
    }

    fn with_flags(context: &Arc<CudaContext>, flags: u32) -> Result<Event, DriverError> {
        let _current = Current::enter(context)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a context is current and `raw` takes the answer.
        unsafe { sys::cuEventCreate(&raw mut raw, flags) }.result()?;
        Ok(Event {
            raw,
            context: context.clone(),
            recorded: AtomicBool::new(false),
            serial: next_serial(),
            owner: None,
        })
    }

    /// An event of cudarc, as it has been recorded.
    pub(crate) fn of_cudarc(event: CudaEvent) -> Event {
        Event {
            raw: event.cu_event(),
            context: event.context().clone(),
            recorded: AtomicBool::new(true),
            serial: next_serial(),
            owner: Some(event),
        }
    }

    /// The handle of its context.
    pub(crate) fn context(&self) -> sys::CUcontext {
        self.context.cu_ctx()
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.load(Ordering::Acquire)
    }

    /// Lets the event stand for all that is enqueued on the stream now.
    ///
    /// # Safety
    ///
    /// `stream` must be a stream of the event's context, which must be current.
    pub(crate) unsafe fn record(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        // SAFETY: by the caller; the event lives until it is dropped.
        unsafe { result::event::record(self.raw, stream) }?;
        self.recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes the stream wait for what the event stands for.
    ///
    /// # Safety
    ///
    /// `stream` must be a stream of the context that is current.
    pub(crate) unsafe fn wait_on(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: by the caller; the event lives until it is dropped.
        unsafe { result::stream::wait_event(stream, self.raw, flags) }
    }

    /// Whether all that the event stands for is done. Disturbs no capture.
    pub(crate) fn is_done(&self) -> Result<bool, DriverError> {
        let _current = Current::enter(&self.context)?;
        let _relaxed = RelaxedCapture::enter();
        // SAFETY: the event lives until it is dropped.
        match unsafe { result::event::query(self.raw) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits on the host until all that the event stands for is done.
    pub(crate) fn synchronise(&self) -> Result<(), DriverError> {
        let _current = Current::enter(&self.context)?;
        // SAFETY: the event lives until it is dropped.
        unsafe { result::event::synchronize(self.raw) }
    }

    /// The time from when this was reached until `end` was. Both must note it, and be done.
    pub(crate) fn milliseconds_until(&self, end: &Event) -> Result<f32, DriverCode> {
        // An event was made, so there is a driver.
        let elapsed = driver().map_err(|_| NOT_INITIALIZED)?.event_elapsed_time;
        let mut milliseconds = 0.0;
        // SAFETY: both events live until they are dropped; `milliseconds` takes the answer.
        unsafe { elapsed(&raw mut milliseconds, self.raw, end.raw) }.result()?;
        Ok(milliseconds)
    }

    /// Waits on the host until everything in the event's context is done.
    pub(crate) fn synchronise_context(&self) -> Result<(), DriverError> {
        let _current = Current::enter(&self.context)?;
        result::ctx::synchronize()
    }
}

/// Whether nothing runs in the context any more after this error, nor ever will. Others say only
/// that the driver did not answer, as while a graph is captured.
pub(crate) fn ends_context(error: DriverError) -> bool {
    use sys::CUresult as Code;
    matches!(
        error.0,
        Code::CUDA_ERROR_DEINITIALIZED
            | Code::CUDA_ERROR_ECC_UNCORRECTABLE
            | Code::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | Code::CUDA_ERROR_ILLEGAL_ADDRESS
            | Code::CUDA_ERROR_LAUNCH_TIMEOUT
            | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | Code::CUDA_ERROR_ASSERT
            | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
            | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | Code::CUDA_ERROR_MISALIGNED_ADDRESS
            | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | Code::CUDA_ERROR_INVALID_PC
            | Code::CUDA_ERROR_LAUNCH_FAILED
    )
}

fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.owner.is_some() {
            return;
        }
        let Ok(_current) = Current::enter(&self.context) else {
            return;
        };
        // Destroying an event with work pending is allowed; there is nobody to tell of a failure,
        // which leaks it.
        // SAFETY: nobody else has it.
        let _ = unsafe { result::event::destroy(self.raw) };
    }
}
