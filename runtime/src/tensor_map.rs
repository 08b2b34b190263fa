//! Tensor maps: what the tensor memory accelerator copies tiles of an array by.

mod element;
mod tile;

use std::{ffi::c_void, fmt, ptr};

use gridcall_view::{AsDeviceView, AsDeviceViewMut, Guard, Layout, StreamRef, View, ViewError};

pub use self::{
    element::TensorElement,
    tile::{Interleave, L2Promotion, OobFill, Swizzle, Tile},
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
/// shape, outermost first. (The coordinates of the instruction are counted the other way round.)
///
/// ```no_run
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
    #[error("cuTensorMapEncodeTiled failed: {code}; the array is {array}, the tile {tile}")]
    Driver {
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
    /// bytes.
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
        let (descriptor, shape) = encode::<T, N>(&view, &tile.into())?;
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
    /// As [`TensorMap::tiled`]; and if the array is lent for reading alone, or several of its indices
    /// may be one element.
    pub fn tiled<A: AsDeviceViewMut<T>, const N: usize>(
        array: &'a mut A,
        tile: impl Into<Tile<N>>,
    ) -> Result<TensorMapMut<'a, T>, TensorMapError> {
        let view = array
            .describe_strided_mut()
            .map_err(TensorMapErrorKind::View)?;
        if view.is_read_only() {
            let error = gridcall_view::ViewErrorKind::ReadOnly.into();
            return Err(TensorMapErrorKind::View(error).into());
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
        let (descriptor, shape) = encode::<T, N>(&view, &tile.into())?;
        Ok(TensorMapMut {
            descriptor,
            shape,
            array,
        })
    }
}

/// Checks all that the driver asks for, and has it write the descriptor.
fn encode<T: TensorElement, const N: usize>(
    view: &View<'_>,
    tile: &Tile<N>,
) -> Result<(Descriptor, Shape), TensorMapError> {
    let flat = ([view.len()], [1_isize]);
    let (extents, strides) = match view.layout() {
        Layout::Contiguous => (&flat.0[..], &flat.1[..]),
        Layout::Strided { shape, strides } => (shape, strides),
        _ => {
            let error = ViewError::other("the array's layout is not known");
            return Err(TensorMapErrorKind::View(error).into());
        }
    };
    if extents.len() != N || strides.len() != N {
        let cure = match view.layout() {
            Layout::Contiguous => "give it a shape: `Shaped::new(&array, [..])`",
            _ => "name a size for each dimension",
        };
        return Err(TensorMapErrorKind::Rank {
            tile: N,
            array: extents.len(),
            cure,
        }
        .into());
    }
    tile.check::<T>(view.pointer(), extents, strides)
        .map_err(TensorMapErrorKind::Rule)?;
    let driver = driver().map_err(TensorMapErrorKind::Load)?;
    let Some(encode_tiled) = driver.tensor_map_encode_tiled else {
        return Err(TensorMapErrorKind::OldDriver.into());
    };
    let (mut dims, mut byte_strides) = ([0_u64; MOST], [0_u64; MOST]);
    let (mut sizes, mut steps) = ([0_u32; MOST], [0_u32; MOST]);
    // The driver counts from the innermost dimension on, and takes its stride for granted.
    for inner in 0..N {
        let outer = N - 1 - inner;
        dims[inner] = extents[outer] as u64;
        sizes[inner] = tile.sizes[outer];
        steps[inner] = tile.element_strides[outer];
        if inner > 0 {
            byte_strides[inner - 1] = tile::byte_stride::<T>(strides[outer]);
        }
    }
    let mut descriptor = Descriptor([0; 16]);
    // At most 5, and an address of the device is one of the host's size.
    let rank = u32::try_from(N).unwrap_or(u32::MAX);
    let address = usize::try_from(view.pointer()).unwrap_or(usize::MAX);
    let address = ptr::without_provenance_mut::<c_void>(address);
    // SAFETY: the descriptor has the size and alignment of the driver's; the arrays hold as many
    // numbers as the rank, and one less of strides. The address is only written down.
    let code = unsafe {
        encode_tiled(
            (&raw mut descriptor).cast(),
            T::DATA_TYPE,
            rank,
            address,
            dims.as_ptr(),
            byte_strides.as_ptr(),
            sizes.as_ptr(),
            steps.as_ptr(),
            tile.interleave as u32,
            tile.swizzle as u32,
            tile.l2_promotion as u32,
            tile.oob_fill as u32,
        )
    };
    const NOT_SUPPORTED: DriverCode = DriverCode(801);
    match code.result() {
        Ok(()) => {}
        Err(NOT_SUPPORTED) => return Err(TensorMapErrorKind::OldDriver.into()),
        Err(code) => {
            return Err(TensorMapErrorKind::Driver {
                code,
                array: format!("{extents:?} with strides {strides:?} in elements"),
                tile: format!("{:?}", tile.sizes),
            }
            .into());
        }
    }
    let mut shape = Shape {
        pointer: view.pointer(),
        rank: N,
        extents: [1; MOST],
        tile: [1; MOST],
    };
    shape.extents[..N].copy_from_slice(extents);
    shape.tile[..N].copy_from_slice(&tile.sizes);
    Ok((descriptor, shape))
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

    /// The elements of a tile along a dimension, outermost first; 0 along one that there is not.
    #[must_use]
    pub fn tile(self, dimension: Int) -> Int {
        let tile = &self.0.shape.tile[..self.0.shape.rank];
        let size = dimension.index().and_then(|at| tile.get(at));
        size.map_or(Int::new(0), |&size| Int::from(size))
    }

    /// What a message shows of it.
    #[must_use]
    pub fn shape(self) -> String {
        let Shape {
            rank,
            extents,
            tile,
            ..
        } = self.0.shape;
        format!("{:?} in tiles of {:?}", &extents[..*rank], &tile[..*rank])
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
        .field("tile", &&shape.tile[..shape.rank])
        .finish_non_exhaustive()
}
