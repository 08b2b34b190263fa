//! Element types in NumPy's terms: as type strings and as `dtype` objects.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use pyo3::{
    Borrowed, PyAny, ffi, intern,
    types::{PyAnyMethods, PyString, PyStringMethods},
};

use super::{
    library::by_numpy_name,
    unread::{Read, refused},
};
use crate::DType;

/// The element type of a type string such as `<f4`.
pub(super) fn of_typestr(typestr: &str) -> Read<DType> {
    let (order, rest) = typestr.split_at_checked(1).unwrap_or(("", typestr));
    let native = if cfg!(target_endian = "little") {
        "<"
    } else {
        ">"
    };
    let one_byte = rest.ends_with('1') && rest.len() == 2;
    if order != native && order != "|" && !(one_byte && matches!(order, "<" | ">")) {
        return Err(refused(format!(
            "its elements are `{typestr}`, not in the byte order of the machine; convert them first"
        )));
    }
    Ok(match rest {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::Complex64,
        "c16" => DType::Complex128,
        _ => {
            return Err(refused(format!(
                "its elements are `{typestr}` in the array interface, which no element type here stands for (the interface has none for bfloat16 and 8-bit floats); pass it by DLPack, or view it as another type"
            )));
        }
    })
}

/// `dtype` objects that have been seen, kept for good so that none other gets their address.
static SEEN: [(AtomicPtr<ffi::PyObject>, AtomicUsize); 32] =
    [const { (AtomicPtr::new(std::ptr::null_mut()), AtomicUsize::new(0)) }; 32];

/// The element type of a `dtype` object.
#[inline]
pub(super) fn of_dtype(object: Borrowed<'_, '_, PyAny>) -> Read<DType> {
    for (seen, index) in &SEEN {
        let seen = seen.load(Ordering::Acquire);
        if seen == object.as_ptr() {
            return Ok(ALL[index.load(Ordering::Relaxed) % ALL.len()]);
        }
        if seen.is_null() {
            break;
        }
    }
    learn(object)
}

#[cold]
fn learn(object: Borrowed<'_, '_, PyAny>) -> Read<DType> {
    let py = object.py();
    let name = object.getattr(intern!(py, "name"))?;
    let name = name.cast::<PyString>()?.to_cow()?;
    let native: bool = object.getattr(intern!(py, "isnative"))?.extract()?;
    let Some(dtype) = by_numpy_name(&name).filter(|_| native) else {
        let order = if native {
            ""
        } else {
            ", not in the byte order of the machine"
        };
        return Err(refused(format!(
            "its elements are {name}{order}, which no element type here stands for; convert it first"
        )));
    };
    remember(object, dtype);
    Ok(dtype)
}

fn remember(object: Borrowed<'_, '_, PyAny>, dtype: DType) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (seen, index) in &SEEN {
        let there = seen.load(Ordering::Acquire);
        if there == object.as_ptr() {
            return;
        }
        if there.is_null() {
            let position = ALL.iter().position(|one| *one == dtype).unwrap_or(0);
            index.store(position, Ordering::Relaxed);
            // Never given back: see `SEEN`.
            seen.store(object.to_owned().into_ptr(), Ordering::Release);
            return;
        }
    }
}

const ALL: [DType; 23] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::Complex64,
    DType::Complex128,
    DType::F8E3M4,
    DType::F8E4M3,
    DType::F8E4M3B11Fnuz,
    DType::F8E4M3Fn,
    DType::F8E4M3Fnuz,
    DType::F8E5M2,
    DType::F8E5M2Fnuz,
    DType::F8E8M0Fnu,
];
