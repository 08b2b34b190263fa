//! The approximate functions: computed in double precision and rounded once.
//!
//! The ISA bounds their error and does not define their bits, so results differ from a GPU's in the
//! last places; special values are exact.

use super::half;
use super::number::{Format, Number, Round};

/// An approximate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Approx {
    Rcp,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
    /// `div.approx`: a product with the reciprocal, so that a divisor beyond 2^126 gives zero.
    Div,
    /// `div.full`
    DivFull,
}

/// An approximate function with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ApproxOp {
    pub(crate) function: Approx,
    pub(crate) format: Format,
    pub(crate) ftz: bool,
}

impl ApproxOp {
    pub(crate) fn eval(self, a: u64, b: u64) -> u64 {
        let format = self.format;
        if format == Format::F64 {
            return self.double(a);
        }
        let input = |bits: u64| if self.ftz { format.flush(bits) } else { bits };
        let (x, y) = (to_f64(format, input(a)), to_f64(format, input(b)));
        let result = from_f64(format, self.compute(x, y));
        if self.ftz {
            format.flush(result)
        } else {
            result
        }
    }

    fn compute(self, x: f64, y: f64) -> f64 {
        match self.function {
            Approx::Rcp => 1.0 / x,
            Approx::Sqrt => x.sqrt(),
            Approx::Rsqrt => 1.0 / x.sqrt(),
            Approx::Sin => x.sin(),
            Approx::Cos => x.cos(),
            Approx::Lg2 => x.log2(),
            Approx::Ex2 => x.exp2(),
            Approx::Tanh => x.tanh(),
            Approx::Div => {
                let beyond = y.abs() > 2_f64.powi(126) && y.is_finite();
                if beyond && x.is_infinite() {
                    f64::NAN
                } else if beyond && !x.is_nan() {
                    0_f64.copysign(x * y)
                } else {
                    x / y
                }
            }
            Approx::DivFull => x / y,
        }
    }

    /// Double precision: with `.ftz`, only the upper halves of operand and result are there.
    fn double(self, a: u64) -> u64 {
        const HIGH: u64 = 0xffff_ffff_0000_0000;
        let format = Format::F64;
        if !self.ftz {
            let x = f64::from_bits(a);
            return match self.function {
                _ if x.is_nan() => a | 1 << 51,
                Approx::Rsqrt if x < 0.0 => format.negate(format.nan()),
                Approx::Rsqrt => (1.0 / x.sqrt()).to_bits(),
                _ => (1.0 / x).to_bits(),
            };
        }
        let x = f64::from_bits(format.flush(a) & HIGH);
        let result = match self.function {
            Approx::Rsqrt => 1.0 / x.sqrt(),
            _ => 1.0 / x,
        };
        if result.is_nan() || format.is_nan(a) {
            return 0x7fff_ffff_0000_0000;
        }
        format.flush(result.to_bits()) & HIGH
    }
}

pub(crate) fn to_f64(format: Format, bits: u64) -> f64 {
    if let Some(value) = half::to_double(format, bits) {
        return value;
    }
    f64::from_bits(Number::decode(format, bits).encode(Format::F64, Round::Nearest))
}

fn from_f64(format: Format, value: f64) -> u64 {
    if value.is_nan() {
        return format.nan();
    }
    if let Some(bits) = half::from_double(format, value) {
        return bits;
    }
    Number::decode(Format::F64, value.to_bits()).encode(format, Round::Nearest)
}
