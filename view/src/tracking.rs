//! Whether a binding orders the uses of its arrays, asked once for all arrays of a launch.

use std::{cell::Cell, ffi::c_void};

use crate::StreamRef;

/// A launching stream, and what its tracker said when it was first asked.
///
/// As a tracker may begin to order at any time, an answer is as good a little later.
#[derive(Debug)]
pub struct Tracking<'a> {
    stream: StreamRef<'a>,
    orders: Cell<Option<bool>>,
}

impl<'a> Tracking<'a> {
    /// Nothing was asked yet.
    #[must_use]
    #[inline(always)]
    pub const fn of(stream: StreamRef<'a>) -> Tracking<'a> {
        Tracking {
            stream,
            orders: Cell::new(None),
        }
    }

    /// The stream.
    #[must_use]
    #[inline(always)]
    pub const fn stream(&self) -> StreamRef<'a> {
        self.stream
    }

    /// Whether this is the stream's tracker and orders nothing, as it says if it is asked whether it
    /// does.
    #[inline(always)]
    pub fn is_quiet(&self, tracker: *const c_void, ask: impl FnOnce() -> bool) -> bool {
        // Asked in any case, so that for the next array it is certain that it was.
        let orders = match self.orders.get() {
            Some(orders) => orders,
            None => ask(),
        };
        self.orders.set(Some(orders));
        tracker == self.stream.tracker() && !orders
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn the_tracker_of_the_stream_is_asked_once() {
        let (own, other) = (ptr::without_provenance(8), ptr::without_provenance(16));
        // SAFETY: the handles are passed to no driver.
        let stream = unsafe { StreamRef::from_raw(ptr::null_mut(), ptr::null_mut(), 0) };
        for orders in [false, true] {
            let tracking = Tracking::of(stream.tracked_by(own));
            let asked = Cell::new(0);
            let ask = || {
                asked.set(asked.get() + 1);
                orders
            };
            assert!(!tracking.is_quiet(other, ask));
            assert_eq!(tracking.is_quiet(own, ask), !orders);
            assert_eq!(tracking.is_quiet(own, || !orders), !orders);
            assert_eq!(asked.get(), 1);
        }
    }
}
