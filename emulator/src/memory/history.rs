//! Who touched an allocation, as far as something unordered with them may still come.

use std::ops::Range;
use std::sync::Arc;

use super::Token;
use super::intervals::Intervals;
use crate::clock::Clock;
use crate::driver::OpInfo;
use crate::exec::Access;

/// What one operation touched, by allocation.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    entries: Vec<(Token, [Intervals; 3])>,
    last: usize,
}

impl Touched {
    pub(crate) fn add(&mut self, token: Token, range: Range<u64>, access: Access) {
        let known = match self.entries.get(self.last) {
            Some((last, _)) if *last == token => Some(self.last),
            _ => self.entries.iter().position(|(known, _)| *known == token),
        };
        let index = known.unwrap_or_else(|| {
            self.entries.push((token, Default::default()));
            self.entries.len() - 1
        });
        self.last = index;
        self.entries[index].1[slot(access)].add(range);
    }

    /// All that was touched.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Token, Access, Intervals)> + use<> {
        self.last = 0;
        std::mem::take(&mut self.entries)
            .into_iter()
            .flat_map(|(token, sets)| {
                [Access::Read, Access::Write, Access::Atomic]
                    .into_iter()
                    .zip(sets)
                    .filter(|(_, set)| !set.is_empty())
                    .map(move |(access, mut set)| {
                        set.tidy();
                        (token, access, set)
                    })
            })
    }
}

fn slot(access: Access) -> usize {
    match access {
        Access::Read => 0,
        Access::Write => 1,
        Access::Atomic => 2,
    }
}

#[derive(Debug)]
struct Entry {
    op: Arc<OpInfo>,
    access: Access,
    set: Intervals,
}

/// Two operations that no stream, event or wait puts in an order, and that touch the same bytes.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) earlier: Arc<OpInfo>,
    pub(crate) earlier_access: Access,
    pub(crate) access: Access,
    pub(crate) range: Range<u64>,
}

/// The operations that touched an allocation.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<Entry>);

impl History {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds what an operation touched and returns the first conflict with one before it.
    ///
    /// An entry is dropped once a later, ordered one covers it: whoever conflicts with the dropped
    /// one conflicts with the other or is ordered behind both.
    pub(crate) fn touch(
        &mut self,
        op: &Arc<OpInfo>,
        clock: &Clock,
        access: Access,
        set: Intervals,
    ) -> Option<Conflict> {
        let conflict = self.conflict(op, clock, access, &set);
        self.0.retain(|entry| {
            let replaced = Arc::ptr_eq(&entry.op, op) || entry.op.lies_behind(clock);
            let weaker = access == Access::Write || access == entry.access;
            !(replaced && weaker && set.covers(&entry.set))
        });
        self.0.push(Entry {
            op: Arc::clone(op),
            access,
            set,
        });
        conflict
    }

    fn conflict(
        &self,
        op: &Arc<OpInfo>,
        clock: &Clock,
        access: Access,
        set: &Intervals,
    ) -> Option<Conflict> {
        self.0.iter().find_map(|entry| {
            let harmless = access == entry.access && access != Access::Write;
            if harmless || Arc::ptr_eq(&entry.op, op) || entry.op.lies_behind(clock) {
                return None;
            }
            entry.set.overlap(set).map(|range| Conflict {
                earlier: Arc::clone(&entry.op),
                earlier_access: entry.access,
                access,
                range,
            })
        })
    }

    /// Who touched it unordered with the host, which is what a free by the host conflicts with.
    pub(crate) fn unordered(&self, clock: &Clock) -> Option<Arc<OpInfo>> {
        self.0
            .iter()
            .find(|entry| !entry.op.lies_behind(clock))
            .map(|entry| Arc::clone(&entry.op))
    }
}
