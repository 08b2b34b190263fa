//! What integer and bit instructions compute, on bits; every operand and result is zero-extended to
//! 64 bits.

use super::types::{mask, sign_extend};

/// An integer type: its width, and whether it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Int {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

impl Int {
    fn value(self, raw: u64) -> i128 {
        if self.signed {
            i128::from(sign_extend(raw, self.bits))
        } else {
            i128::from(raw & mask(self.bits))
        }
    }

    /// The lowest bits of a number of any size.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower bits are what is wanted"
    )]
    fn wrap(self, value: i128) -> u64 {
        value.cast_unsigned() as u64 & mask(self.bits)
    }

    pub(crate) fn min(self) -> i128 {
        if self.signed {
            -(1 << (self.bits - 1))
        } else {
            0
        }
    }

    pub(crate) fn max(self) -> i128 {
        if self.signed {
            (1 << (self.bits - 1)) - 1
        } else {
            (1 << self.bits) - 1
        }
    }

    fn saturate(self, value: i128) -> u64 {
        self.wrap(value.clamp(self.min(), self.max()))
    }
}

/// Which four of eight bytes `prmt` picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Permute {
    Index,
    Forward4,
    Backward4,
    Replicate8,
    EdgeLeft,
    EdgeRight,
    Replicate16,
}

/// An integer instruction apart from its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IntOp {
    Add,
    Sub,
    AddSat,
    SubSat,
    MulLo,
    MulHi,
    MulWide,
    MadLo,
    MadHi,
    MadHiSat,
    MadWide,
    Mul24Lo,
    Mul24Hi,
    Mad24Lo,
    Mad24Hi,
    Mad24HiSat,
    Sad,
    Div,
    Rem,
    Abs,
    Neg,
    Min,
    Max,
    MinRelu,
    MaxRelu,
    And,
    Or,
    Xor,
    Not,
    Cnot,
    Shl,
    Shr,
    Popc,
    Clz,
    Brev,
    Bfind,
    BfindShift,
    Bfe,
    Bfi,
    Fns,
    Prmt(Permute),
    ShfLeft {
        wrap: bool,
    },
    ShfRight {
        wrap: bool,
    },
    Lop3(u8),
    Szext {
        wrap: bool,
    },
    Bmsk {
        wrap: bool,
    },
    /// The sum of four products of bytes; whether those of a and of b are signed.
    Dp4a(bool, bool),
    /// The sum of two products of a half and a byte, the upper bytes if so.
    Dp2a(bool, bool, bool),
    /// Applies to the halves of a 32-bit register.
    AddPair,
    MinPair {
        relu: bool,
    },
    MaxPair {
        relu: bool,
    },
}

/// Computes `op` on `a`, `b`, `c` and `d`, as many of them as it has operands.
pub(crate) fn eval(op: IntOp, int: Int, [a, b, c, d]: [u64; 4]) -> u64 {
    use IntOp as O;
    let (x, y, z) = (int.value(a), int.value(b), int.value(c));
    let wide = Int {
        bits: (int.bits * 2).min(64),
        ..int
    };
    match op {
        O::Add => int.wrap(x + y),
        O::Sub => int.wrap(x - y),
        O::AddSat => int.saturate(x + y),
        O::SubSat => int.saturate(x - y),
        O::MulLo => int.wrap(x.wrapping_mul(y)),
        O::MulHi => int.wrap(mul_high(int, x, y)),
        O::MulWide => wide.wrap(x * y),
        O::MadLo => int.wrap(x.wrapping_mul(y).wrapping_add(z)),
        O::MadHi => int.wrap(mul_high(int, x, y) + z),
        O::MadHiSat => int.saturate(mul_high(int, x, y) + z),
        O::MadWide => wide.wrap(x * y + wide.value(c)),
        O::Mul24Lo => int.wrap(mul24(int, a, b)),
        O::Mul24Hi => int.wrap(mul24(int, a, b) >> 16),
        O::Mad24Lo => int.wrap(mul24(int, a, b) + z),
        O::Mad24Hi => int.wrap((mul24(int, a, b) >> 16) + z),
        O::Mad24HiSat => int.saturate((mul24(int, a, b) >> 16) + z),
        O::Sad => int.wrap(z + (x - y).abs()),
        // Division by zero has no defined result; the hardware answers all ones.
        O::Div => int.wrap(x.checked_div(y).unwrap_or(-1)),
        O::Rem => int.wrap(x.checked_rem(y).unwrap_or(x)),
        O::Abs => int.wrap(x.abs()),
        O::Neg => int.wrap(-x),
        O::Min => int.wrap(x.min(y)),
        O::Max => int.wrap(x.max(y)),
        O::MinRelu => int.wrap(x.min(y).max(0)),
        O::MaxRelu => int.wrap(x.max(y).max(0)),
        O::And => a & b,
        O::Or => a | b,
        O::Xor => a ^ b,
        O::Not => !a & mask(int.bits),
        O::Cnot => u64::from(a & mask(int.bits) == 0),
        O::Shl => shift_left(int, a, b),
        O::Shr => int.wrap(x >> (b & mask(32)).min(u64::from(int.bits))),
        O::Popc => u64::from((a & mask(int.bits)).count_ones()),
        O::Clz => u64::from((a & mask(int.bits)).leading_zeros() - (64 - int.bits)),
        O::Brev => a.reverse_bits() >> (64 - int.bits),
        O::Bfind => bfind(int, x).map_or(mask(32), u64::from),
        O::BfindShift => bfind(int, x).map_or(mask(32), |at| u64::from(int.bits - 1 - at)),
        O::Bfe => bit_field_extract(int, a, b, c),
        O::Bfi => bit_field_insert(int, a, b, c, d),
        O::Fns => find_nth_set(a, b, c),
        O::Prmt(mode) => permute(mode, a, b, c),
        O::ShfLeft { wrap } => {
            let by = funnel_shift(c, wrap);
            ((b << 32 | a & mask(32)).wrapping_shl(by) >> 32 | if by == 32 { a } else { 0 })
                & mask(32)
        }
        O::ShfRight { wrap } => ((b << 32 | a & mask(32)) >> funnel_shift(c, wrap)) & mask(32),
        O::Lop3(table) => lop3(table, a, b, c),
        O::Szext { wrap } => {
            let bits = clamp_or_wrap(b, wrap);
            match (bits, int.signed) {
                (0, _) => 0,
                (bits, true) => int.wrap(i128::from(sign_extend(a, bits))),
                (bits, false) => a & mask(bits),
            }
        }
        O::Bmsk { wrap } => {
            let (start, width) = (clamp_or_wrap(a, wrap), clamp_or_wrap(b, wrap));
            (mask(width) << start) & mask(32)
        }
        O::Dp4a(sa, sb) => dot(int, a, b, c, [0, 8, 16, 24], 8, [0, 8, 16, 24], (sa, sb)),
        O::Dp2a(sa, sb, high) => {
            let bytes = if high { [16, 24] } else { [0, 8] };
            dot(int, a, b, c, [0, 16], 16, bytes, (sa, sb))
        }
        O::AddPair => pair(int, a, b, |half, a, b| half.wrap(a + b)),
        O::MinPair { relu } => pair(int, a, b, |half, a, b| {
            half.wrap(if relu { a.min(b).max(0) } else { a.min(b) })
        }),
        O::MaxPair { relu } => pair(int, a, b, |half, a, b| {
            half.wrap(if relu { a.max(b).max(0) } else { a.max(b) })
        }),
    }
}

/// Adds or subtracts with a carry, and says whether one comes out of it.
pub(crate) fn add_carry(int: Int, a: u64, b: u64, carry: bool, subtract: bool) -> (u64, bool) {
    let b = if subtract { !b } else { b } & mask(int.bits);
    // A borrow is a missing carry: subtraction adds the complement and one.
    let carry = carry != subtract;
    let sum = u128::from(a & mask(int.bits)) + u128::from(b) + u128::from(carry);
    let out = sum >> int.bits != 0;
    (int.wrap(sum.cast_signed()), out != subtract)
}

fn mul_high(int: Int, x: i128, y: i128) -> i128 {
    if int.signed {
        (x * y) >> int.bits
    } else {
        (x.cast_unsigned().wrapping_mul(y.cast_unsigned()) >> int.bits).cast_signed()
    }
}

fn mul24(int: Int, a: u64, b: u64) -> i128 {
    let int24 = Int { bits: 24, ..int };
    int24.value(a) * int24.value(b)
}

fn shift_left(int: Int, a: u64, b: u64) -> u64 {
    let by = b & mask(32);
    if by >= u64::from(int.bits) {
        0
    } else {
        (a << by) & mask(int.bits)
    }
}

fn bfind(int: Int, x: i128) -> Option<u32> {
    let bits = int.wrap(if x < 0 { !x } else { x });
    (bits != 0).then(|| bits.ilog2())
}

fn bit_field_extract(int: Int, a: u64, position: u64, length: u64) -> u64 {
    let (position, length) = field(int, position, length);
    let bits = u64::from(int.bits);
    let sign_at = position
        .saturating_add(length)
        .saturating_sub(1)
        .min(bits - 1);
    let negative = int.signed && length != 0 && a >> sign_at & 1 == 1;
    let value = a & mask(int.bits);
    let taken = if position >= bits {
        0
    } else {
        value >> position
    };
    let available = bits.saturating_sub(position);
    let kept = u32::try_from(length.min(available)).unwrap_or(64);
    let low = taken & mask(kept);
    if negative {
        (low | !mask(kept)) & mask(int.bits)
    } else {
        low
    }
}

fn bit_field_insert(int: Int, a: u64, b: u64, position: u64, length: u64) -> u64 {
    let (position, length) = field(int, position, length);
    if position >= u64::from(int.bits) {
        return b;
    }
    let hole = mask(u32::try_from(length.min(64)).unwrap_or(64)) << position;
    (b & !hole | (a << position) & hole) & mask(int.bits)
}

/// Position and length, of which 32-bit instructions read the lowest byte.
fn field(int: Int, position: u64, length: u64) -> (u64, u64) {
    if int.bits == 32 {
        (position & 0xff, length & 0xff)
    } else {
        (position & mask(32), length & mask(32))
    }
}

fn find_nth_set(value: u64, base: u64, offset: u64) -> u64 {
    let value = value & mask(32);
    let offset = sign_extend(offset, 32);
    let base = base & mask(32);
    // No defined result; as measured.
    if offset == i64::from(i32::MIN) {
        return 0;
    }
    let found = if base > 31 {
        None
    } else if offset == 0 {
        (value >> base & 1 == 1).then_some(base)
    } else {
        let nth = usize::try_from(offset.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let is_set = |at: &u64| value >> at & 1 == 1;
        if offset > 0 {
            (base..32).filter(is_set).nth(nth)
        } else {
            (0..=base).rev().filter(is_set).nth(nth)
        }
    };
    found.unwrap_or(mask(32))
}

fn permute(mode: Permute, a: u64, b: u64, selector: u64) -> u64 {
    let bytes = b << 32 | a & mask(32);
    let byte = |at: u64| bytes >> (8 * (at & 7)) & 0xff;
    let s = selector & 3;
    let picks: [u64; 4] = match mode {
        Permute::Index => {
            let mut result = 0;
            for lane in 0..4 {
                let pick = selector >> (4 * lane);
                let value = byte(pick);
                let value = if pick & 8 == 0 {
                    value
                } else {
                    0xff * (value >> 7)
                };
                result |= value << (8 * lane);
            }
            return result;
        }
        Permute::Forward4 => [s, s + 1, s + 2, s + 3],
        Permute::Backward4 => [s, s + 7, s + 6, s + 5],
        Permute::Replicate8 => [s; 4],
        Permute::EdgeLeft => [s, s.max(1), s.max(2), 3],
        Permute::EdgeRight => [0, s.min(1), s.min(2), s],
        Permute::Replicate16 => {
            let half = (s & 1) * 2;
            [half, half + 1, half, half + 1]
        }
    };
    (0_u32..)
        .zip(picks)
        .fold(0, |result, (lane, pick)| result | byte(pick) << (8 * lane))
}

fn funnel_shift(c: u64, wrap: bool) -> u32 {
    clamp_or_wrap(c, wrap)
}

fn clamp_or_wrap(value: u64, wrap: bool) -> u32 {
    let value = value & mask(32);
    u32::try_from(if wrap { value & 31 } else { value.min(32) }).unwrap_or(32)
}

fn lop3(table: u8, a: u64, b: u64, c: u64) -> u64 {
    let mut result = 0;
    for row in 0..8 {
        if table >> row & 1 == 1 {
            let pick = |value: u64, bit: u8| if row & bit == 0 { !value } else { value };
            result |= pick(a, 4) & pick(b, 2) & pick(c, 1);
        }
    }
    result & mask(32)
}

#[expect(clippy::too_many_arguments, reason = "the parts of one dot product")]
fn dot<const N: usize>(
    int: Int,
    a: u64,
    b: u64,
    c: u64,
    a_at: [u32; N],
    a_bits: u32,
    b_at: [u32; N],
    (a_signed, b_signed): (bool, bool),
) -> u64 {
    let a_part = Int {
        bits: a_bits,
        signed: a_signed,
    };
    let b_part = Int {
        bits: 8,
        signed: b_signed,
    };
    let products = a_at
        .iter()
        .zip(b_at)
        .map(|(a_at, b_at)| a_part.value(a >> a_at) * b_part.value(b >> b_at));
    int.wrap(int.value(c) + products.sum::<i128>())
}

fn pair(int: Int, a: u64, b: u64, op: impl Fn(Int, i128, i128) -> u64) -> u64 {
    let half = Int { bits: 16, ..int };
    let low = op(half, half.value(a), half.value(b));
    let high = op(half, half.value(a >> 16), half.value(b >> 16));
    low | high << 16
}

/// How two integers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Order {
    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

pub(crate) fn compare(order: Order, int: Int, a: u64, b: u64) -> bool {
    order.holds(int.value(a).cmp(&int.value(b)))
}
