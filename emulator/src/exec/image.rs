//! What texture and surface objects stand for, and what numbers become on the way to a register.

use super::half;
use super::number::Format;

/// What a texture or a surface object stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Image {
    /// Where its first texel lies.
    pub base: u64,
    /// Its kind.
    pub shape: ImageShape,
    /// Width, height, and depth or layers; zero where it has none.
    pub size: [u32; 3],
    /// The bytes from row to row.
    pub row: u64,
    /// The bytes from slice to slice.
    pub slice: u64,
    /// What a number of a texel is.
    pub format: ChannelFormat,
    /// The numbers of a texel.
    pub channels: u32,
    /// How it is read, if it is a texture.
    pub sampler: Option<Sampler>,
}

/// The kinds of memory that objects are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageShape {
    /// Memory without rows.
    Linear,
    /// Rows in memory.
    Rows,
    /// An array of one dimension.
    D1,
    /// An array of two dimensions.
    D2,
    /// An array of three dimensions.
    D3,
    /// Layers of one dimension.
    A1,
    /// Layers of two dimensions.
    A2,
    /// Six faces.
    Cube,
    /// Layers of six faces.
    CubeArray,
}

/// What a number of a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ChannelFormat {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

/// What lies beyond the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMode {
    /// The texture again.
    Wrap,
    /// What the last texel holds.
    Clamp,
    /// The texture backwards.
    Mirror,
    /// The colour of the border.
    Border,
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// For each axis.
    pub address: [AddressMode; 3],
    /// Between texels lies a mean of those around.
    pub linear: bool,
    /// Coordinates are parts of the size.
    pub normalized: bool,
    /// Integers stay integers.
    pub as_integer: bool,
    /// The curve of sRGB is taken out of the first three numbers.
    pub srgb: bool,
    /// What lies beyond the ends in mode [`AddressMode::Border`].
    pub border: [f32; 4],
}

impl ChannelFormat {
    /// The bytes of a number.
    #[must_use]
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32)
    }

    /// A number as it lies in memory, its sign extended.
    fn integer(self, bytes: &[u8]) -> i64 {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let value = u64::from_le_bytes(wide);
        if self.is_signed() {
            super::types::sign_extend(value, self.bytes() * 8)
        } else {
            value.cast_signed()
        }
    }
}

impl Sampler {
    /// As the texture units take it for an image: without normalised coordinates nothing repeats but on cubes, and
    /// integers have no mean.
    #[must_use]
    pub fn of(mut self, image: &Image) -> Self {
        let cube = matches!(image.shape, ImageShape::Cube | ImageShape::CubeArray);
        if !self.normalized && !cube {
            for mode in &mut self.address {
                if matches!(mode, AddressMode::Wrap | AddressMode::Mirror) {
                    *mode = AddressMode::Clamp;
                }
            }
        }
        if image.shape == ImageShape::Linear || !image.reads_floats(&self) {
            self.linear = false;
        }
        self
    }
}

/// A texel on its way: what its numbers are, as the filter takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texel {
    /// Bits that are given as they are.
    Bits([u32; 4]),
    /// From 0 to 1 in 65535 steps, or to both sides in 32767 or 127.
    Fixed { numbers: [i32; 4], one: i32 },
    /// Numbers of half precision.
    Half([u16; 4]),
    /// Three of half precision, which a curve was taken out of, and a fixed one of 65535.
    Curve([u16; 3], i32),
    /// Numbers of single precision.
    Single([u32; 4]),
}

impl Image {
    pub(crate) fn texel_bytes(&self) -> u32 {
        self.format.bytes() * self.channels
    }

    fn reads_floats(&self, sampler: &Sampler) -> bool {
        match self.format {
            ChannelFormat::F16 | ChannelFormat::F32 => true,
            ChannelFormat::U32 | ChannelFormat::S32 => false,
            _ => !sampler.as_integer,
        }
    }

    /// Takes the bytes of a texel apart.
    pub(crate) fn texel(&self, bytes: &[u8], sampler: &Sampler) -> Texel {
        let format = self.format;
        let mut numbers = [0_i64; 4];
        let size = format.bytes() as usize;
        for (number, piece) in numbers.iter_mut().zip(bytes.chunks_exact(size)) {
            *number = format.integer(piece);
        }
        if sampler.srgb && format == ChannelFormat::U8 {
            let [r, g, b, a] = numbers;
            return Texel::Curve([r, g, b].map(|number| srgb(number as u8)), a as i32 * 257);
        }
        match format {
            ChannelFormat::F16 => Texel::Half(numbers.map(|number| number as u16)),
            ChannelFormat::F32 if !sampler.as_integer => {
                Texel::Single(numbers.map(|number| number as u32))
            }
            _ if sampler.as_integer || size == 4 => {
                Texel::Bits(numbers.map(|number| number as u32))
            }
            ChannelFormat::U8 => fixed(numbers.map(|number| number as i32 * 257), 65535),
            ChannelFormat::U16 => fixed(numbers.map(|number| number as i32), 65535),
            ChannelFormat::S8 => fixed(numbers.map(|number| (number as i32).max(-127)), 127),
            _ => fixed(numbers.map(|number| (number as i32).max(-32767)), 32767),
        }
    }

    /// The border as a texel: its colour in the format.
    pub(crate) fn border(&self, sampler: &Sampler) -> Texel {
        let size = self.format.bytes() as usize;
        let mut bytes = [0; 16];
        let channels = bytes.chunks_exact_mut(size).zip(sampler.border);
        for (piece, colour) in channels.take(self.channels as usize) {
            // To the nearest, the lower of two that are as near.
            let within = |least: f64, most: f64| {
                (f64::from(colour) * most - 0.5).ceil().clamp(least, most) as i64
            };
            let value = match self.format {
                ChannelFormat::F16 => i64::from(half_towards_zero(colour)),
                // Of integers it is the bits.
                _ if sampler.as_integer || size == 4 => i64::from(colour.to_bits()),
                ChannelFormat::U8 => within(0.0, 255.0),
                ChannelFormat::U16 => within(0.0, 65535.0),
                ChannelFormat::S8 => within(-127.0, 127.0),
                _ => within(-32767.0, 32767.0),
            };
            piece.copy_from_slice(&value.to_le_bytes()[..size]);
        }
        self.texel(&bytes[..self.texel_bytes() as usize], sampler)
    }

    /// A number as `sust.p` stores it: the nearest that the format has, towards zero.
    pub(crate) fn pack(&self, value: u32, to: &mut [u8]) {
        let signed = value.cast_signed();
        let value = match self.format {
            ChannelFormat::F16 => u32::from(half_towards_zero(f32::from_bits(value))),
            ChannelFormat::U8 => value.min(255),
            ChannelFormat::U16 => value.min(65535),
            ChannelFormat::S8 => signed.clamp(-128, 127).cast_unsigned(),
            ChannelFormat::S16 => signed.clamp(-32768, 32767).cast_unsigned(),
            ChannelFormat::U32 | ChannelFormat::S32 | ChannelFormat::F32 => value,
        };
        to.copy_from_slice(&value.to_le_bytes()[..to.len()]);
    }
}

/// Half precision towards zero, the largest number for all beyond it.
fn half_towards_zero(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let sign = ((value.to_bits() >> 16) & 0x8000) as u16;
    if value.is_infinite() {
        return sign | 0x7c00;
    }
    let mut nearest = half::from_double(Format::F16, f64::from(value.abs())).unwrap_or(0) as u16;
    let back = half::to_double(Format::F16, u64::from(nearest)).unwrap_or(0.0);
    if back > f64::from(value.abs()) {
        nearest -= 1;
    }
    sign | nearest
}

fn fixed(numbers: [i32; 4], one: i32) -> Texel {
    Texel::Fixed { numbers, one }
}

/// The bits repeated, from 7 to 15.
pub(crate) fn widen_s8(value: i32) -> i32 {
    let magnitude = value.abs().min(127);
    (magnitude << 8 | magnitude << 1 | magnitude >> 6) * value.signum()
}

/// What a number of sRGB stands for, in half precision.
fn srgb(value: u8) -> u16 {
    let linear = f64::from(SRGB[usize::from(value)]) / 16384.0;
    half::from_double(Format::F16, linear).unwrap_or(0) as u16
}

/// What an H200 takes each number of sRGB for, in 16384 steps: the curve in about eight bits.
#[rustfmt::skip]
const SRGB: [u16; 256] = [
    0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 66, 72, 78,
    85, 92, 99, 107, 115, 123, 131, 140, 150, 159, 169, 180, 190, 201, 213, 224,
    236, 250, 262, 276, 290, 304, 318, 332, 348, 364, 380, 396, 412, 430, 448, 466,
    484, 504, 524, 544, 564, 584, 604, 624, 648, 672, 692, 716, 740, 764, 788, 816,
    840, 864, 896, 920, 944, 976, 1000, 1032, 1064, 1088, 1120, 1152, 1184, 1216, 1248, 1280,
    1312, 1352, 1384, 1416, 1456, 1488, 1528, 1560, 1600, 1640, 1672, 1712, 1752, 1792, 1832, 1872,
    1920, 1952, 2000, 2048, 2080, 2128, 2176, 2224, 2272, 2320, 2368, 2416, 2464, 2512, 2560, 2608,
    2656, 2704, 2752, 2816, 2864, 2912, 2976, 3024, 3072, 3136, 3184, 3248, 3296, 3360, 3424, 3472,
    3536, 3600, 3664, 3712, 3776, 3840, 3904, 3968, 4032, 4096, 4160, 4224, 4288, 4352, 4416, 4512,
    4576, 4640, 4704, 4768, 4864, 4928, 4992, 5056, 5152, 5216, 5280, 5376, 5440, 5536, 5600, 5696,
    5760, 5824, 5920, 6016, 6080, 6176, 6240, 6336, 6400, 6496, 6592, 6688, 6752, 6848, 6944, 7008,
    7104, 7200, 7296, 7392, 7488, 7584, 7680, 7744, 7872, 7936, 8064, 8128, 8256, 8320, 8448, 8512,
    8640, 8768, 8832, 8960, 9024, 9152, 9280, 9344, 9472, 9600, 9664, 9792, 9920, 9984, 10_112, 10_240,
    10_304, 10_432, 10_560, 10_688, 10_816, 10_880, 11_008, 11_136, 11_264, 11_392, 11_456, 11_584, 11_712, 11_840, 11_968, 12_096,
    12_224, 12_352, 12_480, 12_608, 12_736, 12_864, 12_992, 13_120, 13_248, 13_376, 13_504, 13_632, 13_760, 13_888, 14_016, 14_144,
    14_272, 14_400, 14_528, 14_656, 14_848, 14_976, 15_104, 15_232, 15_360, 15_488, 15_616, 15_744, 16_000, 16_128, 16_256, 16_384,
];

/// A number of half precision in single precision; what is no number keeps its bits.
fn single(number: u16) -> u32 {
    if number & 0x7c00 == 0x7c00 {
        let number = u32::from(number);
        return (number & 0x8000) << 16 | 0xff << 23 | (number & 0x3ff) << 13;
    }
    let double = half::to_double(Format::F16, u64::from(number)).unwrap_or(0.0);
    (double as f32).to_bits()
}

impl Texel {
    /// What registers get.
    pub(crate) fn words(self) -> [u32; 4] {
        match self {
            Self::Bits(bits) | Self::Single(bits) => bits,
            Self::Fixed { numbers, one } => {
                numbers.map(|number| ((f64::from(number) / f64::from(one)) as f32).to_bits())
            }
            Self::Half(numbers) => numbers.map(single),
            Self::Curve([r, g, b], alpha) => {
                let [alpha, ..] = fixed([alpha; 4], 65535).words();
                [single(r), single(g), single(b), alpha]
            }
        }
    }
}
