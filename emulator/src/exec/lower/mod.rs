//! Lowers a module: from the text's statements to micro-operations.
//!
//! What PTX does not have is an error, as it is for a driver. What it has and the interpreter does not becomes
//! [`Op::Unsupported`] and is listed, so that the module's other kernels can be used.

mod body;
mod bulk;
mod flow;
mod image;
mod instruction;
mod lenient;
mod matrix;
mod memory;
mod module;
mod names;
mod operand;
mod registers;
mod synchronise;

pub(super) use body::Draft;
pub(super) use module::lower;

use super::program::LowerError;
use gridcall_ptx::Position;

/// Why an instruction is not lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The interpreter does not know it.
    Unsupported,
    /// It is no PTX: what is wrong with it.
    Invalid(String),
}

type Lowered<T> = Result<T, Refusal>;

fn invalid<T>(message: impl Into<String>) -> Lowered<T> {
    Err(Refusal::Invalid(message.into()))
}

fn error(position: Position, message: impl Into<String>) -> LowerError {
    LowerError {
        position: super::TextPosition {
            line: position.line,
            column: position.column,
        },
        message: message.into(),
        not_ptx: false,
        unknown_version: None,
    }
}
