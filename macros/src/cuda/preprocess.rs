//! Directives and macros: leaves out what is not compiled, and expands what is simple.
//!
//! Where a condition cannot be told, both branches stay, between marks; what a macro with
//! parameters gives is not looked into.

use std::collections::HashMap;

use super::lexer::{Kind, Spliced, Token};

/// The tokens of a text as the parser takes them.
pub(super) struct Unit<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// Whether files or macros may add declarations that are not among the tokens.
    pub(super) open: bool,
    /// Whether `#pragma pack` changes how structs are laid out.
    pub(super) packs: bool,
}

pub(super) fn preprocess<'a>(spliced: &'a Spliced<'_>) -> Unit<'a> {
    let mut preprocessor = Preprocessor {
        unit: Unit {
            tokens: Vec::new(),
            open: false,
            packs: false,
        },
        macros: HashMap::new(),
        conditions: Vec::new(),
        budget: 0,
    };
    let mut tokens = spliced.tokens().peekable();
    while let Some(token) = tokens.next() {
        preprocessor.budget += 16;
        if token.first && token.is("#") {
            let mut line = Vec::new();
            while let Some(token) = tokens.next_if(|token| !token.first) {
                line.push(token);
            }
            preprocessor.directive(&line, token.line, tokens.peek());
        } else if preprocessor.is_compiled() {
            preprocessor.push(token, &mut Vec::new(), tokens.peek());
        }
    }
    preprocessor.unit
}

struct Preprocessor<'a> {
    unit: Unit<'a>,
    macros: HashMap<&'a str, Macro<'a>>,
    conditions: Vec<Condition>,
    /// Tokens that expansion may still add, so that time stays in proportion to the text.
    budget: usize,
}

enum Macro<'a> {
    Object(Vec<Token<'a>>),
    /// With parameters, or defined in more than one way.
    Opaque,
}

/// A `#if` whose `#endif` has not come.
#[derive(Clone, Copy, PartialEq)]
enum Condition {
    /// This branch is compiled, and no other.
    True,
    /// This branch is not compiled; a later one may be.
    False,
    /// One of the branches was compiled, and this one is not.
    Done,
    /// Nobody knows.
    Unknown,
}

impl<'a> Preprocessor<'a> {
    fn is_compiled(&self) -> bool {
        let not = |condition: &Condition| matches!(condition, Condition::False | Condition::Done);
        !self.conditions.iter().any(not)
    }

    fn is_certain(&self) -> bool {
        self.conditions
            .iter()
            .all(|condition| *condition == Condition::True)
    }

    fn mark(&mut self, kind: Kind, line: u32) {
        if self.is_compiled() {
            self.unit.tokens.push(Token {
                kind,
                text: "",
                line,
                first: false,
                spaced: false,
            });
        }
    }

    fn push(&mut self, token: Token<'a>, within: &mut Vec<&'a str>, next: Option<&Token<'a>>) {
        if !token.is_word() || within.contains(&token.text) {
            return self.unit.tokens.push(token);
        }
        match self.macros.get(token.text) {
            None => self.unit.tokens.push(token),
            Some(Macro::Opaque) => {
                // It may be a macro with parameters, whose name alone means nothing.
                self.unit.open |= next.is_some_and(|next| next.is("("));
                self.unit.tokens.push(Token {
                    kind: Kind::Opaque,
                    ..token
                });
            }
            Some(Macro::Object(body)) => {
                let body = body.clone();
                if body.len() > self.budget || within.len() > 32 {
                    self.unit.tokens.push(Token {
                        kind: Kind::Opaque,
                        ..token
                    });
                    return;
                }
                self.budget -= body.len();
                within.push(token.text);
                for (index, inner) in body.iter().enumerate() {
                    let next = body.get(index + 1).or(next);
                    self.push(
                        Token {
                            line: token.line,
                            ..*inner
                        },
                        within,
                        next,
                    );
                }
                within.pop();
            }
        }
    }

    fn directive(&mut self, line: &[Token<'a>], number: u32, next: Option<&Token<'a>>) {
        let Some((name, rest)) = line.split_first() else {
            return;
        };
        match name.text {
            "if" => self.open_condition(truth(rest), number),
            "ifdef" => self.open_condition(self.defined(rest), number),
            "ifndef" => {
                let guard = || is_guard(rest, next);
                let condition = match self.defined(rest) {
                    Condition::True => Condition::False,
                    Condition::False => Condition::True,
                    _ if guard() => Condition::True,
                    other => other,
                };
                self.open_condition(condition, number);
            }
            "elif" | "elifdef" | "elifndef" => {
                let condition = if name.text == "elif" {
                    truth(rest)
                } else {
                    Condition::Unknown
                };
                self.next_branch(condition, number);
            }
            "else" => self.next_branch(Condition::True, number),
            "endif" => {
                let ended = self.conditions.pop();
                if ended == Some(Condition::Unknown) {
                    self.mark(Kind::EndIf, number);
                }
            }
            _ if !self.is_compiled() => {}
            "define" => self.define(rest),
            "undef" => {
                if let [name, ..] = rest {
                    if self.is_certain() {
                        self.macros.remove(name.text);
                    } else {
                        self.macros.insert(name.text, Macro::Opaque);
                    }
                }
            }
            "include" => {
                // A header of the toolkit declares none of the user's kernels.
                self.unit.open |= !rest.first().is_some_and(|token| token.is("<"));
            }
            "pragma" => self.unit.packs |= rest.first().is_some_and(|token| token.is("pack")),
            _ => {}
        }
    }

    fn open_condition(&mut self, condition: Condition, line: u32) {
        if condition == Condition::Unknown {
            self.mark(Kind::If, line);
        }
        self.conditions.push(condition);
    }

    fn next_branch(&mut self, condition: Condition, line: u32) {
        let Some(before) = self.conditions.pop() else {
            return;
        };
        let now = match before {
            Condition::True | Condition::Done => Condition::Done,
            // Behind branches that are not compiled this one stands as the first.
            Condition::False => {
                return self.open_condition(condition, line);
            }
            Condition::Unknown if condition == Condition::False => {
                // The marks of an unknown branch stay open to the end.
                Condition::Unknown
            }
            Condition::Unknown => Condition::Unknown,
        };
        if now == Condition::Unknown {
            self.mark(Kind::Else, line);
        }
        self.conditions.push(now);
    }

    fn defined(&self, rest: &[Token<'a>]) -> Condition {
        match rest {
            [name, ..] if matches!(name.text, "__CUDACC__" | "__cplusplus") => Condition::True,
            [name, ..] if matches!(self.macros.get(name.text), Some(Macro::Object(_))) => {
                Condition::True
            }
            _ => Condition::Unknown,
        }
    }

    fn define(&mut self, rest: &[Token<'a>]) {
        let Some((name, body)) = rest.split_first() else {
            return;
        };
        let with_parameters = body
            .first()
            .is_some_and(|first| first.is("(") && !first.spaced);
        let pastes = body.iter().any(|token| token.is("#"));
        let known = self.macros.get(name.text);
        let same = match known {
            None => true,
            Some(Macro::Object(before)) => before
                .iter()
                .map(|token| token.text)
                .eq(body.iter().map(|token| token.text)),
            Some(Macro::Opaque) => false,
        };
        // A word that a compiler's option may define otherwise is no certain one.
        let certain = self.is_certain() || body.is_empty();
        let value = if with_parameters || pastes || !same || !certain {
            Macro::Opaque
        } else {
            Macro::Object(body.to_vec())
        };
        self.macros.insert(name.text, value);
    }
}

/// Whether a condition is a plain number, or asks for what every CUDA compiler defines.
fn truth(rest: &[Token<'_>]) -> Condition {
    let texts: Vec<&str> = rest.iter().map(|token| token.text).collect();
    let is_true = |holds| {
        if holds {
            Condition::True
        } else {
            Condition::False
        }
    };
    match texts.as_slice() {
        ["0" | "false"] => Condition::False,
        ["1" | "true"] => Condition::True,
        ["defined", "(", name, ")"] | ["defined", name] => match *name {
            "__CUDACC__" | "__cplusplus" => is_true(true),
            _ => Condition::Unknown,
        },
        ["!", "defined", "(", name, ")"] | ["!", "defined", name] => match *name {
            "__CUDACC__" | "__cplusplus" => is_true(false),
            _ => Condition::Unknown,
        },
        _ => Condition::Unknown,
    }
}

/// `#ifndef NAME`, as a header starts: only the first line of the condition can tell.
fn is_guard(rest: &[Token<'_>], next: Option<&Token<'_>>) -> bool {
    let ends_like_one = |name: &str| {
        let name = name.trim_end_matches('_').to_ascii_uppercase();
        ["_H", "_HPP", "_CUH", "_HXX", "_HH", "_INCLUDED"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    matches!(rest, [name] if ends_like_one(name.text)) && next.is_some_and(|next| next.is("#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> String {
        let spliced = Spliced::new(text);
        let unit = preprocess(&spliced);
        let show = |token: &Token<'_>| match token.kind {
            Kind::If => "<if>".to_owned(),
            Kind::Else => "<else>".to_owned(),
            Kind::EndIf => "<endif>".to_owned(),
            Kind::Opaque => format!("?{}", token.text),
            _ => token.text.to_owned(),
        };
        unit.tokens.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_not_compiled_is_left_out() {
        assert_eq!(texts("a\n#if 0\nit's b\n#else\nc\n#endif\nd"), "a c d");
        assert_eq!(texts("#if 1\na\n#elif X\nb\n#else\nc\n#endif"), "a");
        assert_eq!(texts("#if 0\n#if 1\na\n#endif\n#else\nb\n#endif"), "b");
        assert_eq!(texts("#ifdef __cplusplus\nextern\n#endif\nx"), "extern x");
        assert_eq!(texts("#ifndef A_H\n#define A_H\na\n#endif"), "a");
    }

    #[test]
    fn unknown_conditions_keep_both_branches() {
        assert_eq!(
            texts("#ifdef X\na\n#else\nb\n#endif\nc"),
            "<if> a <else> b <endif> c"
        );
        assert_eq!(
            texts("#if 0\na\n#elif X\nb\n#else\nc\n#endif"),
            "<if> b <else> c <endif>"
        );
    }

    #[test]
    fn simple_macros_are_expanded() {
        assert_eq!(texts("#define real float\nreal x;"), "float x ;");
        assert_eq!(
            texts("#define KERNEL \\\n extern \"C\" __global__\nKERNEL void"),
            "extern \"C\" __global__ void"
        );
        assert_eq!(texts("#define a b\n#define b a\na"), "a");
        assert_eq!(texts("#define f(x) x\nf(1)"), "?f ( 1 )");
        assert_eq!(texts("#define a b\n#undef a\na"), "a");
        assert_eq!(
            texts("#ifdef D\n#define real double\n#else\n#define real float\n#endif\nreal"),
            "<if> <else> <endif> ?real"
        );
    }

    #[test]
    fn expansion_has_an_end() {
        use std::fmt::Write as _;
        let mut text = String::from("#define a0 x x x x x x x x\n");
        for level in 1..20 {
            let below = level - 1;
            let _ = writeln!(
                text,
                "#define a{level} a{below} a{below} a{below} a{below} a{below}"
            );
        }
        text.push_str("a19");
        let spliced = Spliced::new(&text);
        assert!(preprocess(&spliced).tokens.len() < 20_000);
    }
}
