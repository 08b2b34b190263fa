//! The registers of one call of a function, for the lanes that made it together.

use super::code::{Dest, Flag, Reg};
use super::fast::{Doubles, Words};
use super::sync::Lanes;
use super::types::mask as low_bits;

/// No frame: the caller of a kernel.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) words: Vec<Words>,
    pub(crate) doubles: Vec<Doubles>,
    pub(crate) predicates: Vec<u32>,
    pub(crate) function: usize,
    /// The frame that called, and the call.
    pub(crate) parent: u32,
    pub(crate) call: u32,
    /// The lanes that have not returned from it.
    pub(crate) mask: u32,
    pub(crate) depth: u32,
    /// Where its local memory begins and ends.
    pub(crate) local_base: u32,
    pub(crate) local_end: u32,
}

impl Frame {
    /// The lowest 64 bits of a register for one lane.
    pub(crate) fn lane(&self, reg: Reg, lane: usize) -> u64 {
        match reg {
            Reg::W(index) => u64::from(self.words[index as usize][lane]),
            Reg::D(index) | Reg::Q(index) => self.doubles[index as usize][lane],
            Reg::P(index) => u64::from(self.predicates[index as usize] >> lane & 1),
            Reg::Sink => 0,
        }
    }

    /// All bits of a register for one lane.
    pub(crate) fn lane_wide(&self, reg: Reg, lane: usize) -> u128 {
        match reg {
            Reg::Q(index) => {
                let low = self.doubles[index as usize][lane];
                let high = self.doubles[index as usize + 1][lane];
                u128::from(low) | u128::from(high) << 64
            }
            reg => u128::from(self.lane(reg, lane)),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the register takes the lower bits"
    )]
    pub(crate) fn set_lane(&mut self, to: Dest, lane: usize, value: u128) {
        match to.reg {
            Reg::W(index) => {
                self.words[index as usize][lane] = (value as u64 & low_bits(to.bits)) as u32;
            }
            Reg::D(index) => self.doubles[index as usize][lane] = value as u64,
            Reg::Q(index) => {
                self.doubles[index as usize][lane] = value as u64;
                self.doubles[index as usize + 1][lane] = (value >> 64) as u64;
            }
            Reg::P(index) => {
                let bit = u32::from(value & 1 == 1) << lane;
                let predicate = &mut self.predicates[index as usize];
                *predicate = *predicate & !(1 << lane) | bit;
            }
            Reg::Sink => {}
        }
    }

    #[inline(always)]
    pub(crate) fn put_words(&mut self, to: u32, mask: u32, values: &Words) {
        let row = &mut self.words[to as usize];
        if mask == u32::MAX {
            *row = *values;
        } else {
            for lane in 0..32 {
                row[lane] = if mask >> lane & 1 == 1 {
                    values[lane]
                } else {
                    row[lane]
                };
            }
        }
    }

    #[inline(always)]
    pub(crate) fn put_doubles(&mut self, to: u32, mask: u32, values: &Doubles) {
        let row = &mut self.doubles[to as usize];
        if mask == u32::MAX {
            *row = *values;
        } else {
            for lane in 0..32 {
                row[lane] = if mask >> lane & 1 == 1 {
                    values[lane]
                } else {
                    row[lane]
                };
            }
        }
    }

    #[inline(always)]
    pub(crate) fn flag(&self, flag: Flag) -> u32 {
        let bits = self.predicates[flag.predicate as usize];
        if flag.negated { !bits } else { bits }
    }

    #[inline(always)]
    pub(crate) fn put_flags(&mut self, predicate: u32, mask: u32, flags: u32) {
        let row = &mut self.predicates[predicate as usize];
        *row = *row & !mask | flags & mask;
    }
}

impl Lanes for Frame {
    fn read(&self, reg: Reg) -> [u64; 32] {
        match reg {
            Reg::W(index) => self.words[index as usize].map(u64::from),
            Reg::D(index) | Reg::Q(index) => self.doubles[index as usize],
            Reg::P(_) | Reg::Sink => std::array::from_fn(|lane| self.lane(reg, lane)),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the register takes the lower bits"
    )]
    fn write(&mut self, to: Dest, mask: u32, values: &[u64; 32]) {
        match to.reg {
            Reg::W(index) => {
                let kept = low_bits(to.bits);
                self.put_words(index, mask, &values.map(|value| (value & kept) as u32));
            }
            Reg::D(index) => self.put_doubles(index, mask, values),
            Reg::Q(index) => {
                self.put_doubles(index, mask, values);
                self.put_doubles(index + 1, mask, &[0; 32]);
            }
            Reg::P(index) => {
                let flags =
                    (0..32).fold(0, |flags, lane| flags | (values[lane] as u32 & 1) << lane);
                self.put_flags(index, mask, flags);
            }
            Reg::Sink => {}
        }
    }

    fn flags(&self, flag: Flag) -> u32 {
        self.flag(flag)
    }

    fn set_flags(&mut self, predicate: u32, mask: u32, flags: u32) {
        self.put_flags(predicate, mask, flags);
    }
}
