//! Graphs: making them, instantiating, launching and updating what was instantiated.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::border::{In, Out};
use super::codes::{Answer, Code};
use super::condition::{Condition, Conditional, Rounds, Values};
use super::entry::driver_api;
use super::event::Record;
use super::node::Shown;
use super::work::{OpInfo, Place, StreamName, Work};
use super::{Call, Driver};
use crate::clock::{Clock, Timeline};
use crate::exec::Grid;
use crate::memory::{Stage, Token};

/// A graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// In the order they were added; a node's handle is larger than those before it.
    pub(crate) nodes: BTreeMap<usize, Node>,
    /// The user objects it keeps, with how many references of each.
    pub(crate) objects: HashMap<usize, u32>,
    /// Its conditions, and those of its bodies.
    pub(crate) conditions: Vec<Condition>,
    /// The graph of the node of which it is a body.
    pub(crate) body_of: Option<usize>,
    /// Whether it is the copy that a node has of another.
    pub(crate) is_of_node: bool,
}

/// A node of a graph.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) work: NodeWork,
    pub(crate) deps: Vec<usize>,
    /// Parameters handed out to a caller, who may look at them until the node changes.
    pub(crate) shown: Option<Box<Shown>>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum NodeWork {
    Work(Work),
    /// Waits for an event of outside.
    Wait(usize),
    Conditional(Conditional),
    /// Is behind all nodes of this graph, which are run in its place.
    Child(usize),
}

impl NodeWork {
    /// `CUgraphNodeType`.
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Self::Work(Work::Kernel(_)) => 0,
            Self::Work(Work::Copy(_)) => 1,
            Self::Work(Work::Fill(_)) => 2,
            Self::Work(Work::Host(_)) => 3,
            Self::Child(_) => 4,
            // What resets and runs bodies is made by a launch alone.
            Self::Work(Work::Nothing | Work::Reset(_)) => 5,
            Self::Wait(_) => 6,
            Self::Work(Work::Record { .. }) => 7,
            Self::Work(Work::Allocate(_)) => 10,
            Self::Work(Work::Free(_)) => 11,
            Self::Conditional(_) | Self::Work(Work::Conditional(_)) => 13,
        }
    }
}

impl NodeWork {
    /// The memory that it allocates.
    fn allocates(&self) -> Option<Token> {
        match self {
            Self::Work(Work::Allocate(token)) => Some(*token),
            _ => None,
        }
    }
}

/// A graph ready to be launched.
#[derive(Debug)]
pub(crate) struct Exec {
    /// The graph that it was made from.
    pub(crate) graph: usize,
    /// The conditions, if there are any.
    conditions: Option<Arc<Values>>,
    /// In an order in which each comes behind what it depends on.
    nodes: Vec<ExecNode>,
    flags: u64,
    /// The operation that ends the last launch.
    last: Option<u64>,
    last_clock: Clock,
    /// For each node, the timeline that begins with it, and one more for the reset of conditions: the
    /// same at every launch, each of which is behind the one before. Else clocks would grow with every
    /// launch.
    lines: Vec<Timeline>,
    launches: u64,
    objects: HashMap<usize, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct ExecNode {
    /// The node of the graph it was made from.
    origin: usize,
    work: NodeWork,
    /// Places in the list.
    deps: Vec<usize>,
    /// Whether it does anything.
    enabled: bool,
    bodies: Vec<Vec<ExecNode>>,
}

/// A node in a list, or in a body of one of those.
fn find(nodes: &mut [ExecNode], origin: usize) -> Option<&mut ExecNode> {
    nodes.iter_mut().find_map(|node| {
        if node.origin == origin {
            return Some(node);
        }
        node.bodies.iter_mut().find_map(|body| find(body, origin))
    })
}

/// Puts the nodes of a graph that is a node behind what that is behind, and gives what comes behind them
/// all, which that is.
fn append(sorted: &mut Vec<ExecNode>, nodes: Vec<ExecNode>, deps: Vec<usize>) -> Vec<usize> {
    let first = sorted.len();
    if nodes.is_empty() {
        return deps;
    }
    for mut node in nodes {
        if node.deps.is_empty() {
            node.deps.clone_from(&deps);
        } else {
            node.deps.iter_mut().for_each(|dep| *dep += first);
        }
        sorted.push(node);
    }
    (first..sorted.len()).collect()
}

const AUTO_FREE: u64 = 1;
const DEVICE_LAUNCH: u64 = 4;
const FLAGS: u64 = 15;

impl Driver {
    pub(crate) fn make_graph(&mut self) -> usize {
        let handle = self.new_handle();
        self.graphs.insert(handle, Graph::default());
        handle
    }

    /// Takes a graph away, with the memory that nothing else uses; gives back its user objects.
    pub(crate) fn drop_graph(&mut self, handle: usize) -> HashMap<usize, u32> {
        let Some(graph) = self.graphs.remove(&handle) else {
            return HashMap::new();
        };
        for node in graph.nodes.values() {
            if let NodeWork::Conditional(conditional) = &node.work {
                self.drop_bodies(handle, conditional);
            }
            self.drop_child(&node.work);
        }
        self.release_memory(graph.nodes.values().map(|node| &node.work));
        graph.objects
    }

    /// Frees what nodes that are gone allocated. What is in use belongs to whoever frees it.
    fn release_memory<'a>(&mut self, nodes: impl Iterator<Item = &'a NodeWork>) {
        for token in nodes.filter_map(NodeWork::allocates) {
            let mut others = self
                .graphs
                .values()
                .flat_map(|graph| graph.nodes.values().map(|node| &node.work))
                .chain(
                    self.execs
                        .values()
                        .flat_map(|exec| exec.nodes.iter().map(|node| &node.work)),
                );
            if others.any(|work| work.allocates() == Some(token)) {
                continue;
            }
            let pending = self.ops.values().any(
                |op| matches!(op.work, Work::Allocate(other) | Work::Free(other) if other == token),
            );
            let Some(allocation) = self.memory.get_mut(token) else {
                continue;
            };
            allocation.of_graph = false;
            if !pending && allocation.stage == Stage::Pending {
                self.free_now(token);
            }
        }
    }

    pub(crate) fn graph(&self, handle: usize) -> Answer<&Graph> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.graphs.get(&handle).ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn graph_of(&self, node: usize) -> Option<usize> {
        self.graphs
            .iter()
            .find(|(_, graph)| graph.nodes.contains_key(&node))
            .map(|(handle, _)| *handle)
    }

    pub(crate) fn add_node(
        &mut self,
        graph: usize,
        work: NodeWork,
        deps: Vec<usize>,
    ) -> Answer<usize> {
        let known = self.graph(graph)?;
        if deps.iter().any(|dep| !known.nodes.contains_key(dep)) {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.new_handle();
        if let Some(graph) = self.graphs.get_mut(&graph) {
            graph.nodes.insert(
                handle,
                Node {
                    work,
                    deps,
                    shown: None,
                },
            );
        }
        Ok(handle)
    }

    /// Takes a node away, with the edges to it and from it. One that allocates or frees stays.
    pub(crate) fn drop_node(&mut self, handle: usize, node: usize) -> Answer {
        let Some(graph) = self.graphs.get_mut(&handle) else {
            return Err(Code::INVALID_VALUE);
        };
        let known = graph.nodes.get(&node).ok_or(Code::INVALID_VALUE)?;
        if let NodeWork::Work(Work::Allocate(_) | Work::Free(_)) = known.work {
            return Err(Code::NOT_SUPPORTED);
        }
        let removed = graph.nodes.remove(&node);
        for other in graph.nodes.values_mut() {
            other.deps.retain(|dep| *dep != node);
        }
        if let Some(removed) = removed {
            if let NodeWork::Conditional(conditional) = &removed.work {
                self.drop_bodies(handle, conditional);
            }
            self.drop_child(&removed.work);
        }
        Ok(())
    }

    /// Nodes with all that they are behind.
    pub(crate) fn ancestors(&self, graph: usize, nodes: &[usize]) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut stack = nodes.to_vec();
        let Some(graph) = self.graphs.get(&graph) else {
            return found;
        };
        while let Some(node) = stack.pop() {
            if found.insert(node)
                && let Some(node) = graph.nodes.get(&node)
            {
                stack.extend_from_slice(&node.deps);
            }
        }
        found
    }

    /// The nodes of a graph in an order in which they can run; an error if there is a cycle.
    fn sorted(&self, graph: usize) -> Answer<Vec<ExecNode>> {
        let graph = self.graph(graph)?;
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut sorted: Vec<ExecNode> = Vec::new();
        let mut left: Vec<usize> = graph.nodes.keys().copied().collect();
        let mut wrong = None;
        while !left.is_empty() {
            let before = left.len();
            left.retain(|handle| {
                let node = &graph.nodes[handle];
                let deps: Option<Vec<usize>> = node
                    .deps
                    .iter()
                    .map(|dep| places.get(dep).copied())
                    .collect();
                let Some(mut deps) = deps else {
                    return true;
                };
                if let NodeWork::Child(child) = node.work {
                    match self.sorted(child) {
                        Ok(nodes) => deps = append(&mut sorted, nodes, deps),
                        Err(code) => wrong = Some(code),
                    }
                }
                places.insert(*handle, sorted.len());
                sorted.push(ExecNode {
                    origin: *handle,
                    work: node.work.clone(),
                    deps,
                    enabled: true,
                    bodies: Vec::new(),
                });
                false
            });
            if left.len() == before {
                return Err(Code::INVALID_VALUE);
            }
        }
        if let Some(code) = wrong {
            return Err(code);
        }
        for node in &mut sorted {
            if let NodeWork::Conditional(conditional) = &node.work {
                let bodies = conditional.bodies.iter();
                node.bodies = bodies
                    .map(|body| self.sorted(*body))
                    .collect::<Answer<_>>()?;
            }
        }
        Ok(sorted)
    }

    /// Refuses kernels that cannot be launched, also in bodies.
    fn check_nodes(&mut self, nodes: &mut [ExecNode]) -> Answer {
        for node in nodes {
            if let NodeWork::Work(Work::Kernel(kernel)) = &mut node.work {
                self.check_node(kernel, false)?;
            }
            for body in &mut node.bodies {
                self.check_nodes(body)?;
            }
        }
        Ok(())
    }

    fn instantiate(&mut self, graph: usize, flags: u64) -> Answer<usize> {
        self.check_conditions(graph).map_err(|(code, _)| code)?;
        let mut nodes = self.sorted(graph)?;
        self.check_nodes(&mut nodes)?;
        if flags & !FLAGS != 0 || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH {
            return Err(Code::INVALID_VALUE);
        }
        if flags & DEVICE_LAUNCH != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let known = self.graph(graph)?;
        let conditions = &known.conditions;
        let conditions = (!conditions.is_empty()).then(|| Arc::new(Values::of(conditions)));
        let objects = known.objects.clone();
        for (object, count) in &objects {
            self.retain_object(*object, *count);
        }
        let handle = self.new_handle();
        self.execs.insert(
            handle,
            Exec {
                graph,
                conditions,
                nodes,
                flags,
                last: None,
                last_clock: Clock::default(),
                lines: Vec::new(),
                launches: 0,
                objects,
            },
        );
        Ok(handle)
    }

    fn exec(&self, handle: usize) -> Answer<&Exec> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.execs.get(&handle).ok_or(Code::INVALID_VALUE)
    }

    /// A kernel, a copy or a fill of an instantiated graph: what can be turned off and on.
    fn switch_of(&mut self, exec: usize, node: usize) -> Answer<&mut bool> {
        self.exec(exec)?;
        self.execs
            .get_mut(&exec)
            .and_then(|exec| find(&mut exec.nodes, node))
            .filter(|node| node.work.kind() <= 2)
            .map(|node| &mut node.enabled)
            .ok_or(Code::INVALID_VALUE)
    }

    /// The work of an instantiated node, found by the node it was made from.
    pub(crate) fn exec_work(&mut self, exec: usize, node: usize) -> Answer<&mut NodeWork> {
        self.exec(exec)?;
        self.execs
            .get_mut(&exec)
            .and_then(|exec| find(&mut exec.nodes, node))
            .map(|node| &mut node.work)
            .ok_or(Code::INVALID_VALUE)
    }

    /// Takes over the work of a graph of the same shape; otherwise says what differs, and at which node.
    fn update(&mut self, exec: usize, graph: usize) -> Answer<Result<(), (u32, usize)>> {
        const TOPOLOGY: u32 = 2;
        const NODE_TYPE: u32 = 3;
        let new = self.sorted(graph)?;
        let old = self.exec(exec)?;
        if old.conditions.is_some() {
            return Err(Code::NOT_SUPPORTED);
        }
        if new.len() != old.nodes.len() {
            return Ok(Err((TOPOLOGY, 0)));
        }
        for (old, new) in old.nodes.iter().zip(&new) {
            if old.deps != new.deps {
                return Ok(Err((TOPOLOGY, new.origin)));
            }
            if old.work.kind() != new.work.kind() {
                return Ok(Err((NODE_TYPE, new.origin)));
            }
        }
        if let Some(exec) = self.execs.get_mut(&exec) {
            for (old, new) in exec.nodes.iter_mut().zip(new) {
                old.work = new.work;
            }
        }
        Ok(Ok(()))
    }
}

impl Call {
    /// Launches: each node becomes an operation; the stream goes on behind them all.
    fn launch_graph(&mut self, handle: usize, stream: usize) -> Answer {
        let key = self.stream(stream)?;
        let exec = self.exec(handle)?;
        let nodes = exec.nodes.clone();
        let again = exec.last.filter(|op| self.ops.contains_key(op));
        let last_clock = exec.last_clock.clone();
        let conditions = exec.conditions.clone();
        if let Some(id) = self.get_stream(key)?.capture {
            // As a graph with conditions cannot be another's.
            if conditions.is_some() {
                return Err(Code::NOT_SUPPORTED);
            }
            return self.capture_graph(id, key, nodes);
        }
        // Says whether the default stream may be used at all.
        self.capture_work(key, &Work::Nothing)?;
        let (mut deps, mut clock) = self.behind(key)?;
        let state = self.get_stream(key)?;
        let mut name = state.name();
        name.graph = true;
        deps.extend_from_slice(&state.tails);
        clock.join(&state.clock);
        // Launches of the same graph follow each other.
        deps.extend(again);
        clock.join(&last_clock);
        let mut start = Start {
            context: state.context,
            name,
            deps,
            clock,
            conditions,
            within: None,
            lines: Vec::new(),
            tick: 0,
        };

        let mut is_sink = vec![true; nodes.len()];
        for dep in nodes.iter().flat_map(|node| &node.deps) {
            is_sink[*dep] = false;
        }
        self.take_memory(handle, &nodes)?;
        let ready = self.make_ready(&start, nodes)?;
        // Given back when all is placed: of what fails in the middle, no later launch is behind.
        let exec = self.execs.get_mut(&handle).ok_or(Code::INVALID_HANDLE)?;
        exec.launches += 1;
        start.tick = exec.launches * (is_sink.len() as u64 + 1);
        start.lines = std::mem::take(&mut exec.lines);
        while start.lines.len() <= is_sink.len() {
            start.lines.push(self.new_id());
        }
        self.place_reset(&mut start)?;
        let mut placed = Vec::with_capacity(ready.len());
        for node in ready {
            let node = self.place_node(&start, node, &mut placed)?;
            placed.push(node);
        }
        self.close_graph(handle, key, &placed, &is_sink)?;
        if let Some(exec) = self.execs.get_mut(&handle) {
            exec.lines = start.lines;
        }
        Ok(())
    }

    /// What the graph allocates must have been freed since its last launch, unless it was instantiated
    /// to do so itself.
    fn take_memory(&mut self, handle: usize, nodes: &[ExecNode]) -> Answer {
        let frees_itself = self.exec(handle)?.flags & AUTO_FREE != 0;
        let in_use = |token: &Token| {
            self.memory
                .get(*token)
                .is_some_and(|allocation| !allocation.free_enqueued)
        };
        let mut allocated = nodes.iter().filter_map(|node| node.work.allocates());
        if !frees_itself && allocated.any(|token| in_use(&token)) {
            return Err(Code::INVALID_VALUE);
        }
        for node in nodes {
            let (allocation, freed) = match node.work {
                NodeWork::Work(Work::Allocate(token)) => (token, false),
                NodeWork::Work(Work::Free(token)) => (token, true),
                _ => continue,
            };
            if let Some(allocation) = self.memory.get_mut(allocation) {
                allocation.free_enqueued = freed;
            }
        }
        Ok(())
    }

    /// Makes the grids of all kernels, before anything is enqueued.
    pub(crate) fn make_ready(&mut self, start: &Start, nodes: Vec<ExecNode>) -> Answer<Vec<Ready>> {
        let mut ready: Vec<Ready> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let made = self.make_node_ready(start, node);
            match made {
                Ok(node) => ready.push(node),
                Err(code) => {
                    for node in ready {
                        if let Work::Kernel(kernel) = node.work
                            && let Some(token) = kernel.workspace
                        {
                            self.memory.free(token);
                        }
                    }
                    return Err(code);
                }
            }
        }
        Ok(ready)
    }

    fn make_node_ready(&mut self, start: &Start, node: ExecNode) -> Answer<Ready> {
        let mut ready = Ready {
            work: Work::Nothing,
            grid: None,
            fails: false,
            waits: None,
            deps: node.deps,
        };
        if !node.enabled {
            return Ok(ready);
        }
        match node.work {
            NodeWork::Wait(event) => ready.waits = Some(event),
            NodeWork::Work(Work::Kernel(mut kernel)) => {
                ready.fails = self.strike_launch(start.context, &kernel.name)?;
                ready.grid = Some(self.make_grid(&mut kernel)?);
                ready.work = Work::Kernel(kernel);
            }
            NodeWork::Work(Work::Record { event, .. }) => {
                let serial = self.new_id();
                ready.work = Work::Record { event, serial };
            }
            NodeWork::Child(_) => {}
            NodeWork::Work(work) => ready.work = work,
            NodeWork::Conditional(conditional) => {
                let values = start.conditions.clone().ok_or(Code::ILLEGAL_STATE)?;
                let rounds = Rounds::new(conditional, values, node.bodies, start.name);
                ready.work = Work::Conditional(Box::new(rounds));
            }
        }
        Ok(ready)
    }

    /// Enqueues a node. Its timeline goes on that of a node before it, if no other does already.
    pub(crate) fn place_node(
        &mut self,
        start: &Start,
        node: Ready,
        placed: &mut [Placed],
    ) -> Answer<Placed> {
        let mut deps = Vec::new();
        let mut clock = Clock::default();
        if node.deps.is_empty() {
            deps.clone_from(&start.deps);
            clock = start.clock.clone();
        }
        let mut line = None;
        for dep in &node.deps {
            let before = &mut placed[*dep];
            deps.push(before.op);
            clock.join(&before.clock);
            if !before.continued && line.is_none() {
                before.continued = true;
                line = Some((before.timeline, before.tick + 1));
            }
        }
        if let Some(record) = node
            .waits
            .and_then(|event| self.event(event).ok())
            .and_then(|event| event.record.as_ref())
        {
            deps.extend(record.op);
            clock.join(&record.clock);
        }
        let (timeline, tick) = match (line, start.lines.get(placed.len())) {
            (Some(line), _) => line,
            (None, Some(line)) => (*line, start.tick),
            (None, None) => (self.new_id(), 1),
        };
        let record = match &node.work {
            Work::Record { event, serial } => Some((*event, *serial)),
            _ => None,
        };
        let place = Place {
            context: start.context,
            timeline,
            tick,
            stream: start.name,
            deps,
            clock,
            conditions: start.conditions.clone(),
            within: start.within.clone(),
        };
        let op = self.add_op(place, node.work, node.grid)?;
        let mut clock = Clock::default();
        if let Some(state) = self.ops.get_mut(&op) {
            state.fails = node.fails;
            clock = state.clock.clone();
        }
        if let Some((event, serial)) = record
            && let Some(event) = self.events.get_mut(&event)
        {
            event.record = Some(Record {
                serial,
                op: Some(op),
                clock: clock.clone(),
                time: None,
                captured: None,
            });
        }
        Ok(Placed {
            op,
            clock,
            timeline,
            tick,
            continued: false,
        })
    }

    /// Puts the stream behind all nodes that nothing in the graph is behind.
    fn close_graph(
        &mut self,
        handle: usize,
        key: usize,
        placed: &[Placed],
        is_sink: &[bool],
    ) -> Answer {
        if let Some(state) = self.streams.get_mut(&key) {
            for (node, _) in placed.iter().zip(is_sink).filter(|(_, sink)| **sink) {
                state.tails.push(node.op);
                state.clock.join(&node.clock);
            }
        }
        let end = self.enqueue(key, Work::Nothing, None)?;
        let clock = self
            .ops
            .get(&end)
            .map(|op| op.clock.clone())
            .unwrap_or_default();
        if let Some(exec) = self.execs.get_mut(&handle) {
            exec.last = Some(end);
            exec.last_clock = clock;
        }
        self.after_submit(end);
        Ok(())
    }

    /// A launch in a stream that captures adds the graph's nodes to the one captured.
    fn capture_graph(&mut self, id: u64, stream: usize, nodes: Vec<ExecNode>) -> Answer {
        let graph = self.captures.get(&id).ok_or(Code::ILLEGAL_STATE)?.graph;
        let roots = self.frontier(id, stream);
        let mut added: Vec<usize> = Vec::new();
        let mut sinks = HashSet::new();
        for node in nodes {
            let deps = if node.deps.is_empty() {
                roots.clone()
            } else {
                node.deps.iter().map(|dep| added[*dep]).collect()
            };
            for dep in &deps {
                sinks.remove(dep);
            }
            let work = match node.work {
                // Its nodes are captured by themselves.
                NodeWork::Child(_) => NodeWork::Work(Work::Nothing),
                work if node.enabled => work,
                _ => NodeWork::Work(Work::Nothing),
            };
            let handle = self.add_node(graph, work, deps)?;
            sinks.insert(handle);
            added.push(handle);
        }
        if !added.is_empty() {
            let mut sinks: Vec<usize> = sinks.into_iter().collect();
            sinks.sort_unstable();
            self.set_frontier(id, stream, sinks);
        }
        Ok(())
    }
}

/// What the first nodes of a launch are behind.
pub(crate) struct Start {
    pub(crate) context: usize,
    pub(crate) name: StreamName,
    pub(crate) deps: Vec<u64>,
    pub(crate) clock: Clock,
    /// The conditions of the graph.
    pub(crate) conditions: Option<Arc<Values>>,
    /// The node of which they are the body.
    pub(crate) within: Option<Arc<OpInfo>>,
    /// Timelines that begin with the nodes, in their order, and the last with the reset, and at which
    /// tick; none where each launch has its own.
    pub(crate) lines: Vec<Timeline>,
    pub(crate) tick: u64,
}

/// A node about to become an operation.
pub(crate) struct Ready {
    work: Work,
    grid: Option<Box<Grid>>,
    fails: bool,
    /// The event of outside that it waits for.
    waits: Option<usize>,
    deps: Vec<usize>,
}

/// A node that became an operation.
pub(crate) struct Placed {
    pub(crate) op: u64,
    pub(crate) clock: Clock,
    timeline: u64,
    tick: u64,
    /// Another node goes on with its timeline.
    continued: bool,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct InstantiateParams {
    flags: u64,
    upload_stream: usize,
    error_node: usize,
    result: u32,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UpdateResult {
    result: u32,
    error_node: usize,
    error_from_node: usize,
}

driver_api! {
    fn cuGraphCreate(call, graph: Out<usize>, flags: u32) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        graph.check()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = call.make_graph();
        graph.set(handle)
    }

    fn cuGraphDestroy(call, graph: usize) {
        let known = call.graph(graph)?;
        if known.body_of.is_some() || known.is_of_node {
            return Err(Code::INVALID_VALUE);
        }
        let objects = call.drop_graph(graph);
        call.release_objects(objects);
        Ok(())
    }

    fn cuGraphInstantiateWithFlags(call, exec: Out<usize>, graph: usize, flags: u64) {
        exec.check()?;
        let handle = call.instantiate(graph, flags)?;
        exec.set(handle)
    }

    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz(
        call, exec: Out<usize>, graph: usize, params: Out<InstantiateParams>
    ) {
        exec.check()?;
        let mut wanted = params.get()?;
        wanted.error_node = 0;
        let conditions = call.check_conditions(graph);
        let outcome = call.instantiate(graph, wanted.flags);
        wanted.result = match outcome {
            Ok(_) => 0,
            Err(_) if let Err((_, result)) = conditions => result,
            Err(Code::NOT_SUPPORTED) => 3,
            Err(_) => 2,
        };
        params.set(wanted)?;
        exec.set(outcome?)
    }

    fn cuGraphNodeSetEnabled(call, exec: usize, node: usize, enabled: u32) {
        *call.switch_of(exec, node)? = enabled != 0;
        Ok(())
    }

    fn cuGraphNodeGetEnabled(call, exec: usize, node: usize, enabled: Out<u32>) {
        let value = u32::from(*call.switch_of(exec, node)?);
        enabled.set(value)
    }

    fn cuGraphExecGetFlags(call, exec: usize, flags: Out<u64>) {
        let value = call.exec(exec)?.flags;
        flags.set(value)
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz(call, exec: usize, stream: usize) {
        call.launch_graph(exec, stream)
    }

    fn cuGraphUpload | cuGraphUpload_ptsz(call, exec: usize, stream: usize) {
        let key = call.stream(stream)?;
        call.exec(exec)?;
        call.forbid_on_capturing(key)
    }

    fn cuGraphExecDestroy(call, exec: usize) {
        let (last, owns) = {
            let exec = call.exec(exec)?;
            (exec.last, !exec.objects.is_empty())
        };
        if owns && let Some(last) = last {
            // What the graph keeps alive is in use until its launch has ended.
            call.wait(&[last]);
        }
        if let Some(exec) = call.execs.remove(&exec) {
            call.release_memory(exec.nodes.iter().map(|node| &node.work));
            call.release_objects(exec.objects);
        }
        Ok(())
    }

    fn cuGraphExecUpdate_v2(call, exec: usize, graph: usize, result: Out<UpdateResult>) {
        result.check()?;
        let (answer, node) = match call.update(exec, graph)? {
            Ok(()) => (0, 0),
            Err(difference) => difference,
        };
        result.set(UpdateResult {
            result: answer,
            error_node: node,
            error_from_node: 0,
        })?;
        if answer == 0 { Ok(()) } else { Err(Code::GRAPH_EXEC_UPDATE_FAILURE) }
    }

    fn cuGraphGetNodes(call, graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let known: Vec<usize> = call.graph(graph)?.nodes.keys().copied().collect();
        write_nodes(&known, nodes, count)
    }

    fn cuGraphGetRootNodes(call, graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let roots: Vec<usize> = call
            .graph(graph)?
            .nodes
            .iter()
            .filter(|(_, node)| node.deps.is_empty())
            .map(|(handle, _)| *handle)
            .collect();
        write_nodes(&roots, nodes, count)
    }

    fn cuGraphAddDependencies(call, graph: usize, from: In<usize>, to: In<usize>, count: usize) {
        let (from, to) = (from.array(count)?, to.array(count)?);
        call.add_dependencies(graph, &from, &to)
    }

    fn cuGraphAddDependencies_v2(call, graph: usize, from: In<usize>, to: In<usize>, edges: In<u64>, count: usize) {
        let (from, to) = (from.array(count)?, to.array(count)?);
        if !edges.is_null() && edges.array(count)?.iter().any(|edge| *edge != 0) {
            return Err(Code::NOT_SUPPORTED);
        }
        call.add_dependencies(graph, &from, &to)
    }
}

/// Writes a list, or only its length where there is no room for it.
pub(crate) fn write_nodes(known: &[usize], nodes: Out<usize>, count: Out<usize>) -> Answer {
    let room = count.get()?;
    if !nodes.is_null() {
        for index in 0..room {
            nodes.set_at(index, known.get(index).copied().unwrap_or(0))?;
        }
        return count.set(known.len().min(room));
    }
    count.set(known.len())
}

impl Driver {
    fn add_dependencies(&mut self, graph: usize, from: &[usize], to: &[usize]) -> Answer {
        let known = self.graph(graph)?;
        for (from, to) in from.iter().zip(to) {
            let both = known.nodes.contains_key(from) && known.nodes.contains_key(to);
            if !both || from == to || known.nodes[to].deps.contains(from) {
                return Err(Code::INVALID_VALUE);
            }
        }
        let Some(graph) = self.graphs.get_mut(&graph) else {
            return Err(Code::INVALID_VALUE);
        };
        for (from, to) in from.iter().zip(to) {
            if let Some(node) = graph.nodes.get_mut(to) {
                node.deps.push(*from);
            }
        }
        Ok(())
    }
}
