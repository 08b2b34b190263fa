//! Functions of the device as they are in the PTX, for the compiler to compare with types of Rust.

use gridcall_ptx as ptx;
use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{Ident, Path};

use super::plain;
use crate::span::ours;

/// A signature in the PTX, and what it has to do with what is declared.
pub(crate) struct Called {
    /// "k.ptx:7 initialises it with `_Z6squaref`, which k.ptx:3 declares".
    said: String,
    /// `(.b32) -> .b32`
    shown: String,
    params: Vec<ptx::Param>,
    result: Option<ptx::Param>,
}

impl Called {
    /// By a prototype of the kernel's code, at a place of a file.
    pub(crate) fn by_prototype(call: &ptx::IndirectCall, place: &str) -> Called {
        Called {
            said: format!("the kernel calls it at {place} by the prototype"),
            shown: call.signature(),
            params: call.params.clone(),
            result: call.returns.first().cloned(),
        }
    }

    /// A function that a variable is initialised with.
    pub(crate) fn held(function: &ptx::Function, said: String) -> Called {
        Called {
            said,
            shown: function.signature(),
            params: function.params().to_vec(),
            result: function.returns().first().cloned(),
        }
    }

    /// `PtxFunction { .. }`
    pub(super) fn tokens(&self, krate: &Path) -> TokenStream {
        let Called { said, shown, .. } = self;
        let params = self.params.iter().map(|param| part(krate, param));
        let result = match &self.result {
            Some(result) => {
                let result = part(krate, result);
                quote_spanned! {ours()=> ::core::option::Option::Some(#result) }
            }
            None => quote_spanned! {ours()=> ::core::option::Option::None },
        };
        quote_spanned! {ours()=>
            #krate::__private::PtxFunction {
                said: #said, shown: #shown, params: &[#(#params),*], result: #result,
            }
        }
    }
}

fn part(krate: &Path, param: &ptx::Param) -> TokenStream {
    let (size, align) = (plain(param.size()), plain(param.align()));
    let class = Ident::new(super::launch::class(param.class()), ours());
    quote_spanned! {ours()=>
        #krate::__private::PtxPart {
            size: #size, align: #align, class: #krate::__private::Class::#class,
        }
    }
}
