//! Generic declarations: one signature for several entries, `#[instances(T = { f32 => "add_f32", ..
//! })]`.
//!
//! Each instance becomes a declaration of its own, with the type in place of the parameter, and
//! takes the way of every other. What users see is one function and one struct, generic in that
//! type.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, FnArg, GenericParam, LitStr, Meta, Signature, Token, Type, braced};

use crate::artifact::Found;
use crate::cuda;
use crate::describe;
use crate::kernel::{self, Form, Parsed, unraw};
use crate::mangled;
use crate::report::Report;
use crate::span::ours;
use crate::witness::{name, rust};

/// A generic declaration, as it was written.
pub(crate) struct Family {
    attrs: Vec<Attribute>,
    /// `#[name(..)]`: of instances whose entries are not named.
    name: Option<Attribute>,
    signature: Signature,
    form: Form,
    /// The type parameter.
    pub(crate) parameter: Ident,
    /// None if the PTX tells which there are.
    instances: Option<Vec<Instance>>,
}

/// One type and its entry.
pub(crate) struct Instance {
    pub(crate) ty: Type,
    pub(crate) entry: Option<LitStr>,
}

/// The one type parameter of a signature, if it has one and nothing else.
pub(crate) fn type_parameter(signature: &Signature) -> Option<Ident> {
    let mut params = signature.generics.params.iter();
    match (params.next(), params.next()) {
        (Some(GenericParam::Type(only)), None) if only.bounds.is_empty() => {
            Some(only.ident.clone())
        }
        _ => None,
    }
}

impl Family {
    pub(crate) fn read(
        attrs: &[Attribute],
        signature: &Signature,
        form: Form,
        parameter: Ident,
        report: &mut Report,
    ) -> Family {
        let mut instances = None;
        for attr in attrs
            .iter()
            .filter(|attr| attr.path().is_ident("instances"))
        {
            if instances.is_some() {
                report.error(
                    attr,
                    "#[instances(..)] is given twice: a kernel has one list",
                );
            }
            instances = report.note(read_instances(attr, &parameter));
        }
        Family {
            name: attrs
                .iter()
                .find(|attr| attr.path().is_ident("name"))
                .cloned(),
            // Docs and the like belong to what users see.
            attrs: attrs
                .iter()
                .filter(|attr| {
                    ["requires", "block", "may_alias", "cfg", "allow"]
                        .iter()
                        .any(|kept| attr.path().is_ident(kept))
                })
                .cloned()
                .collect(),
            signature: signature.clone(),
            form,
            parameter,
            instances,
        }
    }

    /// The types that there are instances of, as messages list them.
    pub(crate) fn instances(&self, found: &Found, report: &mut Report) -> Vec<Instance> {
        match &self.instances {
            Some(listed) => listed
                .iter()
                .map(|Instance { ty, entry }| Instance {
                    ty: ty.clone(),
                    entry: entry.clone(),
                })
                .collect(),
            None => self.told_by_names(found, report),
        }
    }

    /// The instances of a template, by the names of the entries.
    fn told_by_names(&self, found: &Found, report: &mut Report) -> Vec<Instance> {
        let Found::Modules(artifacts) = found else {
            let message =
                "which instances are there? write `#[instances(T = { f32 => \"entry\" })]`";
            report.error(&self.signature.ident, message);
            return Vec::new();
        };
        let mut instances: Vec<Instance> = Vec::new();
        let entries = artifacts
            .iter()
            .flat_map(|artifact| artifact.module().entries());
        let names: Vec<&str> = entries.map(gridcall_ptx::Entry::name).collect();
        let kernel = unraw(&self.signature.ident);
        for (symbol, _) in mangled::called(&kernel, &names) {
            let Some(ty) = type_argument(symbol) else {
                continue;
            };
            let shown = describe::ty(&ty);
            if instances
                .iter()
                .all(|known| describe::ty(&known.ty) != shown)
            {
                instances.push(Instance {
                    ty,
                    entry: Some(LitStr::new(symbol, self.signature.ident.span())),
                });
            }
        }
        if instances.is_empty() {
            let file = artifacts
                .first()
                .map_or("", |artifact| artifact.place.shown.as_str());
            let message = format!(
                "{file} has no instances of a template `{kernel}<T>`: list the entries, \
                 `#[instances({} = {{ f32 => \"entry\" }})]`",
                self.parameter
            );
            report.error(&self.signature.ident, message);
        }
        instances
    }

    /// The declaration of one instance.
    pub(crate) fn declare(&self, instance: &Instance) -> Parsed {
        let mut signature = self.signature.clone();
        signature.generics = syn::Generics::default();
        for input in &mut signature.inputs {
            if let FnArg::Typed(input) = input {
                *input.ty = substitute(&input.ty, &self.parameter, &instance.ty);
            }
        }
        let mut attrs = self.attrs.clone();
        match &instance.entry {
            Some(entry) => attrs.push(syn::parse_quote! { #[name(#entry)] }),
            None => attrs.extend(self.name.clone()),
        }
        let public = syn::Visibility::Public(Token![pub](ours()));
        kernel::read(attrs, public, signature, self.form, Report::default())
    }
}

/// `f32` of `_Z3addIfEvPT_`.
fn type_argument(symbol: &str) -> Option<Type> {
    let instance = name::signature(symbol)?.instance?;
    let kernel = cuda::read(&format!("__global__ void k({instance});"))
        .kernels
        .pop()?;
    let params = kernel.params?;
    let [only] = params.as_slice() else {
        return None;
    };
    match &only.ty {
        // A number is an argument too, and no type.
        cuda::Type::Unknown | cuda::Type::Void | cuda::Type::Pointer(_) => None,
        ty => syn::parse_str(&rust::by_value(ty)?).ok(),
    }
}

/// `T = { f32 => "add_f32", f64 => "add_f64" }`
fn read_instances(attr: &Attribute, parameter: &Ident) -> syn::Result<Vec<Instance>> {
    let form =
        format!("write `#[instances({parameter} = {{ f32 => \"entry\", f64 => \"other\" }})]`");
    let Meta::List(list) = &attr.meta else {
        return Err(syn::Error::new_spanned(attr, form));
    };
    let parser = |input: ParseStream| {
        let name: Ident = input.parse()?;
        if name != *parameter {
            let message = format!("the kernel's type parameter is `{parameter}`");
            return Err(syn::Error::new_spanned(name, message));
        }
        input.parse::<Token![=]>()?;
        let content;
        braced!(content in input);
        let mut instances: Vec<Instance> = Vec::new();
        while !content.is_empty() {
            let ty: Type = content.parse()?;
            let entry = match content.parse::<Option<Token![=>]>>()? {
                Some(_) => Some(content.parse()?),
                None => None,
            };
            let shown = describe::ty(&ty);
            if instances
                .iter()
                .any(|known| describe::ty(&known.ty) == shown)
            {
                let message = format!("`{shown}` is listed twice: a type has one entry");
                return Err(syn::Error::new_spanned(ty, message));
            }
            instances.push(Instance { ty, entry });
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        let comma = input.parse::<Option<Token![,]>>()?;
        if instances.is_empty() {
            return Err(syn::Error::new_spanned(&list.tokens, form.clone()));
        }
        let _ = comma;
        Ok(instances)
    };
    parser.parse2(list.tokens.clone())
}

/// The type with another in place of the parameter, standing where that stood.
fn substitute(ty: &Type, parameter: &Ident, by: &Type) -> Type {
    let tokens = replace(ty.to_token_stream(), parameter, &by.to_token_stream());
    // A type with another type in the place of a name is a type.
    syn::parse2(tokens).unwrap_or_else(|_| ty.clone())
}

pub(crate) fn replace(tokens: TokenStream, parameter: &Ident, by: &TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) if ident == *parameter => located(by, ident.span()),
            TokenTree::Group(group) => {
                let inner = replace(group.stream(), parameter, by);
                let mut replaced = proc_macro2::Group::new(group.delimiter(), inner);
                replaced.set_span(group.span());
                TokenTree::from(replaced).into()
            }
            other => other.into(),
        })
        .collect()
}

/// Whether a type speaks of the parameter.
pub(crate) fn mentions(tokens: &TokenStream, parameter: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *parameter,
        TokenTree::Group(group) => mentions(&group.stream(), parameter),
        _ => false,
    })
}

fn located(tokens: &TokenStream, span: Span) -> TokenStream {
    let move_to = |mut token: TokenTree| {
        token.set_span(token.span().located_at(span));
        token
    };
    tokens.clone().into_iter().map(move_to).collect()
}

/// The trait of the types that a kernel has instances of.
pub(crate) fn trait_name(kernel: &Ident) -> Ident {
    format_ident!("__Instances_{}", unraw(kernel), span = ours())
}
