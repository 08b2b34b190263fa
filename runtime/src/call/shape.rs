//! The shape of a launch.

use cudarc::driver::sys::CUcontext;

use super::refusal::error;
use crate::{
    attributes::{Examined, examine},
    error::{LaunchError, LaunchErrorKind},
    kernel::{Declared, Safety},
    launch::{Dims, Launch},
    load::Loaded,
};

/// The shape of a launch within all limits.
#[inline(always)]
pub(super) fn resolve<D: Declared>(
    kernel: &Loaded,
    launch: Launch<'_>,
) -> Result<Dims, LaunchError> {
    let dims = match Dims::resolve(launch, kernel) {
        Ok(dims) => dims,
        Err(geometry) => return Err(error(kernel, LaunchErrorKind::Geometry(geometry))),
    };
    if D::RANK != 0
        && let Err(geometry) = dims.check_rank(launch, D::RANK)
    {
        return Err(error(kernel, LaunchErrorKind::Geometry(geometry)));
    }
    Ok(dims)
}

/// The shape of a launch within all limits and as its attributes need it, which are examined, on a
/// stream of this context.
#[inline(never)]
pub(crate) fn resolve_examined<D: Declared>(
    kernel: &Loaded,
    context: CUcontext,
    launch: &Launch<'_>,
) -> Result<Dims, LaunchError> {
    let examined = Examined {
        attributes: &launch.attributes,
        dims: resolve::<D>(kernel, *launch)?,
        covered: launch.covered(),
        safe: D::Safety::SAFE,
        context,
    };
    examine(kernel, &examined).map_err(|kind| error(kernel, kind))
}
