//! Every instruction computes what a GPU computed: bit for bit, or within the error the ISA allows.

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

use std::collections::BTreeMap;
use std::fmt::Write as _;

use support::{Memory, Params, launch, lower, run};

const GOLDEN: &str = include_str!("data/golden-h200.txt");

struct Block<'a> {
    text: &'a str,
    inputs: Vec<&'a str>,
    output: &'a str,
    rows: Vec<Vec<u64>>,
}

fn blocks<'a>(kind: &str) -> Vec<Block<'a>> {
    let mut found: Vec<Block<'a>> = Vec::new();
    let mut open = false;
    for line in GOLDEN.lines().skip(1) {
        if let Some((head, rest)) = line.split_once(": ")
            && matches!(head, "op" | "warp" | "mma")
        {
            open = head == kind;
            if open {
                let (text, types) = rest.split_once(" | ").unwrap();
                let (inputs, output) = types.split_once(" -> ").unwrap();
                let inputs = inputs.split(' ').collect();
                found.push(Block {
                    text,
                    inputs,
                    output,
                    rows: Vec::new(),
                });
            }
        } else if open {
            let words = line.split(' ').filter(|word| *word != ":");
            let row = words
                .map(|word| u64::from_str_radix(word, 16).unwrap())
                .collect();
            found.last_mut().unwrap().rows.push(row);
        }
    }
    found
}

/// The register an operand of a type travels in: its declaration, and its bytes.
fn register(ty: &str) -> (&'static str, usize) {
    match ty {
        "s8" | "u8" => ("b32", 4),
        "s16" | "u16" | "b16" | "f16" | "bf16" => ("b16", 2),
        "s64" | "u64" | "b64" => ("b64", 8),
        "f64" => ("f64", 8),
        "f32" => ("f32", 4),
        _ => ("b32", 4),
    }
}

/// A kernel that does the instruction on row `tid`, its operands apart in memory.
fn kernel(block: &Block<'_>) -> String {
    let names = ["a", "b", "c"];
    let mut text =
        String::from(".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(");
    text.push_str(".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 pd)\n{\n");
    text.push_str(
        ".reg .pred pr;\n.reg .b64 base, at, wide;\n.reg .b32 tid;\nmov.u32 tid, %tid.x;\n",
    );
    for (at, (ty, name)) in block.inputs.iter().zip(names).enumerate() {
        let ty = if *ty == "pred" { "b32" } else { ty };
        let (register, bytes) = register(ty);
        let narrow = matches!(ty, "s8" | "u8");
        let _ = writeln!(text, ".reg .{register} {name}in;");
        let _ = writeln!(
            text,
            "ld.param.u64 base, [p{at}];\nmad.wide.u32 at, tid, {bytes}, base;"
        );
        let _ = writeln!(text, "ld.global.b{} {name}in, [at];", bytes * 8);
        if narrow {
            let _ = writeln!(
                text,
                ".reg .b16 {name}short;\ncvt.u16.u32 {name}short, {name}in;"
            );
        }
    }
    let (result, bytes) = register(block.output);
    let _ = writeln!(text, ".reg .{result} result;");
    let mut body = block.text.replace("{d}", "result").replace("{p}", "pr");
    for (ty, name) in block.inputs.iter().zip(names) {
        let narrow = matches!(*ty, "s8" | "u8");
        let register = if narrow {
            format!("{name}short")
        } else {
            format!("{name}in")
        };
        body = body.replace(&format!("{{{name}}}"), &register);
    }
    let _ = writeln!(text, "{body}");
    let _ = writeln!(
        text,
        "ld.param.u64 base, [pd];\nmad.wide.u32 at, tid, {bytes}, base;"
    );
    let _ = writeln!(text, "st.global.b{} [at], result;\nret;\n}}", bytes * 8);
    text
}

fn results(block: &Block<'_>) -> Vec<u64> {
    let text = kernel(block);
    let program = match gridcall_emulator::exec::Program::lower(&text) {
        Ok(program) => std::sync::Arc::new(program),
        Err(error) => panic!("{error}\n{text}"),
    };
    let mut memory = Memory::new();
    let mut params = Params::new();
    for at in 0..3 {
        let start = match block.inputs.get(at) {
            Some(ty) => {
                let (_, bytes) = register(ty);
                let column = block
                    .rows
                    .iter()
                    .flat_map(|row| row[at].to_le_bytes()[..bytes].to_vec());
                memory.hold(column.collect())
            }
            None => 0,
        };
        params = params.u64(start);
    }
    let (_, bytes) = register(block.output);
    let out = memory.hold(vec![0; bytes * block.rows.len()]);
    let mut launch = launch(&program, "k", params.u64(out).done(), Vec::new());
    launch.block = [block.rows.len() as u32, 1, 1];
    if let Err(fault) = run(&mut memory, launch) {
        panic!("{fault}\n{text}");
    }
    let piece = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    memory
        .bytes_at(out)
        .chunks_exact(bytes)
        .map(piece)
        .collect()
}

#[test]
fn computes_what_a_gpu_computes() {
    let mut wrong = String::new();
    let all = blocks("op");
    assert_eq!(all.len(), 1036);
    for block in &all {
        if block.text.contains(".approx") || block.text.contains(".full") {
            continue;
        }
        for (row, got) in block.rows.iter().zip(results(block)) {
            let wanted = row[row.len() - 1];
            if got != wanted {
                let _ = writeln!(wrong, "{}: {row:x?}, computed {got:x}", block.text);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn exchanges_what_a_gpu_exchanges() {
    let mut wrong = String::new();
    let all = blocks("warp");
    assert_eq!(all.len(), 91);
    for block in &all {
        for (row, got) in block.rows.iter().zip(results(block)) {
            if got != row[row.len() - 1] {
                let _ = writeln!(wrong, "{}: {row:x?}, computed {got:x}", block.text);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A number of the type, and the distance to the next one.
fn value(ty: &str, bits: u64) -> (f64, f64) {
    let (exponent_bits, mantissa_bits) = match ty {
        "f16" => (5, 10),
        "bf16" => (8, 7),
        "f32" => (8, 23),
        _ => (11, 52),
    };
    let bias = (1 << (exponent_bits - 1)) - 1;
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let field = (bits >> mantissa_bits & ((1 << exponent_bits) - 1)) as i32;
    let sign = if bits >> (exponent_bits + mantissa_bits) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    if field == (1 << exponent_bits) - 1 {
        return (
            if mantissa == 0 {
                sign * f64::INFINITY
            } else {
                f64::NAN
            },
            0.0,
        );
    }
    let unit = 2_f64.powi(field.max(1) - bias - mantissa_bits);
    let hidden = if field == 0 {
        0.0
    } else {
        2_f64.powi(mantissa_bits)
    };
    (sign * (mantissa as f64 + hidden) * unit, unit)
}

#[test]
fn approximates_as_a_gpu_does() {
    let mut largest: BTreeMap<String, f64> = BTreeMap::new();
    let mut wrong = String::new();
    for block in blocks("op") {
        if !block.text.contains(".approx") && !block.text.contains(".full") {
            continue;
        }
        let name = block.text.split(' ').next().unwrap();
        let ty = block.output.trim_end_matches("x2");
        let halves: &[u32] = if block.output.ends_with("x2") {
            &[0, 16]
        } else {
            &[0]
        };
        for (row, got) in block.rows.iter().zip(results(&block)) {
            for shift in halves {
                let part = |bits: u64| {
                    if halves.len() == 2 {
                        bits >> shift & 0xffff
                    } else {
                        bits
                    }
                };
                let ((wanted, unit), (computed, _)) =
                    (value(ty, part(row[row.len() - 1])), value(ty, part(got)));
                let (x, _) = value(ty, part(row[0]));
                let periodic = name.starts_with("sin") || name.starts_with("cos");
                let error = if wanted.is_nan()
                    || computed.is_nan()
                    || wanted.is_infinite()
                    || computed.is_infinite()
                {
                    let same = wanted.is_nan() == computed.is_nan()
                        && (wanted.is_nan() || wanted == computed);
                    if same { 0.0 } else { f64::INFINITY }
                } else if periodic {
                    // The ISA bounds the absolute error, between -pi and pi; beyond, it says nothing.
                    if x.abs() > std::f64::consts::PI {
                        0.0
                    } else {
                        (wanted - computed).abs() / 2_f64.powi(-20)
                    }
                } else {
                    (wanted - computed).abs() / unit
                };
                // These are the differences that the documentation states.
                let limit = match name.split('.').next().unwrap() {
                    "sin" | "cos" => 0.5,
                    "tanh" if ty == "f32" => 114.0,
                    "rsqrt" if ty == "f64" && name.contains("ftz") => 2_f64.powi(32),
                    "lg2" => 10.0,
                    _ => 1.0,
                };
                if error > limit {
                    let _ = writeln!(wrong, "{name}: {row:x?}, computed {got:x}: {error}");
                }
                let most = largest.entry(format!("{name} {ty}")).or_default();
                *most = most.max(error);
            }
        }
    }
    for (name, error) in &largest {
        println!("{name}: {error}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The registers of a, b, c and d, as `a 4 b 2 c 4 -> d 4` counts them.
fn counts(block: &Block<'_>) -> [usize; 4] {
    let numbers = block
        .inputs
        .iter()
        .skip(1)
        .step_by(2)
        .map(|word| word.parse().unwrap());
    let mut counts: Vec<usize> = numbers.collect();
    counts.push(block.output.split(' ').nth(1).unwrap().parse().unwrap());
    counts.try_into().unwrap()
}

fn matrix_results(block: &Block<'_>) -> Vec<Vec<u64>> {
    let [a, b, c, d] = counts(block);
    let mut text = String::from(".version 8.5\n.target sm_90\n.address_size 64\n");
    text.push_str(".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 from, to;\n.reg .b32 lane;\n");
    let _ = writeln!(
        text,
        ".reg .b32 a<{a}>, b<{b}>, c<{c}>, d<{d}>;\nmov.u32 lane, %laneid;"
    );
    let _ = writeln!(
        text,
        "ld.param.u64 from, [in];\nmad.wide.u32 from, lane, {}, from;",
        4 * (a + b + c)
    );
    let _ = writeln!(
        text,
        "ld.param.u64 to, [out];\nmad.wide.u32 to, lane, {}, to;",
        4 * d
    );
    let names = |name: char, count: usize| (0..count).map(move |at| format!("{name}{at}"));
    for (at, name) in names('a', a)
        .chain(names('b', b))
        .chain(names('c', c))
        .enumerate()
    {
        let _ = writeln!(text, "ld.global.b32 {name}, [from+{}];", 4 * at);
    }
    let list = |name, count| names(name, count).collect::<Vec<_>>().join(", ");
    let lists = [list('d', d), list('a', a), list('b', b), list('c', c)];
    let _ = writeln!(
        text,
        "{} {{{}}}, {{{}}}, {{{}}}, {{{}}};",
        block.text, lists[0], lists[1], lists[2], lists[3]
    );
    for (at, name) in names('d', d).enumerate() {
        let _ = writeln!(text, "st.global.b32 [to+{}], {name};", 4 * at);
    }
    text.push_str("ret;\n}\n");
    let program = lower(&text);
    let mut memory = Memory::new();
    let row = |row: &Vec<u64>| {
        row[..a + b + c]
            .iter()
            .map(|word| *word as u32)
            .collect::<Vec<_>>()
    };
    let from = memory.hold_u32(&block.rows.iter().flat_map(row).collect::<Vec<_>>());
    let to = memory.hold(vec![0; 32 * 4 * d]);
    let launch = launch(
        &program,
        "k",
        Params::new().u64(from).u64(to).done(),
        Vec::new(),
    );
    run(&mut memory, launch).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    memory
        .u32s(to)
        .chunks_exact(d)
        .map(|row| row.iter().map(|word| u64::from(*word)).collect())
        .collect()
}

#[test]
fn multiplies_matrices_as_a_gpu_does() {
    let all = blocks("mma");
    assert_eq!(all.len(), 22);
    let mut largest: BTreeMap<&str, f64> = BTreeMap::new();
    for block in &all {
        let [a, b, c, _] = counts(block);
        for (row, got) in block.rows.iter().zip(matrix_results(block)) {
            let wanted = &row[a + b + c..];
            let result = block
                .text
                .split('.')
                .find(|word| ["f16", "f32", "s32"].contains(word))
                .unwrap();
            for (wanted, got) in wanted.iter().zip(got) {
                let error = match result {
                    "s32" => f64::from(u8::from(*wanted != got)),
                    "f32" => (value("f32", *wanted).0 - value("f32", got).0).abs(),
                    _ => {
                        let half = |bits: u64, shift: u32| value("f16", bits >> shift & 0xffff);
                        let apart = |shift| {
                            (half(*wanted, shift).0 - half(got, shift).0).abs() / half(got, shift).1
                        };
                        f64::max(apart(0), apart(16))
                    }
                };
                let most = largest.entry(block.text).or_default();
                *most = most.max(error);
            }
        }
    }
    for (name, error) in &largest {
        println!("{name}: {error}");
        // The inputs lie between -2 and 2; halves are compared in units of the last place.
        let limit = match () {
            () if name.contains("s32") => 0.0,
            () if name.contains("f32") => 2_f64.powi(-20),
            () => 0.0,
        };
        assert!(*error <= limit, "{name}: {error}");
    }
}
