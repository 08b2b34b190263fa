//! What a C++ text says of kernels and types, as far as a Rust declaration can be compared with it.

use std::fmt;
use std::sync::Arc;

/// The kernels of one text.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) kernels: Vec<Kernel>,
    /// The `__constant__` and `__device__` variables whose type can be told.
    pub(crate) variables: Vec<Variable>,
    /// The names of the structs, in whatever namespace.
    pub(crate) structs: Vec<String>,
    /// Whether there may be kernels that cannot be seen here, from other files or macros.
    pub(crate) open: bool,
}

/// A `__global__` function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// `a::b`, or nothing.
    pub(crate) namespace: String,
    /// The arguments of an instance, as written.
    pub(crate) instance: Option<String>,
    pub(crate) is_template: bool,
    /// None where the list cannot be told.
    pub(crate) params: Option<Vec<Param>>,
    /// The line of its name.
    pub(crate) line: u32,
}

/// A variable of the device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// `a::b`, or nothing.
    pub(crate) namespace: String,
    pub(crate) ty: Type,
    /// As written, without its value.
    pub(crate) text: String,
    pub(crate) is_const: bool,
    /// The line of its name.
    pub(crate) line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: Option<String>,
    pub(crate) ty: Type,
    /// The type as written.
    pub(crate) text: String,
    pub(crate) line: u32,
}

/// A type of C++.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Void,
    Scalar(Scalar),
    /// `float4`, `cuComplex`: scalars side by side.
    Vector(Vector),
    /// A pointer, a reference, or an array as a parameter.
    Pointer(Box<Pointee>),
    /// An array in a struct; no length where that is an expression.
    Array(Box<Type>, Option<usize>),
    Struct(Arc<Struct>),
    Enum(Enum),
    /// A function, as what a pointer points to.
    Function(Function),
    /// A type of which no more than its name is known.
    Named(String),
    Unknown,
}

/// The type of a function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) params: Vec<Type>,
    pub(crate) result: Box<Type>,
}

/// What a pointer points to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pointee {
    pub(crate) ty: Type,
    pub(crate) is_const: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Bool,
    /// `char` alone, whose sign is the platform's.
    Char,
    Int {
        size: usize,
        signed: bool,
    },
    Float {
        size: usize,
    },
    Half,
    Bfloat16,
    Fp8E4m3,
    Fp8E5m2,
}

/// Scalars that CUDA passes as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) scalar: Scalar,
    pub(crate) lanes: usize,
    pub(crate) align: usize,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Struct {
    pub(crate) name: String,
    /// None where they cannot be told, as in unions and derived classes.
    pub(crate) fields: Option<Vec<Field>>,
    /// What `__align__` or `alignas` asks for.
    pub(crate) align: usize,
    pub(crate) line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Type,
    /// The type as written.
    pub(crate) text: String,
    pub(crate) line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Enum {
    pub(crate) name: String,
    /// The integer that it is passed as, if the text says it.
    pub(crate) underlying: Option<Scalar>,
}

/// Bytes and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) size: usize,
    pub(crate) align: usize,
}

impl Scalar {
    pub(crate) fn size(self) -> usize {
        match self {
            Scalar::Bool | Scalar::Char | Scalar::Fp8E4m3 | Scalar::Fp8E5m2 => 1,
            Scalar::Int { size, .. } | Scalar::Float { size } => size,
            Scalar::Half | Scalar::Bfloat16 => 2,
        }
    }
}

impl Type {
    pub(crate) fn pointer_to(ty: Type, is_const: bool) -> Type {
        Type::Pointer(Box::new(Pointee { ty, is_const }))
    }

    /// None where a part of the type is not known.
    pub(crate) fn layout(&self) -> Option<Layout> {
        match self {
            Type::Void | Type::Function(_) | Type::Named(_) | Type::Unknown => None,
            Type::Scalar(scalar) => Some(Layout {
                size: scalar.size(),
                align: scalar.size(),
            }),
            Type::Vector(vector) => {
                let size = vector.scalar.size() * vector.lanes;
                Some(Layout {
                    size,
                    align: vector.align,
                })
            }
            Type::Pointer(_) => Some(Layout { size: 8, align: 8 }),
            Type::Array(element, count) => {
                let element = element.layout()?;
                Some(Layout {
                    size: element.size.checked_mul((*count)?)?,
                    align: element.align,
                })
            }
            Type::Struct(structure) => structure.layout(),
            Type::Enum(enumeration) => {
                let size = enumeration.underlying.map_or(4, Scalar::size);
                Some(Layout { size, align: size })
            }
        }
    }

    /// The scalar that all of the type consists of, side by side and without padding.
    pub(crate) fn only_scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(scalar) => Some(*scalar),
            Type::Vector(vector) => Some(vector.scalar),
            Type::Array(element, _) => element.only_scalar(),
            Type::Struct(structure) => {
                let fields = structure.fields.as_ref()?;
                let scalar = fields.first()?.ty.only_scalar()?;
                let all = fields
                    .iter()
                    .all(|field| field.ty.only_scalar() == Some(scalar));
                let size: Option<usize> = fields
                    .iter()
                    .map(|field| Some(field.ty.layout()?.size))
                    .sum();
                (all && size == Some(structure.layout()?.size)).then_some(scalar)
            }
            _ => None,
        }
    }
}

impl Struct {
    /// None where the fields are not known.
    pub(crate) fn layout(&self) -> Option<Layout> {
        let (end, mut align) = (self.offsets()?.1, self.align.max(1));
        for field in self.fields.as_ref()? {
            align = align.max(field.ty.layout()?.align);
        }
        // C++ gives an empty struct a byte.
        Some(Layout {
            size: end.max(1).checked_next_multiple_of(align)?,
            align,
        })
    }

    /// Where each field starts, and where the last one ends.
    pub(crate) fn offsets(&self) -> Option<(Vec<usize>, usize)> {
        let (mut offsets, mut end) = (Vec::new(), 0_usize);
        for field in self.fields.as_ref()? {
            let layout = field.ty.layout()?;
            let offset = end.checked_next_multiple_of(layout.align)?;
            offsets.push(offset);
            end = offset.checked_add(layout.size)?;
        }
        Some((offsets, end))
    }
}

impl Kernel {
    /// `math::add`.
    pub(crate) fn path(&self) -> String {
        path(&self.namespace, &self.name)
    }
}

impl Variable {
    /// `math::offset`.
    pub(crate) fn path(&self) -> String {
        path(&self.namespace, &self.name)
    }
}

fn path(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}::{name}"),
    }
}

/// `math::add(const float*, int)`.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path())?;
        if let Some(instance) = &self.instance {
            write!(f, "<{instance}>")?;
        }
        let Some(params) = &self.params else {
            return f.write_str("(..)");
        };
        let params: Vec<&str> = params.iter().map(|param| param.text.as_str()).collect();
        write!(f, "({})", params.join(", "))
    }
}
