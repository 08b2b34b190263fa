//! Texture objects: arrays that kernels read through the texture units.
//!
//! Of linear memory, whole or in rows, and of CUDA arrays.

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
    buffer::{ArrayShape, CudaArray},
    call::{Call, Purpose, Span},
    contract::Int,
    current::Current,
    error::BufferError,
    graph::is_any_captured,
    kernel::NoView,
    layout::{ArgLayout, Class},
    relaxed::RelaxedCapture,
};

/// A texture object of an array, or of a [`CudaArray`]: `cudaTextureObject_t` in CUDA C++.
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
/// The driver does not say that an object may be destroyed under a kernel. So the drop of a texture of
/// memory waits until the device is done with all that is enqueued in the context; keep textures that are used
/// often. The driver ends a capture of any stream of a context that is waited for: while
/// [`Graph::capture`](crate::Graph::capture) lasts, the object leaks instead; drop no texture of memory while
/// others capture. That of a texture of a [`CudaArray`] does nothing: the object stays with the array.
pub struct Texture<'a, T> {
    object: Object,
    /// Outermost first.
    shape: Shape,
    source: Source<'a, T>,
}

/// What a texture reads.
enum Source<'a, T> {
    Memory {
        context: Arc<CudaContext>,
        pointer: u64,
        array: &'a dyn AsDeviceView<T>,
    },
    /// Which owns the object.
    Array(&'a CudaArray<T>),
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
    /// What the kernel gets, and the array.
    #[doc(hidden)]
    fn parts(&self) -> Result<Parts<'_>, ViewError>;
}

/// What a launch is told of a texture or a surface.
#[derive(Debug)]
pub struct Parts<'a> {
    pub(crate) object: Object,
    pub(crate) shape: Shape,
    /// Where it is and who uses it.
    pub(crate) view: View<'a>,
    /// From the first byte to the last.
    pub(crate) bytes: usize,
}

/// `CUtexObject`, or `CUsurfObject`.
#[derive(Clone, Copy, Debug)]
pub struct Object(pub(crate) u64);

/// The extents of one to three dimensions, outermost first, and what they are of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    extents: [usize; 3],
    rank: usize,
    layered: bool,
    cubemap: bool,
}

impl Shape {
    pub(crate) fn new(extents: &[usize]) -> Shape {
        let mut shape = Shape {
            extents: [1; 3],
            rank: extents.len().min(3),
            layered: false,
            cubemap: false,
        };
        shape.extents[..shape.rank].copy_from_slice(&extents[..shape.rank]);
        shape
    }

    pub(crate) fn of_array(shape: &ArrayShape) -> Shape {
        Shape {
            layered: shape.is_layered(),
            cubemap: shape.is_cubemap(),
            ..Shape::new(shape.extents())
        }
    }
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
    /// The device has no textures.
    #[error("this device has no textures; pass the array as `&[T]`")]
    Unsupported,
    /// A rule of textures is not kept.
    #[error("{0}")]
    Rule(String),
    /// The CUDA array's memory cannot be used.
    #[error("{0}")]
    Memory(BufferError),
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
        let shape = Shape::new(&[view.len()]);
        // `tex1Dfetch` neither filters nor wraps.
        let description = Sampler::new().description::<T>().map_err(rule)?;
        // SAFETY: the description is whole, and of memory that is borrowed for as long.
        let object = unsafe { create(context, &resource, &description) }?;
        Ok(Texture {
            object,
            shape,
            source: Source::Memory {
                context: context.clone(),
                pointer: view.pointer(),
                array,
            },
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
        let shape = Shape::new(&[height, width]);
        let description = sampler.description::<T>().map_err(rule)?;
        // SAFETY: the description is whole, and of memory that is borrowed for as long.
        let object = unsafe { create(context, &resource, &description) }?;
        Ok(Texture {
            object,
            shape,
            source: Source::Memory {
                context: context.clone(),
                pointer: view.pointer(),
                array,
            },
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
    // No capture depends on an object that is new.
    let _relaxed = RelaxedCapture::enter();
    let mut object = 0;
    // SAFETY: the descriptions are whole, by the caller; `object` takes the answer.
    unsafe { sys::cuTexObjectCreate(&raw mut object, resource, description, std::ptr::null()) }
        .result()
        .map_err(|error| driver_error("cuTexObjectCreate", error))?;
    Ok(Object(object))
}

impl<T> Drop for Texture<'_, T> {
    fn drop(&mut self) {
        let Source::Memory { context, .. } = &self.source else {
            return;
        };
        let Ok(_current) = Current::enter(context) else {
            return;
        };
        // To wait would end the capture, on whatever thread it is.
        if is_any_captured() {
            return;
        }
        let _relaxed = RelaxedCapture::enter();
        // Where it cannot be waited for, the object leaks.
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
        let [slices, rows, columns] = self.0.shape.extents;
        Int::from(slices) * Int::from(rows) * Int::from(columns)
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

    /// Whether it is of layers, also of cubemaps: what `tex2D` reads is not, what `tex1DLayered` reads is.
    #[must_use]
    pub fn is_layered(self) -> bool {
        self.0.shape.layered
    }

    /// Whether it is a cubemap, or layers of such.
    #[must_use]
    pub fn is_cubemap(self) -> bool {
        self.0.shape.cubemap
    }

    /// What a message shows of it.
    #[must_use]
    pub fn shape(self) -> String {
        let Shape {
            extents,
            rank,
            layered,
            cubemap,
        } = self.0.shape;
        let kind = match (layered, cubemap) {
            (false, false) => "",
            (true, false) => " of layers",
            (false, true) => " of a cubemap",
            (true, true) => " of layers of cubemaps",
        };
        format!("{:?}{kind}", &extents[..rank])
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
        let parts = texture
            .parts()
            .map_err(|error| self.view_error(index, error))?;
        self.image(index, &parts, false)
    }

    /// Checks a texture or a surface.
    pub(crate) fn image(
        &self,
        index: usize,
        parts: &Parts<'_>,
        writes: bool,
    ) -> Result<TextureView, P::Stop> {
        self.check_place(index, 1, &parts.view)?;
        Ok(TextureView {
            object: parts.object,
            shape: parts.shape,
            span: self.reaching::<u8>(parts.view.pointer(), parts.bytes, &parts.view, writes)?,
        })
    }
}

// SAFETY: forwards to the array, which is borrowed. A CUDA array has no address, and is never described.
unsafe impl<T> AsDeviceView<T> for Texture<'_, T> {
    fn describe(&self) -> Result<View<'_>, ViewError> {
        match &self.source {
            Source::Memory { array, .. } => array.describe(),
            Source::Array(_) => Err(no_address()),
        }
    }

    fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        match &self.source {
            Source::Memory { array, .. } => array.acquire(stream),
            Source::Array(array) => array.acquire(stream),
        }
    }

    fn describe_strided(&self) -> Result<View<'_>, ViewError> {
        match &self.source {
            Source::Memory { array, .. } => array.describe_strided(),
            Source::Array(_) => Err(no_address()),
        }
    }
}

/// Why a CUDA array is no `&[T]`.
pub(crate) fn no_address() -> ViewError {
    ViewError::other(
        "a CUDA array has no address; declare the parameter as `Texture<T>` or `Surface<T>`, or copy the array with `copy_to`",
    )
}

// SAFETY: the object was made of the array.
unsafe impl<T> AsTexture<T> for Texture<'_, T> {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        let (object, shape) = (self.object, self.shape);
        let (context, pointer, array) = match &self.source {
            Source::Memory {
                context,
                pointer,
                array,
            } => (context, *pointer, array),
            Source::Array(array) => {
                return Ok(Parts {
                    object,
                    shape,
                    view: array.view(),
                    bytes: 1,
                });
            }
        };
        let view = array.describe_strided()?;
        // An object is of its context, wherever the array may be used.
        let elsewhere = match view.place() {
            Place::Context { context: of, .. } => of != context.cu_ctx().cast(),
            Place::Device(device) => usize::try_from(device) != Ok(context.ordinal()),
            _ => false,
        };
        if view.pointer() != pointer || elsewhere {
            return Err(ViewError::other(
                "the array has moved since the texture was made",
            ));
        }
        let place = Place::Context {
            context: context.cu_ctx().cast(),
            device: i32::try_from(context.ordinal()).unwrap_or(i32::MAX),
        };
        let elements = match view.layout() {
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
        let mut here = View::new(pointer, 1, place).tracked_by(view.tracker());
        if view.is_exclusive() {
            here = here.exclusive();
        }
        Ok(Parts {
            object,
            shape,
            view: here,
            bytes: elements.saturating_mul(size_of::<T>()),
        })
    }
}

// SAFETY: forwards to `M`.
unsafe impl<T, M: AsTexture<T> + ?Sized> AsTexture<T> for &M {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        (**self).parts()
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsTexture<T> for NoView {
    fn parts(&self) -> Result<Parts<'_>, ViewError> {
        match *self {}
    }
}

impl<T: Texel> CudaArray<T> {
    /// A texture of the array, read by `sampler`: `tex1D`, `tex2D`, `tex3D`, `tex1DLayered` and their kin, by the
    /// array's shape. What is made for a sampler stays with the array, so that asking again costs little.
    ///
    /// ```no_run
    /// # use gridcall::{AddressMode, CudaArray, Sampler};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let volume = CudaArray::<f32>::zeroed(&stream, [16, 32, 64])?;
    /// let texture = volume.texture(Sampler::new().address(AddressMode::Border))?;
    /// # let _ = texture;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the sampler breaks a rule, or the driver refuses.
    pub fn texture(&self, sampler: Sampler) -> Result<Texture<'_, T>, TextureError> {
        let description = sampler.description::<T>().map_err(rule)?;
        let object = self
            .texture_object(sampler, &description)
            .map_err(TextureErrorKind::Memory)?;
        Ok(Texture {
            object: Object(object),
            shape: Shape::of_array(self.shape()),
            source: Source::Array(self),
        })
    }
}

impl<T> fmt::Debug for Texture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texture")
            .field("object", &format_args!("{:#x}", self.object.0))
            .field("shape", &&self.shape.extents[..self.shape.rank])
            .finish_non_exhaustive()
    }
}
