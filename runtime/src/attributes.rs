//! What a launch asks for beside its shape: launch attributes, what they need, and the form in which
//! the driver takes them.
//!
//! Whatever can be known before the driver is called is checked here; see
//! [`CUlaunchAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html).

mod cluster;
mod sys;
mod window;

use std::{
    ffi::{c_int, c_uint},
    fmt,
};

use cudarc::driver::{CudaEvent, sys::CUcontext};

use self::{
    cluster::{check_cluster, check_preferred, cluster_of, grid_of_clusters},
    sys::{SysAttributes, SysEvent},
};
use crate::{
    error::{AttributeError, LaunchErrorKind},
    launch::{Dims, Grid},
    load::Loaded,
};

pub(crate) use self::sys::{SysAttribute, SysValue};
pub use self::{
    cluster::{Cluster, ClusterSchedulingPolicy},
    window::{AccessPolicyWindow, AccessProperty},
};

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

/// Which of the device's memory-synchronisation domains each of [`MemSyncDomain`] is, counted from 0. A
/// device of compute capability 9.0 has four, older ones have one
/// ([`CUlaunchMemSyncDomainMap`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html)).
///
/// ```
/// use gridcall::MemSyncDomainMap;
/// let usual = MemSyncDomainMap { default: 0, remote: 1 };
/// # let _ = usual;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemSyncDomainMap {
    /// That of [`MemSyncDomain::Default`].
    pub default: u8,
    /// That of [`MemSyncDomain::Remote`].
    pub remote: u8,
}

/// How much of the memory that a multiprocessor divides between shared memory and the L1 cache a launch
/// would have as shared memory
/// ([preferred shared memory carveout](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html)).
///
/// ```
/// use gridcall::{SharedMemCarveout, cover};
/// let launch = cover(1000).shared_mem_carveout(SharedMemCarveout::MaxL1);
/// # let _ = launch;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedMemCarveout {
    /// As little as the launch needs, so that the cache is as large as can be.
    MaxL1,
    /// All that can be shared memory.
    MaxShared,
    /// So many hundredths of what can be shared memory, 100 at most.
    Percent(u8),
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
    set: u16,
    cluster: Cluster,
    preferred_cluster: Cluster,
    scheduling: ClusterSchedulingPolicy,
    priority: i32,
    domain: MemSyncDomain,
    domain_map: MemSyncDomainMap,
    carveout: SharedMemCarveout,
    window: Option<AccessPolicyWindow>,
    trigger: Trigger,
    programmatic: Option<Event<'e>>,
    launch_completion: Option<Event<'e>>,
}

/// An event that a launch records; one is another's equal if it is the same.
#[derive(Clone, Copy)]
struct Event<'e>(&'e CudaEvent);

const COOPERATIVE: u16 = 1;
const CLUSTER: u16 = 2;
const SERIALIZATION: u16 = 4;
const PROGRAMMATIC: u16 = 8;
const LAUNCH_COMPLETION: u16 = 16;
const PRIORITY: u16 = 32;
const DOMAIN: u16 = 64;
const DOMAIN_MAP: u16 = 128;
const PREFERRED_CLUSTER: u16 = 256;
const SCHEDULING: u16 = 512;
const CARVEOUT: u16 = 1024;
const WINDOW: u16 = 2048;

const ONE_BLOCK: Cluster = Cluster { x: 1, y: 1, z: 1 };

impl<'e> Attributes<'e> {
    /// None.
    pub(crate) const NONE: Attributes<'static> = Attributes {
        set: 0,
        cluster: ONE_BLOCK,
        preferred_cluster: ONE_BLOCK,
        scheduling: ClusterSchedulingPolicy::Default,
        priority: 0,
        domain: MemSyncDomain::Default,
        domain_map: MemSyncDomainMap {
            default: 0,
            remote: 0,
        },
        carveout: SharedMemCarveout::MaxL1,
        window: None,
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

    #[inline(always)]
    pub(crate) fn mem_sync_domain_map(&mut self, map: MemSyncDomainMap) {
        self.set |= DOMAIN_MAP;
        self.domain_map = map;
    }

    #[inline(always)]
    pub(crate) fn preferred_cluster(&mut self, cluster: Cluster) {
        self.set |= PREFERRED_CLUSTER;
        self.preferred_cluster = cluster;
    }

    #[inline(always)]
    pub(crate) fn cluster_scheduling_policy(&mut self, policy: ClusterSchedulingPolicy) {
        self.set |= SCHEDULING;
        self.scheduling = policy;
    }

    #[inline(always)]
    pub(crate) fn shared_mem_carveout(&mut self, carveout: SharedMemCarveout) {
        self.set |= CARVEOUT;
        self.carveout = carveout;
    }

    #[inline(always)]
    pub(crate) fn access_policy_window(&mut self, window: AccessPolicyWindow) {
        self.set |= WINDOW;
        self.window = Some(window);
    }

    fn has(&self, attribute: u16) -> bool {
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
            // What is not set has the same value everywhere, so that nodes can be compared.
            all.cluster = ONE_BLOCK;
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
        Ok(Attributes {
            set: all.set,
            cluster: all.cluster,
            preferred_cluster: all.preferred_cluster,
            scheduling: all.scheduling,
            priority: all.priority,
            domain: all.domain,
            domain_map: all.domain_map,
            carveout: all.carveout,
            window: all.window,
            trigger: Attributes::NONE.trigger,
            programmatic: None,
            launch_completion: None,
        })
    }

    /// What the graph of a node with these is instantiated with.
    #[cold]
    pub(crate) fn instantiation_flags(&self) -> u64 {
        /// `CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY`: without it, all nodes have the priority of
        /// the stream that the graph is launched on.
        const USE_NODE_PRIORITY: u64 = 8;
        if self.has(PRIORITY) {
            USE_NODE_PRIORITY
        } else {
            0
        }
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
            _ if self.has(PREFERRED_CLUSTER) => self.preferred_cluster,
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
        let mut list = SysAttributes::NONE;
        if let Some(window) = self.window {
            list.push(1).window = window.to_sys();
        }
        if self.has(COOPERATIVE) {
            list.push(2).cooperative = 1;
        }
        if self.has(CLUSTER) {
            list.push(4).cluster = self.cluster.into();
        }
        if self.has(SCHEDULING) {
            list.push(5).scheduling = match self.scheduling {
                ClusterSchedulingPolicy::Default => 0,
                ClusterSchedulingPolicy::Spread => 1,
                ClusterSchedulingPolicy::LoadBalancing => 2,
            };
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
        if self.has(DOMAIN_MAP) {
            list.push(9).domain_map = [self.domain_map.default, self.domain_map.remote];
        }
        if self.has(DOMAIN) {
            list.push(10).domain = match self.domain {
                MemSyncDomain::Default => 0,
                MemSyncDomain::Remote => 1,
            };
        }
        // After the cluster, of which it is a multiple.
        if self.has(PREFERRED_CLUSTER) {
            list.push(11).cluster = self.preferred_cluster.into();
        }
        if let Some(Event(event)) = self.launch_completion {
            list.push(12).event = SysEvent {
                event: event.cu_event(),
                flags: 0,
                at_block_start: 0,
            };
        }
        if self.has(CARVEOUT) {
            list.push(14).carveout = match self.carveout {
                SharedMemCarveout::MaxL1 => 0,
                SharedMemCarveout::MaxShared => 100,
                SharedMemCarveout::Percent(percent) => c_uint::from(percent),
            };
        }
        list
    }
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
    check_domains(kernel, attributes)?;
    check_carveout(attributes)?;
    if let Some(window) = &attributes.window {
        window.check(kernel)?;
    }
    let cluster = cluster_of(kernel, attributes)?;
    if let Some(cluster) = cluster {
        check_cluster(kernel, cluster)?;
    }
    let preferred = attributes.has(PREFERRED_CLUSTER);
    let preferred = preferred.then_some(attributes.preferred_cluster);
    if let Some(preferred) = preferred {
        check_preferred(kernel, preferred, cluster)?;
    }
    // What is of whole preferred clusters is so of the others.
    if let Some(whole) = preferred.or(cluster) {
        dims.grid = grid_of_clusters(kernel, dims.grid, whole, examined.covered)?;
    }
    if dims.is_empty() {
        return Ok(dims);
    }
    let cooperative = attributes.has(COOPERATIVE) || kernel.needs.cooperative;
    if cooperative && attributes.has(CARVEOUT) {
        return Err(AttributeError::CooperativeCarveout.into());
    }
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
    if attributes.has(SCHEDULING) && !limits.clusters {
        return Err(AttributeError::Capability {
            attribute: "a cluster scheduling policy",
            needed: (9, 0),
            capability: limits.capability,
        });
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
    check_driver(attributes, limits.driver)
}

/// That a driver of this version of CUDA knows them.
fn check_driver(attributes: &Attributes<'_>, driver: (u32, u32)) -> Result<(), AttributeError> {
    let since = [
        (
            DOMAIN_MAP,
            "a map of memory-synchronisation domains",
            (12, 0),
        ),
        (PREFERRED_CLUSTER, "a preferred cluster", (12, 8)),
        (CARVEOUT, "a shared memory carveout", (12, 5)),
    ];
    for (attribute, name, needed) in since {
        if attributes.has(attribute) && driver < needed {
            return Err(AttributeError::OldCuda {
                attribute: name,
                needed,
                driver,
            });
        }
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

fn check_domains(kernel: &Loaded, attributes: &Attributes<'_>) -> Result<(), AttributeError> {
    let MemSyncDomainMap { default, remote } = attributes.domain_map;
    let count = kernel.limits.mem_sync_domains;
    for (of, domain) in [("default", default), ("remote", remote)] {
        if attributes.has(DOMAIN_MAP) && u32::from(domain) >= count {
            return Err(AttributeError::Domain { of, domain, count });
        }
    }
    Ok(())
}

fn check_carveout(attributes: &Attributes<'_>) -> Result<(), AttributeError> {
    match attributes.carveout {
        // The driver's word for no preference, -1, it refuses of a launch (CUDA 13.0).
        SharedMemCarveout::Percent(percent) if percent > 100 => {
            Err(AttributeError::Carveout { percent })
        }
        _ => Ok(()),
    }
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
        if self.has(PREFERRED_CLUSTER) {
            say(&format_args!(
                "preferred clusters of {}",
                self.preferred_cluster
            ))?;
        }
        if self.has(SCHEDULING) {
            say(&format_args!(
                "the {} cluster scheduling policy",
                self.scheduling
            ))?;
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
        if self.has(DOMAIN_MAP) {
            let MemSyncDomainMap { default, remote } = self.domain_map;
            say(&format_args!(
                "memory-synchronisation domains {default} (default) and {remote} (remote)"
            ))?;
        }
        if let Some(window) = &self.window {
            say(window)?;
        }
        if self.has(CARVEOUT) {
            say(&self.carveout)?;
        }
        Ok(())
    }
}

impl fmt::Display for SharedMemCarveout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedMemCarveout::MaxL1 => {
                f.write_str("a shared memory carveout for the largest L1 cache")
            }
            SharedMemCarveout::MaxShared => f.write_str("the largest shared memory carveout"),
            SharedMemCarveout::Percent(percent) => {
                write!(f, "a shared memory carveout of {percent} %")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_driver_is_told_by_what_it_lacks() {
        let mut map = Attributes::NONE;
        map.mem_sync_domain_map(MemSyncDomainMap {
            default: 0,
            remote: 0,
        });
        let mut preferred = Attributes::NONE;
        preferred.preferred_cluster(Cluster::from(2));
        let mut carveout = Attributes::NONE;
        carveout.shared_mem_carveout(SharedMemCarveout::MaxL1);
        for (attributes, before, since) in [
            (map, (11, 8), (12, 0)),
            (preferred, (12, 6), (12, 8)),
            (carveout, (12, 4), (12, 5)),
        ] {
            let error = check_driver(&attributes, before).unwrap_err();
            assert!(
                matches!(error, AttributeError::OldCuda { needed, driver, .. } if needed == since && driver == before)
            );
            assert!(check_driver(&attributes, since).is_ok());
        }
        let mut carveout = Attributes::NONE;
        carveout.shared_mem_carveout(SharedMemCarveout::Percent(10));
        assert_eq!(
            check_driver(&carveout, (12, 2)).unwrap_err().to_string(),
            "the launch asks for a shared memory carveout, which needs a driver of CUDA 12.5; this one supports CUDA 12.2: update it"
        );
        assert!(check_driver(&Attributes::NONE, (11, 8)).is_ok());
    }
}
