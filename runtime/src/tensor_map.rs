//! Tensor maps: what the tensor memory accelerator copies tiles of an array by.

mod element;
mod format;
mod im2col;
mod tile;

use std::{ffi::c_void, fmt, ptr};

use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, Layout, StreamRef, View, ViewError};

use self::format::{Format, byte_stride};
pub use self::{
    element::TensorElement,
    format::{Interleave, L2Promotion, OobFill, Swizzle},
    im2col::Im2col,
    tile::Tile,
};
use crate::{
    arg::KernelArg,
    call::{Call, Purpose, Span},
    contract::Int,
    driver::{DriverCode, driver},
    error::LoadError,
    kernel::NoView,
    layout::{ArgLayout, Class},
    strided,
};

/// A tensor map of an array that the kernel reads: `const __grid_constant__ CUtensorMap` in CUDA C++,
/// by which a kernel copies tiles of the array to shared memory (`cp.async.bulk.tensor`, devices of
/// compute capability 9.0 and later).
///
/// It borrows the array, and a launch that takes it is a use of the array as any other: in order, and
/// kept from being freed. The kernel is declared with `TensorMap<T>`; a contract may speak of the
/// array's dimensions and the tile's, `map.extent(0)` and `map.tile(0)`, counted as in the array's
/// shape, outermost first. (The coordinates of the instruction are counted the other way round.) Of an
/// im2col map, the tile has the pixels and the channels.
///
/// ```
/// use gridcall::{Shaped, Swizzle, TensorMap, Tile, kernel};
///
/// #[kernel(ptx = "../kernels/tensor_map.ptx")]
/// unsafe extern "C" {
///     /// out ← the tile at (row, column)
///     #[requires(map.tile(0) == 8, map.tile(1) == 32, out.len() >= 256, grid.blocks() == 1)]
///     #[block(256)]
///     safe fn load_tile(map: TensorMap<f32>, out: &mut [f32], row: i32, column: i32);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let stream = gridcall::device(0)?.default_stream();
/// let array = stream.alloc_zeros::<f32>(1000 * 500)?;
/// let matrix = Shaped::new(&array, [1000, 500]);
/// let map = TensorMap::tiled(&matrix, [8, 32])?;
/// let mut out = stream.alloc_zeros::<f32>(256)?;
/// load_tile(&stream, (1, 256), &map, &mut out, 16, 32)?;
///
/// // With more than the size of a tile:
/// let swizzled = TensorMap::tiled(&matrix, Tile::new([8, 32]).swizzle(Swizzle::Bytes128))?;
/// # let _ = swizzled;
/// # Ok(())
/// # }
/// ```
pub struct TensorMap<'a, T> {
    descriptor: Descriptor,
    shape: Shape,
    array: &'a dyn AsDeviceView<T>,
}

/// A tensor map of an array that the kernel writes; see [`TensorMap`].
///
/// It borrows the array for writing. What the kernel copies to the array and what it reduces into it
/// are written alike; a kernel may read it, too.
pub struct TensorMapMut<'a, T> {
    descriptor: Descriptor,
    shape: Shape,
    array: &'a mut dyn AsDeviceViewMut<T>,
}

/// What a kernel takes for a `TensorMap<T>`: a [`TensorMap`], or a pointer to one.
///
/// # Safety
///
/// The descriptor must be that of the array that the implementation describes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor map of `{T}`",
    label = "expected a tensor map of `{T}`",
    note = "make one of a device array: `TensorMap::tiled(&array, [8, 32])?`"
)]
pub unsafe trait AsTensorMap<T>: AsDeviceView<T> {
    /// What the kernel gets.
    #[doc(hidden)]
    fn parts(&self) -> (&Descriptor, &Shape);
}

/// What a kernel takes for a `TensorMapMut<T>`: a [`TensorMapMut`], or a `&mut` to one.
///
/// # Safety
///
/// As for [`AsTensorMap`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor map for writing `{T}`",
    label = "expected a tensor map for writing `{T}`",
    note = "make one of a device array: `TensorMapMut::tiled(&mut array, [8, 32])?`"
)]
pub unsafe trait AsTensorMapMut<T>: AsDeviceViewMut<T> {
    /// What the kernel gets.
    #[doc(hidden)]
    fn parts(&self) -> (&Descriptor, &Shape);
}

/// `CUtensorMap`: 128 bytes that only the device reads.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Descriptor([u64; 16]);

// SAFETY: the driver's struct has this size and alignment, and no padding.
unsafe impl KernelArg for Descriptor {
    const LAYOUT: ArgLayout = ArgLayout {
        size: 128,
        align: 64,
        class: Class::Bytes,
        // Of an array that the launch describes and acquires.
        has_pointer: false,
        kind: "",
        name: "",
        fields: &[],
    };

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) {
        // SAFETY: the caller provides room for the size of the layout, at any alignment.
        unsafe { to.cast::<Descriptor>().write_unaligned(*self) }
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x?}", self.0)
    }
}

/// The dimensions of a mapped array and of its tile, outermost first.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pointer: u64,
    rank: usize,
    extents: [usize; MOST],
    tile_rank: usize,
    tile: [u32; MOST],
}

/// So many dimensions has a tensor map at most.
const MOST: usize = 5;

/// Why an array cannot be mapped.
///
/// One word, so that a `Result` of it costs nothing on success.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct TensorMapError(Box<TensorMapErrorKind>);

/// What a [`TensorMapError`] is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorMapErrorKind {
    /// The array says so.
    #[error("{0}")]
    View(ViewError),
    /// There is no driver.
    #[error("{0}")]
    Load(LoadError),
    /// The driver has no tensor maps.
    #[error("this driver makes no tensor maps, which it does since CUDA 12.0: update it")]
    OldDriver,
    /// The tile has another number of dimensions than the array.
    #[error("the tile has {tile} dimensions, the array has {array}: {cure}")]
    Rank {
        /// The dimensions of the tile.
        tile: usize,
        /// The dimensions of the array.
        array: usize,
        /// What to do.
        cure: &'static str,
    },
    /// A rule of tensor maps is not kept.
    #[error("{0}")]
    Rule(String),
    /// The driver refused the map.
    #[error("{function} failed: {code}; the array is {array}, the tile {tile}")]
    Driver {
        /// The function that was called.
        function: &'static str,
        /// The driver's answer.
        code: DriverCode,
        /// The array's shape and strides.
        array: String,
        /// The tile, as it was asked for.
        tile: String,
    },
}

impl TensorMapError {
    /// What the error is about.
    #[must_use]
    pub fn kind(&self) -> &TensorMapErrorKind {
        &self.0
    }
}

impl From<TensorMapErrorKind> for TensorMapError {
    #[cold]
    fn from(kind: TensorMapErrorKind) -> TensorMapError {
        TensorMapError(Box::new(kind))
    }
}

/// The same text as `Display`: it is what a `main` that returns the error shows.
impl fmt::Debug for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'a, T: TensorElement> TensorMap<'a, T> {
    /// Maps an array in tiles of this size, outermost dimension first.
    ///
    /// The innermost dimension of the array is contiguous; the others lie at whatever multiples of 16
    /// bytes. A kernel names the tile's first element; along the innermost dimension that lies at a multiple of
    /// 16 bytes, or the kernel is stopped (`CUDA_ERROR_ILLEGAL_INSTRUCTION`), unless the array is interleaved.
    ///
    /// # Errors
    ///
    /// If the array cannot be described, the array or the tile breaks a rule of the driver's
    /// ([`cuTensorMapEncodeTiled`]), or the driver has no tensor maps.
    ///
    /// [`cuTensorMapEncodeTiled`]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html
    pub fn tiled<A: AsDeviceView<T>, const N: usize>(
        array: &'a A,
        tile: impl Into<Tile<N>>,
    ) -> Result<TensorMap<'a, T>, TensorMapError> {
        let view = array.describe_strided().map_err(TensorMapErrorKind::View)?;
        let (descriptor, shape) = encode_tiled::<T, N>(&view, &tile.into())?;
        Ok(TensorMap {
            descriptor,
            shape,
            array,
        })
    }

    /// Maps images for a convolution: an array of images, rows of pixels, and channels, of which a kernel
    /// copies pixels by `cp.async.bulk.tensor` with `.im2col`.
    ///
    /// The channels are contiguous; the other dimensions lie at whatever multiples of 16 bytes.
    ///
    /// ```
    /// use gridcall::{Im2col, Shaped, TensorMap};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let stream = gridcall::device(0)?.default_stream();
    /// let array = stream.alloc_zeros::<f32>(2 * 9 * 10 * 8)?;
    /// let images = Shaped::new(&array, [2, 9, 10, 8]);
    /// // A filter of 3 x 3 with a margin of one pixel: 16 pixels, all 8 channels of each.
    /// let map = TensorMap::im2col(&images, Im2col::new(16, 8).window([3, 3], [1, 1]))?;
    /// # let _ = map;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`TensorMap::tiled`], by the rules of [`cuTensorMapEncodeIm2col`].
    ///
    /// [`cuTensorMapEncodeIm2col`]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html
    pub fn im2col<A: AsDeviceView<T>, const S: usize>(
        array: &'a A,
        pixels: Im2col<S>,
    ) -> Result<TensorMap<'a, T>, TensorMapError> {
        let view = array.describe_strided().map_err(TensorMapErrorKind::View)?;
        let (descriptor, shape) = encode_im2col::<T, S>(&view, &pixels)?;
        Ok(TensorMap {
            descriptor,
            shape,
            array,
        })
    }
}

impl<'a, T: TensorElement> TensorMapMut<'a, T> {
    /// Maps an array that the kernel writes; see [`TensorMap::tiled`].
    ///
    /// # Errors
    ///
    /// As [`TensorMap::tiled`]; and if the array is lent for reading alone, several of its indices may be one
    /// element, or its rows are no multiples of 16 bytes: a device writes 16 bytes at once, those behind the end of a
    /// row too.
    pub fn tiled<A: AsDeviceViewMut<T>, const N: usize>(
        array: &'a mut A,
        tile: impl Into<Tile<N>>,
    ) -> Result<TensorMapMut<'a, T>, TensorMapError> {
        let view = writable(array)?;
        let (descriptor, shape) = encode_tiled::<T, N>(&view, &tile.into())?;
        Ok(TensorMapMut {
            descriptor,
            shape,
            array,
        })
    }

    /// Maps images that the kernel writes by `cp.async.bulk.tensor` with `.im2col_no_offs`; see
    /// [`TensorMap::im2col`].
    ///
    /// # Errors
    ///
    /// As [`TensorMapMut::tiled`]; and if the box of pixels does not begin at the first one or ends beyond the last
    /// one, which a device takes for reading alone.
    pub fn im2col<A: AsDeviceViewMut<T>, const S: usize>(
        array: &'a mut A,
        pixels: Im2col<S>,
    ) -> Result<TensorMapMut<'a, T>, TensorMapError> {
        if pixels.lower != [0; S] {
            return Err(TensorMapErrorKind::Rule(format!(
                "the kernel writes to it, and the box of pixels begins at {:?}: a device writes only from the first pixel \
                 on; leave `lower` out",
                pixels.lower
            ))
            .into());
        }
        if pixels.upper.iter().any(|corner| *corner > 0) {
            return Err(TensorMapErrorKind::Rule(format!(
                "the kernel writes to it, and the box of pixels ends at {:?}: a device writes no further than to the \
                 last pixel; take nothing above 0",
                pixels.upper
            ))
            .into());
        }
        let view = writable(array)?;
        let (descriptor, shape) = encode_im2col::<T, S>(&view, &pixels)?;
        Ok(TensorMapMut {
            descriptor,
            shape,
            array,
        })
    }
}

/// Describes an array that a kernel writes: each of its indices is an element of its own, and its rows are
/// whole sixteens of bytes.
fn writable<T, A: AsDeviceViewMut<T>>(array: &A) -> Result<View<'_>, TensorMapError> {
    let view = array
        .describe_strided_mut()
        .map_err(TensorMapErrorKind::View)?;
    if view.is_read_only() {
        let error = gridcall_view::ViewErrorKind::ReadOnly.into();
        return Err(TensorMapErrorKind::View(error).into());
    }
    let row = match view.layout() {
        Layout::Strided { shape, .. } => shape.last().copied().unwrap_or(1),
        _ => view.len(),
    };
    let bytes = row.saturating_mul(size_of::<T>());
    if !bytes.is_multiple_of(16) {
        return Err(TensorMapErrorKind::Rule(format!(
            "the kernel writes to it, and its innermost dimension has {bytes} bytes: a device writes 16 at once, those \
             behind the end too; map an array whose rows are padded, with their padding"
        ))
        .into());
    }
    if let Layout::Strided { shape, strides } = view.layout() {
        let extents: Vec<i64> = shape
            .iter()
            .map(|&n| i64::try_from(n).unwrap_or(i64::MAX))
            .collect();
        let strides: Vec<i64> = strides.iter().map(|&n| n as i64).collect();
        if !view.is_empty() && strided::may_share(&extents, &strides) {
            return Err(TensorMapErrorKind::Rule(format!(
                "the kernel writes to it, and several of its indices may be one element: shape {shape:?}, strides {strides:?} in elements; map a copy that has all of its elements"
            ))
            .into());
        }
    }
    Ok(view)
}

/// An array as it is mapped, in the driver's order: innermost dimension first.
struct Mapped<'v> {
    pointer: u64,
    extents: &'v [usize],
    strides: &'v [isize],
    rank: usize,
    dims: [u64; MOST],
    byte_strides: [u64; MOST],
}

/// The shape and strides of an array, in elements.
fn layout<'v>(
    view: &'v View<'_>,
    flat: &'v ([usize; 1], [isize; 1]),
) -> Result<(&'v [usize], &'v [isize]), TensorMapError> {
    match view.layout() {
        Layout::Contiguous => Ok((&flat.0[..], &flat.1[..])),
        Layout::Strided { shape, strides } => Ok((shape, strides)),
        _ => {
            let error = ViewError::other("the array's layout is not known");
            Err(TensorMapErrorKind::View(error).into())
        }
    }
}

impl<'v> Mapped<'v> {
    /// The array, whose rank and rules were checked.
    fn new<T>(
        pointer: u64,
        extents: &'v [usize],
        strides: &'v [isize],
        format: Format,
    ) -> Mapped<'v> {
        let rank = format.mapped(extents.len()).min(MOST);
        let (mut dims, mut byte_strides) = ([0_u64; MOST], [0_u64; MOST]);
        // The driver takes the innermost stride for granted.
        for inner in 0..rank {
            let outer = rank - 1 - inner;
            dims[inner] = extents[outer] as u64;
            if inner > 0 {
                byte_strides[inner - 1] = byte_stride::<T>(strides[outer]);
            }
        }
        Mapped {
            pointer,
            extents,
            strides,
            rank,
            dims,
            byte_strides,
        }
    }

    /// The rank and the address as the driver takes them.
    fn place(&self) -> (u32, *mut c_void) {
        // At most 5, and an address of the device is one of the host's size.
        let rank = u32::try_from(self.rank).unwrap_or(u32::MAX);
        let address = usize::try_from(self.pointer).unwrap_or(usize::MAX);
        (rank, ptr::without_provenance_mut::<c_void>(address))
    }

    /// What is kept of the map, if the driver made it.
    fn made(
        &self,
        code: DriverCode,
        function: &'static str,
        descriptor: Descriptor,
        tile: &[u32],
    ) -> Result<(Descriptor, Shape), TensorMapError> {
        const NOT_SUPPORTED: DriverCode = DriverCode(801);
        match code.result() {
            Ok(()) => {}
            Err(NOT_SUPPORTED) => return Err(TensorMapErrorKind::OldDriver.into()),
            Err(code) => {
                return Err(TensorMapErrorKind::Driver {
                    function,
                    code,
                    array: format!(
                        "{:?} with strides {:?} in elements",
                        self.extents, self.strides
                    ),
                    tile: format!("{tile:?}"),
                }
                .into());
            }
        }
        let mut shape = Shape {
            pointer: self.pointer,
            rank: self.rank,
            extents: [1; MOST],
            tile_rank: tile.len().min(MOST),
            tile: [1; MOST],
        };
        shape.extents[..self.rank].copy_from_slice(&self.extents[..self.rank]);
        shape.tile[..shape.tile_rank].copy_from_slice(&tile[..shape.tile_rank]);
        Ok((descriptor, shape))
    }
}

/// The array has not as many dimensions as are mapped.
fn check_rank(
    format: Format,
    extents: &[usize],
    tile: usize,
    is_flat: bool,
    cure: &'static str,
) -> Result<(), TensorMapError> {
    if format.mapped(extents.len()) == tile {
        return Ok(());
    }
    let cure = match (is_flat, format.interleave) {
        (true, _) => "give it a shape: `Shaped::new(&array, [..])`",
        (false, Interleave::None) => cure,
        (false, _) => "the array has one more, the slice of an interleaved array",
    };
    Err(TensorMapErrorKind::Rank {
        tile,
        array: extents.len(),
        cure,
    }
    .into())
}

/// Checks all that the driver asks for, and has it write the descriptor.
fn encode_tiled<T: TensorElement, const N: usize>(
    view: &View<'_>,
    tile: &Tile<N>,
) -> Result<(Descriptor, Shape), TensorMapError> {
    let flat = ([view.len()], [1_isize]);
    let (extents, strides) = layout(view, &flat)?;
    let is_flat = matches!(view.layout(), Layout::Contiguous);
    check_rank(
        tile.format,
        extents,
        N,
        is_flat,
        "name a size for each dimension",
    )?;
    tile.check::<T>(view.pointer(), extents, strides)
        .map_err(TensorMapErrorKind::Rule)?;
    let driver = driver().map_err(TensorMapErrorKind::Load)?;
    let Some(encode_tiled) = driver.tensor_map_encode_tiled else {
        return Err(TensorMapErrorKind::OldDriver.into());
    };
    let array = Mapped::new::<T>(view.pointer(), extents, strides, tile.format);
    let (mut sizes, mut steps) = ([0_u32; MOST], [0_u32; MOST]);
    for inner in 0..N {
        let outer = N - 1 - inner;
        sizes[inner] = tile.sizes[outer];
        steps[inner] = tile.element_strides[outer];
    }
    let mut descriptor = Descriptor([0; 16]);
    let (rank, address) = array.place();
    // SAFETY: the descriptor has the size and alignment of the driver's; the arrays hold as many
    // numbers as the rank, and one less of strides. The address is only written down.
    let code = unsafe {
        encode_tiled(
            (&raw mut descriptor).cast(),
            T::DATA_TYPE,
            rank,
            address,
            array.dims.as_ptr(),
            array.byte_strides.as_ptr(),
            sizes.as_ptr(),
            steps.as_ptr(),
            tile.format.interleave as u32,
            tile.format.swizzle as u32,
            tile.format.l2_promotion as u32,
            tile.format.oob_fill as u32,
        )
    };
    array.made(code, "cuTensorMapEncodeTiled", descriptor, &tile.sizes)
}

/// As [`encode_tiled`], for pixels.
fn encode_im2col<T: TensorElement, const S: usize>(
    view: &View<'_>,
    pixels: &Im2col<S>,
) -> Result<(Descriptor, Shape), TensorMapError> {
    let flat = ([view.len()], [1_isize]);
    let (extents, strides) = layout(view, &flat)?;
    let is_flat = matches!(view.layout(), Layout::Contiguous);
    let cure = "an im2col map is of images, one to three dimensions of pixels, and channels";
    check_rank(pixels.format, extents, S + 2, is_flat, cure)?;
    pixels
        .check::<T>(view.pointer(), extents, strides)
        .map_err(TensorMapErrorKind::Rule)?;
    let driver = driver().map_err(TensorMapErrorKind::Load)?;
    let Some(encode_im2col) = driver.tensor_map_encode_im2col else {
        return Err(TensorMapErrorKind::OldDriver.into());
    };
    let array = Mapped::new::<T>(view.pointer(), extents, strides, pixels.format);
    let (mut lower, mut upper) = ([0_i32; 3], [0_i32; 3]);
    let mut steps = [1_u32; MOST];
    for inner in 0..S.min(3) {
        let outer = S - 1 - inner;
        lower[inner] = pixels.lower[outer];
        upper[inner] = pixels.upper[outer];
        // Channels are innermost, but where slices of them are, which the driver does not count.
        steps[inner + 2 - pixels.first()] = pixels.strides[outer];
    }
    let mut descriptor = Descriptor([0; 16]);
    let (rank, address) = array.place();
    // SAFETY: as in `encode_tiled`; the corners hold as many numbers as there are dimensions of pixels.
    let code = unsafe {
        encode_im2col(
            (&raw mut descriptor).cast(),
            T::DATA_TYPE,
            rank,
            address,
            array.dims.as_ptr(),
            array.byte_strides.as_ptr(),
            lower.as_ptr(),
            upper.as_ptr(),
            pixels.channels,
            pixels.pixels,
            steps.as_ptr(),
            pixels.format.interleave as u32,
            pixels.format.swizzle as u32,
            pixels.format.l2_promotion as u32,
            pixels.format.oob_fill as u32,
        )
    };
    let tile = [pixels.pixels, pixels.channels];
    array.made(code, "cuTensorMapEncodeIm2col", descriptor, &tile)
}

/// A tensor map that a launch has described and checked.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'m> {
    descriptor: &'m Descriptor,
    shape: &'m Shape,
    span: Span,
}

impl<'m> TensorView<'m> {
    /// What the kernel gets.
    #[must_use]
    pub fn value(&self) -> &'m Descriptor {
        self.descriptor
    }

    /// What is looked at for overlaps.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }
}

/// A tensor map, as a contract sees it.
#[derive(Clone, Copy, Debug)]
pub struct TensorOf<'m>(pub TensorView<'m>);

impl TensorOf<'_> {
    /// The number of elements.
    #[must_use]
    pub fn len(self) -> Int {
        self.0.shape.extents[..self.0.shape.rank]
            .iter()
            .fold(Int::new(1), |len, &extent| len * Int::from(extent))
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

    /// The elements of a tile along a dimension, outermost first; 0 along one that there is not. Of an im2col
    /// map these are the pixels and the channels.
    #[must_use]
    pub fn tile(self, dimension: Int) -> Int {
        let tile = &self.0.shape.tile[..self.0.shape.tile_rank];
        let size = dimension.index().and_then(|at| tile.get(at));
        size.map_or(Int::new(0), |&size| Int::from(size))
    }

    /// What a message shows of it.
    #[must_use]
    pub fn shape(self) -> String {
        let Shape {
            rank,
            extents,
            tile_rank,
            tile,
            ..
        } = self.0.shape;
        format!(
            "{:?} in tiles of {:?}",
            &extents[..*rank],
            &tile[..*tile_rank]
        )
    }
}

impl<P: Purpose> Call<'_, P> {
    /// Describes a tensor map that the kernel reads by.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn read_tensor_map<'m, T, M: AsTensorMap<T> + ?Sized>(
        &self,
        index: usize,
        map: &'m M,
    ) -> Result<TensorView<'m>, P::Stop> {
        let (descriptor, shape) = map.parts();
        self.tensor_map::<T>(index, map.describe_strided(), descriptor, shape, false)
    }

    /// Describes a tensor map that the kernel writes by.
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn write_tensor_map<'m, T, M: AsTensorMapMut<T> + ?Sized>(
        &self,
        index: usize,
        map: &'m M,
    ) -> Result<TensorView<'m>, P::Stop> {
        let (descriptor, shape) = map.parts();
        self.tensor_map::<T>(index, map.describe_strided_mut(), descriptor, shape, true)
    }

    fn tensor_map<'m, T>(
        &self,
        index: usize,
        described: Result<View<'_>, ViewError>,
        descriptor: &'m Descriptor,
        shape: &'m Shape,
        written: bool,
    ) -> Result<TensorView<'m>, P::Stop> {
        let view = described.map_err(|error| self.view_error(index, error))?;
        self.check_place(index, 1, &view)?;
        if view.pointer() != shape.pointer {
            let error = ViewError::other("the array has moved since it was mapped");
            return Err(self.view_error(index, error).into());
        }
        let reach = match view.layout() {
            Layout::Strided {
                shape: extents,
                strides,
            } => {
                let extents: Vec<i64> = extents
                    .iter()
                    .map(|&n| i64::try_from(n).unwrap_or(i64::MAX))
                    .collect();
                let strides: Vec<i64> = strides.iter().map(|&n| n as i64).collect();
                strided::reach(&extents, &strides, size_of::<T>(), view.pointer())
            }
            _ => Some((view.pointer(), view.len())),
        };
        let Some((first, len)) = reach else {
            let error = ViewError::other("its strides reach beyond all addresses");
            return Err(self.view_error(index, error).into());
        };
        Ok(TensorView {
            descriptor,
            shape,
            span: self.reaching::<T>(first, len, &view, written)?,
        })
    }
}

// SAFETY: forwards to the array, which is borrowed.
unsafe impl<T> AsDeviceView<T> for TensorMap<'_, T> {
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

// SAFETY: forwards to the array, which is exclusively borrowed.
unsafe impl<T> AsDeviceViewMut<T> for TensorMapMut<'_, T> {
    fn describe_mut(&self) -> Result<View<'_>, ViewError> {
        self.array.describe_mut()
    }

    fn acquire_mut<'a>(&'a mut self, stream: StreamRef<'a>) -> Result<Guard<'a>, ViewError> {
        self.array.acquire_mut(stream)
    }

    fn describe_strided_mut(&self) -> Result<View<'_>, ViewError> {
        self.array.describe_strided_mut()
    }
}

// SAFETY: the descriptor was made of the array.
unsafe impl<T> AsTensorMap<T> for TensorMap<'_, T> {
    fn parts(&self) -> (&Descriptor, &Shape) {
        (&self.descriptor, &self.shape)
    }
}

// SAFETY: the descriptor was made of the array.
unsafe impl<T> AsTensorMapMut<T> for TensorMapMut<'_, T> {
    fn parts(&self) -> (&Descriptor, &Shape) {
        (&self.descriptor, &self.shape)
    }
}

// SAFETY: forwards to `M`.
unsafe impl<T, M: AsTensorMap<T> + ?Sized> AsTensorMap<T> for &M {
    fn parts(&self) -> (&Descriptor, &Shape) {
        (**self).parts()
    }
}

// SAFETY: forwards to `M`.
unsafe impl<T, M: AsTensorMapMut<T> + ?Sized> AsTensorMapMut<T> for &mut M {
    fn parts(&self) -> (&Descriptor, &Shape) {
        (**self).parts()
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsTensorMap<T> for NoView {
    fn parts(&self) -> (&Descriptor, &Shape) {
        match *self {}
    }
}

// SAFETY: there is no value to describe.
unsafe impl<T> AsTensorMapMut<T> for NoView {
    fn parts(&self) -> (&Descriptor, &Shape) {
        match *self {}
    }
}

impl<T> fmt::Debug for TensorMap<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("TensorMap", &self.shape, f)
    }
}

impl<T> fmt::Debug for TensorMapMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("TensorMapMut", &self.shape, f)
    }
}

fn debug(name: &str, shape: &Shape, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name)
        .field("pointer", &format_args!("{:#x}", shape.pointer))
        .field("shape", &&shape.extents[..shape.rank])
        .field("tile", &&shape.tile[..shape.tile_rank])
        .finish_non_exhaustive()
}
