//! Compares a parameter's type in Rust with that of the kernel in C++, one rule a function.

use crate::cuda::{Scalar, Type};
use crate::kernel::Param;
use crate::value::{self, Taken};

use super::rust::{self, Rust};

/// What else is known where two types are compared.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// The code certainly never writes through the parameter.
    pub(super) read_only: bool,
    /// The code certainly reaches memory through it.
    pub(super) dereferenced: bool,
    /// Whether the witness knows a struct of this name.
    pub(super) is_struct: &'a dyn Fn(&str) -> bool,
}

/// The cure, if the types certainly differ.
pub(super) fn contradiction(param: &Param, ty: &Type, known: Known<'_>) -> Option<String> {
    match &param.taken {
        Taken::Value { ty: written, .. } => check_value(&Rust::of(written), ty, known),
        Taken::Condition { .. } => check_condition(ty),
        Taken::Slice { elem, written } | Taken::Pointer { elem, written } => {
            check_pointer(param, elem, *written, ty, known)
        }
        Taken::Optional { elem } => check_pointer(param, elem, false, ty, known),
        Taken::Function { function, .. } => check_function(function, ty, known),
        // Structs of other headers, of which a source shows no more than the name.
        Taken::Strided { .. }
        | Taken::TensorMap { .. }
        | Taken::Texture { .. }
        | Taken::Surface { .. } => None,
    }
}

/// The cure, if a variable certainly holds another type.
pub(crate) fn of_static(
    written: &syn::Type,
    ty: &Type,
    is_struct: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let known = Known {
        read_only: false,
        dereferenced: false,
        is_struct,
    };
    if let Some(function) = value::device_fn(written) {
        return check_function(function, ty, known);
    }
    check_value(&Rust::of(written), ty, known)
}

/// The cure, if the parameter is certainly no pointer to a function of this type.
fn check_function(written: &syn::Type, ty: &Type, known: Known<'_>) -> Option<String> {
    let function = match ty {
        Type::Unknown | Type::Named(_) => return None,
        Type::Pointer(pointee) => match &pointee.ty {
            Type::Unknown | Type::Named(_) => return None,
            Type::Function(function) => Some(function),
            _ => None,
        },
        _ => None,
    };
    let differs = match (function, written) {
        (None, _) => true,
        (Some(function), syn::Type::FnPtr(written)) => {
            let params = written.inputs.iter().map(|input| &input.ty);
            let result = match (&written.output, &*function.result) {
                (syn::ReturnType::Default, result) => !matches!(result, Type::Void | Type::Unknown),
                (syn::ReturnType::Type(_, ty), result) => differs_in_function(ty, result, known),
            };
            let mut pairs = params.zip(&function.params);
            result
                || written.inputs.len() != function.params.len()
                || pairs.any(|(written, ty)| differs_in_function(written, ty, known))
        }
        // Another name for some type.
        (Some(_), _) => false,
    };
    differs.then(|| cure(rust::by_value(ty)))
}

/// Whether what a function takes or returns is certainly of another type.
fn differs_in_function(written: &syn::Type, ty: &Type, known: Known<'_>) -> bool {
    match (written, ty) {
        (syn::Type::Ptr(written), Type::Pointer(pointee)) => {
            let is_mut = matches!(written.mutability, syn::PointerMutability::Mut(_));
            is_mut == pointee.is_const || differs(&Rust::of(&written.elem), &pointee.ty, known)
        }
        (_, Type::Void) => !matches!(written, syn::Type::Tuple(tuple) if tuple.elems.is_empty()),
        (
            syn::Type::Ptr(_),
            Type::Scalar(_) | Type::Vector(_) | Type::Struct(_) | Type::Enum(_),
        ) => true,
        _ => check_value(&Rust::of(written), ty, known).is_some(),
    }
}

fn check_value(written: &Rust, ty: &Type, known: Known<'_>) -> Option<String> {
    let differs = match (written, ty) {
        (Rust::Other(name), _) => is_other_struct(name, ty, known),
        (_, Type::Unknown | Type::Named(_)) | (Rust::Pointer, Type::Pointer(_)) => false,
        (Rust::Scalar(scalar), Type::Scalar(actual)) => !is_same(*scalar, *actual),
        (Rust::Scalar(scalar), Type::Enum(enumeration)) => match enumeration.underlying {
            Some(underlying) => !is_same(*scalar, underlying),
            // An enum without a type is an int or an unsigned int, as its values need.
            None => !matches!(scalar, Scalar::Int { size: 4, .. }),
        },
        (Rust::Vector(vector), Type::Vector(actual)) => !is_same_vector(vector.name, actual.name),
        (_, Type::Pointer(_)) => true,
        // What else there is differs in what the PTX says; its scalars tell the rest.
        (written, ty) => match (written.only_scalar(), ty.only_scalar()) {
            (Some(scalar), Some(actual)) => !is_same(scalar, actual),
            _ => false,
        },
    };
    differs.then(|| cure(rust::by_value(ty)))
}

/// A handle is an `unsigned long long`.
fn check_condition(ty: &Type) -> Option<String> {
    let is_handle = match ty {
        Type::Unknown | Type::Named(_) => true,
        ty => matches!(
            ty.only_scalar(),
            Some(Scalar::Int {
                size: 8,
                signed: false
            })
        ),
    };
    (!is_handle).then(|| cure(rust::by_value(ty)))
}

fn check_pointer(
    param: &Param,
    elem: &syn::Type,
    written: bool,
    ty: &Type,
    known: Known<'_>,
) -> Option<String> {
    let pointee = match ty {
        Type::Pointer(pointee) => pointee,
        Type::Unknown | Type::Named(_) => return None,
        // An address may come as an integer.
        Type::Scalar(Scalar::Int { size: 8, .. }) if known.dereferenced => return None,
        _ => return Some(cure(rust::by_value(ty))),
    };
    let written_elem = Rust::of(elem);
    if let Type::Function(_) = &pointee.ty {
        let any = matches!(param.taken, Taken::Pointer { .. }) && written_elem == Rust::Void;
        return (!any).then(|| cure(rust::by_value(ty)));
    }
    if differs(&written_elem, &pointee.ty, known) {
        return Some(cure(declared_pointer(param, ty)));
    }
    check_constness(param, elem, written, pointee.is_const, known)
        .or_else(|| check_alignment(param, &written_elem, &pointee.ty))
}

/// Whether memory of one type is certainly not memory of the other.
fn differs(written: &Rust, ty: &Type, known: Known<'_>) -> bool {
    match (written, ty) {
        (Rust::Other(name), _) => is_other_struct(name, ty, known),
        // Memory of addresses may be declared as integers, and the other way round.
        (_, Type::Void | Type::Unknown | Type::Named(_))
        | (Rust::Void, _)
        | (Rust::Pointer | Rust::Scalar(Scalar::Int { size: 8, .. }), Type::Pointer(_))
        | (Rust::Pointer, Type::Scalar(Scalar::Int { size: 8, .. })) => false,
        (Rust::Pointer, _) | (_, Type::Pointer(_)) => true,
        (Rust::Scalar(scalar), Type::Enum(enumeration)) => match enumeration.underlying {
            Some(underlying) => !is_same(*scalar, underlying),
            None => !matches!(scalar, Scalar::Int { size: 4, .. }),
        },
        (Rust::Vector(vector), Type::Vector(actual)) => !is_same_vector(vector.name, actual.name),
        // A struct of several scalars is not an array of one.
        (written, Type::Struct(structure)) if structure.layout().is_some() => {
            match ty.only_scalar() {
                Some(actual) => written
                    .only_scalar()
                    .is_some_and(|scalar| !is_same(scalar, actual)),
                None => written.only_scalar().is_some(),
            }
        }
        (written, ty) => match (written.only_scalar(), ty.only_scalar()) {
            (Some(scalar), Some(actual)) => !is_same(scalar, actual),
            _ => false,
        },
    }
}

/// Whether a type of the user's has the name of one struct of the kernel's, and stands for another.
///
/// A name that the kernel does not know may stand for anything.
fn is_other_struct(name: &str, ty: &Type, known: Known<'_>) -> bool {
    let actual = match ty {
        Type::Struct(structure) => structure.name.as_str(),
        Type::Named(path) => path.rsplit("::").next().unwrap_or(path),
        _ => return false,
    };
    !actual.is_empty() && actual != name && (known.is_struct)(name)
}

fn check_constness(
    param: &Param,
    elem: &syn::Type,
    written: bool,
    is_const: bool,
    known: Known<'_>,
) -> Option<String> {
    let elem = crate::describe::ty(elem);
    let raw = matches!(param.taken, Taken::Pointer { .. });
    if written && is_const {
        let cure = if raw {
            format!("*const {elem}")
        } else {
            format!("&[{elem}]")
        };
        return Some(format!("the kernel only reads it: write `{cure}`"));
    }
    // Without `const` in C++, the code may still tell that it is never written.
    if !written && !is_const && !known.read_only {
        let cure = if raw {
            format!("*mut {elem}")
        } else {
            format!("&mut [{elem}]")
        };
        return Some(format!(
            "the kernel may write to it: write `{cure}`, or `const` in the kernel if it only reads"
        ));
    }
    None
}

/// Vectors are read at once, from addresses that fit them.
fn check_alignment(param: &Param, written: &Rust, ty: &Type) -> Option<String> {
    let (needed, own) = (ty.layout()?.align, written.align()?);
    let asked = param.align.map_or(1, |align| align as usize);
    if needed <= own.max(asked) || matches!(param.taken, Taken::Pointer { .. }) {
        return None;
    }
    let shown = crate::describe::ty(&param.ty);
    let also = match declared_pointer(param, &Type::pointer_to(ty.clone(), true)) {
        Some(_) => rust::by_value(ty)
            .map(|elem| format!(", or declare elements of `{elem}`"))
            .unwrap_or_default(),
        None => String::new(),
    };
    Some(format!(
        "its elements are aligned to {needed} bytes: write `#[align({needed})] {}: {shown}`{also}",
        param.ident
    ))
}

/// How the declaration would write a pointer of C++, in the form that it uses.
fn declared_pointer(param: &Param, ty: &Type) -> Option<String> {
    let Type::Pointer(pointee) = ty else {
        return rust::by_value(ty);
    };
    let elem = rust::element(&pointee.ty)?;
    Some(match &param.taken {
        Taken::Pointer { .. } if pointee.is_const => format!("*const {elem}"),
        Taken::Pointer { .. } => format!("*mut {elem}"),
        Taken::Optional { .. } if pointee.is_const => format!("Option<&[{elem}]>"),
        _ if pointee.is_const => format!("&[{elem}]"),
        _ => format!("&mut [{elem}]"),
    })
}

fn cure(written: Option<String>) -> String {
    match written {
        Some(written) => format!("write `{written}`"),
        None => "write the type that stands for it".to_owned(),
    }
}

/// `char` alone has the platform's sign.
fn is_same(scalar: Scalar, actual: Scalar) -> bool {
    match (scalar, actual) {
        (Scalar::Int { size: 1, .. }, Scalar::Char) => true,
        _ => scalar == actual,
    }
}

fn is_same_vector(name: &str, actual: &str) -> bool {
    let plain = |name| if name == "dim3" { "uint3" } else { name };
    // `long` has the size of one of the two.
    let long = |name: &str| name.replace("longlong", "long");
    plain(name) == plain(actual) || long(name) == long(actual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda;
    use crate::value;

    fn param(source: &str) -> Param {
        let argument: syn::FnArg = syn::parse_str(source).unwrap();
        let syn::FnArg::Typed(argument) = argument else {
            panic!("{source}")
        };
        let align = argument.attrs.first().map(|attr| {
            attr.parse_args::<syn::LitInt>()
                .unwrap()
                .base10_parse()
                .unwrap()
        });
        Param {
            ident: syn::parse_str("p").unwrap(),
            taken: value::classify(&argument.ty, "p").unwrap(),
            ty: *argument.ty,
            align,
        }
    }

    const TYPES: &str = "struct Pair { int id; float value; }; struct Vec { float x, y, z; };
        enum Colour : unsigned char { red }; enum Level { low }; enum class Wide : long long { a };";

    fn cpp(written: &str) -> Type {
        let text = format!("{TYPES} __global__ void k({written});");
        let mut source = cuda::read(&text);
        source.kernels.remove(0).params.unwrap().remove(0).ty
    }

    const NOTHING: Known<'static> = Known {
        read_only: false,
        dereferenced: false,
        is_struct: &|name| name == "Pair" || name == "Vec",
    };

    fn cure_of(rust: &str, written: &str) -> Option<String> {
        contradiction(&param(rust), &cpp(written), NOTHING)
    }

    #[test]
    fn right_declarations_have_no_contradiction() {
        for (rust, written) in [
            ("p: bool", "bool"),
            ("p: u8", "char"),
            ("p: i8", "char"),
            ("p: i8", "int8_t"),
            ("p: u64", "size_t"),
            ("p: usize", "unsigned long"),
            ("p: usize", "unsigned long long"),
            ("p: i64", "long"),
            ("p: f16", "__half"),
            ("p: Float3", "float3"),
            ("p: UInt3", "dim3"),
            ("p: [f32; 3]", "float3"),
            ("p: Complex<f32>", "cuFloatComplex"),
            ("p: u8", "Colour"),
            ("p: Colour", "Colour"),
            ("p: i32", "Level"),
            ("p: u32", "Level"),
            ("p: i64", "Wide"),
            ("p: Pair", "Pair"),
            ("p: Anything", "Elsewhere"),
            ("p: u32", "Elsewhere"),
            ("p: DevicePointer<'_, f32>", "const float*"),
            ("p: &[f32]", "const float*"),
            ("p: &[f32]", "const float* const"),
            ("p: &mut [f32]", "float*"),
            ("p: &mut [f32]", "float&"),
            ("p: &[u8]", "const void*"),
            ("p: &[Pair]", "const Pair*"),
            ("p: &[MyPair]", "const Pair*"),
            ("p: &[f32]", "const Vec*"),
            ("p: &[[f32; 3]]", "const float*"),
            ("p: &[Float4]", "const float4*"),
            ("p: #[align(16)] &[f32]", "const float4*"),
            ("p: &[u64]", "float* const*"),
            ("p: Option<&[f32]>", "const float*"),
            ("p: *const f32", "const float*"),
            ("p: *mut ()", "float*"),
            ("p: &[f32]", "real"),
            ("p: DeviceFn<fn(f32) -> f32>", "float (*)(float)"),
            ("p: DeviceFn<fn(f32) -> f32>", "float (&)(float)"),
            (
                "p: DeviceFn<fn(*const f32, usize)>",
                "void (*)(const float*, size_t)",
            ),
            (
                "p: DeviceFn<fn(*mut (), Pair) -> Float4>",
                "float4 (*)(float*, Pair)",
            ),
            ("p: DeviceFn<fn() -> ()>", "void (*)()"),
            ("p: DeviceFn<fn(u32) -> Anything>", "Elsewhere (*)(T)"),
            ("p: DeviceFn<Op>", "float (*)(float)"),
            ("p: DeviceFn<fn(f32) -> f32>", "Op"),
            ("p: *const ()", "float (*)(float)"),
            ("p: GraphCondition", "cudaGraphConditionalHandle"),
            ("p: GraphCondition", "unsigned long long"),
            ("p: GraphCondition", "Elsewhere"),
            ("p: u64", "cudaGraphConditionalHandle"),
        ] {
            let rust = match rust.strip_prefix("p: #") {
                Some(rest) => {
                    let (attr, ty) = rest.split_once(' ').unwrap();
                    format!("#{attr} p: {ty}")
                }
                None => rust.to_owned(),
            };
            assert_eq!(cure_of(&rust, written), None, "{rust} for {written}");
        }
    }

    #[test]
    fn wrong_declarations_have_a_cure() {
        for (rust, written, cure) in [
            ("p: u32", "int", "write `i32`"),
            ("p: i32", "unsigned", "write `u32`"),
            ("p: u8", "bool", "write `bool`"),
            ("p: f64", "long", "write `i64`"),
            ("p: Int3", "float3", "write `Float3`"),
            ("p: [i32; 3]", "float3", "write `Float3`"),
            ("p: f16", "__nv_bfloat16", "write `bf16`"),
            ("p: u64", "const float*", "write `&[f32]`"),
            ("p: usize", "float*", "write `&mut [f32]`"),
            ("p: &[f32]", "size_t", "write `u64`"),
            ("p: GraphCondition", "float*", "write `&mut [f32]`"),
            ("p: GraphCondition", "int", "write `i32`"),
            ("p: &[f32]", "cudaGraphConditionalHandle", "write `u64`"),
            ("p: u64", "Wide", "write `Wide`"),
            ("p: &[f64]", "const float*", "write `&[f32]`"),
            ("p: &[u32]", "const int*", "write `&[i32]`"),
            ("p: &mut [i32]", "float*", "write `&mut [f32]`"),
            ("p: &[f32]", "const Pair*", "write `&[Pair]`"),
            ("p: &[f32]", "const float* const*", "write `&[u64]`"),
            ("p: &[Vec]", "const Pair*", "write `&[Pair]`"),
            ("p: Vec", "Pair", "write `Pair`"),
            (
                "p: DeviceFn<fn(f64) -> f32>",
                "float (*)(float)",
                "write `DeviceFn<fn(f32) -> f32>`",
            ),
            (
                "p: DeviceFn<fn(f32)>",
                "float (*)(float)",
                "write `DeviceFn<fn(f32) -> f32>`",
            ),
            (
                "p: DeviceFn<fn(f32) -> u32>",
                "void (*)(float)",
                "write `DeviceFn<fn(f32)>`",
            ),
            (
                "p: DeviceFn<fn(f32) -> f32>",
                "float (*)(float, int)",
                "write `DeviceFn<fn(f32, i32) -> f32>`",
            ),
            (
                "p: DeviceFn<fn(*mut f32)>",
                "void (*)(const float*)",
                "write `DeviceFn<fn(*const f32)>`",
            ),
            (
                "p: DeviceFn<fn(*const u32)>",
                "void (*)(const int*)",
                "write `DeviceFn<fn(*const i32)>`",
            ),
            (
                "p: DeviceFn<fn(*const f32)>",
                "void (*)(float)",
                "write `DeviceFn<fn(f32)>`",
            ),
            ("p: DeviceFn<fn(f32)>", "float", "write `f32`"),
            ("p: DeviceFn<fn(f32)>", "float*", "write `&mut [f32]`"),
            (
                "p: u64",
                "float (*)(Pair)",
                "write `DeviceFn<fn(Pair) -> f32>`",
            ),
            (
                "p: &[f32]",
                "float (*)(float)",
                "write `DeviceFn<fn(f32) -> f32>`",
            ),
            (
                "p: *const f32",
                "void (*)(void (*)())",
                "write the type that stands for it",
            ),
        ] {
            let found = cure_of(rust, written).unwrap_or_else(|| panic!("{rust} for {written}"));
            assert!(found.contains(cure), "{rust} for {written}: {found}");
        }
        for (rust, written, cure) in [
            ("p: *const u32", "const int*", "write `*const i32`"),
            ("p: Option<&[f32]>", "const int*", "write `Option<&[i32]>`"),
            (
                "p: &mut [f32]",
                "const float*",
                "only reads it: write `&[f32]`",
            ),
            ("p: &[f32]", "float*", "may write to it: write `&mut [f32]`"),
            (
                "p: &[f32]",
                "const float4*",
                "write `#[align(16)] p: &[f32]`, or declare elements of `Float4`",
            ),
        ] {
            let found = cure_of(rust, written).unwrap_or_else(|| panic!("{rust} for {written}"));
            assert!(found.contains(cure), "{rust} for {written}: {found}");
        }
    }

    #[test]
    fn the_code_may_show_that_nothing_is_written() {
        let known = Known {
            read_only: true,
            dereferenced: true,
            ..NOTHING
        };
        assert_eq!(
            contradiction(&param("p: &[f32]"), &cpp("float*"), known),
            None
        );
        assert_eq!(
            contradiction(&param("p: &[f32]"), &cpp("unsigned long long"), known),
            None
        );
    }
}
