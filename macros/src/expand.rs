//! Writes the code for declarations in which nothing is wrong, and the outline of the others.
//!
//! Nothing can fail here. Names from the user's tokens keep their spans; all that is ours has the span of
//! the macro, so that neither side's local variables meet and lints on the user's code do not fire on ours.
//!
//! A kernel becomes a function and a struct of its arguments; what nobody calls by name, the loaded image,
//! the description and the launch itself, is in a `const _: () = { .. };`.

mod declaration;
mod launch;
mod signature;

use gridcall_ptx as ptx;
use proc_macro2::{Literal, TokenStream};
use quote::quote_spanned;
use syn::{Attribute, Path};

use crate::artifact::{Artifact, Place};
use crate::kernel::{Kernel, Outline};
use crate::span::ours;

use signature::Signature;

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
/// `include_bytes!` makes the compiler read the file as well, so a changed file is compiled again; and
/// `env!` likewise for the variables in its path. A text, or one with a NUL behind it, would take the
/// compiler several times as long.
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
            ptx: ::core::include_bytes!(#absolute),
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
            ptx: &[],
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

impl Subject<'_> {
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

/// A number without the type's suffix.
pub(crate) fn plain(number: impl TryInto<u64>) -> Literal {
    Literal::u64_unsuffixed(number.try_into().unwrap_or(u64::MAX))
}
