//! Textures of memory.

use cudarc::driver::sys;

use super::{
    content::{Content, all, content, dtype, first, read_flags},
    geometry::{ADDRESS, BORDER, GEOMETRIES, Geometry, format},
};
use crate::{
    Book,
    lab::{Lab, NORMALIZED, Random, Sampler, Spec, free, zeroed},
};

/// Elements one after another.
pub(super) fn linear_memory(lab: &mut Lab, book: &mut Book) {
    for (format_name, channels, as_float) in [
        ("f32", 1, false),
        ("u32", 2, false),
        ("s8", 4, true),
        ("u16", 1, true),
        ("f16", 1, false),
    ] {
        for address in [0, 1, 3] {
            let name = format!(
                "linear memory/{format_name}x{channels}/{}/s32",
                ADDRESS[address as usize]
            );
            let mut random = Random::of(&name);
            let geometry = Geometry {
                size: [37, 0, 0],
                ..GEOMETRIES[0]
            };
            let spec = geometry.spec(format_name, channels, 0);
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
            let rows = geometry.integer_rows(&mut random, 64);
            let body = geometry.tex(&format!("{}.s32", dtype(format_name, as_float)));
            book.note(name, all(lab.sample_of(&resource, sampler, &body, &rows)));
            free(at);
        }
    }
}

/// Rows at a pitch.
pub(super) fn pitched_memory(lab: &mut Lab, book: &mut Book) {
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
                    let sampler = Sampler {
                        address,
                        linear,
                        flags: if normalized { NORMALIZED } else { 0 },
                        border: BORDER,
                    };
                    let geometry = GEOMETRIES[1];
                    let rows = if coordinates == "s32" {
                        geometry.integer_rows(&mut random, 48)
                    } else {
                        geometry.float_rows(&mut random, 96, normalized)
                    };
                    let body = geometry.tex(&format!("f32.{coordinates}"));
                    book.note(name, first(lab.sample_of(&resource, sampler, &body, &rows)));
                    free(at);
                }
            }
        }
    }
}
