//! Vector clocks: which operations an operation is ordered behind.
//!
//! Each stream and each branch of a graph is a timeline; an operation is one tick of it.

/// One of the lines along which operations follow each other.
pub(crate) type Timeline = u64;

/// The last tick of each timeline that is known to lie behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<(Timeline, u64)>);

impl Clock {
    /// Whether tick `tick` of `timeline` lies behind.
    pub(crate) fn covers(&self, timeline: Timeline, tick: u64) -> bool {
        match self.0.binary_search_by_key(&timeline, |entry| entry.0) {
            Ok(index) => self.0[index].1 >= tick,
            Err(_) => false,
        }
    }

    /// Puts tick `tick` of `timeline`, and those before it, behind.
    pub(crate) fn advance(&mut self, timeline: Timeline, tick: u64) {
        match self.0.binary_search_by_key(&timeline, |entry| entry.0) {
            Ok(index) => self.0[index].1 = self.0[index].1.max(tick),
            Err(index) => self.0.insert(index, (timeline, tick)),
        }
    }

    /// Takes tick `tick` of `timeline` back, and leaves those before it behind.
    pub(crate) fn retreat(&mut self, timeline: Timeline, tick: u64) {
        if let Ok(index) = self.0.binary_search_by_key(&timeline, |entry| entry.0) {
            self.0[index].1 = self.0[index].1.min(tick.saturating_sub(1));
            if self.0[index].1 == 0 {
                self.0.remove(index);
            }
        }
    }

    /// Puts everything behind that lies behind `other`.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (timeline, tick) in &other.0 {
            self.advance(*timeline, *tick);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_keeps_the_later_tick_of_each() {
        let mut a = Clock::default();
        a.advance(1, 5);
        a.advance(3, 1);
        let mut b = Clock::default();
        b.advance(1, 2);
        b.advance(2, 7);
        a.join(&b);
        assert!(a.covers(1, 5) && !a.covers(1, 6));
        assert!(a.covers(2, 7) && a.covers(3, 1));
        assert!(!a.covers(4, 1));
        a.retreat(1, 5);
        a.retreat(3, 1);
        a.retreat(4, 1);
        assert!(a.covers(1, 4) && !a.covers(1, 5));
        assert!(!a.covers(3, 1) && !a.covers(4, 1));
    }
}
