//! Compares functions of the device, as they are declared, with those of a module, as the macro does.

use gridcall_ptx as ptx;

use crate::{
    layout::Class,
    signature::{PtxFunction, PtxPart, Signature},
};

/// What differs between the type of a static and the functions that its variable holds from the
/// start.
pub(super) fn check_held(
    name: &str,
    (source, module): (&str, &ptx::Module),
    variable: &ptx::Variable,
    (ty, signature): (&str, &Signature<'_>),
) -> Result<(), String> {
    // A value that cannot be read is no witness.
    for held in module.held_functions(variable, source).unwrap_or_default() {
        let place = format!("{name}:{}", held.position.line);
        let shown = held
            .name
            .map_or("a number".to_owned(), |name| format!("`{name}`"));
        let Some(function) = held.function else {
            return Err(format!(
                "it is `{ty}`, but {place} initialises it with {shown}, which is no function's address"
            ));
        };
        let line = function.position().line;
        let said = format!("{place} initialises it with {shown}, which {name}:{line} declares");
        let parts = (function.params(), function.returns());
        if let Some(differs) = differs(signature, &said, &function.signature(), parts) {
            return Err(format!("it is `{ty}`{differs}"));
        }
    }
    Ok(())
}

/// What differs between the type of a parameter and a prototype by which the kernel calls it.
pub(super) fn check_calls(
    name: &str,
    signature: &Signature<'_>,
    flow: &ptx::ParamFlow,
) -> Option<String> {
    flow.calls().iter().find_map(|call| {
        let line = call.position.line;
        let said = format!("the kernel calls it at {name}:{line} by the prototype");
        differs(
            signature,
            &said,
            &call.signature(),
            (&call.params, &call.returns),
        )
    })
}

fn differs(
    signature: &Signature<'_>,
    said: &str,
    shown: &str,
    (params, returns): (&[ptx::Param], &[ptx::Param]),
) -> Option<String> {
    let params: Vec<PtxPart> = params.iter().map(part).collect();
    let ptx = PtxFunction {
        said,
        shown,
        params: &params,
        result: returns.first().map(part),
    };
    Some(signature.differs(&ptx)?.as_str().to_owned())
}

fn part(param: &ptx::Param) -> PtxPart {
    PtxPart {
        size: param.size(),
        align: param.align(),
        class: match param.class() {
            ptx::Class::Integer => Class::Integer,
            ptx::Class::Float => Class::Float,
            ptx::Class::Bits => Class::Bits,
            _ => Class::Bytes,
        },
    }
}
