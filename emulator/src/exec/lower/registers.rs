//! Which registers share a place in a frame.
//!
//! Compilers give every value a register of its own; most live for a few instructions. Registers whose lives
//! do not meet take one place, so that a warp's registers stay few and near. A life is the stretch of
//! instructions from the first to the last at which a register may be needed.

use super::super::code::{Function, Passed, Reg};
use super::super::visit::Role;
use super::Draft;
use super::flow::Graph;

/// A bank of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Bank {
    P,
    W,
    D,
}

const BANKS: [Bank; 3] = [Bank::P, Bank::W, Bank::D];

/// The places of a register: its bank, the first, and how many.
fn places(reg: Reg) -> Option<(Bank, u32, u32)> {
    match reg {
        Reg::P(at) => Some((Bank::P, at, 1)),
        Reg::W(at) => Some((Bank::W, at, 1)),
        Reg::D(at) => Some((Bank::D, at, 1)),
        Reg::Q(at) => Some((Bank::D, at, 2)),
        Reg::Sink => None,
    }
}

/// From where to where a register is needed.
#[derive(Clone, Copy, Debug)]
struct Life {
    first: usize,
    last: usize,
}

/// All places of a body, numbered through the banks.
struct Numbering {
    starts: [u32; 3],
    count: usize,
}

impl Numbering {
    fn new(function: &Function) -> Self {
        let starts = [0, function.predicates, function.predicates + function.words];
        Self {
            starts,
            count: (starts[2] + function.doubles) as usize,
        }
    }

    fn of(&self, bank: Bank, at: u32) -> usize {
        (self.starts[bank as usize] + at) as usize
    }
}

/// Renumbers the registers of a body.
pub(super) fn allocate(function: &mut Function, mut drafts: Vec<Draft>) -> Vec<Draft> {
    if drafts.is_empty() {
        return drafts;
    }
    let numbering = Numbering::new(function);
    let lives = lives(function, &mut drafts, &numbering);
    let mut map = vec![0; numbering.count];
    let mut sizes = [0; 3];
    // Pairs of neighbours stay neighbours.
    let mut pairs = vec![false; numbering.count];
    for draft in &mut drafts {
        draft.inst.visit(&mut |reg, _| {
            if let Some((bank, at, 2)) = places(*reg) {
                pairs[numbering.of(bank, at)] = true;
            }
        });
    }
    for bank in BANKS {
        let start = numbering.starts[bank as usize] as usize;
        let count = match bank {
            Bank::P => function.predicates,
            Bank::W => function.words,
            Bank::D => function.doubles,
        } as usize;
        sizes[bank as usize] = assign(
            &lives[start..start + count],
            &pairs[start..start + count],
            &mut map[start..start + count],
        );
    }
    let renumber = |reg: &mut Reg| {
        if let Some((bank, at, _)) = places(*reg) {
            let new = map[numbering.of(bank, at)];
            *reg = match *reg {
                Reg::P(_) => Reg::P(new),
                Reg::W(_) => Reg::W(new),
                Reg::D(_) => Reg::D(new),
                Reg::Q(_) => Reg::Q(new),
                Reg::Sink => Reg::Sink,
            };
        }
    };
    for draft in &mut drafts {
        draft.inst.visit(&mut |reg, _| renumber(reg));
    }
    for (reg, _) in &mut function.presets {
        renumber(reg);
    }
    for passed in function.params.iter_mut().chain(&mut function.returns) {
        if let Passed::Register(dest) = passed {
            renumber(&mut dest.reg);
        }
    }
    [function.predicates, function.words, function.doubles] = sizes;
    drafts
}

/// Places for the registers of one bank, and how many there are.
fn assign(lives: &[Option<Life>], pairs: &[bool], map: &mut [u32]) -> u32 {
    let mut order: Vec<usize> = (0..lives.len()).filter(|at| lives[*at].is_some()).collect();
    order.sort_by_key(|at| lives[*at].map_or(0, |life| life.first));
    let mut free: Vec<u32> = Vec::new();
    let mut ends: std::collections::BinaryHeap<std::cmp::Reverse<(usize, u32)>> =
        std::collections::BinaryHeap::new();
    let mut size = 0;
    let mut skip = vec![false; lives.len()];
    for at in order {
        if skip[at] {
            continue;
        }
        let Some(life) = lives[at] else { continue };
        while let Some(std::cmp::Reverse((end, place))) = ends.peek().copied() {
            if end >= life.first {
                break;
            }
            ends.pop();
            free.push(place);
        }
        if pairs[at] {
            // Pairs are rare: they get places of their own.
            map[at] = size;
            if let Some(second) = map.get_mut(at + 1) {
                *second = size + 1;
                skip[at + 1] = true;
            }
            size += 2;
            continue;
        }
        let place = free.pop().unwrap_or_else(|| {
            size += 1;
            size - 1
        });
        map[at] = place;
        ends.push(std::cmp::Reverse((life.last, place)));
    }
    size
}

/// The life of every place; none for one that nobody uses.
fn lives(function: &Function, drafts: &mut [Draft], numbering: &Numbering) -> Vec<Option<Life>> {
    let graph = Graph::new(drafts);
    let mut lives: Vec<Option<Life>> = vec![None; numbering.count];
    let stretch = |lives: &mut Vec<Option<Life>>, number: usize, at: usize| {
        let life = lives[number].get_or_insert(Life {
            first: at,
            last: at,
        });
        life.first = life.first.min(at);
        life.last = life.last.max(at);
    };
    let blocks = graph.blocks.len();
    let words = numbering.count.div_ceil(64);
    let mut reads = vec![0_u64; blocks * words];
    let mut sets = vec![0_u64; blocks * words];
    for (block, &(start, end)) in graph.blocks.iter().enumerate() {
        for (at, draft) in drafts.iter_mut().enumerate().take(end).skip(start) {
            let guarded = draft.inst.guard.is_some();
            draft.inst.visit(&mut |reg, role| {
                let Some((bank, first, count)) = places(*reg) else {
                    return;
                };
                for part in 0..count {
                    let number = numbering.of(bank, first + part);
                    stretch(&mut lives, number, at);
                    let (word, bit) = (block * words + number / 64, 1 << (number % 64));
                    match role {
                        Role::Reads if sets[word] & bit == 0 => reads[word] |= bit,
                        // Where the guard fails, what was there before stays.
                        Role::Sets if guarded && sets[word] & bit == 0 => reads[word] |= bit,
                        Role::Sets => sets[word] |= bit,
                        Role::Reads => {}
                    }
                }
            });
        }
    }
    let needed = needed(&graph, &reads, &sets, words);
    for (block, &(start, end)) in graph.blocks.iter().enumerate() {
        for word in 0..words {
            let into = needed[block * words + word];
            let out = graph.successors[block]
                .iter()
                .fold(0, |out, next| out | needed[next * words + word]);
            let each = |bits: u64, at: usize, lives: &mut Vec<Option<Life>>| {
                let mut left = bits;
                while left != 0 {
                    stretch(lives, word * 64 + left.trailing_zeros() as usize, at);
                    left &= left - 1;
                }
            };
            each(into, start, &mut lives);
            each(out, end - 1, &mut lives);
        }
    }
    // What is set when the frame is made lives throughout, as it may be made once for many calls; so do
    // parameters and results.
    let last = drafts.len() - 1;
    let mut whole = |reg: Reg| {
        let Some((bank, first, count)) = places(reg) else {
            return;
        };
        for part in 0..count {
            lives[numbering.of(bank, first + part)] = Some(Life { first: 0, last });
        }
    };
    function.presets.iter().for_each(|(reg, _)| whole(*reg));
    for passed in function.params.iter().chain(&function.returns) {
        if let Passed::Register(dest) = passed {
            whole(dest.reg);
        }
    }
    lives
}

/// What is needed at the start of each block.
fn needed(graph: &Graph, reads: &[u64], sets: &[u64], words: usize) -> Vec<u64> {
    let blocks = graph.blocks.len();
    let mut predecessors = vec![Vec::new(); blocks];
    for (block, next) in graph.successors.iter().enumerate() {
        for next in next {
            predecessors[*next].push(block);
        }
    }
    let mut needed = reads.to_vec();
    let mut waiting: Vec<usize> = (0..blocks).collect();
    let mut is_waiting = vec![true; blocks];
    while let Some(block) = waiting.pop() {
        is_waiting[block] = false;
        let mut changed = false;
        for word in 0..words {
            let out = graph.successors[block]
                .iter()
                .fold(0, |out, next| out | needed[next * words + word]);
            let at = block * words + word;
            let new = reads[at] | out & !sets[at];
            changed |= new != needed[at];
            needed[at] = new;
        }
        if changed {
            for &before in &predecessors[block] {
                if !std::mem::replace(&mut is_waiting[before], true) {
                    waiting.push(before);
                }
            }
        }
    }
    needed
}
