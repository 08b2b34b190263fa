//! Instructions: which micro-operations each becomes.

use gridcall_ptx::{Instruction, Operand};

use super::super::alu::{self, Alu, Modifiers, Signature};
use super::super::alu_float::Property;
use super::super::alu_int::{Int, IntOp};
use super::super::code::{Carry, CarryKind, Compute, Flag, Logic, Op, Preset, Reg, SetP};
use super::super::fast::FastCompare;
use super::super::types::{Kind, Type};
use super::body::Body;
use super::names::Name;
use super::{Lowered, Refusal, invalid};

/// Lowers one instruction.
pub(super) fn lower(body: &mut Body<'_, '_>, instruction: &Instruction<'_>) -> Lowered<()> {
    let modifiers = &instruction.modifiers;
    let operands = &instruction.operands;
    match instruction.opcode {
        "mov" => lower_mov(body, modifiers, operands),
        "ld" | "ldu" => body.lower_load(instruction.opcode, modifiers, operands),
        "st" => body.lower_store(modifiers, operands),
        "atom" => body.lower_atomic(modifiers, operands, true),
        "red" => body.lower_atomic(modifiers, operands, false),
        "cvta" => body.lower_cvta(modifiers, operands),
        "isspacep" => body.lower_isspacep(modifiers, operands),
        "mapa" => body.lower_mapa(modifiers, operands),
        "getctarank" => body.lower_getctarank(modifiers, operands),
        "cp" => body.lower_copy(modifiers, operands),
        "prefetch" | "prefetchu" | "applypriority" | "discard" | "createpolicy" => {
            body.lower_hint(instruction.opcode, modifiers, operands)
        }
        "setp" => lower_setp(body, modifiers, operands),
        "selp" => lower_selp(body, modifiers, operands),
        "testp" => lower_testp(body, modifiers, operands),
        "bra" => lower_branch(body, modifiers, operands),
        "brx" => lower_branch_table(body, modifiers, operands),
        "call" => body.lower_call(modifiers, operands),
        "ret" => plain(body, modifiers, operands, &["uni"], Op::Return),
        "exit" => plain(body, modifiers, operands, &[], Op::Exit),
        "trap" | "brkpt" => plain(body, modifiers, operands, &[], Op::Trap),
        "bar" | "barrier" => body.lower_barrier(instruction.opcode, modifiers, operands),
        "membar" | "fence" => body.lower_fence(modifiers, operands),
        "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => {
            body.lower_sync(instruction.opcode, modifiers, operands)
        }
        "mma" | "wmma" | "ldmatrix" | "stmatrix" | "movmatrix" => {
            body.lower_matrix(instruction.opcode, modifiers, operands)
        }
        "tex" | "tld4" | "txq" | "suq" | "suld" | "sust" | "sured" => {
            body.lower_image(instruction.opcode, modifiers, operands)
        }
        "mbarrier" => body.lower_mbarrier(modifiers, operands),
        "nanosleep" => {
            if modifiers[..] != ["u32"] || operands.len() != 1 {
                return invalid("it takes `.u32` and one operand");
            }
            body.source(&operands[0], Type::U32)?;
            body.emit(Op::Sleep);
            Ok(())
        }
        // One grid does not overlap with the next here, so there is nothing to wait for.
        "griddepcontrol" => match modifiers[..] {
            ["launch_dependents" | "wait"] if operands.is_empty() => {
                body.emit(Op::Fence);
                Ok(())
            }
            _ => invalid("`griddepcontrol` takes `.launch_dependents` or `.wait`"),
        },
        "pmevent" | "setmaxnreg" => {
            body.emit(Op::Nop);
            Ok(())
        }
        "lop3" => lower_lop3(body, modifiers, operands),
        "set" if operands.len() == 4 => lower_set(body, modifiers, operands),
        _ => lower_compute(body, instruction),
    }
}

fn plain(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
    allowed: &[&str],
    op: Op,
) -> Lowered<()> {
    if !operands.is_empty() || modifiers.iter().any(|modifier| !allowed.contains(modifier)) {
        return invalid("it takes no operands, and no such modifiers");
    }
    body.emit(op);
    Ok(())
}

fn lower_compute(body: &mut Body<'_, '_>, instruction: &Instruction<'_>) -> Lowered<()> {
    let (opcode, modifiers) = (instruction.opcode, &instruction.modifiers);
    let operands = &instruction.operands;
    let Some((to, sources)) = operands.split_first() else {
        return Err(Refusal::Unsupported);
    };
    // On predicates, bit operations are those of logic.
    if modifiers.as_slice() == ["pred"] {
        return lower_logic(body, opcode, to, sources);
    }
    if let Some(lowered) = lower_carry(body, opcode, modifiers, to, sources) {
        return lowered;
    }
    let Some(found) = alu::parse(opcode, modifiers, sources.len()) else {
        return Err(Refusal::Unsupported);
    };
    let converts = matches!(found.alu, Alu::Convert(_));
    compute(body, found, to, sources, converts)
}

/// Emits a computation.
fn compute(
    body: &mut Body<'_, '_>,
    found: Signature,
    to: &Operand<'_>,
    sources: &[Operand<'_>],
    converts: bool,
) -> Lowered<()> {
    let mut operands = [Reg::Sink; 4];
    for ((slot, source), ty) in operands.iter_mut().zip(sources).zip(found.operands) {
        let ty = bits_type(ty);
        *slot = if converts {
            body.wide_source(source, ty)?
        } else {
            body.source(source, ty)?
        };
    }
    let result = bits_type(found.result);
    let to = if converts {
        body.wide_dest(to, result)?
    } else {
        body.dest(to, result)?
    };
    body.emit(Op::Compute(Box::new(Compute {
        alu: found.alu,
        result: found.result,
        to,
        operands,
        count: found.count,
    })));
    Ok(())
}

/// Packed and special types travel in registers of plain bits.
fn bits_type(ty: Type) -> Type {
    match ty {
        Type::F16 | Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => Type::B16,
        Type::Tf32 | Type::F16x2 | Type::Bf16x2 | Type::U16x2 | Type::S16x2 => Type::B32,
        other => other,
    }
}

fn lower_logic(
    body: &mut Body<'_, '_>,
    opcode: &str,
    to: &Operand<'_>,
    sources: &[Operand<'_>],
) -> Lowered<()> {
    let Some(to) = body.predicate_dest(to)? else {
        return invalid("a result that goes nowhere");
    };
    let (op, a, b) = match (opcode, sources) {
        ("and", [a, b]) => (Logic::And, body.flag(a)?, body.flag(b)?),
        ("or", [a, b]) => (Logic::Or, body.flag(a)?, body.flag(b)?),
        ("xor", [a, b]) => (Logic::Xor, body.flag(a)?, body.flag(b)?),
        ("not", [a]) => {
            let a = body.flag(a)?;
            let negated = Flag {
                negated: !a.negated,
                ..a
            };
            (Logic::And, negated, negated)
        }
        _ => return Err(Refusal::Unsupported),
    };
    body.emit(Op::Logic { op, to, a, b });
    Ok(())
}

/// `add.cc`, `addc`, `mad.lo.cc` and their kin; nothing for other instructions.
fn lower_carry(
    body: &mut Body<'_, '_>,
    opcode: &str,
    modifiers: &[&str],
    to: &Operand<'_>,
    sources: &[Operand<'_>],
) -> Option<Lowered<()>> {
    let reads = matches!(opcode, "addc" | "subc" | "madc");
    let writes = modifiers.contains(&"cc");
    if !reads && !writes {
        return None;
    }
    let mut words = Modifiers::new(modifiers.iter().copied());
    words.take("cc");
    let kind = match opcode {
        "add" | "addc" => CarryKind::Add,
        "sub" | "subc" => CarryKind::Sub,
        "mad" | "madc" if words.take("lo") => CarryKind::MadLo,
        "mad" | "madc" if words.take("hi") => CarryKind::MadHi,
        _ => return Some(Err(Refusal::Unsupported)),
    };
    let ty = words
        .next_type()
        .filter(|ty| ty.is_integer() && ty.bits() >= 32);
    let (Some(ty), true) = (ty, words.all_used()) else {
        return Some(Err(Refusal::Unsupported));
    };
    let count = if matches!(kind, CarryKind::Add | CarryKind::Sub) {
        2
    } else {
        3
    };
    if sources.len() != count {
        return Some(invalid(format!(
            "{} sources where {count} are due",
            sources.len()
        )));
    }
    Some(emit_carry(body, kind, ty, (reads, writes), to, sources))
}

fn emit_carry(
    body: &mut Body<'_, '_>,
    kind: CarryKind,
    ty: Type,
    (reads, writes): (bool, bool),
    to: &Operand<'_>,
    sources: &[Operand<'_>],
) -> Lowered<()> {
    let mut operands = [Reg::Sink; 3];
    for (slot, source) in operands.iter_mut().zip(sources) {
        *slot = body.source(source, ty)?;
    }
    let to = body.dest(to, ty)?.reg;
    let flag = body.carry();
    let int = Int {
        bits: ty.bits(),
        signed: ty.is_signed(),
    };
    body.emit(Op::Carry(Box::new(Carry {
        int,
        kind,
        reads,
        writes,
        to,
        operands,
        flag,
    })));
    Ok(())
}

fn lower_mov(body: &mut Body<'_, '_>, modifiers: &[&str], operands: &[Operand<'_>]) -> Lowered<()> {
    let [to, from] = operands else {
        return invalid("it takes a destination and a source");
    };
    let mut words = Modifiers::new(modifiers.iter().copied());
    let count = words.find(|word| match word {
        "v2" => Some(2),
        "v4" => Some(4),
        _ => None,
    });
    let Some(ty) = words.next_type().filter(|_| words.all_used()) else {
        return Err(Refusal::Unsupported);
    };
    if let Some(count) = count {
        return lower_vector_mov(body, ty, count, to, from);
    }
    match (to, from) {
        (Operand::Vector(parts), from) if ty.kind() == Kind::Bits => {
            let bits = part_bits(ty, parts.len())?;
            let part = bits_of(bits)?;
            let from = body.source(from, ty)?;
            let to = parts
                .iter()
                .map(|to| body.wide_dest(to, part))
                .collect::<Lowered<Vec<_>>>()?;
            body.emit(Op::Unpack {
                to: to.into(),
                from,
                bits,
            });
        }
        (to, Operand::Vector(parts)) if ty.kind() == Kind::Bits => {
            let bits = part_bits(ty, parts.len())?;
            let part = bits_of(bits)?;
            let from = parts
                .iter()
                .map(|from| body.source(from, part))
                .collect::<Lowered<Vec<_>>>()?;
            let to = body.dest(to, ty)?;
            body.emit(Op::Pack {
                to,
                from: from.into(),
                bits,
            });
        }
        (to, from) if ty == Type::Pred => {
            let Some(to) = body.predicate_dest(to)? else {
                return invalid("a result that goes nowhere");
            };
            let flag = body.flag(from)?;
            body.emit(Op::Logic {
                op: Logic::And,
                to,
                a: flag,
                b: flag,
            });
        }
        (to, from) => {
            if ty.bits() == 8 {
                return Err(Refusal::Unsupported);
            }
            let ty = bits_type(ty);
            let from = body.source(from, ty)?;
            let to = body.dest(to, ty)?.reg;
            body.emit(Op::Move { to, from });
        }
    }
    Ok(())
}

/// `mov.v4.u32 %v, %tid`, as early PTX has it.
fn lower_vector_mov(
    body: &mut Body<'_, '_>,
    ty: Type,
    count: usize,
    to: &Operand<'_>,
    from: &Operand<'_>,
) -> Lowered<()> {
    let to = body.dests(to, count, ty)?;
    for (at, to) in to.into_iter().enumerate() {
        let component = ["x", "y", "z", "w"][at.min(3)];
        let from = match from {
            Operand::Name(name)
                if at == 3 && name.starts_with('%') && body.names.find(name).is_none() =>
            {
                Operand::Constant(gridcall_ptx::Constant::S64(0))
            }
            Operand::Name(name) => Operand::Component { name, component },
            Operand::Vector(parts) if parts.len() == count => parts[at].clone(),
            _ => return invalid("a source that is no vector"),
        };
        let from = body.source(&from, ty)?;
        body.emit(Op::Move { to: to.reg, from });
    }
    Ok(())
}

fn part_bits(ty: Type, count: usize) -> Lowered<u32> {
    let count = u32::try_from(count).unwrap_or(0);
    if !matches!(count, 2 | 4) || ty.bits() / count < 8 {
        return invalid(format!("{count} parts of {} bits", ty.bits()));
    }
    Ok(ty.bits() / count)
}

fn bits_of(bits: u32) -> Lowered<Type> {
    Ok(match bits {
        8 => Type::B8,
        16 => Type::B16,
        32 => Type::B32,
        64 => Type::B64,
        _ => return invalid(format!("a part of {bits} bits")),
    })
}

fn lower_setp(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
) -> Lowered<()> {
    let mut words = Modifiers::new(modifiers.iter().copied());
    let ftz = words.take("ftz");
    let combine = words.find(logic);
    let Some(ty) = words.next_type() else {
        return Err(Refusal::Unsupported);
    };
    let Some(comparison) = alu::parse_comparison(&mut words, ty, ftz).filter(|_| words.all_used())
    else {
        return Err(Refusal::Unsupported);
    };
    let (to, a, b, c) = match (operands, combine) {
        ([to, a, b], None) => (to, a, b, None),
        ([to, a, b, c], Some(_)) => (to, a, b, Some(c)),
        _ => return invalid("a number of operands that it does not take"),
    };
    let (p, q) = match to {
        Operand::Pair(p, q) => (body.predicate(p)?, body.predicate(q)?),
        to => (body.predicate_dest(to)?, None),
    };
    let plain = bits_type(ty);
    let (a, b) = (body.source(a, plain)?, body.source(b, plain)?);
    let combine = match (combine, c) {
        (Some(op), Some(c)) => Some((op, body.flag(c)?)),
        _ => None,
    };
    let pair = ty.kind() == Kind::Packed;
    let fast = FastCompare::of(comparison).filter(|_| !pair);
    body.emit(Op::SetP(Box::new(SetP {
        comparison,
        fast,
        pair,
        p,
        q,
        a,
        b,
        combine,
    })));
    Ok(())
}

/// `set` with a predicate that its comparison is combined with, in each half of a packed type.
fn lower_set(body: &mut Body<'_, '_>, modifiers: &[&str], operands: &[Operand<'_>]) -> Lowered<()> {
    let [to, a, b, c] = operands else {
        return invalid("a number of operands that it does not take");
    };
    let mut words = Modifiers::new(modifiers.iter().copied());
    let combine = words.find(logic);
    let found = alu::parse_set(&mut words).filter(|_| words.all_used());
    let (Some(op), Some(found)) = (combine, found) else {
        return Err(Refusal::Unsupported);
    };
    let (comparison, yes, pair) = match found.alu {
        Alu::Set(comparison, yes) => (comparison, yes, false),
        Alu::SetPair(comparison, yes) => (comparison, yes, true),
        _ => return Err(Refusal::Unsupported),
    };
    let (plain, result) = (bits_type(found.operands[0]), bits_type(found.result));
    let (a, b) = (body.source(a, plain)?, body.source(b, plain)?);
    let flag = body.flag(c)?;
    let to = body.dest(to, result)?.reg;
    let (Reg::P(low), Reg::P(high)) = (body.new_register(1).reg, body.new_register(1).reg) else {
        return invalid("a predicate that is none");
    };
    body.emit(Op::SetP(Box::new(SetP {
        comparison,
        fast: FastCompare::of(comparison).filter(|_| !pair),
        pair,
        p: Some(low),
        q: pair.then_some(high),
        a,
        b,
        combine: Some((op, flag)),
    })));
    let bits = result.bits();
    let mut preset = |value| body.preset(Preset::Bits(value), bits);
    let (no, one) = (preset(0), preset(yes));
    if !pair {
        select(body, to, [one, no], low);
        return Ok(());
    }
    let (upper, both) = (preset(yes << 16), preset(yes << 16 | yes));
    let (without, with) = (body.new_register(bits).reg, body.new_register(bits).reg);
    select(body, without, [one, no], low);
    select(body, with, [both, upper], low);
    select(body, to, [with, without], high);
    Ok(())
}

/// `to = predicate ? a : b`
fn select(body: &mut Body<'_, '_>, to: Reg, [a, b]: [Reg; 2], predicate: u32) {
    let flag = Flag {
        predicate,
        negated: false,
    };
    body.emit(Op::Select { to, a, b, flag });
}

fn logic(word: &str) -> Option<Logic> {
    match word {
        "and" => Some(Logic::And),
        "or" => Some(Logic::Or),
        "xor" => Some(Logic::Xor),
        _ => None,
    }
}

fn lower_selp(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
) -> Lowered<()> {
    let ([to, a, b, c], [ty]) = (operands, modifiers) else {
        return invalid("it takes a type, a destination and three sources");
    };
    let Some(ty) = Type::parse(ty).filter(|ty| matches!(ty.bits(), 16 | 32 | 64)) else {
        return Err(Refusal::Unsupported);
    };
    let ty = bits_type(ty);
    let (a, b) = (body.source(a, ty)?, body.source(b, ty)?);
    let flag = body.flag(c)?;
    let to = body.dest(to, ty)?.reg;
    body.emit(Op::Select { to, a, b, flag });
    Ok(())
}

fn lower_testp(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
) -> Lowered<()> {
    let ([to, a], [what, ty]) = (operands, modifiers) else {
        return invalid("it takes a property, a type, a destination and a source");
    };
    let property = match *what {
        "finite" => Property::Finite,
        "infinite" => Property::Infinite,
        "number" => Property::Number,
        "notanumber" => Property::NotANumber,
        "normal" => Property::Normal,
        "subnormal" => Property::Subnormal,
        _ => return Err(Refusal::Unsupported),
    };
    let Some(ty) = Type::parse(ty).filter(|ty| matches!(ty, Type::F32 | Type::F64)) else {
        return Err(Refusal::Unsupported);
    };
    let Some(format) = ty.format() else {
        return Err(Refusal::Unsupported);
    };
    let Some(to) = body.predicate_dest(to)? else {
        return invalid("a result that goes nowhere");
    };
    let a = body.source(a, ty)?;
    body.emit(Op::TestP {
        property,
        format,
        to,
        a,
    });
    Ok(())
}

fn lower_lop3(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
) -> Lowered<()> {
    let mut words = Modifiers::new(modifiers.iter().copied());
    let combine = words.find(|word| match word {
        "or" => Some(Logic::Or),
        "and" => Some(Logic::And),
        _ => None,
    });
    if !words.take("b32") || !words.all_used() {
        return Err(Refusal::Unsupported);
    }
    let (to, a, b, c, table, q) = match (operands, combine) {
        ([to, a, b, c, table], None) => (to, a, b, c, table, None),
        ([to, a, b, c, table, q], Some(_)) => (to, a, b, c, table, Some(q)),
        _ => return invalid("a number of operands that it does not take"),
    };
    let Operand::Constant(table) = table else {
        return invalid("a table that is no constant");
    };
    let Some(table) = table.integer().and_then(|table| u8::try_from(table).ok()) else {
        return invalid("a table that is not between 0 and 255");
    };
    let int = Int {
        bits: 32,
        signed: false,
    };
    let found = Signature {
        alu: Alu::Int(IntOp::Lop3(table), int),
        result: Type::B32,
        operands: [Type::B32; 4],
        count: 3,
    };
    let sources = [a.clone(), b.clone(), c.clone()];
    let (Some(op), Some(q)) = (combine, q) else {
        return compute(body, found, to, &sources, false);
    };
    // With a predicate: `d|p`, where p says whether d is not zero, combined with q.
    let Operand::Pair(d, p) = to else {
        return invalid("it sets a register and a predicate");
    };
    let d = if *d == "_" {
        body.new_dest(32)
    } else {
        body.dest(&Operand::Name(d), Type::B32)?
    };
    let p = body.predicate(p)?;
    let mut registers = [Reg::Sink; 4];
    for (slot, source) in registers.iter_mut().zip(&sources) {
        *slot = body.source(source, Type::B32)?;
    }
    let flag = body.flag(q)?;
    let compute = Compute {
        alu: found.alu,
        result: Type::B32,
        to: d,
        operands: registers,
        count: 3,
    };
    body.emit(Op::Compute(Box::new(compute)));
    let zero = body.preset(Preset::Bits(0), 32);
    let comparison = alu::Comparison::Int(super::super::alu_int::Order::NotEqual, int);
    body.emit(Op::SetP(Box::new(SetP {
        comparison,
        fast: FastCompare::of(comparison),
        pair: false,
        p,
        q: None,
        a: d.reg,
        b: zero,
        combine: Some((op, flag)),
    })));
    Ok(())
}

fn lower_branch(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
) -> Lowered<()> {
    let [Operand::Name(name)] = operands else {
        return invalid("it takes a label");
    };
    if modifiers.iter().any(|modifier| *modifier != "uni") {
        return Err(Refusal::Unsupported);
    }
    match body.label(name) {
        Some(label) => {
            body.emit(Op::Branch(label));
            Ok(())
        }
        None => invalid(format!("no label `{name}` is declared")),
    }
}

fn lower_branch_table(
    body: &mut Body<'_, '_>,
    modifiers: &[&str],
    operands: &[Operand<'_>],
) -> Lowered<()> {
    let ([index, Operand::Name(list)], ["idx", ..]) = (operands, modifiers) else {
        return invalid("it takes an index and a list of labels");
    };
    let index = body.source(index, Type::U32)?;
    match body.names.find(list) {
        Some(Name::BranchTargets(targets)) => {
            body.emit(Op::BranchTable {
                targets: targets.into(),
                index,
            });
            Ok(())
        }
        _ => invalid(format!("no list of labels `{list}` is declared")),
    }
}

/// The instructions of PTX up to the version the reader knows, in alphabetical order.
const KNOWN: &[&str] = &[
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "atom",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "bra",
    "brev",
    "brkpt",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "cp",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "exit",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "istypep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "multimem",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "red",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "st",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tanh",
    "tcgen05",
    "tensormap",
    "testp",
    "tex",
    "tld4",
    "trap",
    "txq",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vote",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
    "wgmma",
    "wmma",
    "xor",
];

/// Whether PTX has an instruction of this name, up to the version the reader knows.
pub(super) fn is_known(opcode: &str) -> bool {
    KNOWN.binary_search(&opcode).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_in_order() {
        assert!(KNOWN.is_sorted());
        assert!(is_known("wgmma") && !is_known("frobnicate"));
    }
}
