//! Running what is enqueued: a step at a time, what somebody waits for first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::codes::Code;
use super::work::{Label, Op, Work};
use super::{Call, Driver};
use crate::config::Order;
use crate::exec::{Access, Progress};
use crate::memory::{Conflict, KernelMemory, Stage, Token, describe};
use crate::report::{Report, ReportKind};

/// So many instructions of warps a kernel runs before others have a turn.
const SLICE: u64 = 20_000;
/// So long whoever waits for a kernel that only spins gives the host time.
const SPIN_PAUSE: Duration = Duration::from_micros(50);

/// What helps against operations without an order.
const CURE: &str =
    "let one stream wait for an event recorded on the other, or synchronise in between";

/// How far a step brought an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Ended,
    Progressed,
    /// It only looked whether something changed, or someone else runs it.
    Stuck,
}

impl Driver {
    /// The first operation that has to run before `target` can, or itself; `None` if all of those are
    /// being run by others.
    fn runnable(&self, target: u64) -> Option<u64> {
        let mut stack = vec![target];
        let mut seen = std::collections::HashSet::new();
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some(op) = self.ops.get(&id) else {
                continue;
            };
            let before = stack.len();
            stack.extend(
                op.deps
                    .iter()
                    .rev()
                    .filter(|dep| self.ops.contains_key(dep)),
            );
            if stack.len() == before && !op.running {
                return Some(id);
            }
        }
        None
    }

    /// The operations of a group that nothing holds back.
    fn ready(&self, group: u64) -> Vec<u64> {
        self.ops
            .iter()
            .filter(|(_, op)| {
                op.info.group == group
                    && !op.running
                    && !op.deps.iter().any(|dep| self.ops.contains_key(dep))
            })
            .map(|(id, _)| *id)
            .collect()
    }

    /// Ends an operation: what it touched is compared with what others did.
    pub(crate) fn end(&mut self, id: u64, failed: bool) {
        let Some(mut op) = self.drop_op(id) else {
            return;
        };
        if let Work::Kernel(kernel) = &op.work
            && let Some(workspace) = kernel.workspace
        {
            self.memory.free(workspace);
        }
        if let Some(grid) = &op.grid
            && let Some(device) = self.devices.get_mut(&op.info.device)
            && device.config.coverage
        {
            let program = grid.program();
            let name = program.kernels().first().map_or("", |kernel| &kernel.name);
            device.coverage.add(grid, &format!("{name}.ptx"));
        }
        if !failed {
            let mut told = false;
            for (token, access, set) in op.touched.take() {
                let Some(allocation) = self.memory.get_mut(token) else {
                    continue;
                };
                told |= allocation.host_visible() && access != Access::Read;
                if allocation.history.is_empty()
                    && let Some(group) = self.groups.get_mut(&op.info.group)
                {
                    group.touched.push(token);
                }
                let conflict = allocation.history.touch(&op.info, &op.clock, access, set);
                if let Some(conflict) = conflict {
                    self.report_conflict(&op, token, &conflict);
                }
            }
            // What a kernel writes where the host can look may have told it that all before is done.
            if told && matches!(op.work, Work::Kernel(_)) {
                self.host_joins(op.info.group, &op.clock);
            }
        }
    }

    fn report_conflict(&mut self, op: &Op, token: Token, conflict: &Conflict) {
        let Some(allocation) = self.memory.get(token) else {
            return;
        };
        let earlier = &conflict.earlier;
        let memory = describe(allocation);
        let first = conflict.range.start - allocation.start;
        let last = conflict.range.end - allocation.start;
        let (kind, message) = match (&earlier.label, &op.info.label) {
            (Label::Allocate(_), _) => (
                ReportKind::UseBeforeAllocation,
                format!(
                    "use before allocation: {} uses {memory}, but nothing puts it behind the allocation on {}: {CURE}",
                    op.info, earlier.stream
                ),
            ),
            (_, Label::Free(_)) => (
                ReportKind::UseAfterFree,
                format!(
                    "use after free: {memory} is freed on {}, but nothing puts that behind {earlier}, which {} it: {CURE}",
                    op.info.stream,
                    verb(conflict.earlier_access)
                ),
            ),
            _ => (
                ReportKind::Conflict,
                format!(
                    "unordered access: {} {} bytes {first}..{last} of {memory}, which {earlier} {}, and nothing puts one behind the other: {CURE}",
                    op.info,
                    verb(conflict.access),
                    verb(conflict.earlier_access)
                ),
            ),
        };
        self.report(Report {
            kind,
            device: op.info.device as usize,
            code: None,
            kernel: None,
            fault: None,
            message,
        });
    }

    /// A context keeps its first error for good.
    pub(crate) fn poison(&mut self, context: usize, code: Code) {
        if let Some(context) = self.contexts.get_mut(&context) {
            context.error.get_or_insert(code);
        }
    }

    /// Runs a piece of a kernel.
    fn step_kernel(&mut self, op: &mut Op) -> Step {
        let (context, device) = (op.info.context, op.info.device);
        let Some(grid) = op.grid.as_mut() else {
            return Step::Ended;
        };
        if op.fails {
            let Label::Kernel(name) = &op.info.label else {
                return Step::Ended;
            };
            let message = format!("kernel `{name}` fails because the test asked for it");
            self.refuse(ReportKind::Injected, device, Code(719), message);
            self.poison(context, Code(719));
            return Step::Ended;
        }
        let reach = self.reach(context);
        let mut printed = Vec::new();
        let mut too_early = false;
        let mut memory = KernelMemory {
            memory: &mut self.memory,
            reach: &reach,
            objects: &self.objects,
            touched: &mut op.touched,
            printed: &mut printed,
            conditions: op.info.conditions.as_deref(),
            too_early: &mut too_early,
        };
        let progress = grid.run(&mut memory, SLICE);
        self.keep_printed(context, &printed);
        match progress {
            Progress::Running { progressed: true } => Step::Progressed,
            Progress::Running { progressed: false } => Step::Stuck,
            Progress::Done(_) => {
                self.flush_printed(context);
                Step::Ended
            }
            Progress::Fault(fault) => {
                self.flush_printed(context);
                let code = Code(fault.kind.code());
                let freed = fault
                    .address
                    .and_then(|address| self.memory.freed_words(address));
                let kind = if too_early {
                    ReportKind::UseBeforeAllocation
                } else if freed.is_some() {
                    ReportKind::UseAfterFree
                } else {
                    ReportKind::Fault
                };
                self.report(Report {
                    kind,
                    device: device as usize,
                    code: Some(code.0),
                    kernel: Some(fault.kernel.clone()),
                    message: fault.to_string(),
                    fault: Some(fault),
                });
                self.poison(context, code);
                Step::Ended
            }
        }
    }

    fn keep_printed(&mut self, context: usize, printed: &[u8]) {
        if let Some(context) = self.contexts.get_mut(&context) {
            let room = context.printf_bytes().saturating_sub(context.printed.len());
            context
                .printed
                .extend_from_slice(&printed[..printed.len().min(room)]);
        }
    }

    fn step_allocate(&mut self, op: &mut Op, token: Token) {
        if let Some(allocation) = self.memory.get_mut(token) {
            allocation.stage = Stage::Live;
            let range = allocation.range();
            op.touched.add(token, range, Access::Write);
        }
    }

    fn step_record(&mut self, event: usize, serial: u64) {
        if let Some(event) = self.events.get_mut(&event)
            && let Some(record) = &mut event.record
            && record.serial == serial
        {
            record.time = Some(Instant::now());
        }
    }
}

impl Call {
    /// Runs an operation, or a piece of it, that nothing holds back.
    pub(crate) fn step(&mut self, id: u64) -> Step {
        let Some(op) = self.ops.get_mut(&id) else {
            return Step::Ended;
        };
        if op.running {
            return Step::Stuck;
        }
        let context = op.info.context;
        let dead = match self.contexts.get(&context) {
            Some(context) => context.error.is_some(),
            None => true,
        };
        if dead {
            self.end(id, true);
            return Step::Ended;
        }
        let Some(op) = self.ops.get_mut(&id) else {
            return Step::Ended;
        };
        if let Work::Host(call) = op.work {
            op.running = true;
            let (clock, group) = (op.clock.clone(), op.info.group);
            self.outside(|| call.run());
            self.end(id, false);
            // The function may have told the host that all before it is done.
            self.host_joins(group, &clock);
            return Step::Ended;
        }
        if let Work::Conditional(_) = op.work {
            return self.step_rounds(id);
        }
        // Out of the table while it runs, so that it and the rest can be borrowed at once.
        let work = std::mem::replace(&mut op.work, Work::Nothing);
        let mut running = Op {
            info: Arc::clone(&op.info),
            clock: std::mem::take(&mut op.clock),
            deps: Vec::new(),
            work: Work::Nothing,
            grid: op.grid.take(),
            touched: std::mem::take(&mut op.touched),
            running: false,
            fails: op.fails,
        };
        let mut step = Step::Ended;
        let outcome = match &work {
            Work::Kernel(_) => {
                step = self.step_kernel(&mut running);
                Ok(())
            }
            Work::Copy(copy) => self.step_copy(&mut running, copy),
            Work::Fill(fill) => self.step_fill(&mut running, *fill),
            Work::Record { event, serial } => {
                self.step_record(*event, *serial);
                Ok(())
            }
            Work::Allocate(token) => {
                self.step_allocate(&mut running, *token);
                Ok(())
            }
            Work::Free(token) => {
                if let Some(allocation) = self.memory.get(*token) {
                    running
                        .touched
                        .add(*token, allocation.range(), Access::Write);
                }
                Ok(())
            }
            Work::Reset(values) => {
                values.reset();
                Ok(())
            }
            Work::Nothing | Work::Host(_) | Work::Conditional(_) => Ok(()),
        };
        if let Err(code) = outcome {
            self.poison(context, code);
        }
        let free = match work {
            Work::Free(token) => Some(token),
            _ => None,
        };
        if let Some(op) = self.ops.get_mut(&id) {
            op.clock = running.clock;
            op.work = work;
            op.grid = running.grid;
            op.touched = running.touched;
        }
        if step == Step::Ended {
            self.end(id, false);
            if let Some(token) = free {
                self.free_now(token);
            }
        }
        step
    }

    /// Runs operations until all of `targets` have ended.
    pub(crate) fn wait(&mut self, targets: &[u64]) {
        let Some(group) = targets
            .iter()
            .find_map(|target| self.ops.get(target).map(|op| op.info.group))
        else {
            return;
        };
        self.count_waiting(group, 1);
        for target in targets {
            // What stands between us and the target, deepest last.
            let mut path = vec![*target];
            while let Some(id) = path.last().copied() {
                let Some(op) = self.ops.get(&id) else {
                    path.pop();
                    continue;
                };
                if let Some(dep) = op.deps.iter().find(|dep| self.ops.contains_key(dep)) {
                    path.push(*dep);
                    continue;
                }
                let chosen = self.detour(group).unwrap_or(id);
                if self.step(chosen) == Step::Stuck && !self.help_others(group, chosen) {
                    self.pause(SPIN_PAUSE);
                }
                self.breathe();
            }
        }
        self.count_waiting(group, -1);
    }

    fn count_waiting(&mut self, group: u64, by: isize) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.waiting = group.waiting.saturating_add_signed(by);
            group.called = Instant::now();
        }
    }

    /// In a random order, now and then something else runs first.
    fn detour(&mut self, group: u64) -> Option<u64> {
        let random = self
            .devices
            .values()
            .any(|device| device.group == group && matches!(device.config.order, Order::Random(_)));
        if !random {
            return None;
        }
        let ready = self.ready(group);
        let group = self.groups.get_mut(&group)?;
        if ready.is_empty() || group.draw(2) == 0 {
            return None;
        }
        Some(ready[group.draw(ready.len())])
    }

    /// What a kernel spins on may be written by another stream's work: each has a turn. Says whether
    /// any came further.
    fn help_others(&mut self, group: u64, stuck: u64) -> bool {
        let mut progressed = false;
        for id in self.ready(group) {
            if id != stuck {
                progressed |= self.step(id) != Step::Stuck;
            }
        }
        progressed
    }

    /// Runs an operation and what is before it right away, as far as it does not wait for the host.
    pub(crate) fn run_eagerly(&mut self, target: u64) {
        while self.ops.contains_key(&target) {
            let Some(id) = self.runnable(target) else {
                return;
            };
            if self.step(id) == Step::Stuck {
                return;
            }
            self.breathe();
        }
    }

    /// Runs a few operations of the seed's choice.
    pub(crate) fn run_some(&mut self, group: u64) {
        let turns = self.groups.get_mut(&group).map_or(0, |group| group.draw(4));
        for _ in 0..turns {
            let ready = self.ready(group);
            let Some(state) = self.groups.get_mut(&group) else {
                return;
            };
            if ready.is_empty() {
                return;
            }
            let id = ready[state.draw(ready.len())];
            self.step(id);
        }
    }

    /// One step towards each of `targets`, for queries: asking again and again gets there.
    pub(crate) fn nudge(&mut self, targets: &[u64]) {
        for target in targets {
            if let Some(id) = self.runnable(*target) {
                self.step(id);
                return;
            }
        }
    }

    /// One step of anything in a group; says whether something came further.
    pub(crate) fn run_anything(&mut self, group: u64) -> bool {
        let mut progressed = false;
        for id in self.ready(group) {
            progressed |= self.step(id) != Step::Stuck;
            self.breathe();
        }
        progressed
    }
}

fn verb(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::Write => "writes",
        Access::Atomic => "updates atomically",
    }
}
