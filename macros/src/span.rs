//! Where generated tokens stand, and whose names they are.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Path;

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
