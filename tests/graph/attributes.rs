//! Nodes with launch attributes.

use std::{ptr, sync::Arc};

use gridcall::{
    AccessPolicyWindow, AccessProperty, AsDeviceView as _, Buffer, Capture,
    ClusterSchedulingPolicy, Graph, GraphError, GraphErrorKind, Launch, LaunchErrorKind,
    MemSyncDomain, MemSyncDomainMap, Module, Node, SharedMemCarveout, Trigger, cover,
    cudarc::driver::{CudaContext, CudaStream, sys},
    kernel,
};
use gridcall_emulator::Config;
use libloading::Library;
use sys::CUlaunchAttributeID as Id;

use crate::{
    kernels::fill,
    support::{Device, say},
};

#[kernel(ptx = "../kernels/cooperative.ptx")]
unsafe extern "C" {
    /// `a` rotated by `rounds`; in `b`, if that is odd
    #[cooperative]
    #[rank(1)]
    #[requires(n >= 1, rounds >= 0, a.len() >= n, b.len() >= n)]
    safe fn rotate(a: &mut [i32], b: &mut [i32], n: i32, rounds: i32);
}

#[kernel(ptx = "../kernels/clusters.ptx")]
unsafe extern "C" {
    #[name("cluster_shape")]
    #[cluster(2, 2)]
    #[requires(out.len() >= grid.blocks() * 4)]
    safe fn cluster_shape_2_2(out: &mut [u32]);

    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
    #[requires(shared_mem_bytes >= block.x * 4, block.threads() == block.x, grid.blocks() == grid.x)]
    safe fn ring(x: &[i32], y: &mut [i32]);

    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
    #[requires(shared_mem_bytes >= block.x * 4, block.threads() == block.x, grid.blocks() == grid.x)]
    safe fn pair(x: &[i32], y: &mut [i32]);

    #[requires(runs.len() >= grid.blocks(), shape.len() >= 4)]
    safe fn counted_square(runs: &mut [u32], shape: &mut [u32]);
}

#[kernel(ptx = "../kernels/handwritten/explicit_cluster.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= grid.x, grid.blocks() == grid.x, block.threads() == 1)]
    safe fn any_cluster(y: &mut [i32]);
}

/// Kernels of modules that are known only when the program runs.
mod later {
    use gridcall::kernel;

    #[kernel]
    unsafe extern "C" {
        #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
        #[requires(shared_mem_bytes >= block.x * 4, block.threads() == block.x, grid.blocks() == grid.x)]
        pub(super) safe fn pair(x: &[i32], y: &mut [i32]);
    }
}

/// N elements of `a` rotated.
macro_rules! rotated {
    ($a:ident, $b:ident, $rounds:expr) => {
        rotate {
            a: &mut $a,
            b: &mut $b,
            n: N,
            rounds: $rounds,
        }
    };
}

/// Four elements of `y` filled.
macro_rules! filled {
    ($y:ident, $v:expr) => {
        fill {
            y: &mut $y,
            v: $v,
            n: 4,
        }
    };
}

/// How many elements are rotated.
const N: i32 = 10_007;

fn ints(n: i32) -> Vec<i32> {
    (0..n).collect()
}

/// What `ring` makes of 0, 1, .. in blocks of 64.
fn rung(blocks: i32, cluster: i32) -> Vec<i32> {
    ints(blocks * 64)
        .into_iter()
        .map(|i| {
            let (block, thread) = (i / 64, i % 64);
            (block / cluster * cluster + (block + 1) % cluster) * 64 + thread
        })
        .collect()
}

fn has_clusters(device: &Device, test: &str) -> bool {
    let has = device.compute_capability().unwrap() >= (9, 0);
    if !has {
        say(&format!("{test}: not run, as the device has no clusters"));
    }
    has
}

macro_rules! needs_clusters {
    ($device:expr) => {
        if !has_clusters(&$device, this_test!()) {
            return;
        }
    };
}

fn attribute<T: std::fmt::Debug>(result: Result<T, GraphError>) -> String {
    let error = result.expect_err("the attribute is impossible");
    match error.kind() {
        GraphErrorKind::Launch(launch) => match launch.kind() {
            LaunchErrorKind::Attribute(reason) => reason.to_string(),
            _ => panic!("{error}"),
        },
        _ => panic!("{error}"),
    }
}

fn multiprocessors(device: &Device) -> u32 {
    device
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .unwrap()
        .unsigned_abs()
}

/// What the driver says of an attribute of each node of the graph, which are kernels'.
fn told(
    graph: &mut Graph<'_>,
    stream: &Arc<CudaStream>,
    attribute: Id,
) -> Vec<sys::CUlaunchAttributeValue> {
    type GetCaptureInfo = unsafe extern "C" fn(
        sys::CUstream,
        *mut u32,
        *mut u64,
        *mut sys::CUgraph,
        *mut *const sys::CUgraphNode,
        *mut usize,
    ) -> sys::CUresult;
    // cudarc's bindings have it under another signature for each toolkit.
    // SAFETY: the driver is loaded already.
    let driver = unsafe { Library::new("libcuda.so.1") }.unwrap();
    // SAFETY: the type is that of the function in the driver's header.
    let info = unsafe { driver.get::<GetCaptureInfo>(b"cuStreamGetCaptureInfo_v2") }.unwrap();
    let (mut status, mut id, mut raw) = (0, 0, ptr::null_mut());
    let (mut after, mut count) = (ptr::null(), 0);
    let ask = |_: &mut Capture<'_, '_>| {
        let (status, id) = (&raw mut status, &raw mut id);
        let (raw, after, count) = (&raw mut raw, &raw mut after, &raw mut count);
        // SAFETY: the stream is being captured; each place takes an answer.
        let code = unsafe { info(stream.cu_stream(), status, id, raw, after, count) };
        code.result().unwrap();
        Ok::<_, GraphError>(())
    };
    // SAFETY: nothing is enqueued.
    unsafe { graph.capture(stream, ask) }.unwrap();
    let mut nodes = [ptr::null_mut(); 8];
    let mut count = nodes.len();
    // SAFETY: the graph lives, and there is room for so many nodes.
    let code = unsafe { sys::cuGraphGetNodes(raw, nodes.as_mut_ptr(), &raw mut count) };
    code.result().unwrap();
    let mut values = Vec::new();
    for node in &nodes[..count] {
        let mut kind = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
        // SAFETY: the node lives, and `kind` takes the answer.
        let code = unsafe { sys::cuGraphNodeGetType(*node, &raw mut kind) };
        code.result().unwrap();
        if kind != sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL {
            // What a capture begins or ends with.
            continue;
        }
        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
        // SAFETY: the node is a kernel's, and `value` takes the answer.
        let code = unsafe { sys::cuGraphKernelNodeGetAttribute(*node, attribute, &raw mut value) };
        code.result().unwrap();
        values.push(value);
    }
    values
}

#[test]
fn the_blocks_of_a_cluster_reach_each_others_memory() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &ints(48 * 64)).unwrap();
    let zeros = Buffer::from_slice(&stream, &[0; 48 * 64]).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let (x, zeros) = (graph.read(&x).unwrap(), graph.read(&zeros).unwrap());
    let launch = |blocks: u32, cluster: u16| {
        let launch = Launch::new(blocks, 64).shared::<i32>(64);
        launch.cluster(u32::from(cluster))
    };
    let mut nodes = Vec::new();
    for size in [1, 2, 3, 4, 8, 16] {
        let y = Buffer::<i32>::zeroed(&stream, 48 * 64).unwrap();
        let mut y = graph.own(y).unwrap();
        let arguments = ring { x: &x, y: &mut y };
        let node = graph.add(launch(48, size), arguments).unwrap();
        nodes.push((size, node, y));
    }
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    for (size, _, y) in &nodes {
        let seen = graph.slice(*y).unwrap().to_vec().unwrap();
        assert_eq!(seen, rung(48, i32::from(*size)), "clusters of {size}");
    }

    // A node that is updated keeps its cluster, of which its grid is a multiple.
    let (size, node, mut y) = nodes[2];
    let arguments = ring {
        x: &zeros,
        y: &mut y,
    };
    graph.update(node, launch(48, size), arguments).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [0; 48 * 64]);
    let arguments = ring { x: &x, y: &mut y };
    graph.update(node, launch(24, size), arguments).unwrap();
    let arguments = ring { x: &x, y: &mut y };
    assert_eq!(
        attribute(graph.update(node, launch(25, size), arguments)),
        "a grid of (25, 1, 1) is not of whole clusters of (3, 1, 1); make each axis a multiple, or \
         use `cover`, which does"
    );
    graph.launch(&stream).unwrap();
    let seen = graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!(seen[..24 * 64], rung(24, 3));
    assert_eq!(seen[24 * 64..], [0; 24 * 64]);
}

#[test]
fn a_cluster_that_the_kernel_names_needs_no_asking() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let x = Buffer::from_slice(&stream, &ints(4 * 64)).unwrap();
    let zeroed = || Buffer::<i32>::zeroed(&stream, 4 * 64).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let (mut y, mut z, mut w) = (
        graph.own(zeroed()).unwrap(),
        graph.own(zeroed()).unwrap(),
        graph.own(zeroed()).unwrap(),
    );
    let out = Buffer::<u32>::zeroed(&stream, 4 * 8).unwrap();
    let mut out = graph.own(out).unwrap();
    // What is covered is of whole clusters: three blocks become four.
    let launch = cover(3 * 64).block(64).shared::<i32>(64);
    let node = graph.add(launch, pair { x: &x, y: &mut y }).unwrap();
    let shape = cover((3, 2)).block(1);
    graph
        .add(shape, cluster_shape_2_2 { out: &mut out })
        .unwrap();
    let text = Module::from_ptx(&device, include_str!("../../kernels/clusters.ptx")).unwrap();
    // SAFETY: the file holds the kernel that is declared.
    let of_module = unsafe { later::pair::load_from(&text) }.unwrap();
    let arguments = later::pair { x: &x, y: &mut z };
    of_module.add_to(&mut graph, launch, arguments).unwrap();
    // One that does nothing until it is updated.
    let nothing = cover(0).shared::<i32>(256);
    let later = graph.add(nothing, pair { x: &x, y: &mut w }).unwrap();
    let odd = Launch::new(3, 64).shared::<i32>(64);
    assert_eq!(
        attribute(graph.add(odd, pair { x: &x, y: &mut y })),
        "a grid of (3, 1, 1) is not of whole clusters of (2, 1, 1); make each axis a multiple, or \
         use `cover`, which does"
    );
    let four = launch.cluster(4);
    assert_eq!(
        attribute(graph.add(four, pair { x: &x, y: &mut y })),
        "the launch asks for clusters of (4, 1, 1), the kernel is compiled for (.reqnctapercluster) \
         (2, 1, 1); ask for that size, or for none"
    );
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let seen =
        |graph: &gridcall::GraphExec<'_>, y| graph.slice::<i32>(y).unwrap().to_vec().unwrap();
    assert_eq!(seen(&graph, y.as_slice()), rung(4, 2));
    assert_eq!(seen(&graph, z.as_slice()), rung(4, 2));
    assert_eq!(seen(&graph, w.as_slice()), [0; 4 * 64]);
    let shapes = graph.slice(out).unwrap().to_vec().unwrap();
    let ranks: Vec<u32> = shapes
        .chunks_exact(4)
        .map(|four| {
            assert_eq!(four[..3], [2, 2, 1]);
            four[3]
        })
        .collect();
    assert_eq!(ranks, [0, 1, 0, 1, 2, 3, 2, 3]);
    // Asked for or not, it is the same cluster.
    let arguments = pair { x: &x, y: &mut y };
    graph.update(node, launch.cluster(2), arguments).unwrap();
    graph
        .update(later, launch, pair { x: &x, y: &mut w })
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(seen(&graph, y.as_slice()), rung(4, 2));
    assert_eq!(seen(&graph, w.as_slice()), rung(4, 2));
}

#[test]
fn a_node_that_counts_clusters_runs_the_blocks_of_its_grid() {
    let device = device!(alone);
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let new = |len| Buffer::<u32>::zeroed(&stream, len).unwrap();
    let mut runs = graph.own(new(24)).unwrap();
    let mut shape = graph.own(new(4)).unwrap();
    let mut captured = graph.own(new(24)).unwrap();
    let arguments = counted_square {
        runs: &mut runs,
        shape: &mut shape,
    };
    let node = graph.add(((6, 4), (8, 4)), arguments).unwrap();
    // A disabled one is of one cluster.
    let mut other = graph.own(new(24)).unwrap();
    let arguments = counted_square {
        runs: &mut other,
        shape: &mut shape,
    };
    let later = graph.add(cover((0, 0)), arguments).unwrap();
    let record = |capture: &mut gridcall::Capture<'_, '_>| {
        let arguments = counted_square {
            runs: &mut captured,
            shape: &mut shape,
        };
        capture.launch(((2, 2), (8, 4)), arguments).map(drop)
    };
    // SAFETY: nothing but a kernel of this crate is enqueued.
    unsafe { graph.capture(&stream, record) }.unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let seen = |graph: &gridcall::GraphExec<'_>, y| graph.slice(y).unwrap().to_vec().unwrap();
    assert_eq!(seen(&graph, runs.as_slice()), [1; 24]);
    assert_eq!(seen(&graph, other.as_slice()), [0; 24]);
    let mut first = [0; 24];
    first[..4].fill(1);
    assert_eq!(seen(&graph, captured.as_slice()), first);
    let arguments = counted_square {
        runs: &mut runs,
        shape: &mut shape,
    };
    graph.update(node, ((2, 2), (8, 4)), arguments).unwrap();
    let arguments = counted_square {
        runs: &mut other,
        shape: &mut shape,
    };
    graph.update(later, cover((16, 8)), arguments).unwrap();
    graph.launch(&stream).unwrap();
    let mut both = [1; 24];
    both[..4].fill(2);
    assert_eq!(seen(&graph, runs.as_slice()), both);
    assert_eq!(seen(&graph, other.as_slice()), first);
}

#[test]
fn a_kernel_that_names_no_cluster_but_needs_one_is_given_it() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<i32>::zeroed(&stream, 4).unwrap();
    let mut y = graph.own(y).unwrap();
    let launch = Launch::new(4, 1);
    assert_eq!(
        attribute(graph.add(launch, any_cluster { y: &mut y })),
        "the kernel is compiled to be launched in clusters (.explicitcluster) of a size that it does \
         not say; add `.cluster(..)` to the launch, or declare #[cluster(..)]"
    );
    let launch = launch.cluster(4);
    graph.add(launch, any_cluster { y: &mut y }).unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [4; 4]);
}

#[test]
fn the_blocks_of_a_cooperative_grid_wait_for_each_other() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let each = rotate::load(&device).unwrap();
    let each = each.max_active_blocks_per_multiprocessor(256, 0).unwrap();
    let most = multiprocessors(&device) * each;
    let mut graph = Graph::new(&device).unwrap();
    let a = Buffer::from_slice(&stream, &ints(N)).unwrap();
    let mut a = graph.own(a).unwrap();
    let b = Buffer::from_slice(&stream, &ints(N)).unwrap();
    let mut b = graph.own(b).unwrap();
    let refused = format!(
        "a cooperative grid of {} blocks cannot run at a time; with 256 threads and 0 bytes of \
         dynamic shared memory a block this device runs {most}: {each} on each of {} \
         multiprocessors; launch at most so many, and let each do more",
        most + 1,
        multiprocessors(&device)
    );
    assert_eq!(
        attribute(graph.add((most + 1, 256), rotated!(a, b, 2))),
        refused
    );
    let node = graph.add((most, 256), rotated!(a, b, 2)).unwrap();
    let last = graph.add((1, 256), rotated!(a, b, 2)).unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let seen = move |graph: &gridcall::GraphExec<'_>| graph.slice(a).unwrap().to_vec().unwrap();
    let mut expected = ints(N);
    expected.rotate_left(4);
    assert!(seen(&graph) == expected);
    graph.update(node, (2, 256), rotated!(a, b, 4)).unwrap();
    // That the launch says what the declaration says makes no difference.
    let launch = Launch::new(most, 256).cooperative();
    graph.update(last, launch, rotated!(a, b, 0)).unwrap();
    assert_eq!(
        attribute(graph.update(node, (most + 1, 256), rotated!(a, b, 6))),
        refused
    );
    graph.launch(&stream).unwrap();
    expected.rotate_left(4);
    assert!(seen(&graph) == expected);
}

#[test]
fn the_driver_tells_what_a_node_was_added_with() {
    let device = device!(alone);
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let (least, greatest) = priorities(&device);
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 64).unwrap();
    let mut y = graph.own(y).unwrap();
    let plain = Launch::new(4, 16);
    let launches = [
        plain.priority(greatest),
        plain.priority(least),
        plain.mem_sync_domain(MemSyncDomain::Remote),
        plain.cluster((2, 1)).cooperative(),
        plain,
    ];
    for launch in launches {
        let arguments = fill {
            y: &mut y,
            v: 1.0,
            n: 64,
        };
        graph.add(launch, arguments).unwrap();
    }
    let of = |id, graph: &mut Graph<'_>| told(graph, &stream, id).into_iter();
    let priorities: Vec<i32> = of(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, &mut graph)
        // SAFETY: it is the value of this attribute.
        .map(|value| unsafe { value.priority })
        .collect();
    assert_eq!(priorities, [greatest, least, 0, 0, 0]);
    let remote = sys::CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    let remotes: Vec<bool> = of(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &mut graph)
        // SAFETY: it is the value of this attribute.
        .map(|value| unsafe { value.memSyncDomain } == remote)
        .collect();
    assert_eq!(remotes, [false, false, true, false, false]);
    let cooperative: Vec<i32> = of(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &mut graph)
        // SAFETY: it is the value of this attribute.
        .map(|value| unsafe { value.cooperative })
        .collect();
    assert_eq!(cooperative, [0, 0, 0, 1, 0]);
    let cluster = of(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &mut graph)
        // SAFETY: it is the value of this attribute.
        .map(|value| unsafe { value.clusterDim })
        .nth(3)
        .unwrap();
    assert_eq!((cluster.x, cluster.y, cluster.z), (2, 1, 1));
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [1.0; 64]);
}

#[test]
fn the_driver_tells_what_a_node_asks_of_caches() {
    let device = device!(alone);
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 64).unwrap();
    let whole = AccessPolicyWindow::new(&y, AccessProperty::Persisting).unwrap();
    let address = y.describe().unwrap().pointer();
    let mut y = graph.own(y).unwrap();
    let half = y.slice_mut(32..).unwrap();
    let half = graph.access_policy_window(half, AccessProperty::Streaming);
    let half = half.unwrap().hit_ratio(0.25);
    let plain = Launch::new(4, 16);
    let map = MemSyncDomainMap {
        default: 2,
        remote: 1,
    };
    let launches = [
        plain.access_policy_window(whole),
        plain.access_policy_window(half),
        plain.shared_mem_carveout(SharedMemCarveout::Percent(40)),
        plain
            .cluster(2)
            .cluster_scheduling_policy(ClusterSchedulingPolicy::Spread),
        plain.mem_sync_domain_map(map),
    ];
    for launch in launches {
        let arguments = fill {
            y: &mut y,
            v: 1.0,
            n: 64,
        };
        graph.add(launch, arguments).unwrap();
    }
    // One that is captured keeps the same.
    let record = |capture: &mut Capture<'_, '_>| {
        let arguments = fill {
            y: &mut y,
            v: 2.0,
            n: 64,
        };
        capture.launch(launches[1], arguments).map(drop)
    };
    // SAFETY: nothing but a kernel of this crate is enqueued.
    unsafe { graph.capture(&stream, record) }.unwrap();
    let of = |id, graph: &mut Graph<'_>| {
        let values = told(graph, &stream, id).into_iter();
        // SAFETY: all bytes of each value were given.
        let bytes = values.map(|value| unsafe { value.pad }.map(i8::cast_unsigned));
        bytes.collect::<Vec<[u8; 64]>>()
    };
    let window = |address: u64, bytes: u64, ratio: f32, hit: u32| {
        let mut all = Vec::new();
        all.extend(address.to_ne_bytes());
        all.extend(bytes.to_ne_bytes());
        all.extend(ratio.to_ne_bytes());
        all.extend([hit, 0].map(u32::to_ne_bytes).concat());
        all
    };
    let seen = of(Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &mut graph);
    assert_eq!(seen[0][..28], window(address, 256, 1.0, 2));
    for node in [1, 5] {
        assert_eq!(seen[node][..28], window(address + 128, 128, 0.25, 1));
    }
    assert_eq!(seen[2][..28], [0; 28]);
    // The bindings know it since CUDA 12.5.
    // SAFETY: the enum has the size of a number, and is only handed on to the driver.
    let carveout = unsafe { std::mem::transmute::<u32, Id>(14) };
    assert_eq!(of(carveout, &mut graph)[2][0], 40);
    let scheduling = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    assert_eq!(of(scheduling, &mut graph)[3][0], 1);
    let maps = of(Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &mut graph);
    assert_eq!(maps[4][..2], [2, 1]);

    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [2.0; 64]);
}

#[test]
fn a_node_keeps_its_window() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let mut y = graph.own(y).unwrap();
    let window = graph.access_policy_window(y, AccessProperty::Persisting);
    let window = window.unwrap();
    let bad = window.hit_ratio(2.0);
    assert_eq!(
        attribute(graph.add(cover(4).access_policy_window(bad), filled!(y, 1.0))),
        "the hit ratio of the access policy window is 2, not between 0 and 1"
    );
    let launch = cover(4).access_policy_window(window);
    let node = graph.add(launch, filled!(y, 1.0)).unwrap();
    let other = Graph::new(&device).unwrap();
    let error = other.access_policy_window(y, AccessProperty::Normal);
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind(), GraphErrorKind::OtherGraph { .. }),
        "{error}"
    );
    let mut graph = graph.instantiate().unwrap();
    let narrower = cover(4).access_policy_window(window.hit_ratio(0.5));
    for launch in [cover(4), narrower] {
        let refused = attribute(graph.update(node, launch, filled!(y, 2.0)));
        assert!(
            refused.contains("the node has an access policy window of 16 bytes from")
                && refused.contains("1 of it persisting and the rest normal, the update asks for"),
            "{refused}"
        );
    }
    graph.update(node, launch, filled!(y, 3.0)).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [3.0; 4]);
}

fn priorities(device: &Arc<CudaContext>) -> (i32, i32) {
    device.bind_to_thread().unwrap();
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: both places take an answer, and a context is current.
    let code = unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) };
    code.result().unwrap();
    (least, greatest)
}

#[test]
fn a_captured_launch_has_attributes_too() {
    let device = device!(alone);
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    let (_, greatest) = priorities(&device);
    let x = Buffer::from_slice(&stream, &ints(8 * 64)).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let x = graph.read(&x).unwrap();
    let y = Buffer::<i32>::zeroed(&stream, 8 * 64).unwrap();
    let mut y = graph.own(y).unwrap();
    let b = Buffer::<i32>::zeroed(&stream, 8 * 64).unwrap();
    let mut b = graph.own(b).unwrap();
    let launch = Launch::new(8, 64).shared::<i32>(64);
    let launch = launch.cluster(4).priority(greatest);
    // SAFETY: all that is enqueued are launches of kernels.
    let (clusters, grid, nothing) = unsafe {
        graph.capture(&stream, |capture| {
            let clusters = capture.launch(launch, ring { x: &x, y: &mut y })?;
            let arguments = rotate {
                a: &mut y,
                b: &mut b,
                n: 8 * 64,
                rounds: 1,
            };
            let grid = capture.launch((2, 64), arguments)?;
            let nothing = cover(0).shared::<i32>(256);
            let nothing = capture.launch(nothing, pair { x: &x, y: &mut y })?;
            Ok::<_, GraphError>((clusters, grid, nothing))
        })
    }
    .unwrap();
    let of_first = told(&mut graph, &stream, Id::CU_LAUNCH_ATTRIBUTE_PRIORITY)[0];
    // SAFETY: it is the value of this attribute.
    assert_eq!(unsafe { of_first.priority }, greatest);
    let mut graph = graph.instantiate().unwrap();
    graph.launch(&stream).unwrap();
    let mut expected = rung(8, 4);
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), expected);
    expected.rotate_left(1);
    assert_eq!(graph.slice(b).unwrap().to_vec().unwrap(), expected);
    let mut fewer = Launch::new(4, 64).shared::<i32>(64);
    let arguments = ring { x: &x, y: &mut y };
    assert!(attribute(graph.update(clusters, fewer, arguments)).contains("the update asks for no"));
    fewer = fewer.cluster(4).priority(greatest);
    let arguments = ring { x: &x, y: &mut y };
    graph.update(clusters, fewer, arguments).unwrap();
    let arguments = rotate {
        a: &mut y,
        b: &mut b,
        n: 256,
        rounds: 3,
    };
    graph.update(grid, (1, 64), arguments).unwrap();
    let launch = cover(2 * 64).block(64).shared::<i32>(64);
    graph
        .update(nothing, launch, pair { x: &x, y: &mut y })
        .unwrap();
    graph.launch(&stream).unwrap();
    let mut expected = rung(4, 4);
    expected.rotate_left(3);
    assert_eq!(graph.slice(b).unwrap().to_vec().unwrap()[..256], expected);
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap()[..128], rung(2, 2));
}

#[test]
fn an_update_keeps_the_attributes() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let (_, greatest) = priorities(&device);
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let mut y = graph.own(y).unwrap();
    let plain = graph.add(cover(4), filled!(y, 1.0)).unwrap();
    let urgent = cover(4).priority(greatest);
    let special = graph.add(urgent.cooperative(), filled!(y, 2.0)).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let error = graph.update(plain, urgent, filled!(y, 3.0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "kernel `fill`: the node has no attributes, the update asks for priority {greatest}; a \
             node keeps its attributes: ask for the same, or build the graph anew"
        )
    );
    for (launch, asked) in [
        (cover(4), "no attributes".to_owned()),
        (urgent, format!("priority {greatest}")),
        (
            cover(4).cooperative().priority(greatest + 1),
            format!("a cooperative grid, priority {}", greatest + 1),
        ),
    ] {
        assert_eq!(
            attribute(graph.update(special, launch, filled!(y, 3.0))),
            format!(
                "the node has a cooperative grid, priority {greatest}, the update asks for {asked}; \
                 a node keeps its attributes: ask for the same, or build the graph anew"
            )
        );
    }
    // The node is as it was.
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [2.0; 4]);
    graph
        .update(special, urgent.cooperative(), filled!(y, 3.0))
        .unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [3.0; 4]);
}

#[test]
fn what_is_between_launches_is_refused() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let event = device.new_event(None).unwrap();
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let mut y = graph.own(y).unwrap();
    let node = graph.add(cover(4), filled!(y, 1.0)).unwrap();
    let launches = [
        (
            cover(4).programmatic_stream_serialization(),
            "programmatic stream serialization",
        ),
        (
            cover(4).programmatic_event(&event, Trigger::BlockStart),
            "a programmatic event",
        ),
        (
            cover(4).launch_completion_event(&event),
            "a launch-completion event",
        ),
    ];
    let refused = |what| {
        format!(
            "the launch asks for {what}, which a node of a graph cannot have: nodes run when those \
             before them have ended; leave it out, or launch the kernel on a stream"
        )
    };
    for (launch, what) in launches {
        assert_eq!(attribute(graph.add(launch, filled!(y, 1.0))), refused(what));
    }
    let mut graph = graph.instantiate().unwrap();
    for (launch, what) in launches {
        assert_eq!(
            attribute(graph.update(node, launch, filled!(y, 1.0))),
            refused(what)
        );
    }
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [1.0; 4]);
}

#[test]
fn what_is_impossible_is_refused_as_at_a_launch() {
    let device = device!();
    let stream = device.new_stream().unwrap();
    let (least, greatest) = priorities(&device);
    let mut graph = Graph::new(&device).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let mut y = graph.own(y).unwrap();
    assert_eq!(
        attribute(graph.add(cover(4).priority(least + 1), filled!(y, 1.0))),
        format!(
            "priority {} is not between {least}, the least, and {greatest}, the greatest",
            least + 1
        )
    );
    assert_eq!(
        attribute(graph.add(cover(4).cluster((1, 0)), filled!(y, 1.0))),
        "cluster.y is 0; a cluster has at least one block along each axis"
    );
    assert_eq!(
        attribute(graph.add(cover(4).cluster(32), filled!(y, 1.0))),
        "a cluster of (32, 1, 1) has 32 blocks, a device runs at most 16; make the cluster smaller"
    );

    if !device.name().unwrap().contains("emulat") {
        return;
    }
    let config = Config::default().compute_capability(8, 6);
    let older = gridcall_emulator::Device::with(&config).unwrap();
    let older = CudaContext::new(older.ordinal()).unwrap();
    let stream = older.default_stream();
    let mut graph = Graph::new(&older).unwrap();
    let y = Buffer::<f32>::zeroed(&stream, 4).unwrap();
    let mut y = graph.own(y).unwrap();
    assert_eq!(
        attribute(graph.add(cover(4).cluster(2), filled!(y, 1.0))),
        "the launch asks for a cluster of several blocks, which needs compute capability 9.0; this \
         device has 8.6: leave it out on such a device"
    );
    // Each block is a cluster there.
    let launch = Launch::new(2, 2).cluster(1).cooperative();
    let node: Node<fill> = graph.add(launch, filled!(y, 1.0)).unwrap();
    let mut graph = graph.instantiate().unwrap();
    graph.update(node, launch, filled!(y, 1.0)).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(graph.slice(y).unwrap().to_vec().unwrap(), [1.0; 4]);
}
