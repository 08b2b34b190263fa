//! A bit for each byte: whether it was written.

use super::super::types::mask as low_bits;
use super::to_usize_wide;

/// Whether any of the bytes has its bit.
#[inline]
pub(super) fn any(bits: &[u64], from: u64, count: u32) -> bool {
    pieces(from, u64::from(count))
        .any(|(at, mask)| bits.get(at).is_some_and(|word| word & mask != 0))
}

#[inline]
pub(super) fn set(bits: &mut [u64], from: u64, count: u32) {
    for (at, mask) in pieces(from, u64::from(count)) {
        if let Some(word) = bits.get_mut(at) {
            *word |= mask;
        }
    }
}

/// The words of a bitmap, with the bits of each, that stand for some bytes.
#[inline]
fn pieces(from: u64, count: u64) -> impl Iterator<Item = (usize, u64)> {
    let mut at = from;
    let end = from + count;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let shift = at % 64;
            let here = (64 - shift).min(end - at);
            let word = to_usize_wide(at / 64);
            at += here;
            (word, low_bits(here as u32) << shift)
        })
    })
}
