//! What a launch asks of caches, clusters' places and domains: does it take effect, and is what cannot be
//! refused before the driver?

use std::sync::Arc;

use gridcall::{
    AccessPolicyWindow, AccessProperty, BorrowedView, Buffer, ClusterSchedulingPolicy,
    DevicePointerMut, Graph, L2Error, Launch, MemSyncDomainMap, PersistingL2, Place,
    SharedMemCarveout, cover,
    cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys},
    kernel, stride,
};
use gridcall_emulator::Config;
use sys::CUlaunchAttributeID as Id;

use crate::{
    attributes::{attribute, captured, is_gpu},
    kernels::{count_threads, scale},
    support::{Device, say},
};

#[kernel(ptx = "../kernels/cache.ptx")]
unsafe extern "C" {
    /// Follows `next` from `start`: the cycles of `steps` after `warm` others, and where they led.
    ///
    /// # Safety
    ///
    /// What `next` holds, and `start`, must be less than its length.
    #[rank(1)]
    #[requires(grid.blocks() == 1, block.threads() == 1, out.len() >= 2)]
    fn chase(next: &[u32], start: u32, warm: u32, steps: u32, out: &mut [u32]);

    /// `total` ← `total` + the sum of x
    #[rank(1)]
    #[requires(x.len() >= n, total.len() >= 1)]
    safe fn sum(x: &[u32], n: u64, total: &mut [u32]);
}

#[kernel(ptx = "../kernels/clusters.ptx")]
unsafe extern "C" {
    #[requires(out.len() >= grid.blocks() * 4)]
    safe fn cluster_shape(out: &mut [u32]);

    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
    #[requires(shared_mem_bytes >= block.x * 4, block.threads() == block.x, grid.blocks() == grid.x)]
    safe fn quad(x: &[i32], y: &mut [i32]);
}

/// A kernel at an address whose use nobody records, for captures.
#[kernel(ptx = "../kernels/dependent.ptx")]
#[name("stamp")]
unsafe fn stamp_at(times: *mut i64, duration: i64);

/// The elements from one line of a cache to the next.
const LINE: usize = 32;

/// So many lines, a power of two, each of which leads to another, until all were visited.
fn chain(lines: usize) -> Vec<u32> {
    assert!(lines.is_power_of_two());
    let mut next = vec![0; lines * LINE];
    for line in 0..lines {
        let other = (line * 1_664_525 + 1_013_904_223) % lines;
        next[line * LINE] = u32::try_from(other * LINE).unwrap();
    }
    next
}

fn follow(next: &[u32], steps: u32) -> u32 {
    (0..steps).fold(0, |at, _| next[at as usize])
}

/// Sets all aside that can be, until it is dropped.
struct SetAside(PersistingL2, usize);

impl SetAside {
    fn all(device: &Device) -> SetAside {
        let l2 = PersistingL2::of(device);
        let before = l2.bytes().unwrap();
        let most = l2.max_bytes().unwrap();
        assert_eq!(l2.set_bytes(most).unwrap(), most);
        SetAside(l2, before)
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        self.0.reset().unwrap();
        self.0.set_bytes(self.1).unwrap();
    }
}

/// Whether the device has windows, which it says if not.
fn has_windows(device: &Device, test: &str) -> bool {
    let has = device.compute_capability().unwrap() >= (8, 0);
    if !has {
        say(&format!(
            "{test}: not run, as the device has no access policy windows"
        ));
    }
    has
}

macro_rules! needs_windows {
    ($device:expr) => {
        if !has_windows(&$device, this_test!()) {
            return;
        }
    };
}

#[test]
fn what_persists_is_still_in_the_cache_after_much_else() {
    const STEPS: u32 = 4096;
    let device = device!(alone);
    needs_windows!(device);
    let stream = device.new_stream().unwrap();
    let gpu = is_gpu(&device);
    // Four megabytes, a fifteenth of the cache, and several times all of it.
    let host = chain(if gpu { 1 << 15 } else { 64 });
    let steps = if gpu { STEPS } else { 100 };
    let next = Buffer::from_slice(&stream, &host).unwrap();
    let others = Buffer::<u32>::zeroed(&stream, if gpu { 64 << 20 } else { 1000 }).unwrap();
    let (n, many) = (next.len() as u64, others.len() as u64);
    let mut total = Buffer::<u32>::zeroed(&stream, 1).unwrap();
    let mut out = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let aside = SetAside::all(&device);
    let expected_sum = host.iter().fold(0_u32, |sum, x| sum.wrapping_add(*x));

    let mut each = |window: Option<AccessProperty>| {
        aside.0.reset().unwrap();
        let mut launch = stride(n);
        if let Some(property) = window {
            let window = AccessPolicyWindow::new(&next, property).unwrap();
            launch = launch.access_policy_window(window);
        }
        sum(&stream, launch, &next, n, &mut total).unwrap();
        sum(&stream, launch, &next, n, &mut total).unwrap();
        sum(&stream, stride(many), &others, many, &mut total).unwrap();
        // SAFETY: the chain leads from each of its lines to another.
        unsafe { chase(&stream, (1, 1), &next, 0, 0, steps, &mut out) }.unwrap();
        let seen = out.to_vec().unwrap();
        assert_eq!(seen[1], follow(&host, steps));
        seen[0] / steps
    };
    let plain = each(None);
    let streaming = each(Some(AccessProperty::Streaming));
    let persisting = each(Some(AccessProperty::Persisting));
    let again = each(None);
    let sums = total.to_vec().unwrap()[0];
    assert_eq!(sums, expected_sum.wrapping_mul(8));

    // The same as nodes of a graph.
    let mut graph = Graph::new(&device).unwrap();
    let window = AccessPolicyWindow::new(&next, AccessProperty::Persisting).unwrap();
    let (next, others) = (graph.read(&next).unwrap(), graph.read(&others).unwrap());
    assert_eq!(
        graph
            .access_policy_window(next, AccessProperty::Persisting)
            .unwrap(),
        window
    );
    let (mut total, mut out) = (graph.own(total).unwrap(), graph.own(out).unwrap());
    let launch = stride(n).access_policy_window(window);
    for (launch, x, n) in [(launch, &next, n), (stride(many), &others, many)] {
        let total = &mut total;
        graph.add(launch, sum { x, n, total }).unwrap();
    }
    graph.in_order(true);
    let arguments = chase {
        next: &next,
        start: 0,
        warm: 0,
        steps,
        out: &mut out,
    };
    // SAFETY: as above.
    unsafe { graph.add_unsafe((1, 1), arguments) }.unwrap();
    let mut graph = graph.instantiate().unwrap();
    aside.0.reset().unwrap();
    graph.launch(&stream).unwrap();
    let of_graph = graph.slice(out).unwrap().to_vec().unwrap()[0] / steps;

    if gpu {
        say(&format!(
            "cycles a step through 4 MiB after 256 MiB of others: {plain}, streaming {streaming}, persisting {persisting}, as a node of a graph {of_graph}, after all of it {again}"
        ));
        for kept in [persisting, of_graph] {
            assert!(4 * kept < 3 * plain, "{kept} and {plain} cycles");
            assert!(4 * kept < 3 * again, "{kept} and {again} cycles");
        }
    }
}

#[test]
fn a_carveout_divides_the_memory_of_a_multiprocessor() {
    let device = device!(alone);
    let stream = device.new_stream().unwrap();
    // 64 KiB, more than the cache has beside all of shared memory.
    let host = chain(512);
    let next = Buffer::from_slice(&stream, &host).unwrap();
    let mut out = Buffer::<u32>::zeroed(&stream, 2).unwrap();
    let steps = if is_gpu(&device) { 4096 } else { 10 };
    let mut each = |carveout| {
        let launch = Launch::new(1, 1).shared_mem_carveout(carveout);
        // SAFETY: the chain leads from each of its lines to another.
        unsafe { chase(&stream, launch, &next, 0, steps, steps, &mut out) }.unwrap();
        let seen = out.to_vec().unwrap();
        assert_eq!(seen[1], follow(&host, 2 * steps));
        seen[0] / steps
    };
    let cache = each(SharedMemCarveout::MaxL1);
    let shared = each(SharedMemCarveout::MaxShared);
    let all = each(SharedMemCarveout::Percent(100));
    let none = each(SharedMemCarveout::Percent(0));
    if is_gpu(&device) {
        say(&format!(
            "cycles a step through 64 KiB: {cache} with the largest L1 cache, {shared} with the least; {none} and {all} with 0 % and 100 %"
        ));
        assert!(2 * cache < shared, "{cache} and {shared} cycles");
        assert!(2 * none < all, "{none} and {all} cycles");
    }
}

#[test]
fn what_is_asked_of_caches_reaches_the_driver() {
    let device = device!(alone);
    needs_windows!(device);
    let stream = device.new_stream().unwrap();
    stamp_at::load(&device).unwrap();
    let x = stream.alloc_zeros::<f32>(1000).unwrap();
    let told = |id: Id, launch: Launch<'static>| {
        let value = captured(&stream, id, || {
            let pointer = DevicePointerMut::from_address(8);
            // SAFETY: nothing runs: the capture is thrown away.
            unsafe { stamp_at(&stream, launch, pointer, 0) }.unwrap();
        });
        // SAFETY: all bytes of the value were given.
        unsafe { value.pad }.map(i8::cast_unsigned)
    };
    let launch = Launch::new(1, 32);

    let window = AccessPolicyWindow::new(&x.slice(8..), AccessProperty::Persisting).unwrap();
    let window = window.hit_ratio(0.75).miss(AccessProperty::Streaming);
    assert_eq!(window.bytes(), 4 * 992);
    let seen = told(
        Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        launch.access_policy_window(window),
    );
    let mut expected = Vec::new();
    expected.extend((address(&x, &stream) + 32).to_ne_bytes());
    expected.extend((4 * 992_u64).to_ne_bytes());
    expected.extend(0.75_f32.to_ne_bytes());
    for property in [
        sys::CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING,
        sys::CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING,
    ] {
        expected.extend((property as u32).to_ne_bytes());
    }
    assert_eq!(seen[..28], expected);

    let number = |seen: [u8; 64]| u32::from_ne_bytes([seen[0], seen[1], seen[2], seen[3]]);
    // Of the default, an H200 tells what it makes of it.
    for (policy, expected) in [
        (ClusterSchedulingPolicy::Spread, 1),
        (ClusterSchedulingPolicy::LoadBalancing, 2),
    ] {
        if device.compute_capability().unwrap() < (9, 0) {
            break;
        }
        let launch = launch.cluster_scheduling_policy(policy);
        let id = Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
        assert_eq!(number(told(id, launch)), expected, "{policy:?}");
        let map = MemSyncDomainMap {
            default: 1,
            remote: 3,
        };
        let seen = told(
            Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
            launch.mem_sync_domain_map(map),
        );
        assert_eq!(seen[..2], [1, 3]);
    }
    // The bindings know it since CUDA 12.5.
    const CARVEOUT: u32 = 14;
    // SAFETY: the enum has the size of a number, and is only handed on to the driver.
    let id = unsafe { std::mem::transmute::<u32, Id>(CARVEOUT) };
    for (carveout, expected) in [
        (SharedMemCarveout::MaxShared, 100),
        (SharedMemCarveout::Percent(37), 37),
        (SharedMemCarveout::MaxL1, 0),
    ] {
        let seen = told(id, launch.shared_mem_carveout(carveout));
        assert_eq!(number(seen), expected, "{carveout:?}");
    }
}

fn address<T>(array: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    use gridcall::cudarc::driver::DevicePtr;
    array.device_ptr(stream).0
}

#[test]
fn a_window_that_cannot_be_is_refused() {
    let device = device!();
    needs_windows!(device);
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[1.0_f32; 8]).unwrap();
    let limit = device
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE)
        .unwrap()
        .unsigned_abs();
    let lent = |bytes: u32, device: i32| {
        // SAFETY: nobody uses it: it is no argument.
        let view =
            unsafe { BorrowedView::<u8>::new(1 << 40, bytes as usize, Place::Device(device)) };
        AccessPolicyWindow::new(&view, AccessProperty::Persisting).unwrap()
    };
    let fits = lent(limit, 0);
    let ratio = |ratio| {
        (
            fits.hit_ratio(ratio),
            format!("the hit ratio of the access policy window is {ratio}, not between 0 and 1"),
        )
    };
    let refusals = [
        (
            lent(limit + 1, 0),
            format!(
                "the access policy window has {} bytes, this device takes {limit}; make it of a part of the array",
                limit + 1
            ),
        ),
        (
            lent(4, 1),
            "the access policy window is of an array of device 1, the launch is on device 0, in \
             whose L2 cache it is not kept; make the window of an array of device 0"
                .to_owned(),
        ),
        ratio(-0.1),
        ratio(1.5),
        ratio(f32::NAN),
        (
            fits.miss(AccessProperty::Persisting),
            "what misses the access policy window is to be persisting; only what hits it can be: \
             say `.miss(..)` normal or streaming, or raise the hit ratio"
                .to_owned(),
        ),
    ];
    for (window, expected) in refusals {
        let launch = cover(8).access_policy_window(window);
        assert_eq!(attribute(scale(&stream, launch, &mut y, 2.0, 8)), expected);
        let kernel = scale::load(&device).unwrap();
        let error = kernel.prepare(&stream, launch).unwrap_err();
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 8]);
    // What is no memory is no window either, and all the rest is one.
    for window in [fits, lent(0, 0), fits.hit_ratio(0.0)] {
        let launch = cover(8).access_policy_window(window);
        scale(&stream, launch, &mut y, 2.0, 8).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [8.0; 8]);
}

#[test]
fn a_window_is_of_contiguous_memory() {
    use gridcall::{Shaped, ViewErrorKind};
    let device = device!();
    let stream = device.default_stream();
    let x = stream.alloc_zeros::<f32>(24).unwrap();
    let rows = Shaped::strided(&x, 0, [4, 3], [6, 1]);
    let error = AccessPolicyWindow::new(&rows, AccessProperty::Streaming).unwrap_err();
    assert!(
        matches!(error.kind(), ViewErrorKind::NotContiguous { .. }),
        "{error}"
    );
}

#[test]
fn a_launch_with_a_window_writes_the_array_of_it() {
    let device = device!();
    needs_windows!(device);
    let stream = device.new_stream().unwrap();
    let mut y = stream.clone_htod(&[1.0_f32; 8]).unwrap();
    let window = AccessPolicyWindow::new(&y, AccessProperty::Persisting).unwrap();
    let launch = cover(8)
        .access_policy_window(window.hit_ratio(0.5))
        .shared_mem_carveout(SharedMemCarveout::Percent(50));
    scale(&stream, launch, &mut y, 2.0, 8).unwrap();
    let prepared = scale::load(&device).unwrap();
    let prepared = prepared.prepare(&stream, launch).unwrap();
    for _ in 0..2 {
        let y = &mut y;
        prepared.launch(scale { y, a: 2.0, n: 8 }).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [8.0; 8]);
    let at = address(&y, &stream);
    let arguments = &mut scale {
        y: &mut y,
        a: 2.0,
        n: 8,
    };
    let described = scale::load(&device).unwrap();
    let described = described.describe(&stream, launch, arguments).unwrap();
    let expected = format!(
        "an access policy window of 32 bytes from {at:#x} on, 0.5 of it persisting and the rest \
         normal, a shared memory carveout of 50 %"
    );
    assert!(described.to_string().contains(&expected), "{described}");
}

#[test]
fn so_much_of_the_cache_is_set_aside() {
    let device = device!(alone);
    needs_windows!(device);
    let l2 = PersistingL2::of(&device);
    let most = l2.max_bytes().unwrap();
    let before = l2.bytes().unwrap();
    for asked in [0, 1, most / 2, most] {
        let granted = l2.set_bytes(asked).unwrap();
        assert!((asked..=most).contains(&granted), "{granted} for {asked}");
        assert_eq!(l2.bytes().unwrap(), granted);
    }
    let error = l2.set_bytes(most + 1).unwrap_err();
    assert!(matches!(error, L2Error::TooLarge { .. }));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot set {} bytes of the L2 cache of device 0 aside, {most} are the most",
            most + 1
        )
    );
    assert_eq!(l2.bytes().unwrap(), most);
    l2.reset().unwrap();
    assert_eq!(l2.set_bytes(before).unwrap(), before);
}

#[test]
fn carveouts_and_domains_that_there_are_not_are_refused() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[1.0_f32; 8]).unwrap();
    let launch = cover(8).shared_mem_carveout(SharedMemCarveout::Percent(101));
    assert_eq!(
        attribute(scale(&stream, launch, &mut y, 2.0, 8)),
        "a shared memory carveout of 101 % is more than there is; ask for 100 % at most"
    );
    let count = device
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT)
        .unwrap();
    let count = u8::try_from(count).unwrap();
    let map = |default, remote| cover(8).mem_sync_domain_map(MemSyncDomainMap { default, remote });
    for (launch, of) in [(map(count, 0), "default"), (map(0, count), "remote")] {
        assert_eq!(
            attribute(scale(&stream, launch, &mut y, 2.0, 8)),
            format!(
                "the {of} memory-synchronisation domain is to be {count}, this device has {count}, \
                 which are counted from 0"
            )
        );
    }
    scale(&stream, map(count - 1, 0), &mut y, 2.0, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [2.0; 8]);
}

#[test]
fn a_cooperative_grid_takes_no_carveout() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[1.0_f32; 8]).unwrap();
    for carveout in [SharedMemCarveout::MaxL1, SharedMemCarveout::MaxShared] {
        let launch = Launch::new(1, 8).cooperative();
        assert_eq!(
            attribute(scale(
                &stream,
                launch.shared_mem_carveout(carveout),
                &mut y,
                2.0,
                8
            )),
            "the launch is cooperative, and with a shared memory carveout nobody can tell how many of its \
             blocks run at a time; leave the carveout out"
        );
        scale(&stream, launch, &mut y, 1.0, 8).unwrap();
    }
}

#[test]
fn preferred_clusters_are_for_newer_devices() {
    let device = device!();
    let capability = device.compute_capability().unwrap();
    if !((9, 0)..(10, 0)).contains(&capability) {
        return say(&format!(
            "{}: not run, as it is about devices of compute capability 9",
            this_test!()
        ));
    }
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(4 * 8).unwrap();
    let launch = Launch::new(8, 1).cluster(2).preferred_cluster(4);
    assert_eq!(
        attribute(cluster_shape(&stream, launch, &mut out)),
        format!(
            "the launch asks for a preferred cluster, which needs compute capability 10.0; this \
             device has {}.{}: leave it out on such a device",
            capability.0, capability.1
        )
    );
}

/// An emulated device, and its context.
fn emulated(
    test: &str,
    device: &Device,
    capability: (u32, u32),
) -> Option<(gridcall_emulator::Device, Arc<CudaContext>)> {
    if is_gpu(device) {
        say(&format!(
            "{test}: not run, as a device of choice is an emulated one"
        ));
        return None;
    }
    let config = Config::default().compute_capability(capability.0, capability.1);
    let other = gridcall_emulator::Device::with(&config).unwrap();
    let context = CudaContext::new(other.ordinal()).unwrap();
    Some((other, context))
}

#[test]
fn a_preferred_cluster_stands_for_whole_others() {
    let device = device!();
    let Some((_device, newer)) = emulated(this_test!(), &device, (10, 0)) else {
        return;
    };
    let stream = newer.default_stream();
    let mut out = stream.alloc_zeros::<u32>(4 * 16).unwrap();
    let plain = Launch::new(8, 1);
    let pairs = plain.cluster(2);
    for (launch, expected) in [
        (
            plain.preferred_cluster(4),
            "the launch prefers clusters of (4, 1, 1) and has no others for when those do not \
             fit; add `.cluster(..)`, of which they are a multiple",
        ),
        (
            pairs.preferred_cluster(3),
            "the launch prefers clusters of (3, 1, 1), which are not made of whole clusters of \
             (2, 1, 1); make each axis a multiple",
        ),
        (
            pairs.preferred_cluster((0, 1)),
            "the launch prefers clusters of (0, 1, 1), which are not made of whole clusters of \
             (2, 1, 1); make each axis a multiple",
        ),
        (
            pairs.preferred_cluster(32),
            "a cluster of (32, 1, 1) has 32 blocks, a device runs at most 16; make the cluster smaller",
        ),
        (
            pairs.preferred_cluster(16),
            "a grid of (8, 1, 1) is not of whole clusters of (16, 1, 1); make each axis a \
             multiple, or use `cover`, which does",
        ),
    ] {
        assert_eq!(
            attribute(cluster_shape(&stream, launch, &mut out)),
            expected
        );
    }
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0; 4 * 16]);
    // The emulator has room for all of them.
    cluster_shape(&stream, pairs.preferred_cluster(4), &mut out).unwrap();
    let seen = stream.clone_dtoh(&out).unwrap();
    for (block, seen) in seen[..4 * 8].chunks_exact(4).enumerate() {
        assert_eq!(seen, [4, 1, 1, u32::try_from(block).unwrap() % 4]);
    }
    // What is covered is of whole ones; more than eight blocks are opted in to.
    let launch = cover(9).block(1).cluster(2).preferred_cluster(16);
    cluster_shape(&stream, launch, &mut out).unwrap();
    let seen = stream.clone_dtoh(&out).unwrap();
    assert_eq!(seen[4 * 15..], [16, 1, 1, 15]);

    let mut y = stream.alloc_zeros::<i32>(64).unwrap();
    let x = stream.clone_htod(&[7; 64]).unwrap();
    let launch = Launch::new(8, 8).shared::<i32>(8).cluster(2);
    assert_eq!(
        attribute(quad(&stream, launch.preferred_cluster(8), &x, &mut y)),
        "a cluster of (8, 1, 1) has 8 blocks, the kernel is compiled for at most 4 (.maxclusterrank); \
         make the cluster smaller, or compile the kernel for larger ones"
    );
    quad(&stream, launch.preferred_cluster(4), &x, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [7; 64]);

    // As a node of a graph, before and after an update.
    let mut graph = Graph::new(&newer).unwrap();
    let out = Buffer::<u32>::zeroed(&stream, 4 * 8).unwrap();
    let mut out = graph.own(out).unwrap();
    let launch = pairs.preferred_cluster(4);
    let arguments = cluster_shape { out: &mut out };
    let node = graph.add(launch, arguments).unwrap();
    let mut graph = graph.instantiate().unwrap();
    let fewer = Launch::new(4, 1).cluster(2).preferred_cluster(4);
    for launch in [launch, fewer] {
        let arguments = cluster_shape { out: &mut out };
        graph.update(node, launch, arguments).unwrap();
        graph.launch(&stream).unwrap();
        let seen = graph.slice(out).unwrap().to_vec().unwrap();
        assert_eq!(seen[..16], [4, 1, 1, 0, 4, 1, 1, 1, 4, 1, 1, 2, 4, 1, 1, 3]);
    }
}

#[test]
fn what_an_older_device_cannot_is_refused() {
    let device = device!();
    let Some((_device, older)) = emulated(this_test!(), &device, (7, 5)) else {
        return;
    };
    let stream = older.default_stream();
    let mut count = stream.alloc_zeros::<u64>(1).unwrap();
    let window = AccessPolicyWindow::new(&count, AccessProperty::Persisting).unwrap();
    let launch = Launch::new(4, 32);
    let spread = ClusterSchedulingPolicy::Spread;
    for (launch, what, needed) in [
        (
            launch.access_policy_window(window),
            "an access policy window",
            "8.0",
        ),
        (
            launch.cluster_scheduling_policy(spread),
            "a cluster scheduling policy",
            "9.0",
        ),
        (
            launch.cluster(1).preferred_cluster(1),
            "a preferred cluster",
            "10.0",
        ),
    ] {
        assert_eq!(
            attribute(count_threads(&stream, launch, &mut count)),
            format!(
                "the launch asks for {what}, which needs compute capability {needed}; this device has 7.5: leave it out on such a device"
            )
        );
    }
    let map = |remote| launch.mem_sync_domain_map(MemSyncDomainMap { default: 0, remote });
    assert_eq!(
        attribute(count_threads(&stream, map(1), &mut count)),
        "the remote memory-synchronisation domain is to be 1, this device has 1, which are counted from 0"
    );
    let launch = map(0).shared_mem_carveout(SharedMemCarveout::MaxShared);
    count_threads(&stream, launch, &mut count).unwrap();
    assert_eq!(stream.clone_dtoh(&count).unwrap(), [128]);

    let l2 = PersistingL2::of(&older);
    assert_eq!(l2.max_bytes().unwrap(), 0);
    let error = l2.set_bytes(1).unwrap_err();
    assert!(matches!(error, L2Error::TooLarge { limit: 0, .. }));
    assert!(matches!(
        l2.set_bytes(0).unwrap_err(),
        L2Error::Driver {
            call: "cuCtxSetLimit",
            ..
        }
    ));
}
