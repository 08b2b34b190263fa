//! The guard that an array hands out for the time of one launch.

use std::{
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit, align_of, size_of},
};

use crate::ViewError;

/// A pointer's worth of a closure, with the provenance of what may be a pointer.
type Word = MaybeUninit<*mut ()>;

/// Room for what a guard must remember: six words, so that no launch allocates.
type Words = [Word; 6];

/// Reads a closure out of the words and calls it. They are passed one by one, as many as fit
/// registers, so that a guard need not exist in memory.
type Run = unsafe fn(Word, Word, Word, Word, Word, Word) -> Result<(), ViewError>;

/// Holds an array for one launch: from before the kernel is enqueued until its use is recorded.
///
/// [`finish`](Guard::finish) runs the closure it was made with. A guard that is dropped instead
/// (a panic, or a launch that failed) runs it too and forgets the error, since recording one use
/// too many is harmless and one too few is not.
///
/// ```
/// use gridcall_view::Guard;
/// # let recorded = std::cell::Cell::new(false);
/// let guard = Guard::new(|| {
///     recorded.set(true); // e.g. record an event on the stream
///     Ok(())
/// });
/// guard.finish()?;
/// assert!(recorded.get());
/// # Ok::<(), gridcall_view::ViewError>(())
/// ```
#[must_use = "a use that is not recorded lets the array be freed under the kernel"]
pub struct Guard<'a> {
    words: Words,
    /// `None` once done, or if there is nothing to do.
    run: Option<Run>,
    /// The closure may borrow for `'a` and need not be `Send`.
    closure: PhantomData<(&'a mut (), *mut ())>,
}

impl<'a> Guard<'a> {
    /// A guard for an array that has nothing to record.
    #[inline(always)]
    pub const fn none() -> Guard<'a> {
        Guard {
            words: [const { Word::uninit() }; 6],
            run: None,
            closure: PhantomData,
        }
    }

    /// A guard that calls `finish` once the kernel is enqueued.
    ///
    /// What the closure captures must fit six words; a larger one does not compile. `finish` may
    /// enqueue work on the launching stream, and must not block.
    #[inline(always)]
    pub fn new<F>(finish: F) -> Guard<'a>
    where
        F: FnOnce() -> Result<(), ViewError> + 'a,
    {
        const {
            assert!(
                size_of::<F>() <= size_of::<Words>(),
                "a guard's closure may capture at most six words"
            );
            assert!(
                align_of::<F>() <= align_of::<Words>(),
                "a guard's closure may not be aligned to more than a word"
            );
        }
        let mut words: Words = [Word::uninit(); 6];
        // SAFETY: by the assertions above `words` has room for an `F` and is aligned for it.
        unsafe { words.as_mut_ptr().cast::<F>().write(finish) };
        Guard {
            words,
            run: Some(run::<F>),
            closure: PhantomData,
        }
    }

    /// Records the use of the array.
    ///
    /// # Errors
    ///
    /// If the driver refuses. The use is then unknown to the array's owner: the caller must
    /// synchronise the stream before the array is used or freed.
    #[inline(always)]
    pub fn finish(self) -> Result<(), ViewError> {
        ManuallyDrop::new(self).run_once()
    }

    #[inline(always)]
    fn run_once(&mut self) -> Result<(), ViewError> {
        let words = self.words;
        match self.run.take() {
            None => Ok(()),
            // SAFETY: `run` was set together with the closure in `words`, which nothing else
            // touches, and has just been taken, so the closure is read out at most once.
            Some(run) => unsafe { run(words[0], words[1], words[2], words[3], words[4], words[5]) },
        }
    }
}

/// # Safety
///
/// The words must hold an `F` that is not used again.
#[expect(clippy::many_single_char_names, reason = "words have no names")]
unsafe fn run<F: FnOnce() -> Result<(), ViewError>>(
    a: Word,
    b: Word,
    c: Word,
    d: Word,
    e: Word,
    f: Word,
) -> Result<(), ViewError> {
    let words: Words = [a, b, c, d, e, f];
    // SAFETY: the caller hands over the `F` that `Guard::new` wrote to these words.
    let finish = unsafe { words.as_ptr().cast::<F>().read() };
    finish()
}

impl Drop for Guard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let _ = self.run_once();
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("records", &self.run.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn finishing_runs_the_closure_once() {
        let runs = Cell::new(0);
        Guard::new(|| {
            runs.set(runs.get() + 1);
            Ok(())
        })
        .finish()
        .unwrap();
        assert_eq!(runs.get(), 1);
    }

    #[test]
    fn dropping_runs_the_closure_and_drops_what_it_captured() {
        let runs = Cell::new(0);
        let captured = std::rc::Rc::new(());
        let held = captured.clone();
        drop(Guard::new(|| {
            assert_eq!(std::rc::Rc::strong_count(&held), 2);
            drop(held);
            runs.set(runs.get() + 1);
            Err(ViewError::other("lost"))
        }));
        assert_eq!(runs.get(), 1);
        assert_eq!(std::rc::Rc::strong_count(&captured), 1);
    }

    #[test]
    fn six_words_fit() {
        let words = [1_usize, 2, 3, 4, 5, 6];
        let guard = Guard::new(move || {
            assert_eq!(words.iter().sum::<usize>(), 21);
            Ok(())
        });
        guard.finish().unwrap();
        Guard::none().finish().unwrap();
    }
}
