//! The PTX file of a declaration: the only door to files and the environment.
//!
//! Takes the `ptx = ..` expression; gives the module it names, read once however many declarations
//! speak of it, or the error at the literal to edit.

#![allow(
    clippy::disallowed_methods,
    reason = "this is the door that `clippy.toml` speaks of"
)]

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use gridcall_ptx as ptx;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, LitStr, Macro, Token};

use crate::cuda;
use crate::input::literal_str;
use crate::machine_code::{self, MachineCode};
use crate::suggest;

/// A PTX file that was read.
pub(crate) struct Artifact {
    pub(crate) place: Place,
    pub(crate) text: Arc<Text>,
}

impl Artifact {
    /// Where a kernel of it waits for more than its block.
    pub(crate) fn grid_waits(&self, entry: &ptx::Entry) -> Result<ptx::GridWaits, ptx::Error> {
        self.text.module.grid_waits(entry, &self.text.source)
    }

    pub(crate) fn module(&self) -> &ptx::Module {
        &self.text.module
    }
}

/// A file of machine code that was read.
pub(crate) struct Code {
    pub(crate) place: Place,
    pub(crate) read: MachineCode,
}

/// What a PTX file holds.
pub(crate) struct Text {
    pub(crate) source: String,
    pub(crate) module: ptx::Module,
}

/// CUDA source that declares the kernels.
pub(crate) struct Cuda {
    /// The file; none if the declaration gives a signature as text.
    pub(crate) place: Option<Place>,
    /// As messages call it.
    pub(crate) shown: String,
    pub(crate) source: Arc<cuda::Source>,
}

impl Cuda {
    /// `kernels/vector.cu:12`.
    pub(crate) fn place(&self, line: u32) -> String {
        match self.place {
            Some(_) => format!("{}:{line}", self.shown),
            None => self.shown.clone(),
        }
    }
}

/// Where a PTX file is.
pub(crate) struct Place {
    /// As messages call it: what the user wrote.
    pub(crate) shown: String,
    /// As the compiler finds it.
    pub(crate) absolute: PathBuf,
    /// The environment variables that the path depends on.
    pub(crate) variables: Vec<LitStr>,
}

/// What became of the PTX of a declaration.
pub(crate) enum Found {
    /// The files, at least one.
    Modules(Vec<Artifact>),
    /// The program names it when it runs.
    Later,
    /// There is none, and the build was told to go on with the signatures.
    Absent(Place),
}

/// Set to anything but `0`, it lets a crate compile without its PTX, as on a machine without nvcc;
/// the kernels then fail to load. docs.rs sets `DOCS_RS`, which counts as well.
pub(crate) const SIGNATURES_ONLY: &str = "GRIDCALL_SIGNATURES_ONLY";

/// Finds and reads the file that `expr` names, or the files of a list.
pub(crate) fn open(expr: &Expr) -> syn::Result<Found> {
    let list: Vec<&Expr> = match expr {
        Expr::Array(list) if list.elems.is_empty() => {
            return Err(syn::Error::new_spanned(list, "name at least one PTX file"));
        }
        Expr::Array(list) => list.elems.iter().collect(),
        one => vec![one],
    };
    let mut modules = Vec::new();
    for expr in list {
        match open_one(expr)? {
            One::Module(artifact) => modules.push(artifact),
            One::Absent(place) => return Ok(Found::Absent(place)),
        }
    }
    Ok(Found::Modules(modules))
}

/// Reads the machine code that `expr` names, or the files of a list; in a build with signatures only
/// also none, where it is missing.
pub(crate) fn open_code(expr: &Expr) -> syn::Result<Result<Vec<Code>, Place>> {
    let list: Vec<&Expr> = match expr {
        Expr::Array(list) => list.elems.iter().collect(),
        one => vec![one],
    };
    let mut codes = Vec::new();
    for expr in list {
        let place = Place::of(expr, "cubin")?;
        let refuse = |message| Err(syn::Error::new_spanned(expr, message));
        let bytes = match fs::read(&place.absolute) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if signatures_only() {
                    return Ok(Err(place));
                }
                return refuse(no_such_file(&place));
            }
            Err(error) => {
                return refuse(format!("cannot read {}: {error}", place.absolute.display()));
            }
        };
        match machine_code::read(&bytes) {
            Ok(read) => codes.push(Code { place, read }),
            Err(message) => return refuse(format!("cannot use {}: {message}", place.shown)),
        }
    }
    Ok(Ok(codes))
}

/// What became of one file.
enum One {
    Module(Artifact),
    Absent(Place),
}

fn open_one(expr: &Expr) -> syn::Result<One> {
    let place = Place::of(expr, "PTX")?;
    match read(&place.absolute) {
        Ok(text) => Ok(One::Module(Artifact { place, text })),
        Err(Unread::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            if signatures_only() {
                Ok(One::Absent(place))
            } else {
                Err(syn::Error::new_spanned(expr, missing(&place)))
            }
        }
        Err(Unread::Io(error)) => {
            let path = place.absolute.display();
            Err(syn::Error::new_spanned(
                expr,
                format!("cannot read {path}: {error}"),
            ))
        }
        Err(Unread::Ptx(error)) => {
            let ptx::Position { line, column } = error.position();
            let (shown, message) = (&place.shown, error.message());
            let source = ["cu", "cuh", "cpp"]
                .map(|source| place.absolute.extension() == Some(source.as_ref()));
            let cure = if source.contains(&true) {
                "; name the PTX that `nvcc -ptx` makes of it, and the source itself by `cuda = \"..\"`"
            } else {
                ""
            };
            Err(syn::Error::new_spanned(
                expr,
                format!("not the PTX that it should be: {shown}:{line}:{column}: {message}{cure}"),
            ))
        }
    }
}

/// Reads the CUDA source that `expr` names, or the signature that it is.
pub(crate) fn open_cuda(expr: &Expr) -> syn::Result<Cuda> {
    if let Some(text) = literal_str(expr)
        .map(LitStr::value)
        .filter(|text| text.contains("__global__"))
    {
        return Ok(Cuda {
            place: None,
            shown: "the signature in `cuda`".to_owned(),
            source: Arc::new(cuda::read(&text)),
        });
    }
    let place = Place::of(expr, "CUDA")?;
    match SOURCES.read(&place.absolute, |text| Ok(cuda::read(&text))) {
        Ok(source) => Ok(Cuda {
            shown: place.shown.clone(),
            place: Some(place),
            source,
        }),
        Err(error) => Err(syn::Error::new_spanned(expr, unread_cuda(&place, error))),
    }
}

fn no_such_file(place: &Place) -> String {
    let path = place.absolute.display();
    let start = if Path::new(&place.shown).is_relative() {
        "; the path starts at the folder of this crate's Cargo.toml"
    } else {
        ""
    };
    format!("no such file: {path}{start}")
}

fn unread_cuda(place: &Place, error: Unread) -> String {
    match error {
        Unread::Io(error) if error.kind() == io::ErrorKind::NotFound => no_such_file(place),
        Unread::Io(error) => format!("cannot read {}: {error}", place.absolute.display()),
        Unread::Ptx(error) => error.to_string(),
    }
}

fn signatures_only() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    set(SIGNATURES_ONLY) || set("DOCS_RS")
}

fn missing(place: &Place) -> String {
    let absolute = &place.absolute;
    let mut parts = vec![format!("no such file: {}", absolute.display())];
    if !place.variables.is_empty() {
        parts.push("no build script has written it".to_owned());
    } else if Path::new(&place.shown).is_relative() {
        parts.push("the path starts at the folder of this crate's Cargo.toml".to_owned());
    }
    let source = absolute.with_extension("cu");
    if let Some(meant) = nearest_beside(absolute) {
        let meant = Path::new(&place.shown).with_file_name(meant);
        parts.push(format!("did you mean `{}`?", meant.display()));
        return parts.join("; ");
    }
    if source.is_file() {
        let (source, absolute) = (source.display(), absolute.display());
        parts.push(format!("to make it: nvcc -ptx -o {absolute} {source}"));
    }
    parts.push(format!(
        "without nvcc, {SIGNATURES_ONLY}=1 builds the crate with signatures only"
    ));
    parts.join("; ")
}

/// The PTX file in the same folder whose name is nearest.
fn nearest_beside(absolute: &Path) -> Option<String> {
    let name = absolute.file_name()?.to_str()?;
    let mut names: Vec<String> = fs::read_dir(absolute.parent()?)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|extension| extension == "ptx")
        })
        .collect();
    names.sort();
    suggest::closest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

impl Place {
    fn of(expr: &Expr, kind: &str) -> syn::Result<Place> {
        let mut variables = Vec::new();
        let path = evaluate(expr, &mut variables)?;
        if path.is_empty() {
            return Err(syn::Error::new_spanned(
                expr,
                format!("the path of a {kind} file is not empty"),
            ));
        }
        let absolute = match manifest_dir() {
            Some(folder) => folder.join(&path),
            None if Path::new(&path).is_absolute() => PathBuf::from(&path),
            None => {
                let message = "CARGO_MANIFEST_DIR is not set, so the path has no start: build with \
                               cargo, or write an absolute path";
                return Err(syn::Error::new_spanned(expr, message));
            }
        };
        // The compiler takes the path as a string literal.
        if absolute.to_str().is_none() {
            let message = format!("the path is not UTF-8: {}", absolute.display());
            return Err(syn::Error::new_spanned(expr, message));
        }
        Ok(Place {
            shown: path,
            absolute,
            variables,
        })
    }
}

fn manifest_dir() -> Option<PathBuf> {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)
}

/// The value of a string literal, `concat!(..)` or `env!(..)`.
fn evaluate(expr: &Expr, variables: &mut Vec<LitStr>) -> syn::Result<String> {
    if let Some(literal) = literal_str(expr) {
        return Ok(literal.value());
    }
    match expr {
        Expr::Group(group) => evaluate(&group.expr, variables),
        Expr::Paren(paren) => evaluate(&paren.expr, variables),
        Expr::Macro(expr) if is_called(&expr.mac, "concat") => {
            let parts = arguments(&expr.mac)?;
            parts.iter().map(|part| evaluate(part, variables)).collect()
        }
        Expr::Macro(expr) if is_called(&expr.mac, "env") => variable(&expr.mac, variables),
        _ => Err(syn::Error::new_spanned(
            expr,
            "the path is a string literal, or `concat!(env!(\"OUT_DIR\"), \"/kernel.ptx\")`: the \
             file is read while this crate compiles",
        )),
    }
}

fn is_called(mac: &Macro, name: &str) -> bool {
    mac.path
        .segments
        .last()
        .is_some_and(|last| last.ident == name)
}

fn arguments(mac: &Macro) -> syn::Result<Punctuated<Expr, Token![,]>> {
    Punctuated::parse_terminated.parse2(mac.tokens.clone())
}

fn variable(mac: &Macro, variables: &mut Vec<LitStr>) -> syn::Result<String> {
    let arguments = arguments(mac)?;
    let Some(name) = arguments.first().and_then(literal_str) else {
        return Err(syn::Error::new_spanned(mac, "write `env!(\"VARIABLE\")`"));
    };
    match std::env::var(name.value()) {
        Ok(value) => {
            variables.push(name.clone());
            Ok(value)
        }
        Err(std::env::VarError::NotPresent) if name.value() == "OUT_DIR" => {
            let message = "OUT_DIR is not set: it is where a build script writes, and this crate \
                           has no build.rs";
            Err(syn::Error::new_spanned(name, message))
        }
        Err(std::env::VarError::NotPresent) => {
            let message = format!("the environment variable `{}` is not set", name.value());
            Err(syn::Error::new_spanned(name, message))
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            let message = format!("the environment variable `{}` is not UTF-8", name.value());
            Err(syn::Error::new_spanned(name, message))
        }
    }
}

/// Why a file gave no module.
enum Unread {
    Io(io::Error),
    Ptx(ptx::Error),
}

/// What a file was when it was read.
type Stamp = (Option<SystemTime>, u64);

/// The files read by this process, which may be an editor's and live long.
struct Files<T>(Mutex<Option<Read<T>>>);

type Read<T> = HashMap<PathBuf, (Stamp, Arc<T>)>;

static TEXTS: Files<Text> = Files(Mutex::new(None));
static SOURCES: Files<cuda::Source> = Files(Mutex::new(None));

impl<T> Files<T> {
    /// What `parse` makes of a file, unless it was read already and has not changed.
    fn read(
        &self,
        path: &Path,
        parse: impl FnOnce(String) -> Result<T, ptx::Error>,
    ) -> Result<Arc<T>, Unread> {
        let metadata = fs::metadata(path).map_err(Unread::Io)?;
        let stamp = (metadata.modified().ok(), metadata.len());
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files.get_or_insert_default();
        if let Some((read, parsed)) = files.get(path)
            && *read == stamp
            // Without a time of modification nothing tells that a file is still the same.
            && stamp.0.is_some()
        {
            return Ok(Arc::clone(parsed));
        }
        let text = fs::read_to_string(path).map_err(Unread::Io)?;
        let parsed = Arc::new(parse(text).map_err(Unread::Ptx)?);
        files.insert(path.to_owned(), (stamp, Arc::clone(&parsed)));
        Ok(parsed)
    }
}

fn read(path: &Path) -> Result<Arc<Text>, Unread> {
    TEXTS.read(path, |source| {
        let module = ptx::Module::parse(&source)?;
        Ok(Text { source, module })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

    fn place(source: &str) -> Result<Place, String> {
        Place::of(&syn::parse_str(source).unwrap(), "PTX").map_err(|error| error.to_string())
    }

    /// A file of its own for each test, removed with it.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> File {
            let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
            fs::write(&path, text).unwrap();
            File(path)
        }

        fn expr(&self) -> Expr {
            let path = self.0.to_str().unwrap();
            syn::parse_quote!(#path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn error(expr: &Expr) -> String {
        match open(expr) {
            Ok(_) => panic!("opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn paths_start_at_the_manifest() {
        let place = place("\"kernels/k.ptx\"").unwrap();
        assert_eq!(place.shown, "kernels/k.ptx");
        assert_eq!(
            place.absolute,
            Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/k.ptx")
        );
    }

    #[test]
    fn evaluates_concat_and_env() {
        let found =
            place("concat!(env!(\"CARGO_MANIFEST_DIR\"), concat!(\"/a\", \"/k.ptx\"))").unwrap();
        assert_eq!(
            found.absolute,
            Path::new(env!("CARGO_MANIFEST_DIR")).join("a/k.ptx")
        );
        assert_eq!(found.variables.len(), 1);
        assert!(
            place("::core::concat!(\"k\", \".ptx\")").is_ok_and(|found| found.shown == "k.ptx")
        );
    }

    #[test]
    fn other_expressions_are_refused() {
        assert!(place("PATH").is_err_and(|message| message.contains("a string literal")));
        assert!(place("format!(\"k.ptx\")").is_err());
        assert!(place("env!(\"GRIDCALL_NO_SUCH_VARIABLE\")").is_err());
        assert!(place("\"\"").is_err());
    }

    #[test]
    fn reads_a_file_once_until_it_changes() {
        let file = File::new("once.ptx", PTX);
        let first = read(&file.0).unwrap_or_else(|_| panic!());
        let second = read(&file.0).unwrap_or_else(|_| panic!());
        assert!(Arc::ptr_eq(&first, &second));
        fs::write(&file.0, PTX.replace(" k()", " other()")).unwrap();
        let third = read(&file.0).unwrap_or_else(|_| panic!());
        assert!(third.module.entry("other").is_some());
    }

    #[test]
    fn a_missing_file_is_named_with_the_cure() {
        let message = error(&syn::parse_quote!("kernels/none.ptx"));
        let tried = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/none.ptx");
        assert!(message.contains(tried.to_str().unwrap()), "{message}");
        assert!(message.contains("Cargo.toml"), "{message}");
        assert!(message.contains(SIGNATURES_ONLY), "{message}");
    }

    #[test]
    fn a_source_in_place_of_ptx_is_told_from_it() {
        let file = File::new("vector.cu", "__global__ void f() {}");
        let source = file.0.to_str().unwrap();
        let message = error(&syn::parse_quote!(#source));
        assert!(message.contains("`nvcc -ptx`"), "{message}");
    }

    #[test]
    fn out_dir_needs_a_build_script() {
        let message = error(&syn::parse_quote!(concat!(env!("OUT_DIR"), "/vector.ptx")));
        assert!(message.contains("this crate has no build.rs"), "{message}");
    }

    #[test]
    fn a_missing_file_beside_its_source_says_how_to_make_it() {
        let source = File::new("made.cu", "");
        let ptx = source.0.with_extension("ptx");
        let ptx = ptx.to_str().unwrap();
        let message = error(&syn::parse_quote!(#ptx));
        assert!(message.contains("nvcc -ptx -o"), "{message}");
    }

    #[test]
    fn a_mistyped_file_name_is_guessed() {
        let file = File::new("vector.ptx", PTX);
        let mistyped = file.0.to_str().unwrap().replace("vector", "vectro");
        let message = error(&syn::parse_quote!(#mistyped));
        assert!(
            message.contains(&format!("did you mean `{}`?", file.0.display())),
            "{message}"
        );
    }

    #[test]
    fn what_is_no_ptx_is_told_with_its_place() {
        let file = File::new(
            "bad.ptx",
            ".version 8.0\n.target sm_75\n.entry k(.param .u99 n) {}\n",
        );
        let message = error(&file.expr());
        assert!(
            message.contains(":3:17: expected a type, found `.u99`"),
            "{message}"
        );
        let folder = std::env::temp_dir();
        let folder = folder.to_str().unwrap();
        assert!(error(&syn::parse_quote!(#folder)).contains("cannot read"));
    }
}
