//! The ways to launch a kernel that the benchmarks compare, each as a [`Contender`].
//!
//! What is not part of a launch, such as loading, allocating and a C programmer's parameter array,
//! is prepared beforehand; what a caller passes at each launch is passed at each launch.

use std::error::Error;

pub mod bare;
pub mod builder;
pub mod graphs;
pub mod kernels;
pub mod line_up;
pub mod ours;
pub mod scene;

/// One way to launch one kernel.
pub trait Contender {
    /// Launches once.
    ///
    /// # Errors
    ///
    /// If the launch fails.
    fn launch(&mut self) -> Result<(), Box<dyn Error>>;
}

/// Launches so many times, each time through the contender's table, so that nothing is optimised
/// across launches. Instructions are counted within this function.
///
/// # Errors
///
/// If a launch fails.
#[inline(never)]
pub fn measured(contender: &mut dyn Contender, launches: usize) -> Result<(), Box<dyn Error>> {
    for _ in 0..launches {
        contender.launch()?;
    }
    Ok(())
}
