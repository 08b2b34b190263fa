//! Sets of addresses as sorted ranges, cheap to add to in order.

use std::ops::Range;

/// A set of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals {
    ranges: Vec<Range<u64>>,
    /// So many ranges at the front are sorted and apart.
    tidy: usize,
}

const MERGE_AT_LEAST: usize = 64;

impl Intervals {
    #[cfg(test)]
    pub(crate) fn of(range: Range<u64>) -> Self {
        let mut set = Self::default();
        set.add(range);
        set.tidy();
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range. Most follow the one before, and are then joined to it at once.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.ranges.last_mut()
            && range.start >= last.start
            && range.start <= last.end
        {
            last.end = last.end.max(range.end);
            return;
        }
        self.ranges.push(range);
        if self.ranges.len() >= MERGE_AT_LEAST.max(self.tidy * 2) {
            self.tidy();
        }
    }

    /// Sorts the ranges and joins those that touch.
    pub(crate) fn tidy(&mut self) {
        self.ranges.sort_unstable_by_key(|range| range.start);
        let mut kept = 0;
        for index in 0..self.ranges.len() {
            let range = self.ranges[index].clone();
            if kept > 0 && range.start <= self.ranges[kept - 1].end {
                let last = &mut self.ranges[kept - 1];
                last.end = last.end.max(range.end);
            } else {
                self.ranges[kept] = range;
                kept += 1;
            }
        }
        self.ranges.truncate(kept);
        self.tidy = kept;
    }

    /// The first range that two tidy sets share.
    pub(crate) fn overlap(&self, other: &Self) -> Option<Range<u64>> {
        let (mut a, mut b) = (self.ranges.iter(), other.ranges.iter());
        let (mut left, mut right) = (a.next()?, b.next()?);
        loop {
            if left.end <= right.start {
                left = a.next()?;
            } else if right.end <= left.start {
                right = b.next()?;
            } else {
                return Some(left.start.max(right.start)..left.end.min(right.end));
            }
        }
    }

    /// Whether a tidy set holds all of another.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mut outer = self.ranges.iter().peekable();
        other.ranges.iter().all(|range| {
            while outer
                .next_if(|candidate| candidate.end <= range.start)
                .is_some()
            {}
            outer.peek().is_some_and(|candidate| {
                candidate.start <= range.start && candidate.end >= range.end
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> Intervals {
        let mut set = Intervals::default();
        for (start, end) in ranges {
            set.add(*start..*end);
        }
        set.tidy();
        set
    }

    #[test]
    fn touching_ranges_become_one() {
        assert_eq!(set(&[(8, 12), (0, 4), (4, 8)]), Intervals::of(0..12));
    }

    #[test]
    fn overlap_is_the_first_shared_range() {
        assert_eq!(
            set(&[(0, 4), (10, 20)]).overlap(&set(&[(4, 12)])),
            Some(10..12)
        );
        assert_eq!(set(&[(0, 4), (8, 12)]).overlap(&set(&[(4, 8)])), None);
        assert_eq!(set(&[]).overlap(&set(&[(4, 8)])), None);
    }

    #[test]
    fn covering_needs_every_range() {
        assert!(set(&[(0, 8), (16, 32)]).covers(&set(&[(1, 3), (16, 32)])));
        assert!(!set(&[(0, 8), (16, 32)]).covers(&set(&[(6, 18)])));
        assert!(set(&[]).covers(&set(&[])));
    }

    #[test]
    fn a_column_by_column_walk_ends_as_one_range() {
        let mut set = Intervals::default();
        for column in 0..64 {
            for row in 0..64 {
                let start = row * 256 + column * 4;
                set.add(start..start + 4);
            }
        }
        set.tidy();
        assert_eq!(set, Intervals::of(0..64 * 256));
    }
}
