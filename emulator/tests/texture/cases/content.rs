//! What arrays hold, and what is read of it.

use crate::lab::{Format, READ_AS_INTEGER, Random, Spec, width};

/// Numbers of a format, side by side.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// Any bits.
    Bits,
    /// From -1 to 1 if of floating point.
    Unit,
    /// Of all sizes if of floating point.
    Wide,
}

pub(super) fn content(random: &mut Random, spec: Spec, kind: Content) -> Vec<u8> {
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

/// The type that `tex` gives of a format.
pub(super) fn dtype(name: &str, as_float: bool) -> &'static str {
    match name {
        "f16" | "f32" => "f32",
        _ if as_float => "f32",
        "u8" | "u16" | "u32" => "u32",
        _ => "s32",
    }
}

/// The flags of a texture that gives that type.
pub(super) fn read_flags(name: &str, as_float: bool) -> u32 {
    if dtype(name, as_float) == "f32" {
        0
    } else {
        READ_AS_INTEGER
    }
}

/// The first number of each row.
pub(super) fn first(rows: Vec<[u32; 4]>) -> Vec<u32> {
    rows.into_iter().map(|row| row[0]).collect()
}

/// All numbers of all rows.
pub(super) fn all(rows: Vec<[u32; 4]>) -> Vec<u32> {
    rows.into_iter().flatten().collect()
}
