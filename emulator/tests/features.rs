//! Instructions that compilers rarely emit, in kernels of their own, compared with the same computation in Rust.

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

use gridcall_emulator::exec::{FaultKind, Launch, Order, Program};
use support::{Memory, Params, launch, lower, run};

const PTX: &str = include_str!("kernels/features.ptx");

fn program() -> Arc<Program> {
    lower(PTX)
}

const ORDERS: [Order; 3] = [Order::Deterministic, Order::Seeded(5), Order::Seeded(6)];

fn must_run(memory: &mut Memory, launch: Launch) {
    if let Err(fault) = run(memory, launch) {
        panic!("{fault}");
    }
}

#[test]
fn atomic_operations() {
    let program = program();
    for order in ORDERS {
        let mut memory = Memory::new();
        let i = memory.hold_u32(&[0, 0, 0, 0, 0, 0, 0, u32::MAX]);
        let u = memory.hold_u32(&[0, 10, 0, u32::MAX]);
        let l = memory.hold([0_u64; 3].iter().flat_map(|v| v.to_le_bytes()).collect());
        let (f, d) = (memory.hold_f32(&[0.0]), memory.hold_f64(&[0.0]));
        let (h, b) = (memory.hold(vec![0; 4]), memory.hold(vec![0; 2]));
        let params = [i, u, l, f, d, h, b]
            .iter()
            .fold(Params::new(), |params, at| params.u64(*at))
            .done();
        must_run(
            &mut memory,
            Launch {
                order,
                ..launch(&program, "atomics", params, vec![])
            },
        );
        let sum: u32 = (0..32).sum();
        let xor = (0..32).fold(0, |xor, t| xor ^ (t * 3));
        let minus = |value: i32| value.cast_unsigned();
        assert_eq!(
            memory.u32s(i),
            [
                sum,
                0_u32.wrapping_sub(sum),
                minus(-5),
                26,
                7,
                u32::MAX,
                xor,
                0
            ]
        );
        // Counting up wraps behind 20; counting down from 10 to 0, then from 20.
        assert_eq!(
            memory.u32s(u),
            [32 % 21, 10 + 21 * 2 - 32, 4_000_000_000, 4_000_000_000 - 31]
        );
        assert_eq!(memory.u64s(l), [32 << 33, 31 << 40, 5]);
        assert_eq!(memory.f32s(f), [16.0]);
        assert_eq!(memory.f64s(d), [8.0]);
        // 32 and 16 as halves, 32 as bfloat16.
        assert_eq!(memory.u32s(h), [0x4c00_5000]);
        assert_eq!(memory.bytes_at(b), 0x4200_u16.to_le_bytes());
    }
}

#[test]
fn atomic_operations_in_shared_memory() {
    let program = program();
    for order in ORDERS {
        let mut memory = Memory::new();
        let out = memory.allocate(40);
        let params = Params::new().u64(out).done();
        must_run(
            &mut memory,
            Launch {
                block: [96, 1, 1],
                order,
                ..launch(&program, "shared_atomics", params, vec![])
            },
        );
        let mut wanted: Vec<u32> = (0..8)
            .map(|at| (0..96).filter(|t| t % 8 == at).sum())
            .collect();
        wanted.extend([144, 96]);
        assert_eq!(memory.u32s(out), wanted);
    }
}

#[test]
fn copies_that_are_waited_for() {
    let program = program();
    let stages = 5;
    let input: Vec<f32> = (0..stages * 64 * 4).map(|at| (at % 17) as f32).collect();
    for order in ORDERS {
        let mut memory = Memory::new();
        let (from, out) = (memory.hold_f32(&input), memory.allocate(4 * 64));
        let params = Params::new().u64(from).u64(out).u32(stages).done();
        must_run(
            &mut memory,
            Launch {
                block: [64, 1, 1],
                order,
                ..launch(&program, "pipelined", params, vec![])
            },
        );
        let wanted: Vec<f32> = (0..64)
            .map(|t| {
                (0..stages as usize)
                    .map(|k| {
                        let v = &input[(k * 64 + 63 - t) * 4..][..4];
                        v[0] + v[1] * 2.0 + v[2] * 3.0 + v[3] * 4.0
                    })
                    .sum()
            })
            .collect();
        assert_eq!(memory.f32s(out), wanted);
        let params = Params::new().u64(from).u64(out).done();
        let fault = run(
            &mut memory,
            Launch {
                block: [64, 1, 1],
                order,
                ..launch(&program, "missing_wait", params, vec![])
            },
        );
        assert_eq!(
            fault.unwrap_err().kind,
            FaultKind::Uninitialised,
            "a wait is missing"
        );
    }
}

#[test]
fn clusters() {
    let program = program();
    for order in ORDERS {
        let mut memory = Memory::new();
        let input: Vec<u32> = (1..=8).collect();
        let (from, out) = (memory.hold_u32(&input), memory.allocate(32));
        let params = Params::new().u64(from).u64(out).done();
        let sums = Launch {
            grid: [8, 1, 1],
            cluster: [4, 1, 1],
            order,
            ..launch(&program, "cluster_sum", params, vec![])
        };
        must_run(&mut memory, sums);
        let wanted: Vec<u32> = (0..8)
            .map(|block| {
                let cluster = &input[block / 4 * 4..][..4];
                let sum: u32 = (1..).zip(cluster).map(|(rank, value)| rank * value).sum();
                sum * 100 + (block as u32 % 4) * 10 + 4
            })
            .collect();
        assert_eq!(memory.u32s(out), wanted);

        let out = memory.allocate(4 * 4 * 32);
        let params = Params::new().u64(out).done();
        let writes = Launch {
            grid: [4, 1, 1],
            cluster: [2, 1, 1],
            order,
            ..launch(&program, "cluster_write", params, vec![])
        };
        must_run(&mut memory, writes);
        let wanted: Vec<u32> = (0..4 * 32)
            .map(|at| ((at / 32) ^ 1) * 1000 + at % 32)
            .collect();
        assert_eq!(memory.u32s(out), wanted);
    }
}

#[test]
fn barrier_objects() {
    let program = program();
    for order in ORDERS {
        let mut memory = Memory::new();
        let out = memory.allocate(4 * 64);
        let params = Params::new().u64(out).done();
        must_run(
            &mut memory,
            Launch {
                block: [64, 1, 1],
                order,
                ..launch(&program, "block_barrier", params, vec![])
            },
        );
        let wanted: Vec<u32> = (0..64).map(|t| (63 - t) * 3).collect();
        assert_eq!(memory.u32s(out), wanted);
    }
}

#[test]
fn warps() {
    let program = program();
    let input: Vec<u32> = (0..32).map(|t| t * 7 % 23).collect();
    let mut memory = Memory::new();
    let (from, out) = (memory.hold_u32(&input), memory.allocate(4 * 224));
    let params = Params::new().u64(from).u64(out).done();
    must_run(&mut memory, launch(&program, "warp_things", params, vec![]));
    let got = memory.u32s(out);
    let ballot = |test: &dyn Fn(usize) -> bool| {
        (0..32)
            .filter(|t| test(*t))
            .fold(0_u32, |all, t| all | 1 << t)
    };
    for t in 0..32 {
        assert_eq!(got[t], ballot(&|other| input[other] % 4 == input[t] % 4));
        assert_eq!(got[32 + t], input.iter().sum());
        assert_eq!(got[64 + t], *input.iter().max().unwrap());
        assert_eq!(
            got[96 + t],
            32_u32.wrapping_add(ballot(&|other| input[other] & 1 == 1))
        );
        assert_eq!(got[128 + t], u32::MAX.wrapping_add(1));
        assert_eq!(got[160 + t], if t & 1 == 1 { input[t ^ 2] + 16 } else { 9 });
        assert_eq!(got[192 + t], t as u32 + 32);
    }
}

#[test]
fn small_and_wide_accesses() {
    let program = program();
    let bytes: Vec<u8> = (0..128_u32).map(|at| (at * 37 % 256) as u8).collect();
    let shorts: Vec<i16> = (0..64).map(|at| at * 311 - 9000).collect();
    let doubles: Vec<f64> = (0..64).map(|at| f64::from(at) * 0.75).collect();
    let mut memory = Memory::new();
    let c = memory.hold(bytes.clone());
    let s = memory.hold(shorts.iter().flat_map(|v| v.to_le_bytes()).collect());
    let (d, out) = (memory.hold_f64(&doubles), memory.allocate(4 * 32));
    let params = Params::new().u64(c).u64(s).u64(d).u64(out).done();
    must_run(
        &mut memory,
        launch(&program, "bytes_and_vectors", params, vec![]),
    );
    let wanted: Vec<i32> = (0..32)
        .map(|t| {
            let b = |at: usize| i32::from(bytes[at]);
            let four = [0, 1, 2, 3].map(|at| i32::from(bytes[4 * t + at].cast_signed()));
            let dot = four[0] * 4 + four[1] * 3 + four[2] * 2 + four[3] + 5;
            let pair = t as i32 + 65537;
            b(127 - t)
                + b(t) * 2
                + i32::from(shorts[63 - t]) * 3
                + i32::from(shorts[t])
                + (doubles[2 * t] * doubles[2 * t + 1]) as i32
                + dot
                + pair
        })
        .collect();
    let got: Vec<i32> = memory.u32s(out).iter().map(|v| v.cast_signed()).collect();
    assert_eq!(got, wanted);
}

#[test]
fn divergence() {
    let program = program();
    for order in ORDERS {
        let input: Vec<u32> = (0..32).map(|t| t * 5 % 9).collect();
        let start: Vec<u32> = (0..32).map(|t| t * 11).collect();
        let mut memory = Memory::new();
        let (from, out) = (memory.hold_u32(&input), memory.hold_u32(&start));
        let params = Params::new().u64(from).u64(out).done();
        must_run(
            &mut memory,
            Launch {
                order,
                ..launch(&program, "switch_table", params, vec![])
            },
        );
        let wanted: Vec<u32> = (0..32_u32)
            .map(|t| match input[t as usize] {
                0 => t * 3,
                1 => t ^ 5,
                2 => start[t as usize] + 1,
                3 => t / 3,
                4 => t % 7,
                5 => 0_u32.wrapping_sub(t),
                6 => t << 4,
                _ => 99,
            })
            .collect();
        assert_eq!(memory.u32s(out), wanted);

        let input: Vec<u32> = (0..32).map(|t| t * 13 % 97).collect();
        let (from, out) = (memory.hold_u32(&input), memory.hold_u32(&[7; 32]));
        let params = Params::new().u64(from).u64(out).done();
        must_run(
            &mut memory,
            Launch {
                order,
                ..launch(&program, "nested_loops", params, vec![])
            },
        );
        let wanted: Vec<u32> = input
            .iter()
            .map(|n| {
                let mut sum = 0;
                for i in 0..*n {
                    if i % 3 == 1 {
                        continue;
                    }
                    let mut j = i;
                    while j > 0 && j != 5 {
                        sum += j * i.count_ones();
                        j /= 2;
                    }
                    if sum > 5000 {
                        return 7;
                    }
                }
                sum
            })
            .collect();
        assert_eq!(memory.u32s(out), wanted);
    }
}

#[test]
fn products_of_bytes() {
    let program = program();
    let a: Vec<i8> = (0..32 * 16)
        .map(|at: i32| (at * 29 % 251 - 125) as i8)
        .collect();
    let b: Vec<i8> = (0..16 * 8)
        .map(|at: i32| (at * 53 % 241 - 120) as i8)
        .collect();
    let c: Vec<u32> = (0..32 * 8).collect();
    let mut memory = Memory::new();
    let bytes = |values: &[i8]| {
        values
            .iter()
            .map(|v| v.cast_unsigned())
            .collect::<Vec<u8>>()
    };
    let (da, db, dc) = (
        memory.hold(bytes(&a)),
        memory.hold(bytes(&b)),
        memory.hold_u32(&c),
    );
    let params = Params::new().u64(da).u64(db).u64(dc).done();
    must_run(&mut memory, launch(&program, "wmma_bytes", params, vec![]));
    let got: Vec<i32> = memory.u32s(dc).iter().map(|v| v.cast_signed()).collect();
    let wanted: Vec<i32> = (0..32 * 8)
        .map(|at| {
            let (row, column) = (at / 8, at % 8);
            let sum: i32 = (0..16)
                .map(|k| i32::from(a[row * 16 + k]) * i32::from(b[column * 16 + k]))
                .sum();
            sum + at as i32
        })
        .collect();
    assert_eq!(got, wanted);
}

/// The bits of a half that is a whole number up to 2048.
fn half(value: i32) -> u16 {
    if value == 0 {
        return 0;
    }
    let (sign, magnitude) = (u16::from(value < 0) << 15, value.unsigned_abs());
    let top = magnitude.ilog2();
    sign | ((top + 15) as u16) << 10 | ((magnitude << (10 - top)) & 0x3ff) as u16
}

#[test]
fn products_in_shared_memory() {
    let program = program();
    let ints = |by: i32| (0..256).map(|at| at * by % 7 - 3).collect::<Vec<i32>>();
    let (a, b) = (ints(5), ints(11));
    let bits = |values: &[i32]| {
        values
            .iter()
            .flat_map(|v| half(*v).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut memory = Memory::new();
    let (da, db, dc) = (
        memory.hold(bits(&a)),
        memory.hold(bits(&b)),
        memory.allocate(512),
    );
    let params = Params::new().u64(da).u64(db).u64(dc).done();
    must_run(&mut memory, launch(&program, "wmma_shared", params, vec![]));
    // a and the result lie by columns.
    let wanted: Vec<i32> = (0..256)
        .map(|at| {
            let (row, column) = (at % 16, at / 16);
            let sum: i32 = (0..16).map(|k| a[k * 16 + row] * b[k * 16 + column]).sum();
            2 * (sum + 1)
        })
        .collect();
    assert_eq!(memory.bytes_at(dc), bits(&wanted));
}

#[test]
fn matrices_by_lanes() {
    let program = program();
    let input: Vec<u16> = (0..256).map(|at| at * 3 + 1).collect();
    let mut memory = Memory::new();
    let from = memory.hold(input.iter().flat_map(|v| v.to_le_bytes()).collect());
    let out = memory.allocate(4 * 256);
    let params = Params::new().u64(from).u64(out).done();
    must_run(
        &mut memory,
        launch(&program, "ldmatrix_transposed", params, vec![]),
    );
    let got = memory.u32s(out);
    for lane in 0..32 {
        for matrix in 0..4 {
            let at = |row: usize, column: usize| u32::from(input[matrix * 64 + row * 8 + column]);
            let (row, column) = (lane / 4, 2 * (lane % 4));
            assert_eq!(
                got[lane * 4 + matrix],
                at(column, row) | at(column + 1, row) << 16
            );
        }
    }
    // Stored as they are held, the matrices lie transposed.
    for word in 0..128 {
        let (matrix, row, column) = (word / 32, word / 4 % 8, 2 * (word % 4));
        let at = |row: usize, column: usize| u32::from(input[matrix * 64 + row * 8 + column]);
        assert_eq!(got[128 + word], at(column, row) | at(column + 1, row) << 16);
    }
}

#[test]
fn state_spaces() {
    let program = program();
    let mut memory = Memory::new();
    let out = memory.allocate(4 * 64);
    let params = Params::new().u64(out).done();
    must_run(&mut memory, launch(&program, "spaces", params, vec![]));
    let got = memory.u32s(out);
    for t in 0..32 {
        assert_eq!(got[t], 1 + 2 + 4);
        assert_eq!(got[32 + t], if t & 1 == 1 { 3 } else { t as u32 });
    }
}
