//! What a texture or a surface says of its size.

use super::{content::first, geometry::GEOMETRIES};
use crate::{
    Book,
    lab::{
        Lab, NORMALIZED, READ_AS_INTEGER, SURFACE, Sampler, drop_array, drop_surface, drop_texture,
    },
};

const QUERIES: [&str; 3] = ["width", "height", "depth"];

pub(super) fn queries(lab: &mut Lab, book: &mut Book) {
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
                let of = format!("{query}/{}/{format_name}x{channels}", geometry.name);

                let spec = geometry.spec(format_name, channels, 0);
                let array = lab.array(spec, &vec![0; spec.bytes()]);
                let sampler = Sampler {
                    flags,
                    ..Sampler::default()
                };
                let texture = lab.texture(array, sampler);
                book.note(format!("txq/{of}"), answer(lab, "txq", query, texture));
                drop_texture(texture);
                drop_array(array);

                let spec = geometry.spec(format_name, channels, SURFACE);
                let array = lab.array(spec, &vec![0; spec.bytes()]);
                let surface = lab.surface(array);
                book.note(format!("suq/{of}"), answer(lab, "suq", query, surface));
                drop_surface(surface);
                drop_array(array);
            }
        }
    }
}

fn answer(lab: &mut Lab, instruction: &str, query: &str, object: u64) -> Vec<u32> {
    let body = format!("{instruction}.{query}.b32 d0, [o];");
    first(lab.rows(&body, object, &[[0; 8]]))
}
