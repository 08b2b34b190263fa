//! Makes the drivers of no use that `launch/driver.rs` puts in front of the machine's own, and the
//! library of `trace/nvtx.rs`.

use std::{env, path::PathBuf, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=launch/stub.c");
    println!("cargo::rerun-if-changed=trace/nvtx.c");
    println!("cargo::rerun-if-env-changed=CC");
    // For the declaration in `launch/loading.rs` of a kernel whose PTX nobody made.
    println!("cargo::rustc-env=GRIDCALL_SIGNATURES_ONLY=1");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // The compiler that Rust links with.
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    for (library, source, options) in [
        ("stub.so", "launch/stub.c", None),
        ("old.so", "launch/stub.c", Some("-DOLD")),
        ("nvtx.so", "trace/nvtx.c", None),
    ] {
        let status = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-Os", "-o"])
            .arg(out.join(library))
            .args(options)
            .arg(source)
            .status()
            .expect("a C compiler is needed to link Rust programs");
        assert!(status.success(), "{library} does not compile");
    }
}
