//! Bulk copies by tensor maps move what an H200 moved, byte by byte, and maps are refused as its driver refused
//! them.
//!
//! `data/tensor-maps-h200.bin` holds one record after another: numbers of variable length, then the bytes that
//! the copy left behind.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the values of a test are small, and wanted exactly"
)]

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use gridcall_emulator::exec::{FaultKind, Program, TensorMap, TensorMode};
use support::{Memory, Params, launch, lower, run};

const GOLDEN: &[u8] = include_bytes!("data/tensor-maps-h200.bin");

/// The bytes of global memory that a copy can reach.
const GLOBAL: usize = 65536;
/// What shared memory holds where nothing is copied to.
const UNTOUCHED: u8 = 0xee;

const REDUCTIONS: [&str; 9] = ["", "add", "min", "max", "inc", "dec", "and", "or", "xor"];
const BULK_REDUCTIONS: [&str; 27] = [
    "and.b32",
    "or.b32",
    "xor.b32",
    "and.b64",
    "or.b64",
    "xor.b64",
    "add.u32",
    "add.s32",
    "add.u64",
    "inc.u32",
    "dec.u32",
    "min.u32",
    "min.s32",
    "min.u64",
    "min.s64",
    "max.u32",
    "max.s32",
    "max.u64",
    "max.s64",
    "add.f32",
    "add.f64",
    "add.noftz.f16",
    "add.noftz.bf16",
    "min.f16",
    "max.f16",
    "min.bf16",
    "max.bf16",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Load,
    LoadIm2col,
    Store,
    StoreIm2col,
    Reduce,
    BulkReduce,
    Encode,
    EncodeIm2col,
}

const KINDS: [Kind; 8] = [
    Kind::Load,
    Kind::LoadIm2col,
    Kind::Store,
    Kind::StoreIm2col,
    Kind::Reduce,
    Kind::BulkReduce,
    Kind::Encode,
    Kind::EncodeIm2col,
];

/// One instruction, or one map, and what became of it.
#[derive(Debug)]
struct Record {
    kind: Kind,
    /// The reduction.
    op: usize,
    /// Which of two contents global memory had.
    contents: usize,
    /// Where the array begins in it.
    offset: i64,
    map: TensorMap,
    coordinates: [i64; 5],
    offsets: [i64; 3],
    /// Where the tile begins in shared memory, and how much of that was looked at.
    skip: u64,
    total: u64,
    /// The driver's or the launch's code.
    code: i64,
    /// The bytes of which the barrier was told.
    told: u64,
    data: Vec<u8>,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap();
        self.0 = rest;
        *first
    }

    fn unsigned(&mut self) -> u128 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= u128::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        value
    }

    fn number(&mut self) -> i64 {
        let value = self.unsigned();
        let half = (value >> 1) as i64;
        if value & 1 == 0 { half } else { -half - 1 }
    }

    fn numbers<const N: usize>(&mut self) -> [i64; N] {
        [(); N].map(|()| self.number())
    }

    /// Bytes that differ from a background here and there: how many are the same, how many follow, those.
    fn data(&mut self, background: impl Fn(usize) -> u8) -> Vec<u8> {
        let length = self.unsigned() as usize;
        let mut data: Vec<u8> = (0..length).map(background).collect();
        let mut at = 0;
        while at < length {
            at += self.unsigned() as usize;
            for _ in 0..self.unsigned() {
                data[at] ^= self.byte();
                at += 1;
            }
        }
        data
    }

    fn record(&mut self) -> Record {
        let [kind, op, contents, element, rank, offset] = self.numbers();
        let dims: [i64; 5] = self.numbers();
        let strides: [i64; 4] = self.numbers();
        let (tile, steps): ([i64; 5], [i64; 5]) = (self.numbers(), self.numbers());
        let [interleave, swizzle, l2_promotion, fill] = self.numbers();
        let (lower, upper): ([i64; 3], [i64; 3]) = (self.numbers(), self.numbers());
        let [channels, pixels] = self.numbers();
        let (coordinates, offsets) = (self.numbers(), self.numbers());
        let [skip, total, code, told] = self.numbers();
        let kind = KINDS[kind as usize];
        let contents = contents as usize;
        let data = match kind {
            Kind::Load | Kind::LoadIm2col => self.data(|_| UNTOUCHED),
            _ => self.data(|at| byte(contents, at)),
        };
        let mode = match kind {
            Kind::LoadIm2col | Kind::StoreIm2col | Kind::EncodeIm2col => TensorMode::Im2col {
                lower: lower.map(|corner| corner as i32),
                upper: upper.map(|corner| corner as i32),
                channels: channels as u32,
                pixels: pixels as u32,
            },
            _ => TensorMode::Tiled {
                tile: tile.map(|size| size as u32),
            },
        };
        let map = TensorMap {
            element: element as u32,
            rank: rank as u32,
            address: 0,
            dims: dims.map(|dim| dim as u64),
            strides: strides.map(|stride| stride as u64),
            element_strides: steps.map(|step| step as u32),
            interleave: interleave as u32,
            swizzle: swizzle as u32,
            l2_promotion: l2_promotion as u32,
            fill: fill as u32,
            mode,
        };
        Record {
            kind,
            op: op as usize,
            contents,
            offset,
            map,
            coordinates,
            offsets,
            skip: skip as u64,
            total: total as u64,
            code,
            told: told as u64,
            data,
        }
    }
}

fn records(kinds: &[Kind]) -> Vec<Record> {
    let mut reader = Reader(GOLDEN);
    let mut records = Vec::new();
    while !reader.0.is_empty() {
        let record = reader.record();
        if kinds.contains(&record.kind) {
            records.push(record);
        }
    }
    assert!(!records.is_empty());
    records
}

/// A word of memory; of the second kind every third is subnormal.
fn word(contents: usize, at: u32) -> u32 {
    let word = at.wrapping_mul(0x9e37_79b1);
    let word = (word ^ word >> 15).wrapping_mul(0x85eb_ca77);
    let word = word ^ word >> 13;
    if contents == 1 && at.is_multiple_of(3) {
        word & 0x807f_ffff
    } else {
        word
    }
}

fn byte(contents: usize, at: usize) -> u8 {
    word(contents, at as u32 / 4).to_le_bytes()[at % 4]
}

/// Parameters, registers, and where shared memory begins.
const HEAD: &str = "
(.param .align 64 .b8 map[128], .param .u64 data, .param .u64 out, .param .u32 skip, .param .u32 total, .param .u32 told,
 .param .u32 pc0, .param .u32 pc1, .param .u32 pc2, .param .u32 pc3, .param .u32 pc4,
 .param .u16 po0, .param .u16 po1, .param .u16 po2)
{
.reg .pred p, q;
.reg .b16 o<3>;
.reg .b32 c<5>, tid, at, total, skip, told, there, tile, bar, word;
.reg .b64 data, out, tensor, place;
.shared .align 8 .b64 barrier;
ld.param.u64 data, [data_];
ld.param.u64 out, [out_];
";

fn head() -> String {
    let mut text = HEAD
        .replace(".param .u64 data,", ".param .u64 data_,")
        .replace(".param .u64 out,", ".param .u64 out_,");
    for (register, name) in [("skip", "skip_"), ("total", "total_"), ("told", "told_")] {
        text = text.replace(
            &format!(".param .u32 {register},"),
            &format!(".param .u32 {name},"),
        );
        let _ = writeln!(text, "ld.param.u32 {register}, [{name}];");
    }
    for at in 0..5 {
        let _ = writeln!(text, "ld.param.u32 c{at}, [pc{at}];");
    }
    for at in 0..3 {
        let _ = writeln!(text, "ld.param.u16 o{at}, [po{at}];");
    }
    text.push_str(
        "mov.u32 tid, %tid.x;\nmov.u32 bar, barrier;\nmov.u32 there, smem;\nadd.u32 tile, there, skip;\n\
         mov.b64 tensor, map;\ncvta.param.u64 tensor, tensor;\nsetp.ne.u32 p, tid, 0;\nshl.b32 at, tid, 2;\n",
    );
    text
}

fn list(name: &str, count: u32) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("{name}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

fn kernel(record: &Record) -> String {
    let rank = record.map.rank;
    let coordinates = list("c", rank);
    let body = match record.kind {
        Kind::Load | Kind::LoadIm2col => {
            let (mode, offsets) = match record.kind {
                Kind::Load => ("tile", String::new()),
                _ => ("im2col", format!(", {}", list("o", rank - 2))),
            };
            format!(
                "FILL: setp.ge.u32 q, at, total;
@q bra FILLED;
add.u32 word, there, at;
st.shared.u32 [word], 0xeeeeeeee;
add.u32 at, at, 128;
bra FILL;
FILLED:
@!p mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async;
bar.sync 0;
@!p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], told;
@!p cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [tile], [tensor, {coordinates}], [bar]{offsets};
WAIT: mbarrier.try_wait.parity.shared::cta.b64 q, [bar], 0;
@!q bra WAIT;
shl.b32 at, tid, 2;
DUMP: setp.ge.u32 q, at, total;
@q bra DONE;
add.u32 word, there, at;
cvt.u64.u32 place, at;
add.u64 place, place, out;
ld.shared.u32 word, [word];
st.global.u32 [place], word;
add.u32 at, at, 128;
bra DUMP;
DONE: ret;
}}
"
            )
        }
        _ => {
            let mode = if record.kind == Kind::StoreIm2col {
                "im2col_no_offs"
            } else {
                "tile"
            };
            let op = REDUCTIONS[if record.kind == Kind::Reduce {
                record.op
            } else {
                0
            }];
            let copy = match record.kind {
                Kind::BulkReduce => format!(
                    "cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [data], [tile], total;",
                    BULK_REDUCTIONS[record.op]
                ),
                Kind::Reduce => format!(
                    "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.{mode}.bulk_group [tensor, {coordinates}], [tile];"
                ),
                _ => format!(
                    "cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group [tensor, {coordinates}], [tile];"
                ),
            };
            format!(
                "FILL: setp.ge.u32 q, at, total;
@q bra FILLED;
cvt.u64.u32 place, at;
add.u64 place, place, out;
ld.global.u32 word, [place];
add.u32 tid, there, at;
st.shared.u32 [tid], word;
add.u32 at, at, 128;
bra FILL;
FILLED:
fence.proxy.async;
bar.sync 0;
@p bra DONE;
{copy}
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE: ret;
}}
"
            )
        }
    };
    format!(
        ".version 8.3\n.target sm_90\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n.visible .entry k{}{body}",
        head()
    )
}

/// Runs a record's instruction; answers what it left behind, or the code it ended with.
fn result(record: &Record, programs: &mut HashMap<String, Arc<Program>>) -> Result<Vec<u8>, i64> {
    let text = kernel(record);
    let program = programs
        .entry(text)
        .or_insert_with_key(|text| lower(text))
        .clone();
    let loads = matches!(record.kind, Kind::Load | Kind::LoadIm2col);
    let mut memory = Memory::new();
    let data = memory.hold((0..GLOBAL).map(|at| byte(record.contents, at)).collect());
    // The words of shared memory that are stored are those of numbers from 2^24 on.
    let words = (0..record.total as u32 / 4).flat_map(|at| word(0, at + (1 << 24)).to_le_bytes());
    let out = memory.hold(words.collect());
    let map = TensorMap {
        address: data + record.offset as u64,
        ..record.map
    };
    let bytes = if record.kind == Kind::BulkReduce {
        [0; 128]
    } else {
        map.check().unwrap();
        map.to_bytes()
    };
    let mut params = Params::new()
        .add(&bytes, 64)
        .u64(data)
        .u64(out)
        .u32(record.skip as u32)
        .u32(record.total as u32)
        .u32(record.told as u32);
    for coordinate in record.coordinates {
        params = params.u32(coordinate as i32 as u32);
    }
    for offset in record.offsets {
        params = params.add(&(offset as u16).to_le_bytes(), 2);
    }
    let mut launch = launch(&program, "k", params.done(), vec![]);
    launch.dynamic_shared = record.total as u32 + 65536;
    match run(&mut memory, launch) {
        Ok(_) if loads => Ok(memory.bytes_at(out)[..record.total as usize].to_vec()),
        Ok(_) => Ok(memory.bytes_at(data).to_vec()),
        Err(fault) if fault.kind == FaultKind::TensorMap => Err(i64::from(fault.kind.code())),
        Err(fault) => panic!("{fault}: {record:?}"),
    }
}

fn compare(kinds: &[Kind]) {
    let mut programs = HashMap::new();
    let mut copied = 0;
    for (at, record) in records(kinds).iter().enumerate() {
        // Refused by the driver; looked at elsewhere.
        if record.code == 1 {
            continue;
        }
        match result(record, &mut programs) {
            Ok(found) => {
                assert_eq!(record.code, 0, "record {at} of {kinds:?}: {record:?}");
                let untouched =
                    (record.data.len()..found.len()).map(|at| byte(record.contents, at));
                let golden: Vec<u8> = record.data.iter().copied().chain(untouched).collect();
                if let Some(first) = (0..found.len()).find(|at| found[*at] != golden[*at]) {
                    let around = first / 16 * 16..found.len().min(first / 16 * 16 + 16);
                    panic!(
                        "record {at} of {kinds:?} differs from byte {first} on: {:02x?}, and {:02x?} on the H200; {:?} at {:?} + \
                         {:?}, {} bytes into shared memory",
                        &found[around.clone()],
                        &golden[around],
                        record.map,
                        record.coordinates,
                        record.offsets,
                        record.skip
                    );
                }
                copied += 1;
            }
            Err(code) => assert_eq!(code, record.code, "record {at} of {kinds:?}: {record:?}"),
        }
    }
    assert!(copied > 10, "{copied}");
}

#[test]
fn tiles_are_loaded_as_on_a_gpu() {
    compare(&[Kind::Load]);
}

#[test]
fn pixels_are_loaded_as_on_a_gpu() {
    compare(&[Kind::LoadIm2col]);
}

#[test]
fn tiles_are_stored_as_on_a_gpu() {
    compare(&[Kind::Store, Kind::StoreIm2col]);
}

#[test]
fn tiles_are_reduced_as_on_a_gpu() {
    compare(&[Kind::Reduce]);
}

#[test]
fn bytes_are_reduced_as_on_a_gpu() {
    compare(&[Kind::BulkReduce]);
}

#[test]
fn maps_are_refused_as_by_the_driver() {
    let (mut kept, mut refused) = (0, 0);
    for record in records(&[Kind::Encode, Kind::EncodeIm2col]) {
        let map = TensorMap {
            address: record.offset.max(0) as u64,
            ..record.map
        };
        let check = map.check();
        match &check {
            // The manual asks for more than the driver does.
            Err(words) if words.contains("an interleave of 32 bytes") => continue,
            Ok(()) => kept += 1,
            Err(_) => refused += 1,
        }
        assert_eq!(
            check.is_ok(),
            record.code == 0,
            "{check:?}, and code {}: {record:?}",
            record.code
        );
    }
    assert!(kept > 300 && refused > 300, "{kept}, {refused}");
}
