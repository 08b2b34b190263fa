//! Reads CUDA C++ text for the kernels and variables of the device that it declares.
//!
//! Not a compiler: it reads what is a signature, and the types that it names in the same text. What
//! it cannot tell, as what macros and other files make, is unknown and never wrong. It opens no
//! file, does not panic, and takes time in proportion to the text.

mod declarator;
mod lexer;
mod model;
mod parse;
mod preprocess;
mod words;

pub(crate) use model::{
    Enum, Function, Kernel, Param, Scalar, Source, Struct, Type, Variable, Vector,
};
pub(crate) use words::vector;

/// Reads a whole text.
pub(crate) fn read(text: &str) -> Source {
    let spliced = lexer::Spliced::new(text);
    parse::source(&preprocess::preprocess(&spliced))
}

#[cfg(test)]
mod tests;
