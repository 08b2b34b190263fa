//! Clusters of blocks: which a launch has, and whether kernel and device can have them.

use std::fmt;

use super::{Attributes, CLUSTER};
use crate::{
    error::{AttributeError, Axis, GeometryError, LaunchErrorKind},
    launch::Grid,
    load::Loaded,
};

/// The number of blocks of a cluster along each axis.
///
/// ```
/// use gridcall::Cluster;
/// assert_eq!(Cluster::from(2), Cluster::from((2, 1, 1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Along x, the fastest axis.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

/// How the blocks of a cluster are put on the multiprocessors
/// ([`CUclusterSchedulingPolicy`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html)).
///
/// ```
/// use gridcall::{ClusterSchedulingPolicy, Launch};
/// let launch = Launch::new(8, 128).cluster(4);
/// let launch = launch.cluster_scheduling_policy(ClusterSchedulingPolicy::Spread);
/// # let _ = launch;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClusterSchedulingPolicy {
    /// As the driver sees fit.
    #[default]
    Default,
    /// Over as many multiprocessors as there are for them.
    Spread,
    /// So that the multiprocessors have as much to do as each other.
    LoadBalancing,
}

/// The cluster of this launch, if it has one.
pub(super) fn cluster_of(
    kernel: &Loaded,
    attributes: &Attributes<'_>,
) -> Result<Option<Cluster>, AttributeError> {
    let needs = &kernel.needs;
    let asked = attributes.has(CLUSTER).then_some(attributes.cluster);
    let required = needs.required_cluster.map(|dims| (dims, true));
    let fixed = required.or(needs.cluster.map(|dims| (dims, false)));
    match (fixed, asked) {
        (Some((dims, by_ptx)), Some(asked)) if asked != dims.into() => {
            Err(AttributeError::OtherCluster {
                asked,
                fixed: dims.into(),
                by_ptx,
            })
        }
        (Some((dims, _)), _) => Ok(Some(dims.into())),
        (None, None) if needs.explicit_cluster => Err(AttributeError::NoCluster),
        (None, asked) => Ok(asked),
    }
}

/// Blocks of a cluster that every device with clusters can run.
const PORTABLE: u64 = 8;

pub(super) fn check_cluster(kernel: &Loaded, cluster: Cluster) -> Result<(), AttributeError> {
    if let Some((axis, _)) = cluster.axes().into_iter().find(|&(_, blocks)| blocks == 0) {
        return Err(AttributeError::ZeroCluster { axis });
    }
    let blocks = cluster.blocks();
    if blocks > 1 && !kernel.limits.clusters {
        return Err(AttributeError::Capability {
            attribute: "a cluster of several blocks",
            needed: (9, 0),
            capability: kernel.limits.capability,
        });
    }
    check_size(kernel, cluster)
}

/// That so many blocks may be in a cluster, of this kernel and at all.
fn check_size(kernel: &Loaded, cluster: Cluster) -> Result<(), AttributeError> {
    let blocks = cluster.blocks();
    if let Some(limit) = kernel.needs.max_cluster_rank
        && blocks > u64::from(limit)
    {
        return Err(AttributeError::ClusterTooLargeForKernel { cluster, limit });
    }
    // No device has clusters of more: what is refused here, it need not be asked.
    const MOST: u64 = 16;
    if blocks > MOST {
        return Err(AttributeError::ClusterTooLarge { cluster });
    }
    if blocks > PORTABLE {
        kernel
            .allow_large_clusters()
            .map_err(|code| AttributeError::LargeCluster { cluster, code })?;
    }
    Ok(())
}

/// That a cluster may stand for some of the launch's, which are `regular`.
pub(super) fn check_preferred(
    kernel: &Loaded,
    preferred: Cluster,
    regular: Option<Cluster>,
) -> Result<(), AttributeError> {
    let capability = kernel.limits.capability;
    if capability < PREFERRED_CAPABILITY {
        return Err(AttributeError::Capability {
            attribute: "a preferred cluster",
            needed: PREFERRED_CAPABILITY,
            capability,
        });
    }
    let Some(regular) = regular else {
        return Err(AttributeError::PreferredAlone { preferred });
    };
    let each: [u32; 3] = regular.into();
    let is_multiple =
        |((_, blocks), each): ((Axis, u32), u32)| blocks != 0 && blocks.is_multiple_of(each);
    if !preferred.axes().into_iter().zip(each).all(is_multiple) {
        return Err(AttributeError::PreferredCluster { preferred, regular });
    }
    check_size(kernel, preferred)
}

/// Since which preferred clusters are taken.
const PREFERRED_CAPABILITY: (u32, u32) = (10, 0);

pub(super) fn grid_of_clusters(
    kernel: &Loaded,
    grid: Grid,
    cluster: Cluster,
    covered: Option<usize>,
) -> Result<Grid, LaunchErrorKind> {
    let blocks = [grid.x, grid.y, grid.z];
    let each = [cluster.x, cluster.y, cluster.z];
    let Some(covered) = covered else {
        if blocks
            .iter()
            .zip(each)
            .any(|(blocks, each)| !blocks.is_multiple_of(each))
        {
            return Err(AttributeError::NotOfClusters { grid, cluster }.into());
        }
        return Ok(grid);
    };
    let mut whole = [0; 3];
    let axes = [Axis::X, Axis::Y, Axis::Z];
    for (index, axis) in axes.into_iter().enumerate() {
        // More blocks along it would run the same threads once more.
        if index >= covered && each[index] > 1 {
            return Err(AttributeError::ClusterNotCovered { cluster, axis }.into());
        }
        let rounded = u64::from(blocks[index]).next_multiple_of(u64::from(each[index]));
        let limit = kernel.limits.grid[index];
        whole[index] = u32::try_from(rounded)
            .ok()
            .filter(|&blocks| blocks <= limit)
            .ok_or(LaunchErrorKind::Geometry(GeometryError::GridTooLarge {
                axis,
                blocks: rounded,
                limit,
            }))?;
    }
    let [x, y, z] = whole;
    Ok(Grid { x, y, z })
}

impl Cluster {
    fn axes(self) -> [(Axis, u32); 3] {
        [(Axis::X, self.x), (Axis::Y, self.y), (Axis::Z, self.z)]
    }

    /// The number of blocks, which may exceed what any device allows.
    pub(crate) fn blocks(self) -> u64 {
        // The product of three factors below 2^32 may overflow; no limit is near that.
        u64::from(self.x)
            .saturating_mul(u64::from(self.y))
            .saturating_mul(u64::from(self.z))
    }
}

impl From<u32> for Cluster {
    fn from(x: u32) -> Cluster {
        Cluster { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Cluster {
    fn from((x, y): (u32, u32)) -> Cluster {
        Cluster { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Cluster {
    fn from((x, y, z): (u32, u32, u32)) -> Cluster {
        Cluster { x, y, z }
    }
}

impl From<[u32; 3]> for Cluster {
    fn from([x, y, z]: [u32; 3]) -> Cluster {
        Cluster { x, y, z }
    }
}

impl From<Cluster> for [u32; 3] {
    fn from(cluster: Cluster) -> [u32; 3] {
        [cluster.x, cluster.y, cluster.z]
    }
}

impl fmt::Display for ClusterSchedulingPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClusterSchedulingPolicy::Default => "default",
            ClusterSchedulingPolicy::Spread => "spreading",
            ClusterSchedulingPolicy::LoadBalancing => "load-balancing",
        })
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}
