//! Runs micro-operations for one group of lanes: all that only concerns their registers and memory.

use super::access::{Reach, addresses};
use super::alu_float;
use super::alu_int::{self, Int, IntOp};
use super::code::{Atomic, Carry, CarryKind, Compute, CopyAsync, Dest, Logic, Op, Reg, SetP};
use super::context::Context;
use super::fast::FastCompare;
use super::fault::FaultKind;
use super::frame::Frame;
use super::local::lanes;
use super::memory::GlobalMemory;
use super::space::{Place, SHARED, Space, mapped};
use super::sync::{Lanes, Members};
use super::trouble::Trouble;
use super::types::{Type, mask as low_bits, sign_extend};
use super::warp::{Group, State, Warp, member_lanes, same_lanes};
use crate::simd::Job;

/// Why a group stopped.
pub(crate) enum Stop {
    /// It met others, would pass them, or had its time.
    Pause,
    /// The instruction it stands at concerns more than the group; `active` are the lanes that run it.
    Slow {
        active: u32,
    },
    Trouble {
        active: u32,
        trouble: Trouble,
    },
}

/// A group to run.
pub(crate) struct Execute<'a, 'b, M> {
    pub(crate) warp: &'a mut Warp,
    pub(crate) frame: &'a mut Frame,
    pub(crate) group: Group,
    /// Where others stand: the group pauses there.
    pub(crate) limit: u32,
    pub(crate) budget: u64,
    pub(crate) cx: &'a mut Context<'b, M>,
}

macro_rules! reach {
    ($self:ident) => {
        Reach {
            memory: &mut *$self.cx.memory,
            windows: &mut $self.cx.running.windows,
            shared: &mut *$self.cx.shared,
            rank: $self.cx.place.rank as usize,
            warp: $self.warp.place.index as usize,
            params: &$self.cx.setting.launch.params,
            local: &mut $self.warp.local,
            races: $self.cx.running.races.as_mut(),
            block: $self.cx.place.index,
            changed: &mut $self.cx.running.changed,
            looked: &mut $self.cx.running.looked,
        }
    };
}
pub(crate) use reach;

impl<M: GlobalMemory> Job for Execute<'_, '_, M> {
    type Output = (Group, u64, Stop);

    #[inline(always)]
    fn run(mut self) -> Self::Output {
        let code = self.cx.code;
        let mut pc = self.group.pc;
        let mut mask = self.group.mask;
        let mut budget = self.budget;
        let mut used = 0;
        let mut threads = 0;
        let stop = loop {
            if used >= budget || pc >= self.limit {
                break Stop::Pause;
            }
            let Some(inst) = code.get(pc as usize) else {
                let trouble = Trouble::new(FaultKind::InvalidPc, "the code ends here");
                break Stop::Trouble {
                    active: mask,
                    trouble,
                };
            };
            used += 1;
            if let Some(count) = self.cx.running.counts.get_mut(pc as usize) {
                *count += 1;
            }
            let active = match inst.guard {
                None => mask,
                Some(guard) => {
                    let flags = self.frame.predicates[guard.predicate as usize];
                    mask & if guard.negated { !flags } else { flags }
                }
            };
            threads += u64::from(active.count_ones());
            let frame = &mut *self.frame;
            match &inst.op {
                Op::W1(op, to, a) => {
                    let values = op.eval(&frame.words[*a as usize]);
                    frame.put_words(*to, active, &values);
                }
                Op::W2(op, to, a, b) => {
                    let values = op.eval(&frame.words[*a as usize], &frame.words[*b as usize]);
                    frame.put_words(*to, active, &values);
                }
                Op::W3(op, to, a, b, c) => {
                    let words = &frame.words;
                    let values = op.eval(
                        &words[*a as usize],
                        &words[*b as usize],
                        &words[*c as usize],
                    );
                    frame.put_words(*to, active, &values);
                }
                Op::D1(op, to, a) => {
                    let values = op.eval(&frame.doubles[*a as usize]);
                    frame.put_doubles(*to, active, &values);
                }
                Op::D2(op, to, a, b) => {
                    let values = op.eval(&frame.doubles[*a as usize], &frame.doubles[*b as usize]);
                    frame.put_doubles(*to, active, &values);
                }
                Op::D3(op, to, a, b, c) => {
                    let doubles = &frame.doubles;
                    let values = op.eval(
                        &doubles[*a as usize],
                        &doubles[*b as usize],
                        &doubles[*c as usize],
                    );
                    frame.put_doubles(*to, active, &values);
                }
                Op::Shift(op, to, a, b) => {
                    let values = op.eval(&frame.doubles[*a as usize], &frame.words[*b as usize]);
                    frame.put_doubles(*to, active, &values);
                }
                Op::WD(op, to, a) => {
                    let values = op.eval(&frame.words[*a as usize]);
                    frame.put_doubles(*to, active, &values);
                }
                Op::DW(op, to, a) => {
                    let values = op.eval(&frame.doubles[*a as usize]);
                    frame.put_words(*to, active, &values);
                }
                Op::Wide(op, to, a, b) => {
                    let values = op.eval(&frame.words[*a as usize], &frame.words[*b as usize]);
                    frame.put_doubles(*to, active, &values);
                }
                Op::WideAdd(op, to, a, b, c) => {
                    let words = &frame.words;
                    let values = op.eval(
                        &words[*a as usize],
                        &words[*b as usize],
                        &frame.doubles[*c as usize],
                    );
                    frame.put_doubles(*to, active, &values);
                }
                Op::Move { to, from } => move_register(frame, active, *to, *from),
                Op::SetP(set) => set_predicates(frame, active, set),
                Op::Branch(target) => {
                    let around = mask & !active;
                    if around == 0 {
                        pc = *target;
                    } else if active == 0 {
                        pc += 1;
                    } else {
                        let (low, low_mask, high, high_mask) = if *target < pc + 1 {
                            (*target, active, pc + 1, around)
                        } else {
                            (pc + 1, around, *target, active)
                        };
                        if low == high {
                            pc = low;
                        } else {
                            let other = Group {
                                pc: high,
                                mask: high_mask,
                                state: State::Ready,
                                ..self.group
                            };
                            self.warp.groups.push(other);
                            self.limit = self.limit.min(high);
                            budget = budget.min(used + super::warp::FAIR);
                            (pc, mask) = (low, low_mask);
                        }
                    }
                    continue;
                }
                Op::Load(load) if active != 0 => {
                    let result = reach!(self).load(
                        frame,
                        active,
                        &load.target,
                        load.ty,
                        load.order,
                        &load.to,
                    );
                    if let Err(trouble) = result {
                        break Stop::Trouble { active, trouble };
                    }
                }
                Op::Store(store) if active != 0 => {
                    let result = reach!(self).store(
                        frame,
                        active,
                        &store.target,
                        store.ty,
                        store.order,
                        &store.from,
                    );
                    if let Err(trouble) = result {
                        break Stop::Trouble { active, trouble };
                    }
                }
                Op::Select { to, a, b, flag } => {
                    select(frame, active, *to, *a, *b, frame.flag(*flag));
                }
                Op::Compute(compute) => self.compute(active, compute),
                Op::Sync(sync) if active != 0 => {
                    // All lanes that are named stand here: no need to look for others.
                    let place = self.warp.place;
                    let members = match sync.members {
                        None => Ok(Members {
                            present: active,
                            absent: 0,
                        }),
                        Some(reg) if same_lanes(frame, reg, active) == active => {
                            member_lanes(frame, reg, active, self.warp.live)
                        }
                        Some(_) => break Stop::Slow { active },
                    };
                    match members {
                        Ok(members) if members.present == active => {
                            if let Err(trouble) = sync.kind.run(frame, members) {
                                break Stop::Trouble { active, trouble };
                            }
                            self.cx.shared[self.cx.place.rank as usize]
                                .warp_sync(place.index as usize);
                        }
                        Ok(_) => break Stop::Slow { active },
                        Err(trouble) => break Stop::Trouble { active, trouble },
                    }
                }
                Op::Nop => {}
                other => match self.other(other, active) {
                    Ok(true) => {}
                    Ok(false) => break Stop::Slow { active },
                    Err(trouble) => break Stop::Trouble { active, trouble },
                },
            }
            pc += 1;
        };
        self.cx.running.thread_instructions += threads;
        (
            Group {
                pc,
                mask,
                ..self.group
            },
            used,
            stop,
        )
    }
}

impl<M: GlobalMemory> Execute<'_, '_, M> {
    /// The rarer operations; false for one that is not for here.
    #[inline(never)]
    fn other(&mut self, op: &Op, active: u32) -> Result<bool, Trouble> {
        if active == 0 {
            return Ok(true);
        }
        let frame = &mut *self.frame;
        match op {
            Op::Carry(carry) => carry_on(frame, active, carry),
            Op::TestP {
                property,
                format,
                to,
                a,
            } => {
                let mut flags = 0;
                for lane in lanes(active) {
                    flags |= u32::from(alu_float::test(*property, *format, frame.lane(*a, lane)))
                        << lane;
                }
                frame.put_flags(*to, active, flags);
            }
            Op::Logic { op, to, a, b } => {
                let (a, b) = (frame.flag(*a), frame.flag(*b));
                frame.put_flags(*to, active, logic(*op, a, b));
            }
            Op::Unpack { to, from, bits } => {
                for lane in lanes(active) {
                    let value = frame.lane_wide(*from, lane);
                    for (at, to) in (0_u32..).zip(to) {
                        let part = value >> (at * bits) & (u128::MAX >> (128 - bits));
                        frame.set_lane(*to, lane, part);
                    }
                }
            }
            Op::Pack { to, from, bits } => {
                for lane in lanes(active) {
                    let value = (0_u32..).zip(from).fold(0, |value, (at, from)| {
                        let part = frame.lane_wide(*from, lane) & (u128::MAX >> (128 - bits));
                        value | part << (at * bits)
                    });
                    frame.set_lane(*to, lane, value);
                }
            }
            Op::Special { to, special } => {
                self.cx.running.steps += 1;
                self.cx.running.looked = true;
                let values = self.cx.special(*special, self.warp.place);
                frame.write(*to, active, &values);
            }
            Op::Load(_) | Op::Store(_) | Op::Sync(_) => {}
            Op::LoadParam(load) => self.load_param(active, load),
            Op::Atomic(atomic) => self.atomic(active, atomic)?,
            Op::CopyAsync(copy) => self.copy_async(active, copy)?,
            Op::Image(op) => op.run(frame, active, &mut reach!(self))?,
            Op::CopyCommit => lanes(active).for_each(|lane| self.warp.copies.commit(lane)),
            Op::CopyWait(left) => {
                self.copies_arrive(active, (*left != u32::MAX).then_some(*left))?;
            }
            Op::BulkCommit => lanes(active).for_each(|lane| self.warp.bulk.commit(lane)),
            Op::BulkWait { left, reads } => self.bulk_wait(active, *left, *reads)?,
            Op::Convert {
                to,
                from,
                space,
                to_generic,
            } => {
                let base = space.base();
                let mut values = frame.read(*from);
                for value in &mut values {
                    *value = if *to_generic {
                        value.wrapping_add(base)
                    } else {
                        value.wrapping_sub(base)
                    };
                }
                frame.write(*to, active, &values);
            }
            Op::IsSpace {
                to,
                from,
                space,
                cluster,
            } => self.is_space(active, *to, *from, *space, *cluster),
            Op::MapShared {
                to,
                from,
                rank,
                generic,
            } => {
                let own = self.cx.place.rank;
                for lane in lanes(active) {
                    let rank = frame.lane(*rank, lane) as u32;
                    let address = frame.lane(*from, lane);
                    let window = if *generic { SHARED } else { 0 };
                    let offset = address.wrapping_sub(window) % super::space::SHARED_STRIDE;
                    let there = if rank == own {
                        offset
                    } else {
                        mapped(rank, offset)
                    };
                    frame.set_lane(*to, lane, u128::from(window + there));
                }
            }
            Op::SharedRank { to, from, generic } => {
                for lane in lanes(active) {
                    let address = frame.lane(*from, lane);
                    let place = if *generic {
                        Space::Generic
                    } else {
                        Space::Shared
                    }
                    .place(address);
                    let rank = match place {
                        Place::Shared(Some(rank), _) => rank,
                        _ => self.cx.place.rank,
                    };
                    frame.set_lane(*to, lane, u128::from(rank));
                }
            }
            Op::Fence => {
                let rank = self.cx.place.rank as usize;
                self.cx.shared[rank].fence(self.warp.place.index as usize);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    #[inline(never)]
    fn compute(&mut self, active: u32, compute: &Compute) {
        let frame = &mut *self.frame;
        let count = compute.count.min(4);
        let mut rows = [[0; 32]; 4];
        for (row, operand) in rows.iter_mut().zip(&compute.operands[..count]) {
            *row = frame.read(*operand);
        }
        let mut values = [0; 32];
        for lane in lanes(active) {
            let operands = [rows[0][lane], rows[1][lane], rows[2][lane], rows[3][lane]];
            values[lane] = widen(compute.alu.eval(operands), compute.result, compute.to.bits);
        }
        frame.write(compute.to, active, &values);
    }

    fn load_param(&mut self, active: u32, load: &super::code::Load) {
        let params = &self.cx.setting.launch.params;
        let element = load.ty.bytes() as usize;
        for (at, to) in load.to.iter().enumerate() {
            let start = load.target.offset as usize + at * element;
            let mut wide = [0; 16];
            if let Some(bytes) = params.get(start..start + element) {
                wide[..element].copy_from_slice(bytes);
            }
            let value = u128::from_le_bytes(wide);
            if element == 16 {
                lanes(active).for_each(|lane| self.frame.set_lane(*to, lane, value));
            } else {
                let value = widen(value as u64, load.ty, to.bits);
                self.frame.write(*to, active, &[value; 32]);
            }
        }
    }

    fn atomic(&mut self, active: u32, atomic: &Atomic) -> Result<(), Trouble> {
        let frame = &mut *self.frame;
        let addresses = addresses(frame, &atomic.target);
        if atomic.order.fence {
            self.cx.shared[self.cx.place.rank as usize].fence(self.warp.place.index as usize);
        }
        let size = atomic.op.ty.bytes();
        for lane in lanes(active) {
            let place = atomic.target.space.place(addresses[lane]);
            let op = super::atomic::AtomicOp {
                ftz: atomic.op.ty == Type::F32 && matches!(place, Place::Global(_)),
                ..atomic.op
            };
            let b = frame.lane_wide(atomic.b, lane);
            for (at, a) in (0_u64..).zip(&atomic.a) {
                let a = frame.lane_wide(*a, lane);
                let element = match place {
                    Place::Global(address) => Place::Global(address + at * u64::from(size)),
                    other => other,
                };
                let mut reach = reach!(self);
                let old = reach
                    .update(frame.local_end, lane, element, size, &mut |old| {
                        op.eval(old, a, b)
                    })
                    .map_err(|trouble| trouble.at(lane, addresses[lane]))?;
                if let Some(to) = atomic.to.get(at as usize) {
                    let old = if size == 16 {
                        old
                    } else {
                        u128::from(widen(old as u64, op.ty, to.bits))
                    };
                    frame.set_lane(*to, lane, old);
                }
            }
        }
        Ok(())
    }

    fn copy_async(&mut self, active: u32, copy: &CopyAsync) -> Result<(), Trouble> {
        let frame = &mut *self.frame;
        let (to, from) = (addresses(frame, &copy.to), addresses(frame, &copy.from));
        let ignored = copy.ignore.map_or(0, |flag| frame.flag(flag));
        for lane in lanes(active) {
            let wanted = copy.read.map_or(copy.size, |read| {
                (frame.lane(read, lane) as u32).min(copy.size)
            });
            let wanted = if ignored >> lane & 1 == 1 { 0 } else { wanted };
            let mut data = [0; 16];
            let blame = |trouble: Trouble| trouble.at(lane, from[lane]);
            if from[lane] % u64::from(copy.size) != 0 {
                return Err(blame(Trouble::misaligned("global", from[lane], copy.size)));
            }
            if to[lane] % u64::from(copy.size) != 0 {
                return Err(Trouble::misaligned("shared", to[lane], copy.size).at(lane, to[lane]));
            }
            let place = copy.from.space.place(from[lane]);
            let mut reach = reach!(self);
            let order = super::code::Ordering::default();
            if wanted == copy.size {
                reach
                    .load_bytes(
                        frame.local_end,
                        lane,
                        place,
                        order,
                        &mut data[..wanted as usize],
                    )
                    .map_err(blame)?;
            } else if let Place::Global(address) = place {
                for at in 0..wanted {
                    let place = Place::Global(address + u64::from(at));
                    let at = at as usize;
                    reach
                        .load_bytes(frame.local_end, lane, place, order, &mut data[at..=at])
                        .map_err(blame)?;
                }
            }
            let place = copy.to.space.place(to[lane]);
            self.warp
                .copies
                .issue(lane, place, &data[..copy.size as usize]);
        }
        Ok(())
    }

    fn copies_arrive(&mut self, active: u32, left: Option<u32>) -> Result<(), Trouble> {
        if self.warp.copies.is_empty() {
            return Ok(());
        }
        let mut copies = std::mem::take(&mut self.warp.copies);
        let result = copies.arrive(&mut reach!(self), active, left);
        self.warp.copies = copies;
        result
    }

    fn bulk_wait(&mut self, active: u32, left: u32, reads: bool) -> Result<(), Trouble> {
        if self.warp.bulk.is_empty() {
            return Ok(());
        }
        let mut bulk = std::mem::take(&mut self.warp.bulk);
        let result = bulk.wait(&mut reach!(self), active, left, reads);
        self.warp.bulk = bulk;
        result
    }

    fn is_space(&mut self, active: u32, to: u32, from: Reg, space: Space, cluster: bool) {
        let mut flags = 0;
        for lane in lanes(active) {
            let address = self.frame.lane(from, lane);
            let is = match Space::Generic.place(address) {
                Place::Global(address) => match space {
                    Space::Const => self.cx.is_constant(address),
                    space => space == Space::Global && !self.cx.is_constant(address),
                },
                Place::Shared(rank, _) => {
                    let own = rank.is_none_or(|rank| rank == self.cx.place.rank);
                    space == Space::Shared && (own || cluster)
                }
                Place::Local(_) => space == Space::Local,
                Place::Param(_) => space == Space::Param,
            };
            flags |= u32::from(is) << lane;
        }
        self.frame.put_flags(to, active, flags);
    }
}

/// Extends a result to a register that is wider than its type.
pub(crate) fn widen(value: u64, ty: Type, bits: u32) -> u64 {
    if ty.is_signed() && bits > ty.bits() {
        sign_extend(value, ty.bits()).cast_unsigned() & low_bits(bits)
    } else {
        value & low_bits(ty.bits().min(bits))
    }
}

#[inline(always)]
fn move_register(frame: &mut Frame, active: u32, to: Reg, from: Reg) {
    match (to, from) {
        (Reg::W(to), Reg::W(from)) => {
            let values = frame.words[from as usize];
            frame.put_words(to, active, &values);
        }
        (Reg::D(to), Reg::D(from)) => {
            let values = frame.doubles[from as usize];
            frame.put_doubles(to, active, &values);
        }
        (Reg::Q(to), Reg::Q(from)) => {
            for half in 0..2 {
                let values = frame.doubles[(from + half) as usize];
                frame.put_doubles(to + half, active, &values);
            }
        }
        (Reg::P(to), Reg::P(from)) => {
            let flags = frame.predicates[from as usize];
            frame.put_flags(to, active, flags);
        }
        (to, from) => {
            let values = frame.read(from);
            frame.write(
                Dest {
                    reg: to,
                    bits: to.bits().min(64),
                },
                active,
                &values,
            );
        }
    }
}

#[inline(always)]
fn select(frame: &mut Frame, active: u32, to: Reg, a: Reg, b: Reg, flags: u32) {
    match (to, a, b) {
        (Reg::W(to), Reg::W(a), Reg::W(b)) => {
            let (a, b) = (&frame.words[a as usize], &frame.words[b as usize]);
            let mut values = [0; 32];
            for lane in 0..32 {
                values[lane] = if flags >> lane & 1 == 1 {
                    a[lane]
                } else {
                    b[lane]
                };
            }
            frame.put_words(to, active, &values);
        }
        (Reg::D(to), Reg::D(a), Reg::D(b)) => {
            let (a, b) = (&frame.doubles[a as usize], &frame.doubles[b as usize]);
            let mut values = [0; 32];
            for lane in 0..32 {
                values[lane] = if flags >> lane & 1 == 1 {
                    a[lane]
                } else {
                    b[lane]
                };
            }
            frame.put_doubles(to, active, &values);
        }
        (to, a, b) => {
            let bits = to.bits();
            for lane in lanes(active) {
                let from = if flags >> lane & 1 == 1 { a } else { b };
                let value = frame.lane_wide(from, lane);
                frame.set_lane(Dest { reg: to, bits }, lane, value);
            }
        }
    }
}

#[inline(always)]
fn set_predicates(frame: &mut Frame, active: u32, set: &SetP) {
    let holds = match (set.fast, set.a, set.b) {
        (Some(FastCompare::W(compare)), Reg::W(a), Reg::W(b)) => {
            compare.eval(&frame.words[a as usize], &frame.words[b as usize])
        }
        (Some(FastCompare::D(compare)), Reg::D(a), Reg::D(b)) => {
            compare.eval(&frame.doubles[a as usize], &frame.doubles[b as usize])
        }
        _ => return set_predicates_slowly(frame, active, set),
    };
    put_predicates(frame, active, set, holds, !holds);
}

#[inline(never)]
fn set_predicates_slowly(frame: &mut Frame, active: u32, set: &SetP) {
    let (mut low, mut high) = (0, 0);
    for lane in lanes(active) {
        let (a, b) = (frame.lane(set.a, lane), frame.lane(set.b, lane));
        if set.pair {
            low |= u32::from(set.comparison.holds(a & 0xffff, b & 0xffff)) << lane;
            high |= u32::from(set.comparison.holds(a >> 16 & 0xffff, b >> 16 & 0xffff)) << lane;
        } else {
            low |= u32::from(set.comparison.holds(a, b)) << lane;
        }
    }
    let second = if set.pair { high } else { !low };
    put_predicates(frame, active, set, low, second);
}

#[inline(always)]
fn put_predicates(frame: &mut Frame, active: u32, set: &SetP, first: u32, second: u32) {
    let (mut first, mut second) = (first, second);
    if let Some((op, flag)) = set.combine {
        let flag = frame.flag(flag);
        (first, second) = (logic(op, first, flag), logic(op, second, flag));
    }
    if let Some(p) = set.p {
        frame.put_flags(p, active, first);
    }
    if let Some(q) = set.q {
        frame.put_flags(q, active, second);
    }
}

fn logic(op: Logic, a: u32, b: u32) -> u32 {
    match op {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// Additions and multiplications with the carry flag.
fn carry_on(frame: &mut Frame, active: u32, carry: &Carry) {
    let int = Int {
        bits: carry.int.bits,
        signed: carry.int.signed,
    };
    for lane in lanes(active) {
        let operand = |at: usize| frame.lane(carry.operands[at], lane);
        let carry_in = carry.reads && frame.predicates[carry.flag as usize] >> lane & 1 == 1;
        let (a, b, subtract) = match carry.kind {
            CarryKind::Add => (operand(0), operand(1), false),
            CarryKind::Sub => (operand(0), operand(1), true),
            CarryKind::MadLo => (
                alu_int::eval(IntOp::MulLo, int, [operand(0), operand(1), 0, 0]),
                operand(2),
                false,
            ),
            CarryKind::MadHi => (
                alu_int::eval(IntOp::MulHi, int, [operand(0), operand(1), 0, 0]),
                operand(2),
                false,
            ),
        };
        let (value, out) = alu_int::add_carry(int, a, b, carry_in, subtract);
        frame.set_lane(
            Dest {
                reg: carry.to,
                bits: int.bits,
            },
            lane,
            u128::from(value),
        );
        if carry.writes {
            frame.put_flags(carry.flag, 1 << lane, u32::from(out) << lane);
        }
    }
}
