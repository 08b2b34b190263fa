//! The types that a declaration may name, and how each reaches the kernel.
//!
//! Takes a type as written; gives what the call takes for it, or the error with the cure. A path
//! that is none of the types known here is some type of the user's, which the compiler measures.

use syn::{
    Expr, GenericArgument, Lit, Path, PathArguments, PointerMutability, ReturnType, Type,
    TypeArray, TypePath, TypePtr, TypeReference,
};

use crate::describe;

/// How an argument is taken.
#[derive(Clone)]
pub(crate) enum Taken {
    /// By value.
    Value { ty: Type, known: Option<Known> },
    /// As a device array: `&[T]` and `&mut [T]`.
    Slice { elem: Type, written: bool },
    /// As a device array that may be absent: `Option<&[T]>`.
    Optional { elem: Type },
    /// As a device array in its dimensions: `Strided<T, N>` and `StridedMut<T, N>`.
    Strided {
        elem: Type,
        rank: Box<Expr>,
        written: bool,
    },
    /// As a tensor map of a device array: `TensorMap<T>` and `TensorMapMut<T>`.
    TensorMap { elem: Type, written: bool },
    /// As a texture object of a device array: `Texture<T>`.
    Texture { elem: Type },
    /// As a surface object of a CUDA array: `Surface<T>` and `SurfaceMut<T>`.
    Surface { elem: Type, written: bool },
    /// As a condition of a graph: `GraphCondition`.
    Condition { ty: Type },
    /// As a device pointer: `*const T` and `*mut T`.
    Pointer { elem: Type, written: bool },
    /// As the address of a function of the device: `DeviceFn<fn(A) -> R>`.
    Function { ty: Type, function: Box<Type> },
}

/// The layout of a type that is known by its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) shape: Shape,
    /// Whether it is an integer to contracts: `u128` is bytes to PTX, and `bool` an integer to PTX
    /// alone.
    pub(crate) counts: bool,
}

/// What a compiler of CUDA makes of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    Integer,
    Float,
    Bytes,
}

/// `cudaGraphConditionalHandle`: an `unsigned long long`.
pub(crate) const CONDITION: Known = Known {
    size: 8,
    align: 8,
    shape: Shape::Integer,
    counts: false,
};

impl Taken {
    /// Whether it is an array that the call describes and acquires.
    pub(crate) fn is_array(&self) -> bool {
        matches!(
            self,
            Taken::Slice { .. }
                | Taken::Optional { .. }
                | Taken::Strided { .. }
                | Taken::TensorMap { .. }
                | Taken::Texture { .. }
                | Taken::Surface { .. }
        )
    }

    /// Whether it is an array that the kernel writes.
    pub(crate) fn is_written_array(&self) -> bool {
        matches!(
            self,
            Taken::Slice { written: true, .. }
                | Taken::Strided { written: true, .. }
                | Taken::TensorMap { written: true, .. }
                | Taken::Surface { written: true, .. }
        )
    }

    /// The type of the elements, or of what is taken by value.
    pub(crate) fn elem(&self) -> &Type {
        match self {
            Taken::Slice { elem, .. }
            | Taken::Optional { elem }
            | Taken::Strided { elem, .. }
            | Taken::TensorMap { elem, .. }
            | Taken::Texture { elem }
            | Taken::Surface { elem, .. }
            | Taken::Pointer { elem, .. } => elem,
            Taken::Value { ty, .. } | Taken::Condition { ty } | Taken::Function { ty, .. } => ty,
        }
    }

    /// The layout of the elements, if they are of a type known here.
    pub(crate) fn known_elem(&self) -> Option<Known> {
        match self {
            Taken::Value { .. } | Taken::Condition { .. } | Taken::Function { .. } => None,
            _ => known(self.elem()),
        }
    }
}

/// How the parameter `name` of type `ty` is taken.
pub(crate) fn classify(ty: &Type, name: &str) -> syn::Result<Taken> {
    match ty {
        Type::Group(group) => classify(&group.elem, name),
        Type::Paren(paren) => classify(&paren.elem, name),
        Type::Reference(reference) => classify_reference(reference, name),
        Type::Ptr(pointer) => classify_pointer(pointer),
        Type::Path(path) => match option_of(path) {
            Some(inner) => classify_option(ty, inner),
            None => match classify_strided(path)?
                .or(classify_object(path)?)
                .or(classify_function(ty)?)
            {
                Some(taken) => Ok(taken),
                None => classify_value(ty, name),
            },
        },
        _ => classify_value(ty, name),
    }
}

fn classify_reference(reference: &TypeReference, name: &str) -> syn::Result<Taken> {
    if let Some(lifetime) = &reference.lifetime {
        return Err(error(
            lifetime,
            "lifetimes are not allowed here: an array is borrowed for the launch, write `&[T]`",
        ));
    }
    let written = reference.mutability.is_some();
    match peel(&reference.elem) {
        Type::Slice(slice) => {
            check_element(&slice.elem)?;
            Ok(Taken::Slice {
                elem: (*slice.elem).clone(),
                written,
            })
        }
        elem => Err(error(reference, refused_reference(elem, written, name))),
    }
}

fn refused_reference(elem: &Type, written: bool, name: &str) -> String {
    let shown = describe::ty(elem);
    let slice = if written { "&mut [" } else { "&[" };
    if let Type::Array(array) = elem {
        let inner = describe::ty(&array.elem);
        let len = describe::expr(&quote::ToTokens::to_token_stream(&array.len));
        return format!(
            "a device array is declared without its length: write `{name}: {slice}{inner}]` and \
             #[requires({name}.len() == {len})], or `{name}: {shown}` for one that goes by value"
        );
    }
    if let Some(inner) = generic_of(
        elem,
        &["Vec", "Box", "CudaSlice", "CudaView", "CudaViewMut"],
    ) {
        let inner = describe::ty(slice_element(inner));
        return format!(
            "a declaration names what the kernel takes, not who owns it: write \
             `{name}: {slice}{inner}]`, and any device array of `{inner}` can be passed"
        );
    }
    if is_named(elem, "str") || is_named(elem, "String") {
        return format!(
            "text is host memory: write `{name}: &[u8]` and copy the bytes to the device"
        );
    }
    if matches!(elem, Type::TraitObject(_) | Type::ImplTrait(_)) {
        return format!(
            "not allowed in a kernel's declaration: write `{name}: {slice}T]` with the type of \
             the elements"
        );
    }
    if written {
        return format!(
            "a kernel writes through device memory: write `{name}: &mut [{shown}]`, of one \
             element if it is one"
        );
    }
    if known(elem).is_some() {
        return format!(
            "a scalar goes to the kernel by value: write `{name}: {shown}`; for device memory \
             write `{name}: &[{shown}]`"
        );
    }
    format!(
        "a struct goes to the kernel by value: write `{name}: {shown}`; for device memory holding \
         `{shown}` write `{name}: &[{shown}]`"
    )
}

fn classify_pointer(pointer: &TypePtr) -> syn::Result<Taken> {
    let written = matches!(pointer.mutability, PointerMutability::Mut(_));
    match peel(&pointer.elem) {
        Type::Slice(slice) => {
            let star = if written { "*mut" } else { "*const" };
            let elem = describe::ty(&slice.elem);
            Err(error(
                pointer,
                format!("a device pointer has no length: write `{star} {elem}`"),
            ))
        }
        Type::TraitObject(_) | Type::ImplTrait(_) | Type::Infer(_) | Type::Never(_) => Err(error(
            &pointer.elem,
            "not allowed: name the type of what the kernel's pointer points to",
        )),
        elem => Ok(Taken::Pointer {
            elem: elem.clone(),
            written,
        }),
    }
}

fn classify_option(whole: &Type, inner: &Type) -> syn::Result<Taken> {
    if let Type::Reference(reference) = peel(inner)
        && let Type::Slice(slice) = peel(&reference.elem)
    {
        if let Some(lifetime) = &reference.lifetime {
            return Err(error(
                lifetime,
                "lifetimes are not allowed here: write `Option<&[T]>`",
            ));
        }
        check_element(&slice.elem)?;
        let elem = describe::ty(&slice.elem);
        if reference.mutability.is_some() {
            return Err(error(
                whole,
                format!(
                    "`Option<&mut [{elem}]>` is not supported yet: write `*mut {elem}` in an \
                     `unsafe fn`, or declare the kernel twice with #[name(..)]"
                ),
            ));
        }
        return Ok(Taken::Optional {
            elem: (*slice.elem).clone(),
        });
    }
    let shown = describe::ty(inner);
    let message = match peel(inner) {
        Type::Ptr(_) => format!("a device pointer may be null already: write `{shown}`"),
        _ => "only a pointer can be absent: `Option<&[T]>` is a pointer that may be null; other \
              types go without `Option`"
            .to_owned(),
    };
    Err(error(whole, message))
}

/// `Strided<T, N>`; with other arguments, or none, it may be the user's own type.
fn classify_strided(path: &TypePath) -> syn::Result<Option<Taken>> {
    let Some(last) = path.path.segments.last() else {
        return Ok(None);
    };
    let written = last.ident == "StridedMut";
    if path.qself.is_none() && last.ident == "GraphCondition" && last.arguments.is_none() {
        return Ok(Some(Taken::Condition {
            ty: Type::Path(path.clone()),
        }));
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Ok(None);
    };
    if path.qself.is_some() || !(written || last.ident == "Strided") || arguments.args.len() != 2 {
        return Ok(None);
    }
    let (GenericArgument::Type(elem), rank) = (&arguments.args[0], &arguments.args[1]) else {
        return Ok(None);
    };
    let rank: Expr = match rank {
        GenericArgument::Const(rank) => rank.clone(),
        // A constant by its name is a type to the parser.
        GenericArgument::Type(Type::Path(rank)) => syn::parse_quote!(#rank),
        _ => return Ok(None),
    };
    check_element(elem)?;
    if literal_int(&rank) == Some(0) {
        return Err(error(
            rank,
            "an array of no dimensions is one element: write `&[T]`, of length 1",
        ));
    }
    Ok(Some(Taken::Strided {
        elem: elem.clone(),
        rank: Box::new(rank),
        written,
    }))
}

/// `TensorMap<T>`, `Texture<T>`, `Surface<T>` and `GraphCondition`; with other arguments, or none where some are needed, it may
/// be the user's own type.
fn classify_object(path: &TypePath) -> syn::Result<Option<Taken>> {
    let Some(last) = path.path.segments.last() else {
        return Ok(None);
    };
    let name = last.ident.to_string();
    let written = name.ends_with("Mut");
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Ok(None);
    };
    let known = [
        "TensorMap",
        "TensorMapMut",
        "Texture",
        "Surface",
        "SurfaceMut",
    ];
    if path.qself.is_some() || !known.contains(&&*name) {
        return Ok(None);
    }
    let mut types = arguments
        .args
        .iter()
        .filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)));
    let (Some(GenericArgument::Type(elem)), None) = (types.next(), types.next()) else {
        return Ok(None);
    };
    check_element(elem)?;
    let elem = elem.clone();
    Ok(Some(match &*name {
        "Texture" => Taken::Texture { elem },
        "Surface" | "SurfaceMut" => Taken::Surface { elem, written },
        _ => Taken::TensorMap { elem, written },
    }))
}

/// `DeviceFn<F>`; with other arguments, or none, it may be the user's own type.
fn classify_function(ty: &Type) -> syn::Result<Option<Taken>> {
    let Some(function) = device_fn(ty) else {
        return Ok(None);
    };
    check_function(function)?;
    Ok(Some(Taken::Function {
        ty: ty.clone(),
        function: Box::new(function.clone()),
    }))
}

/// `F` of `DeviceFn<F>`.
pub(crate) fn device_fn(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peel(ty) else {
        return None;
    };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    if arguments.args.len() != 1 {
        return None;
    }
    generic_of_path(path, &["DeviceFn"])
}

/// What the compiler would say of a wrong type would not name the cure; other names are some
/// type of the user's.
pub(crate) fn check_function(function: &Type) -> syn::Result<()> {
    let Type::FnPtr(function) = peel(function) else {
        return match peel(function) {
            ty @ (Type::Path(_) | Type::Macro(_)) if known(ty).is_none() => Ok(()),
            _ => Err(error(
                function,
                "a device function has the type `fn(A, B) -> R`",
            )),
        };
    };
    let signature = "a device function is called by the kernel alone: write `fn(..)` without `unsafe`, `extern` or `for<..>`";
    if let Some(token) = &function.unsafety {
        return Err(error(token, signature));
    }
    if let Some(abi) = &function.abi {
        return Err(error(abi, signature));
    }
    if let Some(lifetimes) = &function.lifetimes {
        return Err(error(lifetimes, signature));
    }
    if let Some(variadic) = &function.variadic {
        return Err(error(
            variadic,
            "a device function has a number of parameters",
        ));
    }
    let result = match &function.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(&**ty),
    };
    for ty in function.inputs.iter().map(|input| &input.ty).chain(result) {
        let message = match peel(ty) {
            Type::Reference(reference) => {
                let elem = describe::ty(slice_element(&reference.elem));
                let star = if reference.mutability.is_some() { "*mut" } else { "*const" };
                format!("device code passes addresses to a device function: write `{star} {elem}`")
            }
            Type::FnPtr(_) => {
                "functions that take or return functions are not supported yet".to_owned()
            }
            _ if device_fn(ty).is_some() => {
                "functions that take or return functions are not supported yet".to_owned()
            }
            Type::Slice(_) | Type::TraitObject(_) | Type::ImplTrait(_) | Type::Infer(_) => {
                "not a type that a device function takes: it takes numbers, structs with #[derive(KernelArg)] and device pointers".to_owned()
            }
            _ => continue,
        };
        return Err(error(ty, message));
    }
    Ok(())
}

fn classify_value(ty: &Type, name: &str) -> syn::Result<Taken> {
    let known = known(ty);
    if known.is_some_and(|known| known.size == 0) {
        return Err(error(
            ty,
            "a type of size 0 is not allowed: an empty struct has 1 byte in CUDA C++, write `u8`",
        ));
    }
    if known.is_none() {
        check_value(ty, name)?;
    }
    Ok(Taken::Value {
        ty: ty.clone(),
        known,
    })
}

/// Refuses what no kernel takes by value.
fn check_value(ty: &Type, name: &str) -> syn::Result<()> {
    let message = match ty {
        Type::Group(group) => return check_value(&group.elem, name),
        Type::Paren(paren) => return check_value(&paren.elem, name),
        Type::Array(array) => return check_value(&array.elem, name),
        Type::Path(path) => match refused_path(path, name) {
            Some(message) => message,
            None => return Ok(()),
        },
        Type::Macro(_) => return Ok(()),
        Type::Slice(slice) => {
            let elem = describe::ty(&slice.elem);
            format!(
                "a slice has no size of its own: write `{name}: &[{elem}]`, or `{name}: &mut \
                 [{elem}]` if the kernel writes it"
            )
        }
        Type::Tuple(tuple) if tuple.elems.is_empty() => {
            "`()` is not allowed: a kernel's parameter has a size".to_owned()
        }
        Type::Tuple(_) => {
            "a tuple is not allowed, as rustc may reorder its fields: write a struct \
                           with #[repr(C)] and #[derive(KernelArg)]"
                .to_owned()
        }
        Type::FnPtr(_) => {
            let function = describe::ty(ty);
            format!(
                "a function pointer of the host means nothing on the device: write `{name}: \
                 DeviceFn<{function}>` for a `__device__` function"
            )
        }
        Type::Never(_) => "`!` is not allowed: it has no values".to_owned(),
        Type::Infer(_) => "`_` is not allowed: a declaration names its types".to_owned(),
        Type::ImplTrait(_) | Type::TraitObject(_) => {
            format!(
                "not allowed: a kernel takes one type; for any device array write `{name}: &[T]`"
            )
        }
        Type::Reference(_) | Type::Ptr(_) => {
            "a host pointer means nothing on the device: put gridcall::DevicePointer in a struct \
             with #[derive(KernelArg)]"
                .to_owned()
        }
        _ => ACCEPTED.to_owned(),
    };
    Err(error(ty, message))
}

/// Why functions are nowhere but in parameters and statics of their own.
pub(crate) const NO_FUNCTIONS: &str = "the address of a function among other bytes does not tell its \
     module, and means nothing in another: pass each function as a parameter of its own, or declare the \
     variable of the module that holds them as a static";

const ACCEPTED: &str = "not a type that a kernel takes; it takes numbers and `bool`, `&[T]` and \
                        `&mut [T]` for device arrays, and structs with #[derive(KernelArg)]";

fn refused_path(path: &TypePath, name: &str) -> Option<String> {
    let ty = Type::Path(path.clone());
    if device_fn(&ty).is_some() {
        return Some(NO_FUNCTIONS.to_owned());
    }
    if is_named(&ty, "char") {
        return Some(
            "`char` is not allowed: write `u32` for a character's number, or `u8` or `i8` for C's \
             `char`"
                .to_owned(),
        );
    }
    for host in ["String", "OsString", "CString", "PathBuf", "str"] {
        if is_named(&ty, host) {
            return Some(format!("`{host}` is host memory and {ACCEPTED}"));
        }
    }
    if let Some(inner) = generic_of(&ty, &["Vec", "Box", "CudaSlice", "CudaView"]) {
        let inner = describe::ty(slice_element(inner));
        return Some(format!(
            "a declaration names what the kernel takes, not who owns it: write `{name}: \
             &[{inner}]`, or `{name}: &mut [{inner}]` if the kernel writes it"
        ));
    }
    if generic_of(
        &ty,
        &["Rc", "Arc", "Cell", "RefCell", "Mutex", "HashMap", "Result"],
    )
    .is_some()
    {
        return Some(format!("`{}` is {ACCEPTED}", describe::ty(&ty)));
    }
    None
}

/// Refuses what no device array holds.
fn check_element(elem: &Type) -> syn::Result<()> {
    if let Some(known) = known(elem) {
        return if known.size > 0 {
            Ok(())
        } else {
            Err(error(
                elem,
                "elements of size 0 are not allowed: there is nothing to read",
            ))
        };
    }
    let message = match elem {
        Type::Group(group) => return check_element(&group.elem),
        Type::Paren(paren) => return check_element(&paren.elem),
        Type::Array(array) => return check_element(&array.elem),
        Type::Macro(_) => return Ok(()),
        Type::Path(path) => match refused_path(path, "x") {
            Some(_) if is_named(elem, "char") => {
                "`char` is not allowed, as not every value is one: write `u32`"
            }
            Some(_) if device_fn(elem).is_some() => NO_FUNCTIONS,
            Some(_) => "not allowed: host memory means nothing on the device",
            None => return Ok(()),
        },
        Type::Tuple(_) => {
            "a tuple is not allowed, as rustc may reorder its fields: write a struct with \
             #[repr(C)]"
        }
        Type::Reference(_) | Type::Ptr(_) => {
            "arrays of pointers are not supported yet: declare the array as `&[u64]` and fill it \
             with device addresses"
        }
        Type::Slice(_) => {
            "a slice of slices is not allowed: write `&[T]` and pass the rows' length"
        }
        _ => "not allowed: name the type of the elements, such as `f32`",
    };
    Err(error(elem, message))
}

/// Refuses what no variable of the device is.
pub(crate) fn check_static(ty: &Type) -> syn::Result<()> {
    if let Some(known) = known(ty) {
        return if known.size > 0 {
            Ok(())
        } else {
            Err(error(
                ty,
                "a type of size 0 is not allowed: there is nothing to read",
            ))
        };
    }
    if let Some(function) = device_fn(ty) {
        return check_function(function);
    }
    let message = match ty {
        Type::Group(group) => return check_static(&group.elem),
        Type::Paren(paren) => return check_static(&paren.elem),
        Type::Array(array) => return check_static(&array.elem),
        Type::Macro(_) => return Ok(()),
        Type::Path(path) => match refused_path(path, "x") {
            Some(_) if is_named(ty, "char") => {
                "`char` is not allowed, as not every value is one: write `u32`"
            }
            Some(_) => "not allowed: host memory means nothing on the device",
            None => return Ok(()),
        },
        Type::Tuple(_) => {
            "a tuple is not allowed, as rustc may reorder its fields: write a struct with \
             #[repr(C)] and #[derive(KernelArg)]"
        }
        Type::FnPtr(_) => {
            "a function of the device is declared by `DeviceFn<fn(A) -> R>`: that is the address which the variable holds"
        }
        Type::Reference(_) | Type::Ptr(_) => {
            "a pointer in a variable neither orders nor keeps alive what it points to: pass the \
             array to the kernel, as `&[T]`"
        }
        Type::Slice(_) => "a variable has a size: write `[T; N]`",
        _ => "not allowed: name the type of the variable, such as `[f32; 16]`",
    };
    Err(error(ty, message))
}

/// The layout of a scalar, or of an array of them.
pub(crate) fn known(ty: &Type) -> Option<Known> {
    match ty {
        Type::Group(group) => known(&group.elem),
        Type::Paren(paren) => known(&paren.elem),
        Type::Array(array) => known_array(array),
        Type::Path(TypePath {
            qself: None, path, ..
        }) => scalar(path),
        _ => None,
    }
}

fn known_array(array: &TypeArray) -> Option<Known> {
    let elem = known(&array.elem)?;
    let len: usize = literal_int(&array.len)?;
    Some(Known {
        size: elem.size.checked_mul(len)?,
        align: elem.align,
        shape: Shape::Bytes,
        counts: false,
    })
}

fn literal_int(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Group(group) => literal_int(&group.expr),
        Expr::Paren(paren) => literal_int(&paren.expr),
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn scalar(path: &Path) -> Option<Known> {
    let name = primitive_name(path)?;
    let (size, shape) = match name.as_str() {
        "bool" | "u8" | "i8" => (1, Shape::Integer),
        "u16" | "i16" => (2, Shape::Integer),
        "u32" | "i32" => (4, Shape::Integer),
        // Kernels run with 64-bit addresses only.
        "u64" | "i64" | "usize" | "isize" => (8, Shape::Integer),
        "f32" => (4, Shape::Float),
        "f64" => (8, Shape::Float),
        "u128" | "i128" => (16, Shape::Bytes),
        _ => return None,
    };
    let counts = shape != Shape::Float && name != "bool";
    Some(Known {
        size,
        align: size,
        shape,
        counts,
    })
}

/// `f32` of `f32`, `core::primitive::f32` and `std::primitive::f32`.
fn primitive_name(path: &Path) -> Option<String> {
    let segments: Vec<String> = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    if path
        .segments
        .iter()
        .any(|segment| !segment.arguments.is_none())
    {
        return None;
    }
    match segments.as_slice() {
        [name] if path.leading_colon.is_none() => Some(name.clone()),
        [root, module, name] if (root == "core" || root == "std") && module == "primitive" => {
            Some(name.clone())
        }
        _ => None,
    }
}

pub(crate) fn is_named(ty: &Type, name: &str) -> bool {
    match peel(ty) {
        Type::Path(TypePath {
            qself: None, path, ..
        }) => path
            .segments
            .last()
            .is_some_and(|last| last.ident == name && last.arguments.is_none()),
        _ => false,
    }
}

fn option_of(path: &TypePath) -> Option<&Type> {
    generic_of_path(path, &["Option"])
}

/// `T` of `Name<.., T>`, for one of the names; a name alone may be the user's own type.
pub(crate) fn generic_of<'a>(ty: &'a Type, names: &[&str]) -> Option<&'a Type> {
    match peel(ty) {
        Type::Path(path) => generic_of_path(path, names),
        _ => None,
    }
}

fn generic_of_path<'a>(path: &'a TypePath, names: &[&str]) -> Option<&'a Type> {
    let last = path.path.segments.last()?;
    if path.qself.is_some() || !names.iter().any(|name| last.ident == name) {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// `T` of `[T]`, as in `Box<[T]>`.
pub(crate) fn slice_element(ty: &Type) -> &Type {
    match peel(ty) {
        Type::Slice(slice) => &slice.elem,
        other => other,
    }
}

/// Without the parentheses and the invisible groups of `macro_rules!`.
fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peel(&group.elem),
        Type::Paren(paren) => peel(&paren.elem),
        _ => ty,
    }
}

fn error(tokens: impl quote::ToTokens, message: impl std::fmt::Display) -> syn::Error {
    syn::Error::new_spanned(tokens, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(source: &str) -> Result<Taken, String> {
        let ty = syn::parse_str(source).unwrap();
        classify(&ty, "p").map_err(|error| error.to_string())
    }

    fn layout(source: &str) -> Option<(usize, usize, Shape)> {
        let known = known(&syn::parse_str(source).unwrap())?;
        Some((known.size, known.align, known.shape))
    }

    #[test]
    fn knows_scalars_by_name() {
        assert_eq!(layout("bool"), Some((1, 1, Shape::Integer)));
        assert_eq!(layout("usize"), Some((8, 8, Shape::Integer)));
        assert_eq!(layout("core::primitive::f64"), Some((8, 8, Shape::Float)));
        assert_eq!(layout("i128"), Some((16, 16, Shape::Bytes)));
        assert_eq!(layout("[[f32; 3]; 2]"), Some((24, 4, Shape::Bytes)));
        assert_eq!(layout("my::f32"), None);
        assert_eq!(layout("[f32; N]"), None);
    }

    #[test]
    fn tells_the_kinds_apart() {
        assert!(matches!(
            taken("u32"),
            Ok(Taken::Value { known: Some(_), .. })
        ));
        assert!(matches!(
            taken("Grid"),
            Ok(Taken::Value { known: None, .. })
        ));
        assert!(matches!(
            taken("Complex<f32>"),
            Ok(Taken::Value { known: None, .. })
        ));
        assert!(matches!(
            taken("&[f32]"),
            Ok(Taken::Slice { written: false, .. })
        ));
        assert!(matches!(
            taken("&mut [Grid]"),
            Ok(Taken::Slice { written: true, .. })
        ));
        assert!(matches!(
            taken("(&[f32])"),
            Ok(Taken::Slice { written: false, .. })
        ));
        assert!(matches!(
            taken("Option<&[f32]>"),
            Ok(Taken::Optional { .. })
        ));
        assert!(matches!(
            taken("core::option::Option<&[f32]>"),
            Ok(Taken::Optional { .. })
        ));
        assert!(matches!(
            taken("*const f32"),
            Ok(Taken::Pointer { written: false, .. })
        ));
        assert!(matches!(
            taken("*mut *mut ()"),
            Ok(Taken::Pointer { written: true, .. })
        ));
    }

    #[test]
    fn strided_arrays_have_an_element_and_a_rank() {
        for (source, mutable) in [
            ("Strided<f32, 2>", false),
            ("StridedMut<f32, 2>", true),
            ("gridcall::Strided<Float4, RANK>", false),
            ("StridedMut<f32, { 1 + 1 }>", true),
        ] {
            assert!(
                matches!(taken(source), Ok(Taken::Strided { written, .. }) if written == mutable),
                "{source}"
            );
        }
        assert!(taken("Strided<f32, 0>").is_err_and(|text| text.contains("no dimensions")));
        assert!(taken("Strided<char, 2>").is_err_and(|text| text.contains("write `u32`")));
        assert!(matches!(taken("Strided<f32>"), Ok(Taken::Value { .. })));
    }

    #[test]
    fn functions_of_the_device_have_a_type() {
        for source in [
            "DeviceFn<fn(f32) -> f32>",
            "gridcall::DeviceFn<fn(*mut u32, Line)>",
            "(DeviceFn<Op>)",
        ] {
            assert!(
                matches!(taken(source), Ok(Taken::Function { .. })),
                "{source}"
            );
        }
        for (source, cure) in [
            ("DeviceFn<unsafe fn(f32)>", "without `unsafe`"),
            (
                "DeviceFn<extern \"C\" fn(f32)>",
                "without `unsafe`, `extern`",
            ),
            ("DeviceFn<for<'a> fn(f32)>", "`for<..>`"),
            ("DeviceFn<fn(&f32)>", "write `*const f32`"),
            ("DeviceFn<fn(&mut [f32])>", "write `*mut f32`"),
            ("DeviceFn<fn(fn(f32))>", "not supported yet"),
            ("DeviceFn<fn(f32) -> DeviceFn<fn()>>", "not supported yet"),
            ("DeviceFn<(f32, f32)>", "`fn(A, B) -> R`"),
            ("DeviceFn<f32>", "`fn(A, B) -> R`"),
            ("fn(f32) -> f32", "write `p: DeviceFn<fn(f32) -> f32>`"),
            ("[DeviceFn<fn()>; 2]", "does not tell its module"),
            ("&[DeviceFn<fn()>]", "does not tell its module"),
        ] {
            let message = taken(source).err();
            let message = message.unwrap_or_else(|| panic!("{source} was taken"));
            assert!(message.contains(cure), "{source}: {message}");
        }
        assert!(matches!(taken("DeviceFn"), Ok(Taken::Value { .. })));
        assert!(matches!(taken("DeviceFn<A, B>"), Ok(Taken::Value { .. })));
    }

    #[test]
    fn a_box_without_arguments_is_the_users() {
        assert!(matches!(taken("Box"), Ok(Taken::Value { known: None, .. })));
        assert!(taken("Box<f32>").is_err());
    }

    #[test]
    fn refusals_name_the_cure() {
        for (source, cure) in [
            (
                "&Grid",
                "write `p: Grid`; for device memory holding `Grid` write `p: &[Grid]`",
            ),
            (
                "&f32",
                "write `p: f32`; for device memory write `p: &[f32]`",
            ),
            ("&mut f32", "write `p: &mut [f32]`"),
            (
                "&[f32; 4]",
                "write `p: &[f32]` and #[requires(p.len() == 4)]",
            ),
            ("&Vec<f32>", "write `p: &[f32]`"),
            ("Vec<f32>", "write `p: &[f32]`"),
            ("&str", "write `p: &[u8]`"),
            ("String", "host memory"),
            ("[f32]", "write `p: &[f32]`"),
            ("(u8, u32)", "#[derive(KernelArg)]"),
            ("()", "has a size"),
            ("fn(u8)", "function pointer"),
            ("char", "write `u32`"),
            ("!", "no values"),
            ("impl Copy", "`p: &[T]`"),
            ("Option<u32>", "only a pointer can be absent"),
            ("Option<*const u8>", "write `*const u8`"),
            ("Option<&mut [f32]>", "not supported yet"),
            ("&'a [f32]", "lifetimes are not allowed"),
            ("*const [f32]", "write `*const f32`"),
            ("[f32; 0]", "size 0"),
            ("&[char]", "write `u32`"),
            ("&[(u8, u8)]", "#[repr(C)]"),
            ("&[&f32]", "not supported yet"),
            ("&[String]", "host memory"),
        ] {
            let message = taken(source)
                .err()
                .unwrap_or_else(|| panic!("{source} was taken"));
            assert!(message.contains(cure), "{source}: {message}");
        }
    }
}
