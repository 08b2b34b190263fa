//! What variables and parameters have in common: type, alignment, dimensions, size.

use super::Cursor;
use crate::constant;
use crate::error::{Error, Position};
use crate::initial;
use crate::lexer::Kind;
use crate::param::Pointer;
use crate::types::{Linkage, ScalarType, StateSpace};
use crate::variable::{Initializer, Variable};

/// `.align 8 .v4 .f32` and `.u64 .ptr .global .align 16`, in any order.
pub(crate) struct Modifiers {
    pub(crate) ty: ScalarType,
    pub(crate) vector: u32,
    pub(crate) pointer: Option<Pointer>,
    managed: bool,
    align: Option<usize>,
}

impl Modifiers {
    pub(crate) fn align(&self) -> usize {
        self.align.unwrap_or(self.ty.size() * self.vector as usize)
    }

    /// The bytes of an array of these dimensions, or of one if there are none.
    pub(crate) fn size(&self, dims: &[usize], position: Position) -> Result<usize, Error> {
        let element = self.ty.size() * self.vector as usize;
        let size = dims
            .iter()
            .try_fold(element, |size, &dim| size.checked_mul(dim));
        size.ok_or_else(|| Error::at(position, "this array is larger than any memory"))
    }
}

pub(crate) fn modifiers(cursor: &mut Cursor<'_>) -> Result<Modifiers, Error> {
    let mut ty = None;
    let mut vector = 1;
    let mut align = None;
    let mut pointer: Option<Pointer> = None;
    let mut managed = false;
    loop {
        let token = *cursor.peek();
        if token.kind != Kind::Directive {
            break;
        }
        match (token.text, ScalarType::from_word(token.text)) {
            (".align", _) => {
                cursor.bump();
                let read = power_of_two(cursor)?;
                match &mut pointer {
                    Some(pointer) => pointer.align = read,
                    None => align = Some(read as usize),
                }
            }
            (".v2", _) => vector = eat_vector(cursor, 2),
            (".v4", _) => vector = eat_vector(cursor, 4),
            (".v8", _) => vector = eat_vector(cursor, 8),
            (".ptr", _) => {
                cursor.bump();
                let space = StateSpace::from_word(cursor.peek().text);
                if space.is_some() {
                    cursor.bump();
                }
                pointer = Some(Pointer { space, align: 4 });
            }
            (".attribute", _) => managed |= attribute(cursor)?,
            (_, Some(found)) if ty.is_none() => {
                cursor.bump();
                ty = Some(found);
            }
            _ => break,
        }
    }
    match ty {
        Some(ty) if cursor.peek().kind != Kind::Directive => Ok(Modifiers {
            ty,
            vector,
            pointer,
            managed,
            align,
        }),
        Some(_) => Err(cursor.expected("a name")),
        None => Err(cursor.expected("a type")),
    }
}

fn eat_vector(cursor: &mut Cursor<'_>, elements: u32) -> u32 {
    cursor.bump();
    elements
}

fn power_of_two(cursor: &mut Cursor<'_>) -> Result<u32, Error> {
    let token = *cursor.peek();
    let align = cursor.expect_u32("an alignment")?;
    if align.is_power_of_two() {
        Ok(align)
    } else {
        Err(Error::expected_at(
            &token,
            "an alignment that is a power of two",
        ))
    }
}

/// `.attribute(.managed)`: whether it says so.
pub(crate) fn attribute(cursor: &mut Cursor<'_>) -> Result<bool, Error> {
    cursor.bump();
    cursor.expect(b'(')?;
    let mut managed = false;
    let mut depth = 1_usize;
    while depth > 0 {
        let token = cursor.bump();
        match token.kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth -= 1,
            Kind::Directive => managed |= token.text == ".managed",
            Kind::Punct(b',') | Kind::Number | Kind::Word => {}
            _ => return Err(Error::expected_at(&token, "`)`")),
        }
    }
    Ok(managed)
}

/// `[4][8]`; a 0 stands for `[]`, and nothing for no brackets.
pub(crate) fn dims(cursor: &mut Cursor<'_>) -> Result<Option<Vec<usize>>, Error> {
    let mut dims = Vec::new();
    while cursor.peek().is(b'[') {
        if dims.len() == constant::DEPTH {
            let most = constant::DEPTH;
            return Err(cursor.expected(format!("an array of at most {most} dimensions")));
        }
        cursor.bump();
        if cursor.eat(b']') {
            dims.push(0);
            continue;
        }
        let token = *cursor.peek();
        let dim = constant::expression(cursor, 0)?;
        match dim.integer().and_then(|dim| usize::try_from(dim).ok()) {
            Some(dim) if dim > 0 => dims.push(dim),
            _ => return Err(Error::expected_at(&token, "the size of an array, above 0")),
        }
        cursor.expect(b']')?;
    }
    Ok(if dims.is_empty() { None } else { Some(dims) })
}

pub(super) fn variables(
    cursor: &mut Cursor<'_>,
    space: StateSpace,
    linkage: Linkage,
    managed: bool,
    variables: &mut Vec<Variable>,
) -> Result<(), Error> {
    let modifiers = modifiers(cursor)?;
    loop {
        let name = cursor.expect_word("the name of a variable")?;
        let mut dims = dims(cursor)?.unwrap_or_default();
        check_open_dims(&dims, name.position)?;
        let initializer = if cursor.eat(b'=') {
            Some(initializer(cursor, &modifiers, &mut dims)?)
        } else {
            None
        };
        let size = if dims.contains(&0) {
            None
        } else {
            Some(modifiers.size(&dims, name.position)?)
        };
        variables.push(Variable {
            name: name.text.to_owned(),
            position: name.position,
            space,
            linkage,
            ty: modifiers.ty,
            vector: modifiers.vector,
            align: modifiers.align(),
            size,
            dims,
            managed: managed || modifiers.managed,
            initializer,
        });
        if cursor.eat(b';') {
            return Ok(());
        }
        if !cursor.eat(b',') {
            return Err(cursor.expected("`=`, `,` or `;`"));
        }
    }
}

/// `[]` stands first or not at all, as in C.
pub(crate) fn check_open_dims(dims: &[usize], position: Position) -> Result<(), Error> {
    match dims.iter().rposition(|&dim| dim == 0) {
        None | Some(0) => Ok(()),
        Some(_) => Err(Error::at(
            position,
            "only the first size of an array may be left out",
        )),
    }
}

/// Steps over the value behind a `=`, or reads it where the size of the array depends on it.
fn initializer(
    cursor: &mut Cursor<'_>,
    modifiers: &Modifiers,
    dims: &mut [usize],
) -> Result<Initializer, Error> {
    let first = *cursor.peek();
    if dims.first() == Some(&0) {
        initial::elements(cursor, dims, modifiers.vector, modifiers.ty)?;
        return Ok(Initializer {
            start: first.start,
            end: cursor.end(),
            position: first.position,
        });
    }
    if first.is(b'{') {
        let end = cursor.skip_block()?;
        return Ok(Initializer {
            start: first.start,
            end,
            position: first.position,
        });
    }
    let mut depth = 0_usize;
    loop {
        match cursor.peek().kind {
            Kind::Punct(b',' | b';') if depth == 0 => break,
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.saturating_sub(1),
            Kind::Punct(b';' | b'{' | b'}') | Kind::End => {
                return Err(cursor.expected("the value of a variable"));
            }
            _ => {}
        }
        cursor.bump();
    }
    if cursor.peek().start == first.start {
        return Err(cursor.expected("the value of a variable"));
    }
    Ok(Initializer {
        start: first.start,
        end: cursor.end(),
        position: first.position,
    })
}
