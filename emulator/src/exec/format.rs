//! Formats as C's `printf` does.

use super::trouble::Trouble;

/// What a conversion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Word,
    Double,
    Float,
    Text,
}

impl Argument {
    /// The bytes it takes, to which it is aligned.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Word => 4,
            _ => 8,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// How many bytes of an integer count.
    bytes: u32,
}

/// The text of a format; `take` gives each argument, and the text it points to. With it, how many
/// arguments there were.
pub(crate) fn format(
    form: &[u8],
    mut take: impl FnMut(Argument) -> Result<(u64, Vec<u8>), Trouble>,
) -> Result<(Vec<u8>, u32), Trouble> {
    let mut out = Vec::new();
    let mut count = 0;
    let mut rest = form;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            out.push(first);
            continue;
        }
        let start = rest;
        let mut spec = Spec {
            bytes: 4,
            ..Spec::default()
        };
        while let Some((&flag, after)) = rest.split_first() {
            match flag {
                b'-' => spec.left = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                b'0' => spec.zero = true,
                _ => break,
            }
            rest = after;
        }
        if let Some(after) = rest.strip_prefix(b"*") {
            rest = after;
            let width = signed(take(Argument::Word)?.0, 4);
            count += 1;
            spec.left |= width < 0;
            spec.width = limit(width.unsigned_abs());
        } else {
            spec.width = limit(number(&mut rest));
        }
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            if let Some(after) = rest.strip_prefix(b"*") {
                rest = after;
                let precision = signed(take(Argument::Word)?.0, 4);
                count += 1;
                spec.precision = u64::try_from(precision).ok().map(limit);
            } else {
                spec.precision = Some(limit(number(&mut rest)));
            }
        }
        loop {
            rest = match rest {
                [b'h', b'h', after @ ..] => {
                    spec.bytes = 1;
                    after
                }
                [b'h', after @ ..] => {
                    spec.bytes = 2;
                    after
                }
                [b'l' | b'j' | b'z' | b't' | b'L' | b'q', after @ ..] => {
                    spec.bytes = 8;
                    after
                }
                _ => break,
            };
        }
        let Some((&conversion, after)) = rest.split_first() else {
            out.push(b'%');
            out.extend(start);
            break;
        };
        rest = after;
        let integer = if spec.bytes == 8 {
            Argument::Double
        } else {
            Argument::Word
        };
        match conversion {
            b'%' => {
                out.push(b'%');
                continue;
            }
            b'd' | b'i' => {
                let value = signed(take(integer)?.0, spec.bytes);
                let digits = value.unsigned_abs().to_string();
                put_integer(&mut out, spec, sign(spec, value < 0), "", &digits);
            }
            b'u' => {
                let value = unsigned(take(integer)?.0, spec.bytes);
                put_integer(&mut out, spec, "", "", &value.to_string());
            }
            b'o' => {
                let value = unsigned(take(integer)?.0, spec.bytes);
                let digits = format!("{value:o}");
                let prefix = if spec.alternate && !digits.starts_with('0') {
                    "0"
                } else {
                    ""
                };
                put_integer(&mut out, spec, "", prefix, &digits);
            }
            b'x' | b'X' => {
                let value = unsigned(take(integer)?.0, spec.bytes);
                let upper = conversion == b'X';
                let digits = if upper {
                    format!("{value:X}")
                } else {
                    format!("{value:x}")
                };
                let prefix = match (spec.alternate && value != 0, upper) {
                    (false, _) => "",
                    (true, false) => "0x",
                    (true, true) => "0X",
                };
                put_integer(&mut out, spec, "", prefix, &digits);
            }
            b'p' => {
                let value = take(Argument::Double)?.0;
                pad(&mut out, spec, "", format!("{value:#x}").as_bytes(), false);
            }
            b'c' => {
                let value = take(Argument::Word)?.0;
                pad(&mut out, spec, "", &value.to_le_bytes()[..1], false);
            }
            b's' => {
                let (_, mut text) = take(Argument::Text)?;
                text.truncate(spec.precision.unwrap_or(usize::MAX));
                pad(&mut out, spec, "", &text, false);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                let value = f64::from_bits(take(Argument::Float)?.0);
                put_float(&mut out, spec, value, conversion);
            }
            _ => {
                // No conversion of C's: shown as it is.
                let shown = start.len() - rest.len();
                out.push(b'%');
                out.extend(&start[..shown]);
                continue;
            }
        }
        count += 1;
    }
    Ok((out, count))
}

/// A width no text needs more of.
fn limit(value: u64) -> usize {
    usize::try_from(value.min(4096)).unwrap_or(4096)
}

fn number(rest: &mut &[u8]) -> u64 {
    let mut value: u64 = 0;
    while let Some((digit @ b'0'..=b'9', after)) = rest.split_first() {
        value = value
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'));
        *rest = after;
    }
    value
}

fn signed(value: u64, bytes: u32) -> i64 {
    super::types::sign_extend(value, 8 * bytes)
}

fn unsigned(value: u64, bytes: u32) -> u64 {
    value & super::types::mask(8 * bytes)
}

fn sign(spec: Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

fn put_integer(out: &mut Vec<u8>, spec: Spec, sign: &str, prefix: &str, digits: &str) {
    let mut text = String::new();
    match spec.precision {
        Some(0) if digits == "0" => {}
        Some(precision) => {
            let zeros = precision.saturating_sub(digits.len());
            text.extend(std::iter::repeat_n('0', zeros));
            text.push_str(digits);
        }
        None => text.push_str(digits),
    }
    let head = format!("{sign}{prefix}");
    pad(out, spec, &head, text.as_bytes(), spec.precision.is_none());
}

/// Appends a head, such as a sign, and a text, filled up to the width.
fn pad(out: &mut Vec<u8>, spec: Spec, head: &str, text: &[u8], zeros: bool) {
    let fill = spec.width.saturating_sub(head.len() + text.len());
    let zeros = zeros && spec.zero && !spec.left;
    if !spec.left && !zeros {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
    out.extend(head.as_bytes());
    if zeros {
        out.extend(std::iter::repeat_n(b'0', fill));
    }
    out.extend(text);
    if spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
}

fn put_float(out: &mut Vec<u8>, spec: Spec, value: f64, conversion: u8) {
    let upper = conversion.is_ascii_uppercase();
    let head = sign(spec, value.is_sign_negative());
    let magnitude = value.abs();
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        let text = if upper {
            text.to_uppercase()
        } else {
            text.to_owned()
        };
        return pad(out, spec, head, text.as_bytes(), false);
    }
    let text = match conversion.to_ascii_lowercase() {
        b'f' => fixed(magnitude, spec.precision.unwrap_or(6), spec.alternate),
        b'e' => scientific(magnitude, spec.precision.unwrap_or(6), spec.alternate),
        b'g' => general(
            magnitude,
            spec.precision.unwrap_or(6).max(1),
            spec.alternate,
        ),
        _ => hexadecimal(magnitude, spec.precision, spec.alternate),
    };
    let text = if upper { text.to_uppercase() } else { text };
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let head = format!("{head}{}", &text[..2]);
        return pad(out, spec, &head, digits.as_bytes(), true);
    }
    pad(out, spec, head, text.as_bytes(), true);
}

fn fixed(value: f64, precision: usize, alternate: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if alternate && precision == 0 {
        text.push('.');
    }
    text
}

fn scientific(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if alternate && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:02}", exponent.unsigned_abs())
}

fn general(value: f64, precision: usize, alternate: bool) -> String {
    let rounded = format!("{value:.*e}", precision - 1);
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, text)| text.parse().ok())
        .unwrap_or(0);
    let wanted = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= wanted {
        let text = scientific(value, precision - 1, alternate);
        let (digits, tail) = text.split_once('e').unwrap_or((&text, "+00"));
        let digits = if alternate { digits } else { trim(digits) };
        format!("{digits}e{tail}")
    } else {
        let places = usize::try_from(wanted - 1 - exponent).unwrap_or(0);
        let text = fixed(value, places, alternate);
        if alternate {
            text
        } else {
            trim(&text).to_owned()
        }
    }
}

/// Takes off zeros behind the point.
fn trim(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

fn hexadecimal(value: f64, precision: Option<usize>, alternate: bool) -> String {
    let bits = value.to_bits();
    let field = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let mut mantissa = bits & super::types::mask(52);
    let mut exponent = if value == 0.0 { 0 } else { field.max(1) - 1023 };
    mantissa |= u64::from(field != 0) << 52;
    let mut digits = 13;
    if let Some(precision) = precision.filter(|precision| *precision < 13) {
        let drop = 4 * (13 - precision as u32);
        let half = 1 << (drop - 1);
        let rest = mantissa & super::types::mask(drop);
        mantissa >>= drop;
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        digits = precision;
    }
    let lead = mantissa >> (4 * digits);
    let fraction = mantissa & super::types::mask(4 * digits as u32);
    let mut text = if digits == 0 {
        String::new()
    } else {
        format!("{fraction:0digits$x}")
    };
    match precision {
        None => text.truncate(text.trim_end_matches('0').len()),
        Some(precision) => text.extend(std::iter::repeat_n('0', precision.saturating_sub(digits))),
    }
    if value == 0.0 {
        exponent = 0;
    }
    let point = if text.is_empty() && !alternate {
        ""
    } else {
        "."
    };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{lead}{point}{text}p{sign}{}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(form: &str, values: &[u64]) -> String {
        let mut values = values.iter();
        let result = format(form.as_bytes(), |kind| {
            let value = *values.next().unwrap();
            let text = if kind == Argument::Text {
                b"text".to_vec()
            } else {
                Vec::new()
            };
            Ok((value, text))
        });
        String::from_utf8(result.unwrap().0).unwrap()
    }

    #[test]
    fn formats_integers() {
        let minus_five = (-5_i32).cast_unsigned().into();
        assert_eq!(
            formatted("%d|%5d|%-5d|%05d|%+d", &[7, 7, 7, 7, 7]),
            "7|    7|7    |00007|+7"
        );
        assert_eq!(
            formatted("%d %u %hhd", &[minus_five, minus_five, 0xff]),
            "-5 4294967291 -1"
        );
        assert_eq!(
            formatted("%x %#X %#o %.3d", &[255, 255, 8, 5]),
            "ff 0XFF 010 005"
        );
        assert_eq!(
            formatted("%lld %llu", &[u64::MAX, u64::MAX]),
            "-1 18446744073709551615"
        );
        assert_eq!(formatted("%*d|%-*d|", &[4, 7, 4, 7]), "   7|7   |");
        assert_eq!(
            formatted("100%% %c%c", &[b'a'.into(), b'b'.into()]),
            "100% ab"
        );
        assert_eq!(formatted("%.0d|", &[0]), "|");
        assert_eq!(formatted("%p", &[4096]), "0x1000");
    }

    #[test]
    fn formats_numbers_with_a_point() {
        let bits = |value: f64| value.to_bits();
        assert_eq!(
            formatted("%f %.2f %8.3f|", &[bits(1.5), bits(2.675), bits(-3.25)]),
            "1.500000 2.67   -3.250|"
        );
        assert_eq!(
            formatted("%e %.0e %E", &[bits(12345.678), bits(5.0), bits(1e-10)]),
            "1.234568e+04 5e+00 1.000000E-10"
        );
        assert_eq!(
            formatted(
                "%g %g %g %g",
                &[bits(0.0001), bits(1e-5), bits(100_000.0), bits(1e6)]
            ),
            "0.0001 1e-05 100000 1e+06"
        );
        assert_eq!(
            formatted("%.3g %#g", &[bits(1234.5), bits(1.0)]),
            "1.23e+03 1.00000"
        );
        assert_eq!(
            formatted("%a %.1a %a", &[bits(1.0), bits(1.96875), bits(0.5)]),
            "0x1p+0 0x2.0p+0 0x1p-1"
        );
        assert_eq!(
            formatted(
                "%f %F %05f",
                &[bits(f64::NAN), bits(f64::INFINITY), bits(f64::NEG_INFINITY)]
            ),
            "nan INF  -inf"
        );
        assert_eq!(
            formatted("%010.2f|%-8.1f|% f", &[bits(-1.5), bits(2.25), bits(0.0)]),
            "-000001.50|2.2     | 0.000000"
        );
    }

    #[test]
    fn formats_text() {
        assert_eq!(
            formatted("%s|%6s|%-6s|%.2s", &[1, 1, 1, 1]),
            "text|  text|text  |te"
        );
        assert_eq!(formatted("50%! %y", &[]), "50%! %y");
    }
}
