//! Block-wide algorithms as a widely used library has them: they synchronise with what just suffices, and
//! nothing of that is reported.

#![allow(
    clippy::cast_possible_truncation,
    reason = "the values of a test are small, and wanted exactly"
)]

mod support;

use gridcall_emulator::exec::{Launch, Order};
use support::{Memory, Params, launch, lower, run};

const PTX: &str = include_str!("kernels/blocks.ptx");

/// Runs a kernel on 128 threads, from one array to another, in many orders.
fn each_order(kernel: &str, blocks: u32, input: &[u8], size: usize, check: impl Fn(&[u32])) {
    let program = lower(PTX);
    let seeded = (0..12).map(Order::Seeded);
    for order in [Order::Deterministic].into_iter().chain(seeded) {
        let mut memory = Memory::new();
        let (from, to) = (memory.hold(input.to_vec()), memory.allocate(4 * size));
        let params = Params::new().u64(from).u64(to).done();
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [128, 1, 1],
            order,
            ..launch(&program, kernel, params, vec![])
        };
        if let Err(fault) = run(&mut memory, launch) {
            panic!("{order:?}: {fault}");
        }
        check(&memory.u32s(to));
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn numbers(count: u32) -> Vec<u32> {
    (0..count)
        .map(|at| at.wrapping_mul(2_654_435_761) >> 20)
        .collect()
}

#[test]
fn sums() {
    let input = numbers(3 * 128);
    each_order("block_reduce", 3, &words(&input), 3, |got| {
        let wanted: Vec<u32> = input.chunks(128).map(|block| block.iter().sum()).collect();
        assert_eq!(got, wanted);
    });
}

#[test]
fn scans() {
    let input = numbers(512);
    let before = |count: usize| input[..count].iter().sum::<u32>();
    each_order("block_scan", 1, &words(&input), 512, |got| {
        assert_eq!(got, (0..512).map(before).collect::<Vec<u32>>());
    });
    each_order("warp_scan", 1, &words(&input[..128]), 128, |got| {
        let wanted = input[..128]
            .chunks(32)
            .flat_map(|warp| (1..=32).map(|count| warp[..count].iter().sum::<u32>()));
        assert_eq!(got, wanted.collect::<Vec<u32>>());
    });
}

#[test]
fn sorts() {
    let input: Vec<u32> = (0..512_u32)
        .map(|at| at.wrapping_mul(2_654_435_761))
        .collect();
    let mut wanted = input.clone();
    wanted.sort_unstable();
    each_order("block_sort", 1, &words(&input), 512, |got| {
        assert_eq!(got, wanted);
    });
}

#[test]
fn histograms() {
    let input: Vec<u8> = (0..512_u32).map(|at| (at * at % 64) as u8).collect();
    let mut wanted = vec![0; 64];
    for value in &input {
        wanted[usize::from(*value)] += 1;
    }
    each_order("block_histogram", 1, &input, 64, |got| {
        assert_eq!(got, wanted);
    });
}

#[test]
fn transposed_loads_and_stores() {
    let input = numbers(512);
    each_order("block_exchange", 1, &words(&input), 512, |got| {
        let wanted: Vec<u32> = (0..512).map(|at| input[at] * 10 + at as u32 % 4).collect();
        assert_eq!(got, wanted);
    });
}
