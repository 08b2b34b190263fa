//! Random programs of graphs, launches, updates, drops and streams, compared with the same program
//! on the host, one step after another.

use std::{env, sync::Arc};

use gridcall::{
    Buffer, Graph, GraphErrorKind, GraphExec, GraphSliceMut, Node, cover,
    cudarc::driver::{CudaContext, CudaStream},
};

use crate::{
    kernels::{fill, saxpy, scale, slow_add, slow_copy},
    random::Random,
};

/// Elements of an array.
const N: usize = 2048;
const HALF: usize = N / 2;

#[test]
fn random_programs_compute_what_the_host_computes() {
    let device = device!(alone);
    let programs = env::var("GRIDCALL_TEST_PROGRAMS").map_or(20, |n| n.parse().unwrap());
    for seed in 0..programs {
        Program::new(&device, seed).run(20);
    }
}

type Model = Vec<f32>;

struct Program {
    seed: u64,
    random: Random,
    context: Arc<CudaContext>,
    streams: Vec<Arc<CudaStream>>,
    /// Outside of the graphs, each with what it must hold.
    arrays: Vec<(Buffer<f32>, Model)>,
}

/// A node as the host runs it, on arrays of the graph by their numbers: the first are the graph's own.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add {
        to: Part,
        v: f32,
        cycles: i64,
    },
    Saxpy {
        from: Part,
        to: Part,
        a: f32,
    },
    Copy {
        from: Part,
        to: Part,
        cycles: i64,
    },
    Scale {
        to: Part,
        a: f32,
    },
    Memcpy {
        from: Part,
        to: Part,
    },
    Memset {
        to: Part,
        v: f32,
    },
    /// Covers nothing.
    Nothing {
        to: Part,
    },
}

/// A half of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    array: usize,
    half: usize,
}

enum Added {
    Add(Node<slow_add>),
    Saxpy(Node<saxpy>),
    Copy(Node<slow_copy>),
    Scale(Node<scale>),
    Fill(Node<fill>),
    Other,
}

/// Arrays of a graph.
const OWNED: usize = 3;
const LENT: usize = 2;

struct Built<'a> {
    graph: GraphExec<'a>,
    tokens: Vec<GraphSliceMut<f32>>,
    steps: Vec<Step>,
    nodes: Vec<Added>,
    /// What the arrays must hold.
    models: Vec<Model>,
}

fn part(tokens: &[GraphSliceMut<f32>], part: Part) -> GraphSliceMut<f32> {
    let start = part.half * HALF;
    tokens[part.array].slice_mut(start..start + HALF).unwrap()
}

fn run(step: Step, models: &mut [Model]) {
    let half = |models: &[Model], part: Part| -> Model {
        models[part.array][part.half * HALF..][..HALF].to_vec()
    };
    let (Step::Add { to, .. }
    | Step::Saxpy { to, .. }
    | Step::Copy { to, .. }
    | Step::Scale { to, .. }
    | Step::Memcpy { to, .. }
    | Step::Memset { to, .. }
    | Step::Nothing { to }) = step;
    let mut now = half(models, to);
    match step {
        Step::Add { v, .. } => now.iter_mut().for_each(|y| *y += v),
        Step::Saxpy { from, a, .. } => {
            let from = half(models, from);
            now.iter_mut().zip(from).for_each(|(y, x)| *y += a * x);
        }
        Step::Copy { from, .. } | Step::Memcpy { from, .. } => now = half(models, from),
        Step::Scale { a, .. } => now.iter_mut().for_each(|y| *y *= a),
        Step::Memset { v, .. } => now.fill(v),
        Step::Nothing { .. } => {}
    }
    models[to.array][to.half * HALF..][..HALF].copy_from_slice(&now);
}

impl Program {
    fn new(context: &Arc<CudaContext>, seed: u64) -> Program {
        let mut program = Program {
            seed,
            random: Random::new(seed),
            context: context.clone(),
            streams: Vec::new(),
            arrays: Vec::new(),
        };
        for _ in 0..3 {
            program.streams.push(context.new_stream().unwrap());
        }
        program.streams.push(context.default_stream());
        if program.below(2) == 0 {
            program.streams.push(context.per_thread_stream());
        }
        for _ in 0..=LENT {
            let array = program.make();
            program.arrays.push(array);
        }
        program
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn stream(&mut self) -> Arc<CudaStream> {
        let at = self.below(self.streams.len());
        self.streams[at].clone()
    }

    /// A small whole number: sums and products of a few are exact.
    fn number(&mut self) -> f32 {
        f32::from(u8::try_from(self.below(3)).unwrap())
    }

    fn cycles(&mut self) -> i64 {
        [0, 1_000, 50_000, 400_000][self.below(4)]
    }

    fn part(&mut self) -> Part {
        Part {
            array: self.below(OWNED + LENT),
            half: self.below(2),
        }
    }

    fn make(&mut self) -> (Buffer<f32>, Model) {
        let (stream, other) = (self.stream(), self.stream());
        let value = self.number();
        let mut buffer = Buffer::<f32>::zeroed(&stream, N).unwrap();
        slow_add(&other, cover(N), &mut buffer, value, 10_000).unwrap();
        (buffer, vec![value; N])
    }

    fn step(&mut self) -> Step {
        let (to, from) = (self.part(), self.part());
        let (a, cycles) = (self.number(), self.cycles());
        match self.below(8) {
            0 | 1 => Step::Add { to, v: a, cycles },
            2 if from != to => Step::Saxpy { from, to, a },
            3 if from != to => Step::Copy { from, to, cycles },
            4 => Step::Scale { to, a: a / 2.0 },
            5 if from != to => Step::Memcpy { from, to },
            6 => Step::Nothing { to },
            _ => Step::Memset { to, v: a },
        }
    }

    fn run(mut self, rounds: usize) {
        for _ in 0..rounds {
            let mut arrays = std::mem::take(&mut self.arrays);
            self.graph(&mut arrays);
            for (buffer, model) in &mut arrays {
                match self.below(4) {
                    0 => self.compare(&buffer.to_vec().unwrap(), model),
                    // Right after the graph, by others.
                    1 => {
                        let (stream, v) = (self.stream(), self.number());
                        slow_add(&stream, cover(N), buffer, v, 1_000).unwrap();
                        for y in model.iter_mut() {
                            *y += v;
                        }
                    }
                    // Dropped, while the graph may use it.
                    2 => (*buffer, *model) = self.make(),
                    _ => {}
                }
                // Numbers stay exact.
                if model.iter().any(|y| *y > 10_000.0) {
                    let stream = self.stream();
                    fill(&stream, cover(N), buffer, 1.0, 2048).unwrap();
                    model.fill(1.0);
                }
            }
            self.arrays = arrays;
        }
        for (buffer, model) in &self.arrays {
            self.compare(&buffer.to_vec().unwrap(), model);
        }
    }

    fn compare(&self, found: &[f32], model: &[f32]) {
        let seed = self.seed;
        if let Some(i) = (0..N).find(|&i| found[i] != model[i]) {
            panic!("seed {seed}: element {i} is {}, not {}", found[i], model[i]);
        }
    }

    /// Builds a graph over the arrays, launches it a few times, and lets go of it.
    fn graph(&mut self, arrays: &mut [(Buffer<f32>, Model)]) {
        let models = self.launch_graph(arrays);
        for ((_, model), new) in arrays.iter_mut().zip(models) {
            *model = new;
        }
    }

    /// Returns what the arrays must hold afterwards.
    fn launch_graph(&mut self, arrays: &mut [(Buffer<f32>, Model)]) -> Vec<Model> {
        let mut built = self.build(arrays);
        for _ in 0..self.below(4) {
            if self.below(3) == 0 {
                self.update(&mut built);
            }
            let stream = self.stream();
            built.graph.launch(&stream).unwrap();
            for &step in &built.steps {
                run(step, &mut built.models);
            }
            match self.below(4) {
                0 => {
                    let at = self.below(OWNED);
                    let found = built.graph.slice(built.tokens[at]).unwrap();
                    let found = found.to_vec().unwrap();
                    self.compare(&found, &built.models[at]);
                }
                1 => {
                    let (stream, at, v) = (self.stream(), self.below(OWNED), self.number());
                    let token = built.tokens[at].slice_mut(..HALF).unwrap();
                    let mut half = built.graph.slice_mut(token).unwrap();
                    slow_add(&stream, (4, 256), &mut half, v, 1_000).unwrap();
                    built.models[at][..HALF].iter_mut().for_each(|y| *y += v);
                }
                // The user's last handle of a stream that may have work pending.
                2 => {
                    let at = self.below(3);
                    self.streams[at] = self.context.new_stream().unwrap();
                }
                _ => {}
            }
        }
        let Built {
            graph,
            tokens,
            mut models,
            ..
        } = built;
        if self.below(2) == 0 {
            let mut buffers = graph.into_buffers();
            for at in 0..OWNED {
                let buffer = buffers.take(tokens[at]).unwrap();
                self.compare(&buffer.to_vec().unwrap(), &models[at]);
            }
        } else {
            drop(graph);
        }
        models.split_off(OWNED)
    }

    fn build<'a>(&mut self, arrays: &'a mut [(Buffer<f32>, Model)]) -> Built<'a> {
        let mut graph = Graph::new(&self.context).unwrap();
        let (mut tokens, mut models) = (Vec::new(), Vec::new());
        for _ in 0..OWNED {
            let (buffer, model) = self.make();
            tokens.push(graph.own(buffer).unwrap());
            models.push(model);
        }
        for (buffer, model) in &mut arrays[..LENT] {
            tokens.push(graph.write(buffer).unwrap());
            models.push(model.clone());
        }
        let steps: Vec<_> = (0..=self.below(10)).map(|_| self.step()).collect();
        let mut nodes = Vec::new();
        // Some of them as a capture.
        let captured = self.below(2 * steps.len());
        for (index, &step) in steps.iter().enumerate() {
            let at = self.below(3);
            let stream = self.streams[at].clone();
            if index == captured {
                let record = |capture: &mut gridcall::Capture<'_, '_>| {
                    Ok::<_, Box<dyn std::error::Error>>(match step {
                        Step::Memcpy { from, to } => {
                            let from = capture.slice(part(&tokens, from))?;
                            let mut to = capture.slice_mut(part(&tokens, to))?;
                            stream.memcpy_dtod(&from, &mut to)?;
                            Some(Added::Other)
                        }
                        Step::Add { to, v, cycles } => {
                            let y = &mut part(&tokens, to);
                            let node = capture.launch((4, 256), slow_add { y, v, cycles })?;
                            Some(Added::Add(node))
                        }
                        _ => None,
                    })
                };
                // SAFETY: all that is enqueued uses arrays of the graph.
                if let Some(added) = unsafe { graph.capture(&stream, record) }.unwrap() {
                    nodes.push(added);
                    continue;
                }
            }
            nodes.push(add(&mut graph, &tokens, step));
        }
        // An edge more, between nodes that may have one already.
        if self.below(4) == 0
            && let [Added::Add(first), .., Added::Add(last)] = &nodes[..]
        {
            graph.order(*first, *last).unwrap();
        }
        let graph = graph.instantiate().unwrap();
        Built {
            graph,
            tokens,
            steps,
            nodes,
            models,
        }
    }

    /// Another step of the same kernel, unless it would race.
    fn update(&mut self, built: &mut Built<'_>) {
        let at = self.below(built.nodes.len());
        let (to, from) = (self.part(), self.part());
        let (a, cycles) = (self.number(), self.cycles());
        let (graph, tokens) = (&mut built.graph, &built.tokens);
        let y = &mut part(tokens, to);
        let x = &part(tokens, from);
        let (updated, step) = match built.nodes[at] {
            Added::Add(node) => (
                graph.update(node, (4, 256), slow_add { y, v: a, cycles }),
                Step::Add { to, v: a, cycles },
            ),
            Added::Saxpy(node) if from != to => (
                graph.update(node, cover(HALF), saxpy { n: 1024, a, x, y }),
                Step::Saxpy { from, to, a },
            ),
            Added::Copy(node) if from != to => (
                graph.update(
                    node,
                    cover(HALF),
                    slow_copy {
                        x,
                        y,
                        n: 1024,
                        cycles,
                    },
                ),
                Step::Copy { from, to, cycles },
            ),
            Added::Scale(node) => (
                graph.update(node, cover(HALF), scale { y, a, n: 1024 }),
                Step::Scale { to, a },
            ),
            Added::Fill(node) => (
                graph.update(node, cover(HALF), fill { y, v: a, n: 1024 }),
                Step::Memset { to, v: a },
            ),
            _ => return,
        };
        match updated {
            Ok(()) => built.steps[at] = step,
            Err(error) => assert!(
                matches!(error.kind(), GraphErrorKind::Unordered { .. }),
                "{error}"
            ),
        }
    }
}

fn add(graph: &mut Graph<'_>, tokens: &[GraphSliceMut<f32>], step: Step) -> Added {
    let at = |of| part(tokens, of);
    match step {
        Step::Add { to, v, cycles } => {
            let y = &mut at(to);
            Added::Add(graph.add((4, 256), slow_add { y, v, cycles }).unwrap())
        }
        Step::Saxpy { from, to, a } => {
            let (x, y) = (&at(from), &mut at(to));
            Added::Saxpy(graph.add(cover(HALF), saxpy { n: 1024, a, x, y }).unwrap())
        }
        Step::Copy { from, to, cycles } => {
            let (x, y) = (&at(from), &mut at(to));
            let arguments = slow_copy {
                x,
                y,
                n: 1024,
                cycles,
            };
            Added::Copy(graph.add(cover(HALF), arguments).unwrap())
        }
        Step::Scale { to, a } => {
            let y = &mut at(to);
            Added::Scale(graph.add(cover(HALF), scale { y, a, n: 1024 }).unwrap())
        }
        Step::Memcpy { from, to } => {
            graph.copy(at(from), at(to)).unwrap();
            Added::Other
        }
        Step::Memset { to, v } => {
            graph.fill(at(to), v).unwrap();
            Added::Other
        }
        Step::Nothing { to } => {
            let y = &mut at(to);
            Added::Fill(
                graph
                    .add(
                        cover(0),
                        fill {
                            y,
                            v: 77.0,
                            n: 1024,
                        },
                    )
                    .unwrap(),
            )
        }
    }
}
