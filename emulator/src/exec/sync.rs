//! Instructions by which the lanes of a warp exchange values: they wait for one another, then all compute
//! from what each brought.

use super::code::{Dest, Flag, Reg};
use super::fault::FaultKind;
use super::local::lanes;
use super::trouble::Trouble;

/// How `shfl` picks the lane to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduce {
    AddU,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
}

/// What the lanes do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncKind {
    Shuffle {
        mode: Shuffle,
        to: Dest,
        p: Option<u32>,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Vote {
        mode: Vote,
        to: u32,
        flag: Flag,
    },
    Ballot {
        to: Dest,
        flag: Flag,
    },
    MatchAny {
        to: Dest,
        a: Reg,
    },
    MatchAll {
        to: Dest,
        p: Option<u32>,
        a: Reg,
    },
    Reduce {
        op: Reduce,
        to: Dest,
        a: Reg,
    },
    Elect {
        to: Dest,
        p: Option<u32>,
    },
    /// `bar.warp.sync`
    Meet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncOp {
    pub(crate) kind: SyncKind,
    /// The lanes that take part; those that run the instruction, if there is none.
    pub(crate) members: Option<Reg>,
}

/// The lanes that a member mask names: those that take part, and those that have ended or never were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Members {
    pub(crate) present: u32,
    pub(crate) absent: u32,
}

/// The registers of lanes that may stand in several frames.
pub(crate) trait Lanes {
    fn read(&self, reg: Reg) -> [u64; 32];
    fn write(&mut self, to: Dest, mask: u32, values: &[u64; 32]);
    fn flags(&self, flag: Flag) -> u32;
    fn set_flags(&mut self, predicate: u32, mask: u32, flags: u32);
}

impl SyncKind {
    /// Computes for the lanes that are there.
    pub(crate) fn run(self, lanes_of: &mut impl Lanes, members: Members) -> Result<(), Trouble> {
        let mask = members.present;
        match self {
            Self::Meet => {}
            Self::Shuffle {
                mode,
                to,
                p,
                a,
                b,
                c,
            } => {
                let (a, b, c) = (lanes_of.read(a), lanes_of.read(b), lanes_of.read(c));
                let mut values = a;
                let mut flags = 0;
                for lane in lanes(mask) {
                    let (source, valid) =
                        source_lane(mode, lane as u32, b[lane] as u32, c[lane] as u32);
                    if valid && members.absent >> source & 1 == 1 {
                        return Err(Trouble::new(
                            FaultKind::BadMask,
                            format!(
                                "lane {lane} reads from lane {source}, which the member mask names and which has \
                                 ended or holds no thread"
                            ),
                        )
                        .by(lane));
                    }
                    // What a lane that takes no part holds is not defined: the own value stands in.
                    let source = if mask >> source & 1 == 1 {
                        source as usize
                    } else {
                        lane
                    };
                    values[lane] = a[source];
                    flags |= u32::from(valid) << lane;
                }
                lanes_of.write(to, mask, &values);
                if let Some(p) = p {
                    lanes_of.set_flags(p, mask, flags);
                }
            }
            Self::Vote { mode, to, flag } => {
                let votes = lanes_of.flags(flag) & mask;
                let yes = match mode {
                    Vote::All => votes == mask,
                    Vote::Any => votes != 0,
                    Vote::Uniform => votes == mask || votes == 0,
                };
                lanes_of.set_flags(to, mask, if yes { u32::MAX } else { 0 });
            }
            Self::Ballot { to, flag } => {
                let votes = lanes_of.flags(flag) & mask;
                lanes_of.write(to, mask, &[u64::from(votes); 32]);
            }
            Self::MatchAny { to, a } => {
                let a = lanes_of.read(a);
                let mut values = [0; 32];
                for lane in lanes(mask) {
                    values[lane] = lanes(mask)
                        .filter(|other| a[*other] == a[lane])
                        .fold(0, |found, other| found | 1 << other);
                }
                lanes_of.write(to, mask, &values);
            }
            Self::MatchAll { to, p, a } => {
                let a = lanes_of.read(a);
                let first = a[mask.trailing_zeros() as usize % 32];
                let same = lanes(mask).all(|lane| a[lane] == first);
                let value = if same { u64::from(mask) } else { 0 };
                lanes_of.write(to, mask, &[value; 32]);
                if let Some(p) = p {
                    lanes_of.set_flags(p, mask, if same { u32::MAX } else { 0 });
                }
            }
            Self::Reduce { op, to, a } => {
                let a = lanes_of.read(a);
                let values = lanes(mask).map(|lane| a[lane] as u32);
                let result = values.reduce(|x, y| op.combine(x, y)).unwrap_or(0);
                lanes_of.write(to, mask, &[u64::from(result); 32]);
            }
            Self::Elect { to, p } => {
                let leader = mask.trailing_zeros() % 32;
                lanes_of.write(to, mask, &[u64::from(leader); 32]);
                if let Some(p) = p {
                    lanes_of.set_flags(p, mask, 1 << leader);
                }
            }
        }
        Ok(())
    }
}

impl Reduce {
    fn combine(self, x: u32, y: u32) -> u32 {
        let (sx, sy) = (x.cast_signed(), y.cast_signed());
        match self {
            Self::AddU => x.wrapping_add(y),
            Self::MinU => x.min(y),
            Self::MaxU => x.max(y),
            Self::MinS => sx.min(sy).cast_unsigned(),
            Self::MaxS => sx.max(sy).cast_unsigned(),
            Self::And => x & y,
            Self::Or => x | y,
            Self::Xor => x ^ y,
        }
    }
}

/// The lane that `lane` reads, and whether it lies in the segment; if not, it reads itself.
fn source_lane(mode: Shuffle, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (by, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let last = lane & segment | clamp & !segment;
    let first = lane & segment;
    let (source, valid) = match mode {
        Shuffle::Up => {
            let source = lane.wrapping_sub(by);
            (source, source.cast_signed() >= last.cast_signed())
        }
        Shuffle::Down => (lane + by, lane + by <= last),
        Shuffle::Butterfly => (lane ^ by, lane ^ by <= last),
        Shuffle::Index => {
            let source = first | by & !segment;
            (source, source <= last)
        }
    };
    if valid {
        (source & 31, true)
    } else {
        (lane, false)
    }
}
