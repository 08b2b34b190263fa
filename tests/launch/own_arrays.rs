//! Array types that cudarc does not know: a user's own, derived ones, and what such a type may say.

use std::sync::Mutex;

use gridcall::{
    AsDeviceView, AsDeviceViewMut, DType, Element, Guard, LaunchErrorKind, Place, StreamRef, View,
    ViewError, ViewErrorKind, cover,
    cudarc::driver::{CudaSlice, CudaStream, DevicePtr},
    kernel,
};

use crate::{
    kernels::{axpy, copy, fill, saxpy},
    support::ramp,
};

#[kernel(ptx = "../kernels/strided.ptx")]
unsafe extern "C" {
    #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
    safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
}

#[kernel(ptx = "../kernels/vector.ptx")]
unsafe extern "C" {
    #[requires(x.len() >= rows * cols, out.len() >= rows)]
    safe fn rowsum(x: &[f32], out: &mut [f32], rows: i32, cols: i32);

    /// # Safety
    ///
    /// Every index must be one of `x`.
    #[requires(idx.len() >= n, out.len() >= n)]
    unsafe fn gather(x: &[f32], idx: &[i32], out: &mut [f32], n: i32);
}

fn address<T>(array: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    array.device_ptr(stream).0
}

/// Floats by their address, all of whose users share one stream.
struct Frame {
    address: u64,
    len: usize,
    _memory: CudaSlice<f32>,
}

impl Frame {
    fn new(memory: CudaSlice<f32>, stream: &CudaStream) -> Frame {
        Frame {
            address: address(&memory, stream),
            len: memory.len(),
            _memory: memory,
        }
    }
}

// SAFETY: a frame owns its memory, and all work on frames is enqueued on one stream, on which the
// memory is freed too.
unsafe impl AsDeviceView<f32> for Frame {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok(View::new(self.address, self.len, Place::Device(0)))
    }

    fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

// SAFETY: as for reading.
unsafe impl AsDeviceViewMut<f32> for Frame {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    fn acquire_mut<'a>(&'a mut self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

#[test]
fn a_type_of_ones_own() {
    let device = device!();
    let stream = device.default_stream();
    let x = Frame::new(stream.clone_htod(&ramp(40)).unwrap(), &stream);
    let mut y = Frame::new(stream.alloc_zeros(40).unwrap(), &stream);
    saxpy(&stream, cover(40), 40, 3.0, &x, &mut y).unwrap();
    let mut out = stream.alloc_zeros::<f32>(40).unwrap();
    copy(&stream, cover(40), &y, &mut out, 40).unwrap();
    let expected: Vec<f32> = ramp(40).iter().map(|x| 3.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);
}

#[derive(AsDeviceView, AsDeviceViewMut)]
struct Weights(CudaSlice<f32>);

#[derive(AsDeviceView, AsDeviceViewMut)]
struct Named<A> {
    #[view]
    values: A,
    name: &'static str,
}

#[test]
fn derived_newtypes() {
    let device = device!();
    let stream = device.default_stream();
    let x = Weights(stream.clone_htod(&ramp(40)).unwrap());
    let mut y = Named {
        values: Weights(stream.alloc_zeros(40).unwrap()),
        name: "y",
    };
    saxpy(&stream, cover(40), 40, 3.0, &x, &mut y).unwrap();
    saxpy(&stream, cover(40), 40, -1.0, &x, &mut y).unwrap();
    let expected: Vec<f32> = ramp(40).iter().map(|x| 2.0 * x).collect();
    assert_eq!(stream.clone_dtoh(&y.values.0).unwrap(), expected);
    assert_eq!(y.name, "y");
}

/// A matrix of two rows that tells its shape only to kernels that take one, and what it is asked.
struct Matrix<'w>(Frame, [usize; 2], [isize; 2], &'w Asked);

impl Matrix<'_> {
    fn shaped(&self) -> Option<View<'_>> {
        View::strided(self.0.address, &self.1, &self.2, Place::Device(0))
    }
}

// SAFETY: as for `Frame`; its strides lead through it.
unsafe impl AsDeviceView<f32> for Matrix<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.3.note("describe");
        match self.shaped() {
            Some(view) if !view.is_contiguous() => Ok(view),
            _ => self.0.describe(),
        }
    }

    fn describe_strided(&self) -> Result<View<'_>, ViewError> {
        self.3.note("strided");
        Ok(self.shaped().unwrap())
    }

    fn describe_tracked(&self, _: &gridcall::Tracking<'_>) -> Result<View<'_>, ViewError> {
        self.3.note("tracked");
        self.describe()
    }

    fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }

    fn make_contiguous(&self) -> &'static str {
        "call `pack`"
    }
}

// SAFETY: as for reading.
unsafe impl AsDeviceViewMut<f32> for Matrix<'_> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    fn describe_strided_mut(&self) -> Result<View<'_>, ViewError> {
        self.3.note("strided mut");
        Ok(self.shaped().unwrap())
    }

    fn describe_mut_tracked(&self, _: &gridcall::Tracking<'_>) -> Result<View<'_>, ViewError> {
        self.3.note("tracked mut");
        self.describe()
    }

    fn acquire_mut<'a>(&'a mut self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }

    fn make_contiguous_mut(&self) -> &'static str {
        "call `pack_mut`"
    }
}

#[derive(AsDeviceView, AsDeviceViewMut)]
struct Wrapped<A>(A);

#[test]
fn a_derived_newtype_is_asked_all_that_its_array_is() {
    let device = device!();
    let stream = device.default_stream();
    let asked = Asked::default();
    let matrix = |values: &[f32], strides| {
        let frame = Frame::new(stream.clone_htod(values).unwrap(), &stream);
        Wrapped(Wrapped(Matrix(frame, [2, 3], strides, &asked)))
    };
    let x = matrix(&ramp(6), [3, 1]);
    let mut y = matrix(&[0.0; 6], [3, 1]);
    copy_2d(&stream, cover((3, 2)), &x, &mut y).unwrap();
    assert_eq!(asked.take(), ["strided", "strided mut"]);
    saxpy(&stream, cover(6), 6, 1.0, &x, &mut y).unwrap();
    assert_eq!(
        asked.take(),
        ["tracked", "describe", "tracked mut", "describe"]
    );
    let expected: Vec<f32> = ramp(6).iter().map(|x| 2.0 * x).collect();
    let mut out = stream.alloc_zeros::<f32>(6).unwrap();
    copy(&stream, cover(6), &y, &mut out, 6).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), expected);

    let (across, mut across_mut) = (matrix(&ramp(6), [1, 2]), matrix(&ramp(6), [1, 2]));
    let error = saxpy(&stream, cover(6), 6, 1.0, &across, &mut y).unwrap_err();
    assert!(error.to_string().contains("; call `pack`"), "{error}");
    let error = saxpy(&stream, cover(6), 6, 1.0, &x, &mut across_mut).unwrap_err();
    assert!(error.to_string().contains("; call `pack_mut`"), "{error}");
}

/// What an array was asked, in order.
#[derive(Default)]
struct Asked(Mutex<Vec<&'static str>>);

impl Asked {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A frame that tells what it is asked.
struct Watched<'w> {
    frame: Frame,
    asked: &'w Asked,
    /// Whether to refuse to be acquired, or to be finished.
    refuses: Option<&'static str>,
}

impl Watched<'_> {
    fn acquire_watched(&self) -> Result<Guard<'_>, ViewError> {
        self.asked.note("acquire");
        if self.refuses == Some("acquire") {
            return Err(ViewError::other("it is busy"));
        }
        Ok(Guard::new(|| {
            self.asked.note("finish");
            match self.refuses {
                Some("finish") => Err(ViewError::other("it is forgetful")),
                _ => Ok(()),
            }
        }))
    }
}

// SAFETY: as for `Frame`.
unsafe impl AsDeviceView<f32> for Watched<'_> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.asked.note("describe");
        self.frame.describe()
    }

    fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.acquire_watched()
    }
}

// SAFETY: as for `Frame`.
unsafe impl AsDeviceViewMut<f32> for Watched<'_> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.asked.note("describe");
        self.frame.describe()
    }

    fn acquire_mut<'a>(&'a mut self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.acquire_watched()
    }
}

#[test]
fn an_array_is_described_then_acquired_then_finished() {
    let device = device!();
    let stream = device.default_stream();
    let (x_asked, y_asked) = (Asked::default(), Asked::default());
    let x = Watched {
        frame: Frame::new(stream.clone_htod(&ramp(8)).unwrap(), &stream),
        asked: &x_asked,
        refuses: None,
    };
    let mut y = Watched {
        frame: Frame::new(stream.alloc_zeros(8).unwrap(), &stream),
        asked: &y_asked,
        refuses: None,
    };
    saxpy(&stream, cover(8), 8, 1.0, &x, &mut y).unwrap();
    assert_eq!(x_asked.take(), ["describe", "acquire", "finish"]);
    assert_eq!(y_asked.take(), ["describe", "acquire", "finish"]);

    // A launch that is refused, or covers nothing, asks no more than it must.
    axpy(&stream, cover(8), 9, 1.0, &x, &mut y).unwrap_err();
    saxpy(&stream, cover(0), 0, 1.0, &x, &mut y).unwrap();
    assert_eq!(x_asked.take(), ["describe", "describe"]);
    assert_eq!(y_asked.take(), ["describe", "describe"]);
}

#[test]
fn an_array_that_cannot_be_acquired_stops_the_launch() {
    let device = device!();
    let stream = device.default_stream();
    let (x_asked, y_asked) = (Asked::default(), Asked::default());
    let x = Watched {
        frame: Frame::new(stream.clone_htod(&[1.0; 8]).unwrap(), &stream),
        asked: &x_asked,
        refuses: None,
    };
    let mut y = Watched {
        frame: Frame::new(stream.alloc_zeros(8).unwrap(), &stream),
        asked: &y_asked,
        refuses: Some("acquire"),
    };
    let error = saxpy(&stream, cover(8), 8, 1.0, &x, &mut y).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `saxpy`: argument `y` (parameter 3, &mut [f32]): it is busy"
    );
    // What was acquired is let go.
    assert_eq!(x_asked.take(), ["describe", "acquire", "finish"]);
    assert_eq!(y_asked.take(), ["describe", "acquire"]);
    let mut out = stream.alloc_zeros::<f32>(8).unwrap();
    copy(&stream, cover(8), &y.frame, &mut out, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0; 8]);
}

#[test]
fn a_use_that_cannot_be_recorded_is_told_after_the_launch() {
    let device = device!();
    let stream = device.default_stream();
    let (x_asked, y_asked) = (Asked::default(), Asked::default());
    let x = Watched {
        frame: Frame::new(stream.clone_htod(&[1.0; 8]).unwrap(), &stream),
        asked: &x_asked,
        refuses: Some("finish"),
    };
    let mut y = Watched {
        frame: Frame::new(stream.alloc_zeros(8).unwrap(), &stream),
        asked: &y_asked,
        refuses: None,
    };
    let error = saxpy(&stream, cover(8), 8, 1.0, &x, &mut y).unwrap_err();
    assert!(matches!(
        error.kind(),
        LaunchErrorKind::Finish { index: 2, .. }
    ));
    assert_eq!(
        error.to_string(),
        "kernel `saxpy`: the kernel was launched, but its use of argument `x` (parameter 2) could \
         not be recorded: it is forgetful"
    );
    assert_eq!(y_asked.take(), ["describe", "acquire", "finish"]);
    let mut out = stream.alloc_zeros::<f32>(8).unwrap();
    copy(&stream, cover(8), &y.frame, &mut out, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [1.0; 8]);
}

/// A frame that says something else of its layout, or that it may not be written.
struct Told(Frame, for<'a> fn(&'a Frame) -> View<'a>);

// SAFETY: as for `Frame`; what is described lies within it.
unsafe impl AsDeviceView<f32> for Told {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Ok((self.1)(&self.0))
    }

    fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

// SAFETY: as for reading.
unsafe impl AsDeviceViewMut<f32> for Told {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.describe()
    }

    fn acquire_mut<'a>(&'a mut self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

fn strided<'a>(frame: &Frame, shape: &'a [usize], strides: &'a [isize]) -> View<'a> {
    View::strided(frame.address, shape, strides, Place::Device(0)).unwrap()
}

#[test]
fn an_array_with_gaps_is_refused() {
    let device = device!();
    let stream = device.default_stream();
    let mut out = stream.alloc_zeros::<f32>(2).unwrap();
    let frame = Frame::new(stream.clone_htod(&ramp(10)).unwrap(), &stream);
    let columns = Told(frame, |frame| strided(frame, &[2, 4], &[5, 1]));
    let error = rowsum(&stream, cover(2), &columns, &mut out, 2, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `rowsum`: argument `x` (parameter 0, &[f32]): the array is not contiguous: shape \
         [2, 4], strides [5, 1] in elements; make it contiguous first, or declare the parameter \
         `Strided<T, N>`"
    );
    let transposed = Told(columns.0, |frame| strided(frame, &[5, 2], &[1, 5]));
    rowsum(&stream, cover(2), &transposed, &mut out, 2, 4).unwrap_err();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0; 2]);

    // Strides of dimensions of length 1 mean nothing.
    let odd = Told(transposed.0, |frame| {
        strided(frame, &[1, 2, 1, 4], &[9, 4, -7, 1])
    });
    rowsum(&stream, cover(2), &odd, &mut out, 2, 4).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [6.0, 22.0]);
}

#[test]
fn an_array_lent_read_only_is_read_and_not_written() {
    let device = device!();
    let stream = device.default_stream();
    let frame = Frame::new(stream.clone_htod(&ramp(8)).unwrap(), &stream);
    let mut lent = Told(frame, |frame| {
        View::new(frame.address, frame.len, Place::Device(0)).read_only()
    });
    let error = fill(&stream, cover(8), &mut lent, 1.0, 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `fill`: argument `y` (parameter 0, &mut [f32]): the kernel writes to it, but its \
         owner lends it read-only; pass a writable copy"
    );
    let mut out = stream.alloc_zeros::<f32>(8).unwrap();
    copy(&stream, cover(8), &lent, &mut out, 8).unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), ramp(8));
}

/// An array whose element type is known only at run time.
struct Tensor {
    address: u64,
    len: usize,
    dtype: DType,
}

// SAFETY: the tests keep the memory and use one stream; the elements are of type `dtype`.
unsafe impl<T: Element> AsDeviceView<T> for Tensor {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        if self.dtype != T::DTYPE {
            let cure = "convert it first, by `.to(..)`";
            return Err(ViewError::wrong_type(T::DTYPE, self.dtype.name(), cure));
        }
        Ok(View::new(self.address, self.len, Place::Device(0)))
    }

    fn acquire<'a>(&'a self, _: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        Ok(Guard::none())
    }
}

#[test]
fn an_element_type_is_checked_at_the_call() {
    let device = device!();
    let stream = device.default_stream();
    let x = stream.clone_htod(&ramp(4)).unwrap();
    let indices = stream.clone_htod(&[3_i32, 2, 1, 0]).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4).unwrap();
    let mut tensor = Tensor {
        address: address(&indices, &stream),
        len: 4,
        dtype: DType::I64,
    };
    // SAFETY: the indices are below 4.
    let error = unsafe { gather(&stream, cover(4), &x, &tensor, &mut out, 4) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `gather`: argument `idx` (parameter 1, &[i32]): expected elements of i32, the array \
         holds i64; convert it first, by `.to(..)`"
    );
    // Of one width, and yet another type.
    tensor.dtype = DType::U32;
    // SAFETY: as above.
    let error = unsafe { gather(&stream, cover(4), &x, &tensor, &mut out, 4) }.unwrap_err();
    let LaunchErrorKind::Argument {
        error: gridcall::ArgumentError::View(error),
        ..
    } = error.kind()
    else {
        panic!("{error}");
    };
    assert!(matches!(error.kind(), ViewErrorKind::WrongType { .. }));
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [0.0; 4]);

    tensor.dtype = DType::I32;
    // SAFETY: as above.
    unsafe { gather(&stream, cover(4), &x, &tensor, &mut out, 4) }.unwrap();
    assert_eq!(stream.clone_dtoh(&out).unwrap(), [3.0, 2.0, 1.0, 0.0]);
}
