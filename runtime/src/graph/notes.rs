//! What the arguments of a node say they use, noted while they are described.
//!
//! An array of a graph may be described only while a node of its graph is checked, on the thread
//! that checks it. That is how it is refused everywhere else, and how the node's place in the order
//! is found. What is described as it was the last time is compared, and not noted anew.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    ptr,
};

use gridcall_view::ViewError;

use super::order::Access;

thread_local! {
    /// Where this thread takes notes at the moment; null if nowhere.
    static CURRENT: Cell<*const Notes> = const { Cell::new(ptr::null()) };
}

/// What arrays of one graph were described for at the last check.
#[derive(Debug)]
pub(super) struct Notes {
    graph: usize,
    /// What is expected next, and where that ends. Both are null once something else came.
    next: Cell<*const Access>,
    end: Cell<*const Access>,
    /// What is expected; dangles after the check.
    expected: Range<*const Access>,
    /// What was described, if it is not what was expected.
    other: RefCell<Vec<Access>>,
}

impl Notes {
    pub(super) fn new(graph: usize) -> Notes {
        Notes {
            graph,
            next: Cell::new(ptr::null()),
            end: Cell::new(ptr::null()),
            expected: ptr::null()..ptr::null(),
            other: RefCell::default(),
        }
    }

    /// Runs `check`, meanwhile lets arrays of the graph be described, and notes what for. Says what
    /// that was, unless it was all that is expected.
    #[inline(always)]
    pub(super) fn take<R>(
        &mut self,
        expected: &[Access],
        check: impl FnOnce() -> R,
    ) -> (R, Option<&[Access]>) {
        self.expected = expected.as_ptr_range();
        self.next.set(self.expected.start);
        self.end.set(self.expected.end);
        self.other.get_mut().clear();
        let checked = {
            let _until_the_end = Outer(CURRENT.replace(self));
            check()
        };
        let (next, end) = (self.next.get(), self.end.get());
        if next == end && !next.is_null() {
            return (checked, None);
        }
        if !next.is_null() {
            // Less than expected, as where an optional array is left out.
            // SAFETY: `expected` is still borrowed.
            unsafe { self.differ() };
        }
        (checked, Some(self.other.get_mut()))
    }

    /// From now on, all is noted.
    ///
    /// # Safety
    ///
    /// What is expected must be borrowed still.
    #[cold]
    unsafe fn differ(&self) {
        let mut access = self.expected.start;
        let next = self.next.replace(ptr::null());
        self.end.set(ptr::null());
        let mut other = self.other.borrow_mut();
        while access != next {
            // SAFETY: it lies before `next`, which lies within what is expected, by the caller
            // borrowed.
            other.push(unsafe { access.read() });
            // SAFETY: as above.
            access = unsafe { access.add(1) };
        }
    }
}

/// Where notes are taken again when this is dropped.
struct Outer(*const Notes);

impl Drop for Outer {
    #[inline(always)]
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Notes what an array of this graph is described for. Whether that is what was expected.
#[inline(always)]
pub(super) fn note(graph: usize, access: Access) -> Result<bool, ViewError> {
    // SAFETY: `take` has it borrowed for as long as it is current, does not touch it meanwhile, and
    // makes another current before that ends, also by a panic.
    let Some(notes) = (unsafe { CURRENT.get().as_ref() }) else {
        return Err(refused(false));
    };
    if notes.graph != graph {
        return Err(refused(true));
    }
    let next = notes.next.get();
    if next != notes.end.get() {
        // SAFETY: it lies before the end of what is expected, which `take` has borrowed.
        let expected = unsafe { *next };
        if expected == access {
            // SAFETY: as above; this is at most the end.
            notes.next.set(unsafe { next.add(1) });
            return Ok(true);
        }
    }
    note_other(notes, access.start, access.end, access.writes);
    Ok(false)
}

/// Takes the access in registers, so that on the way here it need not be in memory.
#[inline(never)]
fn note_other(notes: &Notes, start: u64, end: u64, writes: bool) {
    if !notes.next.get().is_null() {
        // SAFETY: this is called while `take` has it borrowed.
        unsafe { notes.differ() };
    }
    notes.other.borrow_mut().push(Access { start, end, writes });
}

#[cold]
fn refused(in_another: bool) -> ViewError {
    ViewError::other(if in_another {
        "it stands for an array of another graph; register the array with this one, by `read`, `write` or `own`"
    } else {
        "it stands for an array of a graph, and means nothing outside of the graph's nodes; pass the array itself"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(start: u64) -> Access {
        Access {
            start,
            end: start + 4,
            writes: start == 0,
        }
    }

    fn take(expected: &[u64], told: &[u64]) -> (Vec<bool>, Option<Vec<u64>>) {
        let expected: Vec<_> = expected.iter().copied().map(access).collect();
        let mut notes = Notes::new(7);
        let check = || -> Vec<bool> {
            let told = told.iter().copied().map(access);
            told.map(|access| note(7, access).unwrap()).collect()
        };
        let (known, other) = notes.take(&expected, check);
        (
            known,
            other.map(|all| all.iter().map(|a| a.start).collect()),
        )
    }

    #[test]
    fn what_is_expected_is_not_noted() {
        assert_eq!(take(&[1, 2], &[1, 2]), (vec![true, true], None));
    }

    #[test]
    fn all_is_noted_if_something_else_comes() {
        assert_eq!(take(&[], &[]), (vec![], None));
        assert_eq!(take(&[], &[1, 2]), (vec![false, false], Some(vec![1, 2])));
        assert_eq!(
            take(&[1, 2, 3], &[1, 5, 3]),
            (vec![true, false, false], Some(vec![1, 5, 3]))
        );
        assert_eq!(
            take(&[1, 2], &[2, 1]),
            (vec![false, false], Some(vec![2, 1]))
        );
        assert_eq!(take(&[1, 2], &[1]), (vec![true], Some(vec![1])));
        assert_eq!(take(&[1], &[1, 2]), (vec![true, false], Some(vec![1, 2])));
    }

    #[test]
    fn notes_are_taken_for_one_graph_on_one_thread() {
        assert!(note(7, access(0)).is_err());
        let mut notes = Notes::new(7);
        let ((), _) = notes.take(&[], || {
            assert!(note(8, access(0)).is_err());
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(note(7, access(0)).is_err()));
            });
            // A graph within the check of another.
            let mut inner = Notes::new(8);
            let ((), other) = inner.take(&[], || {
                assert!(note(7, access(0)).is_err());
                note(8, access(1)).unwrap();
            });
            assert_eq!(other, Some(&[access(1)][..]));
            note(7, access(2)).unwrap();
        });
        assert_eq!(notes.other.get_mut(), &[access(2)]);
        assert!(note(7, access(0)).is_err());
    }
}
