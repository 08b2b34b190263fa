//! The common computations, over all lanes of a warp at once.
//!
//! Each does what [`Alu::eval`] does for one lane; [`Fast::of`] says which computations are here.

#![allow(
    clippy::float_cmp,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::verbose_bit_mask,
    reason = "these are the comparisons and shifts that the instructions name, NaN included"
)]

use super::alu::{Alu, Comparison};
use super::alu_float::{Clamp, Float, FloatOp, FloatOrder};
use super::alu_int::{Int, IntOp, Order};
use super::convert::Convert;
use super::number::{Format, Round};
use super::types::Type;

pub(crate) type Words = [u32; 32];
pub(crate) type Doubles = [u64; 32];

macro_rules! lanes {
    ($out:ty; ($($name:ident),*); $value:expr) => {{
        let mut out: $out = [0; 32];
        for lane in 0..32 {
            $(let $name = $name[lane];)*
            out[lane] = $value;
        }
        out
    }};
}

fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The bits of a single-precision result, whose NaN is always the same.
#[inline(always)]
fn single(value: f32) -> u32 {
    if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits()
    }
}

#[inline(always)]
fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

#[inline(always)]
fn flushed(value: f32) -> u32 {
    flush(single(value))
}

#[inline(always)]
fn ff(bits: u32) -> f32 {
    f32::from_bits(flush(bits))
}

macro_rules! shape {
    ($(#[$meta:meta])* $name:ident $operands:tt($($param:tt)*) -> $out:ty { $($variant:ident => $value:expr,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum $name { $($variant,)* }

        impl $name {
            #[inline(always)]
            pub(crate) fn eval(self, $($param)*) -> $out {
                match self { $(Self::$variant => lanes!($out; $operands; $value),)* }
            }
        }
    };
}

shape! {
    /// One word to a word.
    W1(a)(a: &Words) -> Words {
        Mov => a,
        Not => !a,
        Neg => a.wrapping_neg(),
        Abs => a.cast_signed().wrapping_abs().cast_unsigned(),
        Popc => a.count_ones(),
        Clz => a.leading_zeros(),
        Brev => a.reverse_bits(),
        Low8 => a & 0xff,
        Low16 => a & 0xffff,
        Sign8 => (a << 24).cast_signed().wrapping_shr(24).cast_unsigned(),
        Sign16 => (a << 16).cast_signed().wrapping_shr(16).cast_unsigned(),
        FNeg => if f(a).is_nan() { 0x7fff_ffff } else { a ^ 0x8000_0000 },
        FAbs => if f(a).is_nan() { 0x7fff_ffff } else { a & 0x7fff_ffff },
        FSqrt => single(f(a).sqrt()),
        FRcp => single(1.0 / f(a)),
        FFromS => (a.cast_signed() as f32).to_bits(),
        FFromU => (a as f32).to_bits(),
        SFromF => (f(a) as i32).cast_unsigned(),
        UFromF => f(a) as u32,
    }
}

shape! {
    /// Two words to a word.
    W2(a, b)(a: &Words, b: &Words) -> Words {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        MulLo => a.wrapping_mul(b),
        MulHiU => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        MulHiS => ((i64::from(a.cast_signed()) * i64::from(b.cast_signed())) >> 32) as u32,
        DivU => a.checked_div(b).unwrap_or(u32::MAX),
        RemU => a.checked_rem(b).unwrap_or(a),
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        Shl => if b > 31 { 0 } else { a << b },
        ShrU => if b > 31 { 0 } else { a >> b },
        ShrS => (a.cast_signed() >> b.min(31)).cast_unsigned(),
        MinU => a.min(b),
        MaxU => a.max(b),
        MinS => a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        MaxS => a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        FAdd => single(f(a) + f(b)),
        FSub => single(f(a) - f(b)),
        FMul => single(f(a) * f(b)),
        FDiv => single(f(a) / f(b)),
        FAddFtz => flushed(ff(a) + ff(b)),
        FSubFtz => flushed(ff(a) - ff(b)),
        FMulFtz => flushed(ff(a) * ff(b)),
        // A NaN gives way to the other; of two zeros, the positive one is greater.
        FMin => if f(a).is_nan() && f(b).is_nan() { 0x7fff_ffff }
            else if f(b).is_nan() || f(a) < f(b) || f(a) == f(b) && a > b { a } else { b },
        FMax => if f(a).is_nan() && f(b).is_nan() { 0x7fff_ffff }
            else if f(b).is_nan() || f(a) > f(b) || f(a) == f(b) && a < b { a } else { b },
    }
}

shape! {
    /// Three words to a word.
    W3(a, b, c)(a: &Words, b: &Words, c: &Words) -> Words {
        MadLo => a.wrapping_mul(b).wrapping_add(c),
        FFma => single(f(a).mul_add(f(b), f(c))),
        FFmaFtz => flushed(ff(a).mul_add(ff(b), ff(c))),
        ShfLeft => if c & 31 == 0 { b } else { b << (c & 31) | a >> (32 - (c & 31)) },
        ShfRight => if c & 31 == 0 { a } else { a >> (c & 31) | b << (32 - (c & 31)) },
    }
}

shape! {
    /// One double word to a double word.
    D1(a)(a: &Doubles) -> Doubles {
        Mov => a,
        Not => !a,
        Neg => a.wrapping_neg(),
        FNeg => if d(a).is_nan() { a | 1 << 51 } else { a ^ 1 << 63 },
        FAbs => if d(a).is_nan() { a | 1 << 51 } else { a & !(1 << 63) },
        FSqrt => double_of(FloatOp::Sqrt, d(a).sqrt(), a, 0, 0),
        FRcp => double_of(FloatOp::Rcp, 1.0 / d(a), a, 0, 0),
    }
}

shape! {
    /// Two double words to a double word.
    D2(a, b)(a: &Doubles, b: &Doubles) -> Doubles {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        MulLo => a.wrapping_mul(b),
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        MinU => a.min(b),
        MaxU => a.max(b),
        MinS => a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        MaxS => a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        FAdd => double_of(FloatOp::Add, d(a) + d(b), a, b, 0),
        FSub => double_of(FloatOp::Sub, d(a) - d(b), a, b, 0),
        FMul => double_of(FloatOp::Mul, d(a) * d(b), a, b, 0),
        FDiv => double_of(FloatOp::Div, d(a) / d(b), a, b, 0),
    }
}

shape! {
    /// Three double words to a double word.
    D3(a, b, c)(a: &Doubles, b: &Doubles, c: &Doubles) -> Doubles {
        MadLo => a.wrapping_mul(b).wrapping_add(c),
        FFma => double_of(FloatOp::Fma, d(a).mul_add(d(b), d(c)), a, b, c),
    }
}

shape! {
    /// A double word shifted by a word.
    Shift(a, b)(a: &Doubles, b: &Words) -> Doubles {
        Left => if b > 63 { 0 } else { a << b },
        RightU => if b > 63 { 0 } else { a >> b },
        RightS => (a.cast_signed() >> b.min(63)).cast_unsigned(),
    }
}

shape! {
    /// A word to a double word.
    WD(a)(a: &Words) -> Doubles {
        Zero => u64::from(a),
        Sign => i64::from(a.cast_signed()).cast_unsigned(),
        FFromS => f64::from(a.cast_signed()).to_bits(),
        FFromU => f64::from(a).to_bits(),
        Widen => if f(a).is_nan() { widen_nan(a) } else { f64::from(f(a)).to_bits() },
    }
}

shape! {
    /// A double word to a word.
    DW(a)(a: &Doubles) -> Words {
        Low => a as u32,
        Low16 => a as u32 & 0xffff,
        Narrow => if d(a).is_nan() { narrow_nan(a) } else { (d(a) as f32).to_bits() },
    }
}

shape! {
    /// Two words to a double word.
    Wide(a, b)(a: &Words, b: &Words) -> Doubles {
        MulU => u64::from(a) * u64::from(b),
        MulS => (i64::from(a.cast_signed()) * i64::from(b.cast_signed())).cast_unsigned(),
    }
}

shape! {
    /// Two words and a double word to a double word.
    WideAdd(a, b, c)(a: &Words, b: &Words, c: &Doubles) -> Doubles {
        MadU => (u64::from(a) * u64::from(b)).wrapping_add(c),
        MadS => (i64::from(a.cast_signed()) * i64::from(b.cast_signed())).cast_unsigned().wrapping_add(c),
    }
}

/// The bits of a double-precision result; a NaN is what the slow path says.
#[inline(always)]
fn double_of(op: FloatOp, value: f64, a: u64, b: u64, c: u64) -> u64 {
    if value.is_nan() {
        double_nan(op, a, b, c)
    } else {
        value.to_bits()
    }
}

#[cold]
fn double_nan(op: FloatOp, a: u64, b: u64, c: u64) -> u64 {
    Float {
        format: Format::F64,
        round: Round::Nearest,
        ftz: false,
        clamp: Clamp::None,
    }
    .eval(op, [a, b, c])
}

#[cold]
fn widen_nan(a: u32) -> u64 {
    convert(Type::F64, Type::F32).eval(u64::from(a), 0)
}

#[cold]
fn narrow_nan(a: u64) -> u32 {
    convert(Type::F32, Type::F64).eval(a, 0) as u32
}

fn convert(to: Type, from: Type) -> Convert {
    Convert {
        to,
        from,
        round: None,
        integral: false,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    }
}

macro_rules! comparison {
    ($(#[$meta:meta])* $name:ident($type:ty) { $($variant:ident => |$a:ident, $b:ident| $value:expr,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum $name { $($variant,)* }

        impl $name {
            /// A bit for each lane.
            #[inline(always)]
            pub(crate) fn eval(self, a: &$type, b: &$type) -> u32 {
                match self {
                    $(Self::$variant => {
                        let mut flags = [0_u8; 32];
                        for lane in 0..32 {
                            let ($a, $b) = (a[lane], b[lane]);
                            flags[lane] = u8::from($value);
                        }
                        gather(&flags)
                    })*
                }
            }
        }
    };
}

/// The lowest bit of each byte.
#[inline(always)]
fn gather(flags: &[u8; 32]) -> u32 {
    let mut bits = 0;
    for (at, eight) in flags.chunks_exact(8).enumerate() {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(eight);
        // Each product term moves one flag to its own bit of the highest byte.
        let packed = u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= (packed as u32) << (8 * at);
    }
    bits
}

comparison! {
    /// Compares words.
    CmpW(Words) {
        Eq => |a, b| a == b,
        Ne => |a, b| a != b,
        LtU => |a, b| a < b,
        LeU => |a, b| a <= b,
        GtU => |a, b| a > b,
        GeU => |a, b| a >= b,
        LtS => |a, b| a.cast_signed() < b.cast_signed(),
        LeS => |a, b| a.cast_signed() <= b.cast_signed(),
        GtS => |a, b| a.cast_signed() > b.cast_signed(),
        GeS => |a, b| a.cast_signed() >= b.cast_signed(),
        FEq => |a, b| f(a) == f(b),
        FNe => |a, b| f(a) < f(b) || f(a) > f(b),
        FLt => |a, b| f(a) < f(b),
        FLe => |a, b| f(a) <= f(b),
        FGt => |a, b| f(a) > f(b),
        FGe => |a, b| f(a) >= f(b),
        FNeu => |a, b| f(a) != f(b),
        FLtu => |a, b| !(f(a) >= f(b)),
        FLeu => |a, b| !(f(a) > f(b)),
        FGtu => |a, b| !(f(a) <= f(b)),
        FGeu => |a, b| !(f(a) < f(b)),
    }
}

comparison! {
    /// Compares double words.
    CmpD(Doubles) {
        Eq => |a, b| a == b,
        Ne => |a, b| a != b,
        LtU => |a, b| a < b,
        LeU => |a, b| a <= b,
        GtU => |a, b| a > b,
        GeU => |a, b| a >= b,
        LtS => |a, b| a.cast_signed() < b.cast_signed(),
        LeS => |a, b| a.cast_signed() <= b.cast_signed(),
        GtS => |a, b| a.cast_signed() > b.cast_signed(),
        GeS => |a, b| a.cast_signed() >= b.cast_signed(),
        FEq => |a, b| d(a) == d(b),
        FLt => |a, b| d(a) < d(b),
        FLe => |a, b| d(a) <= d(b),
        FGt => |a, b| d(a) > d(b),
        FGe => |a, b| d(a) >= d(b),
        FNeu => |a, b| d(a) != d(b),
    }
}

/// A computation that is done over all lanes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fast {
    W1(W1),
    W2(W2),
    W3(W3),
    D1(D1),
    D2(D2),
    D3(D3),
    Shift(Shift),
    WD(WD),
    DW(DW),
    Wide(Wide),
    WideAdd(WideAdd),
}

impl Fast {
    /// The fast form of a computation whose result goes to a register of `to` bits.
    pub(crate) fn of(alu: Alu, to: u32) -> Option<Self> {
        match alu {
            Alu::Int(op, int) => of_int(op, int),
            Alu::Float(op, float) => of_float(op, float),
            Alu::Convert(convert) => of_convert(convert, to),
            _ => None,
        }
    }
}

fn of_int(op: IntOp, int: Int) -> Option<Fast> {
    use Fast::{D1 as d1, D2 as d2, D3 as d3, W1 as w1, W2 as w2, W3 as w3};
    use IntOp as O;
    let signed = int.signed;
    Some(match (int.bits, op) {
        (16 | 32, O::And) => w2(W2::And),
        (16 | 32, O::Or) => w2(W2::Or),
        (16 | 32, O::Xor) => w2(W2::Xor),
        (32, O::Not) => w1(W1::Not),
        (32, O::Neg) => w1(W1::Neg),
        (32, O::Abs) => w1(W1::Abs),
        (32, O::Popc) => w1(W1::Popc),
        (32, O::Clz) => w1(W1::Clz),
        (32, O::Brev) => w1(W1::Brev),
        (32, O::Add) => w2(W2::Add),
        (32, O::Sub) => w2(W2::Sub),
        (32, O::MulLo) => w2(W2::MulLo),
        (32, O::MulHi) => w2(if signed { W2::MulHiS } else { W2::MulHiU }),
        (32, O::Div) if !signed => w2(W2::DivU),
        (32, O::Rem) if !signed => w2(W2::RemU),
        (32, O::Shl) => w2(W2::Shl),
        (32, O::Shr) => w2(if signed { W2::ShrS } else { W2::ShrU }),
        (32, O::Min) => w2(if signed { W2::MinS } else { W2::MinU }),
        (32, O::Max) => w2(if signed { W2::MaxS } else { W2::MaxU }),
        (32, O::MadLo) => w3(W3::MadLo),
        (32, O::ShfLeft { wrap: true }) => w3(W3::ShfLeft),
        (32, O::ShfRight { wrap: true }) => w3(W3::ShfRight),
        (32, O::MulWide) => Fast::Wide(if signed { Wide::MulS } else { Wide::MulU }),
        (32, O::MadWide) => Fast::WideAdd(if signed { WideAdd::MadS } else { WideAdd::MadU }),
        (64, O::Not) => d1(D1::Not),
        (64, O::Neg) => d1(D1::Neg),
        (64, O::Add) => d2(D2::Add),
        (64, O::Sub) => d2(D2::Sub),
        (64, O::MulLo) => d2(D2::MulLo),
        (64, O::And) => d2(D2::And),
        (64, O::Or) => d2(D2::Or),
        (64, O::Xor) => d2(D2::Xor),
        (64, O::Min) => d2(if signed { D2::MinS } else { D2::MinU }),
        (64, O::Max) => d2(if signed { D2::MaxS } else { D2::MaxU }),
        (64, O::MadLo) => d3(D3::MadLo),
        (64, O::Shl) => Fast::Shift(Shift::Left),
        (64, O::Shr) => Fast::Shift(if signed { Shift::RightS } else { Shift::RightU }),
        _ => return None,
    })
}

fn of_float(op: FloatOp, float: Float) -> Option<Fast> {
    if float.clamp != Clamp::None || float.round != Round::Nearest {
        return None;
    }
    Some(match (float.format, float.ftz, op) {
        (Format::F32, false, FloatOp::Neg) => Fast::W1(W1::FNeg),
        (Format::F32, false, FloatOp::Abs) => Fast::W1(W1::FAbs),
        (Format::F32, false, FloatOp::Sqrt) => Fast::W1(W1::FSqrt),
        (Format::F32, false, FloatOp::Rcp) => Fast::W1(W1::FRcp),
        (Format::F32, false, FloatOp::Add) => Fast::W2(W2::FAdd),
        (Format::F32, false, FloatOp::Sub) => Fast::W2(W2::FSub),
        (Format::F32, false, FloatOp::Mul) => Fast::W2(W2::FMul),
        (Format::F32, false, FloatOp::Div) => Fast::W2(W2::FDiv),
        (Format::F32, true, FloatOp::Add) => Fast::W2(W2::FAddFtz),
        (Format::F32, true, FloatOp::Sub) => Fast::W2(W2::FSubFtz),
        (Format::F32, true, FloatOp::Mul) => Fast::W2(W2::FMulFtz),
        (
            Format::F32,
            false,
            FloatOp::Min {
                nan: false,
                xorsign: false,
            },
        ) => Fast::W2(W2::FMin),
        (
            Format::F32,
            false,
            FloatOp::Max {
                nan: false,
                xorsign: false,
            },
        ) => Fast::W2(W2::FMax),
        (Format::F32, false, FloatOp::Fma) => Fast::W3(W3::FFma),
        (Format::F32, true, FloatOp::Fma) => Fast::W3(W3::FFmaFtz),
        (Format::F64, _, FloatOp::Neg) => Fast::D1(D1::FNeg),
        (Format::F64, _, FloatOp::Abs) => Fast::D1(D1::FAbs),
        (Format::F64, _, FloatOp::Sqrt) => Fast::D1(D1::FSqrt),
        (Format::F64, _, FloatOp::Rcp) => Fast::D1(D1::FRcp),
        (Format::F64, _, FloatOp::Add) => Fast::D2(D2::FAdd),
        (Format::F64, _, FloatOp::Sub) => Fast::D2(D2::FSub),
        (Format::F64, _, FloatOp::Mul) => Fast::D2(D2::FMul),
        (Format::F64, _, FloatOp::Div) => Fast::D2(D2::FDiv),
        (Format::F64, _, FloatOp::Fma) => Fast::D3(D3::FFma),
        _ => return None,
    })
}

/// `to` is the width of the destination, to which an integer is extended by its own type.
fn of_convert(convert: Convert, to: u32) -> Option<Fast> {
    let Convert {
        to: target,
        from,
        round,
        integral,
        ftz,
        sat,
        relu,
        satfinite,
    } = convert;
    if ftz || sat || relu || satfinite {
        return None;
    }
    let same = target.bits() == to;
    Some(match (target, from) {
        (Type::F32, Type::S32) if round == Some(Round::Nearest) => Fast::W1(W1::FFromS),
        (Type::F32, Type::U32) if round == Some(Round::Nearest) => Fast::W1(W1::FFromU),
        (Type::F64, Type::S32) => Fast::WD(WD::FFromS),
        (Type::F64, Type::U32) => Fast::WD(WD::FFromU),
        (Type::F64, Type::F32) if !integral => Fast::WD(WD::Widen),
        (Type::F32, Type::F64) if round == Some(Round::Nearest) && !integral => {
            Fast::DW(DW::Narrow)
        }
        (Type::S32, Type::F32) if round == Some(Round::Zero) && same => Fast::W1(W1::SFromF),
        (Type::U32, Type::F32) if round == Some(Round::Zero) && same => Fast::W1(W1::UFromF),
        (target, from) if target.is_integer() && from.is_integer() => {
            return of_integers(target, from, to);
        }
        _ => return None,
    })
}

fn of_integers(target: Type, from: Type, to: u32) -> Option<Fast> {
    // Narrowing, then extending to the destination by the target's sign, is one step where the
    // target is no narrower than the source, or where it fills the destination.
    let narrower = if target.bits() < from.bits() {
        target
    } else {
        from
    };
    let signed = if target.bits() <= from.bits() {
        target.is_signed()
    } else {
        from.is_signed()
    };
    let kept = narrower.bits();
    let wide = from.bits() == 64;
    // Extending beyond the target must go by the target's sign.
    if target.bits() > from.bits() && to > target.bits() && target.is_signed() != from.is_signed() {
        return None;
    }
    Some(match (wide, to, kept, signed) {
        (false, 32, 32, _) => Fast::W1(W1::Mov),
        (false, 32, 16, false) => Fast::W1(W1::Low16),
        (false, 32, 16, true) => Fast::W1(W1::Sign16),
        (false, 32, 8, false) => Fast::W1(W1::Low8),
        (false, 32, 8, true) => Fast::W1(W1::Sign8),
        (false, 16, 16, _) => Fast::W1(W1::Low16),
        (false, 16, 8, false) => Fast::W1(W1::Low8),
        (false, 64, 32, false) => Fast::WD(WD::Zero),
        (false, 64, 32, true) => Fast::WD(WD::Sign),
        (true, 64, 64, _) => Fast::D1(D1::Mov),
        (true, 32, 32, _) => Fast::DW(DW::Low),
        (true, 16, 16, _) => Fast::DW(DW::Low16),
        _ => return None,
    })
}

/// A comparison that is done over all lanes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FastCompare {
    W(CmpW),
    D(CmpD),
}

impl FastCompare {
    pub(crate) fn of(comparison: Comparison) -> Option<Self> {
        match comparison {
            Comparison::Int(order, int) => of_order(order, int),
            Comparison::Float(order, format, false) => of_float_order(order, format),
            Comparison::Float(..) => None,
        }
    }
}

fn of_order(order: Order, int: Int) -> Option<FastCompare> {
    macro_rules! pick {
        ($name:ident, $wrap:path) => {
            $wrap(match (order, int.signed) {
                (Order::Equal, _) => $name::Eq,
                (Order::NotEqual, _) => $name::Ne,
                (Order::Less, false) => $name::LtU,
                (Order::LessEqual, false) => $name::LeU,
                (Order::Greater, false) => $name::GtU,
                (Order::GreaterEqual, false) => $name::GeU,
                (Order::Less, true) => $name::LtS,
                (Order::LessEqual, true) => $name::LeS,
                (Order::Greater, true) => $name::GtS,
                (Order::GreaterEqual, true) => $name::GeS,
            })
        };
    }
    match int.bits {
        // A 16-bit register holds zeros above.
        16 if !int.signed => Some(pick!(CmpW, FastCompare::W)),
        32 => Some(pick!(CmpW, FastCompare::W)),
        64 => Some(pick!(CmpD, FastCompare::D)),
        _ => None,
    }
}

fn of_float_order(order: FloatOrder, format: Format) -> Option<FastCompare> {
    use FloatOrder::{Ordered, Unordered};
    match format {
        Format::F32 => Some(FastCompare::W(match order {
            Ordered(Order::Equal) => CmpW::FEq,
            Ordered(Order::NotEqual) => CmpW::FNe,
            Ordered(Order::Less) => CmpW::FLt,
            Ordered(Order::LessEqual) => CmpW::FLe,
            Ordered(Order::Greater) => CmpW::FGt,
            Ordered(Order::GreaterEqual) => CmpW::FGe,
            Unordered(Order::NotEqual) => CmpW::FNeu,
            Unordered(Order::Less) => CmpW::FLtu,
            Unordered(Order::LessEqual) => CmpW::FLeu,
            Unordered(Order::Greater) => CmpW::FGtu,
            Unordered(Order::GreaterEqual) => CmpW::FGeu,
            _ => return None,
        })),
        Format::F64 => Some(FastCompare::D(match order {
            Ordered(Order::Equal) => CmpD::FEq,
            Ordered(Order::Less) => CmpD::FLt,
            Ordered(Order::LessEqual) => CmpD::FLe,
            Ordered(Order::Greater) => CmpD::FGt,
            Ordered(Order::GreaterEqual) => CmpD::FGe,
            Unordered(Order::NotEqual) => CmpD::FNeu,
            _ => return None,
        })),
        _ => None,
    }
}
