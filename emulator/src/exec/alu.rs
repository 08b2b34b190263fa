//! The instructions that compute a value or a predicate from registers and nothing else, and how they
//! are read from an opcode and its modifiers.

use super::alu_float::{self, Clamp, Float, FloatOp, FloatOrder};
use super::alu_int::{self, Int, IntOp, Order, Permute};
use super::approx::{Approx, ApproxOp};
use super::convert::{Convert, Pack};
use super::number::{Format, Round};
use super::types::{Kind, Type, mask};

/// A computation on up to four operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Alu {
    Int(IntOp, Int),
    Float(FloatOp, Float),
    /// The same on both halves of a 32-bit register.
    FloatPair(FloatOp, Float),
    Approx(ApproxOp),
    ApproxPair(ApproxOp),
    Convert(Convert),
    Pack(Pack),
    /// `slct`: a where c is not below zero.
    SelectSigned,
    SelectFloat {
        ftz: bool,
    },
    /// `set`: the value that says yes.
    Set(Comparison, u64),
    /// `set` on both halves, each answering by itself.
    SetPair(Comparison, u64),
}

/// How two operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Comparison {
    Int(Order, Int),
    Float(FloatOrder, Format, bool),
}

impl Comparison {
    pub(crate) fn holds(self, a: u64, b: u64) -> bool {
        match self {
            Self::Int(order, int) => alu_int::compare(order, int, a, b),
            Self::Float(order, format, ftz) => alu_float::compare(order, format, ftz, a, b),
        }
    }
}

impl Alu {
    /// Computes the result, zero-extended; operands hold at least the bits of their type.
    pub(crate) fn eval(self, operands: [u64; 4]) -> u64 {
        let [a, b, c, _] = operands;
        match self {
            Self::Int(op, int) => alu_int::eval(op, int, operands),
            Self::Float(op, float) => float.eval(op, [a, b, c]),
            Self::FloatPair(op, float) => halves([a, b, c], |part| float.eval(op, part)),
            Self::Approx(op) => op.eval(a, b),
            Self::ApproxPair(op) => halves([a, b, c], |[a, b, _]| op.eval(a, b)),
            Self::Convert(convert) => convert.eval(a, b),
            Self::Pack(pack) => pack.eval(a, b, c),
            Self::SelectSigned => {
                if c & mask(32) >> 31 << 31 == 0 {
                    a
                } else {
                    b
                }
            }
            Self::SelectFloat { ftz } => {
                let c = if ftz { Format::F32.flush(c) } else { c };
                let below = Format::F32.is_negative(c) && !Format::F32.is_zero(c);
                if below || Format::F32.is_nan(c) { b } else { a }
            }
            Self::Set(comparison, yes) => {
                if comparison.holds(a, b) {
                    yes
                } else {
                    0
                }
            }
            Self::SetPair(comparison, yes) => {
                halves(
                    [a, b, c],
                    |[a, b, _]| if comparison.holds(a, b) { yes } else { 0 },
                )
            }
        }
    }
}

fn halves(operands: [u64; 3], op: impl Fn([u64; 3]) -> u64) -> u64 {
    let low = op(operands.map(|bits| bits & 0xffff));
    let high = op(operands.map(|bits| bits >> 16 & 0xffff));
    low | high << 16
}

/// A computation with the types of its result and operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) alu: Alu,
    pub(crate) result: Type,
    /// The operand types; only the first `count` count.
    pub(crate) operands: [Type; 4],
    pub(crate) count: usize,
}

fn signature(alu: Alu, result: Type, operands: &[Type]) -> Signature {
    let mut all = [Type::B32; 4];
    all[..operands.len()].copy_from_slice(operands);
    Signature {
        alu,
        result,
        operands: all,
        count: operands.len(),
    }
}

/// The modifiers of one instruction, each to be used once.
pub(crate) struct Modifiers<'a> {
    left: Vec<&'a str>,
}

impl<'a> Modifiers<'a> {
    pub(crate) fn new(modifiers: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            left: modifiers.into_iter().collect(),
        }
    }

    /// Takes a modifier, if it is there.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        match self.left.iter().position(|modifier| *modifier == name) {
            Some(at) => {
                self.left.remove(at);
                true
            }
            None => false,
        }
    }

    /// Whether a modifier is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.left.contains(&name)
    }

    /// Takes the first modifier that `read` understands.
    pub(crate) fn find<T>(&mut self, read: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        let (at, value) = self
            .left
            .iter()
            .enumerate()
            .find_map(|(at, modifier)| Some((at, read(modifier)?)))?;
        self.left.remove(at);
        Some(value)
    }

    pub(crate) fn next_type(&mut self) -> Option<Type> {
        self.find(Type::parse)
    }

    pub(crate) fn all_used(&self) -> bool {
        self.left.is_empty()
    }
}

/// Reads a computing instruction; `None` if it is none, or one that PTX does not have. `operands` is
/// how many sources it is given.
pub(crate) fn parse(opcode: &str, modifiers: &[&str], operands: usize) -> Option<Signature> {
    let mut words = Modifiers::new(modifiers.iter().copied());
    let found = match opcode {
        "cvt" => parse_convert(&mut words, operands),
        "set" => parse_set(&mut words),
        "slct" => parse_slct(&mut words),
        "prmt" => parse_prmt(&mut words),
        "shf" => parse_shf(&mut words),
        // Which NaN stands for out of bounds, the manual does not say.
        "fma" if words.take("oob") => None,
        "dp4a" | "dp2a" => parse_dot(opcode, &mut words),
        _ => parse_typed(opcode, &mut words, operands),
    }?;
    words
        .all_used()
        .then_some(found)
        .filter(|found| found.count == operands)
}

fn parse_typed(opcode: &str, words: &mut Modifiers<'_>, operands: usize) -> Option<Signature> {
    // The type stands last, but for `.relu` behind some packed ones.
    let at = words
        .left
        .iter()
        .rposition(|word| Type::parse(word).is_some())?;
    let ty = Type::parse(words.left.remove(at))?;
    match ty.kind() {
        Kind::Unsigned | Kind::Signed => parse_integer(opcode, words, ty),
        Kind::Bits => parse_bits(opcode, words, ty),
        Kind::Float => parse_float(opcode, words, ty, operands),
        Kind::Packed if ty.format().is_some() => parse_float(opcode, words, ty, operands),
        Kind::Packed => parse_pair(opcode, words, ty),
        Kind::Predicate => None,
    }
}

fn parse_integer(opcode: &str, words: &mut Modifiers<'_>, ty: Type) -> Option<Signature> {
    use IntOp as O;
    let int = Int {
        bits: ty.bits(),
        signed: ty.is_signed(),
    };
    if int.bits == 8 {
        return None;
    }
    let wide = match (ty.bits(), ty.is_signed()) {
        (16, true) => Type::S32,
        (16, false) => Type::U32,
        (_, true) => Type::S64,
        (_, false) => Type::U64,
    };
    let sat = ty == Type::S32 && words.take("sat");
    let half = words.find(|word| ["lo", "hi", "wide"].into_iter().find(|half| *half == word));
    let u = |op| Some(signature(Alu::Int(op, int), ty, &[ty]));
    let b = |op| Some(signature(Alu::Int(op, int), ty, &[ty, ty]));
    let t = |op| Some(signature(Alu::Int(op, int), ty, &[ty, ty, ty]));
    match (opcode, half, sat) {
        ("add", None, sat) => b(if sat { O::AddSat } else { O::Add }),
        ("sub", None, sat) => b(if sat { O::SubSat } else { O::Sub }),
        ("mul", Some("lo"), false) => b(O::MulLo),
        ("mul", Some("hi"), false) => b(O::MulHi),
        ("mul", Some("wide"), false) if int.bits < 64 => {
            Some(signature(Alu::Int(O::MulWide, int), wide, &[ty, ty]))
        }
        ("mad", Some("lo"), false) => t(O::MadLo),
        ("mad", Some("hi"), sat) => t(if sat { O::MadHiSat } else { O::MadHi }),
        ("mad", Some("wide"), false) if int.bits < 64 => {
            Some(signature(Alu::Int(O::MadWide, int), wide, &[ty, ty, wide]))
        }
        ("mul24", Some("lo"), false) if int.bits == 32 => b(O::Mul24Lo),
        ("mul24", Some("hi"), false) if int.bits == 32 => b(O::Mul24Hi),
        ("mad24", Some("lo"), false) if int.bits == 32 => t(O::Mad24Lo),
        ("mad24", Some("hi"), sat) if int.bits == 32 => {
            t(if sat { O::Mad24HiSat } else { O::Mad24Hi })
        }
        ("sad", None, false) => t(O::Sad),
        ("div", None, false) => b(O::Div),
        ("rem", None, false) => b(O::Rem),
        ("abs", None, false) if int.signed => u(O::Abs),
        ("neg", None, false) if int.signed => u(O::Neg),
        ("min", None, false) => {
            let relu = ty == Type::S32 && words.take("relu");
            b(if relu { O::MinRelu } else { O::Min })
        }
        ("max", None, false) => {
            let relu = ty == Type::S32 && words.take("relu");
            b(if relu { O::MaxRelu } else { O::Max })
        }
        ("shr", None, false) => Some(signature(Alu::Int(O::Shr, int), ty, &[ty, Type::U32])),
        ("bfind", None, false) if int.bits >= 32 => {
            let op = if words.take("shiftamt") {
                O::BfindShift
            } else {
                O::Bfind
            };
            Some(signature(Alu::Int(op, int), Type::U32, &[ty]))
        }
        ("bfe", None, false) if int.bits >= 32 => Some(signature(
            Alu::Int(O::Bfe, int),
            ty,
            &[ty, Type::U32, Type::U32],
        )),
        ("szext", None, false) if int.bits == 32 => {
            let wrap = parse_wrap(words)?;
            Some(signature(
                Alu::Int(O::Szext { wrap }, int),
                ty,
                &[ty, Type::U32],
            ))
        }
        _ => None,
    }
}

fn parse_wrap(words: &mut Modifiers<'_>) -> Option<bool> {
    words.find(|word| match word {
        "wrap" => Some(true),
        "clamp" => Some(false),
        _ => None,
    })
}

fn parse_bits(opcode: &str, words: &mut Modifiers<'_>, ty: Type) -> Option<Signature> {
    use IntOp as O;
    let int = Int {
        bits: ty.bits(),
        signed: false,
    };
    if !matches!(int.bits, 16 | 32 | 64) {
        return None;
    }
    let large = int.bits >= 32;
    let all = |op, result, operands: &[Type]| Some(signature(Alu::Int(op, int), result, operands));
    match opcode {
        "and" => all(O::And, ty, &[ty, ty]),
        "or" => all(O::Or, ty, &[ty, ty]),
        "xor" => all(O::Xor, ty, &[ty, ty]),
        "not" => all(O::Not, ty, &[ty]),
        "cnot" => all(O::Cnot, ty, &[ty]),
        "shl" => all(O::Shl, ty, &[ty, Type::U32]),
        "shr" => all(O::Shr, ty, &[ty, Type::U32]),
        "popc" if large => all(O::Popc, Type::U32, &[ty]),
        "clz" if large => all(O::Clz, Type::U32, &[ty]),
        "brev" if large => all(O::Brev, ty, &[ty]),
        "bfi" if large => all(O::Bfi, ty, &[ty, ty, Type::U32, Type::U32]),
        "fns" if int.bits == 32 => all(O::Fns, ty, &[ty, Type::U32, Type::S32]),
        "bmsk" if int.bits == 32 => {
            let wrap = parse_wrap(words)?;
            all(O::Bmsk { wrap }, ty, &[Type::U32, Type::U32])
        }
        _ => None,
    }
}

/// `add`, `min` and `max` on pairs of 16-bit integers.
fn parse_pair(opcode: &str, words: &mut Modifiers<'_>, ty: Type) -> Option<Signature> {
    let int = Int {
        bits: 32,
        signed: ty == Type::S16x2,
    };
    let mut relu = || int.signed && words.take("relu");
    let op = match opcode {
        "add" => IntOp::AddPair,
        "min" => IntOp::MinPair { relu: relu() },
        "max" => IntOp::MaxPair { relu: relu() },
        _ => return None,
    };
    Some(signature(Alu::Int(op, int), ty, &[ty, ty]))
}

fn parse_round(words: &mut Modifiers<'_>) -> Option<Round> {
    words.find(|word| {
        Some(match word {
            "rn" => Round::Nearest,
            "rna" => Round::NearestAway,
            "rz" => Round::Zero,
            "rm" => Round::Down,
            "rp" => Round::Up,
            _ => return None,
        })
    })
}

fn parse_float(
    opcode: &str,
    words: &mut Modifiers<'_>,
    ty: Type,
    operands: usize,
) -> Option<Signature> {
    let format = ty.format()?;
    if matches!(format, Format::Tf32 | Format::E4m3 | Format::E5m2) {
        return None;
    }
    let pair = ty.kind() == Kind::Packed;
    let approx = words.take("approx");
    let full = words.take("full");
    let ftz = format != Format::F64 && words.take("ftz");
    if approx || full {
        let ftz = ftz || words.take("ftz");
        return parse_approx(opcode, full, ty, ftz, operands);
    }
    let round = parse_round(words);
    let clamp = if words.take("sat") {
        Clamp::Unit
    } else if words.take("relu") {
        Clamp::Relu
    } else {
        Clamp::None
    };
    // Half precision takes `.noftz` on additions in memory only; there it is no arithmetic.
    let float = Float {
        format,
        round: round.unwrap_or(Round::Nearest),
        ftz,
        clamp,
    };
    let rounds = |op| match op {
        FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Fma => true,
        FloatOp::Div | FloatOp::Rcp | FloatOp::Sqrt => clamp == Clamp::None,
        _ => round.is_none(),
    };
    let nan = words.take("NaN");
    let xorsign = words.take("xorsign") || words.take("xorsign.abs");
    if xorsign {
        words.take("abs");
    }
    let (op, count) = match opcode {
        "add" => (FloatOp::Add, 2),
        "sub" => (FloatOp::Sub, 2),
        "mul" => (FloatOp::Mul, 2),
        "fma" | "mad" => (FloatOp::Fma, 3),
        "div" if !pair => (FloatOp::Div, 2),
        "rcp" if !pair => (FloatOp::Rcp, 1),
        "sqrt" if !pair => (FloatOp::Sqrt, 1),
        "abs" => (FloatOp::Abs, 1),
        "neg" => (FloatOp::Neg, 1),
        "min" => (FloatOp::Min { nan, xorsign }, operands),
        "max" => (FloatOp::Max { nan, xorsign }, operands),
        "copysign" if !pair => (FloatOp::CopySign, 2),
        _ => return None,
    };
    if !rounds(op) || count > 3 {
        return None;
    }
    let alu = if pair {
        Alu::FloatPair(op, float)
    } else {
        Alu::Float(op, float)
    };
    Some(signature(alu, ty, &[ty; 3][..count]))
}

fn parse_approx(
    opcode: &str,
    full: bool,
    ty: Type,
    ftz: bool,
    operands: usize,
) -> Option<Signature> {
    let function = match (opcode, full) {
        ("rcp", false) => Approx::Rcp,
        ("sqrt", false) => Approx::Sqrt,
        ("rsqrt", false) => Approx::Rsqrt,
        ("sin", false) => Approx::Sin,
        ("cos", false) => Approx::Cos,
        ("lg2", false) => Approx::Lg2,
        ("ex2", false) => Approx::Ex2,
        ("tanh", false) => Approx::Tanh,
        ("div", false) => Approx::Div,
        ("div", true) => Approx::DivFull,
        _ => return None,
    };
    let format = ty.format()?;
    let exists = match format {
        Format::F32 => true,
        Format::F64 => function == Approx::Rsqrt || function == Approx::Rcp && ftz,
        _ => matches!(function, Approx::Ex2 | Approx::Tanh),
    };
    if !exists {
        return None;
    }
    let op = ApproxOp {
        function,
        format,
        ftz,
    };
    let alu = if ty.kind() == Kind::Packed {
        Alu::ApproxPair(op)
    } else {
        Alu::Approx(op)
    };
    Some(signature(alu, ty, &[ty; 2][..operands.min(2)]))
}

fn parse_slct(words: &mut Modifiers<'_>) -> Option<Signature> {
    let ftz = words.take("ftz");
    let (ty, by) = (words.next_type()?, words.next_type()?);
    let alu = match by {
        Type::S32 if !ftz => Alu::SelectSigned,
        Type::F32 => Alu::SelectFloat { ftz },
        _ => return None,
    };
    matches!(ty.bits(), 16 | 32 | 64).then(|| signature(alu, ty, &[ty, ty, by]))
}

fn parse_prmt(words: &mut Modifiers<'_>) -> Option<Signature> {
    words.take("b32").then_some(())?;
    let mode = words.find(|word| {
        Some(match word {
            "f4e" => Permute::Forward4,
            "b4e" => Permute::Backward4,
            "rc8" => Permute::Replicate8,
            "ecl" => Permute::EdgeLeft,
            "ecr" => Permute::EdgeRight,
            "rc16" => Permute::Replicate16,
            _ => return None,
        })
    });
    let op = IntOp::Prmt(mode.unwrap_or(Permute::Index));
    let int = Int {
        bits: 32,
        signed: false,
    };
    Some(signature(Alu::Int(op, int), Type::B32, &[Type::B32; 3]))
}

fn parse_shf(words: &mut Modifiers<'_>) -> Option<Signature> {
    let left = words.find(|word| match word {
        "l" => Some(true),
        "r" => Some(false),
        _ => None,
    })?;
    let wrap = parse_wrap(words)?;
    words.take("b32").then_some(())?;
    let op = if left {
        IntOp::ShfLeft { wrap }
    } else {
        IntOp::ShfRight { wrap }
    };
    let int = Int {
        bits: 32,
        signed: false,
    };
    Some(signature(
        Alu::Int(op, int),
        Type::B32,
        &[Type::B32, Type::B32, Type::U32],
    ))
}

fn parse_dot(opcode: &str, words: &mut Modifiers<'_>) -> Option<Signature> {
    let high = match opcode {
        "dp4a" => false,
        _ => words.find(|word| match word {
            "lo" => Some(false),
            "hi" => Some(true),
            _ => None,
        })?,
    };
    let (a, b) = (words.next_type()?, words.next_type()?);
    if !a.is_integer() || !b.is_integer() || a.bits() != 32 || b.bits() != 32 {
        return None;
    }
    let signed = a.is_signed() || b.is_signed();
    let op = if opcode == "dp4a" {
        IntOp::Dp4a(a.is_signed(), b.is_signed())
    } else {
        IntOp::Dp2a(a.is_signed(), b.is_signed(), high)
    };
    let result = if signed { Type::S32 } else { Type::U32 };
    Some(signature(
        Alu::Int(op, Int { bits: 32, signed }),
        result,
        &[Type::B32, Type::B32, result],
    ))
}

/// Reads the word of a comparison for a type.
pub(crate) fn parse_comparison(
    words: &mut Modifiers<'_>,
    ty: Type,
    ftz: bool,
) -> Option<Comparison> {
    let name = words.find(|word| {
        const NAMES: [&str; 18] = [
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu",
            "gtu", "geu", "num", "nan",
        ];
        NAMES.into_iter().find(|name| *name == word)
    })?;
    let order = match name {
        "eq" | "equ" => Order::Equal,
        "ne" | "neu" => Order::NotEqual,
        "lt" | "lo" | "ltu" => Order::Less,
        "le" | "ls" | "leu" => Order::LessEqual,
        "gt" | "hi" | "gtu" => Order::Greater,
        _ => Order::GreaterEqual,
    };
    let unsigned_only = ["lo", "ls", "hi", "hs"].contains(&name);
    let float_only = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"].contains(&name);
    match (ty.kind(), ty.format()) {
        (Kind::Float | Kind::Packed, Some(format)) if !unsigned_only => {
            let order = match name {
                "num" => FloatOrder::Number,
                "nan" => FloatOrder::Nan,
                _ if float_only => FloatOrder::Unordered(order),
                _ => FloatOrder::Ordered(order),
            };
            Some(Comparison::Float(order, format, ftz))
        }
        (Kind::Bits, _) if !float_only && !unsigned_only && !ftz => {
            matches!(order, Order::Equal | Order::NotEqual).then_some(Comparison::Int(
                order,
                Int {
                    bits: ty.bits(),
                    signed: false,
                },
            ))
        }
        (Kind::Unsigned | Kind::Signed, _) if !float_only && !ftz => {
            let signed = ty.is_signed();
            (!signed || !unsigned_only).then_some(Comparison::Int(
                order,
                Int {
                    bits: ty.bits(),
                    signed,
                },
            ))
        }
        _ => None,
    }
}

pub(crate) fn parse_set(words: &mut Modifiers<'_>) -> Option<Signature> {
    let ftz = words.take("ftz");
    let from = Type::parse(words.left.pop()?)?;
    let to = Type::parse(words.left.pop()?)?;
    let comparison = parse_comparison(words, from, ftz)?;
    let pair = from.kind() == Kind::Packed;
    let yes = match to.kind() {
        Kind::Packed if to == from => to.format()?.one(),
        Kind::Unsigned | Kind::Signed if pair && to.bits() == 32 => 0xffff,
        Kind::Packed => return None,
        _ if pair => return None,
        Kind::Float => to.format()?.one(),
        _ => mask(to.bits()),
    };
    let alu = if pair {
        Alu::SetPair(comparison, yes)
    } else {
        Alu::Set(comparison, yes)
    };
    Some(signature(alu, to, &[from, from]))
}

fn parse_convert(words: &mut Modifiers<'_>, operands: usize) -> Option<Signature> {
    if words.take("pack") {
        return parse_pack(words, operands);
    }
    let from = Type::parse(words.left.pop()?)?;
    let to = Type::parse(words.left.pop()?)?;
    let ftz = words.take("ftz");
    let satfinite = words.take("satfinite");
    let sat = words.take("sat");
    let relu = words.take("relu");
    let integral = words.find(|word| {
        Some(match word {
            "rni" => Round::Nearest,
            "rzi" => Round::Zero,
            "rmi" => Round::Down,
            "rpi" => Round::Up,
            _ => return None,
        })
    });
    let round = integral.or_else(|| parse_round(words));
    let is_value = |ty: Type| ty.is_integer() || ty.format().is_some();
    if !is_value(to) || !is_value(from) {
        return None;
    }
    let convert = Convert {
        to,
        from,
        round,
        integral: integral.is_some(),
        ftz,
        sat,
        relu,
        satfinite,
    };
    let count = if to.kind() == Kind::Packed && from.kind() == Kind::Float {
        2
    } else {
        1
    };
    Some(signature(Alu::Convert(convert), to, &[from; 2][..count]))
}

fn parse_pack(words: &mut Modifiers<'_>, operands: usize) -> Option<Signature> {
    words.take("sat").then_some(())?;
    let merges = operands == 3;
    if merges {
        words.take("b32").then_some(())?;
    }
    if words.left.pop()? != "s32" {
        return None;
    }
    let (signed, bits) = words.find(|word| {
        let signed = word.starts_with('s');
        let bits = word.strip_prefix(['s', 'u'])?.parse().ok()?;
        let fits = [2, 4, 8, 16].contains(&bits) && (bits <= 8) == merges;
        fits.then_some((signed, bits))
    })?;
    let alu = Alu::Pack(Pack {
        bits,
        signed,
        merges,
    });
    Some(signature(
        alu,
        Type::B32,
        &[Type::S32, Type::S32, Type::B32][..operands.min(3)],
    ))
}
