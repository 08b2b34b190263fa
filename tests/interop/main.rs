//! Arrays of other libraries, launched on whatever driver there is.

#[expect(
    dead_code,
    unused_macros,
    reason = "shared with the tests of launching, which need more of it"
)]
#[macro_use]
#[path = "../launch/support.rs"]
mod support;

mod kernels;
mod made;
mod order;
mod strided;
mod tensors;
