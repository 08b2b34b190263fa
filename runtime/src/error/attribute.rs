//! An attribute of a launch that is not possible.

use super::Axis;
use crate::{
    attributes::Cluster,
    driver::DriverCode,
    launch::{Block, Grid},
};

/// Why a launch attribute is not possible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeError {
    /// The device is not capable of it.
    #[error(
        "the launch asks for {attribute}, which needs compute capability {}.{}; this device has {}.{}: leave it out on such a device",
        needed.0, needed.1, capability.0, capability.1
    )]
    Capability {
        /// What was asked for.
        attribute: &'static str,
        /// The compute capability that it needs.
        needed: (u32, u32),
        /// The device's.
        capability: (u32, u32),
    },
    /// The driver has no function for launches with attributes.
    #[error("the CUDA driver is too old for launch attributes: it has no `{function}`; update it")]
    OldDriver {
        /// The function that is missing.
        function: &'static str,
    },
    /// The driver is older than what was asked for.
    #[error(
        "the launch asks for {attribute}, which needs a driver of CUDA {}.{}; this one supports CUDA {}.{}: update it",
        needed.0, needed.1, driver.0, driver.1
    )]
    OldCuda {
        /// What was asked for.
        attribute: &'static str,
        /// The version of CUDA that has it.
        needed: (u32, u32),
        /// The one that the driver supports.
        driver: (u32, u32),
    },
    /// What was asked for is between launches of a stream, and the launch is a node of a graph.
    #[error(
        "the launch asks for {attribute}, which a node of a graph cannot have: nodes run when those before them have ended; leave it out, or launch the kernel on a stream"
    )]
    OfNode {
        /// What was asked for.
        attribute: &'static str,
    },
    /// A node of a graph was to be updated with other attributes than it has.
    #[error(
        "the node has {node}, the update asks for {asked}; a node keeps its attributes: ask for the same, or build the graph anew"
    )]
    OfUpdate {
        /// The node's attributes.
        node: String,
        /// Those of the update.
        asked: String,
    },
    /// A safe launch may begin early, and the kernel would not wait.
    #[error(
        "the launch asks for programmatic stream serialization, but the kernel's code has no `griddepcontrol.wait` that is known, so it could run before what it reads is written; call cudaGridDependencySynchronize() in the kernel, or declare it `unsafe fn`"
    )]
    NeverWaits,
    /// An event belongs to another context.
    #[error(
        "the {event} event belongs to another context than the stream, of device {device}; make it with `stream.context().new_event(None)`"
    )]
    OtherContext {
        /// Which of the two kinds of event.
        event: &'static str,
        /// The event's device.
        device: usize,
    },
    /// The priority is none of the device's.
    #[error("priority {asked} is not between {least}, the least, and {greatest}, the greatest")]
    Priority {
        /// The priority asked for.
        asked: i32,
        /// The least, which is the highest number.
        least: i32,
        /// The greatest.
        greatest: i32,
    },
    /// The device has no such memory-synchronisation domain.
    #[error(
        "the {of} memory-synchronisation domain is to be {domain}, this device has {count}, which are counted from 0"
    )]
    Domain {
        /// Which one: `default` or `remote`.
        of: &'static str,
        /// The domain asked for.
        domain: u8,
        /// The number of the device's.
        count: u32,
    },
    /// More than all shared memory.
    #[error("a shared memory carveout of {percent} % is more than there is; ask for 100 % at most")]
    Carveout {
        /// The hundredths asked for.
        percent: u8,
    },
    /// How many blocks run at a time, which a cooperative grid must know, is told without it.
    #[error(
        "the launch is cooperative, and with a shared memory carveout nobody can tell how many of its blocks run at a time; leave the carveout out"
    )]
    CooperativeCarveout,
    /// The array of an access policy window is on another device.
    #[error(
        "the access policy window is of an array of device {array}, the launch is on device {device}, in whose L2 cache it is not kept; make the window of an array of device {device}"
    )]
    WindowElsewhere {
        /// The array's device.
        array: i32,
        /// The launch's.
        device: usize,
    },
    /// An access policy window is larger than the device takes.
    #[error(
        "the access policy window has {bytes} bytes, this device takes {limit}; make it of a part of the array"
    )]
    WindowTooLarge {
        /// The bytes of the window.
        bytes: u64,
        /// The device's limit in bytes.
        limit: u32,
    },
    /// The hit ratio of an access policy window is none.
    #[error("the hit ratio of the access policy window is {ratio}, not between 0 and 1")]
    HitRatio {
        /// The ratio asked for.
        ratio: f32,
    },
    /// What misses an access policy window would persist.
    #[error(
        "what misses the access policy window is to be persisting; only what hits it can be: say `.miss(..)` normal or streaming, or raise the hit ratio"
    )]
    MissPersists,
    /// A cluster has no blocks.
    #[error("cluster.{axis} is 0; a cluster has at least one block along each axis")]
    ZeroCluster {
        /// The axis.
        axis: Axis,
    },
    /// The kernel is made for other clusters.
    #[error("the launch asks for clusters of {asked}, the kernel {} {fixed}; ask for that size, or for none", if *by_ptx { "is compiled for (.reqnctapercluster)" } else { "declares #[cluster] as" })]
    OtherCluster {
        /// The cluster asked for.
        asked: Cluster,
        /// The kernel's.
        fixed: Cluster,
        /// Whether the PTX fixes it, not the declaration.
        by_ptx: bool,
    },
    /// The kernel must be launched in clusters, and nobody says of which size.
    #[error(
        "the kernel is compiled to be launched in clusters (.explicitcluster) of a size that it does not say; add `.cluster(..)` to the launch, or declare #[cluster(..)]"
    )]
    NoCluster,
    /// A cluster is preferred where there are no others.
    #[error(
        "the launch prefers clusters of {preferred} and has no others for when those do not fit; add `.cluster(..)`, of which they are a multiple"
    )]
    PreferredAlone {
        /// The cluster that is preferred.
        preferred: Cluster,
    },
    /// A cluster is preferred that is not made of the others.
    #[error(
        "the launch prefers clusters of {preferred}, which are not made of whole clusters of {regular}; make each axis a multiple"
    )]
    PreferredCluster {
        /// The cluster that is preferred.
        preferred: Cluster,
        /// The launch's.
        regular: Cluster,
    },
    /// More blocks in a cluster than any device runs.
    #[error("a cluster of {cluster} has {} blocks, a device runs at most 16; make the cluster smaller", cluster.blocks())]
    ClusterTooLarge {
        /// The cluster asked for.
        cluster: Cluster,
    },
    /// More blocks in a cluster than the kernel was compiled for.
    #[error("a cluster of {cluster} has {} blocks, the kernel is compiled for at most {limit} (.maxclusterrank); make the cluster smaller, or compile the kernel for larger ones", cluster.blocks())]
    ClusterTooLargeForKernel {
        /// The cluster asked for.
        cluster: Cluster,
        /// The kernel's limit.
        limit: u32,
    },
    /// The driver refused to allow clusters of more than 8 blocks.
    #[error("cannot opt in to clusters of {} blocks, as 8 are portable: {code}", cluster.blocks())]
    LargeCluster {
        /// The cluster asked for.
        cluster: Cluster,
        /// The driver's answer.
        code: DriverCode,
    },
    /// The grid is not of whole clusters.
    #[error(
        "a grid of {grid} is not of whole clusters of {cluster}; make each axis a multiple, or use `cover`, which does"
    )]
    NotOfClusters {
        /// The grid.
        grid: Grid,
        /// The cluster.
        cluster: Cluster,
    },
    /// A cluster has several blocks along an axis that the launch does not cover.
    #[error(
        "a cluster of {cluster} has several blocks along {axis}, which the launch does not cover: they would run the same threads again; cover an extent along {axis} too, or give the grid by `Launch::new`"
    )]
    ClusterNotCovered {
        /// The cluster.
        cluster: Cluster,
        /// The first such axis.
        axis: Axis,
    },
    /// The device cannot run one cluster.
    #[error(
        "no cluster of {cluster} blocks of {} threads and {shared_mem_bytes} bytes of dynamic shared memory fits this device; make the cluster, the block or shared memory smaller",
        block.threads()
    )]
    ClusterDoesNotFit {
        /// The cluster.
        cluster: Cluster,
        /// The block.
        block: Block,
        /// Dynamic shared memory of a block in bytes.
        shared_mem_bytes: u32,
    },
    /// The device does not run cooperative grids.
    #[error(
        "the launch is cooperative, which this device does not support; launch on another device"
    )]
    NoCooperative,
    /// A cooperative grid of more blocks than run at a time.
    #[error("{}", cooperative(*grid, *block, *shared_mem_bytes, *cluster, *resident, *multiprocessors))]
    CooperativeTooLarge {
        /// The grid.
        grid: Grid,
        /// The block.
        block: Block,
        /// Dynamic shared memory of a block in bytes.
        shared_mem_bytes: u32,
        /// The cluster, if there is one of several blocks.
        cluster: Option<Cluster>,
        /// The blocks that the device runs at a time.
        resident: u32,
        /// The device's multiprocessors.
        multiprocessors: u32,
    },
}

fn cooperative(
    grid: Grid,
    block: Block,
    shared_mem_bytes: u32,
    cluster: Option<Cluster>,
    resident: u32,
    multiprocessors: u32,
) -> String {
    let blocks = grid.blocks();
    let threads = block.threads();
    let clusters = match cluster {
        Some(cluster) => format!(", in clusters of {cluster}"),
        None => format!(
            ": {} on each of {multiprocessors} multiprocessors",
            resident / multiprocessors.max(1)
        ),
    };
    format!(
        "a cooperative grid of {blocks} blocks cannot run at a time; with {threads} threads and {shared_mem_bytes} bytes of dynamic shared memory a block this device runs {resident}{clusters}; launch at most so many, and let each do more"
    )
}
