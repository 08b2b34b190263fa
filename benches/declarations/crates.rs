//! The crates that are checked.

use std::{error::Error, fmt::Write, fs, io, path::Path};

use crate::ptx;

/// How the kernels are declared, and over which files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// No declarations: what the rest of a check takes.
    Without,
    /// A file for each kernel, declared by itself.
    SingleSmall,
    /// Ten kernels to a file and a block.
    BlocksSmall,
    /// One large file, one block.
    BlockLarge,
    /// One large file, each kernel declared by itself.
    SingleLarge,
}

impl Case {
    pub(crate) const ALL: [Case; 5] = [
        Case::Without,
        Case::SingleSmall,
        Case::BlocksSmall,
        Case::BlockLarge,
        Case::SingleLarge,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Case::Without => "no declarations",
            Case::SingleSmall => "each by itself, each on its own file",
            Case::BlocksSmall => "in blocks of ten, each on its own file",
            Case::BlockLarge => "in one block, on one large file",
            Case::SingleLarge => "each by itself, on one large file",
        }
    }

    pub(crate) fn folder(self) -> &'static str {
        match self {
            Case::Without => "without",
            Case::SingleSmall => "single-small",
            Case::BlocksSmall => "blocks-small",
            Case::BlockLarge => "block-large",
            Case::SingleLarge => "single-large",
        }
    }

    /// How many of so many kernels it declares: fewer where each takes long.
    pub(crate) fn kernels(self, kernels: usize) -> usize {
        match self {
            Case::Without => 0,
            Case::SingleSmall | Case::BlocksSmall | Case::BlockLarge => kernels,
            Case::SingleLarge => kernels.div_ceil(20),
        }
    }

    /// Writes the crate, and says how much PTX it has.
    pub(crate) fn write(
        self,
        folder: &Path,
        root: &Path,
        kernels: usize,
    ) -> Result<usize, Box<dyn Error>> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), manifest(root))?;
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        let mut source = String::from("//! Declares kernels.\n\npub use gridcall::cover;\n");
        let all: Vec<usize> = (0..self.kernels(kernels)).collect();
        let mut bytes = 0;
        let mut file = |name: &str, kernels: &[usize], body: usize| -> io::Result<()> {
            let text = ptx::module(kernels, body);
            bytes += text.len();
            fs::write(folder.join(name), text)
        };
        /// Bytes of a kernel in a small file and in the large one, which then has 10 MB.
        const SMALL: usize = 2_000;
        let large = 10_000_000 / all.len().max(1);
        match self {
            Case::Without => {}
            Case::SingleSmall => {
                for &kernel in &all {
                    file(&format!("{kernel}.ptx"), &[kernel], SMALL)?;
                    source += &single(&format!("{kernel}.ptx"), kernel);
                }
            }
            Case::BlocksSmall => {
                for (number, block) in all.chunks(10).enumerate() {
                    file(&format!("{number}.ptx"), block, SMALL)?;
                    source += &declarations(&format!("{number}.ptx"), block)?;
                }
            }
            Case::BlockLarge => {
                file("large.ptx", &all, large)?;
                source += &declarations("large.ptx", &all)?;
            }
            Case::SingleLarge => {
                file("large.ptx", &all, large)?;
                for &kernel in &all {
                    source += &single("large.ptx", kernel);
                }
            }
        }
        fs::write(folder.join("src/lib.rs"), source)?;
        Ok(bytes)
    }
}

fn manifest(root: &Path) -> String {
    format!(
        "[package]\nname = \"declarations\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [workspace]\n\n[dependencies]\ngridcall = {{ path = \"{}\" }}\n",
        root.join("runtime").display()
    )
}

fn single(file: &str, kernel: usize) -> String {
    let declaration = declaration("unsafe", kernel);
    format!("\n#[gridcall::kernel(ptx = \"{file}\")]\n{declaration}")
}

fn declarations(file: &str, kernels: &[usize]) -> Result<String, Box<dyn Error>> {
    let mut text = format!("\n#[gridcall::kernel(ptx = \"{file}\")]\nunsafe extern \"C\" {{\n");
    for &kernel in kernels {
        write!(text, "{}", declaration("safe", kernel))?;
    }
    Ok(text + "}\n")
}

/// Two scalars, two arrays, two contracts; `safety` is `safe` or `unsafe`.
fn declaration(safety: &str, kernel: usize) -> String {
    format!(
        "/// A kernel.\n#[requires(x.len() >= n, y.len() >= n)]\n\
         pub {safety} fn kernel{kernel}(n: u32, a: f32, x: &[f32], y: &mut [f32]);\n"
    )
}
