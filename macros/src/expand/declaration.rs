//! The description of a kernel: its docs, and what the runtime loads it by and calls it in
//! messages.

use gridcall_ptx as ptx;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::{Attribute, Type};

use super::{Layout, Signature, Subject, plain};
use crate::describe;
use crate::kernel::{Outline, Param, unraw};
use crate::span::ours;
use crate::value::{self, Shape, Taken};

impl Subject<'_> {
    /// The docs of the function: the user's, and what the declaration says.
    pub(super) fn docs(&self) -> TokenStream {
        let docs = &self.outline.attrs.docs;
        let entry = self.entry_name();
        let mut text = format!(
            "Launches the kernel `{entry}` of `{}` on `stream`.",
            self.file
        );
        if !self.kernel.requires.is_empty() {
            let requires = self.kernel.requires.iter().map(describe::expr);
            let requires: Vec<String> = requires.map(|one| format!("- `{one}`")).collect();
            text = format!("{text}\n\nRequires:\n\n{}", requires.join("\n"));
        }
        let user = docs_text(docs);
        if !user.contains("# Errors") {
            text.push_str(
                "\n\n# Errors\n\nIf a requirement does not hold, an argument does not fit the \
                 kernel, the kernel cannot be loaded, or the driver refuses the launch; nothing \
                 was launched then.",
            );
        }
        if !self.outline.safe && !user.contains("# Safety") {
            text.push_str(
                "\n\n# Safety\n\nThe caller vouches for what the PTX does not tell: that the \
                 kernel stays within its arrays, writes only to those declared `&mut` or `*mut`, \
                 and is right for this launch.",
            );
        }
        // An empty line ends the user's paragraph.
        let text = if docs.is_empty() {
            text
        } else {
            format!("\n\n{text}")
        };
        quote_spanned! {ours()=> #(#docs)* #[doc = #text] }
    }

    /// The description of the kernel, for messages and for loading it.
    pub(super) fn declared(&self, signature: &Signature<'_>) -> TokenStream {
        let krate = self.krate;
        let cfgs = &self.outline.attrs.cfgs;
        let kernel_ty = signature.kernel_ty();
        let safety = signature.safety();
        let name = unraw(&self.outline.ident);
        let entry = self.entry_name();
        let line = plain(line(self.outline.ident.span()));
        let params = self.kernel.params.iter().enumerate().map(|(index, param)| {
            let name = unraw(&param.ident);
            let ty = describe::ty(&param.ty);
            let Layout {
                offset,
                size,
                align,
            } = self.layout(index);
            if let Some(short) = self.scalar_param(index, param) {
                return short;
            }
            let pass = self.pass(index, param);
            quote_spanned! {ours()=>
                #krate::__private::Param {
                    name: #name, ty: #ty, offset: #offset, size: #size, align: #align, pass: #pass,
                }
            }
        });
        let cpp = self.cpp();
        let mut used = self.touches.iter().flatten();
        let touches =
            used.any(|(_, ordered, _)| *ordered) || self.later && !self.ordered.is_empty();
        let statics_mut = if self.later { self.ordered } else { &[] };
        let params_size = self.params_size();
        let requires = self.kernel.requires.iter().map(describe::expr);
        let block = dims(self.kernel.block.as_ref().map(|block| block.dims));
        let needs = self.needs(None, false);
        let rank = plain(self.kernel.rank.as_ref().map_or(0, |rank| rank.axes));
        let examined = self.later
            || self.kernel.cooperative
            || self.kernel.cluster.is_some()
            || self.entries.iter().any(|(entry, _)| {
                let directives = entry.directives();
                directives.reqnctapercluster().is_some() || directives.explicitcluster()
            });
        let variants = self.variants();
        let may_alias = self.kernel.may_alias.iter().map(|&(one, other)| {
            let (one, other) = (plain(one), plain(other));
            quote_spanned! {ours()=> (#one, #other) }
        });
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(deprecated)]
            impl #krate::__private::Declared for #kernel_ty {
                type Safety = #safety;
                const RANK: ::core::primitive::u8 = #rank;
                const EXAMINED: ::core::primitive::bool = #examined;
                const TOUCHES: ::core::primitive::bool = #touches;
                fn cell() -> &'static #krate::__private::KernelCell {
                    static CELL: #krate::__private::KernelCell =
                        #krate::__private::KernelCell::new(&#krate::__private::Declaration {
                            kernel: #name,
                            entry: #entry,
                            variants: &[#variants],
                            file: ::core::file!(),
                            line: #line,
                            params: &[#(#params),*],
                            params_size: #params_size,
                            requires: &[#(#requires),*],
                            block: #block,
                            needs: #needs,
                            may_alias: &[#(#may_alias),*],
                            cpp: #cpp,
                            statics_mut: &[#(#statics_mut),*],
                        });
                    &CELL
                }
            }
        }
    }

    /// The images, each with what its entry says.
    fn variants(&self) -> TokenStream {
        let krate = self.krate;
        let variant = |number: usize, entry: Option<&ptx::Entry>, waits: bool| {
            let image = super::image_name(number);
            let name = entry.map_or_else(|| self.entry_name(), |entry| entry.name().to_owned());
            let directives = entry.map(ptx::Entry::directives);
            let reqntid = dims(directives.and_then(ptx::Directives::reqntid));
            let maxntid = dims(directives.and_then(ptx::Directives::maxntid));
            let needs = self.needs(directives, waits);
            let touches = self.touches.get(number).into_iter().flatten();
            let touches = touches.map(|(symbol, ordered, writes)| {
                quote_spanned! {ours()=>
                    #krate::__private::Touch {
                        symbol: #symbol, ordered: #ordered, writes: #writes,
                    }
                }
            });
            quote_spanned! {ours()=>
                #krate::__private::Variant {
                    image: &#image, entry: #name, reqntid: #reqntid, maxntid: #maxntid, needs: #needs,
                    touches: &[#(#touches),*],
                },
            }
        };
        match self.entries.as_slice() {
            [] if self.later => TokenStream::new(),
            // The file that is not there.
            [] => variant(0, None, false),
            entries => entries
                .iter()
                .enumerate()
                .map(|(number, &(entry, waits))| variant(number, Some(entry), waits))
                .collect(),
        }
    }

    /// What the declaration asks of every launch, and an entry with it.
    fn needs(&self, directives: Option<&ptx::Directives>, waits: bool) -> TokenStream {
        let krate = self.krate;
        let cooperative = self.kernel.cooperative;
        let cluster = self.kernel.cluster.as_ref().map(|cluster| cluster.dims);
        let required = directives.and_then(ptx::Directives::reqnctapercluster);
        let explicit = directives.is_some_and(ptx::Directives::explicitcluster);
        let counts = directives.is_some_and(ptx::Directives::blocksareclusters);
        let most = directives.and_then(ptx::Directives::maxclusterrank);
        // Most kernels need nothing, and less code compiles faster.
        if !cooperative && cluster.or(required).is_none() && !explicit && most.is_none() && !waits {
            return quote_spanned! {ours()=> #krate::__private::Needs::NONE };
        }
        let (cluster, required) = (dims(cluster), dims(required));
        let most = option(most.map(plain));
        quote_spanned! {ours()=>
            #krate::__private::Needs {
                cooperative: #cooperative,
                cluster: #cluster,
                required_cluster: #required,
                explicit_cluster: #explicit,
                counts_clusters: #counts,
                max_cluster_rank: #most,
                waits: #waits,
            }
        }
    }

    /// A scalar or an array of scalars, which the runtime knows by name: most are, and less code
    /// compiles faster.
    fn scalar_param(&self, index: usize, param: &Param) -> Option<TokenStream> {
        let krate = self.krate;
        let (name, ty) = (unraw(&param.ident), describe::ty(&param.ty));
        let offset = self.layout(index).offset;
        let read_only = self.heard.read_only.get(index).copied().unwrap_or(false);
        let (elem, written) = match &param.taken {
            Taken::Value { ty: value, .. } => {
                let kind = scalar_name(value)?;
                return Some(quote_spanned! {ours()=>
                    #krate::__private::Param::scalar(#name, #ty, #offset, #kind)
                });
            }
            Taken::Slice { elem, written } | Taken::Pointer { elem, written } => (elem, *written),
            Taken::Optional { elem } => (elem, false),
            Taken::Strided { .. }
            | Taken::TensorMap { .. }
            | Taken::Texture { .. }
            | Taken::Surface { .. }
            | Taken::Function { .. }
            | Taken::Condition { .. } => return None,
        };
        let kind = scalar_name(elem)?;
        Some(quote_spanned! {ours()=>
            #krate::__private::Param::array(#name, #ty, #offset, #kind, #written, #read_only)
        })
    }

    /// How a parameter is passed, with the layout of its type where it has one.
    fn pass(&self, index: usize, param: &Param) -> TokenStream {
        let krate = self.krate;
        let (elem, written) = match &param.taken {
            Taken::Value { ty, .. } => {
                let layout = self.layout_of(ty);
                return quote_spanned! {ours()=> #krate::__private::Pass::Value(#layout) };
            }
            Taken::Slice { elem, written } | Taken::Pointer { elem, written } => (elem, *written),
            Taken::Optional { elem } => (elem, false),
            Taken::Function { function, .. } => {
                return quote_spanned! {ours()=>
                    #krate::__private::Pass::Function(
                        <#function as #krate::DeviceFunction>::SIGNATURE,
                    )
                };
            }
            Taken::TensorMap { .. }
            | Taken::Texture { .. }
            | Taken::Surface { .. }
            | Taken::Condition { .. } => {
                let passed = match &param.taken {
                    Taken::Texture { .. } | Taken::Surface { .. } => Ident::new("Object", ours()),
                    Taken::Condition { .. } => Ident::new("ConditionHandle", ours()),
                    _ => Ident::new("Descriptor", ours()),
                };
                return quote_spanned! {ours()=>
                    #krate::__private::Pass::Value(::core::option::Option::Some(
                        <#krate::__private::#passed as #krate::KernelArg>::LAYOUT,
                    ))
                };
            }
            Taken::Strided { elem, rank, .. } => {
                let strided = quote_spanned! {ours()=> #krate::Strided<#elem, { #rank }> };
                return quote_spanned! {ours()=>
                    #krate::__private::Pass::Value(::core::option::Option::Some(
                        <#strided as #krate::KernelArg>::LAYOUT,
                    ))
                };
            }
        };
        let layout = self.layout_of(elem);
        let read_only = self.heard.read_only.get(index).copied().unwrap_or(false);
        quote_spanned! {ours()=>
            #krate::__private::Pass::Array {
                written: #written,
                read_only: #read_only,
                size: ::core::mem::size_of::<#elem>(),
                element: #layout,
            }
        }
    }

    /// The layout of a type, if it has one.
    fn layout_of(&self, ty: &Type) -> TokenStream {
        let krate = self.krate;
        quote_spanned! {ours()=>
            {
                #[allow(unused_imports)]
                use #krate::__private::NoLayout as _;
                #krate::__private::LayoutOf::<#ty>::LAYOUT
            }
        }
    }

    fn cpp(&self) -> TokenStream {
        let krate = self.krate;
        let entry = self.entry_name();
        let name = self.heard.cpp.as_ref().map_or(&entry, |(name, _)| name);
        let params = option(
            self.heard
                .cpp
                .as_ref()
                .and_then(|(_, params)| params.as_ref()),
        );
        let source = option(self.heard.source.as_ref());
        let instance = option(self.instance.map(|ty| {
            let (shown, layout) = (describe::ty(ty), self.layout_of(ty));
            quote_spanned! {ours()=> #krate::__private::Instance { ty: #shown, layout: #layout } }
        }));
        quote_spanned! {ours()=>
            #krate::__private::Cpp {
                name: #name, params: #params, source: #source, instance: #instance,
            }
        }
    }
}

/// The name of a scalar that the runtime knows.
fn scalar_name(ty: &Type) -> Option<String> {
    let known = value::known(ty)?;
    let shown = describe::ty(ty);
    let name = shown.rsplit("::").next()?;
    let is_scalar = matches!(known.shape, Shape::Integer | Shape::Float);
    is_scalar.then(|| name.replace("size", "64"))
}

pub(super) fn option<T: ToTokens>(value: Option<T>) -> TokenStream {
    match value {
        Some(value) => quote_spanned! {ours()=> ::core::option::Option::Some(#value) },
        None => quote_spanned! {ours()=> ::core::option::Option::None },
    }
}

fn dims(dims: Option<[u32; 3]>) -> TokenStream {
    match dims.map(|dims| dims.map(plain)) {
        Some([x, y, z]) => quote_spanned! {ours()=> ::core::option::Option::Some([#x, #y, #z]) },
        None => quote_spanned! {ours()=> ::core::option::Option::None },
    }
}

/// The line of a declaration; outside of a compiler there is none.
pub(super) fn line(span: Span) -> u32 {
    if proc_macro::is_available() {
        u32::try_from(span.unwrap().line()).unwrap_or(0)
    } else {
        0
    }
}

/// The docs of a generic kernel's function.
pub(super) fn docs_of_family(outline: &Outline, listed: &str) -> TokenStream {
    let docs = &outline.attrs.docs;
    let user = docs_text(docs);
    let mut text = format!("Launches an instance of the kernel on `stream`; there are {listed}.");
    if !user.contains("# Errors") {
        text.push_str(
            "\n\n# Errors\n\nIf a requirement does not hold, an argument does not fit the kernel, the \
             kernel cannot be loaded, or the driver refuses the launch; nothing was launched then.",
        );
    }
    if !outline.safe && !user.contains("# Safety") {
        text.push_str(
            "\n\n# Safety\n\nThe caller vouches for what the PTX does not tell: that the kernel stays \
             within its arrays, writes only to those declared `&mut` or `*mut`, and is right for \
             this launch.",
        );
    }
    let text = if docs.is_empty() {
        text
    } else {
        format!("\n\n{text}")
    };
    quote_spanned! {ours()=> #(#docs)* #[doc = #text] }
}

fn docs_text(docs: &[Attribute]) -> String {
    docs.iter()
        .map(|doc| doc.meta.to_token_stream().to_string())
        .collect()
}
