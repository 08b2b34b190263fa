//! Operations: what is enqueued on streams, what each depends on, and what it is ordered behind.

use std::fmt;
use std::sync::Arc;

use super::border::HostCall;
use super::codes::{Answer, Code};
use super::condition::{Rounds, Values};
use super::copy::{CopyWork, FillWork};
use super::launch::KernelWork;
use super::stream::StreamKind;
use super::{Call, Driver, ENDED};
use crate::clock::{Clock, Timeline};
use crate::config::Order;
use crate::exec::Grid;
use crate::memory::{Token, Touched};

/// What an operation does. Nodes of graphs hold the same.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Only waits.
    Nothing,
    Kernel(Box<KernelWork>),
    Copy(Box<CopyWork>),
    Fill(FillWork),
    Host(HostCall),
    /// Record number `serial` of an event.
    Record {
        event: usize,
        serial: u64,
    },
    Allocate(Token),
    Free(Token),
    /// Sets the conditions of a graph to their defaults.
    Reset(Arc<Values>),
    /// Runs bodies, as a condition decides.
    Conditional(Box<Rounds>),
}

/// An operation in words, for reports.
#[derive(Clone, Debug)]
pub(crate) enum Label {
    Kernel(Arc<str>),
    Copy(u64, &'static str),
    Fill(u64),
    Allocate(u64),
    Free(u64),
    Other,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(name) => write!(f, "kernel `{name}`"),
            Self::Copy(bytes, direction) => write!(f, "a copy of {bytes} bytes {direction}"),
            Self::Fill(bytes) => write!(f, "a memset of {bytes} bytes"),
            Self::Allocate(number) => write!(f, "the allocation of #{number}"),
            Self::Free(number) => write!(f, "the free of allocation #{number}"),
            Self::Other => f.write_str("an operation"),
        }
    }
}

/// What reports and the order of operations need of one, also after it ended.
#[derive(Debug)]
pub(crate) struct OpInfo {
    pub(crate) timeline: Timeline,
    pub(crate) tick: u64,
    pub(crate) label: Label,
    pub(crate) context: usize,
    pub(crate) device: u32,
    pub(crate) group: u64,
    /// The stream in words.
    pub(crate) stream: StreamName,
    /// The conditions that a kernel may set.
    pub(crate) conditions: Option<Arc<Values>>,
    /// The conditional node of which it runs in a body.
    pub(crate) within: Option<Arc<OpInfo>>,
}

impl OpInfo {
    /// Whether it lies behind, or all that it is a part of.
    pub(crate) fn lies_behind(&self, clock: &Clock) -> bool {
        clock.covers(self.timeline, self.tick)
            || self
                .within
                .as_ref()
                .is_some_and(|outer| outer.lies_behind(clock))
    }
}

impl fmt::Display for OpInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.label, self.stream)
    }
}

/// A stream in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamName {
    pub(crate) kind: StreamKind,
    pub(crate) id: u64,
    pub(crate) graph: bool,
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.graph {
            f.write_str("a graph launched on ")?;
        }
        match self.kind {
            StreamKind::Legacy => f.write_str("the default stream"),
            StreamKind::PerThread => f.write_str("a thread's default stream"),
            StreamKind::Blocking | StreamKind::NonBlocking => write!(f, "stream {}", self.id),
        }
    }
}

/// An operation that has not ended.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) info: Arc<OpInfo>,
    pub(crate) clock: Clock,
    pub(crate) deps: Vec<u64>,
    pub(crate) work: Work,
    /// The kernel, once begun or checked.
    pub(crate) grid: Option<Box<Grid>>,
    pub(crate) touched: Touched,
    /// Another thread runs it without the lock.
    pub(crate) running: bool,
    /// The test wants it to fail.
    pub(crate) fails: bool,
}

/// Where an operation is put.
pub(crate) struct Place {
    pub(crate) context: usize,
    pub(crate) timeline: Timeline,
    pub(crate) tick: u64,
    pub(crate) stream: StreamName,
    pub(crate) deps: Vec<u64>,
    pub(crate) clock: Clock,
    pub(crate) conditions: Option<Arc<Values>>,
    pub(crate) within: Option<Arc<OpInfo>>,
}

/// So many operations may be pending in a group before the host has to wait for the oldest.
const MOST_PENDING: usize = 1024;

impl Driver {
    /// Adds an operation. Its clock gets its own tick.
    pub(crate) fn add_op(
        &mut self,
        place: Place,
        work: Work,
        grid: Option<Box<Grid>>,
    ) -> Answer<u64> {
        let context = self.get_context(place.context)?;
        let (device, group) = (context.device, context.group);
        let mut clock = place.clock;
        let label = self.label(&work);
        if let Some(group) = self.groups.get_mut(&group) {
            clock.join(&group.host);
            clock.advance(place.timeline, place.tick);
            // What is part of another lies behind with that.
            if place.within.is_none() {
                group.note_tick(place.timeline, place.tick, place.context);
            }
            group.pending += 1;
        }
        let id = self.new_id();
        let mut deps = place.deps;
        deps.retain(|dep| self.ops.contains_key(dep));
        deps.sort_unstable();
        deps.dedup();
        self.ops.insert(
            id,
            Op {
                info: Arc::new(OpInfo {
                    timeline: place.timeline,
                    tick: place.tick,
                    label,
                    context: place.context,
                    device,
                    group,
                    stream: place.stream,
                    conditions: place.conditions,
                    within: place.within,
                }),
                clock,
                deps,
                work,
                grid,
                touched: Touched::default(),
                running: false,
                fails: false,
            },
        );
        Ok(id)
    }

    fn label(&self, work: &Work) -> Label {
        let number = |token: &Token| self.memory.get(*token).map_or(0, |found| found.number);
        match work {
            Work::Kernel(kernel) => Label::Kernel(Arc::clone(&kernel.name)),
            Work::Copy(copy) => Label::Copy(copy.bytes(), copy.direction(&self.memory)),
            Work::Fill(fill) => Label::Fill(fill.bytes()),
            Work::Allocate(token) => Label::Allocate(number(token)),
            Work::Free(token) => Label::Free(number(token)),
            Work::Nothing
            | Work::Host(_)
            | Work::Record { .. }
            | Work::Reset(_)
            | Work::Conditional(_) => Label::Other,
        }
    }

    /// Enqueues on a stream that is not capturing.
    pub(crate) fn enqueue(
        &mut self,
        stream: usize,
        work: Work,
        grid: Option<Box<Grid>>,
    ) -> Answer<u64> {
        let (mut deps, mut clock) = self.behind(stream)?;
        let state = self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?;
        state.tick += 1;
        deps.append(&mut state.tails.clone());
        clock.join(&state.clock);
        let place = Place {
            context: state.context,
            timeline: state.timeline,
            tick: state.tick,
            stream: state.name(),
            deps,
            clock,
            conditions: None,
            within: None,
        };
        let id = self.add_op(place, work, grid)?;
        self.set_tail(stream, id);
        Ok(id)
    }

    /// Makes an operation the one that a stream's next is behind.
    pub(crate) fn set_tail(&mut self, stream: usize, op: u64) {
        let clock = self.ops.get(&op).map(|op| op.clock.clone());
        if let Some(state) = self.streams.get_mut(&stream) {
            state.tails = vec![op];
            if let Some(clock) = clock {
                state.clock = clock;
            }
        }
    }

    /// What an operation on a stream is behind because of other streams: a blocking stream is behind
    /// the default stream, and that behind all blocking ones.
    pub(crate) fn behind(&self, stream: usize) -> Answer<(Vec<u64>, Clock)> {
        let state = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?;
        let context = self.get_context(state.context)?;
        let mut deps = Vec::new();
        let mut clock = Clock::default();
        match state.kind {
            StreamKind::NonBlocking => {}
            StreamKind::Blocking | StreamKind::PerThread => {
                if let Some(legacy) = self.streams.get(&context.legacy) {
                    deps.extend_from_slice(&legacy.tails);
                    clock.join(&legacy.clock);
                }
            }
            StreamKind::Legacy => {
                for other in self.streams.values() {
                    if other.context == state.context
                        && matches!(other.kind, StreamKind::Blocking | StreamKind::PerThread)
                    {
                        deps.extend_from_slice(&other.tails);
                        clock.join(&other.clock);
                    }
                }
                deps.extend_from_slice(&context.orphans);
                clock.join(&context.orphan_clock);
            }
        }
        Ok((deps, clock))
    }

    /// Puts what a stream is given next behind all that another has been given.
    pub(crate) fn put_behind(&mut self, stream: usize, other: usize) -> Answer {
        let (mut deps, mut clock) = self.behind(other)?;
        let other = self.streams.get(&other).ok_or(Code::INVALID_HANDLE)?;
        deps.extend_from_slice(&other.tails);
        clock.join(&other.clock);
        deps.retain(|dep| self.ops.contains_key(dep));
        let state = self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?;
        for dep in deps {
            if !state.tails.contains(&dep) {
                state.tails.push(dep);
            }
        }
        state.clock.join(&clock);
        Ok(())
    }

    /// Ends an operation that did all it had to.
    pub(crate) fn drop_op(&mut self, id: u64) -> Option<Op> {
        let op = self.ops.remove(&id)?;
        if let Some(group) = self.groups.get_mut(&op.info.group) {
            group.pending = group.pending.saturating_sub(1);
        }
        if let Some(context) = self.contexts.get_mut(&op.info.context)
            && !context.orphans.is_empty()
        {
            context.orphans.retain(|orphan| *orphan != id);
        }
        ENDED.notify_all();
        Some(op)
    }
}

impl Call {
    /// Enqueues on a stream, or adds to the graph it captures; `None` if it captures.
    pub(crate) fn submit(&mut self, stream: usize, work: Work) -> Answer<Option<u64>> {
        self.submit_grid(stream, work, None)
    }

    pub(crate) fn submit_grid(
        &mut self,
        stream: usize,
        work: Work,
        grid: Option<Box<Grid>>,
    ) -> Answer<Option<u64>> {
        if self.capture_work(stream, &work)? {
            return Ok(None);
        }
        let id = self.enqueue(stream, work, grid)?;
        self.after_submit(id);
        Ok(Some(id))
    }

    /// What the configured order does right after an operation was enqueued.
    pub(crate) fn after_submit(&mut self, id: u64) {
        super::drain::wake();
        let Some((device, group)) = self.ops.get(&id).map(|op| (op.info.device, op.info.group))
        else {
            return;
        };
        let order = self
            .devices
            .get(&device)
            .map_or(Order::Lazy, |device| device.config.order);
        match order {
            Order::Lazy => {}
            Order::Eager => self.run_eagerly(id),
            Order::Random(_) => self.run_some(group),
        }
        while self
            .groups
            .get(&group)
            .is_some_and(|group| group.pending > MOST_PENDING)
        {
            let oldest = self
                .ops
                .iter()
                .find(|(_, op)| op.info.group == group)
                .map(|(id, _)| *id);
            match oldest {
                Some(oldest) => self.wait(&[oldest]),
                None => break,
            }
        }
    }
}
