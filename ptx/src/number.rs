//! Numbers as PTX writes them.

use crate::constant::Constant;

/// The value of any number without its sign.
pub(crate) fn constant(text: &str) -> Option<Constant> {
    if let Some(bits) = strip_either(text, "0f", "0F") {
        return exact(bits, 8)
            .and_then(|bits| u32::try_from(bits).ok())
            .map(Constant::F32);
    }
    if let Some(bits) = strip_either(text, "0d", "0D") {
        return exact(bits, 16).map(Constant::F64);
    }
    if text.contains('.') || (!is_hexadecimal(text) && text.contains(['e', 'E'])) {
        return text
            .parse()
            .ok()
            .map(|value: f64| Constant::F64(value.to_bits()));
    }
    let value = integer(text)?;
    let unsigned = text.ends_with('U');
    match i64::try_from(value) {
        Ok(value) if !unsigned => Some(Constant::S64(value)),
        _ => Some(Constant::U64(value)),
    }
}

/// The bits of a floating-point number, in exactly so many digits.
fn exact(digits: &str, count: usize) -> Option<u64> {
    let is_exact = digits.len() == count && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_exact {
        u64::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// The value of an integer without its sign: `12`, `0x1F`, `017`, `0b101`, each with or without `U`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = if let Some(digits) = strip_either(digits, "0x", "0X") {
        (digits, 16)
    } else if let Some(digits) = strip_either(digits, "0b", "0B") {
        (digits, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (&digits[1..], 8)
    } else {
        (digits, 10)
    };
    // `from_str_radix` takes a sign, which is none of a number's digits
    if !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn strip_either<'a>(text: &'a str, lower: &str, upper: &str) -> Option<&'a str> {
    text.strip_prefix(lower)
        .or_else(|| text.strip_prefix(upper))
}
