//! Loads a declared symbol into a context, and finds it again.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::CudaContext;

use super::uses::SymbolUse;
use crate::{
    declaration::StaticDeclaration,
    error::LoadError,
    load::{self, enter},
};

/// A declared symbol, and where it is loaded. Made by `#[kernel]`.
///
/// As for kernels, an entry is found by the address of cudarc's context, which its `Weak` pins.
#[derive(Debug)]
pub struct SymbolCell {
    declaration: &'static StaticDeclaration,
    loaded: Mutex<Vec<(Weak<CudaContext>, Arc<LoadedSymbol>)>>,
}

/// A symbol in one context.
#[derive(Debug)]
pub(crate) struct LoadedSymbol {
    pub(crate) name: &'static str,
    pub(crate) pointer: u64,
    /// Its reads and writes, if it is declared `static mut`.
    pub(crate) uses: Option<[SymbolUse; 2]>,
    /// Keeps the variable where it is.
    pub(crate) module: Arc<load::Module>,
}

impl SymbolCell {
    /// A symbol that is loaded nowhere yet.
    #[must_use]
    pub const fn new(declaration: &'static StaticDeclaration) -> SymbolCell {
        SymbolCell {
            declaration,
            loaded: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn declaration(&self) -> &'static StaticDeclaration {
        self.declaration
    }

    /// The symbol in this context, loaded at the first call for it.
    pub(super) fn get(&self, context: &Arc<CudaContext>) -> Result<Arc<LoadedSymbol>, LoadError> {
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let here = |known: &&(Weak<CudaContext>, _)| known.0.as_ptr() == Arc::as_ptr(context);
        if let Some((_, loaded)) = all.iter().find(here) {
            return Ok(loaded.clone());
        }
        let driver = enter(context)?;
        let loaded = Arc::new(LoadedSymbol::load(self.declaration, driver, context)?);
        all.retain(|(context, _)| context.strong_count() > 0);
        all.push((Arc::downgrade(context), loaded.clone()));
        Ok(loaded)
    }
}

impl LoadedSymbol {
    /// A use of it, if it is ordered.
    pub(super) fn uses(&self, writes: bool) -> &[SymbolUse] {
        match &self.uses {
            Some([read, write]) => std::slice::from_ref(if writes { write } else { read }),
            None => &[],
        }
    }
}
