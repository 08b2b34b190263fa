//! An array seen as elements of another type.

use std::{any::type_name, fmt, marker::PhantomData};

use bytemuck::AnyBitPattern;
use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, StreamRef, View, ViewError};

/// A device array of elements `E` for kernels that take its bytes as elements of another type.
///
/// Wraps a reference to any contiguous array, `&x` or `&mut y`. Nothing is converted or copied. That
/// the bytes are whole elements of the other type, and aligned for it, is checked at the call. As
/// any bytes may be there, it must be a type that any bytes are valid for, and so must `E` where
/// the kernel writes.
///
/// ```no_run
/// use gridcall::{Cast, Float4, cover, kernel};
///
/// #[kernel(ptx = "../kernels/vector.ptx")]
/// unsafe extern "C" {
///     #[requires(x.len() >= n4, y.len() >= n4)]
///     safe fn copy4(x: &[Float4], y: &mut [Float4], n4: i32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let stream = gridcall::device(0)?.default_stream();
/// let x = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0])?;
/// let mut y = stream.alloc_zeros::<f32>(4)?;
/// copy4(&stream, cover(1), &Cast::new(&x), &mut Cast::new(&mut y), 1)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// A [`Buffer`](crate::Buffer) becomes one of another type by [`Buffer::cast`](crate::Buffer::cast).
pub struct Cast<V, E> {
    array: V,
    elements: PhantomData<fn() -> E>,
}

impl<V, E> Cast<V, E> {
    /// The bytes of `array`, which holds elements `E`.
    ///
    /// `E` is the array's own; an array that holds elements of any type, such as a tensor, needs it
    /// told: `Cast::<_, f32>::new(&tensor)`.
    #[must_use]
    pub const fn new(array: V) -> Cast<V, E> {
        Cast {
            array,
            elements: PhantomData,
        }
    }

    /// The array.
    ///
    /// ```
    /// let array: gridcall::Cast<_, f32> = gridcall::Cast::new("any array");
    /// assert_eq!(array.into_inner(), "any array");
    /// ```
    pub fn into_inner(self) -> V {
        self.array
    }
}

/// The elements `E` of `view` as those of `T`.
fn cast<'a, E, T>(view: &View<'a>) -> Result<View<'a>, ViewError> {
    const {
        assert!(size_of::<T>() > 0, "the device has no types without a size");
    };
    if !view.is_contiguous() {
        return Err(ViewError::other(
            "an array that is not contiguous cannot be seen as elements of another type; make it contiguous first",
        ));
    }
    // An array lies within the addresses, so that its bytes are a number.
    let bytes = view.len() * size_of::<E>();
    if !bytes.is_multiple_of(size_of::<T>()) {
        return Err(no_whole_number::<E, T>(view.len()));
    }
    let mut cast =
        View::new(view.pointer(), bytes / size_of::<T>(), view.place()).tracked_by(view.tracker());
    if view.is_exclusive() {
        cast = cast.exclusive();
    }
    if view.is_read_only() {
        cast = cast.read_only();
    }
    Ok(cast)
}

#[cold]
fn no_whole_number<E, T>(len: usize) -> ViewError {
    ViewError::other(format!(
        "its {len} elements of `{}` ({} bytes each) are no whole number of `{}` ({} bytes); pass a part that is",
        type_name::<E>(),
        size_of::<E>(),
        type_name::<T>(),
        size_of::<T>(),
    ))
}

// SAFETY: the bytes are the array's own, which is asked for everything else. They are as many and
// aligned as the elements of `T`, of which any bytes are valid; alignment is the launch's to check.
unsafe impl<T: AnyBitPattern, V: AsDeviceView<E>, E> AsDeviceView<T> for Cast<V, E> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        cast::<E, T>(&self.array.describe()?)
    }

    #[inline(always)]
    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire(stream)
    }

    fn make_contiguous(&self) -> &'static str {
        self.array.make_contiguous()
    }
}

// SAFETY: as above; whatever is written is valid for `E`.
unsafe impl<T: AnyBitPattern, V: AsDeviceViewMut<E>, E: AnyBitPattern> AsDeviceViewMut<T>
    for Cast<V, E>
{
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        cast::<E, T>(&self.array.describe_mut()?)
    }

    #[inline(always)]
    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire_mut(stream)
    }

    fn make_contiguous_mut(&self) -> &'static str {
        self.array.make_contiguous_mut()
    }
}

impl<V: Clone, E> Clone for Cast<V, E> {
    fn clone(&self) -> Self {
        Cast::new(self.array.clone())
    }
}

impl<V: Copy, E> Copy for Cast<V, E> {}

impl<V: fmt::Debug, E> fmt::Debug for Cast<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cast").field(&self.array).finish()
    }
}
