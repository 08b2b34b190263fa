//! Where a module is from: so that kernels can be compared with their source when they are taken.

use std::{
    ptr,
    sync::{Arc, Mutex, PoisonError},
};

use super::{CompileError, Program};
use crate::{declaration::Declaration, libnvrtc::LibNvrtc};

/// A program as it was compiled, and the declarations that were compared with it.
#[derive(Clone)]
pub(crate) struct Origin(Arc<Inner>);

struct Inner {
    program: Program,
    arch: String,
    /// Each with the name of its kernel in the PTX.
    compared: Mutex<Vec<(&'static Declaration, String)>>,
}

impl Origin {
    pub(super) fn new(
        program: Program,
        arch: &str,
        compared: impl Iterator<Item = (&'static Declaration, String)>,
    ) -> Origin {
        Origin(Arc::new(Inner {
            program,
            arch: arch.to_owned(),
            compared: Mutex::new(compared.collect()),
        }))
    }

    /// The name of a declaration's kernel in the PTX, if the compiler finds that it is declared as it
    /// is in the source.
    pub(crate) fn entry(&self, declaration: &'static Declaration) -> Result<String, CompileError> {
        let Inner {
            program,
            arch,
            compared,
        } = &*self.0;
        let find = |compared: &[(&'static Declaration, String)]| {
            let same = |(one, _): &&(&'static Declaration, String)| ptr::eq(*one, declaration);
            compared.iter().find(same).map(|(_, entry)| entry.clone())
        };
        if let Some(entry) = find(&compared.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(entry);
        }
        let program = Program {
            name_expressions: Vec::new(),
            kernels: vec![declaration],
            ..program.clone()
        };
        let compiled = program.compile_by(LibNvrtc::open()?, arch)?;
        let now = compiled.origin.0.compared.lock();
        let now = now.unwrap_or_else(PoisonError::into_inner).clone();
        let mut compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        compared.extend(now);
        Ok(find(&compared).unwrap_or_default())
    }
}
