//! The tile of a tensor map, and the rules that it and its array keep.
//!
//! They are those of [`cuTensorMapEncodeTiled`], whose only answer is that some argument is not valid.
//!
//! [`cuTensorMapEncodeTiled`]: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TENSOR__MEMORY.html

use super::TensorElement;

/// The size of the tiles that a [`TensorMap`](super::TensorMap) copies, and how.
///
/// An array of sizes, outermost dimension first, is one without more: `[8, 32]`.
///
/// ```
/// use gridcall::{L2Promotion, OobFill, Swizzle, Tile};
///
/// let tile = Tile::new([64, 32])
///     .swizzle(Swizzle::Bytes128)
///     .l2_promotion(L2Promotion::Bytes256)
///     .oob_fill(OobFill::Nan);
/// # let _ = tile;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Tile<const N: usize> {
    pub(super) sizes: [u32; N],
    pub(super) element_strides: [u32; N],
    pub(super) interleave: Interleave,
    pub(super) swizzle: Swizzle,
    pub(super) l2_promotion: L2Promotion,
    pub(super) oob_fill: OobFill,
}

/// How channels lie beside each other in the array: `CUtensorMapInterleave`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interleave {
    /// They do not.
    #[default]
    None = 0,
    /// In slices of 16 bytes, as in `NC/8HWC8` of 2-byte elements.
    Bytes16 = 1,
    /// In slices of 32 bytes.
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

impl<const N: usize> Tile<N> {
    /// Tiles of these sizes, outermost dimension first.
    pub const fn new(sizes: [u32; N]) -> Tile<N> {
        Tile {
            sizes,
            element_strides: [1; N],
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            l2_promotion: L2Promotion::None,
            oob_fill: OobFill::Zeros,
        }
    }

    /// Of every so many elements along a dimension one is copied, 1 to 8; outermost first.
    pub const fn element_strides(mut self, strides: [u32; N]) -> Tile<N> {
        self.element_strides = strides;
        self
    }

    /// How channels are interleaved.
    pub const fn interleave(mut self, interleave: Interleave) -> Tile<N> {
        self.interleave = interleave;
        self
    }

    /// How the bytes are exchanged in shared memory.
    pub const fn swizzle(mut self, swizzle: Swizzle) -> Tile<N> {
        self.swizzle = swizzle;
        self
    }

    /// How many bytes are fetched into the L2 cache at once.
    pub const fn l2_promotion(mut self, promotion: L2Promotion) -> Tile<N> {
        self.l2_promotion = promotion;
        self
    }

    /// What a tile holds beyond the array's ends.
    pub const fn oob_fill(mut self, fill: OobFill) -> Tile<N> {
        self.oob_fill = fill;
        self
    }

    /// The first rule that is not kept.
    pub(super) fn check<T: TensorElement>(
        &self,
        pointer: u64,
        extents: &[usize],
        strides: &[isize],
    ) -> Result<(), String> {
        self.check_rank()?;
        self.check_address(pointer)?;
        check_extents(extents)?;
        self.check_strides::<T>(extents, strides)?;
        self.check_sizes::<T>()?;
        self.check_swizzle::<T>()?;
        if self.oob_fill == OobFill::Nan && !T::IS_FLOAT {
            return Err(
                "a NaN can fill only what is of floating-point elements; leave `oob_fill` out"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn check_rank(&self) -> Result<(), String> {
        match (N, self.interleave) {
            (0 | 6.., _) => Err(format!(
                "a tensor map has 1 to 5 dimensions, and this tile has {N}; join dimensions that lie one after another"
            )),
            (1 | 2, Interleave::Bytes16 | Interleave::Bytes32) => Err(format!(
                "interleaved arrays have 3 to 5 dimensions, and this has {N}; leave `interleave` out"
            )),
            _ => Ok(()),
        }
    }

    fn check_address(&self, pointer: u64) -> Result<(), String> {
        let needed = self.slice();
        if pointer.is_multiple_of(needed) {
            return Ok(());
        }
        let found = 1_u64 << pointer.trailing_zeros();
        Err(format!(
            "the array begins at an address that is aligned to {found} bytes only, a tensor map needs {needed}; map the whole buffer, and give the kernel coordinates within"
        ))
    }

    fn check_strides<T: TensorElement>(
        &self,
        extents: &[usize],
        strides: &[isize],
    ) -> Result<(), String> {
        if let (Some(&stride), Some(&extent)) = (strides.last(), extents.last())
            && stride != 1
            && extent > 1
        {
            return Err(format!(
                "the innermost dimension, {}, has a stride of {stride} elements, and a tensor map needs 1; make the array contiguous along it, or exchange dimensions",
                N - 1
            ));
        }
        let needed = i128::from(self.slice());
        for (dimension, &stride) in strides.iter().enumerate().take(N - 1) {
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

    fn check_sizes<T: TensorElement>(&self) -> Result<(), String> {
        for (dimension, &size) in self.sizes.iter().enumerate() {
            if size == 0 || size > 256 {
                return Err(format!(
                    "the tile has {size} elements along dimension {dimension}, and 1 to 256 are possible"
                ));
            }
        }
        for (dimension, &stride) in self.element_strides.iter().enumerate() {
            if stride == 0 || stride > 8 {
                return Err(format!(
                    "the element stride of dimension {dimension} is {stride}, and 1 to 8 are possible"
                ));
            }
        }
        let bytes = self.inner_bytes::<T>();
        if self.interleave == Interleave::None && !bytes.is_multiple_of(16) {
            return Err(format!(
                "a row of the tile has {bytes} bytes, and a tensor map needs a multiple of 16; take a multiple of {} elements along the innermost dimension",
                16 / size_of::<T>()
            ));
        }
        Ok(())
    }

    fn check_swizzle<T: TensorElement>(&self) -> Result<(), String> {
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
        let bytes = self.inner_bytes::<T>();
        if self.interleave == Interleave::None && bytes > most {
            return Err(format!(
                "a row of the tile has {bytes} bytes, and a swizzle of {most} bytes allows {most}; take at most {} elements along the innermost dimension",
                most / size_of::<T>()
            ));
        }
        Ok(())
    }

    fn inner_bytes<T>(&self) -> usize {
        self.sizes
            .last()
            .map_or(0, |&size| size as usize * size_of::<T>())
    }

    /// What addresses and strides are multiples of, in bytes.
    fn slice(&self) -> u64 {
        match self.interleave {
            Interleave::Bytes32 => 32,
            _ => 16,
        }
    }
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

impl<const N: usize> From<[u32; N]> for Tile<N> {
    fn from(sizes: [u32; N]) -> Tile<N> {
        Tile::new(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTER: u64 = 0x7000;

    fn check<const N: usize>(
        tile: impl Into<Tile<N>>,
        extents: [usize; N],
        strides: [isize; N],
    ) -> Result<(), String> {
        tile.into().check::<f32>(POINTER, &extents, &strides)
    }

    fn error<const N: usize>(
        tile: impl Into<Tile<N>>,
        extents: [usize; N],
        strides: [isize; N],
    ) -> String {
        check(tile, extents, strides).unwrap_err()
    }

    #[test]
    fn what_keeps_the_rules() {
        assert_eq!(check([8, 32], [100, 64], [64, 1]), Ok(()));
        assert_eq!(check([256], [1], [7]), Ok(()));
        assert_eq!(
            check([1, 1, 1, 256, 4], [9, 8, 7, 6, 5], [0, 0, 0, 8, 1]),
            Ok(())
        );
        let tile = Tile::new([8, 32])
            .swizzle(Swizzle::Bytes128)
            .oob_fill(OobFill::Nan);
        assert_eq!(check(tile, [100, 64], [64, 1]), Ok(()));
        let tile = Tile::new([8, 2, 4])
            .interleave(Interleave::Bytes32)
            .swizzle(Swizzle::Bytes32);
        assert_eq!(check(tile, [100, 64, 8], [512, 8, 1]), Ok(()));
    }

    #[test]
    fn each_rule_has_its_words() {
        for (found, words) in [
            (
                error([1; 6], [1; 6], [1; 6]),
                "1 to 5 dimensions, and this tile has 6",
            ),
            (
                error(
                    Tile::new([8, 32]).interleave(Interleave::Bytes16),
                    [9, 64],
                    [64, 1],
                ),
                "interleaved arrays have 3 to 5 dimensions, and this has 2",
            ),
            (
                error([8, 32], [0, 64], [64, 1]),
                "dimension 0 of the array has 0 elements",
            ),
            (
                error([8, 32], [9, 1 << 33], [64, 1]),
                "dimension 1 of the array has 8589934592",
            ),
            (
                error([8, 32], [64, 9], [1, 64]),
                "the innermost dimension, 1, has a stride of 64 elements, and a tensor map needs 1",
            ),
            (
                error([8, 32], [9, 63], [63, 1]),
                "dimension 0 has a stride of 252 bytes, and a tensor map needs a multiple of 16 below 2^40",
            ),
            (
                error([8, 32], [9, 64], [-64, 1]),
                "dimension 0 has a stride of -256 bytes",
            ),
            (error([8, 32], [9, 64], [1 << 40, 1]), "below 2^40"),
            (
                error([8, 0], [9, 64], [64, 1]),
                "0 elements along dimension 1, and 1 to 256",
            ),
            (
                error([257, 4], [9, 64], [64, 1]),
                "257 elements along dimension 0",
            ),
            (
                error(Tile::new([8, 32]).element_strides([9, 1]), [9, 64], [64, 1]),
                "the element stride of dimension 0 is 9, and 1 to 8",
            ),
            (
                error([8, 5], [9, 64], [64, 1]),
                "a row of the tile has 20 bytes, and a tensor map needs a multiple of 16; take a multiple of 4",
            ),
            (
                error(
                    Tile::new([8, 32]).swizzle(Swizzle::Bytes64),
                    [9, 64],
                    [64, 1],
                ),
                "has 128 bytes, and a swizzle of 64 bytes allows 64; take at most 16 elements",
            ),
            (
                error(
                    Tile::new([8, 2, 4]).interleave(Interleave::Bytes32),
                    [9, 64, 8],
                    [512, 8, 1],
                ),
                "goes with a swizzle of 32 bytes alone",
            ),
        ] {
            assert!(found.contains(words), "{found}");
        }
        let tile: Tile<1> = [4].into();
        let found = tile.check::<f32>(POINTER + 4, &[64], &[1]).unwrap_err();
        assert!(
            found.contains("aligned to 4 bytes only, a tensor map needs 16"),
            "{found}"
        );
        let tile = Tile::new([4]).oob_fill(OobFill::Nan);
        let found = tile.check::<u32>(POINTER, &[64], &[1]).unwrap_err();
        assert!(
            found.contains("only what is of floating-point elements"),
            "{found}"
        );
    }
}
