//! Which registers a micro-operation reads and sets.

use super::bulk::{BulkOp, Done, End};
use super::code::{BarrierKind, Callee, Dest, Flag, Inst, Op, Passed, Reg};
use super::mbarrier::MBarrierKind;
use super::sync::SyncKind;

/// What a micro-operation does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Reads,
    Sets,
}

type Visitor<'v> = &'v mut dyn FnMut(&mut Reg, Role);

impl Inst {
    /// Shows every register to `see`, sources first, and takes what it puts in its place.
    pub(crate) fn visit(&mut self, see: Visitor<'_>) {
        if let Some(guard) = &mut self.guard {
            predicate(&mut guard.predicate, Role::Reads, see);
        }
        self.op.visit(see);
    }
}

fn predicate(index: &mut u32, role: Role, see: Visitor<'_>) {
    let mut reg = Reg::P(*index);
    see(&mut reg, role);
    if let Reg::P(new) = reg {
        *index = new;
    }
}

fn flag(flag: &mut Flag, see: Visitor<'_>) {
    predicate(&mut flag.predicate, Role::Reads, see);
}

fn dest(dest: &mut Dest, see: Visitor<'_>) {
    see(&mut dest.reg, Role::Sets);
}

fn passed(passed: &mut Passed, role: Role, see: Visitor<'_>) {
    if let Passed::Register(dest) = passed {
        see(&mut dest.reg, role);
    }
}

impl Op {
    /// The operations over all lanes come later; before, they are [`Op::Compute`].
    fn visit(&mut self, see: Visitor<'_>) {
        match self {
            Self::Compute(compute) => {
                for operand in &mut compute.operands[..compute.count.min(4)] {
                    see(operand, Role::Reads);
                }
                dest(&mut compute.to, see);
            }
            Self::SetP(set) => {
                see(&mut set.a, Role::Reads);
                see(&mut set.b, Role::Reads);
                if let Some((_, with)) = &mut set.combine {
                    flag(with, see);
                }
                for to in [&mut set.p, &mut set.q].into_iter().flatten() {
                    predicate(to, Role::Sets, see);
                }
            }
            Self::Carry(carry) => {
                for operand in &mut carry.operands {
                    see(operand, Role::Reads);
                }
                if carry.reads {
                    predicate(&mut carry.flag, Role::Reads, see);
                }
                see(&mut carry.to, Role::Sets);
                if carry.writes {
                    predicate(&mut carry.flag, Role::Sets, see);
                }
            }
            Self::Move { to, from } => {
                see(from, Role::Reads);
                see(to, Role::Sets);
            }
            Self::Select { to, a, b, flag: by } => {
                see(a, Role::Reads);
                see(b, Role::Reads);
                flag(by, see);
                see(to, Role::Sets);
            }
            Self::TestP { to, a, .. } => {
                see(a, Role::Reads);
                predicate(to, Role::Sets, see);
            }
            Self::Logic { to, a, b, .. } => {
                flag(a, see);
                flag(b, see);
                predicate(to, Role::Sets, see);
            }
            Self::Unpack { to, from, .. } => {
                see(from, Role::Reads);
                to.iter_mut().for_each(|to| dest(to, see));
            }
            Self::Pack { to, from, .. } => {
                from.iter_mut().for_each(|from| see(from, Role::Reads));
                dest(to, see);
            }
            Self::Special { to, .. } => dest(to, see),
            Self::Load(load) | Self::LoadParam(load) => {
                see(&mut load.target.base, Role::Reads);
                load.to.iter_mut().for_each(|to| dest(to, see));
            }
            Self::Store(store) => {
                see(&mut store.target.base, Role::Reads);
                store
                    .from
                    .iter_mut()
                    .for_each(|from| see(from, Role::Reads));
            }
            Self::Atomic(atomic) => {
                see(&mut atomic.target.base, Role::Reads);
                atomic.a.iter_mut().for_each(|a| see(a, Role::Reads));
                see(&mut atomic.b, Role::Reads);
                atomic.to.iter_mut().for_each(|to| dest(to, see));
            }
            Self::CopyAsync(copy) => {
                see(&mut copy.to.base, Role::Reads);
                see(&mut copy.from.base, Role::Reads);
                if let Some(read) = &mut copy.read {
                    see(read, Role::Reads);
                }
                if let Some(ignore) = &mut copy.ignore {
                    flag(ignore, see);
                }
            }
            Self::Convert { to, from, .. } | Self::SharedRank { to, from, .. } => {
                see(from, Role::Reads);
                dest(to, see);
            }
            Self::IsSpace { to, from, .. } => {
                see(from, Role::Reads);
                predicate(to, Role::Sets, see);
            }
            Self::MapShared { to, from, rank, .. } => {
                see(from, Role::Reads);
                see(rank, Role::Reads);
                dest(to, see);
            }
            Self::BranchTable { index, .. } => see(index, Role::Reads),
            Self::Call(call) => {
                if let Callee::Indirect { address, .. } = &mut call.callee {
                    see(address, Role::Reads);
                }
                call.arguments
                    .iter_mut()
                    .for_each(|argument| passed(argument, Role::Reads, see));
                call.returns
                    .iter_mut()
                    .for_each(|result| passed(result, Role::Sets, see));
            }
            Self::Barrier(barrier) => {
                see(&mut barrier.id, Role::Reads);
                if let Some(count) = &mut barrier.count {
                    see(count, Role::Reads);
                }
                match &mut barrier.kind {
                    BarrierKind::Popc { to, flag: by } => {
                        flag(by, see);
                        see(to, Role::Sets);
                    }
                    BarrierKind::Logic { to, flag: by, .. } => {
                        flag(by, see);
                        predicate(to, Role::Sets, see);
                    }
                    BarrierKind::Sync | BarrierKind::Arrive => {}
                }
            }
            Self::Sync(sync) => {
                if let Some(members) = &mut sync.members {
                    see(members, Role::Reads);
                }
                visit_sync(&mut sync.kind, see);
            }
            Self::Matrix(matrix) => matrix.visit(see),
            Self::Bulk(op) => op.visit(see),
            Self::MBarrier(op) => {
                see(&mut op.target.base, Role::Reads);
                match &mut op.kind {
                    MBarrierKind::Init { count } => see(count, Role::Reads),
                    MBarrierKind::Arrive { count, expect, .. } => {
                        for reg in [count, expect].into_iter().flatten() {
                            see(reg, Role::Reads);
                        }
                    }
                    MBarrierKind::Transfer { bytes, .. } => see(bytes, Role::Reads),
                    MBarrierKind::Test { state, .. } | MBarrierKind::PendingCount { state } => {
                        see(state, Role::Reads);
                    }
                    MBarrierKind::Invalidate => {}
                }
                dest(&mut op.to, see);
            }
            Self::Image(op) => {
                see(&mut op.object, Role::Reads);
                let sources = op.at.iter_mut().chain(&mut op.offset);
                sources
                    .chain(&mut op.from)
                    .for_each(|from| see(from, Role::Reads));
                op.to.iter_mut().for_each(|to| dest(to, see));
            }
            Self::W1(_, to, a) => rows(see, Bank::W, *to, &mut [a]),
            Self::W2(_, to, a, b) => rows(see, Bank::W, *to, &mut [a, b]),
            Self::W3(_, to, a, b, c) => rows(see, Bank::W, *to, &mut [a, b, c]),
            Self::D1(_, to, a) => rows(see, Bank::D, *to, &mut [a]),
            Self::D2(_, to, a, b) => rows(see, Bank::D, *to, &mut [a, b]),
            Self::D3(_, to, a, b, c) => rows(see, Bank::D, *to, &mut [a, b, c]),
            Self::Shift(_, to, a, b) => {
                see(&mut Reg::W(*b), Role::Reads);
                rows(see, Bank::D, *to, &mut [a]);
            }
            Self::WD(_, to, a) => {
                see(&mut Reg::W(*a), Role::Reads);
                see(&mut Reg::D(*to), Role::Sets);
            }
            Self::DW(_, to, a) => {
                see(&mut Reg::D(*a), Role::Reads);
                see(&mut Reg::W(*to), Role::Sets);
            }
            Self::Wide(_, to, a, b) => {
                see(&mut Reg::W(*a), Role::Reads);
                see(&mut Reg::W(*b), Role::Reads);
                see(&mut Reg::D(*to), Role::Sets);
            }
            Self::WideAdd(_, to, a, b, c) => {
                see(&mut Reg::W(*a), Role::Reads);
                see(&mut Reg::W(*b), Role::Reads);
                see(&mut Reg::D(*c), Role::Reads);
                see(&mut Reg::D(*to), Role::Sets);
            }
            Self::Nop
            | Self::CopyCommit
            | Self::CopyWait(_)
            | Self::BulkCommit
            | Self::BulkWait { .. }
            | Self::Branch(_)
            | Self::Return
            | Self::Exit
            | Self::Trap
            | Self::ClusterArrive
            | Self::ClusterWait
            | Self::Fence
            | Self::Sleep
            | Self::Join(_)
            | Self::Unsupported => {}
        }
    }
}

impl BulkOp {
    fn visit(&mut self, see: Visitor<'_>) {
        for end in [&mut self.to, &mut self.from] {
            match end {
                End::Shared(target) | End::Global(target) => see(&mut target.base, Role::Reads),
                End::Tensor {
                    map,
                    coordinates,
                    offsets,
                    ..
                } => {
                    see(&mut map.base, Role::Reads);
                    for reg in coordinates.iter_mut().chain(offsets) {
                        see(reg, Role::Reads);
                    }
                }
                End::Cache => {}
            }
        }
        if let Done::Barrier(target) = &mut self.done {
            see(&mut target.base, Role::Reads);
        }
        for reg in [&mut self.size, &mut self.blocks].into_iter().flatten() {
            see(reg, Role::Reads);
        }
    }
}

#[derive(Clone, Copy)]
enum Bank {
    W,
    D,
}

/// Registers of one bank, of a form that is not renumbered any more.
fn rows(see: Visitor<'_>, bank: Bank, to: u32, sources: &mut [&mut u32]) {
    let reg = |index: u32| match bank {
        Bank::W => Reg::W(index),
        Bank::D => Reg::D(index),
    };
    for source in sources {
        see(&mut reg(**source), Role::Reads);
    }
    see(&mut reg(to), Role::Sets);
}

fn visit_sync(kind: &mut SyncKind, see: Visitor<'_>) {
    match kind {
        SyncKind::Shuffle { to, p, a, b, c, .. } => {
            for source in [a, b, c] {
                see(source, Role::Reads);
            }
            dest(to, see);
            if let Some(p) = p {
                predicate(p, Role::Sets, see);
            }
        }
        SyncKind::Vote { to, flag: by, .. } => {
            flag(by, see);
            predicate(to, Role::Sets, see);
        }
        SyncKind::Ballot { to, flag: by } => {
            flag(by, see);
            dest(to, see);
        }
        SyncKind::MatchAny { to, a } | SyncKind::Reduce { to, a, .. } => {
            see(a, Role::Reads);
            dest(to, see);
        }
        SyncKind::MatchAll { to, p, a } => {
            see(a, Role::Reads);
            dest(to, see);
            if let Some(p) = p {
                predicate(p, Role::Sets, see);
            }
        }
        SyncKind::Elect { to, p } => {
            dest(to, see);
            if let Some(p) = p {
                predicate(p, Role::Sets, see);
            }
        }
        SyncKind::Meet => {}
    }
}
