//! Code: the statements in the body of an entry or a function.
//!
//! It knows how PTX is written and not what an instruction does: opcodes and modifiers are words, and
//! operands have the form in which they stand. Everything borrows from the text.

mod operand;
mod parse;
mod statement;

pub use operand::{Address, Base, Operand};
pub use statement::{
    CallPrototype, Declaration, Declared, Guard, Instruction, Loc, NameRange, SourcePlace,
    Statement,
};

use crate::entry::Body;
use crate::error::Error;
use crate::initial::other_text;
use crate::lexer::Lexer;
use crate::parse::Cursor;

/// The statements of a body, in the order of the text.
///
/// ```
/// use gridcall_ptx::{Module, Operand, Statement};
///
/// let text = ".version 9.5
///     .target sm_90
///     .entry k(.param .u64 data) {
///         .reg .b64 %rd<2>;
///         ld.param.u64 %rd1, [data];
///         ret;
///     }";
/// let module = Module::parse(text)?;
/// let code = module.entries()[0].body().unwrap().parse(text)?;
///
/// let Statement::Instruction(load) = &code.statements()[1] else { panic!("a load") };
/// assert_eq!(load.opcode, "ld");
/// assert_eq!(load.modifiers, ["param", "u64"]);
/// assert_eq!(load.operands[0], Operand::Name("%rd1"));
/// assert_eq!(load.position.line, 5);
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Code<'a> {
    statements: Vec<Statement<'a>>,
}

impl<'a> Code<'a> {
    /// The statements; scopes are between an [`Statement::Open`] and a [`Statement::Close`].
    ///
    /// The braces of the body itself are not among them.
    #[must_use]
    pub fn statements(&self) -> &[Statement<'a>] {
        &self.statements
    }

    /// The instructions, in all scopes.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction<'a>> {
        self.statements
            .iter()
            .filter_map(|statement| match statement {
                Statement::Instruction(instruction) => Some(instruction),
                _ => None,
            })
    }
}

impl Body {
    /// Reads the code.
    ///
    /// `source` is the text that the module was read from.
    ///
    /// # Errors
    ///
    /// If a statement is not written as PTX is. That an instruction exists, or that a name is declared, is
    /// not looked at.
    pub fn parse<'a>(&self, source: &'a str) -> Result<Code<'a>, Error> {
        let lexer = Lexer::resume(source, self.start, self.end, self.position);
        let mut cursor = Cursor::at(lexer.ok_or_else(|| other_text(self.position))?);
        if !cursor.eat(b'{') {
            return Err(other_text(self.position));
        }
        let statements = parse::statements(&mut cursor)?;
        Ok(Code { statements })
    }
}
