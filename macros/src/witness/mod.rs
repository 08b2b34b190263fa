//! What a PTX header cannot say, from those who can: the entry's C++ name, the CUDA source, and the
//! code.
//!
//! Each takes a declaration that fits the header and gives what certainly contradicts it, with the
//! cure. What a witness does not know is no contradiction. Of one parameter, the first witness
//! alone is heard.

pub(crate) mod code;
pub(crate) mod name;
pub(crate) mod rust;
pub(crate) mod source;
pub(crate) mod types;

use gridcall_ptx as ptx;
use proc_macro2::TokenStream;
use quote::ToTokens;

use crate::artifact::{Artifact, Cuda};
use crate::describe;
use crate::expand::Called;
use crate::kernel::{Kernel, Outline};
use crate::mangled;
use crate::report::Report;

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Contradiction {
    /// What the user edits.
    pub(crate) tokens: TokenStream,
    pub(crate) message: String,
}

/// What the witnesses speak of.
pub(crate) struct Subject<'a> {
    pub(crate) outline: &'a Outline,
    pub(crate) kernel: &'a Kernel,
    pub(crate) entry: &'a ptx::Entry,
    pub(crate) module: &'a ptx::Module,
    /// The PTX, as messages call it.
    pub(crate) file: &'a str,
    pub(crate) flow: Option<ptx::Flow>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(
        outline: &'a Outline,
        kernel: &'a Kernel,
        entry: &'a ptx::Entry,
        artifact: &'a Artifact,
    ) -> Subject<'a> {
        Subject {
            outline,
            kernel,
            entry,
            module: &artifact.text.module,
            file: &artifact.place.shown,
            // Code that cannot be read is no witness; the header was read.
            flow: entry.flow(&artifact.text.source).ok(),
        }
    }

    /// The kernel's name in C++, and the types of its parameters if its name in the PTX holds them.
    pub(crate) fn cpp(&self, cuda: Option<&Cuda>) -> Option<(String, Option<String>)> {
        if let Some(signature) = name::signature(self.entry.name()) {
            let instance = signature
                .instance
                .as_ref()
                .map(|instance| format!("<{instance}>"));
            let name = format!("{}{}", signature.path(), instance.unwrap_or_default());
            return Some((name, mangled::parameters(self.entry.name())));
        }
        Some((source::kernel(self, cuda?)?.path(), None))
    }

    /// Which parameters the code certainly never writes through.
    pub(crate) fn read_only(&self) -> Vec<bool> {
        let flow = self.flow.iter().flat_map(ptx::Flow::params);
        flow.map(ptx::ParamFlow::is_read_only).collect()
    }

    /// For each parameter, the prototypes by which the code calls it.
    pub(crate) fn calls(&self) -> Vec<Vec<Called>> {
        let called =
            |call: &ptx::IndirectCall| Called::by_prototype(call, &self.place(call.position));
        let flow = self.flow.iter().flat_map(ptx::Flow::params);
        flow.map(|flow| flow.calls().iter().map(called).collect())
            .collect()
    }

    fn name(&self) -> String {
        crate::kernel::unraw(&self.outline.ident)
    }

    fn name_tokens(&self) -> TokenStream {
        match &self.kernel.name {
            Some(name) => name.to_token_stream(),
            None => self.outline.ident.to_token_stream(),
        }
    }

    /// `kernels/vector.ptx:12`.
    pub(crate) fn place(&self, position: ptx::Position) -> String {
        format!("{}:{}", self.file, position.line)
    }

    /// Parameter 0, `n`, of `saxpy` is `u64`.
    fn param_is(&self, index: usize) -> String {
        let param = &self.kernel.params[index];
        let ty = describe::ty(&param.ty);
        format!(
            "parameter {index}, `{}`, of `{}` is `{ty}`",
            param.ident,
            self.name()
        )
    }

    fn known(&self, index: usize) -> types::Known<'static> {
        let flow = self.flow.as_ref().and_then(|flow| flow.params().get(index));
        types::Known {
            read_only: flow.is_some_and(ptx::ParamFlow::is_read_only),
            dereferenced: flow.is_some_and(|flow| !flow.accesses().is_empty()),
            is_struct: &|_| false,
        }
    }
}

/// Hears the witnesses in order, until one contradicts.
pub(crate) fn check(
    subject: &Subject<'_>,
    cuda: Option<&Cuda>,
    deny_unused: bool,
    report: &mut Report,
) {
    let of_name = || name::check(subject);
    let of_source = || cuda.map_or_else(Vec::new, |cuda| source::check(subject, cuda));
    let of_code = || match &subject.flow {
        Some(flow) => code::check(subject, flow, deny_unused),
        None => Vec::new(),
    };
    let witnesses: [&dyn Fn() -> Vec<Contradiction>; 3] = [&of_name, &of_source, &of_code];
    for witness in witnesses {
        for Contradiction { tokens, message } in witness() {
            report.error(tokens, message);
        }
        if !report.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
