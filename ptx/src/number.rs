//! Numbers as PTX writes them.

/// The value of an integer without its sign: `12`, `0x1F`, `017`, `0b101`, each with or without `U`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
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
