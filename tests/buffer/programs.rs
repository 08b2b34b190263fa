//! Random programs of launches, copies, splits, drops, threads and streams, compared with the
//! same program on the host, one step after another.

use std::{env, sync::Arc, thread};

use gridcall::{
    Buffer, Pinned, after, cover,
    cudarc::driver::{CudaContext, CudaStream},
};

use crate::{
    kernels::{copy, fill, saxpy, scale, slow_add, slow_copy},
    random::Random,
};

/// Elements of a buffer: a whole number of blocks of 256.
const N: usize = 2048;
const HALF: usize = N / 2;

#[test]
fn random_programs_compute_what_the_host_computes() {
    let device = device!();
    let programs = env::var("GRIDCALL_TEST_PROGRAMS").map_or(20, |n| n.parse().unwrap());
    for seed in 0..programs {
        Program::new(&device, seed).run(80);
    }
}

struct Program {
    seed: u64,
    random: Random,
    context: Arc<CudaContext>,
    streams: Vec<Arc<CudaStream>>,
    /// Each with what it must hold.
    arrays: Vec<(Buffer<f32>, Vec<f32>)>,
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
        for _ in 0..4 {
            program.make();
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
        f32::from(u8::try_from(self.below(4)).unwrap())
    }

    fn cycles(&mut self) -> i64 {
        [0, 1_000, 50_000, 400_000][self.below(4)]
    }

    fn make(&mut self) {
        let stream = self.stream();
        let value = self.number();
        let mut buffer = match self.below(2) {
            0 => Buffer::<f32>::zeroed(&stream, N).unwrap(),
            _ => Buffer::from_slice(&stream, &[9.0; N]).unwrap(),
        };
        fill(&stream, cover(N), &mut buffer, value, 2048).unwrap();
        self.arrays.push((buffer, vec![value; N]));
    }

    fn run(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        for at in 0..self.arrays.len() {
            self.compare(at);
        }
    }

    fn compare(&mut self, at: usize) {
        let seed = self.seed;
        let (buffer, model) = &self.arrays[at];
        let found = buffer.to_vec().unwrap();
        if let Some(i) = (0..N).find(|&i| found[i] != model[i]) {
            panic!(
                "seed {seed}: array {at}[{i}] is {}, not {}",
                found[i], model[i]
            );
        }
    }

    fn step(&mut self) {
        let at = self.below(self.arrays.len());
        // Numbers stay exact.
        if self.arrays[at].1.iter().any(|x| *x > 100_000.0) {
            let stream = self.stream();
            fill(&stream, cover(N), &mut self.arrays[at].0, 1.0, 2048).unwrap();
            self.arrays[at].1.fill(1.0);
        }
        match self.below(16) {
            0 | 1 => self.add(at),
            2 | 3 => self.binary(at),
            4 => self.scale_part(at),
            5 | 6 => self.halves(at),
            7 => self.readers(at),
            8 => self.compare(at),
            9 => {
                self.arrays.swap_remove(at);
                self.make();
            }
            10 => {
                // The user's last handle of a stream that may have work pending.
                let at = self.below(3);
                self.streams[at] = self.context.new_stream().unwrap();
            }
            11 => self.by_cudarc(at),
            12 => self.upload(at),
            13 => self.cloned(at),
            14 => self.awaited(at),
            _ => self.on_a_thread(at),
        }
    }

    fn add(&mut self, at: usize) {
        let (stream, value, cycles) = (self.stream(), self.number(), self.cycles());
        let (buffer, model) = &mut self.arrays[at];
        slow_add(&stream, (8, 256), buffer, value, cycles).unwrap();
        add_all(model, value);
    }

    /// From another array.
    fn binary(&mut self, at: usize) {
        let (stream, a, cycles) = (self.stream(), self.number(), self.cycles());
        let copies = self.below(2) == 0;
        let (from, others) = self.arrays.split_last_mut().unwrap();
        let Some((buffer, model)) = others.get_mut(at) else {
            return;
        };
        if copies {
            slow_copy(&stream, cover(N), &from.0, buffer, 2048, cycles).unwrap();
            model.clone_from(&from.1);
        } else {
            saxpy(&stream, cover(N), 2048, a, &from.0, buffer).unwrap();
            model.iter_mut().zip(&from.1).for_each(|(y, x)| *y += a * x);
        }
    }

    fn scale_part(&mut self, at: usize) {
        let (stream, a) = (self.stream(), self.number());
        let start = self.below(N);
        let end = start + self.below(N - start + 1);
        let (buffer, model) = &mut self.arrays[at];
        let n = i32::try_from(end - start).unwrap();
        let mut part = buffer.slice_mut(start..end).unwrap();
        scale(&stream, cover(end - start), &mut part, a, n).unwrap();
        model[start..end].iter_mut().for_each(|x| *x *= a);
    }

    /// Two threads, each with a half and a stream.
    fn halves(&mut self, at: usize) {
        let work = [(); 2].map(|()| (self.stream(), self.number(), self.cycles()));
        let (buffer, model) = &mut self.arrays[at];
        let (head, tail) = buffer.split_at_mut(HALF).unwrap();
        thread::scope(|scope| {
            for (mut half, (stream, value, cycles)) in [head, tail].into_iter().zip(&work) {
                scope.spawn(move || {
                    for _ in 0..2 {
                        slow_add(stream, (4, 256), &mut half, *value, *cycles).unwrap();
                        scale(stream, cover(HALF), &mut half, 1.0, 1024).unwrap();
                    }
                });
            }
        });
        for (half, (_, value, _)) in model.chunks_mut(HALF).zip(&work) {
            add_all(half, 2.0 * value);
        }
    }

    /// Several threads read it at once, and write what they own.
    fn readers(&mut self, at: usize) {
        let work: Vec<_> = (0..3).map(|_| (self.stream(), self.cycles())).collect();
        let (x, model) = &self.arrays[at];
        let seed = self.seed;
        thread::scope(|scope| {
            for (stream, cycles) in &work {
                scope.spawn(move || {
                    let mut out = Buffer::<f32>::zeroed(stream, N).unwrap();
                    slow_copy(stream, cover(N), x, &mut out, 2048, *cycles).unwrap();
                    assert_eq!(out.to_vec().unwrap(), *model, "seed {seed}");
                });
            }
        });
    }

    fn by_cudarc(&mut self, at: usize) {
        let stream = self.stream();
        let seed = self.seed;
        let (buffer, model) = &mut self.arrays[at];
        let slice = stream.clone_dtod(&*buffer).unwrap();
        stream
            .memset_zeros(&mut buffer.slice_mut(..HALF).unwrap())
            .unwrap();
        assert_eq!(stream.clone_dtoh(&slice).unwrap(), *model, "seed {seed}");
        model[..HALF].fill(0.0);
    }

    fn upload(&mut self, at: usize) {
        let (stream, other, value) = (self.stream(), self.stream(), self.number());
        let seed = self.seed;
        let pinned = Pinned::from_slice(&self.context, &[value; N]).unwrap();
        let (buffer, model) = &mut self.arrays[at];
        drop(buffer.upload(&stream, pinned).unwrap());
        model.fill(value);
        let to = Pinned::zeroed(&self.context, N).unwrap();
        let down = buffer.download(&other, to).unwrap();
        assert_eq!(
            **pollster::block_on(down).as_ref().unwrap(),
            **model,
            "seed {seed}"
        );
    }

    /// The copy takes the place of the original, which is dropped at once.
    fn cloned(&mut self, at: usize) {
        let (stream, other) = (self.stream(), self.stream());
        let (buffer, _) = &mut self.arrays[at];
        let mut clone = buffer.clone_to(&stream).unwrap();
        clone.resize(&other, N + 100).unwrap();
        clone.resize(&stream, N).unwrap();
        *buffer = clone;
    }

    fn awaited(&mut self, at: usize) {
        let stream = self.stream();
        let (buffer, model) = self.arrays.swap_remove(at);
        let (buffer, model) = match self.below(2) {
            0 => after(&stream, (buffer, model)).unwrap().wait().unwrap(),
            _ => pollster::block_on(after(&stream, (buffer, model)).unwrap()).unwrap(),
        };
        self.arrays.push((buffer, model));
    }

    fn on_a_thread(&mut self, at: usize) {
        let (stream, value, cycles) = (self.stream(), self.number(), self.cycles());
        let (mut buffer, mut model) = self.arrays.swap_remove(at);
        let context = self.context.clone();
        let array = thread::spawn(move || {
            slow_add(&stream, (8, 256), &mut buffer, value, cycles).unwrap();
            let fresh = context.new_stream().unwrap();
            let mut other = Buffer::<f32>::zeroed(&fresh, N).unwrap();
            copy(&fresh, cover(N), &buffer, &mut other, 2048).unwrap();
            add_all(&mut model, value);
            (other, model)
        });
        self.arrays.push(array.join().unwrap());
    }
}

fn add_all(numbers: &mut [f32], value: f32) {
    for number in numbers {
        *number += value;
    }
}
