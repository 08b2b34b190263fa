//! Constants, and the expressions that PTX folds into one.
//!
//! ```text
//! expression  binary [ ? expression : expression ]
//! binary      unary { operator binary }        as C binds, from || to *
//! unary       { + | - | ! | ~ | (.s64) | (.u64) } primary
//! primary     number | WARP_SZ | ( expression )
//! ```

use crate::error::{Error, Position};
use crate::lexer::{Kind, Token};
use crate::number;
use crate::parse::Cursor;
use crate::types::ScalarType;

/// How deep expressions, operands and values may be nested.
pub(crate) const DEPTH: usize = 32;

/// A number in code or in an initial value; PTX computes with 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// An integer with a sign, which is what a plain number is: `-8`, `0xFF`.
    S64(i64),
    /// An integer without: `8U`, or one that takes all 64 bits.
    U64(u64),
    /// The bits of a single-precision number: `0f3F800000`.
    F32(u32),
    /// The bits of a double-precision number: `0d3FF0000000000000`, `1.0`.
    F64(u64),
}

impl Constant {
    /// The bits of the constant as a value of a type, the rest of the 64 being zero.
    ///
    /// Integers lose what does not fit, and floating-point numbers are rounded to the nearest, as `ptxas` does
    /// with initial values. There is none for an integer of a floating-point type, nor the other way round.
    ///
    /// ```
    /// use gridcall_ptx::{Constant, ScalarType};
    ///
    /// assert_eq!(Constant::S64(-1).bits(ScalarType::U16), Some(0xffff));
    /// assert_eq!(Constant::F64(1.5_f64.to_bits()).bits(ScalarType::F32), Some(0x3fc0_0000));
    /// assert_eq!(Constant::S64(1).bits(ScalarType::F32), None);
    /// ```
    #[must_use]
    pub fn bits(self, ty: ScalarType) -> Option<u64> {
        match (self, ty) {
            (Constant::F32(bits), ScalarType::F32 | ScalarType::B32 | ScalarType::B64) => {
                Some(u64::from(bits))
            }
            (Constant::F64(bits), ScalarType::F64 | ScalarType::B64) => Some(bits),
            (Constant::F32(bits), ScalarType::F64) => {
                Some(f64::from(f32::from_bits(bits)).to_bits())
            }
            #[allow(clippy::cast_possible_truncation, reason = "rounding is what is meant")]
            (Constant::F64(bits), ScalarType::F32 | ScalarType::B32) => {
                Some(u64::from((f64::from_bits(bits) as f32).to_bits()))
            }
            (Constant::F32(_) | Constant::F64(_), _) => None,
            (_, ty) if ty.is_float() => None,
            (Constant::S64(value), ty) => Some(value.cast_unsigned() & mask(ty)),
            (Constant::U64(value), ty) => Some(value & mask(ty)),
        }
    }

    /// The value of an integer.
    #[must_use]
    pub fn integer(self) -> Option<i128> {
        match self {
            Constant::S64(value) => Some(i128::from(value)),
            Constant::U64(value) => Some(i128::from(value)),
            Constant::F32(_) | Constant::F64(_) => None,
        }
    }

    fn is_true(self) -> bool {
        match self {
            Constant::S64(value) => value != 0,
            Constant::U64(value) => value != 0,
            Constant::F32(bits) => f32::from_bits(bits) != 0.0,
            Constant::F64(bits) => f64::from_bits(bits) != 0.0,
        }
    }

    fn double(self) -> f64 {
        #[allow(
            clippy::cast_precision_loss,
            reason = "C converts an integer like this"
        )]
        match self {
            Constant::S64(value) => value as f64,
            Constant::U64(value) => value as f64,
            Constant::F32(bits) => f64::from(f32::from_bits(bits)),
            Constant::F64(bits) => f64::from_bits(bits),
        }
    }
}

fn mask(ty: ScalarType) -> u64 {
    match ty.size() {
        size @ 1..8 => (1 << (8 * size)) - 1,
        _ => u64::MAX,
    }
}

impl From<bool> for Constant {
    fn from(value: bool) -> Constant {
        Constant::S64(i64::from(value))
    }
}

/// Whether an expression, and not a name, starts here.
pub(crate) fn starts(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Number => true,
        Kind::Word => token.text == "WARP_SZ",
        Kind::Punct(punct) => matches!(punct, b'+' | b'-' | b'!' | b'~'),
        _ => false,
    }
}

pub(crate) fn expression(cursor: &mut Cursor<'_>, depth: usize) -> Result<Constant, Error> {
    let first = primary(cursor, depth)?;
    continue_expression(cursor, first, depth)
}

/// Goes on behind a first operand, `(` and `)` around it already read.
pub(crate) fn continue_expression(
    cursor: &mut Cursor<'_>,
    first: Constant,
    depth: usize,
) -> Result<Constant, Error> {
    let condition = binary(cursor, first, 0, depth)?;
    if !cursor.peek().is(b'?') {
        return Ok(condition);
    }
    let depth = deeper(cursor, depth)?;
    cursor.bump();
    let yes = expression(cursor, depth)?;
    cursor.expect(b':')?;
    let no = expression(cursor, depth)?;
    Ok(if condition.is_true() { yes } else { no })
}

/// Products only: what may stand behind the `+` of an address.
pub(crate) fn term(cursor: &mut Cursor<'_>, depth: usize) -> Result<Constant, Error> {
    let first = primary(cursor, depth)?;
    binary(cursor, first, PRODUCT, depth)
}

fn primary(cursor: &mut Cursor<'_>, depth: usize) -> Result<Constant, Error> {
    let token = *cursor.peek();
    match token.kind {
        Kind::Number => {
            cursor.bump();
            literal(&token)
        }
        Kind::Word if token.text == "WARP_SZ" => {
            cursor.bump();
            Ok(Constant::S64(32))
        }
        Kind::Punct(operator @ (b'+' | b'-' | b'!' | b'~')) => {
            let depth = deeper(cursor, depth)?;
            cursor.bump();
            let operand = primary(cursor, depth)?;
            unary(operator, operand).ok_or_else(|| not_for_floats(token.position, token.text))
        }
        Kind::Punct(b'(') => {
            let depth = deeper(cursor, depth)?;
            cursor.bump();
            if let ty @ (".s64" | ".u64") = cursor.peek().text {
                cursor.bump();
                cursor.expect(b')')?;
                let operand = primary(cursor, depth)?;
                return cast(ty, operand).ok_or_else(|| not_for_floats(token.position, ty));
            }
            let inner = expression(cursor, depth)?;
            cursor.expect(b')')?;
            Ok(inner)
        }
        _ => Err(cursor.expected("a number")),
    }
}

pub(crate) fn literal(token: &Token<'_>) -> Result<Constant, Error> {
    number::constant(token.text)
        .ok_or_else(|| Error::expected_at(token, "a number of at most 64 bits"))
}

pub(crate) fn deeper(cursor: &Cursor<'_>, depth: usize) -> Result<usize, Error> {
    if depth < DEPTH {
        Ok(depth + 1)
    } else {
        Err(Error::at(
            cursor.peek().position,
            format!("this is nested more than {DEPTH} deep"),
        ))
    }
}

fn not_for_floats(position: Position, operator: &str) -> Error {
    Error::at(
        position,
        format!("`{operator}` is not for floating-point numbers"),
    )
}

fn unary(operator: u8, operand: Constant) -> Option<Constant> {
    Some(match (operator, operand) {
        (b'+', operand) => operand,
        (b'-', Constant::S64(value)) => Constant::S64(value.wrapping_neg()),
        (b'-', Constant::U64(value)) => match value {
            // the one number whose magnitude has no sign
            0x8000_0000_0000_0000 => Constant::S64(i64::MIN),
            _ => Constant::U64(value.wrapping_neg()),
        },
        (b'-', Constant::F32(bits)) => Constant::F32(bits ^ 1 << 31),
        (b'-', Constant::F64(bits)) => Constant::F64(bits ^ 1 << 63),
        (b'!', operand) => Constant::from(!operand.is_true()),
        (b'~', Constant::S64(value)) => Constant::S64(!value),
        (b'~', Constant::U64(value)) => Constant::U64(!value),
        _ => return None,
    })
}

fn cast(ty: &str, operand: Constant) -> Option<Constant> {
    match (ty, operand) {
        (".s64", Constant::U64(value)) => Some(Constant::S64(value.cast_signed())),
        (".u64", Constant::S64(value)) => Some(Constant::U64(value.cast_unsigned())),
        (_, Constant::F32(_) | Constant::F64(_)) => None,
        (_, operand) => Some(operand),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

const PRODUCT: u8 = 10;

impl Operator {
    fn precedence(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::BitOr => 3,
            Operator::BitXor => 4,
            Operator::BitAnd => 5,
            Operator::Equal | Operator::Unequal => 6,
            Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => 7,
            Operator::Left | Operator::Right => 8,
            Operator::Add | Operator::Subtract => 9,
            Operator::Multiply | Operator::Divide | Operator::Remainder => PRODUCT,
        }
    }

    /// The operator that comes next, and how many marks it takes.
    fn peek(cursor: &Cursor<'_>) -> Option<(Operator, usize)> {
        let Kind::Punct(first) = cursor.peek().kind else {
            return None;
        };
        let second = cursor.byte_behind();
        Some(match (first, second) {
            (b'|', Some(b'|')) => (Operator::Or, 2),
            (b'&', Some(b'&')) => (Operator::And, 2),
            (b'=', Some(b'=')) => (Operator::Equal, 2),
            (b'!', Some(b'=')) => (Operator::Unequal, 2),
            (b'<', Some(b'<')) => (Operator::Left, 2),
            (b'>', Some(b'>')) => (Operator::Right, 2),
            (b'<', Some(b'=')) => (Operator::LessEqual, 2),
            (b'>', Some(b'=')) => (Operator::GreaterEqual, 2),
            (b'|', _) => (Operator::BitOr, 1),
            (b'^', _) => (Operator::BitXor, 1),
            (b'&', _) => (Operator::BitAnd, 1),
            (b'<', _) => (Operator::Less, 1),
            (b'>', _) => (Operator::Greater, 1),
            (b'+', _) => (Operator::Add, 1),
            (b'-', _) => (Operator::Subtract, 1),
            (b'*', _) => (Operator::Multiply, 1),
            (b'/', _) => (Operator::Divide, 1),
            (b'%', _) => (Operator::Remainder, 1),
            _ => return None,
        })
    }
}

/// Operators that bind at least as strongly as `least`; they recurse once a precedence, of which there are ten.
fn binary(
    cursor: &mut Cursor<'_>,
    first: Constant,
    least: u8,
    depth: usize,
) -> Result<Constant, Error> {
    let mut left = first;
    while let Some((operator, marks)) = Operator::peek(cursor) {
        if operator.precedence() < least {
            break;
        }
        let position = cursor.peek().position;
        for _ in 0..marks {
            cursor.bump();
        }
        let right = primary(cursor, depth)?;
        let right = binary(cursor, right, operator.precedence() + 1, depth)?;
        left = apply(operator, left, right).map_err(|problem| Error::at(position, problem))?;
    }
    Ok(left)
}

fn apply(operator: Operator, left: Constant, right: Constant) -> Result<Constant, &'static str> {
    match (left, right) {
        (Constant::S64(left), Constant::S64(right)) => signed(operator, left, right),
        (Constant::S64(left), Constant::U64(right)) => match operator {
            // a shift has the type of its left side, all else is unsigned if one side is
            Operator::Left | Operator::Right => signed(operator, left, right.cast_signed()),
            _ => unsigned(operator, left.cast_unsigned(), right),
        },
        (Constant::U64(left), Constant::S64(right)) => {
            unsigned(operator, left, right.cast_unsigned())
        }
        (Constant::U64(left), Constant::U64(right)) => unsigned(operator, left, right),
        _ => double(operator, left.double(), right.double()),
    }
}

const DIVISION_BY_ZERO: &str = "this divides by zero";

/// `ptxas` shifts by the lowest six bits, as the hardware it runs on.
fn distance(by: u64) -> u64 {
    by & 63
}

fn signed(operator: Operator, left: i64, right: i64) -> Result<Constant, &'static str> {
    let value = match operator {
        Operator::Or => i64::from(left != 0 || right != 0),
        Operator::And => i64::from(left != 0 && right != 0),
        Operator::BitOr => left | right,
        Operator::BitXor => left ^ right,
        Operator::BitAnd => left & right,
        Operator::Equal => i64::from(left == right),
        Operator::Unequal => i64::from(left != right),
        Operator::Less => i64::from(left < right),
        Operator::LessEqual => i64::from(left <= right),
        Operator::Greater => i64::from(left > right),
        Operator::GreaterEqual => i64::from(left >= right),
        Operator::Left => left << distance(right.cast_unsigned()),
        Operator::Right => left >> distance(right.cast_unsigned()),
        Operator::Add => left.wrapping_add(right),
        Operator::Subtract => left.wrapping_sub(right),
        Operator::Multiply => left.wrapping_mul(right),
        Operator::Divide | Operator::Remainder if right == 0 => return Err(DIVISION_BY_ZERO),
        Operator::Divide => left.wrapping_div(right),
        Operator::Remainder => left.wrapping_rem(right),
    };
    Ok(Constant::S64(value))
}

fn unsigned(operator: Operator, left: u64, right: u64) -> Result<Constant, &'static str> {
    let value = match operator {
        Operator::Or => return Ok(Constant::from(left != 0 || right != 0)),
        Operator::And => return Ok(Constant::from(left != 0 && right != 0)),
        Operator::Equal => return Ok(Constant::from(left == right)),
        Operator::Unequal => return Ok(Constant::from(left != right)),
        Operator::Less => return Ok(Constant::from(left < right)),
        Operator::LessEqual => return Ok(Constant::from(left <= right)),
        Operator::Greater => return Ok(Constant::from(left > right)),
        Operator::GreaterEqual => return Ok(Constant::from(left >= right)),
        Operator::BitOr => left | right,
        Operator::BitXor => left ^ right,
        Operator::BitAnd => left & right,
        Operator::Left => left << distance(right),
        Operator::Right => left >> distance(right),
        Operator::Add => left.wrapping_add(right),
        Operator::Subtract => left.wrapping_sub(right),
        Operator::Multiply => left.wrapping_mul(right),
        Operator::Divide => left.checked_div(right).ok_or(DIVISION_BY_ZERO)?,
        Operator::Remainder => left.checked_rem(right).ok_or(DIVISION_BY_ZERO)?,
    };
    Ok(Constant::U64(value))
}

#[allow(clippy::float_cmp, reason = "this is the language's own `==`")]
fn double(operator: Operator, left: f64, right: f64) -> Result<Constant, &'static str> {
    let value = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Or => return Ok(Constant::from(left != 0.0 || right != 0.0)),
        Operator::And => return Ok(Constant::from(left != 0.0 && right != 0.0)),
        Operator::Equal => return Ok(Constant::from(left == right)),
        Operator::Unequal => return Ok(Constant::from(left != right)),
        Operator::Less => return Ok(Constant::from(left < right)),
        Operator::LessEqual => return Ok(Constant::from(left <= right)),
        Operator::Greater => return Ok(Constant::from(left > right)),
        Operator::GreaterEqual => return Ok(Constant::from(left >= right)),
        _ => return Err("this operator is not for floating-point numbers"),
    };
    Ok(Constant::F64(value.to_bits()))
}
