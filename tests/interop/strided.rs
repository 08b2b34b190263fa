//! Does a kernel see an array in its dimensions as it lies?

use gridcall::{Shaped, Tensor, cover};

use crate::{
    kernels::{add_2d, copy_2d, saxpy_1d, sum_last},
    made::{Export, on},
    support::ramp,
};

#[test]
fn a_transposed_a_sliced_and_a_flipped_array_are_read_as_they_lie() {
    let device = device!();
    let stream = device.default_stream();
    for (shape, strides, offset, expected) in [
        ([2, 3], [3, 1], 0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        // Of three rows of two, transposed.
        ([2, 3], [1, 2], 0, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]),
        // Columns of a wider array.
        ([2, 3], [5, 1], 1, [1.0, 2.0, 3.0, 6.0, 7.0, 8.0]),
        // The last row first, and from right to left.
        ([2, 3], [-3, -1], 5, [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]),
        // One row for all.
        ([2, 3], [0, 1], 0, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]),
    ] {
        let memory = stream.clone_htod(&ramp(10)).unwrap();
        let input = Export::f32(&shape)
            .strides(&strides)
            .byte_offset(4 * offset);
        let input = input.tensor(memory, on(&stream)).unwrap();
        let mut out = stream.alloc_zeros::<f32>(6).unwrap();
        let mut shaped = Shaped::new(&mut out, [2, 3]);
        copy_2d(&stream, cover((3_u32, 2_u32)), &input, &mut shaped).unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), expected, "{strides:?}");
    }
}

#[test]
fn a_row_and_a_column_are_broadcast() {
    let device = device!();
    let stream = device.default_stream();
    let row = stream.clone_htod(&[1.0_f32, 2.0, 3.0]).unwrap();
    let column = stream.clone_htod(&[10.0_f32, 20.0]).unwrap();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    add_2d(
        &stream,
        cover((3_u32, 2_u32)),
        &Shaped::strided(&row, 0, [2, 3], [0, 1]),
        &Shaped::strided(&column, 0, [2, 3], [1, 0]),
        &mut Shaped::new(&mut out, [2, 3]),
    )
    .unwrap();
    assert_eq!(
        stream.clone_dtoh(&out).unwrap(),
        [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]
    );
}

#[test]
fn an_array_is_written_as_it_lies() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0]).unwrap();
    let mut y = stream.clone_htod(&[0.0_f32; 6]).unwrap();
    // Every second element, backwards.
    let mut every_second = Shaped::strided(&mut y, 5, [3], [-2]);
    saxpy_1d(&stream, cover(3), 2.0, &x, &mut every_second).unwrap();
    assert_eq!(
        stream.clone_dtoh(&y).unwrap(),
        [0.0, 6.0, 0.0, 4.0, 0.0, 2.0]
    );
}

#[test]
fn three_dimensions_of_integers() {
    let device = device!();
    let stream = device.default_stream();
    let x: Vec<i32> = (0..24).collect();
    let x = stream.clone_htod(&x).unwrap();
    let mut out = stream.alloc_zeros::<i32>(6).unwrap();
    sum_last(&stream, cover(6), &Shaped::new(&x, [2, 3, 4]), &mut out, 6).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [6, 22, 38, 54, 70, 86]);
}

#[test]
fn what_is_broadcast_is_not_written() {
    let device = device!();
    let stream = device.default_stream();
    let input = Tensor::from_slice(stream.clone_htod(&ramp(6)).unwrap(), &[2, 3]).unwrap();
    for strides in [[0, 1], [1, 1], [2, 1]] {
        let memory = stream.alloc_zeros::<f32>(6).unwrap();
        let out = Export::f32(&[2, 3]).strides(&strides);
        let mut out = out.tensor(memory, on(&stream)).unwrap();
        let error = copy_2d(&stream, cover((3_u32, 2_u32)), &input, &mut out).unwrap_err();
        let expected = format!(
            "kernel `copy_2d`: argument `out` (parameter 1, StridedMut<f32, 2>): the kernel writes to it, and several of its indices may be one element: shape [2, 3], strides {strides:?} in elements; pass a copy that has all of its elements"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn another_number_of_dimensions_is_told() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(6)).unwrap();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    let mut shaped = Shaped::new(&mut out, [2, 3]);
    let error = copy_2d(&stream, cover((3_u32, 2_u32)), &x, &mut shaped).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `copy_2d`: argument `input` (parameter 0, Strided<f32, 2>): the kernel takes 2 dimensions, the array has 1: shape [6]; give it a shape: `Shaped::new(array, [..])`"
    );
    let cube = Tensor::from_slice(x, &[1, 2, 3]).unwrap();
    let error = copy_2d(&stream, cover((3_u32, 2_u32)), &cube, &mut shaped)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("has 3: shape [1, 2, 3]; reshape it first"),
        "{error}"
    );
    let error = copy_2d(
        &stream,
        cover((3_u32, 2_u32)),
        &Shaped::new(&cube, [3, 2]),
        &mut shaped,
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "kernel `copy_2d`: the launch needs `input.extent(0) == out.extent(0)`, but the shape of input is [3, 2] and the shape of out is [2, 3]"
    );
}

#[test]
fn strided_arrays_that_overlap_are_told() {
    let device = device!();
    let stream = device.default_stream();
    let whole = Tensor::from_slice(stream.clone_htod(&ramp(12)).unwrap(), &[12]).unwrap();
    let part = |first: u64, strides: &[isize]| {
        // SAFETY: within the twelve floats, which outlive this; all is on one stream.
        unsafe {
            Tensor::from_parts(
                whole.pointer() + 4 * first,
                gridcall::DType::F32,
                &[2, 3],
                Some(strides),
                whole.place(),
                on(&stream),
                Box::new(()),
            )
        }
        .unwrap()
    };
    let launch = cover((3_u32, 2_u32));
    // A flipped array lies before its first element.
    let error = copy_2d(&stream, launch, &part(9, &[-3, 1]), &mut part(6, &[3, 1])).unwrap_err();
    assert!(
        error.to_string().contains("overlaps argument `input`"),
        "{error}"
    );
    copy_2d(&stream, launch, &part(3, &[-3, 1]), &mut part(6, &[3, 1])).unwrap();
    stream.synchronize().unwrap();
}
