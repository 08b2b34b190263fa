//! Types as C++ declares them: `const float* __restrict__ x[4]`.

use std::collections::HashMap;

use super::lexer::{Kind, Token};
use super::model::{Function, Type};
use super::words::{self, Builtin};

/// A type, and the name that is declared of it.
#[derive(Debug)]
pub(super) struct Declared<'a> {
    pub(super) name: Option<Token<'a>>,
    pub(super) ty: Type,
    /// Of an array, whether its elements are.
    pub(super) is_const: bool,
    /// How many of the tokens the declarator takes.
    pub(super) length: usize,
    /// How many of them are the type, without the name and what follows it.
    pub(super) head: usize,
}

impl<'a> Declared<'a> {
    fn unknown(tokens: &[Token<'a>]) -> Declared<'a> {
        let length = tokens.len();
        Declared {
            name: None,
            ty: Type::Unknown,
            is_const: false,
            length,
            head: length,
        }
    }

    /// The type as a parameter, where an array is a pointer to its elements.
    pub(super) fn as_param(&self) -> Type {
        match &self.ty {
            Type::Array(element, _) => Type::pointer_to((**element).clone(), self.is_const),
            ty => ty.clone(),
        }
    }
}

/// The names that are known at a place of the text.
#[derive(Default)]
pub(super) struct Names {
    /// By full name; what is defined in more than one way is `Unknown`.
    types: HashMap<String, Type>,
    /// `a::b::`, or nothing.
    pub(super) namespace: String,
}

impl Names {
    /// Remembers a type; one that may not be compiled, or is defined twice, is not known.
    pub(super) fn define(&mut self, name: &str, ty: Type, certain: bool) {
        let full = format!("{}{name}", self.namespace);
        let known = match self.types.get(&full) {
            Some(before) => *before == ty,
            // What a header calls by this name is no other type on the other branch.
            None => certain || words::of_headers(name).as_ref() == Some(&ty),
        };
        self.types
            .insert(full, if known { ty } else { Type::Unknown });
    }

    /// The type of a name, looked for from the innermost namespace outwards.
    pub(super) fn find(&self, name: &str) -> Type {
        let bare = name.strip_prefix("::");
        let mut scope = if bare.is_some() {
            ""
        } else {
            self.namespace.as_str()
        };
        let name = bare.unwrap_or(name);
        loop {
            if let Some(ty) = self.types.get(&format!("{scope}{name}")) {
                return ty.clone();
            }
            if scope.is_empty() {
                break;
            }
            let outer = scope.trim_end_matches("::").rfind("::");
            scope = &scope[..outer.map_or(0, |end| end + 2)];
        }
        words::of_headers(name).unwrap_or_else(|| Type::Named(name.to_owned()))
    }

    /// Reads a declaration of one name, from its first token on.
    pub(super) fn declared<'a>(&self, tokens: &[Token<'a>]) -> Declared<'a> {
        let (specified, used) = self.specifiers(tokens);
        self.declarator(specified, tokens, used)
    }

    /// Another declarator behind a comma: `float x, *y`.
    pub(super) fn another<'a>(&self, specified: &Type, tokens: &[Token<'a>]) -> Declared<'a> {
        let specified = Specified {
            ty: specified.clone(),
            is_const: false,
        };
        self.declarator(specified, tokens, 0)
    }

    /// `* const * name [4]`, from `at` on.
    fn declarator<'a>(
        &self,
        specified: Specified,
        tokens: &[Token<'a>],
        mut at: usize,
    ) -> Declared<'a> {
        let Specified {
            mut ty,
            mut is_const,
        } = specified;
        while let Some(token) = tokens.get(at) {
            if token.is("*") || token.is("&") {
                // `T&&` is a reference as `T&` is.
                if !(token.is("&") && at > 0 && tokens[at - 1].is("&")) {
                    ty = Type::pointer_to(ty, is_const);
                    is_const = false;
                }
            } else if token.is("const") {
                is_const = true;
            } else if !(token.is_word() && is_qualifier(token.text)) {
                break;
            }
            at += 1;
        }
        let head = at;
        match tokens.get(at) {
            Some(open) if open.is("(") => return self.pointing(ty, tokens, at),
            // `int T::*`: a pointer to member.
            Some(token)
                if token.is_word() && tokens.get(at + 1).is_some_and(|next| next.is("::")) =>
            {
                return Declared::unknown(tokens);
            }
            _ => {}
        }
        let name = tokens.get(at).filter(|token| token.is_word()).copied();
        at += usize::from(name.is_some());
        let mut dims = Vec::new();
        while tokens.get(at).is_some_and(|token| token.is("[")) {
            let length = group_length(&tokens[at..]);
            dims.push(match &tokens[at..at + length] {
                [_, number, _] if number.kind == Kind::Number => parse_number(number.text),
                _ => None,
            });
            at += length;
        }
        for count in dims.into_iter().rev() {
            ty = Type::Array(Box::new(ty), count);
        }
        Declared {
            name,
            ty,
            is_const,
            length: at,
            head,
        }
    }

    /// `float (*f)(int)`, `float (&x)[4]`, from the parenthesis on: some pointer, of a function if
    /// its parameters can be told.
    fn pointing<'a>(&self, result: Type, tokens: &[Token<'a>], at: usize) -> Declared<'a> {
        let (inner, behind) = tokens[at..].split_at(group_length(&tokens[at..]));
        let inner = inner
            .get(1..inner.len().saturating_sub(1))
            .unwrap_or_default();
        let is_mark = |token: &&Token<'_>| token.is("*") || token.is("&");
        let name = inner
            .iter()
            .find(|token| token.is_word() && !is_qualifier(token.text));
        let unknown = |ty| Declared {
            name: name.copied(),
            ty,
            ..Declared::unknown(tokens)
        };
        if inner.first().is_none_or(|first| !is_mark(&first)) {
            return unknown(Type::Unknown);
        }
        let is_plain = |token: &Token<'_>| token.is_word() || token.is("*") || token.is("&");
        let one_mark = inner.iter().filter(is_mark).count() == 1;
        let function = match behind.first() {
            // A pointer to a pointer, or an array of them, is read no further.
            Some(open) if open.is("(") && one_mark && inner.iter().all(is_plain) => {
                let length = group_length(behind);
                // What may stand behind, such as `noexcept`, changes nothing for the caller.
                let ends = behind[length..].iter().all(Token::is_word);
                let params = behind.get(1..length.saturating_sub(1)).unwrap_or_default();
                self.function_params(params).filter(|_| ends)
            }
            _ => None,
        };
        unknown(Type::pointer_to(
            function.map_or(Type::Unknown, |params| {
                let result = Box::new(result);
                Type::Function(Function { params, result })
            }),
            false,
        ))
    }

    /// The types of a function's parameters; none where the commas cannot be told.
    fn function_params(&self, tokens: &[Token<'_>]) -> Option<Vec<Type>> {
        if let [only] = tokens
            && only.is("void")
        {
            return Some(Vec::new());
        }
        let mut params = Vec::new();
        let mut rest = tokens;
        while !rest.is_empty() {
            let (length, clear) = param_length(rest);
            // `...` are any number of parameters.
            if !clear || rest[..length].iter().any(|token| token.is(".")) {
                return None;
            }
            let declared = self.declared(&rest[..length]);
            params.push(if declared.length == length {
                declared.as_param()
            } else {
                Type::Unknown
            });
            rest = rest.get(length + 1..).unwrap_or_default();
        }
        Some(params)
    }

    /// `const unsigned int`, without pointers; and how many tokens that took.
    fn specifiers(&self, tokens: &[Token<'_>]) -> (Specified, usize) {
        let (mut builtin, mut named) = (Builtin::default(), None);
        let (mut is_const, mut at) = (false, 0);
        while let Some(token) = tokens.get(at) {
            if token.kind == Kind::Opaque {
                if named.is_some() || !builtin.is_empty() {
                    break;
                }
                named = Some(Type::Unknown);
                at += 1;
                if tokens.get(at).is_some_and(|next| next.is("(")) {
                    at += group_length(&tokens[at..]);
                }
                continue;
            }
            if !token.is_word() && !token.is("::") && !token.is("[") {
                break;
            }
            match token.text {
                "const" => is_const = true,
                // `[[maybe_unused]]` in front of it.
                "[" if named.is_none() && builtin.is_empty() => {
                    at += group_length(&tokens[at..]);
                    continue;
                }
                "[" => break,
                "__attribute__" | "alignas" | "__align__" => {
                    at += 1 + tokens.get(at + 1..).map_or(0, group_length);
                    continue;
                }
                "decltype" | "typeof" | "__typeof__" => {
                    named = Some(Type::Unknown);
                    at += 1 + tokens.get(at + 1..).map_or(0, group_length);
                    continue;
                }
                "auto" => named = Some(Type::Unknown),
                word if is_qualifier(word) => {}
                word if builtin.take(word) => {}
                _ if named.is_some() || !builtin.is_empty() => break,
                _ => {
                    let (path, length) = path(&tokens[at..]);
                    if length == 0 {
                        break;
                    }
                    named = Some(match path {
                        Some(path) => self.find(&path),
                        None => Type::Unknown,
                    });
                    at += length;
                    continue;
                }
            }
            at += 1;
        }
        let ty = named.unwrap_or_else(|| {
            if builtin.is_empty() {
                Type::Unknown
            } else {
                builtin.ty()
            }
        });
        (Specified { ty, is_const }, at)
    }
}

struct Specified {
    ty: Type,
    is_const: bool,
}

pub(super) fn parse_number(text: &str) -> Option<usize> {
    let text = text.replace('\'', "");
    let text = text.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => usize::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => usize::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

/// Words in a declaration that do not change how a value is passed.
fn is_qualifier(word: &str) -> bool {
    matches!(
        word,
        "const"
            | "volatile"
            | "__restrict__"
            | "__restrict"
            | "restrict"
            | "__grid_constant__"
            | "register"
            | "typename"
            | "struct"
            | "class"
            | "enum"
            | "union"
            | "constexpr"
            | "static"
            | "extern"
            | "inline"
            | "mutable"
            | "__const"
            | "__volatile__"
    )
}

/// `a::b` and how many tokens it takes; no name where there are template arguments.
pub(super) fn path(tokens: &[Token<'_>]) -> (Option<String>, usize) {
    let (mut name, mut at, mut templated) = (String::new(), 0, false);
    if tokens.first().is_some_and(|token| token.is("::")) {
        name.push_str("::");
        at = 1;
    }
    while let Some(token) = tokens.get(at).filter(|token| token.is_word()) {
        name.push_str(token.text);
        at += 1;
        if tokens.get(at).is_some_and(|next| next.is("<")) {
            templated = true;
            at += angles_length(&tokens[at..]);
        }
        // `T::*` is a pointer to member.
        let goes_on = tokens.get(at).is_some_and(|next| next.is("::"))
            && tokens.get(at + 1).is_some_and(Token::is_word);
        if !goes_on {
            break;
        }
        name.push_str("::");
        at += 1;
    }
    ((!templated).then_some(name), at)
}

/// The tokens of a group that starts here, with both its marks.
pub(super) fn group_length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Mark {
            continue;
        }
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The tokens of `<..>`, with both angles.
pub(super) fn angles_length(tokens: &[Token<'_>]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(token) = tokens.get(at) {
        if token.kind == Kind::Mark {
            match token.text {
                "<" => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                "(" | "[" | "{" => {
                    at += group_length(&tokens[at..]);
                    continue;
                }
                ")" | "]" | "}" | ";" => return at,
                _ => {}
            }
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The tokens up to the comma behind a parameter, and whether that is certain.
pub(super) fn param_length(tokens: &[Token<'_>]) -> (usize, bool) {
    let (mut at, mut assigned) = (0, false);
    while let Some(token) = tokens.get(at) {
        if token.kind != Kind::Mark {
            at += 1;
            continue;
        }
        match token.text {
            "," => return (at, true),
            "=" => {
                assigned = true;
                at += 1;
            }
            // In a value it may compare, or hold commas.
            "<" if assigned => return (at, false),
            "<" => at += angles_length(&tokens[at..]),
            "(" | "[" | "{" => at += group_length(&tokens[at..]),
            _ => at += 1,
        }
    }
    (at, true)
}

/// Tokens as one writes them: `const float*`.
pub(super) fn shown(tokens: &[Token<'_>]) -> String {
    let mut shown = String::new();
    let mut last = "";
    for token in tokens {
        let text = token.text;
        let clings = matches!(
            text,
            "*" | "&" | ">" | "<" | "::" | "," | ")" | "]" | "[" | "("
        ) || matches!(last, "" | "<" | "::" | "(" | "[");
        if !clings {
            shown.push(' ');
        }
        shown.push_str(text);
        last = text;
    }
    shown
}
