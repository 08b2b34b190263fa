//! The items of a static: a handle of the declared name, and a type that stands for it.

use gridcall_ptx as ptx;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::{Ident, Path, Type};

use super::declaration::{line, option};
use super::signature::visibility;
use super::{Items, image_name, plain};
use crate::artifact::{Artifact, Place};
use crate::describe;
use crate::kernel::unraw;
use crate::mangled;
use crate::span::{at, located, ours};
use crate::statics::Static;
use crate::symbol;

/// ```text
/// /// The user's docs..
/// pub static TAPS: Static<TAPS> = Static::new();
/// /// Stands for `TAPS`..
/// pub enum TAPS {}
/// // hidden
/// unsafe impl DeclaredSymbol for TAPS { type Value = [f32; 5]; type Element = f32; .. }
/// impl DeclaredMut for TAPS {}
/// ```
pub(crate) fn symbol(
    krate: &Path,
    declared: &Static,
    variables: &[(&Artifact, &ptx::Variable)],
    source: Option<&Place>,
    later: bool,
) -> Items {
    let ident = &declared.ident;
    let cfgs = &declared.attrs.cfgs;
    let (name, symbol, shown) = (
        unraw(ident),
        variables
            .first()
            .map_or_else(|| declared.symbol_name(), |(_, one)| one.name().to_owned()),
        describe::ty(&declared.ty),
    );
    let mutable = declared.mutability.is_some();
    let images = images(krate, &symbol, variables, later);
    let cpp = option(mangled::variable_path(&symbol));
    let cuda = option(source.map(|place| place.shown.clone()));
    let line = plain(line(ident.span()));
    let layout = layout(krate, declared, variables);
    let (ty, element) = (&declared.ty, declared.element());
    let functions = functions(krate, declared);
    let holds = holds(declared);
    let source = Ident::new(
        if later {
            "DeclaredInModule"
        } else {
            "DeclaredInPtx"
        },
        ours(),
    );
    let declared_mut = mutable.then(|| {
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(deprecated)]
            impl #krate::__private::DeclaredMut for #ident {}
        }
    });
    // SAFETY (of the generated code): the element is what the type is an array of; that the variable
    // holds such a value or such functions, its block vouches, and the checks of this macro compared.
    let hidden = quote_spanned! {ours()=>
        #(#cfgs)*
        #[allow(deprecated)]
        unsafe impl #krate::__private::DeclaredSymbol for #ident {
            type Value = #ty;
            type Element = #element;
            fn cell() -> &'static #krate::__private::SymbolCell {
                static CELL: #krate::__private::SymbolCell =
                    #krate::__private::SymbolCell::new(&#krate::__private::StaticDeclaration {
                        name: #name,
                        symbol: #symbol,
                        variants: &[#images],
                        cpp: #cpp,
                        source: #cuda,
                        file: ::core::file!(),
                        line: #line,
                        ty: #shown,
                        layout: #layout,
                        mutable: #mutable,
                        functions: #functions,
                    });
                &CELL
            }
        }
        #(#cfgs)*
        #[allow(deprecated)]
        impl #krate::__private::#holds for #ident {}
        #(#cfgs)*
        #[allow(deprecated)]
        impl #krate::__private::#source for #ident {}
        #declared_mut
    };
    let file = variables.first().map_or(String::new(), |(artifact, _)| {
        format!(" of `{}`", artifact.place.shown)
    });
    let what = match (declared.function(), mutable) {
        (None, true) => "can be read and written",
        (None, false) => "is read only",
        (Some(_), true) => "can be got and set",
        (Some(_), false) => "can be got",
    };
    let doc = format!("The variable `{symbol}`{file}, `{shown}`, which {what}.");
    let visible = items(
        krate,
        declared,
        &doc,
        &declared
            .attrs
            .docs
            .iter()
            .map(ToTokens::to_token_stream)
            .collect(),
    );
    Items { visible, hidden }
}

/// Where the variable is in each of the images.
fn images(
    krate: &Path,
    symbol: &str,
    variables: &[(&Artifact, &ptx::Variable)],
    later: bool,
) -> TokenStream {
    let variant = |number, symbol: &str, line: u32, space: &str| {
        let (image, line) = (image_name(number), plain(line));
        quote_spanned! {ours()=>
            #krate::__private::Variable { image: &#image, symbol: #symbol, line: #line, space: #space },
        }
    };
    match (later, variables) {
        // The file that is not there.
        (false, []) => variant(0, symbol, 0, ""),
        _ => variables
            .iter()
            .enumerate()
            .map(|(number, (_, one))| {
                variant(
                    number,
                    one.name(),
                    one.position().line,
                    &one.space().to_string(),
                )
            })
            .collect(),
    }
}

/// What the uses of a wrong declaration need to resolve.
pub(crate) fn symbol_outline(krate: &Path, declared: &Static) -> TokenStream {
    let visible = items(krate, declared, "", &TokenStream::new());
    let ident = &declared.ident;
    let cfgs = &declared.attrs.cfgs;
    let is_known = match crate::value::known(&declared.ty) {
        Some(known) => known.size > 0,
        None => declared.function().is_some() && crate::value::check_static(&declared.ty).is_ok(),
    };
    let (ty, element) = if is_known {
        (declared.ty.clone(), declared.element().clone())
    } else {
        let any: Type = syn::parse_quote!(::core::primitive::u8);
        (any.clone(), any)
    };
    let holds = holds(declared);
    quote_spanned! {ours()=>
        #visible
        const _: () = {
            #(#cfgs)*
            unsafe impl #krate::__private::DeclaredSymbol for #ident {
                type Value = #ty;
                type Element = #element;
                fn cell() -> &'static #krate::__private::SymbolCell {
                    loop {}
                }
            }
            #(#cfgs)*
            impl #krate::__private::#holds for #ident {}
            #(#cfgs)*
            impl #krate::__private::DeclaredInPtx for #ident {}
            #(#cfgs)*
            impl #krate::__private::DeclaredInModule for #ident {}
            #(#cfgs)*
            impl #krate::__private::DeclaredMut for #ident {}
        };
    }
}

fn items(krate: &Path, declared: &Static, doc: &str, docs: &TokenStream) -> TokenStream {
    let Static {
        attrs, vis, ident, ..
    } = declared;
    let (cfgs, shared, function) = (&attrs.cfgs, &attrs.shared, &attrs.function);
    let vis = visibility(vis);
    let name = unraw(ident);
    let of_type =
        format!("Stands for the variable `{name}`, as in `Symbol<{name}>`. It has no values.");
    let doc = if docs.is_empty() {
        doc.to_owned()
    } else {
        format!("\n\n{doc}")
    };
    quote_spanned! {ours()=>
        #docs
        #[doc = #doc]
        #(#cfgs)*
        #(#shared)*
        #[allow(non_upper_case_globals, dead_code, deprecated)]
        #(#function)*
        #vis static #ident: #krate::Static<#ident> = #krate::Static::new();

        #[doc = #of_type]
        #(#cfgs)*
        #(#shared)*
        #[allow(
            non_camel_case_types,
            dead_code,
            missing_debug_implementations,
            missing_copy_implementations,
            clippy::upper_case_acronyms,
            clippy::exhaustive_enums
        )]
        #vis enum #ident {}
    }
}

/// The layout of the type, which the compiler compares with each variable.
fn layout(
    krate: &Path,
    declared: &Static,
    variables: &[(&Artifact, &ptx::Variable)],
) -> TokenStream {
    let (own, ty) = (krate, &declared.ty);
    let krate = located(krate, at(ty));
    let (name, shown) = (unraw(&declared.ident), describe::ty(ty));
    let functions = variables
        .iter()
        .flat_map(|(artifact, variable)| symbol::functions(artifact, variable));
    let variables = variables.iter().map(|(artifact, variable)| {
        let (size, align) = (plain(variable.size().unwrap_or(0)), plain(variable.align()));
        let place = format!("{}:{}", artifact.place.shown, variable.position().line);
        let ptx = variable.to_string();
        quote_spanned! {ours()=> (#size, #align, #ptx, #place) }
    });
    if declared.function().is_some() {
        let functions = functions.map(|function| function.tokens(own));
        return quote_spanned! {at(ty)=>
            #krate::__private::check_functions::<#ty>(
                #name, #shown, &[#(#variables),*], &[#(#functions),*],
            )
        };
    }
    quote_spanned! {at(ty)=>
        #krate::__private::check_symbol::<#ty>(#name, #shown, &[#(#variables),*])
    }
}

/// The trait that says how it holds its value.
fn holds(declared: &Static) -> Ident {
    let holds = match declared.function() {
        Some(_) => "DeclaredFn",
        None => "DeclaredValue",
    };
    Ident::new(holds, ours())
}

/// The type of its functions, if it holds some.
fn functions(krate: &Path, declared: &Static) -> TokenStream {
    match declared.function() {
        Some(function) => quote_spanned! {ours()=>
            ::core::option::Option::Some(<#function as #krate::DeviceFunction>::SIGNATURE)
        },
        None => quote_spanned! {ours()=> ::core::option::Option::None },
    }
}
