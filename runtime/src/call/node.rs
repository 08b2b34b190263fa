//! A launch that is a node of a graph: its shape and its arguments are checked, nothing is enqueued.

use std::{cell::RefCell, ptr};

use gridcall_view::StreamRef;

use super::{
    purpose::{AsBefore, Noting, Stop},
    refusal::error,
    shape::{resolve, resolve_examined},
    steps::Call,
};
use crate::{
    attributes::Attributes,
    error::{AttributeError, LaunchError, LaunchErrorKind},
    graph::Access,
    kernel::{Arguments, Declared},
    launch::{Dims, Launch},
    load::Loaded,
};

/// The device of arrays that are of a graph, and of the stream that stands for the graph where the
/// arguments of its nodes are checked.
pub(crate) const FOREIGN: i32 = i32::MIN;

/// Describes, checks and packs the arguments of a graph's node, as for a launch, and notes what its
/// arrays are described for. Enqueues nothing.
///
/// `graph` stands for the graph: all arrays must be tracked by what it is tracked by. `attributes` are
/// the node's, if it [has any or may have](has_attributes). The kernel's context must be current then,
/// and if the launch asks for dynamic shared memory.
#[inline(always)]
pub(crate) fn check_node<A: Arguments>(
    kernel: &Loaded,
    graph: StreamRef<'_>,
    launch: Launch<'_>,
    attributes: Option<&Attributes<'static>>,
    noted: &RefCell<Vec<Access>>,
    arguments: &mut A,
) -> Result<(Dims, A::Params), LaunchError> {
    if A::Declared::TOUCHES
        && let Some(touched) = &kernel.touched
    {
        return Err(error(kernel, LaunchErrorKind::Symbol(touched.of_node())));
    }
    let dims = match attributes {
        None => resolve::<A::Declared>(kernel, launch)?,
        Some(attributes) => {
            // A copy, so that only this puts it into memory.
            let copy = launch;
            resolve_node::<A::Declared>(kernel, attributes, &copy)?
        }
    };
    let params = arguments.check(&Call::of(kernel, graph, dims, Noting(noted)))?;
    Ok((dims, params))
}

/// Describes, checks and packs other arguments of a node that has no attributes and is to have none,
/// of which the arrays are those that it had before. `before` is what these are described for: none
/// conflicts with another.
#[inline(always)]
pub(crate) fn check_again<A: Arguments>(
    kernel: &Loaded,
    graph: StreamRef<'_>,
    launch: Launch<'_>,
    before: &[Access],
    arguments: &mut A,
) -> Result<(Dims, A::Params), Stop> {
    // Each is then compared without looking whether there are so many.
    if before.len() != A::ARRAYS || A::Declared::TOUCHES {
        return Err(Stop::Others);
    }
    let dims = resolve::<A::Declared>(kernel, launch)?;
    let before = AsBefore::new(graph, before);
    let params = arguments.check(&Call::of(kernel, graph, dims, before))?;
    Ok((dims, params))
}

/// Whether a launch asks for attributes, or its kernel may.
#[inline(always)]
pub(crate) fn has_attributes<D: Declared>(kernel: &Loaded, launch: &Launch<'_>) -> bool {
    launch.attributes.any() || D::EXAMINED && kernel.needs.any()
}

/// The attributes of a node.
#[cold]
pub(crate) fn attributes_of_node(
    kernel: &Loaded,
    launch: &Launch<'_>,
) -> Result<Attributes<'static>, LaunchError> {
    let attributes = launch.attributes.of_node(kernel);
    attributes.map_err(|reason| error(kernel, LaunchErrorKind::Attribute(reason)))
}

/// The shape of a node, whose attributes are examined, and are those that the launch asks for.
#[cold]
#[inline(never)]
fn resolve_node<D: Declared>(
    kernel: &Loaded,
    attributes: &Attributes<'static>,
    launch: &Launch<'_>,
) -> Result<Dims, LaunchError> {
    let asked = attributes_of_node(kernel, launch)?;
    if asked != *attributes {
        let reason = AttributeError::OfUpdate {
            node: attributes.or_none(),
            asked: asked.or_none(),
        };
        return Err(error(kernel, LaunchErrorKind::Attribute(reason)));
    }
    // Only events are compared with a context, and a node records none.
    resolve_examined::<D>(kernel, ptr::null_mut(), launch)
}
