//! Random programs against a model of streams: every use must come after all earlier uses that it
//! conflicts with, whatever is enqueued in between.
//!
//! The model knows happens-before by vector clocks. A use is acquired at one step and enqueued at
//! a later one, as between threads; what Rust's borrow rules exclude does not occur.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    rc::Rc,
};

use super::*;
use crate::buffer::order::StreamId;

const BYTES: usize = 12;

#[test]
fn every_use_comes_after_those_it_conflicts_with() {
    for seed in 0..20_000 {
        Program::new(seed).run(12);
    }
}

#[test]
fn one_stream_waits_for_nothing_and_notes_nothing() {
    let mut program = Program::new(1);
    let stream = program.world.stream();
    let uses = Uses::new(Model::Held(stream.clone()), Some(stream.handle), BYTES);
    for _ in 0..10 {
        assert!(uses.is_solo(stream.handle));
        program.enqueue(&stream, &(0..BYTES), true);
    }
    let launch = Launch::new(&stream, true, &program.world);
    assert!(!uses.enter(&launch, &write(0..BYTES), BYTES).unwrap());
    assert_eq!(program.world.waits.get(), 0);
}

#[test]
fn no_handle_of_the_driver_stands_for_any_stream() {
    let world = Rc::new(World::default());
    let stream = world.stream();
    let uses = Uses::new(Model::Held(stream.clone()), None, BYTES);
    uses.split();
    // Null, legacy, per-thread.
    for handle in 0..3 {
        assert!(!uses.may_read(handle));
    }
}

#[test]
fn a_change_of_stream_waits_once() {
    let world = Rc::new(World::default());
    let (a, b) = (world.stream(), world.stream());
    let uses = Uses::new(Model::Held(a.clone()), Some(a.handle), BYTES);
    for _ in 0..3 {
        if !uses.is_solo(b.handle) {
            let launch = Launch::new(&b, true, &world);
            uses.enter(&launch, &write(0..BYTES), BYTES).unwrap();
        }
    }
    assert!(uses.is_solo(b.handle));
    assert_eq!(world.waits.get(), 1);
}

#[test]
fn several_readers_wait_once_each() {
    let world = Rc::new(World::default());
    let streams = [
        world.stream(),
        world.stream(),
        world.stream(),
        world.stream(),
    ];
    let first = &streams[0];
    let uses = Uses::new(Model::Held(first.clone()), Some(first.handle), BYTES);
    for _ in 0..10 {
        for stream in &streams {
            if !uses.may_read(stream.handle) {
                let launch = Launch::new(stream, true, &world);
                uses.enter(&launch, &read(0..BYTES), BYTES).unwrap();
            }
        }
    }
    assert_eq!(world.waits.get(), 3);
    // A writer waits for the three others, and is then alone.
    let launch = Launch::new(first, true, &world);
    uses.enter(&launch, &write(0..BYTES), BYTES).unwrap();
    assert_eq!(world.waits.get(), 6);
    assert!(uses.is_solo(first.handle));
    assert!(!uses.may_read(streams[1].handle));
}

#[test]
fn halves_do_not_wait_for_each_other() {
    let world = Rc::new(World::default());
    let streams = [world.stream(), world.stream()];
    let uses = Uses::new(
        Model::Held(streams[0].clone()),
        Some(streams[0].handle),
        BYTES,
    );
    uses.split();
    for _ in 0..10 {
        for (stream, range) in streams.iter().zip([0..6, 6..12]) {
            let launch = Launch::new(stream, true, &world);
            uses.enter(&launch, &part(range, true), BYTES).unwrap();
        }
    }
    // The second stream for what the first wrote before the split.
    assert_eq!(world.waits.get(), 1);
}

#[test]
fn streams_that_are_gone_and_done_are_forgotten() {
    let world = Rc::new(World::default());
    let owner = world.stream();
    let uses = Uses::new(Model::Held(owner.clone()), Some(owner.handle), BYTES);
    for _ in 0..1000 {
        let stream = world.stream();
        let launch = Launch::new(&stream, true, &world);
        uses.enter(&launch, &read(0..BYTES), BYTES).unwrap();
        stream.lent.set(false);
    }
    assert!(
        Rc::strong_count(&world) < 50,
        "{}",
        Rc::strong_count(&world)
    );
}

fn write(range: Range<usize>) -> Access {
    Access {
        range,
        writes: true,
        split: false,
    }
}

fn read(range: Range<usize>) -> Access {
    Access {
        range,
        writes: false,
        split: false,
    }
}

fn part(range: Range<usize>, writes: bool) -> Access {
    Access {
        range,
        writes,
        split: true,
    }
}

/// All streams: what each has enqueued, waited for and finished.
#[derive(Default)]
struct World {
    /// By stream: how much of every stream comes before what it enqueues next.
    clocks: RefCell<Vec<Vec<usize>>>,
    /// By stream: how much of it is done.
    done: RefCell<Vec<usize>>,
    /// Handles that were given back.
    handles: RefCell<Vec<usize>>,
    waits: Cell<usize>,
}

struct Stream {
    world: Rc<World>,
    index: usize,
    handle: usize,
    /// Whether the user still has it.
    lent: Cell<bool>,
    owner: Rc<Owner>,
}

/// What destroys a stream.
struct Owner(Rc<World>, usize);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.handles.borrow_mut().push(self.1);
    }
}

impl World {
    fn stream(self: &Rc<World>) -> Rc<Stream> {
        let mut clocks = self.clocks.borrow_mut();
        let index = clocks.len();
        clocks.push(Vec::new());
        for clock in clocks.iter_mut() {
            clock.resize(index + 1, 0);
        }
        self.done.borrow_mut().push(0);
        // The driver gives a handle again as soon as it can.
        let handle = self.handles.borrow_mut().pop();
        let handle = handle.unwrap_or(16 + 16 * index);
        Rc::new(Stream {
            world: self.clone(),
            index,
            handle,
            lent: Cell::new(true),
            owner: Rc::new(Owner(self.clone(), handle)),
        })
    }

    /// Another object for the same stream.
    fn alias(self: &Rc<World>, stream: &Stream) -> Rc<Stream> {
        Rc::new(Stream {
            world: self.clone(),
            index: stream.index,
            handle: stream.handle,
            lent: Cell::new(true),
            owner: stream.owner.clone(),
        })
    }

    fn join(&self, to: usize, clock: &[usize]) {
        self.waits.set(self.waits.get() + 1);
        for (mine, theirs) in self.clocks.borrow_mut()[to].iter_mut().zip(clock) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Lets the device do all that is enqueued on a stream, and all before it.
    fn finish(&self, index: usize) {
        let clock = self.clocks.borrow()[index].clone();
        for (done, theirs) in self.done.borrow_mut().iter_mut().zip(clock) {
            *done = (*done).max(theirs);
        }
    }
}

#[derive(Clone)]
enum Model {
    Held(Rc<Stream>),
    Event(Rc<Event>),
}

/// A point of a stream.
struct Event {
    world: Rc<World>,
    index: usize,
    recorded: RefCell<Option<Vec<usize>>>,
}

impl User for Model {
    fn id(&self) -> StreamId {
        let index = match self {
            Model::Held(stream) => stream.index,
            Model::Event(event) => event.index,
        };
        StreamId {
            context: 0,
            id: index as u64,
        }
    }

    fn is_stream(&self) -> bool {
        matches!(self, Model::Held(_))
    }

    fn is_same(&self, other: &Model) -> bool {
        match (self, other) {
            (Model::Held(a), Model::Held(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Model::Held(stream) => {
                let world = &stream.world;
                let enqueued = world.clocks.borrow()[stream.index][stream.index];
                !stream.lent.get() && world.done.borrow()[stream.index] == enqueued
            }
            Model::Event(event) => {
                event.recorded.borrow().as_ref().is_some_and(|clock| {
                    event.world.done.borrow()[event.index] >= clock[event.index]
                })
            }
        }
    }
}

/// A launch on a stream, which either can be held by what it uses or not.
struct Launch {
    stream: Rc<Stream>,
    held: bool,
    event: Rc<Event>,
    fails: Cell<bool>,
}

impl Launch {
    fn new(stream: &Rc<Stream>, held: bool, world: &Rc<World>) -> Launch {
        Launch {
            stream: stream.clone(),
            held,
            event: Rc::new(Event {
                world: world.clone(),
                index: stream.index,
                recorded: RefCell::new(None),
            }),
            fails: Cell::new(false),
        }
    }
}

impl Launching for Launch {
    type User = Model;
    type Error = ();

    fn handle(&self) -> Option<usize> {
        self.held.then_some(self.stream.handle)
    }

    fn user(&self) -> Model {
        if self.held {
            Model::Held(self.stream.clone())
        } else {
            Model::Event(self.event.clone())
        }
    }

    fn wait_for(&self, user: &Model) -> Result<(), ()> {
        if self.fails.get() {
            return Err(());
        }
        let world = &self.stream.world;
        match user {
            Model::Held(stream) => {
                let clock = world.clocks.borrow()[stream.index].clone();
                world.join(self.stream.index, &clock);
            }
            Model::Event(event) => match &*event.recorded.borrow() {
                Some(clock) => world.join(self.stream.index, clock),
                // Not recorded: the host waits for everything.
                None => {
                    let streams = world.clocks.borrow().len();
                    (0..streams).for_each(|index| world.finish(index));
                }
            },
        }
        Ok(())
    }
}

/// A use that was enqueued.
#[derive(Clone, Debug)]
struct Op {
    stream: usize,
    seq: usize,
    range: Range<usize>,
    writes: bool,
}

/// One thread's doings within a borrow: uses of one range, one after another.
struct Lane {
    access: Access,
    left: usize,
    flight: Option<Launch>,
}

struct Program {
    seed: u64,
    random: u64,
    world: Rc<World>,
    /// With whether it can be held.
    streams: Vec<(Rc<Stream>, bool)>,
    log: Vec<Op>,
}

impl Program {
    fn new(seed: u64) -> Program {
        Program {
            seed,
            random: seed,
            world: Rc::new(World::default()),
            streams: Vec::new(),
            log: Vec::new(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }

    fn run(&mut self, steps: usize) {
        let unheld = self.below(3) == 0;
        for index in 0..4 {
            let stream = self.world.stream();
            self.streams.push((stream, !(unheld && index == 3)));
        }
        if self.below(2) == 0 {
            let alias = self.world.alias(&self.streams[1].0);
            self.streams.push((alias, true));
        }
        let owner = self.streams[0].0.clone();
        self.enqueue(&owner, &(0..BYTES), true);
        let uses = Uses::new(Model::Held(owner.clone()), Some(owner.handle), BYTES);
        for _ in 0..steps {
            match self.below(4) {
                0 => {
                    let lane = self.lane(write(0..BYTES));
                    self.play(&uses, vec![lane]);
                }
                1 => {
                    let range = self.range(0..BYTES);
                    let lane = self.lane(write(range));
                    self.play(&uses, vec![lane]);
                }
                2 => {
                    let lanes = (0..=self.below(3))
                        .map(|_| {
                            let range = self.range(0..BYTES);
                            self.lane(read(range))
                        })
                        .collect();
                    self.play(&uses, lanes);
                }
                _ => {
                    uses.split();
                    let middle = self.below(BYTES + 1);
                    let mut lanes = Vec::new();
                    for half in [0..middle, middle..BYTES] {
                        if self.below(2) == 0 {
                            lanes.push(self.lane(part(half, true)));
                        } else {
                            let range = self.range(half.clone());
                            lanes.push(self.lane(part(range, false)));
                            lanes.push(self.lane(part(half, false)));
                        }
                    }
                    self.play(&uses, lanes);
                }
            }
        }
        // The drop is a write.
        let lane = self.lane(write(0..BYTES));
        self.play(&uses, vec![lane]);
    }

    fn range(&mut self, within: Range<usize>) -> Range<usize> {
        let start = within.start + self.below(within.len() + 1);
        let end = start + self.below(within.end - start + 1);
        start..end
    }

    fn lane(&mut self, access: Access) -> Lane {
        Lane {
            access,
            left: 1 + self.below(3),
            flight: None,
        }
    }

    /// Plays the lanes to their ends, in a random order of steps.
    fn play(&mut self, uses: &Uses<Model>, mut lanes: Vec<Lane>) {
        while !lanes.is_empty() {
            let at = self.below(lanes.len());
            let lane = &mut lanes[at];
            match lane.flight.take() {
                Some(launch) => {
                    let access = lane.access.clone();
                    lane.left -= 1;
                    if lane.left == 0 {
                        lanes.swap_remove(at);
                    }
                    self.enqueue(&launch.stream, &access.range, access.writes);
                    // A guard may be forgotten.
                    if self.below(8) != 0 {
                        let clock = self.world.clocks.borrow()[launch.stream.index].clone();
                        *launch.event.recorded.borrow_mut() = Some(clock);
                    }
                }
                None => {
                    let access = lane.access.clone();
                    lanes[at].flight = self.acquire(uses, &access);
                }
            }
            self.meanwhile(&lanes);
        }
    }

    fn acquire(&mut self, uses: &Uses<Model>, access: &Access) -> Option<Launch> {
        let at = self.below(self.streams.len());
        let (stream, held) = self.streams[at].clone();
        let launch = Launch::new(&stream, held, &self.world);
        launch.fails.set(self.below(16) == 0);
        let handle = stream.handle;
        let unnoted = if access.writes {
            uses.is_solo(handle)
        } else {
            uses.may_read(handle)
        };
        if unnoted {
            return Some(launch);
        }
        uses.enter(&launch, access, BYTES).is_ok().then_some(launch)
    }

    /// What happens beside: the device works, streams come and go.
    fn meanwhile(&mut self, lanes: &[Lane]) {
        let at = self.below(self.streams.len());
        let (stream, held) = self.streams[at].clone();
        match self.below(12) {
            0 => self.world.finish(stream.index),
            1 => {
                let flying = |lane: &Lane| {
                    let launch = lane.flight.as_ref();
                    launch.is_some_and(|launch| Rc::ptr_eq(&launch.stream, &stream))
                };
                if held && !lanes.iter().any(flying) {
                    stream.lent.set(false);
                    drop(stream);
                    self.streams.swap_remove(at);
                    let stream = self.world.stream();
                    self.streams.push((stream, true));
                }
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, stream: &Rc<Stream>, range: &Range<usize>, writes: bool) {
        let clock = self.world.clocks.borrow()[stream.index].clone();
        for op in &self.log {
            let conflict = (op.writes || writes)
                && op.range.start < range.end
                && range.start < op.range.end
                && op.range.start < op.range.end
                && range.start < range.end;
            let done = self.world.done.borrow()[op.stream] >= op.seq;
            assert!(
                !conflict || done || clock[op.stream] >= op.seq,
                "seed {}: a use of {range:?} (writes: {writes}) on stream {} is not after {op:?}",
                self.seed,
                stream.index,
            );
        }
        let mut clocks = self.world.clocks.borrow_mut();
        let seq = &mut clocks[stream.index][stream.index];
        *seq += 1;
        self.log.push(Op {
            stream: stream.index,
            seq: *seq,
            range: range.clone(),
            writes,
        });
    }
}
