//! Do kernels copy tiles by tensor maps of arrays, in order with all other uses of the arrays?
//!
//! They are for devices of compute capability 9.0 and later.

use std::sync::Arc;

use gridcall::{
    Buffer, Im2col, Interleave, LaunchErrorKind, OobFill, Shaped, Swizzle, TensorMap,
    TensorMapErrorKind, TensorMapMut, Tile, cover,
    cudarc::driver::{CudaContext, CudaStream, sys::CUdevice_attribute as Attribute},
    kernel,
};

use crate::{
    kernels::{fill, slow_add},
    support::{LONG, say},
};

#[kernel(ptx = "../kernels/tensor_map.ptx", cuda = "../kernels/tensor_map.cu")]
unsafe extern "C" {
    #[requires(map.tile(0) == 8, map.tile(1) == 32, map.rank() == 2, out.len() >= 256, grid.blocks() == 1)]
    #[block(256)]
    safe fn load_tile(map: TensorMap<f32>, out: &mut [f32], row: i32, column: i32);

    #[requires(map.tile(0) == 8, map.tile(1) == 32, grid.blocks() == 1)]
    #[block(256)]
    safe fn fill_tile(value: f32, map: TensorMapMut<f32>, row: i32, column: i32);

    #[requires(
        from.tile(0) == 8, from.tile(1) == 32, to.tile(0) == 8, to.tile(1) == 32,
        from.extent(0) == to.extent(0), from.extent(1) == to.extent(1)
    )]
    #[block(256)]
    safe fn scale_tiles(from: TensorMap<f32>, to: TensorMapMut<f32>, a: f32);

    #[requires(
        map.tile(0) == 16, map.tile(1) == 8, map.rank() == 4, map.extent(3) >= 8, out.len() >= 128, grid.blocks() == 1
    )]
    #[block(128)]
    safe fn load_pixels(
        map: TensorMap<f32>,
        out: &mut [f32],
        image: i32,
        row: i32,
        column: i32,
        down: u16,
        right: u16,
    );

    #[requires(map.tile(0) == 16, map.tile(1) == 8, map.rank() == 4, map.extent(3) >= 8, grid.blocks() == 1)]
    #[block(128)]
    safe fn fill_pixels(value: f32, map: TensorMapMut<f32>, image: i32, row: i32, column: i32);

    #[requires(
        map.tile(0) == 1, map.tile(1) == 1, map.tile(2) == 2, map.tile(3) == 4, map.rank() == 4, out.len() >= 32,
        grid.blocks() == 1
    )]
    #[block(32)]
    safe fn load_slice(
        map: TensorMap<f32>,
        out: &mut [f32],
        image: i32,
        slice: i32,
        row: i32,
        column: i32,
    );
}

const ROWS: usize = 20;
const COLUMNS: usize = 64;

/// Whether the test can run here; says so if not.
fn has_tensor_maps(device: &Arc<CudaContext>, test: &str) -> bool {
    let major = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    let stream = device.default_stream();
    let probe = stream.alloc_zeros::<f32>(64).unwrap();
    let made = TensorMap::tiled(&probe, [64]).is_ok();
    let has = made && device.attribute(major).unwrap() >= 9;
    if !has {
        say(&format!(
            "{test}: not run, for want of a device with tensor maps"
        ));
    }
    has
}

macro_rules! tensor_maps {
    ($device:expr) => {
        if !has_tensor_maps(&$device, this_test!()) {
            return;
        }
    };
}

fn numbers() -> Vec<f32> {
    (0..u16::try_from(ROWS * COLUMNS).unwrap())
        .map(f32::from)
        .collect()
}

/// The tile at (row, column), with zeros beyond the ends.
fn tile_of(array: &[f32], row: usize, column: usize) -> Vec<f32> {
    let at = |row: usize, column: usize| {
        if row < ROWS && column < COLUMNS {
            array[row * COLUMNS + column]
        } else {
            0.0
        }
    };
    (0..8)
        .flat_map(|i| (0..32).map(move |j| at(row + i, column + j)))
        .collect()
}

fn tile_on(stream: &Arc<CudaStream>, map: &TensorMap<'_, f32>, row: i32, column: i32) -> Vec<f32> {
    let mut out = stream.alloc_zeros::<f32>(256).unwrap();
    load_tile(stream, (1, 256), map, &mut out, row, column).unwrap();
    stream.clone_dtoh(&out).unwrap()
}

#[test]
fn tiles_are_loaded() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let array = stream.clone_htod(&numbers()).unwrap();
    let matrix = Shaped::new(&array, [ROWS, COLUMNS]);
    let map = TensorMap::tiled(&matrix, [8, 32]).unwrap();
    assert_eq!(tile_on(&stream, &map, 0, 0), tile_of(&numbers(), 0, 0));
    assert_eq!(tile_on(&stream, &map, 8, 32), tile_of(&numbers(), 8, 32));
    // Beyond both ends.
    assert_eq!(tile_on(&stream, &map, 16, 48), tile_of(&numbers(), 16, 48));
    let nan = Tile::new([8, 32]).oob_fill(OobFill::Nan);
    let map = TensorMap::tiled(&matrix, nan).unwrap();
    let tile = tile_on(&stream, &map, 16, 32);
    assert!(tile[..128].iter().all(|x| !x.is_nan()) && tile[128..].iter().all(|x| x.is_nan()));
}

#[test]
fn every_other_row_of_an_array() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let array = stream.clone_htod(&numbers()).unwrap();
    let stride = isize::try_from(2 * COLUMNS).unwrap();
    let rows = Shaped::strided(&array, 0, [ROWS / 2, COLUMNS], [stride, 1]);
    let map = TensorMap::tiled(&rows, [8, 32]).unwrap();
    let expected: Vec<f32> = (0..8)
        .flat_map(|i| numbers()[2 * i * COLUMNS..][..32].to_vec())
        .collect();
    assert_eq!(tile_on(&stream, &map, 0, 0), expected);
}

#[test]
fn a_swizzle_exchanges_sixteen_bytes() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let array = stream.clone_htod(&numbers()).unwrap();
    let matrix = Shaped::new(&array, [ROWS, COLUMNS]);
    let swizzled = Tile::new([8, 32]).swizzle(Swizzle::Bytes128);
    let map = TensorMap::tiled(&matrix, swizzled).unwrap();
    let tile = tile_on(&stream, &map, 0, 0);
    let plain = tile_of(&numbers(), 0, 0);
    for row in 0..8 {
        for chunk in 0..8 {
            let (here, there) = (row * 32 + 4 * (chunk ^ row), row * 32 + 4 * chunk);
            assert_eq!(tile[here..here + 4], plain[there..there + 4]);
        }
    }
}

#[test]
fn tiles_are_stored() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let mut array = stream.alloc_zeros::<f32>(ROWS * COLUMNS).unwrap();
    let mut matrix = Shaped::new(&mut array, [ROWS, COLUMNS]);
    let mut map = TensorMapMut::tiled(&mut matrix, [8, 32]).unwrap();
    fill_tile(&stream, (1, 256), 3.0, &mut map, 16, 32).unwrap();
    let host = stream.clone_dtoh(&array).unwrap();
    for (index, &element) in host.iter().enumerate() {
        let inside = index / COLUMNS >= 16 && index % COLUMNS >= 32;
        assert_eq!(element, if inside { 3.0 } else { 0.0 });
    }
}

/// Two images of 5 x 6 pixels of 8 channels.
const IMAGES: [usize; 4] = [2, 5, 6, 8];

fn images() -> Vec<f32> {
    (0..480_u16).map(f32::from).collect()
}

/// The channels of 16 pixels of a box with a margin of one pixel, from one on, each moved by an offset.
fn pixels_from(image: usize, row: i32, column: i32, down: i32, right: i32) -> Vec<f32> {
    let box_of = |image: usize| (-1..4).flat_map(move |y| (-1..5).map(move |x| (image, y, x)));
    let pixels = (0..3).flat_map(box_of);
    let from = pixels
        .skip_while(move |pixel| *pixel != (image, row, column))
        .take(16);
    let channel = |image: usize, y: i32, x: i32, c: usize| {
        let (Ok(y), Ok(x)) = (usize::try_from(y), usize::try_from(x)) else {
            return 0.0;
        };
        let inside = image < IMAGES[0] && y < IMAGES[1] && x < IMAGES[2];
        let at = ((image * IMAGES[1] + y) * IMAGES[2] + x) * IMAGES[3] + c;
        if inside { images()[at] } else { 0.0 }
    };
    from.flat_map(|(image, y, x)| (0..8).map(move |c| channel(image, y + down, x + right, c)))
        .collect()
}

#[test]
fn pixels_are_loaded_for_a_convolution() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let array = stream.clone_htod(&images()).unwrap();
    let shaped = Shaped::new(&array, IMAGES);
    let map =
        TensorMap::im2col(&shaped, Im2col::new(16, 8).lower([-1, -1]).upper([-1, -1])).unwrap();
    let mut out = stream.alloc_zeros::<f32>(128).unwrap();
    for (image, row, column, down, right) in [
        (0, -1, -1, 0, 0),
        (0, 0, 0, 1, 1),
        (0, 3, 4, 2, 2),
        (1, 2, 3, 0, 2),
        (1, -1, 0, 2, 1),
    ] {
        let (y, x) = (i32::from(down), i32::from(right));
        let at = i32::try_from(image).unwrap();
        load_pixels(
            &stream,
            (1, 128),
            &map,
            &mut out,
            at,
            row,
            column,
            down,
            right,
        )
        .unwrap();
        let found = stream.clone_dtoh(&out).unwrap();
        assert_eq!(found, pixels_from(image, row, column, y, x));
    }
}

#[test]
fn pixels_are_stored() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let mut array = stream.alloc_zeros::<f32>(480).unwrap();
    let mut shaped = Shaped::new(&mut array, IMAGES);
    let mut map = TensorMapMut::im2col(&mut shaped, Im2col::<2>::new(16, 8)).unwrap();
    fill_pixels(&stream, (1, 128), 2.0, &mut map, 0, 1, 4).unwrap();
    let host = stream.clone_dtoh(&array).unwrap();
    let filled = 8 * (6 + 4)..8 * (6 + 4 + 16);
    for (at, &element) in host.iter().enumerate() {
        assert_eq!(element, if filled.contains(&at) { 2.0 } else { 0.0 });
    }
}

#[test]
fn slices_of_channels_are_loaded() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    // One image of 8 channels in two slices, 3 x 4 pixels.
    let numbers: Vec<f32> = (0..96_u16).map(f32::from).collect();
    let array = stream.clone_htod(&numbers).unwrap();
    let shaped = Shaped::new(&array, [1, 2, 3, 4, 4]);
    let tile = Tile::new([1, 1, 2, 4]).interleave(Interleave::Bytes16);
    let map = TensorMap::tiled(&shaped, tile).unwrap();
    let mut out = stream.alloc_zeros::<f32>(32).unwrap();
    load_slice(&stream, (1, 32), &map, &mut out, 0, 1, 1, 1).unwrap();
    let expected: Vec<f32> = (1..3)
        .flat_map(|y| (1..5).flat_map(move |x| (0..4).map(move |c| (y, x, c))))
        .map(|(y, x, c)| {
            if x < 4 {
                numbers[((3 + y) * 4 + x) * 4 + c]
            } else {
                0.0
            }
        })
        .collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[test]
fn images_that_cannot_be_mapped() {
    let device = device!();
    let stream = device.default_stream();
    let mut array = stream.alloc_zeros::<f32>(480).unwrap();
    let flat = TensorMap::im2col(&array, Im2col::<2>::new(16, 8)).unwrap_err();
    assert_eq!(
        flat.to_string(),
        "the tile has 4 dimensions, the array has 1: give it a shape: `Shaped::new(&array, [..])`"
    );
    let shaped = Shaped::new(&array, IMAGES);
    let error = TensorMap::im2col(&shaped, Im2col::new(16, 8).lower([-200, 0])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the box of pixels begins at -200 and ends at 0 along dimension 1, and -128 to 127 are possible"
    );
    let mut shaped = Shaped::new(&mut array, IMAGES);
    let error = TensorMapMut::im2col(&mut shaped, Im2col::new(16, 8).upper([0, 1])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kernel writes to it, and the box of pixels ends at [0, 1]: a device writes no further than to the last \
         pixel; take nothing above 0"
    );
    let error = TensorMapMut::im2col(&mut shaped, Im2col::new(16, 8).lower([-1, 0])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a device writes only from the first pixel on; leave `lower` out"),
        "{error}"
    );
    let mut part = Shaped::strided(&mut array, 0, [4, 3], [8, 1]);
    let error = TensorMapMut::tiled(&mut part, [4, 4]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its innermost dimension has 12 bytes: a device writes 16 at once"),
        "{error}"
    );
}

#[test]
fn a_launch_by_maps_is_in_order() {
    let device = device!();
    tensor_maps!(device);
    let [first, second] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let len = ROWS * COLUMNS;
    let mut x = Buffer::<f32>::zeroed(&first, len).unwrap();
    let mut y = Buffer::<f32>::zeroed(&first, len).unwrap();
    slow_add(&first, (5, 256), &mut x, 2.0, LONG).unwrap();
    {
        let from = Shaped::new(&x, [ROWS, COLUMNS]);
        let from = TensorMap::tiled(&from, [8, 32]).unwrap();
        let mut to = Shaped::new(&mut y, [ROWS, COLUMNS]);
        let mut to = TensorMapMut::tiled(&mut to, [8, 32]).unwrap();
        scale_tiles(&second, ((2, 3), 256), &from, &mut to, 5.0).unwrap();
    }
    // After the kernel, by whatever stream; and the drop waits for it.
    fill(&first, cover(len), &mut x, 0.0, 1280).unwrap();
    drop(x);
    assert_eq!(y.to_vec().unwrap(), vec![10.0; len]);
}

#[test]
fn what_cannot_be_mapped_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let array = stream.alloc_zeros::<f32>(ROWS * COLUMNS).unwrap();
    let error = TensorMap::tiled(&array, [8, 32]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tile has 2 dimensions, the array has 1: give it a shape: `Shaped::new(&array, [..])`"
    );
    assert!(matches!(error.kind(), TensorMapErrorKind::Rank { .. }));
    let transposed = Shaped::strided(&array, 0, [COLUMNS, ROWS], [1, 64]);
    let error = TensorMap::tiled(&transposed, [8, 32]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the innermost dimension, 1, has a stride of 64 elements, and a tensor map needs 1; make the array contiguous \
         along it, or exchange dimensions"
    );
    let part = array.slice(1..);
    let error = TensorMap::tiled(&part, [4]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("aligned to 4 bytes only, a tensor map needs 16")
    );
    let mut array = array;
    let mut broadcast = Shaped::strided(&mut array, 0, [ROWS, COLUMNS], [0, 1]);
    let error = TensorMapMut::tiled(&mut broadcast, [8, 32]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("several of its indices may be one element")
    );
}

#[test]
fn contracts_speak_of_tiles() {
    let device = device!();
    tensor_maps!(device);
    let stream = device.default_stream();
    let array = stream.clone_htod(&numbers()).unwrap();
    let matrix = Shaped::new(&array, [ROWS, COLUMNS]);
    let map = TensorMap::tiled(&matrix, [4, 32]).unwrap();
    let mut out = stream.alloc_zeros::<f32>(256).unwrap();
    let error = load_tile(&stream, (1, 256), &map, &mut out, 0, 0).unwrap_err();
    assert!(matches!(error.kind(), LaunchErrorKind::Requirement { .. }));
    assert_eq!(
        error.to_string(),
        "kernel `load_tile`: the launch needs `map.tile(0) == 8`, but the shape of map is [20, 64] in tiles of [4, 32]"
    );
}
