//! Kernels as compilers made them, run and compared with the same computation in Rust: every compiler's
//! version, in the plain order and in seeded ones, without a report.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    clippy::many_single_char_names,
    clippy::match_same_arms,
    clippy::similar_names,
    clippy::too_many_lines,
    reason = "the values of a test are small, and wanted exactly"
)]

mod support;

use std::sync::Arc;

use gridcall_emulator::exec::{Launch, Order, Program};
use support::{Memory, Params, launch, lower, run};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ptx/tests/corpus");

/// Every compiler's version of a source, by file name.
fn programs(source: &str) -> Vec<(String, Arc<Program>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(CORPUS).expect("the corpus of the reader") {
        let path = entry.expect("a file").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name.split('.').next() == Some(source) {
            let text = std::fs::read_to_string(&path).expect("a text");
            found.push((name, lower(&text)));
        }
    }
    assert!(!found.is_empty(), "a file for {source}");
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

const ORDERS: [Order; 3] = [Order::Deterministic, Order::Seeded(1), Order::Seeded(2)];

/// Runs the test for every version and order.
fn each(source: &str, test: impl Fn(&str, &Arc<Program>, Order)) {
    for (name, program) in programs(source) {
        for order in ORDERS {
            test(&name, &program, order);
        }
    }
}

fn must_run(name: &str, memory: &mut Memory, launch: Launch) {
    if let Err(fault) = run(memory, launch) {
        panic!("{name}: {fault}");
    }
}

fn numbers(count: usize, scale: f32) -> Vec<f32> {
    (0..count)
        .map(|at| ((at * 7919 % 1000) as f32 - 500.0) * scale)
        .collect()
}

fn near(name: &str, got: &[f32], wanted: &[f32], limit: f32) {
    assert_eq!(got.len(), wanted.len(), "{name}");
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!(
            (got - wanted).abs() <= limit * wanted.abs().max(1.0),
            "{name}: {at}: {got}, not {wanted}"
        );
    }
}

#[test]
fn axpy() {
    let n = 1000;
    let (x, y) = (numbers(n, 0.5), numbers(n, 0.25));
    each("axpy", |name, program, order| {
        let mut memory = Memory::new();
        let (dx, dy) = (memory.hold_f32(&x), memory.hold_f32(&y));
        let params = Params::new().f32(3.0).u64(dx).u64(dy).u64(n as u64).done();
        let launch = Launch {
            grid: [4, 1, 1],
            block: [256, 1, 1],
            order,
            ..launch(program, "axpy", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let wanted: Vec<f32> = x
            .iter()
            .zip(&y)
            .map(|(x, y)| 3.0_f32.mul_add(*x, *y))
            .collect();
        assert_eq!(memory.f32s(dy), wanted, "{name}");
    });
}

#[test]
fn bounds_and_clusters() {
    each("bounds_cluster", |name, program, order| {
        for kernel in program.kernels() {
            let mut memory = Memory::new();
            let out = memory.allocate(4 * 64);
            let cluster = kernel.required_cluster.unwrap_or([1, 1, 1]);
            let params = Params::new().u64(out).done();
            let launch = Launch {
                grid: cluster,
                block: [64, 1, 1],
                cluster,
                order,
                ..launch(program, &kernel.name, params, vec![])
            };
            must_run(name, &mut memory, launch);
            let wanted = if kernel.name == "maxnreg32" { 2.0 } else { 1.0 };
            assert_eq!(memory.f32s(out), vec![wanted; 64], "{name} {}", kernel.name);
        }
        let bounds = &program.kernels()[program.kernel("bounds2").unwrap()];
        assert_eq!(bounds.max_threads, Some(256), "{name}");
    });
}

#[test]
fn constants_and_globals() {
    let n = 100;
    let x = numbers(n, 0.01);
    let coefficients = [0.5_f32, -1.0, 2.0, 0.25, 1.5];
    each("const_symbol", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let at = |wanted: &str| {
            program
                .variables()
                .iter()
                .position(|v| v.name == wanted)
                .unwrap()
        };
        let coeffs = symbols[at("coeffs")];
        let bytes: Vec<u8> = coefficients.iter().flat_map(|c| c.to_le_bytes()).collect();
        memory
            .allocations
            .iter_mut()
            .find(|a| a.start == coeffs)
            .unwrap()
            .bytes
            .copy_from_slice(&bytes);
        let (dx, dy) = (memory.hold_f32(&x), memory.allocate(4 * n));
        let counter = symbols[at("counter")];
        let params = Params::new().u64(dx).u64(dy).u32(n as u32).done();
        let launch = Launch {
            grid: [4, 1, 1],
            block: [32, 1, 1],
            order,
            ..launch(program, "conv1d", params, symbols)
        };
        must_run(name, &mut memory, launch);
        let mut negative = 7;
        let wanted: Vec<f32> = (0..n as i32)
            .map(|i| {
                let mut a = 0.0_f32;
                for k in -2..=2 {
                    let j = (i + k).max(0).min(n as i32 - 1);
                    a = coefficients[(k + 2) as usize].mul_add(x[j as usize], a);
                }
                negative += u32::from(a < 0.0);
                a * [1.0, 2.0, 4.0, 8.0][(i & 3) as usize]
            })
            .collect();
        near(name, &memory.f32s(dy), &wanted, 1e-6);
        assert_eq!(memory.u32s(counter), [negative], "{name}");
    });
}

#[test]
fn grid_wide_barriers() {
    let (n, iterations) = (96, 5);
    let start = numbers(2 * n, 1.0);
    each("coop_grid", |name, program, order| {
        if program.kernel("coop_grid").is_none() {
            return;
        }
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let buffer = memory.hold_f32(&start);
        let workspace = memory.hold(vec![0; 256]);
        let params = Params::new()
            .u64(buffer)
            .u32(n as u32)
            .u32(iterations)
            .done();
        let launch = Launch {
            grid: [4, 1, 1],
            block: [32, 1, 1],
            cooperative: true,
            workspace,
            order,
            ..launch(program, "coop_grid", params, symbols)
        };
        must_run(name, &mut memory, launch);
        let mut wanted = start.clone();
        for k in 0..iterations as usize {
            let (to, from) = if k & 1 == 1 { (0, n) } else { (n, 0) };
            for i in 0..n {
                wanted[to + i] = 0.5 * wanted[from + (i + 1) % n];
            }
        }
        assert_eq!(memory.f32s(buffer), wanted, "{name}");
    });
    let x: Vec<u32> = (0..64).map(|at| at * 37 % 101).collect();
    each("coop_grid", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let (dx, out) = (memory.hold_u32(&x), memory.allocate(4 * 8));
        let params = Params::new().u64(dx).u64(out).done();
        let Some(_) = program.kernel("coop_tile") else {
            return;
        };
        let launch = Launch {
            block: [64, 1, 1],
            order,
            ..launch(program, "coop_tile", params, symbols)
        };
        must_run(name, &mut memory, launch);
        let wanted: Vec<u32> = x
            .chunks(8)
            .map(|tile| {
                let mut v = tile.to_vec();
                for o in [4, 2, 1] {
                    let before = v.clone();
                    for lane in 0..8 {
                        v[lane] += before[if lane + o < 8 { lane + o } else { lane }];
                    }
                }
                // Only the leader votes: the others have ended.
                v[0] + (v[0] & 1)
            })
            .collect();
        assert_eq!(memory.u32s(out), wanted, "{name}");
    });
}

fn fibonacci(n: u32) -> u32 {
    if n < 2 {
        n
    } else {
        fibonacci(n - 1) + fibonacci(n - 2)
    }
}

#[test]
fn calls() {
    let n: Vec<u32> = (0..32).map(|at| at * 5 % 12).collect();
    each("device_call", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let (dn, out) = (memory.hold_u32(&n), memory.allocate(4 * 32));
        let params = Params::new().u64(dn).u64(out).done();
        let call = Launch {
            order,
            ..launch(program, "call_fib", params, symbols.clone())
        };
        must_run(name, &mut memory, call);
        let wanted: Vec<u32> = n.iter().map(|n| fibonacci(*n)).collect();
        assert_eq!(memory.u32s(out), wanted, "{name}");
        for which in [0, 1] {
            let (a, b) = (numbers(32, 0.5), numbers(32, 0.125));
            let (da, db) = (memory.hold_f32(&a), memory.hold_f32(&b));
            let params = Params::new().u32(which).u64(da).u64(db).done();
            let call = Launch {
                order,
                ..launch(program, "call_indirect", params, symbols.clone())
            };
            must_run(name, &mut memory, call);
            let op = |a: f32, b: f32| if which == 1 { a + b } else { a * b };
            let wanted: Vec<f32> = a.iter().zip(&b).map(|(a, b)| op(*a, *b)).collect();
            assert_eq!(memory.f32s(db), wanted, "{name} {which}");
        }
        let index: Vec<u32> = (0..32)
            .map(|at| if at == 1 { 9 } else { at * 3 % 17 })
            .collect();
        let (di, out) = (memory.hold_u32(&index), memory.allocate(4 * 32));
        let params = Params::new().u64(di).u64(out).done();
        let call = Launch {
            order,
            ..launch(program, "local_array", params, symbols)
        };
        must_run(name, &mut memory, call);
        let wanted: Vec<u32> = index
            .iter()
            .map(|at| at & 15)
            .map(|at| at * index[at as usize])
            .collect();
        assert_eq!(memory.u32s(out), wanted, "{name}");
    });
}

#[test]
fn dynamic_shared_memory() {
    let n = 100;
    let input: Vec<u32> = (0..n).map(|at| at * 31 % 57).collect();
    each("dyn_shared", |name, program, order| {
        let mut memory = Memory::new();
        let (from, to) = (memory.hold_u32(&input), memory.allocate(4 * n as usize));
        let params = Params::new().u64(from).u64(to).u32(n).done();
        let launch = Launch {
            block: [128, 1, 1],
            dynamic_shared: 4 * n,
            order,
            ..launch(program, "dyn_shared", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let wanted: Vec<u32> = input
            .iter()
            .scan(0, |sum, value| {
                *sum += value;
                Some(*sum)
            })
            .collect();
        assert_eq!(memory.u32s(to), wanted, "{name}");
    });
}

#[test]
fn printing() {
    let x: Vec<u32> = [5_i32, -3, 7, -8]
        .iter()
        .map(|x| x.cast_unsigned())
        .collect();
    each("gridstride_printf", |name, program, _| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let dx = memory.hold_u32(&x);
        let params = Params::new().u64(dx).u32(4).u32(1).done();
        must_run(
            name,
            &mut memory,
            launch(program, "gridstride_printf", params, symbols),
        );
        let printed = String::from_utf8(memory.printed.clone()).unwrap();
        assert_eq!(
            printed, "negative at 1: -3 (-3.000000)\nnegative at 3: -8 (-8.000000)\n",
            "{name}"
        );
    });
}

/// The bits of a half that is an integer, up to 2048, divided by 64.
fn half(value: i32) -> u16 {
    if value == 0 {
        return 0;
    }
    let sign = u16::from(value < 0) << 15;
    let magnitude = value.unsigned_abs();
    let top = magnitude.ilog2();
    let mantissa = ((magnitude << (10 - top)) & 0x3ff) as u16;
    sign | ((top + 15 - 6) as u16) << 10 | mantissa
}

#[test]
fn halves() {
    let n = 64;
    let ints = |scale: i32| {
        (0..n)
            .map(|at| (at * 5 % 23 - 11) * scale)
            .collect::<Vec<i32>>()
    };
    let (a, b, c) = (ints(1), ints(64), ints(2));
    let bits = |values: &[i32]| {
        values
            .iter()
            .flat_map(|v| half(*v).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    each("half_bf16", |name, program, order| {
        let mut memory = Memory::new();
        let (da, db, dc) = (
            memory.hold(bits(&a)),
            memory.hold(bits(&b)),
            memory.hold(bits(&c)),
        );
        let params = Params::new()
            .u64(da)
            .u64(db)
            .u64(dc)
            .u32(n as u32 / 2)
            .done();
        let pairs = Launch {
            order,
            ..launch(program, "hadd2", params, vec![])
        };
        must_run(name, &mut memory, pairs);
        // a is in units of 1/64, b whole numbers: their product and sum with c are exact.
        let wanted: Vec<i32> = (0..n as usize)
            .map(|at| a[at] * (b[at] / 64) + c[at])
            .collect();
        assert_eq!(memory.bytes_at(dc), bits(&wanted), "{name}");

        let dy = memory.hold(bits(&c));
        let alpha = half(2 * 64).to_le_bytes();
        let params = Params::new()
            .add(&alpha, 2)
            .u64(da)
            .u64(dy)
            .u32(n as u32)
            .done();
        let axpy = Launch {
            block: [64, 1, 1],
            order,
            ..launch(program, "half_axpy", params, vec![])
        };
        must_run(name, &mut memory, axpy);
        let wanted: Vec<i32> = (0..n as usize).map(|at| 2 * a[at] + c[at]).collect();
        assert_eq!(memory.bytes_at(dy), bits(&wanted), "{name}");

        let upper = |value: f32| ((value.to_bits() >> 16) as u16).to_le_bytes();
        let x: Vec<u8> = (0..n).flat_map(|at| upper((at - 20) as f32)).collect();
        let (dx, dy) = (memory.hold(x), memory.allocate(2 * n as usize));
        let params = Params::new().u64(dx).u64(dy).f32(0.5).u32(n as u32).done();
        let scale = Launch {
            block: [64, 1, 1],
            order,
            ..launch(program, "bf16_scale", params, vec![])
        };
        must_run(name, &mut memory, scale);
        let wanted: Vec<u8> = (0..n)
            .flat_map(|at| upper((at - 20) as f32 * 0.5))
            .collect();
        assert_eq!(memory.bytes_at(dy), wanted, "{name}");
    });
}

#[test]
fn histograms() {
    let data: Vec<u8> = (0..5000_u32).map(|at| (at * at % 251) as u8).collect();
    each("histogram", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let (from, bins) = (memory.hold(data.clone()), memory.hold_u32(&[0; 256]));
        let params = Params::new()
            .u64(from)
            .u64(data.len() as u64)
            .u64(bins)
            .done();
        let launch_it = Launch {
            grid: [3, 1, 1],
            block: [128, 1, 1],
            order,
            ..launch(program, "histogram", params, symbols.clone())
        };
        must_run(name, &mut memory, launch_it);
        let mut wanted = vec![0; 256];
        for byte in &data {
            wanted[usize::from(*byte)] += 1;
        }
        assert_eq!(memory.u32s(bins), wanted, "{name}");

        let x: Vec<f32> = (0..200).map(|at| (at * 37 % 199) as f32).collect();
        let (dx, out) = (memory.hold_f32(&x), memory.hold_f32(&[0.0]));
        let params = Params::new().u64(dx).u64(out).u32(200).done();
        let largest = Launch {
            grid: [4, 1, 1],
            block: [64, 1, 1],
            order,
            ..launch(program, "cas_max_f32", params, symbols)
        };
        must_run(name, &mut memory, largest);
        assert_eq!(memory.f32s(out), [198.0], "{name}");
    });
}

#[test]
fn mathematics() {
    let n = 50;
    let x: Vec<f32> = (1..=n).map(|at| at as f32 * 0.37).collect();
    let d: Vec<f64> = (1..=n).map(|at| f64::from(at) * 0.21).collect();
    each("math_mix", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let (dx, dd) = (memory.hold_f32(&x), memory.hold_f64(&d));
        let (y, z) = (
            memory.allocate(4 * n as usize),
            memory.allocate(8 * n as usize),
        );
        let params = Params::new()
            .u64(dx)
            .u64(dd)
            .u64(y)
            .u64(z)
            .u32(n as u32)
            .done();
        let mix = Launch {
            block: [64, 1, 1],
            order,
            ..launch(program, "math_mix", params, symbols.clone())
        };
        must_run(name, &mut memory, mix);
        // The error function, by its series: the arguments are small, or the result is one.
        let erf = |x: f64| {
            if x > 4.5 {
                return 1.0;
            }
            let (mut sum, mut term) = (x, x);
            for k in 1..200 {
                term *= -x * x / f64::from(k);
                sum += term / f64::from(2 * k + 1);
            }
            sum * 2.0 / std::f64::consts::PI.sqrt()
        };
        for (at, got) in memory.f32s(y).iter().enumerate() {
            let v = f64::from(x[at]);
            let wanted = v.sin()
                + v.cos()
                + v.ln()
                + v.powf(1.7)
                + v.tanh()
                + v.sqrt()
                + 1.0 / v.sqrt()
                + v % 3.0
                + v.floor()
                + erf(v);
            assert!(
                (f64::from(*got) - wanted).abs() < 2e-5 * wanted.abs().max(1.0),
                "{name}: {at}: {got}, not {wanted}"
            );
        }
        for (at, got) in memory.f64s(z).iter().enumerate() {
            let w = d[at];
            let wanted = w.sin() + w.exp() + w.ln() + w.sqrt() + w.powf(0.3) + 1.0 / w;
            assert!(
                (got - wanted).abs() < 1e-13 * wanted.abs().max(1.0),
                "{name}: {at}: {got}, not {wanted}"
            );
        }
    });
}

#[test]
fn integers() {
    let n = 64;
    let a: Vec<i32> = (0..n)
        .map(|at: i32| at.wrapping_mul(0x1234_5677) ^ 0x55)
        .collect();
    let b: Vec<u32> = (0..n as u32)
        .map(|at| at.wrapping_mul(0x9e37_79b9))
        .collect();
    each("math_mix", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let unsigned: Vec<u32> = a.iter().map(|a| a.cast_unsigned()).collect();
        let (da, db) = (memory.hold_u32(&unsigned), memory.hold_u32(&b));
        let out = memory.allocate(8 * n as usize);
        let params = Params::new().u64(da).u64(db).u64(out).u32(n as u32).done();
        let mix = Launch {
            block: [64, 1, 1],
            order,
            ..launch(program, "int_mix", params, symbols)
        };
        must_run(name, &mut memory, mix);
        for (at, got) in memory.u64s(out).iter().enumerate() {
            let (x, y) = (a[at], b[at] | 1);
            let ux = x.cast_unsigned();
            // C adds up in the types it has: unsigned from the first unsigned operand on.
            let mut small = 0_u32;
            let mut add = |value: u32| small = small.wrapping_add(value);
            add(y.count_ones());
            add(ux.leading_zeros());
            let wide =
                i64::from(x) / i64::from(y.cast_signed()) + i64::from(x % 7) + i64::from(y % 10);
            let terms: [i64; 10] = [
                i64::from(y.count_ones()),
                i64::from(ux.leading_zeros()),
                i64::from(y.reverse_bits()),
                i64::from(if x == 0 { 0 } else { ux.trailing_zeros() + 1 }),
                (i64::from(x) * 77) >> 32,
                i64::from(((u64::from(y) * u64::from(y)) >> 32) as u32 as i32),
                i64::from(((ux & 0xffff) | y << 16) as i32),
                i64::from((y << 5 | ux >> 27) as i32),
                i64::from(x.abs_diff(3).wrapping_add(1)),
                i64::from(x >> 3),
            ];
            let last = i64::from((y << (ux & 7)) as i32);
            let wanted = wide + terms.iter().sum::<i64>() + last;
            assert_eq!(got.cast_signed(), wanted, "{name}: {at}");
        }
    });
}

#[test]
fn tiled_products() {
    let (m, n, k) = (37, 29, 45);
    let (a, b) = (numbers(m * k, 0.01), numbers(k * n, 0.02));
    each("matmul_tiled", |name, program, order| {
        let mut memory = Memory::new();
        let (da, db) = (memory.hold_f32(&a), memory.hold_f32(&b));
        let dc = memory.allocate(4 * m * n);
        let params = Params::new()
            .u64(da)
            .u64(db)
            .u64(dc)
            .u32(m as u32)
            .u32(n as u32)
            .u32(k as u32)
            .done();
        let launch = Launch {
            grid: [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1],
            block: [16, 16, 1],
            order,
            ..launch(program, "matmul_tiled", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let mut wanted = vec![0.0; m * n];
        for row in 0..m {
            for col in 0..n {
                wanted[row * n + col] = (0..k).fold(0.0_f32, |sum, at| {
                    a[row * k + at].mul_add(b[at * n + col], sum)
                });
            }
        }
        near(name, &memory.f32s(dc), &wanted, 1e-5);
    });
}

#[test]
fn reductions() {
    let n = 3000;
    let x: Vec<f32> = (0..n).map(|at| (at % 17) as f32).collect();
    each("reduce_sum", |name, program, order| {
        let mut memory = Memory::new();
        let (dx, out) = (memory.hold_f32(&x), memory.hold_f32(&[0.0]));
        let params = Params::new().u64(dx).u64(out).u32(n).done();
        let launch = Launch {
            grid: [3, 1, 1],
            block: [256, 1, 1],
            order,
            ..launch(program, "reduce_sum", params, vec![])
        };
        must_run(name, &mut memory, launch);
        assert_eq!(memory.f32s(out), [x.iter().sum::<f32>()], "{name}");
    });
}

#[test]
fn softmaxes() {
    let (rows, cols) = (3, 150);
    let x = numbers(rows * cols, 0.01);
    each("softmax", |name, program, order| {
        let mut memory = Memory::new();
        let (dx, dy) = (memory.hold_f32(&x), memory.allocate(4 * rows * cols));
        let params = Params::new().u64(dx).u64(dy).u32(cols as u32).done();
        let launch = Launch {
            grid: [rows as u32, 1, 1],
            block: [128, 1, 1],
            order,
            ..launch(program, "softmax", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let mut wanted = Vec::new();
        for row in x.chunks(cols) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = row.iter().map(|v| (v - most).exp()).sum();
            wanted.extend(row.iter().map(|v| (v - most).exp() / sum));
        }
        near(name, &memory.f32s(dy), &wanted, 1e-5);
    });
}

#[test]
fn stencils() {
    let (w, h) = (20, 15);
    let input: Vec<f64> = (0..w * h).map(|at| f64::from(at * 13 % 41)).collect();
    each("stencil2d", |name, program, order| {
        let mut memory = Memory::new();
        let (from, to) = (memory.hold_f64(&input), memory.allocate(8 * input.len()));
        let params = Params::new()
            .u64(from)
            .u64(to)
            .u32(w as u32)
            .u32(h as u32)
            .f64(0.5)
            .f64(0.125)
            .done();
        let launch = Launch {
            grid: [3, 2, 1],
            block: [8, 8, 1],
            order,
            ..launch(program, "stencil2d", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let (w, h) = (w as usize, h as usize);
        let got = memory.f64s(to);
        for y in 0..h {
            for x in 0..w {
                let at = |x: usize, y: usize| input[y * w + x];
                let edge = x == 0 || y == 0 || x == w - 1 || y == h - 1;
                let wanted = if edge {
                    at(x, y)
                } else {
                    0.5 * at(x, y)
                        + 0.125 * (at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1))
                };
                assert!((got[y * w + x] - wanted).abs() < 1e-12, "{name}: {x} {y}");
            }
        }
    });
}

#[test]
fn structs_as_parameters() {
    let n = 40;
    each("struct_param", |name, program, order| {
        let mut memory = Memory::new();
        let start = numbers(2 * n, 0.5);
        let data = memory.hold_f32(&start);
        let (scale, bias, tag) = (1.5_f32, 0.25_f64, 9_u8);
        let p = Params::new()
            .f32(scale)
            .u32(2)
            .f64(bias)
            .add(&[tag, 0, 0, 0, 0, 0, 0, 0], 1)
            .done();
        let vector = |values: &[f32]| {
            values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let view = Params::new()
            .u64(data)
            .u64(n as u64)
            .u64(1)
            .u64(1)
            .u64(2)
            .u64(0)
            .u64(0)
            .done();
        let params = Params::new()
            .add(&p, 8)
            .add(&vector(&[1.0, 2.0, 3.0]), 4)
            .add(&vector(&[0.5, 0.0, 0.0, 4.0]), 16)
            .add(&view, 8)
            .add(&[1], 1)
            .add(&(-3_i8).to_le_bytes(), 1)
            .add(&5_i16.to_le_bytes(), 2)
            .done();
        let launch_it = Launch {
            grid: [2, 1, 1],
            order,
            ..launch(program, "struct_param", params, vec![])
        };
        must_run(name, &mut memory, launch_it);
        let wanted: Vec<f32> = (0..2 * n)
            .map(|at| {
                if at % 2 == 1 {
                    return start[at];
                }
                let r = start[at] * scale + 0.25 + 1.0 + 2.0 * 4.0 + 0.5 + 9.0;
                -r - 15.0
            })
            .collect();
        near(name, &memory.f32s(data), &wanted, 1e-6);

        let out = memory.allocate(4 * 32);
        let params = Params::new().add(&p, 8).u64(out).done();
        must_run(
            name,
            &mut memory,
            launch(program, "const_struct_param", params, vec![]),
        );
        assert_eq!(memory.f32s(out), [scale * 0.25; 32], "{name}");
        must_run(
            name,
            &mut memory,
            launch(program, "empty_kernel", vec![], vec![]),
        );

        let rows: Vec<u64> = (0..4).map(|_| memory.hold_f32(&[0.0; 4])).collect();
        let indices: Vec<u64> = (0..4).map(|at| memory.hold_u32(&[at])).collect();
        let list = |values: &[u64]| {
            values
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let (row_list, index_list) = (memory.hold(list(&rows)), memory.hold(list(&indices)));
        let params = Params::new().u64(row_list).u64(index_list).u32(4).done();
        must_run(
            name,
            &mut memory,
            launch(program, "ptr_ptr", params, vec![]),
        );
        for (at, row) in rows.iter().enumerate() {
            let mut wanted = vec![0.0; 4];
            wanted[at] = 1.0;
            assert_eq!(memory.f32s(*row), wanted, "{name}");
        }
    });
}

#[test]
fn templates() {
    let n = 200;
    each("template_mangled", |name, program, order| {
        for kernel in program.kernels() {
            let mut memory = Memory::new();
            let ints: Vec<u32> = (0..n).collect();
            let grid = [2, 1, 1];
            if kernel.name.contains("Square") {
                let x = numbers(n as usize, 0.1);
                let (out, from) = (memory.allocate(4 * n as usize), memory.hold_f32(&x));
                let params = Params::new().u64(out).u64(from).u32(n).add(&[0], 1).done();
                let launch = Launch {
                    grid,
                    block: [128, 1, 1],
                    order,
                    ..launch(program, &kernel.name, params, vec![])
                };
                must_run(name, &mut memory, launch);
                let wanted: Vec<f32> = x.iter().map(|x| x * x).collect();
                assert_eq!(memory.f32s(out), wanted, "{name}");
            } else if kernel.name.contains("AddK") {
                let (out, from) = (memory.allocate(4 * n as usize), memory.hold_u32(&ints));
                let params = Params::new().u64(out).u64(from).u32(n).u32(11).done();
                let launch = Launch {
                    grid,
                    block: [256, 1, 1],
                    order,
                    ..launch(program, &kernel.name, params, vec![])
                };
                must_run(name, &mut memory, launch);
                let wanted: Vec<u32> = ints.iter().map(|x| x + 11).collect();
                assert_eq!(memory.u32s(out), wanted, "{name}");
            } else {
                let out = memory.allocate(4 * n as usize);
                let params = Params::new().u64(out).u32(42).u64(u64::from(n)).done();
                let launch = Launch {
                    grid,
                    block: [128, 1, 1],
                    order,
                    ..launch(program, &kernel.name, params, vec![])
                };
                must_run(name, &mut memory, launch);
                assert_eq!(memory.u32s(out), vec![42; n as usize], "{name}");
            }
        }
    });
}

#[test]
fn transposition() {
    let (w, h) = (50, 70);
    let input = numbers(w * h, 1.0);
    each("transpose", |name, program, order| {
        let mut memory = Memory::new();
        let (from, to) = (memory.hold_f32(&input), memory.allocate(4 * w * h));
        let params = Params::new()
            .u64(from)
            .u64(to)
            .u32(w as u32)
            .u32(h as u32)
            .done();
        let launch = Launch {
            grid: [w.div_ceil(32) as u32, h.div_ceil(32) as u32, 1],
            block: [32, 8, 1],
            order,
            ..launch(program, "transpose", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let wanted: Vec<f32> = (0..w * h).map(|at| input[at % h * w + at / h]).collect();
        assert_eq!(memory.f32s(to), wanted, "{name}");
    });
}

#[test]
fn double_precision() {
    let n = 100;
    let a: Vec<f64> = (0..n).map(|at| f64::from(at) * 0.1).collect();
    let b: Vec<f64> = (0..n).map(|at| f64::from(at) * 0.7).collect();
    each("vadd_f64", |name, program, order| {
        let mut memory = Memory::new();
        let (da, db) = (memory.hold_f64(&a), memory.hold_f64(&b));
        let dc = memory.allocate(8 * n as usize);
        let params = Params::new().u64(da).u64(db).u64(dc).u32(n as u32).done();
        let launch = Launch {
            grid: [4, 1, 1],
            order,
            ..launch(program, "vadd_f64", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let wanted: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(memory.f64s(dc), wanted, "{name}");
    });
}

#[test]
fn warp_matrices() {
    let ints = |by: i32| (0..256).map(|at| at * by % 13 - 6).collect::<Vec<i32>>();
    let (a, b) = (ints(5), ints(7));
    let bits = |values: &[i32]| {
        values
            .iter()
            .flat_map(|v| half(v * 64).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    each("wmma", |name, program, order| {
        let mut memory = Memory::new();
        let (da, db, dc) = (
            memory.hold(bits(&a)),
            memory.hold(bits(&b)),
            memory.allocate(4 * 256),
        );
        let params = Params::new().u64(da).u64(db).u64(dc).done();
        let launch = Launch {
            order,
            ..launch(program, "wmma_16", params, vec![])
        };
        must_run(name, &mut memory, launch);
        // b lies by columns.
        let wanted: Vec<f32> = (0..256)
            .map(|at| {
                (0..16)
                    .map(|k| (a[at / 16 * 16 + k] * b[at % 16 * 16 + k]) as f32)
                    .sum()
            })
            .collect();
        assert_eq!(memory.f32s(dc), wanted, "{name}");
    });
}

#[test]
fn triton_kernel() {
    let n = 300;
    let (x, y) = (numbers(n, 0.5), numbers(n, 0.25));
    each("tri_add", |name, program, order| {
        let mut memory = Memory::new();
        let (dx, dy, out) = (
            memory.hold_f32(&x),
            memory.hold_f32(&y),
            memory.allocate(4 * n),
        );
        let params = Params::new()
            .u64(dx)
            .u64(dy)
            .u64(out)
            .u32(n as u32)
            .u64(0)
            .done();
        let launch = Launch {
            grid: [2, 1, 1],
            block: [128, 1, 1],
            order,
            ..launch(program, "tri_add", params, vec![])
        };
        must_run(name, &mut memory, launch);
        let got = memory.f32s(out);
        let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        near(name, &got, &wanted, 0.0);
    });
}

#[test]
fn rust_kernels() {
    each("rust_kernels", |name, program, order| {
        let mut memory = Memory::new();
        let n = 50;
        let (x, y) = (numbers(n, 0.5), numbers(n, 0.25));
        let (dx, dy) = (memory.hold_f32(&x), memory.hold_f32(&y));
        let params = Params::new().f32(2.0).u64(dx).u64(dy).u64(n as u64).done();
        must_run(
            name,
            &mut memory,
            Launch {
                grid: [2, 1, 1],
                order,
                ..launch(program, "axpy", params, vec![])
            },
        );
        let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.0 * x + y).collect();
        assert_eq!(memory.f32s(dy), wanted, "{name}");

        let (dx, dy) = (memory.hold_f32(&x), memory.hold_f32(&y));
        let params = Params::new()
            .u64(dx)
            .u64(n as u64)
            .u64(dy)
            .u64(n as u64)
            .done();
        must_run(
            name,
            &mut memory,
            Launch {
                grid: [2, 1, 1],
                order,
                ..launch(program, "slices", params, vec![])
            },
        );
        let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        assert_eq!(memory.f32s(dy), wanted, "{name}");

        let out = memory.allocate(16);
        let params = Params::new()
            .add(&0x0123_4567_89ab_cdef_u128.to_le_bytes(), 16)
            .u64(out)
            .done();
        must_run(name, &mut memory, launch(program, "wide", params, vec![]));
        assert_eq!(memory.u64s(out), [0x0123_4567_89ab_cdef, 0], "{name}");
    });
}

#[test]
fn numba_kernel() {
    let n = 50;
    let (x, y) = (numbers(n, 0.5), numbers(n, 0.25));
    each("numba_saxpy", |name, program, order| {
        let mut memory = Memory::new();
        let symbols = memory.place(program);
        let (dx, dy) = (memory.hold_f32(&x), memory.hold_f32(&y));
        let array = |params: Params, data: u64| {
            params
                .u64(0)
                .u64(0)
                .u64(n as u64)
                .u64(4)
                .u64(data)
                .u64(n as u64)
                .u64(4)
        };
        let params = array(array(Params::new().f32(3.0), dx), dy).done();
        let kernel = program.kernels()[0].name.clone();
        must_run(
            name,
            &mut memory,
            Launch {
                grid: [2, 1, 1],
                order,
                ..launch(program, &kernel, params, symbols)
            },
        );
        let wanted: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x.mul_add(3.0, *y)).collect();
        assert_eq!(memory.f32s(dy), wanted, "{name}");
    });
}

#[test]
fn parameters_of_every_kind() {
    each("signatures", |name, program, _| {
        for (kernel, bytes, wanted) in [
            ("c_bool", vec![1], 1_i32),
            ("c_schar", vec![0xfb], -5),
            ("c_uchar", vec![0xfb], 251),
            ("c_short", (-300_i16).to_le_bytes().to_vec(), -300),
            ("c_ushort", 65000_u16.to_le_bytes().to_vec(), 65000),
            ("c_int", (-7_i32).to_le_bytes().to_vec(), -7),
            ("c_longlong", (-9_i64).to_le_bytes().to_vec(), -9),
            ("c_float", 12.75_f32.to_le_bytes().to_vec(), 12),
            ("c_double", (-12.75_f64).to_le_bytes().to_vec(), -12),
            ("c_half", half(5 * 64).to_le_bytes().to_vec(), 5),
            ("c_fp8", vec![0x50], 8),
            (
                "c_float3",
                [1.0_f32, 0.0, 6.0]
                    .iter()
                    .flat_map(|v| v.to_le_bytes())
                    .collect(),
                7,
            ),
            ("c_packed", vec![3, 10, 0, 0, 0], 13),
            ("c_empty", vec![0], 1),
            (
                "c_array_inside",
                [1_i32, 0, 0, 0, 8]
                    .iter()
                    .flat_map(|v| v.to_le_bytes())
                    .collect(),
                9,
            ),
        ] {
            let mut memory = Memory::new();
            let out = memory.allocate(4 * 32);
            let params = Params::new().add(&bytes, 1).u64(out).done();
            must_run(name, &mut memory, launch(program, kernel, params, vec![]));
            assert_eq!(
                memory.u32s(out)[31].cast_signed(),
                wanted,
                "{name} {kernel}"
            );
        }
        for kernel in program.kernels() {
            assert!(
                kernel.unsupported.is_empty(),
                "{name} {}: {:?}",
                kernel.name,
                kernel.unsupported
            );
        }
    });
}

#[test]
fn every_kernel_is_supported() {
    for entry in std::fs::read_dir(CORPUS).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let program =
            Program::lower(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for kernel in program.kernels() {
            assert!(
                kernel.unsupported.is_empty(),
                "{}: {:?}",
                path.display(),
                kernel.unsupported
            );
        }
    }
}
