//! Writes the code for declarations in which nothing is wrong, and the outline of the others.
//!
//! Nothing can fail here. Names from the user's tokens keep their spans; all that is ours has the
//! span of the macro, so that neither side's local variables meet and lints on the user's code do
//! not fire on ours.
//!
//! A kernel becomes a function and a struct of its arguments; what nobody calls by name, the loaded
//! image, the description and the launch itself, is in a `const _: () = { .. };`.

mod declaration;
mod family;
mod function;
mod launch;
mod signature;
mod symbol;

use gridcall_ptx as ptx;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{Attribute, Path, Type};

use crate::artifact::{Artifact, Code, Place};
use crate::kernel::{Kernel, Outline, unraw};
use crate::span::{at, located, ours};
use crate::value::Taken;

use declaration::docs_of_family;
pub(crate) use family::{Instance, family};
pub(crate) use function::Called;
use signature::Signature;
pub(crate) use symbol::{symbol, symbol_outline};

/// A kernel and what was found for it.
pub(crate) struct Subject<'a> {
    pub(crate) krate: &'a Path,
    pub(crate) outline: &'a Outline,
    pub(crate) kernel: &'a Kernel,
    /// The file of its PTX, as the user calls it.
    pub(crate) file: &'a str,
    /// `None` if the crate is built with signatures only.
    pub(crate) entry: Option<&'a ptx::Entry>,
    /// One of each image, and whether its code waits for the grids it depends on.
    pub(crate) entries: Vec<(&'a ptx::Entry, bool)>,
    /// Whether the program names the module when it runs.
    pub(crate) later: bool,
    /// The type that it is an instance for, if its name does not say that.
    pub(crate) instance: Option<&'a Type>,
    /// What the witnesses found, unless the crate is built with signatures only.
    pub(crate) heard: Heard,
    /// The variables that the kernel uses, in each image: the name, whether uses are ordered, and
    /// whether the kernel may write it.
    pub(crate) touches: Vec<Vec<(String, bool, bool)>>,
    /// The variables that the block declares `static mut`.
    pub(crate) ordered: &'a [String],
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
    /// For each parameter, the prototypes by which the code calls it.
    pub(crate) calls: Vec<Vec<Called>>,
}

impl Heard {
    /// What was found in another image.
    pub(crate) fn add(&mut self, other: Heard) {
        self.claims.extend(other.claims);
        if self.read_only.is_empty() {
            self.read_only = other.read_only;
        } else {
            let both = self.read_only.iter_mut().zip(other.read_only);
            both.for_each(|(one, other)| *one &= other);
        }
        if self.calls.is_empty() {
            self.calls = other.calls;
        } else {
            let both = self.calls.iter_mut().zip(other.calls);
            both.for_each(|(one, other)| one.extend(other));
        }
        self.cpp = self.cpp.take().or(other.cpp);
        self.source = self.source.take().or(other.source);
    }
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
/// `include_bytes!` makes the compiler read the file as well, so a changed file is compiled again;
/// and `env!` likewise for the variables in its path. A text, or one with a NUL behind it, would
/// take the compiler several times as long.
pub(crate) fn image(
    krate: &Path,
    number: usize,
    artifact: &Artifact,
    code: &[Code],
) -> TokenStream {
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
    let name = image_name(number);
    let code = code.iter().map(|code| machine_code(krate, code));
    quote_spanned! {ours()=>
        #(const _: &::core::primitive::str = ::core::env!(#variables);)*
        #[allow(dead_code)]
        static #name: #krate::__private::Image = #krate::__private::Image {
            path: #shown,
            ptx: ::core::include_bytes!(#absolute),
            version: (#major, #minor),
            target: #target,
            code: &[#(#code),*],
        };
    }
}

/// Machine code as the program carries it.
fn machine_code(krate: &Path, code: &Code) -> TokenStream {
    let Place {
        shown,
        absolute,
        variables,
    } = &code.place;
    let absolute = absolute.to_string_lossy();
    quote_spanned! {ours()=>
        {
            #(const _: &::core::primitive::str = ::core::env!(#variables);)*
            #krate::__private::MachineCode {
                path: #shown,
                bytes: ::core::include_bytes!(#absolute),
            }
        }
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
    let name = image_name(0);
    quote_spanned! {ours()=>
        #(const _: &::core::primitive::str = ::core::env!(#variables);)*
        const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(#switch);
        #[allow(dead_code)]
        static #name: #krate::__private::Image = #krate::__private::Image {
            path: #shown,
            ptx: &[],
            version: (0, 0),
            target: "",
            code: &[],
        };
    }
}

/// `__IMAGE0`, the first of those that a block shares.
fn image_name(number: usize) -> Ident {
    format_ident!("__IMAGE{number}", span = ours())
}

/// All of a kernel.
pub(crate) fn kernel(subject: &Subject<'_>) -> Items {
    let signature = Signature::new(subject.krate, subject.outline);
    let arguments = signature.struct_item();
    if subject.later {
        return Items {
            visible: arguments,
            hidden: subject.hidden(&signature),
        };
    }
    let docs = subject.docs();
    let function = signature.function(&docs, &signature.launch_self());
    Items {
        visible: quote_spanned! {ours()=> #arguments #function },
        hidden: subject.hidden(&signature),
    }
}

/// What the uses of a wrong declaration need to resolve; it is never run, as the crate does not
/// compile.
pub(crate) fn outline(krate: &Path, outline: &Outline) -> TokenStream {
    let signature = Signature::new(krate, outline);
    let never = quote_spanned! {ours()=> loop {} };
    let arguments = signature.struct_item();
    let function = signature.function(&TokenStream::new(), &never);
    let methods = signature.methods(&never, &never, &never);
    quote_spanned! {ours()=>
        #arguments
        #function
        const _: () = { #methods };
    }
}

impl Subject<'_> {
    fn hidden(&self, signature: &Signature<'_>) -> TokenStream {
        let krate = self.krate;
        let load = quote_spanned! {ours()=> #krate::Kernel::load(context) };
        let launch = if self.outline.safe {
            quote_spanned! {ours()=>
                #krate::__private::launch(self, stream, ::core::convert::Into::into(launch))
            }
        } else {
            // SAFETY (of the generated code): the method asks of its caller what the declaration
            // does.
            quote_spanned! {ours()=>
                unsafe {
                    #krate::__private::launch_unsafe(
                        self,
                        stream,
                        ::core::convert::Into::into(launch),
                    )
                }
            }
        };
        let methods = if self.later {
            signature.load_from()
        } else {
            let describe = quote_spanned! {ours()=>
                #krate::__private::describe(self, stream, ::core::convert::Into::into(launch))
            };
            signature.methods(&load, &launch, &describe)
        };
        let places = self.places();
        let declared = self.declared(signature);
        let arguments = self.arguments(signature);
        quote_spanned! {ours()=> #places #declared #methods #arguments }
    }

    fn layout(&self, index: usize) -> Layout {
        if self.later {
            let places = self.places_name();
            let index = plain(index);
            return Layout {
                offset: quote_spanned! {ours()=> #places.offsets[#index] },
                size: quote_spanned! {ours()=> #places.sizes[#index] },
                align: quote_spanned! {ours()=> #places.aligns[#index] },
            };
        }
        let param = self.entry.and_then(|entry| entry.params().get(index));
        // Nothing is packed for a kernel that never loads.
        let [offset, size, align] = param.map_or([0, 0, 1], |param| {
            [param.offset(), param.size(), param.align()]
        });
        let [offset, size, align] =
            [offset, size, align].map(|number| plain(number).to_token_stream());
        Layout {
            offset,
            size,
            align,
        }
    }

    /// Where the parameters of a kernel without PTX lie: as its types are laid out.
    fn places(&self) -> TokenStream {
        if !self.later {
            return TokenStream::new();
        }
        let (krate, name) = (self.krate, self.places_name());
        let count = plain(self.kernel.params.len());
        let layouts = self.kernel.params.iter().map(|param| match &param.taken {
            Taken::Value {
                known: Some(known), ..
            } => {
                let (size, align) = (plain(known.size), plain(known.align));
                quote_spanned! {ours()=> (#size, #align) }
            }
            Taken::Value { known: None, ty } => {
                let krate = located(krate, at(ty));
                quote_spanned! {at(ty)=> #krate::__private::size_and_align::<#ty>() }
            }
            Taken::Strided { elem, rank, .. } => quote_spanned! {ours()=>
                #krate::__private::size_and_align::<#krate::Strided<#elem, { #rank }>>()
            },
            Taken::TensorMap { .. } => quote_spanned! {ours()=> (128, 64) },
            _ => quote_spanned! {ours()=> (8, 8) },
        });
        let cfgs = &self.outline.attrs.cfgs;
        quote_spanned! {ours()=>
            #(#cfgs)*
            #[allow(non_upper_case_globals, dead_code)]
            const #name: #krate::__private::Places<#count> =
                #krate::__private::Places::new([#(#layouts),*]);
        }
    }

    fn places_name(&self) -> Ident {
        format_ident!("__PLACES_{}", unraw(&self.outline.ident), span = ours())
    }

    /// The entry's name, mangled where C++ did so.
    fn entry_name(&self) -> String {
        match self.entry {
            Some(entry) => entry.name().to_owned(),
            None => self.kernel.entry_name(self.outline),
        }
    }

    /// The bytes of the parameters, as an argument of `Params`.
    fn params_size(&self) -> TokenStream {
        if self.later {
            let places = self.places_name();
            return quote_spanned! {ours()=> { #places.size } };
        }
        plain(self.entry.map_or(0, ptx::Entry::params_size)).to_token_stream()
    }
}

/// Where a parameter lies in the packed buffer.
struct Layout {
    offset: TokenStream,
    size: TokenStream,
    align: TokenStream,
}

/// A number without the type's suffix.
pub(crate) fn plain(number: impl TryInto<u64>) -> Literal {
    Literal::u64_unsuffixed(number.try_into().unwrap_or(u64::MAX))
}
