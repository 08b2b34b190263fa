//! Reads PTX.
