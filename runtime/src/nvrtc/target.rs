//! Which architecture is compiled for?

use std::sync::Arc;

use cudarc::driver::{CudaContext, sys::CUdevice_attribute as Attribute};

use super::error::{CompileError, CompileErrorKind};
use crate::{driver::driver, libnvrtc::LibNvrtc};

/// The architecture for a context's device, as NVRTC's option names it.
pub(super) fn of(context: &Arc<CudaContext>, library: &LibNvrtc) -> Result<String, CompileError> {
    let attribute = |attribute| {
        let value = context
            .attribute(attribute)
            .map_err(CompileErrorKind::Device)?;
        Ok::<u32, CompileError>(value.unsigned_abs())
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // A driver that does not say is taken to be new enough: it has its say when the PTX is loaded.
    let driver = driver().ok().and_then(|driver| driver.version().ok());
    let (supported, nvrtc) = (library.supported_archs()?, library.version()?);
    choose((major, minor), &supported, nvrtc, driver).ok_or_else(|| {
        CompileErrorKind::OldDevice {
            capability: (major, minor),
            nvrtc,
            oldest: supported.first().copied().unwrap_or(0),
        }
        .into()
    })
}

/// PTX of the device's own architecture, or the newest below that NVRTC knows. A driver that is
/// older than NVRTC does not read its PTX, but runs its machine code.
fn choose(
    (major, minor): (u32, u32),
    supported: &[u32],
    nvrtc: (u32, u32),
    driver: Option<u32>,
) -> Option<String> {
    let device = major * 10 + minor;
    let reads_ptx = driver.is_none_or(|driver| driver >= nvrtc.0 * 1000 + nvrtc.1 * 10);
    if !reads_ptx && supported.contains(&device) {
        return Some(format!("sm_{device}"));
    }
    let arch = supported.iter().rfind(|arch| **arch <= device)?;
    Some(format!("compute_{arch}"))
}

/// Whether it is a real architecture, for which there is machine code; an error if it is no
/// architecture.
pub(super) fn is_real(arch: &str) -> Result<bool, CompileError> {
    let real = arch.strip_prefix("sm_");
    let number = real.or_else(|| arch.strip_prefix("compute_"));
    let number = number.map(|number| number.strip_suffix(['a', 'f']).unwrap_or(number));
    match number {
        Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(real.is_some())
        }
        _ => Err(CompileErrorKind::NoArch {
            arch: arch.to_owned(),
        }
        .into()),
    }
}

/// An error if an option says for which architecture to compile, beside what is said here.
pub(super) fn is_no_option(options: &[String]) -> Result<(), CompileError> {
    let names = |option: &&String| {
        let option = option.trim();
        option.starts_with("-arch") || option.starts_with("--gpu-architecture")
    };
    match options.iter().find(names) {
        Some(option) => {
            let option = option.clone();
            Err(CompileErrorKind::ArchOption { option }.into())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_architecture_is_chosen() {
        let supported = [75, 80, 86, 90, 100, 120];
        for (device, driver, arch) in [
            ((9, 0), Some(13_000), Some("compute_90")),
            ((9, 0), Some(13_020), Some("compute_90")),
            ((9, 0), None, Some("compute_90")),
            // Newer than NVRTC, and between two that it knows.
            ((13, 0), Some(13_000), Some("compute_120")),
            ((8, 9), Some(13_000), Some("compute_86")),
            // A driver that reads no PTX 9.0.
            ((9, 0), Some(12_080), Some("sm_90")),
            ((8, 9), Some(12_080), Some("compute_86")),
            ((6, 1), Some(13_000), None),
        ] {
            let chosen = choose(device, &supported, (13, 0), driver);
            assert_eq!(chosen.as_deref(), arch, "{device:?} {driver:?}");
        }
    }

    #[test]
    fn architectures_are_told_from_other_words() {
        assert!(is_real("sm_90").unwrap());
        assert!(is_real("sm_90a").unwrap());
        assert!(!is_real("compute_100f").unwrap());
        for wrong in ["", "90", "sm_", "sm_a", "native", "sm_90x", "SM_90"] {
            assert!(is_real(wrong).is_err(), "{wrong}");
        }
    }
}
