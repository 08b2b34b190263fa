//! From text to statements.
//!
//! ```text
//! body         { { } | label : | label : list | [ @ [ ! ] name ] opcode modifier .. operand, .. ; | directive }
//! declaration  space modifiers name [ < count > | dims ] [ = value ], .. ;
//! ```

use super::operand;
use super::statement::{
    CallPrototype, Declaration, Declared, Guard, Instruction, Loc, NameRange, SourcePlace,
    Statement,
};
use crate::error::{Error, Position};
use crate::initial;
use crate::lexer::{Kind, Token};
use crate::parse::callable::{self, Owner};
use crate::parse::{Cursor, declaration};
use crate::types::{Linkage, StateSpace};

/// All statements up to the `}` that closes the body, whose `{` is read already.
pub(super) fn statements<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Statement<'a>>, Error> {
    let mut statements = Vec::new();
    let mut depth = 0_usize;
    loop {
        let token = *cursor.peek();
        match token.kind {
            Kind::Punct(b'{') => {
                depth += 1;
                cursor.bump();
                statements.push(Statement::Open(token.position));
            }
            Kind::Punct(b'}') => {
                cursor.bump();
                if depth == 0 {
                    return match cursor.peek().kind {
                        Kind::End => Ok(statements),
                        _ => Err(cursor.expected("the end of the body")),
                    };
                }
                depth -= 1;
                statements.push(Statement::Close(token.position));
            }
            Kind::Punct(b';') => {
                cursor.bump();
            }
            Kind::Punct(b'@') if cursor.byte_behind() == Some(b'@') => cursor.skip_line(),
            Kind::Punct(b'@') | Kind::Word => statements.push(instruction_or_label(cursor)?),
            Kind::Directive => statements.push(directive(cursor)?),
            _ => return Err(cursor.expected("a statement")),
        }
    }
}

fn instruction_or_label<'a>(cursor: &mut Cursor<'a>) -> Result<Statement<'a>, Error> {
    let position = cursor.peek().position;
    let guard = guard(cursor)?;
    let word = cursor.expect_word("an instruction")?;
    if guard.is_none() && cursor.eat(b':') {
        return labelled(cursor, &word);
    }
    let mut modifiers = Vec::new();
    while cursor.peek().kind == Kind::Directive {
        modifiers.push(&cursor.bump().text[1..]);
    }
    let opcode = word.text;
    let operands = operand::operands(cursor, opcode)?;
    Ok(Statement::Instruction(Instruction {
        position,
        guard,
        opcode,
        modifiers,
        operands,
    }))
}

fn guard<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Guard<'a>>, Error> {
    if !cursor.eat(b'@') {
        return Ok(None);
    }
    let negated = cursor.eat(b'!');
    let register = cursor.expect_word("a predicate")?.text;
    Ok(Some(Guard { negated, register }))
}

/// What a label and its colon are followed by: one of three lists, or anything.
fn labelled<'a>(cursor: &mut Cursor<'a>, label: &Token<'a>) -> Result<Statement<'a>, Error> {
    let (position, label) = (label.position, label.text);
    match cursor.peek().text {
        ".callprototype" => {
            cursor.bump();
            call_prototype(cursor, label, position)
        }
        ".calltargets" => {
            cursor.bump();
            let names = name_ranges(cursor)?;
            Ok(Statement::CallTargets {
                label,
                position,
                names,
            })
        }
        ".branchtargets" => {
            cursor.bump();
            let names = name_ranges(cursor)?;
            Ok(Statement::BranchTargets {
                label,
                position,
                names,
            })
        }
        _ => Ok(Statement::Label {
            name: label,
            position,
        }),
    }
}

fn call_prototype<'a>(
    cursor: &mut Cursor<'a>,
    label: &'a str,
    position: Position,
) -> Result<Statement<'a>, Error> {
    let returns = callable::optional_params(cursor, Owner::Function)?;
    let name = cursor.expect_word("`_`")?;
    if name.text != "_" {
        return Err(Error::expected_at(&name, "`_`"));
    }
    let params = callable::optional_params(cursor, Owner::Function)?;
    let mut noreturn = false;
    while !cursor.eat(b';') {
        let token = *cursor.peek();
        // `.abi_preserve 10` has a number behind it
        if !matches!(token.kind, Kind::Directive | Kind::Number) {
            return Err(cursor.expected("`;`"));
        }
        noreturn |= token.is_directive(".noreturn");
        cursor.bump();
    }
    Ok(Statement::CallPrototype(CallPrototype {
        label,
        position,
        returns,
        params,
        noreturn,
    }))
}

fn name_ranges<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<NameRange<'a>>, Error> {
    let mut names = Vec::new();
    loop {
        let name = cursor.expect_word("a name")?;
        names.push(name_range(cursor, name.text)?);
        if cursor.eat(b';') {
            return Ok(names);
        }
        if !cursor.eat(b',') {
            return Err(cursor.expected("`,` or `;`"));
        }
    }
}

/// `<10>` behind a name, if it is there.
fn name_range<'a>(cursor: &mut Cursor<'a>, name: &'a str) -> Result<NameRange<'a>, Error> {
    if !cursor.eat(b'<') {
        return Ok(NameRange { name, count: None });
    }
    let count = cursor.expect_u32("how many there are")?;
    cursor.expect(b'>')?;
    Ok(NameRange {
        name,
        count: Some(count),
    })
}

fn directive<'a>(cursor: &mut Cursor<'a>) -> Result<Statement<'a>, Error> {
    let token = *cursor.peek();
    match token.text {
        ".loc" => {
            cursor.bump();
            loc(cursor, token.position).map(Statement::Loc)
        }
        ".pragma" => {
            cursor.bump();
            let texts = callable::pragma(cursor)?;
            Ok(Statement::Pragma {
                texts,
                position: token.position,
            })
        }
        text if Linkage::from_word(text).is_some() || StateSpace::from_word(text).is_some() => {
            declared(cursor).map(Statement::Declaration)
        }
        _ => {
            cursor.skip_unknown()?;
            let text = cursor
                .source()
                .get(token.start..cursor.end())
                .unwrap_or_default();
            Ok(Statement::Directive {
                text,
                position: token.position,
            })
        }
    }
}

fn loc<'a>(cursor: &mut Cursor<'a>, position: Position) -> Result<Loc<'a>, Error> {
    let place = source_place(cursor)?;
    let mut loc = Loc {
        position,
        place,
        function_name: None,
        inlined_at: None,
    };
    while cursor.eat(b',') {
        let attribute = cursor.expect_word("`function_name` or `inlined_at`")?;
        match attribute.text {
            "function_name" => {
                let label = cursor.bump();
                if !matches!(label.kind, Kind::Word | Kind::Directive) {
                    return Err(Error::expected_at(&label, "a label"));
                }
                loc.function_name = Some((label.text, initial::offset(cursor, 0)?));
            }
            "inlined_at" => loc.inlined_at = Some(source_place(cursor)?),
            _ => {
                return Err(Error::expected_at(
                    &attribute,
                    "`function_name` or `inlined_at`",
                ));
            }
        }
    }
    Ok(loc)
}

fn source_place(cursor: &mut Cursor<'_>) -> Result<SourcePlace, Error> {
    let file = cursor.expect_u32("the number of a file")?;
    let line = cursor.expect_u32("a line")?;
    let column = cursor.expect_u32("a column")?;
    Ok(SourcePlace { file, line, column })
}

fn declared<'a>(cursor: &mut Cursor<'a>) -> Result<Declaration<'a>, Error> {
    let position = cursor.peek().position;
    let mut linkage = Linkage::None;
    while let Some(found) = Linkage::from_word(cursor.peek().text) {
        cursor.bump();
        linkage = found;
    }
    let Some(space) = StateSpace::from_word(cursor.peek().text) else {
        return Err(cursor.expected("a state space such as `.shared`"));
    };
    cursor.bump();
    let modifiers = declaration::modifiers(cursor)?;
    let mut names = Vec::new();
    loop {
        names.push(declared_name(cursor, &modifiers)?);
        if cursor.eat(b';') {
            break;
        }
        if !cursor.eat(b',') {
            return Err(cursor.expected("`,` or `;`"));
        }
    }
    Ok(Declaration {
        position,
        space,
        linkage,
        ty: modifiers.ty,
        vector: modifiers.vector,
        align: modifiers.align(),
        names,
    })
}

fn declared_name<'a>(
    cursor: &mut Cursor<'a>,
    modifiers: &declaration::Modifiers,
) -> Result<Declared<'a>, Error> {
    let token = cursor.expect_word("a name")?;
    let position = token.position;
    let name = name_range(cursor, token.text)?;
    let mut dims = declaration::dims(cursor)?.unwrap_or_default();
    declaration::check_open_dims(&dims, position)?;
    let elements = if cursor.eat(b'=') {
        initial::elements(cursor, &mut dims, modifiers.vector, modifiers.ty)?
    } else {
        Vec::new()
    };
    let size = if dims.contains(&0) {
        None
    } else {
        Some(modifiers.size(&dims, position)?)
    };
    Ok(Declared {
        name,
        position,
        dims,
        size,
        elements,
    })
}
