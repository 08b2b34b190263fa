//! Shapes of arrays, and coordinates in and around them.

use crate::lab::{CUBEMAP, Format, LAYERED, Random, Spec};

pub(super) const FORMATS: [(&str, Format); 8] = [
    ("u8", Format::CU_AD_FORMAT_UNSIGNED_INT8),
    ("u16", Format::CU_AD_FORMAT_UNSIGNED_INT16),
    ("u32", Format::CU_AD_FORMAT_UNSIGNED_INT32),
    ("s8", Format::CU_AD_FORMAT_SIGNED_INT8),
    ("s16", Format::CU_AD_FORMAT_SIGNED_INT16),
    ("s32", Format::CU_AD_FORMAT_SIGNED_INT32),
    ("f16", Format::CU_AD_FORMAT_HALF),
    ("f32", Format::CU_AD_FORMAT_FLOAT),
];
/// The ways of addressing, by the driver's numbers.
pub(super) const ADDRESS: [&str; 4] = ["wrap", "clamp", "mirror", "border"];

/// What is read beyond the borders.
pub(super) const BORDER: [f32; 4] = [0.25, -3.0, 1e10, 0.5];

pub(super) fn format(name: &str) -> Format {
    FORMATS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// A geometry: its name, its extents, the flags of its arrays, and which of `a0` to `a3` are what: `l` the layer, and
/// axes.
#[derive(Clone, Copy)]
pub(super) struct Geometry {
    pub(super) name: &'static str,
    pub(super) size: [usize; 3],
    pub(super) flags: u32,
    pub(super) operand: &'static str,
    pub(super) axes: &'static [char],
}

pub(super) const GEOMETRIES: [Geometry; 7] = [
    Geometry {
        name: "1d",
        size: [13, 0, 0],
        flags: 0,
        operand: "{a0}",
        axes: &['x'],
    },
    Geometry {
        name: "2d",
        size: [13, 7, 0],
        flags: 0,
        operand: "{a0, a1}",
        axes: &['x', 'y'],
    },
    Geometry {
        name: "3d",
        size: [6, 5, 7],
        flags: 0,
        operand: "{a0, a1, a2, a2}",
        axes: &['x', 'y', 'z'],
    },
    Geometry {
        name: "a1d",
        size: [13, 0, 4],
        flags: LAYERED,
        operand: "{a0, a1}",
        axes: &['l', 'x'],
    },
    Geometry {
        name: "a2d",
        size: [7, 5, 3],
        flags: LAYERED,
        operand: "{a0, a1, a2, a2}",
        axes: &['l', 'x', 'y'],
    },
    Geometry {
        name: "cube",
        size: [6, 6, 6],
        flags: CUBEMAP,
        operand: "{a0, a1, a2, a2}",
        axes: &['c', 'c', 'c'],
    },
    Geometry {
        name: "acube",
        size: [5, 5, 12],
        flags: CUBEMAP | LAYERED,
        operand: "{a0, a1, a2, a3}",
        axes: &['l', 'c', 'c', 'c'],
    },
];

impl Geometry {
    pub(super) fn spec(&self, format_name: &str, channels: u32, flags: u32) -> Spec {
        Spec {
            size: self.size,
            format: format(format_name),
            channels,
            flags: self.flags | flags,
        }
    }

    pub(super) fn extent(&self, axis: char) -> usize {
        match axis {
            'x' => self.size[0],
            'y' => self.size[1],
            'z' => self.size[2],
            'l' => {
                if self.flags & CUBEMAP != 0 {
                    self.size[2] / 6
                } else {
                    self.size[2]
                }
            }
            _ => 0,
        }
    }

    /// Less of it, where whole arrays are kept.
    pub(super) fn small(self) -> Geometry {
        let size = match self.name {
            "1d" => [5, 0, 0],
            "2d" => [3, 4, 0],
            "a1d" => [3, 0, 3],
            _ => [3, 2, 3],
        };
        Geometry { size, ..self }
    }

    /// The instruction that reads a texture, of what it gives and by what coordinates.
    pub(super) fn tex(&self, types: &str) -> String {
        format!(
            "tex.{}.v4.{types} {{d0, d1, d2, d3}}, [o, {}];",
            self.name, self.operand
        )
    }

    pub(super) fn float_rows(
        &self,
        random: &mut Random,
        count: usize,
        normalized: bool,
    ) -> Vec<[u32; 8]> {
        (0..count)
            .map(|_| {
                let mut row = [0; 8];
                for (word, axis) in row.iter_mut().zip(self.axes) {
                    *word = match axis {
                        'l' => integer(random, self.extent('l')) as u32,
                        'c' => direction(random).to_bits(),
                        axis => coordinate(random, self.extent(*axis), normalized).to_bits(),
                    };
                }
                row
            })
            .collect()
    }

    pub(super) fn integer_rows(&self, random: &mut Random, count: usize) -> Vec<[u32; 8]> {
        (0..count)
            .map(|_| {
                let mut row = [0; 8];
                for (word, axis) in row.iter_mut().zip(self.axes) {
                    *word = integer(random, self.extent(*axis)) as u32;
                }
                row
            })
            .collect()
    }
}

fn direction(random: &mut Random) -> f32 {
    match random.below(16) {
        0 => 0.25,
        1 => -0.25,
        2 => 1.0,
        3 => -1.0,
        4 => 0.5,
        _ => random.unit() * 4.0 - 2.0,
    }
}

/// An index, a third of them beyond the ends.
pub(super) fn integer(random: &mut Random, extent: usize) -> i32 {
    let extent = extent as i32;
    match random.below(24) {
        0 => -1,
        1 => extent,
        2 => extent + 1,
        3 => -extent,
        4 => i32::MAX,
        5 => i32::MIN,
        6 => random.word() as i32,
        _ => random.below(extent as u32) as i32,
    }
}

/// A coordinate: edges and middles of texels, steps beside them, far beyond, and anywhere around.
fn coordinate(random: &mut Random, extent: usize, normalized: bool) -> f32 {
    let size = extent as f32;
    let whole = random.below(3 * extent as u32 + 1) as f32 - size;
    let value = match random.below(16) {
        0 => whole,
        1 => whole + 0.5,
        2 => f32::from_bits((whole + 0.5).to_bits() + 1),
        3 => f32::from_bits((whole + 0.5).to_bits().wrapping_sub(1)),
        4 => f32::from_bits(whole.to_bits() + 1),
        5 => whole + random.below(512) as f32 / 256.0,
        6 => whole + random.below(1024) as f32 / 512.0,
        7 => match random.below(12) {
            0 => f32::INFINITY,
            1 => f32::NEG_INFINITY,
            2 => f32::NAN,
            3 => 1e10,
            4 => -1e10,
            5 => 1e-40,
            6 => -1e-40,
            7 => -0.0,
            8 => 16_777_216.0,
            9 => -16_777_215.5,
            10 => 4097.25,
            _ => -2049.75,
        },
        _ => random.unit() * 3.0 * size - size,
    };
    if normalized { value / size } else { value }
}
