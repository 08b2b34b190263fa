//! An array type of your own as an argument: by a derive, or by hand in ten lines.
//!
//! Needs a GPU of any kind, or the emulator.

use std::{error::Error, process::ExitCode};

use gridcall::{
    AsDeviceView, AsDeviceViewMut, Guard, StreamRef, View, ViewError, cover,
    cudarc::driver::CudaSlice, kernel,
};

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    /// out[i] ← in[i]
    #[requires(input.len() >= n, out.len() >= n)]
    #[name("copy")]
    safe fn copy_elements(input: &[f32], out: &mut [f32], n: i32);
}

/// A wrapper around an array: whatever the array can be an argument for, so can the wrapper.
#[derive(AsDeviceView, AsDeviceViewMut)]
struct Samples {
    #[view]
    samples: CudaSlice<f32>,
    rate: u32,
}

/// One row of a matrix that owns more.
struct Row<'a> {
    matrix: &'a CudaSlice<f32>,
    width: usize,
    number: usize,
}

// SAFETY: the row lies within the borrowed matrix, whose own implementation keeps it alive and
// orders its uses.
unsafe impl AsDeviceView<f32> for Row<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        let all = AsDeviceView::<f32>::describe(self.matrix)?;
        let end = (self.number + 1) * self.width;
        if end > all.len() {
            return Err(ViewError::other(format!(
                "there is no row {} in the matrix",
                self.number
            )));
        }
        let bytes = self.number * self.width * size_of::<f32>();
        Ok(View::new(
            all.pointer() + bytes as u64,
            self.width,
            all.place(),
        ))
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        AsDeviceView::<f32>::acquire(self.matrix, stream)
    }
}

fn main() -> ExitCode {
    gridcall_examples::run(example)
}

fn example() -> Result<(), Box<dyn Error>> {
    let ctx = gridcall::device(0)?;
    let stream = ctx.default_stream();

    let matrix = stream.clone_htod(&[0.0_f32, 1.0, 2.0, 10.0, 11.0, 12.0])?;
    let mut recording = Samples {
        samples: stream.alloc_zeros(3)?,
        rate: 48_000,
    };

    let row = Row {
        matrix: &matrix,
        width: 3,
        number: 1,
    };
    copy_elements(&stream, cover(3), &row, &mut recording, 3)?;

    let samples = stream.clone_dtoh(&recording.samples)?;
    println!("row 1 of the matrix, at {} Hz: {samples:?}", recording.rate);
    if samples != [10.0, 11.0, 12.0] {
        return Err("the wrong row arrived".into());
    }

    let missing = Row {
        matrix: &matrix,
        width: 3,
        number: 2,
    };
    let error = copy_elements(&stream, cover(3), &missing, &mut recording, 3).unwrap_err();
    println!("refused: {error}");
    Ok(())
}
