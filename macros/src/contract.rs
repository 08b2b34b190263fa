//! The expressions of `#[requires(..)]`: what they mention, and their integers made saturating
//! ones.

use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, TokenStream, TokenTree, token_stream};
use quote::quote_spanned;
use syn::{Lit, LitInt, Path};

use crate::describe;
use crate::kernel::unraw;
use crate::report::Report;

/// Notes the integer literals that no saturating integer can hold, and casts to other integers.
pub(crate) fn check(requirement: &TokenStream, report: &mut Report) {
    check_casts(requirement, report);
    walk(requirement, &mut |token| {
        if let Token::Integer(literal) = token
            && literal.base10_parse::<i128>().is_err()
        {
            report.error(literal, "this does not fit into an integer of 128 bits");
        }
    });
}

/// Notes casts to integers, which Rust needs and contracts do not: their integers are of one type.
fn check_casts(requirement: &TokenStream, report: &mut Report) {
    const INTEGERS: [&str; 12] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    ];
    let mut after_as = false;
    for token in requirement.clone() {
        match &token {
            TokenTree::Ident(ident) if after_as && INTEGERS.iter().any(|i| ident == i) => {
                report.error(
                    ident,
                    "no cast is needed: all integers of a contract are of one type, which does not \
                     wrap; write what is cast alone",
                );
            }
            TokenTree::Group(group) => check_casts(&group.stream(), report),
            _ => {}
        }
        after_as = matches!(&token, TokenTree::Ident(ident) if ident == "as");
    }
}

/// What a contract may ask an array.
const OF_ARRAYS: [&str; 4] = ["len", "is_empty", "is_some", "is_none"];

/// Notes arrays that stand where their length is meant, methods that they do not have, and integers
/// that are asked for a length: rustc would speak of types that the user never wrote.
pub(crate) fn check_arrays(
    requirement: &TokenStream,
    arrays: &[&Ident],
    integers: &[&Ident],
    report: &mut Report,
) {
    let mut dots = 0;
    let mut tokens = requirement.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        let after_dot = dots == 1;
        dots = count_dots(&token, dots);
        let ident = match &token {
            TokenTree::Group(group) => {
                check_arrays(&group.stream(), arrays, integers, report);
                continue;
            }
            TokenTree::Ident(ident) if !after_dot => ident,
            _ => continue,
        };
        let is_asked = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if is_dot(punct));
        let asked = if is_asked {
            let mut ahead = tokens.clone();
            ahead.next();
            ahead.next()
        } else {
            None
        };
        if arrays.contains(&ident) {
            match asked {
                None if is_group(tokens.peek(), Delimiter::Bracket) => report.error(
                    ident,
                    format!(
                        "`{ident}` is on the device, and what is in it is not known before a launch: a contract \
                         knows `{ident}.len()`"
                    ),
                ),
                None => report.error(
                    ident,
                    format!("`{ident}` is an array: write `{ident}.len()` for the number of its elements"),
                ),
                Some(TokenTree::Ident(method)) if OF_ARRAYS.iter().any(|one| method == one) => {}
                Some(other) => report.error(
                    &other,
                    format!(
                        "no `{other}` of the array `{ident}`: a contract knows {}",
                        describe::list(OF_ARRAYS)
                    ),
                ),
            }
        } else if integers.contains(&ident)
            && let Some(TokenTree::Ident(method)) = asked
            && OF_ARRAYS.iter().any(|one| method == one)
        {
            report.error(
                &method,
                format!("no `{method}` of `{ident}`, which is an integer"),
            );
        }
    }
}

/// The expression with its variables spelled as the parameters are: `n` and `r#n` are one name.
pub(crate) fn spelled(requirement: TokenStream, names: &[&Ident]) -> TokenStream {
    let mut dots = 0;
    let spell = |token: TokenTree| {
        let after_dot = dots == 1;
        dots = count_dots(&token, dots);
        match token {
            TokenTree::Ident(ident) if !after_dot => {
                let of_param = names.iter().find(|name| unraw(name) == unraw(&ident));
                let mut spelled = of_param.map_or_else(|| ident.clone(), |name| (*name).clone());
                spelled.set_span(ident.span());
                spelled.into()
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), spelled(group.stream(), names));
                inner.set_span(group.span());
                inner.into()
            }
            other => other,
        }
    };
    requirement.into_iter().map(spell).collect()
}

/// Whether the expression speaks of `name`, as a variable and not as a field or method.
pub(crate) fn mentions(requirement: &TokenStream, name: &str) -> bool {
    mention(requirement, name).is_some()
}

/// The first mention of `name`, as the user wrote it.
pub(crate) fn mention(requirement: &TokenStream, name: &str) -> Option<Ident> {
    let mut found = None;
    walk(requirement, &mut |token| {
        if let Token::Variable(ident) = token
            && ident == name
        {
            found.get_or_insert(ident.clone());
        }
    });
    found
}

/// The expression in the runtime's integers: each literal is one, and so is each integer field of
/// the parameters `structs`, as `g.n` is.
pub(crate) fn rewrite(requirement: &TokenStream, structs: &[&Ident], krate: &Path) -> TokenStream {
    let mut rewritten = TokenStream::new();
    let mut dots = 0;
    let mut tokens = requirement.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        let after_dot = dots == 1;
        dots = count_dots(&token, dots);
        match token {
            TokenTree::Ident(ident) if !after_dot && structs.contains(&&ident) => {
                rewritten.extend(rewrite_field(ident, &mut tokens, krate));
            }
            TokenTree::Literal(literal) if !after_dot => {
                rewritten.extend(rewrite_literal(literal, krate));
            }
            TokenTree::Group(group) => {
                let inner = rewrite(&group.stream(), structs, krate);
                let mut outer = Group::new(group.delimiter(), inner);
                outer.set_span(group.span());
                rewritten.extend([TokenTree::from(outer)]);
            }
            other => rewritten.extend([other]),
        }
    }
    rewritten
}

/// `Field(g.n).get()` of `g.n`, where `g` was just taken from `tokens`; what a method is called on
/// stays.
fn rewrite_field(ident: Ident, tokens: &mut Tokens, krate: &Path) -> TokenStream {
    let span = ident.span().resolved_at(crate::span::ours());
    match chain(ident, tokens) {
        Chain::Field(chain) => quote_spanned! {span=> #krate::__private::Field(#chain).get() },
        Chain::Other(chain) => chain,
    }
}

/// The fields of `structs` that the expression speaks of.
pub(crate) fn fields(requirement: &TokenStream, structs: &[&Ident]) -> Vec<TokenStream> {
    let mut found = Vec::new();
    let mut dots = 0;
    let mut tokens = requirement.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        let after_dot = dots == 1;
        dots = count_dots(&token, dots);
        match token {
            TokenTree::Ident(ident) if !after_dot && structs.contains(&&ident) => {
                if let Chain::Field(chain) = chain(ident, &mut tokens) {
                    found.push(chain);
                }
            }
            TokenTree::Group(group) => found.extend(fields(&group.stream(), structs)),
            _ => {}
        }
    }
    found
}

type Tokens = Peekable<token_stream::IntoIter>;

/// A name and the fields and indices behind it.
enum Chain {
    Field(TokenStream),
    /// The name alone, or a method's receiver.
    Other(TokenStream),
}

fn chain(ident: Ident, tokens: &mut Tokens) -> Chain {
    let mut chain = TokenStream::from(TokenTree::from(ident));
    let mut fields = 0;
    loop {
        match tokens.peek() {
            Some(TokenTree::Punct(punct)) if is_dot(punct) => {
                // The dot and what is behind it.
                chain.extend(tokens.next());
                chain.extend(tokens.next());
                fields += 1;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
                chain.extend(tokens.next());
                fields += 1;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                return Chain::Other(chain);
            }
            _ if fields > 0 => return Chain::Field(chain),
            _ => return Chain::Other(chain),
        }
    }
}

fn rewrite_literal(literal: Literal, krate: &Path) -> TokenStream {
    let Some(integer) = integer(&literal) else {
        return TokenTree::from(literal).into();
    };
    // What does not fit was refused by `check`.
    let value = Literal::i128_unsuffixed(integer.base10_parse().unwrap_or(i128::MAX));
    let span = literal.span().resolved_at(crate::span::ours());
    quote_spanned! {span=> #krate::__private::Int::new(#value) }
}

/// A token that matters here.
enum Token<'a> {
    Variable(&'a Ident),
    Integer(&'a LitInt),
}

fn walk(tokens: &TokenStream, visit: &mut impl FnMut(Token<'_>)) {
    let mut dots = 0;
    for token in tokens.clone() {
        let after_dot = dots == 1;
        dots = count_dots(&token, dots);
        match &token {
            TokenTree::Group(group) => walk(&group.stream(), visit),
            TokenTree::Ident(ident) if !after_dot => visit(Token::Variable(ident)),
            TokenTree::Literal(literal) if !after_dot => {
                if let Some(integer) = integer(literal) {
                    visit(Token::Integer(&integer));
                }
            }
            _ => {}
        }
    }
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// One dot is in front of a field or method, two or three are a range.
fn count_dots(token: &TokenTree, before: usize) -> usize {
    match token {
        TokenTree::Punct(punct) if is_dot(punct) => before + 1,
        _ => 0,
    }
}

fn is_dot(punct: &Punct) -> bool {
    punct.as_char() == '.'
}

fn integer(literal: &Literal) -> Option<LitInt> {
    match Lit::new(literal.clone()) {
        Lit::Int(integer) if !integer.suffix().starts_with('f') => Some(integer),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        let krate: Path = syn::parse_quote!(g);
        let structs = [&Ident::new("p", proc_macro2::Span::call_site())];
        let tokens = rewrite(&source.parse().unwrap(), &structs, &krate);
        let text = tokens.to_string().replace(' ', "");
        text.replace("g::__private::", "")
            .replace("Int::new", "Int")
    }

    fn spoken_of(source: &str, name: &str) -> bool {
        mentions(&source.parse().unwrap(), name)
    }

    #[test]
    fn integers_become_the_runtimes() {
        assert_eq!(rewritten("x.len() >= n * 4"), "x.len()>=n*Int(4)");
        assert_eq!(
            rewritten("(n + 0x10) % 2usize == 1_0"),
            "(n+Int(16))%Int(2)==Int(10)"
        );
        assert_eq!(rewritten("-1 < n"), "-Int(1)<n");
        assert_eq!(rewritten("a > 0.5 && q.0 == 1"), "a>0.5&&q.0==Int(1)");
        assert_eq!(
            rewritten("(1..4).contains(&n)"),
            "(Int(1)..Int(4)).contains(&n)"
        );
        assert_eq!(rewritten("a > 1f32"), "a>1f32");
    }

    #[test]
    fn fields_of_structs_become_the_runtimes() {
        assert_eq!(
            rewritten("x.len() >= p.n * p.m"),
            "x.len()>=Field(p.n).get()*Field(p.m).get()"
        );
        assert_eq!(rewritten("p.at.0 > 1"), "Field(p.at.0).get()>Int(1)");
        assert_eq!(rewritten("p.dims[1] > 1"), "Field(p.dims[1]).get()>Int(1)");
        assert_eq!(rewritten("p[0] > 1"), "Field(p[0]).get()>Int(1)");
        assert_eq!(rewritten("p.is_right()"), "p.is_right()");
        assert_eq!(rewritten("(p.n)"), "(Field(p.n).get())");
        assert_eq!(rewritten("q.p > 1"), "q.p>Int(1)");
    }

    #[test]
    fn fields_are_found_for_the_message() {
        let structs = [&Ident::new("p", proc_macro2::Span::call_site())];
        let found = fields(
            &"x.len() >= (p.n * p.m[0]) + p.f()".parse().unwrap(),
            &structs,
        );
        let shown: Vec<String> = found.iter().map(crate::describe::expr).collect();
        assert_eq!(shown, ["p.n", "p.m[0]"]);
    }

    #[test]
    fn variables_are_told_from_fields() {
        assert!(spoken_of("x.len() >= n", "n"));
        assert!(spoken_of("x.len() >= n", "x"));
        assert!(!spoken_of("g.n > 0", "n"));
        assert!(!spoken_of("x.len() >= n", "len"));
        assert!(spoken_of("(0..n).contains(&m)", "n"));
    }

    #[test]
    fn variables_are_spelled_as_parameters() {
        let names = ["r#y", "n", "r#gen"].map(|name| {
            name.strip_prefix("r#").map_or_else(
                || Ident::new(name, proc_macro2::Span::call_site()),
                |raw| Ident::new_raw(raw, proc_macro2::Span::call_site()),
            )
        });
        let names: Vec<&Ident> = names.iter().collect();
        let requirement = "(y.len() >= r#n) && g.y > 0 && r#gen.len() > m && x[y]".parse();
        assert_eq!(
            spelled(requirement.unwrap(), &names).to_string(),
            "(r#y . len () >= n) && g . y > 0 && r#gen . len () > m && x [r#y]"
        );
    }

    #[test]
    fn integers_have_a_limit() {
        let mut report = Report::default();
        check(
            &"n < 340282366920938463463374607431768211456"
                .parse()
                .unwrap(),
            &mut report,
        );
        assert!(!report.is_empty());
    }
}
