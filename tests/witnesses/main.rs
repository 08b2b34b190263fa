//! What contradicts a declaration, and what does not.

mod compiler;
mod counts;
mod right;
