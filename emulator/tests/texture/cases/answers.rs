//! What the driver answers to what it refuses, and what the device allows.

use cudarc::driver::sys;

use super::geometry::format;
use crate::{
    Book, cu,
    lab::{
        CUBEMAP, GATHER, LAYERED, Lab, NORMALIZED, READ_AS_INTEGER, SRGB, SURFACE, Sampler, Spec,
        drop_array, drop_texture, free, memcpy3d, zeroed,
    },
};

/// What the device allows.
pub(super) fn attributes(lab: &mut Lab, book: &mut Book) {
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
}

/// Arrays of all shapes.
pub(super) fn arrays(lab: &mut Lab, book: &mut Book) {
    for (name, size, channels, flags) in [
        ("plain", [16, 8, 0], 1, 0),
        ("no channels", [16, 8, 0], 0, 0),
        ("three channels", [16, 8, 0], 3, 0),
        ("five channels", [16, 8, 0], 5, 0),
        ("no width", [0, 8, 0], 1, 0),
        ("no height but depth", [16, 0, 4], 1, 0),
        ("too wide 1d", [131_073, 0, 0], 1, 0),
        ("widest 1d", [131_072, 0, 0], 1, 0),
        ("too wide 1d surface", [32_769, 0, 0], 1, SURFACE),
        ("too high 2d", [16, 65_537, 0], 1, 0),
        ("too deep 3d", [16, 16, 16_385], 1, 0),
        ("too deep and wide 3d", [8193, 16, 16_385], 1, 0),
        ("too high 3d", [16, 16_385, 16], 1, 0),
        ("too many layers", [16, 16, 2049], 1, LAYERED),
        ("layered without layers", [16, 16, 0], 1, LAYERED),
        ("cube not square", [16, 8, 6], 1, CUBEMAP),
        ("cube of five", [16, 16, 5], 1, CUBEMAP),
        ("cube of twelve", [16, 16, 12], 1, CUBEMAP),
        ("cubes of eleven", [16, 16, 11], 1, CUBEMAP | LAYERED),
        ("unknown flags", [16, 8, 0], 1, 0x4000),
        ("gather of one dimension", [16, 0, 0], 1, GATHER),
        ("gather too wide", [32_769, 4, 0], 1, GATHER),
        ("gather in three dimensions", [16, 4, 4], 1, GATHER),
    ] {
        let code = match lab.try_array(Spec {
            size,
            channels,
            flags,
            ..plain()
        }) {
            Ok(array) => {
                drop_array(array);
                0
            }
            Err(code) => code,
        };
        book.note(format!("array/{name}"), vec![code]);
    }
}

/// Textures of arrays.
pub(super) fn textures(lab: &mut Lab, book: &mut Book) {
    let spec = |format_name| Spec {
        format: format(format_name),
        ..plain()
    };
    let mut texture = |name: &str, spec: Spec, sampler: Sampler| {
        let array = lab.try_array(spec).unwrap();
        let code = texture_code(lab, &Lab::array_resource(array), sampler);
        drop_array(array);
        book.note(format!("texture/{name}"), vec![code]);
    };
    let sampler = Sampler::clamping();
    let linear = Sampler {
        linear: true,
        ..sampler
    };
    texture("plain", spec("f32"), sampler);
    texture(
        "linear integers",
        spec("u8"),
        Sampler {
            flags: READ_AS_INTEGER,
            ..linear
        },
    );
    texture("linear u32 as float", spec("u32"), linear);
    texture("linear u8 as float", spec("u8"), linear);
    texture(
        "wrap texels",
        spec("f32"),
        Sampler {
            address: 0,
            ..sampler
        },
    );
    texture(
        "srgb of floats",
        spec("f32"),
        Sampler {
            flags: SRGB,
            ..sampler
        },
    );
    texture(
        "srgb of one channel",
        spec("u8"),
        Sampler {
            flags: SRGB,
            ..sampler
        },
    );
    texture(
        "srgb of integers",
        spec("u8"),
        Sampler {
            flags: SRGB | READ_AS_INTEGER,
            ..sampler
        },
    );
    texture(
        "unknown flags",
        spec("f32"),
        Sampler {
            flags: 0x4000,
            ..sampler
        },
    );

    let resource = zeroed();
    book.note(
        "texture/of no array",
        vec![texture_code(lab, &resource, sampler)],
    );
    book.note("surface/of no array", vec![surface_code(&resource)]);
}

/// Textures of memory.
pub(super) fn memory(lab: &mut Lab, book: &mut Book) {
    let sampler = Sampler::clamping();
    let at = lab.memory(&vec![0; 4096]);
    let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
    resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = at;
    resource.res.linear.format = format("f32");
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 4096;
    book.note("surface/of memory", vec![surface_code(&resource)]);
    let mut linear_memory = |name: &str, at: u64, bytes: usize, channels: u32, sampler: Sampler| {
        resource.res.linear.devPtr = at;
        resource.res.linear.sizeInBytes = bytes;
        resource.res.linear.numChannels = channels;
        let code = texture_code(lab, &resource, sampler);
        book.note(format!("texture/linear {name}"), vec![code]);
    };
    linear_memory("plain", at, 4096, 1, sampler);
    linear_memory("misaligned by 4", at + 4, 64, 1, sampler);
    linear_memory("misaligned by 32", at + 32, 64, 1, sampler);
    linear_memory("misaligned by 256", at + 256, 64, 1, sampler);
    linear_memory("of nothing", at, 0, 1, sampler);
    linear_memory("of half an element", at, 6, 1, sampler);
    linear_memory("of three channels", at, 48, 3, sampler);
    linear_memory("at null", 0, 48, 1, sampler);
    linear_memory(
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
        "normalized",
        at,
        64,
        1,
        Sampler {
            flags: NORMALIZED,
            ..sampler
        },
    );
    let mut rows = |name: &str, at: u64, width: usize, height: usize, pitch: usize| {
        let mut resource: sys::CUDA_RESOURCE_DESC = zeroed();
        resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
        resource.res.pitch2D.devPtr = at;
        resource.res.pitch2D.format = format("f32");
        resource.res.pitch2D.numChannels = 1;
        resource.res.pitch2D.width = width;
        resource.res.pitch2D.height = height;
        resource.res.pitch2D.pitchInBytes = pitch;
        let code = texture_code(lab, &resource, sampler);
        book.note(format!("texture/rows {name}"), vec![code]);
    };
    rows("plain", at, 16, 8, 64);
    rows("misaligned by 32", at + 32, 16, 8, 64);
    rows("at a pitch of 48", at, 8, 8, 48);
    rows("at a pitch of 32", at, 8, 8, 32);
    rows("at a pitch below the width", at, 16, 8, 32);
    rows("of no height", at, 16, 0, 64);
    rows("beyond the end", at, 16, 8000, 64);
    rows("too wide", at, 131_073, 1, 524_320);
    free(at);
}

/// Copies to an array.
pub(super) fn copies(lab: &mut Lab, book: &mut Book) {
    let array = lab.try_array(plain()).unwrap();
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
    drop_array(array);
}

/// What the driver says of an array.
pub(super) fn descriptors(lab: &mut Lab, book: &mut Book) {
    let plain = plain();
    let array = lab.try_array(plain).unwrap();
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
    drop_array(array);
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
}

/// The end of what is not there.
pub(super) fn ends(_: &mut Lab, book: &mut Book) {
    book.note(
        "destroy/null array",
        vec![cu!(cuArrayDestroy(std::ptr::null_mut()))],
    );
    book.note("destroy/texture of none", vec![cu!(cuTexObjectDestroy(0))]);
    book.note("destroy/surface of none", vec![cu!(cuSurfObjectDestroy(0))]);
}

fn plain() -> Spec {
    Spec {
        size: [16, 8, 0],
        format: format("f32"),
        channels: 1,
        flags: 0,
    }
}

fn texture_code(lab: &Lab, resource: &sys::CUDA_RESOURCE_DESC, sampler: Sampler) -> u32 {
    match lab.try_texture(resource, sampler) {
        Ok(texture) => {
            drop_texture(texture);
            0
        }
        Err(code) => code,
    }
}

fn surface_code(resource: &sys::CUDA_RESOURCE_DESC) -> u32 {
    let mut object = 0;
    cu!(cuSurfObjectCreate(&raw mut object, resource))
}
