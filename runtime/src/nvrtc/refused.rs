//! Why did the compiler refuse a program: for its source, or for what is declared of it?

use super::{CompileError, CompileErrorKind, with_claims};
use crate::{
    libnvrtc::{LibNvrtc, Unit},
    verify::{self, Compared, Named, Subject},
};

/// Why the compiler refused the unit: `user` is of it the user's own source and name expressions,
/// `log` what it said.
pub(super) fn refused(
    library: &LibNvrtc,
    unit: &Unit<'_>,
    user: (&str, &[String]),
    kernels: &[Named<'_>],
    arch: &str,
    log: String,
) -> CompileError {
    let why = why(library, unit, user, kernels, arch, log);
    // To ask the compiler again may fail, too.
    why.unwrap_or_else(|failed| failed)
}

fn why(
    library: &LibNvrtc,
    unit: &Unit<'_>,
    (source, own): (&str, &[String]),
    kernels: &[Named<'_>],
    arch: &str,
    log: String,
) -> Result<CompileError, CompileError> {
    let name = unit.name.to_owned();
    let of_source = |log| {
        let (name, arch) = (name.clone(), arch.to_owned());
        CompileErrorKind::Source { name, arch, log }.into()
    };
    if kernels.is_empty() {
        return Ok(of_source(log));
    }
    let compile = |text: &str, name_expressions: &[String]| {
        let program = library.compile(&Unit {
            text,
            name_expressions,
            ..*unit
        })?;
        let log = (!program.succeeded()).then(|| program.log());
        log.transpose().map_err(CompileError::from)
    };
    // The log of what the user wrote, without anything of ours.
    if let Some(log) = compile(source, own)? {
        return Ok(of_source(log));
    }
    // One at a time, so that one which is not there hides no others.
    let mut differences = String::new();
    for kernel in kernels {
        let declared = format!("typedef {} declared;", kernel.ty());
        if let Some(log) = compile(&with_claims(source, &declared), &[])? {
            let kernel = kernel.name.clone();
            return Ok(CompileErrorKind::NoKernel { name, kernel, log }.into());
        }
        let compared = verify::compare(&[Subject::Kernel(kernel.clone())], |claims| {
            compile(&with_claims(source, claims), &[])
        })?;
        match compared {
            Compared::Same => {}
            Compared::Differ(found) => differences.push_str(&found),
            Compared::Unreadable(log) => return Ok(of_source(log)),
        }
    }
    Ok(match differences.as_str() {
        // What the name expressions alone were refused for.
        "" => of_source(log),
        _ => CompileErrorKind::Declarations { name, differences }.into(),
    })
}
