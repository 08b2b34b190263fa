//! Arithmetic against references of another kind: wide integers, the host's own arithmetic, and residuals.

use super::alu::{self, Alu, Comparison};
use super::alu_float::{Clamp, Float, FloatOp, FloatOrder};
use super::alu_int::{Int, Order, add_carry};
use super::fast::{CmpD, CmpW, Fast, FastCompare};
use super::half;
use super::number::{Format, Number, Round};
use super::random::Random;
use super::types::{mask, sign_extend};

const EDGES: [u64; 24] = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0x007f_ffff,
    0x0080_0000,
    0x7f80_0000,
    0x7fc0_0001,
    0x8000_0000,
    0xff80_0000,
    0xffff_ffff,
    0x000f_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Edges, small numbers and random bits.
fn operand(random: &mut Random, bits: u32) -> u64 {
    let value = match random.below(4) {
        0 => EDGES[random.below(EDGES.len() as u64) as usize],
        1 => random.below(64),
        2 => f64::from(random.next() as i32).to_bits(),
        _ => random.next(),
    };
    let value = if bits == 32 && random.below(3) == 0 {
        u64::from((random.next() as i32 as f32).to_bits())
    } else {
        value
    };
    value & mask(bits)
}

fn each_operand(rounds: u64, bits: u32, mut test: impl FnMut([u64; 4])) {
    let mut random = Random::new(u64::from(bits));
    for _ in 0..rounds {
        let mut next = || operand(&mut random, bits);
        test([next(), next(), next(), next()]);
    }
}

#[test]
fn integers_are_those_of_wide_arithmetic() {
    for bits in [16, 32, 64] {
        for signed in [false, true] {
            let letter = if signed { 's' } else { 'u' };
            let ty = format!("{letter}{bits}");
            let value = |raw: u64| {
                if signed {
                    i128::from(sign_extend(raw, bits))
                } else {
                    i128::from(raw & mask(bits))
                }
            };
            let low = |wide: i128| (wide as u128 & u128::from(mask(bits))) as u64;
            let run = |opcode: &str, modifiers: &[&str], operands: [u64; 4], count| {
                let mut words = modifiers.to_vec();
                words.push(&ty);
                alu::parse(opcode, &words, count)
                    .unwrap_or_else(|| panic!("{opcode}.{words:?}"))
                    .alu
                    .eval(operands)
            };
            each_operand(3000, bits, |operands| {
                let [a, b, c, _] = operands;
                let (x, y, z) = (value(a), value(b), value(c));
                assert_eq!(run("add", &[], operands, 2), low(x + y));
                assert_eq!(run("sub", &[], operands, 2), low(x - y));
                assert_eq!(run("mul", &["lo"], operands, 2), low(x.wrapping_mul(y)));
                assert_eq!(
                    run("mad", &["lo"], operands, 3),
                    low(x.wrapping_mul(y).wrapping_add(z))
                );
                // A product of 64 bits fits 128, with a sign or without.
                let high = if signed {
                    (x * y) >> bits
                } else {
                    ((x as u128 * y as u128) >> bits) as i128
                };
                assert_eq!(run("mul", &["hi"], operands, 2), low(high));
                assert_eq!(run("mad", &["hi"], operands, 3), low(high + z));
                if bits < 64 {
                    let wide = ((x * y) as u128 & u128::from(mask(2 * bits))) as u64;
                    assert_eq!(run("mul", &["wide"], operands, 2), wide);
                }
                assert_eq!(run("min", &[], operands, 2), low(x.min(y)));
                assert_eq!(run("max", &[], operands, 2), low(x.max(y)));
                assert_eq!(run("sad", &[], operands, 3), low(z + (x - y).abs()));
                if y != 0 {
                    assert_eq!(run("div", &[], operands, 2), low(x / y));
                    assert_eq!(run("rem", &[], operands, 2), low(x % y));
                }
                let by = (b & mask(32)).min(127) as u32;
                assert_eq!(run("shr", &[], operands, 2), low(x >> by.min(bits)));
            });
        }
    }
}

#[test]
fn carries_make_wide_sums() {
    each_operand(3000, 64, |[a, b, c, d]| {
        let int = Int {
            bits: 64,
            signed: false,
        };
        let (x, y) = (
            u128::from(a) | u128::from(b) << 64,
            u128::from(c) | u128::from(d) << 64,
        );
        for (subtract, wanted) in [(false, x.wrapping_add(y)), (true, x.wrapping_sub(y))] {
            let (low, carry) = add_carry(int, a, c, false, subtract);
            let (high, out) = add_carry(int, b, d, carry, subtract);
            assert_eq!(u128::from(low) | u128::from(high) << 64, wanted);
            assert_eq!(
                out,
                if subtract {
                    x < y
                } else {
                    x.checked_add(y).is_none()
                }
            );
        }
    });
}

/// Instructions with a form for all lanes.
const FAST: &[(&str, &[&str], usize)] = &[
    ("add", &["s32"], 2),
    ("sub", &["u32"], 2),
    ("mul", &["lo", "s32"], 2),
    ("mul", &["hi", "s32"], 2),
    ("mul", &["hi", "u32"], 2),
    ("div", &["u32"], 2),
    ("rem", &["u32"], 2),
    ("and", &["b32"], 2),
    ("or", &["b16"], 2),
    ("xor", &["b32"], 2),
    ("not", &["b32"], 1),
    ("neg", &["s32"], 1),
    ("abs", &["s32"], 1),
    ("popc", &["b32"], 1),
    ("clz", &["b32"], 1),
    ("brev", &["b32"], 1),
    ("shl", &["b32"], 2),
    ("shr", &["u32"], 2),
    ("shr", &["s32"], 2),
    ("min", &["s32"], 2),
    ("min", &["u32"], 2),
    ("max", &["s32"], 2),
    ("max", &["u32"], 2),
    ("mad", &["lo", "u32"], 3),
    ("shf", &["l", "wrap", "b32"], 3),
    ("shf", &["r", "wrap", "b32"], 3),
    ("mul", &["wide", "u32"], 2),
    ("mul", &["wide", "s32"], 2),
    ("mad", &["wide", "u32"], 3),
    ("mad", &["wide", "s32"], 3),
    ("add", &["s64"], 2),
    ("sub", &["s64"], 2),
    ("mul", &["lo", "s64"], 2),
    ("and", &["b64"], 2),
    ("or", &["b64"], 2),
    ("xor", &["b64"], 2),
    ("not", &["b64"], 1),
    ("neg", &["s64"], 1),
    ("min", &["s64"], 2),
    ("min", &["u64"], 2),
    ("max", &["s64"], 2),
    ("max", &["u64"], 2),
    ("mad", &["lo", "s64"], 3),
    ("shl", &["b64"], 2),
    ("shr", &["u64"], 2),
    ("shr", &["s64"], 2),
    ("neg", &["f32"], 1),
    ("abs", &["f32"], 1),
    ("sqrt", &["rn", "f32"], 1),
    ("rcp", &["rn", "f32"], 1),
    ("add", &["f32"], 2),
    ("sub", &["rn", "f32"], 2),
    ("mul", &["f32"], 2),
    ("div", &["rn", "f32"], 2),
    ("add", &["ftz", "f32"], 2),
    ("sub", &["ftz", "f32"], 2),
    ("mul", &["ftz", "f32"], 2),
    ("min", &["f32"], 2),
    ("max", &["f32"], 2),
    ("fma", &["rn", "f32"], 3),
    ("fma", &["rn", "ftz", "f32"], 3),
    ("neg", &["f64"], 1),
    ("abs", &["f64"], 1),
    ("sqrt", &["rn", "f64"], 1),
    ("rcp", &["rn", "f64"], 1),
    ("add", &["f64"], 2),
    ("sub", &["f64"], 2),
    ("mul", &["f64"], 2),
    ("div", &["rn", "f64"], 2),
    ("fma", &["rn", "f64"], 3),
    ("cvt", &["rn", "f32", "s32"], 1),
    ("cvt", &["rn", "f32", "u32"], 1),
    ("cvt", &["f64", "s32"], 1),
    ("cvt", &["f64", "u32"], 1),
    ("cvt", &["f64", "f32"], 1),
    ("cvt", &["rn", "f32", "f64"], 1),
    ("cvt", &["rzi", "s32", "f32"], 1),
    ("cvt", &["rzi", "u32", "f32"], 1),
    ("cvt", &["u64", "u32"], 1),
    ("cvt", &["s64", "s32"], 1),
    ("cvt", &["u32", "u64"], 1),
    ("cvt", &["s32", "s8"], 1),
    ("cvt", &["u32", "u8"], 1),
    ("cvt", &["s32", "s16"], 1),
    ("cvt", &["u32", "u16"], 1),
];

#[test]
fn all_lanes_compute_what_one_does() {
    for (opcode, modifiers, count) in FAST {
        let found = alu::parse(opcode, modifiers, *count)
            .unwrap_or_else(|| panic!("{opcode}.{modifiers:?}"));
        let to = found.result.bits().max(32);
        let fast = Fast::of(found.alu, to)
            .unwrap_or_else(|| panic!("{opcode}.{modifiers:?} has no fast form"));
        let mut random = Random::new(count.wrapping_mul(7) as u64 + u64::from(to));
        for _ in 0..60 {
            let column = |random: &mut Random, at: usize| -> [u64; 32] {
                let bits = found.operands[at].bits();
                std::array::from_fn(|_| operand(random, bits))
            };
            let (a, b, c) = (
                column(&mut random, 0),
                column(&mut random, 1),
                column(&mut random, 2),
            );
            let w = |row: &[u64; 32]| row.map(|value| value as u32);
            let wide = |row: [u32; 32]| row.map(u64::from);
            let got = match fast {
                Fast::W1(op) => wide(op.eval(&w(&a))),
                Fast::W2(op) => wide(op.eval(&w(&a), &w(&b))),
                Fast::W3(op) => wide(op.eval(&w(&a), &w(&b), &w(&c))),
                Fast::D1(op) => op.eval(&a),
                Fast::D2(op) => op.eval(&a, &b),
                Fast::D3(op) => op.eval(&a, &b, &c),
                Fast::Shift(op) => op.eval(&a, &w(&b)),
                Fast::WD(op) => op.eval(&w(&a)),
                Fast::DW(op) => wide(op.eval(&a)),
                Fast::Wide(op) => op.eval(&w(&a), &w(&b)),
                Fast::WideAdd(op) => op.eval(&w(&a), &w(&b), &c),
            };
            for lane in 0..32 {
                let wanted = found.alu.eval([a[lane], b[lane], c[lane], 0]);
                assert_eq!(
                    got[lane], wanted,
                    "{opcode}.{modifiers:?} of {:x} {:x} {:x}",
                    a[lane], b[lane], c[lane]
                );
            }
        }
    }
}

#[test]
fn all_lanes_compare_as_one_does() {
    let orders = [
        Order::Equal,
        Order::NotEqual,
        Order::Less,
        Order::LessEqual,
        Order::Greater,
        Order::GreaterEqual,
    ];
    let mut comparisons = Vec::new();
    for order in orders {
        for bits in [32, 64] {
            comparisons.push((
                Comparison::Int(
                    order,
                    Int {
                        bits,
                        signed: false,
                    },
                ),
                bits,
            ));
            comparisons.push((Comparison::Int(order, Int { bits, signed: true }), bits));
        }
        for (format, bits) in [(Format::F32, 32), (Format::F64, 64)] {
            comparisons.push((
                Comparison::Float(FloatOrder::Ordered(order), format, false),
                bits,
            ));
            comparisons.push((
                Comparison::Float(FloatOrder::Unordered(order), format, false),
                bits,
            ));
        }
    }
    let mut seen = 0;
    for (comparison, bits) in comparisons {
        let Some(fast) = FastCompare::of(comparison) else {
            continue;
        };
        seen += 1;
        let mut random = Random::new(seen);
        for _ in 0..60 {
            let mut column =
                || -> [u64; 32] { std::array::from_fn(|_| operand(&mut random, bits)) };
            let (a, mut b) = (column(), column());
            b[..8].copy_from_slice(&a[..8]);
            let got = match fast {
                FastCompare::W(op) => CmpW::eval(op, &a.map(|v| v as u32), &b.map(|v| v as u32)),
                FastCompare::D(op) => CmpD::eval(op, &a, &b),
            };
            let wanted = (0..32).fold(0, |all, lane| {
                all | u32::from(comparison.holds(a[lane], b[lane])) << lane
            });
            assert_eq!(got, wanted, "{comparison:?} of {a:x?} and {b:x?}");
        }
    }
    assert!(seen > 30);
}

fn float(format: Format, round: Round) -> Float {
    Float {
        format,
        round,
        ftz: false,
        clamp: Clamp::None,
    }
}

/// A finite double, often near others in size, sometimes subnormal.
fn double(random: &mut Random) -> f64 {
    loop {
        let exponent = match random.below(4) {
            0 => random.below(2046),
            1 => random.below(3),
            _ => 1023 - 30 + random.below(60),
        };
        let mantissa = if random.below(3) == 0 {
            random.next() & (0xfff << 40)
        } else {
            random.next() >> 12
        };
        let value = f64::from_bits(random.below(2) << 63 | exponent << 52 | mantissa & mask(52));
        if value.is_finite() {
            return value;
        }
    }
}

/// The result in a direction, from the nearest and the side on which the exact one lies.
fn directed(nearest: f64, exact_is: std::cmp::Ordering, round: Round) -> f64 {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match (exact_is, round) {
        (Equal, _) => nearest,
        (Less, Round::Down) => nearest.next_down(),
        (Greater, Round::Up) => nearest.next_up(),
        (Less, Round::Zero) if nearest > 0.0 => nearest.next_down(),
        (Greater, Round::Zero) if nearest < 0.0 => nearest.next_up(),
        _ => nearest,
    }
}

#[test]
fn doubles_are_rounded_by_their_residual() {
    let mut random = Random::new(11);
    let mut tried = 0;
    for _ in 0..60_000 {
        let (a, b, c) = (
            double(&mut random),
            double(&mut random),
            double(&mut random),
        );
        // Residuals are exact where nothing comes near the ends of the range.
        let tame = |value: f64| value == 0.0 || (1e-200..1e200).contains(&value.abs());
        let results = [
            (FloatOp::Mul, a * b, a.mul_add(b, -(a * b)), 1.0),
            (FloatOp::Div, a / b, -((a / b).mul_add(b, -a)), b),
            (
                FloatOp::Sqrt,
                a.abs().sqrt(),
                -(a.abs().sqrt().mul_add(a.abs().sqrt(), -a.abs())),
                1.0,
            ),
            (FloatOp::Add, a + b, two_sum(a, b), 1.0),
        ];
        for (op, nearest, residual, sign) in results {
            if ![a, b, nearest, residual].into_iter().all(tame) || nearest == 0.0 {
                continue;
            }
            tried += 1;
            let side = (residual * f64::signum(sign)).partial_cmp(&0.0).unwrap();
            let first = if op == FloatOp::Sqrt { a.abs() } else { a };
            let operands = [first.to_bits(), b.to_bits(), 0];
            for round in [Round::Nearest, Round::Zero, Round::Down, Round::Up] {
                let got = f64::from_bits(float(Format::F64, round).eval(op, operands));
                let wanted = directed(nearest, side, round);
                assert_eq!(
                    got.to_bits(),
                    wanted.to_bits(),
                    "{op:?} {round:?} of {first:e} and {b:e}"
                );
            }
        }
        // To nearest, the exact arithmetic of this module agrees with the host's everywhere.
        let number = |value: f64| Number::decode(Format::F64, value.to_bits());
        let encode = |exact: Number| exact.encode(Format::F64, Round::Nearest);
        let sum = number(a).add(number(b), Round::Nearest);
        assert_eq!(encode(sum), (a + b).to_bits(), "{a:e} + {b:e}");
        let product = number(a).multiply(number(b));
        assert_eq!(encode(product), (a * b).to_bits(), "{a:e} * {b:e}");
        assert_eq!(
            encode(product.add(number(c), Round::Nearest)),
            a.mul_add(b, c).to_bits(),
            "{a:e} {b:e} {c:e}"
        );
        if b != 0.0 {
            assert_eq!(
                encode(number(a).divide(number(b))),
                (a / b).to_bits(),
                "{a:e} / {b:e}"
            );
        }
        assert_eq!(
            encode(number(a.abs()).square_root()),
            a.abs().sqrt().to_bits(),
            "{a:e}"
        );
    }
    assert!(tried > 50_000);
}

/// What the sum of two numbers loses by rounding.
fn two_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    (a - (sum - part)) + (b - part)
}

#[test]
fn singles_are_rounded_doubles() {
    let mut random = Random::new(12);
    for _ in 0..40_000 {
        let next = |random: &mut Random| loop {
            let value = f32::from_bits(operand(random, 32) as u32);
            if value.is_finite() {
                return value;
            }
        };
        let (a, b) = (next(&mut random), next(&mut random));
        let (x, y) = (f64::from(a), f64::from(b));
        // A product of two singles is exact in a double, and so is what their sum loses.
        for (op, high, low) in [
            (FloatOp::Mul, x * y, 0.0),
            (FloatOp::Add, x + y, two_sum(x, y)),
        ] {
            let near = high as f32;
            if near == 0.0 || near.is_infinite() {
                continue;
            }
            let beside = f64::from(near) - high;
            let side = low.partial_cmp(&beside).unwrap();
            let operands = [u64::from(a.to_bits()), u64::from(b.to_bits()), 0];
            for round in [Round::Zero, Round::Down, Round::Up] {
                use std::cmp::Ordering::{Greater, Less};
                let wanted = match (side, round) {
                    (Less, Round::Down) => near.next_down(),
                    (Greater, Round::Up) => near.next_up(),
                    (Less, Round::Zero) if near > 0.0 => near.next_down(),
                    (Greater, Round::Zero) if near < 0.0 => near.next_up(),
                    _ => near,
                };
                let got = f32::from_bits(float(Format::F32, round).eval(op, operands) as u32);
                assert_eq!(
                    got.to_bits(),
                    wanted.to_bits(),
                    "{op:?} {round:?} of {a:e} and {b:e}"
                );
            }
        }
    }
}

#[test]
fn small_formats_round_to_their_neighbours() {
    for format in [Format::F16, Format::Bf16, Format::E4m3, Format::E5m2] {
        let finite: Vec<u64> = (0..1 << (format.bits() - 1))
            .filter(|bits| !format.is_nan(*bits) && !format.is_infinite(*bits))
            .collect();
        let value = |bits: u64| {
            f64::from_bits(Number::decode(format, bits).encode(Format::F64, Round::Nearest))
        };
        for pair in finite.windows(2) {
            let (low, high) = (value(pair[0]), value(pair[1]));
            assert!(low < high);
            let middle = f64::midpoint(low, high);
            let even = if pair[0] & 1 == 0 { pair[0] } else { pair[1] };
            let encode = |value: f64, round| {
                Number::decode(Format::F64, value.to_bits()).encode(format, round)
            };
            for (at, wanted) in [
                (low, pair[0]),
                (middle.next_down(), pair[0]),
                (middle, even),
                (middle.next_up(), pair[1]),
            ] {
                assert_eq!(encode(at, Round::Nearest), wanted, "{format:?} {at:e}");
            }
            assert_eq!(encode(middle, Round::Zero), pair[0]);
            assert_eq!(encode(middle, Round::Down), pair[0]);
            assert_eq!(encode(middle, Round::Up), pair[1]);
            let sign = format.negate(0);
            assert_eq!(encode(-middle, Round::Down), sign | pair[1]);
            assert_eq!(encode(-middle, Round::Up), sign | pair[0]);
        }
    }
}

#[test]
fn halves_by_doubles_are_exact() {
    for format in [Format::F16, Format::Bf16] {
        let exact = |bits: u64| Number::decode(format, bits).encode(Format::F64, Round::Nearest);
        for bits in (0..1 << 16).filter(|bits| !format.is_nan(*bits)) {
            assert_eq!(
                half::to_double(format, bits).map(f64::to_bits),
                Some(exact(bits)),
                "{bits:x}"
            );
        }
        let mut random = Random::new(14);
        for _ in 0..200_000 {
            let value = match random.below(3) {
                0 => f64::from_bits(random.next()),
                1 => f64::from_bits(
                    exact(random.below(1 << 16))
                        .wrapping_add(random.below(3))
                        .wrapping_sub(1),
                ),
                _ => f64::from_bits(
                    random.below(2) << 63
                        | (1023 - 150 + random.below(300)) << 52
                        | random.next() >> 12,
                ),
            };
            if !value.is_nan() {
                let wanted =
                    Number::decode(Format::F64, value.to_bits()).encode(format, Round::Nearest);
                assert_eq!(half::from_double(format, value), Some(wanted), "{value:e}");
            }
            let [a, b, c] = [0; 3].map(|_| random.below(1 << 16));
            if [a, b, c].iter().any(|bits| format.is_nan(*bits)) {
                continue;
            }
            let number = |bits| Number::decode(format, bits);
            let sum = number(a).multiply(number(b)).add(number(c), Round::Nearest);
            let wanted = sum.encode(format, Round::Nearest);
            let got = float(format, Round::Nearest).eval(FloatOp::Fma, [a, b, c]);
            assert_eq!(got, wanted, "{format:?} {a:x} {b:x} {c:x}");
            let wanted = number(a)
                .add(number(b), Round::Nearest)
                .encode(format, Round::Nearest);
            assert_eq!(
                float(format, Round::Nearest).eval(FloatOp::Add, [a, b, 0]),
                wanted
            );
        }
    }
}

#[test]
fn conversions_to_integers_saturate() {
    let mut random = Random::new(13);
    for _ in 0..20_000 {
        let value = f64::from_bits(random.next());
        let run = |modifiers: &[&str]| {
            alu::parse("cvt", modifiers, 1).map(|found| found.alu.eval([value.to_bits(), 0, 0, 0]))
        };
        if value.is_nan() {
            assert_eq!(run(&["rzi", "s32", "f64"]), Some(0x8000_0000));
            continue;
        }
        assert_eq!(
            run(&["rzi", "s32", "f64"]),
            Some(u64::from((value as i32).cast_unsigned()))
        );
        assert_eq!(run(&["rzi", "u32", "f64"]), Some(u64::from(value as u32)));
        assert_eq!(
            run(&["rzi", "s64", "f64"]),
            Some((value as i64).cast_unsigned())
        );
        assert_eq!(
            run(&["rmi", "s64", "f64"]),
            Some((value.floor() as i64).cast_unsigned())
        );
        assert_eq!(run(&["rpi", "u64", "f64"]), Some(value.ceil() as u64));
        assert_eq!(
            run(&["rni", "s16", "f64"]),
            Some((value.round_ties_even() as i16 as u16).into())
        );
        assert_eq!(run(&["rmi", "f64", "f64"]), Some(value.floor().to_bits()));
    }
    let _ = Alu::SelectSigned;
}
