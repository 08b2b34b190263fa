//! What the compiler gives.

use std::{fmt, sync::Arc};

use cudarc::driver::CudaContext;

use super::{
    CompileError, NameExpression, Origin,
    cache::{self, Cached},
};
use crate::{error::LoadError, libnvrtc, module::Module};

/// A program that is compiled.
#[derive(Clone)]
pub struct Compiled {
    pub(super) name: String,
    pub(super) arch: String,
    pub(super) output: Output,
    pub(super) cached: Cached,
    pub(super) origin: Origin,
}

/// What the compiler gives.
#[derive(Clone)]
pub(super) struct Output {
    ptx: String,
    cubin: Option<Vec<u8>>,
    log: String,
    /// Name expressions in order, and the names in the PTX.
    lowered_names: Vec<(String, String)>,
}

impl Compiled {
    /// The PTX: for cudarc, `Ptx::from_src(compiled.ptx())`.
    #[must_use]
    pub fn ptx(&self) -> &str {
        &self.output.ptx
    }

    /// The machine code, if the architecture is a real one (`sm_90`).
    #[must_use]
    pub fn cubin(&self) -> Option<&[u8]> {
        self.output.cubin.as_deref()
    }

    /// The architecture that it is compiled for, as NVRTC's option names it.
    #[must_use]
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// The compiler's warnings, each with file and line; empty if there are none.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.output.log
    }

    /// The name in the PTX of a name expression that the program had; none for another.
    #[must_use]
    pub fn lowered_name(&self, expression: &NameExpression) -> Option<&str> {
        self.output.lowered_name(&expression.to_string())
    }

    /// Whether it was found in the cache or compiled now; and why it is not kept, if so.
    #[must_use]
    pub fn cached(&self) -> &Cached {
        &self.cached
    }

    /// Loads it in a context.
    ///
    /// # Errors
    ///
    /// If the driver refuses it.
    pub fn load(&self, context: &Arc<CudaContext>) -> Result<Module, LoadError> {
        let name = format!("the PTX of {}", self.name);
        let Output { ptx, cubin, .. } = &self.output;
        Module::from_nvrtc(context, &name, ptx, cubin.as_deref(), self.origin.clone())
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("name", &self.name)
            .field("arch", &self.arch)
            .field("cached", &self.cached)
            .finish_non_exhaustive()
    }
}

impl Output {
    pub(super) fn of(
        program: &libnvrtc::Compilation<'_>,
        name_expressions: &[String],
        is_real: bool,
    ) -> Result<Output, CompileError> {
        let lowered_names = name_expressions.iter().map(|expression| {
            let lowered = program.lowered_name(expression)?;
            Ok((expression.clone(), lowered))
        });
        Ok(Output {
            ptx: program.ptx()?,
            cubin: is_real.then(|| program.cubin()).transpose()?,
            log: program.log()?,
            lowered_names: lowered_names.collect::<Result<_, CompileError>>()?,
        })
    }

    pub(super) fn lowered_name(&self, expression: &str) -> Option<&str> {
        let names = &self.lowered_names;
        let found = names.iter().find(|(name, _)| name == expression);
        found.map(|(_, lowered)| lowered.as_str())
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut writer = cache::Writer::default();
        writer.put(self.ptx.as_bytes());
        writer.put(self.cubin.as_deref().unwrap_or_default());
        writer.put(self.log.as_bytes());
        for (expression, lowered) in &self.lowered_names {
            writer.put(expression.as_bytes());
            writer.put(lowered.as_bytes());
        }
        writer.0
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Output> {
        let mut reader = cache::Reader(bytes);
        let ptx = reader.text()?;
        let cubin = reader.take()?;
        let cubin = (!cubin.is_empty()).then(|| cubin.to_vec());
        let log = reader.text()?;
        let mut lowered_names = Vec::new();
        while !reader.0.is_empty() {
            lowered_names.push((reader.text()?, reader.text()?));
        }
        Some(Output {
            ptx,
            cubin,
            log,
            lowered_names,
        })
    }
}
