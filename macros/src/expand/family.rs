//! What users see of a generic kernel: a trait of the types that there are instances of, and a
//! function and a struct that are generic in it.
//!
//! ```text
//! trait __Instances_add: Sized {
//!     type Kernel: Declared<Safety = Safe>;
//!     fn __arguments<__X1: AsDeviceView<Self>>(n: u32, x: __X1) -> impl Arguments<Declared = Self::Kernel>;
//! }
//! fn add<T: __Instances_add>(stream, launch, n: u32, x: &(impl AsDeviceView<T> + ?Sized)) { .. }
//! const _: () = {
//!     pub struct add<__X1> { .. }    // and all else of the instance, as of any kernel
//!     impl __Instances_add for f32 { .. }
//! };
//! ```

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{Path, Type};

use super::signature::{Generic, Signature, visibility};
use super::{Items, docs_of_family};
use crate::describe;
use crate::family::trait_name;
use crate::kernel::{Outline, unraw};
use crate::span::{at, ours};

/// A type, and the kernel for it.
pub(crate) struct Instance {
    pub(crate) ty: Type,
    pub(crate) items: Items,
}

/// All of a generic kernel.
pub(crate) fn family(
    krate: &Path,
    outline: &Outline,
    instances: Vec<Instance>,
    later: bool,
) -> Items {
    let signature = Signature::new(krate, outline);
    let listed = describe::list(instances.iter().map(|instance| describe::ty(&instance.ty)));
    let bound = signature.instances_trait(&listed);
    let arguments = signature.struct_item();
    let launch = signature.launch_arguments(false);
    let function = if later {
        TokenStream::new()
    } else {
        signature.function(&docs_of_family(outline, &listed), &launch)
    };
    let methods = signature.family_methods(later);
    let implementations = instances
        .into_iter()
        .map(|instance| signature.implementation(instance));
    Items {
        visible: quote_spanned! {ours()=> #bound #arguments #function },
        hidden: quote_spanned! {ours()=> #methods #(#implementations)* },
    }
}

impl Signature<'_> {
    /// The arguments of the trait's method: as the fields are, each of a type of its own if it is
    /// an array.
    fn fields(&self) -> TokenStream {
        let fields = self.arguments.iter().map(|argument| {
            let (ident, field) = (&argument.ident, &argument.field);
            quote_spanned! {ours()=> #ident: #field }
        });
        quote_spanned! {ours()=> #(#fields),* }
    }

    /// `<'__a, __X1: AsDeviceView<T>>`, with the arrays' types alone.
    fn array_generics(&self) -> TokenStream {
        let bounded = self.generics().map(|Generic { ident, bound, .. }| {
            quote_spanned! {ours()=> #ident: #bound }
        });
        let all: Vec<TokenStream> = self.lifetime.iter().cloned().chain(bounded).collect();
        quote_spanned! {ours()=> <#(#all),*> }
    }

    fn instances_trait(&self, listed: &str) -> TokenStream {
        let krate = self.krate;
        let Outline { attrs, ident, .. } = self.outline;
        let (cfgs, vis) = (&attrs.cfgs, visibility(&self.outline.vis));
        let (name, safety) = (trait_name(ident), self.safety());
        let parameter = self.outline.generic.as_ref();
        let (generics, fields) = (self.array_generics(), self.fields());
        let message = format!("kernel `{}` has no instance for `{{Self}}`", unraw(ident));
        let note = format!("its instances are for {listed}");
        // The trait's own type is what the declaration calls by the parameter's name.
        let generics = of_self(&generics, parameter);
        let fields = of_self(&fields, parameter);
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[doc(hidden)]
            #[allow(non_camel_case_types, dead_code, clippy::too_many_arguments)]
            #[diagnostic::on_unimplemented(message = #message, label = "no such instance", note = #note)]
            #vis trait #name: ::core::marker::Sized {
                type Kernel: #krate::__private::Declared<Safety = #safety>;
                fn __arguments #generics (
                    #fields
                ) -> impl #krate::__private::Arguments<Declared = Self::Kernel>;
            }
        }
    }

    /// The launch of arguments by name, or of the fields of `self`.
    fn launch_arguments(&self, of_self: bool) -> TokenStream {
        let krate = self.krate;
        let arguments = self.instance_arguments(of_self);
        if self.outline.safe {
            quote_spanned! {ours()=>
                #krate::__private::launch(
                    #arguments,
                    stream,
                    ::core::convert::Into::into(launch),
                )
            }
        } else {
            // SAFETY (of the generated code): the function or method asks of its caller what the
            // declaration does.
            quote_spanned! {ours()=>
                unsafe {
                    #krate::__private::launch_unsafe(
                        #arguments,
                        stream,
                        ::core::convert::Into::into(launch),
                    )
                }
            }
        }
    }

    fn instance_arguments(&self, of_self: bool) -> TokenStream {
        let (name, parameter) = (trait_name(&self.outline.ident), &self.outline.generic);
        let arguments = self.arguments.iter().map(|argument| {
            let ident = &argument.ident;
            if of_self {
                quote_spanned! {ours()=> self.#ident }
            } else {
                quote_spanned! {ours()=> #ident }
            }
        });
        quote_spanned! {ours()=> <#parameter as #name>::__arguments(#(#arguments),*) }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "the methods of one struct, side by side"
    )]
    fn family_methods(&self, later: bool) -> TokenStream {
        let krate = self.krate;
        let Outline { attrs, ident, .. } = self.outline;
        let cfgs = &attrs.cfgs;
        let vis = visibility(&self.outline.vis);
        let (bound, safety) = (self.bounded_parameter(), self.safety());
        let (name, parameter) = (trait_name(ident), &self.outline.generic);
        let kernel = quote_spanned! {ours()=> <#parameter as #name>::Kernel };
        let static_ = self
            .lifetime
            .as_ref()
            .map(|_| quote_spanned! {ours()=> <'static> });
        let (ty, unsafety) = (self.ty(), self.unsafety());
        // The type is the struct's where a value is of it, else the method's, told by the arrays.
        let of_struct = self.parameter_of_struct().is_some();
        let types = self.generics().map(|generic| &generic.ident);
        let lifetime = self.lifetime.iter();
        let struct_bound = of_struct.then_some(&bound).into_iter();
        let generics = {
            let all: Vec<TokenStream> = lifetime
                .cloned()
                .chain(struct_bound.flatten().cloned())
                .chain(types.map(|ident| quote_spanned! {ours()=> #ident }))
                .collect();
            quote_spanned! {ours()=> <#(#all),*> }
        };
        let method = (!of_struct).then(|| quote_spanned! {ours()=> #bound });
        let bounds = self.generics().map(|Generic { ident, bound, .. }| {
            quote_spanned! {ours()=> #ident: #bound }
        });
        let clause = quote_spanned! {ours()=> where #(#bounds),* };
        let launch = self.launch_arguments(true);
        let arguments = self.instance_arguments(true);
        let shown = unraw(ident);
        let load_doc = format!(
            "Loads an instance of `{shown}` for a context now, not at its first launch.\n\n# Errors\n\nIf the \
             driver refuses the kernel's PTX, or there is no driver."
        );
        let from_doc = format!(
            "Takes an instance of `{shown}` from a module, compared with this declaration.\n\n# Errors\n\nIf \
             the module has no such kernel, or one of other parameters.\n\n# Safety\n\nThe module's kernel is the one that is declared: what is compared are the parameters, not what the \
             kernel does."
        );
        let launch_doc = format!(
            "Launches `{shown}` with these arguments.\n\n# Errors\n\nAs the function `{shown}`.\n\n# \
             Safety\n\nAs the function `{shown}`."
        );
        let arguments_doc = format!(
            "The arguments for the handle of an instance, which `{shown}::load::<T>` gives."
        );
        let load = if later {
            quote_spanned! {ours()=>
                #[doc = #from_doc]
                #vis unsafe fn load_from<#bound>(
                    module: &#krate::Module,
                ) -> ::core::result::Result<#krate::Kernel<#kernel, #safety>, #krate::LoadError> {
                    unsafe { #krate::Kernel::load_from(module) }
                }
            }
        } else {
            quote_spanned! {ours()=>
                #[doc = #load_doc]
                #vis fn load<#bound>(
                    context: &::std::sync::Arc<#krate::cudarc::driver::CudaContext>,
                ) -> ::core::result::Result<#krate::Kernel<#kernel, #safety>, #krate::LoadError> {
                    #krate::Kernel::load(context)
                }
            }
        };
        let launch = if later {
            TokenStream::new()
        } else {
            quote_spanned! {ours()=>
                #[doc = #launch_doc]
                #[inline]
                #vis #unsafety fn launch <'__e, #method> (
                    self,
                    stream: &#krate::cudarc::driver::CudaStream,
                    launch: impl #krate::LaunchShape<'__e>,
                ) -> ::core::result::Result<(), #krate::LaunchError>
                #clause
                {
                    #launch
                }
            }
        };
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(deprecated)]
            impl<#bound> #krate::__private::Family<#parameter> for #ident #static_ {
                type Kernel = #kernel;
            }
            #(#cfgs)*
            #[allow(dead_code, deprecated)]
            impl #ident #static_ {
                #load
            }
            #(#cfgs)*
            #[allow(dead_code, deprecated, clippy::impl_trait_in_params)]
            impl #generics #ty {
                #launch
                #[doc = #arguments_doc]
                #[inline]
                #vis fn arguments <#method> (
                    self,
                ) -> impl #krate::__private::Arguments<Declared = #kernel>
                #clause
                {
                    #arguments
                }
            }
        }
    }

    /// One instance, its names out of everyone's way.
    fn implementation(&self, instance: Instance) -> TokenStream {
        let krate = self.krate;
        let Instance { ty, items } = instance;
        let Items { visible, hidden } = items;
        let Outline { attrs, ident, .. } = self.outline;
        let cfgs = &attrs.cfgs;
        let name = trait_name(ident);
        let parameter = self.outline.generic.as_ref();
        let by = quote_spanned! {at(&ty)=> #ty };
        let generics = replaced(&self.array_generics(), parameter, &by);
        let fields = replaced(&self.fields(), parameter, &by);
        let names = self.arguments.iter().map(|argument| &argument.ident);
        let lifetime = self
            .lifetime
            .as_ref()
            .map(|_| quote_spanned! {ours()=> <'static> });
        quote_spanned! {ours()=>
            #(#cfgs)*
            const _: () = {
                #visible
                #hidden
                #[allow(deprecated, refining_impl_trait, clippy::too_many_arguments)]
                impl #name for #ty {
                    type Kernel = #ident #lifetime;
                    #[inline]
                    fn __arguments #generics (
                        #fields
                    ) -> impl #krate::__private::Arguments<Declared = Self::Kernel> {
                        #ident { #(#names),* }
                    }
                }
            };
        }
    }
}

fn of_self(tokens: &TokenStream, parameter: Option<&syn::Ident>) -> TokenStream {
    replaced(tokens, parameter, &quote_spanned! {ours()=> Self })
}

fn replaced(tokens: &TokenStream, parameter: Option<&syn::Ident>, by: &TokenStream) -> TokenStream {
    match parameter {
        Some(parameter) => crate::family::replace(tokens.clone(), parameter, by),
        None => tokens.clone(),
    }
}
