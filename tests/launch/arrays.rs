//! Do kernels read and write CUDA arrays by textures and surfaces, in order with copies and each other?

use std::sync::Arc;

use gridcall::{
    AddressMode, ArrayErrorKind, ArrayShape, Buffer, CudaArray, FilterMode, Float4, Sampler,
    Shaped, Texture, UChar4, cover,
    cudarc::driver::{CudaStream, sys},
    kernel,
};

use crate::{kernels::saxpy, support::LONG};

#[kernel(ptx = "../kernels/array.ptx", cuda = "../kernels/array.cu")]
unsafe extern "C" {
    #[requires(image.rank() == 2, !image.is_layered(), width == image.extent(1), height == image.extent(0))]
    safe fn ramp(image: SurfaceMut<f32>, width: u32, height: u32, a: f32, b: f32);
    #[requires(image.rank() == 2, !image.is_layered(), width == image.extent(1), height == image.extent(0))]
    safe fn late_ramp(image: SurfaceMut<f32>, width: u32, height: u32, a: f32, b: f32, cycles: i64);
    #[requires(image.rank() == 2, !image.is_layered(), out.len() >= n)]
    safe fn read_row(image: Surface<f32>, out: &mut [f32], row: u32, n: u32);
    #[requires(width == from.extent(2), height == from.extent(1), depth == from.extent(0))]
    #[requires(width == to.extent(2), height == to.extent(1), depth == to.extent(0))]
    safe fn reverse_channels(
        from: Surface<UChar4>,
        to: SurfaceMut<UChar4>,
        width: u32,
        height: u32,
        depth: u32,
    );
    #[requires(layers.rank() == 2, layers.is_layered(), layer < layers.extent(0), width <= layers.extent(1))]
    safe fn add_to_layer(layers: SurfaceMut<u32>, layer: u32, width: u32, by: u32);
    #[requires(image.rank() == 2, !image.is_layered(), x.len() >= n, y.len() >= n, out.len() >= n)]
    safe fn sample(image: Texture<f32>, x: &[f32], y: &[f32], out: &mut [f32], n: u32);
    #[requires(line.rank() == 1, x.len() >= n, out.len() >= n)]
    safe fn sample_line(line: Texture<f32>, x: &[f32], out: &mut [f32], n: u32);
    #[requires(volume.rank() == 3, !volume.is_layered(), !volume.is_cubemap(), at.len() >= 3 * n, out.len() >= n)]
    safe fn sample_volume(volume: Texture<f32>, at: &[f32], out: &mut [f32], n: u32);
    #[requires(layers.rank() == 3, layers.is_layered(), x.len() >= n, y.len() >= n, out.len() >= n)]
    safe fn sample_layer(
        layers: Texture<f32>,
        x: &[f32],
        y: &[f32],
        out: &mut [f32],
        layer: u32,
        n: u32,
    );
    #[requires(cube.extent(0) == 6, at.len() >= 3 * n, out.len() >= n)]
    safe fn sample_cube(cube: Texture<f32>, at: &[f32], out: &mut [f32], n: u32);
    #[requires(x.len() >= n, y.len() >= n, out.len() >= n, at.len() >= n)]
    safe fn sample_around(
        image: Texture<UChar4>,
        x: &[f32],
        y: &[f32],
        out: &mut [Float4],
        at: &mut [Float4],
        n: u32,
    );
}

/// From 0 up.
fn counting(len: u16) -> Vec<f32> {
    (0..len).map(f32::from).collect()
}

fn sampled(stream: &Arc<CudaStream>, image: &Texture<'_, f32>, at: &[[f32; 2]]) -> Vec<f32> {
    let axis = |axis: usize| {
        let all: Vec<f32> = at.iter().map(|at| at[axis]).collect();
        stream.clone_htod(&all).unwrap()
    };
    let mut out = stream.alloc_zeros::<f32>(at.len()).unwrap();
    let n = u32::try_from(at.len()).unwrap();
    sample(stream, cover(n), image, &axis(0), &axis(1), &mut out, n).unwrap();
    stream.clone_dtoh(&out).unwrap()
}

#[test]
fn a_surface_is_written_and_read_as_a_texture() {
    let device = device!();
    let stream = device.default_stream();
    let shape = ArrayShape::new([4, 8]).with_surface();
    let mut image = CudaArray::<f32>::zeroed(&stream, shape).unwrap();
    ramp(
        &stream,
        cover(32),
        &mut image.surface_mut().unwrap(),
        8,
        4,
        1.0,
        10.0,
    )
    .unwrap();
    let expected: Vec<f32> = (0..32_u8)
        .map(|i| f32::from(i % 8) + 10.0 * f32::from(i / 8))
        .collect();
    assert_eq!(image.to_vec().unwrap(), expected);

    let points = image.texture(Sampler::new()).unwrap();
    let at = [[0.5, 0.5], [3.2, 2.9], [9.5, 1.5], [2.5, -3.0]];
    assert_eq!(sampled(&stream, &points, &at), [0.0, 23.0, 17.0, 2.0]);
    let smooth = image
        .texture(Sampler::new().filter(FilterMode::Linear))
        .unwrap();
    let at = [[2.0, 0.5], [0.5, 2.0], [2.0, 2.0], [1.25, 1.0]];
    assert_eq!(sampled(&stream, &smooth, &at), [1.5, 15.0, 16.5, 5.75]);
    let border = image
        .texture(Sampler::new().address(AddressMode::Border))
        .unwrap();
    assert_eq!(
        sampled(&stream, &border, &[[9.5, 1.5], [7.5, 3.5]]),
        [0.0, 37.0]
    );
    let wrapped = Sampler::new()
        .normalized_coordinates()
        .address(AddressMode::Wrap);
    let wrapped = image.texture(wrapped).unwrap();
    assert_eq!(
        sampled(&stream, &wrapped, &[[1.0 + 2.5 / 8.0, -0.1]]),
        [32.0]
    );

    let mut out = stream.alloc_zeros::<f32>(10).unwrap();
    read_row(
        &stream,
        cover(10),
        &image.surface().unwrap(),
        &mut out,
        2,
        10,
    )
    .unwrap();
    let row = [20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 0.0, 0.0];
    assert_eq!(stream.clone_dtoh(&out).unwrap(), row);
}

#[test]
fn one_and_three_dimensions_layers_and_cubes() {
    let device = device!();
    let stream = device.default_stream();
    let smooth = Sampler::new().filter(FilterMode::Linear);
    let sample_all = |at: &[f32], count: usize, launch: &dyn Fn(&Buffer<f32>, &mut Buffer<f32>)| {
        let at = Buffer::from_slice(&stream, at).unwrap();
        let mut out = Buffer::zeroed(&stream, count).unwrap();
        launch(&at, &mut out);
        out.to_vec().unwrap()
    };

    let line = CudaArray::from_slice(&stream, [5], &counting(5)).unwrap();
    let texture = line.texture(smooth).unwrap();
    let given = sample_all(&[0.5, 2.0, 4.75, 9.0], 4, &|at, out| {
        sample_line(&stream, cover(4), &texture, at, out, 4).unwrap();
    });
    assert_eq!(given, [0.0, 1.5, 4.0, 4.0]);

    let volume = CudaArray::from_slice(&stream, [2, 3, 4], &counting(24)).unwrap();
    let texture = volume.texture(smooth).unwrap();
    let at = [0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 3.5, 2.5, 1.5];
    let given = sample_all(&at, 3, &|at, out| {
        sample_volume(&stream, cover(3), &texture, at, out, 3).unwrap();
    });
    assert_eq!(given, [0.0, 8.5, 23.0]);

    let shape = ArrayShape::layered([3, 2, 4]);
    let layers = CudaArray::from_slice(&stream, shape, &counting(24)).unwrap();
    let texture = layers.texture(smooth).unwrap();
    let y = Buffer::from_slice(&stream, &[0.5_f32, 1.0]).unwrap();
    let given = sample_all(&[1.0, 0.5], 2, &|x, out| {
        sample_layer(&stream, cover(2), &texture, x, &y, out, 1, 2).unwrap();
    });
    assert_eq!(given, [8.5, 10.0]);

    let faces: Vec<f32> = (0..24_u8).map(|i| f32::from(i / 4)).collect();
    let cube = CudaArray::from_slice(&stream, ArrayShape::cubemap(2), &faces).unwrap();
    let texture = cube.texture(Sampler::new()).unwrap();
    let at = [
        [2.0, 0.1, 0.1],
        [-2.0, 0.1, 0.1],
        [0.1, 2.0, 0.1],
        [0.1, -2.0, 0.1],
        [0.1, 0.1, 2.0],
        [0.1, 0.1, -2.0],
    ];
    let given = sample_all(at.as_flattened(), 6, &|at, out| {
        sample_cube(&stream, cover(6), &texture, at, out, 6).unwrap();
    });
    assert_eq!(given, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn channels_around_a_point() {
    let device = device!();
    let stream = device.default_stream();
    let elements: Vec<UChar4> = (0..4_u8)
        .map(|i| UChar4 {
            x: i * 51,
            y: 255,
            z: 0,
            w: 51,
        })
        .collect();
    let shape = ArrayShape::new([2, 2]).with_gather();
    let image = CudaArray::from_slice(&stream, shape, &elements).unwrap();
    let texture = image.texture(Sampler::new().read_as_float()).unwrap();
    let [x, y] = [1.0_f32, 1.0].map(|at| Buffer::from_slice(&stream, &[at]).unwrap());
    let mut out = Buffer::<Float4>::zeroed(&stream, 1).unwrap();
    let mut at = Buffer::<Float4>::zeroed(&stream, 1).unwrap();
    sample_around(&stream, cover(1), &texture, &x, &y, &mut out, &mut at, 1).unwrap();
    let parts = |v: Float4| [v.x, v.y, v.z, v.w];
    // Counter-clockwise from the lower left.
    assert_eq!(parts(out.to_vec().unwrap()[0]), [0.4, 0.6, 0.2, 0.0]);
    assert_eq!(parts(at.to_vec().unwrap()[0]), [0.6, 1.0, 0.0, 0.2]);
}

#[test]
fn surfaces_of_three_dimensions_and_of_layers() {
    let device = device!();
    let stream = device.default_stream();
    let elements: Vec<UChar4> = (0..30_u8)
        .map(|i| UChar4 {
            x: i,
            y: 1,
            z: 2,
            w: 3,
        })
        .collect();
    let shape = ArrayShape::new([2, 3, 5]).with_surface();
    let from = CudaArray::from_slice(&stream, shape, &elements).unwrap();
    let mut to = CudaArray::<UChar4>::zeroed(&stream, shape).unwrap();
    reverse_channels(
        &stream,
        cover(30),
        &from.surface().unwrap(),
        &mut to.surface_mut().unwrap(),
        5,
        3,
        2,
    )
    .unwrap();
    let reversed: Vec<UChar4> = (0..30_u8)
        .map(|i| UChar4 {
            x: 3,
            y: 2,
            z: 1,
            w: i,
        })
        .collect();
    assert_eq!(to.to_vec().unwrap(), reversed);

    let shape = ArrayShape::layered([3, 4]).with_surface();
    let mut layers = CudaArray::from_slice(&stream, shape, &[7_u32; 12]).unwrap();
    add_to_layer(
        &stream,
        cover(4),
        &mut layers.surface_mut().unwrap(),
        1,
        4,
        10,
    )
    .unwrap();
    assert_eq!(
        layers.to_vec().unwrap(),
        [7, 7, 7, 7, 17, 17, 17, 17, 7, 7, 7, 7]
    );
    assert_eq!(layers.read_part(&[1, 1], &[2, 2]).unwrap(), [17, 17, 7, 7]);
    layers.write_part(&[0, 3], &[3, 1], &[1, 2, 3]).unwrap();
    assert_eq!(
        layers.to_vec().unwrap(),
        [7, 7, 7, 1, 17, 17, 17, 2, 7, 7, 7, 3]
    );
}

#[test]
fn copies_with_device_arrays() {
    let device = device!();
    let stream = device.default_stream();
    // Rows of 5 of which 3 are copied, slices of 4 rows of which 2 are.
    let wide = Buffer::from_slice(&stream, &counting(40)).unwrap();
    let view = Shaped::strided(&wide, 0, [2, 2, 3], [20, 5, 1]);
    let mut volume = CudaArray::<f32>::zeroed(&stream, [2, 2, 3]).unwrap();
    volume.copy_from(&stream, &view).unwrap();
    let copied = [
        0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 20.0, 21.0, 22.0, 25.0, 26.0, 27.0,
    ];
    assert_eq!(volume.to_vec().unwrap(), copied);
    assert_eq!(
        volume.read_part(&[1, 0, 1], &[1, 2, 2]).unwrap(),
        [21.0, 22.0, 26.0, 27.0]
    );

    // A flat array is one of the same length.
    let mut flat = stream.alloc_zeros::<f32>(12).unwrap();
    volume.copy_to(&stream, &mut flat).unwrap();
    assert_eq!(stream.clone_dtoh(&flat).unwrap(), copied);
    // Rows of layers.
    let mut layers = CudaArray::<f32>::zeroed(&stream, ArrayShape::layered([2, 3])).unwrap();
    layers
        .copy_from(&stream, &Shaped::strided(&wide, 0, [2, 3], [10, 1]))
        .unwrap();
    assert_eq!(layers.to_vec().unwrap(), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
}

#[test]
fn the_stride_of_one_element_leads_nowhere() {
    let device = device!();
    let stream = device.default_stream();
    let wide = Buffer::from_slice(&stream, &counting(40)).unwrap();
    let copied = |shape: [usize; 3], strides| {
        let mut array = CudaArray::<f32>::zeroed(&stream, shape).unwrap();
        let view = Shaped::strided(&wide, 8, shape, strides);
        array.copy_from(&stream, &view).unwrap();
        array.to_vec().unwrap()
    };
    let rows = [8.0, 9.0, 13.0, 14.0];
    for nowhere in [10, 7, 1, 0, -3, isize::MAX] {
        assert_eq!(copied([1, 2, 2], [nowhere, 5, 1]), rows, "{nowhere}");
        assert_eq!(copied([2, 1, 2], [5, nowhere, 1]), rows, "{nowhere}");
        assert_eq!(
            copied([2, 2, 1], [10, 5, nowhere]),
            [8.0, 13.0, 18.0, 23.0],
            "{nowhere}"
        );
    }
    // Of what is refused, all strides are told.
    let mut array = CudaArray::<f32>::zeroed(&stream, [2, 2, 2]).unwrap();
    let view = Shaped::strided(&wide, 8, [2, 2, 2], [-4, 5, 1]);
    let error = array.copy_from(&stream, &view).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the device array's strides are [-4, 5, 1] in elements"),
        "{error}"
    );
}

#[test]
fn uses_are_in_order_across_streams() {
    let device = device!();
    let [first, second] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let shape = ArrayShape::new([1, 32]).with_surface();
    let mut image = CudaArray::<f32>::zeroed(&first, shape).unwrap();
    late_ramp(
        &first,
        cover(32),
        &mut image.surface_mut().unwrap(),
        32,
        1,
        1.0,
        0.0,
        LONG,
    )
    .unwrap();
    // A texture on another stream reads what the first has written, and a copy writes what neither reads.
    let at = [[0.5, 0.5], [31.5, 0.5]];
    assert_eq!(
        sampled(&second, &image.texture(Sampler::new()).unwrap(), &at),
        [0.0, 31.0]
    );
    late_ramp(
        &first,
        cover(32),
        &mut image.surface_mut().unwrap(),
        32,
        1,
        2.0,
        0.0,
        LONG,
    )
    .unwrap();
    let zeros = Buffer::<f32>::zeroed(&second, 32).unwrap();
    image.copy_from(&second, &zeros).unwrap();
    assert_eq!(image.to_vec().unwrap(), [0.0; 32]);
}

#[test]
fn an_array_that_is_dropped_under_a_kernel_is_destroyed_after_it() {
    let device = device!();
    let [first, second] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let mut out = Buffer::<f32>::zeroed(&second, 32).unwrap();
    {
        let shape = ArrayShape::new([1, 32]).with_surface();
        let mut image = CudaArray::<f32>::zeroed(&first, shape).unwrap();
        late_ramp(
            &first,
            cover(32),
            &mut image.surface_mut().unwrap(),
            32,
            1,
            3.0,
            0.0,
            LONG,
        )
        .unwrap();
        read_row(
            &second,
            cover(32),
            &image.surface().unwrap(),
            &mut out,
            0,
            32,
        )
        .unwrap();
    }
    let expected: Vec<f32> = counting(32).iter().map(|x| 3.0 * x).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

#[test]
fn what_is_no_array_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let made = |shape: ArrayShape| {
        CudaArray::<f32>::zeroed(&stream, shape)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        made(ArrayShape::new([4, 0])),
        "the shape is [4, 0], and an array has at least one element along each dimension"
    );
    let error = made(ArrayShape::new([1 << 20]));
    assert!(
        error.starts_with("the shape is [1048576], and an array of one dimension has at most ["),
        "{error}"
    );
    let error = made(ArrayShape::new([100_000]).with_surface());
    assert!(error.contains("with a surface has at most ["), "{error}");
    let error = made(ArrayShape::new([64]).with_gather());
    assert_eq!(
        error,
        "`with_gather` is for arrays of two dimensions, and this is an array of one dimension"
    );

    let error = CudaArray::from_slice(&stream, [2, 3], &[0.0_f32; 5]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the array has shape [2, 3], 6 elements, and 5 are given"
    );
    let mut array = CudaArray::<f32>::zeroed(&stream, [2, 3]).unwrap();
    let error = array.surface_mut().unwrap_err();
    assert!(matches!(error.kind(), ArrayErrorKind::Rule(_)));
    assert_eq!(
        error.to_string(),
        "the array was made without a surface; make it `ArrayShape::new([2, 3]).with_surface()`"
    );
    let error = array.read_part(&[1, 2], &[1, 2]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "[1, 2] elements from [1, 2] on do not lie within an array of shape [2, 3]"
    );
    let error = array.write_part(&[0, 0], &[1, 2], &[1.0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the part has 2 elements, and 1 are given"
    );
    let other = stream.alloc_zeros::<f32>(8).unwrap();
    let error = array.copy_from(&stream, &other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the device array has 8 elements in a row, and the CUDA array has shape [2, 3]"
    );
    let turned = Shaped::strided(&other, 0, [2, 3], [1, 2]);
    let error = array.copy_from(&stream, &turned).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the device array's strides are [1, 2] in elements"),
        "{error}"
    );
    let error = array
        .texture(Sampler::new().address(AddressMode::Wrap))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a texture wraps with normalized coordinates alone"),
        "{error}"
    );
}

#[test]
fn an_array_is_no_slice() {
    use crate::kernels::fill;
    let device = device!();
    let stream = device.default_stream();
    let shape = ArrayShape::new([4]).with_surface();
    let mut array = CudaArray::<f32>::zeroed(&stream, shape).unwrap();
    let error = fill(&stream, cover(4), &mut array.surface_mut().unwrap(), 1.0, 4).unwrap_err();
    assert!(
        error.to_string().contains("a CUDA array has no address"),
        "{error}"
    );
}

#[test]
fn another_context_and_another_contract_are_refused() {
    let device = device!();
    let stream = device.default_stream();
    let shape = ArrayShape::new([4, 8]).with_surface();
    let mut image = CudaArray::<f32>::zeroed(&stream, shape).unwrap();
    let error = ramp(
        &stream,
        cover(32),
        &mut image.surface_mut().unwrap(),
        9,
        4,
        1.0,
        1.0,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the shape of image is [4, 8] and width is 9"),
        "{error}"
    );
    let texture = image.texture(Sampler::new()).unwrap();
    let x = stream.alloc_zeros::<f32>(1).unwrap();
    let mut out = stream.alloc_zeros::<f32>(1).unwrap();
    let error = sample_line(&stream, cover(1), &texture, &x, &mut out, 1).unwrap_err();
    assert!(error.to_string().contains("line.rank() == 1"), "{error}");
    // Layers have as many extents as an array of one dimension more.
    let shape = ArrayShape::layered([4, 8]).with_surface();
    let mut layers = CudaArray::<f32>::zeroed(&stream, shape).unwrap();
    let error = ramp(
        &stream,
        cover((8, 4)),
        &mut layers.surface_mut().unwrap(),
        8,
        4,
        1.0,
        1.0,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the shape of image is [4, 8] of layers"),
        "{error}"
    );
}

#[test]
fn a_copy_that_a_capture_refuses_leaves_the_other_array_alone() {
    let device = device!(alone);
    let stream = device.default_stream();
    let (captured, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let one = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut x = stream.clone_htod(&[1.0_f32; 4]).unwrap();
    let mut array = CudaArray::<f32>::zeroed(&stream, [4]).unwrap();
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    captured.begin_capture(mode).unwrap();
    for error in [
        array.copy_from(&captured, &x).unwrap_err(),
        array.copy_to(&captured, &mut x).unwrap_err(),
    ] {
        assert!(error.to_string().contains("is being captured"), "{error}");
    }
    // Had the capture taken a use of the array, this launch would wait for it, and be part of it.
    saxpy(&other, cover(4), 4, 10.0, &one, &mut x).unwrap();
    let flags = sys::CUgraphInstantiate_flags(0);
    captured.end_capture(flags).unwrap();
    assert_eq!(stream.clone_dtoh(&x).unwrap(), [11.0; 4]);
}

#[test]
fn arrays_and_buffers_come_and_go_beside_a_capture() {
    let device = device!(alone);
    let stream = device.default_stream();
    let captured = device.new_stream().unwrap();
    let array = CudaArray::from_slice(&stream, [4], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let buffer = Buffer::from_slice(&stream, &[5_u32, 6]).unwrap();
    let modes = [
        sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
    ];
    for mode in modes {
        captured.begin_capture(mode).unwrap();
        assert_eq!(array.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(buffer.to_vec().unwrap(), [5, 6]);
        let another = CudaArray::<f32>::zeroed(&stream, [8]).unwrap();
        another.texture(Sampler::new()).unwrap();
        drop(another);
        drop(Buffer::<u32>::zeroed(&stream, 8).unwrap());
        // The capture lives.
        let flags = sys::CUgraphInstantiate_flags(0);
        captured.end_capture(flags).unwrap();
    }
    device.check_err().unwrap();
}
