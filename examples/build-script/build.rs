//! Compiles each `kernels/NAME.cu` to `$OUT_DIR/kernels/NAME.ptx`.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// Flags of nvcc for all kernels. Whoever changes them changes this file, and cargo runs it again.
const FLAGS: [&str; 4] = ["-arch=compute_75", "-std=c++17", "-lineinfo", "-Iinclude"];

fn main() -> ExitCode {
    match compile_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn compile_all() -> Result<(), Box<dyn Error>> {
    // What an earlier run left must not be taken for the result of this one.
    let out = PathBuf::from(env::var("OUT_DIR")?).join("kernels");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;

    // A folder stands for all files in it, also new ones and those that are removed.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-env-changed=NVCC_PREPEND_FLAGS");
    println!("cargo::rerun-if-env-changed=NVCC_APPEND_FLAGS");
    let Some(nvcc) = find_nvcc() else {
        return without_nvcc();
    };
    println!("cargo::rerun-if-changed={}", nvcc.display());

    let mut sources: Vec<PathBuf> = fs::read_dir("kernels")?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    if sources.is_empty() {
        return Err("there is no .cu file in kernels".into());
    }
    sources
        .iter()
        .try_for_each(|source| compile(&nvcc, source, &out))
}

fn compile(nvcc: &Path, source: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let name = source.file_name().ok_or("a source without a name")?;
    let (ptx, dependencies) = (
        out.join(name).with_extension("ptx"),
        out.join(name).with_extension("d"),
    );
    let output = Command::new(nvcc)
        .args(FLAGS)
        .args(["-ptx", "-MD", "-MF"])
        .arg(&dependencies)
        .arg("-o")
        .arg(&ptx)
        .arg(source)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", nvcc.display()))?;
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!(
            "{} does not compile:\n{}",
            source.display(),
            said.trim_end()
        )
        .into());
    }
    for line in said.lines() {
        println!("cargo::warning={line}");
    }
    // `out.ptx : a.cu \ b.cuh ..`, with `\ ` for a blank in a name: every header, wherever it is.
    let rule = fs::read_to_string(&dependencies)?
        .replace("\\\n", " ")
        .replace("\\ ", "\0");
    for file in rule
        .split_whitespace()
        .skip_while(|word| *word != ":")
        .skip(1)
    {
        println!("cargo::rerun-if-changed={}", file.replace('\0', " "));
    }
    Ok(())
}

/// `$NVCC`, the one on the path, or the one of the toolkit that the environment names.
fn find_nvcc() -> Option<PathBuf> {
    for variable in ["NVCC", "CUDA_PATH", "CUDA_HOME"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if let Some(nvcc) = env::var_os("NVCC") {
        return Some(PathBuf::from(nvcc));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let toolkits = ["CUDA_PATH", "CUDA_HOME"]
        .into_iter()
        .filter_map(env::var_os);
    env::split_paths(&path)
        .chain(toolkits.map(|toolkit| Path::new(&toolkit).join("bin")))
        .map(|folder| folder.join(format!("nvcc{}", env::consts::EXE_SUFFIX)))
        .find(|nvcc| nvcc.is_file())
}

/// Without PTX the crate compiles only if that was asked for: for documentation, or for a check.
fn without_nvcc() -> Result<(), Box<dyn Error>> {
    let mut signatures_only = false;
    for variable in ["GRIDCALL_SIGNATURES_ONLY", "DOCS_RS"] {
        println!("cargo::rerun-if-env-changed={variable}");
        let value = env::var(variable).unwrap_or_default();
        signatures_only |= !value.is_empty() && value != "0";
    }
    if signatures_only {
        println!(
            "cargo::warning=no nvcc: the kernels are not compiled, and none of them will load"
        );
        return Ok(());
    }
    Err("no nvcc to compile kernels/*.cu: install the CUDA toolkit, and name it in NVCC (the program) or \
         CUDA_PATH (its folder) if it is not on PATH; GRIDCALL_SIGNATURES_ONLY=1 builds the crate \
         without its kernels"
        .into())
}
