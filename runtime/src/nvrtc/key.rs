//! What is a compiled program made of? One number for all of it, the name of its entry in the cache.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{
    Program,
    cache::Writer,
    folder,
    includes::{self, Search},
};
use crate::libnvrtc::{LibNvrtc, Unit};

impl Program {
    /// The key of the unit, or why there is none.
    pub(super) fn key(&self, library: &LibNvrtc, unit: &Unit<'_>) -> Result<[u8; 32], String> {
        self.cache.is_on()?;
        let told = Told::by(&self.options)?;
        let mut made_of = Writer::default();
        made_of.put(env!("CARGO_PKG_VERSION").as_bytes());
        let identity = library.identity();
        made_of.put(
            identity
                .map_err(|failed| format!("{} failed: {}", failed.call, failed.code))?
                .as_bytes(),
        );
        // Names of files in the result start there.
        let here = env::current_dir().unwrap_or_default();
        made_of.put(here.as_os_str().as_encoded_bytes());
        for (name, value) in settings()? {
            made_of.put(name.as_encoded_bytes());
            made_of.put(value.as_encoded_bytes());
        }
        made_of.put(unit.name.as_bytes());
        made_of.put(unit.text.as_bytes());
        // The number of each list, so that none goes on in the next.
        made_of.put(&unit.options.len().to_le_bytes());
        for option in unit.options {
            made_of.put(option.as_encoded_bytes());
        }
        made_of.put(&unit.headers.len().to_le_bytes());
        for (name, text) in unit.headers {
            made_of.put(name.as_bytes());
            made_of.put(text.as_bytes());
        }
        for expression in unit.name_expressions {
            made_of.put(expression.as_bytes());
        }
        for file in &told.files {
            let text = fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
            made_of.put(&text);
        }
        let folders: Vec<PathBuf> = self
            .include_paths
            .iter()
            .cloned()
            .chain(told.folders)
            .chain(library.toolkit_includes().iter().cloned())
            .collect();
        let search = Search {
            beside: folder(unit.name),
            folders: &folders,
            headers: unit.headers,
            included: &told.included,
        };
        let text = told.defines + unit.text;
        made_of.put(&includes::fingerprint(&search, &text)?);
        Ok(Sha256::digest(&made_of.0).into())
    }
}

/// What the environment tells NVRTC.
fn settings() -> Result<Vec<(OsString, OsString)>, String> {
    let mut settings: Vec<(OsString, OsString)> = env::vars_os()
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"NVRTC_"))
        .collect();
    settings.sort();
    let flags = settings
        .iter()
        .find(|(name, value)| name.as_encoded_bytes().ends_with(b"_FLAGS") && !value.is_empty());
    match flags {
        Some((name, _)) => Err(format!("{} is set", name.to_string_lossy())),
        None => Ok(settings),
    }
}

/// What the user's options say of files.
#[derive(Default)]
struct Told {
    folders: Vec<PathBuf>,
    /// Headers that are included first.
    included: Vec<String>,
    /// Macros, as directives.
    defines: String,
    /// Files that are named otherwise.
    files: Vec<String>,
}

impl Told {
    fn by(options: &[String]) -> Result<Told, String> {
        let mut told = Told::default();
        let mut options = options.iter().map(|option| option.trim());
        while let Some(option) = options.next() {
            let mut value = |names: [&str; 2]| {
                let rest = names.iter().find_map(|name| option.strip_prefix(name))?;
                // The value may be an option of its own.
                let rest = if rest.is_empty() {
                    options.next()?
                } else {
                    rest
                };
                Some(rest.strip_prefix('=').unwrap_or(rest).trim())
            };
            if let Some(folder) = value(["--include-path", "-I"]) {
                told.folders.push(PathBuf::from(folder));
            } else if let Some(header) = value(["--pre-include", "-include"]) {
                told.included.push(header.to_owned());
            } else if let Some(define) = value(["--define-macro", "-D"]) {
                let define = define.replacen('=', " ", 1);
                let _ = writeln!(told.defines, "#define {define}");
            } else {
                let (flag, value) = option.split_once('=').unwrap_or((option, ""));
                let files = ["pch", "time", "options-file", "optf"];
                if files.iter().any(|part| flag.contains(part)) {
                    return Err(format!("option `{flag}` reads or writes a file of its own"));
                }
                if Path::new(value).is_file() {
                    told.files.push(value.to_owned());
                }
            }
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(options: &[&str]) -> Result<Told, String> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        Told::by(&options)
    }

    #[test]
    fn every_spelling_of_an_option_is_read() {
        let told = by(&[
            "-Ia",
            "-I",
            "b",
            "-I c",
            "--include-path=d",
            "--include-path",
            "e",
            "-include=f.h",
            "--pre-include",
            "g.h",
            "-DA",
            "-D B=<h.h>",
            "--define-macro=C=1",
            "--use_fast_math",
        ])
        .unwrap();
        assert_eq!(told.folders, ["a", "b", "c", "d", "e"].map(PathBuf::from));
        assert_eq!(told.included, ["f.h", "g.h"]);
        assert_eq!(told.defines, "#define A\n#define B <h.h>\n#define C 1\n");
        assert!(told.files.is_empty());
    }

    #[test]
    fn options_with_files_of_their_own_are_no_part_of_a_key() {
        for option in [
            "--create-pch=a.pch",
            "-pch",
            "--time=out.csv",
            "--fdevice-time-trace=t",
        ] {
            assert!(by(&[option]).is_err(), "{option}");
        }
        let manifest = concat!("--list=", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(by(&[manifest]).unwrap().files.len(), 1);
    }
}
