//! Valid PTX with random changes neither crashes nor hangs the interpreter: it is refused, stopped, or runs.
//!
//! `GRIDCALL_MUTATIONS` says how many are tried, `GRIDCALL_MUTATION_SEED` where to start.

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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridcall_emulator::exec::{Launch, Program};
use support::{Memory, launch, run};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ptx/tests/corpus");

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// The words of a text and what stands between them.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "%_$.".contains(c);
    let mut all = Vec::new();
    let mut start = 0;
    let mut inside = None;
    for (at, c) in text.char_indices() {
        let now = is_word(c);
        if inside.is_some_and(|inside| inside != now) || !now && inside.is_some() {
            all.push(&text[start..at]);
            start = at;
        }
        inside = Some(now);
    }
    all.push(&text[start..]);
    all
}

const ODD: [&str; 24] = [
    "0",
    "-1",
    "0x7fffffff",
    "0xffffffffffffffff",
    "31",
    "32",
    "33",
    "64",
    "0f7FC00000",
    "0d7FF8000000000000",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ".u8",
    ".b128",
    ".pred",
    ".v4",
    "%tid.x",
    "%laneid",
    ".f16x2",
    "@",
];

/// A few changes of a text, word by word or line by line.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let at = random.below(lines.len());
        match random.below(8) {
            0 => {
                lines.remove(at);
            }
            1 => {
                let line = lines[at].clone();
                lines.insert(random.below(lines.len()), line);
            }
            2 => {
                let other = random.below(lines.len());
                lines.swap(at, other);
            }
            kind => {
                let line = lines[at].clone();
                let mut parts = words(&line);
                let place = random.below(parts.len());
                let other = lines[random.below(lines.len())].clone();
                let others = words(&other);
                match kind {
                    3 => parts[place] = ODD[random.below(ODD.len())],
                    4 => parts[place] = "",
                    _ => parts[place] = others[random.below(others.len())],
                }
                lines[at] = parts.concat();
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

/// Lowers a text and runs its kernels for a while.
fn try_out(text: &str) -> bool {
    let Ok(program) = Program::lower(text) else {
        return false;
    };
    let program = Arc::new(program);
    for kernel in program.kernels().iter().take(3) {
        if kernel.param_bytes > 1 << 16 || kernel.shared_bytes > 1 << 20 {
            continue;
        }
        if program
            .variables()
            .iter()
            .any(|variable| variable.size > 1 << 24)
        {
            continue;
        }
        let mut memory = Memory::new();
        let data = memory.hold(vec![0; 1 << 14]);
        let params: Vec<u8> = (0..kernel.param_bytes.div_ceil(8))
            .flat_map(|at| (data + 256 * u64::from(at)).to_le_bytes())
            .collect();
        let block = kernel.required_block.unwrap_or([64, 1, 1]);
        let launch = Launch {
            grid: [2, 1, 1],
            block,
            dynamic_shared: 1024,
            workspace: data,
            step_budget: 5_000,
            ..launch(&program, &kernel.name, params, vec![])
        };
        let _ = run(&mut memory, launch);
    }
    true
}

#[test]
fn changed_texts_neither_crash_nor_hang() {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (count, seed) = (
        number("GRIDCALL_MUTATIONS", 1_500),
        number("GRIDCALL_MUTATION_SEED", 1),
    );
    let mut texts: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(CORPUS).expect("the corpus of the reader") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(path).expect("a text");
        if text.len() < 12_000 {
            texts.push(text);
        }
    }
    texts.push(include_str!("kernels/faults.ptx").to_owned());
    texts.sort();
    let mut accepted = 0;
    for at in seed..seed + count {
        let mut random = Random(at);
        let text = &texts[random.below(texts.len())];
        let changed = mutate(text, &mut random);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| try_out(&changed)));
        let Ok(ran) = result else {
            let path = std::env::temp_dir().join(format!("mutation-{at}.ptx"));
            let _ = std::fs::write(&path, &changed);
            panic!("mutation {at} crashes: {}", path.display());
        };
        accepted += u64::from(ran);
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "mutation {at} hangs"
        );
    }
    println!("{accepted} of {count} ran");
    assert!(
        accepted * 10 > count,
        "{accepted} of {count} ran: most changes should leave PTX"
    );
}
