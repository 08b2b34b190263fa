//! What arguments are checked for: a launch, or a node of a graph.

use std::{
    cell::{Cell, RefCell},
    ffi::c_void,
};

use gridcall_view::{StreamRef, View};

use super::overlap::Span;
use crate::{error::LaunchError, graph::Access};

/// What is done with what each array is described for: which memory, and whether it is written. An
/// array that is left out is no memory.
pub trait Purpose {
    /// Why the arguments are not checked further.
    type Stop: From<LaunchError>;

    /// Whether memory, if it is contiguous, needs no further check.
    ///
    /// # Errors
    ///
    /// If nothing else needs to be known.
    fn admits(&self, view: &View<'_>, span: &Span) -> Result<bool, Self::Stop>;

    /// Takes note of memory that was checked, and says whether others are looked for that overlap it.
    ///
    /// # Errors
    ///
    /// As for [`admits`](Purpose::admits).
    fn note(&self, span: &Span, writes: bool) -> Result<bool, Self::Stop>;

    /// Whether memory that begins there was noted already.
    fn has_noted(&self, _start: u64) -> bool {
        false
    }
}

/// For a launch: nothing is done.
#[derive(Debug)]
pub struct Launching;

/// For a node of a graph: it is noted.
#[derive(Debug)]
pub(crate) struct Noting<'a>(pub(crate) &'a RefCell<Vec<Access>>);

/// For a node whose kernel had arguments before: arrays are compared with those. All that was checked
/// of their memory holds of the same memory again, for the same parameter; whether it is written, that
/// says.
#[derive(Debug)]
pub(crate) struct AsBefore<'a> {
    /// What arrays of the graph are tracked by.
    tracker: *const c_void,
    /// None of them conflicts with another.
    before: &'a [Access],
    /// How many were compared.
    compared: Cell<usize>,
}

/// Why a node is not as before.
pub(crate) enum Stop {
    /// Its arrays are others.
    Others,
    Error(LaunchError),
}

impl Purpose for Launching {
    type Stop = LaunchError;

    #[inline(always)]
    fn admits(&self, _view: &View<'_>, _span: &Span) -> Result<bool, LaunchError> {
        Ok(false)
    }

    #[inline(always)]
    fn note(&self, _span: &Span, _writes: bool) -> Result<bool, LaunchError> {
        Ok(true)
    }
}

impl Purpose for Noting<'_> {
    type Stop = LaunchError;

    #[inline(always)]
    fn admits(&self, _view: &View<'_>, _span: &Span) -> Result<bool, LaunchError> {
        Ok(false)
    }

    fn note(&self, span: &Span, writes: bool) -> Result<bool, LaunchError> {
        self.0.borrow_mut().push(Access {
            start: span.pointer(),
            end: span.end(),
            writes,
        });
        Ok(true)
    }

    fn has_noted(&self, start: u64) -> bool {
        self.0.borrow().iter().any(|noted| noted.start == start)
    }
}

impl<'a> AsBefore<'a> {
    #[inline(always)]
    pub(super) fn new(graph: StreamRef<'_>, before: &'a [Access]) -> Self {
        AsBefore {
            tracker: graph.tracker(),
            before,
            compared: Cell::new(0),
        }
    }
}

impl Purpose for AsBefore<'_> {
    type Stop = Stop;

    #[inline(always)]
    fn admits(&self, view: &View<'_>, span: &Span) -> Result<bool, Stop> {
        if view.tracker() != self.tracker || !view.is_contiguous() {
            return Err(Stop::Others);
        }
        self.note(span, false).map(|_| true)
    }

    #[inline(always)]
    fn note(&self, span: &Span, _writes: bool) -> Result<bool, Stop> {
        let place = self.compared.get();
        self.compared.set(place + 1);
        match self.before.get(place) {
            Some(before)
                if before.start == span.pointer() && before.end == span.end_of_memory() =>
            {
                Ok(false)
            }
            _ => Err(Stop::Others),
        }
    }
}

impl From<LaunchError> for Stop {
    fn from(error: LaunchError) -> Stop {
        Stop::Error(error)
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use gridcall_view::Place;

    use super::*;

    /// Whether arrays with these addresses, lengths and trackers are those from 0x100 and 0x200 on, of
    /// four elements each.
    fn are_as_before(arrays: &[(u64, usize, usize)]) -> bool {
        let before = [0x100, 0x200].map(|start| Access {
            start,
            end: start + 16,
            writes: false,
        });
        let null = ptr::null_mut();
        // SAFETY: the handles are passed to no driver.
        let graph = unsafe { StreamRef::from_raw(null, null, 0) };
        let graph = graph.tracked_by(ptr::without_provenance(7));
        let purpose = AsBefore::new(graph, &before);
        arrays.iter().all(|&(pointer, len, tracker)| {
            let view = View::new(pointer, len, Place::Everywhere);
            let span = Span::new::<f32>(pointer, len, &view);
            let view = view.tracked_by(ptr::without_provenance(tracker));
            matches!(purpose.admits(&view, &span), Ok(true))
        })
    }

    #[test]
    fn the_same_memory_of_the_graph_in_the_same_order_is_admitted() {
        assert!(are_as_before(&[(0x100, 4, 7), (0x200, 4, 7)]));
        for others in [
            (0x104, 4, 7),
            (0x104, 3, 7),
            (0x100, 3, 7),
            (0x100, 5, 7),
            (0x100, 4, 9),
            (0x200, 4, 7),
        ] {
            assert!(!are_as_before(&[others]), "{others:?}");
        }
        assert!(!are_as_before(&[
            (0x100, 4, 7),
            (0x200, 4, 7),
            (0x300, 4, 7)
        ]));
    }

    #[test]
    fn an_array_with_gaps_is_not() {
        let before = [Access {
            start: 0x100,
            end: 0x110,
            writes: false,
        }];
        let null = ptr::null_mut();
        // SAFETY: the handles are passed to no driver.
        let graph = unsafe { StreamRef::from_raw(null, null, 0) };
        let purpose = AsBefore::new(graph, &before);
        let view = View::strided(0x100, &[4], &[2], Place::Everywhere).unwrap();
        let span = Span::new::<f32>(0x100, 4, &view);
        assert!(purpose.admits(&view, &span).is_err());
    }
}
