//! Whether a PyTorch tensor's elements are as they are stored, or negated or conjugated lazily.
//!
//! PyTorch answers by the methods `is_neg` and `is_conj`, which let go of Python's lock for a moment
//! and so cost more than all else that is read of a tensor. The answers are bits of one word of the
//! C++ object behind a tensor. Where they are differs between builds, so they are looked for in
//! tensors whose answers are known; if they are not found beyond doubt, each tensor is asked.

use std::{ffi::CStr, ptr};

use pyo3::{
    Borrowed, Bound, Py, PyAny, PyResult,
    sync::PyOnceLock,
    types::{IntoPyDict, PyAnyMethods, PyDict, PyType, PyTypeMethods},
};

use super::{
    unread::{Read, refused},
    words::{only, word_at},
};
use crate::DType;

/// How tensors of a type are looked at.
pub(super) enum Lazy {
    Read(Bits),
    Asked {
        is_neg: Py<PyAny>,
        is_conj: Py<PyAny>,
    },
}

/// Where the answers are: words by their index, and bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// In the Python object, the address of the C++ object.
    in_object: usize,
    /// In that one, the word with the bits.
    in_tensor: usize,
    negated: usize,
    conjugated: usize,
}

impl Lazy {
    /// How tensors of this type are looked at.
    pub(super) fn of(ty: &Bound<'_, PyType>) -> PyResult<Lazy> {
        let py = ty.py();
        static BITS: PyOnceLock<Option<Bits>> = PyOnceLock::new();
        // What fails here, whatever PyTorch raises, leaves the question to be asked.
        let bits = BITS.get_or_init(py, || Bits::find(ty).ok().flatten());
        // All types of tensors begin with what `TensorBase` is.
        let base = py.import("torch._C").and_then(|c| c.getattr("TensorBase"));
        let is_tensor = base.is_ok_and(|base| ty.is_subclass(&base).unwrap_or(false));
        Ok(match *bits {
            Some(bits) if is_tensor => Lazy::Read(bits),
            _ => Lazy::Asked {
                is_neg: ty.getattr("is_neg")?.unbind(),
                is_conj: ty.getattr("is_conj")?.unbind(),
            },
        })
    }

    /// In the objects of the type, the word that holds the address of the C++ object, if it was found.
    pub(super) fn in_object(&self) -> Option<usize> {
        match self {
            Lazy::Read(bits) => Some(bits.in_object),
            Lazy::Asked { .. } => None,
        }
    }

    /// Whether a tensor's elements are as they are stored; also false where Python raises.
    #[inline(always)]
    pub(super) fn is_stored(&self, object: Borrowed<'_, '_, PyAny>, dtype: DType) -> bool {
        match self {
            Lazy::Read(bits) => {
                // SAFETY: the object is a tensor: this is the answer for its type.
                let word = unsafe { bits.word(object) };
                word & (bits.negated | bits.conjugated) == 0
            }
            Lazy::Asked { .. } => self.check(object, dtype).is_ok(),
        }
    }

    /// Refuses a tensor whose elements are not as they are stored.
    pub(super) fn check(&self, object: Borrowed<'_, '_, PyAny>, dtype: DType) -> Read<()> {
        match self {
            Lazy::Read(bits) => {
                // SAFETY: the object is a tensor: this is the answer for its type.
                let word = unsafe { bits.word(object) };
                check(word & bits.negated != 0, word & bits.conjugated != 0)
            }
            Lazy::Asked { is_neg, is_conj } => {
                let py = object.py();
                let complex = matches!(dtype, DType::Complex64 | DType::Complex128);
                let is_neg = is_neg.bind(py).call1((object,))?.is_truthy()?;
                // Only complex numbers can be conjugated.
                let is_conj = complex && is_conj.bind(py).call1((object,))?.is_truthy()?;
                check(is_neg, is_conj)
            }
        }
    }
}

fn check(is_neg: bool, is_conj: bool) -> Read<()> {
    if is_neg {
        return Err(refused(
            "the tensor is negated lazily: its memory holds the elements with the other sign; pass `.resolve_neg()`",
        ));
    }
    if is_conj {
        return Err(refused(
            "the tensor is conjugated lazily: its memory holds the elements as they were before; pass `.resolve_conj()`",
        ));
    }
    Ok(())
}

/// A tensor made to be looked at, and the address of the C++ object behind it.
struct Sample<'py> {
    object: Bound<'py, PyAny>,
    tensor: usize,
}

impl Bits {
    /// Looks for them in tensors of the host.
    fn find(ty: &Bound<'_, PyType>) -> PyResult<Option<Bits>> {
        let py = ty.py();
        let torch = py.import("torch")?;
        let globals = [("torch", &torch)].into_py_dict(py)?;
        let samples = |codes: [&CStr; 3]| -> PyResult<Option<[Sample<'_>; 3]>> {
            let [a, b, c] = codes.map(|code| Sample::make(code, &globals));
            Ok(match (a?, b?, c?) {
                (Some(a), Some(b), Some(c)) => Some([a, b, c]),
                _ => None,
            })
        };
        // Under modes that make tensors of other kinds there is nothing to look at.
        let (Some(plain), Some(negated), Some(conjugated)) = (
            samples([
                c"torch.ones(4, device='cpu')",
                c"torch.ones(4, dtype=torch.complex64, device='cpu')",
                c"torch.ones(4, dtype=torch.complex64, device='cpu').imag",
            ])?,
            samples([
                c"torch._neg_view(torch.ones(4, device='cpu'))",
                c"torch._neg_view(torch.ones(4, dtype=torch.complex64, device='cpu'))",
                c"torch.ones(4, dtype=torch.complex64, device='cpu').conj().imag",
            ])?,
            samples([
                c"torch.ones(4, dtype=torch.complex64, device='cpu').conj()",
                c"torch.ones(4, dtype=torch.complex128, device='cpu').conj()",
                c"torch._neg_view(torch.ones(4, dtype=torch.complex64, device='cpu').conj())",
            ])?,
        ) else {
            return Ok(None);
        };
        let base = torch.getattr("_C")?.getattr("TensorBase")?;
        let size: usize = base.getattr("__basicsize__")?.extract()?;
        let all = || plain.iter().chain(&negated).chain(&conjugated);
        let in_object = only((0..size / size_of::<usize>()).filter(|&index| {
            // SAFETY: the objects have so many words, and are held.
            all().all(|one| unsafe { word_at(one.object.as_ptr().cast(), index) } == one.tensor)
        }));
        let Some(in_object) = in_object else {
            return Ok(None);
        };
        let found = only((0..TENSOR).filter_map(|in_tensor| {
            let word = |one: &Sample<'_>| {
                let tensor = ptr::with_exposed_provenance(one.tensor);
                // SAFETY: the C++ object has so many words, and its Python object is held.
                unsafe { word_at(tensor, in_tensor) }
            };
            let [real, complex, _] = plain.each_ref().map(word);
            let bits = Bits {
                in_object,
                in_tensor,
                negated: real ^ word(&negated[0]),
                conjugated: complex ^ word(&conjugated[0]),
            };
            let Bits {
                negated: n,
                conjugated: c,
                ..
            } = bits;
            let is = |one: &Sample<'_>, expected| word(one) & (n | c) == expected;
            let fits = n.is_power_of_two()
                && c.is_power_of_two()
                && n != c
                && plain.iter().all(|one| is(one, 0))
                && negated.iter().all(|one| is(one, n))
                && conjugated[..2].iter().all(|one| is(one, c))
                && is(&conjugated[2], n | c);
            fits.then_some(bits)
        }));
        Ok(found)
    }

    /// The word with the bits.
    ///
    /// # Safety
    ///
    /// The object must be a tensor of PyTorch.
    #[inline(always)]
    unsafe fn word(self, object: Borrowed<'_, '_, PyAny>) -> usize {
        // SAFETY: a tensor's object has its C++ object's address there, as all that were looked at.
        let tensor = unsafe { word_at(object.as_ptr().cast(), self.in_object) };
        let tensor = ptr::with_exposed_provenance::<usize>(tensor);
        if tensor.is_null() {
            return 0;
        }
        // SAFETY: the C++ object lives as long as the tensor, and has the word there.
        unsafe { word_at(tensor, self.in_tensor) }
    }
}

/// The words of a C++ object that are looked at: those of `TensorImpl` in PyTorch 2.
const TENSOR: usize = 23;

impl<'py> Sample<'py> {
    /// What the code makes, if that is a plain tensor.
    fn make(code: &CStr, globals: &Bound<'py, PyDict>) -> PyResult<Option<Sample<'py>>> {
        let py = globals.py();
        let object = py.eval(code, Some(globals), None)?;
        if !object
            .get_type()
            .is(&py.import("torch")?.getattr("Tensor")?)
        {
            return Ok(None);
        }
        let tensor = object.getattr("_cdata")?.extract()?;
        Ok(Some(Sample { object, tensor }))
    }
}
