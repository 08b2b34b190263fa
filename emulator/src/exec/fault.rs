//! Why a kernel was stopped: what happened, in which thread, at which line, and the code the driver
//! reports for it.

use std::fmt;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// An address outside of every allocation, or outside of shared, local or parameter memory.
    IllegalAddress,
    /// An address that is no multiple of the access's size.
    Misaligned,
    /// A store to memory that the kernel may only read.
    ReadOnly,
    /// A load of bytes of which none was ever written.
    Uninitialised,
    /// Two unordered accesses of shared memory, one of them a store.
    SharedRace,
    /// Two unordered accesses of global memory by two blocks, one of them a store.
    GlobalRace,
    /// `trap` or `brkpt`.
    Trap,
    /// A failed device-side `assert`.
    Assert,
    /// A barrier that some threads wait at and others bypassed.
    DivergentBarrier,
    /// A `.sync` instruction whose member mask names threads that cannot take part.
    BadMask,
    /// No thread can go on.
    Deadlock,
    /// The step budget is used up.
    StepBudget,
    /// The call stack is used up.
    StackOverflow,
    /// An indirect call or branch to no function or label.
    InvalidPc,
    /// A tensor map that is none, or not one for the instruction that copies by it.
    TensorMap,
    /// A bulk copy that nobody waited for, of a size it cannot have, or of more bytes than a barrier counts.
    BulkCopy,
    /// An instruction the interpreter does not know; no thread ran.
    NotSupported,
    /// The launch's shape or its parameters do not fit the kernel; no thread ran.
    InvalidLaunch,
}

impl FaultKind {
    /// The `CUresult` a driver answers with.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::IllegalAddress => 700,
            Self::Misaligned => 716,
            Self::Assert => 710,
            Self::StepBudget => 702,
            Self::TensorMap => 715,
            Self::InvalidPc => 718,
            Self::NotSupported => 801,
            Self::InvalidLaunch => 1,
            Self::ReadOnly
            | Self::Uninitialised
            | Self::SharedRace
            | Self::GlobalRace
            | Self::Trap
            | Self::DivergentBarrier
            | Self::BadMask
            | Self::Deadlock
            | Self::BulkCopy
            | Self::StackOverflow => 719,
        }
    }
}

/// A place in the PTX text, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A place in the source the PTX was compiled from, as `.loc` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as `.file` names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// Where the function that holds the line was inlined, if it was.
    pub inlined_at: Option<Box<SourceLine>>,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.inlined_at {
            Some(outer) => write!(f, " inlined at {outer}"),
            None => Ok(()),
        }
    }
}

/// Why a kernel was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The kernel's name.
    pub kernel: String,
    /// The block, `None` if no thread ran.
    pub block: Option<[u32; 3]>,
    /// The thread, `None` if no thread ran or none is to blame alone.
    pub thread: Option<[u32; 3]>,
    /// The instruction in the PTX text.
    pub position: Option<TextPosition>,
    /// The line of the source, if the PTX says.
    pub source: Option<SourceLine>,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// The registers that made the address, with their values.
    pub registers: Vec<(String, u64)>,
    /// What happened, in words.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: kernel `{}`", self.message, self.kernel)?;
        if let Some([x, y, z]) = self.block {
            write!(f, ", block ({x},{y},{z})")?;
        }
        if let Some([x, y, z]) = self.thread {
            write!(f, ", thread ({x},{y},{z})")?;
        }
        if let Some(position) = self.position {
            write!(f, ", PTX line {}", position.line)?;
        }
        match (&self.source, self.position) {
            (Some(source), _) => write!(f, ", {source}")?,
            (None, Some(_)) => f.write_str(" (compile with `-lineinfo` to see the source line)")?,
            (None, None) => {}
        }
        for (name, value) in &self.registers {
            write!(f, ", {name} = {value:#x}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
