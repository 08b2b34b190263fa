//! Of which graph a node is checked.
//!
//! An array or a condition of a graph may be described only while a node of its graph is checked, on the
//! thread that checks it. That is how it is refused everywhere else.

use std::cell::Cell;

use gridcall_view::ViewError;

thread_local! {
    /// The graph of which this thread checks a node at the moment; 0 for none.
    static CHECKED: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, arrays of one graph may be described.
pub(super) struct Checked {
    /// The graph of which a node is checked again when this is dropped.
    before: usize,
}

impl Checked {
    #[inline(always)]
    pub(super) fn begin(graph: usize) -> Checked {
        Checked {
            before: CHECKED.replace(graph),
        }
    }
}

impl Drop for Checked {
    #[inline(always)]
    fn drop(&mut self) {
        CHECKED.set(self.before);
    }
}

/// Refuses to describe an array of this graph, unless a node of it is checked.
#[inline(always)]
pub(super) fn is_checked(graph: usize) -> Result<(), ViewError> {
    let checked = CHECKED.get();
    if checked == graph {
        return Ok(());
    }
    Err(refused(checked))
}

/// Refuses a condition of this graph, unless a node of it is checked.
pub(super) fn condition_is_checked(graph: usize) -> Result<(), ViewError> {
    match CHECKED.get() {
        checked if checked == graph => Ok(()),
        0 => Err(ViewError::other(
            "it is a condition of a graph, and means nothing outside of the graph's nodes; add the kernel to the graph",
        )),
        _ => Err(ViewError::other(
            "it is a condition of another graph; make one of this graph, by `condition`",
        )),
    }
}

#[cold]
#[inline(never)]
fn refused(checked: usize) -> ViewError {
    ViewError::other(if checked == 0 {
        "it stands for an array of a graph, and means nothing outside of the graph's nodes; pass the array itself"
    } else {
        "it stands for an array of another graph; register the array with this one, by `read`, `write` or `own`"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_graph_is_checked_on_one_thread() {
        assert!(is_checked(7).is_err());
        let outer = Checked::begin(7);
        assert!(is_checked(7).is_ok());
        assert!(is_checked(9).is_err());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(is_checked(7).is_err()));
        });
        // A graph within the check of another.
        let inner = Checked::begin(9);
        assert!(is_checked(7).is_err());
        assert!(is_checked(9).is_ok());
        drop(inner);
        assert!(is_checked(7).is_ok());
        drop(outer);
        assert!(is_checked(7).is_err());
    }

    #[test]
    fn a_panic_ends_the_check() {
        let check = || {
            let _checked = Checked::begin(7);
            panic!("within the check");
        };
        assert!(std::panic::catch_unwind(check).is_err());
        assert!(is_checked(7).is_err());
    }
}
