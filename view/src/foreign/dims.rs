//! Shape and strides, in place for as many dimensions as arrays mostly have.

/// Extents and strides in elements, of one length.
#[derive(Clone, Debug)]
pub(crate) struct Dims {
    rank: usize,
    shape: [usize; FEW],
    strides: [isize; FEW],
    /// Of more than `FEW` dimensions.
    many: Option<Box<(Vec<usize>, Vec<isize>)>>,
}

const FEW: usize = 5;

impl Dims {
    /// The dimensions that `dim` gives for each index, slowest first.
    #[inline]
    pub(crate) fn new<E>(
        rank: usize,
        mut dim: impl FnMut(usize) -> Result<(usize, isize), E>,
    ) -> Result<Dims, E> {
        let mut dims = Dims {
            rank,
            shape: [0; FEW],
            strides: [0; FEW],
            many: None,
        };
        if rank > FEW {
            let mut many = (Vec::with_capacity(rank), Vec::with_capacity(rank));
            for index in 0..rank {
                let (extent, stride) = dim(index)?;
                many.0.push(extent);
                many.1.push(stride);
            }
            dims.many = Some(Box::new(many));
            return Ok(dims);
        }
        for index in 0..rank {
            (dims.shape[index], dims.strides[index]) = dim(index)?;
        }
        Ok(dims)
    }

    /// The dimensions of contiguous elements in row-major order.
    pub(crate) fn row_major(shape: &[usize]) -> Dims {
        let mut strides = vec![1_isize; shape.len()];
        for index in (1..shape.len()).rev() {
            // Where this saturates the array is empty or its length was refused.
            let extent = isize::try_from(shape[index].max(1)).unwrap_or(isize::MAX);
            strides[index - 1] = strides[index].saturating_mul(extent);
        }
        let dims = Dims::new(shape.len(), |index| {
            Ok::<_, std::convert::Infallible>((shape[index], strides[index]))
        });
        let Ok(dims) = dims;
        dims
    }

    #[inline(always)]
    pub(crate) fn shape(&self) -> &[usize] {
        match &self.many {
            None => &self.shape[..self.rank],
            Some(many) => &many.0,
        }
    }

    #[inline(always)]
    pub(crate) fn strides(&self) -> &[isize] {
        match &self.many {
            None => &self.strides[..self.rank],
            Some(many) => &many.1,
        }
    }

    /// The number of elements, if it is a number.
    #[inline]
    pub(crate) fn len(&self) -> Option<usize> {
        let mut len = 1_usize;
        let mut overflow = false;
        for &extent in self.shape() {
            if extent == 0 {
                return Some(0);
            }
            let (product, over) = len.overflowing_mul(extent);
            len = product;
            overflow |= over;
        }
        (!overflow).then_some(len)
    }

    /// How far the elements reach before and behind the first, in elements. `None` if that is no
    /// number, or there are none.
    #[inline]
    pub(crate) fn reach(&self) -> Option<(isize, isize)> {
        let (mut below, mut above) = (0_isize, 0_isize);
        for (&extent, &stride) in self.shape().iter().zip(self.strides()) {
            let steps = isize::try_from(extent.checked_sub(1)?).ok()?;
            let end = steps.checked_mul(stride)?;
            if end < 0 {
                below = below.checked_add(end)?;
            } else {
                above = above.checked_add(end)?;
            }
        }
        Some((below, above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(shape: &[usize], strides: &[isize]) -> Dims {
        let Ok(dims) = Dims::new(shape.len(), |index| {
            Ok::<_, std::convert::Infallible>((shape[index], strides[index]))
        });
        dims
    }

    #[test]
    fn few_and_many_dimensions_are_kept_alike() {
        for rank in 0..12 {
            let shape: Vec<usize> = (0..rank).map(|n| n + 2).collect();
            let strides: Vec<isize> = shape.iter().map(|&n| -n.cast_signed()).collect();
            let dims = dims(&shape, &strides);
            assert_eq!(dims.shape(), shape);
            assert_eq!(dims.strides(), strides);
            assert_eq!(dims.len(), Some(shape.iter().product()));
        }
    }

    #[test]
    fn the_length_of_nothing_is_zero_whatever_the_rest() {
        assert_eq!(dims(&[usize::MAX, usize::MAX, 0], &[1; 3]).len(), Some(0));
        assert_eq!(dims(&[usize::MAX, 2], &[1; 2]).len(), None);
        assert_eq!(dims(&[], &[]).len(), Some(1));
    }

    #[test]
    fn the_reach_counts_both_directions() {
        assert_eq!(dims(&[3, 4], &[-10, 2]).reach(), Some((-20, 6)));
        assert_eq!(dims(&[3], &[isize::MAX]).reach(), None);
        assert_eq!(dims(&[3, 0], &[1, 1]).reach(), None);
        assert_eq!(dims(&[5], &[0]).reach(), Some((0, 0)));
    }

    #[test]
    fn row_major_strides_ignore_the_slowest_extent() {
        assert_eq!(Dims::row_major(&[7, 3, 5]).strides(), [15, 5, 1]);
        assert_eq!(Dims::row_major(&[7, 0, 5]).strides(), [5, 5, 1]);
        assert_eq!(Dims::row_major(&[]).strides(), [0_isize; 0]);
    }
}
