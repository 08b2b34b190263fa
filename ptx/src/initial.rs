//! The initial value of a variable, element by element.
//!
//! ```text
//! initial  value | { initial, .. } | { }
//! value    expression | address | mask ( expression ) | mask ( address )
//! address  name { + term } | generic ( name { + term } ) { + term }
//! ```

use crate::constant::{self, Constant};
use crate::error::{Error, Position};
use crate::lexer::{Kind, Lexer};
use crate::parse::Cursor;
use crate::types::ScalarType;
use crate::variable::Variable;

/// One element of an initial value, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The bytes from the start of the variable.
    pub offset: usize,
    /// Where it stands in the text.
    pub position: Position,
    /// What goes there, as a [`Variable::ty`].
    pub value: Value<'a>,
}

/// What an element is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A number.
    Constant(Constant),
    /// The address of a variable or a function.
    Address(SymbolAddress<'a>),
}

/// The address of a variable or a function, as an initial value gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolAddress<'a> {
    /// The variable or the function.
    pub name: &'a str,
    /// The bytes added to it.
    pub offset: i64,
    /// Whether it is `generic(name)`, and not an address within the variable's state space.
    ///
    /// PTX before version 3.1 means generic addresses without saying so.
    pub generic: bool,
    /// The bits to take, moved down to bit 0: `0xFF00(name)` is the second byte of the address.
    pub mask: Option<u64>,
}

impl Variable {
    /// The elements of the initial value in the order of their offsets; what is not among them is zero.
    ///
    /// `source` is the text that the module was read from.
    ///
    /// # Errors
    ///
    /// If the value cannot be read, or has more elements than the variable.
    ///
    /// ```
    /// use gridcall_ptx::{Constant, Module, Value};
    ///
    /// let text = ".version 9.5
    ///     .target sm_90
    ///     .const .align 4 .u32 grid[3][2] = {{1, 2}, {3}};
    ///     .global .align 8 .u64 start = generic(grid)+8;";
    /// let module = Module::parse(text)?;
    /// let [grid, start] = module.variables() else { panic!("two variables") };
    ///
    /// let elements: Vec<_> =
    ///     grid.elements(text)?.into_iter().map(|element| (element.offset, element.value)).collect();
    /// assert_eq!(elements, [
    ///     (0, Value::Constant(Constant::S64(1))),
    ///     (4, Value::Constant(Constant::S64(2))),
    ///     (8, Value::Constant(Constant::S64(3))),
    /// ]);
    ///
    /// let Value::Address(address) = start.elements(text)?[0].value else { panic!("an address") };
    /// assert_eq!((address.name, address.offset, address.generic), ("grid", 8, true));
    /// # Ok::<(), gridcall_ptx::Error>(())
    /// ```
    pub fn elements<'a>(&self, source: &'a str) -> Result<Vec<Element<'a>>, Error> {
        let Some(initializer) = self.initializer() else {
            return Ok(Vec::new());
        };
        let lexer = Lexer::resume(
            source,
            initializer.start,
            initializer.end,
            initializer.position,
        );
        let mut cursor = Cursor::at(lexer.ok_or_else(|| other_text(initializer.position))?);
        let mut reader = Reader::new(&self.dims, self.vector, self.ty);
        reader.item(&mut cursor, 0, 0)?;
        match cursor.peek().kind {
            Kind::End => Ok(reader.elements),
            _ => Err(cursor.expected("the end of the value")),
        }
    }
}

pub(crate) fn other_text(position: Position) -> Error {
    Error::at(
        position,
        "this is not the text that the module was read from",
    )
}

/// Reads the value behind a `=`; where the first of `dims` is open, it becomes as many as the value has.
pub(crate) fn elements<'a>(
    cursor: &mut Cursor<'a>,
    dims: &mut [usize],
    vector: u32,
    ty: ScalarType,
) -> Result<Vec<Element<'a>>, Error> {
    let is_open = dims.first() == Some(&0);
    if is_open {
        dims[0] = usize::MAX;
    }
    let mut reader = Reader::new(dims, vector, ty);
    let items = reader.item(cursor, 0, 0)?;
    if is_open {
        dims[0] = items;
    }
    if items == 0 && is_open {
        return Err(cursor.expected("a value in the braces before it"));
    }
    Ok(reader.elements)
}

/// Puts values in their places: a list for each dimension, and one more for a vector.
struct Reader<'a> {
    dims: Vec<usize>,
    is_vector: bool,
    size: usize,
    elements: Vec<Element<'a>>,
}

impl<'a> Reader<'a> {
    fn new(dims: &[usize], vector: u32, ty: ScalarType) -> Reader<'a> {
        let mut dims = dims.to_vec();
        let is_vector = vector > 1;
        if is_vector {
            dims.push(vector as usize);
        }
        Reader {
            dims,
            is_vector,
            size: ty.size(),
            elements: Vec::new(),
        }
    }

    /// A list of items of the next level, or a value beyond the last level; gives how many items there are.
    fn item(
        &mut self,
        cursor: &mut Cursor<'a>,
        level: usize,
        first: usize,
    ) -> Result<usize, Error> {
        let Some(&room) = self.dims.get(level) else {
            self.element(cursor, first)?;
            return Ok(1);
        };
        cursor.expect(b'{')?;
        let stride = self.stride(level + 1);
        let mut items = 0;
        while items > 0 || !cursor.peek().is(b'}') {
            if items == room {
                return Err(cursor.expected(format!("`}}`, there is room for {room}")));
            }
            self.item(
                cursor,
                level + 1,
                first.saturating_add(stride.saturating_mul(items)),
            )?;
            items += 1;
            if cursor.peek().is(b'}') {
                break;
            }
            if !cursor.eat(b',') {
                return Err(cursor.expected("`,` or `}`"));
            }
        }
        if self.is_vector && level + 1 == self.dims.len() && items < room {
            return Err(cursor.expected(format!("`,`, a vector has {room} values")));
        }
        cursor.expect(b'}')?;
        Ok(items)
    }

    /// How many elements lie in one item of a level; beyond the last level there is one.
    fn stride(&self, level: usize) -> usize {
        let inner = self.dims.get(level..).unwrap_or_default();
        inner
            .iter()
            .fold(1, |stride, &dim| stride.saturating_mul(dim))
    }

    fn element(&mut self, cursor: &mut Cursor<'a>, number: usize) -> Result<(), Error> {
        let position = cursor.peek().position;
        let value = value(cursor)?;
        let Some(offset) = number.checked_mul(self.size) else {
            return Err(Error::at(position, "this array is larger than any memory"));
        };
        self.elements.push(Element {
            offset,
            position,
            value,
        });
        Ok(())
    }
}

fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, Error> {
    let token = *cursor.peek();
    if is_address(cursor) {
        return address(cursor).map(Value::Address);
    }
    if token.kind == Kind::Number && cursor.peek_second().is(b'(') {
        return masked(cursor);
    }
    constant::expression(cursor, 0).map(Value::Constant)
}

fn is_address(cursor: &Cursor<'_>) -> bool {
    cursor.peek().kind == Kind::Word && !constant::starts(cursor.peek())
}

/// `0xFF00(name)`, `0xFF(1000 + 546)`
fn masked<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, Error> {
    let token = cursor.bump();
    let mask = constant::literal(&token)?
        .integer()
        .and_then(|mask| u64::try_from(mask).ok());
    let mask = match mask {
        Some(mask) if mask > 0 => mask,
        _ => return Err(Error::expected_at(&token, "a mask such as `0xFF00`")),
    };
    cursor.expect(b'(')?;
    let value = if is_address(cursor) {
        Value::Address(SymbolAddress {
            mask: Some(mask),
            ..address(cursor)?
        })
    } else {
        let position = cursor.peek().position;
        let bits = match constant::expression(cursor, 0)? {
            Constant::S64(value) => value.cast_unsigned(),
            Constant::U64(value) => value,
            Constant::F32(_) | Constant::F64(_) => {
                return Err(Error::at(
                    position,
                    "a mask is not for floating-point numbers",
                ));
            }
        };
        Value::Constant(Constant::U64((bits & mask) >> mask.trailing_zeros()))
    };
    cursor.expect(b')')?;
    Ok(value)
}

fn address<'a>(cursor: &mut Cursor<'a>) -> Result<SymbolAddress<'a>, Error> {
    let first = cursor.expect_word("a name")?;
    if first.text != "generic" || !cursor.peek().is(b'(') {
        let offset = offset(cursor, 0)?;
        return Ok(SymbolAddress {
            name: first.text,
            offset,
            generic: false,
            mask: None,
        });
    }
    cursor.expect(b'(')?;
    let name = cursor.expect_word("a name")?.text;
    let inner = offset(cursor, 0)?;
    cursor.expect(b')')?;
    let offset = offset(cursor, inner)?;
    Ok(SymbolAddress {
        name,
        offset,
        generic: true,
        mask: None,
    })
}

/// `+4`, `-8`, `+-8`, `+4*2-1`, added to what there is.
pub(crate) fn offset(cursor: &mut Cursor<'_>, start: i64) -> Result<i64, Error> {
    let mut offset = start;
    loop {
        let sign = *cursor.peek();
        let is_minus = sign.is(b'-');
        if !is_minus && !sign.is(b'+') {
            return Ok(offset);
        }
        cursor.bump();
        let position = cursor.peek().position;
        let term = constant::term(cursor, 0)?.integer();
        let sum = term.and_then(|term| {
            let term = if is_minus { -term } else { term };
            i64::try_from(i128::from(offset) + term).ok()
        });
        offset = sum.ok_or_else(|| Error::at(position, "this is no offset of 64 bits"))?;
    }
}
