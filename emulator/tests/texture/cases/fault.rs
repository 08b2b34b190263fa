//! What may end in an error of the context, for good: each has a process or a device of its own.

use super::{content::all, geometry::format};
use crate::{
    Book, FAULT, cu,
    lab::{
        Lab, READ_AS_INTEGER, SURFACE, Sampler, Spec, drop_array, drop_surface, drop_texture, words,
    },
};

/// Accesses of a surface: the name, the body, the format and the channels of its texels, and the coordinates.
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

/// Their names.
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

/// Makes one, and notes the code that it ends with.
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
        let surface = lab.surface(array);
        let given = lab.try_rows(body, surface, &[[*x, *y, 0, 0, 7, 8, 9, 10]], false);
        book.note(format!("{FAULT}{name}"), texels(given));
        if cu!(cuCtxSynchronize()) == 0 {
            book.note(
                format!("{FAULT}{name}/array"),
                words(&lab.read(spec, array)),
            );
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
            let object = lab.surface(array);
            drop_surface(object);
            (load, object)
        }
        "no surface" => (load, 0x1234_5678),
        "texture of a destroyed array" => {
            let object = lab.texture(array, sampler);
            drop_array(array);
            (sample, object)
        }
        _ => panic!("there is no fault `{name}`"),
    };
    let given = lab.try_rows(body, object, &[[0; 8]], false);
    book.note(format!("{FAULT}{name}"), texels(given));
}
