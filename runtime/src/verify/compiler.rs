//! Finds a CUDA compiler and has it compile a text: NVRTC in this process, or nvcc.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::libnvrtc::{self, Failed, LibNvrtc, Unit, toolkits};

/// The PTX of a text that compiles, else what the compiler says.
pub(super) type Said = Result<String, String>;

/// Compiles a text whose includes lie in `folder`.
///
/// NVRTC knows no host headers, so what it cannot find nvcc is asked for as well.
pub(super) fn compile(text: &str, folder: &Path) -> Result<Said, String> {
    let by_nvrtc = LibNvrtc::open()
        .ok()
        .map(|nvrtc| by_nvrtc(nvrtc, text, folder));
    match (by_nvrtc, nvcc()) {
        (Some(Ok(Err(log))), Some(nvcc))
            if log.contains("could not open source file") || log.contains("nvrtc: error") =>
        {
            by_nvcc(&nvcc, text, folder)
        }
        (Some(said), _) => said,
        (None, Some(nvcc)) => by_nvcc(&nvcc, text, folder),
        (None, None) => Err(
            "no CUDA compiler: neither libnvrtc (or GRIDCALL_NVRTC) nor nvcc (or NVCC) \
                             was found"
                .to_owned(),
        ),
    }
}

/// Whether there is one of the two.
pub(super) fn is_found() -> bool {
    LibNvrtc::open().is_ok() || nvcc().is_some()
}

fn by_nvrtc(nvrtc: &LibNvrtc, text: &str, folder: &Path) -> Result<Said, String> {
    let mut options = vec!["--std=c++17".into(), "--device-int128".into()];
    options.push(libnvrtc::include_path(folder));
    options.extend(
        nvrtc
            .toolkit_includes()
            .iter()
            .map(|path| libnvrtc::include_path(path)),
    );
    // Beside this file the compiler looks for what is included, and not where the process runs.
    let name = folder.join("gridcall_verify.cu");
    let unit = Unit {
        name: &name.to_string_lossy(),
        text,
        options: &options,
        headers: &[],
        name_expressions: &[],
    };
    let said = nvrtc.compile(&unit).and_then(|program| {
        Ok(if program.succeeded() {
            Ok(program.ptx()?)
        } else {
            Err(program.log()?)
        })
    });
    said.map_err(|Failed { call, code }| format!("{call} failed: {code}"))
}

fn nvcc() -> Option<PathBuf> {
    if let Some(path) = env::var_os("NVCC") {
        return Some(PathBuf::from(path));
    }
    let name = if cfg!(windows) { "nvcc.exe" } else { "nvcc" };
    let paths = env::var_os("PATH");
    let on_path = paths
        .iter()
        .flat_map(env::split_paths)
        .map(|folder| folder.join(name));
    let in_toolkit = toolkits()
        .into_iter()
        .map(|toolkit| toolkit.join("bin").join(name));
    on_path.chain(in_toolkit).find(|path| path.is_file())
}

fn by_nvcc(nvcc: &Path, text: &str, folder: &Path) -> Result<Said, String> {
    let no_file = |error| format!("cannot write a temporary file: {error}");
    let files = Files::new().map_err(no_file)?;
    fs::write(&files.source, text).map_err(no_file)?;
    let output = Command::new(nvcc)
        .args(["-std=c++17", "-ptx", "-I"])
        .arg(folder)
        .arg("-o")
        .arg(&files.output)
        .arg(&files.source)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", nvcc.display()))?;
    if output.status.success() {
        let ptx = fs::read_to_string(&files.output);
        return ptx
            .map(Ok)
            .map_err(|error| format!("cannot read what {} wrote: {error}", nvcc.display()));
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Err(said(&output.stderr) + &said(&output.stdout)))
}

/// Files that are removed again.
struct Files {
    folder: PathBuf,
    source: PathBuf,
    output: PathBuf,
}

impl Files {
    fn new() -> std::io::Result<Files> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("gridcall-verify-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        Ok(Files {
            source: folder.join("verify.cu"),
            output: folder.join("verify.ptx"),
            folder,
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
