//! `libnvrtc`, opened by ourselves: cudarc panics where the library or a function is missing.
//!
//! Finds the library, and has it compile a text. Knows nothing of kernels, devices or caches.

use std::{
    env,
    ffi::{CStr, CString, OsStr, OsString, c_char, c_int},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    ptr,
    sync::OnceLock,
};

use libloading::Library;

type Handle = *mut std::ffi::c_void;
type SizeOf = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Read = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

/// The functions of the library.
pub(crate) struct LibNvrtc {
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Handle) -> c_int,
    log: (SizeOf, Read),
    ptx: (SizeOf, Read),
    cubin: (SizeOf, Read),
    add_name_expression: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    lowered_name: unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> c_int,
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    count_archs: unsafe extern "C" fn(*mut c_int) -> c_int,
    archs: unsafe extern "C" fn(*mut c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    /// The toolkit's headers beside the library.
    includes: Vec<PathBuf>,
    /// Where its file is, if that is known.
    location: Option<PathBuf>,
    /// Keeps the functions where they are, and what they ask for by name.
    _libraries: Vec<Library>,
}

/// Why there is no library, and what was looked for.
#[derive(Debug)]
pub(crate) enum NotOpened {
    /// None of the names could be opened.
    Missing { looked_for: String },
    /// It is of a toolkit before CUDA 11.2.
    Old { function: &'static str },
}

/// A call of the library that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) call: &'static str,
    /// The name of its `nvrtcResult`.
    pub(crate) code: String,
}

/// What is compiled.
pub(crate) struct Unit<'a> {
    /// What the log calls it.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) options: &'a [OsString],
    /// Names and texts of headers that are no files.
    pub(crate) headers: &'a [(String, String)],
    pub(crate) name_expressions: &'a [String],
}

impl LibNvrtc {
    /// The library; it is looked for until it is found once.
    pub(crate) fn open() -> Result<&'static LibNvrtc, NotOpened> {
        static OPEN: OnceLock<LibNvrtc> = OnceLock::new();
        if let Some(open) = OPEN.get() {
            return Ok(open);
        }
        let found = LibNvrtc::find()?;
        Ok(OPEN.get_or_init(|| found))
    }

    fn find() -> Result<LibNvrtc, NotOpened> {
        let mut looked_for = String::new();
        for path in candidates() {
            let mut libraries = builtins(&path);
            // SAFETY: NVRTC runs no code on loading that asks anything of its caller.
            match unsafe { Library::new(&path) } {
                Ok(library) => {
                    let nvrtc = LibNvrtc::of(&library, &path)?;
                    libraries.push(library);
                    return Ok(LibNvrtc {
                        _libraries: libraries,
                        ..nvrtc
                    });
                }
                Err(error) => {
                    let separator = if looked_for.is_empty() { "" } else { ", " };
                    let _ = write!(looked_for, "{separator}`{}`", path.display());
                    // A file that is there and cannot be opened is a riddle without its reason.
                    if path.is_file() {
                        let _ = write!(looked_for, " ({error})");
                    }
                }
            }
        }
        Err(NotOpened::Missing { looked_for })
    }

    fn of(library: &Library, path: &Path) -> Result<LibNvrtc, NotOpened> {
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the type is that of the function in NVRTC's header, unchanged since its
                // first version.
                let symbol = unsafe { library.get($name.as_bytes()) };
                *symbol.map_err(|_| NotOpened::Old { function: $name })?
            }};
        }
        let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
            function!("nvrtcVersion");
        let location = location(version as usize);
        Ok(LibNvrtc {
            create: function!("nvrtcCreateProgram"),
            compile: function!("nvrtcCompileProgram"),
            destroy: function!("nvrtcDestroyProgram"),
            log: (
                function!("nvrtcGetProgramLogSize"),
                function!("nvrtcGetProgramLog"),
            ),
            ptx: (function!("nvrtcGetPTXSize"), function!("nvrtcGetPTX")),
            cubin: (function!("nvrtcGetCUBINSize"), function!("nvrtcGetCUBIN")),
            add_name_expression: function!("nvrtcAddNameExpression"),
            lowered_name: function!("nvrtcGetLoweredName"),
            version,
            count_archs: function!("nvrtcGetNumSupportedArchs"),
            archs: function!("nvrtcGetSupportedArchs"),
            error_string: function!("nvrtcGetErrorString"),
            includes: includes(location.as_deref().unwrap_or(path)),
            location,
            _libraries: Vec::new(),
        })
    }

    /// Options that name the toolkit's headers.
    pub(crate) fn toolkit_includes(&self) -> &[PathBuf] {
        &self.includes
    }

    /// What tells it from every other build of NVRTC.
    pub(crate) fn identity(&self) -> Result<String, Failed> {
        let (major, minor) = self.version()?;
        let about = self
            .location
            .as_ref()
            .and_then(|path| Some((path, fs::metadata(path).ok()?)));
        if let Some((path, about)) = about
            && let Ok(modified) = about.modified()
        {
            let (path, len) = (path.display(), about.len());
            return Ok(format!("{major}.{minor} {path} {len} {modified:?}"));
        }
        // The PTX of no kernels begins with the name of the build.
        let nothing = self.compile(&Unit {
            name: "nothing.cu",
            text: "",
            options: &[],
            headers: &[],
            name_expressions: &[],
        })?;
        nothing.ptx()
    }

    /// Major and minor number of its CUDA version.
    pub(crate) fn version(&self) -> Result<(u32, u32), Failed> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both places take an answer.
        let code = unsafe { (self.version)(&raw mut major, &raw mut minor) };
        self.result("nvrtcVersion", code)?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// The architectures that it compiles for, as `75` for `sm_75`, from the oldest on.
    pub(crate) fn supported_archs(&self) -> Result<Vec<u32>, Failed> {
        let mut count = 0;
        // SAFETY: `count` takes the answer.
        let code = unsafe { (self.count_archs)(&raw mut count) };
        self.result("nvrtcGetNumSupportedArchs", code)?;
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many as the library said just now.
        let code = unsafe { (self.archs)(archs.as_mut_ptr()) };
        self.result("nvrtcGetSupportedArchs", code)?;
        let mut archs: Vec<u32> = archs.into_iter().map(c_int::unsigned_abs).collect();
        archs.sort_unstable();
        Ok(archs)
    }

    /// Has the library read and compile the unit. What it thinks of it, the program says.
    pub(crate) fn compile(&self, unit: &Unit<'_>) -> Result<Compilation<'_>, Failed> {
        let text = c_string("nvrtcCreateProgram", unit.text.as_bytes())?;
        let name = c_string("nvrtcCreateProgram", unit.name.as_bytes())?;
        let of_headers = |of: fn(&(String, String)) -> &String| {
            let texts = unit.headers.iter();
            let texts = texts.map(|header| c_string("nvrtcCreateProgram", of(header).as_bytes()));
            texts.collect::<Result<Vec<CString>, Failed>>()
        };
        let names = of_headers(|(name, _)| name)?;
        let texts = of_headers(|(_, text)| text)?;
        let options = unit.options.iter();
        let options: Vec<CString> = options
            .map(|option| c_string("nvrtcCompileProgram", option.as_encoded_bytes()))
            .collect::<Result<_, Failed>>()?;

        let mut handle = ptr::null_mut();
        // SAFETY: all texts and names end with a NUL and outlive the call, which copies them; there
        // are as many of both as is said, and `handle` takes the answer.
        let code = unsafe {
            (self.create)(
                &raw mut handle,
                text.as_ptr(),
                name.as_ptr(),
                count(&names),
                pointers(&texts).as_ptr(),
                pointers(&names).as_ptr(),
            )
        };
        self.result("nvrtcCreateProgram", code)?;
        let mut program = Compilation {
            library: self,
            handle,
            succeeded: false,
        };
        for expression in unit.name_expressions {
            let text = c_string("nvrtcAddNameExpression", expression.as_bytes())?;
            // SAFETY: the program lives and is not compiled yet; the library copies the text.
            let code = unsafe { (self.add_name_expression)(program.handle, text.as_ptr()) };
            self.result("nvrtcAddNameExpression", code)?;
        }
        // SAFETY: the program lives, and there are as many options as is said.
        let code =
            unsafe { (self.compile)(program.handle, count(&options), pointers(&options).as_ptr()) };
        // Of a text that is wrong the log tells, which there is for both of these.
        const INVALID_OPTION: c_int = 5;
        const COMPILATION: c_int = 6;
        if code != INVALID_OPTION && code != COMPILATION {
            self.result("nvrtcCompileProgram", code)?;
        }
        program.succeeded = code == 0;
        Ok(program)
    }

    fn result(&self, call: &'static str, code: c_int) -> Result<(), Failed> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library answers every number with a text of its own that is never freed.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() {
            let code = format!("nvrtcResult {code}");
            return Err(Failed { call, code });
        }
        // SAFETY: the text ends with a NUL, and is never freed.
        let text = unsafe { CStr::from_ptr(text) };
        let code = text.to_string_lossy().into_owned();
        Err(Failed { call, code })
    }
}

fn c_string(call: &'static str, bytes: &[u8]) -> Result<CString, Failed> {
    CString::new(bytes).map_err(|_| Failed {
        call,
        code: "a text holds a NUL".to_owned(),
    })
}

fn count(texts: &[CString]) -> c_int {
    c_int::try_from(texts.len()).unwrap_or(c_int::MAX)
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

/// What was compiled, or not.
pub(crate) struct Compilation<'a> {
    library: &'a LibNvrtc,
    handle: Handle,
    succeeded: bool,
}

impl Compilation<'_> {
    /// Whether there is a result.
    pub(crate) fn succeeded(&self) -> bool {
        self.succeeded
    }

    /// The errors and warnings.
    pub(crate) fn log(&self) -> Result<String, Failed> {
        let log = self.read("nvrtcGetProgramLog", self.library.log)?;
        Ok(text(&log))
    }

    /// The PTX, if it succeeded.
    pub(crate) fn ptx(&self) -> Result<String, Failed> {
        let ptx = self.read("nvrtcGetPTX", self.library.ptx)?;
        Ok(text(&ptx))
    }

    /// The cubin, if it succeeded and the architecture was a real one.
    pub(crate) fn cubin(&self) -> Result<Vec<u8>, Failed> {
        self.read("nvrtcGetCUBIN", self.library.cubin)
    }

    /// The name in the PTX of a name expression that the unit had, if it succeeded.
    pub(crate) fn lowered_name(&self, expression: &str) -> Result<String, Failed> {
        const CALL: &str = "nvrtcGetLoweredName";
        let expression = c_string(CALL, expression.as_bytes())?;
        let mut name = ptr::null();
        // SAFETY: the program lives, and `name` takes the answer.
        let code =
            unsafe { (self.library.lowered_name)(self.handle, expression.as_ptr(), &raw mut name) };
        self.library.result(CALL, code)?;
        if name.is_null() {
            return Ok(String::new());
        }
        // SAFETY: the library's text ends with a NUL and lives as long as the program.
        let name = unsafe { CStr::from_ptr(name) };
        Ok(name.to_string_lossy().into_owned())
    }

    fn read(&self, call: &'static str, (size_of, read): (SizeOf, Read)) -> Result<Vec<u8>, Failed> {
        let mut size = 0;
        // SAFETY: the program lives, and `size` takes the answer.
        let code = unsafe { size_of(self.handle, &raw mut size) };
        self.library.result(call, code)?;
        let mut bytes = vec![0_u8; size];
        if size == 0 {
            return Ok(bytes);
        }
        // SAFETY: there is room for as many bytes as the library said just now.
        let code = unsafe { read(self.handle, bytes.as_mut_ptr().cast()) };
        self.library.result(call, code)?;
        Ok(bytes)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is not used afterwards.
        unsafe { (self.library.destroy)(&raw mut self.handle) };
    }
}

/// The file that the code at an address is from, where the system tells (Linux).
fn location(address: usize) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let path = &line[line.find('/')?..];
        (start..end).contains(&address).then(|| PathBuf::from(path))
    })
}

/// What stands in front of the NUL.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The second library of NVRTC, which it opens by name: one that lies beside it is found by that
/// name once it is open.
fn builtins(library: &Path) -> Vec<Library> {
    let folder = library.parent().filter(|folder| folder.is_dir());
    let files = folder.and_then(|folder| fs::read_dir(folder).ok());
    files
        .into_iter()
        .flatten()
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            name.contains("nvrtc-builtins") && !name.contains("alt") && !name.contains("static")
        })
        // SAFETY: the library holds data and runs no code on loading.
        .filter_map(|path| unsafe { Library::new(path) }.ok())
        .collect()
}

/// Where the library may be, the most certain place first.
fn candidates() -> Vec<PathBuf> {
    if let Some(path) = env::var_os("GRIDCALL_NVRTC") {
        return vec![PathBuf::from(path)];
    }
    let names: &[&str] = if cfg!(windows) {
        &[
            "nvrtc64_130_0.dll",
            "nvrtc64_120_0.dll",
            "nvrtc64_112_0.dll",
        ]
    } else {
        &[
            "libnvrtc.so.13",
            "libnvrtc.so.12",
            "libnvrtc.so.11.2",
            "libnvrtc.so",
        ]
    };
    let folders = toolkits()
        .into_iter()
        .flat_map(|toolkit| ["lib64", "lib", "bin"].map(|folder| toolkit.join(folder)));
    let mut candidates: Vec<PathBuf> = folders
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .filter(|path| path.is_file())
        .collect();
    // By name alone the system looks where its libraries are.
    candidates.extend(names.iter().map(PathBuf::from));
    candidates
}

/// The toolkits that the environment names.
pub(crate) fn toolkits() -> Vec<PathBuf> {
    ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"]
        .iter()
        .filter_map(env::var_os)
        .map(PathBuf::from)
        .collect()
}

/// The headers beside a library, and in the toolkits that the environment names.
fn includes(library: &Path) -> Vec<PathBuf> {
    let beside = library.parent().and_then(Path::parent).map(Path::to_owned);
    let roots = beside
        .into_iter()
        .chain(toolkits())
        .chain([PathBuf::from("/usr/local/cuda")]);
    let mut includes: Vec<PathBuf> = Vec::new();
    for root in roots {
        for folder in [root.join("include"), root.join("include/cccl")] {
            if folder.is_dir() && !includes.contains(&folder) {
                includes.push(folder);
            }
        }
    }
    includes
}

/// `--include-path=folder`
pub(crate) fn include_path(folder: &Path) -> OsString {
    let mut option = OsString::from("--include-path=");
    option.push(OsStr::new(folder));
    option
}
