//! Times `cargo check` of crates with many declarations, in cargo's default debug build, in which
//! the macro is not optimised.
//!
//! Each crate is written into the target folder with its PTX, and checked several times after its
//! source was touched; what the same crate takes without declarations is subtracted. Processor time
//! is what counts: other work on the machine does not show in it. Needs Linux, cargo, and what
//! gridcall depends on in cargo's cache.

mod crates;
mod processor;
mod ptx;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use crate::crates::Case;

const USAGE: &str = "usage: declarations [--kernels N] [--checks N]
  kernels  declarations of each crate (default 1000)
  checks   checks of each crate, of which the cheapest counts (default 3)";

fn main() -> ExitCode {
    match options().and_then(|(kernels, checks)| run(kernels, checks)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<(usize, usize), Box<dyn Error>> {
    let (mut kernels, mut checks) = (1000, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let place = match option.as_str() {
            "--kernels" => &mut kernels,
            "--checks" => &mut checks,
            _ => return Err(USAGE.into()),
        };
        let value = arguments.next().and_then(|value| value.parse().ok());
        *place = value.filter(|&value| value > 0).ok_or(USAGE)?;
    }
    Ok((kernels, checks))
}

fn run(kernels: usize, checks: usize) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = root.join("target/declarations");
    let mut without = Duration::ZERO;
    println!("| | kernels | bytes of PTX | processor s a check | ms a kernel |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for case in Case::ALL {
        let folder = target.join(case.folder());
        let bytes = case.write(&folder, &root, kernels)?;
        let time = check(&folder, &target.join("target"), checks)?;
        let (name, kernels) = (case.name(), case.kernels(kernels));
        let seconds = time.as_secs_f64();
        print!("| {name} | {kernels} | {bytes} | {seconds:.2} |");
        if case == Case::Without {
            without = time;
            println!(" |");
        } else {
            let more = time.saturating_sub(without).as_secs_f64();
            let each = 1000.0 * more / f64::from(u32::try_from(kernels)?);
            println!(" {each:.1} |");
        }
    }
    Ok(())
}

/// What the cheapest check of the crate takes, its dependencies checked before.
fn check(folder: &Path, target: &Path, checks: usize) -> Result<Duration, Box<dyn Error>> {
    let source: PathBuf = folder.join("src/lib.rs");
    let text = fs::read(&source)?;
    let mut cheapest = Duration::MAX;
    for _ in 0..=checks {
        // Written anew, so that cargo takes it for changed.
        fs::write(&source, &text)?;
        let before = processor::time_of_children()?;
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["check", "--quiet", "--offline"])
            .env("CARGO_TARGET_DIR", target)
            .current_dir(folder)
            .status()?;
        if !status.success() {
            return Err(format!("the crate in {} does not compile", folder.display()).into());
        }
        // The first check includes the dependencies', and is never the cheapest.
        cheapest = cheapest.min(processor::time_of_children()?.saturating_sub(before));
    }
    Ok(cheapest)
}
