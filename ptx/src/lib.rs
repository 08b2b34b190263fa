//! Reads PTX: the entries of a compiled CUDA kernel, their parameters and instructions.
//!
//! [`Module::parse`] reads what a text declares and steps over the code.
//! It accepts what compilers and people write, versions 1.4 to 9.5 of the language; where a declaration is
//! clear it does not mind what else is there, and where it is not, the [`Error`] says the line, the column
//! and what was expected. It opens no file, allocates in proportion to the text, and does not panic.
//!
//! ```
//! use gridcall_ptx::Module;
//!
//! let module = Module::parse(
//!     ".version 9.5
//!      .target sm_90
//!      .visible .entry scale(.param .u64 data, .param .f32 by) { ret; }",
//! )?;
//! for entry in module.entries() {
//!     println!("{} takes {} bytes", entry.name(), entry.params_size());
//! }
//! # Ok::<(), gridcall_ptx::Error>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod code;
mod constant;
mod entry;
mod error;
mod flow;
mod grid;
mod held;
mod initial;
mod lexer;
mod module;
mod number;
mod param;
mod parse;
mod suggest;
mod target;
mod types;
mod uses;
mod variable;

pub use code::{
    Address, Base, CallPrototype, Code, Declaration, Declared, Guard, Instruction, Loc, NameRange,
    Operand, SourcePlace, Statement,
};
pub use constant::Constant;
pub use entry::{Alias, Body, Directives, Entry, Function};
pub use error::{Error, Position};
pub use flow::{Access, Flow, IndirectCall, ParamFlow, Reach};
pub use grid::GridWaits;
pub use held::Held;
pub use initial::{Element, SymbolAddress, Value};
pub use module::Module;
pub use param::{Param, Pointer};
pub use suggest::closest;
pub use target::{Arch, Suffix, Target, Version, params_limit};
pub use types::{Class, Linkage, ScalarType, StateSpace};
pub use uses::VariableUse;
pub use variable::{File, Initializer, Variable};
