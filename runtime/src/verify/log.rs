//! What a compiler says of claims that do not hold.
//!
//! A claim is an instance of a template; nvcc and NVRTC, which share their front end, name the
//! instance with its arguments: `[with Claim=3, Actual=const int *, Expected=..]`.

/// What the compiler takes for the file of lines that name what is declared; the number of a line is
/// that of its claim, and one.
pub(super) const DECLARES: &str = "gridcall_declares";

/// A claim that does not hold.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) claim: usize,
    /// What there is in its place.
    pub(super) actual: Option<String>,
}

/// What the source does not have by the name that a claim declares, each once, with the compiler's
/// words.
pub(super) fn undeclared(log: &str) -> Vec<Failure> {
    let mut failed: Vec<Failure> = Vec::new();
    for line in log.lines() {
        let said = line
            .split_once(&format!("{DECLARES}("))
            .and_then(|(_, said)| said.split_once("): error: "));
        let Some((line, said)) = said else { continue };
        let Ok(line) = line.parse::<usize>() else {
            continue;
        };
        let claim = line - 1;
        if failed.iter().all(|failure| failure.claim != claim) {
            let actual = Some(said.trim().to_owned());
            failed.push(Failure { claim, actual });
        }
    }
    failed
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
    const OURS: [&str; 6] = [
        DECLARES,
        "\"gridcall\"",
        "gridcall_field_",
        "gridcall_verify::variable_of",
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
    let instance = &instance[..end_of(instance)];
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
            .replace(" [", "[")
            .replace("__nv_bool", "bool")
            .replace("UL", ""),
    )
}

/// Where the bracket closes that was opened before; those of arrays are within.
fn end_of(instance: &str) -> usize {
    let mut depth = 0_usize;
    let close = instance.find(|c: char| {
        match c {
            '[' => depth += 1,
            ']' if depth == 0 => return true,
            ']' => depth -= 1,
            _ => {}
        }
        false
    });
    close.unwrap_or(instance.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_found_with_the_words_for_it() {
        let log = "
            gridcall_declares(8): error: identifier \"taps\" is undefined
              typedef decltype(taps) gridcall_variable_0;
            gridcall_declares(8): error: identifier \"taps\" is undefined
            k.cu(3): error: static assertion failed with \"gridcall\"";
        let actual = Some("identifier \"taps\" is undefined".to_owned());
        assert_eq!(undeclared(log), [Failure { claim: 7, actual }]);
        assert!(!has_others(log));
    }

    #[test]
    fn claims_are_found_with_what_there_is() {
        let log = "
            k.cu(3): error: static assertion failed with \"gridcall\"
              detected during instantiation of class \"gridcall_verify::type<Claim, Actual, Accepted...> [with Claim=12, Actual=const int *, Accepted=<float>]\" at line 9
            k.cu(3): error: static assertion failed with \"gridcall\"
              detected during instantiation of class \"gridcall_verify::equal<Claim, Actual, Expected> [with Claim=3, Actual=8UL, Expected=4UL]\" at line 10
              again [with Claim=3, Actual=8UL, Expected=4UL]
              [with Claim=13, Actual=const __nv_bool [4UL], Accepted=<float>]\"";
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
                Failure {
                    claim: 13,
                    actual: Some("const bool[4]".into())
                },
            ]
        );
        assert_eq!(failed("error: expected a \";\" [with Claim=x]"), []);
    }
}
