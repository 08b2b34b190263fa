//! DLPack's element types and ours.

use dlpark::ffi::{DLDataType, DLDataTypeCode};

use crate::{DType, ViewError};

const PAIRS: [(DType, DLDataType); 23] = [
    (DType::Bool, DLDataType::BOOL),
    (DType::U8, DLDataType::U8),
    (DType::U16, DLDataType::U16),
    (DType::U32, DLDataType::U32),
    (DType::U64, DLDataType::U64),
    (DType::I8, DLDataType::I8),
    (DType::I16, DLDataType::I16),
    (DType::I32, DLDataType::I32),
    (DType::I64, DLDataType::I64),
    (DType::F16, DLDataType::F16),
    (DType::BF16, DLDataType::BF16),
    (DType::F32, DLDataType::F32),
    (DType::F64, DLDataType::F64),
    (DType::Complex64, DLDataType::C64),
    (DType::Complex128, DLDataType::C128),
    (DType::F8E3M4, DLDataType::F8E3M4),
    (DType::F8E4M3, DLDataType::F8E4M3),
    (DType::F8E4M3B11Fnuz, DLDataType::F8E4M3B11FNUZ),
    (DType::F8E4M3Fn, DLDataType::F8E4M3FN),
    (DType::F8E4M3Fnuz, DLDataType::F8E4M3FNUZ),
    (DType::F8E5M2, DLDataType::F8E5M2),
    (DType::F8E5M2Fnuz, DLDataType::F8E5M2FNUZ),
    (DType::F8E8M0Fnu, DLDataType::F8E8M0FNU),
];

/// The element type of a DLPack tensor.
#[inline]
pub(crate) fn from_dlpack(found: DLDataType) -> Result<DType, ViewError> {
    // What most arrays hold.
    if found == DLDataType::F32 {
        return Ok(DType::F32);
    }
    PAIRS
        .iter()
        .find(|(_, dlpack)| *dlpack == found)
        .map(|(dtype, _)| *dtype)
        .ok_or_else(|| unknown(found))
}

/// The element type as DLPack has it.
pub(super) fn to_dlpack(dtype: DType) -> DLDataType {
    let pair = PAIRS.iter().find(|(ours, _)| *ours == dtype);
    // Every type is in the table, which a test shows.
    pair.map_or(DLDataType::U8, |(_, dlpack)| *dlpack)
}

#[cold]
fn unknown(found: DLDataType) -> ViewError {
    let DLDataType { code, bits, lanes } = found;
    let kind = match code {
        DLDataTypeCode::INT => "integers",
        DLDataTypeCode::UINT => "unsigned integers",
        DLDataTypeCode::FLOAT => "floats",
        DLDataTypeCode::OPAQUEHANDLE => "opaque handles",
        DLDataTypeCode::BFLOAT => "bfloats",
        DLDataTypeCode::COMPLEX => "complex numbers",
        DLDataTypeCode::BOOL => "booleans",
        DLDataTypeCode::FLOAT6_E2M3FN => "f6e2m3fn floats",
        DLDataTypeCode::FLOAT6_E3M2FN => "f6e3m2fn floats",
        DLDataTypeCode::FLOAT4_E2M1FN => "f4e2m1fn floats",
        DLDataTypeCode(7..=14) => "8-bit float kinds",
        _ => "elements of a kind unknown to DLPack 1.3",
    };
    ViewError::other(if lanes != 1 {
        format!(
            "its elements are vectors of {lanes} {kind} of {bits} bits, and a kernel's array has plain elements; export it with a dimension of {lanes} more"
        )
    } else if bits < 8 {
        format!(
            "its elements are {kind} of {bits} bits, less than a byte, which no element of an array can be; view it as bytes (uint8) where it was made, and declare `&[u8]`"
        )
    } else {
        format!(
            "its elements are {kind} of {bits} bits (code {}), which no element type here stands for; view it as another type where it was made",
            code.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_goes_there_and_back() {
        for (dtype, dlpack) in PAIRS {
            assert_eq!(from_dlpack(dlpack).unwrap(), dtype);
            assert_eq!(to_dlpack(dtype), dlpack);
            assert_eq!(usize::from(dlpack.bits), dtype.size() * 8, "{dtype}");
        }
    }

    #[test]
    fn sizes_alone_make_no_type() {
        for (refused, text) in [
            (
                DLDataType::scalar(DLDataTypeCode::BOOL, 1),
                "less than a byte",
            ),
            (
                DLDataType::F4E2M1FN,
                "f4e2m1fn floats of 4 bits, less than a byte",
            ),
            (DLDataType::F6E3M2FN, "f6e3m2fn floats of 6 bits"),
            (
                DLDataType::scalar(DLDataTypeCode::INT, 4),
                "view it as bytes",
            ),
            (
                DLDataType::scalar(DLDataTypeCode::BOOL, 32),
                "booleans of 32 bits",
            ),
            (
                DLDataType::scalar(DLDataTypeCode::FLOAT, 8),
                "floats of 8 bits",
            ),
            (
                DLDataType::new(DLDataTypeCode::FLOAT, 32, 4),
                "vectors of 4 floats of 32 bits",
            ),
            (
                DLDataType::scalar(DLDataTypeCode::OPAQUEHANDLE, 64),
                "opaque handles",
            ),
            (
                DLDataType::scalar(DLDataTypeCode(99), 32),
                "unknown to DLPack",
            ),
        ] {
            let error = from_dlpack(refused).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
