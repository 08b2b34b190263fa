//! Does a launch have the shape it was asked for, and is an impossible one refused before the driver?

use gridcall::{
    Axis, GeometryError, Grid, Launch, LaunchError, LaunchErrorKind, cover,
    cudarc::driver::{CudaStream, LaunchConfig, sys::CUdevice_attribute as Attribute},
    kernel,
};

use crate::{
    kernels::{count_threads, relu, where_am_i},
    support::{Device, say},
};

#[kernel(ptx = "../kernels/grid.ptx")]
unsafe extern "C" {
    #[requires(width >= 0, height >= 0, width * height < 2147483648, out.len() >= width * height)]
    safe fn fill_2d(out: &mut [i32], width: i32, height: i32);

    #[requires(y.len() >= n)]
    safe fn grid_stride(y: &mut [f32], v: f32, n: i32);

    #[name("where_am_i")]
    #[block(64)]
    #[requires(out.len() >= grid.blocks() * block.threads() * 12)]
    safe fn where_am_i_64(out: &mut [u32]);

    #[name("where_am_i")]
    #[block(8, 4, 2)]
    #[requires(out.len() >= grid.blocks() * block.threads() * 12)]
    safe fn where_am_i_8_4_2(out: &mut [u32]);
}

#[kernel(ptx = "../kernels/shared.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= n)]
    safe fn bounded(y: &mut [f32], n: i32);

    /// Refuses every block but one of 128 threads: a launch that goes through had that.
    #[requires(block.x == 128, block.y == 1, block.z == 1, y.len() >= n)]
    safe fn bounded_min_blocks(y: &mut [f32], n: i32);

    #[requires(x.len() >= grid.x * block.x, y.len() >= grid.x * block.x)]
    safe fn registers(x: &[f32], y: &mut [f32], rounds: i32);
}

#[kernel(ptx = "../kernels/handwritten/required.ptx")]
unsafe extern "C" {
    #[requires(y.len() >= grid.x * block.x)]
    safe fn required(y: &mut [i32]);

    #[requires(y.len() >= 128)]
    safe fn required_2d(y: &mut [i32]);
}

fn geometry(result: Result<(), LaunchError>) -> String {
    let error = result.expect_err("the shape is impossible");
    match error.kind() {
        LaunchErrorKind::Geometry(error) => error.to_string(),
        _ => panic!("{error}"),
    }
}

fn limit(device: &Device, attribute: Attribute) -> u32 {
    device.attribute(attribute).unwrap().unsigned_abs()
}

/// The threads that a kernel saw, each as gridDim, blockDim, blockIdx and threadIdx.
fn seen(stream: &std::sync::Arc<CudaStream>, launch: Launch, threads: usize) -> Vec<[[u32; 3]; 4]> {
    let mut out = stream.alloc_zeros::<u32>(12 * threads).unwrap();
    where_am_i(stream, launch, &mut out).unwrap();
    stream
        .clone_dtoh(&out)
        .unwrap()
        .chunks_exact(12)
        .map(|v| [0, 3, 6, 9].map(|at| [v[at], v[at + 1], v[at + 2]]))
        .collect()
}

/// What every thread of such a launch must see, in the order of `where_am_i`.
fn expected([gx, gy, gz]: [u32; 3], [bx, by, bz]: [u32; 3]) -> Vec<[[u32; 3]; 4]> {
    let axes = |[x, y, z]: [u32; 3]| {
        (0..z).flat_map(move |k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])))
    };
    axes([gx, gy, gz])
        .flat_map(|block| {
            axes([bx, by, bz]).map(move |thread| [[gx, gy, gz], [bx, by, bz], block, thread])
        })
        .collect()
}

#[test]
fn a_grid_and_a_block_arrive_as_given() {
    let device = device!();
    let stream = device.default_stream();
    for (launch, grid, block) in [
        (Launch::new(5, 32), [5, 1, 1], [32, 1, 1]),
        (Launch::new((3, 2), (4, 8)), [3, 2, 1], [4, 8, 1]),
        (Launch::new((2, 3, 4), (2, 3, 4)), [2, 3, 4], [2, 3, 4]),
        ((Grid { x: 2, y: 1, z: 2 }, 7).into(), [2, 1, 2], [7, 1, 1]),
        (
            LaunchConfig {
                grid_dim: (2, 2, 1),
                block_dim: (8, 1, 2),
                shared_mem_bytes: 16,
            }
            .into(),
            [2, 2, 1],
            [8, 1, 2],
        ),
    ] {
        let expected = expected(grid, block);
        assert_eq!(seen(&stream, launch, expected.len()), expected);
    }
}

#[test]
fn cover_takes_one_to_three_extents() {
    let device = device!();
    let stream = device.default_stream();
    for (launch, grid, block) in [
        (cover(1_u32), [1, 1, 1], [256, 1, 1]),
        (cover(256_usize), [1, 1, 1], [256, 1, 1]),
        (cover(1000_i32), [4, 1, 1], [256, 1, 1]),
        (cover(1000_i64).block(300), [4, 1, 1], [300, 1, 1]),
        (cover((33_u32, 16_usize)), [3, 1, 1], [16, 16, 1]),
        (cover((5, 20)).block((4, 2)), [2, 10, 1], [4, 2, 1]),
        (cover((9, 8, 5)), [2, 1, 2], [8, 8, 4]),
        (cover((1, 1, 3_u64)).block(2), [1, 1, 3], [2, 1, 1]),
    ] {
        let expected = expected(grid, block);
        assert_eq!(seen(&stream, launch, expected.len()), expected);
    }
}

#[test]
fn a_cover_of_two_dimensions_reaches_every_element() {
    let device = device!();
    let stream = device.default_stream();
    for (width, height) in [(37_i32, 21_i32), (1, 100), (100, 1), (16, 16)] {
        let len = usize::try_from(width * height).unwrap();
        let mut out = stream.clone_htod(&vec![-1; len]).unwrap();
        fill_2d(&stream, cover((width, height)), &mut out, width, height).unwrap();
        let expected: Vec<i32> = (0..height)
            .flat_map(|row| (0..width).map(move |col| row * 1000 + col))
            .collect();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
    }
}

#[test]
fn a_cover_of_nothing_launches_nothing() {
    let device = device!();
    let stream = device.default_stream();
    let mut count = stream.alloc_zeros::<u64>(1).unwrap();
    for launch in [
        cover(0),
        cover(0_usize).block(32),
        cover((0, 5)),
        cover((5, 0)),
        cover((0, 0)),
        cover((3, 0, 3)),
        cover((3, 3, 0)),
    ] {
        count_threads(&stream, launch, &mut count).unwrap();
    }
    assert_eq!(stream.clone_dtoh(&count).unwrap(), [0]);
    let mut y = stream.alloc_zeros::<f32>(0).unwrap();
    relu(&stream, cover(y.len()), &mut y, 0).unwrap();
}

fn exceeds(axis: &str, found: u32, limit: u32) -> String {
    let cure = if axis.starts_with("grid") {
        "make the block larger, or let each thread do more"
    } else {
        "make the block smaller"
    };
    format!("{axis} is {found}, the device allows {limit}; {cure}")
}

fn zero_block(axis: &str) -> String {
    format!("block.{axis} is 0; a block has at least one thread along each axis")
}

#[test]
fn every_limit_is_ours_to_tell() {
    let device = device!();
    let stream = device.default_stream();
    let threads = limit(
        &device,
        Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    );
    let block_x = limit(&device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    let block_y = limit(&device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    let block_z = limit(&device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    let grid_x = limit(&device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    let grid_y = limit(&device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    let grid_z = limit(&device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    let mut count = stream.alloc_zeros::<u64>(1).unwrap();
    let zero_grid =
        |axis: &str| format!("grid.{axis} is 0; only a launch made by `cover` may be empty");
    let mut good = 0;
    for (launch, expected) in [
        (Launch::new(0, 1), zero_grid("x")),
        (Launch::new((1, 0), 1), zero_grid("y")),
        (Launch::new((1, 1, 0), 1), zero_grid("z")),
        (Launch::new(1, 0), zero_block("x")),
        (Launch::new(1, (1, 0)), zero_block("y")),
        (Launch::new(1, (1, 1, 0)), zero_block("z")),
        (cover(10).block(0), zero_block("x")),
        (
            Launch::new(1, block_x + 1),
            exceeds("block.x", block_x + 1, block_x),
        ),
        (
            Launch::new(1, (1, block_y + 1)),
            exceeds("block.y", block_y + 1, block_y),
        ),
        (
            Launch::new(1, (1, 1, block_z + 1)),
            exceeds("block.z", block_z + 1, block_z),
        ),
        (
            Launch::new(1, (threads / 2, 4)),
            format!(
                "the block has {} threads, the device allows {threads}; make the block smaller",
                threads * 2
            ),
        ),
        (
            Launch::new((1, grid_y + 1), 1),
            exceeds("grid.y", grid_y + 1, grid_y),
        ),
        (
            Launch::new((1, 1, grid_z + 1), 1),
            exceeds("grid.z", grid_z + 1, grid_z),
        ),
        (
            Launch::new(grid_x + 1, 1),
            exceeds("grid.x", grid_x + 1, grid_x),
        ),
        (
            cover((1, u64::from(grid_y) * 16 + 1)),
            exceeds("grid.y", grid_y + 1, grid_y),
        ),
        (
            cover((1, 1, u64::from(grid_z) * 4 + 1)),
            exceeds("grid.z", grid_z + 1, grid_z),
        ),
        (
            cover(u64::MAX),
            format!(
                "grid.x is {}, the device allows {grid_x}; make the block larger, or let each thread do more",
                (1_u64 << 63) / 256
            ),
        ),
        (
            cover(-1),
            "cannot cover -1 elements along x; an extent is 0 or more".to_owned(),
        ),
        (
            cover((4, i32::MIN)),
            "cannot cover -2147483648 elements along y; an extent is 0 or more".to_owned(),
        ),
        (
            cover((4, 4, -5_i64)),
            "cannot cover -5 elements along z; an extent is 0 or more".to_owned(),
        ),
    ] {
        assert_eq!(
            geometry(count_threads(&stream, launch, &mut count)),
            expected
        );
        // The context is as good as before.
        count_threads(&stream, (2, 3), &mut count).unwrap();
        good += 6;
        stream.synchronize().unwrap();
    }
    assert_eq!(stream.clone_dtoh(&count).unwrap(), [good]);
}

#[test]
fn a_grid_of_a_million_blocks_is_none_too_many() {
    let device = device!();
    let stream = device.default_stream();
    let mut count = stream.alloc_zeros::<u64>(1).unwrap();
    count_threads(&stream, (1_000_000, 1), &mut count).unwrap();
    assert_eq!(stream.clone_dtoh(&count).unwrap(), [1_000_000]);
}

#[test]
fn a_block_beyond_the_launch_bound_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(1024).unwrap();
    let kernel = bounded::load(&device).unwrap();
    assert_eq!(kernel.max_threads_per_block(), 256);
    let error = bounded(&stream, (2, 512), &mut y, 1024).unwrap_err();
    let LaunchErrorKind::Geometry(GeometryError::TooManyThreadsForKernel {
        threads: 512,
        limit: 256,
        registers,
        launch_bound: Some([256, 1, 1]),
    }) = error.kind()
    else {
        panic!("{error}");
    };
    assert_eq!(*registers, kernel.registers());
    assert_eq!(
        error.to_string(),
        format!(
            "kernel `bounded`: the block has 512 threads, the kernel can run at most 256 on this \
             device ({registers} registers a thread, launch bound 256 × 1 × 1); make the block \
             smaller, or compile the kernel with `__launch_bounds__(512)`"
        )
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [0.0; 1024]);
    bounded(&stream, (4, 256), &mut y, 1000).unwrap();
    let mut expected = [1.0; 1024];
    expected[1000..].fill(0.0);
    assert_eq!(stream.clone_dtoh(&y).unwrap(), expected);
}

#[test]
fn a_block_of_too_many_registers_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.alloc_zeros::<f32>(1024).unwrap();
    let mut y = stream.clone_htod(&[-1.0_f32; 1024]).unwrap();
    let kernel = registers::load(&device).unwrap();
    let most = kernel.max_threads_per_block();
    if most == 1024 {
        // How many registers a thread takes is ptxas's decision, which an emulator does not make.
        return say(&format!(
            "{}: not run, as registers are no limit here",
            this_test!()
        ));
    }
    let error = registers(&stream, (1, 1024), &x, &mut y, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "kernel `registers`: the block has 1024 threads, the kernel can run at most {most} on \
             this device ({} registers a thread); make the block smaller, or compile the kernel with \
             `__launch_bounds__(1024)`",
            kernel.registers()
        )
    );
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [-1.0; 1024]);
    // 0 + 1 + ... + 127
    registers(&stream, (1, most), &x, &mut y, 0).unwrap();
    let most = usize::try_from(most).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap()[..most], vec![8128.0; most]);
}

#[test]
fn a_declared_block_is_the_only_one() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<u32>(12 * 128).unwrap();
    where_am_i_64(&stream, cover(65), &mut out).unwrap();
    let first: Vec<u32> = stream.clone_dtoh(&out).unwrap()[..6].to_vec();
    assert_eq!(first, [2, 1, 1, 64, 1, 1]);
    where_am_i_64(&stream, (1, 64), &mut out).unwrap();
    assert_eq!(
        geometry(where_am_i_64(&stream, (1, 32), &mut out)),
        "the block is (32, 1, 1), the kernel declares #[block] as (64, 1, 1); launch it in that block, \
         which `cover` takes by itself"
    );
    where_am_i_8_4_2(&stream, cover((8, 5, 1)), &mut out).unwrap();
    let first: Vec<u32> = stream.clone_dtoh(&out).unwrap()[..6].to_vec();
    assert_eq!(first, [1, 2, 1, 8, 4, 2]);
    assert_eq!(
        geometry(where_am_i_8_4_2(&stream, (1, 64), &mut out)),
        "the block is (64, 1, 1), the kernel declares #[block] as (8, 4, 2); launch it in that block, \
         which `cover` takes by itself"
    );
}

#[test]
fn a_block_that_the_ptx_requires_is_the_only_one() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<i32>(256).unwrap();
    required(&stream, cover(129), &mut y).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), (0..256).collect::<Vec<_>>());
    assert_eq!(
        geometry(required(&stream, (1, 64), &mut y)),
        "the block is (64, 1, 1), the kernel is compiled for (.reqntid) (128, 1, 1); launch it in \
         that block, which `cover` takes by itself"
    );
    stream.memset_zeros(&mut y).unwrap();
    required_2d(&stream, cover((16, 8)), &mut y).unwrap();
    assert_eq!(
        stream.clone_dtoh(&y).unwrap()[..128],
        (0..128).collect::<Vec<_>>()
    );
    assert_eq!(
        geometry(required_2d(&stream, (1, 128), &mut y)),
        "the block is (128, 1, 1), the kernel is compiled for (.reqntid) (16, 8, 1); launch it in \
         that block, which `cover` takes by itself"
    );
}

#[test]
fn the_block_of_a_cover_keeps_to_the_launch_bound() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(1000).unwrap();
    bounded_min_blocks(&stream, cover(1000), &mut y, 1000).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [1.0; 1000]);
}

#[test]
fn one_grid_may_cover_more_than_itself() {
    let device = device!();
    let stream = device.default_stream();
    let mut y = stream.alloc_zeros::<f32>(10_000).unwrap();
    grid_stride(&stream, (3, 64), &mut y, 2.0, 10_000).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), vec![2.0; 10_000]);
}

#[test]
fn axes_are_named() {
    let device = device!();
    let stream = device.default_stream();
    let mut count = stream.alloc_zeros::<u64>(1).unwrap();
    let error = count_threads(&stream, cover((1, -2)), &mut count).unwrap_err();
    let LaunchErrorKind::Geometry(GeometryError::NegativeExtent { axis, extent: -2 }) =
        error.kind()
    else {
        panic!("{error}");
    };
    assert_eq!(*axis, Axis::Y);
}
