//! Types of a declaration in the terms of CUDA C++, as far as their names tell.

use gridcall_ptx as ptx;
use syn::{Expr, GenericArgument, Lit, PathArguments, Type};

use crate::cuda::{self, Scalar};
use crate::describe;
use crate::value::{self, Shape};

/// A Rust type by its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rust {
    Scalar(Scalar),
    /// `Float4`, `Complex<f32>`.
    Vector(cuda::Vector),
    Array(Box<Rust>, Option<usize>),
    Pointer,
    /// `()`, `c_void`.
    Void,
    /// A type of the user's, by the last part of its path.
    Other(String),
}

impl Rust {
    pub(crate) fn of(ty: &Type) -> Rust {
        match ty {
            Type::Group(group) => Rust::of(&group.elem),
            Type::Paren(paren) => Rust::of(&paren.elem),
            Type::Ptr(_) => Rust::Pointer,
            Type::Tuple(tuple) if tuple.elems.is_empty() => Rust::Void,
            Type::Array(array) => {
                let count = match &array.len {
                    Expr::Lit(literal) => match &literal.lit {
                        Lit::Int(count) => count.base10_parse().ok(),
                        _ => None,
                    },
                    _ => None,
                };
                Rust::Array(Box::new(Rust::of(&array.elem)), count)
            }
            Type::Path(_) => Rust::of_path(ty),
            _ => Rust::Other(describe::ty(ty)),
        }
    }

    fn of_path(ty: &Type) -> Rust {
        if let Some(known) = value::known(ty) {
            let shown = describe::ty(ty);
            let name = shown.rsplit("::").next().unwrap_or(&shown);
            return Rust::Scalar(match known.shape {
                _ if name == "bool" => Scalar::Bool,
                Shape::Float => Scalar::Float { size: known.size },
                Shape::Integer | Shape::Bytes => Scalar::Int {
                    size: known.size,
                    signed: name.starts_with('i'),
                },
            });
        }
        let Type::Path(path) = ty else {
            return Rust::Other(describe::ty(ty));
        };
        let Some(last) = path.path.segments.last() else {
            return Rust::Other(String::new());
        };
        let name = last.ident.to_string();
        match (name.as_str(), &last.arguments) {
            ("f16", PathArguments::None) => Rust::Scalar(Scalar::Half),
            ("bf16", PathArguments::None) => Rust::Scalar(Scalar::Bfloat16),
            ("F8E4M3", PathArguments::None) => Rust::Scalar(Scalar::Fp8E4m3),
            ("F8E5M2", PathArguments::None) => Rust::Scalar(Scalar::Fp8E5m2),
            ("c_void", PathArguments::None) => Rust::Void,
            ("DevicePointer" | "DevicePointerMut", _) => Rust::Pointer,
            ("Complex", PathArguments::AngleBracketed(arguments)) => {
                let part = arguments.args.first().and_then(|argument| match argument {
                    GenericArgument::Type(ty) => Some(Rust::of(ty)),
                    _ => None,
                });
                let name = match part {
                    Some(Rust::Scalar(Scalar::Float { size: 4 })) => "float2",
                    Some(Rust::Scalar(Scalar::Float { size: 8 })) => "double2",
                    _ => return Rust::Other(name),
                };
                cuda::vector(name).map_or(Rust::Other(name.to_owned()), Rust::Vector)
            }
            (_, PathArguments::None) if is_vector_name(&name) => {
                match cuda::vector(&name.to_ascii_lowercase()) {
                    Some(vector) => Rust::Vector(vector),
                    None => Rust::Other(name),
                }
            }
            _ => Rust::Other(name),
        }
    }

    /// The scalar that all of the type consists of.
    pub(crate) fn only_scalar(&self) -> Option<Scalar> {
        match self {
            Rust::Scalar(scalar) => Some(*scalar),
            Rust::Vector(vector) => Some(vector.scalar),
            Rust::Array(element, _) => element.only_scalar(),
            Rust::Pointer | Rust::Void | Rust::Other(_) => None,
        }
    }

    /// The alignment that rustc gives it.
    pub(crate) fn align(&self) -> Option<usize> {
        match self {
            // num_complex aligns to one part.
            Rust::Vector(vector) => Some(vector.align),
            Rust::Scalar(scalar) => Some(scalar.size()),
            Rust::Array(element, _) => element.align(),
            Rust::Pointer => Some(8),
            Rust::Void | Rust::Other(_) => None,
        }
    }
}

/// `Float4`, and not `float4`, which is some type of the user's.
fn is_vector_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.ends_with(|last: char| last.is_ascii_digit())
}

/// How a declaration writes a C++ type by value.
pub(crate) fn by_value(ty: &cuda::Type) -> Option<String> {
    use cuda::Type;
    Some(match ty {
        Type::Scalar(scalar) => scalar_name(*scalar)?.to_owned(),
        Type::Vector(vector) => vector_name(vector)?,
        Type::Pointer(pointee) => match &pointee.ty {
            Type::Function(called) => format!("DeviceFn<{}>", function(called)?),
            other => {
                let element = element(other).unwrap_or_else(|| "T".to_owned());
                if pointee.is_const {
                    format!("&[{element}]")
                } else {
                    format!("&mut [{element}]")
                }
            }
        },
        Type::Array(element, Some(count)) => format!("[{}; {count}]", by_value(element)?),
        Type::Struct(structure) if !structure.name.is_empty() => structure.name.clone(),
        Type::Enum(enumeration) if !enumeration.name.is_empty() => enumeration.name.clone(),
        Type::Named(name) => name.rsplit("::").next()?.to_owned(),
        _ => return None,
    })
}

/// The function that code calls by a prototype of numbers, as far as PTX tells their types.
pub(crate) fn of_prototype(call: &ptx::IndirectCall) -> Option<String> {
    let ty = |param: &ptx::Param| match (param.class(), param.size()) {
        (ptx::Class::Float, 4) => Some("f32"),
        (ptx::Class::Float, 8) => Some("f64"),
        (ptx::Class::Integer, 4) => Some("u32"),
        (ptx::Class::Integer, 8) => Some("u64"),
        _ => None,
    };
    let params: Option<Vec<&str>> = call.params.iter().map(ty).collect();
    let result = match call.returns.first() {
        Some(result) => format!(" -> {}", ty(result)?),
        None => String::new(),
    };
    Some(format!("DeviceFn<fn({}){result}>", params?.join(", ")))
}

/// How a declaration writes the type of a function in C++.
fn function(function: &cuda::Function) -> Option<String> {
    let params: Option<Vec<String>> = function.params.iter().map(of_function).collect();
    let result = match &*function.result {
        cuda::Type::Void => String::new(),
        result => format!(" -> {}", of_function(result)?),
    };
    Some(format!("fn({}){result}", params?.join(", ")))
}

/// How the type of a function writes what it takes or returns.
fn of_function(ty: &cuda::Type) -> Option<String> {
    let cuda::Type::Pointer(pointee) = ty else {
        return by_value(ty);
    };
    let star = if pointee.is_const { "*const" } else { "*mut" };
    let elem = match &pointee.ty {
        cuda::Type::Void => "()".to_owned(),
        cuda::Type::Function(_) => return None,
        elem => of_function(elem)?,
    };
    Some(format!("{star} {elem}"))
}

/// How a declaration writes the elements of an array; addresses among them are integers.
pub(crate) fn element(ty: &cuda::Type) -> Option<String> {
    match ty {
        cuda::Type::Pointer(_) => Some("u64".to_owned()),
        _ => by_value(ty),
    }
}

fn scalar_name(scalar: Scalar) -> Option<&'static str> {
    Some(match scalar {
        Scalar::Bool => "bool",
        Scalar::Char
        | Scalar::Int {
            size: 1,
            signed: true,
        } => "i8",
        Scalar::Int {
            size: 1,
            signed: false,
        } => "u8",
        Scalar::Int {
            size: 2,
            signed: true,
        } => "i16",
        Scalar::Int {
            size: 2,
            signed: false,
        } => "u16",
        Scalar::Int {
            size: 4,
            signed: true,
        } => "i32",
        Scalar::Int {
            size: 4,
            signed: false,
        } => "u32",
        Scalar::Int {
            size: 8,
            signed: true,
        } => "i64",
        Scalar::Int {
            size: 8,
            signed: false,
        } => "u64",
        Scalar::Int {
            size: 16,
            signed: true,
        } => "i128",
        Scalar::Int {
            size: 16,
            signed: false,
        } => "u128",
        Scalar::Float { size: 4 } => "f32",
        Scalar::Float { size: 8 } => "f64",
        Scalar::Half => "f16",
        Scalar::Bfloat16 => "bf16",
        Scalar::Fp8E4m3 => "F8E4M3",
        Scalar::Fp8E5m2 => "F8E5M2",
        _ => return None,
    })
}

/// `Float4` of `float4`, where there is such a type.
fn vector_name(vector: &cuda::Vector) -> Option<String> {
    let name = match vector.name {
        "dim3" => "uint3",
        name if name.starts_with("__") => return None,
        name if name.starts_with("long") && !name.starts_with("longlong") => return None,
        name if name.starts_with("ulong") && !name.starts_with("ulonglong") => return None,
        name => name,
    };
    let parts = [
        ("ulonglong", "ULongLong"),
        ("longlong", "LongLong"),
        ("uchar", "UChar"),
        ("ushort", "UShort"),
        ("uint", "UInt"),
        ("char", "Char"),
        ("short", "Short"),
        ("int", "Int"),
        ("float", "Float"),
        ("double", "Double"),
    ];
    parts.iter().find_map(|(word, name_in_rust)| {
        name.strip_prefix(word)
            .map(|lanes| format!("{name_in_rust}{lanes}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(source: &str) -> Rust {
        Rust::of(&syn::parse_str(source).unwrap())
    }

    #[test]
    fn types_are_known_by_their_names() {
        assert_eq!(
            rust("usize"),
            Rust::Scalar(Scalar::Int {
                size: 8,
                signed: false
            })
        );
        assert_eq!(
            rust("isize"),
            Rust::Scalar(Scalar::Int {
                size: 8,
                signed: true
            })
        );
        assert_eq!(
            rust("u128"),
            Rust::Scalar(Scalar::Int {
                size: 16,
                signed: false
            })
        );
        assert_eq!(rust("half::f16"), Rust::Scalar(Scalar::Half));
        assert_eq!(
            rust("gridcall::Float4"),
            Rust::Vector(cuda::vector("float4").unwrap())
        );
        assert_eq!(
            rust("Complex<f64>"),
            Rust::Vector(cuda::vector("double2").unwrap())
        );
        assert_eq!(
            rust("[f32; 3]").only_scalar(),
            Some(Scalar::Float { size: 4 })
        );
        assert_eq!(rust("*const f32"), Rust::Pointer);
        assert_eq!(rust("Pair"), Rust::Other("Pair".into()));
        assert_eq!(rust("crate::Grid3"), Rust::Other("Grid3".into()));
    }

    #[test]
    fn cures_are_types_that_there_are() {
        let shown = |name: &str| by_value(&cuda::Type::Vector(cuda::vector(name).unwrap()));
        assert_eq!(shown("ulonglong2").as_deref(), Some("ULongLong2"));
        assert_eq!(shown("dim3").as_deref(), Some("UInt3"));
        assert_eq!(shown("long2"), None);
        assert_eq!(shown("__half2"), None);
    }
}
