//! The tile of a tensor map.

use super::{
    TensorElement,
    format::{Format, Interleave, L2Promotion, OobFill, Swizzle, check_size, check_steps},
};

/// The size of the tiles that a [`TensorMap`](super::TensorMap) copies, and how.
///
/// An array of sizes, outermost dimension first, is one without more: `[8, 32]`. Of an interleaved array
/// ([`Interleave`]) it counts the slices, of which one is copied, and has no size for what is in one.
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
    pub(super) format: Format,
}

impl<const N: usize> Tile<N> {
    /// Tiles of these sizes, outermost dimension first.
    pub const fn new(sizes: [u32; N]) -> Tile<N> {
        Tile {
            sizes,
            element_strides: [1; N],
            format: Format {
                interleave: Interleave::None,
                swizzle: Swizzle::None,
                l2_promotion: L2Promotion::None,
                oob_fill: OobFill::Zeros,
            },
        }
    }

    /// Of every so many elements along a dimension one is copied, 1 to 8; outermost first.
    pub const fn element_strides(mut self, strides: [u32; N]) -> Tile<N> {
        self.element_strides = strides;
        self
    }

    /// How channels are interleaved.
    pub const fn interleave(mut self, interleave: Interleave) -> Tile<N> {
        self.format.interleave = interleave;
        self
    }

    /// How the bytes are exchanged in shared memory.
    pub const fn swizzle(mut self, swizzle: Swizzle) -> Tile<N> {
        self.format.swizzle = swizzle;
        self
    }

    /// How many bytes are fetched into the L2 cache at once.
    pub const fn l2_promotion(mut self, promotion: L2Promotion) -> Tile<N> {
        self.format.l2_promotion = promotion;
        self
    }

    /// What a tile holds beyond the array's ends.
    pub const fn oob_fill(mut self, fill: OobFill) -> Tile<N> {
        self.format.oob_fill = fill;
        self
    }

    /// The first rule that is not kept.
    pub(super) fn check<T: TensorElement>(
        &self,
        pointer: u64,
        extents: &[usize],
        strides: &[isize],
    ) -> Result<(), String> {
        self.format.check_array::<T>(pointer, extents, strides)?;
        for (dimension, &size) in self.sizes.iter().enumerate() {
            if size == 0 || size > 256 {
                return Err(format!(
                    "the tile has {size} elements along dimension {dimension}, and 1 to 256 are possible"
                ));
            }
        }
        if self.format.slice_bytes().is_some()
            && let Some(&slices) = self.sizes.get(1)
            && slices != 1
        {
            return Err(format!(
                "the tile has {slices} slices of channels along dimension 1, and one is copied at a time"
            ));
        }
        check_size::<T>(&self.sizes)?;
        check_steps(&self.element_strides)?;
        self.format
            .check_row::<T>(self.sizes.last().copied().unwrap_or(0), "a row of the tile")
    }
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

    fn interleaved(extents: [usize; 4], strides: [isize; 4]) -> String {
        Tile::new([8, 1, 4])
            .interleave(Interleave::Bytes32)
            .check::<f32>(POINTER, &extents, &strides)
            .unwrap_err()
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
        let tile = Tile::new([8, 1, 4])
            .interleave(Interleave::Bytes32)
            .swizzle(Swizzle::Bytes32);
        assert_eq!(
            tile.check::<f32>(POINTER, &[9, 2, 64, 8], &[1024, 512, 8, 1]),
            Ok(())
        );
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
                "interleaved arrays have 3 to 5 dimensions and one of slices, and this has 1 without",
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
                interleaved([9, 2, 64, 8], [1024, 512, 8, 1]),
                "goes with a swizzle of 32 bytes alone",
            ),
            (
                interleaved([9, 2, 64, 4], [512, 256, 4, 1]),
                "dimension, 3, has 16 bytes, and the slices of this interleaved array have 32; give it a shape that ends with 8",
            ),
            (
                interleaved([9, 2, 64, 8], [2048, 1024, 16, 1]),
                "dimension 2 has a stride of 64 bytes, and the slices of an interleaved array follow one another, 32 bytes apart",
            ),
        ] {
            assert!(found.contains(words), "{found}");
        }
        let found = Tile::new([8, 2, 4])
            .interleave(Interleave::Bytes32)
            .check::<f32>(POINTER, &[9, 2, 64, 8], &[1024, 512, 8, 1])
            .unwrap_err();
        assert!(
            found.contains("2 slices of channels along dimension 1, and one is copied at a time"),
            "{found}"
        );
        let found = error([256, 256], [256, 256], [256, 1]);
        assert!(
            found.contains("the tile has 262144 bytes, and a tensor map takes 233472 at most"),
            "{found}"
        );
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
