//! Loads that may read what was never written.
//!
//! A compiler sets a bit-field by a load, an `and` or `bfi`, and a store, also the first time, when the memory
//! holds nothing yet. And it copies structs whole, members that nobody set included.

use std::collections::HashSet;

use super::super::alu::Alu;
use super::super::alu_int::IntOp;
use super::super::code::{Op, Reg};
use super::super::space::Space;
use super::super::visit::Role;
use super::Draft;

/// Marks them.
pub(super) fn mark(mut drafts: Vec<Draft>) -> Vec<Draft> {
    let own = own_pointers(&mut drafts);
    let [mut masked, mut copied, mut used]: [HashSet<Reg>; 3] = Default::default();
    for draft in &mut drafts {
        let base = masked_operand(&draft.inst.op);
        let copies = copied_operands(&draft.inst.op, &own);
        masked.extend(base);
        copied.extend(&copies);
        draft.inst.visit(&mut |reg, role| {
            if role == Role::Reads && Some(*reg) != base && !copies.contains(reg) {
                used.insert(*reg);
            }
        });
    }
    for draft in &mut drafts {
        if let Op::Load(load) = &mut draft.inst.op {
            let regs = || load.to.iter().map(|to| to.reg);
            let unused = regs().all(|reg| !used.contains(&reg));
            let only_masked = regs().all(|reg| masked.contains(&reg) && !copied.contains(&reg));
            load.order.masked = unused && only_masked;
            load.order.copied = unused;
        }
    }
    drafts
}

/// The operand of which only some bits go on.
fn masked_operand(op: &Op) -> Option<Reg> {
    match op {
        Op::Compute(compute) => match compute.alu {
            Alu::Int(IntOp::And, _) => Some(compute.operands[0]),
            Alu::Int(IntOp::Bfi, _) => Some(compute.operands[1]),
            _ => None,
        },
        _ => None,
    }
}

/// What a store to the thread's own memory takes there.
fn copied_operands(op: &Op, own: &HashSet<Reg>) -> Vec<Reg> {
    match op {
        Op::Store(store) => {
            let target = &store.target;
            let to_own =
                matches!(target.space, Space::Local | Space::Param) || own.contains(&target.base);
            if to_own && !store.from.contains(&target.base) {
                store.from.clone()
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    }
}

/// The registers that hold generic addresses of the thread's own memory, and nothing else.
fn own_pointers(drafts: &mut [Draft]) -> HashSet<Reg> {
    let (mut own, mut other) = (HashSet::new(), HashSet::new());
    for draft in drafts {
        let to = match &draft.inst.op {
            Op::Convert {
                to,
                space: Space::Local,
                to_generic: true,
                ..
            } => Some(to.reg),
            Op::Compute(compute) => {
                let adds = matches!(compute.alu, Alu::Int(IntOp::Add, _));
                (adds && own.contains(&compute.operands[0])).then_some(compute.to.reg)
            }
            Op::Move { to, from } => own.contains(from).then_some(*to),
            _ => None,
        };
        own.extend(to);
        draft.inst.visit(&mut |reg, role| {
            if role == Role::Sets && Some(*reg) != to {
                other.insert(*reg);
            }
        });
    }
    own.retain(|reg| !other.contains(reg));
    own
}
