//! gridcall.
