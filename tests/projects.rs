//! Whole crates that declare kernels, built by cargo as a user builds them: where paths start, what
//! is compiled again and when, and building without the PTX.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A crate in a folder of its own.
struct Project {
    root: PathBuf,
}

impl Project {
    fn new(name: &str) -> Project {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("projects")
            .join(name);
        if root.exists() {
            fs::remove_dir_all(&root).unwrap();
        }
        let project = Project { root };
        // The versions that the tests themselves were built with, so that nothing is looked up.
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
        project.write("Cargo.lock", &fs::read_to_string(lock).unwrap());
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Cargo tells packages apart by name, version and place in their workspace, which are the
        // same in several projects; the version keeps them apart in the common target folder.
        let project = self.root.file_name().unwrap().to_str().unwrap();
        let version = format!("version = \"0.0.0-{project}\"");
        fs::write(path, text.replace("version = \"0.0.0\"", &version)).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.root.join(path)).unwrap();
    }

    /// `cargo arguments` in `folder`: whether it succeeded, and what it said.
    fn cargo(
        &self,
        folder: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (bool, String) {
        // One target folder for all projects, so that dependencies are built once.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects/target");
        let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(arguments)
            .arg("--offline")
            .current_dir(self.root.join(folder))
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTFLAGS")
            .env_remove("DOCS_RS")
            .env_remove("GRIDCALL_SIGNATURES_ONLY")
            .env_remove("NVCC")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    }

    #[track_caller]
    fn builds(&self, folder: &str, arguments: &[&str], variables: &[(&str, &str)]) {
        let (succeeded, said) = self.cargo(folder, arguments, variables);
        assert!(succeeded, "{said}");
    }

    #[track_caller]
    fn fails(&self, folder: &str, arguments: &[&str], variables: &[(&str, &str)], with: &str) {
        let (succeeded, said) = self.cargo(folder, arguments, variables);
        assert!(!succeeded, "built, without: {with}");
        assert!(said.contains(with), "{with} is missing in: {said}");
    }
}

fn manifest(name: &str, edition: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n{more}\n")
}

fn gridcall(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime");
    let path = path.display();
    format!("{name} = {{ package = \"gridcall\", path = '{path}' }}\n")
}

fn ptx(entry: &str) -> String {
    format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n\n\
         .visible .entry {entry}(\n\t.param .u64 p0,\n\t.param .u32 p1\n)\n{{\n\tret;\n}}\n"
    )
}

const RELU: &str = "#[gridcall::kernel(ptx = \"kernels/relu.ptx\")]
unsafe extern \"C\" {
    pub safe fn relu(y: &mut [f32], n: i32);
}
";

/// A workspace with the kernel's crate as a member, and a crate that depends on it.
fn workspace(name: &str) -> Project {
    let project = Project::new(name);
    project.write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n",
    );
    let dependencies = format!("[dependencies]\n{}", gridcall("gridcall"));
    project.write("crates/a/Cargo.toml", &manifest("a", "2024", &dependencies));
    project.write(
        "crates/a/src/lib.rs",
        "/// ```\n/// let _ = a::gpu::relu::load;\n/// ```\npub mod gpu;\n",
    );
    project.write("crates/a/src/gpu/mod.rs", RELU);
    project.write("crates/a/kernels/relu.ptx", &ptx("relu"));
    project.write(
        "crates/b/Cargo.toml",
        &manifest("b", "2024", "[dependencies]\na = { path = \"../a\" }"),
    );
    project.write(
        "crates/b/src/main.rs",
        "fn main() { let _ = a::gpu::relu::load; }\n",
    );
    project
}

#[test]
fn paths_start_at_the_crate_wherever_cargo_runs() {
    let project = workspace("paths");
    project.builds(".", &["check", "--workspace"], &[]);
    project.builds("crates/a", &["check"], &[]);
    project.builds("crates/b", &["check"], &[]);
    project.builds(".", &["test", "--doc", "--package", "a"], &[]);
    project.builds(
        ".",
        &["doc", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    );
}

#[test]
fn a_changed_file_is_compiled_again() {
    let project = workspace("changes");
    project.builds(".", &["check"], &[]);
    project.write("crates/a/kernels/relu.ptx", &ptx("rectify"));
    project.fails(
        ".",
        &["check"],
        &[],
        "no entry `relu` in kernels/relu.ptx; it has `rectify`",
    );
    project.write(
        "crates/a/kernels/relu.ptx",
        &ptx("relu").replace(".u32", ".u64"),
    );
    project.fails(
        ".",
        &["check"],
        &[],
        "is `i32` (4 bytes), but kernels/relu.ptx:7 declares `.u64`",
    );
    project.write("crates/a/kernels/relu.ptx", &ptx("relu"));
    project.builds(".", &["check"], &[]);
}

#[test]
fn a_crate_without_its_ptx_builds_when_told_to() {
    let project = workspace("signatures");
    project.write("crates/b/src/main.rs", MISSING);
    let dependencies = format!(
        "[dependencies]\na = {{ path = \"../a\" }}\n{}",
        gridcall("gridcall")
    );
    project.write("crates/b/Cargo.toml", &manifest("b", "2024", &dependencies));
    project.remove("crates/a/kernels/relu.ptx");
    project.fails(".", &["check"], &[], "no such file: ");
    project.builds(".", &["check"], &[("DOCS_RS", "1")]);
    project.builds(".", &["check"], &[("GRIDCALL_SIGNATURES_ONLY", "1")]);
    project.fails(
        ".",
        &["check"],
        &[],
        "GRIDCALL_SIGNATURES_ONLY=1 builds the crate",
    );
    project.fails(
        ".",
        &["check"],
        &[("GRIDCALL_SIGNATURES_ONLY", "0")],
        "no such file: ",
    );
    project.write("crates/a/kernels/relu.cu", "");
    project.fails(".", &["check"], &[], "to make it: nvcc -ptx -o ");
}

#[test]
fn machine_code_is_read_again_when_it_changes() {
    let project = workspace("machine-code");
    let source = RELU.replace(
        "\"kernels/relu.ptx\"",
        "\"kernels/relu.ptx\", cubin = \"kernels/relu.fatbin\"",
    );
    project.write("crates/a/src/gpu/mod.rs", &source);
    // Of which kernels are in a fatbin, the compiler does not learn.
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("launch/images/pick.fatbin");
    let fatbin = project.root.join("crates/a/kernels/relu.fatbin");
    fs::copy(made, &fatbin).unwrap();
    project.builds(".", &["check"], &[]);
    project.write("crates/a/kernels/relu.fatbin", "extern");
    let refused = "cannot use kernels/relu.fatbin: it is no cubin and no fatbin";
    project.fails(".", &["check"], &[], refused);
    project.remove("crates/a/kernels/relu.fatbin");
    project.fails(".", &["check"], &[], "no such file: ");
    project.builds(".", &["check"], &[("GRIDCALL_SIGNATURES_ONLY", "1")]);
}

/// Types are checked at the calls as ever.
const MISSING: &str = "use gridcall::cudarc::driver::{CudaSlice, CudaStream};
fn main() {
    let _: fn(&CudaStream, &mut CudaSlice<f32>) -> Result<(), gridcall::LaunchError> =
        |stream, y| a::gpu::relu(stream, gridcall::cover(1), y, 1);
}
";

#[test]
fn a_build_script_may_write_the_ptx() {
    let project = Project::new("script");
    let more = format!(
        "build = \"build.rs\"\n[dependencies]\n{}\n[workspace]",
        gridcall("gridcall")
    );
    project.write("Cargo.toml", &manifest("script", "2024", &more));
    project.write("relu.ptx", &ptx("relu"));
    project.write(
        "build.rs",
        "fn main() {
            println!(\"cargo::rerun-if-changed=relu.ptx\");
            let out = std::env::var_os(\"OUT_DIR\").unwrap();
            std::fs::copy(\"relu.ptx\", std::path::Path::new(&out).join(\"made.ptx\")).unwrap();
        }",
    );
    let source = RELU.replace(
        "\"kernels/relu.ptx\"",
        "concat!(env!(\"OUT_DIR\"), \"/made.ptx\")",
    );
    project.write("src/lib.rs", &source);
    project.builds(".", &["check"], &[]);
    project.write("relu.ptx", &ptx("rectify"));
    project.fails(".", &["check"], &[], "no entry `relu`");
}

/// The crate `examples/build-script`, without the emulator.
fn with_build_script(name: &str) -> Project {
    let project = Project::new(name);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/build-script");
    for path in [
        "build.rs",
        "src/main.rs",
        "kernels/saxpy.cu",
        "include/scale.cuh",
    ] {
        project.write(path, &fs::read_to_string(example.join(path)).unwrap());
    }
    let more = format!("[dependencies]\n{}[workspace]", gridcall("gridcall"));
    project.write("Cargo.toml", &manifest(name, "2024", &more));
    project
}

/// nvcc, or the end of the test where there is none.
macro_rules! nvcc {
    () => {
        match env::var("NVCC") {
            Ok(nvcc) => nvcc,
            Err(_) => {
                let required =
                    env::var_os("GRIDCALL_VERIFY").is_some_and(|value| value == "require");
                assert!(!required, "NVCC must name nvcc");
                let said = "a test of build scripts: SKIPPED, as NVCC names no nvcc\n";
                let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
                return;
            }
        }
    };
}

#[test]
fn a_build_script_that_runs_nvcc_follows_every_change() {
    let nvcc = nvcc!();
    let with_nvcc = [("NVCC", nvcc.as_str())];
    let project = with_build_script("nvcc");
    let read = |path: &str| fs::read_to_string(project.root.join(path)).unwrap();
    let built = || project.builds(".", &["check"], &with_nvcc);
    let refused = |text: &str| project.fails(".", &["check"], &with_nvcc, text);
    built();

    let renamed = "no entry `saxpy` in ";
    for (path, from, to, text) in [
        (
            "kernels/saxpy.cu",
            "float a",
            "double a",
            "`a`, of `saxpy` is `f32`",
        ),
        (
            "kernels/saxpy.cu",
            "y[i] +=",
            "y[j] +=",
            "error: identifier \"j\" is undefined",
        ),
        (
            "include/scale.cuh",
            "#pragma once",
            "#define saxpy renamed",
            renamed,
        ),
        (
            "build.rs",
            "[&str; 4] = [",
            "[&str; 5] = [\"-Dsaxpy=renamed\", ",
            renamed,
        ),
    ] {
        let before = read(path);
        assert!(before.contains(from), "{path}");
        project.write(path, &before.replace(from, to));
        refused(text);
        project.write(path, &before);
        built();
    }
    let flags = [with_nvcc[0], ("NVCC_APPEND_FLAGS", "-Dsaxpy=renamed")];
    project.fails(".", &["check"], &flags, renamed);
    built();

    // Nothing of a kernel that is removed is left.
    let source = read("kernels/saxpy.cu");
    project.write("kernels/other.cu", &source);
    project.remove("kernels/saxpy.cu");
    refused("/kernels/saxpy.ptx");
    project.remove("kernels/other.cu");
    refused("there is no .cu file in kernels");
    project.write("kernels/saxpy.cu", &source);
    built();
}

#[test]
fn a_build_script_without_nvcc_says_so() {
    let nvcc = nvcc!();
    let project = with_build_script("without-nvcc");
    let paths = env::var_os("PATH").unwrap();
    let paths = env::split_paths(&paths).filter(|folder| !folder.join("nvcc").is_file());
    let paths = env::join_paths(paths).unwrap().into_string().unwrap();
    let without = [
        ("PATH", paths.as_str()),
        ("CUDA_PATH", ""),
        ("CUDA_HOME", ""),
    ];
    let only = [
        without[0],
        without[1],
        without[2],
        ("GRIDCALL_SIGNATURES_ONLY", "1"),
    ];
    let with = [("NVCC", nvcc.as_str())];
    let missing = "no nvcc to compile kernels/*.cu: install the CUDA toolkit";

    project.fails(".", &["check"], &without, missing);
    project.builds(".", &["check"], &only);
    project.fails(".", &["check"], &without, missing);
    // What was compiled once is not used for what cannot be compiled now.
    project.builds(".", &["check"], &with);
    project.write(
        "kernels/saxpy.cu",
        "extern \"C\" __global__ void saxpy(int changed) {}",
    );
    project.fails(".", &["check"], &without, missing);
    project.builds(".", &["check"], &only);
    project.fails(".", &["check"], &with, "`saxpy`");
}

#[test]
fn the_crate_may_have_another_name_and_an_older_edition() {
    let project = Project::new("renamed");
    let more = format!("[dependencies]\n{}\n[workspace]", gridcall("gpu_calls"));
    project.write("kernels/relu.ptx", &ptx("relu"));
    let source = RELU
        .replace("gridcall::kernel(", "gpu_calls::kernel(crate = gpu_calls, ")
        .replace("y: &mut [f32], n: i32", "y: Option<&[f32]>, n: Count");
    let derived = "#[derive(Clone, Copy, gpu_calls::KernelArg)]
        #[kernel_arg(crate = gpu_calls)]
        #[repr(u32)]
        pub enum Count { One = 1 }
        #[derive(gpu_calls::AsDeviceView)]
        #[view(crate = gpu_calls)]
        pub struct Samples<A>(pub A);";
    project.write("src/lib.rs", &format!("{source}{derived}"));
    for edition in ["2018", "2021", "2024"] {
        project.write("Cargo.toml", &manifest("renamed", edition, &more));
        project.builds(".", &["check"], &[("RUSTFLAGS", "-D warnings")]);
    }
}
