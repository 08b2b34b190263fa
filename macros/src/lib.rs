//! The procedural macros of `gridcall`, which re-exports and documents them.
//!
//! A declaration passes through stages, each taking what the former gives: `input` and `kernel`
//! read it, `artifact` opens its PTX, `check` compares the two, `expand` writes the code. What is
//! wrong is collected in a `report` and told together.

#![forbid(unsafe_code)]

mod arity;
mod artifact;
mod attribute;
mod check;
mod claims;
mod contract;
mod cuda;
mod derive;
mod describe;
mod expand;
mod family;
mod input;
mod kernel;
mod lifetime;
mod machine_code;
mod mangled;
mod report;
mod span;
mod stages;
mod statics;
mod suggest;
mod symbol;
#[cfg(test)]
mod tests;
mod value;
mod witness;

use proc_macro::TokenStream;

/// Declares kernels; see `gridcall::kernel`.
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    stages::kernel(options.into(), item.into()).into()
}

/// Lets a struct or enum be passed to kernels by value; see `gridcall::KernelArg`.
#[proc_macro_derive(KernelArg, attributes(kernel_arg))]
pub fn derive_kernel_arg(item: TokenStream) -> TokenStream {
    derive(item, derive::kernel_arg)
}

/// Lets a struct that wraps a device array be passed as that array; see `gridcall::AsDeviceView`.
#[proc_macro_derive(AsDeviceView, attributes(view))]
pub fn derive_as_device_view(item: TokenStream) -> TokenStream {
    derive(item, derive::as_device_view)
}

/// Lets a struct that wraps a device array be written as that array; see
/// `gridcall::AsDeviceViewMut`.
#[proc_macro_derive(AsDeviceViewMut, attributes(view))]
pub fn derive_as_device_view_mut(item: TokenStream) -> TokenStream {
    derive(item, derive::as_device_view_mut)
}

fn derive(
    item: TokenStream,
    expand: fn(&syn::DeriveInput) -> proc_macro2::TokenStream,
) -> TokenStream {
    match syn::parse(item) {
        Ok(input) => expand(&input).into(),
        Err(error) => error.into_compile_error().into(),
    }
}
