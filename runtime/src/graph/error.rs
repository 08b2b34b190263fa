//! What can go wrong with a graph.

use std::fmt;

use cudarc::driver::DriverError;
use gridcall_view::ViewError;

use crate::{
    driver::DriverCode,
    error::{BufferError, LaunchError, LoadError},
};

/// Why a graph could not be built, launched or updated.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct GraphError(Box<GraphErrorKind>);

/// What a [`GraphError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphErrorKind {
    /// The launch that a node stands for cannot be made.
    #[error("{0}")]
    Launch(LaunchError),
    /// The driver cannot be used.
    #[error("{0}")]
    Load(LoadError),
    /// An array cannot be one of the graph's, or not be used by its launch.
    #[error("array {index} of the graph: {error}")]
    Array {
        /// The array, from 0, in the order they were given to the graph.
        index: usize,
        /// Why not.
        error: ViewError,
    },
    /// The graph was launched, but its use of an array could not be recorded; the stream has been
    /// synchronised, so that nothing is freed too early.
    #[error(
        "the graph was launched, but its use of its array {index} could not be recorded: {error}"
    )]
    Finish {
        /// The array, from 0, in the order they were given to the graph.
        index: usize,
        /// Why not.
        error: ViewError,
    },
    /// What stands for an array or a node is of another graph.
    #[error(
        "{what} belongs to another graph; nodes and arrays are used with the graph that made them"
    )]
    OtherGraph {
        /// The array or the node.
        what: &'static str,
    },
    /// The graph was made for another context.
    #[error(
        "the graph was made for a context of device {graph}, the stream belongs to another context, of device {stream}; launch it on a stream of that context"
    )]
    OtherContext {
        /// The device of the graph's context.
        graph: usize,
        /// The stream's device.
        stream: usize,
    },
    /// Parts to copy are not of one length.
    #[error("cannot copy {from} elements to {to}; take slices of one length")]
    Length {
        /// The number of elements to copy from.
        from: usize,
        /// The number of elements to copy to.
        to: usize,
    },
    /// Parts to copy overlap.
    #[error("the elements to copy and those to copy to overlap; take separate slices")]
    Overlap,
    /// A node cannot come after one that was added later.
    #[error("node {before} cannot be put before node {after}, which was added earlier")]
    Backwards {
        /// The node that was to come first.
        before: usize,
        /// The node that was to come after it.
        after: usize,
    },
    /// A node was to be given other work than it does.
    #[error(
        "node {node} of the graph {is}, and cannot be given what {asked}; what a node does is decided when the graph is built"
    )]
    OtherWork {
        /// The node, from 0, in the order they were added.
        node: usize,
        /// What it does.
        is: &'static str,
        /// What the update asked for.
        asked: &'static str,
    },
    /// A node cannot be turned off.
    #[error(
        "node {node} of the graph cannot be turned off or on: only launches of kernels, copies and fills can"
    )]
    AlwaysOn {
        /// The node, from 0, in the order they were added.
        node: usize,
    },
    /// A node's new arguments conflict with a node that may run at the same time.
    #[error(
        "node {node} would use what node {other} uses, one of them writes to it, and they may run at the same time; put one after the other by `order` before the graph is instantiated, or build the graph with these arguments"
    )]
    Unordered {
        /// The node that was to be updated, from 0, in the order they were added.
        node: usize,
        /// The other.
        other: usize,
    },
    /// The stream is being captured.
    #[error(
        "the stream is being captured into a graph, which would use the graph's arrays at times that nobody could wait for; end the capture first, or use another stream"
    )]
    Capturing,
    /// What was enqueued on a stream could not be captured.
    #[error(
        "the capture into the graph failed: {call}: {code}; of what was called meanwhile, something cannot be part of a graph: an allocation, a synchronisation, or an array that is not of the graph and waited for an event"
    )]
    Capture {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
    },
    /// A capture into the graph, or what builds a body of a node, failed or was left by an error, so
    /// that it is not known what the graph holds.
    #[error(
        "a capture into this graph, or a body of one of its nodes, did not succeed; build the graph anew"
    )]
    Incomplete,
    /// A condition decides a node already.
    #[error(
        "condition {condition} of the graph decides node {node} already, and can decide no other; make one for each node, by `condition`"
    )]
    Decided {
        /// The condition, from 0, in the order they were made.
        condition: usize,
        /// The node.
        node: usize,
    },
    /// A condition decides no node.
    #[error(
        "condition {condition} of the graph decides no node; give it to `if_`, `while_` or `switch`, or make none"
    )]
    Undecided {
        /// The condition, from 0, in the order they were made.
        condition: usize,
    },
    /// No kernel in a loop can end it.
    #[error(
        "no kernel in the body takes condition {condition} of the graph, so that the loop would never end; add one that sets it to 0 in the end"
    )]
    Endless {
        /// The condition, from 0, in the order they were made.
        condition: usize,
    },
    /// A node has no bodies.
    #[error(
        "a switch of 0 cases runs nothing; give the number of cases, which the condition counts from 0"
    )]
    NoCases,
    /// A body holds what only the host can run.
    #[error(
        "{what} was captured into a body of a node that a condition decides, and only kernels, copies, fills and nodes with bodies can be there; capture it into the graph itself"
    )]
    NotInBody {
        /// What was captured.
        what: &'static str,
    },
    /// Two nodes are in different bodies.
    #[error(
        "node {before} and node {after} are in different bodies of the graph; order the nodes that run these bodies"
    )]
    Bodies {
        /// The node that was to come first.
        before: usize,
        /// The node that was to come after it.
        after: usize,
    },
    /// A graph was to be added to one of another context.
    #[error(
        "the graph is of a context of device {graph}, the one that is added of another, of device {added}; make both for one context"
    )]
    AddedElsewhere {
        /// The device of the graph's context.
        graph: usize,
        /// That of the graph that was to be added.
        added: usize,
    },
    /// A graph that has conditions was to be added to another.
    #[error(
        "the graph that is added has conditions, which the driver takes in no graph that is a node; add its nodes to this graph itself"
    )]
    ChildWithConditions,
    /// The driver's copy of a graph is not like it.
    #[error(
        "the driver's copy of the graph that is added has other nodes than it; add its nodes to this graph itself"
    )]
    OtherCopy,
    /// Both nodes are of a graph that was added to this one.
    #[error(
        "node {before} and node {after} are of a graph that was added to this one, in the order that they had; order them before it is added"
    )]
    OrderedBefore {
        /// The node that was to come first.
        before: usize,
        /// The node that was to come after it.
        after: usize,
    },
    /// The driver is too old for what the graph needs.
    #[error(
        "{what} needs a driver of CUDA {}.{}, this one is of CUDA {}.{}; update the driver",
        needs / 1000, needs % 1000 / 10, found / 1000, found % 1000 / 10
    )]
    OldDriver {
        /// What needs it.
        what: &'static str,
        /// The version it needs: 1000 × major + 10 × minor.
        needs: u32,
        /// The driver's.
        found: u32,
    },
    /// The graph does not own a buffer there.
    #[error(
        "the graph owns no such buffer: only what was given to it by `own` can be looked at, and be taken back once"
    )]
    NotOwned,
    /// An error of the past, stored in the context by a call that could not return it.
    #[error(
        "an earlier error is stored in the context: {0}; it is not of this graph, and everything enqueued since is in doubt"
    )]
    Earlier(DriverError),
    /// A kernel failed while it ran, and the context is broken for good: an earlier one, or with
    /// `GRIDCALL_SYNC=1` one of this launch.
    #[error("a kernel failed in the graph's context: {0}; nothing runs in it any more")]
    Broken(DriverCode),
    /// A driver call failed.
    #[error("{call} failed: {code}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        code: DriverCode,
    },
    /// A buffer's part could not be taken, or the end not be awaited.
    #[error("{0}")]
    Buffer(BufferError),
}

impl GraphError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &GraphErrorKind {
        &self.0
    }
}

impl From<GraphErrorKind> for GraphError {
    #[cold]
    fn from(kind: GraphErrorKind) -> GraphError {
        GraphError(Box::new(kind))
    }
}

impl From<LaunchError> for GraphError {
    #[cold]
    fn from(error: LaunchError) -> GraphError {
        GraphErrorKind::Launch(error).into()
    }
}

impl From<LoadError> for GraphError {
    #[cold]
    fn from(error: LoadError) -> GraphError {
        GraphErrorKind::Load(error).into()
    }
}

impl From<BufferError> for GraphError {
    #[cold]
    fn from(error: BufferError) -> GraphError {
        GraphErrorKind::Buffer(error).into()
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
