//! The one wording of types, expressions and PTX parameters in all messages and docs.

use std::fmt::Write;

use gridcall_ptx as ptx;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Type;

use crate::value::{Known, Shape};

/// A type as the user wrote it, spaced as rustfmt does.
pub(crate) fn ty(ty: &Type) -> String {
    text(ty.to_token_stream(), Angles::Brackets)
}

/// An expression as the user wrote it, spaced as rustfmt does.
pub(crate) fn expr(tokens: &TokenStream) -> String {
    text(tokens.clone(), Angles::Comparisons)
}

/// `u32` (4 bytes).
pub(crate) fn value(written: &Type, known: &Known) -> String {
    let size = bytes(known.size);
    match known.shape {
        Shape::Bytes => format!("`{}` ({size}, align {})", ty(written), known.align),
        Shape::Integer | Shape::Float => format!("`{}` ({size})", ty(written)),
    }
}

/// `.u32` (4 bytes).
pub(crate) fn param(param: &ptx::Param) -> String {
    format!("`{param}` ({})", bytes(param.size()))
}

/// `.const .align 4 .b8 [20]` (20 bytes).
pub(crate) fn variable(variable: &ptx::Variable) -> String {
    match variable.size() {
        Some(size) => format!("`{variable}` ({})", bytes(size)),
        None => format!("`{variable}`, of no size"),
    }
}

/// For what has the size of an address, and of `$rank` extents and strides.
macro_rules! strided {
    ($rank:literal) => {
        concat!(
            "a struct with #[derive(KernelArg)], or `Strided<T, ",
            $rank,
            ">` or `StridedMut<T, ",
            $rank,
            ">` for a `gridcall::strided`"
        )
    };
}

/// What a declaration may write for a PTX parameter.
pub(crate) fn choices(param: &ptx::Param) -> &'static str {
    if param.pointer().is_some() {
        return "`&[T]` or `&mut [T]`";
    }
    match (param.class(), param.size(), param.align()) {
        (ptx::Class::Integer | ptx::Class::Bits, 1, _) => "`u8`, `i8` or `bool`",
        (ptx::Class::Integer | ptx::Class::Bits, 2, _) => "`u16` or `i16`",
        (ptx::Class::Integer, 4, _) => "`u32` or `i32`",
        (ptx::Class::Integer, 8, _) => {
            "`u64` or `i64`, `usize` for C's `size_t`, `&[T]` or `&mut [T]` for a pointer"
        }
        (ptx::Class::Float, 4, _) => "`f32`",
        (ptx::Class::Float, 8, _) => "`f64`",
        (ptx::Class::Bits, 4, _) => "`u32`, `i32` or `f32`",
        (ptx::Class::Bits, 8, _) => {
            "`u64`, `i64`, `usize` or `f64`, `&[T]` or `&mut [T]` for a pointer"
        }
        (ptx::Class::Bytes, 2, 2) => "`f16` or `bf16` of the crate half",
        (ptx::Class::Bytes, 8, 8) => "`Float2`, or a struct with #[derive(KernelArg)]",
        (ptx::Class::Bytes, 12, 4) => "`Float3`, `[f32; 3]`, or a struct with #[derive(KernelArg)]",
        (ptx::Class::Bytes, 16, 16) => "`Float4`, `Double2`, or a struct with #[derive(KernelArg)]",
        (ptx::Class::Bytes, 128, 64) => {
            "`TensorMap<T>` or `TensorMapMut<T>`, or a struct with #[derive(KernelArg)]"
        }
        (ptx::Class::Bytes, 24, 8) => strided!(1),
        (ptx::Class::Bytes, 40, 8) => strided!(2),
        (ptx::Class::Bytes, 56, 8) => strided!(3),
        (ptx::Class::Bytes, 72, 8) => strided!(4),
        (ptx::Class::Bytes, ..) => "a struct with #[derive(KernelArg)]",
        _ => "nothing: such parameters are not supported yet",
    }
}

/// 1 byte, 2 bytes.
pub(crate) fn bytes(count: usize) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// `a`, `b`, `c`.
pub(crate) fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("`{item}`")).collect();
    items.join(", ")
}

/// What `<` and `>` are.
#[derive(Clone, Copy, PartialEq)]
enum Angles {
    Brackets,
    Comparisons,
}

/// What was written last, as far as spacing depends on it.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// Nothing, or something that what follows clings to.
    Open,
    /// An operator, a comma or a keyword, behind which a value starts after a space.
    Operator,
    /// The end of a value.
    Value,
}

/// The compiler's own rendering loses the source's spacing once tokens were parsed.
fn text(tokens: TokenStream, angles: Angles) -> String {
    let mut out = String::new();
    write(tokens, angles, &mut out, &mut Last::Open);
    out
}

fn write(tokens: TokenStream, angles: Angles, out: &mut String, last: &mut Last) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                write(group.stream(), angles, out, last);
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
                };
                if *last == Last::Operator
                    || *last == Last::Value && group.delimiter() == Delimiter::Brace
                {
                    out.push(' ');
                }
                out.push_str(open);
                write(group.stream(), angles, out, &mut Last::Open);
                out.push_str(close);
                *last = Last::Value;
            }
            TokenTree::Punct(punct) => {
                let mut operator = String::from(punct.as_char());
                let mut spacing = punct.spacing();
                while spacing == Spacing::Joint
                    && let Some(TokenTree::Punct(next)) = tokens.peek()
                    && joins(&operator, next.as_char(), angles)
                {
                    operator.push(next.as_char());
                    spacing = next.spacing();
                    tokens.next();
                }
                write_operator(&operator, angles, out, last);
            }
            TokenTree::Ident(ident) => {
                let ident = ident.to_string();
                write_word(&ident, out, *last);
                let keyword = matches!(
                    ident.as_str(),
                    "mut" | "const" | "dyn" | "impl" | "as" | "in" | "if" | "else" | "match"
                );
                *last = if keyword { Last::Operator } else { Last::Value };
            }
            TokenTree::Literal(literal) => {
                write_word(&literal.to_string(), out, *last);
                *last = Last::Value;
            }
        }
    }
}

fn write_word(word: &str, out: &mut String, last: Last) {
    if last != Last::Open {
        out.push(' ');
    }
    out.push_str(word);
}

/// Whether `next` belongs to the operator that starts with `start`, as `=` does behind `>`.
fn joins(start: &str, next: char, angles: Angles) -> bool {
    let operators: &[&str] = match angles {
        Angles::Brackets => &["::", "->", "..", "..."],
        Angles::Comparisons => &[
            "::", "->", "..", "..=", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "=>",
        ],
    };
    let mut joined = start.to_owned();
    joined.push(next);
    operators
        .iter()
        .any(|operator| operator.starts_with(&joined))
}

fn write_operator(operator: &str, angles: Angles, out: &mut String, last: &mut Last) {
    let clings = matches!(operator, "::" | "." | ".." | "..=" | "?" | "'")
        || angles == Angles::Brackets && matches!(operator, "<" | ">");
    if clings {
        if operator == "'" && *last == Last::Operator {
            out.push(' ');
        }
        out.push_str(operator);
        *last = if matches!(operator, ">" | "?") {
            Last::Value
        } else {
            Last::Open
        };
    } else if matches!(operator, "," | ";" | ":") {
        out.push_str(operator);
        *last = Last::Operator;
    } else if *last == Last::Value && operator != "!" {
        let _ = write!(out, " {operator}");
        *last = Last::Operator;
    } else {
        // A prefix, such as `&` or `-`.
        if *last == Last::Operator {
            out.push(' ');
        }
        out.push_str(operator);
        *last = Last::Open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_type(source: &str) -> String {
        ty(&syn::parse_str(source).unwrap())
    }

    fn shown_expr(source: &str) -> String {
        expr(&source.parse().unwrap())
    }

    #[test]
    fn types_read_as_written() {
        for source in [
            "u32",
            "&[f32]",
            "&mut [f32]",
            "Option<&[f32]>",
            "*const f32",
            "*mut Complex<f32>",
            "crate::math::Ball",
            "[f32; 3]",
            "&[[f32; 4]; 2]",
            "(u8, u32)",
            "&'a str",
            "Table<'_>",
            "Pair<u8, Vec<u8>>",
            "<T as Trait>::Item",
            "&dyn Fn(u8)",
        ] {
            assert_eq!(shown_type(source), source);
        }
    }

    #[test]
    fn expressions_read_as_written() {
        for source in [
            "x.len() >= n",
            "x.len() >= n * m",
            "!x.is_empty()",
            "block.x == 256 && block.y <= 1",
            "m.is_none() || m.len() >= n",
            "-1 < n",
            "(n + 1) % 2 == 0",
            "a < b",
            "g.0.len() > 1 << 4",
            "matches!(n, 1..=4)",
        ] {
            assert_eq!(shown_expr(source), source);
        }
    }
}
