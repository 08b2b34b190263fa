//! Bulk copies and the barriers that are told of them: who waits for what, and what is wrong with a kernel that
//! does not.

#![allow(
    clippy::cast_possible_truncation,
    reason = "the values of a test are small"
)]

mod support;

use gridcall_emulator::exec::{Fault, FaultKind, Launch, Order, TensorMap, TensorMode};
use support::{Memory, Params, launch, lower, run};

/// A kernel of one parameter block: `d0` and `d1` are addresses in global memory, `map` a tensor map, `tile` 4096
/// bytes of shared memory and `bar` a barrier for one thread, `p` holds for the first thread.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p0, .param .u64 p1)
{{
.reg .pred p, q, r;
.reg .b16 h<4>;
.reg .b32 r<12>, tile, bar, tid, there, rank;
.reg .b64 d<8>, state, tensor;
.shared .align 1024 .b8 memory[4096];
.shared .align 8 .b64 barrier;
ld.param.u64 d0, [p0];
ld.param.u64 d1, [p1];
mov.b64 tensor, map;
cvta.param.u64 tensor, tensor;
mov.u32 tile, memory;
mov.u32 bar, barrier;
mov.u32 tid, %tid.x;
mov.u32 rank, %cluster_ctarank;
setp.eq.u32 p, tid, 0;
@p mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async;
bar.sync 0;
{body}
ret;
}}
"
    )
}

const WAIT: &str = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 q, [bar], 0;\n@!q bra WAIT;\n";

fn map(address: u64) -> TensorMap {
    TensorMap {
        element: 2,
        rank: 2,
        address,
        dims: [32, 8, 1, 1, 1],
        strides: [128, 0, 0, 0],
        element_strides: [1; 5],
        interleave: 0,
        swizzle: 0,
        l2_promotion: 0,
        fill: 0,
        mode: TensorMode::Tiled {
            tile: [8, 4, 1, 1, 1],
        },
    }
}

struct Ran {
    memory: Memory,
    from: u64,
    to: u64,
}

impl Ran {
    fn result(&self) -> Vec<u32> {
        self.memory.u32s(self.to)
    }
}

/// Runs a body on a source of 0, 1, 2, .. and a destination of 256 words that hold 1000.
fn try_body(body: &str, adjust: impl Fn(&mut Launch)) -> Result<Ran, Box<Fault>> {
    let program = lower(&kernel(body));
    let mut memory = Memory::new();
    let numbers: Vec<u32> = (0..256).collect();
    let (from, to) = (memory.hold_u32(&numbers), memory.hold_u32(&[1000; 256]));
    let params = Params::new()
        .add(&map(from).to_bytes(), 64)
        .u64(from)
        .u64(to)
        .done();
    let mut launch = launch(&program, "k", params, vec![]);
    adjust(&mut launch);
    run(&mut memory, launch)?;
    Ok(Ran { memory, from, to })
}

fn result(body: &str) -> Vec<u32> {
    match try_body(body, |_| {}) {
        Ok(ran) => ran.result(),
        Err(fault) => panic!("{fault}"),
    }
}

fn fault(body: &str) -> Box<Fault> {
    match try_body(body, |_| {}) {
        Ok(_) => panic!("it runs: {body}"),
        Err(fault) => fault,
    }
}

/// Each thread stores the word of its number.
const SAVE: &str = "shl.b32 r0, tid, 2;
add.u32 r1, tile, r0;
ld.shared.u32 r2, [r1];
cvt.u64.u32 d2, r0;
add.u64 d2, d1, d2;
st.global.u32 [d2], r2;
";

/// Each thread writes 7 times its number to shared memory, and all wait.
const WRITE: &str = "shl.b32 r0, tid, 2;
add.u32 r1, tile, r0;
mul.lo.u32 r2, tid, 7;
st.shared.u32 [r1], r2;
fence.proxy.async.shared::cta;
bar.sync 0;
";

const LOAD: &str = "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [d0], 128, [bar];
";

#[test]
fn bytes_come_when_a_barrier_is_looked_at() {
    let loaded = result(&format!("{LOAD}{WAIT}{SAVE}"));
    assert_eq!(loaded[..32], (0..32).collect::<Vec<_>>());
    // To the block's own memory, with a state, an expectation of its own, a hint, and in two pieces.
    let pieces = "createpolicy.fractional.L2::evict_last.b64 d5, 1.0;
@p mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 96;
@p cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [d0+64], 64, [bar], d5;
@p cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+64], [d0], 64, [bar];
@p mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 state, [bar], 32;
bar.sync 0;
LOOK: mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 q, [bar], 0;
@!q bra LOOK;
";
    let loaded = result(&format!("{pieces}{SAVE}"));
    let expected: Vec<u32> = (16..32).chain(0..16).collect();
    assert_eq!(loaded[..32], expected);
}

#[test]
fn a_tile_comes_by_a_map() {
    let body = format!(
        "prefetch.tensormap [tensor];
fence.proxy.tensormap::generic.release.gpu;
fence.proxy.tensormap::generic.acquire.gpu [tensor], 128;
@p cp.async.bulk.prefetch.tensor.2d.L2.global.tile [tensor, {{24, 1}}];
@p cp.async.bulk.prefetch.L2.global [d0], 128;
@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
mov.u32 r3, 24; mov.u32 r4, 1;
@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [tensor, {{r3, r4}}], [bar];
{WAIT}{SAVE}"
    );
    let expected: Vec<u32> = (0..32).map(|at| (1 + at / 8) * 32 + 24 + at % 8).collect();
    assert_eq!(result(&body)[..32], expected);
}

#[test]
fn groups_are_waited_for() {
    let store = "@p cp.async.bulk.global.shared::cta.bulk_group [d1], [tile], 128;
@p cp.async.bulk.commit_group;
";
    // At a wait, and at the latest when the thread ends.
    for wait in ["@p cp.async.bulk.wait_group 0;", ""] {
        let stored = result(&format!("{WRITE}{store}{wait}"));
        assert_eq!(stored[..32], (0..32).map(|at| at * 7).collect::<Vec<_>>());
        assert_eq!(stored[32..], [1000; 224]);
    }
    // Whoever reuses the source before it was read copies what is there then.
    let reuse = "@p st.shared.u32 [tile], 5;\n";
    let early = result(&format!(
        "{WRITE}{store}{reuse}@p cp.async.bulk.wait_group 0;"
    ));
    assert_eq!(early[..2], [5, 7]);
    let read = result(&format!(
        "{WRITE}{store}@p cp.async.bulk.wait_group.read 0;\n{reuse}@p cp.async.bulk.wait_group 0;"
    ));
    assert_eq!(read[..2], [0, 7]);
    // All but the latest group.
    let one = result(&format!(
        "{WRITE}{store}@p cp.async.bulk.global.shared::cta.bulk_group [d1+256], [tile], 64;
@p cp.async.bulk.commit_group;
@p cp.async.bulk.wait_group 1;
@p ld.global.u32 r5, [d1+4];
@p ld.global.u32 r6, [d1+260];
@p st.global.u32 [d1+512], r5;
@p st.global.u32 [d1+516], r6;
"
    ));
    assert_eq!((one[128], one[129], one[65]), (7, 1000, 7));
}

#[test]
fn a_tile_is_stored_and_reduced() {
    let program = lower(&kernel(&format!(
        "{WRITE}
mov.u32 r3, 8; mov.u32 r4, 6;
@p cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [tensor, {{r3, r4}}], [tile];
@p cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [tensor, {{0, 0}}], [tile];
@p cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [d1], [tile], 16;
@p cp.async.bulk.commit_group;
@p cp.async.bulk.wait_group 0;"
    )));
    let mut memory = Memory::new();
    let (array, other) = (memory.hold_u32(&[100; 256]), memory.hold_u32(&[10; 4]));
    let params = Params::new()
        .add(&map(array).to_bytes(), 64)
        .u64(array)
        .u64(other);
    run(&mut memory, launch(&program, "k", params.done(), vec![])).unwrap();
    let found = memory.u32s(array);
    for (at, &word) in (0_u32..).zip(&found) {
        let (row, column) = (at / 32, at % 32);
        let expected = match (row, column) {
            // The tile's last two rows lie beyond the array.
            (6.., 8..16) => ((row - 6) * 8 + column - 8) * 7,
            (..4, ..8) => 100 + (row * 8 + column) * 7,
            _ => 100,
        };
        assert_eq!(word, expected, "row {row}, column {column}");
    }
    assert_eq!(memory.u32s(other), [10, 10, 14, 21]);
}

fn cluster(launch: &mut Launch) {
    launch.grid = [2, 1, 1];
    launch.cluster = [2, 1, 1];
}

#[test]
fn all_blocks_of_a_cluster_are_told() {
    let save = SAVE.replace(
        "add.u64 d2, d1, d2;",
        "add.u64 d2, d1, d2;\nmul.wide.u32 d3, rank, 512;\nadd.u64 d2, d2, d3;",
    );
    let body = format!(
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.eq.u32 r, rank, 1;
and.pred r, r, p;
mov.u16 h0, 3;
@r cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [d0], 128, [bar], h0;
{WAIT}{save}"
    );
    for order in [Order::Deterministic, Order::Seeded(3), Order::Seeded(4)] {
        let ran = try_body(&body, |launch| {
            cluster(launch);
            launch.order = order;
        });
        let ran = ran.unwrap_or_else(|fault| panic!("{fault}"));
        let expected: Vec<u32> = (0..32).collect();
        assert_eq!(ran.result()[..32], expected);
        assert_eq!(ran.result()[128..160], expected);
        assert_eq!(ran.memory.u32s(ran.from)[5], 5);
    }
}

#[test]
fn one_block_sends_to_another() {
    for (sent, expected) in [
        (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
            7,
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32",
            14,
        ),
    ] {
        let save = SAVE.replace("[r1];", "[r1+1024];");
        let body = format!(
            "{WRITE}st.shared.u32 [r1+1024], r2;
fence.proxy.async.shared::cta;
@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
xor.b32 r3, rank, 1;
mapa.shared::cluster.u32 r4, tile, r3;
mapa.shared::cluster.u32 r5, bar, r3;
@p {sent} [r4+1024], [tile], 128, [r5];
{WAIT}{save}
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;"
        );
        let ran = try_body(&body, cluster).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(ran.result()[3], 3 * expected);
    }
}

#[test]
fn another_block_arrives() {
    let body = "setp.eq.u32 r, rank, 0;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 r3, 0;
mapa.shared::cluster.u32 r4, bar, r3;
@r bra WAIT;
@p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r4];
bra LEAVE;
WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 q, [bar], 0;
@!q bra WAIT;
@p st.global.u32 [d1], 1;
LEAVE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;";
    let ran = try_body(body, cluster).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(ran.result()[0], 1);
}

#[test]
fn waits_that_never_end() {
    let more = LOAD.replace("[bar], 128;\n@p cp", "[bar], 192;\n@p cp");
    let found = fault(&format!("{more}{WAIT}"));
    assert_eq!(found.kind, FaultKind::Deadlock, "{found}");
    assert!(
        found
            .message
            .contains("wait at `mbarrier` 0x1000: 0 arrivals and 64 bytes are missing"),
        "{found}"
    );
    let fewer = LOAD.replace("[bar], 128;\n@p cp", "[bar], 96;\n@p cp");
    let found = fault(&format!("{fewer}{WAIT}"));
    assert!(
        found
            .message
            .contains("0 arrivals are missing, and 32 bytes came that were not expected"),
        "{found}"
    );
    let found = fault(WAIT);
    assert!(found.message.contains("1 arrivals are missing"), "{found}");
    // One of a cluster.
    let body = format!("setp.eq.u32 r, rank, 1;\n@r bra LEAVE;\n{WAIT}LEAVE:");
    let Err(found) = try_body(&body, cluster) else {
        panic!("it ends");
    };
    assert_eq!(found.kind, FaultKind::Deadlock, "{found}");
}

#[test]
fn a_thread_may_look_elsewhere_while_it_waits() {
    // What it looks at changes only after it gave up on the barrier once.
    let body = "mov.u32 r3, 0;
TRY: mbarrier.try_wait.parity.shared::cta.b64 q, [bar], 0;
@q bra OVER;
add.u32 r3, r3, 1;
atom.global.add.u32 r4, [d1], 1;
setp.lt.u32 r, r4, 96;
@r bra TRY;
OVER:";
    let ran = try_body(body, |_| {}).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(ran.result()[0] > 1000);
}

#[test]
fn what_nobody_waits_for() {
    let found = fault(LOAD);
    assert_eq!((found.kind, found.kind.code()), (FaultKind::BulkCopy, 719));
    assert!(
        found.message.contains(
            "the block ended while a bulk copy of 128 bytes to its shared memory was under way"
        ),
        "{found}"
    );
    let line = kernel(LOAD)
        .lines()
        .position(|line| line.contains("@p cp.async.bulk"));
    assert_eq!(
        found.position.unwrap().line as usize,
        line.unwrap() + 1,
        "{found}"
    );
    // A thread that does not wait sees what was there before: nothing.
    let found = fault(&format!("{LOAD}bar.sync 0;\n{SAVE}"));
    assert_eq!(found.kind, FaultKind::Uninitialised, "{found}");
    // Or races with the copy: here the second warp.
    let backwards = SAVE.replace(
        "shl.b32 r0, tid, 2;",
        "sub.u32 r0, 63, tid;\nshl.b32 r0, r0, 2;",
    );
    for order in [Order::Deterministic, Order::Seeded(1), Order::Seeded(2)] {
        let found = try_body(
            &format!("{WRITE}{LOAD}bar.sync 0;\n{backwards}{WAIT}"),
            |launch| {
                launch.block = [64, 1, 1];
                launch.order = order;
            },
        );
        match found {
            Ok(_) => panic!("it runs"),
            Err(found) => assert_eq!(found.kind, FaultKind::SharedRace, "{found}"),
        }
    }
}

#[test]
fn copies_that_break_a_rule() {
    let tile = |to: &str, map: &str, coordinates: &str| {
        format!(
            "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{to}], [{map}, {{{coordinates}}}], [bar];
{WAIT}"
        )
    };
    let bulk = |to: &str, from: &str, size: &str, bar: &str| {
        format!(
            "mov.u32 r9, {size};
@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], r9;
@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{to}], [{from}], r9, [{bar}];
{WAIT}"
        )
    };
    for (body, kind, words) in [
        (
            tile("tile+64", "tensor", "0, 0"),
            FaultKind::Misaligned,
            "shared memory at 0x40, which is no multiple of 128",
        ),
        (
            tile("tile+4096", "tensor", "0, 0"),
            FaultKind::IllegalAddress,
            "128 bytes of shared memory at 0x1000, outside of the block's 4104 bytes",
        ),
        (
            tile("tile", "tensor+32", "0, 0"),
            FaultKind::Misaligned,
            "at a multiple of 64",
        ),
        (
            tile("tile", "d0", "0, 0"),
            FaultKind::TensorMap,
            "there is no tensor map at",
        ),
        (
            tile("tile", "tensor", "2, 0"),
            FaultKind::TensorMap,
            "the innermost coordinate is 2, which lies at no multiple of 16 bytes",
        ),
        (
            tile("tile", "tensor", "0, 0, 0").replace(".2d.", ".3d."),
            FaultKind::TensorMap,
            "the instruction is for 3 dimensions, and the tensor map has 2",
        ),
        (
            bulk("tile+8", "d0", "64", "bar"),
            FaultKind::Misaligned,
            "shared memory at 0x8, which is no multiple of 16",
        ),
        (
            bulk("tile", "d0+4", "64", "bar"),
            FaultKind::Misaligned,
            "bulk copy of global memory at",
        ),
        (
            bulk("tile", "d0", "24", "bar"),
            FaultKind::BulkCopy,
            "bulk copy of 24 bytes, which is no multiple of 16",
        ),
        (
            bulk("tile", "d0+1008", "32", "bar"),
            FaultKind::IllegalAddress,
            "bulk copy of 32 bytes at",
        ),
        (
            bulk("tile", "d0", "64", "tile"),
            FaultKind::IllegalAddress,
            "no barrier was made by `mbarrier.init`",
        ),
        (
            "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1048576;".to_owned(),
            FaultKind::BulkCopy,
            "is to wait for 1048576 bytes, where 1048575 are the most",
        ),
        (
            "@p cp.async.bulk.global.shared::cta.bulk_group [d1], [tile], 64;".to_owned(),
            FaultKind::Uninitialised,
            "none of which was written",
        ),
        (
            format!(
                "{WRITE}@p cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [tensor, {{-4, 0}}], [tile];"
            ),
            FaultKind::TensorMap,
            "where no coordinate may be negative",
        ),
    ] {
        let found = fault(&body);
        assert_eq!(found.kind, kind, "{found}\n{body}");
        assert!(found.message.contains(words), "{found}\n{body}");
    }
    assert_eq!(FaultKind::TensorMap.code(), 715);
}

#[test]
fn an_array_that_is_not_there() {
    let program = lower(&kernel(&format!(
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [tensor, {{0, 4}}], [bar];
{WAIT}"
    )));
    let mut memory = Memory::new();
    // Half of it.
    let array = memory.hold_u32(&[1; 128]);
    let params = Params::new()
        .add(&map(array).to_bytes(), 64)
        .u64(array)
        .u64(array);
    let found = run(&mut memory, launch(&program, "k", params.done(), vec![])).unwrap_err();
    assert_eq!(found.kind, FaultKind::IllegalAddress, "{found}");
    assert!(found.message.starts_with("by a tensor map: "), "{found}");
}

#[test]
fn a_map_is_what_was_written_down() {
    let map = TensorMap {
        element: 12,
        rank: 5,
        address: 0x7000_1234_5600,
        dims: [1 << 32, 1, 2, 3, 4],
        strides: [(1 << 40) - 16, 0, 32, 48],
        element_strides: [1, 2, 3, 4, 8],
        interleave: 0,
        swizzle: 3,
        l2_promotion: 2,
        fill: 1,
        mode: TensorMode::Im2col {
            lower: [-16, 0, 3],
            upper: [15, 0, 14],
            channels: 32,
            pixels: 1024,
        },
    };
    assert_eq!(TensorMap::from_bytes(&map.to_bytes()), Some(map));
    let tiled = TensorMap {
        mode: TensorMode::Tiled {
            tile: [16, 1, 256, 2, 3],
        },
        ..map
    };
    assert_eq!(TensorMap::from_bytes(&tiled.to_bytes()), Some(tiled));
    assert_eq!(TensorMap::from_bytes(&[0; 128]), None);
}
