//! What is made of the numbers of each format.

use super::{
    content::{Content, all, content, dtype, first, read_flags},
    geometry::{FORMATS, GEOMETRIES, format},
};
use crate::{
    Book,
    lab::{Lab, READ_AS_INTEGER, Random, SRGB, Sampler, Spec},
};

/// Every format and number of channels, read as it is and as numbers from 0 or -1 to 1.
pub(super) fn formats(lab: &mut Lab, book: &mut Book) {
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
                    let bytes = content(&mut random, spec, kind);
                    let sampler = Sampler {
                        address: 3,
                        linear,
                        flags: read_flags(format_name, as_float),
                        border: [0.5, -2.0, 300.0, 0.125],
                    };
                    let count = if linear { 160 } else { 48 };
                    let rows = geometry.float_rows(&mut random, count, false);
                    let body = geometry.tex(&format!("{}.f32", dtype(format_name, as_float)));
                    book.note(name, all(lab.sample(spec, &bytes, sampler, &body, &rows)));
                }
            }
        }
    }
}

/// Each value of eight bits, and many of sixteen.
pub(super) fn values(lab: &mut Lab, book: &mut Book) {
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
        let rows: Vec<[u32; 8]> = (0..count)
            .map(|at| [(at as f32 + 0.5).to_bits(), 0, 0, 0, 0, 0, 0, 0])
            .collect();
        let body = GEOMETRIES[0].tex("f32.f32");
        let given = lab.sample(spec, &bytes, Sampler::clamping(), &body, &rows);
        book.note(name, first(given));
    }
}

/// The curve of sRGB, of which alpha has none.
pub(super) fn srgb(lab: &mut Lab, book: &mut Book) {
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
        let sampler = Sampler {
            linear,
            flags: SRGB,
            ..Sampler::clamping()
        };
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
        let body = GEOMETRIES[0].tex("f32.f32");
        book.note(name, all(lab.sample(spec, &bytes, sampler, &body, &rows)));
    }
}

/// Numbers of all sizes, and infinities and NaN, between which nothing is a mean.
pub(super) fn means(lab: &mut Lab, book: &mut Book) {
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
            let bytes = content(&mut random, spec, kind);
            let sampler = Sampler {
                linear: true,
                ..Sampler::clamping()
            };
            let rows = geometry.float_rows(&mut random, 256, false);
            let body = geometry.tex("f32.f32");
            book.note(name, first(lab.sample(spec, &bytes, sampler, &body, &rows)));
        }
    }
}

/// Types that are not those of the format.
pub(super) fn mismatches(lab: &mut Lab, book: &mut Book) {
    let geometry = GEOMETRIES[1];
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
        let bytes = content(&mut random, spec, Content::Bits);
        let sampler = Sampler {
            flags,
            ..Sampler::clamping()
        };
        let rows = geometry.float_rows(&mut random, 16, false);
        let body = geometry.tex(&format!("{given}.f32"));
        book.note(name, all(lab.sample(spec, &bytes, sampler, &body, &rows)));
    }
}
