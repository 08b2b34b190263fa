//! Which name was meant.

pub(crate) use gridcall_ptx::closest;
