//! The code as a witness: what it does through each parameter, where that is certain.

use gridcall_ptx::{Access, Flow, ParamFlow, Reach, ScalarType};
use quote::ToTokens;

use crate::cuda::Scalar;
use crate::describe;
use crate::kernel::Param;
use crate::value::Taken;

use super::rust::{self, Rust};
use super::{Contradiction, Subject};

/// What the code does against the declaration; and, if the block asks for it, which arrays it never
/// touches.
pub(crate) fn check(subject: &Subject<'_>, flow: &Flow, deny_unused: bool) -> Vec<Contradiction> {
    let params = subject.kernel.params.iter().zip(flow.params()).enumerate();
    params
        .filter_map(|(index, (param, flow))| {
            let message = check_called(param, flow, subject)
                .or_else(|| check_dereferenced(param, flow, subject))
                .or_else(|| check_written(param, flow, subject))
                .or_else(|| check_width(param, flow, subject))
                .or_else(|| deny_unused.then(|| check_used(param, flow))?)?;
            Some(Contradiction {
                tokens: param.ty.to_token_stream(),
                message: format!("{}, but {message}", subject.param_is(index)),
            })
        })
        .collect()
}

/// Neither an integer nor an array is a function.
fn check_called(param: &Param, flow: &ParamFlow, subject: &Subject<'_>) -> Option<String> {
    match &param.taken {
        Taken::Value { .. } | Taken::Slice { .. } | Taken::Optional { .. } => {}
        // The caller vouches for a raw pointer.
        _ => return None,
    }
    let call = flow.calls().first()?;
    let place = subject.place(call.position);
    let (ident, prototype) = (&param.ident, call.signature());
    Some(format!(
        "the kernel calls it as a function at {place}, by the prototype `{prototype}`: write `{ident}: {}`",
        rust::of_prototype(call).unwrap_or_else(|| "DeviceFn<fn(..) -> ..>".to_owned())
    ))
}

/// An integer is no address.
fn check_dereferenced(param: &Param, flow: &ParamFlow, subject: &Subject<'_>) -> Option<String> {
    let Taken::Value { ty, .. } = &param.taken else {
        return None;
    };
    let Rust::Scalar(Scalar::Int { size: 8, .. }) = Rust::of(ty) else {
        return None;
    };
    let access = flow.write().or(flow.accesses().first())?;
    let does = does(access);
    let elem = access.ty.map_or("T", element);
    let mutable = if flow.write().is_some() { "&mut " } else { "&" };
    let place = subject.place(access.position);
    let ident = &param.ident;
    Some(format!(
        "the kernel takes it for an address, {does} there at {place}: write `{ident}: {mutable}[{elem}]`"
    ))
}

/// What is declared to be read is not written.
fn check_written(param: &Param, flow: &ParamFlow, subject: &Subject<'_>) -> Option<String> {
    let (elem, cure) = match &param.taken {
        // There is no form for an optional one that is written yet.
        Taken::Slice {
            elem,
            written: false,
        }
        | Taken::Optional { elem } => (elem, "&mut ["),
        Taken::Pointer {
            elem,
            written: false,
        } => (elem, "*mut "),
        _ => return None,
    };
    let access = flow.write()?;
    let place = subject.place(access.position);
    let elem = describe::ty(elem);
    let close = if cure.ends_with('[') { "]" } else { "" };
    Some(format!(
        "the kernel {} it at {place}: write `{cure}{elem}{close}`",
        does_to(access)
    ))
}

/// Elements are as wide as what is loaded at once, where that is certain.
fn check_width(param: &Param, flow: &ParamFlow, subject: &Subject<'_>) -> Option<String> {
    let (Taken::Slice { elem, .. } | Taken::Optional { elem }) = &param.taken else {
        return None;
    };
    let scalar = Rust::of(elem).only_scalar()?;
    let access = narrowest(flow)?;
    let place = subject.place(access.position);
    if let Some((bytes, _)) = needed_align(param, flow, Rust::of(elem).align()?) {
        let ident = &param.ident;
        let shown = describe::ty(&param.ty);
        return Some(format!(
            "the kernel {} {bytes} bytes at once at {place}, and its elements are aligned to {}: write \
             the type of {bytes} bytes that it takes, or `#[align({bytes})] {ident}: {shown}`",
            does_here(access),
            Rust::of(elem).align()?
        ));
    }
    let ty = access.ty?;
    let is_narrower = access.lanes == 1 && ty.size() < scalar.size();
    (is_narrower && is_float(ty) && all_alike(flow) && contradicts(scalar, access)).then(|| {
        format!(
            "the kernel {} elements of `{}` at {place}: write the array with elements of `{}`",
            does_here(access),
            element(ty),
            element(ty)
        )
    })
}

/// The bytes that every access needs its address aligned to, if the elements do not see to it; and
/// where.
pub(crate) fn needed_align<'f>(
    param: &Param,
    flow: &'f ParamFlow,
    own: usize,
) -> Option<(usize, &'f Access)> {
    let access = narrowest(flow)?;
    let bytes = access.bytes()?;
    let asked = param.align.map_or(1, |align| align as usize);
    // Code that looks at the address may choose by it.
    (bytes > own.max(asked) && !flow.is_inspected()).then_some((bytes, access))
}

/// The access of the fewest bytes, if all of them are known.
fn narrowest(flow: &ParamFlow) -> Option<&Access> {
    let all_known = flow
        .accesses()
        .iter()
        .all(|access| access.bytes().is_some());
    if !flow.is_complete() || !all_known {
        return None;
    }
    flow.accesses().iter().min_by_key(|access| access.bytes())
}

fn all_alike(flow: &ParamFlow) -> bool {
    let [first, rest @ ..] = flow.accesses() else {
        return false;
    };
    rest.iter().all(|access| access.ty == first.ty)
}

/// Floats that are narrower are no halves of floats; of integers only if they lie side by side.
fn contradicts(scalar: Scalar, access: &Access) -> bool {
    let width = access.ty.map_or(0, ScalarType::size) as u64;
    match scalar {
        Scalar::Float { .. } => true,
        _ => access.step == Some(width),
    }
}

fn is_float(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::F32 | ScalarType::F64)
}

fn check_used(param: &Param, flow: &ParamFlow) -> Option<String> {
    let is_array = !matches!(param.taken, Taken::Value { .. });
    (is_array && !flow.is_used())
        .then(|| "the kernel never touches it: remove it from the kernel and from here, or take `unused = \"deny\"` away".to_owned())
}

fn does(access: &Access) -> &'static str {
    match access.reach {
        Reach::Read => "reading",
        Reach::Write => "writing",
        Reach::Update => "updating",
    }
}

fn does_to(access: &Access) -> &'static str {
    match access.reach {
        Reach::Read => "reads",
        Reach::Write => "writes to",
        Reach::Update => "updates",
    }
}

fn does_here(access: &Access) -> &'static str {
    match access.reach {
        Reach::Read => "reads",
        Reach::Write => "writes",
        Reach::Update => "updates",
    }
}

/// A type for elements that are accessed so.
fn element(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F32 => "f32",
        ScalarType::F64 => "f64",
        ScalarType::F16 => "f16",
        ScalarType::Bf16 => "bf16",
        ScalarType::S8 => "i8",
        ScalarType::S16 => "i16",
        ScalarType::S32 => "i32",
        ScalarType::S64 => "i64",
        ScalarType::U8 => "u8",
        ScalarType::U16 => "u16",
        ScalarType::U32 => "u32",
        ScalarType::U64 => "u64",
        _ => "T",
    }
}
