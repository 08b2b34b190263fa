//! Why the driver did not load an image.

use cudarc::driver::CudaContext;

use super::module::Refused;
use crate::{
    declaration::Image,
    driver::{Driver, DriverCode},
    error::{LoadError, LoadErrorKind},
};

/// Why the driver refused an image, as far as it and the image tell.
#[cold]
pub(super) fn explain_load(
    kernel: &'static str,
    image: &'static Image,
    driver: &Driver,
    context: &CudaContext,
    refused: &Refused,
) -> LoadError {
    let &Refused { code, ref log } = refused;
    if code.breaks_context() {
        return LoadErrorKind::Broken(code).into();
    }
    // COMPUTE_CAPABILITY_MAJOR and _MINOR.
    let attribute = |number| driver.device_attribute(context.cu_device(), number);
    let (Ok(major), Ok(minor)) = (attribute(75), attribute(76)) else {
        return jit(kernel, image, code, log);
    };
    let capability = (major, minor);
    const UNSUPPORTED_PTX_VERSION: DriverCode = DriverCode(222);
    if code == UNSUPPORTED_PTX_VERSION
        && let Ok(driver) = driver.version()
    {
        return LoadErrorKind::PtxTooNew {
            kernel,
            path: image.path,
            ptx: image.version,
            driver,
            capability,
        }
        .into();
    }
    if !runs_on(image.target, capability) {
        let target = image.target;
        return LoadErrorKind::WrongTarget {
            kernel,
            path: image.path,
            target,
            capability,
        }
        .into();
    }
    jit(kernel, image, code, log)
}

/// What the driver's compiler says of an image.
#[cold]
fn jit(kernel: &'static str, image: &'static Image, code: DriverCode, log: &[u8]) -> LoadError {
    let log = readable_log(log, image.path);
    let hint = hint(code, &log);
    LoadErrorKind::Jit {
        kernel,
        path: image.path,
        code,
        log,
        hint,
    }
    .into()
}

/// Whether PTX for `target` can be compiled for a device of this compute capability: for its own
/// architecture and every later one; with an `a` for its own alone; with an `f` for later ones of
/// the same major number ([PTX ISA, `.target`]).
///
/// [PTX ISA, `.target`]: https://docs.nvidia.com/cuda/parallel-thread-execution/#ptx-module-directives-target
pub(crate) fn runs_on(target: &str, (major, minor): (u32, u32)) -> bool {
    let Some(arch) = target
        .split(',')
        .next()
        .and_then(|t| t.trim().strip_prefix("sm_"))
    else {
        return true;
    };
    let digits = arch.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let Ok(number) = digits.parse::<u32>() else {
        return true;
    };
    let device = major * 10 + minor;
    match &arch[digits.len()..] {
        "a" => number == device,
        "f" => number / 10 == major && number <= device,
        _ => number <= device,
    }
}

/// The compiler's log with the file's name in place of its own words for it.
pub(crate) fn readable_log(log: &[u8], path: &str) -> String {
    let log = log.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(log)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| format!("\n  {}", line.replace("ptxas application ptx input", path)))
        .collect()
}

pub(crate) fn hint(code: DriverCode, log: &str) -> &'static str {
    const JIT_COMPILER_NOT_FOUND: DriverCode = DriverCode(221);
    if code == JIT_COMPILER_NOT_FOUND {
        "\n  the driver's compiler library, libnvidia-ptxjitcompiler.so.1, is missing: in a container, mount it with the driver's other libraries"
    } else if log.contains("Unresolved extern function") {
        "\n  the PTX calls a function that it does not define: compile without relocatable device code (-rdc), or link the objects first"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_missing_is_named() {
        assert!(hint(DriverCode(221), "").contains("libnvidia-ptxjitcompiler.so.1"));
        let unresolved = hint(DriverCode(218), "Unresolved extern function 'f'");
        assert!(unresolved.contains("-rdc"), "{unresolved}");
        assert_eq!(hint(DriverCode(218), "syntax error"), "");
    }

    #[test]
    fn targets_run_on_their_own_and_later_devices() {
        for (target, capability, runs) in [
            ("sm_75", (7, 5), true),
            ("sm_75", (9, 0), true),
            ("sm_90", (8, 9), false),
            ("sm_90a", (9, 0), true),
            ("sm_90a", (10, 0), false),
            ("sm_100f", (10, 3), true),
            ("sm_100f", (12, 0), false),
            ("sm_103f", (10, 0), false),
            ("sm_20, map_f64_to_f32", (9, 0), true),
            ("sm_120", (9, 0), false),
            ("compute_unknown", (9, 0), true),
        ] {
            assert_eq!(
                runs_on(target, capability),
                runs,
                "{target} on {capability:?}"
            );
        }
    }

    #[test]
    fn the_log_names_the_file() {
        let log = b"ptxas application ptx input, line 12; error   : Unknown symbol 'x'\n\n\0rest";
        assert_eq!(
            readable_log(log, "kernels/bad.ptx"),
            "\n  kernels/bad.ptx, line 12; error   : Unknown symbol 'x'"
        );
    }
}
