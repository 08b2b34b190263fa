//! What `#[kernel]` hands over: a kernel as declared and as found in its PTX.

use crate::{attributes::Needs, layout::ArgLayout, signature::Signature};

/// A declared kernel. Made by `#[kernel]`.
#[derive(Debug)]
pub struct Declaration {
    /// The function's name in Rust.
    pub kernel: &'static str,
    /// The entry's name in the PTX, where it is the same in all.
    pub entry: &'static str,
    /// The images that hold it; none if they are known only when the program runs.
    pub variants: &'static [Variant],
    /// The source file of the declaration.
    pub file: &'static str,
    /// The line of the declaration.
    pub line: u32,
    /// The parameters in order, laid out as in the PTX.
    pub params: &'static [Param],
    /// The end of the last parameter in bytes, without padding behind it.
    pub params_size: usize,
    /// The contracts, as declared.
    pub requires: &'static [&'static str],
    /// `#[block(..)]`.
    pub block: Option<[u32; 3]>,
    /// What the declaration asks of a launch besides; nothing of what an image says.
    pub needs: Needs,
    /// Pairs of parameters that may overlap though one is written, the lower index first.
    pub may_alias: &'static [(usize, usize)],
    /// What the kernel is to C++.
    pub cpp: Cpp,
    /// The variables that its block declares `static mut`, by their names in the module; for kernels
    /// without `ptx = ..`.
    pub statics_mut: &'static [&'static str],
}

/// A declared variable of a module. Made by `#[kernel]`.
#[derive(Debug)]
pub struct StaticDeclaration {
    /// The static's name in Rust.
    pub name: &'static str,
    /// The variable's name in the module, where it is the same in all.
    pub symbol: &'static str,
    /// The images that hold it; none if they are known only when the program runs.
    pub variants: &'static [Variable],
    /// Its name in C++ with namespaces, if it can be named from outside of functions.
    pub cpp: Option<&'static str>,
    /// The CUDA source, as the declaration names it.
    pub source: Option<&'static str>,
    /// The source file of the declaration.
    pub file: &'static str,
    /// The line of the declaration.
    pub line: u32,
    /// Its type, as declared.
    pub ty: &'static str,
    /// How CUDA lays out that type.
    pub layout: ArgLayout,
    /// Whether it is declared `static mut`.
    pub mutable: bool,
    /// The type of the functions whose addresses it holds, if it does.
    pub functions: Option<Signature<'static>>,
}

/// A variable in one of its images. Made by `#[kernel]`.
#[derive(Debug)]
pub struct Variable {
    /// The PTX.
    pub image: &'static Image,
    /// Its name in it.
    pub symbol: &'static str,
    /// The line that declares it there.
    pub line: u32,
    /// Its state space there, `.const` or `.global`.
    pub space: &'static str,
}

/// A variable that a kernel uses. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    /// The variable's name in the module.
    pub symbol: &'a str,
    /// Whether the kernel's block declares it `static mut`.
    pub ordered: bool,
    /// Whether the kernel may write it.
    pub writes: bool,
}

/// A kernel in one of its images. Made by `#[kernel]`.
#[derive(Debug)]
pub struct Variant {
    /// The PTX.
    pub image: &'static Image,
    /// The entry's name in it.
    pub entry: &'static str,
    /// The entry's `.reqntid`.
    pub reqntid: Option<[u32; 3]>,
    /// The entry's `.maxntid`.
    pub maxntid: Option<[u32; 3]>,
    /// What else the declaration and the entry ask of a launch.
    pub needs: Needs,
    /// The variables of the module that the entry uses.
    pub touches: &'static [Touch<'static>],
}

/// A kernel as C++ names it. Made by `#[kernel]`.
#[derive(Debug)]
pub struct Cpp {
    /// Its name with namespaces and template arguments.
    pub name: &'static str,
    /// The types of its parameters, if its name in the PTX says them.
    pub params: Option<&'static str>,
    /// The file that declares it, as the declaration names it.
    pub source: Option<&'static str>,
    /// The type that its template is instantiated by, if the name does not say it.
    pub instance: Option<Instance>,
}

/// The type of an instance. Made by `#[kernel]`.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// The type, as declared.
    pub ty: &'static str,
    /// How CUDA passes it by value, if it does.
    pub layout: Option<ArgLayout>,
}

impl Declaration {
    /// The files that hold the kernel, as messages call them.
    pub(crate) fn path(&self) -> &'static str {
        self.variants
            .first()
            .map_or("a module", |first| first.image.path)
    }
}

impl StaticDeclaration {
    /// The files that hold the variable, as messages call them.
    pub(crate) fn path(&self) -> &'static str {
        self.variants
            .first()
            .map_or("a module", |first| first.image.path)
    }
}

/// A compiled module. Made by `#[kernel]`.
#[derive(Debug)]
pub struct Image {
    /// The PTX file, as the declaration names it.
    pub path: &'static str,
    /// Its text, as it is in the file.
    pub ptx: &'static [u8],
    /// Its `.version`.
    pub version: (u32, u32),
    /// Its `.target`, with options.
    pub target: &'static str,
    /// The same kernels as machine code, for some devices.
    pub code: &'static [MachineCode],
}

/// A cubin or a fatbin. Made by `#[kernel]`, which saw that it is whole.
#[derive(Debug, PartialEq, Eq)]
pub struct MachineCode {
    /// The file, as the declaration names it.
    pub path: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// A declared parameter. Made by `#[kernel]`.
#[derive(Debug)]
pub struct Param {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its type, as declared.
    pub ty: &'static str,
    /// Its place in the parameter block in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub align: usize,
    /// How it is passed.
    pub pass: Pass,
}

/// How an argument is passed. Made by `#[kernel]`.
#[derive(Debug)]
pub enum Pass {
    /// By value.
    Value(Option<ArgLayout>),
    /// By the address of a function of this type.
    Function(Signature<'static>),
    /// By the address of its first element.
    Array {
        /// Whether the declaration lets the kernel write.
        written: bool,
        /// Whether the kernel's code certainly does not write, whatever its types say.
        read_only: bool,
        /// The size of an element in bytes.
        size: usize,
        /// How CUDA passes an element by value, if it does.
        element: Option<ArgLayout>,
    },
}

impl Param {
    /// A scalar by value, of a kind that [`ArgLayout`] has a name for.
    #[must_use]
    pub const fn scalar(
        name: &'static str,
        ty: &'static str,
        offset: usize,
        kind: &'static str,
    ) -> Param {
        let layout = ArgLayout::of_kind(kind);
        Param {
            name,
            ty,
            offset,
            size: layout.size,
            align: layout.align,
            pass: Pass::Value(Some(layout)),
        }
    }

    /// An array of such scalars.
    #[must_use]
    pub const fn array(
        name: &'static str,
        ty: &'static str,
        offset: usize,
        kind: &'static str,
        written: bool,
        read_only: bool,
    ) -> Param {
        let layout = ArgLayout::of_kind(kind);
        Param {
            name,
            ty,
            offset,
            size: 8,
            align: 8,
            pass: Pass::Array {
                written,
                read_only,
                size: layout.size,
                element: Some(layout),
            },
        }
    }
}
