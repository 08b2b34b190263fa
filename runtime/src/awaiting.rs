//! [`after`] and [`after_event`]: what is enqueued on a stream as a future, or to be waited for.

mod poller;

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use cudarc::driver::{CudaEvent, CudaStream, result};

use self::poller::Wait;
use crate::{
    buffer::{driver_error, is_capturing, know},
    current::Current,
    error::{BufferError, BufferErrorKind},
    event::{Event, ends_context},
};

/// Owns `owned` until all that is enqueued on the stream now is done: launches, copies, graphs,
/// and whatever they wait for. Gives it back to whoever awaits, or [waits](After::wait), for that.
///
/// ```no_run
/// use gridcall::{Buffer, after, cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.new_stream()?;
/// let x = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 3.0])?;
/// let mut y = Buffer::<f32>::zeroed(&stream, 3)?;
/// saxpy(&stream, cover(3), 3, 2.0, &x, &mut y)?;
/// let (x, y) = after(&stream, (x, y))?.await?;
/// # Ok(())
/// # }
/// ```
///
/// The future works in any executor. One thread of this process, whatever the number of futures,
/// looks which are done, and sleeps while there are none. Nothing is enqueued but one event, and
/// no callback runs in the stream, which the driver would skip after an error.
///
/// Dropping the future keeps `owned` until the device is done, and drops it then on that thread.
/// Forgetting it never drops `owned`.
///
/// # Errors
///
/// If the stream is being captured, in which case `owned` leaks; or if the driver fails. The host
/// then waits for the stream and drops `owned`, or where it cannot wait, lets it leak.
pub fn after<T: Send + 'static>(
    stream: &Arc<CudaStream>,
    owned: T,
) -> Result<After<T>, BufferError> {
    match record(stream) {
        Ok(event) => Ok(After {
            state: State::Pending(Arc::new(event), owned),
            wait: None,
        }),
        Err(error) => {
            // A wait would disturb the capture.
            if error.is_capturing() || !is_quiet(stream) {
                // What is enqueued may use it, and nobody can tell until when.
                mem::forget(owned);
            }
            Err(error)
        }
    }
}

/// Owns `owned` until what the event was recorded for is done; otherwise as [`after`].
///
/// An event that was never recorded is done.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.new_stream()?;
/// let event = stream.record_event(None)?;
/// // More is enqueued, which is not waited for.
/// gridcall::after_event(event, ()).await?;
/// # Ok(())
/// # }
/// ```
pub fn after_event<T: Send + 'static>(event: CudaEvent, owned: T) -> After<T> {
    after_point(Arc::new(Event::of_cudarc(event)), owned)
}

/// Owns `owned` until what the event was recorded for is done.
pub(crate) fn after_point<T: Send + 'static>(event: Arc<Event>, owned: T) -> After<T> {
    After {
        state: State::Pending(event, owned),
        wait: None,
    }
}

/// Waits for the stream on the host. Whether that was possible.
fn is_quiet(stream: &CudaStream) -> bool {
    Current::enter(stream.context()).is_ok_and(|_current| {
        // SAFETY: the stream is alive and its context current.
        unsafe { result::stream::synchronize(stream.cu_stream()) }.is_ok()
    })
}

/// An event at the stream's present end.
fn record(stream: &Arc<CudaStream>) -> Result<Event, BufferError> {
    let context = stream.context();
    know(stream)?;
    let _current = Current::enter(context).map_err(|e| driver_error("cuCtxSetCurrent", e))?;
    if is_capturing(stream.cu_stream())? {
        return Err(BufferErrorKind::Capturing.into());
    }
    let event = Event::blocking(context).map_err(|e| driver_error("cuEventCreate", e))?;
    // SAFETY: the stream is alive and of the event's context, which is current.
    unsafe { event.record(stream.cu_stream()) }.map_err(|e| driver_error("cuEventRecord", e))?;
    Ok(event)
}

/// What [`after`] and [`after_event`] return: owns a `T` until the device is done.
#[must_use = "dropping it only keeps what it owns until the device is done"]
pub struct After<T: Send + 'static> {
    state: State<T>,
    /// Once it was polled and not done.
    wait: Option<Arc<Wait>>,
}

enum State<T> {
    Pending(Arc<Event>, T),
    Taken,
}

impl<T: Send + 'static> After<T> {
    /// Whether the device is done.
    ///
    /// # Errors
    ///
    /// If the device or the driver failed.
    pub fn is_done(&self) -> Result<bool, BufferError> {
        match &self.state {
            State::Pending(event, _) => {
                event.is_done().map_err(|e| driver_error("cuEventQuery", e))
            }
            State::Taken => Ok(true),
        }
    }

    /// Blocks this thread until the device is done.
    ///
    /// # Errors
    ///
    /// If the device or the driver failed. What it owned is then dropped, as by dropping the
    /// future: nothing runs any more in a context that failed.
    pub fn wait(mut self) -> Result<T, BufferError> {
        match mem::replace(&mut self.state, State::Taken) {
            State::Pending(event, owned) => match event.synchronise() {
                Ok(()) => Ok(owned),
                Err(error) => {
                    if !ends_context(error) {
                        poller::keep(event, Box::new(owned));
                    }
                    Err(driver_error("cuEventSynchronize", error))
                }
            },
            // A future that has been ready.
            State::Taken => Err(BufferErrorKind::Taken.into()),
        }
    }
}

impl<T: Send + 'static> Future for After<T> {
    type Output = Result<T, BufferError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let State::Pending(event, _) = &this.state else {
            return Poll::Ready(Err(BufferErrorKind::Taken.into()));
        };
        let done = match event.is_done() {
            Ok(false) => {
                let wait = this
                    .wait
                    .get_or_insert_with(|| Arc::new(Wait::new(event.clone())));
                match poller::watch(wait, context.waker()) {
                    Ok(()) => return Poll::Pending,
                    Err(error) => Err(BufferErrorKind::Thread(error).into()),
                }
            }
            Ok(true) => Ok(()),
            Err(error) => Err(driver_error("cuEventQuery", error)),
        };
        match done {
            Ok(()) => match mem::replace(&mut this.state, State::Taken) {
                State::Pending(_, owned) => Poll::Ready(Ok(owned)),
                State::Taken => Poll::Ready(Err(BufferErrorKind::Taken.into())),
            },
            // What it owns is kept, and dropped with it.
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

// Nothing in it is pinned.
impl<T: Send + 'static> Unpin for After<T> {}

impl<T: Send + 'static> Drop for After<T> {
    fn drop(&mut self) {
        if let Some(wait) = self.wait.take() {
            wait.forget_waker();
        }
        if let State::Pending(event, owned) = mem::replace(&mut self.state, State::Taken) {
            match event.is_done() {
                Ok(true) => drop(owned),
                Err(error) if ends_context(error) => drop(owned),
                Ok(false) | Err(_) => poller::keep(event, Box::new(owned)),
            }
        }
    }
}

impl<T: Send + 'static> fmt::Debug for After<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").finish_non_exhaustive()
    }
}
