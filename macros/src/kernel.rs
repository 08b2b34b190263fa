//! One kernel's declaration: its signature and attributes, read into a model that holds only what
//! is legal.
//!
//! A declaration that is wrong but can be told apart gives its outline instead, so that its uses
//! resolve.

use proc_macro2::Span;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{
    Attribute, Block, FnArg, Ident, LitInt, LitStr, Pat, PatType, ReturnType, Safety, Signature,
    Token, Type, Visibility, token,
};

use crate::attribute::{self, Settings};
use crate::contract;
use crate::family::{self, Family};
use crate::report::Report;
use crate::value::{self, Taken};

/// A declaration that could be read.
pub(crate) struct Parsed {
    pub(crate) outline: Outline,
    /// Everything else, if nothing is wrong.
    pub(crate) kernel: Option<Kernel>,
    /// What it is instead, if it is generic.
    pub(crate) family: Option<Family>,
    pub(crate) report: Report,
}

/// As much of a declaration as its uses need.
pub(crate) struct Outline {
    pub(crate) attrs: Attributes,
    pub(crate) vis: Visibility,
    pub(crate) safe: bool,
    pub(crate) ident: Ident,
    /// Where a parameter is missing.
    pub(crate) paren: token::Paren,
    pub(crate) params: Vec<Slot>,
    /// The type parameter of a generic declaration.
    pub(crate) generic: Option<Ident>,
}

/// As much of a parameter as uses of the kernel need.
pub(crate) struct Slot {
    pub(crate) ident: Ident,
    pub(crate) docs: Vec<Attribute>,
    /// How the argument is taken, if that could be told.
    pub(crate) taken: Option<Taken>,
}

/// The user's attributes, by the items of the expansion that they go to.
#[derive(Default)]
pub(crate) struct Attributes {
    /// `#[cfg]`: all items.
    pub(crate) cfgs: Vec<Attribute>,
    /// Docs: the function.
    pub(crate) docs: Vec<Attribute>,
    /// Lint levels, `#[deprecated]`, `#[doc(hidden)]`: the function and the struct.
    pub(crate) shared: Vec<Attribute>,
    /// What else there is, `#[expect]` too, for what is expected happens once: the function.
    pub(crate) function: Vec<Attribute>,
}

/// A declaration in which nothing is wrong by itself.
pub(crate) struct Kernel {
    pub(crate) params: Vec<Param>,
    /// The name in the PTX, where it differs from the function's.
    pub(crate) name: Option<LitStr>,
    pub(crate) block: Option<Extents>,
    pub(crate) cluster: Option<Extents>,
    pub(crate) cooperative: bool,
    pub(crate) rank: Option<Rank>,
    pub(crate) requires: Vec<proc_macro2::TokenStream>,
    /// Pairs of arrays that may overlap, by index.
    pub(crate) may_alias: Vec<(usize, usize)>,
}

pub(crate) struct Param {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) taken: Taken,
    /// `#[align(..)]`, in bytes.
    pub(crate) align: Option<u32>,
}

/// What `#[block(..)]` or `#[cluster(..)]` say.
pub(crate) struct Extents {
    pub(crate) dims: [u32; 3],
    /// What to underline.
    pub(crate) tokens: proc_macro2::TokenStream,
}

/// What `#[rank(..)]` says.
pub(crate) struct Rank {
    pub(crate) axes: u8,
    /// What to underline.
    pub(crate) number: LitInt,
}

/// Where a declaration stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Block,
    Single,
}

impl Param {
    /// The whole of it, for errors that do not concern its type.
    pub(crate) fn tokens(&self) -> proc_macro2::TokenStream {
        let (ident, ty) = (&self.ident, &self.ty);
        quote::quote! { #ident: #ty }
    }
}

impl Kernel {
    /// The name of the entry in the PTX.
    pub(crate) fn entry_name(&self, outline: &Outline) -> String {
        match &self.name {
            Some(name) => name.value(),
            None => unraw(&outline.ident),
        }
    }
}

/// `type` of `r#type`.
pub(crate) fn unraw(ident: &Ident) -> String {
    syn::ext::IdentExt::unraw(ident).to_string()
}

/// What stands in front of `fn`, except for the ABI.
pub(crate) fn parse_qualifiers(
    input: ParseStream,
) -> syn::Result<(Option<Token![const]>, Option<Token![async]>, Safety)> {
    Ok((
        input.parse()?,
        input.parse()?,
        Safety::parse_safe_or_unsafe(input)?,
    ))
}

/// Reads a function from behind its attributes and visibility to its end.
pub(crate) fn parse(
    attrs: Vec<Attribute>,
    vis: Visibility,
    input: ParseStream,
    form: Form,
) -> syn::Result<Parsed> {
    let (constness, asyncness, safety) = parse_qualifiers(input)?;
    let mut signature: Signature = input.parse()?;
    signature.constness = constness;
    signature.asyncness = asyncness;
    signature.safety = safety;

    let mut report = Report::default();
    if input.peek(token::Brace) {
        let body: Block = input.parse()?;
        report.error(
            body,
            "a kernel has no body here: end the declaration with `;`, the body is the CUDA code",
        );
    } else {
        input.parse::<Token![;]>()?;
    }
    Ok(read(attrs, vis, signature, form, report))
}

/// Makes a declaration of what was read.
pub(crate) fn read(
    attrs: Vec<Attribute>,
    vis: Visibility,
    signature: Signature,
    form: Form,
    mut report: Report,
) -> Parsed {
    check_qualifiers(&signature, form, &mut report);
    let generic = family::type_parameter(&signature);
    if generic.is_none() {
        check_generics(&signature, &mut report);
    }
    let family = generic
        .clone()
        .map(|generic| Family::read(&attrs, &signature, form, generic, &mut report));
    let attrs = match &family {
        Some(_) => attrs
            .into_iter()
            .filter(|attr| !attr.path().is_ident("instances"))
            .collect(),
        None => attrs,
    };
    check_return(&signature, &mut report);
    if let Some(variadic) = &signature.variadic {
        report.error(variadic, "a kernel takes a fixed number of parameters");
    }
    let safe = matches!(signature.safety, Safety::Safe(_));

    let (attrs, settings) = attribute::of_kernel(attrs, &mut report);
    let mut slots = Vec::new();
    let mut params = Vec::new();
    for (index, argument) in signature.inputs.into_iter().enumerate() {
        let (slot, param) = read_param(index, argument, safe, &mut report);
        slots.push(slot);
        params.extend(param);
    }
    // Indices into `params` hold only if none was refused.
    let whole = params.len() == slots.len();
    let kernel = whole.then(|| settle(settings, params, &mut report));
    Parsed {
        outline: Outline {
            attrs,
            vis,
            safe,
            ident: signature.ident,
            paren: signature.paren_token,
            params: slots,
            generic,
        },
        kernel: kernel.filter(|_| report.is_empty() && family.is_none()),
        family: family.filter(|_| report.is_empty()),
        report,
    }
}

fn settle(settings: Settings, params: Vec<Param>, report: &mut Report) -> Kernel {
    let may_alias = settings.aliases(&params, report);
    let names: Vec<&Ident> = params.iter().map(|param| &param.ident).collect();
    let requires = settings.requires.into_iter();
    let requires = requires.map(|one| contract::spelled(one, &names)).collect();
    Kernel {
        params,
        name: settings.name,
        block: settings.block,
        cluster: settings.cluster,
        cooperative: settings.cooperative,
        rank: settings.rank,
        requires,
        may_alias,
    }
}

fn check_qualifiers(signature: &Signature, form: Form, report: &mut Report) {
    if let Some(token) = signature.constness {
        report.error(token, "a kernel runs on the device: `const` is not allowed");
    }
    if let Some(token) = signature.asyncness {
        report.error(
            token,
            "`async` is not allowed: a launch returns at once, and the stream orders the work",
        );
    }
    if let Some(abi) = &signature.abi {
        let message = match form {
            Form::Block => "the block says `extern \"C\"` already",
            Form::Single => "`extern` is not needed: write `unsafe fn name(..);`",
        };
        report.error(abi, message);
    }
    if form == Form::Single {
        check_vouched(signature, report);
    }
}

/// A declaration that makes a kernel safe is somebody's word for it, which Rust marks by `unsafe`.
fn check_vouched(signature: &Signature, report: &mut Report) {
    match signature.safety {
        Safety::Safe(token) => report.error(
            token,
            "whoever declares a kernel safe vouches for it, which takes the word `unsafe`: declare \
             it in a block, `unsafe extern \"C\" { safe fn name(..); }`",
        ),
        Safety::Default => report.error(
            signature.fn_token,
            "say who vouches for a launch: its caller, by `unsafe fn`, or the declaration, by \
             `safe fn` in a block `unsafe extern \"C\" { .. }`",
        ),
        Safety::Unsafe(_) => {}
    }
}

fn check_generics(signature: &Signature, report: &mut Report) {
    let generics = &signature.generics;
    if let Some(lifetime) = generics.lifetimes().next() {
        report.error(
            &lifetime.lifetime,
            "lifetimes are not allowed here: an array is borrowed for the launch, write `&[T]`",
        );
    } else if !generics.params.is_empty() {
        report.error(
            &generics.params,
            "a generic kernel has one type parameter without bounds, `fn name<T>(..)`, and its \
             #[instances(T = { f32 => \"entry\" })]",
        );
    }
    if let Some(clause) = &generics.where_clause {
        report.error(clause, "a kernel's declaration has no bounds");
    }
}

fn check_return(signature: &Signature, report: &mut Report) {
    if let ReturnType::Type(_, ty) = &signature.output {
        report.error(
            ty,
            "a kernel returns nothing: it writes its results through a `&mut [T]` parameter",
        );
    }
}

/// What the outline needs of a parameter, and all of it if it is right.
fn read_param(
    index: usize,
    argument: FnArg,
    safe: bool,
    report: &mut Report,
) -> (Slot, Option<Param>) {
    let argument = match argument {
        FnArg::Typed(argument) => argument,
        FnArg::Receiver(receiver) => {
            report.error(
                &receiver,
                "a kernel has no `self`: name the parameter and its type",
            );
            return (Slot::unnamed(index, &receiver), None);
        }
    };
    let Some(ident) = read_name(&argument, report) else {
        return (Slot::unnamed(index, &argument.pat), None);
    };
    let taken = report.note(value::classify(&argument.ty, &ident.to_string()));
    if safe {
        check_pointer(&ident, &argument.ty, taken.as_ref(), report);
    }
    let attributes = attribute::of_param(argument.attrs, &argument.ty, taken.as_ref(), report);
    let param = taken.clone().map(|taken| Param {
        ident: ident.clone(),
        ty: *argument.ty,
        taken,
        align: attributes.align,
    });
    (
        Slot {
            ident,
            docs: attributes.docs,
            taken,
        },
        param,
    )
}

fn check_pointer(ident: &Ident, ty: &Type, taken: Option<&Taken>, report: &mut Report) {
    if let Some(Taken::Pointer { elem, written }) = taken {
        let slice = if *written { "&mut [" } else { "&[" };
        let elem = crate::describe::ty(elem);
        report.error(
            ty,
            format!(
                "a raw pointer needs an `unsafe fn`, as nobody checks where it points: write \
                 `{ident}: {slice}{elem}]`, or declare the kernel `unsafe fn`"
            ),
        );
    }
}

fn read_name(argument: &PatType, report: &mut Report) -> Option<Ident> {
    match &*argument.pat {
        Pat::Ident(pat) => {
            if let Some(token) = pat.by_ref {
                report.error(
                    token,
                    "`ref` is not allowed: a parameter is a name and a type",
                );
            }
            if let Some(token) = pat.mutability {
                report.error(
                    token,
                    "`mut` is not allowed here: for an array that the kernel writes, write `&mut \
                     [T]`",
                );
            }
            if let Some((_, pat)) = &pat.subpat {
                report.error(pat, "a parameter is a name and a type, not a pattern");
            }
            Some(pat.ident.clone())
        }
        Pat::Wild(pat) => {
            report.error(
                pat,
                "a parameter needs a name: messages and contracts speak of it",
            );
            None
        }
        pat => {
            report.error(pat, "a parameter is a name and a type, not a pattern");
            None
        }
    }
}

impl Slot {
    /// For what has no name, so that the outline has as many parameters as the declaration.
    fn unnamed(index: usize, tokens: &impl ToTokens) -> Slot {
        let span = tokens
            .to_token_stream()
            .into_iter()
            .next()
            .map_or_else(Span::call_site, |token| token.span());
        let ident = Ident::new(&format!("__param_{index}"), span);
        Slot {
            ident,
            docs: Vec::new(),
            taken: None,
        }
    }
}
