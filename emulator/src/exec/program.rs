//! A module lowered to what the interpreter runs: its kernels and the variables a loader has to place.

use std::fmt;

use super::code::{Function, Inst, Op, Reg};
use super::code_base::CodeBase;
use super::frame::Frame;
use super::visit::Role;
use super::{SourceLine, TextPosition};

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
    /// `.blocksareclusters`: a launch counts clusters in place of blocks.
    pub counts_clusters: bool,
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
    /// The functions that it can call, itself included.
    pub(crate) reached: Vec<usize>,
    /// The variables in shared memory that it can reach.
    pub(crate) shared: Vec<usize>,
    /// The smallest access it can make of shared memory.
    pub(crate) granule: u32,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the variable.
    pub offset: u64,
    /// How many bytes of the address: 4 or 8.
    pub size: u32,
    /// Which variable, an index into [`Program::variables`].
    pub variable: usize,
    /// What to add to its address.
    pub addend: i64,
    /// The bits of the sum to take, moved down to bit 0; all of them if there is none.
    pub mask: Option<u64>,
}

impl Relocation {
    /// What to write, where the variable lies at `address`: the lowest [`Relocation::size`] bytes of it.
    #[must_use]
    pub fn value(&self, address: u64) -> u64 {
        let sum = address.wrapping_add_signed(self.addend);
        match self.mask {
            None | Some(0) => sum,
            Some(mask) => (sum & mask) >> mask.trailing_zeros(),
        }
    }
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
    /// `.attribute(.managed)`: the host may use it too.
    pub is_managed: bool,
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

/// A variable in shared memory; dynamic if it has no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedVariable {
    pub(crate) size: Option<u32>,
    pub(crate) align: u32,
}

/// File and line of a source, and of where it was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Source {
    pub(crate) place: (u32, u32),
    pub(crate) inlined_at: Option<(u32, u32)>,
}

/// What lowering makes of a module.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) version: (u32, u32),
    pub(crate) target: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) shared: Vec<SharedVariable>,
    pub(crate) functions: Vec<Function>,
    pub(crate) code: Vec<Inst>,
    pub(crate) joins: Vec<Vec<u32>>,
    /// For each micro-operation: where it stands, file and line of the source, the register of its
    /// address, and the names of its operands.
    pub(crate) positions: Vec<TextPosition>,
    pub(crate) sources: Vec<Option<Source>>,
    pub(crate) bases: Vec<Option<String>>,
    pub(crate) names: Vec<Vec<String>>,
    pub(crate) files: Vec<(u32, String)>,
    /// Where the addresses of its functions begin.
    pub(crate) code_base: CodeBase,
}

/// A module, ready to run.
#[derive(Debug)]
pub struct Program {
    lowered: Lowered,
}

impl Program {
    /// Reads and lowers a module.
    ///
    /// # Errors
    ///
    /// Fails where the text is no PTX that a driver would take. An instruction that is only unknown to
    /// the interpreter is no error: see [`Kernel::unsupported`].
    pub fn lower(source: &str) -> Result<Self, LowerError> {
        super::lower::lower(source).map(|lowered| Self { lowered })
    }

    /// `.version`.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.lowered.version
    }

    /// The architecture of `.target`, such as `sm_90a`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.lowered.target
    }

    /// The kernels, in the order of the text.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.lowered.kernels
    }

    /// The index of the kernel of that name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.kernels().iter().position(|kernel| kernel.name == name)
    }

    /// The variables a loader has to place before a launch.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.lowered.variables
    }

    /// For each micro-operation that a kernel can reach: its function, and file and line of its source,
    /// or its line in the PTX where there is no file.
    pub(crate) fn reachable_lines(&self, kernel: usize) -> Vec<(u32, &str, Option<String>, u32)> {
        let mut lines = Vec::new();
        for function in self.kernels()[kernel]
            .reached
            .iter()
            .map(|at| &self.functions()[*at])
        {
            for pc in function.entry..function.end {
                let source = self.lowered.sources[pc as usize];
                let place = source.map(|source| source.place);
                let line = place.map_or(self.position(pc).line, |(_, line)| line);
                lines.push((
                    pc,
                    function.name.as_str(),
                    place.map(|(file, _)| self.file(file)),
                    line,
                ));
            }
        }
        lines
    }

    /// Where the addresses of its functions begin.
    pub(crate) fn code_base(&self) -> CodeBase {
        self.lowered.code_base
    }

    pub(crate) fn functions(&self) -> &[Function] {
        &self.lowered.functions
    }

    /// The function that a kernel is: kernels come first, in their order.
    pub(crate) fn kernel_function(kernel: usize) -> usize {
        kernel
    }

    pub(crate) fn code(&self) -> &[Inst] {
        &self.lowered.code
    }

    pub(crate) fn shared(&self) -> &[SharedVariable] {
        &self.lowered.shared
    }

    pub(crate) fn joins(&self) -> &[Vec<u32>] {
        &self.lowered.joins
    }

    /// The barriers that lie before a join.
    pub(crate) fn join(&self, join: u32) -> &[u32] {
        self.lowered
            .joins
            .get(join as usize)
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn position(&self, pc: u32) -> TextPosition {
        let unknown = TextPosition { line: 0, column: 0 };
        self.lowered
            .positions
            .get(pc as usize)
            .copied()
            .unwrap_or(unknown)
    }

    /// The line of the source that a micro-operation comes from.
    pub(crate) fn source(&self, pc: u32) -> Option<SourceLine> {
        let source = self.lowered.sources.get(pc as usize).copied().flatten()?;
        let named = |(file, line): (u32, u32)| SourceLine {
            file: self.file(file),
            line,
            inlined_at: None,
        };
        Some(SourceLine {
            inlined_at: source.inlined_at.map(|place| Box::new(named(place))),
            ..named(source.place)
        })
    }

    fn file(&self, number: u32) -> String {
        let name = self
            .lowered
            .files
            .iter()
            .find(|(index, _)| *index == number);
        name.map_or_else(|| format!("file {number}"), |(_, name)| name.clone())
    }

    /// The register that an address is made of, and those that it was made of in turn, where they still
    /// hold what they held.
    pub(crate) fn address_registers(
        &self,
        pc: u32,
        frame: &Frame,
        lane: usize,
    ) -> Vec<(String, u64)> {
        let (Some(Some(name)), Some(inst)) = (
            self.lowered.bases.get(pc as usize),
            self.lowered.code.get(pc as usize),
        ) else {
            return Vec::new();
        };
        let base = match &inst.op {
            Op::Load(load) => load.target.base,
            Op::Store(store) => store.target.base,
            Op::Atomic(atomic) => atomic.target.base,
            Op::CopyAsync(copy) => copy.from.base,
            _ => return Vec::new(),
        };
        let mut found = vec![(name.clone(), frame.lane(base, lane))];
        found.extend(self.sources_of(pc, base, frame, lane));
        found
    }

    fn sources_of(&self, pc: u32, base: Reg, frame: &Frame, lane: usize) -> Vec<(String, u64)> {
        let entry = self
            .functions()
            .get(frame.function)
            .map_or(pc, |function| function.entry);
        let mut overwritten = Vec::new();
        for at in (entry..pc).rev() {
            let at = at as usize;
            let mut inst = self.lowered.code[at].clone();
            if matches!(
                inst.op,
                Op::Branch(_) | Op::BranchTable { .. } | Op::Call(_)
            ) {
                return Vec::new();
            }
            let (mut read, mut set) = (Vec::new(), Vec::new());
            inst.visit(&mut |reg, role| match role {
                Role::Reads => read.push(*reg),
                Role::Sets => set.push(*reg),
            });
            if !set.contains(&base) {
                overwritten.extend(set);
                continue;
            }
            // The names are those of the operands in the text: the destination, then the sources.
            let names = self.lowered.names[at].iter().skip(1);
            if self.lowered.names[at].len() != read.len() + 1 {
                return Vec::new();
            }
            return names
                .zip(&read)
                .filter(|(_, reg)| !overwritten.contains(reg) && **reg != base)
                .map(|(name, reg)| (name.clone(), frame.lane(*reg, lane)))
                .collect();
        }
        Vec::new()
    }
}
