//! What floating-point instructions compute, on bits: every format, rounding, `.ftz`, `.sat` and
//! `.relu`.
//!
//! Single and double precision rounded to nearest use the host's arithmetic, which is the same; all
//! else goes through [`Number`]. NaNs are those of the hardware, see [`Float::quiet`].

use std::cmp::Ordering;

use super::half;
use super::number::{Format, Number, Round};

/// What is done to a result last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Clamp {
    None,
    /// `.sat`: into 0 to 1, NaN to 0.
    Unit,
    /// `.relu`: negative numbers to 0.
    Relu,
}

/// A floating-point type with the modifiers of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Float {
    pub(crate) format: Format,
    pub(crate) round: Round,
    pub(crate) ftz: bool,
    pub(crate) clamp: Clamp,
}

/// A floating-point instruction apart from its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FloatOp {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
    Abs,
    Neg,
    Min { nan: bool, xorsign: bool },
    Max { nan: bool, xorsign: bool },
    CopySign,
}

impl Float {
    pub(crate) fn eval(self, op: FloatOp, [a, b, c]: [u64; 3]) -> u64 {
        let format = self.format;
        let input = |bits: u64| if self.ftz { format.flush(bits) } else { bits };
        let (a, b, c) = (input(a), input(b), input(c));
        match op {
            FloatOp::Abs => self.finish(self.unless_nan(a, format.magnitude(a))),
            FloatOp::Neg => self.finish(self.unless_nan(a, format.negate(a))),
            FloatOp::CopySign => {
                let sign = format.negate(0);
                a & sign | b & !sign
            }
            FloatOp::Min { nan, xorsign } => self.select(a, b, nan, xorsign, Ordering::Less),
            FloatOp::Max { nan, xorsign } => self.select(a, b, nan, xorsign, Ordering::Greater),
            _ => self.arithmetic(op, a, b, c),
        }
    }

    fn arithmetic(self, op: FloatOp, a: u64, b: u64, c: u64) -> u64 {
        let format = self.format;
        let operands: &[u64] = match op {
            FloatOp::Fma => &[a, b, c],
            FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Div => &[a, b],
            _ => &[a],
        };
        if let Some(&nan) = operands.iter().find(|&&bits| format.is_nan(bits)) {
            return self.finish(self.quiet(nan));
        }
        let result = if self.round == Round::Nearest && self.is_native() {
            self.native(op, a, b, c)
        } else if let Some(result) = self.by_double(op, a, b, c) {
            result
        } else {
            let number = |bits| Number::decode(format, bits);
            let exact = match op {
                FloatOp::Add => number(a).add(number(b), self.round),
                FloatOp::Sub => number(a).add(number(b).negate(), self.round),
                FloatOp::Mul => number(a).multiply(number(b)),
                FloatOp::Fma => number(a).multiply(number(b)).add(number(c), self.round),
                FloatOp::Div => number(a).divide(number(b)),
                FloatOp::Rcp => Number::from_integer(1).divide(number(a)),
                _ => number(a).square_root(),
            };
            exact.encode(format, self.round)
        };
        let result = if format.is_nan(result) {
            self.made_nan()
        } else {
            result
        };
        self.finish(result)
    }

    fn is_native(self) -> bool {
        matches!(self.format, Format::F32 | Format::F64)
    }

    /// Sums and products of 16-bit numbers, which a double holds exactly or but for the last bit.
    fn by_double(self, op: FloatOp, a: u64, b: u64, c: u64) -> Option<u64> {
        if self.round != Round::Nearest || !matches!(self.format, Format::F16 | Format::Bf16) {
            return None;
        }
        let value = |bits| half::to_double(self.format, bits);
        let result = match op {
            FloatOp::Add => half::add_odd(value(a)?, value(b)?),
            FloatOp::Sub => half::add_odd(value(a)?, -value(b)?),
            FloatOp::Mul => value(a)? * value(b)?,
            FloatOp::Fma => half::add_odd(value(a)? * value(b)?, value(c)?),
            _ => return None,
        };
        if result.is_nan() {
            return Some(self.format.nan());
        }
        half::from_double(self.format, result)
    }

    fn native(self, op: FloatOp, a: u64, b: u64, c: u64) -> u64 {
        macro_rules! compute {
            ($a:expr, $b:expr, $c:expr) => {
                match op {
                    FloatOp::Add => $a + $b,
                    FloatOp::Sub => $a - $b,
                    FloatOp::Mul => $a * $b,
                    FloatOp::Fma => $a.mul_add($b, $c),
                    FloatOp::Div => $a / $b,
                    FloatOp::Rcp => 1.0 / $a,
                    _ => $a.sqrt(),
                }
            };
        }
        if self.format == Format::F32 {
            let f = |bits: u64| f32::from_bits(bits as u32);
            u64::from(compute!(f(a), f(b), f(c)).to_bits())
        } else {
            compute!(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).to_bits()
        }
    }

    /// The NaN that becomes of a NaN operand: double precision hands it on, the others do not.
    pub(crate) fn quiet(self, nan: u64) -> u64 {
        match self.format {
            Format::F64 => nan | 1 << 51,
            format => format.nan(),
        }
    }

    /// The NaN that an operation makes of numbers.
    fn made_nan(self) -> u64 {
        match self.format {
            Format::F64 => self.format.negate(self.format.nan()),
            format => format.nan(),
        }
    }

    /// Flushes and clamps a result.
    pub(crate) fn finish(self, result: u64) -> u64 {
        let format = self.format;
        let result = if self.ftz {
            format.flush(result)
        } else {
            result
        };
        match self.clamp {
            Clamp::None => result,
            Clamp::Unit => {
                if format.is_nan(result) || format.is_negative(result) {
                    0
                } else {
                    result.min(format.one())
                }
            }
            Clamp::Relu => {
                if format.is_negative(result) && !format.is_nan(result) {
                    0
                } else {
                    result
                }
            }
        }
    }

    /// A NaN does not change its sign.
    fn unless_nan(self, operand: u64, result: u64) -> u64 {
        if self.format.is_nan(operand) {
            self.quiet(operand)
        } else {
            result
        }
    }

    fn select(self, a: u64, b: u64, nan: bool, xorsign: bool, wanted: Ordering) -> u64 {
        let format = self.format;
        let sign = (a ^ b) & format.negate(0);
        let (a, b) = if xorsign {
            (format.magnitude(a), format.magnitude(b))
        } else {
            (a, b)
        };
        let picked = match (format.is_nan(a), format.is_nan(b)) {
            (true, true) => self.quiet(a),
            (true, false) => {
                if nan {
                    self.quiet(a)
                } else {
                    b
                }
            }
            (false, true) => {
                if nan {
                    self.quiet(b)
                } else {
                    a
                }
            }
            (false, false) => {
                if total_order(format, a, b) == wanted {
                    a
                } else {
                    b
                }
            }
        };
        let signed = if xorsign && !format.is_nan(picked) {
            picked | sign
        } else {
            picked
        };
        self.finish(signed)
    }
}

/// The order of two numbers, minus zero below zero.
fn total_order(format: Format, a: u64, b: u64) -> Ordering {
    let key = |bits: u64| {
        let magnitude = format.magnitude(bits).cast_signed();
        if format.is_negative(bits) {
            -1 - magnitude
        } else {
            magnitude
        }
    };
    key(a).cmp(&key(b))
}

/// How two numbers are compared: the answer for each order of them, and for NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FloatOrder {
    /// False for NaN.
    Ordered(super::alu_int::Order),
    /// True for NaN.
    Unordered(super::alu_int::Order),
    /// `.num`: neither is NaN.
    Number,
    /// `.nan`: one is NaN.
    Nan,
}

impl FloatOrder {
    pub(crate) fn holds(self, order: Option<Ordering>) -> bool {
        match (self, order) {
            (Self::Ordered(wanted) | Self::Unordered(wanted), Some(order)) => wanted.holds(order),
            (Self::Number, order) => order.is_some(),
            (Self::Nan, order) => order.is_none(),
            (Self::Ordered(_), None) => false,
            (Self::Unordered(_), None) => true,
        }
    }
}

pub(crate) fn compare(order: FloatOrder, format: Format, ftz: bool, a: u64, b: u64) -> bool {
    let input = |bits: u64| if ftz { format.flush(bits) } else { bits };
    let (a, b) = (input(a), input(b));
    let result = if format.is_nan(a) || format.is_nan(b) {
        None
    } else if format.is_zero(a) && format.is_zero(b) {
        Some(Ordering::Equal)
    } else {
        Some(total_order(format, a, b))
    };
    order.holds(result)
}

/// What `testp` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Property {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

pub(crate) fn test(property: Property, format: Format, a: u64) -> bool {
    let (nan, infinite) = (format.is_nan(a), format.is_infinite(a));
    let subnormal = format.is_subnormal(a);
    match property {
        Property::Finite => !nan && !infinite,
        Property::Infinite => infinite,
        Property::Number => !nan,
        Property::NotANumber => nan,
        // Zeros count as normal.
        Property::Normal => !nan && !infinite && !subnormal,
        Property::Subnormal => subnormal,
    }
}
