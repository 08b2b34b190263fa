//! The barriers of a block, and that of a cluster: who has arrived, and when they open.

use std::collections::HashMap;

/// How many barriers a block has.
pub(crate) const BARRIERS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The threads that count as arrived, lanes without a thread included.
    counted: u32,
    /// The threads that arrived.
    pub(crate) arrived: u32,
    /// The threads to wait for, if the instruction says.
    pub(crate) expected: Option<u32>,
    /// The warps that arrived.
    warps: u32,
    /// For reductions: how many of the predicates were true, and of how many.
    votes: u32,
    voters: u32,
    /// The first instruction by which someone arrived.
    pc: u32,
}

/// What a barrier that opened has to say to those that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) id: usize,
    pub(crate) votes: u32,
    pub(crate) voters: u32,
    pub(crate) warps: u32,
    /// The instruction, where it waits for all threads and some warps have ended.
    pub(crate) without: Option<u32>,
}

/// One arrival of lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) id: usize,
    pub(crate) expected: Option<u32>,
    pub(crate) warp: u32,
    /// The lanes that arrive, and those by which they count.
    pub(crate) threads: u32,
    pub(crate) counted: u32,
    pub(crate) vote: Option<u32>,
    pub(crate) pc: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Barriers {
    waiting: [Waiting; BARRIERS],
    pub(crate) opened: Vec<Opened>,
    /// The threads of the block that have not ended.
    pub(crate) live: u32,
    /// All warps of the block.
    pub(crate) warps: u32,
    /// The warps that ever arrived by an instruction, and those that passed a join.
    arrived_at: HashMap<u32, u32>,
    passed: HashMap<u32, u32>,
}

impl Barriers {
    /// Counts an arrival; false if the barrier already waits for another number of threads.
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> bool {
        let barrier = &mut self.waiting[arrival.id % BARRIERS];
        if barrier.arrived > 0 && barrier.expected != arrival.expected {
            return false;
        }
        if barrier.arrived == 0 {
            barrier.pc = arrival.pc;
        }
        barrier.expected = arrival.expected;
        barrier.arrived += arrival.threads;
        barrier.counted += arrival.counted;
        barrier.warps |= 1 << arrival.warp;
        if let Some(votes) = arrival.vote {
            barrier.votes += votes;
            barrier.voters += arrival.threads;
        }
        *self.arrived_at.entry(arrival.pc).or_default() |= 1 << arrival.warp;
        self.check(arrival.id % BARRIERS);
        true
    }

    /// Opens what only waited for threads that ended.
    pub(crate) fn thread_ended(&mut self) {
        for id in 0..BARRIERS {
            self.check(id);
        }
    }

    fn check(&mut self, id: usize) {
        let barrier = &mut self.waiting[id];
        let complete = match barrier.expected {
            Some(expected) => barrier.counted >= expected,
            None => barrier.arrived >= self.live,
        };
        if barrier.arrived > 0 && complete {
            let Waiting {
                votes,
                voters,
                warps,
                expected,
                pc,
                ..
            } = std::mem::take(barrier);
            let some_ended = expected.is_none() && warps != self.warps;
            let without = some_ended.then_some(pc);
            self.opened.push(Opened {
                id,
                votes,
                voters,
                warps,
                without,
            });
        }
    }

    pub(crate) fn waiting(&self, id: usize) -> Waiting {
        self.waiting[id % BARRIERS]
    }

    /// A warp passed a join.
    pub(crate) fn passed(&mut self, join: u32, warp: u32) {
        *self.passed.entry(join).or_default() |= 1 << warp;
    }

    /// A warp that never arrived by the instruction though it passed a join that lies behind it.
    pub(crate) fn bypassed(&self, pc: u32, joins: &[Vec<u32>]) -> Option<u32> {
        let arrived = self.arrived_at.get(&pc).copied().unwrap_or(0);
        let passed = self
            .passed
            .iter()
            .filter(|(join, _)| {
                joins
                    .get(**join as usize)
                    .is_some_and(|inside| inside.contains(&pc))
            })
            .fold(0, |all, (_, warps)| all | warps);
        let bypassing = passed & !arrived;
        (bypassing != 0).then(|| bypassing.trailing_zeros())
    }
}

/// The barrier of a cluster, arrived at and waited for apart.
#[derive(Debug, Default)]
pub(crate) struct ClusterBarrier {
    arrived: u32,
    /// How often it has opened.
    pub(crate) phase: u64,
    /// The threads of the cluster that have not ended.
    live: u32,
}

impl ClusterBarrier {
    pub(crate) fn new(threads: u32) -> Self {
        Self {
            live: threads,
            ..Self::default()
        }
    }

    pub(crate) fn arrive(&mut self, threads: u32) {
        self.arrived += threads;
        self.check();
    }

    pub(crate) fn thread_ended(&mut self, threads: u32) {
        self.live = self.live.saturating_sub(threads);
        self.check();
    }

    fn check(&mut self) {
        if self.arrived > 0 && self.arrived >= self.live {
            self.arrived = 0;
            self.phase += 1;
        }
    }
}
