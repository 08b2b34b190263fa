//! Streams: the default ones and others, waiting for them, and host functions on them.

use std::thread;

use super::border::{Host, HostCall, HostFn, Out, StreamFn};
use super::codes::{Answer, Code};
use super::entry::{driver_api, per_thread_default};
use super::work::{StreamName, Work};
use super::{Call, Driver};
use crate::clock::{Clock, Timeline};

/// How a stream stands to the default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// The default stream itself.
    Legacy,
    PerThread,
    Blocking,
    NonBlocking,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) context: usize,
    pub(crate) group: u64,
    pub(crate) kind: StreamKind,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    /// The operations its next one is behind.
    pub(crate) tails: Vec<u64>,
    /// What its next operation is ordered behind.
    pub(crate) clock: Clock,
    pub(crate) timeline: Timeline,
    pub(crate) tick: u64,
    /// The capture it is part of.
    pub(crate) capture: Option<u64>,
}

impl Stream {
    pub(crate) fn name(&self) -> StreamName {
        StreamName {
            kind: self.kind,
            id: self.id,
            graph: false,
        }
    }
}

const NON_BLOCKING: u32 = 1;
pub(crate) const LEAST_PRIORITY: i32 = 0;
pub(crate) const GREATEST_PRIORITY: i32 = -5;

const NULL: usize = 0;
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

impl Driver {
    pub(crate) fn make_stream(
        &mut self,
        context: usize,
        group: u64,
        kind: StreamKind,
        flags: u32,
        priority: i32,
    ) -> usize {
        let handle = self.new_handle();
        let id = self.new_id();
        self.streams.insert(
            handle,
            Stream {
                id,
                context,
                group,
                kind,
                flags,
                priority,
                tails: Vec::new(),
                clock: Clock::default(),
                timeline: id,
                tick: 0,
                capture: None,
            },
        );
        handle
    }

    /// What a stream's handle means here and now: the key of a stream of a context without an error.
    pub(crate) fn stream(&mut self, handle: usize) -> Answer<usize> {
        let key = self.stream_with_any_error(handle)?;
        let context = self.get_stream(key)?.context;
        match self.get_context(context)?.error {
            Some(error) => Err(error),
            None => Ok(key),
        }
    }

    pub(crate) fn stream_with_any_error(&mut self, handle: usize) -> Answer<usize> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        let key = match handle {
            NULL if per_thread_default() => self.per_thread_stream()?,
            PER_THREAD => self.per_thread_stream()?,
            NULL | LEGACY => {
                let context = self.context_with_any_error()?;
                self.get_context(context)?.legacy
            }
            handle => handle,
        };
        let group = self.get_stream(key)?.group;
        self.note_call(group);
        Ok(key)
    }

    fn per_thread_stream(&mut self) -> Answer<usize> {
        let handle = self.context_with_any_error()?;
        let context = self.get_context(handle)?;
        let me = thread::current().id();
        if let Some(stream) = context.per_thread.get(&me) {
            return Ok(*stream);
        }
        let group = context.group;
        let stream = self.make_stream(handle, group, StreamKind::PerThread, 0, 0);
        if let Some(context) = self.contexts.get_mut(&handle) {
            context.per_thread.insert(me, stream);
        }
        Ok(stream)
    }

    pub(crate) fn get_stream(&self, key: usize) -> Answer<&Stream> {
        self.streams.get(&key).ok_or(Code::INVALID_HANDLE)
    }

    /// The operations that have to end before a stream has nothing to do.
    pub(crate) fn pending_of(&self, stream: usize) -> Answer<Vec<u64>> {
        let (behind, _) = self.behind(stream)?;
        let state = self.get_stream(stream)?;
        let own = state.tails.iter().copied();
        let others = if state.kind == StreamKind::Legacy {
            behind
        } else {
            Vec::new()
        };
        Ok(own
            .chain(others)
            .filter(|op| self.ops.contains_key(op))
            .collect())
    }

    /// The host knows that a stream has nothing left to do.
    fn host_joins_stream(&mut self, stream: usize) -> Answer {
        let (_, mut clock) = self.behind(stream)?;
        let state = self.get_stream(stream)?;
        if state.kind != StreamKind::Legacy {
            clock = Clock::default();
        }
        clock.join(&state.clock);
        let (group, context) = (state.group, state.context);
        self.host_joins(group, &clock);
        self.flush_printed(context);
        Ok(())
    }

    fn create_stream(&mut self, flags: u32, priority: i32) -> Answer<usize> {
        let context = self.context()?;
        if flags & !NON_BLOCKING != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let kind = if flags & NON_BLOCKING == 0 {
            StreamKind::Blocking
        } else {
            StreamKind::NonBlocking
        };
        let group = self.get_context(context)?.group;
        let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
        Ok(self.make_stream(context, group, kind, flags, priority))
    }
}

impl Call {
    /// Runs all that a stream has to do.
    pub(crate) fn synchronize_stream(&mut self, stream: usize) -> Answer {
        let pending = self.pending_of(stream)?;
        self.wait(&pending);
        let context = self.get_stream(stream)?.context;
        self.host_joins_stream(stream)?;
        match self.get_context(context)?.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

driver_api! {
    fn cuStreamCreate(call, stream: Out<usize>, flags: u32) {
        stream.check()?;
        let handle = call.create_stream(flags, 0)?;
        stream.set(handle)
    }

    fn cuStreamCreateWithPriority(call, stream: Out<usize>, flags: u32, priority: i32) {
        stream.check()?;
        let handle = call.create_stream(flags, priority)?;
        stream.set(handle)
    }

    fn cuStreamDestroy_v2(call, stream: usize) {
        if matches!(stream, NULL | LEGACY | PER_THREAD) {
            return Err(Code::INVALID_HANDLE);
        }
        let key = call.stream_with_any_error(stream)?;
        let state = call.get_stream(key)?;
        if !matches!(state.kind, StreamKind::Blocking | StreamKind::NonBlocking) {
            return Err(Code::INVALID_HANDLE);
        }
        let (context, kind) = (state.context, state.kind);
        call.leave_capture(key);
        let Some(gone) = call.streams.remove(&key) else {
            return Err(Code::INVALID_HANDLE);
        };
        if let Some(context) = call.contexts.get_mut(&context)
            && kind == StreamKind::Blocking
        {
            context.orphans.extend(gone.tails);
            context.orphan_clock.join(&gone.clock);
        }
        Ok(())
    }

    fn cuStreamSynchronize | cuStreamSynchronize_ptsz(call, stream: usize) {
        let key = call.stream(stream)?;
        call.forbid_on_capturing(key)?;
        let context = call.get_stream(key)?.context;
        call.forbid_while_capturing(context)?;
        call.synchronize_stream(key)
    }

    fn cuStreamQuery | cuStreamQuery_ptsz(call, stream: usize) {
        let key = call.stream(stream)?;
        call.forbid_on_capturing(key)?;
        let context = call.get_stream(key)?.context;
        call.forbid_while_capturing(context)?;
        let pending = call.pending_of(key)?;
        if pending.is_empty() {
            call.host_joins_stream(key)?;
            return Ok(());
        }
        call.nudge(&pending);
        let context = call.get_stream(key)?.context;
        Err(call.get_context(context)?.error.unwrap_or(Code::NOT_READY))
    }

    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz(call, stream: usize, event: usize, flags: u32) {
        if flags & !1 != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let key = call.stream(stream)?;
        call.wait_event(key, event, flags & 1 != 0)
    }

    fn cuStreamGetCtx | cuStreamGetCtx_ptsz(call, stream: usize, context: Out<usize>) {
        let key = call.stream_with_any_error(stream)?;
        let handle = call.get_stream(key)?.context;
        context.set(handle)
    }

    fn cuStreamGetId | cuStreamGetId_ptsz(call, stream: usize, id: Out<u64>) {
        let key = call.stream_with_any_error(stream)?;
        let value = call.get_stream(key)?.id;
        id.set(value)
    }

    fn cuStreamGetFlags | cuStreamGetFlags_ptsz(call, stream: usize, flags: Out<u32>) {
        let key = call.stream_with_any_error(stream)?;
        let value = call.get_stream(key)?.flags;
        flags.set(value)
    }

    fn cuStreamGetPriority | cuStreamGetPriority_ptsz(call, stream: usize, priority: Out<i32>) {
        let key = call.stream_with_any_error(stream)?;
        let value = call.get_stream(key)?.priority;
        priority.set(value)
    }

    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz(call, stream: usize, function: HostFn, data: Host) {
        let host = HostCall::function(function, data)?;
        let key = call.stream(stream)?;
        call.submit(key, Work::Host(host))?;
        Ok(())
    }

    fn cuStreamAddCallback | cuStreamAddCallback_ptsz(call, stream: usize, function: StreamFn, data: Host, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let host = HostCall::callback(function, stream, data)?;
        let key = call.stream(stream)?;
        call.forbid_on_capturing(key)?;
        call.submit(key, Work::Host(host))?;
        Ok(())
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz(call, stream: usize, pointer: u64, length: usize, flags: u32) {
        // The null stream cannot own memory.
        const SINGLE: u32 = 4;
        if stream == NULL || !matches!(flags, 1 | 2 | 4) {
            return Err(if flags == SINGLE || stream == NULL { Code::INVALID_HANDLE } else { Code::INVALID_VALUE });
        }
        let key = call.stream(stream)?;
        let managed = call
            .memory
            .find(pointer)
            .and_then(|token| call.memory.get(token))
            .is_some_and(|allocation| {
                allocation.kind == crate::memory::Kind::Managed
                    && (length == 0 || length as u64 == allocation.size)
            });
        if !managed {
            return Err(Code::INVALID_VALUE);
        }
        call.submit(key, Work::Nothing)?;
        Ok(())
    }
}
