//! Matrix instructions.

use gridcall_ptx::Operand;

use super::body::Body;
use super::{Lowered, Refusal};

impl Body<'_, '_> {
    pub(super) fn lower_matrix(&mut self, _: &str, _: &[&str], _: &[Operand<'_>]) -> Lowered<()> {
        Err(Refusal::Unsupported)
    }
}
