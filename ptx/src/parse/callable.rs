//! Entries and functions: name, parameters, and the directives behind them.

use std::collections::HashSet;

use super::declaration::Modifiers;
use super::{Cursor, body, declaration};
use crate::entry::{Body, Directives, Entry, Function};
use crate::error::{Error, Position, shorten};
use crate::lexer::Kind;
use crate::param::Param;
use crate::types::{Class, Linkage, ScalarType, StateSpace};

pub(super) fn entry(cursor: &mut Cursor<'_>, linkage: Linkage) -> Result<Entry, Error> {
    let name = cursor.expect_word("the name of an entry")?;
    let params = optional_params(cursor, Owner::Entry)?;
    let (directives, body) = tuning_and_body(cursor)?;
    let (name, position) = (name.text.to_owned(), name.position);
    Ok(Entry {
        name,
        position,
        linkage,
        params,
        directives,
        body,
    })
}

pub(super) fn function(cursor: &mut Cursor<'_>, linkage: Linkage) -> Result<Function, Error> {
    let mut noreturn = false;
    loop {
        if cursor.peek().is_directive(".attribute") {
            declaration::attribute(cursor)?;
        } else if cursor.peek().is_directive(".noreturn") {
            cursor.bump();
            noreturn = true;
        } else {
            break;
        }
    }
    let returns = optional_params(cursor, Owner::Function)?;
    let name = cursor.expect_word("the name of a function")?;
    let params = optional_params(cursor, Owner::Function)?;
    let (mut directives, body) = tuning_and_body(cursor)?;
    directives.noreturn |= noreturn;
    let (name, position) = (name.text.to_owned(), name.position);
    Ok(Function {
        name,
        position,
        linkage,
        returns,
        params,
        directives,
        body,
    })
}

/// Whose parameters they are: an entry's are never registers, and never unsized.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Entry,
    Function,
}

pub(crate) fn optional_params(cursor: &mut Cursor<'_>, owner: Owner) -> Result<Vec<Param>, Error> {
    if cursor.peek().is(b'(') {
        params(cursor, owner)
    } else {
        Ok(Vec::new())
    }
}

/// `( param, .. )`, laid out one behind the other.
fn params(cursor: &mut Cursor<'_>, owner: Owner) -> Result<Vec<Param>, Error> {
    cursor.expect(b'(')?;
    let mut params = Vec::new();
    if cursor.eat(b')') {
        return Ok(params);
    }
    let mut end = 0_usize;
    let mut names = HashSet::new();
    loop {
        let mut param = param(cursor, owner)?;
        let offset = end.checked_next_multiple_of(param.align);
        let placed = offset.and_then(|offset| Some((offset, offset.checked_add(param.size)?)));
        let Some((offset, next)) = placed else {
            return Err(Error::at(
                param.position,
                "the parameters are larger than any memory",
            ));
        };
        param.offset = offset;
        end = next;
        if param.name != "_" && !names.insert(param.name.clone()) {
            let name = shorten(&param.name);
            return Err(Error::at(
                param.position,
                format!("parameter `{name}` is declared twice"),
            ));
        }
        params.push(param);
        if cursor.eat(b')') {
            return Ok(params);
        }
        if !cursor.eat(b',') {
            return Err(cursor.expected("`,` or `)`"));
        }
    }
}

fn param(cursor: &mut Cursor<'_>, owner: Owner) -> Result<Param, Error> {
    let first = *cursor.peek();
    let space = match (first.text, owner) {
        (".param", _) => StateSpace::Param,
        (".reg", Owner::Function) => StateSpace::Reg,
        (_, Owner::Entry) => return Err(cursor.expected("`.param`")),
        (_, Owner::Function) => return Err(cursor.expected("`.param` or `.reg`")),
    };
    cursor.bump();
    let modifiers = declaration::modifiers(cursor)?;
    let name = cursor.expect_word("the name of a parameter")?;
    let dims = declaration::dims(cursor)?;
    if let (Owner::Entry, Some(dims)) = (owner, &dims)
        && dims.contains(&0)
    {
        return Err(Error::at(
            name.position,
            "an array parameter of an entry needs its size",
        ));
    }
    if space == StateSpace::Param {
        check_passable(&modifiers, name.position)?;
    }
    // `ptxas` gives what is opaque no place in the buffer
    let (size, align) = if modifiers.ty.class() == Class::Opaque {
        (0, 1)
    } else {
        (
            modifiers.size(dims.as_deref().unwrap_or_default(), name.position)?,
            modifiers.align(),
        )
    };
    Ok(Param {
        name: name.text.to_owned(),
        position: name.position,
        space,
        ty: modifiers.ty,
        vector: modifiers.vector,
        align,
        size,
        dims,
        offset: 0,
        pointer: modifiers.pointer,
    })
}

fn check_passable(modifiers: &Modifiers, position: Position) -> Result<(), Error> {
    if modifiers.ty == ScalarType::Pred {
        return Err(Error::at(
            position,
            "a predicate cannot be passed in `.param`",
        ));
    }
    if modifiers.vector > 1 {
        return Err(Error::at(
            position,
            "a vector is passed in `.param` as an array of `.b8`",
        ));
    }
    Ok(())
}

/// What stands between the parameters and the `{`, and the body or the `;` of a prototype.
fn tuning_and_body(cursor: &mut Cursor<'_>) -> Result<(Directives, Option<Body>), Error> {
    let mut directives = Directives::default();
    loop {
        let token = *cursor.peek();
        if token.is(b'{') {
            return Ok((directives, Some(body(cursor)?)));
        }
        if token.is(b';') {
            cursor.bump();
            // a directive nobody knows may end in a `;` of its own, as `.pragma` does
            if !directives.unknown.is_empty() && cursor.peek().is(b'{') {
                continue;
            }
            return Ok((directives, None));
        }
        if token.kind != Kind::Directive || begins_definition(token.text) {
            return Err(cursor.expected("`{`, `;` or a directive such as `.maxntid`"));
        }
        cursor.bump();
        tuning(cursor, token.text, &mut directives)?;
    }
}

fn begins_definition(directive: &str) -> bool {
    matches!(directive, ".entry" | ".func") || Linkage::from_word(directive).is_some()
}

fn tuning(cursor: &mut Cursor<'_>, name: &str, directives: &mut Directives) -> Result<(), Error> {
    match name {
        ".maxntid" => directives.maxntid = Some(triple(cursor)?),
        ".reqntid" => directives.reqntid = Some(triple(cursor)?),
        ".reqnctapercluster" => directives.reqnctapercluster = Some(triple(cursor)?),
        ".minnctapersm" => directives.minnctapersm = Some(cursor.expect_u32("a number of blocks")?),
        ".maxnctapersm" => directives.maxnctapersm = Some(cursor.expect_u32("a number of blocks")?),
        ".maxnreg" => directives.maxnreg = Some(cursor.expect_u32("a number of registers")?),
        ".maxclusterrank" => {
            directives.maxclusterrank = Some(cursor.expect_u32("a number of blocks")?);
        }
        ".explicitcluster" => directives.explicitcluster = true,
        ".blocksareclusters" => directives.blocksareclusters = true,
        ".noreturn" => directives.noreturn = true,
        ".pragma" => directives
            .pragmas
            .extend(pragma(cursor)?.into_iter().map(str::to_owned)),
        _ => {
            directives.unknown.push(name.to_owned());
            unknown_arguments(cursor);
        }
    }
    Ok(())
}

/// `256`, `16, 16` or `8, 8, 4`; what is left out is 1.
fn triple(cursor: &mut Cursor<'_>) -> Result<[u32; 3], Error> {
    let mut triple = [1; 3];
    for (axis, size) in triple.iter_mut().enumerate() {
        if axis > 0 && !cursor.eat(b',') {
            break;
        }
        *size = cursor.expect_u32("a size")?;
    }
    Ok(triple)
}

/// `"nounroll", ..;`
pub(crate) fn pragma<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<&'a str>, Error> {
    let mut texts = Vec::new();
    loop {
        let text = cursor.bump();
        if text.kind != Kind::String {
            return Err(Error::expected_at(&text, "a string"));
        }
        texts.push(text.contents());
        if !cursor.eat(b',') {
            break;
        }
    }
    cursor.expect(b';')?;
    Ok(texts)
}

fn unknown_arguments(cursor: &mut Cursor<'_>) {
    let mut depth = 0_usize;
    loop {
        let token = cursor.peek();
        match token.kind {
            Kind::Punct(b'{' | b';') | Kind::End => return,
            Kind::Directive if depth == 0 => return,
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        cursor.bump();
    }
}
