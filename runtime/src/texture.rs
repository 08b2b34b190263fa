//! Texture objects: arrays that kernels read through the texture units.
//!
//! Of linear memory, whole or in rows. Surfaces are of CUDA arrays alone, which no array here is.

mod sampler;
mod texel;

use std::{fmt, sync::Arc};

use cudarc::driver::{CudaContext, DriverError, result, sys};
use gridcall_view::{AsDeviceView, Guard, Layout, Place, StreamRef, View, ViewError};

pub use self::{
    sampler::{AddressMode, FilterMode, Sampler},
    texel::Texel,
};
use crate::{
    arg::KernelArg,
    call::{Call, Purpose, Span},
    contract::Int,
    current::Current,
    kernel::NoView,
    layout::{ArgLayout, Class},
};

/// A texture object of an array: `cudaTextureObject_t` in CUDA C++.
///
/// It borrows the array, and a launch that takes it is a use of the array as any other: in order, and
/// kept from being freed. The kernel is declared with `Texture<T>`, `T` being what
/// `tex1Dfetch<T>` and `tex2D<T>` give; a contract may speak of `tex.len()` and `tex.extent(0)`, counted
/// as in the array's shape. Reads beyond the ends are no errors of memory: they give zeros, or what
/// the [`Sampler`] says.
///
/// ```no_run
/// use gridcall::{FilterMode, Sampler, Shaped, Texture, cover, kernel};
///
/// #[kernel(ptx = "../kernels/texture.ptx")]
/// unsafe extern "C" {
///     /// `y[i]` ← `tex1Dfetch<float>(x, index[i])`
///     #[requires(index.len() >= n, y.len() >= n)]
///     safe fn gather(x: Texture<f32>, index: &[i32], y: &mut [f32], n: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let stream = ctx.default_stream();
/// let table = stream.clone_htod(&[0.5_f32, 1.5, 2.5, 3.5])?;
/// let index = stream.clone_htod(&[3, 0, 9])?;
/// let mut y = stream.alloc_zeros::<f32>(3)?;
/// let texture = Texture::linear(&ctx, &table)?;
/// gather(&stream, cover(3), &texture, &index, &mut y, 3)?;
/// assert_eq!(stream.clone_dtoh(&y)?, [3.5, 0.5, 0.0]);
///
/// // In two dimensions, with interpolation:
/// let image = stream.alloc_zeros::<f32>(64 * 64)?;
/// let image = Shaped::new(&image, [64, 64]);
/// let smooth = Texture::rows(&ctx, &image, Sampler::new().filter(FilterMode::Linear))?;
/// # let _ = smooth;
/// # Ok(())
/// # }
/// ```
///
/// # Dropping
///
/// The driver does not say that an object may be destroyed under a kernel. So a drop waits until the
/// device is done with all that is enqueued in the context; keep textures that are used often.
pub struct Texture<'a, T> {
    object: Object,
    context: Arc<CudaContext>,
    pointer: u64,
    /// Outermost first.
    shape: Shape,
    array: &'a dyn AsDeviceView<T>,
}

/// What a kernel takes for a `Texture<T>`: a [`Texture`], or a pointer to one.
///
/// # Safety
///
/// The object must be of the array that the implementation describes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a texture of `{T}`",
    label = "expected a texture of `{T}`",
    note = "make one of a device array: `Texture::linear(&ctx, &array)?`"
)]
pub unsafe trait AsTexture<T>: AsDeviceView<T> {
    /// What the kernel gets, where the array is, and its shape.
    #[doc(hidden)]
    fn parts(&self) -> (Object, View<'static>, Shape);
}

/// `CUtexObject`.
#[derive(Clone, Copy, Debug)]
pub struct Object(u64);

/// The extents of one or two dimensions, outermost first.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    extents: [usize; 2],
    rank: usize,
}

// SAFETY: the handle has 8 bytes, of which all are written.
unsafe impl KernelArg for Object {
    const LAYOUT: ArgLayout = ArgLayout {
        size: 8,
        align: 8,
        class: Class::Integer,
        // Of an array that the launch describes and acquires.
        has_pointer: false,
        kind: "u64",
        name: "",
        fields: &[],
    };

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) {
        // SAFETY: the caller provides room for 8 bytes, at any alignment.
        unsafe { to.cast::<u64>().write_unaligned(self.0) }
    }
}

/// Why an array cannot be a texture.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct TextureError(Box<TextureErrorKind>);

/// What a [`TextureError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextureErrorKind {
    /// The array says so.
    #[error("{0}")]
    View(ViewError),
    /// The device has no textures, as the emulator.
    #[error("this device has no textures; pass the array as `&[T]`")]
    Unsupported,
    /// A rule of textures is not kept.
    #[error("{0}")]
    Rule(String),
    /// A driver call failed.
    #[error("{call} failed: {source}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// Its answer.
        source: DriverError,
    },
}

impl TextureError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &TextureErrorKind {
        &self.0
    }
}

impl From<TextureErrorKind> for TextureError {
    #[cold]
    fn from(kind: TextureErrorKind) -> TextureError {
        TextureError(Box::new(kind))
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for TextureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn rule(text: String) -> TextureError {
    TextureErrorKind::Rule(text).into()
}

fn driver_error(call: &'static str, source: DriverError) -> TextureError {
    TextureErrorKind::Driver { call, source }.into()
}

impl<'a, T: Texel> Texture<'a, T> {
    /// The elements of a contiguous array, for `tex1Dfetch`.
    ///
    /// # Errors
    ///
    /// If the array cannot be described, is empty, too long or not aligned for a texture, is in another
    /// context, or the driver refuses.
    pub fn linear<A: AsDeviceView<T>>(
        context: &Arc<CudaContext>,
        array: &'a A,
    ) -> Result<Texture<'a, T>, TextureError> {
        let view = array.describe().map_err(TextureErrorKind::View)?;
        if !view.is_contiguous() {
            return Err(rule(format!(
                "the array is not contiguous: {}, or make a texture of its rows, `Texture::rows`",
                array.make_contiguous()
            )));
        }
        let limits = Limits::of(context)?;
        check(&view, context, &limits)?;
        if view.is_empty() || view.len() > limits.linear {
            return Err(rule(format!(
                "the array has {} elements, and a linear texture on this device has 1 to {}",
                view.len(),
                limits.linear
            )));
        }
        let linear = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
            devPtr: view.pointer(),
            format: T::format(),
            numChannels: T::CHANNELS,
            sizeInBytes: view.len() * size_of::<T>(),
        };
        let resource = sys::CUDA_RESOURCE_DESC_st {
            resType: sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
            res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 { linear },
            flags: 0,
        };
        let shape = Shape {
            extents: [view.len(), 1],
            rank: 1,
        };
        // `tex1Dfetch` neither filters nor wraps.
        let description = Sampler::new().description::<T>().map_err(rule)?;
        // SAFETY: the description is whole, and of memory that is borrowed for as long.
        let object = unsafe { create(context, &resource, &description) }?;
        Ok(Texture {
            object,
            context: context.clone(),
            pointer: view.pointer(),
            shape,
            array,
        })
    }

    /// An array of two dimensions whose rows are contiguous, for `tex2D`; `x` counts along a row.
    ///
    /// # Errors
    ///
    /// As [`linear`](Self::linear); and if the rows are not contiguous or not aligned for a texture, or
    /// the sampler breaks a rule.
    pub fn rows<A: AsDeviceView<T>>(
        context: &Arc<CudaContext>,
        array: &'a A,
        sampler: Sampler,
    ) -> Result<Texture<'a, T>, TextureError> {
        let view = array.describe_strided().map_err(TextureErrorKind::View)?;
        let Layout::Strided {
            shape: &[height, width],
            strides: &[stride, 1],
        } = view.layout()
        else {
            return Err(rule(match view.layout() {
                Layout::Strided { shape, strides } => format!(
                    "a texture of rows has two dimensions with elements side by side in the inner one, the array has shape {shape:?}, strides {strides:?} in elements"
                ),
                _ => "a texture of rows has two dimensions, the array has 1: give it a shape, `Shaped::new(&array, [..])`".to_owned(),
            }));
        };
        let limits = Limits::of(context)?;
        check(&view, context, &limits)?;
        let [most_width, most_height, most_pitch] = limits.rows;
        if width == 0 || height == 0 || width > most_width || height > most_height {
            return Err(rule(format!(
                "the array has {height} rows of {width} elements, and a texture on this device has 1 to {most_height} of 1 to {most_width}"
            )));
        }
        let pitch = usize::try_from(stride)
            .ok()
            .and_then(|stride| stride.checked_mul(size_of::<T>()))
            .filter(|pitch| *pitch >= width * size_of::<T>() && *pitch <= most_pitch)
            .filter(|pitch| pitch.is_multiple_of(limits.pitch_align));
        let Some(pitch) = pitch else {
            return Err(rule(format!(
                "the rows lie {stride} elements of {} bytes apart, and a texture on this device needs a multiple of {} bytes from the row's length to {most_pitch}; pad the rows",
                size_of::<T>(),
                limits.pitch_align
            )));
        };
        let pitch2d = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
            devPtr: view.pointer(),
            format: T::format(),
            numChannels: T::CHANNELS,
            width,
            height,
            pitchInBytes: pitch,
        };
        let resource = sys::CUDA_RESOURCE_DESC_st {
            resType: sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D,
            res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 { pitch2D: pitch2d },
            flags: 0,
        };
        let shape = Shape {
            extents: [height, width],
            rank: 2,
        };
        let description = sampler.description::<T>().map_err(rule)?;
        // SAFETY: the description is whole, and of memory that is borrowed for as long.
        let object = unsafe { create(context, &resource, &description) }?;
        Ok(Texture {
            object,
            context: context.clone(),
            pointer: view.pointer(),
            shape,
            array,
        })
    }
}

/// What the device allows of textures.
struct Limits {
    address_align: u64,
    pitch_align: usize,
    linear: usize,
    /// Width and height in elements, pitch in bytes.
    rows: [usize; 3],
}

impl Limits {
    fn of(context: &CudaContext) -> Result<Limits, TextureError> {
        use sys::CUdevice_attribute as Attribute;
        let attribute = |attribute| {
            let value = context
                .attribute(attribute)
                .map_err(|error| driver_error("cuDeviceGetAttribute", error))?;
            Ok::<usize, TextureError>(usize::try_from(value).unwrap_or(0))
        };
        let linear = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH)?;
        if linear == 0 {
            return Err(TextureErrorKind::Unsupported.into());
        }
        Ok(Limits {
            address_align: attribute(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?.max(1)
                as u64,
            pitch_align: attribute(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT)?.max(1),
            linear,
            rows: [
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH)?,
            ],
        })
    }
}

fn check(view: &View<'_>, context: &CudaContext, limits: &Limits) -> Result<(), TextureError> {
    let here = match view.place() {
        Place::Context { context: of, .. } => of == context.cu_ctx().cast(),
        Place::Device(device) => usize::try_from(device) == Ok(context.ordinal()),
        Place::Everywhere => true,
        _ => false,
    };
    if !here {
        return Err(rule(format!(
            "the array is not in this context of device {}",
            context.ordinal()
        )));
    }
    if !view.pointer().is_multiple_of(limits.address_align) {
        let found = 1_u64 << view.pointer().trailing_zeros();
        return Err(rule(format!(
            "the array begins at an address that is aligned to {found} bytes only, a texture on this device needs {}",
            limits.address_align
        )));
    }
    Ok(())
}

/// # Safety
///
/// The descriptions must be whole, and of memory that lives until the object is destroyed.
unsafe fn create(
    context: &Arc<CudaContext>,
    resource: &sys::CUDA_RESOURCE_DESC_st,
    description: &sys::CUDA_TEXTURE_DESC_st,
) -> Result<Object, TextureError> {
    let _current =
        Current::enter(context).map_err(|error| driver_error("cuCtxSetCurrent", error))?;
    let mut object = 0;
    // SAFETY: the descriptions are whole, by the caller; `object` takes the answer.
    unsafe { sys::cuTexObjectCreate(&raw mut object, resource, description, std::ptr::null()) }
        .result()
        .map_err(|error| driver_error("cuTexObjectCreate", error))?;
    Ok(Object(object))
}

impl<T> Drop for Texture<'_, T> {
    fn drop(&mut self) {
        let Ok(_current) = Current::enter(&self.context) else {
            return;
        };
        // Where it cannot be waited for, as while a graph is captured, the object leaks.
        if result::ctx::synchronize().is_ok() {
            // SAFETY: no kernel that takes the object runs, and none is launched any more.
            let _ = unsafe { sys::cuTexObjectDestroy(self.object.0) };
        }
    }
}

/// A texture that a launch has described and checked.
#[derive(Clone, Copy, Debug)]
pub struct TextureView {
    object: Object,
    shape: Shape,
    span: Span,
}

impl TextureView {
    /// What the kernel gets.
    #[must_use]
    pub fn value(&self) -> &Object {
        &self.object
    }

    /// What is looked at for overlaps.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}

/// A texture, as a contract sees it.
#[derive(Clone, Copy, Debug)]
pub struct TextureOf(pub TextureView);

impl TextureOf {
    /// The number of elements.
    #[must_use]
    pub fn len(self) -> Int {
        let [rows, columns] = self.0.shape.extents;
        Int::from(rows) * Int::from(columns)
    }

    /// Whether there are no elements, which is never so.
    #[must_use]
    pub fn is_empty(self) -> bool {
        false
    }

    /// The number of dimensions.
    #[must_use]
    pub fn rank(self) -> Int {
        Int::from(self.0.shape.rank)
    }

    /// The number of elements along a dimension, outermost first; 0 along one that there is not.
    #[must_use]
    pub fn extent(self, dimension: Int) -> Int {
        let extents = &self.0.shape.extents[..self.0.shape.rank];
        let extent = dimension.index().and_then(|at| extents.get(at));
        extent.map_or(Int::new(0), |&extent| Int::from(extent))
    }

    /// What a message shows of it.
    #[must_use]
    pub fn shape(self) -> String {
        format!("{:?}", &self.0.shape.extents[..self.0.shape.rank])
    }
}

impl<P: Purpose> Call<'_, P> {
    /// Describes a texture that the kernel reads.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn read_texture<T, M: AsTexture<T> + ?Sized>(
        &self,
        index: usize,
        texture: &M,
    ) -> Result<TextureView, P::Stop> {
        let (object, first, shape) = texture.parts();
        self.check_place(index, 1, &first)?;
        let view = texture
            .describe_strided()
            .map_err(|error| self.view_error(index, error))?;
        self.check_place(index, 1, &view)?;
        if view.pointer() != first.pointer() {
            let error = ViewError::other("the array has moved since the texture was made");
            return Err(self.view_error(index, error).into());
        }
        let reach = match view.layout() {
            Layout::Strided {
                strides: [stride, _],
                shape: [rows, columns],
            } if shape.rank == 2 => {
                let rows = rows.saturating_sub(1);
                rows.saturating_mul(stride.unsigned_abs())
                    .saturating_add(*columns)
            }
            _ => view.len(),
        };
        Ok(TextureView {
            object,
            shape,
            span: self.reaching::<T>(first.pointer(), reach, &view, false)?,
        })
    }
}

// SAFETY: forwards to the array, which is borrowed.
unsafe impl<T> AsDeviceView<T> for Texture<'_, T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        self.array.describe()
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire(stream)
    }

    fn describe_strided(&self) -> Result<View<'_>, ViewError> {
        self.array.describe_strided()
    }
}

// SAFETY: the object was made of the array.
unsafe impl<T> AsTexture<T> for Texture<'_, T> {
    fn parts(&self) -> (Object, View<'static>, Shape) {
        // An object is of its context, wherever the array may be used.
        let place = Place::Context {
            context: self.context.cu_ctx().cast(),
            device: i32::try_from(self.context.ordinal()).unwrap_or(i32::MAX),
        };
        (self.object, View::new(self.pointer, 1, place), self.shape)
    }
}

// SAFETY: forwards to `M`.
unsafe impl<T, M: AsTexture<T> + ?Sized> AsTexture<T> for &M {
    fn parts(&self) -> (Object, View<'static>, Shape) {
        (**self).parts()
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsTexture<T> for NoView {
    fn parts(&self) -> (Object, View<'static>, Shape) {
        match *self {}
    }
}

impl<T> fmt::Debug for Texture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texture")
            .field("pointer", &format_args!("{:#x}", self.pointer))
            .field("shape", &&self.shape.extents[..self.shape.rank])
            .field("device", &self.context.ordinal())
            .finish_non_exhaustive()
    }
}
