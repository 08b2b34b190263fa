//! Where ways around a barrier meet again.
//!
//! A barrier that only some lanes of a warp reach is an error. A lane that ends does not count, so the error is
//! certain only where a lane comes to the place behind which all go on together: the immediate
//! postdominator of the branch that parted them. Such places are marked with [`Op::Join`].

use super::super::code::{Inst, Op};
use super::Draft;

/// Marks the joins of a body's regions with aligned barriers; each list gets the addresses of the barriers
/// inside, where the body begins at `base`.
///
/// Where a kernel only ends is no join: whether the way there is called `return` or the end of an `if` is all
/// the same.
pub(super) fn mark_joins(
    drafts: Vec<Draft>,
    is_kernel: bool,
    joins: &mut Vec<Vec<u32>>,
    base: u32,
) -> Vec<Draft> {
    let is_barrier = |draft: &Draft| matches!(&draft.inst.op, Op::Barrier(barrier) if barrier.aligned && barrier.count.is_none());
    if !drafts.iter().any(is_barrier) {
        return drafts;
    }
    let graph = Graph::new(&drafts);
    let postdominators = graph.postdominators();
    // For each place where ways meet, the barriers around which they lead.
    let mut marks: Vec<(usize, Vec<usize>)> = Vec::new();
    for (at, draft) in drafts.iter().enumerate() {
        let parts = matches!(draft.inst.op, Op::Branch(_)) && draft.inst.guard.is_some();
        if !parts && !matches!(draft.inst.op, Op::BranchTable { .. }) {
            continue;
        }
        let Some(join) = postdominators[graph.block_of[at]] else {
            continue;
        };
        let (start, end) = graph.blocks[join];
        let only_ends = drafts[start..end].iter().all(|draft| {
            draft.inst.guard.is_none() && matches!(draft.inst.op, Op::Nop | Op::Return | Op::Exit)
        });
        if is_kernel && only_ends {
            continue;
        }
        let inside = graph.between(graph.block_of[at], join);
        let barriers: Vec<usize> = inside
            .iter()
            .flat_map(|block| graph.blocks[*block].0..graph.blocks[*block].1)
            .filter(|at| is_barrier(&drafts[*at]))
            .collect();
        if barriers.is_empty() {
            continue;
        }
        match marks.iter_mut().find(|(place, _)| *place == start) {
            Some((_, known)) => known.extend(barriers),
            None => marks.push((start, barriers)),
        }
    }
    insert(drafts, marks, joins, base)
}

fn insert(
    drafts: Vec<Draft>,
    mut marks: Vec<(usize, Vec<usize>)>,
    joins: &mut Vec<Vec<u32>>,
    base: u32,
) -> Vec<Draft> {
    marks.sort_by_key(|(place, _)| *place);
    // Branches to a join come to its mark first; a barrier moves behind the marks before it.
    let target = |at: u32| {
        at + marks
            .iter()
            .filter(|(place, _)| (*place as u32) < at)
            .count() as u32
    };
    let moved = |at: usize| {
        base + at as u32 + marks.iter().filter(|(place, _)| *place <= at).count() as u32
    };
    let first = joins.len() as u32;
    for (_, barriers) in &marks {
        let mut inside: Vec<u32> = barriers.iter().map(|at| moved(*at)).collect();
        inside.sort_unstable();
        inside.dedup();
        joins.push(inside);
    }
    let mut numbers = (first..).zip(&marks).peekable();
    let mut out = Vec::with_capacity(drafts.len() + marks.len());
    for (at, mut draft) in drafts.into_iter().enumerate() {
        if let Some((number, _)) = numbers.next_if(|(_, (place, _))| *place == at) {
            let inst = Inst {
                op: Op::Join(number),
                guard: None,
            };
            out.push(Draft {
                inst,
                base: None,
                names: Vec::new(),
                ..draft.clone()
            });
        }
        match &mut draft.inst.op {
            Op::Branch(to) => *to = target(*to),
            Op::BranchTable { targets, .. } => targets.iter_mut().for_each(|to| *to = target(*to)),
            _ => {}
        }
        out.push(draft);
    }
    out
}

/// The basic blocks of a body.
pub(super) struct Graph {
    /// First and behind-last instruction of each.
    pub(super) blocks: Vec<(usize, usize)>,
    pub(super) block_of: Vec<usize>,
    pub(super) successors: Vec<Vec<usize>>,
    /// A thread may end in the block, whatever follows.
    leaves: Vec<bool>,
}

impl Graph {
    pub(super) fn new(drafts: &[Draft]) -> Self {
        let count = drafts.len();
        let mut starts = vec![false; count + 1];
        starts[0] = true;
        for (at, draft) in drafts.iter().enumerate() {
            let mut ends = true;
            match &draft.inst.op {
                Op::Branch(target) => starts[(*target as usize).min(count)] = true,
                Op::BranchTable { targets, .. } => {
                    targets
                        .iter()
                        .for_each(|target| starts[(*target as usize).min(count)] = true);
                }
                Op::Return | Op::Exit | Op::Trap => {}
                _ => ends = false,
            }
            if ends {
                starts[at + 1] = true;
            }
        }
        let mut blocks = Vec::new();
        let mut block_of = vec![0; count];
        for at in 0..count {
            if starts[at] {
                blocks.push((at, at));
            }
            block_of[at] = blocks.len() - 1;
            if let Some(block) = blocks.last_mut() {
                block.1 = at + 1;
            }
        }
        let mut graph = Self {
            successors: vec![Vec::new(); blocks.len()],
            leaves: vec![false; blocks.len()],
            blocks,
            block_of,
        };
        graph.connect(drafts);
        graph
    }

    fn connect(&mut self, drafts: &[Draft]) {
        for block in 0..self.blocks.len() {
            let last = self.blocks[block].1 - 1;
            let inst = &drafts[last].inst;
            let always = inst.guard.is_none();
            let mut falls = true;
            match &inst.op {
                Op::Branch(target) => {
                    self.link(block, *target as usize);
                    falls = !always;
                }
                Op::BranchTable { targets, .. } => {
                    for target in targets {
                        self.link(block, *target as usize);
                    }
                    falls = !always;
                }
                Op::Return | Op::Exit | Op::Trap => {
                    self.leaves[block] = true;
                    falls = !always;
                }
                _ => {}
            }
            if falls {
                self.link(block, last + 1);
            }
        }
    }

    fn link(&mut self, from: usize, to: usize) {
        match self.block_of.get(to) {
            Some(block) => {
                if !self.successors[from].contains(block) {
                    self.successors[from].push(*block);
                }
            }
            None => self.leaves[from] = true,
        }
    }

    /// The immediate postdominator of each block, but for those behind which nothing is certain.
    ///
    /// Conditional exits do not count as ways around: a lane that ends goes nowhere.
    fn postdominators(&self) -> Vec<Option<usize>> {
        let count = self.blocks.len();
        let end = count;
        let ends = |block: usize| self.leaves[block] && self.successors[block].is_empty();
        let mut predecessors = vec![Vec::new(); count + 1];
        let mut next = vec![Vec::new(); count + 1];
        for (block, next) in next.iter_mut().enumerate().take(count) {
            next.clone_from(&self.successors[block]);
            if ends(block) {
                next.push(end);
            }
            for to in next.iter() {
                predecessors[*to].push(block);
            }
        }
        // Numbers by a walk backwards from the end.
        let mut order = Vec::new();
        let mut number = vec![usize::MAX; count + 1];
        let mut seen = vec![false; count + 1];
        let mut stack = vec![(end, 0)];
        seen[end] = true;
        while let Some((block, at)) = stack.pop() {
            if let Some(&before) = predecessors[block].get(at) {
                stack.push((block, at + 1));
                if !std::mem::replace(&mut seen[before], true) {
                    stack.push((before, 0));
                }
            } else {
                number[block] = order.len();
                order.push(block);
            }
        }
        let mut nearest: Vec<Option<usize>> = vec![None; count + 1];
        nearest[end] = Some(end);
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().rev().filter(|block| **block != end) {
                let mut found: Option<usize> = None;
                for &to in next[block].iter().filter(|to| nearest[**to].is_some()) {
                    found = Some(match found {
                        None => to,
                        Some(other) => meet(&nearest, &number, to, other),
                    });
                }
                if found != nearest[block] {
                    nearest[block] = found;
                    changed = true;
                }
            }
        }
        nearest.truncate(count);
        nearest
            .into_iter()
            .map(|found| found.filter(|block| *block != end))
            .collect()
    }

    /// The blocks on ways from one block's end to another, neither included unless it lies on a loop.
    fn between(&self, from: usize, to: usize) -> Vec<usize> {
        let mut seen = vec![false; self.blocks.len()];
        let mut left = self.successors[from].clone();
        let mut all = Vec::new();
        while let Some(block) = left.pop() {
            if block == to || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            all.push(block);
            left.extend(&self.successors[block]);
        }
        all
    }
}

fn meet(nearest: &[Option<usize>], number: &[usize], a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        while number[a] < number[b] {
            match nearest[a] {
                Some(next) if next != a => a = next,
                _ => return b,
            }
        }
        while number[b] < number[a] {
            match nearest[b] {
                Some(next) if next != b => b = next,
                _ => return a,
            }
        }
    }
    a
}
