//! Which of a kernel's images is loaded: the one made for the most capable device that this one is
//! not less capable than.

use cudarc::driver::CudaContext;

use crate::{
    declaration::Image,
    driver::Driver,
    error::{LoadError, LoadErrorKind},
    load::runs_on,
};

/// The image that fits the context's device best, by its index.
pub(crate) fn best(
    kernel: &'static str,
    images: &[&'static Image],
    driver: &Driver,
    context: &CudaContext,
) -> Result<usize, LoadError> {
    // Of one alone the driver itself says why it does not fit.
    if images.len() == 1 {
        return Ok(0);
    }
    // COMPUTE_CAPABILITY_MAJOR and _MINOR.
    let attribute = |number| {
        driver
            .device_attribute(context.cu_device(), number)
            .map_err(|code| LoadErrorKind::Driver {
                kernel,
                call: "cuDeviceGetAttribute",
                code,
            })
    };
    let capability = (attribute(75)?, attribute(76)?);
    let fitting = images
        .iter()
        .enumerate()
        .filter(|(_, image)| runs_on(image.target, capability));
    fitting
        .max_by_key(|(_, image)| rank(image.target))
        .map(|(index, _)| index)
        // Machine code may be for devices that no PTX is for.
        .or_else(|| images.iter().position(|image| !image.code.is_empty()))
        .ok_or_else(|| {
            let listed: Vec<String> = images
                .iter()
                .map(|image| format!("`{}` for `{}`", image.path, image.target))
                .collect();
            LoadErrorKind::NoVariant {
                kernel,
                capability,
                variants: listed.join(", "),
            }
            .into()
        })
}

/// The number of an architecture, and whether it is for that one alone.
fn rank(target: &str) -> (u32, bool) {
    let arch = target.split(',').next().unwrap_or_default().trim();
    let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
    let special = arch.ends_with(|last: char| last.is_ascii_lowercase());
    (digits.parse().unwrap_or(0), special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_and_more_special_targets_rank_higher() {
        let mut targets = ["sm_90a", "sm_75", "sm_100", "sm_90", "sm_80, debug"];
        targets.sort_by_key(|target| rank(target));
        assert_eq!(
            targets,
            ["sm_75", "sm_80, debug", "sm_90", "sm_90a", "sm_100"]
        );
    }
}
