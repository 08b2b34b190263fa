//! A measurement that cannot be made.

use super::BufferError;

/// Why something could not be measured; `E` is the error of what was to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError<E> {
    /// What was to be measured failed.
    #[error("{0}")]
    Work(E),
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph, in which nothing runs that could be measured; measure the launch of the graph"
    )]
    Capturing,
    /// The device or the driver failed.
    #[error("cannot measure: {0}")]
    Device(BufferError),
    /// No rounds were asked for.
    #[error("cannot measure 0 rounds")]
    NoRounds,
}
