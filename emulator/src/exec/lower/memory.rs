//! Loads, stores, atomic operations and what else speaks of addresses.

use gridcall_ptx::{Address, Base, Operand};

use super::super::alu::Modifiers;
use super::super::atomic::{AtomicKind, AtomicOp};
use super::super::code::{
    Atomic, CopyAsync, Dest, Flag, Load, Op, Ordering, Preset, Reg, Store, Target,
};
use super::super::space::Space;
use super::super::types::{Kind, Type};
use super::body::Body;
use super::names::Name;
use super::{Lowered, Refusal, invalid};

/// Reads the type of an address, the last word there is.
fn address_type(words: &mut Modifiers<'_>) -> Lowered<Type> {
    match words.next_type() {
        Some(ty @ (Type::U32 | Type::U64)) if words.all_used() => Ok(ty),
        _ => Err(Refusal::Unsupported),
    }
}

/// Reads a state space, `shared::cta` and `param::entry` included.
fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "const" => Space::Const,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "local" => Space::Local,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

/// Takes the words that order an access, and its scope.
fn ordering(words: &mut Modifiers<'_>) -> Ordering {
    let mut order = Ordering::default();
    for word in ["volatile", "relaxed", "mmio"] {
        order.strong |= words.take(word);
    }
    for word in ["acquire", "release", "acq_rel"] {
        if words.take(word) {
            order = Ordering {
                masked: false,
                copied: false,
                strong: true,
                fence: true,
            };
        }
    }
    for word in ["cta", "cluster", "gpu", "sys"] {
        words.take(word);
    }
    words.take("weak");
    order
}

/// Takes hints about caches, which change nothing here, and says how many operands they add.
fn cache_hints(words: &mut Modifiers<'_>) -> usize {
    words.take("nc");
    for word in ["ca", "cg", "cs", "lu", "cv", "wb", "wt"] {
        words.take(word);
    }
    while words
        .find(|word| {
            let hint = word.starts_with("L1::evict") || word.starts_with("L1::no_allocate");
            let hint = hint
                || word.starts_with("L2::evict")
                || ["L2::64B", "L2::128B", "L2::256B"].contains(&word);
            hint.then_some(())
        })
        .is_some()
    {}
    usize::from(words.take("L2::cache_hint"))
}

fn vector(words: &mut Modifiers<'_>) -> usize {
    words
        .find(|word| match word {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        })
        .unwrap_or(1)
}

/// Types in memory that hold a value of their size.
fn memory_type(ty: Type, count: usize) -> Lowered<Type> {
    let ty = match ty {
        Type::F16 | Type::Bf16 => Type::B16,
        Type::F16x2 | Type::Bf16x2 => Type::B32,
        other => other,
    };
    let whole = matches!(ty.kind(), Kind::Bits | Kind::Unsigned | Kind::Signed)
        || matches!(ty, Type::F32 | Type::F64);
    // Eight elements, or four of 64 bits, are for later targets.
    if !whole || ty.bits() as usize * count > 128 {
        return Err(Refusal::Unsupported);
    }
    Ok(ty)
}

impl Body<'_, '_> {
    pub(super) fn note_access(&mut self, target: &Target, bytes: u32) {
        if matches!(target.space, Space::Generic | Space::Shared) {
            let granule = &mut self.function.granule;
            *granule = (*granule).min(bytes);
        }
    }

    pub(super) fn lower_load(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let Some(ty) = words.next_type() else {
            return Err(Refusal::Unsupported);
        };
        let order = ordering(&mut words);
        let found = words.find(space);
        let hints = cache_hints(&mut words);
        let count = vector(&mut words);
        if !words.all_used() || opcode == "ldu" && !matches!(found, None | Some(Space::Global)) {
            return Err(Refusal::Unsupported);
        }
        let ty = memory_type(ty, count)?;
        if operands.len() != 2 + hints {
            return invalid("a number of operands that it does not take");
        }
        if let [_, _, hint] = operands {
            self.source(hint, Type::B64)?;
        }
        let to = self.dests(&operands[0], count, ty)?;
        let space = found.unwrap_or(Space::Generic);
        if let Some(offset) = self.kernel_param(&operands[1], space)? {
            let target = Target {
                space: Space::Param,
                base: Reg::Sink,
                offset,
            };
            let end = offset + i64::from(ty.bytes()) * count as i64;
            if offset < 0
                || end > i64::from(self.environment.param_bytes(self.function.name.as_str()))
            {
                return invalid("a load behind the kernel's parameters");
            }
            if let [to] = to[..]
                && matches!(to.reg, Reg::W(_) | Reg::D(_))
                && let Ok(offset) = u32::try_from(offset)
            {
                let preset = Preset::ParamValue {
                    offset,
                    ty,
                    bits: to.bits,
                };
                let from = self.preset(preset, to.reg.bits());
                self.emit(Op::Move { to: to.reg, from });
                return Ok(());
            }
            self.emit(Op::LoadParam(Box::new(Load {
                target,
                ty,
                order,
                to,
            })));
            return Ok(());
        }
        let target = self.target(&operands[1], space)?;
        self.note_access(&target, ty.bytes());
        self.emit(Op::Load(Box::new(Load {
            target,
            ty,
            order,
            to,
        })));
        Ok(())
    }

    /// The offset of a parameter of the kernel that an address names.
    fn kernel_param(&mut self, operand: &Operand<'_>, space: Space) -> Lowered<Option<i64>> {
        let Operand::Address(Address {
            base: Base::Name(name),
            offset,
            ..
        }) = operand
        else {
            return Ok(None);
        };
        match self.names.find(name) {
            Some(Name::KernelParam { offset: at, .. }) if space == Space::Param => {
                Ok(Some(i64::from(at).saturating_add(*offset)))
            }
            Some(Name::KernelParam { .. }) => invalid(format!("`{name}` lies in `.param`")),
            _ => Ok(None),
        }
    }

    pub(super) fn lower_store(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        if words.take("async") {
            return Err(Refusal::Unsupported);
        }
        let Some(ty) = words.next_type() else {
            return Err(Refusal::Unsupported);
        };
        let order = ordering(&mut words);
        let found = words.find(space);
        let hints = cache_hints(&mut words);
        let count = vector(&mut words);
        if !words.all_used() || found == Some(Space::Const) {
            return Err(Refusal::Unsupported);
        }
        let ty = memory_type(ty, count)?;
        if operands.len() != 2 + hints {
            return invalid("a number of operands that it does not take");
        }
        if let [_, _, hint] = operands {
            self.source(hint, Type::B64)?;
        }
        let space = found.unwrap_or(Space::Generic);
        if self.kernel_param(&operands[0], space)?.is_some() {
            return invalid("a kernel may not store to its parameters");
        }
        let target = self.target(&operands[0], space)?;
        let from = self.sources(&operands[1], count, ty)?;
        self.note_access(&target, ty.bytes());
        self.emit(Op::Store(Box::new(Store {
            target,
            ty,
            order,
            from,
        })));
        Ok(())
    }

    /// `atom`, and `red`, which answers nothing.
    pub(super) fn lower_atomic(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
        answers: bool,
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        if words.take("async") {
            return Err(Refusal::Unsupported);
        }
        let Some(ty) = words.next_type() else {
            return Err(Refusal::Unsupported);
        };
        let mut order = ordering(&mut words);
        order.strong = true;
        let found = words.find(space);
        let hints = cache_hints(&mut words);
        let count = vector(&mut words);
        let noftz = words.take("noftz");
        let Some(kind) = words
            .find(AtomicOp::parse_kind)
            .filter(|_| words.all_used())
        else {
            return Err(Refusal::Unsupported);
        };
        let op = AtomicOp {
            kind,
            ty,
            ftz: false,
        };
        let halves = matches!(ty, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2);
        let fits =
            count == 1 || found != Some(Space::Shared) && ty.format().is_some() && ty != Type::F64;
        let space = found.unwrap_or(Space::Generic);
        let allowed = matches!(space, Space::Generic | Space::Global | Space::Shared);
        let floats = kind != AtomicKind::Min && kind != AtomicKind::Max
            || !matches!(ty, Type::F32 | Type::F64);
        if !op.exists() || !fits || !allowed || !floats || halves != noftz {
            return Err(Refusal::Unsupported);
        }
        if !answers && matches!(kind, AtomicKind::Exchange | AtomicKind::CompareSwap) {
            return Err(Refusal::Unsupported);
        }
        let swaps = kind == AtomicKind::CompareSwap;
        let due = usize::from(answers) + 2 + usize::from(swaps) + hints;
        if operands.len() != due {
            return invalid(format!("{} operands where {due} are due", operands.len()));
        }
        let plain = match ty {
            Type::F16 | Type::Bf16 => Type::B16,
            Type::F16x2 | Type::Bf16x2 => Type::B32,
            other => other,
        };
        let (to, rest) = operands.split_at(usize::from(answers));
        let target = self.target(&rest[0], space)?;
        let a = self.sources(&rest[1], count, plain)?;
        let b = if swaps {
            self.source(&rest[2], plain)?
        } else {
            Reg::Sink
        };
        if hints > 0 {
            self.source(&rest[rest.len() - 1], Type::B64)?;
        }
        let to = match to {
            [to] => self.dests(to, count, plain)?,
            _ => Vec::new(),
        };
        self.note_access(&target, ty.bytes());
        self.emit(Op::Atomic(Box::new(Atomic {
            target,
            op,
            order,
            to,
            a,
            b,
        })));
        Ok(())
    }

    pub(super) fn lower_cvta(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let to_generic = !words.take("to");
        let Some(space) = words.find(space) else {
            return Err(Refusal::Unsupported);
        };
        let ty = address_type(&mut words)?;
        let [to, from] = operands else {
            return invalid("it takes a destination and a source");
        };
        let from = self.source(from, ty)?;
        let to = self.dest(to, ty)?;
        self.emit(Op::Convert {
            to,
            from,
            space,
            to_generic,
        });
        Ok(())
    }

    pub(super) fn lower_isspacep(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let ([word], [to, from]) = (modifiers, operands) else {
            return invalid("it takes a state space, a predicate and an address");
        };
        let Some(found) = space(word) else {
            return Err(Refusal::Unsupported);
        };
        let Some(to) = self.predicate_dest(to)? else {
            return invalid("a result that goes nowhere");
        };
        let from = self.wide_source(from, Type::U32)?;
        self.emit(Op::IsSpace {
            to,
            from,
            space: found,
            cluster: *word == "shared::cluster",
        });
        Ok(())
    }

    pub(super) fn lower_mapa(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let generic = !words.take("shared::cluster");
        let ty = address_type(&mut words)?;
        let [to, from, rank] = operands else {
            return invalid("it takes a destination and two sources");
        };
        let (from, rank) = (self.source(from, ty)?, self.source(rank, Type::U32)?);
        let to = self.dest(to, ty)?;
        self.emit(Op::MapShared {
            to,
            from,
            rank,
            generic,
        });
        Ok(())
    }

    pub(super) fn lower_getctarank(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let generic = !words.take("shared::cluster");
        let ty = address_type(&mut words)?;
        let [to, from] = operands else {
            return invalid("it takes a destination and a source");
        };
        let from = self.source(from, ty)?;
        let to = self.dest(to, Type::U32)?;
        self.emit(Op::SharedRank { to, from, generic });
        Ok(())
    }

    /// Prefetches and the like: they name addresses and change nothing.
    pub(super) fn lower_hint(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        match (opcode, operands) {
            ("createpolicy", [to, ..]) => {
                let to = self.dest(to, Type::B64)?;
                let zero = self.preset(Preset::Bits(0), 64);
                self.emit(Op::Move {
                    to: to.reg,
                    from: zero,
                });
                Ok(())
            }
            // It makes what it names undefined, which no result may depend on.
            ("discard" | "applypriority", [address, ..])
            | ("prefetch" | "prefetchu", [address]) => {
                let known = modifiers.iter().all(|word| {
                    space(word).is_some()
                        || word.starts_with("L1")
                        || word.starts_with("L2")
                        || *word == "tensormap"
                });
                if !known {
                    return Err(Refusal::Unsupported);
                }
                self.target(address, Space::Generic)?;
                self.emit(Op::Nop);
                Ok(())
            }
            _ => Err(Refusal::Unsupported),
        }
    }

    /// `cp.async` and its groups, and what begins like it.
    pub(super) fn lower_copy(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let reduces = words.take("reduce");
        if !words.take("async") || reduces && !words.has("bulk") {
            return Err(Refusal::Unsupported);
        }
        if words.has("bulk") {
            return self.lower_bulk(&mut words, operands, reduces);
        }
        if words.take("commit_group") {
            return self.finish_copy(&words, operands.is_empty(), Op::CopyCommit);
        }
        if words.take("wait_all") {
            return self.finish_copy(&words, operands.is_empty(), Op::CopyWait(u32::MAX));
        }
        if words.take("wait_group") {
            let left = match operands {
                [Operand::Constant(left)] => {
                    left.integer().and_then(|left| u32::try_from(left).ok())
                }
                _ => None,
            };
            let Some(left) = left else {
                return invalid("it takes the number of groups");
            };
            return self.finish_copy(&words, true, Op::CopyWait(left.min(u32::MAX - 1)));
        }
        if words.take("mbarrier") {
            return self.lower_copy_arrive(&mut words, operands);
        }
        let cached = words.find(|word| match word {
            "ca" => Some(true),
            "cg" => Some(false),
            _ => None,
        });
        let shared =
            words.take("shared") || words.take("shared::cta") || words.take("shared::cluster");
        let global = words.take("global");
        let hints = cache_hints(&mut words);
        let (Some(cached), true, true, true) = (cached, shared, global, words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let [to, from, size, rest @ ..] = operands else {
            return invalid("it takes two addresses and a size");
        };
        let size = match size {
            Operand::Constant(size) => size.integer().and_then(|size| u32::try_from(size).ok()),
            _ => None,
        };
        let Some(size) = size.filter(|size| *size == 16 || cached && matches!(size, 4 | 8)) else {
            return invalid("a size that is not 4, 8 or 16");
        };
        let to = self.target(to, Space::Shared)?;
        let from = self.target(from, Space::Global)?;
        let (mut read, mut ignore) = (None, None);
        let rest = &rest[..rest.len().saturating_sub(hints)];
        match rest {
            [] => {}
            [operand] => match self.flag_or_size(operand)? {
                Ok(flag) => ignore = Some(flag),
                Err(reg) => read = Some(reg),
            },
            _ => return invalid("a number of operands that it does not take"),
        }
        self.note_access(&to, size.min(4));
        self.emit(Op::CopyAsync(Box::new(CopyAsync {
            to,
            from,
            size,
            read,
            ignore,
        })));
        Ok(())
    }

    fn flag_or_size(&mut self, operand: &Operand<'_>) -> Lowered<Result<Flag, Reg>> {
        let is_flag = match operand {
            Operand::Not(_) => true,
            Operand::Name(name) => {
                matches!(self.names.find(name), Some(Name::Register(register)) if register.bits == 1)
            }
            _ => false,
        };
        if is_flag {
            self.flag(operand).map(Ok)
        } else {
            self.source(operand, Type::U32).map(Err)
        }
    }

    fn finish_copy(&mut self, words: &Modifiers<'_>, fits: bool, op: Op) -> Lowered<()> {
        if !words.all_used() || !fits {
            return invalid("operands or modifiers that it does not take");
        }
        self.emit(op);
        Ok(())
    }

    pub(super) fn discard(bits: u32) -> Dest {
        Dest {
            reg: Reg::Sink,
            bits,
        }
    }
}
