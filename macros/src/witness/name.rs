//! The C++ name of an entry as a witness: it holds the types of the parameters.

use quote::ToTokens;

use crate::cuda;
use crate::kernel::{Kernel, Param};
use crate::mangled;

use super::types::{self, Known};
use super::{Contradiction, Subject};

/// `math::add<float>(float*, int)` of a mangled name, as a declaration.
pub(crate) fn signature(symbol: &str) -> Option<cuda::Kernel> {
    let shown = mangled::demangle(symbol)?.replace("(anonymous namespace)::", "");
    let mut source = cuda::read(&format!("__global__ void {shown};"));
    (source.kernels.len() == 1).then(|| source.kernels.remove(0))
}

/// What the name says against the declaration; nothing if it is no C++ name.
pub(crate) fn check(subject: &Subject<'_>) -> Vec<Contradiction> {
    let symbol = subject.entry.name();
    let Some(params) = signature(symbol).and_then(|signature| signature.params) else {
        return Vec::new();
    };
    // Names of structs are parts of names, with their length in front.
    let is_struct = |name: &str| {
        let part = format!("{}{name}", name.len());
        subject
            .module
            .entries()
            .iter()
            .any(|entry| entry.name().starts_with("_Z") && entry.name().contains(&part))
    };
    let place = subject.place(subject.entry.position());
    let mut found = Vec::new();
    for (index, (param, actual)) in subject.kernel.params.iter().zip(&params).enumerate() {
        let known = Known {
            is_struct: &is_struct,
            ..subject.known(index)
        };
        if let Some(cure) = types::contradiction(param, &actual.ty, known) {
            found.push(Contradiction {
                tokens: param.ty.to_token_stream(),
                message: format!(
                    "{}, but by its name the entry at {place}, `{symbol}`, takes `{}`: {cure}",
                    subject.param_is(index),
                    actual.text
                ),
            });
        }
    }
    found
}

/// Whether a declaration may be that of an entry with this name.
pub(crate) fn fits(kernel: &Kernel, symbol: &str) -> bool {
    let Some(params) = signature(symbol).and_then(|signature| signature.params) else {
        return true;
    };
    let fit = |(param, actual): (&Param, &cuda::Param)| {
        // Constness tells no overloads of Rust types apart; and what the code does is not known
        // yet.
        let known = Known {
            read_only: true,
            dereferenced: true,
            is_struct: &|_| false,
        };
        types::contradiction(param, &actual.ty, known).is_none()
    };
    params.len() == kernel.params.len() && kernel.params.iter().zip(&params).all(fit)
}
