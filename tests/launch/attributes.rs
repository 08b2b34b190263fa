//! Does each launch attribute take effect, and is one that is not possible refused before the driver?
//!
//! What shows in times alone is measured on a GPU: the emulator may run one kernel after another, and
//! its clocks are those of single kernels.

use std::{ptr, sync::Arc};

use gridcall::{
    AttributeError, Cluster, DevicePointer, DevicePointerMut, Launch, LaunchError, LaunchErrorKind,
    MemSyncDomain, Module, Trigger, cover,
    cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtrMut, sys},
    kernel, stride,
};

use gridcall_emulator::Config;

use crate::{
    kernels::count_threads,
    modules::cubin,
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
    #[requires(out.len() >= grid.blocks() * 4)]
    safe fn cluster_shape(out: &mut [u32]);

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

    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
    #[requires(shared_mem_bytes >= block.x * 4, block.threads() == block.x, grid.blocks() == grid.x)]
    safe fn quad(x: &[i32], y: &mut [i32]);

    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
    #[requires(shared_mem_bytes >= block.x * 4, grid.blocks() == grid.x)]
    safe fn counted_pair(x: &[i32], y: &mut [i32]);

    #[requires(runs.len() >= grid.blocks(), shape.len() >= 4)]
    safe fn counted_square(runs: &mut [u32], shape: &mut [u32]);

    #[requires(runs.len() >= grid.x, grid.blocks() == grid.x)]
    safe fn counted_blocks(runs: &mut [u32]);
}

#[kernel(ptx = "../kernels/handwritten/explicit_cluster.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= grid.x, grid.blocks() == grid.x, block.threads() == 1)]
    safe fn any_cluster(y: &mut [i32]);
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// y ← y · a
    #[rank(1)]
    #[requires(y.len() >= n)]
    safe fn scale(y: &mut [f32], a: f32, n: i32);
}

#[kernel(ptx = "../kernels/dependent.ptx")]
unsafe extern "C" {
    /// y ← 1, 2, .. after so many nanoseconds
    #[requires(grid.blocks() == 1, block.threads() == block.x, y.len() >= n, times.len() >= 2)]
    safe fn first(y: &mut [i32], times: &mut [i64], n: i32, duration: i64);

    /// y ← 2 x
    #[requires(grid.blocks() == 1, block.threads() == block.x, x.len() >= n, y.len() >= n, times.len() >= 2)]
    safe fn second(x: &[i32], y: &mut [i32], times: &mut [i64], n: i32);

    /// When each block began; each then takes so many nanoseconds
    #[requires(grid.blocks() == grid.x, block.threads() == block.x, times.len() >= grid.x)]
    safe fn stamp(times: &mut [i64], duration: i64);
}

/// The stamps of a launch that somebody else orders.
#[kernel(ptx = "../kernels/dependent.ptx")]
#[name("stamp")]
unsafe fn stamp_into(times: &mut [i64], duration: i64);

/// Kernels at addresses whose use nobody records, for captures.
#[kernel(ptx = "../kernels/dependent.ptx")]
unsafe extern "C" {
    #[name("first")]
    fn first_at(y: *mut i32, times: *mut i64, n: i32, duration: i64);
    #[name("second")]
    fn second_at(x: *const i32, y: *mut i32, times: *mut i64, n: i32);
}

/// The same at an address, whose use nobody records.
#[kernel(ptx = "../kernels/dependent.ptx")]
#[name("stamp")]
unsafe fn stamp_at(times: *mut i64, duration: i64);

/// Kernels of modules that are known only when the program runs.
mod later {
    use gridcall::kernel;

    #[kernel]
    unsafe extern "C" {
        #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
        #[requires(shared_mem_bytes >= block.x * 4, block.threads() == block.x, grid.blocks() == grid.x)]
        pub(super) safe fn pair(x: &[i32], y: &mut [i32]);

        #[requires(runs.len() >= grid.blocks(), shape.len() >= 4)]
        pub(super) safe fn counted_square(runs: &mut [u32], shape: &mut [u32]);

        #[name("pair")]
        #[cluster(4)]
        pub(super) fn pair_by_four(x: &[i32], y: &mut [i32]);

        pub(super) fn rotate(a: &mut [i32], b: &mut [i32], n: i32, rounds: i32);

        #[requires(grid.blocks() == 1, block.threads() == block.x, x.len() >= n, y.len() >= n)]
        #[requires(times.len() >= 2)]
        pub(super) safe fn second(x: &[i32], y: &mut [i32], times: &mut [i64], n: i32);
    }
}

const MILLISECOND: i64 = 1_000_000;

/// Whether kernels run at the same time and at their own speed.
pub(crate) fn is_gpu(device: &Device) -> bool {
    !device.name().unwrap().contains("emulat")
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

pub(crate) fn attribute(result: Result<(), LaunchError>) -> String {
    let error = result.expect_err("the attribute is impossible");
    match error.kind() {
        LaunchErrorKind::Attribute(error) => error.to_string(),
        _ => panic!("{error}"),
    }
}

fn ints(n: i32) -> Vec<i32> {
    (0..n).collect()
}

#[test]
fn the_blocks_of_a_cooperative_grid_wait_for_each_other() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = rotate::load(&device).unwrap();
    let multiprocessors = device
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .unwrap()
        .unsigned_abs();
    let each = kernel.max_active_blocks_per_multiprocessor(256, 0).unwrap();
    let rounds = if is_gpu(&device) { 501 } else { 3 };
    let n = 100_003;
    for blocks in [1, multiprocessors, multiprocessors * each] {
        let mut a = stream.clone_htod(&ints(n)).unwrap();
        let mut b = stream.alloc_zeros::<i32>(100_003).unwrap();
        rotate(&stream, (blocks, 256), &mut a, &mut b, n, rounds).unwrap();
        let mut expected = ints(n);
        expected.rotate_left(rounds.unsigned_abs() as usize);
        assert!(
            stream.clone_dtoh(&b).unwrap() == expected,
            "{blocks} blocks"
        );
    }
}

#[test]
fn a_cooperative_grid_that_does_not_fit_is_refused_with_numbers() {
    let device = device!();
    let stream = device.default_stream();
    let kernel = rotate::load(&device).unwrap();
    let multiprocessors = device
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .unwrap()
        .unsigned_abs();
    let each = kernel.max_active_blocks_per_multiprocessor(512, 0).unwrap();
    let most = multiprocessors * each;
    let mut a = stream.clone_htod(&[1, 2]).unwrap();
    let mut b = stream.alloc_zeros::<i32>(2).unwrap();
    let error = rotate(&stream, (most + 1, 512), &mut a, &mut b, 2, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "kernel `rotate`: a cooperative grid of {} blocks cannot run at a time; with 512 threads \
             and 0 bytes of dynamic shared memory a block this device runs {most}: {each} on each of \
             {multiprocessors} multiprocessors; launch at most so many, and let each do more",
            most + 1
        )
    );
    // Shared memory counts, also when the answer for none is known.
    let full = Launch::new(multiprocessors * 2, 512)
        .shared_mem_bytes(kernel.max_dynamic_shared_mem_bytes() / 2 + 1024);
    let refused = attribute(rotate(&stream, full, &mut a, &mut b, 2, 1));
    assert!(refused.contains(": 1 on each of"), "{refused}");
    assert_eq!(stream.clone_dtoh(&b).unwrap(), [0, 0]);
    rotate(&stream, (most, 512), &mut a, &mut b, 2, 1).unwrap();
    assert_eq!(stream.clone_dtoh(&b).unwrap(), [2, 1]);
}

#[test]
fn the_blocks_of_a_cluster_reach_each_others_memory() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let x = stream.clone_htod(&ints(64 * 48)).unwrap();
    for size in [1, 2, 3, 4, 8] {
        let mut y = stream.alloc_zeros::<i32>(64 * 48).unwrap();
        let launch = Launch::new(48, 64).shared::<i32>(64).cluster(size);
        ring(&stream, launch, &x, &mut y).unwrap();
        let expected: Vec<i32> = ints(64 * 48)
            .into_iter()
            .map(|i| {
                let (block, thread) = (i.unsigned_abs() / 64, i % 64);
                let next = block / size * size + (block + 1) % size;
                next.cast_signed() * 64 + thread
            })
            .collect();
        assert_eq!(
            stream.clone_dtoh(&y).unwrap(),
            expected,
            "clusters of {size}"
        );
    }
}

#[test]
fn a_kernel_compiled_for_clusters_has_them_unasked() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let x = stream.clone_htod(&ints(4 * 32)).unwrap();
    let mut y = stream.alloc_zeros::<i32>(4 * 32).unwrap();
    let launch = Launch::new(4, 32).shared::<i32>(32);
    let expected: Vec<i32> = ints(4 * 32).into_iter().map(|i| i ^ 32).collect();
    for launch in [launch, launch.cluster(2)] {
        stream.memset_zeros(&mut y).unwrap();
        pair(&stream, launch, &x, &mut y).unwrap();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    }
    // What is covered is of whole clusters: three blocks become four.
    stream.memset_zeros(&mut y).unwrap();
    let launch = cover(3 * 32).block(32).shared::<i32>(32);
    pair(&stream, launch, &x, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    pair(&stream, cover(0).shared::<i32>(256), &x, &mut y).unwrap();
    let error = pair(&stream, Launch::new(3, 32).shared::<i32>(32), &x, &mut y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `pair`: a grid of (3, 1, 1) is not of whole clusters of (2, 1, 1); make each axis a \
         multiple, or use `cover`, which does"
    );
    assert_eq!(
        attribute(pair(&stream, launch.cluster(4), &x, &mut y)),
        "the launch asks for clusters of (4, 1, 1), the kernel is compiled for (.reqnctapercluster) \
         (2, 1, 1); ask for that size, or for none"
    );
}

/// Of a kernel with `.blocksareclusters`, the driver takes the clusters of a grid; a launch of ours names its blocks, as always.
#[test]
fn a_kernel_that_counts_clusters_runs_the_blocks_of_its_grid() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let ran = |grid: [u32; 2], launch: &dyn Fn(&mut CudaSlice<u32>, &mut CudaSlice<u32>)| {
        let blocks = (grid[0] * grid[1]) as usize;
        let mut runs = stream.alloc_zeros::<u32>(blocks + 32).unwrap();
        let mut shape = stream.alloc_zeros::<u32>(4).unwrap();
        launch(&mut runs, &mut shape);
        let runs = stream.clone_dtoh(&runs).unwrap();
        assert_eq!(runs[..blocks], vec![1; blocks]);
        assert_eq!(runs[blocks..], [0; 32]);
        let [x, y] = grid;
        assert_eq!(stream.clone_dtoh(&shape).unwrap(), [x, y, x / 2, y / 2]);
    };
    ran([6, 4], &|runs, shape| {
        counted_square(&stream, ((6, 4), (8, 4)), runs, shape).unwrap();
    });
    ran([6, 4], &|runs, shape| {
        let launch = Launch::new((6, 4), (8, 4)).cluster((2, 2));
        counted_square(&stream, launch, runs, shape).unwrap();
    });
    // Five by three blocks of 8 x 4 threads, made whole.
    ran([6, 4], &|runs, shape| {
        counted_square(&stream, cover((40, 12)), runs, shape).unwrap();
    });
    ran([2, 4], &|runs, shape| {
        let kernel = counted_square::load(&device).unwrap();
        let prepared = kernel.prepare(&stream, ((2, 4), (8, 4))).unwrap();
        prepared.launch(counted_square { runs, shape }).unwrap();
    });
    ran([2, 4], &|runs, shape| {
        let ptx = include_str!("../../kernels/clusters.ptx");
        let module = Module::from_ptx(&device, ptx).unwrap();
        // SAFETY: the file holds the kernel that is declared.
        let kernel = unsafe { later::counted_square::load_from(&module) }.unwrap();
        let arguments = later::counted_square { runs, shape };
        kernel.launch(&stream, ((2, 4), (8, 4)), arguments).unwrap();
    });

    let x = stream.clone_htod(&ints(4 * 64)).unwrap();
    let mut y = stream.alloc_zeros::<i32>(4 * 64).unwrap();
    let launch = cover(3 * 64).shared::<i32>(64);
    counted_pair(&stream, launch, &x, &mut y).unwrap();
    let expected: Vec<i32> = ints(4 * 64).into_iter().map(|i| i ^ 64).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);

    let mut runs = stream.alloc_zeros::<u32>(6).unwrap();
    counted_blocks(&stream, (5, 32), &mut runs).unwrap();
    assert_eq!(stream.clone_dtoh(&runs).unwrap(), [1, 1, 1, 1, 1, 0]);

    // Of a cubin nothing can be read: the driver tells.
    let image = cubin(&device, include_str!("../../kernels/clusters.ptx"));
    if !image.starts_with(b"\x7fELF") {
        println!("not run, as this driver's linker makes no cubin");
        return;
    }
    ran([2, 4], &|runs, shape| {
        // SAFETY: the driver made the image.
        let module = unsafe { Module::from_image(&device, &image) }.unwrap();
        // SAFETY: the file holds the kernel that is declared.
        let kernel = unsafe { later::counted_square::load_from(&module) }.unwrap();
        let arguments = later::counted_square { runs, shape };
        let launch = Launch::new((2, 4), (8, 4));
        kernel.launch(&stream, launch, arguments).unwrap();
    });
}

#[test]
fn what_counts_clusters_is_refused_and_described_in_blocks() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let mut runs = stream.alloc_zeros::<u32>(24).unwrap();
    let mut shape = stream.alloc_zeros::<u32>(4).unwrap();
    let launch = Launch::new((3, 4), (8, 4));
    assert_eq!(
        attribute(counted_square(&stream, launch, &mut runs, &mut shape)),
        "a grid of (3, 4, 1) is not of whole clusters of (2, 2, 1); make each axis a multiple, or use `cover`, \
         which does"
    );
    assert_eq!(
        attribute(counted_square(
            &stream,
            launch.cluster(2),
            &mut runs,
            &mut shape
        )),
        "the launch asks for clusters of (2, 1, 1), the kernel is compiled for (.reqnctapercluster) (2, 2, 1); \
         ask for that size, or for none"
    );
    // One thread would stand for a whole block to the driver.
    let error = counted_square(&stream, ((6, 4), 1), &mut runs, &mut shape).unwrap_err();
    assert!(error.to_string().contains("block"), "{error}");
    // The contract is about blocks.
    let error = counted_square(&stream, ((14, 2), (8, 4)), &mut runs, &mut shape).unwrap_err();
    assert!(error.to_string().contains("grid is (14, 2, 1)"), "{error}");
    let (runs, shape) = (&mut runs, &mut shape);
    let described = counted_square { runs, shape }
        .describe(&stream, ((6, 4), (8, 4)))
        .unwrap();
    assert!(described.to_string().contains("(6, 4"), "{described}");
}

#[test]
fn what_a_kernel_of_a_module_needs_is_read_from_its_text() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let clusters = Module::from_ptx(&device, include_str!("../../kernels/clusters.ptx")).unwrap();
    // SAFETY: the file holds the kernel that is declared.
    let pair = unsafe { later::pair::load_from(&clusters) }.unwrap();
    let x = stream.clone_htod(&ints(4 * 32)).unwrap();
    let mut y = stream.alloc_zeros::<i32>(4 * 32).unwrap();
    let launch = cover(3 * 32).block(32).shared::<i32>(32);
    let arguments = later::pair { x: &x, y: &mut y };
    pair.launch(&stream, launch, arguments).unwrap();
    let expected: Vec<i32> = ints(4 * 32).into_iter().map(|i| i ^ 32).collect();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);

    // SAFETY: nothing is launched.
    let error = unsafe { later::pair_by_four::load_from(&clusters) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `pair_by_four`: it declares clusters of (4, 1, 1), the entry at the PTX:164 is \
         compiled for (2, 1, 1) alone (`.reqnctapercluster`)"
    );

    let cooperative =
        Module::from_ptx(&device, include_str!("../../kernels/cooperative.ptx")).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { later::rotate::load_from(&cooperative) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `rotate`: it synchronises its whole grid, and traps at the PTX:148 unless \
         each launch is cooperative: declare it #[cooperative]"
    );

    // That it waits is known, so that it may begin early.
    let dependent = Module::from_ptx(&device, include_str!("../../kernels/dependent.ptx")).unwrap();
    // SAFETY: the file holds the kernel that is declared.
    let second = unsafe { later::second::load_from(&dependent) }.unwrap();
    let mut times = stream.alloc_zeros::<i64>(2).unwrap();
    let arguments = later::second {
        x: &x,
        y: &mut y,
        times: &mut times,
        n: 10,
    };
    let launch = Launch::new(1, 32).programmatic_stream_serialization();
    second.launch(&stream, launch, arguments).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap()[9], 18);
}

/// The cluster and the rank that each block saw.
fn shapes(stream: &Arc<CudaStream>, launch: Launch<'static>, blocks: usize) -> Vec<[u32; 4]> {
    let mut out = stream.alloc_zeros::<u32>(4 * blocks).unwrap();
    cluster_shape(stream, launch, &mut out).unwrap();
    let seen = stream.clone_dtoh(&out).unwrap();
    seen.chunks_exact(4)
        .map(|four| [four[0], four[1], four[2], four[3]])
        .collect()
}

#[test]
fn a_cluster_has_the_shape_it_was_asked_for() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    assert_eq!(
        shapes(&stream, Launch::new(2, 1).cluster(1), 2),
        [[1, 1, 1, 0]; 2]
    );
    assert_eq!(
        shapes(&stream, Launch::new((2, 2), 1).cluster((2, 2)), 4),
        [[2, 2, 1, 0], [2, 2, 1, 1], [2, 2, 1, 2], [2, 2, 1, 3]]
    );
    assert_eq!(
        shapes(&stream, Launch::new((1, 2, 2), 1).cluster((1, 2, 2)), 4),
        [[1, 2, 2, 0], [1, 2, 2, 1], [1, 2, 2, 2], [1, 2, 2, 3]]
    );
    // A declared cluster needs no asking, and a cover of it is whole.
    let mut out = stream.alloc_zeros::<u32>(4 * 8).unwrap();
    cluster_shape_2_2(&stream, cover((3, 2)).block(1), &mut out).unwrap();
    let ranks: Vec<u32> = stream
        .clone_dtoh(&out)
        .unwrap()
        .chunks_exact(4)
        .map(|four| {
            assert_eq!(four[..3], [2, 2, 1]);
            four[3]
        })
        .collect();
    assert_eq!(ranks, [0, 1, 0, 1, 2, 3, 2, 3]);
    assert_eq!(
        attribute(cluster_shape_2_2(
            &stream,
            cover((4, 4)).cluster((4, 1)),
            &mut out
        )),
        "the launch asks for clusters of (4, 1, 1), the kernel declares #[cluster] as (2, 2, 1); ask \
         for that size, or for none"
    );
    // The contract sees the grid that is launched.
    let error = cluster_shape_2_2(&stream, cover((5, 2)).block(1), &mut out).unwrap_err();
    assert!(error.to_string().contains("grid is (6, 2, 1)"), "{error}");
}

#[test]
fn a_cluster_makes_no_blocks_along_an_axis_that_is_not_covered() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let mut y = stream.clone_htod(&[3.0_f32; 600]).unwrap();
    for (launch, cluster, axis) in [
        (cover(600), Cluster::from((1, 2)), 'y'),
        (stride(600), Cluster::from((2, 1, 2)), 'z'),
    ] {
        assert_eq!(
            attribute(scale(&stream, launch.cluster(cluster), &mut y, 2.0, 600)),
            format!(
                "a cluster of {cluster} has several blocks along {axis}, which the launch does not cover: they \
                 would run the same threads again; cover an extent along {axis} too, or give the grid by \
                 `Launch::new`"
            )
        );
    }
    let mut out = stream.alloc_zeros::<u32>(4 * 8).unwrap();
    attribute(cluster_shape_2_2(&stream, cover(2).block(1), &mut out));
    scale(&stream, cover(600).cluster(2), &mut y, 2.0, 600).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [6.0; 600]);
}

#[test]
fn a_kernel_that_names_no_cluster_but_needs_one_says_so() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<i32>(4).unwrap();
    assert_eq!(
        attribute(any_cluster(&stream, (4, 1), &mut y)),
        "the kernel is compiled to be launched in clusters (.explicitcluster) of a size that it does \
         not say; add `.cluster(..)` to the launch, or declare #[cluster(..)]"
    );
    any_cluster(&stream, Launch::new(4, 1).cluster(4), &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [4; 4]);
}

#[test]
fn impossible_clusters_are_ours_to_tell() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let x = stream.clone_htod(&ints(64)).unwrap();
    let mut y = stream.alloc_zeros::<i32>(64).unwrap();
    let launch = Launch::new(8, 8).shared::<i32>(8);
    for (cluster, expected) in [
        (
            Cluster::from(8),
            "a cluster of (8, 1, 1) has 8 blocks, the kernel is compiled for at most 4 (.maxclusterrank); \
             make the cluster smaller, or compile the kernel for larger ones",
        ),
        (
            Cluster::from((0, 2)),
            "cluster.x is 0; a cluster has at least one block along each axis",
        ),
        (
            Cluster::from(3),
            "a grid of (8, 1, 1) is not of whole clusters of (3, 1, 1); make each axis a multiple, or use `cover`, which does",
        ),
    ] {
        assert_eq!(
            attribute(quad(&stream, launch.cluster(cluster), &x, &mut y)),
            expected
        );
    }
    assert_eq!(
        attribute(ring(&stream, launch.cluster(32), &x, &mut y)),
        "a cluster of (32, 1, 1) has 32 blocks, a device runs at most 16; make the cluster smaller"
    );
    quad(&stream, launch.cluster(4), &x, &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap()[..8], ints(16)[8..]);
}

#[test]
fn a_cluster_that_fits_nowhere_is_refused() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let kernel = ring::load(&device).unwrap();
    // Sixteen blocks with all shared memory each: no part of a device has so many multiprocessors
    // to spare, or it runs them.
    let n = 16 * 1024;
    let x = stream.clone_htod(&ints(n)).unwrap();
    let mut y = stream.alloc_zeros::<i32>(16 * 1024).unwrap();
    let most = kernel.max_dynamic_shared_mem_bytes();
    let launch = Launch::new(16, 1024).shared_mem_bytes(most).cluster(16);
    match ring(&stream, launch, &x, &mut y) {
        Ok(()) => {
            let expected: Vec<i32> = ints(n).into_iter().map(|i| (i + 1024) % n).collect();
            assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
        }
        Err(error) => assert!(
            matches!(
                error.kind(),
                LaunchErrorKind::Attribute(AttributeError::ClusterDoesNotFit { .. })
            ),
            "{error}"
        ),
    }
    // More than eight are not portable, and opted in to.
    let launch = Launch::new(16, 32).shared::<i32>(32).cluster(16);
    ring(&stream, launch, &x, &mut y).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_dependent_launch_begins_before_the_one_in_front_ends() {
    let device = device!(alone);
    needs_clusters!(device);
    // One stream, so that nothing is recorded between the launches.
    let stream = device.default_stream();
    let mut between = stream.alloc_zeros::<i32>(1000).unwrap();
    let mut y = stream.alloc_zeros::<i32>(1000).unwrap();
    let mut times = [(); 2].map(|()| stream.alloc_zeros::<i64>(2).unwrap());
    let expected: Vec<i32> = (1..=1000).map(|i| 2 * i).collect();
    let launch = Launch::new(1, 128);
    for (overlaps, launch) in [
        (false, launch),
        (true, launch.programmatic_stream_serialization()),
    ] {
        let [of_first, of_second] = &mut times;
        stream.memset_zeros(&mut between).unwrap();
        let duration = 20 * MILLISECOND;
        first(&stream, (1, 128), &mut between, of_first, 1000, duration).unwrap();
        second(&stream, launch, &between, &mut y, of_second, 1000).unwrap();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
        let ended = stream.clone_dtoh(of_first).unwrap()[1];
        let [began, waited] = stream.clone_dtoh(of_second).unwrap()[..] else {
            panic!("two times")
        };
        if is_gpu(&device) {
            let early = ended - began;
            say(&format!(
                "{}: began {early} ns before the one in front ended, went on {} ns after",
                if overlaps {
                    "dependent launch"
                } else {
                    "launch"
                },
                waited - ended
            ));
            assert!(waited >= ended, "the wait came back before the first ended");
            assert_eq!(early > 10 * MILLISECOND, overlaps, "{early} ns early");
        }
    }
}

#[test]
fn a_kernel_that_never_waits_may_not_begin_early() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let mut times = stream.alloc_zeros::<i64>(1).unwrap();
    let launch = Launch::new(1, 32).programmatic_stream_serialization();
    assert_eq!(
        attribute(stamp(&stream, launch, &mut times, 0)),
        "the launch asks for programmatic stream serialization, but the kernel's code has no \
         `griddepcontrol.wait` that is known, so it could run before what it reads is written; call \
         cudaGridDependencySynchronize() in the kernel, or declare it `unsafe fn`"
    );
    // SAFETY: there is room for one stamp, and nobody else uses it.
    unsafe { stamp_into(&stream, launch, &mut times, 0) }.unwrap();
    assert!(stream.clone_dtoh(&times).unwrap()[0] > 0);
}

/// When a kernel that waits for the event on another stream began, and when the one that records it
/// ended.
fn stamp_behind<'e>(
    device: &Device,
    event: &'e CudaEvent,
    record: impl Fn(Launch<'static>, &'e CudaEvent) -> Launch<'e>,
) -> (i64, i64) {
    let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut y = stream.alloc_zeros::<i32>(10).unwrap();
    let mut of_first = stream.alloc_zeros::<i64>(2).unwrap();
    let mut times = other.alloc_zeros::<i64>(1).unwrap();
    stream.synchronize().unwrap();
    other.synchronize().unwrap();
    // Loading may wait for kernels that run.
    stamp::load(device).unwrap();
    let launch = record(Launch::new(1, 32), event);
    first(&stream, launch, &mut y, &mut of_first, 10, 20 * MILLISECOND).unwrap();
    other.wait(event).unwrap();
    stamp(&other, (1, 32), &mut times, 0).unwrap();
    let began = other.clone_dtoh(&times).unwrap()[0];
    let [_, ended] = stream.clone_dtoh(&of_first).unwrap()[..] else {
        panic!("two times")
    };
    assert!(began > 0 && ended > 0);
    (began, ended)
}

#[test]
fn a_launch_completion_event_is_recorded_before_the_kernel_ends() {
    let device = device!(alone);
    needs_clusters!(device);
    let event = device.new_event(None).unwrap();
    let (began, ended) = stamp_behind(&device, &event, |launch, event| {
        launch.launch_completion_event(event)
    });
    if is_gpu(&device) {
        let early = ended - began;
        say(&format!(
            "launch-completion event: who waited began {early} ns before the kernel ended"
        ));
        assert!(early > 10 * MILLISECOND, "{early} ns early");
    }
}

/// When two kernels of a graph began and ended, the second behind a programmatic event of the first.
fn in_a_graph(device: &Device, trigger: Trigger, waiting: Launch<'static>) -> [i64; 4] {
    let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut ints = stream.alloc_zeros::<i32>(20).unwrap();
    let mut times = stream.alloc_zeros::<i64>(4).unwrap();
    first_at::load(device).unwrap();
    second_at::load(device).unwrap();
    let (event, end) = (
        device.new_event(None).unwrap(),
        device.new_event(None).unwrap(),
    );
    let ints_at = ints.device_ptr_mut(&stream).0;
    let times_at = times.device_ptr_mut(&stream).0;
    stream.synchronize().unwrap();
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).unwrap();
    let launch = Launch::new(1, 32).programmatic_event(&event, trigger);
    let (y, of_first) = (
        DevicePointerMut::from_address(ints_at),
        DevicePointerMut::from_address(times_at),
    );
    // SAFETY: there is room for ten numbers and two times, which live until the graph has run.
    unsafe { first_at(&stream, launch, y, of_first, 10, 20 * MILLISECOND) }.unwrap();
    other.wait(&event).unwrap();
    let (x, y, of_second) = (
        DevicePointer::from_address(ints_at),
        DevicePointerMut::from_address(ints_at + 40),
        DevicePointerMut::from_address(times_at + 16),
    );
    // SAFETY: as above, behind the others.
    unsafe { second_at(&other, waiting, x, y, of_second, 10) }.unwrap();
    end.record(&other).unwrap();
    stream.wait(&end).unwrap();
    let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags).unwrap().unwrap();
    graph.launch().unwrap();
    let expected: Vec<i32> = (1..=10).map(|i| 2 * i).collect();
    assert_eq!(stream.clone_dtoh(&ints).unwrap()[10..], expected);
    let times = stream.clone_dtoh(&times).unwrap();
    [times[0], times[1], times[2], times[3]]
}

#[test]
fn a_programmatic_event_lets_a_kernel_of_a_graph_begin_early() {
    let device = device!(alone);
    needs_clusters!(device);
    let plain = Launch::new(1, 32);
    let dependent = plain.programmatic_stream_serialization();
    for trigger in [Trigger::BlockStart, Trigger::LaunchDependents] {
        for waiting in [plain, dependent] {
            let [_, ended, began, waited] = in_a_graph(&device, trigger, waiting);
            if is_gpu(&device) {
                let early = ended - began;
                say(&format!(
                    "programmatic event, {trigger:?}: began {early} ns before the other ended, went on {} ns after",
                    waited - ended
                ));
                assert!(early > 10 * MILLISECOND, "{early} ns early");
                assert!(waited >= ended, "the wait came back before the first ended");
            }
        }
    }
}

#[test]
fn what_waits_for_a_programmatic_event_on_another_stream_runs() {
    let device = device!(alone);
    needs_clusters!(device);
    let event = device.new_event(None).unwrap();
    for trigger in [Trigger::BlockStart, Trigger::LaunchDependents] {
        // Whether it begins early is left to the driver.
        stamp_behind(&device, &event, |launch, event| {
            launch.programmatic_event(event, trigger)
        });
    }
}

#[test]
fn an_event_with_times_is_refused_with_an_explanation() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<i64>(1).unwrap();
    let event = device
        .new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT))
        .unwrap();
    let launch = Launch::new(1, 32);
    for (launch, asked) in [
        (
            launch.launch_completion_event(&event),
            "it was launched with a launch-completion event (CUDA 12.3; one made without timing",
        ),
        (
            launch.programmatic_event(&event, Trigger::BlockStart),
            "it was launched with a programmatic event (CUDA 11.8; one made without timing",
        ),
    ] {
        let error = stamp(&stream, launch, &mut out, 0).unwrap_err();
        let text = error.to_string();
        for part in [
            "cuLaunchKernelEx failed: CUDA_ERROR_",
            asked,
            "1 blocks of 32 threads",
            "the device has compute capability",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0]);
}

#[test]
fn a_launch_of_greater_priority_overtakes() {
    let device = device!(alone);
    needs_clusters!(device);
    let multiprocessors = device
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .unwrap()
        .unsigned_abs();
    let kernel = stamp::load(&device).unwrap();
    let each = kernel
        .max_active_blocks_per_multiprocessor(1024, 0)
        .unwrap();
    // Blocks that fill the device ten times over.
    let blocks = if is_gpu(&device) {
        10 * multiprocessors * each
    } else {
        4
    };
    let overtaken = |launch: Launch<'static>| {
        let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let mut crowd = stream.alloc_zeros::<i64>(blocks as usize).unwrap();
        let mut times = other.alloc_zeros::<i64>(1).unwrap();
        stream.synchronize().unwrap();
        other.synchronize().unwrap();
        stamp(&stream, (blocks, 1024), &mut crowd, 2 * MILLISECOND).unwrap();
        stamp(&other, launch, &mut times, 0).unwrap();
        let began = other.clone_dtoh(&times).unwrap()[0];
        let crowd = stream.clone_dtoh(&crowd).unwrap();
        assert!(began > 0 && crowd.iter().all(|&began| began > 0));
        crowd.iter().filter(|&&other| other > began).count()
    };
    let launch = Launch::new(1, 1024);
    let (equal, greater) = (overtaken(launch), overtaken(launch.priority(-5)));
    if is_gpu(&device) {
        say(&format!(
            "of {blocks} blocks, a launch of equal priority overtook {equal}, of the greatest {greater}"
        ));
        assert!(
            greater > equal + blocks as usize / 4,
            "{greater} and {equal}"
        );
    }
}

#[test]
fn a_priority_that_there_is_not_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let (least, greatest) = priorities(&device);
    let mut a = stream.clone_htod(&[1, 2]).unwrap();
    let mut b = stream.alloc_zeros::<i32>(2).unwrap();
    for asked in [greatest - 1, least + 1] {
        let launch = Launch::new(1, 32).priority(asked);
        assert_eq!(
            attribute(rotate(&stream, launch, &mut a, &mut b, 2, 1)),
            format!(
                "priority {asked} is not between {least}, the least, and {greatest}, the greatest"
            )
        );
    }
    let launch = Launch::new(1, 32).priority(least);
    rotate(&stream, launch, &mut a, &mut b, 2, 1).unwrap();
    assert_eq!(stream.clone_dtoh(&b).unwrap(), [2, 1]);
}

fn priorities(device: &Arc<CudaContext>) -> (i32, i32) {
    device.bind_to_thread().unwrap();
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: both places take an answer, and a context is current.
    let code = unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) };
    code.result().unwrap();
    (least, greatest)
}

/// What the one kernel of a capture was launched with.
pub(crate) fn captured(
    stream: &CudaStream,
    attribute: sys::CUlaunchAttributeID,
    launch: impl FnOnce(),
) -> sys::CUlaunchAttributeValue {
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).unwrap();
    launch();
    let (mut graph, mut node, mut count) = (ptr::null_mut(), ptr::null_mut(), 1);
    // SAFETY: the stream is being captured, and `graph` takes the graph.
    let code = unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &raw mut graph) };
    code.result().unwrap();
    // SAFETY: the graph lives, and there is room for one node.
    let code = unsafe { sys::cuGraphGetNodes(graph, &raw mut node, &raw mut count) };
    code.result().unwrap();
    assert_eq!(count, 1);
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    // SAFETY: the node is a kernel's, and `value` takes the answer.
    let code = unsafe { sys::cuGraphKernelNodeGetAttribute(node, attribute, &raw mut value) };
    code.result().unwrap();
    // SAFETY: nobody uses the graph any more.
    unsafe { sys::cuGraphDestroy(graph) }.result().unwrap();
    value
}

#[test]
fn domain_and_priority_reach_the_driver() {
    use sys::{CUlaunchAttributeID as Id, CUlaunchMemSyncDomain as Domain};
    let device = device!();
    needs_clusters!(device);
    let stream = device.new_stream().unwrap();
    stamp_at::load(&device).unwrap();
    let pointer = DevicePointerMut::from_address(8);
    let launch = Launch::new(1, 32);
    let domain = Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    for (launch, expected) in [
        (launch, Domain::CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT),
        (
            launch.mem_sync_domain(MemSyncDomain::Remote),
            Domain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
        ),
    ] {
        let value = captured(&stream, domain, || {
            // SAFETY: nothing runs: the capture is thrown away.
            unsafe { stamp_at(&stream, launch, pointer, 0) }.unwrap();
        });
        // SAFETY: it is the value of this attribute.
        assert_eq!(unsafe { value.memSyncDomain }, expected);
    }
    let value = captured(&stream, Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, || {
        // SAFETY: nothing runs: the capture is thrown away.
        unsafe { stamp_at(&stream, launch.priority(-3), pointer, 0) }.unwrap();
    });
    // SAFETY: it is the value of this attribute.
    assert_eq!(unsafe { value.priority }, -3);
}

#[test]
fn what_an_older_device_cannot_is_refused() {
    let device = device!();
    if is_gpu(&device) {
        return say(&format!(
            "{}: not run, as a device of choice is an emulated one",
            this_test!()
        ));
    }
    let config = Config::default()
        .compute_capability(8, 6)
        .multiprocessors(2);
    let older = gridcall_emulator::Device::with(&config).unwrap();
    let older = CudaContext::new(older.ordinal()).unwrap();
    let stream = older.default_stream();
    let event = older.new_event(None).unwrap();
    let mut count = stream.alloc_zeros::<u64>(1).unwrap();
    let launch = Launch::new(4, 32);
    let refused = |what: &str| {
        format!(
            "the launch asks for {what}, which needs compute capability 9.0; this device has 8.6: leave it out on such a device"
        )
    };
    for (launch, what) in [
        (launch.cluster(2), "a cluster of several blocks"),
        (
            launch.programmatic_stream_serialization(),
            "programmatic stream serialization",
        ),
        (
            launch.programmatic_event(&event, Trigger::BlockStart),
            "a programmatic event",
        ),
    ] {
        assert_eq!(
            attribute(count_threads(&stream, launch, &mut count)),
            refused(what)
        );
    }
    // Clusters of one block and events of another kind are for every device.
    let launch = launch.cluster(1).launch_completion_event(&event);
    count_threads(&stream, launch, &mut count).unwrap();
    let full = stride(u64::MAX).cooperative();
    count_threads(&stream, full, &mut count).unwrap();
    let kernel = count_threads::load(&older).unwrap();
    let most = 2 * kernel.max_active_blocks_per_multiprocessor(256, 0).unwrap();
    let found = stream.clone_dtoh(&count).unwrap();
    assert_eq!(found, [u64::from(4 * 32 + most * 256)]);
    let more = Launch::new(most + 1, 256).cooperative();
    let refused = attribute(count_threads(&stream, more, &mut count));
    assert!(
        refused.contains(&format!("this device runs {most}")),
        "{refused}"
    );
}

#[test]
fn all_attributes_go_together() {
    let device = device!();
    needs_clusters!(device);
    let stream = device.default_stream();
    let event = device.new_event(None).unwrap();
    let x = stream.clone_htod(&ints(64)).unwrap();
    let mut y = stream.alloc_zeros::<i32>(64).unwrap();
    for domain in [MemSyncDomain::Default, MemSyncDomain::Remote] {
        let launch = Launch::new(2, 32)
            .shared::<i32>(32)
            .cluster(2)
            .cooperative()
            .priority(0)
            .mem_sync_domain(domain)
            .launch_completion_event(&event);
        ring(&stream, launch, &x, &mut y).unwrap();
        event.synchronize().unwrap();
        let expected: Vec<i32> = ints(64).into_iter().map(|i| i ^ 32).collect();
        assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
    }
}
