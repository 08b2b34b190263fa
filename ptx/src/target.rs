//! What a text is written for: the version of the language and the architecture.

use std::fmt;

/// A version of the PTX language, as `.version` gives it.
///
/// ```
/// let module = gridcall_ptx::Module::parse(".version 8.7\n.target sm_75")?;
/// assert!(module.version() < gridcall_ptx::Version { major: 8, minor: 10 });
/// assert_eq!(module.version().to_string(), "8.7");
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number behind the dot.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What `.target` names: an architecture and options.
///
/// ```
/// use gridcall_ptx::{Arch, Module, Suffix};
///
/// let module = Module::parse(".version 8.7\n.target sm_90a, debug")?;
/// assert_eq!(module.target().name(), "sm_90a");
/// assert_eq!(module.target().arch(), Some(Arch { number: 90, suffix: Suffix::A }));
/// assert_eq!(module.target().options(), ["debug"]);
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    name: String,
    options: Vec<String>,
}

impl Target {
    /// The architecture is what starts with `sm_` or `compute_`, or else what comes first.
    pub(crate) fn new(mut names: Vec<String>) -> Option<Target> {
        if names.is_empty() {
            return None;
        }
        let arch = names
            .iter()
            .position(|name| name.starts_with("sm_"))
            .unwrap_or(0);
        let name = names.remove(arch);
        Some(Target {
            name,
            options: names,
        })
    }

    /// The architecture as written, `sm_90a`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The architecture in its parts, if it is written `sm_`, a number, and `a`, `f` or nothing.
    ///
    /// PTX takes `compute_` for `sm_`.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        let rest = arch_suffix(&self.name)?;
        let digits = rest.trim_end_matches(|last: char| !last.is_ascii_digit());
        let suffix = match &rest[digits.len()..] {
            "" => Suffix::None,
            "a" => Suffix::A,
            "f" => Suffix::F,
            _ => return None,
        };
        Some(Arch {
            number: digits.parse().ok()?,
            suffix,
        })
    }

    /// What stands beside the architecture: `debug`, `texmode_independent`, `map_f64_to_f32`.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.options
    }
}

fn arch_suffix(name: &str) -> Option<&str> {
    name.strip_prefix("sm_")
        .or_else(|| name.strip_prefix("compute_"))
}

/// An architecture: `sm_90a` has the number 90 and the suffix [`Suffix::A`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arch {
    /// Ten times the major compute capability, and the minor one.
    pub number: u32,
    /// Which other devices the code runs on.
    pub suffix: Suffix,
}

/// Which devices beside the named one run the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suffix {
    /// No suffix: later devices too.
    None,
    /// `a`, architecture-specific: that device alone.
    A,
    /// `f`, family-specific: devices of the same family.
    F,
}

/// The most bytes that the parameters of one kernel may take.
///
/// The PTX manual gives 256 bytes for version 1.4, 4,352 from version 1.5 on and 32,764 from version 8.1 on,
/// and for the drivers 32,764 on `sm_70` and later and 256 on `sm_1x` ([`.entry`], "PTX ISA notes").
/// An architecture that cannot be read counts as a recent one.
///
/// ```
/// use gridcall_ptx::{Module, params_limit};
///
/// let module = Module::parse(".version 8.0\n.target sm_90")?;
/// assert_eq!(params_limit(module.version(), module.target()), 4352);
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
///
/// [`.entry`]: https://docs.nvidia.com/cuda/parallel-thread-execution/#kernel-and-function-directives-entry
#[must_use]
pub fn params_limit(version: Version, target: &Target) -> usize {
    let arch = target.arch().map_or(u32::MAX, |arch| arch.number);
    if version < (Version { major: 1, minor: 5 }) || arch < 20 {
        256
    } else if version < (Version { major: 8, minor: 1 }) || arch < 70 {
        4352
    } else {
        32764
    }
}
