//! Makes the two stub libraries that stand in for the driver, and the table of functions they jump
//! through. Both come from `src/driver/functions.txt`, so names, places and functions agree.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/driver/functions.txt");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let functions = fs::read_to_string("src/driver/functions.txt")?;
    let functions = functions
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(Function::read)
        .collect::<Result<Vec<_>, _>>()?;
    fs::write(out.join("functions.rs"), table(&functions)?)?;

    let source = out.join("stub.c");
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    let linux = env::var("CARGO_CFG_TARGET_OS")? == "linux";
    let jump = match arch.as_str() {
        "x86_64" => Some(jump_x86_64 as fn(&str, usize) -> String),
        "aarch64" => Some(jump_aarch64 as fn(&str, usize) -> String),
        _ => None,
    };
    for soname in ["libcuda.so", "libcuda.so.1"] {
        let library = out.join(soname);
        match jump {
            Some(jump) if linux => {
                fs::write(&source, stub(&functions, jump)?)?;
                link(&source, &library, soname)?;
            }
            // `install` says that this platform has no stub.
            _ => fs::write(&library, [])?,
        }
    }
    Ok(())
}

/// One line of the list: a name, the first version of CUDA that has it, and how it is built.
struct Function<'a> {
    name: &'a str,
    since: u32,
    built: Built,
}

enum Built {
    /// It answers that it is not supported.
    No,
    Yes,
    /// With a twin whose default stream is the thread's own.
    PerThread,
}

impl<'a> Function<'a> {
    fn read(line: &'a str) -> Result<Self, Box<dyn Error>> {
        let mut words = line.split_whitespace();
        let (Some(name), Some(since)) = (words.next(), words.next()) else {
            return Err(format!("`{line}` is not a name and a version").into());
        };
        let built = match words.next() {
            None => Built::Yes,
            Some("stream") => Built::PerThread,
            Some("absent") => Built::No,
            Some(other) => return Err(format!("`{other}` of `{name}` is unknown").into()),
        };
        Ok(Self {
            name,
            since: since.parse()?,
            built,
        })
    }
}

/// The Rust side: names, versions and addresses, in the order of the list.
fn table(functions: &[Function<'_>]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    writeln!(
        text,
        "pub(crate) static FUNCTIONS: [(&str, u32); {}] = [",
        functions.len()
    )?;
    for function in functions {
        writeln!(text, "    ({:?}, {}),", function.name, function.since)?;
    }
    writeln!(
        text,
        "];\n\npub(crate) fn address(index: usize) -> *const () {{"
    )?;
    writeln!(text, "    match index {{")?;
    for (index, function) in functions.iter().enumerate() {
        match function.built {
            Built::No => writeln!(text, "        {index} => absent::<{index}> as *const (),")?,
            _ => writeln!(
                text,
                "        {index} => api::{} as *const (),",
                function.name
            )?,
        }
    }
    writeln!(text, "        _ => std::ptr::null(),\n    }}\n}}\n")?;
    writeln!(
        text,
        "pub(crate) fn per_thread_address(name: &str) -> Option<*const ()> {{\n    match name {{"
    )?;
    for function in functions {
        if matches!(function.built, Built::PerThread) {
            writeln!(
                text,
                "        {:?} => Some(api::{}_ptsz as *const ()),",
                function.name, function.name
            )?;
        }
    }
    writeln!(text, "        _ => None,\n    }}\n}}")?;
    Ok(text)
}

/// The C side: one jump a function, and a way to the table the jumps go through.
fn stub(
    functions: &[Function<'_>],
    jump: fn(&str, usize) -> String,
) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    writeln!(
        text,
        "__attribute__((visibility(\"hidden\"))) void *gridcall_table[{}];",
        functions.len()
    )?;
    writeln!(
        text,
        "void **gridcall_emulator_table(void) {{ return gridcall_table; }}"
    )?;
    writeln!(text, "__asm__(\".text\\n\"")?;
    for (index, function) in functions.iter().enumerate() {
        writeln!(text, "    \"{}\"", jump(function.name, index * 8))?;
    }
    writeln!(text, ");")?;
    Ok(text)
}

fn jump_x86_64(name: &str, offset: usize) -> String {
    format!(
        ".globl {name}\\n.type {name},@function\\n{name}: jmp *gridcall_table+{offset}(%rip)\\n.size {name},.-{name}\\n"
    )
}

fn jump_aarch64(name: &str, offset: usize) -> String {
    format!(
        ".globl {name}\\n.type {name},%function\\n{name}: adrp x16, gridcall_table+{offset}\\nldr x16, [x16, #:lo12:gridcall_table+{offset}]\\nbr x16\\n.size {name},.-{name}\\n"
    )
}

/// Links with the compiler driver that Rust itself links with.
fn link(source: &Path, library: &Path, soname: &str) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let status = Command::new(&linker)
        .args(["-shared", "-fPIC", "-nostdlib", "-O1", "-s"])
        .arg(format!("-Wl,-soname,{soname}"))
        .arg("-o")
        .args([library, source])
        .status()
        .map_err(|error| {
            format!(
                "cannot run `{}` to link the stub: {error}",
                linker.display()
            )
        })?;
    if !status.success() {
        return Err(format!("`{}` could not link the stub: {status}", linker.display()).into());
    }
    Ok(())
}
