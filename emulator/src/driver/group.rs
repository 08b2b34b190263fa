//! Devices that share one view of what the host has waited for: those the process sees, and each fresh
//! device of a test by itself.

use std::collections::HashMap;
use std::time::Instant;

use super::Driver;
use crate::clock::{Clock, Timeline};
use crate::memory::Token;

/// What the host knows of a group of devices.
#[derive(Debug)]
pub(crate) struct Group {
    /// What the host has waited for.
    pub(crate) host: Clock,
    /// The last tick of each timeline, as far as the host has not waited for it, and its context.
    last: HashMap<Timeline, (u64, usize)>,
    /// How many operations are pending.
    pub(crate) pending: usize,
    /// How many threads wait for one.
    pub(crate) waiting: usize,
    /// When the host last called.
    pub(crate) called: Instant,
    /// Allocations whose history is not empty.
    pub(crate) touched: Vec<Token>,
    /// What orders are drawn from.
    pub(crate) random: u64,
}

impl Group {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            host: Clock::default(),
            last: HashMap::new(),
            pending: 0,
            waiting: 0,
            called: Instant::now(),
            touched: Vec::new(),
            random: seed,
        }
    }

    pub(crate) fn note_tick(&mut self, timeline: Timeline, tick: u64, context: usize) {
        self.last.insert(timeline, (tick, context));
    }

    /// A number below `bound`.
    pub(crate) fn draw(&mut self, bound: usize) -> usize {
        // The splitmix64 generator.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        usize::try_from(z % bound.max(1) as u64).unwrap_or(0)
    }
}

impl Driver {
    /// The host has waited for all that lies behind `clock`.
    pub(crate) fn host_joins(&mut self, group: u64, clock: &Clock) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.host.join(clock);
        }
        self.forget_settled(group);
    }

    /// The host has waited for all work of a context.
    pub(crate) fn host_joins_context(&mut self, group: u64, context: usize) {
        if let Some(group) = self.groups.get_mut(&group) {
            for (timeline, (tick, owner)) in &group.last {
                if *owner == context {
                    group.host.advance(*timeline, *tick);
                }
            }
        }
        self.forget_settled(group);
    }

    /// Once the host has waited for all there is, nothing that comes can be unordered with it.
    fn forget_settled(&mut self, group: u64) {
        let Some(state) = self.groups.get_mut(&group) else {
            return;
        };
        let host = &state.host;
        state
            .last
            .retain(|timeline, (tick, _)| !host.covers(*timeline, *tick));
        if state.pending > 0 || !state.last.is_empty() {
            return;
        }
        state.host.clear();
        for token in std::mem::take(&mut state.touched) {
            if let Some(allocation) = self.memory.get_mut(token) {
                allocation.history.clear();
            }
        }
        for stream in self.streams.values_mut() {
            if stream.group == group {
                stream.clock.clear();
            }
        }
        for context in self.contexts.values_mut() {
            if context.group == group {
                context.orphan_clock.clear();
            }
        }
    }
}
