//! `cp.async.bulk`, `cp.reduce.async.bulk` and their forms by tensor maps.

use gridcall_ptx::{Address, Base, Operand};

use super::super::alu::Modifiers;
use super::super::atomic::{AtomicKind, AtomicOp};
use super::super::bulk::{BulkOp, Done, End, Reduction};
use super::super::code::{Op, Target};
use super::super::space::Space;
use super::super::types::Type;
use super::body::Body;
use super::{Lowered, Refusal, invalid};

/// The state spaces in the order in which they stand: where a copy goes, and where it comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From global to shared memory.
    In,
    /// From shared to global memory.
    Out,
    /// From the block's shared memory to that of the cluster.
    Across,
    /// Into the cache.
    Cache,
}

impl Body<'_, '_> {
    /// A bulk copy; `words` are what follows `.async`.
    pub(super) fn lower_bulk(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
        reduces: bool,
    ) -> Lowered<()> {
        words.take("bulk");
        if words.take("commit_group") {
            return self.emit_plain(words, operands.is_empty(), Op::BulkCommit);
        }
        if words.take("wait_group") {
            let reads = words.take("read");
            let left = match operands {
                [Operand::Constant(left)] => {
                    left.integer().and_then(|left| u32::try_from(left).ok())
                }
                _ => None,
            };
            let Some(left) = left else {
                return invalid("it takes the number of groups");
            };
            return self.emit_plain(words, true, Op::BulkWait { left, reads });
        }
        let prefetches = words.take("prefetch");
        let tensor = words.take("tensor");
        let rank = words.find(|word| match word {
            "1d" => Some(1),
            "2d" => Some(2),
            "3d" => Some(3),
            "4d" => Some(4),
            "5d" => Some(5),
            _ => None,
        });
        let Some(way) = way(words, prefetches) else {
            return Err(Refusal::Unsupported);
        };
        let im2col = match words.find(|word| match word {
            "tile" => Some(false),
            "im2col" if way != Way::Out => Some(true),
            "im2col_no_offs" if way == Way::Out => Some(true),
            _ => None,
        }) {
            Some(im2col) if tensor => im2col,
            None => false,
            Some(_) => return Err(Refusal::Unsupported),
        };
        let by_barrier = words.take("mbarrier::complete_tx::bytes");
        let by_group = words.take("bulk_group");
        let multicast = words.take("multicast::cluster");
        let hint = words.take("L2::cache_hint");
        let reduce = reduces.then(|| reduction(words, tensor)).transpose()?;
        let fits = by_barrier == matches!(way, Way::In | Way::Across)
            && by_group == (way == Way::Out)
            && tensor == rank.is_some()
            && !(multicast && way != Way::In)
            && !(tensor && way == Way::Across)
            && !(reduces && matches!(way, Way::In | Way::Cache));
        if !fits || !words.all_used() {
            return Err(Refusal::Unsupported);
        }
        let mut rest = operands;
        let mut next = || -> Lowered<&Operand<'_>> {
            let Some((first, others)) = rest.split_first() else {
                return invalid("a number of operands that it does not take");
            };
            rest = others;
            Ok(first)
        };
        let to = if way == Way::Cache {
            None
        } else {
            Some(next()?)
        };
        let from = next()?;
        let size = if tensor { None } else { Some(next()?) };
        let barrier = if by_barrier { Some(next()?) } else { None };
        let offsets = if im2col && way != Way::Out {
            Some(next()?)
        } else {
            None
        };
        let mask = if multicast { Some(next()?) } else { None };
        let policy = if hint { Some(next()?) } else { None };
        if !rest.is_empty() {
            return invalid("a number of operands that it does not take");
        }
        let global = |body: &mut Self, operand: &Operand<'_>| match rank {
            Some(rank) => body.tensor(operand, rank, im2col, offsets),
            None => body.target(operand, Space::Global).map(End::Global),
        };
        let shared = |body: &mut Self, operand: &Operand<'_>| {
            let target = body.target(operand, Space::Shared)?;
            body.note_access(&target, 4);
            Ok(End::Shared(target))
        };
        let (to, from) = match (way, to) {
            (Way::In, Some(to)) => (shared(self, to)?, global(self, from)?),
            (Way::Out, Some(to)) => (global(self, to)?, shared(self, from)?),
            (Way::Across, Some(to)) => (shared(self, to)?, shared(self, from)?),
            _ => (End::Cache, global(self, from)?),
        };
        let size = size.map(|size| self.source(size, Type::U32)).transpose()?;
        let done = match barrier {
            Some(barrier) => Done::Barrier(self.target(barrier, Space::Shared)?),
            None if by_group => Done::Group,
            None => Done::Nobody,
        };
        let blocks = mask.map(|mask| self.source(mask, Type::U16)).transpose()?;
        if let Some(policy) = policy {
            self.source(policy, Type::B64)?;
        }
        self.emit(Op::Bulk(Box::new(BulkOp {
            to,
            from,
            size,
            done,
            blocks,
            reduce,
        })));
        Ok(())
    }

    fn emit_plain(&mut self, words: &Modifiers<'_>, fits: bool, op: Op) -> Lowered<()> {
        if !words.all_used() || !fits {
            return invalid("operands or modifiers that it does not take");
        }
        self.emit(op);
        Ok(())
    }

    /// `[map, {coordinates}]`, with the offsets that stand behind.
    fn tensor(
        &mut self,
        operand: &Operand<'_>,
        rank: usize,
        im2col: bool,
        offsets: Option<&Operand<'_>>,
    ) -> Lowered<End> {
        let Operand::Bracket(parts) = operand else {
            return invalid("it takes a tensor map and coordinates in brackets");
        };
        let [map, coordinates] = &parts[..] else {
            return invalid("it takes a tensor map and coordinates in brackets");
        };
        let map = self.map_target(map)?;
        let coordinates = self.sources(coordinates, rank, Type::B32)?;
        if im2col && rank < 3 {
            return Err(Refusal::Unsupported);
        }
        let offsets = match offsets {
            Some(offsets) => self.sources(offsets, rank - 2, Type::B16)?,
            None => Vec::new(),
        };
        Ok(End::Tensor {
            map,
            coordinates: coordinates.into(),
            offsets: offsets.into(),
            im2col,
        })
    }

    fn map_target(&mut self, operand: &Operand<'_>) -> Lowered<Target> {
        let (base, offset) = match operand {
            Operand::Name(name) => (Base::Name(name), 0),
            Operand::Offset { name, offset } => (Base::Name(name), *offset),
            Operand::Constant(constant) => (Base::Immediate(*constant), 0),
            _ => return invalid("a tensor map of another form than the instruction takes"),
        };
        let address = Address {
            base,
            offset,
            unified: false,
        };
        self.target(&Operand::Address(address), Space::Generic)
    }
}

fn way(words: &mut Modifiers<'_>, prefetches: bool) -> Option<Way> {
    if prefetches {
        let known = words.take("L2") && words.take("global");
        return known.then_some(Way::Cache);
    }
    let to_cluster = words.take("shared::cluster");
    let block = words.take("shared::cta");
    let global = words.take("global");
    Some(match (to_cluster, block, global) {
        (true, true, false) => Way::Across,
        (true, false, true) => Way::In,
        // To the block's own memory or from it: only the former is told to a barrier.
        (false, true, true) if words.has("mbarrier::complete_tx::bytes") => Way::In,
        (false, true, true) => Way::Out,
        _ => return None,
    })
}

fn reduction(words: &mut Modifiers<'_>, tensor: bool) -> Lowered<Reduction> {
    let Some(kind) = words.find(AtomicOp::parse_kind) else {
        return Err(Refusal::Unsupported);
    };
    if matches!(kind, AtomicKind::Exchange | AtomicKind::CompareSwap) {
        return Err(Refusal::Unsupported);
    }
    if tensor {
        return Ok(Reduction::OfElements(kind));
    }
    let noftz = words.take("noftz");
    let Some(ty) = words.next_type() else {
        return Err(Refusal::Unsupported);
    };
    let op = AtomicOp {
        kind,
        ty,
        ftz: ty == Type::F32,
    };
    let halves = matches!(ty, Type::F16 | Type::Bf16);
    if !op.exists() || noftz != (halves && kind == AtomicKind::Add) {
        return Err(Refusal::Unsupported);
    }
    Ok(Reduction::Of(op))
}
