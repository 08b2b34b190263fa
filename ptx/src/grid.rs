//! How a kernel's code waits for what is beyond its block: for its whole grid, and for the grid in front
//! of it in the stream.
//!
//! Claims only what holds: a kernel that waits in a way that is not known here is said not to.

use std::collections::HashSet;

use crate::code::{Code, Instruction, Operand, Statement};
use crate::constant::Constant;
use crate::entry::{Body, Entry, Function};
use crate::error::{Error, Position};
use crate::module::Module;

/// Where a kernel waits for more than its block.
///
/// ```
/// let text = ".version 9.0
///     .target sm_90
///     .visible .entry second() {
///         griddepcontrol.wait;
///         ret;
///     }";
/// let module = gridcall_ptx::Module::parse(text)?;
/// let waits = module.grid_waits(&module.entries()[0], text)?;
/// assert_eq!(waits.for_dependencies.unwrap().line, 4);
/// assert_eq!(waits.for_grid, None);
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridWaits {
    /// Where it traps unless it was launched as a cooperative grid, as `this_grid().sync()` of
    /// cooperative groups does.
    pub for_grid: Option<Position>,
    /// Where it, or a function that it may call, waits for the grids it depends on:
    /// `griddepcontrol.wait`.
    pub for_dependencies: Option<Position>,
}

impl Module {
    /// Where a kernel waits for more than its block.
    ///
    /// `source` is the text that the module was read from.
    ///
    /// # Errors
    ///
    /// If the code of the kernel, or of a function that waits, is not written as PTX is.
    pub fn grid_waits(&self, entry: &Entry, source: &str) -> Result<GridWaits, Error> {
        let mut waits = GridWaits::default();
        let Some(body) = entry.body() else {
            return Ok(waits);
        };
        // Most code has neither word, and need not be read then.
        if text(body, source).contains("%envreg") {
            waits.for_grid = grid_sync(&body.parse(source)?);
        }
        if source.contains(DEPENDENCY) {
            waits.for_dependencies = self.dependency(body, source)?;
        }
        Ok(waits)
    }

    fn dependency(&self, body: &Body, source: &str) -> Result<Option<Position>, Error> {
        let mut seen = HashSet::new();
        let mut reached = vec![body];
        while let Some(body) = reached.pop() {
            for instruction in body.parse(source)?.instructions() {
                if is_dependency(instruction) {
                    return Ok(Some(instruction.position));
                }
                if instruction.opcode != "call" {
                    continue;
                }
                for operand in &instruction.operands {
                    if let Operand::Name(name) = *operand
                        && let Some(body) = self.function(name).and_then(Function::body)
                        && seen.insert(name)
                    {
                        reached.push(body);
                    }
                }
            }
        }
        Ok(None)
    }
}

const DEPENDENCY: &str = "griddepcontrol";

fn text<'a>(body: &Body, source: &'a str) -> &'a str {
    source.get(body.range()).unwrap_or_default()
}

fn is_dependency(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == DEPENDENCY && instruction.modifiers == ["wait"]
}

/// The trap of a kernel that finds no workspace for its grid's barrier, which the driver hands over in
/// two registers if the grid is cooperative:
///
/// ```text
/// mov.u32 %r1, %envreg1;       // and %envreg2, both in %rd1
/// setp.ne.s64 %p1, %rd1, 0;
/// @%p1 bra $L1;
/// trap;
/// ```
fn grid_sync(code: &Code<'_>) -> Option<Position> {
    let mut workspace: HashSet<&str> = ["%envreg1", "%envreg2"].into();
    let instructions: Vec<&Instruction<'_>> = code.instructions().collect();
    for instruction in &instructions {
        let moves = ["mov", "cvt", "bfi", "or", "shl"].contains(&instruction.opcode);
        if let [Operand::Name(to), from @ ..] = instruction.operands.as_slice()
            && moves
            && from.iter().any(|operand| holds(operand, &workspace))
        {
            workspace.insert(to);
        }
    }
    let mut last: [Option<&Instruction<'_>>; 2] = [None, None];
    for statement in code.statements() {
        let Statement::Instruction(instruction) = statement else {
            // What is behind a label is reached by other ways, too.
            if matches!(statement, Statement::Label { .. }) {
                last = [None, None];
            }
            continue;
        };
        if let [Some(compare), Some(branch)] = last
            && instruction.opcode == "trap"
            && instruction.guard.is_none()
            && compare.opcode == "setp"
            && compare.modifiers.first() == Some(&"ne")
            && let [Operand::Name(found), Operand::Name(compared), zero] =
                compare.operands.as_slice()
            && is_zero(zero)
            && workspace.contains(compared)
            && branch.opcode == "bra"
            && branch
                .guard
                .is_some_and(|guard| !guard.negated && guard.register == *found)
        {
            return Some(instruction.position);
        }
        last = [last[1], Some(instruction)];
    }
    None
}

fn holds(operand: &Operand<'_>, registers: &HashSet<&str>) -> bool {
    match operand {
        Operand::Name(name) => registers.contains(name),
        Operand::Vector(parts) => parts.iter().any(|part| holds(part, registers)),
        _ => false,
    }
}

fn is_zero(operand: &Operand<'_>) -> bool {
    matches!(
        operand,
        Operand::Constant(Constant::S64(0) | Constant::U64(0))
    )
}
