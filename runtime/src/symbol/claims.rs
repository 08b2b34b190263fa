//! What the declarations of a program rely on of the variables of one loaded module.
//!
//! Only what is declared `static mut` is ordered, and only by kernels that were told so when they
//! were declared. So a kernel that uses a variable without knowing that it is written shuts out
//! those who would write it, and the other way round; whoever is loaded second is refused.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::CudaContext;

use super::{
    error::{SymbolError, SymbolErrorKind},
    uses::{SymbolUse, Tracker},
};
use crate::declaration::Touch;

/// The variables of one module, as far as anyone has spoken of them.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tracked: Vec<Arc<Tracker>>,
    /// Variables, and who uses them as ones that nobody writes.
    steady: Vec<(String, String)>,
    /// Kernels of which nobody knows what they use, with the `static mut`s beside them.
    opaque: Vec<(String, &'static [&'static str])>,
}

/// What a kernel does to the symbols that are ordered.
#[derive(Debug)]
pub(crate) struct Touched(pub(crate) Vec<SymbolUse>);

impl Touched {
    /// Why no node of a graph is made of the kernel.
    #[cold]
    pub(crate) fn of_node(&self) -> SymbolError {
        let name = self.0.first().map_or("", |(tracker, _)| &tracker.name);
        SymbolError::new(name, SymbolErrorKind::Node)
    }
}

impl Claims {
    /// The tracker of a variable that is declared `static mut`.
    pub(crate) fn track(
        &self,
        name: &str,
        context: &Arc<CudaContext>,
    ) -> Result<Arc<Tracker>, String> {
        let mut inner = self.lock();
        let known = inner.tracked.iter().find(|tracker| tracker.name == name);
        if let Some(known) = known {
            return Ok(known.clone());
        }
        if let Some((_, by)) = inner.steady.iter().find(|(steady, _)| steady == name) {
            return Err(format!(
                "`{name}` is declared `static mut`, but {by} takes it for one that nobody writes: declare it `static mut` there too"
            ));
        }
        let unaware = inner
            .opaque
            .iter()
            .find(|(_, beside)| !beside.contains(&name));
        if let Some((by, _)) = unaware {
            return Err(format!(
                "`{name}` is declared `static mut`, and whether {by} uses it cannot be told, as the module is no PTX: declare it `static mut` beside that kernel too"
            ));
        }
        let tracker = Arc::new(Tracker::new(name, context));
        inner.tracked.push(tracker.clone());
        Ok(tracker)
    }

    /// Notes that somebody uses a variable as one that nobody writes.
    pub(crate) fn keep(&self, name: &str, by: &str) -> Result<(), String> {
        let mut inner = self.lock();
        if inner.tracked.iter().any(|tracker| tracker.name == name) {
            return Err(format!(
                "it takes `{name}` for a variable that nobody writes, but another declaration of the module says `static mut`: declare it `static mut` beside it too"
            ));
        }
        if !inner.steady.iter().any(|(steady, _)| steady == name) {
            inner.steady.push((name.to_owned(), by.to_owned()));
        }
        Ok(())
    }

    /// What a kernel does to symbols, if it touches any that is ordered.
    pub(crate) fn touch(
        &self,
        kernel: &str,
        touches: &[Touch<'_>],
        context: &Arc<CudaContext>,
    ) -> Result<Option<Touched>, String> {
        let mut ordered = Vec::new();
        for touch in touches {
            if touch.ordered {
                ordered.push((self.track(touch.symbol, context)?, touch.writes));
            } else {
                self.keep(touch.symbol, &format!("kernel `{kernel}`"))?;
            }
        }
        Ok((!ordered.is_empty()).then_some(Touched(ordered)))
    }

    /// The same, of a kernel in a module that is no PTX: it may write all that is declared
    /// `static mut` beside it, and may use whatever else there is.
    pub(crate) fn touch_all(
        &self,
        kernel: &str,
        beside: &'static [&'static str],
        context: &Arc<CudaContext>,
    ) -> Result<Option<Touched>, String> {
        {
            let mut inner = self.lock();
            let unaware = inner
                .tracked
                .iter()
                .find(|tracker| !beside.contains(&&*tracker.name));
            if let Some(Tracker { name, .. }) = unaware.map(|tracker| &**tracker) {
                return Err(format!(
                    "whether it uses `{name}`, which another declaration calls `static mut`, cannot be told, as the module is no PTX: declare `{name}` beside it too"
                ));
            }
            let known = inner.opaque.iter().any(|(_, known)| *known == beside);
            if !known {
                inner.opaque.push((format!("kernel `{kernel}`"), beside));
            }
        }
        let all = beside.iter().map(|symbol| Touch {
            symbol,
            ordered: true,
            writes: true,
        });
        self.touch(kernel, &all.collect::<Vec<_>>(), context)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
