//! Each computation against what a GPU computed.

use super::alu::{self, Alu};
use super::types::{Type, mask, sign_extend};

const GOLDEN: &str = include_str!("../../tests/data/golden-h200.txt");

#[test]
fn computes_what_a_gpu_computes() {
    let mut wrong = 0;
    let mut ops = 0;
    let mut lines = GOLDEN.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(text) = line.strip_prefix("op: ") else {
            continue;
        };
        let (text, _) = text.split_once(" | ").unwrap();
        let mut rows = Vec::new();
        while let Some(row) = lines.peek() {
            if row.contains(':') {
                break;
            }
            let words: Vec<u64> = row
                .split(' ')
                .map(|word| u64::from_str_radix(word, 16).unwrap())
                .collect();
            rows.push(words);
            lines.next();
        }
        if text.starts_with('{') || text.contains("{p}") {
            continue;
        }
        let text = text.trim_end_matches(';');
        let (opcode, operands) = text.split_once(' ').unwrap();
        let mut words = opcode.split('.');
        let name = words.next().unwrap();
        let modifiers: Vec<&str> = words.collect();
        let sources: Vec<&str> = operands.split(", ").skip(1).collect();
        let Some(found) = alu::parse(name, &modifiers, sources.len()) else {
            println!("{text}: not read");
            wrong += 1;
            continue;
        };
        ops += 1;
        let mut bad = 0;
        for row in &rows {
            let mut operands = [0; 4];
            for (slot, source) in operands.iter_mut().zip(&sources) {
                *slot = match *source {
                    "{a}" => row[0],
                    "{b}" => row[1],
                    "{c}" => row[2],
                    number => match number.strip_prefix("0x") {
                        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                        None => number.parse().unwrap(),
                    },
                };
            }
            let mut got = found.alu.eval(operands);
            if found.result.bits() == 8 {
                got = if found.result == Type::S8 {
                    sign_extend(got, 8).cast_unsigned() & mask(32)
                } else {
                    got & 0xff
                };
            }
            let wanted = *row.last().unwrap();
            let approximate = matches!(found.alu, Alu::Approx(_) | Alu::ApproxPair(_));
            let near = approximate && got.abs_diff(wanted) < 8;
            if got != wanted && !near {
                bad += 1;
                if bad <= 3 {
                    println!("{text}: {row:x?} got {got:x}");
                }
            }
        }
        if bad > 0 {
            wrong += 1;
            println!("{text}: {bad} of {} differ", rows.len());
        }
    }
    println!("{ops} read, {wrong} wrong");
    assert_eq!(wrong, 0);
}
