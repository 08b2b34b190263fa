//! What a launch asks for beside its shape: launch attributes, what they need, and the form in which
//! the driver takes them.
//!
//! Whatever can be known before the driver is called is checked here; see
//! [`CUlaunchAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html).

use std::{
    ffi::{c_int, c_uint},
    fmt,
};

use cudarc::driver::{
    CudaEvent,
    sys::{CUcontext, CUevent},
};

use crate::{
    error::{AttributeError, Axis, GeometryError, LaunchErrorKind},
    launch::{Dims, Grid},
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

/// The domain in which a kernel's fences order memory; a fence waits for the writes of its own domain
/// only ([memory synchronization domains]).
///
/// [memory synchronization domains]: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#memory-synchronization-domains
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemSyncDomain {
    /// That of kernels that say nothing.
    #[default]
    Default,
    /// That of kernels that write to other devices, so that others need not wait for it.
    Remote,
}

/// When a programmatic event is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// When every block has begun.
    BlockStart,
    /// When every block has said `griddepcontrol.launch_dependents`
    /// (`cudaTriggerProgrammaticLaunchCompletion`), or has ended.
    LaunchDependents,
}

/// The attributes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes<'e> {
    set: u8,
    cluster: Cluster,
    priority: i32,
    domain: MemSyncDomain,
    trigger: Trigger,
    programmatic: Option<Event<'e>>,
    launch_completion: Option<Event<'e>>,
}

/// An event that a launch records; one is another's equal if it is the same.
#[derive(Clone, Copy)]
struct Event<'e>(&'e CudaEvent);

const COOPERATIVE: u8 = 1;
const CLUSTER: u8 = 2;
const SERIALIZATION: u8 = 4;
const PROGRAMMATIC: u8 = 8;
const LAUNCH_COMPLETION: u8 = 16;
const PRIORITY: u8 = 32;
const DOMAIN: u8 = 64;

impl<'e> Attributes<'e> {
    /// None.
    pub(crate) const NONE: Attributes<'static> = Attributes {
        set: 0,
        cluster: Cluster { x: 1, y: 1, z: 1 },
        priority: 0,
        domain: MemSyncDomain::Default,
        trigger: Trigger::BlockStart,
        programmatic: None,
        launch_completion: None,
    };

    /// Whether any is asked for.
    #[inline(always)]
    pub(crate) const fn any(&self) -> bool {
        self.set != 0
    }

    #[inline(always)]
    pub(crate) const fn cooperative(&mut self) {
        self.set |= COOPERATIVE;
    }

    #[inline(always)]
    pub(crate) const fn cluster(&mut self, cluster: Cluster) {
        self.set |= CLUSTER;
        self.cluster = cluster;
    }

    #[inline(always)]
    pub(crate) fn programmatic_stream_serialization(&mut self) {
        self.set |= SERIALIZATION;
    }

    #[inline(always)]
    pub(crate) fn programmatic_event(&mut self, event: &'e CudaEvent, trigger: Trigger) {
        self.set |= PROGRAMMATIC;
        self.programmatic = Some(Event(event));
        self.trigger = trigger;
    }

    #[inline(always)]
    pub(crate) fn launch_completion_event(&mut self, event: &'e CudaEvent) {
        self.set |= LAUNCH_COMPLETION;
        self.launch_completion = Some(Event(event));
    }

    #[inline(always)]
    pub(crate) fn priority(&mut self, priority: i32) {
        self.set |= PRIORITY;
        self.priority = priority;
    }

    #[inline(always)]
    pub(crate) fn mem_sync_domain(&mut self, domain: MemSyncDomain) {
        self.set |= DOMAIN;
        self.domain = domain;
    }

    fn has(&self, attribute: u8) -> bool {
        self.set & attribute != 0
    }

    /// These, with those that the kernel's declaration asks for.
    #[cold]
    pub(crate) fn of_launch(&self, kernel: &Loaded) -> Attributes<'e> {
        let mut all = *self;
        if kernel.needs.cooperative {
            all.cooperative();
        }
        if let Some(declared) = kernel.needs.cluster
            && !all.has(CLUSTER)
        {
            all.cluster(declared.into());
        }
        // What the PTX requires, the driver knows by itself; and where there are no clusters, each
        // block is one.
        if kernel.needs.required_cluster.is_some() || !kernel.limits.clusters {
            all.set &= !CLUSTER;
        }
        all
    }

    /// These as a node of a graph keeps them, with those that the kernel's declaration asks for.
    #[cold]
    pub(crate) fn of_node(&self, kernel: &Loaded) -> Result<Attributes<'static>, AttributeError> {
        let between_launches = [
            (SERIALIZATION, "programmatic stream serialization"),
            (PROGRAMMATIC, "a programmatic event"),
            (LAUNCH_COMPLETION, "a launch-completion event"),
        ];
        for (attribute, name) in between_launches {
            if self.has(attribute) {
                return Err(AttributeError::OfNode { attribute: name });
            }
        }
        let all = self.of_launch(kernel);
        let mut kept = Attributes::NONE;
        // What is not set has the same value in all nodes, so that they can be compared.
        if all.has(COOPERATIVE) {
            kept.cooperative();
        }
        if all.has(CLUSTER) {
            kept.cluster(all.cluster);
        }
        if all.has(PRIORITY) {
            kept.priority(all.priority);
        }
        if all.has(DOMAIN) {
            kept.mem_sync_domain(all.domain);
        }
        Ok(kept)
    }

    /// These, if there are any.
    pub(crate) fn boxed(self) -> Option<Box<Self>> {
        self.any().then(|| Box::new(self))
    }

    /// Their names, also if there are none.
    pub(crate) fn or_none(&self) -> String {
        if self.any() {
            self.to_string()
        } else {
            "no attributes".to_owned()
        }
    }

    /// The smallest grid of a node that has these.
    pub(crate) fn one_cluster(&self, kernel: &Loaded) -> Grid {
        let cluster = match kernel.needs.required_cluster {
            Some(required) => required.into(),
            None => self.cluster,
        };
        let Cluster { x, y, z } = cluster;
        Grid { x, y, z }
    }

    /// Whether the driver takes the parameters of such a kernel as one packed block. In a graph it
    /// does not those of a cooperative grid, be it a node or a launch that is captured (H200).
    pub(crate) fn take_packed(&self, kernel: &Loaded) -> bool {
        kernel.packed && !self.has(COOPERATIVE)
    }

    /// The driver's function that launches with these.
    pub(crate) fn call(&self) -> &'static str {
        if self.any() {
            "cuLaunchKernelEx"
        } else {
            "cuLaunchKernel"
        }
    }

    /// In the driver's form.
    pub(crate) fn to_sys(self) -> SysAttributes {
        let mut list = SysAttributes {
            list: [SysAttribute::IGNORE; SysAttributes::MOST],
            count: 0,
        };
        if self.has(COOPERATIVE) {
            list.push(2).cooperative = 1;
        }
        if self.has(CLUSTER) {
            list.push(4).cluster = self.cluster.into();
        }
        if self.has(SERIALIZATION) {
            list.push(6).serialization = 1;
        }
        if let Some(Event(event)) = self.programmatic {
            list.push(7).event = SysEvent {
                event: event.cu_event(),
                flags: 0,
                at_block_start: c_int::from(self.trigger == Trigger::BlockStart),
            };
        }
        if self.has(PRIORITY) {
            list.push(8).priority = self.priority;
        }
        if self.has(DOMAIN) {
            list.push(10).domain = match self.domain {
                MemSyncDomain::Default => 0,
                MemSyncDomain::Remote => 1,
            };
        }
        if let Some(Event(event)) = self.launch_completion {
            list.push(12).event = SysEvent {
                event: event.cu_event(),
                flags: 0,
                at_block_start: 0,
            };
        }
        list
    }
}

/// The attributes of one launch in the driver's form.
pub(crate) struct SysAttributes {
    list: [SysAttribute; SysAttributes::MOST],
    count: usize,
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SysAttribute {
    /// `CUlaunchAttributeID`.
    pub(crate) id: c_uint,
    pad: [u8; 4],
    pub(crate) value: SysValue,
}

/// `CUlaunchAttributeValue`, as far as it is used.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union SysValue {
    pad: [u64; 8],
    cooperative: c_int,
    cluster: [c_uint; 3],
    serialization: c_int,
    event: SysEvent,
    priority: c_int,
    domain: c_uint,
}

/// The value of both kinds of event.
#[derive(Clone, Copy)]
#[repr(C)]
struct SysEvent {
    event: CUevent,
    flags: c_int,
    /// Not there for a launch-completion event.
    at_block_start: c_int,
}

impl SysAttributes {
    const MOST: usize = 7;

    /// Those that are set.
    pub(crate) fn as_slice(&self) -> &[SysAttribute] {
        &self.list[..self.count]
    }

    pub(crate) fn count(&self) -> c_uint {
        c_uint::try_from(self.as_slice().len()).unwrap_or(0)
    }

    fn push(&mut self, id: c_uint) -> &mut SysValue {
        let next = &mut self.list[self.count];
        self.count += 1;
        next.id = id;
        &mut next.value
    }
}

impl SysAttribute {
    const IGNORE: SysAttribute = SysAttribute {
        id: 0,
        pad: [0; 4],
        value: SysValue { pad: [0; 8] },
    };
}

/// What a kernel asks of every launch, by its declaration and its PTX. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "none has to do with another")]
pub struct Needs {
    /// `#[cooperative]`.
    pub cooperative: bool,
    /// `#[cluster(..)]`.
    pub cluster: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`.
    pub explicit_cluster: bool,
    /// `.blocksareclusters`: the driver takes the grid in clusters of the required size.
    pub counts_clusters: bool,
    /// `.maxclusterrank`.
    pub max_cluster_rank: Option<u32>,
    /// Whether the code says `griddepcontrol.wait`.
    pub waits: bool,
}

impl Needs {
    /// Nothing.
    pub const NONE: Needs = Needs {
        cooperative: false,
        cluster: None,
        required_cluster: None,
        explicit_cluster: false,
        counts_clusters: false,
        max_cluster_rank: None,
        waits: false,
    };

    /// Whether a launch that asks for no attributes has to be looked at all the same.
    pub(crate) fn any(&self) -> bool {
        self.cooperative
            || self.cluster.is_some()
            || self.required_cluster.is_some()
            || self.explicit_cluster
    }

    /// A grid as the driver counts it.
    pub(crate) fn grid_of_driver(&self, blocks: [u32; 3]) -> [c_uint; 3] {
        match self.required_cluster {
            // Whole clusters, of one block at least: `examine` saw to that.
            Some(cluster) if self.counts_clusters => {
                [0, 1, 2].map(|axis| blocks[axis] / cluster[axis])
            }
            _ => blocks,
        }
    }
}

/// What [`examine`] looks at.
pub(crate) struct Examined<'a, 'e> {
    pub(crate) attributes: &'a Attributes<'e>,
    pub(crate) dims: Dims,
    /// Along how many axes the grid covers something, and may be made larger; none if it is exact.
    pub(crate) covered: Option<usize>,
    /// Whether nobody vouches for this launch.
    pub(crate) safe: bool,
    /// The stream's.
    pub(crate) context: CUcontext,
}

/// Checks all that attributes need, and gives the shape they are launched with: a grid that covers
/// something is of whole clusters then.
#[cold]
#[inline(never)]
pub(crate) fn examine(
    kernel: &Loaded,
    examined: &Examined<'_, '_>,
) -> Result<Dims, LaunchErrorKind> {
    let attributes = examined.attributes;
    let mut dims = examined.dims;
    check_availability(kernel, attributes, examined.safe)?;
    check_events(attributes, examined.context)?;
    check_priority(kernel, attributes)?;
    let cluster = cluster_of(kernel, attributes)?;
    if let Some(cluster) = cluster {
        check_cluster(kernel, cluster)?;
        dims.grid = grid_of_clusters(kernel, dims.grid, cluster, examined.covered)?;
    }
    if dims.is_empty() {
        return Ok(dims);
    }
    let cooperative = attributes.has(COOPERATIVE) || kernel.needs.cooperative;
    let blocks_of_cluster = cluster.map_or(1, Cluster::blocks);
    if cooperative || blocks_of_cluster > 1 {
        let cluster = cluster.filter(|_| blocks_of_cluster > 1);
        check_residency(kernel, dims, cluster, cooperative)?;
    }
    Ok(dims)
}

/// What the device, the driver and the kernel's code must have.
fn check_availability(
    kernel: &Loaded,
    attributes: &Attributes<'_>,
    safe: bool,
) -> Result<(), AttributeError> {
    let limits = &kernel.limits;
    let programmatic = [
        (SERIALIZATION, "programmatic stream serialization"),
        (PROGRAMMATIC, "a programmatic event"),
    ];
    for (attribute, name) in programmatic {
        if attributes.has(attribute) && limits.capability < (9, 0) {
            return Err(AttributeError::Capability {
                attribute: name,
                needed: (9, 0),
                capability: limits.capability,
            });
        }
    }
    if attributes.has(SERIALIZATION) && safe && !kernel.needs.waits {
        return Err(AttributeError::NeverWaits);
    }
    let cooperative = attributes.has(COOPERATIVE) || kernel.needs.cooperative;
    if cooperative && !limits.cooperative {
        return Err(AttributeError::NoCooperative);
    }
    if attributes.of_launch(kernel).any() && kernel.driver.launch_kernel_ex.is_none() {
        return Err(AttributeError::OldDriver {
            function: "cuLaunchKernelEx",
        });
    }
    Ok(())
}

fn check_events(attributes: &Attributes<'_>, context: CUcontext) -> Result<(), AttributeError> {
    let events = [
        ("programmatic", attributes.programmatic),
        ("launch-completion", attributes.launch_completion),
    ];
    for (name, event) in events {
        if let Some(Event(event)) = event
            && event.context().cu_ctx() != context
        {
            return Err(AttributeError::OtherContext {
                event: name,
                device: event.context().ordinal(),
            });
        }
    }
    Ok(())
}

fn check_priority(kernel: &Loaded, attributes: &Attributes<'_>) -> Result<(), AttributeError> {
    let (least, greatest) = kernel.limits.priorities;
    if attributes.has(PRIORITY) && !(greatest..=least).contains(&attributes.priority) {
        return Err(AttributeError::Priority {
            asked: attributes.priority,
            least,
            greatest,
        });
    }
    Ok(())
}

/// The cluster of this launch, if it has one.
fn cluster_of(
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

fn check_cluster(kernel: &Loaded, cluster: Cluster) -> Result<(), AttributeError> {
    let axes = [
        (Axis::X, cluster.x),
        (Axis::Y, cluster.y),
        (Axis::Z, cluster.z),
    ];
    if let Some((axis, _)) = axes.into_iter().find(|&(_, blocks)| blocks == 0) {
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

fn grid_of_clusters(
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

/// That a cluster fits the device; and for a cooperative grid, that all of it runs at a time.
fn check_residency(
    kernel: &Loaded,
    dims: Dims,
    cluster: Option<Cluster>,
    cooperative: bool,
) -> Result<(), LaunchErrorKind> {
    let Dims {
        grid,
        block,
        shared_mem_bytes,
    } = dims;
    let resident = kernel.resident_blocks(block, shared_mem_bytes, cluster)?;
    if let Some(cluster) = cluster
        && resident == 0
    {
        return Err(AttributeError::ClusterDoesNotFit {
            cluster,
            block,
            shared_mem_bytes,
        }
        .into());
    }
    if cooperative && grid.blocks() > u64::from(resident) {
        return Err(AttributeError::CooperativeTooLarge {
            grid,
            block,
            shared_mem_bytes,
            cluster,
            resident,
            multiprocessors: kernel.limits.multiprocessors,
        }
        .into());
    }
    Ok(())
}

impl Cluster {
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

impl PartialEq for Event<'_> {
    fn eq(&self, other: &Event<'_>) -> bool {
        self.0.cu_event() == other.0.cu_event()
    }
}

impl Eq for Event<'_> {}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.0.cu_event())
    }
}

/// What was asked for, for the message after a launch that the driver refused.
/// With `#`, also what the driver needs for them.
impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs = f.alternate();
        let mut separator = "";
        let mut say = |text: &dyn fmt::Display| {
            let written = write!(f, "{separator}{text}");
            separator = ", ";
            written
        };
        if self.has(COOPERATIVE) {
            say(&"a cooperative grid")?;
        }
        if self.has(CLUSTER) {
            say(&format_args!("clusters of {}", self.cluster))?;
        }
        if self.has(SERIALIZATION) {
            say(&"programmatic stream serialization")?;
        }
        if self.has(PROGRAMMATIC) {
            let needs = if needs {
                " (CUDA 11.8; one made without timing, as `new_event(None)` does)"
            } else {
                ""
            };
            say(&format_args!("a programmatic event{needs}"))?;
        }
        if self.has(LAUNCH_COMPLETION) {
            let needs = if needs {
                " (CUDA 12.3; one made without timing, as `new_event(None)` does)"
            } else {
                ""
            };
            say(&format_args!("a launch-completion event{needs}"))?;
        }
        if self.has(PRIORITY) {
            say(&format_args!("priority {}", self.priority))?;
        }
        if self.has(DOMAIN) {
            let domain = match self.domain {
                MemSyncDomain::Default => "default",
                MemSyncDomain::Remote => "remote",
            };
            say(&format_args!("the {domain} memory-synchronisation domain"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}
