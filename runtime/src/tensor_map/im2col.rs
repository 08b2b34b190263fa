//! The box of pixels of an im2col tensor map.

use super::{
    TensorElement,
    format::{Format, Interleave, L2Promotion, OobFill, Swizzle, check_size, check_steps},
};

/// What a tensor map copies for a convolution as a product of matrices: of `pixels` pixels in a row
/// `channels` channels, where each pixel is that which one weight of the filter meets.
///
/// The array holds images, then one to three dimensions of pixels, then channels: `[n, h, w, c]` for
/// `Im2col<2>`. The kernel names the image, a pixel and a channel, and the place of the weight in the filter as
/// an offset to the pixel. From there on pixels are taken one after another, row by row and image by
/// image, from a box that begins `lower` pixels from the first pixel and ends `upper` pixels from the
/// last: outside of it lies no pixel that a filter is applied to. What is beyond the image is filled.
///
/// ```
/// use gridcall::{Im2col, Swizzle};
///
/// // A filter of 3 x 3 on images with a margin of one pixel: 64 pixels, 32 channels of each.
/// let pixels = Im2col::new(64, 32).window([3, 3], [1, 1]).swizzle(Swizzle::Bytes64);
/// assert_eq!(pixels, Im2col::new(64, 32).lower([-1, -1]).upper([-1, -1]).swizzle(Swizzle::Bytes64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Im2col<const S: usize> {
    pub(super) pixels: u32,
    pub(super) channels: u32,
    pub(super) lower: [i32; S],
    pub(super) upper: [i32; S],
    pub(super) strides: [u32; S],
    pub(super) format: Format,
}

impl<const S: usize> Im2col<S> {
    /// So many pixels, and so many channels of each, of a box that is the whole image.
    pub const fn new(pixels: u32, channels: u32) -> Im2col<S> {
        Im2col {
            pixels,
            channels,
            lower: [0; S],
            upper: [0; S],
            strides: [1; S],
            format: Format {
                interleave: Interleave::None,
                swizzle: Swizzle::None,
                l2_promotion: L2Promotion::None,
                oob_fill: OobFill::Zeros,
            },
        }
    }

    /// Where the box begins, in pixels from the first one; outermost dimension first.
    pub const fn lower(mut self, corner: [i32; S]) -> Im2col<S> {
        self.lower = corner;
        self
    }

    /// Where the box ends, in pixels from the last one; outermost dimension first.
    pub const fn upper(mut self, corner: [i32; S]) -> Im2col<S> {
        self.upper = corner;
        self
    }

    /// The box of the pixels at which a filter begins, that is moved over an image with a margin: `lower` is
    /// the margin before the image, and `upper` what is left of it after the filter's last pixel.
    pub const fn window(mut self, filter: [i32; S], margin: [i32; S]) -> Im2col<S> {
        let mut at = 0;
        while at < S {
            self.lower[at] = margin[at].saturating_neg();
            self.upper[at] = margin[at].saturating_sub(filter[at].saturating_sub(1));
            at += 1;
        }
        self
    }

    /// Of every so many pixels along a dimension one is taken, 1 to 8; outermost first.
    pub const fn strides(mut self, strides: [u32; S]) -> Im2col<S> {
        self.strides = strides;
        self
    }

    /// How channels are interleaved; a pixel is then one slice of them.
    pub const fn interleave(mut self, interleave: Interleave) -> Im2col<S> {
        self.format.interleave = interleave;
        self
    }

    /// How the bytes are exchanged in shared memory.
    pub const fn swizzle(mut self, swizzle: Swizzle) -> Im2col<S> {
        self.format.swizzle = swizzle;
        self
    }

    /// How many bytes are fetched into the L2 cache at once.
    pub const fn l2_promotion(mut self, promotion: L2Promotion) -> Im2col<S> {
        self.format.l2_promotion = promotion;
        self
    }

    /// What lies beyond the images.
    pub const fn oob_fill(mut self, fill: OobFill) -> Im2col<S> {
        self.format.oob_fill = fill;
        self
    }

    /// The first rule that is not kept by an array of `S + 2` dimensions, and one of slices if it is
    /// interleaved.
    pub(super) fn check<T: TensorElement>(
        &self,
        pointer: u64,
        extents: &[usize],
        strides: &[isize],
    ) -> Result<(), String> {
        if !(1..=3).contains(&S) {
            return Err(format!(
                "an im2col map has 1 to 3 dimensions of pixels, and this has {S}"
            ));
        }
        self.format.check_array::<T>(pointer, extents, strides)?;
        // Images come first, and slices of channels next to them.
        let first = self.first();
        let most = [1 << 15, 1 << 7, 1 << 4][S - 1];
        for at in 0..S {
            let (low, high) = (self.lower[at], self.upper[at]);
            let fits = |corner: i32| (-most..most).contains(&corner);
            if !fits(low) || !fits(high) {
                return Err(format!(
                    "the box of pixels begins at {low} and ends at {high} along dimension {}, and {} to {} are possible",
                    first + at,
                    -most,
                    most - 1
                ));
            }
            let extent = extents.get(first + at).copied().unwrap_or(0);
            let extent = i64::try_from(extent).unwrap_or(i64::MAX);
            if extent > i64::from(i32::MAX) {
                return Err(format!(
                    "dimension {} of the array has {extent} pixels, and an im2col map takes 1 to {}",
                    first + at,
                    i32::MAX
                ));
            }
            if extent + i64::from(high) <= i64::from(low) {
                return Err(format!(
                    "the box of pixels begins at {low} and ends at {high} along dimension {}, of {extent}: it is empty",
                    first + at
                ));
            }
        }
        if self.pixels == 0 || self.pixels > 1024 {
            return Err(format!(
                "{} pixels are to be copied, and 1 to 1024 are possible",
                self.pixels
            ));
        }
        if self.channels == 0 || self.channels > 256 {
            return Err(format!(
                "{} channels are to be copied, and 1 to 256 are possible",
                self.channels
            ));
        }
        if let Some(slice) = self.format.slice_bytes()
            && self.channels as usize * size_of::<T>() != slice
        {
            return Err(format!(
                "{} channels are to be copied, and of an interleaved array a slice is, of {}",
                self.channels,
                slice / size_of::<T>()
            ));
        }
        check_size::<T>(&[self.pixels, self.channels])?;
        check_steps(&self.strides)?;
        self.format.check_row::<T>(self.channels, "a pixel")
    }

    /// The first dimension of pixels in the array's shape.
    pub(super) fn first(&self) -> usize {
        if self.format.slice_bytes().is_some() {
            2
        } else {
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTER: u64 = 0x7000;

    fn check(pixels: Im2col<2>) -> Result<(), String> {
        pixels.check::<f32>(POINTER, &[2, 9, 10, 8], &[720, 80, 8, 1])
    }

    #[test]
    fn what_keeps_the_rules() {
        assert_eq!(check(Im2col::new(64, 8)), Ok(()));
        assert_eq!(check(Im2col::new(1024, 4).window([3, 5], [1, 2])), Ok(()));
        assert_eq!(
            check(Im2col::new(1, 8).lower([-128, 9]).upper([127, 0])),
            Ok(())
        );
        let line = Im2col::new(8, 4).lower([-32768]).upper([32767]);
        assert_eq!(line.check::<f32>(POINTER, &[2, 9, 8], &[72, 8, 1]), Ok(()));
        let sliced = Im2col::<2>::new(8, 4).interleave(Interleave::Bytes16);
        let (shape, strides) = ([2, 3, 9, 10, 4], [1080, 360, 40, 4, 1]);
        assert_eq!(sliced.check::<f32>(POINTER, &shape, &strides), Ok(()));
    }

    #[test]
    fn each_rule_has_its_words() {
        for (pixels, words) in [
            (
                Im2col::new(0, 8),
                "0 pixels are to be copied, and 1 to 1024 are possible",
            ),
            (Im2col::new(1025, 8), "1025 pixels"),
            (
                Im2col::new(8, 0),
                "0 channels are to be copied, and 1 to 256 are possible",
            ),
            (Im2col::new(8, 257), "257 channels"),
            (
                Im2col::new(8, 5),
                "a pixel has 20 bytes, and a tensor map needs a multiple of 16",
            ),
            (
                Im2col::new(8, 16).swizzle(Swizzle::Bytes32),
                "a pixel has 64 bytes, and a swizzle of 32 bytes allows 32",
            ),
            (
                Im2col::new(8, 8).lower([-129, 0]),
                "begins at -129 and ends at 0 along dimension 1, and -128 to 127 are possible",
            ),
            (
                Im2col::new(8, 8).upper([0, -10]),
                "begins at 0 and ends at -10 along dimension 2, of 10: it is empty",
            ),
            (
                Im2col::new(8, 8).strides([1, 9]),
                "the element stride of dimension 1 is 9",
            ),
        ] {
            let found = check(pixels).unwrap_err();
            assert!(found.contains(words), "{found}");
        }
        let found = Im2col::<2>::new(8, 8)
            .interleave(Interleave::Bytes16)
            .check::<f32>(POINTER, &[2, 3, 9, 10, 4], &[1080, 360, 40, 4, 1])
            .unwrap_err();
        assert!(
            found.contains("of an interleaved array a slice is, of 4"),
            "{found}"
        );
    }
}
