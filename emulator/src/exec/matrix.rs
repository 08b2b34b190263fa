//! Matrix instructions of a warp.

use super::code::Reg;
use super::context::Context;
use super::memory::GlobalMemory;
use super::trouble::Trouble;
use super::visit::Role;
use super::warp::{Group, Warp};

#[derive(Clone, Debug)]
pub(crate) struct MatrixOp {
    name: String,
}

impl MatrixOp {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn visit(&mut self, _see: &mut dyn FnMut(&mut Reg, Role)) {}
}

impl Warp {
    pub(crate) fn matrix<M: GlobalMemory>(
        &mut self,
        _cx: &mut Context<'_, M>,
        here: Group,
        _op: &MatrixOp,
    ) -> Result<(), Trouble> {
        self.groups.push(Group {
            pc: here.pc + 1,
            ..here
        });
        Ok(())
    }
}
