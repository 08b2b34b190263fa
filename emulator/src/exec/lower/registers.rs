//! Which registers share a place in a frame.

use super::super::code::Function;
use super::Draft;

pub(super) fn allocate(_function: &mut Function, drafts: Vec<Draft>) -> Vec<Draft> {
    drafts
}
