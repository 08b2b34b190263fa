//! Compares structs and elements with what the CUDA source and the code say of them, while the
//! user's crate compiles.

use std::marker::PhantomData;

use crate::{arg::KernelArg, layout::ArgLayout, text::Text};

/// A struct of the CUDA source. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct Counterpart {
    /// The kernel's name in Rust.
    pub kernel: &'static str,
    /// The parameter, from 0.
    pub index: usize,
    /// Its name.
    pub param: &'static str,
    /// The type in Rust, as declared.
    pub ty: &'static str,
    /// The struct's name in C++.
    pub name: &'static str,
    /// Where the source defines it.
    pub place: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// Its fields in order.
    pub fields: &'static [CounterpartField],
}

/// A field of a struct of the CUDA source. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct CounterpartField {
    /// Its name.
    pub name: &'static str,
    /// Where C++ places it, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// What it is, as [`ArgLayout::kind`]; `char` may have either sign.
    pub kind: &'static str,
    /// Its type, as messages call it.
    pub ty: &'static str,
    /// Where the source declares it.
    pub place: &'static str,
}

/// The layout of a type, if it can be passed to kernels.
#[derive(Debug)]
pub struct LayoutOf<T>(PhantomData<T>);

impl<T: KernelArg> LayoutOf<T> {
    /// What is there for types that implement [`KernelArg`]; others have that of [`NoLayout`].
    pub const LAYOUT: Option<ArgLayout> = Some(T::LAYOUT);
}

/// What is there for all types.
pub trait NoLayout {
    /// No layout.
    const LAYOUT: Option<ArgLayout> = None;
}

impl<T> NoLayout for LayoutOf<T> {}

/// Compares the fields of a struct with those in the source.
///
/// # Panics
///
/// While the crate compiles: if they differ.
#[track_caller]
pub const fn check_fields(layout: Option<ArgLayout>, expected: &Counterpart) {
    let Some(layout) = layout else { return };
    // A type of the user's own making may be any bytes, and an empty struct of C++ is any byte.
    if layout.fields.is_empty() || expected.fields.is_empty() {
        return;
    }
    let fields = layout.fields;
    let mut index = 0;
    while index < fields.len() && index < expected.fields.len() {
        let (field, counterpart) = (&fields[index], &expected.fields[index]);
        let moved = moved(layout.fields, expected.fields, index);
        if field.offset != counterpart.offset
            || field.layout.size != counterpart.size
            || !is_same_kind(field.layout.kind, counterpart.kind)
            || moved
        {
            let text = subject(expected)
                .text(": field ")
                .number(index)
                .text(" is `")
                .text(field.name)
                .text("`, ")
                .text(kind(&field.layout))
                .text(" of ")
                .number(field.layout.size)
                .text(" bytes at offset ")
                .number(field.offset)
                .text(", but ")
                .text(counterpart.place)
                .text(" declares `")
                .text(counterpart.ty)
                .text(" ")
                .text(counterpart.name)
                .text("`, ")
                .number(counterpart.size)
                .text(" bytes at offset ")
                .number(counterpart.offset)
                .text(if moved {
                    "; the fields are in another order: write them in the order of the source"
                } else {
                    "; write the fields as the source does"
                });
            panic!("{}", text.as_str());
        }
        index += 1;
    }
    if fields.len() != expected.fields.len() {
        let text = subject(expected)
            .text(" has ")
            .number(fields.len())
            .text(" fields, but ")
            .text(expected.place)
            .text(" defines `")
            .text(expected.name)
            .text("` with ")
            .number(expected.fields.len())
            .text("; write the fields as the source does");
        panic!("{}", text.as_str());
    }
    if layout.size != expected.size {
        let text = subject(expected)
            .text(" has ")
            .number(layout.size)
            .text(" bytes, but ")
            .text(expected.place)
            .text(" defines `")
            .text(expected.name)
            .text("` with ")
            .number(expected.size);
        panic!("{}", text.as_str());
    }
}

/// Compares the alignment of elements with what the code accesses at once.
///
/// # Panics
///
/// While the crate compiles: if the code needs more.
#[track_caller]
pub const fn check_access<T>(
    kernel: &'static str,
    index: usize,
    param: &'static str,
    bytes: usize,
    place: &'static str,
) {
    // A type without a size is refused for what it is.
    if align_of::<T>() < bytes && size_of::<T>() > 0 {
        let text = Text::parameter(kernel, index, param)
            .text(": the kernel accesses ")
            .number(bytes)
            .text(" bytes at once at ")
            .text(place)
            .text(", and its elements are aligned to ")
            .number(align_of::<T>())
            .text("; write `#[align(")
            .number(bytes)
            .text(")]` in front of the parameter, or declare the elements that the kernel takes");
        panic!("{}", text.as_str());
    }
}

const fn subject(expected: &Counterpart) -> Text {
    Text::parameter(expected.kernel, expected.index, expected.param)
        .text(": `")
        .text(expected.ty)
        .text("`")
}

const fn kind(layout: &ArgLayout) -> &'static str {
    if layout.kind.is_empty() {
        "a struct"
    } else {
        layout.kind
    }
}

/// Whether a field has the name of another field of the source, which has its name in turn.
const fn moved(fields: &[crate::layout::Field], all: &[CounterpartField], index: usize) -> bool {
    let here = all[index].name;
    if is_same(fields[index].name, here) {
        return false;
    }
    let (mut theirs, mut ours) = (false, false);
    let mut other = 0;
    while other < all.len() {
        theirs |= is_same(all[other].name, fields[index].name);
        other += 1;
    }
    other = 0;
    while other < fields.len() {
        ours |= is_same(fields[other].name, here);
        other += 1;
    }
    theirs && ours
}

/// Kinds of which one is not known are no contradiction.
const fn is_same_kind(one: &str, other: &str) -> bool {
    one.is_empty()
        || other.is_empty()
        || is_same(one, other)
        || is_same(other, "char") && (is_same(one, "i8") || is_same(one, "u8"))
        || is_same(other, "pointer") && is_same(one, "u64")
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}
