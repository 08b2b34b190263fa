//! Operands: what an instruction works on.
//!
//! ```text
//! operand  name | name.component | name + term | name [ index ] | name '|' name | ! operand | - operand
//!          | expression | [ operand, .. ] | { operand, .. } | ( operand, .. ) | _
//! ```

use crate::constant::{self, Constant, deeper};
use crate::error::Error;
use crate::initial::offset;
use crate::lexer::Kind;
use crate::parse::Cursor;

/// An operand, in the form in which it stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operand<'a> {
    /// A register, a variable, a label or a function: `%r1`, `table`, `$L__BB0_2`, `vprintf`.
    Name(&'a str),
    /// A part of one: `%tid.x`, `%r1.b0`.
    Component {
        /// The register or the vector.
        name: &'a str,
        /// The part, without its dot.
        component: &'a str,
    },
    /// An address that is not looked through: `table+8`.
    Offset {
        /// The variable.
        name: &'a str,
        /// The bytes added to it.
        offset: i64,
    },
    /// An element of an array: `table[3]`, `table[%r1]`.
    Element {
        /// The array.
        name: &'a str,
        /// Which element: all of it, its offset too, counts elements of the array's type.
        index: Address<'a>,
    },
    /// A number, with every expression folded.
    Constant(Constant),
    /// What lies at an address: `[%rd1+8]`.
    Address(Address<'a>),
    /// Several things between brackets: `[tensor, {%r1, %r2}]`.
    Bracket(Vec<Operand<'a>>),
    /// `{%r1, %r2}`
    Vector(Vec<Operand<'a>>),
    /// What a call passes or receives: `(%r1, retval0)`.
    List(Vec<Operand<'a>>),
    /// Two destinations: `%p1|%p2`, `_|%p2`.
    Pair(&'a str, &'a str),
    /// `!%p1`
    Not(Box<Operand<'a>>),
    /// `-%r1`
    Negative(Box<Operand<'a>>),
    /// `_`, where a result goes that nobody wants.
    Sink,
}

/// An address: something, and bytes added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// What the bytes are added to.
    pub base: Base<'a>,
    /// The bytes added.
    pub offset: i64,
    /// Whether `.unified` follows the bracket.
    pub unified: bool,
}

/// What an address starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// A register or a variable.
    Name(&'a str),
    /// A number alone: `[0x1000]`, `[0]`; the offset is then 0.
    Immediate(Constant),
}

/// Where an operand stands.
#[derive(Clone, Copy)]
struct Context {
    is_call: bool,
    depth: usize,
}

impl Context {
    fn deeper(self, cursor: &Cursor<'_>) -> Result<Context, Error> {
        Ok(Context {
            depth: deeper(cursor, self.depth)?,
            ..self
        })
    }
}

/// `operand, ..` up to the `;`, which is read too.
pub(super) fn operands<'a>(
    cursor: &mut Cursor<'a>,
    opcode: &str,
) -> Result<Vec<Operand<'a>>, Error> {
    let context = Context {
        is_call: opcode == "call",
        depth: 0,
    };
    let mut operands = Vec::new();
    if cursor.eat(b';') {
        return Ok(operands);
    }
    loop {
        operands.push(operand(cursor, context)?);
        if cursor.eat(b';') {
            return Ok(operands);
        }
        if !cursor.eat(b',') {
            return Err(cursor.expected("`,` or `;`"));
        }
    }
}

fn operand<'a>(cursor: &mut Cursor<'a>, context: Context) -> Result<Operand<'a>, Error> {
    let token = *cursor.peek();
    match token.kind {
        Kind::Word if token.text != "WARP_SZ" => {
            cursor.bump();
            named(cursor, token.text)
        }
        Kind::Punct(b'{') => {
            cursor.bump();
            sequence(cursor, b'}', context).map(Operand::Vector)
        }
        Kind::Punct(b'[') => {
            cursor.bump();
            bracket(cursor, context)
        }
        Kind::Punct(b'(') => parenthesis(cursor, context),
        Kind::Punct(b'!' | b'-') => signed(cursor, context),
        _ if constant::starts(&token) => {
            constant::expression(cursor, context.depth).map(Operand::Constant)
        }
        _ => Err(cursor.expected("an operand")),
    }
}

/// What a name that was just read begins.
fn named<'a>(cursor: &mut Cursor<'a>, name: &'a str) -> Result<Operand<'a>, Error> {
    let next = *cursor.peek();
    match next.kind {
        Kind::Directive => {
            cursor.bump();
            Ok(Operand::Component {
                name,
                component: &next.text[1..],
            })
        }
        Kind::Punct(b'+' | b'-') => Ok(Operand::Offset {
            name,
            offset: offset(cursor, 0)?,
        }),
        Kind::Punct(b'[') => {
            cursor.bump();
            let index = address(cursor)?;
            cursor.expect(b']')?;
            Ok(Operand::Element { name, index })
        }
        Kind::Punct(b'|') => {
            cursor.bump();
            let second = cursor.expect_word("a register")?;
            Ok(Operand::Pair(name, second.text))
        }
        _ if name == "_" => Ok(Operand::Sink),
        _ => Ok(Operand::Name(name)),
    }
}

/// `operand, .. )`, the opening mark already read.
fn sequence<'a>(
    cursor: &mut Cursor<'a>,
    close: u8,
    context: Context,
) -> Result<Vec<Operand<'a>>, Error> {
    let context = context.deeper(cursor)?;
    let mut operands = Vec::new();
    if cursor.eat(close) {
        return Ok(operands);
    }
    loop {
        operands.push(operand(cursor, context)?);
        if cursor.eat(close) {
            return Ok(operands);
        }
        if !cursor.eat(b',') {
            return Err(cursor.expected(format!("`,` or `{}`", char::from(close))));
        }
    }
}

fn bracket<'a>(cursor: &mut Cursor<'a>, context: Context) -> Result<Operand<'a>, Error> {
    let inner = *cursor.peek();
    let operands = sequence(cursor, b']', context)?;
    let base = match operands.as_slice() {
        [] => return Err(Error::expected_at(&inner, "an address")),
        [Operand::Name(name)] => Some((Base::Name(name), 0)),
        [Operand::Offset { name, offset }] => Some((Base::Name(name), *offset)),
        [Operand::Constant(constant)] => Some((Base::Immediate(*constant), 0)),
        _ => None,
    };
    let Some((base, offset)) = base else {
        return Ok(Operand::Bracket(operands));
    };
    let unified = cursor.peek().is_directive(".unified");
    if unified {
        cursor.bump();
    }
    Ok(Operand::Address(Address {
        base,
        offset,
        unified,
    }))
}

fn address<'a>(cursor: &mut Cursor<'a>) -> Result<Address<'a>, Error> {
    let token = *cursor.peek();
    if token.kind == Kind::Word && !constant::starts(&token) {
        cursor.bump();
        let offset = offset(cursor, 0)?;
        return Ok(Address {
            base: Base::Name(token.text),
            offset,
            unified: false,
        });
    }
    let base = Base::Immediate(constant::expression(cursor, 0)?);
    Ok(Address {
        base,
        offset: 0,
        unified: false,
    })
}

/// A list, or an expression that starts with a parenthesis, which a call does not take.
fn parenthesis<'a>(cursor: &mut Cursor<'a>, context: Context) -> Result<Operand<'a>, Error> {
    if cursor.peek_second().kind == Kind::Directive {
        // a cast
        return constant::expression(cursor, context.depth).map(Operand::Constant);
    }
    cursor.bump();
    let operands = sequence(cursor, b')', context)?;
    match operands.as_slice() {
        &[Operand::Constant(constant)] if !context.is_call => {
            constant::continue_expression(cursor, constant, context.depth).map(Operand::Constant)
        }
        _ => Ok(Operand::List(operands)),
    }
}

/// `-8`, `!0`, `-%r1`, `!%p1`
fn signed<'a>(cursor: &mut Cursor<'a>, context: Context) -> Result<Operand<'a>, Error> {
    let second = cursor.peek_second();
    if second.kind != Kind::Word || constant::starts(&second) {
        return constant::expression(cursor, context.depth).map(Operand::Constant);
    }
    let sign = cursor.bump();
    let negated = Box::new(operand(cursor, context.deeper(cursor)?)?);
    Ok(if sign.is(b'!') {
        Operand::Not(negated)
    } else {
        Operand::Negative(negated)
    })
}
