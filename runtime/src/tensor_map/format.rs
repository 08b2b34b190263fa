//! How a tensor map lays out what it copies, and the rules that it and its array keep.
//!
//! They are those of [`cuTensorMapEncodeTiled`] and [`cuTensorMapEncodeIm2col`], whose only answer is that some
//! argument is not valid.
//!
//! [`cuTensorMapEncodeTiled`]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html
//! [`cuTensorMapEncodeIm2col`]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html

use super::TensorElement;

/// How channels lie beside each other in the array: `CUtensorMapInterleave`.
///
/// An interleaved array is given in the shape in which it lies, with the slice as its innermost dimension, which
/// is not one of the map's: a kernel names no coordinate for it, and whole slices are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interleave {
    /// They do not.
    #[default]
    None = 0,
    /// In slices of 16 bytes: `NC/8HWC8` of 2-byte elements is an array `[n, c / 8, h, w, 8]`.
    Bytes16 = 1,
    /// In slices of 32 bytes: `NC/16HWC16` of 2-byte elements is an array `[n, c / 16, h, w, 16]`.
    Bytes32 = 2,
}

/// How the bytes of a tile are exchanged in shared memory, so that threads that read a column meet
/// different banks: `CUtensorMapSwizzle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Swizzle {
    /// Not at all.
    #[default]
    None = 0,
    /// Within 32 bytes.
    Bytes32 = 1,
    /// Within 64 bytes.
    Bytes64 = 2,
    /// Within 128 bytes.
    Bytes128 = 3,
}

/// How many bytes are fetched into the L2 cache at once: `CUtensorMapL2promotion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum L2Promotion {
    /// As many as are needed.
    #[default]
    None = 0,
    /// 64.
    Bytes64 = 1,
    /// 128.
    Bytes128 = 2,
    /// 256.
    Bytes256 = 3,
}

/// What a tile holds beyond the array's ends: `CUtensorMapFloatOOBfill`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OobFill {
    /// Zeros.
    #[default]
    Zeros = 0,
    /// A NaN that a multiplication and addition takes for 0; of floating-point elements alone.
    Nan = 1,
}

/// What tiles and boxes of pixels have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) interleave: Interleave,
    pub(super) swizzle: Swizzle,
    pub(super) l2_promotion: L2Promotion,
    pub(super) oob_fill: OobFill,
}

impl Format {
    /// The rules about the array, of which `rank` dimensions are mapped.
    pub(super) fn check_array<T: TensorElement>(
        self,
        pointer: u64,
        extents: &[usize],
        strides: &[isize],
    ) -> Result<(), String> {
        self.check_rank(extents)?;
        self.check_address(pointer)?;
        check_extents(extents)?;
        self.check_strides::<T>(extents, strides)?;
        if self.oob_fill == OobFill::Nan && !T::IS_FLOAT {
            return Err(
                "a NaN can fill only what is of floating-point elements; leave `oob_fill` out"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// How many of the array's dimensions are the map's: all but the slice of an interleaved one.
    pub(super) fn mapped(self, extents: usize) -> usize {
        match self.slice_bytes() {
            Some(_) => extents.saturating_sub(1),
            None => extents,
        }
    }

    fn check_rank(self, extents: &[usize]) -> Result<(), String> {
        match (self.mapped(extents.len()), self.interleave) {
            (rank @ (0 | 6..), _) => Err(format!(
                "a tensor map has 1 to 5 dimensions, and this tile has {rank}; join dimensions that lie one after another"
            )),
            (rank @ (1 | 2), Interleave::Bytes16 | Interleave::Bytes32) => Err(format!(
                "interleaved arrays have 3 to 5 dimensions and one of slices, and this has {rank} without; leave `interleave` out"
            )),
            _ => Ok(()),
        }
    }

    fn check_address(self, pointer: u64) -> Result<(), String> {
        let needed = self.unit();
        if pointer.is_multiple_of(needed) {
            return Ok(());
        }
        let found = 1_u64 << pointer.trailing_zeros();
        Err(format!(
            "the array begins at an address that is aligned to {found} bytes only, a tensor map needs {needed}; map the whole buffer, and give the kernel coordinates within"
        ))
    }

    fn check_strides<T: TensorElement>(
        self,
        extents: &[usize],
        strides: &[isize],
    ) -> Result<(), String> {
        let inner = extents.len() - 1;
        if let (Some(&stride), Some(&extent)) = (strides.last(), extents.last())
            && stride != 1
            && extent > 1
        {
            return Err(format!(
                "the innermost dimension, {inner}, has a stride of {stride} elements, and a tensor map needs 1; make the array contiguous along it, or exchange dimensions"
            ));
        }
        if let Some(slice) = self.slice_bytes() {
            let bytes = extents[inner].saturating_mul(size_of::<T>());
            if bytes != slice {
                return Err(format!(
                    "the innermost dimension, {inner}, has {bytes} bytes, and the slices of this interleaved array have {slice}; give it a shape that ends with {} elements",
                    slice / size_of::<T>()
                ));
            }
            let next = (strides[inner - 1] as i128) * (size_of::<T>() as i128);
            if next != slice as i128 && extents[inner - 1] > 1 {
                return Err(format!(
                    "dimension {} has a stride of {next} bytes, and the slices of an interleaved array follow one another, {slice} bytes apart",
                    inner - 1
                ));
            }
        }
        let needed = i128::from(self.unit());
        let outer = self.mapped(extents.len()) - 1;
        for (dimension, &stride) in strides.iter().enumerate().take(outer) {
            let bytes = (stride as i128) * (size_of::<T>() as i128);
            let fits = (0..1 << 40).contains(&bytes) && bytes % needed == 0;
            if !fits {
                return Err(format!(
                    "dimension {dimension} has a stride of {bytes} bytes, and a tensor map needs a multiple of {needed} below 2^40; pad the rows of the array"
                ));
            }
        }
        Ok(())
    }

    /// The rules about what is copied along the innermost dimension, which is a `row` of the tile.
    pub(super) fn check_row<T: TensorElement>(
        self,
        elements: u32,
        row: &str,
    ) -> Result<(), String> {
        let bytes = elements as usize * size_of::<T>();
        if !bytes.is_multiple_of(16) {
            return Err(format!(
                "{row} has {bytes} bytes, and a tensor map needs a multiple of 16; take a multiple of {} elements along the innermost dimension",
                16 / size_of::<T>()
            ));
        }
        if self.interleave == Interleave::Bytes32 && self.swizzle != Swizzle::Bytes32 {
            return Err(
                "interleaving by 32 bytes goes with a swizzle of 32 bytes alone; write `.swizzle(Swizzle::Bytes32)`"
                    .to_owned(),
            );
        }
        let most = match self.swizzle {
            Swizzle::None => return Ok(()),
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        };
        if self.interleave == Interleave::None && bytes > most {
            return Err(format!(
                "{row} has {bytes} bytes, and a swizzle of {most} bytes allows {most}; take at most {} elements along the innermost dimension",
                most / size_of::<T>()
            ));
        }
        Ok(())
    }

    /// What addresses and strides are multiples of, in bytes.
    fn unit(self) -> u64 {
        match self.interleave {
            Interleave::Bytes32 => 32,
            _ => 16,
        }
    }

    /// The bytes of channels that lie beside each other, if the array is interleaved.
    pub(super) fn slice_bytes(self) -> Option<usize> {
        match self.interleave {
            Interleave::None => None,
            Interleave::Bytes16 => Some(16),
            Interleave::Bytes32 => Some(32),
        }
    }
}

/// The rule about the tile as a whole: no more than a multiprocessor has of shared memory.
pub(super) fn check_size<T>(sizes: &[u32]) -> Result<(), String> {
    const MOST: u64 = 228 << 10;
    let bytes = sizes.iter().fold(size_of::<T>() as u64, |bytes, &size| {
        bytes.saturating_mul(u64::from(size))
    });
    if bytes > MOST {
        return Err(format!(
            "the tile has {bytes} bytes, and a tensor map takes {MOST} at most; take fewer elements"
        ));
    }
    Ok(())
}

/// The rule about element strides.
pub(super) fn check_steps(steps: &[u32]) -> Result<(), String> {
    for (dimension, &step) in steps.iter().enumerate() {
        if step == 0 || step > 8 {
            return Err(format!(
                "the element stride of dimension {dimension} is {step}, and 1 to 8 are possible"
            ));
        }
    }
    Ok(())
}

fn check_extents(extents: &[usize]) -> Result<(), String> {
    for (dimension, &extent) in extents.iter().enumerate() {
        if extent == 0 || extent as u64 > 1 << 32 {
            return Err(format!(
                "dimension {dimension} of the array has {extent} elements, and a tensor map takes 1 to 4294967296"
            ));
        }
    }
    Ok(())
}

/// A stride in bytes, once it is found to be within the rules.
pub(super) fn byte_stride<T>(stride: isize) -> u64 {
    let stride = u64::try_from(stride).unwrap_or(0);
    stride.saturating_mul(size_of::<T>() as u64)
}
