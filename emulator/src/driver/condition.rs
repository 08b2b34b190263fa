//! Conditional nodes of graphs: the conditions that decide them, and running their bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::border::{In, Out};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::graph::{ExecNode, NodeWork, Start};
use super::run::Step;
use super::work::{Place, StreamName, Work};
use super::{Call, Driver};
use crate::clock::Clock;
use crate::report::ReportKind;

/// A condition of a graph. Its handle is its place in the graph's list, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// What it is when a launch begins; what it was, if there is none.
    default: Option<u32>,
    /// The node that it decides.
    node: Option<usize>,
}

/// The conditions of an instantiated graph, which the kernels of its launches set.
#[derive(Debug)]
pub(crate) struct Values {
    defaults: Vec<Option<u32>>,
    values: Vec<AtomicU32>,
}

impl Values {
    pub(crate) fn of(conditions: &[Condition]) -> Self {
        Self {
            defaults: conditions.iter().map(|one| one.default).collect(),
            values: conditions
                .iter()
                .map(|one| AtomicU32::new(one.default.unwrap_or(0)))
                .collect(),
        }
    }

    fn value(&self, handle: u64) -> Option<&AtomicU32> {
        let index = usize::try_from(handle).ok()?.checked_sub(1)?;
        self.values.get(index)
    }

    /// Sets a condition; false if there is none.
    pub(crate) fn set(&self, handle: u64, to: u32) -> bool {
        let value = self.value(handle);
        if let Some(value) = value {
            value.store(to, Ordering::Relaxed);
        }
        value.is_some()
    }

    /// What the beginning of a launch does.
    pub(crate) fn reset(&self) {
        for (value, default) in self.values.iter().zip(&self.defaults) {
            if let Some(default) = default {
                value.store(*default, Ordering::Relaxed);
            }
        }
    }
}

/// A node that a condition decides.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    handle: u64,
    kind: Kind,
    /// The graphs that are its bodies, which callers may look at as long as the node is there.
    pub(crate) bodies: Arc<[usize]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    If,
    While,
    Switch,
}

/// Such a node of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    conditional: Conditional,
    values: Arc<Values>,
    bodies: Arc<[Vec<ExecNode>]>,
    name: StreamName,
    /// What the next round is behind; nothing yet before the first.
    clock: Option<Clock>,
    done: u64,
}

/// So many steps of a budget each round of a loop counts, beside those of its kernels.
const STEPS_OF_ROUND: u64 = 1000;

impl Rounds {
    pub(crate) fn new(
        conditional: Conditional,
        values: Arc<Values>,
        bodies: Vec<Vec<ExecNode>>,
        name: StreamName,
    ) -> Self {
        Self {
            conditional,
            values,
            bodies: bodies.into(),
            name,
            clock: None,
            done: 0,
        }
    }

    /// The body to run now.
    fn next(&self) -> Option<usize> {
        let value = self.values.value(self.conditional.handle);
        let value = value.map_or(0, |value| value.load(Ordering::Relaxed));
        let body = match self.conditional.kind {
            _ if self.done > 0 && self.conditional.kind != Kind::While => return None,
            Kind::While if value == 0 => return None,
            Kind::If | Kind::While => usize::from(value == 0),
            Kind::Switch => usize::try_from(value).ok()?,
        };
        (body < self.bodies.len()).then_some(body)
    }
}

/// `CUDA_CONDITIONAL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ConditionalParams {
    handle: u64,
    kind: u32,
    size: u32,
    bodies: In<usize>,
    context: usize,
}

impl Driver {
    /// The graph that a body is, in the end, a part of; itself if it is none.
    pub(crate) fn root(&self, graph: usize) -> usize {
        let mut root = graph;
        while let Some(outer) = self.graphs.get(&root).and_then(|graph| graph.body_of) {
            root = outer;
        }
        root
    }

    pub(crate) fn add_conditional(
        &mut self,
        node: Out<usize>,
        graph: usize,
        deps: Vec<usize>,
        params: Out<ConditionalParams>,
    ) -> Answer {
        node.check()?;
        let mut wanted = params.get()?;
        self.get_context(wanted.context)
            .map_err(|_| Code::INVALID_CONTEXT)?;
        let kind = match (wanted.kind, wanted.size) {
            (0, 1 | 2) => Kind::If,
            (1, 1) => Kind::While,
            (2, 1..) => Kind::Switch,
            _ => return Err(Code::INVALID_VALUE),
        };
        let root = self.root(graph);
        let index = usize::try_from(wanted.handle).unwrap_or(0).wrapping_sub(1);
        let condition = self.graph(root)?.conditions.get(index);
        if condition.is_none_or(|condition| condition.node.is_some()) {
            return Err(Code::INVALID_VALUE);
        }
        let bodies: Arc<[usize]> = (0..wanted.size).map(|_| self.make_graph()).collect();
        for body in &*bodies {
            if let Some(body) = self.graphs.get_mut(body) {
                body.body_of = Some(graph);
            }
        }
        let conditional = Conditional {
            handle: wanted.handle,
            kind,
            bodies: Arc::clone(&bodies),
        };
        let handle = match self.add_node(graph, NodeWork::Conditional(conditional), deps) {
            Ok(handle) => handle,
            Err(code) => {
                for body in &*bodies {
                    self.graphs.remove(body);
                }
                return Err(code);
            }
        };
        if let Some(root) = self.graphs.get_mut(&root) {
            root.conditions[index].node = Some(handle);
        }
        wanted.bodies = In::of(&bodies);
        params.set(wanted)?;
        node.set(handle)
    }

    /// Takes the bodies of a node away that is gone, and its hold on a condition.
    pub(crate) fn drop_bodies(&mut self, graph: usize, conditional: &Conditional) {
        for body in &*conditional.bodies {
            let _ = self.drop_graph(*body);
        }
        let root = self.root(graph);
        let index = usize::try_from(conditional.handle).unwrap_or(0);
        if let Some(condition) = self
            .graphs
            .get_mut(&root)
            .and_then(|root| root.conditions.get_mut(index.wrapping_sub(1)))
        {
            condition.node = None;
        }
    }

    /// Refuses what the driver instantiates no graph with: conditions that decide nothing, and nodes in
    /// bodies that only the host can run. `CUgraphInstantiateResult` with the code.
    pub(crate) fn check_conditions(&self, graph: usize) -> Result<(), (Code, u32)> {
        const FAILED: u32 = 1;
        const NODE_NOT_SUPPORTED: u32 = 3;
        const UNUSED: u32 = 5;
        let state = self.graph(graph).map_err(|code| (code, FAILED))?;
        if state.body_of.is_some() {
            return Err((Code::NOT_SUPPORTED, FAILED));
        }
        if state.conditions.is_empty() {
            return Ok(());
        }
        if self.execs.values().any(|exec| exec.graph == graph) {
            return Err((Code::NOT_SUPPORTED, FAILED));
        }
        if state.conditions.iter().any(|one| one.node.is_none()) {
            return Err((Code::INVALID_VALUE, UNUSED));
        }
        let bodies = self
            .graphs
            .iter()
            .filter(|(handle, body)| body.body_of.is_some() && self.root(**handle) == graph);
        for node in bodies.flat_map(|(_, body)| body.nodes.values()) {
            // Kernels, copies, fills, graphs, nodes that do nothing, and those with bodies.
            if !matches!(node.work.kind(), 0..=2 | 4 | 5 | 13) {
                return Err((Code::INVALID_VALUE, NODE_NOT_SUPPORTED));
            }
        }
        Ok(())
    }
}

impl Call {
    /// Looks at a condition: begins another round, or ends the operation.
    pub(crate) fn step_rounds(&mut self, id: u64) -> Step {
        let Some(op) = self.ops.get_mut(&id) else {
            return Step::Ended;
        };
        let Work::Conditional(rounds) = &mut op.work else {
            return Step::Ended;
        };
        let info = Arc::clone(&op.info);
        let clock = rounds.clock.clone().unwrap_or_else(|| {
            // The bodies are not behind the node, but part of it.
            let mut clock = op.clock.clone();
            clock.retreat(info.timeline, info.tick);
            clock
        });
        let budget = self
            .devices
            .get(&info.device)
            .map_or(0, |device| device.config.step_budget);
        let Some(op) = self.ops.get_mut(&id) else {
            return Step::Ended;
        };
        let Work::Conditional(rounds) = &mut op.work else {
            return Step::Ended;
        };
        let Some(body) = rounds.next() else {
            self.end(id, false);
            return Step::Ended;
        };
        rounds.done += 1;
        let done = rounds.done;
        let start = Start {
            context: info.context,
            name: rounds.name,
            deps: Vec::new(),
            clock,
            conditions: Some(Arc::clone(&rounds.values)),
            within: Some(Arc::clone(&info)),
            lines: Vec::new(),
            tick: 0,
        };
        let nodes = rounds.bodies[body].clone();
        if done.saturating_mul(STEPS_OF_ROUND) > budget {
            let code = Code(702);
            let message = format!(
                "a loop of a graph has gone {done} rounds, which is all that the step budget allows: its \
                 condition is never set to 0"
            );
            self.refuse(ReportKind::Fault, info.device, code, message);
            self.poison(info.context, code);
            self.end(id, true);
            return Step::Ended;
        }
        match self.place_body(&start, nodes) {
            Ok((deps, clock)) => {
                if let Some(op) = self.ops.get_mut(&id) {
                    op.deps = deps;
                    if let Work::Conditional(rounds) = &mut op.work {
                        rounds.clock = Some(clock);
                    }
                }
                Step::Progressed
            }
            Err(code) => {
                self.poison(info.context, code);
                self.end(id, true);
                Step::Ended
            }
        }
    }

    /// Enqueues the nodes of a body, and says what there is of them and what comes next is behind.
    fn place_body(&mut self, start: &Start, nodes: Vec<ExecNode>) -> Answer<(Vec<u64>, Clock)> {
        let ready = self.make_ready(start, nodes)?;
        let mut placed = Vec::with_capacity(ready.len());
        for node in ready {
            let node = self.place_node(start, node, &mut placed)?;
            placed.push(node);
        }
        let mut clock = start.clock.clone();
        for node in &placed {
            clock.join(&node.clock);
        }
        Ok((placed.iter().map(|node| node.op).collect(), clock))
    }

    /// Enqueues what sets the conditions of a graph to their defaults, as the first of its nodes.
    pub(crate) fn place_reset(&mut self, start: &mut Start) -> Answer {
        let Some(values) = start.conditions.clone() else {
            return Ok(());
        };
        let place = Place {
            context: start.context,
            timeline: start.lines.last().copied().ok_or(Code::ILLEGAL_STATE)?,
            tick: start.tick,
            stream: start.name,
            deps: std::mem::take(&mut start.deps),
            clock: start.clock.clone(),
            conditions: None,
            within: None,
        };
        let op = self.add_op(place, Work::Reset(values), None)?;
        start.deps = vec![op];
        if let Some(op) = self.ops.get(&op) {
            start.clock.clone_from(&op.clock);
        }
        Ok(())
    }
}

driver_api! {
    fn cuGraphConditionalHandleCreate(call, handle: Out<u64>, graph: usize, context: usize, default: u32, flags: u32) {
        call.graph(graph)?;
        handle.check()?;
        call.get_context(context).map_err(|_| Code::INVALID_CONTEXT)?;
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        let root = call.root(graph);
        let Some(root) = call.graphs.get_mut(&root) else {
            return Err(Code::INVALID_VALUE);
        };
        root.conditions.push(Condition {
            default: (flags == 1).then_some(default),
            node: None,
        });
        let number = root.conditions.len() as u64;
        handle.set(number)
    }
}
