//! Statements: what stands between two semicolons.

use super::operand::Operand;
use crate::error::Position;
use crate::initial::Element;
use crate::param::Param;
use crate::types::{Linkage, ScalarType, StateSpace};

/// One statement of a body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Statement<'a> {
    /// `$L__BB0_2:`
    Label {
        /// The label, without its colon.
        name: &'a str,
        /// Where it stands.
        position: Position,
    },
    /// `@%p1 ld.global.f32 %f1, [%rd1+4];`
    Instruction(Instruction<'a>),
    /// `.reg .b32 %r<10>;`
    Declaration(Declaration<'a>),
    /// `.loc 1 12 5`
    Loc(Loc<'a>),
    /// `.pragma "nounroll";`
    Pragma {
        /// The strings, without their quotes.
        texts: Vec<&'a str>,
        /// Where the directive stands.
        position: Position,
    },
    /// `{`: what is declared from here on is known up to the matching `}`.
    Open(Position),
    /// `}`
    Close(Position),
    /// `prototype_0: .callprototype (.param .b32 _) _ (.param .b64 _);`
    CallPrototype(CallPrototype<'a>),
    /// `targets: .calltargets fast, slow;`
    CallTargets {
        /// The label by which `call` knows the list.
        label: &'a str,
        /// Where the label stands.
        position: Position,
        /// The functions.
        names: Vec<NameRange<'a>>,
    },
    /// `targets: .branchtargets L1, L2;`
    BranchTargets {
        /// The label by which `brx.idx` knows the list.
        label: &'a str,
        /// Where the label stands.
        position: Position,
        /// The labels to go to.
        names: Vec<NameRange<'a>>,
    },
    /// A directive that this reader does not know, as it is written.
    Directive {
        /// The text, from its dot on.
        text: &'a str,
        /// Where it stands.
        position: Position,
    },
}

/// An instruction, whichever.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction<'a> {
    /// Where it starts: at its guard, or at its opcode.
    pub position: Position,
    /// The predicate that decides whether it runs.
    pub guard: Option<Guard<'a>>,
    /// What stands before the first dot: `ld`.
    pub opcode: &'a str,
    /// The words behind it in order, without their dots: `global`, `L2::128B`, `f32`.
    pub modifiers: Vec<&'a str>,
    /// What it works on, in order.
    pub operands: Vec<Operand<'a>>,
}

/// `@%p1` or `@!%p1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard<'a> {
    /// Whether it runs where the predicate is false.
    pub negated: bool,
    /// The predicate.
    pub register: &'a str,
}

/// A declaration of registers or variables: `.local .align 4 .b8 depot[28], rest[4];`.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration<'a> {
    /// Where its state space stands.
    pub position: Position,
    /// Where the variables live.
    pub space: StateSpace,
    /// Who sees them.
    pub linkage: Linkage,
    /// The type of a scalar, or of one element.
    pub ty: ScalarType,
    /// The elements of a vector; 1 if it is none.
    pub vector: u32,
    /// The alignment in bytes, a power of two.
    pub align: usize,
    /// What is declared.
    pub names: Vec<Declared<'a>>,
}

/// One name of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared<'a> {
    /// The name, and how many there are of it.
    pub name: NameRange<'a>,
    /// Where it stands.
    pub position: Position,
    /// The dimensions of an array, outermost first; none for a scalar, 0 for `[]` without a value.
    pub dims: Vec<usize>,
    /// The bytes of each; none for `[]` without a value.
    pub size: Option<usize>,
    /// The initial value; what is not among the elements is zero.
    pub elements: Vec<Element<'a>>,
}

/// A name, or as many as `%r<10>` stands for: `%r0` to `%r9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRange<'a> {
    /// The name, or what all of them start with.
    pub name: &'a str,
    /// The number in the angle brackets, if there are any.
    pub count: Option<u32>,
}

/// `.loc`: where in the source the following instructions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc<'a> {
    /// Where the directive stands.
    pub position: Position,
    /// The place in the source.
    pub place: SourcePlace,
    /// The label of the name of the function that was inlined, and the bytes added to it.
    pub function_name: Option<(&'a str, i64)>,
    /// Where that function was inlined.
    pub inlined_at: Option<SourcePlace>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The number of the file, as [`File::index`](crate::File::index) gives it.
    pub file: u32,
    /// The line, from 1; 0 if the compiler does not know.
    pub line: u32,
    /// The column, from 1; 0 if the compiler does not know.
    pub column: u32,
}

/// The signature of a function that is called through a register.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPrototype<'a> {
    /// The label by which `call` knows it.
    pub label: &'a str,
    /// Where the label stands.
    pub position: Position,
    /// What the function returns.
    pub returns: Vec<Param>,
    /// What it takes.
    pub params: Vec<Param>,
    /// Whether it does not come back.
    pub noreturn: bool,
}
