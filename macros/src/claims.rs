//! What the witnesses know of the user's own types, for the compiler to compare.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{Path, Type};

use crate::artifact::Cuda;
use crate::cuda::{self, Scalar};
use crate::describe;
use crate::expand::plain;
use crate::kernel::unraw;
use crate::span::{at, located};
use crate::value::Taken;
use crate::witness::source::Counterpart;
use crate::witness::{Subject, code, rust::Rust, source};

/// Items that compare fields with the source, and alignments with the code.
pub(crate) fn of(krate: &Path, subject: &Subject<'_>, cuda: Option<&Cuda>) -> TokenStream {
    let mut claims = accesses(krate, subject);
    if let Some(cuda) = cuda
        && let Some(kernel) = source::kernel(subject, cuda)
    {
        for counterpart in source::counterparts(subject, kernel) {
            claims.extend(fields(krate, subject, cuda, &counterpart));
        }
    }
    claims
}

/// Elements of a type that the macro does not know, and the code that reaches them.
fn accesses(krate: &Path, subject: &Subject<'_>) -> TokenStream {
    let Some(flow) = &subject.flow else {
        return TokenStream::new();
    };
    let params = subject.kernel.params.iter().zip(flow.params()).enumerate();
    params
        .filter_map(|(index, (param, flow))| {
            let (Taken::Slice { elem, .. } | Taken::Optional { elem }) = &param.taken else {
                return None;
            };
            if Rust::of(elem).align().is_some() {
                return None;
            }
            let (bytes, access) = code::needed_align(param, flow, 1)?;
            let krate = located(krate, at(elem));
            let kernel = unraw(&subject.outline.ident);
            let (index, name, bytes) = (plain(index), unraw(&param.ident), plain(bytes));
            let place = subject.place(access.position);
            Some(quote_spanned! {at(elem)=>
                const _: () =
                    #krate::__private::check_access::<#elem>(#kernel, #index, #name, #bytes, #place);
            })
        })
        .collect()
}

fn fields(
    krate: &Path,
    subject: &Subject<'_>,
    cuda: &Cuda,
    counterpart: &Counterpart<'_>,
) -> TokenStream {
    let structure = counterpart.structure;
    let (Some(layout), Some((offsets, _)), Some(fields)) =
        (structure.layout(), structure.offsets(), &structure.fields)
    else {
        return TokenStream::new();
    };
    let param = &subject.kernel.params[counterpart.index];
    let ty = written(&param.taken);
    let krate = located(krate, at(ty));
    let fields = fields.iter().zip(offsets).map(|(field, offset)| {
        let (name, place, kind) = (&field.name, cuda.place(field.line), kind(&field.ty));
        let size = plain(field.ty.layout().map_or(0, |layout| layout.size));
        let (offset, shown) = (plain(offset), &field.text);
        quote_spanned! {at(ty)=>
            #krate::__private::CounterpartField {
                name: #name, offset: #offset, size: #size, kind: #kind, ty: #shown, place: #place,
            }
        }
    });
    let kernel = unraw(&subject.outline.ident);
    let (index, name) = (plain(counterpart.index), unraw(&param.ident));
    let (shown, place) = (describe::ty(ty), cuda.place(structure.line));
    let (structure, size) = (&structure.name, plain(layout.size));
    quote_spanned! {at(ty)=>
        const _: () = {
            #[allow(unused_imports)]
            use #krate::__private::NoLayout as _;
            #krate::__private::check_fields(
                #krate::__private::LayoutOf::<#ty>::LAYOUT,
                &#krate::__private::Counterpart {
                    kernel: #kernel, index: #index, param: #name, ty: #shown, name: #structure,
                    place: #place, size: #size, fields: &[#(#fields),*],
                },
            );
        };
    }
}

/// The type whose fields are meant.
fn written(taken: &Taken) -> &Type {
    match taken {
        Taken::Value { ty, .. } | Taken::Condition { ty } => ty,
        Taken::Slice { elem, .. }
        | Taken::Optional { elem }
        | Taken::Strided { elem, .. }
        | Taken::TensorMap { elem, .. }
        | Taken::Texture { elem }
        | Taken::Surface { elem, .. }
        | Taken::Pointer { elem, .. }
        | Taken::Function { ty: elem, .. } => elem,
    }
}

/// What the runtime calls a type; nothing where that is not known.
fn kind(ty: &cuda::Type) -> String {
    match ty {
        cuda::Type::Scalar(scalar)
        | cuda::Type::Enum(cuda::Enum {
            underlying: Some(scalar),
            ..
        }) => scalar_kind(*scalar),
        cuda::Type::Vector(vector) if vector.name == "dim3" => "uint3".to_owned(),
        cuda::Type::Vector(vector) if !vector.name.contains("long") => vector.name.to_owned(),
        cuda::Type::Pointer(_) => "pointer".to_owned(),
        cuda::Type::Array(element, _) => kind(element),
        _ => String::new(),
    }
}

fn scalar_kind(scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool => "bool".to_owned(),
        Scalar::Char => "char".to_owned(),
        Scalar::Int { size, signed } => format!("{}{}", if signed { "i" } else { "u" }, size * 8),
        Scalar::Float { size } => format!("f{}", size * 8),
        Scalar::Half => "f16".to_owned(),
        Scalar::Bfloat16 => "bf16".to_owned(),
        Scalar::Fp8E4m3 => "e4m3".to_owned(),
        Scalar::Fp8E5m2 => "e5m2".to_owned(),
    }
}
