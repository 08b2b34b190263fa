//! The tests of gridcall.
