//! [`timed`] and [`Timer`]: how long the device takes, by events.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cudarc::driver::CudaStream;

use crate::{
    awaiting::{After, after_point},
    buffer::{driver_error, is_capturing, know},
    current::Current,
    error::{BufferError, BufferErrorKind, TimingError},
    event::Event,
};

/// Measures what `work` enqueues on the stream: the time from when the stream comes to it until it
/// is done, to be awaited or [waited](Elapsed::wait) for. The host goes on meanwhile.
///
/// ```no_run
/// use gridcall::{Buffer, cover, kernel, timed};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·x + y
///     #[requires(x.len() >= n, y.len() >= n)]
///     pub safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.default_stream();
/// saxpy::load(&ctx)?;
/// let n = 1 << 24;
/// let x = Buffer::<f32>::zeroed(&stream, n)?;
/// let mut y = Buffer::<f32>::zeroed(&stream, n)?;
/// let elapsed = timed(&stream, |stream| saxpy(stream, cover(n), 1 << 24, 2.0, &x, &mut y))?;
/// println!("{:?}", elapsed.wait()?);
/// # Ok(())
/// # }
/// ```
///
/// # What is measured
///
/// - Two events, one before and one after; the device notes the time with a resolution of about
///   half a microsecond. Waits for other streams count, as does, where the stream is idle, the time
///   that the host takes to enqueue: some microseconds a launch. So let `work` enqueue something
///   short many times, and divide.
/// - What `work` does on other streams is measured only as far as this stream waits for it.
/// - The first launch of a kernel loads it, which is host time: load it before.
///
/// # Errors
///
/// If `work` fails, the stream is being captured, or the driver fails.
pub fn timed<E>(
    stream: &Arc<CudaStream>,
    work: impl FnOnce(&Arc<CudaStream>) -> Result<(), E>,
) -> Result<Elapsed, TimingError<E>> {
    Timer::new(stream).map_err(TimingError::Device)?.time(work)
}

/// Measures on one stream, again and again with the same events; otherwise as [`timed`].
///
/// ```no_run
/// use gridcall::{Buffer, Timer, cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     /// y ← a·y
///     #[requires(y.len() >= n)]
///     pub safe fn scale(y: &mut [f32], a: f32, n: i32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = gridcall::device(0)?.default_stream();
/// let mut y = Buffer::<f32>::zeroed(&stream, 1 << 24)?;
/// let mut timer = Timer::new(&stream)?;
/// let rounds = timer.rounds(20, |stream| scale(stream, cover(1 << 24), &mut y, 1.0, 1 << 24))?;
/// println!("{rounds}"); // median 47.3µs, 46.9µs to 51.2µs in 20 rounds
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Timer {
    stream: Arc<CudaStream>,
    marks: Marks,
    /// Between rounds.
    points: Vec<Event>,
}

/// Two points of a stream.
#[derive(Clone, Debug)]
struct Marks {
    start: Arc<Event>,
    end: Arc<Event>,
}

impl Timer {
    /// For a stream.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    pub fn new(stream: &Arc<CudaStream>) -> Result<Timer, BufferError> {
        know(stream)?;
        Ok(Timer {
            stream: stream.clone(),
            marks: Marks::new(stream)?,
            points: Vec::new(),
        })
    }

    /// Measures what `work` enqueues on the timer's stream, which it is given.
    ///
    /// # Errors
    ///
    /// If `work` fails, the stream is being captured, or the driver fails.
    pub fn time<E>(
        &mut self,
        work: impl FnOnce(&Arc<CudaStream>) -> Result<(), E>,
    ) -> Result<Elapsed, TimingError<E>> {
        if self.marks.are_awaited() {
            self.marks = Marks::new(&self.stream).map_err(TimingError::Device)?;
        }
        mark(&self.stream, &self.marks.start)?;
        work(&self.stream).map_err(TimingError::Work)?;
        mark(&self.stream, &self.marks.end)?;
        Ok(Elapsed(after_point(
            self.marks.end.clone(),
            self.marks.clone(),
        )))
    }

    /// Measures `count` rounds of `work`, enqueued one after another, after one that is not counted;
    /// waits for them.
    ///
    /// # Errors
    ///
    /// If `count` is 0, `work` fails, the stream is being captured, or the device or the driver
    /// fails.
    pub fn rounds<E>(
        &mut self,
        count: usize,
        mut work: impl FnMut(&Arc<CudaStream>) -> Result<(), E>,
    ) -> Result<Rounds, TimingError<E>> {
        if count == 0 {
            return Err(TimingError::NoRounds);
        }
        while self.points.len() <= count {
            let point = new_event(&self.stream).map_err(TimingError::Device)?;
            self.points.push(point);
        }
        let points = &self.points[..=count];
        for point in points {
            work(&self.stream).map_err(TimingError::Work)?;
            mark(&self.stream, point)?;
        }
        times(points).map(Rounds::new).map_err(TimingError::Device)
    }
}

impl Marks {
    fn new(stream: &Arc<CudaStream>) -> Result<Marks, BufferError> {
        Ok(Marks {
            start: Arc::new(new_event(stream)?),
            end: Arc::new(new_event(stream)?),
        })
    }

    /// Whether somebody may still ask for the time between them.
    fn are_awaited(&self) -> bool {
        Arc::strong_count(&self.end) > 1 || Arc::strong_count(&self.start) > 1
    }
}

fn new_event(stream: &Arc<CudaStream>) -> Result<Event, BufferError> {
    Event::with_time(stream.context()).map_err(|e| driver_error("cuEventCreate", e))
}

/// Notes the time at which the stream comes to this point.
fn mark<E>(stream: &Arc<CudaStream>, event: &Event) -> Result<(), TimingError<E>> {
    let _current = Current::enter(stream.context())
        .map_err(|e| TimingError::Device(driver_error("cuCtxSetCurrent", e)))?;
    if is_capturing(stream.cu_stream()).map_err(TimingError::Device)? {
        return Err(TimingError::Capturing);
    }
    // SAFETY: the stream is alive and of the event's context, which is current.
    unsafe { event.record(stream.cu_stream()) }
        .map_err(|e| TimingError::Device(driver_error("cuEventRecord", e)))
}

/// The times between points, once the last of them is reached.
fn times(points: &[Event]) -> Result<Vec<Duration>, BufferError> {
    if let Some(last) = points.last() {
        last.synchronise()
            .map_err(|e| driver_error("cuEventSynchronize", e))?;
    }
    let pairs = points.windows(2);
    pairs.map(|pair| between(&pair[0], &pair[1])).collect()
}

fn between(start: &Event, end: &Event) -> Result<Duration, BufferError> {
    let milliseconds = start
        .milliseconds_until(end)
        .map_err(BufferErrorKind::Elapsed)?;
    // The driver never answers less than 0; what cannot be a time counts as none.
    Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
}

/// What [`timed`] and [`Timer::time`] return: the time that the device takes, once it has.
#[must_use = "it is to be awaited, or waited for"]
#[derive(Debug)]
pub struct Elapsed(After<Marks>);

impl Elapsed {
    /// Whether the device is done.
    ///
    /// # Errors
    ///
    /// If the device or the driver failed.
    pub fn is_done(&self) -> Result<bool, BufferError> {
        self.0.is_done()
    }

    /// Blocks this thread until the device is done, and returns the time that it took.
    ///
    /// # Errors
    ///
    /// If the device or the driver failed.
    pub fn wait(self) -> Result<Duration, BufferError> {
        self.0.wait()?.elapsed()
    }
}

impl Future for Elapsed {
    type Output = Result<Duration, BufferError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.0).poll(context);
        done.map(|marks| marks?.elapsed())
    }
}

impl Marks {
    /// Once the end was waited for.
    fn elapsed(&self) -> Result<Duration, BufferError> {
        between(&self.start, &self.end)
    }
}

/// The times of several rounds; at least one.
///
/// Its `Display` is one line: `median 47.3µs, 46.9µs to 51.2µs in 20 rounds`.
#[derive(Clone, Debug)]
pub struct Rounds {
    times: Vec<Duration>,
    sorted: Vec<Duration>,
}

impl Rounds {
    /// `times` must not be empty.
    fn new(times: Vec<Duration>) -> Rounds {
        let mut sorted = times.clone();
        sorted.sort_unstable();
        Rounds { times, sorted }
    }

    /// All times, in the order of the rounds.
    #[must_use]
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// The shortest.
    #[must_use]
    pub fn min(&self) -> Duration {
        self.sorted[0]
    }

    /// The one in the middle; of an even number, the later of the two.
    #[must_use]
    pub fn median(&self) -> Duration {
        self.sorted[self.sorted.len() / 2]
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.sorted[self.sorted.len() - 1]
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "median {:.1?}, {:.1?} to {:.1?} in {} rounds",
            self.median(),
            self.min(),
            self.max(),
            self.times.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_told_in_a_line() {
        let rounds = Rounds::new([47, 46, 51, 48].map(Duration::from_micros).to_vec());
        assert_eq!(rounds.times()[0], Duration::from_micros(47));
        assert_eq!(rounds.median(), Duration::from_micros(48));
        assert_eq!(
            rounds.to_string(),
            "median 48.0µs, 46.0µs to 51.0µs in 4 rounds"
        );
    }
}
