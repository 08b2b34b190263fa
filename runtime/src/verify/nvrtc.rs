//! NVRTC, opened by ourselves: cudarc panics where the library is missing.

use std::{
    env,
    ffi::{CStr, CString, c_char, c_int},
    fs,
    path::{Path, PathBuf},
    ptr,
};

use libloading::Library;

type Program = *mut std::ffi::c_void;

/// The functions of the library that compiling takes.
pub(super) struct Nvrtc {
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    /// The toolkit's headers beside the library.
    includes: Vec<PathBuf>,
    /// Keeps the functions where they are, and what they ask for by name.
    _libraries: Vec<Library>,
}

impl Nvrtc {
    /// The library, if there is one.
    pub(super) fn open() -> Option<Nvrtc> {
        candidates()
            .into_iter()
            .find_map(|path| Nvrtc::open_at(&path))
    }

    fn open_at(path: &Path) -> Option<Nvrtc> {
        let mut libraries = builtins(path);
        // SAFETY: NVRTC runs no code on loading that asks anything of its caller.
        let library = unsafe { Library::new(path) }.ok()?;
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the type is that of the function in NVRTC's header, unchanged since its
                // first version.
                let symbol = unsafe { library.get($name) };
                *symbol.ok()?
            }};
        }
        let nvrtc = Nvrtc {
            create: function!(b"nvrtcCreateProgram\0"),
            compile: function!(b"nvrtcCompileProgram\0"),
            log_size: function!(b"nvrtcGetProgramLogSize\0"),
            log: function!(b"nvrtcGetProgramLog\0"),
            destroy: function!(b"nvrtcDestroyProgram\0"),
            includes: includes(path),
            _libraries: Vec::new(),
        };
        libraries.push(library);
        Some(Nvrtc {
            _libraries: libraries,
            ..nvrtc
        })
    }

    /// Compiles a text; none if it compiles, else what the compiler says.
    pub(super) fn compile(&self, text: &str, folder: &Path) -> Result<Option<String>, String> {
        let text = CString::new(text).map_err(|_| "the source holds a NUL".to_owned())?;
        let mut options = vec![
            "--std=c++17".to_owned(),
            "--device-int128".to_owned(),
            "--no-source-include".to_owned(),
            format!("--include-path={}", folder.display()),
        ];
        options.extend(
            self.includes
                .iter()
                .map(|path| format!("--include-path={}", path.display())),
        );
        let options: Vec<CString> = options
            .into_iter()
            .filter_map(|option| CString::new(option).ok())
            .collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = ptr::null_mut();
        // SAFETY: the text and the name end with a NUL, there are no headers, and `program` takes
        // the answer.
        let code = unsafe {
            (self.create)(
                &raw mut program,
                text.as_ptr(),
                c"gridcall_verify.cu".as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if code != 0 {
            return Err(format!("nvrtcCreateProgram failed with {code}"));
        }
        let count = c_int::try_from(options.len()).unwrap_or(0);
        // SAFETY: the program was created just now, and there are as many options as is said.
        let code = unsafe { (self.compile)(program, count, options.as_ptr()) };
        let log = if code == 0 {
            Ok(None)
        } else {
            self.read_log(program).map(Some)
        };
        // SAFETY: the program is not used afterwards.
        unsafe { (self.destroy)(&raw mut program) };
        log
    }

    fn read_log(&self, program: Program) -> Result<String, String> {
        let mut size = 0;
        // SAFETY: the program lives, and `size` takes the answer.
        let code = unsafe { (self.log_size)(program, &raw mut size) };
        if code != 0 {
            return Err(format!("nvrtcGetProgramLogSize failed with {code}"));
        }
        let mut log = vec![0_u8; size.max(1)];
        // SAFETY: the log is as long as the library says it needs to be.
        let code = unsafe { (self.log)(program, log.as_mut_ptr().cast()) };
        if code != 0 {
            return Err(format!("nvrtcGetProgramLog failed with {code}"));
        }
        let log = CStr::from_bytes_until_nul(&log)
            .map_or_else(|_| log.clone(), |log| log.to_bytes().to_vec());
        Ok(String::from_utf8_lossy(&log).into_owned())
    }
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
pub(super) fn toolkits() -> Vec<PathBuf> {
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
    roots
        .flat_map(|root| [root.join("include"), root.join("include/cccl")])
        .filter(|path| path.is_dir())
        .collect()
}
