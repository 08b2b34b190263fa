//! Surfaces: what is loaded, stored and reduced.

use super::{
    content::{Content, all, content},
    geometry::{FORMATS, GEOMETRIES, Geometry, integer},
};
use crate::{
    Book,
    lab::{Lab, Random, SURFACE, drop_array, drop_surface},
};

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

pub(super) fn loads(lab: &mut Lab, book: &mut Book) {
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
                    let surface = lab.surface(array);
                    let rows = surface_rows(geometry, &mut random, 32, spec.texel(), piece.1);
                    let body = load_body(geometry.name, piece, mode, geometry.operand);
                    book.note(name, all(lab.rows(&body, surface, &rows)));
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

pub(super) fn stores(lab: &mut Lab, book: &mut Book) {
    for geometry in &GEOMETRIES[..5] {
        let geometry = geometry.small();
        for (suffix, unit, format_name, channels) in [
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
                let bytes = content(&mut random, spec, Content::Bits);
                let rows = surface_rows(&geometry, &mut random, 12, spec.texel(), unit);
                let body = store_body(geometry.name, suffix, mode, geometry.operand);
                book.note(name, lab.written(spec, &bytes, &body, &rows, true));
            }
        }
    }
}

pub(super) fn formatted_stores(lab: &mut Lab, book: &mut Book) {
    for (format_name, _) in FORMATS {
        for channels in [1, 2, 4] {
            let name = format!("sust.p/{format_name}x{channels}");
            let mut random = Random::of(&name);
            let geometry = Geometry {
                size: [16, 2, 0],
                ..GEOMETRIES[1]
            };
            let spec = geometry.spec(format_name, channels, SURFACE);
            let bytes = content(&mut random, spec, Content::Bits);
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
            book.note(name, lab.written(spec, &bytes, body, &rows, false));
        }
    }
    for geometry in &GEOMETRIES[..3] {
        for mode in ["clamp", "zero"] {
            let name = format!("sust.p/{}/{mode}", geometry.name);
            let mut random = Random::of(&name);
            let geometry = geometry.small();
            let spec = geometry.spec("s16", 2, SURFACE);
            let bytes = content(&mut random, spec, Content::Bits);
            let rows = surface_rows(&geometry, &mut random, 16, 1, 1);
            let body = format!(
                "sust.p.{}.v4.b32.{mode} [o, {}], {{b0, b1, b2, b3}};",
                geometry.name, geometry.operand
            );
            book.note(name, lab.written(spec, &bytes, &body, &rows, true));
        }
    }
}

pub(super) fn reductions(lab: &mut Lab, book: &mut Book) {
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
                let geometry = geometry.small();
                let spec = geometry.spec(
                    if kind == "p" && op == "min" {
                        "s32"
                    } else {
                        "u32"
                    },
                    if wide { 2 } else { 1 },
                    SURFACE,
                );
                let bytes = content(&mut random, spec, Content::Bits);
                let texel = if kind == "p" { 1 } else { spec.texel() };
                let rows = surface_rows(&geometry, &mut random, 24, texel, texel);
                let value = if wide { "q0" } else { "b0" };
                let body = format!(
                    "sured.{kind}.{op}.{}.{ty}.{mode} [o, {}], {value};",
                    geometry.name, geometry.operand
                );
                book.note(name, lab.written(spec, &bytes, &body, &rows, true));
            }
        }
    }
}
