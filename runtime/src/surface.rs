//! Surface objects: CUDA arrays that kernels load and store by their indices.

use std::fmt;

use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, StreamRef, View, ViewError};

use crate::{
    buffer::{ArrayError, ArrayErrorKind, CudaArray},
    call::{Call, Purpose},
    kernel::NoView,
    texture::{Object, Parts, Shape, Texel, TextureView, no_address},
};

/// A surface object of a [`CudaArray`] that the kernel reads: `cudaSurfaceObject_t` in CUDA C++.
///
/// The kernel is declared with `Surface<T>` and reads with `surf2Dread<T>` and its kin, whose coordinate along a
/// row counts bytes. A contract may speak of `surface.len()`, `surface.rank()` and `surface.extent(0)`, counted as in
/// the array's shape, and should say what kind of array the kernel is written for: layers and cubemaps have a rank as
/// others have, and a device reads zeros or writes nothing where the kind is another; `surface.is_layered()` and
/// `surface.is_cubemap()` tell. A launch that takes it is a use of the array: in order, and kept from being destroyed.
///
/// ```no_run
/// use gridcall::{ArrayShape, CudaArray, Surface, cover, kernel};
///
/// #[kernel(ptx = "../kernels/array.ptx")]
/// unsafe extern "C" {
///     /// `out[i]` ← element i of row `row`, as a surface
///     #[requires(image.rank() == 2, !image.is_layered(), row < image.extent(0), n <= image.extent(1), out.len() >= n)]
///     safe fn read_row(image: Surface<f32>, out: &mut [f32], row: u32, n: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = gridcall::device(0)?.default_stream();
/// let shape = ArrayShape::new([2, 3]).with_surface();
/// let image = CudaArray::from_slice(&stream, shape, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut out = stream.alloc_zeros::<f32>(3)?;
/// read_row(&stream, cover(3), &image.surface()?, &mut out, 1, 3)?;
/// assert_eq!(stream.clone_dtoh(&out)?, [4.0, 5.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub struct Surface<'a, T> {
    object: Object,
    array: &'a CudaArray<T>,
}

/// A surface object of a [`CudaArray`] that the kernel writes, and may read; see [`Surface`].
///
/// It borrows the array for writing, so that no texture and no other surface of it is there meanwhile.
///
/// ```no_run
/// use gridcall::{ArrayShape, CudaArray, SurfaceMut, cover, kernel};
///
/// #[kernel(ptx = "../kernels/array.ptx")]
/// unsafe extern "C" {
///     /// `image[y][x]` ← `a·x + b·y`
///     #[requires(image.rank() == 2, !image.is_layered(), width == image.extent(1), height == image.extent(0))]
///     safe fn ramp(image: SurfaceMut<f32>, width: u32, height: u32, a: f32, b: f32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = gridcall::device(0)?.default_stream();
/// let mut image = CudaArray::<f32>::zeroed(&stream, ArrayShape::new([2, 3]).with_surface())?;
/// ramp(&stream, cover(6), &mut image.surface_mut()?, 3, 2, 1.0, 10.0)?;
/// assert_eq!(image.to_vec()?, [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
/// # Ok(())
/// # }
/// ```
pub struct SurfaceMut<'a, T> {
    object: Object,
    array: &'a mut CudaArray<T>,
}

/// What a kernel takes for a `Surface<T>`: a [`Surface`], or a pointer to one.
///
/// # Safety
///
/// The object must be of the array that the implementation describes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a surface of `{T}`",
    label = "expected a surface of `{T}`",
    note = "make one of a CUDA array: `array.surface()?`"
)]
pub unsafe trait AsSurface<T>: AsDeviceView<T> {
    /// What the kernel gets, and the array.
    #[doc(hidden)]
    fn parts(&self) -> Result<Parts<'_>, ViewError>;
}

/// What a kernel takes for a `SurfaceMut<T>`: a [`SurfaceMut`], or a `&mut` to one.
///
/// # Safety
///
/// As for [`AsSurface`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a surface for writing `{T}`",
    label = "expected a surface for writing `{T}`",
    note = "make one of a CUDA array: `array.surface_mut()?`"
)]
pub unsafe trait AsSurfaceMut<T>: AsDeviceViewMut<T> {
    /// What the kernel gets, and the array.
    #[doc(hidden)]
    fn parts(&self) -> Result<Parts<'_>, ViewError>;
}

impl<T: Texel> CudaArray<T> {
    /// The array's surface, for reading.
    ///
    /// # Errors
    ///
    /// If the array's shape was not made `with_surface`.
    pub fn surface(&self) -> Result<Surface<'_, T>, ArrayError> {
        let object = self.object()?;
        Ok(Surface {
            object,
            array: self,
        })
    }

    /// The array's surface, for writing.
    ///
    /// # Errors
    ///
    /// If the array's shape was not made `with_surface`.
    pub fn surface_mut(&mut self) -> Result<SurfaceMut<'_, T>, ArrayError> {
        let object = self.object()?;
        Ok(SurfaceMut {
            object,
            array: self,
        })
    }

    fn object(&self) -> Result<Object, ArrayError> {
        let object = self.surface_object().ok_or_else(|| {
            ArrayErrorKind::Rule(format!(
                "the array was made without a surface; make it `ArrayShape::new({:?}).with_surface()`",
                self.extents()
            ))
        })?;
        Ok(Object(object))
    }
}

fn parts<T>(object: Object, array: &CudaArray<T>) -> Parts<'_> {
    Parts {
        object,
        shape: Shape::of_array(array.whole_shape()),
        view: array.view(),
        bytes: 1,
    }
}

impl<P: Purpose> Call<'_, P> {
    /// Describes a surface that the kernel reads.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn read_surface<T, S: AsSurface<T> + ?Sized>(
        &self,
        index: usize,
        surface: &S,
    ) -> Result<TextureView, P::Stop> {
        let parts = surface
            .parts()
            .map_err(|error| self.view_error(index, error))?;
        self.image(index, &parts, false)
    }

    /// Describes a surface that the kernel writes.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn write_surface<T, S: AsSurfaceMut<T> + ?Sized>(
        &self,
        index: usize,
        surface: &S,
    ) -> Result<TextureView, P::Stop> {
        let parts = surface
            .parts()
            .map_err(|error| self.view_error(index, error))?;
        self.image(index, &parts, true)
    }
}

// SAFETY: the array is borrowed, orders its uses, and is never described, having no address.
unsafe impl<T> AsDeviceView<T> for Surface<'_, T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Err(no_address())
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire(stream)
    }
}

// SAFETY: as for `Surface`.
unsafe impl<T> AsDeviceView<T> for SurfaceMut<'_, T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        Err(no_address())
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire(stream)
    }
}

// SAFETY: as for `Surface`; the array is borrowed for writing.
unsafe impl<T> AsDeviceViewMut<T> for SurfaceMut<'_, T> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        Err(no_address())
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire_mut(stream)
    }
}

// SAFETY: the object was made of the array.
unsafe impl<T> AsSurface<T> for Surface<'_, T> {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        Ok(parts(self.object, self.array))
    }
}

// SAFETY: forwards to `S`.
unsafe impl<T, S: AsSurface<T> + ?Sized> AsSurface<T> for &S {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        (**self).parts()
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsSurface<T> for NoView {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        match *self {}
    }
}

// SAFETY: the object was made of the array.
unsafe impl<T> AsSurfaceMut<T> for SurfaceMut<'_, T> {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        Ok(parts(self.object, self.array))
    }
}

// SAFETY: forwards to `S`.
unsafe impl<T, S: AsSurfaceMut<T> + ?Sized> AsSurfaceMut<T> for &mut S {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        (**self).parts()
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsSurfaceMut<T> for NoView {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        match *self {}
    }
}

impl<T> fmt::Debug for Surface<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Surface").field(self.array).finish()
    }
}

impl<T> fmt::Debug for SurfaceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SurfaceMut").field(self.array).finish()
    }
}
