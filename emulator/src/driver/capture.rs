//! Capturing streams into graphs: what is added instead of run, and what makes a capture invalid.

use std::cell::Cell;
use std::collections::HashMap;
use std::thread::{self, ThreadId};

use super::border::{In, Out};
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::event::Record;
use super::graph::NodeWork;
use super::stream::StreamKind;
use super::work::Work;
use super::{Call, Driver};

/// A capture that is going on.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) graph: usize,
    /// Whether the graph was there before.
    into_graph: bool,
    mode: u32,
    /// The stream it began on.
    origin: usize,
    thread: ThreadId,
    group: u64,
    invalid: bool,
    /// The nodes that each of its streams is behind.
    frontier: HashMap<usize, Vec<usize>>,
    /// The nodes last handed out to a caller, who may look at them until the next call.
    shown: Vec<usize>,
}

/// What recording an event on a stream means.
pub(crate) enum CapturedRecord {
    /// The stream captures nothing.
    None,
    /// A node of the graph records it at each launch.
    Node,
    /// The event stands for what the capture has come to.
    Nodes(u64, Vec<usize>),
}

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

const NONE: u32 = 0;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

thread_local! {
    /// How strict this thread is about calls that captures forbid.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

impl Driver {
    fn capture_of(&self, stream: usize) -> Answer<Option<(u64, &Capture)>> {
        let Some(id) = self.get_stream(stream)?.capture else {
            return Ok(None);
        };
        Ok(self.captures.get(&id).map(|capture| (id, capture)))
    }

    pub(crate) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.invalid = true;
        }
    }

    /// Adds work to the graph that a stream captures; false if it captures none.
    pub(crate) fn capture_work(&mut self, stream: usize, work: &Work) -> Answer<bool> {
        let Some((id, capture)) = self.capture_of(stream)? else {
            self.check_legacy(stream)?;
            return Ok(false);
        };
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        self.add_captured(id, stream, NodeWork::Work(work.clone()))?;
        Ok(true)
    }

    /// Adds a node behind what a stream captured so far, and puts the stream behind it.
    pub(crate) fn add_captured(&mut self, id: u64, stream: usize, work: NodeWork) -> Answer<usize> {
        let capture = self.captures.get(&id).ok_or(Code::ILLEGAL_STATE)?;
        let deps = capture.frontier.get(&stream).cloned().unwrap_or_default();
        let graph = capture.graph;
        let node = self.add_node(graph, work, deps)?;
        self.set_frontier(id, stream, vec![node]);
        Ok(node)
    }

    pub(crate) fn frontier(&self, id: u64, stream: usize) -> Vec<usize> {
        self.captures
            .get(&id)
            .and_then(|capture| capture.frontier.get(&stream).cloned())
            .unwrap_or_default()
    }

    pub(crate) fn set_frontier(&mut self, id: u64, stream: usize, nodes: Vec<usize>) {
        if let Some(capture) = self.captures.get_mut(&id) {
            capture.frontier.insert(stream, nodes);
        }
    }

    /// The default stream cannot work while a blocking stream of its context captures: it would have
    /// to wait for it.
    fn check_legacy(&mut self, stream: usize) -> Answer {
        let state = self.get_stream(stream)?;
        if state.kind != StreamKind::Legacy {
            return Ok(());
        }
        let context = state.context;
        let capturing: Vec<u64> = self
            .streams
            .values()
            .filter(|other| other.context == context && other.kind != StreamKind::NonBlocking)
            .filter_map(|other| other.capture)
            .collect();
        if capturing.is_empty() {
            return Ok(());
        }
        for capture in capturing {
            self.invalidate(capture);
        }
        Err(Code::STREAM_CAPTURE_IMPLICIT)
    }

    /// Records an event in a capture.
    pub(crate) fn capture_record(
        &mut self,
        stream: usize,
        event: usize,
        external: bool,
    ) -> Answer<CapturedRecord> {
        let Some((id, capture)) = self.capture_of(stream)? else {
            return Ok(CapturedRecord::None);
        };
        if capture.invalid {
            return Err(Code::STREAM_CAPTURE_INVALIDATED);
        }
        if external {
            let work = Work::Record { event, serial: 0 };
            self.add_captured(id, stream, NodeWork::Work(work))?;
            return Ok(CapturedRecord::Node);
        }
        Ok(CapturedRecord::Nodes(id, self.frontier(id, stream)))
    }

    /// Waits for an event in a capture, or joins the capture that the event is of; false if neither.
    pub(crate) fn capture_wait(
        &mut self,
        stream: usize,
        event: usize,
        record: Option<&Record>,
        external: bool,
    ) -> Answer<bool> {
        let captured = record.and_then(|record| record.captured.clone());
        let current = self
            .capture_of(stream)?
            .map(|(id, capture)| (id, capture.invalid));
        match (current, captured) {
            (Some((_, true)), _) => Err(Code::STREAM_CAPTURE_INVALIDATED),
            (Some((id, false)), _) if external => {
                self.add_captured(id, stream, NodeWork::Wait(event))?;
                Ok(true)
            }
            (Some((id, false)), Some((other, nodes))) if id == other => {
                let mut frontier = self.frontier(id, stream);
                for node in nodes {
                    if !frontier.contains(&node) {
                        frontier.push(node);
                    }
                }
                self.set_frontier(id, stream, frontier);
                Ok(true)
            }
            (Some((id, false)), Some((other, _))) => {
                self.invalidate(id);
                self.invalidate(other);
                Err(Code::STREAM_CAPTURE_MERGE)
            }
            // An event that nobody recorded is no work to wait for (H200).
            (Some((_, false)), None) if record.is_none() => Ok(true),
            (Some((id, false)), None) => {
                self.invalidate(id);
                Err(Code::STREAM_CAPTURE_ISOLATION)
            }
            (None, Some((other, nodes))) => {
                let Some(capture) = self.captures.get(&other) else {
                    // The capture has ended, and what the event stood for is gone.
                    return Err(Code::CAPTURED_EVENT);
                };
                if capture.invalid {
                    return Err(Code::STREAM_CAPTURE_INVALIDATED);
                }
                if self.get_stream(stream)?.kind == StreamKind::Legacy {
                    self.invalidate(other);
                    return Err(Code::STREAM_CAPTURE_IMPLICIT);
                }
                if let Some(state) = self.streams.get_mut(&stream) {
                    state.capture = Some(other);
                }
                self.set_frontier(other, stream, nodes);
                Ok(true)
            }
            (None, None) => Ok(false),
        }
    }

    /// A stream that is destroyed takes its capture along.
    pub(crate) fn leave_capture(&mut self, stream: usize) {
        if let Ok(Some((id, _))) = self.capture_of(stream) {
            self.invalidate(id);
        }
    }

    /// Refuses what a stream must not do while it captures.
    pub(crate) fn forbid_on_capturing(&mut self, stream: usize) -> Answer {
        self.check_legacy(stream)?;
        match self.capture_of(stream)?.map(|(id, _)| id) {
            Some(id) => {
                self.invalidate(id);
                Err(Code::STREAM_CAPTURE_UNSUPPORTED)
            }
            None => Ok(()),
        }
    }

    /// Refuses to wait for a context of which a stream is captured, whatever the mode of the capture and of the
    /// thread: so does an H200.
    pub(crate) fn forbid_on_captured_context(&mut self, context: usize) -> Answer {
        let group = self.get_context(context)?.group;
        let of_context = |(_, capture): &(&u64, &Capture)| capture.group == group;
        let captures: Vec<u64> = self
            .captures
            .iter()
            .filter(of_context)
            .map(|(id, _)| *id)
            .collect();
        for id in &captures {
            self.invalidate(*id);
        }
        if captures.is_empty() {
            Ok(())
        } else {
            Err(Code::STREAM_CAPTURE_UNSUPPORTED)
        }
    }

    /// Refuses a call that may wait for work of other streams while a capture forbids such calls.
    pub(crate) fn forbid_while_capturing(&mut self, context: usize) -> Answer {
        if self.captures.is_empty() {
            return Ok(());
        }
        let group = self.get_context(context)?.group;
        let me = thread::current().id();
        let mode = MODE.get();
        let forbidding: Vec<u64> = self
            .captures
            .iter()
            .filter(|(_, capture)| {
                let mine = capture.thread == me && capture.mode != RELAXED;
                let anyones = capture.mode == GLOBAL;
                capture.group == group
                    && match mode {
                        GLOBAL => mine || anyones,
                        THREAD_LOCAL => mine,
                        _ => false,
                    }
            })
            .map(|(id, _)| *id)
            .collect();
        if forbidding.is_empty() {
            return Ok(());
        }
        for id in forbidding {
            self.invalidate(id);
        }
        Err(Code::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Begins a capture into a new graph, or behind these nodes of one that is there.
    fn begin_capture(
        &mut self,
        stream: usize,
        mode: u32,
        into: Option<(usize, Vec<usize>)>,
    ) -> Answer {
        if mode > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        let state = self.get_stream(stream)?;
        if state.kind == StreamKind::Legacy {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if state.capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let group = state.group;
        let into_graph = into.is_some();
        let (graph, behind) = into.unwrap_or_else(|| (self.make_graph(), Vec::new()));
        let id = self.new_id();
        self.captures.insert(
            id,
            Capture {
                graph,
                into_graph,
                mode,
                origin: stream,
                thread: thread::current().id(),
                group,
                invalid: false,
                frontier: HashMap::from([(stream, behind)]),
                shown: Vec::new(),
            },
        );
        if let Some(state) = self.streams.get_mut(&stream) {
            state.capture = Some(id);
        }
        Ok(())
    }

    fn capture_status(&self, stream: usize) -> Answer<(u32, u64)> {
        Ok(match self.capture_of(stream)? {
            None => (NONE, 0),
            Some((id, capture)) if capture.invalid => (INVALIDATED, id),
            Some((id, _)) => (ACTIVE, id),
        })
    }

    fn update_dependencies(&mut self, stream: usize, nodes: Vec<usize>, flags: u32) -> Answer {
        const ADD: u32 = 0;
        const SET: u32 = 1;
        let Some((id, capture)) = self.capture_of(stream)? else {
            return Err(Code::ILLEGAL_STATE);
        };
        let graph = capture.graph;
        if nodes.iter().any(|node| self.graph_of(*node) != Some(graph)) {
            return Err(Code::INVALID_VALUE);
        }
        let mut frontier = match flags {
            ADD => self.frontier(id, stream),
            SET => Vec::new(),
            _ => return Err(Code::INVALID_VALUE),
        };
        for node in nodes {
            if !frontier.contains(&node) {
                frontier.push(node);
            }
        }
        self.set_frontier(id, stream, frontier);
        Ok(())
    }

    /// The nodes that a stream is behind, kept where the caller may look at them.
    fn show_frontier(&mut self, stream: usize, id: u64) -> (In<usize>, usize, usize) {
        let frontier = self.frontier(id, stream);
        match self.captures.get_mut(&id) {
            Some(capture) => {
                capture.shown = frontier;
                (In::of(&capture.shown), capture.shown.len(), capture.graph)
            }
            None => (In::NULL, 0, 0),
        }
    }
}

impl Call {
    /// Ends a capture: its graph, or the error that ended it.
    fn end_capture(&mut self, stream: usize) -> Answer<Answer<usize>> {
        let Some((id, capture)) = self.capture_of(stream)? else {
            return Err(Code::ILLEGAL_STATE);
        };
        if capture.origin != stream {
            self.invalidate(id);
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != RELAXED && capture.thread != thread::current().id() {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        let joined = self.ancestors(capture.graph, &self.frontier(id, stream));
        let unjoined = capture.frontier.iter().any(|(other, nodes)| {
            *other != stream && nodes.iter().any(|node| !joined.contains(node))
        });
        let (invalid, graph) = (capture.invalid, capture.graph);
        let into_graph = capture.into_graph;
        self.captures.remove(&id);
        for state in self.streams.values_mut() {
            if state.capture == Some(id) {
                state.capture = None;
            }
        }
        if invalid || unjoined {
            if !into_graph {
                let objects = self.drop_graph(graph);
                self.release_objects(objects);
            }
            return Ok(Err(if invalid {
                Code::STREAM_CAPTURE_INVALIDATED
            } else {
                Code::STREAM_CAPTURE_UNJOINED
            }));
        }
        Ok(Ok(graph))
    }
}

driver_api! {
    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz(call, stream: usize, mode: u32) {
        let key = call.stream(stream)?;
        call.begin_capture(key, mode, None)
    }

    fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz(
        call, stream: usize, graph: usize, nodes: In<usize>, edges: In<u64>, count: usize, mode: u32
    ) {
        let key = call.stream(stream)?;
        let known = &call.graph(graph)?.nodes;
        let nodes = nodes.array(count)?;
        if nodes.iter().any(|node| !known.contains_key(node)) {
            return Err(Code::INVALID_VALUE);
        }
        if !edges.is_null() && edges.array(count)?.iter().any(|edge| *edge != 0) {
            return Err(Code::NOT_SUPPORTED);
        }
        if call.captures.values().any(|capture| capture.graph == graph) {
            return Err(Code::INVALID_VALUE);
        }
        call.begin_capture(key, mode, Some((graph, nodes)))
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz(call, stream: usize, graph: Out<usize>) {
        graph.check()?;
        let key = call.stream(stream)?;
        graph.set(0)?;
        let handle = call.end_capture(key)??;
        graph.set(handle)
    }

    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz(call, stream: usize, status: Out<u32>) {
        let key = call.stream(stream)?;
        call.check_legacy(key)?;
        let (answer, _) = call.capture_status(key)?;
        status.set(answer)
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz(
        call, stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<In<usize>>, count: Out<usize>
    ) {
        let key = call.stream(stream)?;
        let (answer, capture) = call.capture_status(key)?;
        status.set(answer)?;
        if answer == ACTIVE {
            let (list, length, handle) = call.show_frontier(key, capture);
            id.set_if_wanted(capture);
            graph.set_if_wanted(handle);
            nodes.set_if_wanted(list);
            count.set_if_wanted(length);
        }
        Ok(())
    }

    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz(
        call, stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<In<usize>>,
        edges: Out<In<u64>>, count: Out<usize>
    ) {
        let key = call.stream(stream)?;
        let (answer, capture) = call.capture_status(key)?;
        status.set(answer)?;
        if answer == ACTIVE {
            let (list, length, handle) = call.show_frontier(key, capture);
            id.set_if_wanted(capture);
            graph.set_if_wanted(handle);
            nodes.set_if_wanted(list);
            // No edge has data.
            edges.set_if_wanted(In::NULL);
            count.set_if_wanted(length);
        }
        Ok(())
    }

    fn cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz(
        call, stream: usize, nodes: In<usize>, count: usize, flags: u32
    ) {
        let key = call.stream(stream)?;
        let nodes = nodes.array(count)?;
        call.update_dependencies(key, nodes, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz(
        call, stream: usize, nodes: In<usize>, _edges: In<u64>, count: usize, flags: u32
    ) {
        let key = call.stream(stream)?;
        let nodes = nodes.array(count)?;
        call.update_dependencies(key, nodes, flags)
    }

    fn cuThreadExchangeStreamCaptureMode(_call, mode: Out<u32>) {
        let wanted = mode.get()?;
        if wanted > RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        mode.set(MODE.replace(wanted))
    }
}
