//! The CUDA compiler as a witness: compiles the source of declared kernels and variables with
//! assertions about them.
//!
//! Takes declarations; writes C++ that holds what they claim (`source`), has a compiler that is
//! found on the machine compile it (`compiler`), and reads what it says (`log`). Where a variable
//! lies no C++ can say: that is compared in the PTX (`variable`).

mod compiler;
mod log;
mod source;
mod variable;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    declaration::{Declaration, StaticDeclaration},
    kernel::Declared,
    symbol::DeclaredSymbol,
};

pub(crate) use source::{Named, Subject};

/// Compares declared kernels and variables with their CUDA source by the CUDA compiler, in a test.
///
/// One line in a test, for those declared with `cuda = "path"`:
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
/// #[kernel(ptx = "../kernels/symbols.ptx", cuda = "../kernels/symbols.cu")]
/// unsafe extern "C" {
///     static mut taps: [f32; 5];
/// }
///
/// # #[cfg(test)]
/// #[test]
/// fn declarations_are_those_of_the_source() {
///     gridcall::verify!(julia, taps);
/// }
/// # fn main() { gridcall::verify!(julia, taps); }
/// ```
///
/// The source is compiled with an assertion for the type of each parameter, and for the size, the
/// alignment and the place of each field of every struct that implements
/// [`KernelArg`](crate::KernelArg), also within arrays and other structs. What differs fails the
/// test, with the kernel, the parameter and the field. Of a variable the type, the size, the
/// alignment and the `const` are compared likewise; and that the source still puts a variable of its
/// name into the state space (`.const`, `.global`) that it has in the PTX of the declaration.
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
    ($($declared:ty),+ $(,)?) => {
        $crate::__private::verify(
            ::core::env!("CARGO_MANIFEST_DIR"),
            &[$($crate::__private::declaration::<$declared, _>()),+],
        )
    };
}

/// A declaration of either kind.
#[derive(Clone, Copy, Debug)]
pub enum AnyDeclaration {
    /// A kernel's.
    Kernel(&'static Declaration),
    /// A variable's.
    Static(&'static StaticDeclaration),
}

/// What `verify!` compares. `Kind` keeps the two kinds apart, and is found by the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not one declared kernel or variable",
    label = "not a kernel or a variable",
    note = "`verify!` takes no kernel that is declared for several types"
)]
pub trait Verified<Kind> {
    /// The declaration.
    fn declaration() -> AnyDeclaration;
}

/// The kind of kernels.
#[derive(Debug)]
pub enum OfKernel {}

/// The kind of variables.
#[derive(Debug)]
pub enum OfStatic {}

impl<D: Declared> Verified<OfKernel> for D {
    fn declaration() -> AnyDeclaration {
        AnyDeclaration::Kernel(D::cell().declaration())
    }
}

impl<D: DeclaredSymbol> Verified<OfStatic> for D {
    fn declaration() -> AnyDeclaration {
        AnyDeclaration::Static(D::cell().declaration())
    }
}

/// The declaration of a kernel or a variable, by the type that stands for it.
#[must_use]
pub fn declaration<D: Verified<Kind>, Kind>() -> AnyDeclaration {
    D::declaration()
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
pub fn verify(manifest_dir: &str, declarations: &[AnyDeclaration]) {
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

fn check(root: &Path, declarations: &[AnyDeclaration]) -> Result<Outcome, String> {
    let mut by_source: BTreeMap<PathBuf, Vec<AnyDeclaration>> = BTreeMap::new();
    for &declaration in declarations {
        let (source, name, file, line) = match declaration {
            AnyDeclaration::Kernel(kernel) => {
                (kernel.cpp.source, kernel.kernel, kernel.file, kernel.line)
            }
            AnyDeclaration::Static(one) => (one.source, one.name, one.file, one.line),
        };
        let Some(source) = source else {
            return Err(format!(
                "`{name}`, declared at {file}:{line}, names no CUDA source to compile: write \
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

fn check_source(path: &Path, declarations: &[AnyDeclaration]) -> Result<Checked, String> {
    if !path.is_file() {
        return Err(format!("there is no {}", path.display()));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let subjects: Vec<Subject<'_>> = declarations
        .iter()
        .map(|&declaration| match declaration {
            AnyDeclaration::Kernel(declaration) => Subject::Kernel(Named {
                declaration,
                name: declaration.cpp.name.to_owned(),
            }),
            AnyDeclaration::Static(declaration) => Subject::Variable(declaration),
        })
        .collect();
    let compile = |claims: &str| {
        let text = format!("#include \"{}\"\n{claims}", path.display());
        compiler::compile(&text, folder)
    };
    let refused = |log| Err(format!("{} does not compile:\n{log}", path.display()));
    let mut differences = match compare(&subjects, |claims| Ok(compile(claims)?.err())) {
        Ok(Compared::Same) => String::new(),
        Ok(Compared::Differ(differences)) => differences,
        Ok(Compared::Unreadable(log)) => return refused(log),
        Err(why) => return Ok(Checked::NoCompiler(why)),
    };
    let variables = subjects.iter().filter_map(|subject| match subject {
        Subject::Variable(declaration) => Some(*declaration),
        Subject::Kernel(_) => None,
    });
    let variables: Vec<&StaticDeclaration> = variables.collect();
    if !variables.is_empty() {
        match compile("") {
            Ok(Ok(ptx)) => variable::compare(&variables, &ptx, path, &mut differences)?,
            Ok(Err(log)) => return refused(log),
            Err(why) => return Ok(Checked::NoCompiler(why)),
        }
    }
    Ok(Checked::Differences(differences))
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
    subjects: &[Subject<'_>],
    mut compile: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<Compared, E> {
    let mut rest = subjects.to_vec();
    let mut differences = String::new();
    loop {
        let claims = source::claims(&rest);
        let Some(log) = compile(&claims.text)? else {
            break;
        };
        let mut failed = log::undeclared(&log);
        let by = |claim: usize| claims.claims.get(claim).map(|one| one.declaration);
        let not_there: Vec<_> = failed.iter().map(|failure| by(failure.claim)).collect();
        // What is not there has no type to be wrong.
        let others = log::failed(&log).into_iter();
        failed.extend(others.filter(|failure| !not_there.contains(&by(failure.claim))));
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
    let kernels: Vec<_> = kernels.iter().cloned().map(Subject::Kernel).collect();
    source::claims(&kernels).text
}
