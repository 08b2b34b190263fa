//! Objects of C as words of memory: for what their libraries tell, and slowly.
//!
//! Where a word is differs between builds. It is looked for, when the first object of a type is met,
//! in objects that were made to be looked at and of which all is known; a place that is not found
//! beyond doubt is not used.

use pyo3::{PyResult, Python, types::PyAnyMethods};

/// A word of an object, by its index. Not optimised: others may write it.
///
/// # Safety
///
/// There must be one.
#[inline(always)]
pub(super) unsafe fn word_at(object: *const usize, index: usize) -> usize {
    // SAFETY: passed on to the caller.
    let word = unsafe { object.add(index) };
    // SAFETY: passed on to the caller.
    unsafe { word.read_volatile() }
}

/// A number of 32 bits of an object, by its index among those.
///
/// # Safety
///
/// There must be one.
#[inline(always)]
pub(super) unsafe fn half_at(object: *const u32, index: usize) -> u32 {
    // SAFETY: passed on to the caller.
    let half = unsafe { object.add(index) };
    // SAFETY: passed on to the caller.
    unsafe { half.read_volatile() }
}

/// Whether a lock of Python's keeps others from replacing what is looked at, at any time: an interpreter that can do
/// without turns it on and off as modules are loaded.
pub(super) fn is_locked(py: Python<'_>) -> PyResult<bool> {
    let build = py.import("sysconfig")?;
    let unlocked = build.call_method1("get_config_var", ("Py_GIL_DISABLED",))?;
    Ok(!unlocked.is_truthy()?)
}

/// The one item, if there is exactly one.
pub(super) fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_one() {
        assert_eq!(only(0..0), None);
        assert_eq!(only(0..1), Some(0));
        assert_eq!(only(0..2), None);
    }

    #[test]
    fn words_and_halves_lie_where_they_are() {
        let object = [1_usize, 2 | 3 << 32, 4];
        // SAFETY: the object has three words.
        assert_eq!(unsafe { word_at(object.as_ptr(), 2) }, 4);
        // SAFETY: and six halves.
        let halves = [2, 3].map(|index| unsafe { half_at(object.as_ptr().cast(), index) });
        assert_eq!(
            halves,
            if cfg!(target_endian = "little") {
                [2, 3]
            } else {
                [3, 2]
            }
        );
    }
}
