//! What a compiler says of claims that do not hold.
//!
//! A claim is an instance of a template; nvcc and NVRTC, which share their front end, name the
//! instance with its arguments: `[with Claim=3, Actual=const int *, Expected=..]`.

/// A claim that does not hold.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) claim: usize,
    /// What there is in its place.
    pub(super) actual: Option<String>,
}

/// The claims that do not hold, each once and in order.
pub(super) fn failed(log: &str) -> Vec<Failure> {
    let mut failed: Vec<Failure> = Vec::new();
    for instance in log.split("[with Claim=").skip(1) {
        let digits = instance.len()
            - instance
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let Ok(claim) = instance[..digits].parse() else {
            continue;
        };
        let actual = actual(&instance[digits..]);
        // What follows from another error is told by that one.
        let follows = actual.as_deref() == Some("<error-type>");
        if follows || failed.iter().any(|failure| failure.claim == claim) {
            continue;
        }
        failed.push(Failure { claim, actual });
    }
    failed.sort_by_key(|failure| failure.claim);
    failed
}

/// Whether there are errors that are none of a claim, nor of a field that a claim says is missing.
pub(super) fn has_others(log: &str) -> bool {
    const OURS: [&str; 4] = [
        "\"gridcall\"",
        "gridcall_field_",
        "gridcall_param_",
        "limit reached",
    ];
    log.lines()
        .filter(|line| line.contains(" error: "))
        .any(|line| !OURS.iter().any(|ours| line.contains(ours)))
}

/// Whether the compiler gave up before it had said all.
pub(super) fn is_cut_short(log: &str) -> bool {
    log.contains("limit reached") || log.contains("Error limit")
}

/// `const int *` of `, Actual=const int *, Expected=..]`.
fn actual(instance: &str) -> Option<String> {
    let instance = instance
        .split_once(']')
        .map_or(instance, |(instance, _)| instance);
    let (_, actual) = instance.split_once("Actual=")?;
    let end = [", Accepted=", ", Expected="]
        .iter()
        .filter_map(|end| actual.find(end))
        .min();
    let actual = &actual[..end.unwrap_or(actual.len())];
    // Long lines are broken at blanks.
    Some(
        actual
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace(" *", "*")
            .replace("UL", ""),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_found_with_what_there_is() {
        let log = "
            k.cu(3): error: static assertion failed with \"gridcall\"
              detected during instantiation of class \"gridcall_verify::type<Claim, Actual, Accepted...> [with Claim=12, Actual=const int *, Accepted=<float>]\" at line 9
            k.cu(3): error: static assertion failed with \"gridcall\"
              detected during instantiation of class \"gridcall_verify::equal<Claim, Actual, Expected> [with Claim=3, Actual=8UL, Expected=4UL]\" at line 10
              again [with Claim=3, Actual=8UL, Expected=4UL]";
        assert_eq!(
            failed(log),
            [
                Failure {
                    claim: 3,
                    actual: Some("8".into())
                },
                Failure {
                    claim: 12,
                    actual: Some("const int*".into())
                },
            ]
        );
        assert_eq!(failed("error: expected a \";\" [with Claim=x]"), []);
    }
}
