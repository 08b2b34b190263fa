//! What `cvt` computes, between all types, on bits.

use super::alu_int::Int;
use super::half;
use super::number::{Format, Number, Round};
use super::types::{Kind, Type, mask, sign_extend};

/// A `cvt` with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Convert {
    pub(crate) to: Type,
    pub(crate) from: Type,
    pub(crate) round: Option<Round>,
    /// `.rni` and its kin: to an integral value, in whatever format.
    pub(crate) integral: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
    /// Beyond the range becomes the largest finite number, not infinity.
    pub(crate) satfinite: bool,
}

impl Convert {
    /// Converts `a`; a packed result holds `a` above `b`.
    pub(crate) fn eval(self, a: u64, b: u64) -> u64 {
        let (to, from) = (self.to, self.from);
        match (to.kind(), from.kind()) {
            (Kind::Packed, Kind::Float) => {
                let format = Self::format(to);
                let part = |bits| self.between_formats(Self::format(from), format, bits);
                part(a) << format.bits() | part(b)
            }
            (Kind::Packed, Kind::Packed) => {
                let (source, target) = (Self::format(from), Self::format(to));
                let low = a & mask(source.bits());
                let high = a >> source.bits() & mask(source.bits());
                self.between_formats(source, target, high) << target.bits()
                    | self.between_formats(source, target, low)
            }
            (Kind::Float, Kind::Float) => {
                if to == Type::Tf32 {
                    self.to_tf32(a)
                } else {
                    self.between_formats(Self::format(from), Self::format(to), a)
                }
            }
            (Kind::Float, _) => self.integer_to_float(a),
            (_, Kind::Float) => self.float_to_integer(a),
            _ => self.between_integers(a),
        }
    }

    fn format(of: Type) -> Format {
        of.format().unwrap_or(Format::F32)
    }

    fn int(of: Type) -> Int {
        Int {
            bits: of.bits(),
            signed: of.is_signed(),
        }
    }

    fn between_integers(self, a: u64) -> u64 {
        let value = integer(Self::int(self.from), a);
        let to = Self::int(self.to);
        wrap(
            if self.sat {
                value.clamp(to.min(), to.max())
            } else {
                value
            },
            to.bits,
        )
    }

    fn integer_to_float(self, a: u64) -> u64 {
        let format = Self::format(self.to);
        let number = Number::from_integer(integer(Self::int(self.from), a));
        self.clamp(
            format,
            number.encode(format, self.round.unwrap_or(Round::Nearest)),
        )
    }

    fn float_to_integer(self, a: u64) -> u64 {
        let (format, to) = (Self::format(self.from), Self::int(self.to));
        let a = if self.ftz { format.flush(a) } else { a };
        match Number::decode(format, a).to_integer(self.round.unwrap_or(Round::Zero)) {
            Some(value) => wrap(value.clamp(to.min(), to.max()), to.bits),
            None if format == Format::F64 || to.bits == 64 => 1 << (to.bits - 1),
            None => 0,
        }
    }

    fn between_formats(self, from: Format, to: Format, a: u64) -> u64 {
        let a = if self.ftz { from.flush(a) } else { a };
        if from.is_nan(a) {
            return self.clamp(to, nan_between(from, to, a));
        }
        let round = self.round.unwrap_or(Round::Nearest);
        let quick = (round == Round::Nearest && !self.integral && !self.ftz && !self.satfinite)
            .then(|| half::from_double(to, half::to_double(from, a)?))
            .flatten();
        if let Some(result) = quick {
            return self.clamp(to, result);
        }
        let number = Number::decode(from, a);
        let result = if self.integral {
            integral(number, round).encode(to, round)
        } else {
            number.encode(to, round)
        };
        let overflowed = to.is_infinite(result) || to.is_nan(result);
        let result = if self.satfinite && overflowed {
            to.largest() | result & to.negate(0)
        } else {
            result
        };
        let result = if self.ftz { to.flush(result) } else { result };
        self.clamp(to, result)
    }

    /// The 19 upper bits. Rounding away from zero is an addition of bits, whatever they mean.
    fn to_tf32(self, a: u64) -> u64 {
        const LOW: u64 = 0x1fff;
        let format = Format::F32;
        let bits = match self.round {
            Some(Round::NearestAway) => {
                let bits = a.wrapping_add(0x1000) & mask(32) & !LOW;
                let overflowed = !format.is_nan(a) && format.is_infinite(bits);
                if self.satfinite && overflowed {
                    bits & format.negate(0) | 0x7f7f_e000
                } else {
                    bits
                }
            }
            round => {
                let wide = self.between_formats(
                    format,
                    Format::Tf32,
                    if format.is_nan(a) { format.nan() } else { a },
                );
                let _ = round;
                return wide << 13;
            }
        };
        if self.relu && format.is_negative(bits) && !format.is_nan(bits) {
            0
        } else {
            bits
        }
    }

    fn clamp(self, format: Format, bits: u64) -> u64 {
        if self.sat {
            if format.is_nan(bits) || format.is_negative(bits) {
                0
            } else {
                bits.min(format.one())
            }
        } else if self.relu && format.is_negative(bits) && !format.is_nan(bits) {
            0
        } else {
            bits
        }
    }
}

/// What becomes of a NaN: as the hardware has it, double precision keeps what fits of the payload, the
/// others do not.
fn nan_between(from: Format, to: Format, a: u64) -> u64 {
    match (from, to) {
        (Format::F64, Format::F64) => a | 1 << 51,
        (Format::F32 | Format::Bf16, Format::F64) => {
            let wide = if from == Format::Bf16 { a << 16 } else { a };
            let payload = wide & mask(23);
            (wide >> 31) << 63 | 0x7ff8_0000_0000_0000 | payload << 29
        }
        (Format::F16, Format::F64) => {
            (a >> 15) << 63 | 0x7ff8_0000_0000_0000 | (a & mask(10)) << 42
        }
        (Format::F64, Format::F32 | Format::F16 | Format::Bf16) => {
            let kept = to.mantissa_bits();
            let quiet = to.infinity() | 1 << (kept - 1);
            (a >> 63) << (to.bits() - 1) | quiet | (a & mask(52)) >> (52 - kept)
        }
        (Format::Bf16, Format::F32) => a << 16,
        _ => to.nan(),
    }
}

/// The number rounded to an integral value, which keeps its sign when it is zero.
fn integral(number: Number, round: Round) -> Number {
    match number {
        Number::Finite {
            negative, exponent, ..
        } if exponent < 0 => {
            let magnitude = number.to_integer(round).unwrap_or(0).unsigned_abs();
            Number::Finite {
                negative,
                exponent: 0,
                significand: magnitude,
            }
        }
        other => other,
    }
}

fn integer(int: Int, a: u64) -> i128 {
    if int.signed {
        i128::from(sign_extend(a, int.bits))
    } else {
        i128::from(a & mask(int.bits))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower bits are what is wanted"
)]
fn wrap(value: i128, bits: u32) -> u64 {
    value.cast_unsigned() as u64 & mask(bits)
}

/// `cvt.pack`: converts two 32-bit integers with saturation and packs them, below `c` if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pack {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    pub(crate) merges: bool,
}

impl Pack {
    pub(crate) fn eval(self, a: u64, b: u64, c: u64) -> u64 {
        let int = Int {
            bits: self.bits,
            signed: self.signed,
        };
        let part = |bits: u64| {
            wrap(
                i128::from(sign_extend(bits, 32)).clamp(int.min(), int.max()),
                int.bits,
            )
        };
        let pair = part(a) << self.bits | part(b);
        let above = if self.merges { c << (2 * self.bits) } else { 0 };
        (above | pair) & mask(32)
    }
}
