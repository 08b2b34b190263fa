//! One variable's declaration: `static mut TAPS: [f32; 5];`, read into a model.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, Ident, LitStr, Safety, Token, Type, Visibility};

use crate::attribute;
use crate::kernel::{Attributes, unraw};
use crate::report::Report;
use crate::value;

/// A declaration that could be read.
pub(crate) struct Static {
    pub(crate) attrs: Attributes,
    pub(crate) vis: Visibility,
    pub(crate) token: Token![static],
    pub(crate) mutability: Option<Token![mut]>,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name in the PTX, where it differs from the static's.
    pub(crate) name: Option<LitStr>,
    pub(crate) report: Report,
}

impl Static {
    /// The name of the variable in the PTX.
    pub(crate) fn symbol_name(&self) -> String {
        match &self.name {
            Some(name) => name.value(),
            None => unraw(&self.ident),
        }
    }

    /// `static mut TAPS`, without the raw mark.
    pub(crate) fn shown(&self) -> String {
        let mutability = if self.mutability.is_some() {
            "mut "
        } else {
            ""
        };
        format!("static {mutability}{}", unraw(&self.ident))
    }

    /// The type of the functions whose addresses it holds, if it does.
    pub(crate) fn function(&self) -> Option<&Type> {
        value::device_fn(self.element())
    }

    /// What the type is made of, if it is an array.
    pub(crate) fn element(&self) -> &Type {
        element(&self.ty)
    }
}

fn element(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => element(&group.elem),
        Type::Paren(paren) => element(&paren.elem),
        Type::Array(array) => element(&array.elem),
        _ => ty,
    }
}

/// Whether a static is next, behind attributes and visibility.
pub(crate) fn is_next(input: ParseStream) -> bool {
    let ahead = input.fork();
    Safety::parse_safe_or_unsafe(&ahead).is_ok() && ahead.peek(Token![static])
}

/// Reads a static from behind its attributes and visibility to its end.
pub(crate) fn parse(
    attrs: Vec<Attribute>,
    vis: Visibility,
    input: ParseStream,
) -> syn::Result<Static> {
    let mut report = Report::default();
    if let Safety::Unsafe(token) = Safety::parse_safe_or_unsafe(input)? {
        report.error(
            token,
            "not needed: the host reads and writes a variable of the device in the order of a stream, \
             which is safe",
        );
    }
    let token = input.parse()?;
    let mutability = input.parse()?;
    let ident = input.call(Ident::parse_any)?;
    input.parse::<Token![:]>()?;
    let ty: Type = input.parse()?;
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        let value: Expr = input.parse()?;
        report.error(
            value,
            "a variable of the device has no value here: the CUDA code gives it one, or `write` does",
        );
    }
    input.parse::<Token![;]>()?;
    let (attrs, name) = attribute::of_static(attrs, &mut report);
    if let Err(error) = value::check_static(&ty) {
        report.add(error);
    }
    Ok(Static {
        attrs,
        vis,
        token,
        mutability,
        ident,
        ty,
        name,
        report,
    })
}
