//! Declarations: finds the kernels and the types that they name, and steps over all else.

use std::sync::Arc;

use super::declarator::{
    Names, angles_length, group_length, param_length, parse_number, path, shown,
};
use super::lexer::{Kind, Token};
use super::model::{Enum, Field, Kernel, Param, Source, Struct, Type, Variable};
use super::preprocess::Unit;

pub(super) fn source(unit: &Unit<'_>) -> Source {
    let mut parser = Parser {
        tokens: &unit.tokens,
        at: 0,
        names: Names::default(),
        scopes: Vec::new(),
        branches: Vec::new(),
        packs: unit.packs,
        source: Source {
            open: unit.open,
            ..Source::default()
        },
    };
    parser.run();
    parser.source
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    names: Names,
    /// For each open brace, how long the namespace's name is outside of it.
    scopes: Vec<usize>,
    /// At each `#if` that cannot be told, the scopes in front of it.
    branches: Vec<(Vec<usize>, String)>,
    packs: bool,
    source: Source,
}

impl<'a> Parser<'_, 'a> {
    fn run(&mut self) {
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                Kind::If | Kind::Else | Kind::EndIf => self.branch(token.kind),
                _ if token.is("}") => {
                    if let Some(outside) = self.scopes.pop() {
                        self.names.namespace.truncate(outside);
                    }
                    self.at += 1;
                }
                _ if token.is(";") => self.at += 1,
                _ if token.is("namespace") => self.namespace(),
                _ if token.is("inline") && self.is(1, "namespace") => self.at += 1,
                _ if self.is_linkage_block() => {
                    self.scopes.push(self.names.namespace.len());
                    self.at += 3;
                }
                _ => self.declaration(),
            }
        }
    }

    fn is(&self, ahead: usize, text: &str) -> bool {
        self.tokens
            .get(self.at + ahead)
            .is_some_and(|token| token.is(text))
    }

    fn is_certain(&self) -> bool {
        self.branches.is_empty()
    }

    fn branch(&mut self, kind: Kind) {
        self.at += 1;
        match (kind, self.branches.last()) {
            (Kind::If, _) => {
                self.branches
                    .push((self.scopes.clone(), self.names.namespace.clone()));
            }
            (Kind::Else, Some((scopes, namespace))) => {
                self.scopes.clone_from(scopes);
                self.names.namespace.clone_from(namespace);
            }
            (Kind::EndIf, _) => {
                self.branches.pop();
            }
            _ => {}
        }
    }

    /// `extern "C" {`
    fn is_linkage_block(&self) -> bool {
        self.is(0, "extern")
            && self
                .tokens
                .get(self.at + 1)
                .is_some_and(|token| token.kind == Kind::Literal)
            && self.is(2, "{")
    }

    /// `namespace a::b {`, from `namespace` on.
    fn namespace(&mut self) {
        self.at += 1;
        let mut name = String::new();
        while let Some(token) = self.tokens.get(self.at) {
            if token.is("{") {
                self.at += 1;
                self.scopes.push(self.names.namespace.len());
                if !name.is_empty() {
                    self.names.namespace.push_str(&name);
                    self.names.namespace.push_str("::");
                }
                return;
            }
            if token.is("[") || token.is("__attribute__") {
                // Attributes.
                self.at += 1;
                continue;
            }
            if token.is_word() && token.text != "inline" {
                name.push_str(token.text);
            } else if token.is("::") {
                name.push_str("::");
            } else if !token.is("inline") && !token.is("]") {
                // `namespace x = y;` is a second name, which is not followed.
                return self.skip_statement();
            }
            self.at += 1;
        }
    }

    fn skip_statement(&mut self) {
        let (_, next) = self.extent(self.at);
        self.at = next;
    }

    /// One declaration, up to its `;` or the end of its body.
    fn declaration(&mut self) {
        let start = self.at;
        let (end, next) = self.extent(start);
        self.at = next.max(start + 1);
        let tokens: Vec<Token<'a>> = self.tokens[start..end]
            .iter()
            .filter(|token| !matches!(token.kind, Kind::If | Kind::Else | Kind::EndIf))
            .copied()
            .collect();
        if tokens.iter().any(|token| token.is("__global__")) {
            let kernel = self.kernel(&tokens);
            self.source.open |= kernel.is_none();
            self.source.kernels.extend(kernel);
            return;
        }
        let of_device = |token: &Token<'_>| VARIABLES.iter().any(|word| token.is(word));
        if self.is_certain() && tokens.iter().any(of_device) {
            let variable = self.variable(&tokens);
            self.source.variables.extend(variable);
        }
        match tokens.first() {
            Some(first) if first.is("typedef") => self.typedef(&tokens[1..]),
            Some(first) if first.is("using") => self.alias(&tokens),
            // A template has no one layout; its name stays unknown with its arguments.
            Some(first) if first.is("template") => {}
            Some(_) => {
                self.type_definition(&tokens);
            }
            None => {}
        }
    }

    /// Where a declaration ends, and where the next begins. A function's body is not of the
    /// declaration; a struct's is.
    fn extent(&self, start: usize) -> (usize, usize) {
        let (mut at, mut assigned, mut called) = (start, false, false);
        while let Some(token) = self.tokens.get(at) {
            match token.kind {
                Kind::Else | Kind::EndIf if at > start && !called => return (at, at),
                Kind::Mark => match token.text {
                    ";" => return (at, at + 1),
                    "}" => return (at, at),
                    "=" => assigned = true,
                    "(" | "[" => {
                        called |= token.text == "(" && !self.is_specifier_group(at);
                        at += self.balanced(at);
                        continue;
                    }
                    "{" if called && !assigned => return (at, at + self.balanced(at)),
                    "{" => {
                        at += self.balanced(at);
                        continue;
                    }
                    _ => {}
                },
                _ => {}
            }
            at += 1;
        }
        (at, at)
    }

    /// Whether the parenthesis here belongs to an attribute and holds no parameters.
    fn is_specifier_group(&self, at: usize) -> bool {
        at > 0
            && self
                .tokens
                .get(at - 1)
                .is_some_and(|before| is_specifier_call(before))
    }

    /// The tokens of a group; where branches of a condition each open or close one, that of the
    /// first.
    fn balanced(&self, start: usize) -> usize {
        let (mut depth, mut at) = (0_usize, start);
        let mut branches: Vec<usize> = Vec::new();
        while let Some(token) = self.tokens.get(at) {
            match token.kind {
                Kind::If => branches.push(depth),
                Kind::Else => match branches.last() {
                    Some(before) => depth = *before,
                    // The condition began in front of this group, which ends with its branch.
                    None => return at - start,
                },
                Kind::EndIf => {
                    branches.pop();
                }
                Kind::Mark => match token.text {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                },
                _ => {}
            }
            at += 1;
            if depth == 0 && branches.is_empty() {
                return at - start;
            }
        }
        at - start
    }

    fn kernel(&self, tokens: &[Token<'a>]) -> Option<Kernel> {
        let mut at = 0;
        // Without a list it is an instance of a template that stands elsewhere.
        let is_template = tokens.first()?.is("template") && tokens.get(1)?.is("<");
        if tokens.first()?.is("template") {
            at = 1;
        }
        if is_template {
            at += angles_length(&tokens[1..]);
        }
        let mut names = None;
        while let Some(token) = tokens.get(at) {
            if token.is("(") || token.is("[") {
                if names.is_some() && token.is("(") {
                    break;
                }
                at += group_length(&tokens[at..]);
            } else if token.kind == Kind::Opaque {
                names = None;
                at += 1;
            } else if is_specifier_call(token) {
                at += 1;
                if tokens.get(at).is_some_and(|next| next.is("(")) {
                    at += group_length(&tokens[at..]);
                }
            } else if token.is("::") || token.is_word() && !is_function_word(token.text) {
                let length = path_length(&tokens[at..]);
                names = Some((at, length));
                at += length;
            } else {
                at += 1;
            }
        }
        let (name, length) = names?;
        let group = tokens.get(at..at + group_length(&tokens[at..]))?;
        let inner = group.get(1..group.len().checked_sub(1)?)?;
        let head = &tokens[name..name + length];
        let (path, instance) = split_instance(head);
        let (namespace, base) = path.rsplit_once("::").unwrap_or(("", &path));
        let outer = self.names.namespace.trim_end_matches("::");
        let namespace = match (outer, namespace) {
            (outer, "") => outer.to_owned(),
            ("", inner) => inner.to_owned(),
            (outer, inner) => format!("{outer}::{inner}"),
        };
        let local = if is_template {
            template_names(&tokens[1..])
        } else {
            Vec::new()
        };
        Some(Kernel {
            name: base.to_owned(),
            namespace,
            instance,
            is_template,
            params: self.params(inner, &local),
            line: tokens[name].line,
        })
    }

    /// `__constant__ float taps[5] = { .. };`, if it is one variable whose type can be told.
    fn variable(&self, tokens: &[Token<'a>]) -> Option<Variable> {
        let end = tokens
            .iter()
            .position(|token| token.is("=") || token.is("{"))
            .unwrap_or(tokens.len());
        let head = &tokens[..end];
        // What is only announced may be defined otherwise, and a function is no variable.
        let called = |at: usize| head[at].is("(") && !(at > 0 && is_specifier_call(&head[at - 1]));
        if head.iter().any(|token| token.is("extern")) || (0..head.len()).any(called) {
            return None;
        }
        let constexpr = head.iter().any(|token| token.is("constexpr"));
        let silent = |token: &&Token<'a>| {
            let mut words = VARIABLES.iter().chain(&["static", "inline", "constexpr"]);
            !words.any(|word| token.is(word))
        };
        let head: Vec<Token<'a>> = head.iter().filter(silent).copied().collect();
        let declared = self.names.declared(&head);
        let name = declared.name.filter(|_| declared.length == head.len())?;
        let namespace = self.names.namespace.trim_end_matches("::");
        Some(Variable {
            name: name.text.to_owned(),
            namespace: namespace.to_owned(),
            ty: declared.ty,
            text: shown(&head),
            is_const: declared.is_const || constexpr,
            line: name.line,
        })
    }

    /// None where the commas cannot be told from those of an expression.
    fn params(&self, tokens: &[Token<'a>], local: &[&str]) -> Option<Vec<Param>> {
        if let [only] = tokens
            && only.is("void")
        {
            return Some(Vec::new());
        }
        let mut params = Vec::new();
        let mut rest = tokens;
        while !rest.is_empty() {
            let (length, clear) = param_length(rest);
            if !clear {
                return None;
            }
            params.push(self.param(&rest[..length], local)?);
            rest = rest.get(length + 1..).unwrap_or_default();
        }
        Some(params)
    }

    fn param(&self, tokens: &[Token<'a>], local: &[&str]) -> Option<Param> {
        let first = tokens.first()?;
        // `int... rest` are any number of parameters.
        if tokens.iter().any(|token| token.is(".")) {
            return None;
        }
        let end = tokens
            .iter()
            .position(|token| token.is("="))
            .unwrap_or(tokens.len());
        let declared = self.names.declared(&tokens[..end]);
        let uses_local = tokens[..end]
            .iter()
            .any(|token| token.is_word() && local.contains(&token.text));
        // What is left of a type that is not understood may be anything.
        let mut ty = if declared.length == end {
            declared.as_param()
        } else {
            Type::Unknown
        };
        if uses_local {
            ty = without_names(&ty);
        }
        let head = declared.head.min(end);
        Some(Param {
            name: declared.name.map(|name| name.text.to_owned()),
            ty,
            text: shown_type(&tokens[..head], &tokens[declared.length.min(end)..end]),
            line: declared.name.map_or(first.line, |name| name.line),
        })
    }

    /// `typedef float real, *reals;`
    fn typedef(&mut self, tokens: &[Token<'a>]) {
        let (tokens, defined) = self.with_definition(tokens);
        let first = match &defined {
            Some(ty) => self.names.another(ty, &tokens),
            None => self.names.declared(&tokens),
        };
        let (mut rest, specified) = (&tokens[first.length..], defined);
        self.define(first.name, first.ty);
        while let [comma, behind @ ..] = rest
            && comma.is(",")
            && let Some(specified) = &specified
        {
            let next = self.names.another(specified, behind);
            rest = &behind[next.length..];
            self.define(next.name, next.ty);
        }
        // Further names of a type without a body.
        for token in rest.iter().filter(|token| token.is_word()) {
            self.define(Some(*token), Type::Unknown);
        }
    }

    /// Takes a struct's or enum's body out of a declaration.
    fn with_definition(&mut self, tokens: &[Token<'a>]) -> (Vec<Token<'a>>, Option<Type>) {
        let end = tokens.iter().position(|token| token.is("{"));
        match (self.type_definition(tokens), end) {
            (Some(ty), Some(open)) => {
                let behind = open + group_length(&tokens[open..]);
                (tokens[behind..].to_vec(), Some(ty))
            }
            _ => (tokens.to_vec(), None),
        }
    }

    /// `using real = float;`
    fn alias(&mut self, tokens: &[Token<'a>]) {
        if let [_, name, equals, rest @ ..] = tokens
            && equals.is("=")
        {
            let declared = self.names.declared(rest);
            let ty = if declared.length == rest.len() {
                declared.ty
            } else {
                Type::Unknown
            };
            self.define(Some(*name), ty);
        } else if let [.., name] = tokens
            && tokens.len() > 2
            && !tokens[1].is("namespace")
        {
            // `using other::type;` gives the type a second name, which is not followed.
            self.define(Some(*name), Type::Unknown);
        }
    }

    fn define(&mut self, name: Option<Token<'a>>, ty: Type) {
        if let Some(name) = name {
            let certain = self.is_certain();
            self.names.define(name.text, ty, certain);
        }
    }

    /// `struct Pair { int id; float value; }` and the like, wherever it stands in a declaration.
    fn type_definition(&mut self, tokens: &[Token<'a>]) -> Option<Type> {
        let open = tokens.iter().position(|token| token.is("{"))?;
        let at = tokens[..open].iter().position(|token| {
            ["struct", "class", "union", "enum"]
                .iter()
                .any(|word| token.is(word))
        })?;
        let (kind, head) = (tokens[at].text, &tokens[at + 1..open]);
        let group = &tokens[open..open + group_length(&tokens[open..])];
        let body = group
            .get(1..group.len().saturating_sub(1))
            .unwrap_or_default();
        let behind = tokens.get(open + group.len()..).unwrap_or_default();
        let head = Head::read(head, behind);
        let text = head.name.map_or("", |name| name.text);
        let ty = if kind == "enum" {
            Type::Enum(Enum {
                name: text.to_owned(),
                underlying: match self.names.declared(head.bases).ty {
                    Type::Scalar(scalar) if !head.bases.is_empty() => Some(scalar),
                    _ => None,
                },
            })
        } else {
            let whole = kind != "union" && head.bases.is_empty() && !head.odd && !self.packs;
            Type::Struct(Arc::new(Struct {
                name: text.to_owned(),
                fields: whole.then(|| self.fields(body, text)).flatten(),
                align: head.align.unwrap_or(1),
                line: head.name.map_or(tokens[at].line, |name| name.line),
            }))
        };
        if let (Some(name), Type::Struct(_)) = (head.name, &ty) {
            self.source.structs.push(name.text.to_owned());
        }
        self.define(head.name, ty.clone());
        Some(ty)
    }

    /// None where a member may change the layout in a way that is not followed.
    fn fields(&mut self, body: &[Token<'a>], name: &str) -> Option<Vec<Field>> {
        let (mut fields, mut rest) = (Vec::new(), body);
        while let Some(first) = rest.first() {
            if first.is(";") {
                rest = &rest[1..];
                continue;
            }
            if ["public", "private", "protected"]
                .iter()
                .any(|word| first.is(word))
            {
                rest = rest.get(2..)?;
                continue;
            }
            let (length, is_function) = member_length(rest);
            let member = &rest[..length];
            rest = rest
                .get(length + usize::from(!is_function)..)
                .unwrap_or_default();
            if is_function {
                if member.iter().any(|token| token.is("virtual")) {
                    return None;
                }
            } else if !first.is("friend") && !first.is("static") {
                self.members(member, name, &mut fields)?;
            }
        }
        Some(fields)
    }

    /// `float x, y[2];`
    fn members(&self, member: &[Token<'a>], name: &str, fields: &mut Vec<Field>) -> Option<()> {
        const ODD: [&str; 12] = [
            "{",
            ":",
            "typedef",
            "using",
            "struct",
            "union",
            "enum",
            "class",
            "__align__",
            "alignas",
            "__attribute__",
            "(",
        ];
        if member.iter().any(|token| {
            token.kind != Kind::Word && token.kind != Kind::Mark && token.kind != Kind::Number
                || ODD.iter().any(|odd| token.is(odd))
        }) {
            return None;
        }
        let declared = self.names.declared(member);
        let mut rest = member.get(declared.length..)?;
        let mut specified = member.len() - rest.len();
        // The type alone, for the names behind commas.
        while specified > 0 && !self.is_plain(&member[..specified], name) {
            specified -= 1;
        }
        let base = self.names.declared(&member[..specified]).ty;
        let text = shown_type(&member[..declared.head], &[]);
        push_field(fields, declared.name?, declared.ty, text)?;
        loop {
            if let [equals, value @ ..] = rest
                && equals.is("=")
            {
                let comma = value.iter().position(|token| token.is(","));
                rest = comma.map_or(&[], |comma| &value[comma..]);
            }
            let [comma, behind @ ..] = rest else {
                return Some(());
            };
            if !comma.is(",") {
                return None;
            }
            let next = self.names.another(&base, behind);
            rest = behind.get(next.length..)?;
            let text = shown_type(&member[..specified], &behind[..next.head]);
            push_field(fields, next.name?, next.ty, text)?;
        }
    }

    /// Whether tokens are a type without a declarator.
    fn is_plain(&self, tokens: &[Token<'a>], name: &str) -> bool {
        let declared = self.names.declared(tokens);
        declared.name.is_none()
            && declared.length == tokens.len()
            && !tokens
                .iter()
                .any(|token| token.is("*") || token.is("&") || token.is(name))
    }
}

fn push_field(fields: &mut Vec<Field>, name: Token<'_>, ty: Type, text: String) -> Option<()> {
    // A field whose type is not known leaves the others where nobody knows.
    if matches!(ty, Type::Unknown | Type::Void) {
        return None;
    }
    fields.push(Field {
        name: name.text.to_owned(),
        ty,
        text,
        line: name.line,
    });
    Some(())
}

/// A member's tokens up to its `;`, or with its body if it is a function that has one.
fn member_length(tokens: &[Token<'_>]) -> (usize, bool) {
    let (mut at, mut called) = (0, false);
    while let Some(token) = tokens.get(at) {
        match token.text {
            _ if token.kind != Kind::Mark => at += 1,
            ";" => return (at, false),
            "(" => {
                called = true;
                at += group_length(&tokens[at..]);
            }
            "{" if called => return (at + group_length(&tokens[at..]), true),
            "[" | "{" => at += group_length(&tokens[at..]),
            _ => at += 1,
        }
    }
    (tokens.len(), false)
}

/// What stands between `struct` and its body.
#[derive(Default)]
struct Head<'t, 'a> {
    name: Option<Token<'a>>,
    align: Option<usize>,
    /// Behind the colon.
    bases: &'t [Token<'a>],
    /// Whether something is asked for that is not followed.
    odd: bool,
}

impl<'t, 'a> Head<'t, 'a> {
    fn read(tokens: &'t [Token<'a>], behind: &[Token<'a>]) -> Head<'t, 'a> {
        let (mut head, mut at) = (Head::default(), 0);
        head.odd = behind.iter().any(|token| token.is("__attribute__"));
        while let Some(token) = tokens.get(at) {
            at += 1;
            if token.is(":") {
                head.bases = &tokens[at..];
                return head;
            }
            if token.is("__align__") || token.is("alignas") {
                let group = tokens.get(at..).unwrap_or_default();
                let length = group_length(group);
                match group.get(1..length.saturating_sub(1)) {
                    Some([number]) if number.kind == Kind::Number => {
                        head.align =
                            parse_number(number.text).filter(|align| align.is_power_of_two());
                        head.odd |= head.align.is_none();
                    }
                    _ => head.odd = true,
                }
                at += length;
            } else if token.is("__attribute__") || token.is("[") || token.is("(") {
                head.odd = true;
                at += if token.is("__attribute__") {
                    group_length(&tokens[at..])
                } else {
                    0
                };
            } else if token.is_word() && !matches!(token.text, "final" | "class" | "struct") {
                head.name = Some(*token);
            } else if !token.is_word() {
                head.odd = true;
            }
        }
        head
    }
}

/// What makes a variable one of the device.
const VARIABLES: [&str; 3] = ["__constant__", "__device__", "__managed__"];

/// Attributes with parentheses that are no parameter list.
fn is_specifier_call(token: &Token<'_>) -> bool {
    const CALLS: [&str; 11] = [
        "__launch_bounds__",
        "__cluster_dims__",
        "__maxnreg__",
        "__block_size__",
        "__attribute__",
        "__attribute",
        "__declspec",
        "alignas",
        "__align__",
        "__cluster_size__",
        "requires",
    ];
    CALLS.iter().any(|call| token.is(call))
}

/// Words in front of a function's name.
fn is_function_word(word: &str) -> bool {
    const WORDS: [&str; 14] = [
        "__global__",
        "void",
        "static",
        "inline",
        "extern",
        "__forceinline__",
        "__inline__",
        "constexpr",
        "auto",
        "__device__",
        "__host__",
        "const",
        "noexcept",
        "__noinline__",
    ];
    WORDS.contains(&word)
}

fn path_length(tokens: &[Token<'_>]) -> usize {
    path(tokens).1.max(1)
}

/// `math::add` and `float` of `math::add<float>`.
fn split_instance(tokens: &[Token<'_>]) -> (String, Option<String>) {
    let open = tokens
        .iter()
        .position(|token| token.is("<"))
        .unwrap_or(tokens.len());
    let name: String = tokens[..open].iter().map(|token| token.text).collect();
    let inner = tokens
        .get(open + 1..tokens.len().saturating_sub(1))
        .unwrap_or_default();
    let instance = (open < tokens.len()).then(|| shown(inner));
    (name.trim_start_matches("::").to_owned(), instance)
}

/// `T` and `N` of `<typename T, int N = 4>`.
fn template_names<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let list = &tokens[..angles_length(tokens)];
    let ends = list
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is(",") || token.is(">") || token.is("="));
    ends.filter_map(|(end, _)| list.get(end.checked_sub(1)?))
        .filter(|token| token.is_word())
        .map(|token| token.text)
        .collect()
}

/// The type with what a template leaves open as unknown.
fn without_names(ty: &Type) -> Type {
    match ty {
        Type::Pointer(pointee) => Type::pointer_to(without_names(&pointee.ty), pointee.is_const),
        _ => Type::Unknown,
    }
}

/// The type as one writes it, without the name between its two parts.
fn shown_type(head: &[Token<'_>], dims: &[Token<'_>]) -> String {
    const SILENT: [&str; 6] = [
        "__restrict__",
        "__restrict",
        "restrict",
        "__grid_constant__",
        "register",
        "volatile",
    ];
    let kept: Vec<Token<'_>> = head
        .iter()
        .chain(dims)
        .filter(|token| !SILENT.contains(&token.text))
        .copied()
        .collect();
    shown(&kept)
}
