//! What atomic operations make of a value.

use super::alu_float::{Clamp, Float, FloatOp};
use super::number::Round;
use super::types::{Kind, Type, mask, sign_extend};

/// What an atomic operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AtomicKind {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareSwap,
    Increment,
    Decrement,
}

/// An atomic operation with the type of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AtomicOp {
    pub(crate) kind: AtomicKind,
    pub(crate) ty: Type,
    /// Subnormal numbers become zero, as `atom.add.f32` does in global memory.
    pub(crate) ftz: bool,
}

impl AtomicOp {
    pub(crate) fn parse_kind(name: &str) -> Option<AtomicKind> {
        Some(match name {
            "add" => AtomicKind::Add,
            "min" => AtomicKind::Min,
            "max" => AtomicKind::Max,
            "and" => AtomicKind::And,
            "or" => AtomicKind::Or,
            "xor" => AtomicKind::Xor,
            "exch" => AtomicKind::Exchange,
            "cas" => AtomicKind::CompareSwap,
            "inc" => AtomicKind::Increment,
            "dec" => AtomicKind::Decrement,
            _ => return None,
        })
    }

    /// Whether PTX has the operation for this type.
    pub(crate) fn exists(self) -> bool {
        let bits = self.ty.bits();
        let wide = bits == 32 || bits == 64;
        match self.kind {
            AtomicKind::Add => match self.ty.kind() {
                Kind::Unsigned => wide,
                Kind::Signed => bits == 32,
                Kind::Float => self.ty != Type::Tf32,
                Kind::Packed => matches!(self.ty, Type::F16x2 | Type::Bf16x2),
                _ => false,
            },
            AtomicKind::Min | AtomicKind::Max => match self.ty.kind() {
                Kind::Unsigned | Kind::Signed => wide,
                Kind::Float => bits == 16,
                Kind::Packed => matches!(self.ty, Type::F16x2 | Type::Bf16x2),
                _ => false,
            },
            AtomicKind::And | AtomicKind::Or | AtomicKind::Xor => {
                self.ty.kind() == Kind::Bits && wide
            }
            AtomicKind::Exchange => self.ty.kind() == Kind::Bits && bits >= 32,
            AtomicKind::CompareSwap => self.ty.kind() == Kind::Bits && bits >= 16,
            AtomicKind::Increment | AtomicKind::Decrement => self.ty == Type::U32,
        }
    }

    /// What becomes of `old`; `a` and `b` are the operands.
    pub(crate) fn eval(self, old: u128, a: u128, b: u128) -> u128 {
        match self.kind {
            AtomicKind::Exchange => a,
            AtomicKind::CompareSwap => {
                if old == a {
                    b
                } else {
                    old
                }
            }
            _ => u128::from(self.eval_word(old as u64, a as u64)),
        }
    }

    fn eval_word(self, old: u64, a: u64) -> u64 {
        let bits = self.ty.bits();
        if let Some(format) = self.ty.format() {
            let float = Float {
                format,
                round: Round::Nearest,
                ftz: self.ftz,
                clamp: Clamp::None,
            };
            let op = match self.kind {
                AtomicKind::Min => FloatOp::Min {
                    nan: false,
                    xorsign: false,
                },
                AtomicKind::Max => FloatOp::Max {
                    nan: false,
                    xorsign: false,
                },
                _ => FloatOp::Add,
            };
            if self.ty.kind() == Kind::Packed {
                let low = float.eval(op, [old & 0xffff, a & 0xffff, 0]);
                let high = float.eval(op, [old >> 16 & 0xffff, a >> 16 & 0xffff, 0]);
                return low | high << 16;
            }
            return float.eval(op, [old, a, 0]);
        }
        let signed = |value: u64| sign_extend(value, bits);
        let is_signed = self.ty.is_signed();
        let result = match self.kind {
            AtomicKind::Add => old.wrapping_add(a),
            AtomicKind::And => old & a,
            AtomicKind::Or => old | a,
            AtomicKind::Xor => old ^ a,
            AtomicKind::Min if is_signed => signed(old).min(signed(a)).cast_unsigned(),
            AtomicKind::Max if is_signed => signed(old).max(signed(a)).cast_unsigned(),
            AtomicKind::Min => old.min(a),
            AtomicKind::Max => old.max(a),
            AtomicKind::Increment => {
                if old >= a {
                    0
                } else {
                    old + 1
                }
            }
            AtomicKind::Decrement => {
                if old == 0 || old > a {
                    a
                } else {
                    old - 1
                }
            }
            AtomicKind::Exchange | AtomicKind::CompareSwap => a,
        };
        result & mask(bits)
    }
}
