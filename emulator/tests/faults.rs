//! Kernels with a mistake, each reported with its thread and its line of the source; and their like without
//! one, not reported.

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

use gridcall_emulator::exec::{Fault, FaultKind, Grid, Launch, Order, Program, Progress};
use support::{Memory, Params, launch, lower, run};

const SOURCE: &str = include_str!("kernels/faults.cu");
const PTX: &str = include_str!("kernels/faults.ptx");

fn program() -> Arc<Program> {
    lower(PTX)
}

/// The line of the source that holds a text.
fn line(text: &str) -> u32 {
    let found: Vec<usize> = SOURCE
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(text))
        .map(|(at, _)| at + 1)
        .collect();
    assert_eq!(found.len(), 1, "one line holds `{text}`");
    found[0] as u32
}

/// Runs a kernel that has to be stopped.
fn stopped(memory: &mut Memory, launch: Launch) -> Box<Fault> {
    let name = launch.program.kernels()[launch.kernel].name.clone();
    match run(memory, launch) {
        Ok(_) => panic!("{name} ran to its end"),
        Err(fault) => {
            println!("{fault}");
            assert_eq!(fault.kernel, name);
            fault
        }
    }
}

fn check(fault: &Fault, kind: FaultKind, thread: [u32; 3], line: u32) {
    assert_eq!(fault.kind, kind, "{fault}");
    assert_eq!(fault.thread, Some(thread), "{fault}");
    let source = fault.source.as_ref().expect("a line of the source");
    let source = source.inlined_at.as_deref().unwrap_or(source);
    assert_eq!(
        (source.file.as_str(), source.line),
        ("faults.cu", line),
        "{fault}"
    );
    assert!(fault.position.is_some(), "{fault}");
}

#[test]
fn a_store_past_the_end() {
    let program = program();
    let mut memory = Memory::new();
    let y = memory.allocate(4 * 100);
    let params = Params::new().u64(y).u32(100).done();
    let launch = Launch {
        grid: [4, 1, 1],
        ..launch(&program, "past_the_end", params, vec![])
    };
    let fault = stopped(&mut memory, launch);
    check(
        &fault,
        FaultKind::IllegalAddress,
        [4, 0, 0],
        line("if (i <= n) y[i] = 1.0f"),
    );
    assert_eq!(fault.block, Some([3, 0, 0]));
    assert_eq!(fault.address, Some(y + 400));
    assert_eq!(fault.registers[0].1, y + 400, "the register of the address");
    assert_eq!(fault.kind.code(), 700);
}

#[test]
fn a_null_pointer() {
    let program = program();
    let params = Params::new().u64(0).u32(100).done();
    let fault = stopped(
        &mut Memory::new(),
        launch(&program, "past_the_end", params, vec![]),
    );
    check(
        &fault,
        FaultKind::IllegalAddress,
        [0, 0, 0],
        line("if (i <= n) y[i] = 1.0f"),
    );
    assert!(fault.message.contains("null pointer"), "{fault}");
}

#[test]
fn a_misaligned_store() {
    let program = program();
    let mut memory = Memory::new();
    let y = memory.allocate(256);
    let params = Params::new().u64(y).u32(1).done();
    let fault = stopped(&mut memory, launch(&program, "misaligned", params, vec![]));
    check(
        &fault,
        FaultKind::Misaligned,
        [5, 0, 0],
        line("*(float*)(y + threadIdx.x * 4"),
    );
    assert_eq!(fault.kind.code(), 716);
}

#[test]
fn a_store_to_what_may_only_be_read() {
    let program = program();
    let mut memory = Memory::new();
    let y = memory.allocate(4 * 200);
    memory.allocations[0].writable = false;
    let params = Params::new().u64(y).u32(100).done();
    let fault = stopped(
        &mut memory,
        launch(&program, "past_the_end", params, vec![]),
    );
    check(
        &fault,
        FaultKind::ReadOnly,
        [0, 0, 0],
        line("if (i <= n) y[i] = 1.0f"),
    );
}

/// A kernel on `threads` threads that takes one array of as many words.
fn on_array(kernel: &str, threads: u32, order: Order) -> Result<Vec<u32>, Box<Fault>> {
    let program = program();
    let mut memory = Memory::new();
    let out = memory.hold_u32(&vec![0; threads as usize]);
    let params = Params::new().u64(out).done();
    let launch = Launch {
        block: [threads, 1, 1],
        order,
        ..launch(&program, kernel, params, vec![])
    };
    run(&mut memory, launch).map(|_| memory.u32s(out))
}

#[test]
fn races_in_shared_memory() {
    for order in [
        Order::Deterministic,
        Order::Seeded(1),
        Order::Seeded(2),
        Order::Seeded(3),
    ] {
        let fault = on_array("race", 64, order).unwrap_err();
        assert_eq!(fault.kind, FaultKind::SharedRace, "{fault}");
        let fault = on_array("race_write", 64, order).unwrap_err();
        assert_eq!(fault.kind, FaultKind::SharedRace, "{fault}");
        let fault = on_array("warp_race", 32, order).unwrap_err();
        assert_eq!(fault.kind, FaultKind::SharedRace, "{fault}");
        let fault = on_array("missing_second", 64, order).unwrap_err();
        assert_eq!(fault.kind, FaultKind::SharedRace, "{fault}");
    }
    let fault = on_array("race_write", 64, Order::Deterministic).unwrap_err();
    check(
        &fault,
        FaultKind::SharedRace,
        [1, 0, 0],
        line("s[0] = threadIdx.x;"),
    );
    assert!(
        fault.message.contains("thread 1 ") && fault.message.contains("thread 0;"),
        "{fault}"
    );
}

#[test]
fn order_in_shared_memory() {
    for order in [
        Order::Deterministic,
        Order::Seeded(1),
        Order::Seeded(2),
        Order::Seeded(3),
    ] {
        let reversed = |count: u32| (0..count).rev().collect::<Vec<u32>>();
        assert_eq!(on_array("no_race", 64, order), Ok(reversed(64)));
        assert_eq!(on_array("same_write", 64, order), Ok(vec![7; 64]));
        assert_eq!(on_array("warp_sync", 32, order), Ok(reversed(32)));
        assert_eq!(on_array("named", 64, order), Ok(reversed(64)));
        let mut flags = vec![0; 96];
        flags[0] = 42;
        assert_eq!(on_array("shared_flag", 96, order), Ok(flags));
        let mut some = vec![0; 64];
        some[..32].copy_from_slice(&(0..32).rev().collect::<Vec<u32>>());
        assert_eq!(on_array("producer", 64, order), Ok(some));
        let votes = (0..96).filter(|i| i % 3 == 0).count() as u32 + 1000 + 2000;
        assert_eq!(on_array("votes", 96, order), Ok(vec![votes; 96]));
    }
}

#[test]
fn named_barriers_for_some_warps() {
    let wanted: Vec<u32> = (0..64).rev().chain([u32::MAX; 32]).collect();
    assert_eq!(on_array("named", 96, Order::Deterministic), Ok(wanted));
}

#[test]
fn loads_of_what_was_never_written() {
    let fault = on_array("uninit_shared", 64, Order::Deterministic).unwrap_err();
    check(&fault, FaultKind::Uninitialised, [32, 0, 0], {
        let kernel = line("void uninit_shared");
        kernel + 4
    });
    let program = program();
    let mut memory = Memory::new();
    let (from, to) = (memory.allocate(4 * 32), memory.allocate(4 * 32));
    let params = Params::new().u64(from).u64(to).done();
    let fault = stopped(
        &mut memory,
        launch(&program, "uninit_global", params, vec![]),
    );
    check(
        &fault,
        FaultKind::Uninitialised,
        [0, 0, 0],
        line("void uninit_global"),
    );
    // What a kernel wrote, another may read.
    let mut memory = Memory::new();
    let y = memory.allocate(4 * 33);
    let params = Params::new().u64(y).u32(32).done();
    run(
        &mut memory,
        Launch {
            grid: [2, 1, 1],
            ..launch(&program, "past_the_end", params, vec![])
        },
    )
    .unwrap();
    let to = memory.allocate(4 * 32);
    let params = Params::new().u64(y).u64(to).done();
    run(
        &mut memory,
        launch(&program, "uninit_global", params, vec![]),
    )
    .unwrap();
    assert_eq!(memory.f32s(to), [1.0; 32]);
}

#[test]
fn barriers_that_some_threads_bypass() {
    let program = program();
    let run_with = |kernel: &str, threads: u32, n: u32, order: Order| {
        let mut memory = Memory::new();
        let out = memory.hold_u32(&vec![0; threads as usize]);
        let params = Params::new().u64(out).u32(n).done();
        let launch = Launch {
            block: [threads, 1, 1],
            order,
            ..launch(&program, kernel, params, vec![])
        };
        run(&mut memory, launch).map(|_| memory.u32s(out))
    };
    for order in [Order::Deterministic, Order::Seeded(7), Order::Seeded(8)] {
        for (threads, n) in [(32, 16), (64, 32), (64, 40), (96, 64)] {
            let fault = run_with("divergent", threads, n, order).unwrap_err();
            assert_eq!(fault.kind, FaultKind::DivergentBarrier, "{fault}");
            let line = line("if (threadIdx.x < n) __syncthreads();");
            let seen = fault.source.as_ref().unwrap().line;
            assert!(seen == line || seen == line + 1, "{fault}");
        }
        let fault = run_with("divergent_loop", 64, 0, order).unwrap_err();
        assert_eq!(fault.kind, FaultKind::DivergentBarrier, "{fault}");
        // Threads that ended before need not arrive.
        assert!(run_with("divergent", 64, 64, order).is_ok());
        for n in [1, 20, 32, 45, 64] {
            let got = run_with("early_return", 64, n, order).unwrap();
            let wanted: Vec<u32> = (0..64).map(|i| if i < n { n - 1 - i } else { 0 }).collect();
            assert_eq!(got, wanted);
        }
    }
}

#[test]
fn member_masks() {
    let fault = on_array("bad_mask", 32, Order::Deterministic).unwrap_err();
    check(
        &fault,
        FaultKind::BadMask,
        [0, 0, 0],
        line("__shfl_sync(0xffff0000u"),
    );
    let fault = on_array("exited", 32, Order::Deterministic).unwrap_err();
    check(
        &fault,
        FaultKind::BadMask,
        [8, 0, 0],
        line("__shfl_down_sync(0xffffffffu, v, 8)"),
    );
    let fault = on_array("waiting", 32, Order::Deterministic).unwrap_err();
    assert!(
        matches!(fault.kind, FaultKind::BadMask | FaultKind::DivergentBarrier),
        "{fault}"
    );
    assert!(fault.message.contains("wait"), "{fault}");
}

#[test]
fn traps_and_assertions() {
    let program = program();
    let mut memory = Memory::new();
    let fault = stopped(
        &mut memory,
        launch(&program, "trap", Params::new().u32(9).done(), vec![]),
    );
    check(
        &fault,
        FaultKind::Trap,
        [9, 0, 0],
        line("void trap(int which)"),
    );
    assert_eq!(fault.kind.code(), 719);
    let mut memory = Memory::new();
    let symbols = memory.place(&program);
    let x: Vec<u32> = (0..32).collect();
    let x = memory.hold_u32(&x);
    let fault = stopped(
        &mut memory,
        launch(&program, "asserts", Params::new().u64(x).done(), symbols),
    );
    check(
        &fault,
        FaultKind::Assert,
        [13, 0, 0],
        line("assert(x[threadIdx.x] != 13)"),
    );
    assert!(fault.message.contains("`x[threadIdx.x] != 13`"), "{fault}");
    assert_eq!(fault.kind.code(), 710);
}

#[test]
fn loops_without_an_end() {
    let program = program();
    let mut memory = Memory::new();
    let out = memory.hold_u32(&[0]);
    let endless = Launch {
        step_budget: 100_000,
        ..launch(&program, "endless", Params::new().u64(out).done(), vec![])
    };
    let fault = stopped(&mut memory, endless.clone());
    assert_eq!(fault.kind, FaultKind::StepBudget);
    assert_eq!(
        fault.source.as_ref().unwrap().line,
        line("while (*p == 0) {}")
    );
    assert_eq!(fault.kind.code(), 702);
    // Until the host, or another grid, changes what it waits for.
    let mut grid = Grid::new(Launch {
        symbols: Arc::new(memory.place(&program)),
        ..endless
    })
    .unwrap();
    assert_eq!(
        grid.run(&mut memory, 1000),
        Progress::Running { progressed: false }
    );
    memory
        .allocations
        .iter_mut()
        .find(|a| a.start == out)
        .unwrap()
        .bytes[0] = 1;
    assert!(matches!(grid.run(&mut memory, 1000), Progress::Done(_)));
}

#[test]
fn calls_too_deep() {
    let program = program();
    let mut memory = Memory::new();
    let out = memory.hold_u32(&vec![0; 1 << 16]);
    let params = Params::new().u64(out).u32(60_000).done();
    let fault = stopped(
        &mut memory,
        Launch {
            block: [1, 1, 1],
            ..launch(&program, "stack", params, vec![])
        },
    );
    assert_eq!(fault.kind, FaultKind::StackOverflow, "{fault}");
    let out = memory.hold_u32(&vec![0; 64]);
    let params = Params::new().u64(out).u32(10).done();
    assert!(run(&mut memory, launch(&program, "stack", params, vec![])).is_ok());
}

#[test]
fn bounds_of_shared_and_local_memory() {
    let program = program();
    let mut memory = Memory::new();
    let out = memory.allocate(4 * 32);
    let bounds = |at: u32| {
        let params = Params::new().u64(out).u32(at).done();
        Launch {
            dynamic_shared: 4 * 32,
            ..launch(&program, "shared_bounds", params, vec![])
        }
    };
    run(&mut memory, bounds(31)).unwrap();
    let fault = stopped(&mut memory, bounds(32));
    check(
        &fault,
        FaultKind::IllegalAddress,
        [7, 0, 0],
        line("s[threadIdx.x == 7 ? at : threadIdx.x]"),
    );
    let mut index: Vec<u32> = (0..32).map(|at| at % 8).collect();
    index[9] = 100;
    let from = memory.hold_u32(&index);
    let params = Params::new().u64(from).u64(out).done();
    let fault = stopped(
        &mut memory,
        launch(&program, "local_bounds", params, vec![]),
    );
    check(
        &fault,
        FaultKind::IllegalAddress,
        [9, 0, 0],
        line("out[threadIdx.x] = t[idx[threadIdx.x]]"),
    );
}

#[test]
fn threads_that_wait_for_one_another() {
    for order in [Order::Deterministic, Order::Seeded(1), Order::Seeded(2)] {
        let program = program();
        let mut memory = Memory::new();
        let (flag, out) = (memory.hold_u32(&[0]), memory.allocate(8));
        let params = Params::new().u64(flag).u64(out).done();
        let pair = Launch {
            grid: [2, 1, 1],
            block: [1, 1, 1],
            order,
            ..launch(&program, "spin_pair", params, vec![])
        };
        run(&mut memory, pair).unwrap();
        assert_eq!(memory.u32s(out), [5, 6]);

        let (flag, out) = (memory.hold_u32(&[0]), memory.allocate(4));
        let params = Params::new().u64(flag).u64(out).done();
        run(
            &mut memory,
            Launch {
                order,
                ..launch(&program, "spin_lane", params, vec![])
            },
        )
        .unwrap();
        assert_eq!(memory.u32s(out), [5]);

        let (mutex, count) = (memory.hold_u32(&[0]), memory.hold_u32(&[0]));
        let params = Params::new().u64(mutex).u64(count).done();
        let lock = Launch {
            grid: [3, 1, 1],
            block: [64, 1, 1],
            order,
            ..launch(&program, "lock", params, vec![])
        };
        run(&mut memory, lock).unwrap();
        assert_eq!(memory.u32s(count), [3 * 3 * 64]);
    }
}

#[test]
fn races_in_global_memory_on_request() {
    let program = program();
    let race = |kernel: &str, checks: bool| {
        let mut memory = Memory::new();
        let x = memory.hold_u32(&[0]);
        let params = Params::new().u64(x).done();
        let launch = Launch {
            grid: [4, 1, 1],
            block: [1, 1, 1],
            check_global_races: checks,
            ..launch(&program, kernel, params, vec![])
        };
        run(&mut memory, launch)
    };
    assert!(race("global_race", false).is_ok());
    assert!(race("global_atomic", true).is_ok());
    let fault = race("global_race", true).unwrap_err();
    check(
        &fault,
        FaultKind::GlobalRace,
        [0, 0, 0],
        line("void global_race"),
    );
}

#[test]
fn prints() {
    let program = program();
    let mut memory = Memory::new();
    let symbols = memory.place(&program);
    let name = memory.hold(b"name\0".to_vec());
    let params = Params::new().u64(name).u64(0xdead_beef_cafe).done();
    run(&mut memory, launch(&program, "print_all", params, symbols)).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&memory.printed),
        "name -3 4 deadbeefcafe q  2.50 1.000000e+10 end%\n"
    );
}

#[test]
fn launches_that_do_not_fit() {
    let program = program();
    let mut memory = Memory::new();
    let refused = |adjust: &dyn Fn(&mut Launch)| {
        let mut launch = launch(&program, "trap", Params::new().u32(99).done(), vec![0; 64]);
        adjust(&mut launch);
        Grid::new(launch).unwrap_err().kind
    };
    assert_eq!(
        refused(&|launch| launch.block = [1025, 1, 1]),
        FaultKind::InvalidLaunch
    );
    assert_eq!(
        refused(&|launch| launch.block = [0, 1, 1]),
        FaultKind::InvalidLaunch
    );
    assert_eq!(
        refused(&|launch| launch.block = [1, 1, 65]),
        FaultKind::InvalidLaunch
    );
    assert_eq!(
        refused(&|launch| launch.grid = [1, 65536, 1]),
        FaultKind::InvalidLaunch
    );
    assert_eq!(
        refused(&|launch| launch.params = vec![0; 3]),
        FaultKind::InvalidLaunch
    );
    assert_eq!(
        refused(&|launch| launch.kernel = 1000),
        FaultKind::InvalidLaunch
    );
    assert!(
        run(
            &mut memory,
            launch(&program, "trap", Params::new().u32(99).done(), vec![0; 64])
        )
        .is_ok()
    );
}

#[test]
fn instructions_that_are_not_supported() {
    let text = ".version 8.5\n.target sm_90a\n.address_size 64\n
.visible .entry fine() { ret; }
.visible .entry other() { .reg .b64 r; st.bulk.shared::cta [r], 64, 0; fma.rn.oob.f16 r, r, r, r; ret; }
.func helper() { wgmma.commit_group.sync.aligned; ret; }
.visible .entry bad() {
wgmma.fence.sync.aligned;
call helper, ();
wgmma.fence.sync.aligned;
ret; }";
    let program = lower(text);
    let mut memory = Memory::new();
    assert!(run(&mut memory, launch(&program, "fine", vec![], vec![])).is_ok());
    let bad = &program.kernels()[program.kernel("bad").unwrap()];
    assert_eq!(bad.unsupported.len(), 2);
    assert_eq!(
        (
            bad.unsupported[0].instruction.as_str(),
            bad.unsupported[0].count
        ),
        ("wgmma.fence.sync.aligned", 2)
    );
    assert_eq!(bad.unsupported[0].position.line, 9);
    let other = &program.kernels()[program.kernel("other").unwrap()];
    assert_eq!(other.unsupported.len(), 2);
    let fault = run(&mut memory, launch(&program, "bad", vec![], vec![])).unwrap_err();
    assert_eq!(
        (fault.kind, fault.kind.code()),
        (FaultKind::NotSupported, 801)
    );
    assert!(
        fault
            .message
            .contains("`wgmma.fence.sync.aligned` (line 9, 2 times)"),
        "{fault}"
    );
}

#[test]
fn texts_that_are_no_ptx() {
    let head = ".version 8.5\n.target sm_90\n.address_size 64\n";
    let refused = |text: &str| Program::lower(text).unwrap_err();
    assert!(refused("int main() { return 0; }").not_ptx);
    assert!(refused("").not_ptx);
    assert_eq!(
        refused(".version 99.0\n.target sm_90\n").unknown_version,
        Some((99, 0))
    );
    for (body, line, what) in [
        ("frobnicate.u32 %r1;", 4, "no instruction"),
        (".reg .b32 %r<3>;\nadd.s32 %r1, %r2, %r9;", 5, "`%r9`"),
        (
            ".reg .b32 %r<3>;\n.reg .b64 %q;\nadd.s32 %r1, %r2, %q;",
            6,
            "64 bits",
        ),
        ("bra nowhere;", 4, "`nowhere`"),
        ("call missing, ();", 4, "`missing`"),
    ] {
        let error = refused(&format!("{head}.entry k() {{ {body} ret; }}"));
        assert_eq!(error.position.line, line, "{error}");
        assert!(error.message.contains(what) && !error.not_ptx, "{error}");
    }
    let undefined = format!("{head}.extern .func gone();\n.entry k() {{ call gone, (); ret; }}");
    assert!(refused(&undefined).message.contains("defined nowhere"));
}

#[test]
fn coverage_of_lines() {
    let program = program();
    let mut memory = Memory::new();
    let symbols = Arc::new(memory.place(&program));
    let mut coverage = gridcall_emulator::exec::Coverage::default();
    let mut cover = |n: u32| {
        let out = memory.hold_u32(&[0; 64]);
        let params = Params::new().u64(out).u32(n).done();
        let launch = launch(&program, "early_return", params, vec![]);
        let mut grid = Grid::new(Launch {
            block: [64, 1, 1],
            symbols: Arc::clone(&symbols),
            ..launch
        })
        .unwrap();
        assert!(matches!(grid.run(&mut memory, u64::MAX), Progress::Done(_)));
        coverage.add(&grid, "faults.ptx");
        coverage.clone()
    };
    let kernel = line("void early_return");
    let none = cover(0);
    assert_eq!(
        none.line("faults.cu", kernel + 3),
        Some(2),
        "two warps look whether to return"
    );
    assert_eq!(
        none.line("faults.cu", kernel + 5),
        Some(0),
        "none comes to the barrier"
    );
    assert_eq!(none.line("faults.cu", 1), None);
    let all = cover(64);
    assert_eq!(all.line("faults.cu", kernel + 3), Some(4));
    assert_eq!(all.line("faults.cu", kernel + 5), Some(2));
    let report = all.lcov();
    assert!(report.starts_with("TN:\nSF:faults.cu\n"), "{report}");
    assert!(
        report.contains(&format!("DA:{},2\n", kernel + 5)) && report.contains(",early_return\n"),
        "{report}"
    );
}
