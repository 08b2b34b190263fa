//! Textures read at all coordinates.

use super::{
    content::{Content, content, first},
    geometry::{ADDRESS, BORDER, GEOMETRIES},
};
use crate::{
    Book,
    lab::{Lab, NORMALIZED, Random, Sampler},
};

/// Coordinates of floating point, in texels and normalized.
pub(super) fn addressing(lab: &mut Lab, book: &mut Book) {
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
                    let bytes = content(&mut random, spec, Content::Unit);
                    let sampler = Sampler {
                        address,
                        linear,
                        flags: if normalized { NORMALIZED } else { 0 },
                        border: if address == 3 { BORDER } else { [0.0; 4] },
                    };
                    let rows = geometry.float_rows(&mut random, 192, normalized);
                    let body = geometry.tex("f32.f32");
                    let given = lab.sample(spec, &bytes, sampler, &body, &rows);
                    book.note(name, first(given));
                }
            }
        }
    }
}

/// A level of one is the first; gradients choose among one.
pub(super) fn levels(lab: &mut Lab, book: &mut Book) {
    for geometry in GEOMETRIES {
        let name = format!("tex.level/{}", geometry.name);
        let mut random = Random::of(&name);
        let spec = geometry.spec("f32", 1, 0);
        let bytes = content(&mut random, spec, Content::Unit);
        let sampler = Sampler {
            linear: true,
            ..Sampler::clamping()
        };
        let mut rows = geometry.float_rows(&mut random, 32, false);
        for (at, row) in rows.iter_mut().enumerate() {
            row[4] = [0.0_f32, 1.0, -1.0, 0.5, 100.0, f32::NAN][at % 6].to_bits();
        }
        let body = format!(
            "tex.level.{}.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {}], b0;",
            geometry.name, geometry.operand
        );
        book.note(name, first(lab.sample(spec, &bytes, sampler, &body, &rows)));
    }
}

/// Offsets that the instruction adds.
pub(super) fn offsets(lab: &mut Lab, book: &mut Book) {
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
            let bytes = content(&mut random, spec, Content::Unit);
            let sampler = Sampler {
                address,
                linear: false,
                flags: NORMALIZED,
                border: BORDER,
            };
            let rows = geometry.float_rows(&mut random, 48, true);
            let body = format!(
                "tex.{}.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {}], {offset};",
                geometry.name, geometry.operand
            );
            book.note(name, first(lab.sample(spec, &bytes, sampler, &body, &rows)));
        }
    }
}

/// Coordinates that are integers.
pub(super) fn fetches(lab: &mut Lab, book: &mut Book) {
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
                let bytes = content(&mut random, spec, Content::Unit);
                let sampler = Sampler {
                    address,
                    linear,
                    flags,
                    border: BORDER,
                };
                let rows = geometry.integer_rows(&mut random, 64);
                let body = geometry.tex("f32.s32");
                let given = lab.sample(spec, &bytes, sampler, &body, &rows);
                book.note(name, first(given));
            }
        }
    }
}
