//! Modules that are known only when the program runs, and the kernels declared without `ptx = ..`.

mod function;

use std::{borrow::Cow, fmt, fs, path::Path, sync::Arc};

use cudarc::driver::CudaContext;
use gridcall_ptx as ptx;

use crate::{
    attributes::{Cluster, Needs},
    declaration::{Declaration, Param, Pass, StaticDeclaration, Touch},
    error::{LoadError, LoadErrorKind},
    layout::{ArgLayout, Class},
    load::{self, Found, Loaded, enter, hint, readable_log},
    symbol::LoadedSymbol,
    trace,
};

/// An image that is loaded in one context: PTX, a cubin or a fatbin that is known only when the
/// program runs.
///
/// For kernels that are declared without `ptx = ..`. They are compared with the image when they are
/// taken from it, by the rules and with the words of the macro: all of them for PTX, and for other
/// forms what the driver tells, the number and the sizes of the parameters (`cuFuncGetParamInfo`,
/// CUDA 12.4).
///
/// ```no_run
/// use gridcall::{Module, cover, kernel};
///
/// #[kernel]
/// unsafe extern "C" {
///     #[requires(x.len() >= n, y.len() >= n)]
///     safe fn saxpy(n: u32, a: f32, x: &[f32], y: &mut [f32]);
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ctx = gridcall::device(0)?;
/// let module = Module::from_file(&ctx, "kernels/vector.ptx")?;
/// // SAFETY: the file holds the kernel that is declared above.
/// let saxpy = unsafe { saxpy::load_from(&module) }?;
///
/// let stream = ctx.default_stream();
/// let x = stream.clone_htod(&[1.0_f32; 100])?;
/// let mut y = stream.clone_htod(&[2.0_f32; 100])?;
/// saxpy.launch(&stream, cover(100), self::saxpy { n: 100, a: 2.0, x: &x, y: &mut y })?;
/// # Ok(())
/// # }
/// ```
///
/// CUDA source that is compiled while the program runs, by NVRTC, gives one too: see `gridcall::nvrtc`
/// (feature `nvrtc`), which has the compiler itself compare the declarations.
pub struct Module {
    loaded: Arc<load::Module>,
    context: Arc<CudaContext>,
    name: String,
    /// What it holds, if it is PTX.
    text: Option<Text>,
    /// What it was compiled from, if that was done here.
    #[cfg(feature = "nvrtc")]
    origin: Option<crate::nvrtc::Origin>,
}

struct Text {
    source: String,
    module: ptx::Module,
}

impl Module {
    /// Loads PTX.
    ///
    /// # Errors
    ///
    /// If there is no driver, it refuses the PTX, or this cannot be read.
    pub fn from_ptx(context: &Arc<CudaContext>, text: &str) -> Result<Module, LoadError> {
        Module::load(context, "the PTX", text.as_bytes())
    }

    /// Loads an image of whatever form: PTX, a cubin or a fatbin.
    ///
    /// # Safety
    ///
    /// An image that is not text must be a whole cubin or fatbin: the driver reads as many bytes as
    /// its head says.
    ///
    /// # Errors
    ///
    /// If there is no driver, or it refuses the image.
    pub unsafe fn from_image(
        context: &Arc<CudaContext>,
        image: &[u8],
    ) -> Result<Module, LoadError> {
        Module::load(context, "the image", image)
    }

    /// Reads and loads a file of PTX.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is no PTX, there is no driver, or it refuses the PTX.
    pub fn from_file(
        context: &Arc<CudaContext>,
        path: impl AsRef<Path>,
    ) -> Result<Module, LoadError> {
        let path = path.as_ref();
        let shown = path.display().to_string();
        let bytes = fs::read(path).map_err(|source| LoadErrorKind::Read {
            path: shown.clone(),
            source,
        })?;
        if is_binary(&bytes) || std::str::from_utf8(&bytes).is_err() {
            let message =
                "it is no text; `Module::from_image` loads a cubin or a fatbin".to_owned();
            let place = shown;
            return Err(LoadErrorKind::Ptx { place, message }.into());
        }
        Module::load(context, &shown, &bytes)
    }

    fn load(context: &Arc<CudaContext>, name: &str, image: &[u8]) -> Result<Module, LoadError> {
        let text = match std::str::from_utf8(image) {
            Ok(text) if !is_binary(image) => {
                let text = text.trim_end_matches('\0');
                Some(Text::read(name, text)?)
            }
            _ => None,
        };
        Module::loaded(context, name, image, text)
    }

    /// Loads what NVRTC made: the machine code if there is some, else the PTX, which tells of the
    /// kernels in both cases.
    #[cfg(feature = "nvrtc")]
    pub(crate) fn from_nvrtc(
        context: &Arc<CudaContext>,
        name: &str,
        ptx: &str,
        cubin: Option<&[u8]>,
        origin: crate::nvrtc::Origin,
    ) -> Result<Module, LoadError> {
        let text = Some(Text::read(name, ptx)?);
        let image = cubin.unwrap_or(ptx.as_bytes());
        let mut module = Module::loaded(context, name, image, text)?;
        module.origin = Some(origin);
        Ok(module)
    }

    fn loaded(
        context: &Arc<CudaContext>,
        name: &str,
        image: &[u8],
        text: Option<Text>,
    ) -> Result<Module, LoadError> {
        let driver = enter(context)?;
        let _range = trace::compile(name, context);
        let loaded = load::Module::load(driver, context, name, image).map_err(|refused| {
            if refused.code.breaks_context() {
                return LoadErrorKind::Broken(refused.code);
            }
            let log = readable_log(&refused.log, name);
            let hint = hint(refused.code, &log);
            LoadErrorKind::Module {
                module: name.to_owned(),
                code: refused.code,
                log,
                hint,
            }
        })?;
        Ok(Module {
            loaded: Arc::new(loaded),
            context: context.clone(),
            name: name.to_owned(),
            text,
            #[cfg(feature = "nvrtc")]
            origin: None,
        })
    }

    /// The context that it is loaded in.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The names of its kernels, if it is PTX.
    #[must_use]
    pub fn entries(&self) -> Option<Vec<&str>> {
        let text = self.text.as_ref()?;
        Some(text.module.entries().iter().map(ptx::Entry::name).collect())
    }

    /// The kernel of a declaration, if the module holds it.
    pub(crate) fn kernel(&self, declaration: &'static Declaration) -> Result<Loaded, LoadError> {
        let entry = self.entry(declaration)?;
        let mut found = Found {
            entry: &entry,
            path: &self.name,
            reqntid: None,
            maxntid: None,
            needs: declaration.needs,
            touches: None,
        };
        let uses;
        let touches: Vec<Touch<'_>>;
        match &self.text {
            Some(text) => {
                let entry = text
                    .check(&self.name, declaration, &entry)
                    .map_err(|message| LoadErrorKind::Mismatch {
                        kernel: declaration.kernel,
                        message,
                    })?;
                found.reqntid = entry.directives().reqntid();
                found.maxntid = entry.directives().maxntid();
                found.needs = text.needs(entry, declaration.needs);
                uses = text.uses(entry);
                touches = uses
                    .iter()
                    .map(|(symbol, writes)| Touch {
                        symbol,
                        ordered: declaration.statics_mut.contains(symbol),
                        writes: *writes,
                    })
                    .collect();
                found.touches = Some(&touches);
            }
            None => self.check_told(declaration)?,
        }
        let _range = trace::load(declaration.kernel, &self.context);
        enter(&self.context)?;
        let loaded = Loaded::from_module(declaration, &self.context, self.loaded.clone(), &found)?;
        if self.text.is_none() && loaded.takes_more() {
            return Err(loaded.more_parameters(&self.name));
        }
        Ok(loaded)
    }

    /// The symbol of a declaration, if the module holds it.
    pub(crate) fn symbol(
        &self,
        declaration: &'static StaticDeclaration,
    ) -> Result<LoadedSymbol, LoadError> {
        if let Some(text) = &self.text {
            text.check_symbol(&self.name, declaration)
                .map_err(|message| LoadErrorKind::Symbol {
                    name: declaration.name,
                    message,
                })?;
        }
        enter(&self.context)?;
        let (module, symbol) = (self.loaded.clone(), declaration.symbol);
        LoadedSymbol::from_module(declaration, &self.context, module, symbol, &self.name)
    }

    /// The name of a declaration's kernel in the module. Where the source is known, the compiler
    /// tells it, and compares the declaration.
    #[cfg_attr(
        not(feature = "nvrtc"),
        expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "there is no source"
        )
    )]
    fn entry(&self, declaration: &'static Declaration) -> Result<Cow<'static, str>, LoadError> {
        #[cfg(feature = "nvrtc")]
        if let Some(origin) = &self.origin {
            let entry = origin.entry(declaration).map_err(LoadErrorKind::Nvrtc)?;
            let text = self.text.as_ref();
            if text.is_some_and(|text| text.module.entry(&entry).is_none()) {
                // The source has the kernel, so it is a template.
                let message = format!(
                    "{} has no `{entry}`, as nobody asked for that instance; add the kernel to the program before \
                     it is compiled, by `kernel` or `instance`",
                    self.name
                );
                let kernel = declaration.kernel;
                return Err(LoadErrorKind::Mismatch { kernel, message }.into());
            }
            return Ok(Cow::Owned(entry));
        }
        Ok(Cow::Borrowed(declaration.entry))
    }

    /// Of what is not text, the driver alone tells the parameters.
    fn check_told(&self, declaration: &'static Declaration) -> Result<(), LoadError> {
        if self.loaded.tells_parameters() {
            return Ok(());
        }
        let message = format!(
            "{} is no PTX, and this driver does not tell the parameters of its kernels (CUDA 12.4): load \
             the PTX",
            self.name
        );
        Err(LoadErrorKind::Mismatch {
            kernel: declaration.kernel,
            message,
        }
        .into())
    }
}

/// A cubin is an ELF file, and a fatbin has a number of its own in front.
fn is_binary(image: &[u8]) -> bool {
    image.starts_with(b"\x7fELF") || image.starts_with(&[0x50, 0xed, 0x55, 0xba])
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.name)
            .field("device", &self.context.ordinal())
            .finish_non_exhaustive()
    }
}

impl Text {
    fn read(name: &str, text: &str) -> Result<Text, LoadError> {
        let module = ptx::Module::parse(text).map_err(|error| {
            let cure = if text.contains("__global__") {
                "; compile CUDA source first, by NVRTC or `nvcc -ptx`"
            } else {
                ""
            };
            LoadErrorKind::Ptx {
                place: format!("{name}:{}", error.position()),
                message: format!("{}{cure}", error.message()),
            }
        })?;
        Ok(Text {
            source: text.to_owned(),
            module,
        })
    }

    fn no_entry(&self, name: &str, entry: &str) -> String {
        if let Some(function) = self.module.function(entry) {
            let line = function.position().line;
            return format!(
                "`{entry}` is a device function at {name}:{line}, not a kernel: declare it `__global__`"
            );
        }
        let names: Vec<&str> = self.module.entries().iter().map(ptx::Entry::name).collect();
        // As C++ names a function: `_Z5saxpy..`, in a namespace `_ZN4math5saxpyE..`.
        let in_cpp = format!("{}{entry}", entry.len());
        let mangled: Vec<&str> = names
            .iter()
            .filter(|name| name.starts_with("_Z") && name.contains(&in_cpp))
            .copied()
            .collect();
        if !mangled.is_empty() {
            return format!(
                "no entry `{entry}` in {name}; as C++ names it there is {}: choose it by #[name(\"..\")], or declare it `extern \"C\"`",
                list(&mangled)
            );
        }
        format!("no entry `{entry}` in {name}{}", instead(entry, &names))
    }

    /// Compares a declaration with its entry, as the macro does.
    fn check(
        &self,
        name: &str,
        declaration: &Declaration,
        entry: &str,
    ) -> Result<&ptx::Entry, String> {
        let entry = self
            .module
            .entry(entry)
            .ok_or_else(|| self.no_entry(name, entry))?;
        check_count(name, declaration, entry)?;
        for (index, (param, declared)) in declaration.params.iter().zip(entry.params()).enumerate()
        {
            check_param(name, index, param, declared)?;
        }
        check_cluster(name, declaration, entry)?;
        self.check_cooperative(name, declaration, entry)?;
        // Code that cannot be read is no witness.
        if let Ok(flow) = entry.flow(&self.source) {
            for (index, (param, flow)) in declaration.params.iter().zip(flow.params()).enumerate() {
                check_code(name, index, param, flow)?;
            }
        }
        Ok(entry)
    }

    /// A kernel that waits for its grid traps in a launch that is not cooperative.
    fn check_cooperative(
        &self,
        name: &str,
        declaration: &Declaration,
        entry: &ptx::Entry,
    ) -> Result<(), String> {
        match self.module.grid_waits(entry, &self.source) {
            Ok(ptx::GridWaits {
                for_grid: Some(position),
                ..
            }) if !declaration.needs.cooperative => Err(format!(
                "it synchronises its whole grid, and traps at {name}:{} unless each launch is cooperative: declare \
                 it #[cooperative]",
                position.line
            )),
            _ => Ok(()),
        }
    }

    /// What the declaration and the entry ask of every launch.
    fn needs(&self, entry: &ptx::Entry, declared: Needs) -> Needs {
        let directives = entry.directives();
        let waits = self.module.grid_waits(entry, &self.source);
        Needs {
            required_cluster: directives.reqnctapercluster(),
            explicit_cluster: directives.explicitcluster(),
            counts_clusters: directives.blocksareclusters(),
            max_cluster_rank: directives.maxclusterrank(),
            waits: waits.is_ok_and(|waits| waits.for_dependencies.is_some()),
            ..declared
        }
    }
}

fn check_cluster(name: &str, declaration: &Declaration, entry: &ptx::Entry) -> Result<(), String> {
    let (directives, line) = (entry.directives(), entry.position().line);
    let declared = declaration.needs.cluster;
    if let (Some(declared), Some(required)) = (declared, directives.reqnctapercluster())
        && declared != required
    {
        return Err(format!(
            "it declares clusters of {}, the entry at {name}:{line} is compiled for {} alone (`.reqnctapercluster`)",
            Cluster::from(declared),
            Cluster::from(required)
        ));
    }
    Ok(())
}

/// What a module has instead of an entry that is not there, in the macro's words.
pub(crate) fn instead(entry: &str, names: &[&str]) -> String {
    const MOST_LISTED: usize = 8;
    let meant = ptx::closest(entry, names.iter().copied());
    let shown = meant.map_or_else(
        || ";".to_owned(),
        |meant| format!("; did you mean `{meant}`?"),
    );
    match names {
        [] => ": it has no kernels at all".to_owned(),
        few if few.len() <= MOST_LISTED => format!("{shown} it has {}", list(few)),
        _ if meant.is_some() => shown,
        many => format!(
            "; it has {} entries, such as {}",
            many.len(),
            list(&many[..MOST_LISTED])
        ),
    }
}

fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl Text {
    /// The variables that a kernel uses, and whether it may write them. Code that cannot be read
    /// may write all there are.
    fn uses(&self, entry: &ptx::Entry) -> Vec<(&str, bool)> {
        match self.module.variable_uses(&self.source, entry) {
            Ok(uses) => uses
                .iter()
                .map(|one| (one.variable.name(), !one.is_read_only))
                .collect(),
            Err(_) => self.variables().map(|one| (one.name(), true)).collect(),
        }
    }

    /// The variables that the host can reach.
    fn variables(&self) -> impl Iterator<Item = &ptx::Variable> {
        self.module.variables().iter().filter(|variable| {
            matches!(
                variable.space(),
                ptx::StateSpace::Const | ptx::StateSpace::Global
            )
        })
    }

    /// Compares a declaration with its variable, as the macro does.
    fn check_symbol(&self, name: &str, declaration: &StaticDeclaration) -> Result<(), String> {
        let symbol = declaration.symbol;
        let Some(variable) = self.variables().find(|one| one.name() == symbol) else {
            let names: Vec<String> = self
                .variables()
                .take(8)
                .map(|one| format!("`{}`", one.name()))
                .collect();
            let listed = match names.as_slice() {
                [] => "it has none at all".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            return Err(format!("no variable `{symbol}` in {name}; {listed}"));
        };
        let line = variable.position().line;
        let ArgLayout { size, align, .. } = declaration.layout;
        if variable.size() != Some(size) || variable.align() < align {
            return Err(format!(
                "it is `{}` ({size} bytes, align {align}), but {name}:{line} declares `{variable}`",
                declaration.ty
            ));
        }
        match &declaration.functions {
            Some(signature) => {
                let module = (self.source.as_str(), &self.module);
                function::check_held(name, module, variable, (declaration.ty, signature))
            }
            None => Ok(()),
        }
    }
}

fn check_count(name: &str, declaration: &Declaration, entry: &ptx::Entry) -> Result<(), String> {
    let (has, needs) = (declaration.params.len(), entry.params().len());
    if has == needs {
        return Ok(());
    }
    let types: Vec<String> = entry
        .params()
        .iter()
        .take(12)
        .map(ToString::to_string)
        .collect();
    let line = entry.position().line;
    Err(format!(
        "it declares {has} parameters, the PTX entry at {name}:{line} has {needs}; it takes ({})",
        types.join(", ")
    ))
}

fn check_param(
    name: &str,
    index: usize,
    param: &Param,
    declared: &ptx::Param,
) -> Result<(), String> {
    let same_class = match (&param.pass, declared.class()) {
        (_, ptx::Class::Bits) | (Pass::Array { .. } | Pass::Function(_), ptx::Class::Integer) => {
            true
        }
        (Pass::Value(Some(ArgLayout { class, .. })), declared) => matches!(
            (class, declared),
            (Class::Integer, ptx::Class::Integer)
                | (Class::Float, ptx::Class::Float)
                | (Class::Bytes, ptx::Class::Bytes)
        ),
        _ => false,
    };
    let integer_for_pointer = declared.pointer().is_some()
        && matches!(&param.pass, Pass::Value(Some(layout)) if !layout.has_pointer);
    if same_class
        && !integer_for_pointer
        && param.size == declared.size()
        && param.align == declared.align()
    {
        return Ok(());
    }
    Err(format!(
        "parameter {index}, `{}`, is `{}` ({} bytes), but {name}:{} declares `{declared}` ({} bytes)",
        param.name,
        param.ty,
        param.size,
        declared.position().line,
        declared.size()
    ))
}

fn check_code(
    name: &str,
    index: usize,
    param: &Param,
    flow: &ptx::ParamFlow,
) -> Result<(), String> {
    let is = |differs: String| {
        let Param { name, ty, .. } = param;
        format!("parameter {index}, `{name}`, is `{ty}`{differs}")
    };
    if let Pass::Function(signature) = &param.pass {
        return match function::check_calls(name, signature, flow) {
            Some(differs) => Err(is(differs)),
            None => Ok(()),
        };
    }
    if let (Pass::Value(Some(layout)), Some(call)) = (&param.pass, flow.calls().first())
        && !layout.has_pointer
    {
        let line = call.position.line;
        let prototype = call.signature();
        return Err(is(format!(
            ", but the kernel calls it as a function at {name}:{line}, by the prototype `{prototype}`: declare it `DeviceFn<fn(..) -> ..>`"
        )));
    }
    let (access, does) = match (&param.pass, flow.write(), flow.accesses().first()) {
        (Pass::Array { written: false, .. }, Some(access), _) => {
            (access, "the kernel writes to it")
        }
        (Pass::Value(Some(layout)), _, Some(access)) if !layout.has_pointer => {
            (access, "the kernel takes it for an address")
        }
        _ => return Ok(()),
    };
    Err(is(format!(
        ", but {does} at {name}:{}",
        access.position.line
    )))
}
