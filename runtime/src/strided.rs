//! Arrays that a kernel takes in their dimensions: pointer, extents and strides by value.
//!
//! [`CUDA_HEADER`] has the other side of it, `gridcall::strided<T, N>`.

use std::{fmt, marker::PhantomData};

use gridcall_view::{AsDeviceView, AsDeviceViewMut, Layout, View, ViewError};

use crate::{
    arg::KernelArg,
    call::{Call, Purpose, Span},
    contract::Int,
    layout::{ArgLayout, Class},
};

/// The CUDA header `gridcall.cuh`: `gridcall::strided<T, N>`, which kernels take for [`Strided`] and
/// [`StridedMut`]. It includes nothing.
///
/// For nvcc it belongs into a folder that is named by `-I`; copy it there once, from here or from
/// `runtime/include` of the repository. A program that compiles its kernels itself gives it to
/// `nvrtc::Program::header`.
///
/// ```
/// let folder = std::env::temp_dir();
/// std::fs::write(folder.join("gridcall.cuh"), gridcall::CUDA_HEADER)?;
/// # std::fs::remove_file(folder.join("gridcall.cuh"))?;
/// # assert!(gridcall::CUDA_HEADER.contains("struct strided"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub const CUDA_HEADER: &str = include_str!("../include/gridcall.cuh");

/// An array of `N` dimensions that the kernel reads, as a parameter of a declaration.
///
/// The kernel takes `gridcall::strided<const T, N>` of the header [`gridcall.cuh`](CUDA_HEADER);
/// the call takes any view of rank `N`, however its elements lie: transposed, sliced, flipped
/// (negative strides) or broadcast (strides of 0). A view that has no shape is one of rank 1;
/// [`Shaped`](crate::Shaped) gives it one.
///
/// In a contract, `x.extent(0)` is the number of elements along a dimension and `x.len()` that of
/// all.
///
/// ```no_run
/// use gridcall::{Shaped, cover, kernel};
///
/// #[kernel(ptx = "../kernels/strided.ptx")]
/// unsafe extern "C" {
///     /// out[i][j] ← in[i][j]
///     #[requires(input.extent(0) == out.extent(0), input.extent(1) == out.extent(1))]
///     safe fn copy_2d(input: Strided<f32, 2>, out: StridedMut<f32, 2>);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let stream = gridcall::device(0)?.default_stream();
/// let matrix = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let mut transposed = stream.alloc_zeros::<f32>(6)?;
/// let input = Shaped::strided(&matrix, 0, [3, 2], [1, 3]);
/// let mut out = Shaped::new(&mut transposed, [3, 2]);
/// copy_2d(&stream, cover((2_u32, 3_u32)), &input, &mut out)?;
/// # Ok(())
/// # }
/// ```
#[repr(C)]
pub struct Strided<T, const N: usize> {
    data: u64,
    extents: [i64; N],
    /// In elements.
    strides: [i64; N],
    elements: PhantomData<fn() -> T>,
}

/// An array of `N` dimensions that the kernel writes, as a parameter of a declaration.
///
/// As [`Strided`]; the kernel takes `gridcall::strided<T, N>`. An array in which two indices are
/// one element, as in one that is broadcast, is refused.
pub type StridedMut<T, const N: usize> = Strided<T, N>;

// SAFETY: the struct of the header has these fields in this order: a pointer and two arrays of
// 8-byte integers, without padding, all of which are written.
unsafe impl<T, const N: usize> KernelArg for Strided<T, N> {
    const LAYOUT: ArgLayout = ArgLayout {
        size: 8 + 16 * N,
        align: 8,
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
        unsafe { to.cast::<Strided<T, N>>().write_unaligned(*self) }
    }
}

/// A strided array that has been described and checked.
#[derive(Clone, Copy, Debug)]
pub struct StridedView<T, const N: usize> {
    value: Strided<T, N>,
    /// All that lies between its first and its last address.
    span: Span,
    len: usize,
}

impl<T, const N: usize> StridedView<T, N> {
    /// What the kernel gets.
    #[must_use]
    #[inline(always)]
    pub fn value(&self) -> &Strided<T, N> {
        &self.value
    }

    /// What is looked at for overlaps.
    #[must_use]
    #[inline(always)]
    pub fn span(&self) -> Span {
        self.span
    }
}

/// The extents of an array, as a message shows them.
#[derive(Clone, Copy, Debug)]
pub struct Shape<const N: usize>([i64; N]);

impl<const N: usize> fmt::Display for Shape<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// A strided array, as a contract sees it.
#[derive(Clone, Copy, Debug)]
pub struct StridedOf<T, const N: usize>(pub StridedView<T, N>);

impl<T, const N: usize> StridedOf<T, N> {
    /// The number of elements.
    #[must_use]
    #[inline(always)]
    pub fn len(self) -> Int {
        Int::from(self.0.len)
    }

    /// Whether there are no elements.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0.len == 0
    }

    /// What a message shows of it.
    #[must_use]
    pub fn shape(self) -> Shape<N> {
        Shape(self.0.value.extents)
    }

    /// The number of elements along a dimension; 0 along one that there is not.
    #[must_use]
    #[inline(always)]
    pub fn extent(self, dimension: Int) -> Int {
        dimension
            .index()
            .and_then(|dimension| self.0.value.extents.get(dimension))
            .map_or(Int::new(0), |&extent| Int::from(extent))
    }
}

impl<P: Purpose> Call<'_, P> {
    /// Describes an array that the kernel reads in its dimensions.
    #[inline]
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn read_strided<T, V: AsDeviceView<T> + ?Sized, const N: usize>(
        &self,
        index: usize,
        align: usize,
        array: &V,
    ) -> Result<StridedView<T, N>, P::Stop> {
        let described = array.describe_strided();
        self.strided(index, align, described, false)
    }

    /// Describes an array that the kernel writes in its dimensions.
    #[inline]
    #[expect(clippy::missing_errors_doc, reason = "called by generated code only")]
    pub fn write_strided<T, V: AsDeviceViewMut<T> + ?Sized, const N: usize>(
        &self,
        index: usize,
        align: usize,
        array: &mut V,
    ) -> Result<StridedView<T, N>, P::Stop> {
        let described = array.describe_strided_mut();
        self.strided(index, align, described, true)
    }

    fn strided<T, const N: usize>(
        &self,
        index: usize,
        align: usize,
        described: Result<View<'_>, ViewError>,
        written: bool,
    ) -> Result<StridedView<T, N>, P::Stop> {
        let view = match described {
            Ok(view) if written && view.is_read_only() => return Err(self.read_only(index).into()),
            Ok(view) => view,
            Err(error) => return Err(self.view_error(index, error).into()),
        };
        self.check_place(index, align, &view)?;
        let (extents, strides) = dims::<N>(&view).map_err(|error| self.view_error(index, error))?;
        if written && !view.is_empty() && may_share(&extents, &strides) {
            let shape = extents.map(i64::cast_unsigned);
            let error = ViewError::other(format!(
                "the kernel writes to it, and several of its indices may be one element: shape {shape:?}, strides {strides:?} in elements; pass a copy that has all of its elements"
            ));
            return Err(self.view_error(index, error).into());
        }
        let reach = reach(&extents, &strides, size_of::<T>(), view.pointer());
        let Some((first, len)) = reach else {
            let error = ViewError::other("its strides reach beyond all addresses");
            return Err(self.view_error(index, error).into());
        };
        Ok(StridedView {
            value: Strided {
                data: view.pointer(),
                extents,
                strides,
                elements: PhantomData,
            },
            span: self.reaching::<T>(first, len, &view, written)?,
            len: view.len(),
        })
    }
}

/// The extents and strides of a view, if it has `N` of each.
fn dims<const N: usize>(view: &View<'_>) -> Result<([i64; N], [i64; N]), ViewError> {
    let flat = ([view.len()], [1_isize]);
    let (shape, strides) = match view.layout() {
        Layout::Contiguous => (&flat.0[..], &flat.1[..]),
        Layout::Strided { shape, strides } => (shape, strides),
        _ => return Err(ViewError::other("the array's layout is not known")),
    };
    if shape.len() != N || strides.len() != N {
        let cure = match view.layout() {
            Layout::Contiguous => "give it a shape: `Shaped::new(array, [..])`",
            _ => "reshape it first",
        };
        return Err(ViewError::other(format!(
            "the kernel takes {N} dimensions, the array has {}: shape {shape:?}; {cure}",
            shape.len()
        )));
    }
    let mut dims = ([0; N], [0; N]);
    for dimension in 0..N {
        // A length that exceeds this has no address.
        dims.0[dimension] = i64::try_from(shape[dimension]).unwrap_or(i64::MAX);
        dims.1[dimension] = strides[dimension] as i64;
    }
    Ok(dims)
}

/// The lowest address, and the number of elements from there to the last.
pub(crate) fn reach(
    extents: &[i64],
    strides: &[i64],
    size: usize,
    pointer: u64,
) -> Option<(u64, usize)> {
    if extents.contains(&0) {
        return Some((pointer, 0));
    }
    let (mut below, mut above) = (0_i64, 0_i64);
    for (&extent, &stride) in extents.iter().zip(strides) {
        let end = (extent - 1).checked_mul(stride)?;
        if end < 0 {
            below = below.checked_add(end)?;
        } else {
            above = above.checked_add(end)?;
        }
    }
    let size = i64::try_from(size).ok()?;
    let first = pointer.checked_add_signed(below.checked_mul(size)?)?;
    let len = above.checked_sub(below)?.checked_add(1)?;
    pointer.checked_add_signed(above.checked_add(1)?.checked_mul(size)?)?;
    Some((first, usize::try_from(len).ok()?))
}

/// Whether two indices may be one element.
///
/// Taken by growing stride, each dimension steps over all that the smaller ones reach, and nothing
/// is shared; this is so of every slice and transposition of an array. Where the last two do not,
/// they are compared exactly; of more, it is not known.
pub(crate) fn may_share(extents: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<(i128, i128)> = extents
        .iter()
        .zip(strides)
        .filter(|(extent, _)| **extent > 1)
        .map(|(&extent, &stride)| (i128::from(stride).abs(), i128::from(extent)))
        .collect();
    dims.sort_unstable();
    // From the largest on, those that step over all the rest can share nothing.
    while let Some((&(stride, _), rest)) = dims.split_last() {
        let reach: i128 = rest
            .iter()
            .map(|(stride, extent)| stride * (extent - 1))
            .sum();
        if stride <= reach {
            break;
        }
        dims.pop();
    }
    match dims.as_slice() {
        [(0, _), ..] | [_, _, _, ..] => true,
        // One alone steps over nothing.
        [] | [_] => false,
        &[(small, few), (large, many)] => {
            // The first multiple of one that is a multiple of the other.
            let divisor = greatest_common_divisor(small, large);
            large / divisor < few && small / divisor < many
        }
    }
}

fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl<T, const N: usize> Clone for Strided<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for Strided<T, N> {}

impl<T, const N: usize> fmt::Debug for Strided<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strided")
            .field("data", &format_args!("{:#x}", self.data))
            .field("extents", &self.extents)
            .field("strides", &self.strides)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All offsets, each as often as it is reached.
    fn offsets(extents: &[i64], strides: &[i64]) -> Vec<i64> {
        let mut offsets = vec![0];
        for (&extent, &stride) in extents.iter().zip(strides) {
            offsets = offsets
                .iter()
                .flat_map(|offset| (0..extent).map(move |n| offset + n * stride))
                .collect();
        }
        offsets
    }

    #[test]
    fn what_is_shared_is_found() {
        for extents in [[2, 3], [3, 2], [4, 4], [1, 5], [5, 1], [2, 2]] {
            for a in -7..8 {
                for b in -7..8 {
                    let mut all = offsets(&extents, &[a, b]);
                    all.sort_unstable();
                    let shared = all.windows(2).any(|pair| pair[0] == pair[1]);
                    assert_eq!(may_share(&extents, &[a, b]), shared, "{extents:?} {a} {b}");
                }
            }
        }
        for strides in [[12, 4, 1], [1, 2, 6], [-12, 4, -1], [24, 8, 2]] {
            assert!(!may_share(&[2, 3, 4], &strides), "{strides:?}");
        }
        assert!(may_share(&[2, 3, 4], &[0, 4, 1]));
        assert!(!may_share(&[1, 1, 1], &[0, 0, 0]));
        assert!(!may_share(&[], &[]));
    }

    #[test]
    fn what_is_shared_by_three_is_not_missed() {
        for extents in [[2, 3, 4], [3, 2, 2]] {
            for a in 0..9 {
                for b in 0..9 {
                    for c in 0..9 {
                        let mut all = offsets(&extents, &[a, b, c]);
                        all.sort_unstable();
                        let shared = all.windows(2).any(|pair| pair[0] == pair[1]);
                        assert!(may_share(&extents, &[a, b, c]) || !shared, "{a} {b} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_reach_spans_all_elements() {
        assert_eq!(reach(&[2, 3], &[3, 1], 4, 0x1000), Some((0x1000, 6)));
        assert_eq!(reach(&[2, 3], &[-3, 1], 4, 0x1000), Some((0x1000 - 12, 6)));
        assert_eq!(reach(&[4], &[0], 4, 0x1000), Some((0x1000, 1)));
        assert_eq!(reach(&[4, 0], &[1, 1], 4, 0x1000), Some((0x1000, 0)));
        assert_eq!(reach(&[4], &[-1], 4, 4), None);
        assert_eq!(reach(&[i64::MAX], &[2], 4, 4), None);
        assert_eq!(reach(&[2], &[1], 4, u64::MAX - 4), None);
    }
}
