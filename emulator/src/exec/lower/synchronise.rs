//! Barriers, fences, and what the lanes of a warp do together; calls, too.

use gridcall_ptx::{Constant, Operand};

use super::super::alu::Modifiers;
use super::super::code::{Barrier, BarrierKind, Call, Callee, Dest, Op, Passed, Reg};
use super::super::mbarrier::{MBarrierKind, MBarrierOp};
use super::super::space::Space;
use super::super::sync::{Reduce, Shuffle, SyncKind, SyncOp, Vote};
use super::super::types::Type;
use super::body::Body;
use super::names::{Name, Register};
use super::{Lowered, Refusal, invalid};

/// Functions that the system provides and that are not here.
const SYSTEM: &[&str] = &[
    "malloc",
    "free",
    "cudaGetParameterBuffer",
    "cudaGetParameterBufferV2",
    "cudaLaunchDevice",
    "cudaLaunchDeviceV2",
    "cudaDeviceSynchronize",
    "__cudaCDP2GetParameterBufferV2",
    "__cudaCDP2LaunchDeviceV2",
];

impl Body<'_, '_> {
    pub(super) fn lower_barrier(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        if words.take("warp") {
            if !words.take("sync") || !words.all_used() {
                return Err(Refusal::Unsupported);
            }
            let [members] = operands else {
                return invalid("it takes a member mask");
            };
            let members = Some(self.source(members, Type::B32)?);
            self.emit(Op::Sync(Box::new(SyncOp {
                kind: SyncKind::Meet,
                members,
            })));
            return Ok(());
        }
        if words.take("cluster") {
            return self.lower_cluster_barrier(&mut words, operands);
        }
        words.take("cta");
        let aligned = words.take("aligned") || opcode == "bar";
        let kind = words.find(|word| {
            ["sync", "arrive", "red"]
                .into_iter()
                .find(|kind| *kind == word)
        });
        match kind {
            Some("red") => return self.lower_barrier_red(&mut words, aligned, operands),
            Some("sync" | "arrive") if words.all_used() => {}
            _ => return Err(Refusal::Unsupported),
        }
        let (id, count) = match operands {
            [id] => (self.source(id, Type::U32)?, None),
            [id, count] => (
                self.source(id, Type::U32)?,
                Some(self.source(count, Type::U32)?),
            ),
            _ => return invalid("it takes a barrier and a number of threads"),
        };
        let arrives = kind == Some("arrive");
        if arrives && count.is_none() {
            return invalid("it takes a number of threads");
        }
        let kind = if arrives {
            BarrierKind::Arrive
        } else {
            BarrierKind::Sync
        };
        self.emit(Op::Barrier(Box::new(Barrier {
            kind,
            id,
            count,
            aligned,
        })));
        Ok(())
    }

    fn lower_barrier_red(
        &mut self,
        words: &mut Modifiers<'_>,
        aligned: bool,
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let op = words.find(|word| ["popc", "and", "or"].into_iter().find(|op| *op == word));
        let ty = words.next_type();
        if !words.all_used() {
            return Err(Refusal::Unsupported);
        }
        let (to, id, count, flag) = match operands {
            [to, id, flag] => (to, id, None, flag),
            [to, id, count, flag] => (to, id, Some(count), flag),
            _ => return invalid("a number of operands that it does not take"),
        };
        let id = self.source(id, Type::U32)?;
        let count = count
            .map(|count| self.source(count, Type::U32))
            .transpose()?;
        let flag = self.flag(flag)?;
        let kind = match (op, ty) {
            (Some("popc"), Some(Type::U32)) => BarrierKind::Popc {
                to: self.dest(to, Type::U32)?.reg,
                flag,
            },
            (Some(op @ ("and" | "or")), Some(Type::Pred)) => {
                let Some(to) = self.predicate_dest(to)? else {
                    return invalid("a result that goes nowhere");
                };
                BarrierKind::Logic {
                    to,
                    all: op == "and",
                    flag,
                }
            }
            _ => return Err(Refusal::Unsupported),
        };
        self.emit(Op::Barrier(Box::new(Barrier {
            kind,
            id,
            count,
            aligned,
        })));
        Ok(())
    }

    fn lower_cluster_barrier(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let kind = words.find(|word| ["arrive", "wait"].into_iter().find(|kind| *kind == word));
        for word in ["acquire", "release", "relaxed", "aligned"] {
            words.take(word);
        }
        if !words.all_used() || !operands.is_empty() {
            return Err(Refusal::Unsupported);
        }
        match kind {
            Some("arrive") => self.emit(Op::ClusterArrive),
            Some(_) => self.emit(Op::ClusterWait),
            None => return Err(Refusal::Unsupported),
        }
        Ok(())
    }

    pub(super) fn lower_fence(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        const KNOWN: &[&str] = &[
            "cta",
            "cluster",
            "gl",
            "gpu",
            "sys",
            "sc",
            "acq_rel",
            "acquire",
            "release",
            "mbarrier_init",
            "proxy",
            "alias",
            "async",
            "async::generic",
            "async.global",
            "async.shared::cta",
            "global",
            "shared::cta",
            "shared::cluster",
            "sync_restrict::shared::cta",
            "sync_restrict::shared::cluster",
            "tensormap::generic",
        ];
        if modifiers.iter().any(|modifier| !KNOWN.contains(modifier)) {
            return Err(Refusal::Unsupported);
        }
        // The acquiring side of a tensor map's proxy names the map, and its size.
        match operands {
            [] => {}
            [map, Operand::Constant(size)] if modifiers.contains(&"tensormap::generic") => {
                if size.integer() != Some(128) {
                    return invalid("a size that is not 128");
                }
                self.target(map, Space::Generic)?;
            }
            _ => return Err(Refusal::Unsupported),
        }
        self.emit(Op::Fence);
        Ok(())
    }

    pub(super) fn lower_sync(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let sync = words.take("sync");
        match opcode {
            "activemask" => {
                let ([to], Some(Type::B32), true) = (operands, words.next_type(), words.all_used())
                else {
                    return Err(Refusal::Unsupported);
                };
                let to = self.dest(to, Type::B32)?;
                let flag = self.flag(&Operand::Constant(Constant::S64(1)))?;
                let kind = SyncKind::Ballot { to, flag };
                self.emit(Op::Sync(Box::new(SyncOp {
                    kind,
                    members: None,
                })));
                Ok(())
            }
            "elect" => {
                let ([Operand::Pair(to, p), members], true) = (operands, words.all_used()) else {
                    return Err(Refusal::Unsupported);
                };
                let to = self.pair_dest(to, Type::B32)?;
                let p = self.predicate(p)?;
                let members = Some(self.source(members, Type::B32)?);
                self.emit(Op::Sync(Box::new(SyncOp {
                    kind: SyncKind::Elect { to, p },
                    members,
                })));
                Ok(())
            }
            "shfl" => self.lower_shuffle(&mut words, operands, sync),
            "vote" => self.lower_vote(&mut words, operands, sync),
            "match" if sync => self.lower_match(&mut words, operands),
            "redux" if sync => self.lower_redux(&mut words, operands),
            _ => Err(Refusal::Unsupported),
        }
    }

    fn pair_dest(&mut self, name: &str, ty: Type) -> Lowered<Dest> {
        if name == "_" {
            return Ok(Self::discard(ty.bits()));
        }
        self.dest(&Operand::Name(name), ty)
    }

    /// The register and the predicate of `d|p`, or the register alone.
    fn dest_pair(&mut self, operand: &Operand<'_>, ty: Type) -> Lowered<(Dest, Option<u32>)> {
        match operand {
            Operand::Pair(to, p) => Ok((self.pair_dest(to, ty)?, self.predicate(p)?)),
            to => Ok((self.dest(to, ty)?, None)),
        }
    }

    /// The member mask, which the older forms lack.
    fn member_mask(&mut self, operand: Option<&Operand<'_>>, sync: bool) -> Lowered<Option<Reg>> {
        match (operand, sync) {
            (Some(members), true) => self.source(members, Type::B32).map(Some),
            (None, false) => Ok(None),
            _ => invalid("a number of operands that it does not take"),
        }
    }

    fn lower_shuffle(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
        sync: bool,
    ) -> Lowered<()> {
        let mode = words.find(|word| {
            Some(match word {
                "up" => Shuffle::Up,
                "down" => Shuffle::Down,
                "bfly" => Shuffle::Butterfly,
                "idx" => Shuffle::Index,
                _ => return None,
            })
        });
        let (Some(mode), true, true) = (mode, words.take("b32"), words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let [to, a, b, c, members @ ..] = operands else {
            return invalid("a number of operands that it does not take");
        };
        let (a, b, c) = (
            self.source(a, Type::B32)?,
            self.source(b, Type::U32)?,
            self.source(c, Type::U32)?,
        );
        let members = self.member_mask(members.first(), sync)?;
        let (to, p) = self.dest_pair(to, Type::B32)?;
        let kind = SyncKind::Shuffle {
            mode,
            to,
            p,
            a,
            b,
            c,
        };
        self.emit(Op::Sync(Box::new(SyncOp { kind, members })));
        Ok(())
    }

    fn lower_vote(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
        sync: bool,
    ) -> Lowered<()> {
        let mode = words.find(|word| {
            ["all", "any", "uni", "ballot"]
                .into_iter()
                .find(|mode| *mode == word)
        });
        let ty = words.next_type();
        let [to, flag, members @ ..] = operands else {
            return invalid("a number of operands that it does not take");
        };
        if !words.all_used() {
            return Err(Refusal::Unsupported);
        }
        let flag = self.flag(flag)?;
        let members = self.member_mask(members.first(), sync)?;
        let kind = match (mode, ty) {
            (Some("ballot"), Some(Type::B32)) => SyncKind::Ballot {
                to: self.dest(to, Type::B32)?,
                flag,
            },
            (Some(mode), Some(Type::Pred)) => {
                let mode = match mode {
                    "all" => Vote::All,
                    "any" => Vote::Any,
                    "uni" => Vote::Uniform,
                    _ => return Err(Refusal::Unsupported),
                };
                let Some(to) = self.predicate_dest(to)? else {
                    return invalid("a result that goes nowhere");
                };
                SyncKind::Vote { mode, to, flag }
            }
            _ => return Err(Refusal::Unsupported),
        };
        self.emit(Op::Sync(Box::new(SyncOp { kind, members })));
        Ok(())
    }

    fn lower_match(&mut self, words: &mut Modifiers<'_>, operands: &[Operand<'_>]) -> Lowered<()> {
        let any = words.take("any");
        let all = words.take("all");
        let ty = words
            .next_type()
            .filter(|ty| matches!(ty, Type::B32 | Type::B64));
        let (Some(ty), true, true) = (ty, any != all, words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let [to, a, members] = operands else {
            return invalid("it takes a value and a member mask");
        };
        let a = self.source(a, ty)?;
        let members = Some(self.source(members, Type::B32)?);
        let (to, p) = self.dest_pair(to, Type::B32)?;
        let kind = if any {
            SyncKind::MatchAny { to, a }
        } else {
            SyncKind::MatchAll { to, p, a }
        };
        self.emit(Op::Sync(Box::new(SyncOp { kind, members })));
        Ok(())
    }

    fn lower_redux(&mut self, words: &mut Modifiers<'_>, operands: &[Operand<'_>]) -> Lowered<()> {
        let op = words.find(|word| {
            ["add", "min", "max", "and", "or", "xor"]
                .into_iter()
                .find(|op| *op == word)
        });
        let ty = words.next_type();
        let op = match (op, ty, words.all_used()) {
            (Some("add"), Some(Type::U32 | Type::S32), true) => Reduce::AddU,
            (Some("min"), Some(Type::U32), true) => Reduce::MinU,
            (Some("min"), Some(Type::S32), true) => Reduce::MinS,
            (Some("max"), Some(Type::U32), true) => Reduce::MaxU,
            (Some("max"), Some(Type::S32), true) => Reduce::MaxS,
            (Some("and"), Some(Type::B32), true) => Reduce::And,
            (Some("or"), Some(Type::B32), true) => Reduce::Or,
            (Some("xor"), Some(Type::B32), true) => Reduce::Xor,
            _ => return Err(Refusal::Unsupported),
        };
        let [to, a, members] = operands else {
            return invalid("it takes a value and a member mask");
        };
        let a = self.source(a, Type::B32)?;
        let members = Some(self.source(members, Type::B32)?);
        let to = self.dest(to, Type::B32)?;
        self.emit(Op::Sync(Box::new(SyncOp {
            kind: SyncKind::Reduce { op, to, a },
            members,
        })));
        Ok(())
    }

    pub(super) fn lower_mbarrier(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let mut words = Modifiers::new(modifiers.iter().copied());
        let name = words.find(|word| {
            [
                "init",
                "inval",
                "arrive",
                "arrive_drop",
                "expect_tx",
                "complete_tx",
                "test_wait",
                "try_wait",
                "pending_count",
            ]
            .into_iter()
            .find(|name| *name == word)
        });
        let parity = words.take("parity");
        let no_complete = words.take("noComplete");
        let expects = words.take("expect_tx");
        let space = ["shared", "shared::cta", "shared::cluster"].iter().fold(
            Space::Generic,
            |space, word| {
                if words.take(word) {
                    Space::Shared
                } else {
                    space
                }
            },
        );
        for word in ["release", "acquire", "relaxed", "cta", "cluster", "b64"] {
            words.take(word);
        }
        let (Some(name), true) = (name, words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        if expects && !matches!(name, "arrive" | "arrive_drop") {
            return Err(Refusal::Unsupported);
        }
        let none = Self::discard(64);
        let (kind, target, to) = match (name, operands) {
            ("init", [address, count]) => {
                let count = self.source(count, Type::U32)?;
                (MBarrierKind::Init { count }, Some(address), none)
            }
            ("inval", [address]) => (MBarrierKind::Invalidate, Some(address), none),
            ("arrive" | "arrive_drop", [to, address, count @ ..]) if count.len() <= 1 => {
                let count = count
                    .first()
                    .map(|count| self.source(count, Type::U32))
                    .transpose()?;
                if (no_complete || expects) && count.is_none() {
                    return invalid("it takes a count");
                }
                let to = self.dest(to, Type::B64)?;
                let drop = name == "arrive_drop";
                let (count, expect) = if expects {
                    (None, count)
                } else {
                    (count, None)
                };
                let kind = MBarrierKind::Arrive {
                    count,
                    drop,
                    expect,
                };
                (kind, Some(address), to)
            }
            ("expect_tx" | "complete_tx", [address, bytes]) => {
                let bytes = self.source(bytes, Type::U32)?;
                let completes = name == "complete_tx";
                (
                    MBarrierKind::Transfer { bytes, completes },
                    Some(address),
                    none,
                )
            }
            ("test_wait" | "try_wait", [to, address, state, ..]) if operands.len() <= 4 => {
                let ty = if parity { Type::U32 } else { Type::B64 };
                let state = self.source(state, ty)?;
                let to = match self.predicate_dest(to)? {
                    Some(to) => Dest {
                        reg: Reg::P(to),
                        bits: 1,
                    },
                    None => none,
                };
                (
                    MBarrierKind::Test {
                        state,
                        parity,
                        waits: name == "try_wait",
                    },
                    Some(address),
                    to,
                )
            }
            ("pending_count", [to, state]) => {
                let state = self.source(state, Type::B64)?;
                let to = self.dest(to, Type::U32)?;
                (MBarrierKind::PendingCount { state }, None, to)
            }
            _ => return Err(Refusal::Unsupported),
        };
        let target = match target {
            Some(address) => self.target(address, space)?,
            None => super::super::code::Target {
                space: Space::Shared,
                base: Reg::Sink,
                offset: 0,
            },
        };
        self.emit(Op::MBarrier(Box::new(MBarrierOp { kind, target, to })));
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: what was issued arrives, and so does the thread.
    pub(super) fn lower_copy_arrive(
        &mut self,
        words: &mut Modifiers<'_>,
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        let arrive = words.take("arrive");
        let no_increment = words.take("noinc");
        for word in ["shared", "shared::cta", "b64"] {
            words.take(word);
        }
        let ([address], true, true) = (operands, arrive, words.all_used()) else {
            return Err(Refusal::Unsupported);
        };
        let target = self.target(address, Space::Shared)?;
        let to = Self::discard(64);
        self.emit(Op::CopyWait(u32::MAX));
        // Without `.noinc` the pending count rises by one for this very arrival, so nothing is left to do.
        if no_increment {
            let kind = MBarrierKind::Arrive {
                count: None,
                drop: false,
                expect: None,
            };
            self.emit(Op::MBarrier(Box::new(MBarrierOp { kind, target, to })));
        }
        Ok(())
    }

    pub(super) fn lower_call(
        &mut self,
        modifiers: &[&str],
        operands: &[Operand<'_>],
    ) -> Lowered<()> {
        if modifiers.iter().any(|modifier| *modifier != "uni") {
            return Err(Refusal::Unsupported);
        }
        let (returns, rest) = match operands {
            [Operand::List(returns), rest @ ..] => (returns.as_slice(), rest),
            rest => (&[][..], rest),
        };
        let [Operand::Name(callee), rest @ ..] = rest else {
            return invalid("it takes a function");
        };
        let (arguments, rest) = match rest {
            [Operand::List(arguments), rest @ ..] => (arguments.as_slice(), rest),
            rest => (&[][..], rest),
        };
        if let Some(Name::Register(register)) = self.names.find(callee) {
            return self.lower_indirect(register, returns, arguments, rest);
        }
        let Some(&index) = self.environment.functions.get(callee) else {
            return invalid(format!("no function `{callee}` is declared"));
        };
        let known = &self.environment.signatures[index];
        let has_body = known.has_body;
        let (param_types, return_types) = (known.params.clone(), known.returns.clone());
        let callee = match (*callee, has_body) {
            (_, true) => Callee::Function(index),
            ("vprintf", false) => Callee::Printf,
            ("__assertfail", false) => Callee::AssertFail,
            ("cudaGraphSetConditional", false) => Callee::SetConditional,
            (name, false) if SYSTEM.contains(&name) => return Err(Refusal::Unsupported),
            (name, false) => {
                return invalid(format!(
                    "Unresolved extern function `{name}`: it is declared, but defined nowhere"
                ));
            }
        };
        if arguments.len() != param_types.len() || returns.len() != return_types.len() {
            return invalid(format!(
                "{} arguments and {} results, where the function has {} and {}",
                arguments.len(),
                returns.len(),
                param_types.len(),
                return_types.len()
            ));
        }
        let arguments = arguments
            .iter()
            .zip(&param_types)
            .map(|(argument, ty)| self.passed(argument, *ty))
            .collect::<Lowered<_>>()?;
        let returns = returns
            .iter()
            .zip(&return_types)
            .map(|(to, ty)| self.received(to, *ty))
            .collect::<Lowered<_>>()?;
        if let Callee::Function(index) = callee {
            self.function.calls.push(index);
        }
        self.emit(Op::Call(Box::new(Call {
            callee,
            returns,
            arguments,
        })));
        Ok(())
    }

    fn lower_indirect(
        &mut self,
        address: Register,
        returns: &[Operand<'_>],
        arguments: &[Operand<'_>],
        rest: &[Operand<'_>],
    ) -> Lowered<()> {
        let [Operand::Name(list)] = rest else {
            return invalid("it takes a prototype or a list of functions");
        };
        let (return_sizes, param_sizes) = match self.names.find(list) {
            Some(Name::Prototype { returns, params }) => (returns, params),
            Some(Name::CallTargets(targets)) => {
                self.function.calls.extend(&targets);
                let Some(first) = targets.first() else {
                    return invalid("an empty list of functions");
                };
                let known = &self.environment.signatures[*first];
                let sizes =
                    |types: &[(u32, Option<Type>)]| types.iter().map(|(size, _)| *size).collect();
                (sizes(&known.returns), sizes(&known.params))
            }
            _ => return invalid(format!("no prototype `{list}` is declared")),
        };
        if arguments.len() != param_sizes.len() || returns.len() != return_sizes.len() {
            return invalid("a number of arguments or results that the prototype does not have");
        }
        let passed = arguments
            .iter()
            .zip(&param_sizes)
            .map(|(argument, size)| self.passed(argument, (*size, None)))
            .collect::<Lowered<_>>()?;
        let received = returns
            .iter()
            .zip(&return_sizes)
            .map(|(to, size)| self.received(to, (*size, None)))
            .collect::<Lowered<_>>()?;
        self.function.calls_any = true;
        let callee = Callee::Indirect {
            address: address.reg,
            returns: return_sizes,
            params: param_sizes,
        };
        self.emit(Op::Call(Box::new(Call {
            callee,
            returns: received,
            arguments: passed,
        })));
        Ok(())
    }

    /// What a call passes: bytes of `.param`, a register or a constant.
    fn passed(
        &mut self,
        operand: &Operand<'_>,
        (size, ty): (u32, Option<Type>),
    ) -> Lowered<Passed> {
        if let Operand::Name(name) = operand {
            match self.names.find(name) {
                Some(Name::Local {
                    offset,
                    size: has,
                    is_param: true,
                }) => {
                    if has != size {
                        return invalid(format!(
                            "`{name}` of {has} bytes for a parameter of {size}"
                        ));
                    }
                    return Ok(Passed::Bytes { offset, size });
                }
                Some(Name::Register(register)) => {
                    return Ok(Passed::Register(Dest {
                        reg: register.reg,
                        bits: register.bits,
                    }));
                }
                _ => {}
            }
        }
        let ty = match (ty, size) {
            (Some(ty), _) => ty,
            (None, 4) => Type::B32,
            (None, 8) => Type::B64,
            _ => return invalid("an argument that is no parameter"),
        };
        let reg = self.source(operand, ty)?;
        Ok(Passed::Register(Dest {
            reg,
            bits: ty.bits(),
        }))
    }

    fn received(
        &mut self,
        operand: &Operand<'_>,
        (size, _): (u32, Option<Type>),
    ) -> Lowered<Passed> {
        match operand {
            Operand::Name(name) => match self.names.find(name) {
                Some(Name::Local {
                    offset,
                    size: has,
                    is_param: true,
                }) if has == size => Ok(Passed::Bytes { offset, size }),
                Some(Name::Register(Register { reg, bits })) => {
                    Ok(Passed::Register(Dest { reg, bits }))
                }
                _ => invalid(format!("`{name}` cannot take a result of {size} bytes")),
            },
            Operand::Sink => Ok(Passed::Register(Self::discard(64))),
            _ => invalid("a result that goes nowhere"),
        }
    }
}
