//! The cases: all geometries, ways of addressing, filters and formats, at edges and at random.

use cudarc::driver::sys;

use crate::Book;
use crate::cu;
use crate::lab::{
    CUBEMAP, Format, GATHER, LAYERED, Lab, NORMALIZED, READ_AS_INTEGER, Random, SRGB, SURFACE,
    Sampler, Spec, memcpy3d, width, zeroed,
};

const FORMATS: [(&str, Format); 8] = [
    ("u8", Format::CU_AD_FORMAT_UNSIGNED_INT8),
    ("u16", Format::CU_AD_FORMAT_UNSIGNED_INT16),
    ("u32", Format::CU_AD_FORMAT_UNSIGNED_INT32),
    ("s8", Format::CU_AD_FORMAT_SIGNED_INT8),
    ("s16", Format::CU_AD_FORMAT_SIGNED_INT16),
    ("s32", Format::CU_AD_FORMAT_SIGNED_INT32),
    ("f16", Format::CU_AD_FORMAT_HALF),
    ("f32", Format::CU_AD_FORMAT_FLOAT),
];
const ADDRESS: [&str; 4] = ["wrap", "clamp", "mirror", "border"];

fn format(name: &str) -> Format {
    FORMATS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// A geometry: its name, its extents, the flags of its arrays, and which of `a0` to `a3` are what: `l` the layer, and
/// axes.
#[derive(Clone, Copy)]
struct Geometry {
    name: &'static str,
    size: [usize; 3],
    flags: u32,
    operand: &'static str,
    axes: &'static [char],
}

const GEOMETRIES: [Geometry; 7] = [
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
    fn spec(&self, format_name: &str, channels: u32, flags: u32) -> Spec {
        Spec {
            size: self.size,
            format: format(format_name),
            channels,
            flags: self.flags | flags,
        }
    }

    fn extent(&self, axis: char) -> usize {
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

    fn float_rows(&self, random: &mut Random, count: usize, normalized: bool) -> Vec<[u32; 8]> {
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

    fn integer_rows(&self, random: &mut Random, count: usize) -> Vec<[u32; 8]> {
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
fn integer(random: &mut Random, extent: usize) -> i32 {
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

/// Numbers of a format, side by side.
#[derive(Clone, Copy)]
enum Content {
    /// Any bits.
    Bits,
    /// From -1 to 1 if of floating point.
    Unit,
    /// Of all sizes if of floating point.
    Wide,
}

fn content(random: &mut Random, spec: Spec, kind: Content) -> Vec<u8> {
    let count = spec.bytes() / width(spec.format);
    let mut bytes = Vec::new();
    for _ in 0..count {
        match (spec.format, kind) {
            (Format::CU_AD_FORMAT_FLOAT, Content::Unit) => {
                bytes.extend((random.unit() * 2.0 - 1.0).to_le_bytes());
            }
            (Format::CU_AD_FORMAT_FLOAT, Content::Wide) => {
                let scale = (random.below(80) as f32 - 40.0).exp2();
                bytes.extend(((random.unit() * 2.0 - 1.0) * scale).to_le_bytes());
            }
            (Format::CU_AD_FORMAT_HALF, Content::Unit | Content::Wide) => {
                // Exponents of numbers below 2, and all mantissas.
                let least = if matches!(kind, Content::Unit) { 10 } else { 0 };
                let exponent = least + random.below(16 - least);
                let bits = (random.below(2) << 15) | (exponent << 10) | random.below(1024);
                bytes.extend((bits as u16).to_le_bytes());
            }
            (format, _) => bytes.extend(&random.word().to_le_bytes()[..width(format)]),
        }
    }
    bytes
}

fn first(rows: Vec<[u32; 4]>) -> Vec<u32> {
    rows.into_iter().map(|row| row[0]).collect()
}

fn all(rows: Vec<[u32; 4]>) -> Vec<u32> {
    rows.into_iter().flatten().collect()
}

/// The type that `tex` gives of a format.
fn dtype(name: &str, as_float: bool) -> &'static str {
    match name {
        "f16" | "f32" => "f32",
        _ if as_float => "f32",
        "u8" | "u16" | "u32" => "u32",
        _ => "s32",
    }
}

fn read_flags(name: &str, as_float: bool) -> u32 {
    if dtype(name, as_float) == "f32" {
        0
    } else {
        READ_AS_INTEGER
    }
}

/// Cases of one kind.
type Part = fn(&mut Lab, &mut Book);

/// The cases by what they are about.
pub(crate) const PARTS: [(&str, Part); 11] = [
    ("addressing", addressing),
    ("formats", formats),
    ("integer_coordinates", integer_coordinates),
    ("memory", memory),
    ("gathers", gathers),
    ("queries", queries),
    ("loads", loads),
    ("stores", stores),
    ("formatted_stores", formatted_stores),
    ("reductions", reductions),
    ("answers", answers),
];

const BORDER: [f32; 4] = [0.25, -3.0, 1e10, 0.5];

fn addressing(lab: &mut Lab, book: &mut Book) {
    for geometry in GEOMETRIES {
        for address in 0..4 {
            for normalized in [false, true] {
                for linear in [false, true] {
                    let name = format!(
                        "tex/{}/{}/{}/{}",
                        geometry.name,
                        ADDRESS[address as usize],
                        if normalized { "normalized" } else { "texels" },
                        if linear { "linear" } else { "point" },
                    );
                    let mut random = Random::of(&name);
                    let spec = geometry.spec("f32", 1, 0);
                    let array = lab.array(spec, &content(&mut random, spec, Content::Unit));
                    let flags = if normalized { NORMALIZED } else { 0 };
                    let border = if address == 3 { BORDER } else { [0.0; 4] };
                    let texture = lab.texture(
                        array,
                        Sampler {
                            address,
                            linear,
                            flags,
                            border,
                        },
                    );
                    let rows = geometry.float_rows(&mut random, 192, normalized);
                    let body = format!(
                        "tex.{}.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {}];",
                        geometry.name, geometry.operand
                    );
                    book.note(name, first(lab.rows(&body, texture, &rows)));
                    drop_texture(texture);
                    drop_array(array);
                }
            }
        }
        // A level of one is the first; gradients choose among one.
        let name = format!("tex.level/{}", geometry.name);
        let mut random = Random::of(&name);
        let spec = geometry.spec("f32", 1, 0);
        let array = lab.array(spec, &content(&mut random, spec, Content::Unit));
        let texture = lab.texture(
            array,
            Sampler {
                address: 1,
                linear: true,
                ..Sampler::default()
            },
        );
        let mut rows = geometry.float_rows(&mut random, 32, false);
        for (at, row) in rows.iter_mut().enumerate() {
            row[4] = [0.0_f32, 1.0, -1.0, 0.5, 100.0, f32::NAN][at % 6].to_bits();
        }
        let body = format!(
            "tex.level.{}.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {}], b0;",
            geometry.name, geometry.operand
        );
        book.note(name, first(lab.rows(&body, texture, &rows)));
        drop_texture(texture);
        drop_array(array);
    }
    // With offsets.
    for (geometry, offset) in [
        (0, "{1}"),
        (1, "{-3, 2}"),
        (2, "{1, -2, 7, 0}"),
        (3, "{-8}"),
        (4, "{2, -1}"),
    ] {
        let geometry = GEOMETRIES[geometry];
        for address in [0, 1, 3] {
            let name = format!("tex offset/{}/{}", geometry.name, ADDRESS[address as usize]);
            let mut random = Random::of(&name);
            let spec = geometry.spec("f32", 1, 0);
            let array = lab.array(spec, &content(&mut random, spec, Content::Unit));
            let sampler = Sampler {
                address,
                linear: false,
                flags: NORMALIZED,
                border: BORDER,
            };
            let texture = lab.texture(array, sampler);
            let rows = geometry.float_rows(&mut random, 48, true);
            let body = format!(
                "tex.{}.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {}], {offset};",
                geometry.name, geometry.operand
            );
            if let Ok(given) = lab.try_rows(&body, texture, &rows, false) {
                book.note(name, first(given));
            }
            drop_texture(texture);
            drop_array(array);
        }
    }
}

fn formats(lab: &mut Lab, book: &mut Book) {
    let geometry = GEOMETRIES[1];
    for (format_name, _) in FORMATS {
        for channels in [1, 2, 4] {
            for as_float in [false, true] {
                if as_float && !matches!(format_name, "u8" | "u16" | "s8" | "s16") {
                    continue;
                }
                let float = dtype(format_name, as_float) == "f32";
                for linear in [false, true] {
                    if linear && !float {
                        continue;
                    }
                    let name = format!(
                        "format/{format_name}x{channels}{}{}",
                        if as_float { "/as float" } else { "" },
                        if linear { "/linear" } else { "" },
                    );
                    let mut random = Random::of(&name);
                    let spec = geometry.spec(format_name, channels, 0);
                    let kind = if linear { Content::Unit } else { Content::Bits };
                    let array = lab.array(spec, &content(&mut random, spec, kind));
                    let sampler = Sampler {
                        address: 3,
                        linear,
                        flags: read_flags(format_name, as_float),
                        border: [0.5, -2.0, 300.0, 0.125],
                    };
                    let texture = lab.texture(array, sampler);
                    let rows =
                        geometry.float_rows(&mut random, if linear { 160 } else { 48 }, false);
                    let body = format!(
                        "tex.2d.v4.{}.f32 {{d0, d1, d2, d3}}, [o, {{a0, a1}}];",
                        dtype(format_name, as_float)
                    );
                    book.note(name, all(lab.rows(&body, texture, &rows)));
                    drop_texture(texture);
                    drop_array(array);
                }
            }
        }
    }
    // Each value of eight bits, and many of sixteen.
    for format_name in ["u8", "s8", "u16", "s16", "f16"] {
        let name = format!("values/{format_name}");
        let mut random = Random::of(&name);
        let count: u32 = if format_name.ends_with('8') {
            256
        } else {
            2048
        };
        let spec = Spec {
            size: [count as usize, 0, 0],
            format: format(format_name),
            channels: 1,
            flags: 0,
        };
        let bytes: Vec<u8> = if count == 256 {
            (0..=255).collect()
        } else {
            content(&mut random, spec, Content::Bits)
        };
        let array = lab.array(spec, &bytes);
        let texture = lab.texture(
            array,
            Sampler {
                address: 1,
                ..Sampler::default()
            },
        );
        let rows: Vec<[u32; 8]> = (0..count)
            .map(|at| [(at as f32 + 0.5).to_bits(), 0, 0, 0, 0, 0, 0, 0])
            .collect();
        let body = "tex.1d.v4.f32.f32 {d0, d1, d2, d3}, [o, {a0}];";
        book.note(name, first(lab.rows(body, texture, &rows)));
        drop_texture(texture);
        drop_array(array);
    }
    // The curve of sRGB, of which alpha has none.
    for linear in [false, true] {
        let name = format!("srgb/{}", if linear { "linear" } else { "point" });
        let mut random = Random::of(&name);
        let spec = Spec {
            size: [256, 0, 0],
            format: format("u8"),
            channels: 4,
            flags: 0,
        };
        let bytes: Vec<u8> = (0..256_u32)
            .flat_map(|at| [at as u8, 255 - at as u8, (at * 7) as u8, at as u8])
            .collect();
        let array = lab.array(spec, &bytes);
        let texture = lab.texture(
            array,
            Sampler {
                address: 1,
                linear,
                flags: SRGB,
                border: [0.0; 4],
            },
        );
        let rows: Vec<[u32; 8]> = (0..256)
            .map(|at| {
                let x = if linear {
                    random.unit() * 256.0
                } else {
                    at as f32
                };
                [x.to_bits(), 0, 0, 0, 0, 0, 0, 0]
            })
            .collect();
        let body = "tex.1d.v4.f32.f32 {d0, d1, d2, d3}, [o, {a0}];";
        book.note(name, all(lab.rows(body, texture, &rows)));
        drop_texture(texture);
        drop_array(array);
    }
    // Numbers of all sizes, and infinities and NaN, between which nothing is a mean.
    for (label, format_name, kind) in [
        ("f32 wide", "f32", Content::Wide),
        ("f16 wide", "f16", Content::Wide),
        ("f32 bits", "f32", Content::Bits),
        ("f16 bits", "f16", Content::Bits),
    ] {
        for geometry in [GEOMETRIES[0], GEOMETRIES[1]] {
            let name = format!("linear/{label}/{}", geometry.name);
            let mut random = Random::of(&name);
            let spec = geometry.spec(format_name, 1, 0);
            let array = lab.array(spec, &content(&mut random, spec, kind));
            let texture = lab.texture(
                array,
                Sampler {
                    address: 1,
                    linear: true,
                    ..Sampler::default()
                },
            );
            let rows = geometry.float_rows(&mut random, 256, false);
            let body = format!(
                "tex.{}.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {}];",
                geometry.name, geometry.operand
            );
            book.note(name, first(lab.rows(&body, texture, &rows)));
            drop_texture(texture);
            drop_array(array);
        }
    }
    // Types that are not those of the format.
    for (format_name, flags, given) in [
        ("f32", 0, "u32"),
        ("f32", READ_AS_INTEGER, "f32"),
        ("f32", READ_AS_INTEGER, "u32"),
        ("u32", READ_AS_INTEGER, "f32"),
        ("u32", 0, "u32"),
        ("u32", 0, "f32"),
        ("u8", 0, "u32"),
        ("u8", READ_AS_INTEGER, "f32"),
        ("u8", READ_AS_INTEGER, "s32"),
        ("s8", READ_AS_INTEGER, "u32"),
        ("f16", 0, "u32"),
        ("f16", READ_AS_INTEGER, "f32"),
    ] {
        let name = format!("mismatch/{format_name}/{flags}/{given}");
        let mut random = Random::of(&name);
        let spec = geometry.spec(format_name, 1, 0);
        let array = lab.array(spec, &content(&mut random, spec, Content::Bits));
        match lab.try_texture(
            &Lab::array_resource(array),
            Sampler {
                address: 1,
                flags,
                ..Sampler::default()
            },
        ) {
            Ok(texture) => {
                let rows = geometry.float_rows(&mut random, 16, false);
                let body = format!("tex.2d.v4.{given}.f32 {{d0, d1, d2, d3}}, [o, {{a0, a1}}];");
                book.note(name, all(lab.rows(&body, texture, &rows)));
                drop_texture(texture);
            }
            Err(code) => book.note(name, vec![code]),
        }
        drop_array(array);
    }
}

fn integer_coordinates(lab: &mut Lab, book: &mut Book) {
    for geometry in &GEOMETRIES[1..5] {
        for address in 0..4 {
            for (label, linear, flags) in [
                ("point", false, 0),
                ("linear", true, 0),
                ("normalized", false, NORMALIZED),
            ] {
                let name = format!(
                    "fetch/{}/{}/{label}",
                    geometry.name, ADDRESS[address as usize]
                );
                let mut random = Random::of(&name);
                let spec = geometry.spec("f32", 1, 0);
                let array = lab.array(spec, &content(&mut random, spec, Content::Unit));
                let texture = lab.texture(
                    array,
                    Sampler {
                        address,
                        linear,
                        flags,
                        border: BORDER,
                    },
                );
                let rows = geometry.integer_rows(&mut random, 64);
                let body = format!(
                    "tex.{}.v4.f32.s32 {{d0, d1, d2, d3}}, [o, {}];",
                    geometry.name, geometry.operand
                );
                book.note(name, first(lab.rows(&body, texture, &rows)));
                drop_texture(texture);
                drop_array(array);
            }
        }
    }
}

fn memory(lab: &mut Lab, book: &mut Book) {
    // Linear memory.
    for (format_name, channels, as_float) in [
        ("f32", 1, false),
        ("u32", 2, false),
        ("s8", 4, true),
        ("u16", 1, true),
        ("f16", 1, false),
    ] {
        for address in [0, 1, 3] {
            {
                let coordinates = "s32";
                let name = format!(
                    "linear memory/{format_name}x{channels}/{}/{coordinates}",
                    ADDRESS[address as usize]
                );
                let mut random = Random::of(&name);
                let spec = Spec {
                    size: [37, 0, 0],
                    format: format(format_name),
                    channels,
                    flags: 0,
                };
                let at = lab.memory(&content(&mut random, spec, Content::Unit));
                let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
                resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
                resource.res.linear.devPtr = at;
                resource.res.linear.format = spec.format;
                resource.res.linear.numChannels = channels;
                resource.res.linear.sizeInBytes = spec.bytes();
                let sampler = Sampler {
                    address,
                    linear: false,
                    flags: read_flags(format_name, as_float),
                    border: BORDER,
                };
                let texture = lab.try_texture(&resource, sampler).unwrap();
                let one = Geometry {
                    size: [37, 0, 0],
                    ..GEOMETRIES[0]
                };
                let rows = one.integer_rows(&mut random, 64);
                let body = format!(
                    "tex.1d.v4.{}.{coordinates} {{d0, d1, d2, d3}}, [o, {{a0}}];",
                    dtype(format_name, as_float)
                );
                book.note(name, all(lab.rows(&body, texture, &rows)));
                drop_texture(texture);
                drop_memory(at);
            }
        }
    }
    // Rows.
    for address in 0..4 {
        for normalized in [false, true] {
            for (linear, coordinates) in [(false, "f32"), (true, "f32"), (false, "s32")] {
                for (format_name, channels) in [("f32", 1), ("u8", 4)] {
                    let name = format!(
                        "rows/{format_name}x{channels}/{}/{}/{}/{coordinates}",
                        ADDRESS[address as usize],
                        if normalized { "normalized" } else { "texels" },
                        if linear { "linear" } else { "point" }
                    );
                    let mut random = Random::of(&name);
                    let spec = Spec {
                        size: [128 / 4, 7, 0],
                        format: format(format_name),
                        channels,
                        flags: 0,
                    };
                    let at = lab.memory(&content(&mut random, spec, Content::Unit));
                    let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
                    resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
                    resource.res.pitch2D.devPtr = at;
                    resource.res.pitch2D.format = spec.format;
                    resource.res.pitch2D.numChannels = channels;
                    resource.res.pitch2D.width = 13;
                    resource.res.pitch2D.height = 7;
                    resource.res.pitch2D.pitchInBytes = 128;
                    let flags = if normalized { NORMALIZED } else { 0 };
                    let texture = lab
                        .try_texture(
                            &resource,
                            Sampler {
                                address,
                                linear,
                                flags,
                                border: BORDER,
                            },
                        )
                        .unwrap();
                    let rows = if coordinates == "s32" {
                        GEOMETRIES[1].integer_rows(&mut random, 48)
                    } else {
                        GEOMETRIES[1].float_rows(&mut random, 96, normalized)
                    };
                    let body =
                        format!("tex.2d.v4.f32.{coordinates} {{d0, d1, d2, d3}}, [o, {{a0, a1}}];");
                    book.note(name, first(lab.rows(&body, texture, &rows)));
                    drop_texture(texture);
                    drop_memory(at);
                }
            }
        }
    }
}

fn gathers(lab: &mut Lab, book: &mut Book) {
    for geometry in [GEOMETRIES[1], GEOMETRIES[4], GEOMETRIES[5], GEOMETRIES[6]] {
        for (component, format_name, as_float) in [
            ("r", "f32", false),
            ("g", "f32", false),
            ("b", "f32", false),
            ("a", "f32", false),
            ("r", "u32", false),
            ("g", "s8", false),
            ("b", "u8", true),
        ] {
            for address in 0..4 {
                for (normalized, linear) in [(false, false), (true, false), (false, true)] {
                    if address != 1 && (component != "r" || geometry.name != "2d") {
                        continue;
                    }
                    if linear && dtype(format_name, as_float) != "f32" {
                        continue;
                    }
                    let name = format!(
                        "tld4/{}/{component}/{format_name}/{}/{}{}",
                        geometry.name,
                        ADDRESS[address as usize],
                        if normalized { "normalized" } else { "texels" },
                        if linear { "/linear" } else { "" }
                    );
                    let mut random = Random::of(&name);
                    let flags = if geometry.name == "2d" { GATHER } else { 0 };
                    let spec = geometry.spec(format_name, 4, flags);
                    let array = lab.array(spec, &content(&mut random, spec, Content::Unit));
                    let mut flags = read_flags(format_name, as_float);
                    if normalized {
                        flags |= NORMALIZED;
                    }
                    let texture = lab.texture(
                        array,
                        Sampler {
                            address,
                            linear,
                            flags,
                            border: BORDER,
                        },
                    );
                    let rows = geometry.float_rows(&mut random, 48, normalized);
                    let body = format!(
                        "tld4.{component}.{}.v4.{}.f32 {{d0, d1, d2, d3}}, [o, {}];",
                        geometry.name,
                        dtype(format_name, as_float),
                        geometry.operand
                    );
                    book.note(name, all(lab.rows(&body, texture, &rows)));
                    drop_texture(texture);
                    drop_array(array);
                }
            }
        }
    }
    // An array that was not made for it, and one channel.
    for (label, channels, component, flags) in [
        ("without the flag", 4, "g", 0),
        ("of one channel", 1, "g", GATHER),
        ("alpha of one channel", 1, "a", GATHER),
    ] {
        let name = format!("tld4/{label}");
        let mut random = Random::of(&name);
        let spec = GEOMETRIES[1].spec("f32", channels, flags);
        let array = lab.array(spec, &content(&mut random, spec, Content::Unit));
        let texture = lab.texture(
            array,
            Sampler {
                address: 1,
                ..Sampler::default()
            },
        );
        let rows = GEOMETRIES[1].float_rows(&mut random, 16, false);
        let body = format!("tld4.{component}.2d.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {{a0, a1}}];");
        book.note(name, all(lab.rows(&body, texture, &rows)));
        drop_texture(texture);
        drop_array(array);
    }
}

fn queries(lab: &mut Lab, book: &mut Book) {
    const QUERIES: [&str; 3] = ["width", "height", "depth"];
    for query in QUERIES {
        for geometry in GEOMETRIES {
            for (format_name, channels, flags) in [
                ("f32", 1, 0),
                ("u8", 4, NORMALIZED),
                ("s16", 2, READ_AS_INTEGER),
                ("f16", 4, 0),
            ] {
                if geometry.name != "2d" && format_name != "f32" {
                    continue;
                }
                let spec = geometry.spec(format_name, channels, 0);
                let array = lab.array(spec, &vec![0; spec.bytes()]);
                let texture = lab.texture(
                    array,
                    Sampler {
                        address: 0,
                        flags,
                        ..Sampler::default()
                    },
                );
                let given = lab.try_rows(
                    &format!("txq.{query}.b32 d0, [o];"),
                    texture,
                    &[[0; 8]],
                    false,
                );
                let words = given.map_or_else(|code| vec![code, 0xbad], first);
                book.note(
                    format!("txq/{query}/{}/{format_name}x{channels}", geometry.name),
                    words,
                );
                drop_texture(texture);
                drop_array(array);
            }
        }
    }
    for query in QUERIES {
        for geometry in &GEOMETRIES {
            for (format_name, channels) in [("f32", 1), ("u8", 4), ("s16", 2), ("f16", 4)] {
                if geometry.name != "2d" && format_name != "f32" {
                    continue;
                }
                let spec = geometry.spec(format_name, channels, SURFACE);
                let array = lab.array(spec, &vec![0; spec.bytes()]);
                let surface = lab.try_surface(array).unwrap();
                let given = lab.try_rows(
                    &format!("suq.{query}.b32 d0, [o];"),
                    surface,
                    &[[0; 8]],
                    false,
                );
                let words = given.map_or_else(|code| vec![code, 0xbad], first);
                book.note(
                    format!("suq/{query}/{}/{format_name}x{channels}", geometry.name),
                    words,
                );
                drop_surface(surface);
                drop_array(array);
            }
        }
    }
}

/// The forms of unformatted accesses: the suffix, the bytes, and the registers.
const PIECES: [(&str, usize, &str); 9] = [
    ("b8", 1, "{d0}"),
    ("b16", 2, "{d0}"),
    ("b32", 4, "{d0}"),
    ("b64", 8, "{q2}"),
    ("v2.b8", 2, "{d0, d1}"),
    ("v2.b32", 8, "{d0, d1}"),
    ("v2.b64", 16, "{q2, q3}"),
    ("v4.b16", 8, "{d0, d1, d2, d3}"),
    ("v4.b32", 16, "{d0, d1, d2, d3}"),
];

fn load_body(geometry: &str, piece: (&str, usize, &str), mode: &str, operand: &str) -> String {
    let (suffix, _, registers) = piece;
    let kind = suffix.rsplit_once('b').unwrap().1;
    // Through registers of the type, where it is not of 32 bits.
    let (declare, names, after) = match (kind, registers) {
        ("8" | "16", "{d0}") => (".reg .b16 h0;", "{h0}", "cvt.u32.u16 d0, h0;"),
        ("8" | "16", "{d0, d1}") => (
            ".reg .b16 h0, h1;",
            "{h0, h1}",
            "cvt.u32.u16 d0, h0; cvt.u32.u16 d1, h1;",
        ),
        ("8" | "16", _) => (
            ".reg .b16 h<4>;",
            "{h0, h1, h2, h3}",
            "cvt.u32.u16 d0, h0; cvt.u32.u16 d1, h1; cvt.u32.u16 d2, h2; cvt.u32.u16 d3, h3;",
        ),
        ("64", "{q2}") => ("", "{q2}", "mov.b64 {d0, d1}, q2;"),
        ("64", _) => (
            "",
            "{q2, q3}",
            "mov.b64 {d0, d1}, q2; mov.b64 {d2, d3}, q3;",
        ),
        (_, registers) => ("", registers, ""),
    };
    let names = names.to_owned();
    format!("{declare} suld.b.{geometry}.{suffix}.{mode} {names}, [o, {operand}]; {after}")
}

fn surface_rows(
    geometry: &Geometry,
    random: &mut Random,
    count: usize,
    texel: usize,
    unit: usize,
) -> Vec<[u32; 8]> {
    (0..count)
        .map(|_| {
            let mut row = [0; 8];
            for (word, axis) in row.iter_mut().zip(geometry.axes) {
                *word = if *axis == 'x' {
                    let bytes = geometry.extent('x') * texel;
                    let places = (bytes / unit) as u32;
                    match random.below(16) {
                        0 => (unit as u32).wrapping_neg(),
                        1 => places * unit as u32,
                        2 => (places + 1) * unit as u32,
                        3 => 0x7fff_fff0,
                        4 => 0x8000_0000,
                        5 => places.wrapping_neg().wrapping_mul(unit as u32),
                        _ => random.below(places) * unit as u32,
                    }
                } else {
                    integer(random, geometry.extent(*axis)) as u32
                };
            }
            for word in &mut row[4..] {
                *word = random.word();
            }
            row
        })
        .collect()
}

fn loads(lab: &mut Lab, book: &mut Book) {
    for geometry in &GEOMETRIES[..5] {
        for (format_name, channels) in [("u32", 4), ("u8", 1), ("u16", 2)] {
            for piece in PIECES {
                for mode in ["clamp", "zero"] {
                    let name = format!(
                        "suld/{}/{format_name}x{channels}/{}/{mode}",
                        geometry.name, piece.0
                    );
                    let mut random = Random::of(&name);
                    let spec = geometry.spec(format_name, channels, SURFACE);
                    // What is wider than a texel is another case.
                    if piece.1 > spec.texel() {
                        continue;
                    }
                    let array = lab.array(spec, &content(&mut random, spec, Content::Bits));
                    let surface = lab.try_surface(array).unwrap();
                    let rows = surface_rows(geometry, &mut random, 32, spec.texel(), piece.1);
                    let body = load_body(geometry.name, piece, mode, geometry.operand);
                    let given = lab.try_rows(&body, surface, &rows, false);
                    match given {
                        Ok(given) => book.note(name, all(given)),
                        Err(code) => {
                            lab.reset();
                            book.note(name, vec![code, 0xbad]);
                            continue;
                        }
                    }
                    drop_surface(surface);
                    drop_array(array);
                }
            }
        }
    }
}

fn store_body(geometry: &str, suffix: &str, mode: &str, operand: &str) -> String {
    let (declare, values) = match suffix {
        "b8" | "b16" => (".reg .b16 h0; cvt.u16.u32 h0, b0;", "{h0}"),
        "b32" => ("", "{b0}"),
        "b64" => ("", "{q0}"),
        "v2.b32" => ("", "{b0, b1}"),
        "v2.b64" => ("", "{q0, q1}"),
        "v4.b16" => (
            ".reg .b16 h<4>; cvt.u16.u32 h0, b0; cvt.u16.u32 h1, b1; cvt.u16.u32 h2, b2; cvt.u16.u32 h3, b3;",
            "{h0, h1, h2, h3}",
        ),
        _ => ("", "{b0, b1, b2, b3}"),
    };
    format!("{declare} sust.b.{geometry}.{suffix}.{mode} [o, {operand}], {values};")
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        })
        .collect()
}

/// Small ones, since the whole array is kept.
fn small(geometry: &Geometry) -> Geometry {
    let size = match geometry.name {
        "1d" => [5, 0, 0],
        "2d" => [3, 4, 0],
        "a1d" => [3, 0, 3],
        _ => [3, 2, 3],
    };
    Geometry { size, ..*geometry }
}

fn stores(lab: &mut Lab, book: &mut Book) {
    for geometry in &GEOMETRIES[..5] {
        let geometry = small(geometry);
        for (suffix, bytes, format_name, channels) in [
            ("b8", 1, "u8", 1),
            ("b16", 2, "f16", 1),
            ("b32", 4, "u8", 4),
            ("b64", 8, "u16", 4),
            ("v4.b16", 8, "u16", 4),
            ("v4.b32", 16, "f32", 4),
            ("b32", 4, "f32", 4),
            ("b8", 1, "f32", 1),
        ] {
            for mode in ["clamp", "zero"] {
                let name = format!(
                    "sust.b/{}/{format_name}x{channels}/{suffix}/{mode}",
                    geometry.name
                );
                let mut random = Random::of(&name);
                let spec = geometry.spec(format_name, channels, SURFACE);
                let array = lab.array(spec, &content(&mut random, spec, Content::Bits));
                let surface = lab.try_surface(array).unwrap();
                let rows = surface_rows(&geometry, &mut random, 12, spec.texel(), bytes);
                let body = store_body(geometry.name, suffix, mode, geometry.operand);
                let given = lab.try_rows(&body, surface, &rows, true);
                if let Err(code) = given {
                    lab.reset();
                    book.note(name, vec![code, 0xbad]);
                    continue;
                }
                book.note(name, words(&lab.read(spec, array)));
                drop_surface(surface);
                drop_array(array);
            }
        }
    }
}

fn formatted_stores(lab: &mut Lab, book: &mut Book) {
    for (format_name, _) in FORMATS {
        for channels in [1, 2, 4] {
            let name = format!("sust.p/{format_name}x{channels}");
            let mut random = Random::of(&name);
            let geometry = Geometry {
                size: [16, 2, 0],
                ..GEOMETRIES[1]
            };
            let spec = geometry.spec(format_name, channels, SURFACE);
            let array = lab.array(spec, &content(&mut random, spec, Content::Bits));
            let surface = lab.try_surface(array).unwrap();
            let rows: Vec<[u32; 8]> = (0..32)
                .map(|at| {
                    let mut row = [at % 16, at / 16, 0, 0, 0, 0, 0, 0];
                    for word in &mut row[4..] {
                        *word = if format_name.starts_with('f') {
                            match random.below(8) {
                                0 => 65_519.9_f32.to_bits(),
                                1 => (-1e-7_f32 * random.unit()).to_bits(),
                                2 => 1e9_f32.to_bits(),
                                3 => random.word(),
                                4 => {
                                    f32::from_bits(0x3f80_1000 | (random.below(4) << 13)).to_bits()
                                }
                                _ => (random.unit() * 100.0 - 50.0).to_bits(),
                            }
                        } else {
                            match random.below(4) {
                                0 => random.word(),
                                1 => random.below(300),
                                2 => random.below(300).wrapping_neg(),
                                _ => random.below(70_000),
                            }
                        };
                    }
                    row
                })
                .collect();
            let body = "sust.p.2d.v4.b32.trap [o, {a0, a1}], {b0, b1, b2, b3};";
            let given = lab.try_rows(body, surface, &rows, false);
            if let Err(code) = given {
                lab.reset();
                book.note(name, vec![code, 0xbad]);
                continue;
            }
            book.note(name, words(&lab.read(spec, array)));
            drop_surface(surface);
            drop_array(array);
        }
    }
    for geometry in &GEOMETRIES[..3] {
        for mode in ["clamp", "zero"] {
            let name = format!("sust.p/{}/{mode}", geometry.name);
            let mut random = Random::of(&name);
            let geometry = small(geometry);
            let spec = geometry.spec("s16", 2, SURFACE);
            let array = lab.array(spec, &content(&mut random, spec, Content::Bits));
            let surface = lab.try_surface(array).unwrap();
            let rows = surface_rows(&geometry, &mut random, 16, 1, 1);
            let body = format!(
                "sust.p.{}.v4.b32.{mode} [o, {}], {{b0, b1, b2, b3}};",
                geometry.name, geometry.operand
            );
            let given = lab.try_rows(&body, surface, &rows, true);
            if let Err(code) = given {
                lab.reset();
                book.note(name, vec![code, 0xbad]);
                continue;
            }
            book.note(name, words(&lab.read(spec, array)));
            drop_surface(surface);
            drop_array(array);
        }
    }
}

fn reductions(lab: &mut Lab, book: &mut Book) {
    for geometry in &GEOMETRIES[..3] {
        for (kind, op, ty) in [
            ("b", "add", "u32"),
            ("b", "add", "s32"),
            ("b", "add", "u64"),
            ("b", "min", "s32"),
            ("b", "max", "u32"),
            ("b", "max", "s32"),
            ("b", "min", "u32"),
            ("b", "min", "s64"),
            ("b", "max", "u64"),
            ("b", "and", "b32"),
            ("b", "or", "b32"),
            ("p", "add", "b32"),
            ("p", "min", "b32"),
            ("p", "or", "b32"),
        ] {
            for mode in ["clamp", "zero"] {
                let wide = ty.ends_with("64");
                let name = format!("sured.{kind}/{op}/{ty}/{}/{mode}", geometry.name);
                let mut random = Random::of(&name);
                let geometry = small(geometry);
                let spec = geometry.spec(
                    if kind == "p" && op == "min" {
                        "s32"
                    } else {
                        "u32"
                    },
                    if wide { 2 } else { 1 },
                    SURFACE,
                );
                let array = lab.array(spec, &content(&mut random, spec, Content::Bits));
                let surface = lab.try_surface(array).unwrap();
                let unit = if kind == "p" { 1 } else { spec.texel() };
                let texel = if kind == "p" { 1 } else { spec.texel() };
                let rows = surface_rows(&geometry, &mut random, 24, texel, unit);
                let value = if wide { "q0" } else { "b0" };
                let body = format!(
                    "sured.{kind}.{op}.{}.{ty}.{mode} [o, {}], {value};",
                    geometry.name, geometry.operand
                );
                let given = lab.try_rows(&body, surface, &rows, true);
                if let Err(code) = given {
                    lab.reset();
                    book.note(name, vec![code, 0xbad]);
                    continue;
                }
                book.note(name, words(&lab.read(spec, array)));
                drop_surface(surface);
                drop_array(array);
            }
        }
    }
}

/// What the driver answers to what it refuses, and what the device allows.
fn answers(lab: &mut Lab, book: &mut Book) {
    for attribute in (14..15)
        .chain(21..31)
        .chain(42..50)
        .chain(51..75)
        .chain(77..78)
    {
        book.note(
            format!("attribute/{attribute}"),
            vec![lab.attribute(attribute) as u32],
        );
    }
    let plain = Spec {
        size: [16, 8, 0],
        format: format("f32"),
        channels: 1,
        flags: 0,
    };
    let mut create = |name: &str, spec: Spec| {
        let code = match lab.try_array(spec) {
            Ok(array) => {
                drop_array(array);
                0
            }
            Err(code) => code,
        };
        book.note(format!("array/{name}"), vec![code]);
    };
    create("plain", plain);
    create(
        "no channels",
        Spec {
            channels: 0,
            ..plain
        },
    );
    create(
        "three channels",
        Spec {
            channels: 3,
            ..plain
        },
    );
    create(
        "five channels",
        Spec {
            channels: 5,
            ..plain
        },
    );
    create(
        "no width",
        Spec {
            size: [0, 8, 0],
            ..plain
        },
    );
    create(
        "no height but depth",
        Spec {
            size: [16, 0, 4],
            ..plain
        },
    );
    create(
        "too wide 1d",
        Spec {
            size: [131_073, 0, 0],
            ..plain
        },
    );
    create(
        "widest 1d",
        Spec {
            size: [131_072, 0, 0],
            ..plain
        },
    );
    create(
        "too wide 1d surface",
        Spec {
            size: [32_769, 0, 0],
            flags: SURFACE,
            ..plain
        },
    );
    create(
        "too high 2d",
        Spec {
            size: [16, 65_537, 0],
            ..plain
        },
    );
    create(
        "too deep 3d",
        Spec {
            size: [16, 16, 16_385],
            ..plain
        },
    );
    create(
        "too deep and wide 3d",
        Spec {
            size: [8193, 16, 16_385],
            ..plain
        },
    );
    create(
        "too high 3d",
        Spec {
            size: [16, 16_385, 16],
            ..plain
        },
    );
    create(
        "too many layers",
        Spec {
            size: [16, 16, 2049],
            flags: LAYERED,
            ..plain
        },
    );
    create(
        "layered without layers",
        Spec {
            size: [16, 16, 0],
            flags: LAYERED,
            ..plain
        },
    );
    create(
        "cube not square",
        Spec {
            size: [16, 8, 6],
            flags: CUBEMAP,
            ..plain
        },
    );
    create(
        "cube of five",
        Spec {
            size: [16, 16, 5],
            flags: CUBEMAP,
            ..plain
        },
    );
    create(
        "cube of twelve",
        Spec {
            size: [16, 16, 12],
            flags: CUBEMAP,
            ..plain
        },
    );
    create(
        "cubes of eleven",
        Spec {
            size: [16, 16, 11],
            flags: CUBEMAP | LAYERED,
            ..plain
        },
    );
    create(
        "unknown flags",
        Spec {
            flags: 0x4000,
            ..plain
        },
    );
    create(
        "gather of one dimension",
        Spec {
            size: [16, 0, 0],
            flags: GATHER,
            ..plain
        },
    );
    create(
        "gather too wide",
        Spec {
            size: [32_769, 4, 0],
            flags: GATHER,
            ..plain
        },
    );
    create(
        "gather in three dimensions",
        Spec {
            size: [16, 4, 4],
            flags: GATHER,
            ..plain
        },
    );

    let spec = |format_name, flags| Spec {
        format: format(format_name),
        flags,
        ..plain
    };
    let mut texture = |lab: &Lab, name: &str, spec: Spec, sampler: Sampler| {
        let array = lab.try_array(spec).unwrap();
        let code = match lab.try_texture(&Lab::array_resource(array), sampler) {
            Ok(texture) => {
                drop_texture(texture);
                0
            }
            Err(code) => code,
        };
        drop_array(array);
        book.note(format!("texture/{name}"), vec![code]);
    };
    let sampler = Sampler {
        address: 1,
        ..Sampler::default()
    };
    let linear = Sampler {
        linear: true,
        ..sampler
    };
    texture(lab, "plain", spec("f32", 0), sampler);
    texture(
        lab,
        "linear integers",
        spec("u8", 0),
        Sampler {
            flags: READ_AS_INTEGER,
            ..linear
        },
    );
    texture(lab, "linear u32 as float", spec("u32", 0), linear);
    texture(lab, "linear u8 as float", spec("u8", 0), linear);
    texture(
        lab,
        "wrap texels",
        spec("f32", 0),
        Sampler {
            address: 0,
            ..sampler
        },
    );
    texture(
        lab,
        "srgb of floats",
        spec("f32", 0),
        Sampler {
            flags: SRGB,
            ..sampler
        },
    );
    texture(
        lab,
        "srgb of one channel",
        spec("u8", 0),
        Sampler {
            flags: SRGB,
            ..sampler
        },
    );
    texture(
        lab,
        "srgb of integers",
        spec("u8", 0),
        Sampler {
            flags: SRGB | READ_AS_INTEGER,
            ..sampler
        },
    );
    texture(
        lab,
        "unknown flags",
        spec("f32", 0),
        Sampler {
            flags: 0x4000,
            ..sampler
        },
    );

    let array = lab.try_array(plain).unwrap();
    let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
    book.note(
        "texture/of no array",
        vec![
            lab.try_texture(&resource, sampler)
                .map_or_else(|code| code, |_| 0),
        ],
    );
    book.note("surface/of no array", vec![surface_code(&resource)]);
    let at = lab.memory(&vec![0; 4096]);
    resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = at;
    resource.res.linear.format = format("f32");
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 4096;
    book.note("surface/of memory", vec![surface_code(&resource)]);
    let mut linear_memory =
        |lab: &Lab, name: &str, at: u64, bytes: usize, channels: u32, sampler: Sampler| {
            resource.res.linear.devPtr = at;
            resource.res.linear.sizeInBytes = bytes;
            resource.res.linear.numChannels = channels;
            let code = match lab.try_texture(&resource, sampler) {
                Ok(texture) => {
                    drop_texture(texture);
                    0
                }
                Err(code) => code,
            };
            book.note(format!("texture/linear {name}"), vec![code]);
        };
    linear_memory(lab, "plain", at, 4096, 1, sampler);
    linear_memory(lab, "misaligned by 4", at + 4, 64, 1, sampler);
    linear_memory(lab, "misaligned by 32", at + 32, 64, 1, sampler);
    linear_memory(lab, "misaligned by 256", at + 256, 64, 1, sampler);
    linear_memory(lab, "of nothing", at, 0, 1, sampler);
    linear_memory(lab, "of half an element", at, 6, 1, sampler);
    linear_memory(lab, "of three channels", at, 48, 3, sampler);
    linear_memory(lab, "at null", 0, 48, 1, sampler);
    linear_memory(
        lab,
        "with a filter",
        at,
        64,
        1,
        Sampler {
            linear: true,
            ..sampler
        },
    );
    linear_memory(
        lab,
        "normalized",
        at,
        64,
        1,
        Sampler {
            flags: NORMALIZED,
            ..sampler
        },
    );
    let mut rows = |lab: &Lab, name: &str, at: u64, width: usize, height: usize, pitch: usize| {
        let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
        resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
        resource.res.pitch2D.devPtr = at;
        resource.res.pitch2D.format = format("f32");
        resource.res.pitch2D.numChannels = 1;
        resource.res.pitch2D.width = width;
        resource.res.pitch2D.height = height;
        resource.res.pitch2D.pitchInBytes = pitch;
        let code = match lab.try_texture(&resource, sampler) {
            Ok(texture) => {
                drop_texture(texture);
                0
            }
            Err(code) => code,
        };
        book.note(format!("texture/rows {name}"), vec![code]);
    };
    rows(lab, "plain", at, 16, 8, 64);
    rows(lab, "misaligned by 32", at + 32, 16, 8, 64);
    rows(lab, "at a pitch of 48", at, 8, 8, 48);
    rows(lab, "at a pitch of 32", at, 8, 8, 32);
    rows(lab, "at a pitch below the width", at, 16, 8, 32);
    rows(lab, "of no height", at, 16, 0, 64);
    rows(lab, "beyond the end", at, 16, 8000, 64);
    rows(lab, "too wide", at, 131_073, 1, 524_320);
    drop_memory(at);

    // Copies.
    let host = [0_u8; 4096];
    let mut copy = |name: &str, change: &dyn Fn(&mut sys::CUDA_MEMCPY3D)| {
        let mut copy = memcpy3d();
        copy.srcHost = host.as_ptr().cast();
        copy.srcPitch = 64;
        copy.srcHeight = 8;
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.dstArray = array;
        copy.WidthInBytes = 64;
        copy.Height = 8;
        copy.Depth = 1;
        change(&mut copy);
        let code = cu!(cuMemcpy3D_v2(&raw const copy));
        book.note(format!("copy/{name}"), vec![code]);
    };
    copy("plain", &|_| {});
    copy("too wide", &|copy| copy.WidthInBytes = 68);
    copy("from beyond", &|copy| copy.dstXInBytes = 4);
    copy("too high", &|copy| copy.Height = 9);
    copy("row beyond", &|copy| {
        copy.dstY = 8;
        copy.Height = 1;
    });
    copy("too deep", &|copy| copy.Depth = 2);
    copy("half an element", &|copy| copy.WidthInBytes = 62);
    copy("at half an element", &|copy| {
        copy.dstXInBytes = 2;
        copy.WidthInBytes = 4;
    });
    copy("pitch below the width", &|copy| copy.srcPitch = 32);
    copy("no pitch", &|copy| copy.srcPitch = 0);
    copy("no height of the source", &|copy| copy.srcHeight = 0);
    copy("nothing wide", &|copy| copy.WidthInBytes = 0);
    copy("nothing high", &|copy| copy.Height = 0);
    copy("nothing deep", &|copy| copy.Depth = 0);
    copy("a level", &|copy| copy.dstLOD = 1);
    copy("no host", &|copy| copy.srcHost = std::ptr::null());
    copy("no array", &|copy| copy.dstArray = std::ptr::null_mut());
    let mut descriptor: sys::CUDA_ARRAY_DESCRIPTOR = zeroed();
    let code = cu!(cuArrayGetDescriptor_v2(&raw mut descriptor, array));
    book.note(
        "descriptor/2d",
        vec![
            code,
            descriptor.Width as u32,
            descriptor.Height as u32,
            descriptor.NumChannels,
        ],
    );
    for (name, spec) in [
        (
            "layered",
            Spec {
                size: [16, 8, 3],
                flags: LAYERED | SURFACE,
                ..plain
            },
        ),
        (
            "1d",
            Spec {
                size: [16, 0, 0],
                ..plain
            },
        ),
        (
            "cube",
            Spec {
                size: [4, 4, 6],
                flags: CUBEMAP,
                ..plain
            },
        ),
    ] {
        let array = lab.try_array(spec).unwrap();
        let mut whole: sys::CUDA_ARRAY3D_DESCRIPTOR = zeroed();
        let code = cu!(cuArray3DGetDescriptor_v2(&raw mut whole, array));
        book.note(
            format!("descriptor/{name}"),
            vec![
                code,
                whole.Width as u32,
                whole.Height as u32,
                whole.Depth as u32,
                whole.Flags,
            ],
        );
        drop_array(array);
    }
    // Twice.
    drop_array(array);
    book.note(
        "destroy/null array",
        vec![cu!(cuArrayDestroy(std::ptr::null_mut()))],
    );
    book.note("destroy/texture of none", vec![cu!(cuTexObjectDestroy(0))]);
    book.note("destroy/surface of none", vec![cu!(cuSurfObjectDestroy(0))]);
}

/// What may end in an error of the context, for good: each has a process or a device of its own. The body, the texels,
/// and the coordinates of what runs one after another.
const FAULTS: [(&str, &str, &str, u32, [u32; 2]); 28] = [
    (
        "trap x",
        "suld.b.2d.b32.trap {d0}, [o, {a0, a1}];",
        "u32",
        4,
        [128, 0],
    ),
    (
        "trap x negative",
        "suld.b.2d.b32.trap {d0}, [o, {a0, a1}];",
        "u32",
        4,
        [u32::MAX - 3, 0],
    ),
    (
        "trap y",
        "suld.b.2d.b32.trap {d0}, [o, {a0, a1}];",
        "u32",
        4,
        [0, 4],
    ),
    (
        "trap store",
        "sust.b.2d.b32.trap [o, {a0, a1}], {b0};",
        "u32",
        4,
        [128, 0],
    ),
    (
        "trap formatted",
        "sust.p.2d.v4.b32.trap [o, {a0, a1}], {b0, b1, b2, b3};",
        "u32",
        4,
        [8, 0],
    ),
    (
        "trap reduction",
        "sured.b.add.2d.u32.trap [o, {a0, a1}], b0;",
        "u32",
        1,
        [32, 0],
    ),
    (
        "misaligned load",
        "suld.b.2d.b32.zero {d0}, [o, {a0, a1}];",
        "u32",
        4,
        [2, 1],
    ),
    (
        "misaligned load b64",
        "suld.b.2d.b64.zero {q2}, [o, {a0, a1}]; mov.b64 {d0, d1}, q2;",
        "u32",
        4,
        [4, 1],
    ),
    (
        "misaligned load v4",
        "suld.b.2d.v4.b32.zero {d0, d1, d2, d3}, [o, {a0, a1}];",
        "u32",
        4,
        [8, 1],
    ),
    (
        "misaligned store",
        "sust.b.2d.b32.zero [o, {a0, a1}], {b0};",
        "u32",
        4,
        [2, 1],
    ),
    (
        "misaligned reduction",
        "sured.b.add.2d.u32.zero [o, {a0, a1}], b0;",
        "u32",
        1,
        [2, 1],
    ),
    (
        "1d of 2d",
        "suld.b.1d.b32.trap {d0}, [o, {a0}];",
        "u32",
        4,
        [4, 0],
    ),
    (
        "3d of 2d",
        "suld.b.3d.b32.trap {d0}, [o, {a0, a1, a1, a1}];",
        "u32",
        4,
        [4, 0],
    ),
    (
        "a2d of 2d",
        "suld.b.a2d.b32.trap {d0}, [o, {a1, a0, a1, a1}];",
        "u32",
        4,
        [4, 0],
    ),
    (
        "texture of a surface",
        "tex.2d.v4.u32.s32 {d0, d1, d2, d3}, [o, {a0, a1}];",
        "u32",
        4,
        [0, 0],
    ),
    (
        "wide load u8",
        "suld.b.2d.b32.zero {d0}, [o, {a0, a1}];",
        "u8",
        1,
        [4, 1],
    ),
    (
        "wide load u8 last",
        "suld.b.2d.b32.zero {d0}, [o, {a0, a1}];",
        "u8",
        1,
        [8, 1],
    ),
    (
        "wide store u8",
        "sust.b.2d.b32.zero [o, {a0, a1}], {b0};",
        "u8",
        1,
        [4, 1],
    ),
    (
        "wide load u32",
        "suld.b.2d.v4.b32.zero {d0, d1, d2, d3}, [o, {a0, a1}];",
        "u32",
        1,
        [16, 1],
    ),
    (
        "wide load u32 clamped",
        "suld.b.2d.v2.b32.clamp {d0, d1}, [o, {a0, a1}];",
        "u32",
        1,
        [32, 1],
    ),
    (
        "wide store u32",
        "sust.b.2d.v4.b32.zero [o, {a0, a1}], {b0, b1, b2, b3};",
        "u32",
        1,
        [16, 1],
    ),
    (
        "reduction u32x4",
        "sured.b.add.2d.u32.zero [o, {a0, a1}], b0;",
        "u32",
        4,
        [20, 1],
    ),
    (
        "reduction u8x4",
        "sured.b.add.2d.u32.zero [o, {a0, a1}], b0;",
        "u8",
        4,
        [4, 1],
    ),
    (
        "reduction u64 of u32",
        "sured.b.add.2d.u64.zero [o, {a0, a1}], q0;",
        "u32",
        1,
        [8, 1],
    ),
    (
        "reduction p f32",
        "sured.p.add.2d.b32.zero [o, {a0, a1}], b0;",
        "f32",
        1,
        [4, 1],
    ),
    (
        "reduction p u16",
        "sured.p.add.2d.b32.zero [o, {a0, a1}], b0;",
        "u16",
        1,
        [4, 1],
    ),
    (
        "reduction p u32x4",
        "sured.p.add.2d.b32.zero [o, {a0, a1}], b0;",
        "u32",
        4,
        [4, 1],
    ),
    (
        "reduction p s32 max",
        "sured.p.max.2d.b32.zero [o, {a0, a1}], b0;",
        "s32",
        1,
        [4, 1],
    ),
];

pub(crate) fn faults() -> impl Iterator<Item = &'static str> {
    let others = [
        "destroyed texture",
        "no texture",
        "destroyed surface",
        "no surface",
        "texture of a destroyed array",
    ];
    FAULTS.iter().map(|fault| fault.0).chain(others)
}

pub(crate) fn fault(lab: &mut Lab, book: &mut Book, name: &str) {
    let texels =
        |given: Result<Vec<[u32; 4]>, u32>| given.map_or_else(|code| vec![code, 0xbad], all);
    if let Some((name, body, format_name, channels, [x, y])) =
        FAULTS.iter().find(|fault| fault.0 == name)
    {
        let spec = Spec {
            size: [8, 4, 0],
            format: format(format_name),
            channels: *channels,
            flags: SURFACE,
        };
        let array = lab.array(
            spec,
            &(0..spec.bytes()).map(|at| at as u8).collect::<Vec<u8>>(),
        );
        let surface = lab.try_surface(array).unwrap();
        let given = lab.try_rows(body, surface, &[[*x, *y, 0, 0, 7, 8, 9, 10]], false);
        book.note(format!("fault/{name}"), texels(given));
        if cu!(cuCtxSynchronize()) == 0 {
            book.note(format!("fault/{name}/array"), words(&lab.read(spec, array)));
        }
        return;
    }
    let spec = Spec {
        size: [8, 4, 0],
        format: format("u32"),
        channels: 4,
        flags: SURFACE,
    };
    let array = lab.array(spec, &vec![7; spec.bytes()]);
    let sampler = Sampler {
        flags: READ_AS_INTEGER,
        ..Sampler::default()
    };
    let sample = "tex.2d.v4.u32.f32 {d0, d1, d2, d3}, [o, {a0, a1}];";
    let load = "suld.b.2d.b32.trap {d0}, [o, {a0, a1}];";
    let (body, object) = match name {
        "destroyed texture" => {
            let object = lab.texture(array, sampler);
            drop_texture(object);
            (sample, object)
        }
        "no texture" => (sample, 0x1234_5678),
        "destroyed surface" => {
            let object = lab.try_surface(array).unwrap();
            drop_surface(object);
            (load, object)
        }
        "no surface" => (load, 0x1234_5678),
        "texture of a destroyed array" => {
            let object = lab.texture(array, sampler);
            book.note(
                "destroy/array of a texture",
                vec![cu!(cuArrayDestroy(array))],
            );
            (sample, object)
        }
        _ => {
            let texture = lab.texture(array, sampler);
            book.note(
                "destroy/texture",
                vec![
                    cu!(cuTexObjectDestroy(texture)),
                    cu!(cuTexObjectDestroy(texture)),
                ],
            );
            let surface = lab.try_surface(array).unwrap();
            book.note(
                "destroy/surface",
                vec![
                    cu!(cuSurfObjectDestroy(surface)),
                    cu!(cuSurfObjectDestroy(surface)),
                ],
            );
            return;
        }
    };
    let given = lab.try_rows(body, object, &[[0; 8]], false);
    book.note(format!("fault/{name}"), texels(given));
}

fn surface_code(resource: &sys::CUDA_RESOURCE_DESC) -> u32 {
    let mut object = 0;
    cu!(cuSurfObjectCreate(&raw mut object, resource))
}

fn drop_array(array: sys::CUarray) {
    assert_eq!(cu!(cuArrayDestroy(array)), 0);
}

fn drop_texture(texture: u64) {
    assert_eq!(cu!(cuTexObjectDestroy(texture)), 0);
}

fn drop_surface(surface: u64) {
    assert_eq!(cu!(cuSurfObjectDestroy(surface)), 0);
}

fn drop_memory(at: u64) {
    assert_eq!(cu!(cuMemFree_v2(at)), 0);
}
