//! Kernels from CUDA source that is compiled while the program runs, by NVRTC.
//!
//! ```no_run
//! use gridcall::{cover, kernel, nvrtc::Program};
//!
//! #[kernel]
//! unsafe extern "C" {
//!     #[requires(y.len() >= n)]
//!     #[instances(T = { f32, f64 })]
//!     safe fn scale<T>(y: &mut [T], by: T, n: u32);
//! }
//!
//! const SCALE: &str = "
//!     template <class T> __global__ void scale(T* y, T by, unsigned n) {
//!         unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
//!         if (i < n) y[i] *= by;
//!     }";
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ctx = gridcall::device(0)?;
//! let module = Program::new(SCALE)
//!     .instance::<scale, f32>()
//!     .instance::<scale, f64>()
//!     .load(&ctx)?;
//! // SAFETY: the source keeps what the declaration promises.
//! let scale = unsafe { scale::load_from::<f32>(&module) }?;
//!
//! let stream = ctx.default_stream();
//! let mut y = stream.clone_htod(&[1.0_f32; 100])?;
//! scale.launch(&stream, cover(100), self::scale { y: &mut y, by: 2.0, n: 100 }.arguments())?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Program`] is the source and all that it is compiled with; compiled, it is PTX
//! ([`Compiled`]), and loaded a [`Module`], from which declared kernels are taken.
//!
//! **The compiler compares the declarations.** For each kernel that is named to the program, and for
//! each that is taken from its module, the source is compiled with assertions about it: the type of
//! each parameter, and size, alignment and place of each field of a struct. A declaration that
//! differs does not load, and the error names the parameter, the field, and what the source has.
//! Of kernels that are named in advance this is one compilation, of another it is a second one, when
//! it is taken. What cannot be taken later are instances of templates: only those that were named are in
//! the module.
//!
//! **The result is kept on disk**, in a [`Cache`].
//!
//! NVRTC is `libnvrtc`, which is opened at the first use: where `GRIDCALL_NVRTC` says, in `CUDA_PATH`
//! or `CUDA_HOME`, or where the system finds its libraries. A machine without one gets an error that
//! says what was looked for.

mod cache;
mod compiled;
mod error;
mod includes;
mod key;
mod name;
mod origin;
mod refused;
mod target;

use std::{
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use cudarc::driver::CudaContext;

pub use self::{
    cache::{Cache, Cached},
    compiled::Compiled,
    error::{CompileError, CompileErrorKind},
    name::NameExpression,
};
use compiled::Output;
pub(crate) use origin::Origin;
use refused::refused;

use crate::{
    declaration::Declaration,
    error::LoadError,
    kernel::{Declared, Family},
    libnvrtc::{self, LibNvrtc, Unit},
    module::Module,
    verify::{self, Named},
};

/// CUDA source, and all that it is compiled with.
///
/// ```no_run
/// use gridcall::nvrtc::{NameExpression, Program};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scale = NameExpression::template("scale").ty::<f32>().value(4);
/// let compiled = Program::from_file("kernels/scale.cu")
///     .include_path("kernels/include")
///     .header("config.h", "#define FAST 1")
///     .define("BLOCK", 256)
///     .option("--use_fast_math")
///     .name_expression(scale.clone())
///     .compile_for("compute_75")?;
/// println!("{}", compiled.log());
/// println!("{:?} in\n{}", compiled.lowered_name(&scale), compiled.ptx());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    source: Source,
    include_paths: Vec<PathBuf>,
    /// Names and texts.
    headers: Vec<(String, String)>,
    options: Vec<String>,
    name_expressions: Vec<NameExpression>,
    kernels: Vec<&'static Declaration>,
    cache: Cache,
}

#[derive(Clone, Debug)]
enum Source {
    Text { name: String, text: String },
    File(PathBuf),
}

impl Program {
    /// A program of this text, which messages call `program.cu`; see [`name`](Program::name).
    #[must_use]
    pub fn new(text: impl Into<String>) -> Program {
        Program::of(Source::Text {
            name: "program.cu".to_owned(),
            text: text.into(),
        })
    }

    /// A program of a file, which is read when it is compiled.
    #[must_use]
    pub fn from_file(path: impl Into<PathBuf>) -> Program {
        Program::of(Source::File(path.into()))
    }

    fn of(source: Source) -> Program {
        Program {
            source,
            include_paths: Vec::new(),
            headers: Vec::new(),
            options: Vec::new(),
            name_expressions: Vec::new(),
            kernels: Vec::new(),
            cache: Cache::default(),
        }
    }

    /// What messages call a text: the file that it is from. Beside that file NVRTC looks for what is
    /// included as `"header"`. A program of a file has the name of its file.
    ///
    /// ```
    /// use gridcall::nvrtc::Program;
    ///
    /// # mod kernels { pub(super) const VECTOR: &str = "__global__ void f() {}"; }
    /// let program = Program::new(kernels::VECTOR).name("src/kernels/vector.cu");
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Program {
        if let Source::Text { name: of_text, .. } = &mut self.source {
            *of_text = name.into();
        }
        self
    }

    /// Adds a folder in which headers are looked for (`--include-path`), behind those before it. The
    /// toolkit's own headers, where they lie beside the library, in `CUDA_PATH` or in
    /// `/usr/local/cuda`, come last.
    #[must_use]
    pub fn include_path(mut self, folder: impl Into<PathBuf>) -> Program {
        self.include_paths.push(folder.into());
        self
    }

    /// Adds a header that is no file, for `#include "name"` and `#include <name>`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Program {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Defines a macro (`--define-macro`).
    #[must_use]
    pub fn define(mut self, name: impl fmt::Display, value: impl fmt::Display) -> Program {
        self.options.push(format!("--define-macro={name}={value}"));
        self
    }

    /// Adds an option of
    /// [NVRTC's](https://docs.nvidia.com/cuda/nvrtc/#supported-compile-options). The architecture is
    /// none of them: it is the device's, or what [`compile_for`](Program::compile_for) says.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Program {
        self.options.push(option.into());
        self
    }

    /// Has a template instantiated, or the name of a kernel told: see [`Compiled::lowered_name`].
    #[must_use]
    pub fn name_expression(mut self, expression: impl Into<NameExpression>) -> Program {
        self.name_expressions.push(expression.into());
        self
    }

    /// Adds a declared kernel, which the compiler compares with the source.
    ///
    /// ```
    /// use gridcall::{kernel, nvrtc::Program};
    ///
    /// #[kernel]
    /// unsafe fn fill(y: &mut [f32], value: f32);
    ///
    /// # fn main() {
    /// let program = Program::new("__global__ void fill(float* y, float value) { *y = value; }")
    ///     .kernel::<fill>();
    /// # }
    /// ```
    #[must_use]
    pub fn kernel<K: Declared>(mut self) -> Program {
        self.kernels.push(K::cell().declaration());
        self
    }

    /// Adds an instance of a kernel that is declared for several types, which the compiler compares
    /// with the source.
    ///
    /// The name in C++ is that of the function in Rust, or of `#[name("ns::add")]`, with the type as
    /// the argument of the template, as [`NameExpression::ty`] has it; where
    /// `#[instances(T = { f32 => "add<float, 4>" })]` names the instance, it is that.
    #[must_use]
    pub fn instance<K: Family<T>, T>(self) -> Program {
        self.kernel::<K::Kernel>()
    }

    /// Says where results are kept, if not in the [default cache](Cache::default).
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Program {
        self.cache = cache;
        self
    }

    /// Compiles for a context's device: to PTX of its compute capability, or of the next lower one
    /// that NVRTC knows; to machine code as well, if the driver is older than NVRTC and would not
    /// read its PTX.
    ///
    /// # Errors
    ///
    /// If there is no NVRTC, the source does not compile, or a kernel that was added is not
    /// declared as it is there.
    pub fn compile(&self, context: &Arc<CudaContext>) -> Result<Compiled, CompileError> {
        let library = LibNvrtc::open()?;
        self.compile_by(library, &target::of(context, library)?)
    }

    /// Compiles for an architecture: `compute_90`, to PTX, or `sm_90`, to PTX and machine code; with
    /// an `a` or `f` behind it for the instructions of that architecture or family alone. No device
    /// is needed.
    ///
    /// # Errors
    ///
    /// As [`compile`](Program::compile).
    pub fn compile_for(&self, arch: &str) -> Result<Compiled, CompileError> {
        self.compile_by(LibNvrtc::open()?, arch)
    }

    /// Compiles for a context's device, and loads the result there.
    ///
    /// # Errors
    ///
    /// As [`compile`](Program::compile), and if the driver refuses the result.
    pub fn load(&self, context: &Arc<CudaContext>) -> Result<Module, LoadError> {
        self.compile(context)?.load(context)
    }

    fn compile_by(&self, library: &LibNvrtc, arch: &str) -> Result<Compiled, CompileError> {
        let is_real = target::is_real(arch)?;
        target::is_no_option(&self.options)?;
        let (name, source) = self.read()?;
        let kernels = self.named()?;
        let own = self.name_expressions.iter().map(NameExpression::text);
        let own = own.collect::<Result<Vec<String>, _>>()?;
        let declared = kernels.iter().map(|kernel| kernel.name.clone());
        let mut name_expressions: Vec<String> = Vec::new();
        for expression in own.iter().cloned().chain(declared) {
            if !name_expressions.contains(&expression) {
                name_expressions.push(expression);
            }
        }
        let text = match kernels.as_slice() {
            [] => source.clone(),
            kernels => with_claims(&source, &verify::claims(kernels)),
        };
        let options = self.all_options(library, arch);
        let unit = Unit {
            name: &name,
            text: &text,
            options: &options,
            headers: &self.headers,
            name_expressions: &name_expressions,
        };

        let key = self.key(library, &unit);
        let found = key
            .as_ref()
            .ok()
            .and_then(|key| Output::read(&self.cache.find(key)?));
        let (output, cached) = match found {
            Some(output) => (output, Cached::Found),
            None => {
                let program = library.compile(&unit)?;
                if !program.succeeded() {
                    let log = program.log()?;
                    let own = (source.as_str(), own.as_slice());
                    return Err(refused(library, &unit, own, &kernels, arch, log));
                }
                let output = Output::of(&program, &name_expressions, is_real)?;
                let cached = key.and_then(|key| {
                    // What was compiled are the headers of now.
                    if self.key(library, &unit).as_ref() != Ok(&key) {
                        return Err("a header changed while it was compiled".to_owned());
                    }
                    self.cache.store(&key, &output.write())
                });
                (output, cached.map_or_else(Cached::Not, |()| Cached::Stored))
            }
        };
        let lowered = kernels.iter().filter_map(|kernel| {
            let lowered = output.lowered_name(&kernel.name)?;
            Some((kernel.declaration, lowered.to_owned()))
        });
        Ok(Compiled {
            origin: Origin::new(
                // The file may change; the module is of what it was.
                Program {
                    source: Source::Text {
                        name: name.clone(),
                        text: source,
                    },
                    ..self.clone()
                },
                arch,
                lowered,
            ),
            name,
            arch: arch.to_owned(),
            output,
            cached,
        })
    }

    /// The name and the text of the source.
    fn read(&self) -> Result<(String, String), CompileError> {
        match &self.source {
            Source::Text { name, text } => Ok((name.clone(), text.clone())),
            Source::File(path) => {
                let name = path.display().to_string();
                match fs::read_to_string(path) {
                    Ok(text) => Ok((name, text)),
                    Err(source) => Err(CompileErrorKind::Read { path: name, source }.into()),
                }
            }
        }
    }

    /// The declared kernels, with their names in C++.
    fn named(&self) -> Result<Vec<Named<'static>>, CompileError> {
        let kernels = self.kernels.iter().copied();
        let named = kernels.map(|declaration| {
            let name = name::of_declaration(declaration)?;
            Ok(Named { declaration, name })
        });
        named.collect()
    }

    fn all_options(&self, library: &LibNvrtc, arch: &str) -> Vec<OsString> {
        let mut options = vec![format!("--gpu-architecture={arch}").into()];
        options.extend(
            self.include_paths
                .iter()
                .map(|path| libnvrtc::include_path(path)),
        );
        options.extend(self.options.iter().map(OsString::from));
        options.extend(
            library
                .toolkit_includes()
                .iter()
                .map(|path| libnvrtc::include_path(path)),
        );
        options
    }
}

/// The claims behind the source, whose lines keep their numbers.
fn with_claims(source: &str, claims: &str) -> String {
    format!("{source}\n#line 1 \"declarations\"\n{claims}")
}

/// The folder of a source.
fn folder(name: &str) -> &Path {
    Path::new(name).parent().unwrap_or(Path::new(""))
}
