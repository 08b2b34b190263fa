//! What `#[kernel(..)]` was put on: a block of kernels or one alone.
//!
//! Takes the tokens; gives the kernels that can be read, each with the user's own tokens, and notes
//! what is wrong with the others. Opens no file and knows no PTX.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{
    Abi, AttrStyle, Attribute, Expr, Ident, Lit, LitStr, Path, Token, Visibility, braced, token,
};

use crate::kernel::{self, Form, Parsed};
use crate::report::Report;
use crate::statics::{self, Static};
use crate::suggest;

/// What stands in the parentheses of `#[kernel(..)]`.
pub(crate) struct Options {
    pub(crate) ptx: Option<Expr>,
    /// Machine code of the same kernels.
    pub(crate) cubin: Option<Expr>,
    /// The CUDA source, or a signature of it.
    pub(crate) cuda: Option<Expr>,
    /// Whether an array that the kernel never touches is an error.
    pub(crate) deny_unused: bool,
    /// The crate `gridcall`, as the user's crate calls it.
    pub(crate) krate: Path,
}

/// The kernels of one `#[kernel]`.
#[derive(Default)]
pub(crate) struct Declarations {
    pub(crate) kernels: Vec<Parsed>,
    pub(crate) statics: Vec<Static>,
    /// What could not be read, to give back to the editor as it was.
    pub(crate) unread: TokenStream,
    /// The `#[cfg]`s in front of all kernels.
    pub(crate) cfgs: Vec<Attribute>,
    /// Errors that concern no kernel that was read.
    pub(crate) report: Report,
}

const KEYS: [&str; 5] = ["ptx", "cubin", "cuda", "unused", "crate"];

/// Reads the parentheses of `#[kernel(..)]`.
pub(crate) fn options(tokens: TokenStream, report: &mut Report) -> Options {
    let mut options = Options {
        ptx: None,
        cubin: None,
        cuda: None,
        deny_unused: false,
        krate: syn::parse_quote!(::gridcall),
    };
    let parser = |input: ParseStream| {
        while !input.is_empty() {
            option(input, &mut options, report)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    match parser.parse2(tokens) {
        Err(error) => report.add(error),
        // Without PTX the kernel is compared with the module that it is taken from.
        Ok(()) if options.ptx.is_none() && report.is_empty() => {
            if let Some(cuda) = &options.cuda {
                let message = "`cuda = ..` needs `ptx = ..` beside it: the source is a witness for what it \
                               was compiled to";
                report.error(cuda, message);
            }
            if let Some(cubin) = &options.cubin {
                let message = "`cubin = ..` needs `ptx = ..` beside it: the PTX is what the declaration is \
                               compared with, and what other devices load";
                report.error(cubin, message);
            }
        }
        Ok(()) => {}
    }
    options
}

fn option(input: ParseStream, options: &mut Options, report: &mut Report) -> syn::Result<()> {
    if let Ok(path) = input.fork().parse::<LitStr>() {
        input.parse::<LitStr>()?;
        report.error(&path, format!("write `ptx = {}`", path.token()));
        return Ok(());
    }
    let key = input.call(Ident::parse_any)?;
    if key == "ptx" && input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let ptx = input.parse::<Expr>()?;
        if options.ptx.is_some() {
            report.error(&key, "`ptx` is given twice: a declaration has one PTX file");
        } else {
            options.ptx = Some(ptx);
        }
    } else if key == "cubin" && input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let cubin = input.parse::<Expr>()?;
        if options.cubin.is_some() {
            report.error(
                &key,
                "`cubin` is given twice: name several files in a list, `cubin = [\"a\", \"b\"]`",
            );
        } else {
            options.cubin = Some(cubin);
        }
    } else if key == "cuda" && input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let cuda = input.parse::<Expr>()?;
        if options.cuda.is_some() {
            report.error(&key, "`cuda` is given twice: a declaration has one source");
        } else {
            options.cuda = Some(cuda);
        }
    } else if key == "unused" && input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let level = input.parse::<LitStr>()?;
        match level.value().as_str() {
            "deny" => options.deny_unused = true,
            "allow" => options.deny_unused = false,
            _ => report.error(&level, "write `unused = \"deny\"` or `unused = \"allow\"`"),
        }
    } else if key == "crate" && input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        options.krate = input.call(Path::parse_mod_style)?;
    } else if KEYS.iter().any(|known| key == known) {
        let value = if key == "crate" { "path" } else { "\"path\"" };
        report.error(&key, format!("write `{key} = {value}`"));
        skip_to_comma(input)?;
    } else {
        report.error(&key, unknown_key(&key.to_string()));
        skip_to_comma(input)?;
    }
    Ok(())
}

fn unknown_key(key: &str) -> String {
    match key {
        "name" => {
            "the entry's name goes on the function: write `#[name(\"entry\")]` there".to_owned()
        }
        _ => match suggest::closest(key, KEYS) {
            Some(meant) => format!("no option `{key}`; did you mean `{meant}`?"),
            None => {
                format!(
                    "no option `{key}`; the options are `ptx = \"path\"`, `cubin = \"path\"`, \
                     `cuda = \"path\"`, `unused = \"deny\"` and `crate = path`"
                )
            }
        },
    }
}

fn skip_to_comma(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Reads the item under `#[kernel]`.
pub(crate) fn declarations(item: TokenStream) -> Declarations {
    let mut declarations = Declarations::default();
    let parser = |input: ParseStream| {
        let attrs = input.call(Attribute::parse_outer)?;
        if is_block(input) {
            block(attrs, input, &mut declarations)
        } else {
            single(attrs, input, &mut declarations)
        }
    };
    if let Err(error) = parser.parse2(item.clone()) {
        declarations.report.add(error);
        // The whole item is given back, so what was read of it would be there twice.
        declarations.kernels.clear();
        declarations.statics.clear();
        declarations.unread = item;
    }
    declarations
}

fn is_block(input: ParseStream) -> bool {
    let ahead = input.fork();
    ahead.parse::<Option<Token![unsafe]>>().is_ok()
        && ahead.parse::<Abi>().is_ok()
        && ahead.peek(token::Brace)
}

fn block(
    mut attrs: Vec<Attribute>,
    input: ParseStream,
    declarations: &mut Declarations,
) -> syn::Result<()> {
    let report = &mut declarations.report;
    let unsafety = input.parse::<Option<Token![unsafe]>>()?;
    let abi = input.parse::<Abi>()?;
    if unsafety.is_none() {
        report.error(
            abi.extern_token,
            "write `unsafe extern \"C\"`: whoever writes the block vouches that the declarations \
             are those of the kernels",
        );
    }
    match &abi.name {
        None => report.error(
            abi.extern_token,
            "write `unsafe extern \"C\"`, with the \"C\"",
        ),
        Some(name) if name.value() != "C" => {
            report.error(name, "kernels are declared as \"C\"");
        }
        Some(_) => {}
    }
    let content;
    braced!(content in input);
    for mut attr in content.call(Attribute::parse_inner)? {
        attr.style = AttrStyle::Outer;
        attrs.push(attr);
    }
    let shared = shared_attributes(attrs, report);
    declarations.cfgs = cfgs(&shared);
    while !content.is_empty() {
        block_item(&shared, &content, declarations)?;
    }
    Ok(())
}

fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .cloned()
        .collect()
}

/// The attributes of a block that hold for each of its kernels.
fn shared_attributes(attrs: Vec<Attribute>, report: &mut Report) -> Vec<Attribute> {
    let mut shared = Vec::new();
    for attr in attrs {
        let path = attr.path();
        if ["cfg", "allow", "expect", "warn", "deny", "forbid"]
            .iter()
            .any(|name| path.is_ident(name))
        {
            shared.push(attr);
        } else if !path.is_ident("doc") {
            // A block is no item of the expansion, so its docs have no place, as on any `extern`
            // block.
            report.error(
                &attr,
                "not allowed on the block: only `#[cfg]` and lint levels hold for all its kernels",
            );
        }
    }
    shared
}

fn block_item(
    shared: &[Attribute],
    input: ParseStream,
    declarations: &mut Declarations,
) -> syn::Result<()> {
    let start = input.fork();
    let attrs = input.call(Attribute::parse_outer)?;
    let vis = input.parse::<Visibility>()?;
    if let Err(error) = refuse_other_items(input) {
        declarations.report.add(error);
        skip_item(&start, input)?;
        return Ok(());
    }
    // In a fork, as syn would take what a failed parse leaves over for an error of its own.
    let ahead = input.fork();
    let attrs = [shared, &attrs].concat();
    let read = if statics::is_next(&ahead) {
        statics::parse(attrs, vis, &ahead).map(|one| declarations.statics.push(one))
    } else {
        kernel::parse(attrs, vis, &ahead, Form::Block).map(|one| declarations.kernels.push(one))
    };
    match read {
        Ok(()) => input.advance_to(&ahead),
        Err(error) => {
            declarations.report.add(error);
            let unread = skip_item(&start, input)?;
            let block = quote::quote! { unsafe extern "C" { #unread } };
            declarations.unread.extend(block);
        }
    }
    Ok(())
}

fn refuse_other_items(input: ParseStream) -> syn::Result<()> {
    let ahead = input.fork();
    if let Ok(token) = ahead.parse::<Token![type]>() {
        let message =
            "a kernel's block declares functions and statics; write the type beside the block";
        return Err(syn::Error::new_spanned(token, message));
    }
    if let (Ok(name), Ok(_)) = (ahead.call(Ident::parse_any), ahead.parse::<Token![!]>()) {
        let message = "a macro is not expanded here: let it make the whole block";
        return Err(syn::Error::new_spanned(name, message));
    }
    Ok(())
}

/// Moves `input` behind the item that `start` is at, and gives the item's tokens.
fn skip_item(start: ParseStream, input: ParseStream) -> syn::Result<TokenStream> {
    let mut item = TokenStream::new();
    while !start.is_empty() {
        let token = start.parse::<TokenTree>()?;
        let ends = match &token {
            TokenTree::Punct(punct) => punct.as_char() == ';',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        token.to_tokens(&mut item);
        if ends {
            break;
        }
    }
    input.advance_to(start);
    Ok(item)
}

fn single(
    attrs: Vec<Attribute>,
    input: ParseStream,
    declarations: &mut Declarations,
) -> syn::Result<()> {
    let vis = input.parse::<Visibility>()?;
    let ahead = input.fork();
    let is_function = kernel::parse_qualifiers(&ahead).is_ok() && {
        let _ = ahead.parse::<Option<Abi>>();
        ahead.peek(Token![fn])
    };
    if !is_function {
        let token: TokenTree = input.parse()?;
        let message = "#[kernel] goes on `unsafe extern \"C\" { .. }`, or on the signature of one \
                       function, `unsafe fn name(..);`";
        return Err(syn::Error::new_spanned(token, message));
    }
    declarations.cfgs = cfgs(&attrs);
    declarations
        .kernels
        .push(kernel::parse(attrs, vis, input, Form::Single)?);
    Ok(())
}

/// The text of a string literal, also where `macro_rules!` wrapped it.
pub(crate) fn literal_str(expr: &Expr) -> Option<&LitStr> {
    match expr {
        Expr::Group(group) => literal_str(&group.expr),
        Expr::Paren(paren) => literal_str(&paren.expr),
        Expr::Lit(lit) => match &lit.lit {
            Lit::Str(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
