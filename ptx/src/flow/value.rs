//! What is known of a register, whatever path the code takes.

/// How many parameters are followed; the code of a kernel with more is not told about the rest.
pub(super) const MOST_PARAMS: usize = 128;

/// A set of parameters.
pub(super) type Set = u128;

pub(super) fn only(param: usize) -> Set {
    if param < MOST_PARAMS { 1 << param } else { 0 }
}

/// All definitions of a register taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) root: Root,
    /// The parameters that may have gone into it.
    pub(super) tainted: Set,
}

/// What a value starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// No definition was looked at so far.
    Unset,
    /// A number that is no pointer, a multiple of `step`.
    Integer { step: Step },
    /// The value of a parameter, and a number that is a multiple of `step`.
    Param { param: usize, step: Step },
    /// Anything.
    Unknown,
}

/// A power of two by its exponent, as those survive an overflow; 0 is a multiple of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step(u8);

impl Step {
    pub(super) const ZERO: Step = Step(64);
    pub(super) const ONE: Step = Step(0);

    pub(super) fn of(number: u64) -> Step {
        // At most 64, for 0.
        Step(u8::try_from(number.trailing_zeros()).unwrap_or(64))
    }

    fn times(self, other: Step) -> Step {
        Step((self.0 + other.0).min(64))
    }

    /// The step in bytes; none if nothing is added.
    pub(super) fn bytes(self) -> Option<u64> {
        (self < Step::ZERO).then(|| 1 << self.0)
    }
}

impl Value {
    pub(super) const UNSET: Value = Value {
        root: Root::Unset,
        tainted: 0,
    };
    pub(super) const UNKNOWN: Value = Value {
        root: Root::Unknown,
        tainted: 0,
    };
    pub(super) const INTEGER: Value = Value::integer(Step::ONE);

    pub(super) const fn integer(step: Step) -> Value {
        Value {
            root: Root::Integer { step },
            tainted: 0,
        }
    }

    pub(super) fn param(param: usize) -> Value {
        Value {
            root: Root::Param {
                param,
                step: Step::ZERO,
            },
            tainted: only(param),
        }
    }

    pub(super) fn is_unset(self) -> bool {
        self.root == Root::Unset
    }

    /// Either of two.
    pub(super) fn join(self, other: Value) -> Value {
        let root = match (self.root, other.root) {
            (Root::Unset, root) | (root, Root::Unset) => root,
            (Root::Integer { step: a }, Root::Integer { step: b }) => {
                Root::Integer { step: a.min(b) }
            }
            (
                Root::Param { param, step: a },
                Root::Param {
                    param: same,
                    step: b,
                },
            ) if param == same => Root::Param {
                param,
                step: a.min(b),
            },
            _ => Root::Unknown,
        };
        Value {
            root,
            tainted: self.tainted | other.tainted,
        }
    }

    pub(super) fn add(self, other: Value) -> Value {
        let root = match (self.root, other.root) {
            (Root::Unset, _) | (_, Root::Unset) => Root::Unset,
            (Root::Integer { step: a }, Root::Integer { step: b }) => {
                Root::Integer { step: a.min(b) }
            }
            (Root::Param { param, step: a }, Root::Integer { step: b })
            | (Root::Integer { step: b }, Root::Param { param, step: a }) => Root::Param {
                param,
                step: a.min(b),
            },
            // Two parameters, and nobody knows which of them is the pointer.
            _ => Root::Unknown,
        };
        Value {
            root,
            tainted: self.tainted | other.tainted,
        }
    }

    pub(super) fn subtract(self, other: Value) -> Value {
        let sum = self.add(other);
        match (self.root, other.root) {
            // What is taken away is no address afterwards.
            (_, Root::Param { .. }) if !sum.is_unset() => Value {
                root: Root::Unknown,
                ..sum
            },
            _ => sum,
        }
    }

    /// A product is no pointer, whatever its factors were.
    pub(super) fn multiply(self, other: Value) -> Value {
        if self.is_unset() || other.is_unset() {
            return Value::UNSET;
        }
        let step = |value: Value| match value.root {
            Root::Integer { step } => step,
            _ => Step::ONE,
        };
        Value {
            root: Root::Integer {
                step: step(self).times(step(other)),
            },
            tainted: self.tainted | other.tainted,
        }
    }

    /// Any other operation: what was a pointer is now anything, and what was a number is one.
    pub(super) fn blur(self) -> Value {
        let root = match self.root {
            Root::Unset => Root::Unset,
            Root::Integer { .. } => Root::Integer { step: Step::ONE },
            Root::Param { .. } | Root::Unknown => Root::Unknown,
        };
        Value { root, ..self }
    }
}
