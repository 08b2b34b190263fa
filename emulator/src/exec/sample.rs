//! Where coordinates lead and what lies between texels, as an H200 has it.
//!
//! A position is a multiple of 1/256 of a texel. Parts of the size are multiples of 2⁻²¹ before they are scaled.
//! The weights of the texels around are multiples of 1/256, too, those of a second and a third axis rounded so that
//! they are always one together.

use super::image::{AddressMode, Image, Sampler, Texel, widen_s8};

/// A texel of an axis; none beyond the ends, where the border is.
pub(crate) type Place = Option<u32>;

/// Where a coordinate leads along an axis: one texel, or two and the weight of the second in 256ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Between {
    pub(crate) first: Place,
    pub(crate) second: Place,
    pub(crate) weight: u32,
}

/// The bits that parts of the size have behind the point.
const PARTS: i32 = 21;

/// A coordinate without what is too small, and without what is no number.
fn flushed(x: f32) -> f64 {
    if x.is_normal() || x.is_infinite() {
        f64::from(x)
    } else {
        0.0
    }
}

/// A coordinate in texels. Where the texture is repeated, the same one near the beginning.
fn texels(x: f32, size: u32, mode: AddressMode, normalized: bool) -> f64 {
    let x = flushed(x);
    if !normalized {
        return x.clamp(-1e9, 1e9);
    }
    let x = match mode {
        AddressMode::Wrap | AddressMode::Mirror if x.is_infinite() => 0.0,
        AddressMode::Wrap | AddressMode::Mirror => x % 2.0,
        AddressMode::Clamp | AddressMode::Border => x.clamp(-4.0, 4.0),
    };
    let parts = f64::from(1 << PARTS);
    (x * parts).floor() * f64::from(size) / parts
}

/// The texel that an index leads to.
fn place(index: i64, size: u32, mode: AddressMode) -> Place {
    let last = i64::from(size) - 1;
    let size = i64::from(size);
    let index = match mode {
        AddressMode::Wrap => index.rem_euclid(size),
        AddressMode::Clamp => index.clamp(0, last),
        AddressMode::Mirror => {
            let index = index.rem_euclid(2 * size);
            index.min(2 * size - 1 - index)
        }
        AddressMode::Border if (0..size).contains(&index) => index,
        AddressMode::Border => return None,
    };
    u32::try_from(index).ok()
}

/// Where a coordinate leads along one axis.
pub(crate) fn along(
    x: f32,
    offset: i32,
    size: u32,
    mode: AddressMode,
    sampler: &Sampler,
) -> Between {
    let texels = texels(x, size, mode, sampler.normalized);
    let offset = i64::from(offset);
    if sampler.linear {
        let position = (texels * 256.0 + 0.5).floor() as i64 - 128;
        let index = position.div_euclid(256) + offset;
        let (first, second) = (place(index, size, mode), place(index + 1, size, mode));
        // Beyond the ends there is one texel.
        let beyond = mode == AddressMode::Clamp && first == second;
        return Between {
            first,
            second,
            weight: if beyond {
                0
            } else {
                position.rem_euclid(256) as u32
            },
        };
    }
    let first = place(texels.floor() as i64 + offset, size, mode);
    Between {
        first,
        second: first,
        weight: 0,
    }
}

/// The weights of the texels around in 256ths, of as many axes, the first axis changing fastest.
pub(crate) fn weights(axes: &[u32]) -> [u32; 8] {
    let mut all = [0; 8];
    match *axes {
        [x] => all[..2].copy_from_slice(&[256 - x, x]),
        [x, y] => {
            let both = (x * y + 128) >> 8;
            all[..4].copy_from_slice(&[256 + both - x - y, x - both, y - both, both]);
        }
        [x, y, z] => {
            for (half, depth) in [256 - z, z].into_iter().enumerate() {
                let right = (depth * x + 128) >> 8;
                for (side, weight) in [depth - right, right].into_iter().enumerate() {
                    let far = (weight * y + 127 + side as u32) >> 8;
                    all[half * 4 + side] = weight - far;
                    all[half * 4 + side + 2] = far;
                }
            }
        }
        _ => all[0] = 256,
    }
    all
}

/// The mean of texels by their weights in 256ths.
pub(crate) fn mean(texels: &[Texel], weights: &[u32]) -> Texel {
    match texels[0] {
        Texel::Fixed { one: 127, .. } => {
            let wide = |texel: &Texel| match *texel {
                Texel::Fixed { numbers, .. } => Texel::Fixed {
                    numbers: numbers.map(widen_s8),
                    one: 32767,
                },
                other => other,
            };
            mean(&texels.iter().map(wide).collect::<Vec<_>>(), weights)
        }
        Texel::Fixed { one, .. } => {
            let mut sums = [0_i64; 4];
            for (texel, weight) in texels.iter().zip(weights) {
                if let Texel::Fixed { numbers, .. } = texel {
                    for (sum, number) in sums.iter_mut().zip(numbers) {
                        *sum += i64::from(*number) * i64::from(*weight);
                    }
                }
            }
            Texel::Fixed {
                numbers: sums.map(|sum| ((sum + 128) >> 8) as i32),
                one,
            }
        }
        Texel::Half(_) => {
            Texel::Single([0, 1, 2, 3].map(|channel| float_mean(texels, weights, channel, HALF)))
        }
        Texel::Curve(..) => {
            let alpha = texels
                .iter()
                .zip(weights)
                .map(|(texel, weight)| match texel {
                    Texel::Curve(_, alpha) => i64::from(*alpha) * i64::from(*weight),
                    _ => 0,
                });
            let alpha = Texel::Curve([0; 3], ((alpha.sum::<i64>() + 128) >> 8) as i32).words()[3];
            let [r, g, b] = [0, 1, 2].map(|channel| float_mean(texels, weights, channel, HALF));
            Texel::Single([r, g, b, alpha])
        }
        _ => {
            Texel::Single([0, 1, 2, 3].map(|channel| float_mean(texels, weights, channel, SINGLE)))
        }
    }
}

/// How a mean of floating-point numbers is taken: the bits of a result, its smallest exponent, and how many bits
/// below the largest of four numbers the others keep.
#[derive(Clone, Copy)]
struct Precision {
    bits: i32,
    smallest: i32,
    kept: i32,
}

const HALF: Precision = Precision {
    bits: 11,
    smallest: -14,
    kept: 14,
};
const SINGLE: Precision = Precision {
    bits: 24,
    smallest: -126,
    kept: 27,
};

/// One number of the mean. Each four texels, those of one slice, are aligned to the largest of them.
fn float_mean(texels: &[Texel], weights: &[u32], channel: usize, precision: Precision) -> u32 {
    let values: Vec<f32> = texels
        .iter()
        .map(|texel| f32::from_bits(texel.words()[channel]))
        .collect();
    let weighed = || {
        values
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight > 0)
    };
    if weighed().any(|(value, _)| !value.is_finite()) {
        let mean = special_mean(weighed().map(|(value, _)| *value));
        return mean & if precision.bits == 11 { !0x1fff } else { !0 };
    }
    let mut parts = Vec::new();
    for (values, weights) in values.chunks(4).zip(weights.chunks(4)) {
        let exponent = values
            .iter()
            .zip(weights)
            .filter(|(value, weight)| **value != 0.0 && **weight > 0)
            .map(|(value, _)| exponent(*value, precision.smallest))
            .max();
        let Some(exponent) = exponent else { continue };
        let unit = exponent - precision.kept;
        let sum: i128 = values
            .iter()
            .zip(weights)
            .map(|(value, weight)| units(*value, unit) * i128::from(*weight))
            .sum();
        parts.push((sum, unit));
    }
    // What lies sixty bits below another part changes nothing.
    let units = || parts.iter().map(|(_, unit)| *unit);
    let (Some(least), Some(most)) = (units().min(), units().max()) else {
        return 0;
    };
    let unit = least.max(most - 60);
    let sum = parts
        .iter()
        .map(|(sum, own)| match own - unit {
            up @ 0.. => sum << up,
            down => sum >> (-down).min(100),
        })
        .sum();
    round(sum, unit - 8, precision)
}

/// The exponent of a number that is not zero.
fn exponent(value: f32, smallest: i32) -> i32 {
    let field = (value.to_bits() >> 23 & 0xff) as i32;
    (field - 127).max(smallest)
}

/// A number in units of a power of two, towards zero.
fn units(value: f32, unit: i32) -> i128 {
    let bits = value.to_bits();
    let field = (bits >> 23 & 0xff) as i32;
    let mantissa = i128::from(bits & 0x7f_ffff) | i128::from(field > 0) << 23;
    let shift = field.max(1) - 150 - unit;
    let magnitude = if shift >= 0 {
        mantissa << shift.min(100)
    } else {
        mantissa >> (-shift).min(100)
    };
    if bits >> 31 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// Rounds to the nearest number, the larger of two that are as near.
fn round(sum: i128, unit: i32, precision: Precision) -> u32 {
    if sum == 0 {
        return 0;
    }
    let magnitude = sum.unsigned_abs();
    let top = 127 - magnitude.leading_zeros() as i32;
    let lowest = (top + unit).max(precision.smallest) - precision.bits + 1;
    let shift = lowest - unit;
    let mantissa = if shift > 0 {
        (magnitude >> (shift - 1).min(126)).div_ceil(2)
    } else {
        magnitude << -shift
    };
    let value = mantissa as f64 * f64::from(lowest).exp2();
    let value = if sum < 0 { -value } else { value };
    (value as f32).to_bits()
}

/// What comes of infinities and of what is no number.
fn special_mean(values: impl Iterator<Item = f32>) -> u32 {
    let sum: f32 = values.filter(|value| !value.is_finite()).sum();
    if sum.is_nan() {
        0x7fff_ffff
    } else {
        sum.to_bits()
    }
}

/// The face that a direction leads to, and the place on it from 0 to 1.
pub(crate) fn face(direction: [f32; 3]) -> (u32, [f32; 2]) {
    let [x, y, z] = direction;
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (face, s, t, major) = if az >= ax && az >= ay {
        if z >= 0.0 {
            (4, x, -y, az)
        } else {
            (5, -x, -y, az)
        }
    } else if ay >= ax {
        if y >= 0.0 {
            (2, x, z, ay)
        } else {
            (3, x, -z, ay)
        }
    } else if x >= 0.0 {
        (0, -z, -y, ax)
    } else {
        (1, z, -y, ax)
    };
    let on = |part: f32| f32::midpoint(part / major, 1.0);
    (face, [on(s), on(t)])
}

impl Image {
    /// Whether all of a place lies within.
    pub(crate) fn address(&self, x: u32, y: u32, z: u32) -> u64 {
        self.base
            + u64::from(x) * u64::from(self.texel_bytes())
            + u64::from(y) * self.row
            + u64::from(z) * self.slice
    }
}
