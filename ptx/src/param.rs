//! One parameter, and where it lies in the buffer of all.

use std::fmt;

use crate::error::Position;
use crate::types::{Class, ScalarType, StateSpace};

/// A parameter of an entry or a function, or what a function returns.
///
/// Displayed, it is the declaration without its name:
///
/// ```
/// let module = gridcall_ptx::Module::parse(
///     ".version 9.5
///      .target sm_100
///      .entry k(.param .u8 flag, .param .u64 .ptr .align 1 data, .param .align 16 .b8 point[32]) {}",
/// )?;
/// let params = module.entries()[0].params();
/// let shown: Vec<String> = params.iter().map(ToString::to_string).collect();
/// assert_eq!(shown, [".u8", ".u64 .ptr .align 1", ".align 16 .b8 [32]"]);
/// let offsets: Vec<usize> = params.iter().map(|param| param.offset()).collect();
/// assert_eq!(offsets, [0, 8, 16]);
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) space: StateSpace,
    pub(crate) ty: ScalarType,
    pub(crate) vector: u32,
    pub(crate) dims: Option<Vec<usize>>,
    pub(crate) align: usize,
    pub(crate) size: usize,
    pub(crate) offset: usize,
    pub(crate) pointer: Option<Pointer>,
}

/// What `.ptr` says of a parameter: where it points, and how what is there is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pointer {
    /// The state space pointed into; a generic address if there is none.
    pub space: Option<StateSpace>,
    /// The alignment of what is pointed to, in bytes; PTX assumes 4 where the text gives none.
    pub align: u32,
}

impl Param {
    /// The name, `saxpy_param_0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the name stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// [`StateSpace::Param`], or [`StateSpace::Reg`] in functions that take registers.
    #[must_use]
    pub fn space(&self) -> StateSpace {
        self.space
    }

    /// The type of the scalar, or of one element.
    #[must_use]
    pub fn ty(&self) -> ScalarType {
        self.ty
    }

    /// The elements of a vector in registers, `.v4`; 1 if it is none.
    #[must_use]
    pub fn vector(&self) -> u32 {
        self.vector
    }

    /// What it holds, as far as PTX says.
    #[must_use]
    pub fn class(&self) -> Class {
        if self.is_array() || self.vector > 1 {
            Class::Bytes
        } else {
            self.ty.class()
        }
    }

    /// Its bytes in the packed buffer.
    ///
    /// It is 0 for what is [opaque](Class::Opaque), which takes none, and for the unsized array that ends the
    /// parameters of a variadic function.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its alignment, a power of two.
    #[must_use]
    pub fn align(&self) -> usize {
        self.align
    }

    /// Where it starts in the packed buffer: behind the former one, rounded up to its alignment.
    ///
    /// `ptxas` lays kernel parameters out like this wherever no alignment is above 16.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What `.ptr` says; compilers write it for `sm_100` and later, LLVM 20 and later for all.
    #[must_use]
    pub fn pointer(&self) -> Option<Pointer> {
        self.pointer
    }

    /// Whether it is an array, as structs and vectors are.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.dims.is_some()
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let natural = self.ty.size() * self.vector as usize;
        if self.is_array() || (self.align != natural && self.class() != Class::Opaque) {
            write!(f, ".align {} ", self.align)?;
        }
        if self.vector > 1 {
            write!(f, ".v{} ", self.vector)?;
        }
        write!(f, "{}", self.ty)?;
        if let Some(pointer) = self.pointer {
            write!(f, " {pointer}")?;
        }
        if let Some(dims) = &self.dims {
            f.write_str(" ")?;
            for &dim in dims {
                if dim == 0 {
                    f.write_str("[]")?;
                } else {
                    write!(f, "[{dim}]")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(".ptr ")?;
        if let Some(space) = self.space {
            write!(f, "{space} ")?;
        }
        write!(f, ".align {}", self.align)
    }
}
