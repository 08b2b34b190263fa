//! Compares layouts while the user's crate compiles, and says what differs.
//!
//! Everything here runs in constants, so the messages are built by hand: a constant can panic
//! with a text, and cannot format one.

use crate::{arg::KernelArg, text::Text};

/// How CUDA passes a type by value. Made by `#[derive(KernelArg)]`.
#[derive(Clone, Copy, Debug)]
pub struct ArgLayout {
    /// The size in bytes.
    pub size: usize,
    /// The alignment in bytes.
    pub align: usize,
    /// What PTX declares it as.
    pub class: Class,
    /// Whether there is a device pointer in it.
    pub has_pointer: bool,
    /// The scalar or vector that it is, by Rust's name for scalars and CUDA's for vectors; of an
    /// array, its elements' kind. Empty for a struct and for what is not known.
    pub kind: &'static str,
    /// What C++ calls a struct. Empty where that is not known.
    pub name: &'static str,
    /// The fields of a struct.
    pub fields: &'static [Field],
}

/// A field of a struct. Made by `#[derive(KernelArg)]`.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Where Rust places it, in bytes.
    pub offset: usize,
    /// How CUDA passes its type.
    pub layout: ArgLayout,
}

/// What PTX declares a parameter as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `.u8` to `.u64`, `.s8` to `.s64`.
    Integer,
    /// `.f32`, `.f64`.
    Float,
    /// An array of bytes: a struct, vector or half.
    Bytes,
    /// `.b8` to `.b64`: any scalar of the size.
    Bits,
}

/// What the PTX expects of a parameter. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The kernel's name in Rust.
    pub kernel: &'static str,
    /// The parameter, from 0.
    pub index: usize,
    /// Its name.
    pub param: &'static str,
    /// Its type, as declared.
    pub ty: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// What the PTX declares it as.
    pub class: Class,
    /// The parameter as the PTX writes it.
    pub ptx: &'static str,
    /// The PTX file and line.
    pub place: &'static str,
    /// Whether every caller is safe.
    pub safe: bool,
}

impl ArgLayout {
    /// What stands for the layout of a type whose derive was refused: one error for one mistake, so
    /// that nothing is compared with it.
    pub const REFUSED: ArgLayout = ArgLayout {
        size: 1,
        align: 1,
        class: Class::Bytes,
        has_pointer: false,
        kind: "refused",
        name: "",
        fields: &[],
    };

    const fn is_refused(&self) -> bool {
        matches!(self.kind.as_bytes(), b"refused")
    }

    pub(crate) const fn of_scalar<T>(class: Class, kind: &'static str) -> ArgLayout {
        ArgLayout {
            size: size_of::<T>(),
            align: align_of::<T>(),
            class,
            has_pointer: false,
            kind,
            name: "",
            fields: &[],
        }
    }

    /// The layout of a scalar by its name in Rust, `usize` being `u64`.
    pub(crate) const fn of_kind(kind: &'static str) -> ArgLayout {
        let class = match kind.as_bytes() {
            [b'f', ..] => Class::Float,
            _ => Class::Integer,
        };
        let size = match kind.as_bytes() {
            [.., b'1', b'6'] => 2,
            [.., b'3', b'2'] => 4,
            [.., b'6', b'4'] => 8,
            // `u8`, `i8` and `bool`
            _ => 1,
        };
        ArgLayout {
            size,
            align: size,
            class,
            has_pointer: false,
            kind,
            name: "",
            fields: &[],
        }
    }

    #[cfg_attr(not(feature = "num-complex"), allow(dead_code))]
    pub(crate) const fn of_bytes(size: usize, align: usize, kind: &'static str) -> ArgLayout {
        ArgLayout {
            size,
            align,
            class: Class::Bytes,
            has_pointer: false,
            kind,
            name: "",
            fields: &[],
        }
    }

    pub(crate) const fn of_array(element: ArgLayout, len: usize, stride: usize) -> ArgLayout {
        if element.is_refused() {
            return element;
        }
        assert!(
            element.size == stride,
            "an array whose elements have padding cannot be passed"
        );
        assert!(
            len > 0,
            "an array of no elements cannot be passed to a kernel"
        );
        ArgLayout {
            size: element.size * len,
            align: element.align,
            class: Class::Bytes,
            has_pointer: element.has_pointer,
            kind: element.kind,
            name: "",
            fields: element.fields,
        }
    }

    /// The layout of addresses of functions, one behind the other.
    pub(crate) const fn of_functions(count: usize) -> ArgLayout {
        ArgLayout {
            size: 8 * count,
            align: 8,
            class: Class::Integer,
            has_pointer: true,
            kind: "function",
            name: "",
            fields: &[],
        }
    }

    /// The same without its fields, which are not those that C++ gives the struct.
    #[must_use]
    pub const fn opaque(self) -> ArgLayout {
        ArgLayout {
            fields: &[],
            ..self
        }
    }

    /// The same by the name that C++ has for it.
    #[must_use]
    pub const fn named(self, name: &'static str) -> ArgLayout {
        ArgLayout { name, ..self }
    }

    /// The layout of a `#[repr(C)]` struct: its fields in order, with the place that Rust gives
    /// each, its layout and its name.
    ///
    /// # Panics
    ///
    /// While the crate compiles: where CUDA would place a field elsewhere.
    #[must_use]
    #[track_caller]
    pub const fn of_struct<T>(fields: &'static [Field]) -> ArgLayout {
        let mut end = 0_usize;
        let mut align = 1;
        let mut has_pointer = false;
        let mut index = 0;
        while index < fields.len() {
            let Field {
                name,
                offset,
                layout: field,
            } = fields[index];
            if field.is_refused() {
                return field;
            }
            let expected = end.next_multiple_of(field.align);
            if offset != expected {
                let text = Text::new()
                    .text("field `")
                    .text(name)
                    .text("` is at offset ")
                    .number(offset)
                    .text(" in Rust, and CUDA places it at ")
                    .number(expected)
                    .text(", since it aligns the type to ")
                    .number(field.align)
                    .text(" bytes; use a type of that alignment, or add padding fields");
                panic!("{}", text.as_str());
            }
            end = offset + field.size;
            if field.align > align {
                align = field.align;
            }
            has_pointer |= field.has_pointer;
            index += 1;
        }
        // An alignment that only Rust knows (repr(align)) is the user's word for __align__.
        if align_of::<T>() > align {
            align = align_of::<T>();
        }
        let size = end.next_multiple_of(align);
        if size != size_of::<T>() {
            let text = Text::new()
                .text("the struct has ")
                .number(size_of::<T>())
                .text(" bytes in Rust and ")
                .number(size)
                .text(" in CUDA, which aligns it to ")
                .number(align)
                .text("; give it #[repr(C, align(")
                .number(align)
                .text("))]");
            panic!("{}", text.as_str());
        }
        ArgLayout {
            size,
            align,
            class: Class::Bytes,
            has_pointer,
            kind: "",
            name: "",
            fields,
        }
    }
}

/// Compares the layout of a parameter's type with the PTX.
///
/// # Panics
///
/// While the crate compiles: if they differ.
#[track_caller]
pub const fn check_layout<T: KernelArg>(expected: Expected) {
    let found = T::LAYOUT;
    if found.is_refused() {
        return;
    }
    if expected.safe && found.has_pointer {
        let text = parameter(&expected)
            .text(" holds a device pointer, which a safe kernel cannot order or keep alive; declare the kernel `unsafe fn`, or pass the array as a parameter of its own");
        panic!("{}", text.as_str());
    }
    let same_class = match expected.class {
        Class::Bits => !matches!(found.class, Class::Bytes),
        class => class as u8 == found.class as u8,
    };
    if found.size == expected.size && found.align == expected.align && same_class {
        return;
    }
    let text = parameter(&expected)
        .text(" is ")
        .text(describe(found.class))
        .number(found.size)
        .text(" bytes, aligned to ")
        .number(found.align)
        .text(", but ")
        .text(expected.place)
        .text(" declares ")
        .text(expected.ptx)
        .text(": ")
        .text(describe(expected.class))
        .number(expected.size)
        .text(" bytes, aligned to ")
        .number(expected.align)
        .text(cure(&found, &expected));
    panic!("{}", text.as_str());
}

/// The layout of a static's type, compared with the variable in each PTX: size, alignment, the
/// variable as PTX writes it, and its place.
///
/// # Panics
///
/// While the crate compiles: if they differ, or the type holds a device pointer.
#[must_use]
#[track_caller]
pub const fn check_symbol<T: KernelArg>(
    name: &'static str,
    ty: &'static str,
    variables: &[(usize, usize, &'static str, &'static str)],
) -> ArgLayout {
    let found = T::LAYOUT;
    if found.is_refused() {
        return found;
    }
    if found.has_pointer {
        let text = Text::symbol(name, ty).text(", which holds a device pointer: a variable neither orders nor keeps alive what it points to; pass the array to the kernel, as `&[T]`");
        panic!("{}", text.as_str());
    }
    assert!(
        found.size == size_of::<T>(),
        "a type that has another size in CUDA than in Rust cannot be read"
    );
    let mut index = 0;
    while index < variables.len() {
        let (size, align, ptx, place) = variables[index];
        // A variable may be aligned to more than its type needs.
        if found.size != size || found.align > align {
            let text = Text::symbol(name, ty)
                .text(", ")
                .number(found.size)
                .text(" bytes, aligned to ")
                .number(found.align)
                .text(", but ")
                .text(place)
                .text(" declares `")
                .text(ptx)
                .text("`: ")
                .number(size)
                .text(" bytes, aligned to ")
                .number(align);
            panic!("{}", text.as_str());
        }
        index += 1;
    }
    found
}

/// Refuses device pointers in what a safe kernel takes by value.
///
/// # Panics
///
/// While the crate compiles: if there is one.
#[track_caller]
pub const fn check_safe<T: KernelArg>(
    kernel: &'static str,
    index: usize,
    param: &'static str,
    ty: &'static str,
    safe: bool,
) {
    let found = T::LAYOUT;
    check_layout::<T>(Expected {
        kernel,
        index,
        param,
        ty,
        size: found.size,
        align: found.align,
        class: found.class,
        ptx: "",
        place: "",
        safe,
    });
}

/// Where parameters lie that no PTX was seen of: as CUDA lays out their types. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct Places<const N: usize> {
    /// Where each starts.
    pub offsets: [usize; N],
    /// The bytes of each.
    pub sizes: [usize; N],
    /// The alignment of each.
    pub aligns: [usize; N],
    /// The end of the last.
    pub size: usize,
}

impl<const N: usize> Places<N> {
    /// The places of parameters of these sizes and alignments.
    #[must_use]
    pub const fn new(layouts: [(usize, usize); N]) -> Places<N> {
        let mut places = Places {
            offsets: [0; N],
            sizes: [0; N],
            aligns: [1; N],
            size: 0,
        };
        let mut index = 0;
        while index < N {
            let (size, align) = layouts[index];
            let offset = places.size.next_multiple_of(align);
            places.offsets[index] = offset;
            places.sizes[index] = size;
            places.aligns[index] = align;
            places.size = offset + size;
            index += 1;
        }
        places
    }
}

/// How CUDA lays out a type.
#[must_use]
pub const fn size_and_align<T: KernelArg>() -> (usize, usize) {
    (T::LAYOUT.size, T::LAYOUT.align)
}

/// Refuses element types without a size.
///
/// # Panics
///
/// While the crate compiles: if `T` has no size.
#[track_caller]
pub const fn check_element<T>(kernel: &'static str, index: usize, param: &'static str) {
    if size_of::<T>() == 0 {
        let text = Text::parameter(kernel, index, param)
            .text(" is an array of a type without a size, which the device cannot have");
        panic!("{}", text.as_str());
    }
}

const fn parameter(expected: &Expected) -> Text {
    Text::parameter(expected.kernel, expected.index, expected.param)
        .text(": `")
        .text(expected.ty)
        .text("`")
}

const fn describe(class: Class) -> &'static str {
    match class {
        Class::Integer => "an integer of ",
        Class::Float => "a float of ",
        Class::Bytes => "a struct of ",
        Class::Bits => "a scalar of ",
    }
}

const fn cure(found: &ArgLayout, expected: &Expected) -> &'static str {
    match (expected.class, expected.size, expected.align) {
        (Class::Bytes, 12, 4) if found.size == 16 => {
            "; CUDA's `float3` has 12 bytes: use `Float3` or `[f32; 3]`"
        }
        (Class::Bytes, _, 16) if found.align < 16 => {
            "; CUDA's 16-byte vectors, such as `float4`, are aligned to 16: use `Float4` and the like"
        }
        (Class::Bytes, _, 8) if found.align < 8 => {
            "; CUDA's 8-byte vectors, such as `float2`, are aligned to 8: use `Float2` and the like"
        }
        (Class::Integer, 8, _) if found.size == 4 => "; C's `size_t` is `usize`",
        _ => "",
    }
}
