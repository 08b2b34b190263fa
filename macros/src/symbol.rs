//! Compares a declared static with the variable in the PTX, and with the CUDA source where it is
//! given, one rule a function.

use gridcall_ptx as ptx;
use proc_macro2::TokenStream;
use quote::ToTokens;

use crate::artifact::{Artifact, Cuda};
use crate::cuda;
use crate::describe;
use crate::expand::Called;
use crate::kernel::unraw;
use crate::mangled;
use crate::report::Report;
use crate::statics::Static;
use crate::suggest;
use crate::value::{self, Known, Shape};
use crate::witness::types;

const MOST_LISTED: usize = 8;

/// Checks a declaration against one file, and gives the variable that it declares.
pub(crate) fn against<'a>(
    declared: &Static,
    artifact: &'a Artifact,
    report: &mut Report,
) -> Option<&'a ptx::Variable> {
    let subject = Subject { declared, artifact };
    let variable = subject.check_exists(report)?;
    subject.check_space(variable, report);
    if report.is_empty() {
        subject.check_type(variable, report);
        subject.check_functions(variable, report);
        subject.check_written(variable, report);
    }
    Some(variable)
}

/// Checks a declaration against the source.
pub(crate) fn against_source(
    declared: &Static,
    variable: &ptx::Variable,
    cuda: &Cuda,
    report: &mut Report,
) {
    let Some(actual) = in_source(variable, cuda) else {
        return;
    };
    let place = cuda.place(actual.line);
    let text = &actual.text;
    let is_struct = |name: &str| cuda.source.structs.iter().any(|known| known == name);
    if let Some(cure) = types::of_static(&declared.ty, &actual.ty, &is_struct) {
        report.error(
            &declared.ty,
            format!(
                "`{}` is `{}`, but {place} declares `{text}`: {cure}",
                unraw(&declared.ident),
                describe::ty(&declared.ty)
            ),
        );
    } else if let Some(token) = declared.mutability
        && actual.is_const
    {
        report.error(
            token,
            format!("{place} declares `{text}`, which the compiler takes for a value that never changes: write `{}`",
                declared.shown().replacen("mut ", "", 1)),
        );
    }
}

fn in_source<'c>(variable: &ptx::Variable, cuda: &'c Cuda) -> Option<&'c cuda::Variable> {
    let path = mangled::variable_path(variable.name())?;
    let named: Vec<&cuda::Variable> = cuda
        .source
        .variables
        .iter()
        .filter(|one| one.path() == path)
        .collect();
    match named[..] {
        [only] => Some(only),
        // Under conditions there may be several, of which nobody knows which was compiled.
        _ => None,
    }
}

struct Subject<'a, 'p> {
    declared: &'a Static,
    artifact: &'p Artifact,
}

impl<'p> Subject<'_, 'p> {
    fn file(&self) -> &str {
        &self.artifact.place.shown
    }

    fn place(&self, position: ptx::Position) -> String {
        format!("{}:{}", self.file(), position.line)
    }

    fn name_tokens(&self) -> TokenStream {
        match &self.declared.name {
            Some(name) => name.to_token_stream(),
            None => self.declared.ident.to_token_stream(),
        }
    }

    /// Variables that live as long as the module.
    fn variables(&self) -> impl Iterator<Item = &'p ptx::Variable> {
        let all = self.artifact.module().variables().iter();
        all.filter(|variable| is_of_module(variable))
    }

    fn check_exists(&self, report: &mut Report) -> Option<&'p ptx::Variable> {
        let name = self.declared.symbol_name();
        let all = self.artifact.module().variables();
        let exact = all.iter().find(|variable| variable.name() == name);
        let found = exact.map_or_else(|| self.mangled(&name), Ok);
        match found {
            Ok(variable) => Some(variable),
            Err(message) => {
                report.error(self.name_tokens(), message);
                None
            }
        }
    }

    /// The one variable that C++ calls so.
    fn mangled(&self, name: &str) -> Result<&'p ptx::Variable, String> {
        let names: Vec<&str> = self.variables().map(ptx::Variable::name).collect();
        let called = mangled::called(name, &names);
        match called.as_slice() {
            [] => Err(self.not_there(name, &names)),
            [(symbol, _)] => self
                .variables()
                .find(|variable| variable.name() == *symbol)
                .ok_or_else(|| self.not_there(name, &names)),
            several => {
                let listed: Vec<String> = several
                    .iter()
                    .take(MOST_LISTED)
                    .map(|(symbol, shown)| format!("`{shown}`, that is `{symbol}`"))
                    .collect();
                Err(format!(
                    "which `{name}`? {} has {}: choose one by #[name(\"..\")]",
                    self.file(),
                    listed.join("; ")
                ))
            }
        }
    }

    fn not_there(&self, name: &str, names: &[&str]) -> String {
        let (file, module) = (self.file(), self.artifact.module());
        if let Some(entry) = module.entry(name) {
            let place = self.place(entry.position());
            return format!("`{name}` is a kernel at {place}: declare it `fn`");
        }
        let readable: Vec<String> = names
            .iter()
            .map(|name| mangled::demangle(name).unwrap_or_else(|| (*name).to_owned()))
            .collect();
        let all = || readable.iter().map(String::as_str);
        // Statics of Rust are in capitals, variables of C++ are not.
        let in_small = all().find(|other| other.eq_ignore_ascii_case(name));
        let meant = match (in_small, suggest::closest(name, all())) {
            (Some(other), _) if self.declared.name.is_none() => {
                format!("; for `{other}` write `#[name(\"{other}\")]` before it")
            }
            (Some(other), _) | (None, Some(other)) => format!("; did you mean `{other}`?"),
            (None, None) => String::new(),
        };
        let separator = if meant.ends_with('?') { "" } else { ";" };
        match readable.len() {
            0 => format!("no variable `{name}` in {file}: it has none at all"),
            1..=MOST_LISTED => {
                let listed = describe::list(&readable);
                format!("no variable `{name}` in {file}{meant}{separator} it has {listed}")
            }
            many if meant.is_empty() => {
                let listed = describe::list(&readable[..MOST_LISTED]);
                format!("no variable `{name}` in {file}; it has {many}, such as {listed}")
            }
            _ => format!("no variable `{name}` in {file}{meant}"),
        }
    }

    fn check_space(&self, variable: &ptx::Variable, report: &mut Report) {
        let (name, place) = (variable.name(), self.place(variable.position()));
        let message = if !is_of_module(variable) {
            format!(
                "`{name}` at {place} is in `{}`, which the host cannot reach: a variable of the \
                 module is `__constant__` or `__device__`",
                variable.space()
            )
        } else if variable.linkage() == ptx::Linkage::Extern {
            format!(
                "`{name}` at {place} is only announced (`.extern`): name the PTX that defines it, \
                 or link the objects first"
            )
        } else {
            return;
        };
        report.error(self.name_tokens(), message);
    }

    fn check_type(&self, variable: &ptx::Variable, report: &mut Report) {
        // The compiler knows what this macro does not.
        let Some(known) = value::known(&self.declared.ty) else {
            return;
        };
        let fits = variable.size() == Some(known.size)
            && variable.align() >= known.align
            && is_of_class(&known, variable);
        if fits {
            return;
        }
        let cure = self
            .choice(variable)
            .map_or_else(String::new, |choice| format!(": write `{choice}`"));
        report.error(
            &self.declared.ty,
            format!(
                "`{}` is {}, but {} declares {}{cure}",
                unraw(&self.declared.ident),
                describe::value(&self.declared.ty, &known),
                self.place(variable.position()),
                describe::variable(variable),
            ),
        );
    }

    /// Functions are what the PTX initialises it with, if anything.
    fn check_functions(&self, variable: &ptx::Variable, report: &mut Report) {
        if self.declared.function().is_none() {
            return;
        }
        let all = held(self.artifact, variable);
        if let Some(other) = all.iter().find(|held| held.function.is_none()) {
            report.error(
                &self.declared.ty,
                format!(
                    "`{}` is `{}`, but {} initialises it with {}, which is no function's address",
                    unraw(&self.declared.ident),
                    describe::ty(&self.declared.ty),
                    self.place(other.position),
                    shown(other),
                ),
            );
        }
    }

    /// The declared element as often as it is there, or what a scalar is.
    fn choice(&self, variable: &ptx::Variable) -> Option<String> {
        let size = variable.size()?;
        if variable.dims().is_empty() && variable.vector() == 1 {
            return match (variable.ty().class(), size) {
                (ptx::Class::Float, 4) => Some("f32".to_owned()),
                (ptx::Class::Float, 8) => Some("f64".to_owned()),
                (ptx::Class::Integer, 1 | 2 | 4 | 8) => {
                    let bits = 8 * size;
                    Some(format!("u{bits}` or `i{bits}"))
                }
                _ => None,
            };
        }
        let element = self.declared.element();
        let known = value::known(element)?;
        let fits = known.align <= variable.align() && size.is_multiple_of(known.size);
        fits.then(|| format!("[{}; {}]", describe::ty(element), size / known.size))
    }

    /// Refuses `static` for what a kernel of the file certainly writes.
    fn check_written(&self, variable: &ptx::Variable, report: &mut Report) {
        if self.declared.mutability.is_some() || variable.space() != ptx::StateSpace::Global {
            return;
        }
        let module = self.artifact.module();
        for entry in module.entries() {
            // Code that cannot be read is no witness.
            let uses = module.variable_uses(&self.artifact.text.source, entry);
            let write = uses
                .unwrap_or_default()
                .into_iter()
                .find(|one| one.variable == variable)
                .and_then(|one| one.write);
            if let Some(write) = write {
                report.error(
                    self.declared.token,
                    format!(
                        "`{}` is declared `static`, but the kernel `{}` writes it at {}: write `static mut`",
                        unraw(&self.declared.ident),
                        entry.name(),
                        self.place(write)
                    ),
                );
                return;
            }
        }
    }
}

/// What the PTX initialises a variable with; a value that cannot be read is no witness.
fn held<'a>(artifact: &'a Artifact, variable: &ptx::Variable) -> Vec<ptx::Held<'a>> {
    let (module, source) = (artifact.module(), &artifact.text.source);
    module.held_functions(variable, source).unwrap_or_default()
}

fn shown(held: &ptx::Held<'_>) -> String {
    held.name
        .map_or_else(|| "a number".to_owned(), |name| format!("`{name}`"))
}

/// The functions that the PTX initialises a variable with, each once.
pub(crate) fn functions(artifact: &Artifact, variable: &ptx::Variable) -> Vec<Called> {
    let file = &artifact.place.shown;
    let mut seen = Vec::new();
    let mut functions = Vec::new();
    for held in held(artifact, variable) {
        let Some(function) = held.function.filter(|one| !seen.contains(&one.name())) else {
            continue;
        };
        seen.push(function.name());
        let said = format!(
            "{file}:{} initialises it with {}, which {file}:{} declares",
            held.position.line,
            shown(&held),
            function.position().line
        );
        functions.push(Called::held(function, said));
    }
    functions
}

fn is_of_module(variable: &ptx::Variable) -> bool {
    matches!(
        variable.space(),
        ptx::StateSpace::Const | ptx::StateSpace::Global
    )
}

/// Bytes tell nothing of what they hold.
fn is_of_class(known: &Known, variable: &ptx::Variable) -> bool {
    let element = match known.shape {
        Shape::Bytes => return true,
        shape => shape,
    };
    if !variable.dims().is_empty() || variable.vector() > 1 {
        // An array of one is no scalar to C++, and has its bytes.
        return true;
    }
    match variable.ty().class() {
        ptx::Class::Integer => element == Shape::Integer,
        ptx::Class::Float => element == Shape::Float,
        _ => true,
    }
}

/// What a kernel uses of its file's variables: each by its name, with whether a static of the block
/// orders it, and whether the kernel may write it.
pub(crate) fn touches(
    artifact: &Artifact,
    entry: &ptx::Entry,
    ordered: &[String],
) -> Vec<(String, bool, bool)> {
    let module = artifact.module();
    let touch = |name: &str, writes: bool| {
        let is_ordered = ordered.iter().any(|one| one == name);
        (name.to_owned(), is_ordered, writes)
    };
    match module.variable_uses(&artifact.text.source, entry) {
        Ok(uses) => uses
            .iter()
            .map(|one| touch(one.variable.name(), !one.is_read_only))
            .collect(),
        // Code that cannot be read may use all there are.
        Err(_) => module
            .variables()
            .iter()
            .filter(|variable| is_of_module(variable))
            .map(|variable| touch(variable.name(), true))
            .collect(),
    }
}
