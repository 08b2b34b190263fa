//! What a device function takes and returns, compared with PTX: by the macro's word in constants,
//! while the user's crate compiles, and with a module that is loaded later.

use crate::{
    function::{DeviceFunction, Functions},
    layout::{ArgLayout, Class},
    text::Text,
};

/// How CUDA C++ passes the parameters of a function, and its result.
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    /// The parameters in order.
    pub params: &'a [ArgLayout],
    /// What it returns, if anything.
    pub result: Option<ArgLayout>,
}

/// A `.func`, or a `.callprototype`, as it is in PTX. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct PtxFunction<'a> {
    /// What the PTX does, and where: "k.ptx:7 initialises it with `_Z6squaref`, declared at k.ptx:3 as".
    pub said: &'a str,
    /// The signature as messages show it: `(.b32) -> .b32`.
    pub shown: &'a str,
    /// The parameters in order.
    pub params: &'a [PtxPart],
    /// What it returns, if anything.
    pub result: Option<PtxPart>,
}

/// A parameter of a function in PTX, or its result. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct PtxPart {
    /// The bytes.
    pub size: usize,
    /// The alignment.
    pub align: usize,
    /// What it is declared as.
    pub class: Class,
}

impl Signature<'_> {
    /// What differs, to stand behind the subject.
    pub(crate) const fn differs(&self, ptx: &PtxFunction<'_>) -> Option<Text> {
        let (has, needs) = (self.params.len(), ptx.params.len());
        let text = Text::new()
            .text(", but ")
            .text(ptx.said)
            .text(" `")
            .text(ptx.shown)
            .text("`: ");
        if has != needs {
            let text = text
                .text("it takes ")
                .number(needs)
                .text(if needs == 1 {
                    " parameter"
                } else {
                    " parameters"
                })
                .text(", not ")
                .number(has);
            return Some(text);
        }
        let mut index = 0;
        while index < has {
            if !fits(&self.params[index], &ptx.params[index]) {
                let text = text.text("its parameter ").number(index).text(" is ");
                return Some(text.against(&ptx.params[index], &self.params[index]));
            }
            index += 1;
        }
        match (self.result, ptx.result) {
            (Some(_), None) => Some(text.text("it returns nothing")),
            (None, Some(of)) => Some(text.text("it returns ").part(of.class, of.size, of.align)),
            (Some(own), Some(of)) if !fits(&own, &of) => {
                Some(text.text("it returns ").against(&of, &own))
            }
            _ => None,
        }
    }
}

/// Whether PTX passes a type so. Compilers pass small integers as 32 bits.
const fn fits(own: &ArgLayout, ptx: &PtxPart) -> bool {
    let widened = matches!(own.class, Class::Integer) && own.size < 4 && ptx.size == 4;
    if own.size != ptx.size && !widened {
        return false;
    }
    match (own.class, ptx.class) {
        // A function may ask for more than its type needs.
        (Class::Bytes, Class::Bytes) => ptx.align >= own.align,
        // Halves are structs to nvcc, and scalars to others.
        (Class::Bytes, Class::Bits) => matches!(
            own.kind.as_bytes(),
            b"f16" | b"bf16" | b"e4m3" | b"e5m2" | b"u128" | b"i128"
        ),
        (Class::Integer, Class::Integer | Class::Bits)
        | (Class::Float, Class::Float | Class::Bits) => true,
        _ => false,
    }
}

impl Text {
    const fn against(self, ptx: &PtxPart, own: &ArgLayout) -> Text {
        self.part(ptx.class, ptx.size, ptx.align)
            .text(", not ")
            .part(own.class, own.size, own.align)
    }

    const fn part(self, class: Class, size: usize, align: usize) -> Text {
        let what = match class {
            Class::Integer => "an integer of ",
            Class::Float => "a float of ",
            Class::Bytes => "a struct of ",
            Class::Bits => "a scalar of ",
        };
        let bytes = if size == 1 { " byte" } else { " bytes" };
        let text = self.text(what).number(size).text(bytes);
        match class {
            Class::Bytes => text.text(", aligned to ").number(align),
            _ => text,
        }
    }
}

/// Compares the type of a kernel's parameter with the prototypes by which the kernel calls it.
///
/// # Panics
///
/// While the crate compiles: if they differ.
#[track_caller]
pub const fn check_calls<F: DeviceFunction>(
    kernel: &'static str,
    index: usize,
    param: &'static str,
    ty: &'static str,
    calls: &[PtxFunction<'_>],
) {
    let mut call = 0;
    while call < calls.len() {
        if let Some(differs) = F::SIGNATURE.differs(&calls[call]) {
            let text = Text::parameter(kernel, index, param)
                .text(" is `")
                .text(ty)
                .text("`")
                .text(differs.as_str());
            panic!("{}", text.as_str());
        }
        call += 1;
    }
}

/// Compares the type of a static of functions with the functions that the PTX initialises it with,
/// and gives its layout.
///
/// # Panics
///
/// While the crate compiles: if they differ.
#[must_use]
#[track_caller]
pub const fn check_functions<T: Functions>(
    name: &'static str,
    ty: &'static str,
    variables: &[(usize, usize, &'static str, &'static str)],
    functions: &[PtxFunction<'_>],
) -> ArgLayout {
    let layout = ArgLayout::of_functions(T::COUNT);
    let mut index = 0;
    while index < variables.len() {
        let (size, align, ptx, place) = variables[index];
        if layout.size != size || layout.align > align {
            let text = Text::symbol(name, ty)
                .text(", ")
                .number(T::COUNT)
                .text(if T::COUNT == 1 {
                    " function"
                } else {
                    " functions"
                })
                .text(" in ")
                .number(layout.size)
                .text(" bytes, but ")
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
    let mut index = 0;
    while index < functions.len() {
        if let Some(differs) = T::Function::SIGNATURE.differs(&functions[index]) {
            let text = Text::symbol(name, ty).text(differs.as_str());
            panic!("{}", text.as_str());
        }
        index += 1;
    }
    layout
}
