//! The CUDA compiler as a witness: compiles the source of declared kernels with assertions about
//! them.
//!
//! Takes declarations; writes C++ that holds what they claim (`source`), has a compiler that is
//! found on the machine compile it (`compiler`), and reads what it says (`log`).

mod compiler;
mod log;
mod source;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{declaration::Declaration, kernel::Declared};

pub(crate) use source::Named;

/// Compares declared kernels with their CUDA source by the CUDA compiler, in a test.
///
/// One line in a test, for kernels declared with `cuda = "path"`:
///
/// ```no_run
/// use gridcall::{KernelArg, kernel};
///
/// #[derive(Clone, Copy, KernelArg)]
/// #[repr(C)]
/// pub struct Grid { x0: f32, dx: f32, n: i32 }
///
/// #[kernel(ptx = "../kernels/structs.ptx", cuda = "../kernels/structs.cu")]
/// unsafe fn julia(out: &mut [u32], g: Grid);
///
/// # #[cfg(test)]
/// #[test]
/// fn declarations_are_those_of_the_source() {
///     gridcall::verify!(julia);
/// }
/// # fn main() { gridcall::verify!(julia); }
/// ```
///
/// The source is compiled with an assertion for the type of each parameter, and for the size, the
/// alignment and the place of each field of every struct that implements
/// [`KernelArg`](crate::KernelArg), also within arrays and other structs. What differs fails the
/// test, with the kernel, the parameter and the field.
///
/// The compiler is NVRTC (`libnvrtc`, where the system finds it, in `CUDA_PATH` or `CUDA_HOME`, or
/// as `GRIDCALL_NVRTC` says) or `nvcc` (on `PATH`, in `CUDA_PATH` or `CUDA_HOME`, or as `NVCC`
/// says). Neither needs a GPU or a driver. Where there is none, the test passes and says on the
/// error stream that it was skipped; with `GRIDCALL_VERIFY=require` it fails, which is what a
/// machine for tests should set.
///
/// # Panics
///
/// If a declaration differs from the source, or the source cannot be compiled.
#[macro_export]
macro_rules! verify {
    ($($kernel:ty),+ $(,)?) => {
        $crate::__private::verify(
            ::core::env!("CARGO_MANIFEST_DIR"),
            &[$($crate::__private::declaration::<$kernel>()),+],
        )
    };
}

/// The declaration of a kernel, by the struct that stands for it.
#[must_use]
pub fn declaration<D: Declared>() -> &'static Declaration {
    D::cell().declaration()
}

/// Whether a CUDA compiler is found.
#[must_use]
pub fn has_compiler() -> bool {
    compiler::is_found()
}

/// Compiles the sources of the declarations with what they claim.
///
/// # Panics
///
/// If a claim does not hold.
#[track_caller]
pub fn verify(manifest_dir: &str, declarations: &[&'static Declaration]) {
    match check(Path::new(manifest_dir), declarations) {
        Ok(Outcome::Verified) => {}
        Ok(Outcome::Skipped(why)) if is_required() => panic!("gridcall::verify!: {why}"),
        // Not by `eprintln!`, which a test that passes shows to nobody.
        Ok(Outcome::Skipped(why)) => {
            let _ = writeln!(std::io::stderr(), "gridcall::verify!: SKIPPED: {why}");
        }
        Err(differences) => panic!("{differences}"),
    }
}

enum Outcome {
    Verified,
    /// There is no compiler.
    Skipped(String),
}

fn is_required() -> bool {
    std::env::var_os("GRIDCALL_VERIFY").is_some_and(|value| value == "require")
}

fn check(root: &Path, declarations: &[&'static Declaration]) -> Result<Outcome, String> {
    let mut by_source: BTreeMap<PathBuf, Vec<&'static Declaration>> = BTreeMap::new();
    for declaration in declarations {
        let Some(source) = declaration.cpp.source else {
            let &&Declaration {
                kernel, file, line, ..
            } = declaration;
            return Err(format!(
                "`{kernel}`, declared at {file}:{line}, names no CUDA source to compile: write \
                 `#[kernel(.., cuda = \"path\")]`"
            ));
        };
        by_source
            .entry(root.join(source))
            .or_default()
            .push(declaration);
    }
    let mut differences = String::new();
    for (source, declarations) in by_source {
        match check_source(&source, &declarations)? {
            Checked::Differences(found) => differences.push_str(&found),
            Checked::NoCompiler(why) => return Ok(Outcome::Skipped(why)),
        }
    }
    if differences.is_empty() {
        Ok(Outcome::Verified)
    } else {
        Err(format!(
            "declarations differ from their CUDA source:\n{differences}"
        ))
    }
}

enum Checked {
    /// What differs, each on a line of its own; empty if nothing does.
    Differences(String),
    NoCompiler(String),
}

fn check_source(path: &Path, declarations: &[&Declaration]) -> Result<Checked, String> {
    if !path.is_file() {
        return Err(format!("there is no {}", path.display()));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let kernels: Vec<Named<'_>> = declarations
        .iter()
        .map(|declaration| Named {
            declaration,
            name: declaration.cpp.name.to_owned(),
        })
        .collect();
    let compared = compare(&kernels, |claims| {
        let text = format!("#include \"{}\"{claims}", path.display());
        compiler::compile(&text, folder)
    });
    match compared {
        Ok(Compared::Same) => Ok(Checked::Differences(String::new())),
        Ok(Compared::Differ(differences)) => Ok(Checked::Differences(differences)),
        Ok(Compared::Unreadable(log)) => {
            Err(format!("{} does not compile:\n{log}", path.display()))
        }
        Err(why) => Ok(Checked::NoCompiler(why)),
    }
}

/// What a compiler thinks of declarations.
pub(crate) enum Compared {
    Same,
    /// What differs, each on a line of its own.
    Differ(String),
    /// The source does not compile, or not with these kernels; the compiler's log.
    Unreadable(String),
}

/// Has `compile` compile the source with claims behind it, which are given; it answers the log if
/// that does not compile.
pub(crate) fn compare<E>(
    kernels: &[Named<'_>],
    mut compile: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Compared, E> {
    let mut rest = kernels.to_vec();
    let mut differences = String::new();
    loop {
        let claims = source::claims(&rest);
        let Some(log) = compile(&claims.text)? else {
            break;
        };
        let failed = log::failed(&log);
        if failed.is_empty() || log::has_others(&log) {
            return Ok(Compared::Unreadable(log));
        }
        let mut last = "";
        let mut wrong = Vec::new();
        for log::Failure { claim, actual } in failed {
            let Some(claim) = claims.claims.get(claim) else {
                return Ok(Compared::Unreadable(log));
            };
            // What is no array is not one of other elements, too.
            if claim.subject != last {
                let _ = writeln!(differences, "  {}", claim.said(actual.as_deref()));
            }
            last = &claim.subject;
            wrong.push(claim.declaration);
        }
        // A compiler gives up after so many errors; the others have their turn then.
        if !log::is_cut_short(&log) {
            break;
        }
        let mut number = 0..;
        rest.retain(|_| !number.next().is_some_and(|number| wrong.contains(&number)));
    }
    Ok(if differences.is_empty() {
        Compared::Same
    } else {
        Compared::Differ(differences)
    })
}

/// The claims as text, to stand behind a source.
#[cfg(feature = "nvrtc")]
pub(crate) fn claims(kernels: &[Named<'_>]) -> String {
    source::claims(kernels).text
}
