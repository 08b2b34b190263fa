//! Failures that a test asks for.

/// What is to fail, counted from the moment of asking: `Launch(1)` is the next launch.
///
/// # Examples
///
/// ```
/// use gridcall_emulator::{Device, Failure};
///
/// # fn main() -> Result<(), gridcall_emulator::InstallError> {
/// let device = Device::fresh()?;
/// device.fail(Failure::Allocation(2));
/// // The second allocation from here on answers `CUDA_ERROR_OUT_OF_MEMORY`.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// An allocation answers `CUDA_ERROR_OUT_OF_MEMORY`.
    Allocation(u32),
    /// Loading a module answers `CUDA_ERROR_INVALID_IMAGE`.
    Load(u32),
    /// A launch answers `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
    Launch(u32),
    /// A launch succeeds, but its kernel stops with `CUDA_ERROR_LAUNCH_FAILED` when it is run.
    Late(u32),
}

/// The failures asked for and not come yet.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<Failure>);

/// Where a failure may come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Allocation,
    Load,
    Launch,
    Late,
}

impl Failures {
    pub(crate) fn add(&mut self, failure: Failure) {
        self.0.push(failure);
    }

    /// Counts one more at a place, and says whether it is to fail.
    pub(crate) fn strike(&mut self, place: Place) -> bool {
        let mut struck = false;
        self.0.retain_mut(|failure| {
            let (kind, left) = match failure {
                Failure::Allocation(left) => (Place::Allocation, left),
                Failure::Load(left) => (Place::Load, left),
                Failure::Launch(left) => (Place::Launch, left),
                Failure::Late(left) => (Place::Late, left),
            };
            if kind != place {
                return true;
            }
            *left = left.saturating_sub(1);
            struck |= *left == 0;
            *left > 0
        });
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_nth_fails() {
        let mut failures = Failures::default();
        failures.add(Failure::Launch(2));
        assert!(!failures.strike(Place::Allocation));
        assert!(!failures.strike(Place::Launch));
        assert!(failures.strike(Place::Launch));
        assert!(!failures.strike(Place::Launch));
    }
}
