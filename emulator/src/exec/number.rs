//! Floating-point numbers of every format PTX has, computed exactly and rounded once in any direction.
//!
//! A [`Number`] is a sign, a significand of up to 127 bits and an exponent. Where an operation cannot
//! keep all bits, the lowest one is set instead ("sticky"), far below what any format keeps.

/// How a number is laid out in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    F16,
    Bf16,
    /// 19 bits, in the upper bits of a 32-bit register.
    Tf32,
    F32,
    F64,
    /// 4 bits of exponent, 3 of mantissa, no infinity.
    E4m3,
    E5m2,
}

impl Format {
    pub(crate) const fn mantissa_bits(self) -> u32 {
        match self {
            Self::F16 | Self::Tf32 => 10,
            Self::Bf16 => 7,
            Self::F32 => 23,
            Self::F64 => 52,
            Self::E4m3 => 3,
            Self::E5m2 => 2,
        }
    }

    pub(crate) const fn exponent_bits(self) -> u32 {
        match self {
            Self::F16 | Self::E5m2 => 5,
            Self::Bf16 | Self::F32 | Self::Tf32 => 8,
            Self::F64 => 11,
            Self::E4m3 => 4,
        }
    }

    /// The bits of the pattern this module computes; of a `.tf32` the upper ones of its register.
    pub(crate) const fn bits(self) -> u32 {
        1 + self.exponent_bits() + self.mantissa_bits()
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits() - 1)) - 1
    }

    const fn sign_bit(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// The exponent field that means infinity or NaN.
    const fn special(self) -> u64 {
        (1 << self.exponent_bits()) - 1
    }

    pub(crate) const fn infinity(self) -> u64 {
        self.special() << self.mantissa_bits()
    }

    /// The largest finite pattern.
    pub(crate) const fn largest(self) -> u64 {
        match self {
            Self::E4m3 => 0x7e,
            _ => self.infinity() - 1,
        }
    }

    /// The NaN that arithmetic answers.
    pub(crate) const fn nan(self) -> u64 {
        match self {
            Self::F64 => 0x7ff8_0000_0000_0000,
            _ => self.sign_bit() - 1,
        }
    }

    pub(crate) const fn one(self) -> u64 {
        (self.bias() as u64) << self.mantissa_bits()
    }

    pub(crate) const fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        match self {
            Self::E4m3 => magnitude == 0x7f,
            _ => magnitude > self.infinity(),
        }
    }

    pub(crate) const fn is_infinite(self, bits: u64) -> bool {
        !matches!(self, Self::E4m3) && bits & (self.sign_bit() - 1) == self.infinity()
    }

    pub(crate) const fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude >> self.mantissa_bits() == 0
    }

    pub(crate) const fn is_zero(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) == 0
    }

    pub(crate) const fn is_negative(self, bits: u64) -> bool {
        bits & self.sign_bit() != 0
    }

    pub(crate) const fn negate(self, bits: u64) -> u64 {
        bits ^ self.sign_bit()
    }

    pub(crate) const fn magnitude(self, bits: u64) -> u64 {
        bits & (self.sign_bit() - 1)
    }

    /// A zero of the same sign instead of a subnormal number.
    pub(crate) const fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) {
            bits & self.sign_bit()
        } else {
            bits
        }
    }
}

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Round {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`
    Zero,
    /// `.rm`: towards minus infinity.
    Down,
    /// `.rp`: towards plus infinity.
    Up,
}

/// A number apart from its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `significand * 2^exponent`, negated if so.
    Finite {
        negative: bool,
        exponent: i32,
        significand: u128,
    },
}

use Number::{Finite, Infinite, Nan};

impl Number {
    pub(crate) fn decode(format: Format, bits: u64) -> Self {
        if format.is_nan(bits) {
            return Nan;
        }
        let negative = format.is_negative(bits);
        if format.is_infinite(bits) {
            return Infinite { negative };
        }
        let magnitude = format.magnitude(bits);
        let field = magnitude >> format.mantissa_bits();
        let mantissa = magnitude & ((1 << format.mantissa_bits()) - 1);
        let hidden = u64::from(field != 0) << format.mantissa_bits();
        let scale = i32::try_from(field.max(1)).unwrap_or(0);
        Finite {
            negative,
            exponent: scale - format.bias() - format.mantissa_bits().cast_signed(),
            significand: u128::from(mantissa | hidden),
        }
    }

    pub(crate) fn from_integer(value: i128) -> Self {
        Finite {
            negative: value < 0,
            exponent: 0,
            significand: value.unsigned_abs(),
        }
    }

    pub(crate) fn negate(self) -> Self {
        match self {
            Nan => Nan,
            Infinite { negative } => Infinite {
                negative: !negative,
            },
            Finite {
                negative,
                exponent,
                significand,
            } => Finite {
                negative: !negative,
                exponent,
                significand,
            },
        }
    }

    /// The sum; an exact zero is negative only when rounding down.
    pub(crate) fn add(self, other: Self, round: Round) -> Self {
        let (a, b) = match (self, other) {
            (Nan, _) | (_, Nan) => return Nan,
            (Infinite { negative: a }, Infinite { negative: b }) => {
                return if a == b { self } else { Nan };
            }
            (Infinite { .. }, _) => return self,
            (_, Infinite { .. }) => return other,
            (
                Finite {
                    negative: a,
                    significand: 0,
                    ..
                },
                Finite {
                    negative: b,
                    significand: 0,
                    ..
                },
            ) => {
                let negative = if a == b { a } else { round == Round::Down };
                return Finite {
                    negative,
                    exponent: 0,
                    significand: 0,
                };
            }
            (Finite { significand: 0, .. }, _) => return other,
            (_, Finite { significand: 0, .. }) => return self,
            (a, b) => (a.normalise(), b.normalise()),
        };
        let (mut large, mut small) = (a, b);
        if large.0 < small.0 {
            std::mem::swap(&mut large, &mut small);
        }
        let exponent = large.0;
        let shifted = shift_right_sticky(small.1.1, exponent.abs_diff(small.0));
        let signed = |negative: bool, magnitude: u128| {
            let value = magnitude.cast_signed();
            if negative { -value } else { value }
        };
        let sum = signed(large.1.0, large.1.1) + signed(small.1.0, shifted);
        if sum == 0 {
            return Finite {
                negative: round == Round::Down,
                exponent: 0,
                significand: 0,
            };
        }
        Finite {
            negative: sum < 0,
            exponent,
            significand: sum.unsigned_abs(),
        }
    }

    pub(crate) fn multiply(self, other: Self) -> Self {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite { negative: a }, Infinite { negative: b }) => Infinite { negative: a != b },
            (
                Infinite { negative: a },
                Finite {
                    negative: b,
                    significand,
                    ..
                },
            )
            | (
                Finite {
                    negative: b,
                    significand,
                    ..
                },
                Infinite { negative: a },
            ) => {
                if significand == 0 {
                    Nan
                } else {
                    Infinite { negative: a != b }
                }
            }
            (
                Finite {
                    negative: a,
                    exponent: ea,
                    significand: sa,
                },
                Finite {
                    negative: b,
                    exponent: eb,
                    significand: sb,
                },
            ) => Finite {
                negative: a != b,
                exponent: ea + eb,
                significand: sa * sb,
            },
        }
    }

    pub(crate) fn divide(self, other: Self) -> Self {
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => Nan,
            (Infinite { negative: a }, Finite { negative: b, .. }) => Infinite { negative: a != b },
            (Finite { negative: a, .. }, Infinite { negative: b }) => Finite {
                negative: a != b,
                exponent: 0,
                significand: 0,
            },
            (Finite { significand: 0, .. }, Finite { significand: 0, .. }) => Nan,
            (
                Finite { negative: a, .. },
                Finite {
                    negative: b,
                    significand: 0,
                    ..
                },
            ) => Infinite { negative: a != b },
            (
                Finite {
                    negative: a,
                    exponent: ea,
                    significand: sa,
                },
                Finite {
                    negative: b,
                    exponent: eb,
                    significand: sb,
                },
            ) => {
                if sa == 0 {
                    return Finite {
                        negative: a != b,
                        exponent: 0,
                        significand: 0,
                    };
                }
                let shift = sa.leading_zeros() - 1;
                let dividend = sa << shift;
                let quotient = (dividend / sb) | u128::from(dividend % sb != 0);
                Finite {
                    negative: a != b,
                    exponent: ea - shift.cast_signed() - eb,
                    significand: quotient,
                }
            }
        }
    }

    pub(crate) fn square_root(self) -> Self {
        match self {
            Nan | Infinite { negative: true } => Nan,
            Infinite { .. } | Finite { significand: 0, .. } => self,
            Finite { negative: true, .. } => Nan,
            Finite {
                exponent,
                significand,
                ..
            } => {
                let mut shift = significand.leading_zeros() - 1;
                if (exponent - shift.cast_signed()) % 2 != 0 {
                    shift -= 1;
                }
                let radicand = significand << shift;
                let root = radicand.isqrt();
                Finite {
                    negative: false,
                    exponent: (exponent - shift.cast_signed()) / 2,
                    significand: root << 1 | u128::from(root * root != radicand),
                }
                .scale(-1)
            }
        }
    }

    /// Multiplies by a power of two.
    fn scale(self, by: i32) -> Self {
        match self {
            Finite {
                negative,
                exponent,
                significand,
            } => Finite {
                negative,
                exponent: exponent + by,
                significand,
            },
            other => other,
        }
    }

    /// Exponent, and sign and significand whose highest bit is bit 125; the number is not zero.
    fn normalise(self) -> (i32, (bool, u128)) {
        match self {
            Finite {
                negative,
                exponent,
                significand,
            } if significand != 0 => {
                let wanted = significand.leading_zeros().cast_signed() - 2;
                if wanted >= 0 {
                    (exponent - wanted, (negative, significand << wanted))
                } else {
                    let by = wanted.unsigned_abs();
                    (
                        exponent - wanted,
                        (negative, shift_right_sticky(significand, by)),
                    )
                }
            }
            _ => (i32::MIN / 2, (false, 0)),
        }
    }

    /// The number in a format, rounded; NaN is the format's own.
    pub(crate) fn encode(self, format: Format, round: Round) -> u64 {
        match self {
            Nan => format.nan(),
            Infinite { negative } => {
                sign(format, negative) | overflow(format, negative, Round::Nearest)
            }
            Finite {
                negative,
                significand: 0,
                ..
            } => sign(format, negative),
            Finite {
                negative,
                exponent,
                significand,
            } => {
                let top = 127 - significand.leading_zeros().cast_signed();
                let smallest = 1 - format.bias();
                let mantissa = format.mantissa_bits().cast_signed();
                let quantum = (exponent + top).max(smallest) - mantissa;
                let kept = round_shift(significand, quantum - exponent, negative, round);
                // The hidden bit adds one to the exponent field, and a carry does so once more.
                let field = u64::try_from(quantum + mantissa - smallest).unwrap_or(0);
                let magnitude = (field << format.mantissa_bits()).saturating_add(kept);
                let overflows = match format {
                    Format::E4m3 => magnitude > format.largest(),
                    _ => magnitude >= format.infinity(),
                };
                sign(format, negative)
                    | if overflows {
                        overflow(format, negative, round)
                    } else {
                        magnitude
                    }
            }
        }
    }

    /// The number as an integer, rounded; `None` for NaN. Beyond the range of `i128` it saturates.
    pub(crate) fn to_integer(self, round: Round) -> Option<i128> {
        Some(match self {
            Nan => return None,
            Infinite { negative: true } => i128::MIN,
            Infinite { negative: false } => i128::MAX,
            Finite {
                negative,
                exponent,
                significand,
            } => {
                let magnitude = if exponent >= 0 {
                    let lost = significand.leading_zeros() < exponent.unsigned_abs() + 2;
                    if lost && significand != 0 {
                        i128::MAX.cast_unsigned()
                    } else {
                        significand << exponent
                    }
                } else {
                    let kept = shift_right_sticky(
                        significand,
                        (-exponent).unsigned_abs().saturating_sub(2),
                    );
                    let shift = (-exponent).min(2);
                    round_shift_wide(kept, shift, negative, round)
                };
                let value = magnitude.cast_signed();
                if negative {
                    value.wrapping_neg()
                } else {
                    value
                }
            }
        })
    }
}

fn sign(format: Format, negative: bool) -> u64 {
    if negative { format.sign_bit() } else { 0 }
}

/// What a magnitude beyond the largest becomes.
fn overflow(format: Format, negative: bool, round: Round) -> u64 {
    let to_infinity = match round {
        Round::Nearest | Round::NearestAway => true,
        Round::Zero => false,
        Round::Down => negative,
        Round::Up => !negative,
    };
    match (to_infinity, format) {
        (true, Format::E4m3) => format.nan(),
        (true, _) => format.infinity(),
        (false, _) => format.largest(),
    }
}

pub(crate) fn shift_right_sticky(value: u128, by: u32) -> u128 {
    match by {
        0 => value,
        1..=127 => value >> by | u128::from(value << (128 - by) != 0),
        _ => u128::from(value != 0),
    }
}

fn round_shift(value: u128, by: i32, negative: bool, round: Round) -> u64 {
    u64::try_from(round_shift_wide(value, by, negative, round)).unwrap_or(u64::MAX)
}

/// Drops the lowest `by` bits, rounding; a negative `by` appends zeros.
fn round_shift_wide(value: u128, by: i32, negative: bool, round: Round) -> u128 {
    if by <= 0 {
        return value << by.unsigned_abs().min(127);
    }
    let by = by.unsigned_abs();
    let (value, by) = if by > 126 {
        (shift_right_sticky(value, by - 2), 2)
    } else {
        (value, by)
    };
    let kept = value >> by;
    let rest = value & ((1 << by) - 1);
    let half = 1_u128 << (by - 1);
    let up = match round {
        Round::Nearest => rest > half || rest == half && kept & 1 == 1,
        Round::NearestAway => rest >= half,
        Round::Zero => false,
        Round::Down => negative && rest != 0,
        Round::Up => !negative && rest != 0,
    };
    kept + u128::from(up)
}
