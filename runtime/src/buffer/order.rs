//! Who used an allocation, and whom a new use must wait for. Knows no driver.
//!
//! A use is a stream, a range of bytes and whether they are written. Two uses conflict if they are
//! on different streams, overlap, and one of them writes. Uses are kept until a writer that has
//! the allocation to itself has waited for them; a reader removes nothing, since another thread
//! may be about to enqueue on a stream that is already noted here.

use std::ops::Range;

/// A stream, by an identity that is never given to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamId {
    /// The context's handle: the legacy stream is another in each.
    pub(super) context: usize,
    pub(super) id: u64,
}

/// What stands for a stream's use until it has been waited for.
pub(super) trait User: Clone {
    fn id(&self) -> StreamId;

    /// Whether this stands for the stream as a whole, with all that is enqueued on it, rather
    /// than for one point of it.
    fn is_stream(&self) -> bool;

    /// Whether both are one object that stands for a stream, so that one note of it is enough.
    fn is_same(&self, other: &Self) -> bool;

    /// Whether the use is done and nobody can be about to enqueue more of it.
    fn is_over(&self) -> bool;
}

/// A use about to be made.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The bytes, from the allocation's beginning.
    pub(super) range: Range<usize>,
    pub(super) writes: bool,
    /// Whether it goes through one part of an allocation that was split for writing: others may
    /// write to other parts meanwhile.
    pub(super) split: bool,
}

impl Access {
    /// All of an allocation that is not split.
    pub(super) fn whole(bytes: usize, writes: bool) -> Access {
        Access {
            range: 0..bytes,
            writes,
            split: false,
        }
    }
}

#[derive(Debug)]
struct Use<U> {
    by: U,
    range: Range<usize>,
    writes: bool,
    /// The streams that have been made to wait for it.
    waited: Vec<StreamId>,
    /// Whether `range` is the hull of several: while the allocation is split, one of them may be
    /// about to be enqueued when somebody waits for another, and no wait counts for all of them.
    hull: bool,
    /// Whether more reads may be enqueued without being noted.
    unseen: bool,
}

#[derive(Debug)]
pub(super) struct Order<U> {
    uses: Vec<Use<U>>,
    /// How many uses there may be before those that are over are looked for.
    limit: usize,
}

/// So many ranges of one stream are told apart. Few in tests, so that they often do not suffice.
const RANGES: usize = if cfg!(test) { 2 } else { 16 };

impl<U: User> Order<U> {
    /// One stream that has written it all.
    pub(super) fn new(by: U, bytes: usize) -> Order<U> {
        Order {
            uses: vec![Use::new(by, 0..bytes, true)],
            limit: 2 * RANGES,
        }
    }

    /// The users that an access on the stream `id` must wait for.
    pub(super) fn before<'o>(
        &'o self,
        id: StreamId,
        access: &'o Access,
    ) -> impl Iterator<Item = &'o U> {
        let conflicts = self.uses.iter().filter(move |u| u.conflicts(id, access));
        conflicts.map(|u| &u.by)
    }

    /// The only user, if there is one and it is a stream.
    pub(super) fn only(&self) -> Option<&U> {
        let [single] = &self.uses[..] else {
            return None;
        };
        single.by.is_stream().then_some(&single.by)
    }

    /// Notes that the only user may be reading unseen, now that another comes to read: a wait for
    /// what it has written until now is no wait for that.
    pub(super) fn keep_reader(&mut self, bytes: usize) {
        if let Some(by) = self.only().cloned() {
            self.uses.push(Use {
                unseen: true,
                ..Use::new(by, 0..bytes, false)
            });
        }
    }

    /// Notes that nobody reads unseen.
    pub(super) fn see_all(&mut self) {
        for u in &mut self.uses {
            u.unseen = false;
        }
    }

    /// Notes a read that has waited for what it must. Returns whether its stream reads all
    /// `bytes` unseen from now on, which `may_hide` allows.
    pub(super) fn read(&mut self, by: U, access: &Access, bytes: usize, may_hide: bool) -> bool {
        let id = by.id();
        self.mark(id, access);
        let all = Access::whole(bytes, false);
        let unseen = may_hide && !access.split && self.before(id, &all).next().is_none();
        let range = if unseen {
            0..bytes
        } else {
            access.range.clone()
        };
        self.note(Use {
            unseen,
            ..Use::new(by, range, false)
        });
        unseen
    }

    /// Notes a write that has waited for what it must. Returns whether it comes after all other
    /// uses; it is then noted to have written all `bytes`, and nothing else is.
    pub(super) fn write(&mut self, by: U, access: &Access, bytes: usize) -> bool {
        let id = by.id();
        let waited = |u: &Use<U>| u.by.id() == id || u.waited.contains(&id);
        let last = !access.split
            && self
                .uses
                .iter()
                .all(|u| u.conflicts(id, access) || waited(u));
        if last {
            self.uses.clear();
            self.uses.push(Use::new(by, 0..bytes, true));
            return true;
        }
        self.mark(id, access);
        // What lies within was waited for, or is on this stream, and cannot be enqueued any more:
        // who writes here has the range to himself.
        self.uses.retain(|u| !contains(&access.range, &u.range));
        self.note(Use::new(by, access.range.clone(), true));
        false
    }

    fn mark(&mut self, id: StreamId, access: &Access) {
        for u in &mut self.uses {
            if !(u.hull && access.split) && u.conflicts(id, access) {
                u.waited.push(id);
            }
        }
    }

    fn note(&mut self, new: Use<U>) {
        if self.uses.len() >= self.limit {
            self.uses.retain(|u| u.unseen || !u.by.is_over());
            self.limit = (2 * self.uses.len()).max(2 * RANGES);
        }
        let mut ranges = 0;
        for u in &mut self.uses {
            if u.by.is_same(&new.by) && u.writes == new.writes {
                ranges += 1;
                if u.range == new.range || ranges == RANGES {
                    u.hull |= u.range != new.range;
                    u.unseen |= new.unseen;
                    u.range = u.range.start.min(new.range.start)..u.range.end.max(new.range.end);
                    u.waited.clear();
                    return;
                }
            }
        }
        self.uses.push(new);
    }
}

impl<U: User> Use<U> {
    fn new(by: U, range: Range<usize>, writes: bool) -> Use<U> {
        Use {
            by,
            range,
            writes,
            waited: Vec::new(),
            hull: false,
            unseen: false,
        }
    }

    fn conflicts(&self, id: StreamId, access: &Access) -> bool {
        (self.writes || access.writes)
            && self.by.id() != id
            && overlap(&self.range, &access.range)
            && !self.waited.contains(&id)
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
