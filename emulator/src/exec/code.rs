//! The list of micro-operations a function is lowered to, apart from how they are run.
//!
//! Every operand is a register: constants, special registers that do not change and addresses of
//! variables are registers too, set when a frame is made ([`Preset`]).

use super::alu::{Alu, Comparison};
use super::atomic::AtomicOp;
use super::fast::{D1, D2, D3, DW, Fast, FastCompare, Shift, W1, W2, W3, WD, Wide, WideAdd};
use super::matrix::MatrixOp;
use super::space::Space;
use super::special::Special;
use super::sync::SyncOp;
use super::types::Type;

/// A register of a frame: a bank and an index into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reg {
    /// A predicate: one bit a lane.
    P(u32),
    /// 32 bits; narrower registers hold zeros above.
    W(u32),
    /// 64 bits.
    D(u32),
    /// 128 bits: two neighbours of 64.
    Q(u32),
    /// Nowhere.
    Sink,
}

impl Reg {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::P(_) => 1,
            Self::W(_) => 32,
            Self::D(_) => 64,
            Self::Q(_) => 128,
            Self::Sink => 0,
        }
    }
}

/// A register, and how wide the PTX register is that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dest {
    pub(crate) reg: Reg,
    pub(crate) bits: u32,
}

/// The predicate an instruction runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) predicate: u32,
    pub(crate) negated: bool,
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    pub(crate) predicate: u32,
    pub(crate) negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

/// How an access orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ordering {
    /// Volatile, relaxed, acquire or release: it does not race with another such.
    pub(crate) strong: bool,
    /// Acquire, release or both: it also is a fence.
    pub(crate) fence: bool,
    /// What is loaded is only masked: a bit-field is set in what may hold nothing yet.
    pub(crate) masked: bool,
    /// What is loaded only goes to the thread's own memory: a struct is copied, members that hold nothing too.
    pub(crate) copied: bool,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) space: Space,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) target: Target,
    pub(crate) ty: Type,
    pub(crate) order: Ordering,
    pub(crate) to: Vec<Dest>,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) target: Target,
    pub(crate) ty: Type,
    pub(crate) order: Ordering,
    pub(crate) from: Vec<Reg>,
}

#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) target: Target,
    pub(crate) op: AtomicOp,
    pub(crate) order: Ordering,
    /// As many as it has operands `a`; none for `red`.
    pub(crate) to: Vec<Dest>,
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Reg,
}

#[derive(Clone, Debug)]
pub(crate) struct SetP {
    pub(crate) comparison: Comparison,
    pub(crate) fast: Option<FastCompare>,
    /// One predicate for each half.
    pub(crate) pair: bool,
    pub(crate) p: Option<u32>,
    pub(crate) q: Option<u32>,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) combine: Option<(Logic, Flag)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Compute {
    pub(crate) alu: Alu,
    pub(crate) result: Type,
    pub(crate) to: Dest,
    pub(crate) operands: [Reg; 4],
    pub(crate) count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carry {
    pub(crate) int: super::alu_int::Int,
    pub(crate) kind: CarryKind,
    /// Whether it reads and writes the carry flag.
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) to: Reg,
    pub(crate) operands: [Reg; 3],
    pub(crate) flag: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Sub,
    MadLo,
    MadHi,
}

#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Function(usize),
    /// The address of a function, and what a prototype says of it: bytes of each parameter and result.
    Indirect {
        address: Reg,
        returns: Vec<u32>,
        params: Vec<u32>,
    },
    Printf,
    AssertFail,
    SetConditional,
}

/// What a call passes or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Register(Dest),
    /// Bytes of the frame's local memory.
    Bytes {
        offset: u32,
        size: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) returns: Vec<Passed>,
    pub(crate) arguments: Vec<Passed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    pub(crate) kind: BarrierKind,
    pub(crate) id: Reg,
    /// How many threads take part; all if there is none.
    pub(crate) count: Option<Reg>,
    pub(crate) aligned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    Popc { to: Reg, flag: Flag },
    Logic { to: u32, all: bool, flag: Flag },
}

/// Copies from global to shared memory that end at a wait.
#[derive(Clone, Debug)]
pub(crate) struct CopyAsync {
    pub(crate) to: Target,
    pub(crate) from: Target,
    pub(crate) size: u32,
    /// How many bytes are read; the rest becomes zero.
    pub(crate) read: Option<Reg>,
    /// Reads nothing where it holds.
    pub(crate) ignore: Option<Flag>,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Nop,
    W1(W1, u32, u32),
    W2(W2, u32, u32, u32),
    W3(W3, u32, u32, u32, u32),
    D1(D1, u32, u32),
    D2(D2, u32, u32, u32),
    D3(D3, u32, u32, u32, u32),
    Shift(Shift, u32, u32, u32),
    WD(WD, u32, u32),
    DW(DW, u32, u32),
    Wide(Wide, u32, u32, u32),
    WideAdd(WideAdd, u32, u32, u32, u32),
    Compute(Box<Compute>),
    SetP(Box<SetP>),
    Carry(Box<Carry>),
    /// Both are of one bank.
    Move {
        to: Reg,
        from: Reg,
    },
    Select {
        to: Reg,
        a: Reg,
        b: Reg,
        flag: Flag,
    },
    TestP {
        property: super::alu_float::Property,
        format: super::number::Format,
        to: u32,
        a: Reg,
    },
    Logic {
        op: Logic,
        to: u32,
        a: Flag,
        b: Flag,
    },
    /// The parts of `from`, lowest first.
    Unpack {
        to: Box<[Dest]>,
        from: Reg,
        bits: u32,
    },
    Pack {
        to: Dest,
        from: Box<[Reg]>,
        bits: u32,
    },
    Special {
        to: Dest,
        special: Special,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    /// Parameters of the kernel, the same for all lanes.
    LoadParam(Box<Load>),
    CopyAsync(Box<CopyAsync>),
    CopyCommit,
    /// Waits until at most so many groups are left.
    CopyWait(u32),
    Bulk(Box<super::bulk::BulkOp>),
    BulkCommit,
    /// Waits until at most so many groups are left, or only until the others' sources were read.
    BulkWait {
        left: u32,
        reads: bool,
    },
    /// `cvta`: adds or takes off the base of a window.
    Convert {
        to: Dest,
        from: Reg,
        space: Space,
        to_generic: bool,
    },
    IsSpace {
        to: u32,
        from: Reg,
        space: Space,
        cluster: bool,
    },
    MapShared {
        to: Dest,
        from: Reg,
        rank: Reg,
        generic: bool,
    },
    SharedRank {
        to: Dest,
        from: Reg,
        generic: bool,
    },
    Branch(u32),
    BranchTable {
        targets: Box<[u32]>,
        index: Reg,
    },
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    Barrier(Box<Barrier>),
    ClusterArrive,
    ClusterWait,
    Fence,
    Sync(Box<SyncOp>),
    Matrix(Box<MatrixOp>),
    MBarrier(Box<super::mbarrier::MBarrierOp>),
    Image(Box<super::image_op::ImageOp>),
    Sleep,
    /// The reconvergence point of regions that hold aligned barriers.
    Join(u32),
    Unsupported,
}

/// A micro-operation under its guard.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    pub(crate) guard: Option<Guard>,
}

/// What a register is set to when a frame is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Preset {
    Bits(u64),
    Special(Special),
    /// The address of a variable that the loader placed.
    Symbol {
        variable: usize,
        offset: i64,
    },
    /// The offset of a variable in shared memory, or the address in its window.
    Shared {
        variable: usize,
        offset: i64,
        generic: bool,
    },
    /// An address in the frame's local memory, or the address in its window.
    Local {
        offset: i64,
        generic: bool,
    },
    /// The address of a kernel parameter.
    Param(i64),
    /// A kernel parameter, or a part of one, in a register of some bits.
    ParamValue {
        offset: u32,
        ty: Type,
        bits: u32,
    },
}

/// A parameter or a result of a function, in the callee's frame.
pub(crate) type Formal = Passed;

/// A kernel's or a function's code and the frame it needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    /// The index of its first micro-operation; the end is the next function's.
    pub(crate) entry: u32,
    pub(crate) end: u32,
    pub(crate) words: u32,
    pub(crate) doubles: u32,
    pub(crate) predicates: u32,
    pub(crate) presets: Vec<(Reg, Preset)>,
    pub(crate) local_bytes: u32,
    pub(crate) params: Vec<Formal>,
    pub(crate) returns: Vec<Formal>,
    /// The functions it calls, or whose address it takes.
    pub(crate) calls: Vec<usize>,
    /// It calls through an address.
    pub(crate) calls_any: bool,
    /// The variables in shared memory it speaks of.
    pub(crate) shared: Vec<usize>,
    /// The smallest access it makes that may reach shared memory.
    pub(crate) granule: u32,
    pub(crate) has_body: bool,
}

impl Compute {
    /// The operation over all lanes, if there is one.
    pub(crate) fn specialise(&self) -> Option<Op> {
        let fast = Fast::of(self.alu, self.to.bits)?;
        let w = |at: usize| match self.operands[at] {
            Reg::W(index) => Some(index),
            _ => None,
        };
        let d = |at: usize| match self.operands[at] {
            Reg::D(index) => Some(index),
            _ => None,
        };
        Some(match (fast, self.to.reg) {
            (Fast::W1(op), Reg::W(to)) => Op::W1(op, to, w(0)?),
            (Fast::W2(op), Reg::W(to)) => Op::W2(op, to, w(0)?, w(1)?),
            (Fast::W3(op), Reg::W(to)) => Op::W3(op, to, w(0)?, w(1)?, w(2)?),
            (Fast::D1(op), Reg::D(to)) => Op::D1(op, to, d(0)?),
            (Fast::D2(op), Reg::D(to)) => Op::D2(op, to, d(0)?, d(1)?),
            (Fast::D3(op), Reg::D(to)) => Op::D3(op, to, d(0)?, d(1)?, d(2)?),
            (Fast::Shift(op), Reg::D(to)) => Op::Shift(op, to, d(0)?, w(1)?),
            (Fast::WD(op), Reg::D(to)) => Op::WD(op, to, w(0)?),
            (Fast::DW(op), Reg::W(to)) => Op::DW(op, to, d(0)?),
            (Fast::Wide(op), Reg::D(to)) => Op::Wide(op, to, w(0)?, w(1)?),
            (Fast::WideAdd(op), Reg::D(to)) => Op::WideAdd(op, to, w(0)?, w(1)?, d(2)?),
            _ => return None,
        })
    }
}
