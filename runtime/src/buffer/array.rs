//! CUDA arrays: device memory that textures and surfaces read, and surfaces write.

mod error;
mod shape;

use std::{
    ffi::c_void,
    fmt,
    marker::PhantomData,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use bytemuck::{AnyBitPattern, Zeroable};
use cudarc::driver::{CudaStream, sys};
use gridcall_view::{
    AsDeviceView, AsDeviceViewMut, Guard, Layout, Place, StreamRef, View, ViewError, ViewErrorKind,
};

pub use self::{
    error::{ArrayError, ArrayErrorKind},
    shape::{ArrayShape, Extents},
};
use super::{
    copy::{enqueue, finish, is_here},
    memory::{Memory, enter},
    order::Access,
};
use crate::{
    error::{BufferError, BufferErrorKind},
    relaxed::RelaxedCapture,
    texture::{Sampler, Texel},
};

/// A CUDA array: elements in an order of the device's own, for textures and surfaces alone.
///
/// A kernel reads it by a [`Texture`](crate::Texture), [`CudaArray::texture`], and reads and writes it by
/// [`Surface`](crate::Surface) and [`SurfaceMut`](crate::SurfaceMut), if its shape was made
/// [`with_surface`](ArrayShape::with_surface). It has no address: copies bring elements there and back.
///
/// ```no_run
/// use gridcall::{ArrayShape, CudaArray, FilterMode, Sampler, SurfaceMut, Texture, cover, kernel};
///
/// #[kernel(ptx = "../kernels/array.ptx")]
/// unsafe extern "C" {
///     /// `image[y][x]` ← `a·x + b·y`, as a surface
///     #[requires(image.rank() == 2, !image.is_layered(), width == image.extent(1), height == image.extent(0))]
///     safe fn ramp(image: SurfaceMut<f32>, width: u32, height: u32, a: f32, b: f32);
///     /// `out[i]` ← the image at (x[i], y[i])
///     #[requires(image.rank() == 2, !image.is_layered(), x.len() >= n, y.len() >= n, out.len() >= n)]
///     safe fn sample(image: Texture<f32>, x: &[f32], y: &[f32], out: &mut [f32], n: u32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = gridcall::device(0)?.default_stream();
/// let mut image = CudaArray::<f32>::zeroed(&stream, ArrayShape::new([32, 64]).with_surface())?;
/// ramp(&stream, cover(32 * 64), &mut image.surface_mut()?, 64, 32, 1.0, 100.0)?;
///
/// let smooth = image.texture(Sampler::new().filter(FilterMode::Linear))?;
/// let (x, y) = (stream.clone_htod(&[1.0_f32])?, stream.clone_htod(&[2.5_f32])?);
/// let mut out = stream.alloc_zeros::<f32>(1)?;
/// sample(&stream, cover(1), &smooth, &x, &y, &mut out, 1)?;
/// assert_eq!(stream.clone_dtoh(&out)?, [200.5]); // between columns 0 and 1 of row 2
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Uses are in order across streams as those of a [`Buffer`](crate::Buffer): a launch waits for the writes of
/// other streams, one that writes for all uses, and nothing is locked or allocated while one stream uses it.
/// Whoever writes has it by `&mut`, so that no texture of it is alive meanwhile.
///
/// # Dropping
///
/// The driver does not destroy an array in the order of a stream: a drop waits until those that use it are
/// done. If a stream that used it is being captured, it is destroyed later, when a buffer or an array is made or
/// dropped after the capture.
///
/// # What there is not
///
/// Mipmaps, sparse arrays, formats of compressed blocks and of video, and arrays of graphics libraries. A
/// graph takes no arrays: launch what uses them.
pub struct CudaArray<T> {
    memory: Memory,
    shape: ArrayShape,
    elements: PhantomData<T>,
}

/// What belongs to an array and is destroyed with it.
#[derive(Debug)]
pub(super) struct Objects {
    /// Zero if it has none.
    surface: u64,
    textures: Mutex<Vec<(Sampler, u64)>>,
}

impl Objects {
    /// Destroys the objects and the array.
    ///
    /// # Safety
    ///
    /// The array must be the one they belong to, with nothing that uses it left or to come, and its context current.
    pub(super) unsafe fn destroy(&self, array: u64) -> Result<(), BufferError> {
        let mut textures = self.textures.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, object) in mem::take(&mut *textures) {
            // SAFETY: the object was made of the array and is destroyed once; nothing uses it, by the caller.
            let _ = unsafe { sys::cuTexObjectDestroy(object) };
        }
        if self.surface != 0 {
            // SAFETY: as above.
            let _ = unsafe { sys::cuSurfObjectDestroy(self.surface) };
        }
        // SAFETY: the array was made by `cuArray3DCreate`, and nothing uses it, by the caller.
        unsafe { sys::cuArrayDestroy(handle(array)) }
            .result()
            .map_err(|e| super::stream::driver_error("cuArrayDestroy", e))
    }
}

/// The handle that a number stands for.
fn handle(array: u64) -> sys::CUarray {
    std::ptr::with_exposed_provenance_mut(usize::try_from(array).unwrap_or(usize::MAX))
}

impl<T: Texel> CudaArray<T> {
    /// An array of zeros, which are copied from the host. Returns once they are on the device.
    ///
    /// # Errors
    ///
    /// If the device has no such arrays or no memory, the stream is being captured, or the driver fails.
    pub fn zeroed(
        stream: &Arc<CudaStream>,
        shape: impl Into<ArrayShape>,
    ) -> Result<CudaArray<T>, ArrayError>
    where
        T: Zeroable,
    {
        let shape = shape.into();
        let mut array = CudaArray::create(stream, shape)?;
        let zeros = vec![0_u8; shape.len() * size_of::<T>()];
        // SAFETY: there are as many bytes as the array holds, zeros are a `T`, and the call waits for the copy.
        unsafe { array.write_all(zeros.as_ptr().cast()) }?;
        Ok(array)
    }

    /// A copy of the elements, the innermost dimension changing fastest. Returns once they are on the device.
    ///
    /// ```no_run
    /// # use gridcall::CudaArray;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let array = CudaArray::from_slice(&stream, [2, 3], &[1_u8, 2, 3, 4, 5, 6])?;
    /// assert_eq!(array.to_vec()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there are not as many elements as the shape has, the device has no such arrays or no memory, the
    /// stream is being captured, or the driver fails.
    pub fn from_slice(
        stream: &Arc<CudaStream>,
        shape: impl Into<ArrayShape>,
        elements: &[T],
    ) -> Result<CudaArray<T>, ArrayError> {
        let shape = shape.into();
        same_length(&shape, elements.len())?;
        let mut array = CudaArray::create(stream, shape)?;
        array.copy_from_slice(elements)?;
        Ok(array)
    }

    /// An array of which nobody has written an element yet.
    fn create(stream: &Arc<CudaStream>, shape: ArrayShape) -> Result<CudaArray<T>, ArrayError> {
        let context = stream.context();
        let failed = |call| move |source| ArrayError::driver(call, source);
        if let Some(rule) = shape
            .check(context)
            .map_err(failed("cuDeviceGetAttribute"))?
        {
            return Err(ArrayErrorKind::Rule(rule).into());
        }
        let bytes = shape.len().checked_mul(size_of::<T>());
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or_else(|| {
            BufferError::from(BufferErrorKind::TooLarge {
                len: shape.len(),
                size: size_of::<T>(),
            })
        })?;
        super::limbo::retry();
        let _current = enter(stream)?;
        let _relaxed = RelaxedCapture::enter();
        if super::is_capturing(stream.cu_stream())? {
            return Err(BufferError::from(BufferErrorKind::Capturing).into());
        }
        let [width, height, depth] = shape.descriptor();
        let descriptor = sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            Format: T::format(),
            NumChannels: T::CHANNELS,
            Flags: shape.flags(),
        };
        let mut array = std::ptr::null_mut();
        // SAFETY: the description is whole, and `array` takes the answer; the context is current.
        unsafe { sys::cuArray3DCreate_v2(&raw mut array, &raw const descriptor) }
            .result()
            .map_err(|source| {
                BufferError::from(BufferErrorKind::Allocate {
                    bytes,
                    device: context.ordinal(),
                    source,
                })
            })?;
        let mut objects = Objects {
            surface: 0,
            textures: Mutex::default(),
        };
        let address = array.expose_provenance() as u64;
        if shape.has_surface() {
            let resource = resource(array);
            // SAFETY: the resource is whole, and of an array that lives; the context is current.
            let made =
                unsafe { sys::cuSurfObjectCreate(&raw mut objects.surface, &raw const resource) };
            if let Err(error) = made.result() {
                // SAFETY: nothing has used the array, and nobody else has it.
                let _ = unsafe { objects.destroy(address) };
                return Err(ArrayError::driver("cuSurfObjectCreate", error));
            }
        }
        // SAFETY: it was made a moment ago in the stream's context, and nobody else has it.
        let memory = unsafe { Memory::own_array(stream, address, bytes, objects) }?;
        Ok(CudaArray {
            memory,
            shape,
            elements: PhantomData,
        })
    }

    /// The shape.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether there are no elements, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The stream that the array was made on.
    #[must_use]
    pub fn stream(&self) -> &Arc<CudaStream> {
        self.memory.stream()
    }

    /// Copies all elements from the host. Returns once they are on the device.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the stream is being captured, or the driver fails.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<(), ArrayError> {
        same_length(&self.shape, elements.len())?;
        // SAFETY: there are as many elements as the array holds, and the call waits for the copy.
        unsafe { self.write_all(elements.as_ptr().cast()) }
    }

    /// Copies a part from the host: `extents` elements from `origin` on, both outermost first and as many as the
    /// shape has. Returns once they are on the device.
    ///
    /// ```no_run
    /// # use gridcall::CudaArray;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let mut array = CudaArray::<u8>::zeroed(&stream, [3, 4])?;
    /// array.write_part(&[1, 2], &[2, 1], &[7, 8])?;
    /// assert_eq!(array.to_vec()?, [0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0]);
    /// assert_eq!(array.read_part(&[1, 1], &[1, 3])?, [0, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the part does not lie within the array or has not as many elements, the stream is being captured, or the
    /// driver fails.
    pub fn write_part(
        &mut self,
        origin: &[usize],
        extents: &[usize],
        elements: &[T],
    ) -> Result<(), ArrayError> {
        let part = Part::new(&self.shape, origin, extents)?;
        part.same_length(elements.len())?;
        // SAFETY: there are as many elements as the part has, and the call waits for the copy.
        unsafe { self.write(part, elements.as_ptr().cast()) }
    }

    /// All elements, on the host. Waits for whoever writes them.
    ///
    /// # Errors
    ///
    /// If the stream is being captured, or the driver fails.
    pub fn to_vec(&self) -> Result<Vec<T>, ArrayError>
    where
        T: AnyBitPattern,
    {
        self.read(Part::all(&self.shape))
    }

    /// A part of the elements, on the host; see [`write_part`](Self::write_part). Waits for whoever writes them.
    ///
    /// # Errors
    ///
    /// If the part does not lie within the array, the stream is being captured, or the driver fails.
    pub fn read_part(&self, origin: &[usize], extents: &[usize]) -> Result<Vec<T>, ArrayError>
    where
        T: AnyBitPattern,
    {
        self.read(Part::new(&self.shape, origin, extents)?)
    }

    /// Copies all elements from a device array, in the order of `stream`. The array has the same shape, or is
    /// contiguous and as long; its rows may lie further apart.
    ///
    /// ```no_run
    /// # use gridcall::{Buffer, CudaArray, Shaped};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let wide = Buffer::from_slice(&stream, &[1.0_f32, 2.0, 0.0, 3.0, 4.0, 0.0])?;
    /// let mut array = CudaArray::<f32>::zeroed(&stream, [2, 2])?;
    /// array.copy_from(&stream, &Shaped::strided(&wide, 0, [2, 2], [3, 1]))?;
    /// assert_eq!(array.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the shapes differ, elements of a row are not side by side, an array is in another context, the
    /// stream is being captured, or the driver fails.
    pub fn copy_from<A: AsDeviceView<T> + ?Sized>(
        &mut self,
        stream: &Arc<CudaStream>,
        from: &A,
    ) -> Result<(), ArrayError> {
        is_here(&self.memory, stream)?;
        let _current = enter(stream)?;
        // The other array's owner would note the use by an event of the capture.
        if super::is_capturing(stream.cu_stream())? {
            return Err(BufferError::from(BufferErrorKind::Capturing).into());
        }
        let view = from.describe_strided().map_err(ArrayErrorKind::View)?;
        let rows = self.rows_of(stream, &view)?;
        let reference = StreamRef::from(&**stream).of_one_launch();
        let context = stream.context();
        let failed = |source| ArrayError::driver("cuStreamWaitEvent", source);
        // An error that cudarc has stored makes its waits do nothing.
        context.check_err().map_err(failed)?;
        let guard = from.acquire(reference).map_err(ArrayErrorKind::View)?;
        context.check_err().map_err(failed)?;
        let mut copy = rows.copy();
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.dstArray = handle(self.memory.pointer());
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        copy.srcDevice = rows.pointer;
        copy.srcPitch = rows.pitch;
        copy.srcHeight = rows.height;
        let copied = self.enqueue(stream, true, &copy);
        ended(stream, guard, copied)
    }

    /// Copies all elements to a device array, in the order of `stream`; see [`copy_from`](Self::copy_from).
    ///
    /// # Errors
    ///
    /// As [`copy_from`](Self::copy_from); and if the device array may only be read.
    pub fn copy_to<A: AsDeviceViewMut<T> + ?Sized>(
        &self,
        stream: &Arc<CudaStream>,
        to: &mut A,
    ) -> Result<(), ArrayError> {
        is_here(&self.memory, stream)?;
        let _current = enter(stream)?;
        // The other array's owner would note the use by an event of the capture.
        if super::is_capturing(stream.cu_stream())? {
            return Err(BufferError::from(BufferErrorKind::Capturing).into());
        }
        let view = to.describe_strided_mut().map_err(ArrayErrorKind::View)?;
        if view.is_read_only() {
            return Err(ArrayErrorKind::View(ViewErrorKind::ReadOnly.into()).into());
        }
        let rows = self.rows_of(stream, &view)?;
        let reference = StreamRef::from(&**stream).of_one_launch();
        let context = stream.context();
        let failed = |source| ArrayError::driver("cuStreamWaitEvent", source);
        context.check_err().map_err(failed)?;
        let guard = to.acquire_mut(reference).map_err(ArrayErrorKind::View)?;
        context.check_err().map_err(failed)?;
        let mut copy = rows.copy();
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.srcArray = handle(self.memory.pointer());
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        copy.dstDevice = rows.pointer;
        copy.dstPitch = rows.pitch;
        copy.dstHeight = rows.height;
        let copied = self.enqueue(stream, false, &copy);
        ended(stream, guard, copied)
    }

    /// Where the rows of a device array lie, which must be of this array's shape.
    fn rows_of(&self, stream: &CudaStream, view: &View<'_>) -> Result<Rows, ArrayError> {
        let here = StreamRef::from(stream);
        let inside = match view.place() {
            Place::Context { context, .. } => context == here.context(),
            Place::Device(device) => device == here.device(),
            Place::Everywhere => true,
            _ => false,
        };
        if !inside {
            return Err(rule(
                "the device array is in another context than the stream".to_owned(),
            ));
        }
        let [width, height, depth] = self.shape.whole();
        let size = size_of::<T>();
        let extents = self.shape.extents();
        let (row, slice) = match view.layout() {
            Layout::Contiguous if view.len() == self.len() => (width, width * height),
            Layout::Strided { shape, .. }
                if view.is_contiguous() && (shape == extents || view.len() == self.len()) =>
            {
                (width, width * height)
            }
            Layout::Strided { shape, strides } if shape == extents => {
                rows_apart([width, height, depth], strides).ok_or_else(|| {
                    rule(format!(
                        "the device array's strides are {strides:?} in elements; a copy takes elements of a row side by side, rows at least {width} apart, and slices a number of rows apart"
                    ))
                })?
            }
            layout => {
                let found = match layout {
                    Layout::Strided { shape, .. } => format!("has shape {shape:?}"),
                    _ => format!("has {} elements in a row", view.len()),
                };
                return Err(rule(format!(
                    "the device array {found}, and the CUDA array has shape {extents:?}"
                )));
            }
        };
        Ok(Rows {
            pointer: view.pointer(),
            width: width * size,
            count: height,
            slices: depth,
            pitch: row * size,
            height: slice / row,
        })
    }

    /// # Safety
    ///
    /// `from` must be readable for the bytes of the array.
    unsafe fn write_all(&mut self, from: *const c_void) -> Result<(), ArrayError> {
        // SAFETY: by the caller.
        unsafe { self.write(Part::all(&self.shape), from) }
    }

    /// # Safety
    ///
    /// `from` must be readable for the bytes of the part.
    unsafe fn write(&mut self, part: Part, from: *const c_void) -> Result<(), ArrayError> {
        if part.is_empty() {
            return Ok(());
        }
        let mut copy = part.copy::<T>();
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.dstArray = handle(self.memory.pointer());
        let [x, y, z] = part.origin;
        (copy.dstXInBytes, copy.dstY, copy.dstZ) = (x * size_of::<T>(), y, z);
        copy.srcHost = from;
        copy.srcPitch = part.extents[0] * size_of::<T>();
        copy.srcHeight = part.extents[1];
        let stream = self.memory.nearest_stream();
        let copied = self.enqueue(&stream, true, &copy);
        // What the caller has borrowed may be in use.
        let finished = finish(&stream);
        copied?;
        Ok(finished?)
    }

    fn read(&self, part: Part) -> Result<Vec<T>, ArrayError>
    where
        T: AnyBitPattern,
    {
        let mut elements: Vec<T> = Vec::with_capacity(part.len());
        if part.is_empty() {
            return Ok(elements);
        }
        let mut copy = part.copy::<T>();
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.srcArray = handle(self.memory.pointer());
        let [x, y, z] = part.origin;
        (copy.srcXInBytes, copy.srcY, copy.srcZ) = (x * size_of::<T>(), y, z);
        copy.dstHost = elements.as_mut_ptr().cast();
        copy.dstPitch = part.extents[0] * size_of::<T>();
        copy.dstHeight = part.extents[1];
        let stream = self.memory.nearest_stream();
        let copied = self.enqueue(&stream, false, &copy);
        let finished = finish(&stream);
        if copied.is_err() || finished.is_err() {
            // Whatever the driver still does with it.
            mem::forget(elements);
            copied?;
            finished?;
            return Ok(Vec::new());
        }
        // SAFETY: the copy has written so many elements, and any bytes are a `T`.
        unsafe { elements.set_len(part.len()) };
        Ok(elements)
    }

    fn enqueue(
        &self,
        stream: &Arc<CudaStream>,
        writes: bool,
        copy: &sys::CUDA_MEMCPY3D,
    ) -> Result<(), ArrayError> {
        let uses = [(&self.memory, Access::whole(self.memory.bytes(), writes))];
        enqueue(stream, &uses, "cuMemcpy3DAsync", |stream| {
            // SAFETY: both sides hold what is copied: the array by its shape, the other side by the view of it
            // or by who calls `write` and `read`; and both live until the copy is done.
            unsafe { sys::cuMemcpy3DAsync_v2(copy, stream) }
        })?;
        Ok(())
    }
}

impl<T> CudaArray<T> {
    /// What a launch is told of it: the handle is its own, so that it overlaps with itself alone.
    pub(crate) fn view(&self) -> View<'_> {
        self.memory.view(self.memory.pointer(), 1)
    }

    pub(crate) fn whole_shape(&self) -> &ArrayShape {
        &self.shape
    }

    pub(crate) fn extents(&self) -> &[usize] {
        self.shape.extents()
    }

    /// The surface object, if the array has one.
    pub(crate) fn surface_object(&self) -> Option<u64> {
        let surface = self.memory.objects()?.surface;
        (surface != 0).then_some(surface)
    }

    pub(crate) fn acquire<'a>(&'a self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.memory.read(stream, 0..self.memory.bytes(), false)
    }

    pub(crate) fn acquire_mut<'a>(
        &'a mut self,
        stream: StreamRef<'a>,
    ) -> Result<Guard<'a>, ViewError> {
        self.memory.write(stream, 0..self.memory.bytes(), false)
    }

    /// The texture object of a sampler: made once, and destroyed with the array.
    pub(crate) fn texture_object(
        &self,
        sampler: Sampler,
        description: &sys::CUDA_TEXTURE_DESC,
    ) -> Result<u64, BufferError> {
        let Some(objects) = self.memory.objects() else {
            return Ok(0);
        };
        let mut textures = objects
            .textures
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, object)) = textures.iter().find(|(known, _)| *known == sampler) {
            return Ok(*object);
        }
        let _current = enter(self.memory.stream())?;
        let _relaxed = RelaxedCapture::enter();
        let resource = resource(handle(self.memory.pointer()));
        let mut object = 0;
        // SAFETY: the descriptions are whole, and of an array that outlives the object; its context is current.
        unsafe {
            sys::cuTexObjectCreate(
                &raw mut object,
                &raw const resource,
                description,
                std::ptr::null(),
            )
        }
        .result()
        .map_err(|e| super::stream::driver_error("cuTexObjectCreate", e))?;
        textures.push((sampler, object));
        Ok(object)
    }
}

/// What a texture or a surface is told of an array.
fn resource(array: sys::CUarray) -> sys::CUDA_RESOURCE_DESC {
    sys::CUDA_RESOURCE_DESC {
        resType: sys::CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
        res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
            array: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1 { hArray: array },
        },
        flags: 0,
    }
}

fn rule(text: String) -> ArrayError {
    ArrayErrorKind::Rule(text).into()
}

fn same_length(shape: &ArrayShape, len: usize) -> Result<(), ArrayError> {
    if shape.len() == len {
        return Ok(());
    }
    Err(rule(format!(
        "the array has shape {:?}, {} elements, and {len} are given",
        shape.extents(),
        shape.len()
    )))
}

/// Records the use of the other side of a copy, whatever came of it.
fn ended(
    stream: &CudaStream,
    guard: Guard<'_>,
    copied: Result<(), ArrayError>,
) -> Result<(), ArrayError> {
    if let Err(error) = guard.finish() {
        // Its owner does not know of the use: it must be done before the owner goes on.
        let _ = finish(stream);
        copied?;
        return Err(ArrayErrorKind::View(error).into());
    }
    copied
}

/// What is next to a row, and next to a slice, of an array with these strides, if a copy takes them. Layers of rows
/// are slices of one row; the stride of one element leads nowhere.
fn rows_apart([width, height, depth]: [usize; 3], strides: &[isize]) -> Option<(usize, usize)> {
    let leads = |extent: usize, stride: isize, nowhere: Option<usize>| match extent {
        1 => nowhere,
        _ => usize::try_from(stride).ok(),
    };
    let &[ref outer @ .., inner] = strides else {
        return None;
    };
    let (row, slice) = match *outer {
        [] => (width, width),
        [layer] if depth > 1 => {
            let row = leads(depth, layer, None)?;
            (row, row)
        }
        [row] => {
            let row = leads(height, row, Some(width))?;
            (row, row.checked_mul(height)?)
        }
        [slice, _] if height == 1 => {
            let row = leads(depth, slice, Some(width))?;
            (row, row)
        }
        [slice, row] => {
            let row = leads(height, row, None)?;
            (row, leads(depth, slice, row.checked_mul(height))?)
        }
        _ => return None,
    };
    let fits = (inner == 1 || width == 1)
        && row >= width
        && slice >= row.checked_mul(height)?
        && slice.is_multiple_of(row);
    fits.then_some((row, slice))
}

/// The rows of a device array, in bytes.
struct Rows {
    pointer: u64,
    width: usize,
    /// In a slice.
    count: usize,
    slices: usize,
    pitch: usize,
    /// From slice to slice, in rows.
    height: usize,
}

impl Rows {
    fn copy(&self) -> sys::CUDA_MEMCPY3D {
        nothing(self.width, self.count, self.slices)
    }
}

/// A part of an array, innermost dimension first.
#[derive(Clone, Copy)]
struct Part {
    origin: [usize; 3],
    extents: [usize; 3],
}

impl Part {
    fn all(shape: &ArrayShape) -> Part {
        Part {
            origin: [0; 3],
            extents: shape.whole(),
        }
    }

    /// `origin` and `extents` are outermost first, as the shape.
    fn new(shape: &ArrayShape, origin: &[usize], extents: &[usize]) -> Result<Part, ArrayError> {
        let whole = shape.extents();
        let inside = origin.len() == whole.len()
            && extents.len() == whole.len()
            && origin
                .iter()
                .zip(extents)
                .zip(whole)
                .all(|((origin, extent), whole)| {
                    origin.checked_add(*extent).is_some_and(|end| end <= *whole)
                });
        if !inside {
            return Err(rule(format!(
                "{extents:?} elements from {origin:?} on do not lie within an array of shape {whole:?}"
            )));
        }
        let mut part = Part {
            origin: [0; 3],
            extents: [1; 3],
        };
        // Layers of one dimension are slices of one row.
        let layered_rows = shape.descriptor()[1] == 0 && whole.len() == 2;
        for (at, (origin, extent)) in origin.iter().rev().zip(extents.iter().rev()).enumerate() {
            let axis = if layered_rows && at == 1 { 2 } else { at };
            part.origin[axis] = *origin;
            part.extents[axis] = *extent;
        }
        Ok(part)
    }

    fn len(&self) -> usize {
        self.extents.iter().product()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn same_length(&self, len: usize) -> Result<(), ArrayError> {
        if self.len() == len {
            return Ok(());
        }
        Err(rule(format!(
            "the part has {} elements, and {len} are given",
            self.len()
        )))
    }

    fn copy<T>(&self) -> sys::CUDA_MEMCPY3D {
        let [width, height, depth] = self.extents;
        nothing(width * size_of::<T>(), height, depth)
    }
}

/// A copy of so much from nowhere to nowhere.
fn nothing(width_in_bytes: usize, height: usize, depth: usize) -> sys::CUDA_MEMCPY3D {
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: std::ptr::null_mut(),
        dstDevice: 0,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: width_in_bytes,
        Height: height,
        Depth: depth,
    }
}

impl<T> fmt::Debug for CudaArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaArray")
            .field("shape", &self.shape)
            .field("device", &self.memory.device())
            .finish_non_exhaustive()
    }
}
