//! What users see of a kernel: the function, the struct of its arguments, and the struct's methods.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{Attribute, Ident, Path, Visibility};

use crate::describe;
use crate::family::{self, trait_name};
use crate::kernel::{Outline, Slot, unraw};
use crate::lifetime;
use crate::span::{at, located, ours};
use crate::value::Taken;

/// What the function and the struct have in common.
pub(super) struct Signature<'a> {
    pub(super) krate: &'a Path,
    pub(super) outline: &'a Outline,
    pub(super) arguments: Vec<Argument>,
    /// `'__a` if an argument is borrowed, else nothing.
    pub(super) lifetime: Option<TokenStream>,
}

/// One parameter in the forms that it takes.
pub(super) struct Argument {
    pub(super) ident: Ident,
    docs: TokenStream,
    /// In the function.
    passed: TokenStream,
    /// In the struct.
    pub(super) field: TokenStream,
    /// The type parameter of the struct, its bound and its default.
    generic: Option<Generic>,
}

pub(super) struct Generic {
    pub(super) ident: Ident,
    pub(super) bound: TokenStream,
    default: TokenStream,
}

impl<'a> Signature<'a> {
    pub(super) fn new(krate: &'a Path, outline: &'a Outline) -> Signature<'a> {
        let mut borrowed = false;
        let arguments = outline
            .params
            .iter()
            .enumerate()
            .map(|(index, slot)| Argument::new(krate, index, slot, &mut borrowed))
            .collect();
        let lifetime = borrowed.then(|| quote_spanned! {ours()=> '__a });
        Signature {
            krate,
            outline,
            arguments,
            lifetime,
        }
    }

    /// `<'__a, __X2: AsDeviceView<f32> = NoView>`.
    fn declared_generics(&self) -> TokenStream {
        let declared = self.generics().map(
            |Generic {
                 ident,
                 bound,
                 default,
             }| {
                quote_spanned! {ours()=> #ident: #bound = #default }
            },
        );
        if self.outline.generic.is_none() {
            return self.angles(declared);
        }
        // Which type it is, the methods ask.
        let parameter = self
            .parameter_of_struct()
            .map(|parameter| quote_spanned! {ours()=> #parameter = () });
        let unbounded = self.generics().map(|Generic { ident, default, .. }| {
            quote_spanned! {ours()=> #ident = #default }
        });
        self.angles(parameter.into_iter().chain(unbounded))
    }

    /// `<'__a, __X2: AsDeviceView<f32>>`.
    pub(super) fn bounded_generics(&self) -> TokenStream {
        let bounded = self.generics().map(|Generic { ident, bound, .. }| {
            quote_spanned! {ours()=> #ident: #bound }
        });
        self.angles(bounded)
    }

    /// `saxpy<'__a, __X2>`.
    pub(super) fn ty(&self) -> TokenStream {
        let ident = &self.outline.ident;
        let parameter = self
            .parameter_of_struct()
            .map(ToTokens::to_token_stream)
            .into_iter();
        let types = self
            .generics()
            .map(|generic| generic.ident.to_token_stream());
        let generics = self.angles(parameter.chain(types));
        quote_spanned! {ours()=> #ident #generics }
    }

    /// `saxpy`, with its type parameters by default: the type that stands for the kernel.
    pub(super) fn kernel_ty(&self) -> TokenStream {
        let ident = &self.outline.ident;
        match self.lifetime {
            Some(_) => quote_spanned! {ours()=> #ident<'static> },
            None => quote_spanned! {ours()=> #ident },
        }
    }

    pub(super) fn generics(&self) -> impl Iterator<Item = &Generic> {
        self.arguments
            .iter()
            .filter_map(|argument| argument.generic.as_ref())
    }

    /// The type parameter of a generic kernel, with its bound.
    pub(super) fn bounded_parameter(&self) -> Option<TokenStream> {
        let parameter = self.outline.generic.as_ref()?;
        let bound = trait_name(&self.outline.ident);
        Some(quote_spanned! {ours()=> #parameter: #bound })
    }

    /// The type parameter of a generic kernel, if a value is of that type: of arrays' types the
    /// struct has its own.
    pub(super) fn parameter_of_struct(&self) -> Option<&Ident> {
        let parameter = self.outline.generic.as_ref()?;
        let values = self
            .arguments
            .iter()
            .filter(|argument| argument.generic.is_none());
        let mut fields = values.map(|argument| &argument.field);
        fields
            .any(|field| family::mentions(field, parameter))
            .then_some(parameter)
    }

    fn angles(&self, types: impl Iterator<Item = TokenStream>) -> TokenStream {
        let all: Vec<TokenStream> = self.lifetime.iter().cloned().chain(types).collect();
        if all.is_empty() {
            TokenStream::new()
        } else {
            quote_spanned! {ours()=> <#(#all),*> }
        }
    }

    pub(super) fn safety(&self) -> TokenStream {
        let krate = self.krate;
        if self.outline.safe {
            quote_spanned! {ours()=> #krate::Safe }
        } else {
            quote_spanned! {ours()=> #krate::Unsafe }
        }
    }

    pub(super) fn unsafety(&self) -> TokenStream {
        if self.outline.safe {
            TokenStream::new()
        } else {
            // The lint `unsafe_code` is about the user's own code, so the token is ours.
            quote_spanned! {ours()=> unsafe }
        }
    }

    /// ```text
    /// /// The arguments of `saxpy` by name..
    /// pub struct saxpy<__X2: AsDeviceView<f32> = NoView> { pub n: u32, pub x: __X2 }
    /// ```
    pub(super) fn struct_item(&self) -> TokenStream {
        let Outline {
            attrs, vis, ident, ..
        } = self.outline;
        let (cfgs, shared) = (&attrs.cfgs, &attrs.shared);
        let vis = visibility(vis);
        let generics = self.declared_generics();
        let fields = self.arguments.iter().map(
            |Argument {
                 ident, docs, field, ..
             }| {
                quote_spanned! {ours()=> #docs #vis #ident: #field }
            },
        );
        let name = unraw(ident);
        let doc = format!(
            "The arguments of `{name}` by name, for `{name} {{ .. }}.launch(&stream, launch)`, \
             and the kernel itself, for `{name}::load(&context)`."
        );
        quote_spanned! {ours()=>
            #[doc = #doc]
            #(#cfgs)*
            #(#shared)*
            #[must_use = "these are a kernel's arguments, and launch nothing by themselves: `.launch(&stream, launch)` does"]
            #[allow(
                non_camel_case_types,
                non_snake_case,
                dead_code,
                missing_debug_implementations,
                missing_copy_implementations,
                clippy::exhaustive_structs,
                clippy::struct_excessive_bools
            )]
            #vis struct #ident #generics { #(#fields),* }
        }
    }

    /// ```text
    /// pub fn saxpy<'__e>(stream: &CudaStream, launch: impl LaunchShape<'__e>, n: u32, x: &(impl AsDeviceView<f32> + ?Sized))
    ///     -> Result<(), LaunchError> { .. }
    /// ```
    pub(super) fn function(&self, docs: &TokenStream, body: &TokenStream) -> TokenStream {
        let parameter = self
            .bounded_parameter()
            .map(|parameter| quote_spanned! {ours()=> , #parameter });
        let Outline {
            attrs, vis, ident, ..
        } = self.outline;
        let (cfgs, shared, function) = (&attrs.cfgs, &attrs.shared, &attrs.function);
        let krate = self.krate;
        let unsafety = self.unsafety();
        let arguments = self.arguments.iter().map(|Argument { ident, passed, .. }| {
            quote_spanned! {ours()=> #ident: #passed }
        });
        quote_spanned! {ours()=>
            #docs
            #(#cfgs)*
            #(#shared)*
            #[allow(
                dead_code,
                deprecated,
                unused_variables,
                clippy::too_many_arguments,
                clippy::fn_params_excessive_bools,
                clippy::impl_trait_in_params,
                clippy::missing_errors_doc,
                clippy::missing_safety_doc,
                clippy::many_single_char_names,
                clippy::similar_names
            )]
            #(#function)*
            #vis #unsafety fn #ident <'__e #parameter> (
                stream: &#krate::cudarc::driver::CudaStream,
                launch: impl #krate::LaunchShape<'__e>,
                #(#arguments),*
            ) -> ::core::result::Result<(), #krate::LaunchError> {
                #body
            }
        }
    }

    pub(super) fn launch_self(&self) -> TokenStream {
        let ident = &self.outline.ident;
        let fields = self.arguments.iter().map(|argument| &argument.ident);
        let launch = quote_spanned! {ours()=> #ident { #(#fields),* }.launch(stream, launch) };
        if self.outline.safe {
            launch
        } else {
            // SAFETY (of the generated code): the function asks of its caller what the method does.
            quote_spanned! {ours()=> unsafe { #launch } }
        }
    }

    /// `load_from` on the struct that stands for a kernel of a module that the program names.
    pub(super) fn load_from(&self) -> TokenStream {
        let Outline {
            attrs, vis, ident, ..
        } = self.outline;
        let cfgs = &attrs.cfgs;
        let krate = self.krate;
        let vis = visibility(vis);
        let (kernel, safety) = (self.kernel_ty(), self.safety());
        let name = unraw(ident);
        let doc = format!(
            "Takes `{name}` from a module, compared with this declaration.\n\n# Errors\n\nIf the module has \
             no such kernel, or one of other parameters.\n\n# Safety\n\nThe module's kernel is the one that \
             is declared: what is compared are the parameters, not what the kernel does."
        );
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(dead_code, deprecated)]
            impl #kernel {
                #[doc = #doc]
                #vis unsafe fn load_from(
                    module: &#krate::Module,
                ) -> ::core::result::Result<#krate::Kernel<#kernel, #safety>, #krate::LoadError> {
                    unsafe { #krate::Kernel::load_from(module) }
                }
            }
        }
    }

    /// `load` on the struct that stands for the kernel, `launch` and `describe` on one with arguments.
    pub(super) fn methods(
        &self,
        load: &TokenStream,
        launch: &TokenStream,
        describe: &TokenStream,
    ) -> TokenStream {
        let Outline {
            attrs, vis, ident, ..
        } = self.outline;
        let cfgs = &attrs.cfgs;
        let krate = self.krate;
        let vis = visibility(vis);
        let unsafety = self.unsafety();
        let (kernel, safety) = (self.kernel_ty(), self.safety());
        let (generics, ty) = (self.bounded_generics(), self.ty());
        let name = unraw(ident);
        let load_doc = format!(
            "Loads `{name}` for a context now, not at its first launch.\n\n# Errors\n\nIf the \
             driver refuses the kernel's PTX, or there is no driver."
        );
        let launch_doc = format!(
            "Launches `{name}` with these arguments.\n\n# Errors\n\nAs the function `{name}`.\n\n\
             # Safety\n\nAs the function `{name}`."
        );
        let describe_doc = format!(
            "The launch of `{name}` with these arguments in one line, for a log. Nothing is \
             launched.\n\n# Errors\n\nIf `{name}` cannot be loaded, the launch's shape is not possible \
             here, or an argument would be refused."
        );
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(dead_code, deprecated, unused_variables)]
            impl #kernel {
                #[doc = #load_doc]
                #vis fn load(
                    context: &::std::sync::Arc<#krate::cudarc::driver::CudaContext>,
                ) -> ::core::result::Result<#krate::Kernel<#kernel, #safety>, #krate::LoadError> {
                    #load
                }
            }
            #(#cfgs)*
            #[allow(dead_code, deprecated, unused_variables, clippy::impl_trait_in_params)]
            impl #generics #ty {
                #[doc = #launch_doc]
                #[inline]
                #vis #unsafety fn launch<'__e>(
                    self,
                    stream: &#krate::cudarc::driver::CudaStream,
                    launch: impl #krate::LaunchShape<'__e>,
                ) -> ::core::result::Result<(), #krate::LaunchError> {
                    #launch
                }

                #[doc = #describe_doc]
                #vis fn describe<'__e>(
                    &mut self,
                    stream: &#krate::cudarc::driver::CudaStream,
                    launch: impl #krate::LaunchShape<'__e>,
                ) -> ::core::result::Result<#krate::LaunchDescription, #krate::LaunchError> {
                    #describe
                }
            }
        }
    }
}

impl Argument {
    fn new(krate: &Path, index: usize, slot: &Slot, borrowed: &mut bool) -> Argument {
        let generic_ident = format_ident!("__X{index}", span = ours());
        let mut generic = None;
        let (passed, field, shown) = match &slot.taken {
            Some(Taken::Value { ty, .. }) => {
                let field = lifetime::named(ty, borrowed);
                (
                    ty.to_token_stream(),
                    field,
                    format!("`{}`", describe::ty(ty)),
                )
            }
            Some(
                taken @ (Taken::Slice { elem, .. }
                | Taken::Strided { elem, .. }
                | Taken::TensorMap { elem, .. }
                | Taken::Texture { elem }
                | Taken::Surface { elem, .. }),
            ) => {
                let span = at(elem);
                let krate = located(krate, span);
                let bound = Ident::new(array_trait(taken), span);
                let view = quote_spanned! {span=> #krate::#bound<#elem> };
                let (reference, shown) = array_reference(taken, span);
                generic = Some(Generic {
                    ident: generic_ident.clone(),
                    bound: view.clone(),
                    default: quote_spanned! {ours()=> #krate::__private::NoView },
                });
                (
                    quote_spanned! {span=> #reference (impl #view + ?::core::marker::Sized) },
                    generic_ident.to_token_stream(),
                    shown.to_owned(),
                )
            }
            Some(Taken::Optional { elem }) => {
                *borrowed = true;
                let krate = located(krate, at(elem));
                let view = quote_spanned! {at(elem)=> dyn #krate::AsDeviceView<#elem> };
                (
                    quote_spanned! {ours()=> ::core::option::Option<&#view> },
                    quote_spanned! {ours()=> ::core::option::Option<&'__a #view> },
                    "a device array that the kernel reads, or null".to_owned(),
                )
            }
            Some(Taken::Pointer { elem, written }) => {
                *borrowed = true;
                let pointer = if *written {
                    quote_spanned! {ours()=> #krate::DevicePointerMut }
                } else {
                    quote_spanned! {ours()=> #krate::DevicePointer }
                };
                (
                    quote_spanned! {ours()=> #pointer<'_, #elem> },
                    quote_spanned! {ours()=> #pointer<'__a, #elem> },
                    "a device pointer".to_owned(),
                )
            }
            Some(Taken::Function { ty, .. }) => {
                *borrowed = true;
                (
                    quote_spanned! {at(ty)=> &#ty },
                    quote_spanned! {at(ty)=> &'__a #ty },
                    format!("a function of the kernel's module, `{}`", describe::ty(ty)),
                )
            }
            Some(Taken::Condition { .. }) => {
                let condition = quote_spanned! {ours()=> #krate::GraphCondition };
                (
                    condition.clone(),
                    condition,
                    "a condition of the graph".to_owned(),
                )
            }
            // Whatever is passed fits, so that calls give no errors of their own.
            None => {
                generic = Some(Generic {
                    ident: generic_ident.clone(),
                    bound: quote_spanned! {ours()=> ::core::marker::Sized },
                    default: quote_spanned! {ours()=> () },
                });
                (
                    quote_spanned! {ours()=> impl ::core::marker::Sized },
                    generic_ident.to_token_stream(),
                    String::new(),
                )
            }
        };
        let docs = documentation(&slot.docs, &format!("Parameter {index}: {shown}."));
        Argument {
            ident: slot.ident.clone(),
            docs,
            passed,
            field,
            generic,
        }
    }
}

/// The user's docs of an argument, or ours.
fn documentation(user: &[Attribute], default: &str) -> TokenStream {
    if user.is_empty() {
        quote_spanned! {ours()=> #[doc = #default] }
    } else {
        quote_spanned! {ours()=> #(#user)* }
    }
}

/// How a call borrows an array, and what its docs say of it.
fn array_reference(taken: &Taken, span: Span) -> (TokenStream, &'static str) {
    if taken.is_written_array() {
        (
            quote_spanned! {span=> &mut },
            "a device array that the kernel writes",
        )
    } else {
        (
            quote_spanned! {span=> & },
            "a device array that the kernel reads",
        )
    }
}

/// What a call takes for an array, by the trait's name.
fn array_trait(taken: &Taken) -> &'static str {
    match (taken, taken.is_written_array()) {
        (Taken::TensorMap { .. }, true) => "AsTensorMapMut",
        (Taken::TensorMap { .. }, false) => "AsTensorMap",
        (Taken::Texture { .. }, _) => "AsTexture",
        (Taken::Surface { .. }, true) => "AsSurfaceMut",
        (Taken::Surface { .. }, false) => "AsSurface",
        (_, true) => "AsDeviceViewMut",
        (_, false) => "AsDeviceView",
    }
}

/// The user's visibility on what is ours: lints on `pub` are about the user's own items.
pub(super) fn visibility(vis: &Visibility) -> Visibility {
    let mut vis = vis.clone();
    match &mut vis {
        Visibility::Public(token) => token.span = token.span.resolved_at(ours()),
        Visibility::Restricted(restricted) => {
            restricted.pub_token.span = restricted.pub_token.span.resolved_at(ours());
        }
        Visibility::Inherited => {}
    }
    vis
}
