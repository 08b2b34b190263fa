//! What of a PTX text the emulator cannot run.

use std::fmt;

use crate::exec::{LowerError, Program};

/// An instruction that the emulator does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedInstruction {
    /// The kernel that contains it, or can call what contains it.
    pub kernel: String,
    /// The instruction with its modifiers, such as `wgmma.fence.sync.aligned`.
    pub instruction: String,
    /// The line of the PTX text where it first stands.
    pub line: u32,
    /// How often it stands there.
    pub count: u32,
}

impl fmt::Display for UnsupportedInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel `{}` needs `{}` (line {}, {} times), which the emulator does not know",
            self.kernel, self.instruction, self.line, self.count
        )
    }
}

/// The instructions of a PTX text that the emulator does not know: a launch of these kernels answers
/// `CUDA_ERROR_NOT_SUPPORTED`. A test can leave itself to a GPU by it.
///
/// # Errors
///
/// Fails where the text is no PTX.
///
/// # Examples
///
/// ```
/// let ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing() { ret; }";
/// assert_eq!(gridcall_emulator::unsupported(ptx)?, []);
/// # Ok::<(), gridcall_emulator::LowerError>(())
/// ```
pub fn unsupported(ptx: &str) -> Result<Vec<UnsupportedInstruction>, LowerError> {
    let program = Program::lower(ptx)?;
    let mut found = Vec::new();
    for kernel in program.kernels() {
        for unknown in &kernel.unsupported {
            found.push(UnsupportedInstruction {
                kernel: kernel.name.clone(),
                instruction: unknown.instruction.clone(),
                line: unknown.position.line,
                count: unknown.count,
            });
        }
    }
    Ok(found)
}
