//! Half precision and bfloat16 by way of the host's doubles, which hold both: the quick way for what is
//! rounded to nearest, the same to the last bit as [`Number`](super::number::Number).

use super::number::Format;
use super::types::mask;

/// The value of a pattern of one of the host's formats or of 16 bits; none for other formats.
#[inline]
pub(crate) fn to_double(format: Format, bits: u64) -> Option<f64> {
    match format {
        Format::F64 => Some(f64::from_bits(bits)),
        Format::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        Format::Bf16 => Some(f64::from(f32::from_bits((bits as u32) << 16))),
        Format::F16 => {
            let sign = (bits >> 15 & 1) << 63;
            let (field, mantissa) = (bits >> 10 & 31, bits & 0x3ff);
            let magnitude = match field {
                // Subnormal numbers are multiples of the smallest.
                0 => mantissa as f64 * f64::from_bits((1023 - 24) << 52),
                31 => f64::from_bits(0x7ff << 52 | mantissa << 42),
                field => f64::from_bits((field + 1023 - 15) << 52 | mantissa << 42),
            };
            Some(f64::from_bits(magnitude.to_bits() | sign))
        }
        Format::Tf32 | Format::E4m3 | Format::E5m2 => None,
    }
}

/// The pattern nearest to a value that is no NaN; none for other formats.
#[inline]
pub(crate) fn from_double(format: Format, value: f64) -> Option<u64> {
    match format {
        Format::F64 => Some(value.to_bits()),
        Format::F32 => Some(u64::from((value as f32).to_bits())),
        Format::F16 => Some(narrow(value, 10, 15)),
        Format::Bf16 => Some(narrow(value, 7, 127)),
        Format::Tf32 | Format::E4m3 | Format::E5m2 => None,
    }
}

/// Rounds to a format of 16 bits with a mantissa of some bits and a bias.
#[inline]
fn narrow(value: f64, mantissa_bits: u32, bias: i32) -> u64 {
    let bits = value.to_bits();
    let sign = (bits >> 63) << 15;
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let infinity = ((2 * bias + 1) as u64) << mantissa_bits;
    if exponent > bias {
        return sign | infinity;
    }
    let smallest = 1 - bias;
    // A double that is subnormal is far below half of the smallest number.
    if exponent < smallest - mantissa_bits as i32 - 2 {
        return sign;
    }
    let significand = bits & mask(52) | 1 << 52;
    let below = (smallest - exponent).max(0) as u32;
    let shift = 52 - mantissa_bits + below;
    let kept = significand >> shift;
    let rest = significand & mask(shift);
    let half = 1 << (shift - 1);
    let up = rest > half || rest == half && kept & 1 == 1;
    let field = (exponent.max(smallest) - smallest) as u64;
    // The hidden bit adds one to the exponent, and a carry does so once more.
    let magnitude = (field << mantissa_bits) + kept + u64::from(up);
    sign | magnitude.min(infinity)
}

/// A sum of which the last bit is odd if anything was lost, so that rounding it again is rounding once.
#[inline]
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let lost = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    if lost == 0.0 || bits & 1 == 1 || !sum.is_finite() {
        return sum;
    }
    let grows = (lost > 0.0) == (sum > 0.0);
    f64::from_bits(if grows { bits + 1 } else { bits - 1 })
}
