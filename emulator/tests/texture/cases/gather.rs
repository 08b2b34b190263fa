//! One component of four texels at once.

use super::{
    content::{Content, all, content, dtype, read_flags},
    geometry::{ADDRESS, BORDER, GEOMETRIES},
};
use crate::{
    Book,
    lab::{GATHER, Lab, NORMALIZED, Random, Sampler},
};

pub(super) fn gathers(lab: &mut Lab, book: &mut Book) {
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
                    let bytes = content(&mut random, spec, Content::Unit);
                    let mut flags = read_flags(format_name, as_float);
                    if normalized {
                        flags |= NORMALIZED;
                    }
                    let sampler = Sampler {
                        address,
                        linear,
                        flags,
                        border: BORDER,
                    };
                    let rows = geometry.float_rows(&mut random, 48, normalized);
                    let body = format!(
                        "tld4.{component}.{}.v4.{}.f32 {{d0, d1, d2, d3}}, [o, {}];",
                        geometry.name,
                        dtype(format_name, as_float),
                        geometry.operand
                    );
                    book.note(name, all(lab.sample(spec, &bytes, sampler, &body, &rows)));
                }
            }
        }
    }
}

/// Of an array that was not made for it, and of one channel.
pub(super) fn unusual_gathers(lab: &mut Lab, book: &mut Book) {
    for (label, channels, component, flags) in [
        ("without the flag", 4, "g", 0),
        ("of one channel", 1, "g", GATHER),
        ("alpha of one channel", 1, "a", GATHER),
    ] {
        let name = format!("tld4/{label}");
        let mut random = Random::of(&name);
        let geometry = GEOMETRIES[1];
        let spec = geometry.spec("f32", channels, flags);
        let bytes = content(&mut random, spec, Content::Unit);
        let rows = geometry.float_rows(&mut random, 16, false);
        let body = format!("tld4.{component}.2d.v4.f32.f32 {{d0, d1, d2, d3}}, [o, {{a0, a1}}];");
        let given = lab.sample(spec, &bytes, Sampler::clamping(), &body, &rows);
        book.note(name, all(given));
    }
}
