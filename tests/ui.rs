//! What the compiler says of declarations and calls that are wrong, case by case: `ui/<fault>/`.
//!
//! The words of one compiler are the measure; others skip. After a change,
//! `TRYBUILD=overwrite cargo test -p gridcall-tests --test ui` writes the outputs anew: read them.

use std::{env, fs, path::Path, process::Command};

const PINNED: &str = "rustc 1.95.";

#[test]
fn ui() {
    let version = compiler();
    if !version.starts_with(PINNED) {
        println!("skipped: the outputs are those of {PINNED}x, this is {version}");
        return;
    }
    copy_kernels();
    // What `build.rs` sets for this crate is not for the cases.
    // SAFETY: this is the only test of the program, and no other thread looks at the environment.
    unsafe { env::remove_var("GRIDCALL_SIGNATURES_ONLY") };
    trybuild::TestCases::new().compile_fail("ui/*/*.rs");
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Puts the kernels into the package that trybuild makes of the cases, as `kernels/`.
fn copy_kernels() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let to = target.join("tests/trybuild/gridcall-tests/kernels");
    fs::create_dir_all(&to).unwrap();
    for from in ["../kernels", "ui/kernels", "launch/images"] {
        let from = here.join(from);
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| {
                ["ptx", "cu", "cubin"]
                    .iter()
                    .any(|&known| extension == known)
            }) {
                fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
}
