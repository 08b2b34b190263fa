//! From text to model, the declarations only.
//!
//! ```text
//! module      .version N.N  .target name, ..  { directive }
//! directive   linkage .entry name [ ( param, .. ) ] tuning  { body } | ;
//!             linkage .func [ ( param, .. ) ] name [ ( param, .. ) ] tuning  { body } | ;
//!             linkage space modifiers name dims [ = value ], .. ;
//!             .address_size N | .file N "name" .. | anything else, to its `;`, block or line end
//! ```

pub(crate) mod callable;
mod cursor;
pub(crate) mod declaration;

use std::collections::HashMap;

pub(crate) use cursor::Cursor;

use crate::entry::{Alias, Body, Entry, Function};
use crate::error::{Error, Position, shorten};
use crate::lexer::{Kind, Token};
use crate::module::Module;
use crate::target::{Target, Version};
use crate::types::{Linkage, StateSpace};
use crate::variable::{File, Variable};

pub(crate) fn module(source: &str) -> Result<Module, Error> {
    let mut cursor = Cursor::new(source);
    let version = first_version(&mut cursor)?;
    let mut parts = Parts::default();
    while cursor.peek().kind != Kind::End {
        directive(&mut cursor, &mut parts)?;
    }
    let Some(target) = parts.target else {
        return Err(Error::expected_at(cursor.peek(), "`.target`"));
    };
    Ok(Module {
        version,
        target,
        address_size: parts.address_size.unwrap_or(32),
        entries: parts.entries,
        entry_by_name: parts.entry_by_name,
        functions: parts.functions,
        function_by_name: parts.function_by_name,
        variables: parts.variables,
        files: parts.files,
        aliases: parts.aliases,
    })
}

/// What has been read so far.
#[derive(Default)]
struct Parts {
    target: Option<Target>,
    address_size: Option<u32>,
    entries: Vec<Entry>,
    entry_by_name: HashMap<String, usize>,
    functions: Vec<Function>,
    function_by_name: HashMap<String, usize>,
    variables: Vec<Variable>,
    files: Vec<File>,
    aliases: Vec<Alias>,
}

fn first_version(cursor: &mut Cursor<'_>) -> Result<Version, Error> {
    let first = *cursor.peek();
    if first.is_directive(".version") {
        cursor.bump();
        return version(cursor);
    }
    if matches!(first.kind, Kind::Directive | Kind::OpenComment) {
        return Err(Error::expected_at(
            &first,
            "`.version`, with which PTX begins",
        ));
    }
    let message = if first.kind == Kind::End {
        "this is not PTX: the text is empty".to_owned()
    } else if cursor.source().starts_with("\u{7f}ELF") {
        "this is not PTX text but an ELF file, such as a cubin".to_owned()
    } else {
        let found = shorten(first.text);
        format!("this is not PTX: it begins with `{found}` instead of `.version`")
    };
    Err(Error::at(first.position, message))
}

fn version(cursor: &mut Cursor<'_>) -> Result<Version, Error> {
    let token = cursor.bump();
    let read = || {
        let (major, minor) = token.text.split_once('.')?;
        Some(Version {
            major: decimal(major)?,
            minor: decimal(minor)?,
        })
    };
    read().ok_or_else(|| Error::expected_at(&token, "a version such as `8.7`"))
}

fn decimal(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

fn directive(cursor: &mut Cursor<'_>, parts: &mut Parts) -> Result<(), Error> {
    let token = *cursor.peek();
    if token.is(b';') {
        cursor.bump();
        return Ok(());
    }
    if token.is(b'@') {
        // `@@DWARF ..`, the debug information of PTX 2
        cursor.skip_line();
        return Ok(());
    }
    if token.kind != Kind::Directive {
        return Err(Error::expected_at(&token, "a directive such as `.entry`"));
    }
    match token.text {
        ".version" => {
            cursor.bump();
            version(cursor)?;
        }
        ".target" => {
            cursor.bump();
            let target = target(cursor)?;
            parts.target.get_or_insert(target);
        }
        ".address_size" => {
            cursor.bump();
            parts.address_size = Some(address_size(cursor)?);
        }
        ".file" => {
            cursor.bump();
            parts.files.push(file(cursor)?);
        }
        ".alias" => {
            cursor.bump();
            parts.aliases.push(alias(cursor)?);
        }
        _ => declared(cursor, parts)?,
    }
    Ok(())
}

fn target(cursor: &mut Cursor<'_>) -> Result<Target, Error> {
    let mut names = Vec::new();
    loop {
        names.push(
            cursor
                .expect_word("an architecture such as `sm_90`")?
                .text
                .to_owned(),
        );
        if !cursor.eat(b',') {
            break;
        }
    }
    Target::new(names).ok_or_else(|| Error::expected_at(cursor.peek(), "an architecture"))
}

fn address_size(cursor: &mut Cursor<'_>) -> Result<u32, Error> {
    let token = cursor.bump();
    match token.text {
        "32" => Ok(32),
        "64" => Ok(64),
        _ => Err(Error::expected_at(&token, "`32` or `64`")),
    }
}

fn file(cursor: &mut Cursor<'_>) -> Result<File, Error> {
    let index = cursor.expect_u32("the number of a file")?;
    let name = cursor.bump();
    if name.kind != Kind::String {
        return Err(Error::expected_at(&name, "the name of a file in quotes"));
    }
    // the time and size that may follow
    while cursor.eat(b',') {
        cursor.bump();
    }
    Ok(File {
        index,
        name: name.contents().to_owned(),
    })
}

fn alias(cursor: &mut Cursor<'_>) -> Result<Alias, Error> {
    let name = cursor.expect_word("the name of a function")?;
    cursor.expect(b',')?;
    let function = cursor.expect_word("the name of a function")?;
    cursor.expect(b';')?;
    Ok(Alias {
        name: name.text.to_owned(),
        function: function.text.to_owned(),
    })
}

/// What may have a linkage, and what nobody knows.
fn declared(cursor: &mut Cursor<'_>, parts: &mut Parts) -> Result<(), Error> {
    let mut linkage = None;
    let mut managed = false;
    loop {
        let token = *cursor.peek();
        if let Some(found) = Linkage::from_word(token.text) {
            cursor.bump();
            linkage = linkage.or(Some(found));
        } else if token.is_directive(".attribute") {
            managed |= declaration::attribute(cursor)?;
        } else {
            break;
        }
    }
    let token = *cursor.peek();
    let space = StateSpace::from_word(token.text).filter(|&space| space != StateSpace::Reg);
    match (token.text, space) {
        (".entry", _) => {
            require_target(parts, &token)?;
            cursor.bump();
            let entry = callable::entry(cursor, linkage.unwrap_or_default())?;
            add_entry(parts, entry)
        }
        (".func", _) => {
            require_target(parts, &token)?;
            cursor.bump();
            let function = callable::function(cursor, linkage.unwrap_or_default())?;
            add_function(parts, function)
        }
        (_, Some(space)) => {
            require_target(parts, &token)?;
            cursor.bump();
            let linkage = linkage.unwrap_or_default();
            declaration::variables(cursor, space, linkage, managed, &mut parts.variables)
        }
        _ if linkage.is_some() || managed => Err(Error::expected_at(
            &token,
            "`.entry`, `.func` or a state space such as `.global`",
        )),
        _ => cursor.skip_unknown(),
    }
}

fn require_target(parts: &Parts, token: &Token<'_>) -> Result<(), Error> {
    match parts.target {
        Some(_) => Ok(()),
        None => Err(Error::expected_at(token, "`.target`")),
    }
}

fn add_entry(parts: &mut Parts, entry: Entry) -> Result<(), Error> {
    let Some(&index) = parts.entry_by_name.get(&entry.name) else {
        parts
            .entry_by_name
            .insert(entry.name.clone(), parts.entries.len());
        parts.entries.push(entry);
        return Ok(());
    };
    let known = &mut parts.entries[index];
    match (&known.body, &entry.body) {
        (Some(_), Some(_)) => Err(defined_twice(
            ".entry",
            &entry.name,
            known.position,
            entry.position,
        )),
        (None, Some(_)) => {
            *known = entry;
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

fn add_function(parts: &mut Parts, function: Function) -> Result<(), Error> {
    let Some(&index) = parts.function_by_name.get(&function.name) else {
        parts
            .function_by_name
            .insert(function.name.clone(), parts.functions.len());
        parts.functions.push(function);
        return Ok(());
    };
    let known = &mut parts.functions[index];
    match (&known.body, &function.body) {
        (Some(_), Some(_)) => Err(defined_twice(
            ".func",
            &function.name,
            known.position,
            function.position,
        )),
        (None, Some(_)) => {
            *known = function;
            Ok(())
        }
        (_, None) => Ok(()),
    }
}

fn defined_twice(what: &str, name: &str, first: Position, second: Position) -> Error {
    let name = shorten(name);
    Error::at(
        second,
        format!(
            "`{what} {name}` is defined twice, first in line {}",
            first.line
        ),
    )
}

/// Steps over a body whose `{` comes next.
fn body(cursor: &mut Cursor<'_>) -> Result<Body, Error> {
    let open = *cursor.peek();
    let end = cursor.skip_block()?;
    Ok(Body {
        start: open.start,
        end,
        position: open.position,
    })
}
