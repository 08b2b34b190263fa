//! Which of a kernel's images is loaded: the one made for the most capable device that this one is
//! not less capable than.

use cudarc::driver::CudaContext;

use crate::{
    declaration::{Declaration, Variant},
    driver::Driver,
    error::{LoadError, LoadErrorKind},
    load::runs_on,
};

/// The image that fits the context's device best.
pub(crate) fn best(
    declaration: &'static Declaration,
    driver: &Driver,
    context: &CudaContext,
) -> Result<&'static Variant, LoadError> {
    // Of one alone the driver itself says why it does not fit.
    if let [only] = declaration.variants {
        return Ok(only);
    }
    // COMPUTE_CAPABILITY_MAJOR and _MINOR.
    let attribute = |number| {
        driver
            .device_attribute(context.cu_device(), number)
            .map_err(|code| LoadErrorKind::Driver {
                kernel: declaration.kernel,
                call: "cuDeviceGetAttribute",
                code,
            })
    };
    let capability = (attribute(75)?, attribute(76)?);
    let fitting = declaration
        .variants
        .iter()
        .filter(|variant| runs_on(variant.image.target, capability));
    fitting
        .max_by_key(|variant| rank(variant.image.target))
        .ok_or_else(|| {
            let listed: Vec<String> = declaration
                .variants
                .iter()
                .map(|variant| format!("`{}` for `{}`", variant.image.path, variant.image.target))
                .collect();
            LoadErrorKind::NoVariant {
                kernel: declaration.kernel,
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
