//! Do kernels read arrays through textures, in order with all other uses of the arrays?

use std::sync::Arc;

use gridcall::{
    AddressMode, Buffer, FilterMode, Sampler, Shaped, Texture, UInt2, cover,
    cudarc::driver::{CudaContext, sys},
    kernel,
};

use crate::{
    kernels::{fill, slow_add},
    support::LONG,
};

#[kernel(ptx = "../kernels/texture.ptx", cuda = "../kernels/texture.cu")]
unsafe extern "C" {
    #[requires(x.rank() == 1, index.len() >= n, y.len() >= n)]
    safe fn gather(x: Texture<f32>, index: &[i32], y: &mut [f32], n: u32);
    #[requires(x.len() >= n, y.len() >= n)]
    safe fn pairs(x: Texture<UInt2>, y: &mut [u32], n: u32);
    #[requires(image.rank() == 2, x.len() >= n, y.len() >= n, out.len() >= n)]
    safe fn sample(image: Texture<f32>, x: &[f32], y: &[f32], out: &mut [f32], n: u32);
}

#[test]
fn elements_by_their_index() {
    let device = device!();
    let stream = device.default_stream();
    let table = stream.clone_htod(&[0.5_f32, 1.5, 2.5, 3.5]).unwrap();
    let texture = Texture::linear(&device, &table).unwrap();
    let index = stream.clone_htod(&[3, 0, 2, 4, -1]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(5).unwrap();
    gather(&stream, cover(5), &texture, &index, &mut y, 5).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.5, 0.5, 2.5, 0.0, 0.0]);
}

#[test]
fn vectors() {
    let device = device!();
    let stream = device.default_stream();
    let host = [UInt2 { x: 1, y: 2 }, UInt2 { x: 30, y: 4 }];
    let array = Buffer::from_slice(&stream, &host).unwrap();
    let texture = Texture::linear(&device, &array).unwrap();
    let mut y = stream.alloc_zeros::<u32>(2).unwrap();
    pairs(&stream, cover(2), &texture, &mut y, 2).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [5, 38]);
}

/// What a sampler makes of an image of 4 rows, each of 8 elements that count its columns, and 10
/// times its rows.
fn sampled(device: &Arc<CudaContext>, sampler: Sampler, at: &[[f32; 2]]) -> Vec<f32> {
    let stream = device.default_stream();
    // Rows of 16, of which 8 are of the image.
    let host: Vec<f32> = (0..64_u8)
        .map(|i| f32::from(i % 16) + 10.0 * f32::from(i / 16))
        .collect();
    let array = stream.clone_htod(&host).unwrap();
    let image = Shaped::strided(&array, 0, [4, 8], [16, 1]);
    let texture = Texture::rows(device, &image, sampler).unwrap();
    let x: Vec<f32> = at.iter().map(|at| at[0]).collect();
    let y: Vec<f32> = at.iter().map(|at| at[1]).collect();
    let (x, y) = (
        stream.clone_htod(&x).unwrap(),
        stream.clone_htod(&y).unwrap(),
    );
    let mut out = stream.alloc_zeros::<f32>(at.len()).unwrap();
    let n = u32::try_from(at.len()).unwrap();
    sample(&stream, cover(n), &texture, &x, &y, &mut out, n).unwrap();
    stream.clone_dtoh(&out).unwrap()
}

#[test]
fn rows_in_two_dimensions() {
    let device = device!();
    let at = [[0.5, 0.5], [3.2, 2.9], [7.9, 3.9], [9.5, 1.5], [2.5, -3.0]];
    assert_eq!(
        sampled(&device, Sampler::new(), &at),
        [0.0, 23.0, 37.0, 17.0, 2.0]
    );
    let border = Sampler::new().address(AddressMode::Border);
    assert_eq!(sampled(&device, border, &at), [0.0, 23.0, 37.0, 0.0, 0.0]);
    let smooth = Sampler::new().filter(FilterMode::Linear);
    // Between two columns, and between two rows.
    assert_eq!(
        sampled(&device, smooth, &[[2.0, 0.5], [0.5, 2.0], [2.0, 2.0]]),
        [1.5, 15.0, 16.5]
    );
    let wrapped = Sampler::new()
        .normalized_coordinates()
        .address(AddressMode::Wrap);
    let eighth = 1.0 / 8.0;
    assert_eq!(
        sampled(
            &device,
            wrapped,
            &[[0.5 * eighth, 0.1], [1.0 + 2.5 * eighth, 1.4]]
        ),
        [0.0, 12.0]
    );
}

#[test]
fn a_launch_by_textures_is_in_order() {
    let device = device!();
    let [first, second] = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let mut x = Buffer::<f32>::zeroed(&first, 256).unwrap();
    let index = Buffer::from_slice(&second, &(0..256).collect::<Vec<i32>>()).unwrap();
    let mut y = Buffer::<f32>::zeroed(&second, 256).unwrap();
    slow_add(&first, (1, 256), &mut x, 2.0, LONG).unwrap();
    {
        let texture = Texture::linear(&device, &x).unwrap();
        gather(&second, cover(256), &texture, &index, &mut y, 256).unwrap();
    }
    fill(&first, cover(256), &mut x, 0.0, 256).unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 256]);
}

#[test]
fn a_texture_is_made_beside_a_capture() {
    let device = device!(alone);
    let stream = device.default_stream();
    let captured = device.new_stream().unwrap();
    let table = stream.clone_htod(&[0.5_f32, 1.5]).unwrap();
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    captured.begin_capture(mode).unwrap();
    let texture = Texture::linear(&device, &table).unwrap();
    let flags = sys::CUgraphInstantiate_flags(0);
    captured.end_capture(flags).unwrap();
    drop(texture);
}

#[test]
fn what_is_no_texture_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let array = stream.alloc_zeros::<f32>(64 * 100).unwrap();
    let part = array.slice(1..);
    let error = Texture::linear(&device, &part).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the array begins at an address that is aligned to 4 bytes only"),
        "{error}"
    );
    let rows = |array, sampler| Texture::<f32>::rows(&device, array, sampler).unwrap_err();
    let odd = Shaped::new(&array, [64, 99]);
    let error = rows(&odd, Sampler::new());
    assert!(
        error
            .to_string()
            .starts_with("the rows lie 99 elements of 4 bytes apart, and a texture on this device needs a multiple of"),
        "{error}"
    );
    let even = Shaped::new(&array, [64, 64]);
    let error = rows(&even, Sampler::new().address(AddressMode::Mirror));
    assert_eq!(
        error.to_string(),
        "a texture wraps with normalized coordinates alone; add `.normalized_coordinates()`"
    );
    let error = Texture::rows(&device, &array, Sampler::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a texture of rows has two dimensions, the array has 1: give it a shape, `Shaped::new(&array, [..])`"
    );
    let error =
        Texture::linear(&device, &Shaped::strided(&array, 0, [64, 64], [1, 64])).unwrap_err();
    assert!(
        error.to_string().starts_with("the array is not contiguous"),
        "{error}"
    );
}
