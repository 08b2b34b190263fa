//! What a module declares beside code: variables, and the files that `.loc` counts.

use std::fmt;

use crate::error::Position;
use crate::types::{Linkage, ScalarType, StateSpace};

/// A variable of the module: `.global`, `.const`, `.shared`, `.extern .shared`.
///
/// ```
/// let module = gridcall_ptx::Module::parse(
///     ".version 9.5
///      .target sm_90
///      .extern .shared .align 16 .b8 scratch[];
///      .const .align 4 .f32 weights[3] = {1.0, 0f3F000000};",
/// )?;
/// let [scratch, weights] = module.variables() else { panic!("two variables") };
/// assert_eq!((scratch.align(), scratch.size()), (16, None));
/// assert_eq!((weights.name(), weights.size()), ("weights", Some(12)));
/// assert_eq!(weights.to_string(), ".const .align 4 .f32 [3]");
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub(crate) name: String,
    pub(crate) position: Position,
    pub(crate) space: StateSpace,
    pub(crate) linkage: Linkage,
    pub(crate) ty: ScalarType,
    pub(crate) vector: u32,
    pub(crate) dims: Vec<usize>,
    pub(crate) align: usize,
    pub(crate) size: Option<usize>,
    pub(crate) managed: bool,
    pub(crate) initializer: Option<Initializer>,
}

/// Where the initial value of a variable lies in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initializer {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) position: Position,
}

impl Variable {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the name stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Where it lives.
    #[must_use]
    pub fn space(&self) -> StateSpace {
        self.space
    }

    /// Who sees it.
    #[must_use]
    pub fn linkage(&self) -> Linkage {
        self.linkage
    }

    /// The type of the scalar, or of one element.
    #[must_use]
    pub fn ty(&self) -> ScalarType {
        self.ty
    }

    /// The elements of a vector, `.v4`; 1 if it is none.
    #[must_use]
    pub fn vector(&self) -> u32 {
        self.vector
    }

    /// The dimensions of an array, outermost first; none for a scalar, 0 for `[]` without a value.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Its alignment, a power of two.
    #[must_use]
    pub fn align(&self) -> usize {
        self.align
    }

    /// Its bytes; none if it is written `[]` without a value, as dynamic shared memory is.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        self.size
    }

    /// Whether it is `.attribute(.managed)`: host and device share it.
    #[must_use]
    pub fn is_managed(&self) -> bool {
        self.managed
    }

    /// Where its initial value is, if it has one.
    #[must_use]
    pub fn initializer(&self) -> Option<&Initializer> {
        self.initializer.as_ref()
    }
}

/// `.const .f32`, `.global .align 16 .b8 [128]`: without its name.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.space)?;
        if self.align != self.ty.size() * self.vector as usize || !self.dims.is_empty() {
            write!(f, ".align {} ", self.align)?;
        }
        if self.vector > 1 {
            write!(f, ".v{} ", self.vector)?;
        }
        write!(f, "{}", self.ty)?;
        if !self.dims.is_empty() {
            f.write_str(" ")?;
        }
        for dim in &self.dims {
            match dim {
                0 => f.write_str("[]")?,
                dim => write!(f, "[{dim}]")?,
            }
        }
        Ok(())
    }
}

impl Initializer {
    /// The bytes of the text that hold it, `{`, `}` included.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.end
    }

    /// Where it starts.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }
}

/// A source file: `.file 1 "saxpy.cu"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub(crate) index: u32,
    pub(crate) name: String,
}

impl File {
    /// The number by which `.loc` names it.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The path, as written between the quotes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
