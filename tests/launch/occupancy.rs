//! Is a launch that is shaped by occupancy what the driver suggests, and one along other axes than the
//! kernel's refused?

use gridcall::{
    Launch, LaunchError, LaunchErrorKind, cover,
    cudarc::driver::sys::CUdevice_attribute as Attribute, kernel, stride,
};

use crate::{kernels::where_am_i, support::Device};

#[kernel(ptx = "../kernels/grid.ptx")]
unsafe extern "C" {
    #[requires(n >= 0, y.len() >= n)]
    safe fn grid_stride(y: &mut [f32], v: f32, n: i32);

    #[name("count_threads")]
    #[rank(1)]
    #[requires(out.len() >= 1)]
    safe fn count_1d(out: &mut [u64]);

    #[name("count_threads")]
    #[rank(2)]
    #[block(8, 4)]
    #[requires(out.len() >= 1)]
    safe fn count_2d(out: &mut [u64]);

    #[name("count_threads")]
    #[rank(3)]
    #[requires(out.len() >= 1)]
    safe fn count_3d(out: &mut [u64]);
}

#[kernel(ptx = "../kernels/shared.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn bounded(y: &mut [f32], n: i32);

    #[requires(y.len() >= grid.x * block.x)]
    safe fn tile(y: &mut [f32]);
}

fn multiprocessors(device: &Device) -> u32 {
    device
        .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .unwrap()
        .unsigned_abs()
}

/// The grid and the block that a launch had.
fn shape(device: &Device, launch: Launch<'static>, threads: usize) -> [[u32; 3]; 2] {
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(12 * threads).unwrap();
    where_am_i(&stream, launch, &mut out).unwrap();
    let seen = stream.clone_dtoh(&out).unwrap();
    [[seen[0], seen[1], seen[2]], [seen[3], seen[4], seen[5]]]
}

#[test]
fn the_suggested_block_is_the_drivers() {
    let device = device!();
    let kernel = where_am_i::load(&device).unwrap();
    let block = kernel.suggested_block(0).unwrap();
    assert!(block.x >= 32 && block.x <= kernel.max_threads_per_block());
    assert_eq!((block.y, block.z), (1, 1));
    let each = |threads| {
        threads
            * kernel
                .max_active_blocks_per_multiprocessor(threads, 0)
                .unwrap()
    };
    for threads in (32..=kernel.max_threads_per_block()).step_by(32) {
        assert!(each(threads) <= each(block.x), "{threads} and {block}");
    }
    // Asked again, and for another size of shared memory in between.
    let tile = tile::load(&device).unwrap();
    let none = tile.suggested_block(0).unwrap();
    let most = tile.max_dynamic_shared_mem_bytes();
    for _ in 0..2 {
        assert_eq!(tile.suggested_block(0).unwrap(), none);
        tile.suggested_block(most.min(48 * 1024 - 1024)).unwrap();
    }
    assert!(
        bounded::load(&device)
            .unwrap()
            .suggested_block(0)
            .unwrap()
            .x
            <= 256
    );
}

#[test]
fn a_cover_by_occupancy_has_that_block() {
    let device = device!();
    let block = where_am_i::load(&device)
        .unwrap()
        .suggested_block(0)
        .unwrap()
        .x;
    let threads = block as usize;
    let launch = cover(2 * threads).block_by_occupancy();
    assert_eq!(
        shape(&device, launch, 2 * threads),
        [[2, 1, 1], [block, 1, 1]]
    );
    let launch = cover((33, 1)).block_by_occupancy();
    assert_eq!(
        shape(&device, launch, 2 * threads),
        [[2, 1, 1], [32, block / 32, 1]]
    );
    let launch = cover((1, 1, 1)).block_by_occupancy();
    let [grid, [x, y, z]] = shape(&device, launch, threads);
    assert_eq!((grid, x * y * z), ([1; 3], block));
    // A kernel of one block has that.
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u64>(1).unwrap();
    count_2d(&stream, cover((9, 4)).block_by_occupancy(), &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [64]);
}

#[test]
fn a_stride_fills_the_device_and_no_more() {
    let device = device!();
    let kernel = where_am_i::load(&device).unwrap();
    let each = kernel.max_active_blocks_per_multiprocessor(256, 0).unwrap();
    let full = each * multiprocessors(&device);
    let threads = full as usize * 256;
    for (launch, blocks) in [
        (stride(usize::MAX), full),
        (stride(threads + 1), full),
        (stride(threads), full),
        (stride(threads - 256), full - 1),
        (stride(257), 2),
        (stride(1), 1),
    ] {
        assert_eq!(
            shape(&device, launch, threads),
            [[blocks, 1, 1], [256, 1, 1]]
        );
    }
    let launch = stride(i64::MAX).block(1024);
    let each = kernel
        .max_active_blocks_per_multiprocessor(1024, 0)
        .unwrap();
    let [grid, _] = shape(&device, launch, threads);
    assert_eq!(grid, [each * multiprocessors(&device), 1, 1]);
}

#[test]
fn a_grid_stride_loop_covers_all() {
    let device = device!();
    let stream = device.default_stream();
    for n in [0, 1, 1000, 300_000_i32] {
        let mut y = stream.alloc_zeros::<f32>(300_001).unwrap();
        grid_stride(&stream, stride(n), &mut y, 1.0, n).unwrap();
        grid_stride(&stream, stride(n).block_by_occupancy(), &mut y, 1.0, n).unwrap();
        let y = stream.clone_dtoh(&y).unwrap();
        let (covered, rest) = y.split_at(n.unsigned_abs() as usize);
        assert!(covered.iter().all(|&y| y == 2.0) && rest.iter().all(|&y| y == 0.0));
    }
    let mut y = stream.alloc_zeros::<f32>(1).unwrap();
    assert_eq!(
        geometry(grid_stride(&stream, stride(-1), &mut y, 1.0, 0)),
        "cannot cover -1 elements along x; an extent is 0 or more"
    );
}

fn geometry(result: Result<(), LaunchError>) -> String {
    let error = result.expect_err("the shape is impossible");
    match error.kind() {
        LaunchErrorKind::Geometry(error) => error.to_string(),
        _ => panic!("{error}"),
    }
}

#[test]
fn shared_memory_counts_elements() {
    let launch = Launch::new(1, 32);
    assert_eq!(launch.shared::<f64>(12), launch.shared_mem_bytes(96));
    assert_eq!(launch.shared::<[u8; 3]>(5), launch.shared_mem_bytes(15));
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(32).unwrap();
    // 2^32 bytes are not 0, and what exceeds all addresses is not less.
    for (elements, bytes) in [(1 << 30, 1_u64 << 32), (usize::MAX, u64::MAX)] {
        let refused = geometry(tile(&stream, launch.shared::<f32>(elements), &mut y));
        let expected = format!("the launch asks for {bytes} bytes of dynamic shared memory");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}

#[test]
fn a_launch_along_other_axes_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u64>(1).unwrap();
    let refused = |declared: usize, grid, block| {
        let beyond = ["x alone", "x and y"][declared - 1];
        format!(
            "a grid of {grid} in blocks of {block} extends beyond {beyond}, the kernel is declared \
             #[rank({declared})] and would do its work several times; launch along no other axis"
        )
    };
    let covers = |extent, declared| {
        format!(
            "the launch covers an extent along {extent}, the kernel is declared #[rank({declared})]; \
             cover as many axes"
        )
    };
    for (launch, expected) in [
        (
            Launch::new((2, 2), 32),
            refused(1, "(2, 2, 1)", "(32, 1, 1)"),
        ),
        (
            Launch::new((2, 1, 3), 32),
            refused(1, "(2, 1, 3)", "(32, 1, 1)"),
        ),
        (
            Launch::new(2, (16, 2)),
            refused(1, "(2, 1, 1)", "(16, 2, 1)"),
        ),
        (
            cover(10).block((1, 2)),
            refused(1, "(10, 1, 1)", "(1, 2, 1)"),
        ),
        (cover((10, 1)), covers("x and y", 1)),
        (cover((1, 1, 1)), covers("x, y and z", 1)),
        (cover((0, 5)), covers("x and y", 1)),
    ] {
        assert_eq!(geometry(count_1d(&stream, launch, &mut out)), expected);
    }
    assert_eq!(
        geometry(count_2d(&stream, Launch::new((1, 1, 2), (8, 4)), &mut out)),
        refused(2, "(1, 1, 2)", "(8, 4, 1)")
    );
    assert_eq!(
        geometry(count_2d(&stream, cover(100), &mut out)),
        covers("x alone", 2)
    );
    assert_eq!(
        geometry(count_3d(&stream, cover((4, 4)), &mut out)),
        covers("x and y", 3)
    );
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0]);
    for launch in [
        Launch::new((2, 1, 1), 32),
        cover(64).block(64),
        stride(64).block(64),
    ] {
        count_1d(&stream, launch, &mut out).unwrap();
    }
    count_1d(&stream, cover(0), &mut out).unwrap();
    // A grid of rows may have one row.
    count_2d(&stream, Launch::new((2, 1), (8, 4)), &mut out).unwrap();
    count_2d(&stream, cover((8, 8)), &mut out).unwrap();
    count_3d(&stream, (1, 64), &mut out).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [64 * 6]);
}
