//! Which name was meant.

/// The candidate nearest to `name`, if one is near enough to be a mistyped form of it.
///
/// ```
/// assert_eq!(gridcall_ptx::closest("rleu", ["relu", "scale"]), Some("relu"));
/// assert_eq!(gridcall_ptx::closest("sum", ["relu", "scale"]), None);
/// ```
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= 4 * most)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// How many characters to insert, remove, replace or exchange with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_mistyped_name() {
        let entries = ["relu", "scale", "saxpy_f32"];
        assert_eq!(closest("rleu", entries), Some("relu"));
        assert_eq!(closest("Scale", entries), Some("scale"));
        assert_eq!(closest("saxpy_f64", entries), Some("saxpy_f32"));
        assert_eq!(closest("sum", entries), None);
        assert_eq!(closest("relu", []), None);
    }

    #[test]
    fn counts_an_exchange_as_one() {
        assert_eq!(distance("rleu", "relu"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kernel", "kernels"), 1);
    }
}
