//! The shapes of CUDA arrays, and what a device allows of them.

use cudarc::driver::{CudaContext, DriverError, sys::CUdevice_attribute as Attribute};

/// The shape of a [`CudaArray`](crate::CudaArray), outermost dimension first, and what kernels do with it.
///
/// ```
/// use gridcall::ArrayShape;
///
/// let image = ArrayShape::new([480, 640]);         // 480 rows of 640 elements
/// let volume = ArrayShape::new([32, 480, 640]);    // 32 slices
/// let frames = ArrayShape::layered([32, 480, 640]); // 32 images, between which nothing is filtered
/// let drawn = ArrayShape::new([480, 640]).with_surface(); // that kernels write, too
/// assert_eq!(image.extents(), [480, 640]);
/// assert_eq!(frames.len(), volume.len());
/// # let _ = drawn;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ArrayShape {
    extents: [usize; 3],
    rank: usize,
    kind: Kind,
    surface: bool,
    gather: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Layered,
    Cubemap,
    LayeredCubemap,
}

/// `CUDA_ARRAY3D_LAYERED` and its kin.
const LAYERED: u32 = 0x01;
const SURFACE_LDST: u32 = 0x02;
const CUBEMAP: u32 = 0x04;
const TEXTURE_GATHER: u32 = 0x08;

/// Extents of one to three dimensions.
pub trait Extents {
    /// All three, and how many they are.
    #[doc(hidden)]
    fn padded(self) -> ([usize; 3], usize);
}

macro_rules! extents {
    ($($rank:literal),+) => {$(
        impl Extents for [usize; $rank] {
            fn padded(self) -> ([usize; 3], usize) {
                let mut extents = [1; 3];
                extents[..$rank].copy_from_slice(&self);
                (extents, $rank)
            }
        }
    )+};
}

extents!(1, 2, 3);

impl ArrayShape {
    /// An array of one, two or three dimensions: `[width]`, `[height, width]`, `[depth, height, width]`.
    pub fn new(extents: impl Extents) -> ArrayShape {
        ArrayShape::of(extents, Kind::Plain)
    }

    /// Layers of one or two dimensions: `[layers, width]`, `[layers, height, width]`.
    ///
    /// ```compile_fail
    /// let _ = gridcall::ArrayShape::layered([8]); // no layers
    /// ```
    pub fn layered<const N: usize>(extents: [usize; N]) -> ArrayShape
    where
        [usize; N]: Extents,
    {
        const { assert!(N == 2 || N == 3, "layers have one or two dimensions") };
        ArrayShape::of(extents, Kind::Layered)
    }

    /// Six squares, the faces of a cube: +x, -x, +y, -y, +z, -z.
    ///
    /// ```
    /// assert_eq!(gridcall::ArrayShape::cubemap(64).extents(), [6, 64, 64]);
    /// ```
    pub fn cubemap(width: usize) -> ArrayShape {
        ArrayShape::of([6, width, width], Kind::Cubemap)
    }

    /// Layers of six squares each, one behind another.
    ///
    /// ```
    /// assert_eq!(gridcall::ArrayShape::layered_cubemap(2, 64).extents(), [12, 64, 64]);
    /// ```
    pub fn layered_cubemap(layers: usize, width: usize) -> ArrayShape {
        let faces = layers.saturating_mul(6);
        ArrayShape::of([faces, width, width], Kind::LayeredCubemap)
    }

    fn of(extents: impl Extents, kind: Kind) -> ArrayShape {
        let (extents, rank) = extents.padded();
        ArrayShape {
            extents,
            rank,
            kind,
            surface: false,
            gather: false,
        }
    }

    /// Kernels load and store it as a surface, too (`CUDA_ARRAY3D_SURFACE_LDST`).
    ///
    /// ```
    /// assert!(gridcall::ArrayShape::new([64]).with_surface().has_surface());
    /// ```
    pub const fn with_surface(mut self) -> ArrayShape {
        self.surface = true;
        self
    }

    /// Kernels read the four elements around a point at once, `tex2Dgather` (`CUDA_ARRAY3D_TEXTURE_GATHER`); in two
    /// dimensions alone.
    ///
    /// ```
    /// let shape = gridcall::ArrayShape::new([64, 64]).with_gather();
    /// # let _ = shape;
    /// ```
    pub const fn with_gather(mut self) -> ArrayShape {
        self.gather = true;
        self
    }

    /// Whether it was made [`with_surface`](Self::with_surface).
    #[must_use]
    pub const fn has_surface(&self) -> bool {
        self.surface
    }

    /// Whether it is of layers, also of cubemaps.
    #[must_use]
    pub const fn is_layered(&self) -> bool {
        matches!(self.kind, Kind::Layered | Kind::LayeredCubemap)
    }

    /// Whether it is a cubemap, or layers of such.
    #[must_use]
    pub const fn is_cubemap(&self) -> bool {
        matches!(self.kind, Kind::Cubemap | Kind::LayeredCubemap)
    }

    /// The extents, outermost first, layers and faces among them.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        &self.extents[..self.rank]
    }

    /// The number of elements; `usize::MAX` if that is too small for it.
    #[must_use]
    pub fn len(&self) -> usize {
        let extents = self.extents().iter();
        extents.fold(1_usize, |len, extent| len.saturating_mul(*extent))
    }

    /// Whether there are no elements; an array always has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Width, height and depth as copies have them: one where there is none.
    pub(super) fn whole(&self) -> [usize; 3] {
        let [width, height, depth] = self.descriptor();
        [width, height.max(1), depth.max(1)]
    }

    /// Width, height and depth as the driver has them: zero where there is none.
    pub(super) fn descriptor(&self) -> [usize; 3] {
        match (self.extents(), self.kind) {
            (&[layers, width], Kind::Layered) => [width, 0, layers],
            (&[width], _) => [width, 0, 0],
            (&[height, width], _) => [width, height, 0],
            (&[depth, height, width], _) => [width, height, depth],
            _ => [0; 3],
        }
    }

    pub(super) fn flags(&self) -> u32 {
        let kind = match self.kind {
            Kind::Plain => 0,
            Kind::Layered => LAYERED,
            Kind::Cubemap => CUBEMAP,
            Kind::LayeredCubemap => CUBEMAP | LAYERED,
        };
        let surface = if self.surface { SURFACE_LDST } else { 0 };
        let gather = if self.gather { TEXTURE_GATHER } else { 0 };
        kind | surface | gather
    }

    /// What it is in words.
    pub(super) fn words(&self) -> &'static str {
        match (self.kind, self.rank) {
            (Kind::Plain, 1) => "an array of one dimension",
            (Kind::Plain, 2) => "an array of two dimensions",
            (Kind::Plain, _) => "an array of three dimensions",
            (Kind::Layered, 2) => "layers of one dimension",
            (Kind::Layered, _) => "layers of two dimensions",
            (Kind::Cubemap, _) => "a cubemap",
            (Kind::LayeredCubemap, _) => "layers of cubemaps",
        }
    }

    /// The rule of the device that it breaks, if it does.
    #[expect(clippy::too_many_lines, reason = "a table of the driver's names")]
    pub(super) fn check(&self, context: &CudaContext) -> Result<Option<String>, DriverError> {
        use Attribute as A;
        let extents = self.extents();
        if self.is_empty() {
            return Ok(Some(format!(
                "the shape is {extents:?}, and an array has at least one element along each dimension"
            )));
        }
        if self.gather && (self.kind, self.rank) != (Kind::Plain, 2) {
            return Ok(Some(format!(
                "`with_gather` is for arrays of two dimensions, and this is {}",
                self.words()
            )));
        }
        // Outermost first, as extents are.
        let texture: &[A] = match (self.kind, self.rank) {
            (Kind::Plain, 1) => &[A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH],
            (Kind::Plain, 2) if self.gather => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
            ],
            (Kind::Plain, 2) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
            ],
            (Kind::Plain, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
            ],
            (Kind::Layered, 2) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
            ],
            (Kind::Layered, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
            ],
            (Kind::Cubemap, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH,
            ],
            (Kind::LayeredCubemap, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
            ],
        };
        let alternate = [
            A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
            A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
            A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
        ];
        let surface: &[A] = match (self.kind, self.rank) {
            (Kind::Plain, 1) => &[A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH],
            (Kind::Plain, 2) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,
            ],
            (Kind::Plain, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,
            ],
            (Kind::Layered, 2) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,
            ],
            (Kind::Layered, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
            ],
            (Kind::Cubemap, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH,
            ],
            (Kind::LayeredCubemap, _) => &[
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
                A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
            ],
        };
        let most = limits(context, texture)?;
        let fits = |most: &[usize]| {
            extents
                .iter()
                .zip(most)
                .all(|(extent, most)| extent <= most)
        };
        let volume = self.kind == Kind::Plain && self.rank == 3;
        let fits_otherwise = volume && fits(&limits(context, &alternate)?);
        if !(fits(&most) || fits_otherwise) {
            return Ok(Some(format!(
                "the shape is {extents:?}, and {} has at most {most:?} on this device",
                self.words()
            )));
        }
        if self.surface {
            let most = limits(context, surface)?;
            if !fits(&most) {
                return Ok(Some(format!(
                    "the shape is {extents:?}, and {} with a surface has at most {most:?} on this device",
                    self.words()
                )));
            }
        }
        Ok(None)
    }
}

fn limits(context: &CudaContext, attributes: &[Attribute]) -> Result<Vec<usize>, DriverError> {
    let limit = |attribute: &Attribute| {
        let value = context.attribute(*attribute)?;
        Ok(usize::try_from(value).unwrap_or(0))
    };
    attributes.iter().map(limit).collect()
}

impl<E: Extents> From<E> for ArrayShape {
    fn from(extents: E) -> ArrayShape {
        ArrayShape::new(extents)
    }
}
