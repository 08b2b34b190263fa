//! Collects what is wrong, so that one compilation tells all of it.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Attribute;

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Report {
    errors: Vec<syn::Error>,
}

impl Report {
    /// Underlines from the first to the last of `tokens`.
    pub(crate) fn error(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn add(&mut self, error: syn::Error) {
        self.errors.push(error);
    }

    /// The value, or its error noted here.
    pub(crate) fn note<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Adds what another found and this did not.
    pub(crate) fn extend(&mut self, other: Report) {
        for error in other.errors {
            let known = |known: &syn::Error| known.to_string() == error.to_string();
            if !self.errors.iter().any(known) {
                self.add(error);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// One `compile_error!` for each, under the `#[cfg]` of what they speak of: an item that is not
    /// compiled has no errors.
    pub(crate) fn into_tokens(self, cfgs: &[Attribute]) -> TokenStream {
        let errors = self.errors.into_iter().flatten();
        errors
            .map(|error| {
                let error = error.into_compile_error();
                quote! { #(#cfgs)* #error }
            })
            .collect()
    }
}

#[cfg(test)]
impl Report {
    /// Each error with what it underlines of `source`.
    pub(crate) fn shown(self, source: &str) -> Vec<(String, String)> {
        let errors = self.errors.into_iter().flatten();
        errors
            .map(|error| {
                let range = error.span().byte_range();
                let text = source.get(range).unwrap_or_default();
                (text.to_owned(), error.to_string())
            })
            .collect()
    }
}
