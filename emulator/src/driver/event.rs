//! Events: recording, waiting, asking, and the time between two.

use std::time::Instant;

use super::border::Out;
use super::capture::CapturedRecord;
use super::codes::{Answer, Code};
use super::entry::driver_api;
use super::work::Work;
use super::{Call, Driver};
use crate::clock::Clock;

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    pub(crate) flags: u32,
    pub(crate) record: Option<Record>,
}

/// The last time an event was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) serial: u64,
    /// The operation whose end it marks; none in a capture.
    pub(crate) op: Option<u64>,
    /// What whoever waits is ordered behind.
    pub(crate) clock: Clock,
    /// When it was reached.
    pub(crate) time: Option<Instant>,
    /// The capture it was recorded in, with the nodes that it marks.
    pub(crate) captured: Option<(u64, Vec<usize>)>,
}

const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
const FLAGS: u32 = 7;
const EXTERNAL: u32 = 1;

impl Driver {
    pub(crate) fn event(&self, handle: usize) -> Answer<&Event> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        self.events.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    /// The operation that an event waits for, if it has not ended.
    fn pending_record(&self, event: &Event) -> Option<u64> {
        let op = event.record.as_ref()?.op?;
        self.ops.contains_key(&op).then_some(op)
    }

    /// An event that the host may ask about: not one of a capture.
    fn outside_event(&mut self, handle: usize) -> Answer<Option<Record>> {
        let event = self.event(handle)?;
        let (context, record) = (event.context, event.record.clone());
        let group = self.get_context(context)?.group;
        self.note_call(group);
        if let Some((capture, _)) = record.as_ref().and_then(|record| record.captured.as_ref()) {
            self.invalidate(*capture);
            return Err(Code::CAPTURED_EVENT);
        }
        match self.get_context(context)?.error {
            Some(error) => Err(error),
            None => Ok(record),
        }
    }

    /// The host knows that an event was reached.
    fn host_joins_record(&mut self, handle: usize, record: Option<&Record>) {
        let Ok(event) = self.event(handle) else {
            return;
        };
        let context = event.context;
        let Ok(group) = self.get_context(context).map(|context| context.group) else {
            return;
        };
        if let Some(record) = record {
            self.host_joins(group, &record.clock);
        }
        self.flush_printed(context);
    }

    fn elapsed(&mut self, start: usize, end: usize) -> Answer<f32> {
        let first = self.outside_event(start)?;
        let second = self.outside_event(end)?;
        let (first_event, second_event) = (self.event(start)?, self.event(end)?);
        if (first_event.flags | second_event.flags) & DISABLE_TIMING != 0
            || first_event.context != second_event.context
        {
            return Err(Code::INVALID_HANDLE);
        }
        let (Some(first), Some(second)) = (first, second) else {
            return Err(Code::INVALID_HANDLE);
        };
        let (Some(from), Some(to)) = (first.time, second.time) else {
            return Err(Code::NOT_READY);
        };
        let seconds = match to.checked_duration_since(from) {
            Some(after) => after.as_secs_f32(),
            None => -from.duration_since(to).as_secs_f32(),
        };
        Ok(seconds * 1e3)
    }
}

impl Call {
    /// An event that a launch records is of the stream's context, and has no times.
    pub(crate) fn check_event_of_launch(&mut self, handle: usize, stream: usize) -> Answer {
        let key = self.stream(stream)?;
        let event = self.event(handle)?;
        if event.context != self.get_stream(key)?.context {
            return Err(Code::INVALID_HANDLE);
        }
        if event.flags & (DISABLE_TIMING | INTERPROCESS) != DISABLE_TIMING {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, handle: usize, stream: usize, external: bool) -> Answer {
        let event_context = self.event(handle)?.context;
        let key = self.stream(stream)?;
        let context = self.get_stream(key)?.context;
        if context != event_context {
            return Err(Code::INVALID_HANDLE);
        }
        let serial = self.new_id();
        let work = Work::Record {
            event: handle,
            serial,
        };
        let record = match self.capture_record(key, handle, external)? {
            CapturedRecord::Node => return Ok(()),
            CapturedRecord::Nodes(capture, nodes) => Record {
                serial,
                op: None,
                clock: Clock::default(),
                time: None,
                captured: Some((capture, nodes)),
            },
            CapturedRecord::None => {
                let Some(op) = self.submit_before_run(key, work)? else {
                    return Ok(());
                };
                let clock = self
                    .ops
                    .get(&op)
                    .map(|op| op.clock.clone())
                    .unwrap_or_default();
                Record {
                    serial,
                    op: Some(op),
                    clock,
                    time: None,
                    captured: None,
                }
            }
        };
        let op = record.op;
        if let Some(event) = self.events.get_mut(&handle) {
            event.record = Some(record);
        }
        if let Some(op) = op {
            self.after_submit(op);
        }
        Ok(())
    }

    /// Enqueues without running, so that the event knows its operation first.
    fn submit_before_run(&mut self, stream: usize, work: Work) -> Answer<Option<u64>> {
        if self.capture_work(stream, &work)? {
            return Ok(None);
        }
        self.enqueue(stream, work, None).map(Some)
    }

    /// Puts what a stream does next behind an event.
    pub(crate) fn wait_event(&mut self, stream: usize, handle: usize, external: bool) -> Answer {
        let record = self.event(handle)?.record.clone();
        if self.capture_wait(stream, handle, record.as_ref(), external)? {
            return Ok(());
        }
        let Some(record) = record else {
            return Ok(());
        };
        let pending = record.op.filter(|op| self.ops.contains_key(op));
        let ended: Vec<u64> = self
            .get_stream(stream)?
            .tails
            .iter()
            .copied()
            .filter(|op| !self.ops.contains_key(op))
            .collect();
        if let Some(state) = self.streams.get_mut(&stream) {
            state.tails.retain(|op| !ended.contains(op));
            state.clock.join(&record.clock);
            if let Some(op) = pending
                && !state.tails.contains(&op)
            {
                state.tails.push(op);
            }
        }
        Ok(())
    }
}

driver_api! {
    fn cuEventCreate(call, event: Out<usize>, flags: u32) {
        let context = call.context()?;
        event.check()?;
        if flags & !FLAGS != 0 || flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS {
            return Err(Code::INVALID_VALUE);
        }
        let handle = call.new_handle();
        call.events.insert(handle, Event { context, flags, record: None });
        event.set(handle)
    }

    fn cuEventDestroy_v2(call, event: usize) {
        call.event(event)?;
        call.events.remove(&event);
        Ok(())
    }

    fn cuEventRecord | cuEventRecord_ptsz(call, event: usize, stream: usize) {
        call.record(event, stream, false)
    }

    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz(call, event: usize, stream: usize, flags: u32) {
        if flags & !EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.record(event, stream, flags & EXTERNAL != 0)
    }

    fn cuEventQuery(call, event: usize) {
        let record = call.outside_event(event)?;
        let context = call.event(event)?.context;
        call.forbid_while_capturing(context)?;
        if let Some(op) = call.pending_record(call.event(event)?) {
            call.nudge(&[op]);
            let context = call.event(event)?.context;
            return Err(call.get_context(context)?.error.unwrap_or(Code::NOT_READY));
        }
        call.host_joins_record(event, record.as_ref());
        Ok(())
    }

    fn cuEventSynchronize(call, event: usize) {
        let record = call.outside_event(event)?;
        let context = call.event(event)?.context;
        call.forbid_while_capturing(context)?;
        if let Some(op) = record.as_ref().and_then(|record| record.op) {
            call.wait(&[op]);
        }
        call.host_joins_record(event, record.as_ref());
        match call.get_context(context)?.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn cuEventElapsedTime(call, milliseconds: Out<f32>, start: usize, end: usize) {
        let elapsed = call.elapsed(start, end)?;
        milliseconds.set(elapsed)
    }

    fn cuEventElapsedTime_v2(call, milliseconds: Out<f32>, start: usize, end: usize) {
        let elapsed = call.elapsed(start, end)?;
        milliseconds.set(elapsed)
    }
}
