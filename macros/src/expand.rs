//! Writes the code for declarations in which nothing is wrong, and the outline of the others.
//!
//! Nothing can fail here. Names from the user's tokens keep their spans; all that is ours has the span of
//! the macro, so that neither side's local variables meet and lints on the user's code do not fire on ours.
//!
//! A kernel becomes a function and a struct of its arguments; what nobody calls by name, the loaded image,
//! the description and the launch itself, is in a `const _: () = { .. };`.

use gridcall_ptx as ptx;
use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{Attribute, Ident, Path, Type, Visibility};

use crate::artifact::{Artifact, Place};
use crate::contract;
use crate::describe;
use crate::kernel::{Kernel, Outline, Param, Slot, unraw};
use crate::lifetime;
use crate::value::{Known, Shape, Taken};

/// The span of what is ours: its local variables are its own, its items are the user's to see.
pub(crate) fn ours() -> Span {
    Span::mixed_site()
}

/// Where the user's tokens are, for what rustc may have to say of them, with names that are ours.
pub(crate) fn at(tokens: &impl ToTokens) -> Span {
    let first = tokens.to_token_stream().into_iter().next();
    first.map_or_else(ours, |token| token.span().resolved_at(ours()))
}

/// The path as if it stood at `span`, for errors, meaning what it means where it is.
pub(crate) fn located(path: &Path, span: Span) -> TokenStream {
    let relocate = |mut token: TokenTree| {
        token.set_span(token.span().located_at(span));
        token
    };
    path.to_token_stream().into_iter().map(relocate).collect()
}

/// A kernel and what was found for it.
pub(crate) struct Subject<'a> {
    pub(crate) krate: &'a Path,
    pub(crate) outline: &'a Outline,
    pub(crate) kernel: &'a Kernel,
    /// The file of its PTX, as the user calls it.
    pub(crate) file: &'a str,
    /// `None` if the crate is built with signatures only.
    pub(crate) entry: Option<&'a ptx::Entry>,
    /// What the witnesses found, unless the crate is built with signatures only.
    pub(crate) heard: Heard,
}

/// What is known of a kernel beside its PTX.
#[derive(Default)]
pub(crate) struct Heard {
    /// What the compiler is to compare besides, as items.
    pub(crate) claims: TokenStream,
    /// The kernel's name in C++, and the types of its parameters if its mangled name holds them.
    pub(crate) cpp: Option<(String, Option<String>)>,
    /// The CUDA source, as the user calls it.
    pub(crate) source: Option<String>,
    /// Which parameters the code certainly never writes through.
    pub(crate) read_only: Vec<bool>,
}

/// The items of a kernel, and what belongs into the hidden `const` beside its image.
pub(crate) struct Items {
    pub(crate) visible: TokenStream,
    pub(crate) hidden: TokenStream,
}

/// The hidden `const` of a block, with the image that its kernels share.
pub(crate) fn hidden(
    cfgs: &[Attribute],
    image: &TokenStream,
    kernels: &TokenStream,
) -> TokenStream {
    quote_spanned! {ours()=>
        #(#cfgs)*
        const _: () = {
            #image
            #kernels
        };
    }
}

/// The module as the program carries it.
///
/// `include_str!` makes the compiler read the file as well, so a changed file is compiled again; and
/// `env!` likewise for the variables in its path.
pub(crate) fn image(krate: &Path, artifact: &Artifact) -> TokenStream {
    let Place {
        shown,
        absolute,
        variables,
    } = &artifact.place;
    // A path that is not UTF-8 was refused when it was found.
    let absolute = absolute.to_string_lossy();
    let version = artifact.module().version();
    let (major, minor) = (plain(version.major), plain(version.minor));
    let target = artifact.module().target();
    let target = std::iter::once(target.name())
        .chain(target.options().iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(", ");
    quote_spanned! {ours()=>
        #(const _: &::core::primitive::str = ::core::env!(#variables);)*
        #[allow(dead_code)]
        static __IMAGE: #krate::__private::Image = #krate::__private::Image {
            path: #shown,
            ptx: ::core::concat!(::core::include_str!(#absolute), "\0"),
            version: (#major, #minor),
            target: #target,
        };
    }
}

/// Has the compiler read a file as well, so that a changed one is compiled again.
pub(crate) fn tracked(place: &Place) -> TokenStream {
    let Place {
        absolute,
        variables,
        ..
    } = place;
    let absolute = absolute.to_string_lossy();
    quote_spanned! {ours()=>
        #(const _: &::core::primitive::str = ::core::env!(#variables);)*
        const _: &[::core::primitive::u8] = ::core::include_bytes!(#absolute);
    }
}

/// The module that is not there, in a crate built with signatures only.
///
/// `option_env!` makes cargo compile again when the variable goes away.
pub(crate) fn absent_image(krate: &Path, place: &Place) -> TokenStream {
    let Place {
        shown, variables, ..
    } = place;
    let switch = crate::artifact::SIGNATURES_ONLY;
    quote_spanned! {ours()=>
        #(const _: &::core::primitive::str = ::core::env!(#variables);)*
        const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(#switch);
        #[allow(dead_code)]
        static __IMAGE: #krate::__private::Image = #krate::__private::Image {
            path: #shown,
            ptx: "\0",
            version: (0, 0),
            target: "",
        };
    }
}

/// All of a kernel.
pub(crate) fn kernel(subject: &Subject<'_>) -> Items {
    let signature = Signature::new(subject.krate, subject.outline);
    let arguments = signature.struct_item();
    let docs = subject.docs();
    let function = signature.function(&docs, &signature.launch_self());
    Items {
        visible: quote_spanned! {ours()=> #arguments #function },
        hidden: subject.hidden(&signature),
    }
}

/// What the uses of a wrong declaration need to resolve; it is never run, as the crate does not compile.
pub(crate) fn outline(krate: &Path, outline: &Outline) -> TokenStream {
    let signature = Signature::new(krate, outline);
    let never = quote_spanned! {ours()=> loop {} };
    let arguments = signature.struct_item();
    let function = signature.function(&TokenStream::new(), &never);
    let methods = signature.methods(&never, &never);
    quote_spanned! {ours()=>
        #arguments
        #function
        const _: () = { #methods };
    }
}

/// What the function and the struct have in common.
struct Signature<'a> {
    krate: &'a Path,
    outline: &'a Outline,
    arguments: Vec<Argument>,
    /// `'__a` if an argument is borrowed, else nothing.
    lifetime: Option<TokenStream>,
}

/// One parameter in the forms that it takes.
struct Argument {
    ident: Ident,
    docs: TokenStream,
    /// In the function.
    passed: TokenStream,
    /// In the struct.
    field: TokenStream,
    /// The type parameter of the struct, its bound and its default.
    generic: Option<Generic>,
}

struct Generic {
    ident: Ident,
    bound: TokenStream,
    default: TokenStream,
}

impl<'a> Signature<'a> {
    fn new(krate: &'a Path, outline: &'a Outline) -> Signature<'a> {
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
        self.angles(self.generics().map(
            |Generic {
                 ident,
                 bound,
                 default,
             }| {
                quote_spanned! {ours()=> #ident: #bound = #default }
            },
        ))
    }

    /// `<'__a, __X2: AsDeviceView<f32>>`.
    fn bounded_generics(&self) -> TokenStream {
        self.angles(self.generics().map(|Generic { ident, bound, .. }| {
            quote_spanned! {ours()=> #ident: #bound }
        }))
    }

    /// `saxpy<'__a, __X2>`.
    fn ty(&self) -> TokenStream {
        let ident = &self.outline.ident;
        let generics = self.angles(
            self.generics()
                .map(|generic| generic.ident.to_token_stream()),
        );
        quote_spanned! {ours()=> #ident #generics }
    }

    /// `saxpy`, with its type parameters by default: the type that stands for the kernel.
    fn kernel_ty(&self) -> TokenStream {
        let ident = &self.outline.ident;
        match self.lifetime {
            Some(_) => quote_spanned! {ours()=> #ident<'static> },
            None => quote_spanned! {ours()=> #ident },
        }
    }

    fn generics(&self) -> impl Iterator<Item = &Generic> {
        self.arguments
            .iter()
            .filter_map(|argument| argument.generic.as_ref())
    }

    fn angles(&self, types: impl Iterator<Item = TokenStream>) -> TokenStream {
        let all: Vec<TokenStream> = self.lifetime.iter().cloned().chain(types).collect();
        if all.is_empty() {
            TokenStream::new()
        } else {
            quote_spanned! {ours()=> <#(#all),*> }
        }
    }

    fn safety(&self) -> TokenStream {
        let krate = self.krate;
        if self.outline.safe {
            quote_spanned! {ours()=> #krate::Safe }
        } else {
            quote_spanned! {ours()=> #krate::Unsafe }
        }
    }

    fn unsafety(&self) -> TokenStream {
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
    fn struct_item(&self) -> TokenStream {
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
            "The arguments of `{name}` by name, for `{name} {{ .. }}.launch(&stream, launch)`, and the \
             kernel itself, for `{name}::load(&context)`."
        );
        quote_spanned! {ours()=>
            #[doc = #doc]
            #(#cfgs)*
            #(#shared)*
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
    /// pub fn saxpy(stream: &CudaStream, launch: impl Into<Launch>, n: u32, x: &(impl AsDeviceView<f32> + ?Sized))
    ///     -> Result<(), LaunchError> { .. }
    /// ```
    fn function(&self, docs: &TokenStream, body: &TokenStream) -> TokenStream {
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
            #vis #unsafety fn #ident(
                stream: &#krate::cudarc::driver::CudaStream,
                launch: impl ::core::convert::Into<#krate::Launch>,
                #(#arguments),*
            ) -> ::core::result::Result<(), #krate::LaunchError> {
                #body
            }
        }
    }

    fn launch_self(&self) -> TokenStream {
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

    /// `load` on the struct that stands for the kernel, `launch` on one with arguments.
    fn methods(&self, load: &TokenStream, launch: &TokenStream) -> TokenStream {
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
            "Loads `{name}` for a context now, not at its first launch.\n\n# Errors\n\nIf the driver \
             refuses the kernel's PTX, or there is no driver."
        );
        let launch_doc = format!(
            "Launches `{name}` with these arguments.\n\n# Errors\n\nAs the function `{name}`.\n\n\
             # Safety\n\nAs the function `{name}`."
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
                #vis #unsafety fn launch(
                    self,
                    stream: &#krate::cudarc::driver::CudaStream,
                    launch: impl ::core::convert::Into<#krate::Launch>,
                ) -> ::core::result::Result<(), #krate::LaunchError> {
                    #launch
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
            Some(Taken::Slice { elem, written }) => {
                let span = at(elem);
                let krate = located(krate, span);
                let view = if *written {
                    quote_spanned! {span=> #krate::AsDeviceViewMut<#elem> }
                } else {
                    quote_spanned! {span=> #krate::AsDeviceView<#elem> }
                };
                let (reference, shown) = if *written {
                    (
                        quote_spanned! {span=> &mut },
                        "a device array that the kernel writes",
                    )
                } else {
                    (
                        quote_spanned! {span=> & },
                        "a device array that the kernel reads",
                    )
                };
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
        let (user, doc) = (&slot.docs, format!("Parameter {index}: {shown}."));
        let docs = if user.is_empty() {
            quote_spanned! {ours()=> #[doc = #doc] }
        } else {
            quote_spanned! {ours()=> #(#user)* }
        };
        Argument {
            ident: slot.ident.clone(),
            docs,
            passed,
            field,
            generic,
        }
    }
}

impl Subject<'_> {
    /// The docs of the function: the user's, and what the declaration says.
    fn docs(&self) -> TokenStream {
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
                "\n\n# Errors\n\nIf a requirement does not hold, an argument does not fit the kernel, the \
                 kernel cannot be loaded, or the driver refuses the launch; nothing was launched then.",
            );
        }
        if !self.outline.safe && !user.contains("# Safety") {
            text.push_str(
                "\n\n# Safety\n\nThe caller vouches for what the PTX does not tell: that the kernel stays \
                 within its arrays, writes only to those declared `&mut` or `*mut`, and is right for \
                 this launch.",
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

    fn hidden(&self, signature: &Signature<'_>) -> TokenStream {
        let krate = self.krate;
        let load = quote_spanned! {ours()=> #krate::Kernel::load(context) };
        let launch = quote_spanned! {ours()=>
            #krate::__private::launch(self, stream, ::core::convert::Into::into(launch))
        };
        let methods = signature.methods(&load, &launch);
        let declared = self.declared(signature);
        let arguments = self.arguments(signature);
        quote_spanned! {ours()=> #declared #methods #arguments }
    }

    /// The description of the kernel, for messages and for loading it.
    fn declared(&self, signature: &Signature<'_>) -> TokenStream {
        let krate = self.krate;
        let cfgs = &self.outline.attrs.cfgs;
        let kernel_ty = signature.kernel_ty();
        let safety = signature.safety();
        let name = unraw(&self.outline.ident);
        let entry = self.entry_name();
        let line = plain(line(self.outline.ident.span()));
        let safe = self.outline.safe;
        let params = self.kernel.params.iter().enumerate().map(|(index, param)| {
            let name = unraw(&param.ident);
            let ty = describe::ty(&param.ty);
            let place = self.layout(index);
            let [offset, size, align] = [place.offset, place.size, place.align].map(plain);
            let pass = self.pass_of(index, param);
            quote_spanned! {ours()=>
                #krate::__private::Param {
                    name: #name, ty: #ty, offset: #offset, size: #size, align: #align, pass: #pass,
                }
            }
        });
        let cpp = self.cpp();
        let params_size = plain(self.params_size());
        let requires = self.kernel.requires.iter().map(describe::expr);
        let block = dims(self.kernel.block.as_ref().map(|block| block.dims));
        let directives = self.entry.map(ptx::Entry::directives);
        let reqntid = dims(directives.and_then(ptx::Directives::reqntid));
        let maxntid = dims(directives.and_then(ptx::Directives::maxntid));
        let may_alias = self.kernel.may_alias.iter().map(|&(one, other)| {
            let (one, other) = (plain(one), plain(other));
            quote_spanned! {ours()=> (#one, #other) }
        });
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(deprecated)]
            impl #krate::__private::Declared for #kernel_ty {
                type Safety = #safety;
                fn cell() -> &'static #krate::__private::KernelCell {
                    static CELL: #krate::__private::KernelCell =
                        #krate::__private::KernelCell::new(&#krate::__private::Declaration {
                            kernel: #name,
                            entry: #entry,
                            image: &__IMAGE,
                            file: ::core::file!(),
                            line: #line,
                            safe: #safe,
                            params: &[#(#params),*],
                            params_size: #params_size,
                            requires: &[#(#requires),*],
                            block: #block,
                            reqntid: #reqntid,
                            maxntid: #maxntid,
                            may_alias: &[#(#may_alias),*],
                            cpp: #cpp,
                        });
                    &CELL
                }
            }
        }
    }

    /// How a parameter is passed, with the layout of its type where it has one.
    fn pass_of(&self, index: usize, param: &Param) -> TokenStream {
        let krate = self.krate;
        let layout = |ty: &Type| {
            quote_spanned! {ours()=>
                {
                    #[allow(unused_imports)]
                    use #krate::__private::NoLayout as _;
                    #krate::__private::LayoutOf::<#ty>::LAYOUT
                }
            }
        };
        let (elem, written) = match &param.taken {
            Taken::Value { ty, .. } => {
                let layout = layout(ty);
                return quote_spanned! {ours()=> #krate::__private::Pass::Value(#layout) };
            }
            Taken::Slice { elem, written } | Taken::Pointer { elem, written } => (elem, *written),
            Taken::Optional { elem } => (elem, false),
        };
        let layout = layout(elem);
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

    fn cpp(&self) -> TokenStream {
        let krate = self.krate;
        let option = |text: Option<&String>| match text {
            Some(text) => quote_spanned! {ours()=> ::core::option::Option::Some(#text) },
            None => quote_spanned! {ours()=> ::core::option::Option::None },
        };
        let entry = self.entry_name();
        let name = self.heard.cpp.as_ref().map_or(&entry, |(name, _)| name);
        let params = option(
            self.heard
                .cpp
                .as_ref()
                .and_then(|(_, params)| params.as_ref()),
        );
        let source = option(self.heard.source.as_ref());
        quote_spanned! {ours()=>
            #krate::__private::Cpp { name: #name, params: #params, source: #source }
        }
    }

    /// The launch: describe, check, acquire, pack, enqueue, finish.
    ///
    /// ```text
    /// let view2 = call.read::<f32, _>(2, 4, &self.x)?;
    /// { let n = Int::from(self.n); let x = ViewOf(view2); if (x.len() >= n) {} else { return Err(..); } }
    /// call.disjoint(&[(2, view2, false), (3, view3, true)])?;
    /// if call.is_empty() { return Ok(()); }
    /// let guard2 = call.acquire::<f32, _>(2, &self.x)?;
    /// let mut params = Params::<24>::zeroed();
    /// params.set(0, &self.n);
    /// params.set_pointer(8, view2);
    /// unsafe { call.enqueue(&mut params) }?;
    /// let mut end = call.finish();
    /// end.guard(2, guard2);
    /// end.result()
    /// ```
    fn arguments(&self, signature: &Signature<'_>) -> TokenStream {
        let krate = self.krate;
        let cfgs = &self.outline.attrs.cfgs;
        let generics = signature.bounded_generics();
        let (ty, kernel_ty) = (signature.ty(), signature.kernel_ty());
        let arrays: Vec<usize> = self.arrays().collect();
        let written = arrays
            .iter()
            .any(|&index| self.param(index).taken.is_written_array());
        let mutability = written.then(|| quote_spanned! {ours()=> mut });
        let claims = self.claims();
        let describe = arrays.iter().map(|&index| self.describe_array(index));
        let requires = self
            .kernel
            .requires
            .iter()
            .enumerate()
            .map(|(nth, requirement)| self.requirement(nth, requirement));
        let disjoint = (written && arrays.len() > 1).then(|| self.disjoint(&arrays));
        let acquire = arrays.iter().map(|&index| self.acquire(index));
        let params_size = plain(self.params_size());
        let pack = (0..self.kernel.params.len()).map(|index| self.pack(index));
        let finish = arrays.iter().map(|&index| {
            let (number, guard) = (plain(index), guard(index));
            quote_spanned! {ours()=> end.guard(#number, #guard); }
        });
        // SAFETY (of the generated code): `run` takes every step in order, and `enqueue` gets all arguments
        // described and acquired as declared, and packed as the PTX lays them out, which the checks of this
        // macro and the claims compared. That the declaration is true, its block vouches; for an unsafe
        // kernel `run` is reached through unsafe functions only.
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(deprecated)]
            unsafe impl #generics #krate::__private::Arguments for #ty {
                type Declared = #kernel_ty;
                #[inline(always)]
                #[allow(unused_mut, unused_parens, clippy::all, clippy::pedantic)]
                fn run(
                    #mutability self,
                    call: &#krate::__private::Call<'_>,
                ) -> ::core::result::Result<(), #krate::LaunchError> {
                    #claims
                    #(#describe)*
                    #(#requires)*
                    #disjoint
                    if call.is_empty() {
                        return ::core::result::Result::Ok(());
                    }
                    #(#acquire)*
                    let mut params = #krate::__private::Params::<#params_size>::zeroed();
                    #(#pack)*
                    unsafe { call.enqueue(&mut params) }?;
                    let mut end = call.finish();
                    #(#finish)*
                    end.result()
                }
            }
        }
    }

    fn param(&self, index: usize) -> &Param {
        &self.kernel.params[index]
    }

    fn arrays(&self) -> impl Iterator<Item = usize> {
        let params = self.kernel.params.iter().enumerate();
        params
            .filter(|(_, param)| param.taken.is_array())
            .map(|(index, _)| index)
    }

    fn describe_array(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let (field, view, number) = (&param.ident, view(index), plain(index));
        let align = self.required_align(index);
        match &param.taken {
            Taken::Optional { elem } => quote_spanned! {ours()=>
                let #view = call.read_optional::<#elem>(#number, #align, self.#field)?;
            },
            Taken::Slice {
                elem,
                written: true,
            } => quote_spanned! {ours()=>
                let #view = call.write::<#elem, _>(#number, #align, &mut self.#field)?;
            },
            Taken::Slice { elem, .. }
            | Taken::Value { ty: elem, .. }
            | Taken::Pointer { elem, .. } => {
                quote_spanned! {ours()=>
                    let #view = call.read::<#elem, _>(#number, #align, &self.#field)?;
                }
            }
        }
    }

    /// The alignment that a call must find: the elements' own, that of `#[align]`, and that of `.ptr` in the
    /// PTX, which the compiler took as a promise.
    fn required_align(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let hint = self
            .entry
            .and_then(|entry| entry.params().get(index)?.pointer())
            .map_or(1, |pointer| pointer.align);
        let asked = param.align.unwrap_or(1).max(hint);
        match (&param.taken, param.taken.known_elem()) {
            (_, Some(elem)) => plain((asked as usize).max(elem.align)).to_token_stream(),
            (Taken::Slice { elem, .. } | Taken::Optional { elem }, None) => {
                let own = quote_spanned! {ours()=> ::core::mem::align_of::<#elem>() };
                let asked = plain(asked);
                quote_spanned! {ours()=> if #own < #asked { #asked } else { #own } }
            }
            _ => plain(asked).to_token_stream(),
        }
    }

    /// One `if`, in a scope where names mean what contracts speak of.
    fn requirement(&self, nth: usize, requirement: &TokenStream) -> TokenStream {
        let krate = self.krate;
        let mentioned = self
            .kernel
            .params
            .iter()
            .enumerate()
            .filter(|(_, param)| contract::mentions(requirement, &param.ident.to_string()));
        let (mut bindings, mut values, mut structs) = (TokenStream::new(), Vec::new(), Vec::new());
        for (index, param) in mentioned {
            let (ident, name) = (&param.ident, unraw(&param.ident));
            match &param.taken {
                Taken::Slice { .. } | Taken::Optional { .. } => {
                    let view = view(index);
                    bindings.extend(quote_spanned! {ours()=>
                        let #ident = #krate::__private::ViewOf(#view);
                    });
                    let name = format!("{name}.len()");
                    values.push(quote_spanned! {ours()=> (#name, &#ident.len()) });
                }
                Taken::Value {
                    known: Some(known),
                    ty,
                } if is_integer(known, ty) => {
                    bindings.extend(quote_spanned! {ours()=>
                        let #ident: #krate::__private::Int = ::core::convert::Into::into(self.#ident);
                    });
                    values.push(quote_spanned! {ours()=> (#name, &#ident) });
                }
                Taken::Value {
                    known:
                        Some(Known {
                            shape: Shape::Integer | Shape::Float,
                            ..
                        }),
                    ..
                } => {
                    bindings.extend(quote_spanned! {ours()=> let #ident = self.#ident; });
                    values.push(quote_spanned! {ours()=> (#name, &#ident) });
                }
                Taken::Value { .. } | Taken::Pointer { .. } => {
                    structs.push(ident);
                    bindings.extend(quote_spanned! {ours()=> let #ident = &self.#ident; });
                }
            }
        }
        let fields = contract::fields(requirement, &structs)
            .into_iter()
            .map(|field| {
                let name = describe::expr(&field);
                quote_spanned! {ours()=> (#name, &#krate::__private::Field(#field).shown()) }
            });
        values.extend(fields);
        let geometry = self.geometry(requirement);
        let condition = contract::rewrite(requirement, &structs, krate);
        let nth = plain(nth);
        let any_field = (!structs.is_empty()).then(|| {
            quote_spanned! {ours()=>
                #[allow(unused_imports)]
                use #krate::__private::AnyField as _;
            }
        });
        quote_spanned! {ours()=>
            {
                #any_field
                #bindings
                #geometry
                if (#condition) {} else {
                    return ::core::result::Result::Err(call.requirement(#nth, &[#(#values),*]));
                }
            }
        }
    }

    /// `grid`, `block` and `shared_mem_bytes`, where they are spoken of and are no parameters.
    fn geometry(&self, requirement: &TokenStream) -> TokenStream {
        let krate = self.krate;
        let mut bindings = TokenStream::new();
        for (name, ty) in [
            ("grid", "Extents"),
            ("block", "Extents"),
            ("shared_mem_bytes", "Int"),
        ] {
            let Some(ident) = contract::mention(requirement, name) else {
                continue;
            };
            if self.kernel.params.iter().any(|param| param.ident == name) {
                continue;
            }
            let (method, ty) = (Ident::new(name, ours()), Ident::new(ty, ours()));
            bindings.extend(quote_spanned! {ours()=>
                let #ident: #krate::__private::#ty = ::core::convert::Into::into(call.#method());
            });
        }
        bindings
    }

    fn disjoint(&self, arrays: &[usize]) -> TokenStream {
        let spans = arrays.iter().map(|&index| {
            let (number, view) = (plain(index), view(index));
            let written = self.param(index).taken.is_written_array();
            quote_spanned! {ours()=> (#number, #view, #written) }
        });
        quote_spanned! {ours()=> call.disjoint(&[#(#spans),*])?; }
    }

    fn acquire(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let (field, guard, number) = (&param.ident, guard(index), plain(index));
        match &param.taken {
            Taken::Optional { elem } => quote_spanned! {ours()=>
                let #guard = call.acquire_optional::<#elem>(#number, self.#field)?;
            },
            Taken::Slice {
                elem,
                written: true,
            } => quote_spanned! {ours()=>
                let #guard = call.acquire_mut::<#elem, _>(#number, &mut self.#field)?;
            },
            Taken::Slice { elem, .. }
            | Taken::Value { ty: elem, .. }
            | Taken::Pointer { elem, .. } => {
                quote_spanned! {ours()=>
                    let #guard = call.acquire::<#elem, _>(#number, &self.#field)?;
                }
            }
        }
    }

    fn pack(&self, index: usize) -> TokenStream {
        let param = self.param(index);
        let field = &param.ident;
        let offset = plain(self.layout(index).offset);
        match &param.taken {
            Taken::Slice { .. } | Taken::Optional { .. } => {
                let view = view(index);
                quote_spanned! {ours()=> params.set_pointer(#offset, #view); }
            }
            Taken::Value { known: None, ty } if self.entry.is_some() => {
                let set = set(index, ty);
                quote_spanned! {ours()=> #set(&mut params, #offset, &self.#field); }
            }
            Taken::Value { .. } | Taken::Pointer { .. } => {
                quote_spanned! {ours()=> params.set(#offset, &self.#field); }
            }
        }
    }

    /// What this macro cannot know of the user's types, for the compiler to check.
    fn claims(&self) -> TokenStream {
        let params = self.kernel.params.iter().enumerate();
        params
            .map(|(index, param)| self.claim(index, param))
            .chain([self.heard.claims.clone()])
            .collect()
    }

    fn claim(&self, index: usize, param: &Param) -> TokenStream {
        let krate = self.krate;
        let (kernel, name, number) = (
            unraw(&self.outline.ident),
            unraw(&param.ident),
            plain(index),
        );
        match &param.taken {
            Taken::Value { known: None, ty } => {
                let Some(declared) = self.entry.and_then(|entry| entry.params().get(index)) else {
                    return TokenStream::new();
                };
                let class = Ident::new(class(declared.class()), ours());
                let shown = describe::ty(ty);
                let (size, align) = (plain(declared.size()), plain(declared.align()));
                let ptx = declared.to_string();
                let place = format!("{}:{}", self.file, declared.position().line);
                let safe = self.outline.safe;
                let params_size = plain(self.params_size());
                let set = set(index, ty);
                let krate = located(krate, at(ty));
                // One constant, so that a type which is no argument is told of once.
                quote_spanned! {at(ty)=>
                    const #set: fn(
                        &mut #krate::__private::Params<#params_size>,
                        ::core::primitive::usize,
                        &#ty,
                    ) = {
                        #krate::__private::check_layout::<#ty>(#krate::__private::Expected {
                            kernel: #kernel,
                            index: #number,
                            param: #name,
                            ty: #shown,
                            size: #size,
                            align: #align,
                            class: #krate::__private::Class::#class,
                            ptx: #ptx,
                            place: #place,
                            safe: #safe,
                        });
                        |params, offset, value| {
                            #krate::__private::Params::<#params_size>::set::<#ty>(params, offset, value);
                        }
                    };
                }
            }
            Taken::Slice { elem, .. } | Taken::Optional { elem } if value_known(elem).is_none() => {
                let krate = located(krate, at(elem));
                quote_spanned! {at(elem)=>
                    const _: () = #krate::__private::check_element::<#elem>(#kernel, #number, #name);
                }
            }
            _ => TokenStream::new(),
        }
    }

    fn layout(&self, index: usize) -> Layout {
        match self.entry.and_then(|entry| entry.params().get(index)) {
            Some(param) => Layout {
                offset: param.offset(),
                size: param.size(),
                align: param.align(),
            },
            // Nothing is packed for a kernel that never loads.
            None => Layout {
                offset: 0,
                size: 0,
                align: 1,
            },
        }
    }

    /// The entry's name, mangled where C++ did so.
    fn entry_name(&self) -> String {
        match self.entry {
            Some(entry) => entry.name().to_owned(),
            None => self.kernel.entry_name(self.outline),
        }
    }

    fn params_size(&self) -> usize {
        self.entry.map_or(0, ptx::Entry::params_size)
    }
}

/// Where a parameter lies in the packed buffer.
struct Layout {
    offset: usize,
    size: usize,
    align: usize,
}

fn value_known(ty: &Type) -> Option<Known> {
    crate::value::known(ty)
}

/// Whether contracts take it as a saturating integer; `bool` is one to PTX alone.
fn is_integer(known: &Known, ty: &Type) -> bool {
    let shown = describe::ty(ty);
    let integer = known.shape == Shape::Integer && !shown.ends_with("bool");
    integer || shown.ends_with("u128") || shown.ends_with("i128")
}

fn class(class: ptx::Class) -> &'static str {
    match class {
        ptx::Class::Integer => "Integer",
        ptx::Class::Float => "Float",
        ptx::Class::Bits => "Bits",
        _ => "Bytes",
    }
}

fn view(index: usize) -> Ident {
    format_ident!("view{index}", span = ours())
}

fn guard(index: usize) -> Ident {
    format_ident!("guard{index}", span = ours())
}

/// What packs a value of a type that this macro does not know.
fn set(index: usize, ty: &Type) -> Ident {
    format_ident!("__SET{index}", span = at(ty))
}

/// A number without the type's suffix.
pub(crate) fn plain(number: impl TryInto<u64>) -> Literal {
    Literal::u64_unsuffixed(number.try_into().unwrap_or(u64::MAX))
}

fn dims(dims: Option<[u32; 3]>) -> TokenStream {
    match dims.map(|dims| dims.map(plain)) {
        Some([x, y, z]) => quote_spanned! {ours()=> ::core::option::Option::Some([#x, #y, #z]) },
        None => quote_spanned! {ours()=> ::core::option::Option::None },
    }
}

/// The line of the declaration; outside of a compiler there is none.
fn line(span: Span) -> u32 {
    if proc_macro2_is_real() {
        u32::try_from(span.unwrap().line()).unwrap_or(0)
    } else {
        0
    }
}

fn proc_macro2_is_real() -> bool {
    proc_macro::is_available()
}

/// The user's visibility on what is ours: lints on `pub` are about the user's own items.
fn visibility(vis: &Visibility) -> Visibility {
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

fn docs_text(docs: &[Attribute]) -> String {
    docs.iter()
        .map(|doc| doc.meta.to_token_stream().to_string())
        .collect()
}
