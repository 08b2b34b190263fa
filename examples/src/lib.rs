//! The examples of gridcall.
