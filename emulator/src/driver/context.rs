//! Contexts: the primary one of each device and others, the stack of each host thread, and the error a
//! context keeps.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::mem::ManuallyDrop;
use std::thread::ThreadId;

use super::border::{In, Out};
use super::codes::{Answer, Code};
use super::device::{PERSISTING_L2_STEP, persisting_l2};
use super::entry::{driver_api, plain_api};
use super::stream::StreamKind;
use super::{Call, Driver};
use crate::clock::Clock;
use crate::memory::{Allocation, Kind};

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) id: u64,
    pub(crate) device: u32,
    pub(crate) group: u64,
    pub(crate) flags: u32,
    pub(crate) primary: bool,
    /// The error that it keeps for good.
    pub(crate) error: Option<Code>,
    /// The stream that 0 and 1 mean.
    pub(crate) legacy: usize,
    /// What 2 means, for each thread.
    pub(crate) per_thread: HashMap<ThreadId, usize>,
    /// The last operations of blocking streams that were destroyed.
    pub(crate) orphans: Vec<u64>,
    /// What those streams had done.
    pub(crate) orphan_clock: Clock,
    pub(crate) limits: HashMap<u32, usize>,
    pub(crate) cache_config: u32,
    pub(crate) peers: HashSet<usize>,
    /// What kernels printed and nobody saw yet.
    pub(crate) printed: Vec<u8>,
}

/// Which memory a context's kernels reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    pub(crate) context: usize,
    peers: HashSet<usize>,
    pools: HashSet<usize>,
}

impl Reach {
    pub(crate) fn allows(&self, allocation: &Allocation) -> bool {
        match allocation.kind {
            Kind::Pinned | Kind::Managed | Kind::Registered => true,
            Kind::Pool(pool) => self.pools.contains(&pool),
            _ => allocation.context == self.context || self.peers.contains(&allocation.context),
        }
    }
}

thread_local! {
    /// Never destroyed: what ends with a thread may call the driver when this would be gone already.
    static STACK: ManuallyDrop<RefCell<Vec<usize>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// The thread's contexts, the current one last.
fn with_stack<R>(with: impl FnOnce(&mut Vec<usize>) -> R) -> R {
    STACK.with(|stack| with(&mut stack.borrow_mut()))
}

fn top() -> Option<usize> {
    with_stack(|stack| stack.last().copied())
}

fn set_top(context: usize) {
    with_stack(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
}

const STACK_SIZE: u32 = 0;
const PRINTF_FIFO_SIZE: u32 = 1;
const MALLOC_HEAP_SIZE: u32 = 2;
const PERSISTING_L2_CACHE_SIZE: u32 = 6;
/// The limits there are, with what they begin as.
const LIMITS: [(u32, usize); 7] = [
    (STACK_SIZE, 1024),
    (PRINTF_FIFO_SIZE, 1_048_576),
    (MALLOC_HEAP_SIZE, 8_388_608),
    (3, 2),
    (4, 2048),
    (5, 64),
    (PERSISTING_L2_CACHE_SIZE, 3 * PERSISTING_L2_STEP as usize),
];
const FLAGS: u32 = 0x1ff;

impl Context {
    pub(crate) fn limit(&self, limit: u32) -> Option<usize> {
        self.limits.get(&limit).copied()
    }

    pub(crate) fn stack_bytes(&self) -> usize {
        self.limit(STACK_SIZE).unwrap_or(1024)
    }

    pub(crate) fn printf_bytes(&self) -> usize {
        self.limit(PRINTF_FIFO_SIZE).unwrap_or(1_048_576)
    }
}

impl Driver {
    fn make_context(&mut self, handle: usize, device: u32, flags: u32, primary: bool) {
        let Some(group) = self.devices.get(&device).map(|device| device.group) else {
            return;
        };
        let id = self.new_id();
        let legacy = self.make_stream(handle, group, StreamKind::Legacy, 0, 0);
        self.contexts.insert(
            handle,
            Context {
                id,
                device,
                group,
                flags,
                primary,
                error: None,
                legacy,
                per_thread: HashMap::new(),
                orphans: Vec::new(),
                orphan_clock: Clock::default(),
                limits: LIMITS.into_iter().collect(),
                cache_config: 0,
                peers: HashSet::new(),
                printed: Vec::new(),
            },
        );
    }

    /// Takes a context away with all that it has; its work is not waited for.
    pub(crate) fn destroy_context(&mut self, handle: usize) {
        let Some(context) = self.contexts.remove(&handle) else {
            return;
        };
        let pending: Vec<u64> = self
            .ops
            .iter()
            .filter(|(_, op)| op.info.context == handle)
            .map(|(id, _)| *id)
            .collect();
        for op in pending {
            self.drop_op(op);
        }
        self.host_joins_context(context.group, handle);
        self.streams.retain(|_, stream| stream.context != handle);
        self.events.retain(|_, event| event.context != handle);
        self.modules.retain(|_, module| module.context != handle);
        self.arrays.retain(|_, array| array.context != handle);
        self.objects.forget(handle);
        let modules: HashSet<usize> = self.modules.keys().copied().collect();
        self.functions
            .retain(|_, function| modules.contains(&function.module));
        let memory: Vec<_> = self
            .memory
            .tokens()
            .filter(|(_, allocation)| {
                allocation.context == handle && !matches!(allocation.kind, Kind::Pool(_))
            })
            .map(|(token, _)| token)
            .collect();
        for token in memory {
            self.memory.free(token);
        }
        for other in self.contexts.values_mut() {
            other.peers.remove(&handle);
        }
    }

    /// The current context, if it can work: made, not destroyed and without an error.
    pub(crate) fn context(&self) -> Answer<usize> {
        let handle = self.context_with_any_error()?;
        match self.contexts.get(&handle).and_then(|context| context.error) {
            Some(error) => Err(error),
            None => Ok(handle),
        }
    }

    /// The current context, whatever error it keeps.
    pub(crate) fn context_with_any_error(&self) -> Answer<usize> {
        if !self.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        let handle = top().ok_or(Code::INVALID_CONTEXT)?;
        if self.contexts.contains_key(&handle) {
            Ok(handle)
        } else {
            Err(Code(709))
        }
    }

    pub(crate) fn get_context(&self, handle: usize) -> Answer<&Context> {
        self.contexts.get(&handle).ok_or(Code::INVALID_CONTEXT)
    }

    pub(crate) fn current(&mut self) -> Answer<&mut Context> {
        let handle = self.context_with_any_error()?;
        self.contexts.get_mut(&handle).ok_or(Code::INVALID_CONTEXT)
    }

    /// A context given by its handle, or the current one for 0.
    fn context_or_current(&self, handle: usize) -> Answer<&Context> {
        let handle = match handle {
            0 => self.context_with_any_error()?,
            handle => handle,
        };
        self.get_context(handle)
    }

    /// What kernels of a context reach.
    pub(crate) fn reach(&self, handle: usize) -> Reach {
        let Some(context) = self.contexts.get(&handle) else {
            return Reach::default();
        };
        let pools = self
            .pools
            .iter()
            .filter(|(_, pool)| pool.reachable_from(context.device))
            .map(|(handle, _)| *handle)
            .collect();
        Reach {
            context: handle,
            peers: context.peers.clone(),
            pools,
        }
    }

    /// Says what kernels of a context printed.
    pub(crate) fn flush_printed(&mut self, context: usize) {
        if let Some(context) = self.contexts.get_mut(&context)
            && !context.printed.is_empty()
        {
            let text = std::mem::take(&mut context.printed);
            print!("{}", String::from_utf8_lossy(&text));
        }
    }

    fn retain_primary(&mut self, ordinal: u32) -> usize {
        let Some(device) = self.devices.get_mut(&ordinal) else {
            return 0;
        };
        device.primary.retained += 1;
        let (handle, flags) = (device.primary.handle, device.primary.flags);
        if !self.contexts.contains_key(&handle) {
            self.make_context(handle, ordinal, flags, true);
        }
        handle
    }

    fn create_context(&mut self, flags: u32, device: i32) -> Answer<usize> {
        let (ordinal, _) = self.device(device)?;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.new_handle();
        self.make_context(handle, ordinal, flags, false);
        with_stack(|stack| stack.push(handle));
        Ok(handle)
    }
}

impl Call {
    /// Runs all that a context has pending, and remembers that the host knows.
    pub(crate) fn synchronize_context(&mut self, context: usize) -> Answer {
        let pending: Vec<u64> = self
            .ops
            .iter()
            .filter(|(_, op)| op.info.context == context)
            .map(|(id, _)| *id)
            .collect();
        self.wait(&pending);
        let Ok(group) = self.get_context(context).map(|context| context.group) else {
            return Err(Code(709));
        };
        self.host_joins_context(group, context);
        self.flush_printed(context);
        match self.get_context(context)?.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

plain_api! {
    fn cuCtxGetCurrent(context: Out<usize>) {
        context.set(top().unwrap_or(0))
    }
}

driver_api! {
    fn cuDevicePrimaryCtxRetain(call, context: Out<usize>, device: i32) {
        let (ordinal, _) = call.device(device)?;
        context.check()?;
        let handle = call.retain_primary(ordinal);
        context.set(handle)
    }

    fn cuDevicePrimaryCtxRelease_v2(call, device: i32) {
        let (ordinal, device) = call.device(device)?;
        let (handle, retained) = (device.primary.handle, device.primary.retained);
        let Some(left) = retained.checked_sub(1) else {
            return Err(Code::INVALID_CONTEXT);
        };
        if left == 0 {
            // Work that is pending is done before the context goes, as by a driver.
            let _ = call.synchronize_context(handle);
        }
        if let Some(device) = call.devices.get_mut(&ordinal) {
            device.primary.retained = device.primary.retained.saturating_sub(1);
            if device.primary.retained == 0 {
                call.destroy_context(handle);
            }
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(call, device: i32) {
        let (_, device) = call.device(device)?;
        let (handle, retained, flags) = (device.primary.handle, device.primary.retained, device.primary.flags);
        let ordinal = call.device_of(handle);
        call.destroy_context(handle);
        if let Some(ordinal) = ordinal
            && retained > 0
        {
            call.make_context(handle, ordinal, flags, true);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(call, device: i32, flags: Out<u32>, active: Out<i32>) {
        let (_, device) = call.device(device)?;
        flags.set(device.primary.flags)?;
        active.set(i32::from(call.contexts.contains_key(&device.primary.handle)))
    }

    fn cuDevicePrimaryCtxSetFlags_v2(call, device: i32, flags: u32) {
        let (ordinal, _) = call.device(device)?;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(device) = call.devices.get_mut(&ordinal) {
            device.primary.flags = flags;
            let handle = device.primary.handle;
            if let Some(context) = call.contexts.get_mut(&handle) {
                context.flags = flags;
            }
        }
        Ok(())
    }

    fn cuCtxCreate_v2(call, context: Out<usize>, flags: u32, device: i32) {
        context.check()?;
        let handle = call.create_context(flags, device)?;
        context.set(handle)
    }

    fn cuCtxCreate_v3(call, context: Out<usize>, params: In<u64>, count: i32, flags: u32, device: i32) {
        context.check()?;
        if count != 0 || !params.is_null() {
            return Err(Code(224));
        }
        let handle = call.create_context(flags, device)?;
        context.set(handle)
    }

    fn cuCtxCreate_v4(call, context: Out<usize>, params: In<CreateParams>, flags: u32, device: i32) {
        context.check()?;
        if !params.is_null() {
            let params = params.get()?;
            if params.affinity != 0 || params.affinities != 0 {
                return Err(Code(224));
            }
            if params.graphics != 0 {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        let handle = call.create_context(flags, device)?;
        context.set(handle)
    }

    fn cuCtxDestroy_v2(call, context: usize) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        let primary = call.get_context(context)?.primary;
        if primary {
            return Err(Code::INVALID_CONTEXT);
        }
        let _ = call.synchronize_context(context);
        call.destroy_context(context);
        if top() == Some(context) {
            set_top(0);
        }
        Ok(())
    }

    fn cuCtxSetCurrent(call, context: usize) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        if context != 0 {
            call.get_context(context)?;
        }
        set_top(context);
        Ok(())
    }

    fn cuCtxPushCurrent_v2(call, context: usize) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        call.get_context(context)?;
        with_stack(|stack| stack.push(context));
        Ok(())
    }

    fn cuCtxPopCurrent_v2(call, context: Out<usize>) {
        if !call.initialised {
            return Err(Code::NOT_INITIALIZED);
        }
        let popped = with_stack(Vec::pop).ok_or(Code::INVALID_CONTEXT)?;
        context.set_if_wanted(popped);
        Ok(())
    }

    fn cuCtxGetDevice(call, device: Out<i32>) {
        let ordinal = call.current()?.device;
        device.set(i32::try_from(ordinal).unwrap_or(i32::MAX))
    }

    fn cuCtxGetDevice_v2(call, device: Out<i32>, context: usize) {
        let ordinal = call.context_or_current(context)?.device;
        device.set(i32::try_from(ordinal).unwrap_or(i32::MAX))
    }

    fn cuCtxGetId(call, context: usize, id: Out<u64>) {
        let value = call.context_or_current(context)?.id;
        id.set(value)
    }

    fn cuCtxGetApiVersion(call, context: usize, version: Out<u32>) {
        call.context_or_current(context)?;
        version.set(3020)
    }

    fn cuCtxGetFlags(call, flags: Out<u32>) {
        let value = call.current()?.flags;
        flags.set(value)
    }

    fn cuCtxSetFlags(call, flags: u32) {
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.current()?.flags = flags;
        Ok(())
    }

    fn cuCtxGetLimit(call, value: Out<usize>, limit: u32) {
        let answer = call.current()?.limit(limit).ok_or(Code::INVALID_VALUE)?;
        value.set(answer)
    }

    fn cuCtxSetLimit(call, limit: u32, value: usize) {
        let device = call.current()?.device;
        let most = call.devices.get(&device).map_or(0, |device| persisting_l2(&device.config)) as usize;
        let context = call.current()?;
        // Limits of kernels that launch kernels, which there are not.
        if matches!(limit, 3 | 4) {
            return Err(Code::UNSUPPORTED_LIMIT);
        }
        let mut value = value;
        if limit == PERSISTING_L2_CACHE_SIZE {
            if most == 0 {
                return Err(Code::UNSUPPORTED_LIMIT);
            }
            if value > most {
                return Err(Code::INVALID_VALUE);
            }
            value = value.next_multiple_of(PERSISTING_L2_STEP as usize);
        }
        match context.limits.get_mut(&limit) {
            Some(limit) => *limit = value,
            None => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache(call) {
        call.current()?;
        Ok(())
    }

    fn cuCtxGetCacheConfig(call, config: Out<u32>) {
        let value = call.current()?.cache_config;
        config.set(value)
    }

    fn cuCtxSetCacheConfig(call, config: u32) {
        if config > 3 {
            return Err(Code::INVALID_VALUE);
        }
        call.current()?.cache_config = config;
        Ok(())
    }

    fn cuCtxGetStreamPriorityRange(call, least: Out<i32>, greatest: Out<i32>) {
        call.current()?;
        least.set_if_wanted(super::stream::LEAST_PRIORITY);
        greatest.set_if_wanted(super::stream::GREATEST_PRIORITY);
        Ok(())
    }

    fn cuCtxSynchronize(call) {
        let context = call.context()?;
        call.forbid_on_captured_context(context)?;
        call.synchronize_context(context)
    }

    fn cuCtxEnablePeerAccess(call, peer: usize, flags: u32) {
        let context = call.context()?;
        let other = call.get_context(peer)?;
        let mine = call.get_context(context)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if peer == context || mine.group != other.group {
            return Err(if peer == context { Code::INVALID_CONTEXT } else { Code::PEER_ACCESS_UNSUPPORTED });
        }
        if !call.current()?.peers.insert(peer) {
            return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
        }
        Ok(())
    }

    fn cuCtxDisablePeerAccess(call, peer: usize) {
        call.context()?;
        if call.current()?.peers.remove(&peer) {
            Ok(())
        } else {
            Err(Code::PEER_ACCESS_NOT_ENABLED)
        }
    }
}

/// `CUctxCreateParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CreateParams {
    affinity: usize,
    affinities: i32,
    graphics: usize,
}

impl Driver {
    /// The device whose primary context has that handle.
    fn device_of(&self, handle: usize) -> Option<u32> {
        self.devices
            .iter()
            .find(|(_, device)| device.primary.handle == handle)
            .map(|(ordinal, _)| *ordinal)
    }
}
