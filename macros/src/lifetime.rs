//! Gives the elided lifetimes of a type a name, as a struct needs it.

use proc_macro2::{Group, Ident, Punct, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Type;

/// The type with each `'_` as `'__a`; `found` becomes true if there was one.
pub(crate) fn named(ty: &Type, found: &mut bool) -> TokenStream {
    rename(ty.to_token_stream(), found)
}

fn rename(tokens: TokenStream, found: &mut bool) -> TokenStream {
    let mut renamed = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                let name = tokens.next();
                if matches!(&name, Some(TokenTree::Ident(ident)) if ident == "_") {
                    *found = true;
                    let span = crate::span::ours();
                    let mut quote = Punct::new('\'', Spacing::Joint);
                    quote.set_span(span);
                    renamed.extend([TokenTree::from(quote), Ident::new("__a", span).into()]);
                } else {
                    renamed.extend([TokenTree::from(punct)]);
                    renamed.extend(name);
                }
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), rename(group.stream(), found));
                inner.set_span(group.span());
                renamed.extend([TokenTree::from(inner)]);
            }
            other => renamed.extend([other]),
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elided_lifetimes_get_a_name() {
        let mut found = false;
        let ty = syn::parse_str("Table<'_, [Other<'static>; 2]>").unwrap();
        assert_eq!(
            named(&ty, &mut found).to_string().replace(' ', ""),
            "Table<'__a,[Other<'static>;2]>"
        );
        assert!(found);
        let (mut found, plain) = (false, syn::parse_str("Table<'static>").unwrap());
        let _ = named(&plain, &mut found);
        assert!(!found);
    }
}
