//! What a `#[requires]` speaks of: views, integers that saturate, and the shape of the launch.

use std::{
    fmt,
    ops::{Add, Div, Mul, Neg, Rem, Sub},
};

use crate::{call::Span, launch::Block, launch::Grid};

/// An integer of a contract: wide enough for every integer of a kernel, and saturating, so that
/// `x.len() >= n * m` cannot wrap. Dividing by zero gives the largest value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Int(i128);

impl Int {
    /// The integer of a literal.
    #[must_use]
    #[inline(always)]
    pub const fn new(value: i128) -> Int {
        Int(value)
    }

    /// The integer as an index, if it can be one.
    #[inline(always)]
    pub(crate) fn index(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }

    /// The quotient, rounded up.
    #[must_use]
    #[inline]
    pub fn div_ceil(self, divisor: Int) -> Int {
        let quotient = self / divisor;
        if self % divisor != Int(0) && (self.0 > 0) == (divisor.0 > 0) {
            quotient + Int(1)
        } else {
            quotient
        }
    }

    /// Whether `divisor` divides it; nothing is a multiple of 0 but 0.
    #[must_use]
    #[inline]
    pub fn is_multiple_of(self, divisor: Int) -> bool {
        if divisor.0 == 0 {
            self.0 == 0
        } else {
            self % divisor == Int(0)
        }
    }
}

macro_rules! from {
    ($($integer:ty),+) => {$(
        impl From<$integer> for Int {
            #[inline(always)]
            fn from(value: $integer) -> Int {
                Int(i128::from(value))
            }
        }
    )+};
}

from!(u8, u16, u32, u64, i8, i16, i32, i64, i128);

impl From<usize> for Int {
    #[inline(always)]
    fn from(value: usize) -> Int {
        Int(value as i128)
    }
}

impl From<isize> for Int {
    #[inline(always)]
    fn from(value: isize) -> Int {
        Int(value as i128)
    }
}

impl From<u128> for Int {
    #[inline(always)]
    fn from(value: u128) -> Int {
        Int(i128::try_from(value).unwrap_or(i128::MAX))
    }
}

impl Add for Int {
    type Output = Int;

    #[inline(always)]
    fn add(self, other: Int) -> Int {
        Int(self.0.saturating_add(other.0))
    }
}

impl Sub for Int {
    type Output = Int;

    #[inline(always)]
    fn sub(self, other: Int) -> Int {
        Int(self.0.saturating_sub(other.0))
    }
}

impl Mul for Int {
    type Output = Int;

    #[inline(always)]
    fn mul(self, other: Int) -> Int {
        // Factors of 64 bits, which all but nested products are, need no 128-bit overflow check.
        match (i64::try_from(self.0), i64::try_from(other.0)) {
            (Ok(a), Ok(b)) => Int(i128::from(a) * i128::from(b)),
            _ => Int(self.0.saturating_mul(other.0)),
        }
    }
}

impl Div for Int {
    type Output = Int;

    #[inline]
    fn div(self, other: Int) -> Int {
        if other.0 == 0 {
            Int(i128::MAX)
        } else {
            Int(self.0.saturating_div(other.0))
        }
    }
}

impl Rem for Int {
    type Output = Int;

    #[inline]
    fn rem(self, other: Int) -> Int {
        if other.0 == 0 {
            Int(i128::MAX)
        } else {
            Int(self.0.wrapping_rem(other.0))
        }
    }
}

impl Neg for Int {
    type Output = Int;

    #[inline(always)]
    fn neg(self) -> Int {
        Int(self.0.saturating_neg())
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An array, as a contract sees it: the view that the kernel gets, whatever the caller's type.
#[derive(Clone, Copy, Debug)]
pub struct ViewOf(pub Span);

impl ViewOf {
    /// The number of elements; 0 for `None`.
    #[must_use]
    #[inline(always)]
    pub fn len(self) -> Int {
        Int::from(self.0.len())
    }

    /// Whether there are no elements.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0.len() == 0
    }

    /// Whether an optional array was given.
    #[must_use]
    #[inline(always)]
    pub fn is_some(self) -> bool {
        !self.0.is_absent()
    }

    /// Whether an optional array was left out.
    #[must_use]
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0.is_absent()
    }
}

/// A field of a struct that is passed by value, as a contract sees it: integers saturate, all else
/// is what it is.
#[derive(Clone, Copy, Debug)]
pub struct Field<T>(pub T);

/// What a [`Field`] is to a contract where it is no number; for numbers, [`Field`]'s own methods are
/// found first.
pub trait AnyField: Sized {
    /// The field's type.
    type Value;

    /// The field itself.
    fn get(self) -> Self::Value;

    /// What a message shows of it.
    fn shown(self) -> &'static str {
        "not a number"
    }
}

impl<T> AnyField for Field<T> {
    type Value = T;

    #[inline(always)]
    fn get(self) -> T {
        self.0
    }
}

macro_rules! number_field {
    ($($number:ty => $seen:ident),+ $(,)?) => {$(
        impl Field<$number> {
            /// The number.
            #[must_use]
            #[inline(always)]
            pub fn get(self) -> $seen {
                $seen::from(self.0)
            }

            /// What a message shows of it.
            #[must_use]
            #[inline(always)]
            pub fn shown(self) -> $seen {
                self.get()
            }
        }
    )+};
}

number_field! {
    u8 => Int, u16 => Int, u32 => Int, u64 => Int, u128 => Int, usize => Int,
    i8 => Int, i16 => Int, i32 => Int, i64 => Int, i128 => Int, isize => Int,
    bool => bool, f32 => f32, f64 => f64,
}

/// A grid or a block, as a contract sees it.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    /// Along the fastest axis.
    pub x: Int,
    /// Along the second axis.
    pub y: Int,
    /// Along the third axis.
    pub z: Int,
}

impl Extents {
    /// Threads of a block.
    #[must_use]
    #[inline]
    pub fn threads(self) -> Int {
        self.x * self.y * self.z
    }

    /// Blocks of a grid.
    #[must_use]
    #[inline]
    pub fn blocks(self) -> Int {
        self.x * self.y * self.z
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

impl From<Grid> for Extents {
    #[inline(always)]
    fn from(grid: Grid) -> Extents {
        Extents {
            x: grid.x.into(),
            y: grid.y.into(),
            z: grid.z.into(),
        }
    }
}

impl From<Block> for Extents {
    #[inline(always)]
    fn from(block: Block) -> Extents {
        Extents {
            x: block.x.into(),
            y: block.y.into(),
            z: block.z.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_saturate() {
        let most = Int::from(u64::MAX);
        assert_eq!(most * most * most, Int(i128::MAX));
        assert_eq!(Int::from(i64::MIN) * most * most, Int(i128::MIN));
        assert_eq!(most * Int::new(2), Int(2 * i128::from(u64::MAX)));
    }

    #[test]
    fn division_never_panics() {
        assert_eq!(Int::new(1) / Int::new(0), Int(i128::MAX));
        assert_eq!(Int::new(1) % Int::new(0), Int(i128::MAX));
        assert_eq!(Int(i128::MIN) / Int::new(-1), Int(i128::MAX));
        assert_eq!(Int(i128::MIN) % Int::new(-1), Int::new(0));
        assert_eq!(Int::new(7).div_ceil(Int::new(2)), Int::new(4));
        assert_eq!(Int::new(-7).div_ceil(Int::new(2)), Int::new(-3));
        assert_eq!(Int::new(8).div_ceil(Int::new(0)), Int(i128::MAX));
        assert!(Int::new(8).is_multiple_of(Int::new(4)));
        assert!(!Int::new(8).is_multiple_of(Int::new(0)));
    }
}
