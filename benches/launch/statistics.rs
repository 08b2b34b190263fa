//! Medians, and how sure a ratio of them is.

/// The median of values, which are sorted for it; not a number if there are none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// A ratio of medians, with the bounds of its 95 % interval.
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The ratio of the medians over all rounds. Its interval is found by drawing rounds at random,
/// both contenders' times of a round together, as many times over as make it stable.
pub(crate) fn ratio(rounds: &[f64], bare: &[f64]) -> Ratio {
    const DRAWS: usize = 10_000;
    let of = |indices: &[usize]| {
        let mut one: Vec<f64> = indices.iter().map(|&index| rounds[index]).collect();
        let mut other: Vec<f64> = indices.iter().map(|&index| bare[index]).collect();
        median(&mut one) / median(&mut other)
    };
    let all: Vec<usize> = (0..rounds.len()).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut draws: Vec<f64> = (0..DRAWS)
        .map(|_| {
            of(&all
                .iter()
                .map(|_| random.below(all.len()))
                .collect::<Vec<_>>())
        })
        .collect();
    draws.sort_by(f64::total_cmp);
    Ratio {
        value: of(&all),
        low: draws[DRAWS / 40],
        high: draws[DRAWS - 1 - DRAWS / 40],
    }
}

/// Marsaglia's xorshift, always begun alike, so that the same times give the same interval.
struct Random(u64);

impl Random {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the remainder is below a usize"
    )]
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!(median(&mut []).is_nan());
        assert!((median(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&mut [4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn an_interval_holds_its_ratio_and_no_more_than_it_must() {
        let bare: Vec<f64> = (0..40).map(|round| 100.0 + f64::from(round % 5)).collect();
        let twice: Vec<f64> = bare.iter().map(|time| 2.0 * time).collect();
        let Ratio { value, low, high } = ratio(&twice, &bare);
        for bound in [value, low, high] {
            assert!((bound - 2.0).abs() < 1e-9, "paired rounds vary together");
        }
        let other: Vec<f64> = (0..40).map(|round| 100.0 + f64::from(round % 7)).collect();
        let spread = super::ratio(&other, &bare);
        assert!(spread.low <= spread.value && spread.value <= spread.high);
        assert!(spread.low < spread.high && spread.high < 1.05 && spread.low > 0.95);
    }
}
