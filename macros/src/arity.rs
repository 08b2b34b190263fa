//! Which parameter is missing, or one too many.
//!
//! Pairs the declared parameters with those of the PTX in order, as many as can be of one size and
//! class.

use gridcall_ptx as ptx;

use crate::describe;
use crate::kernel::Param;
use crate::value::{Shape, Taken};

/// What can be said of two lists of different length.
pub(crate) struct Explanation {
    /// The first declared parameter that the PTX has no place for.
    pub(crate) first_extra: Option<usize>,
    pub(crate) message: String,
}

/// Says which parameters are missing, or which are too many.
pub(crate) fn explain(declared: &[Param], actual: &[ptx::Param]) -> Explanation {
    let pairs = pair(declared, actual);
    let extra: Vec<usize> = (0..declared.len())
        .filter(|index| !pairs.iter().any(|(one, _)| one == index))
        .collect();
    let missing: Vec<usize> = (0..actual.len())
        .filter(|index| !pairs.iter().any(|(_, other)| other == index))
        .collect();
    let message = match (extra.as_slice(), missing.as_slice()) {
        (extra, []) => {
            let names = extra.iter().map(|&index| &declared[index].ident);
            format!("the kernel has no {}", describe::list(names))
        }
        ([], missing) => say_missing(declared, actual, &pairs, missing),
        // Some are of another type, too, so no single place is wrong.
        _ => format!("it takes ({})", shown(actual)),
    };
    Explanation {
        first_extra: extra.first().copied(),
        message,
    }
}

fn say_missing(
    declared: &[Param],
    actual: &[ptx::Param],
    pairs: &[(usize, usize)],
    missing: &[usize],
) -> String {
    let first = missing[0];
    let contiguous = missing
        .iter()
        .enumerate()
        .all(|(nth, &index)| index == first + nth);
    if !contiguous {
        return format!("it takes ({})", shown(actual));
    }
    let types = describe::list(missing.iter().map(|&index| &actual[index]));
    match pairs.iter().rev().find(|&&(_, other)| other < first) {
        Some(&(before, _)) => format!("missing after `{}`: {types}", declared[before].ident),
        None => format!("missing in front: {types}"),
    }
}

fn shown(actual: &[ptx::Param]) -> String {
    const MOST: usize = 12;
    let mut shown: Vec<String> = actual.iter().take(MOST).map(ToString::to_string).collect();
    if actual.len() > MOST {
        shown.push("..".to_owned());
    }
    shown.join(", ")
}

/// The longest list of pairs that keeps both orders, the earliest of several.
fn pair(declared: &[Param], actual: &[ptx::Param]) -> Vec<(usize, usize)> {
    let (rows, columns) = (declared.len(), actual.len());
    // `longest[i][j]` is the number of pairs from `declared[i..]` and `actual[j..]`.
    let mut longest = vec![vec![0_usize; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            let without = longest[i + 1][j].max(longest[i][j + 1]);
            longest[i][j] = if fits(&declared[i], &actual[j]) {
                without.max(longest[i + 1][j + 1] + 1)
            } else {
                without
            };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < rows && j < columns {
        if fits(&declared[i], &actual[j]) && longest[i][j] == longest[i + 1][j + 1] + 1 {
            pairs.push((i, j));
            i += 1;
            j += 1;
        } else if longest[i][j] == longest[i][j + 1] {
            j += 1;
        } else {
            i += 1;
        }
    }
    pairs
}

fn fits(declared: &Param, actual: &ptx::Param) -> bool {
    match &declared.taken {
        Taken::Value {
            known: Some(known), ..
        } => {
            known.size == actual.size()
                && match known.shape {
                    Shape::Integer => actual.class() == ptx::Class::Integer,
                    Shape::Float => actual.class() == ptx::Class::Float,
                    Shape::Bytes => actual.class() == ptx::Class::Bytes,
                }
                || actual.class() == ptx::Class::Bits && known.size == actual.size()
        }
        Taken::Texture { .. } | Taken::Surface { .. } | Taken::Condition { .. } => {
            actual.class() != ptx::Class::Bytes && actual.size() == 8
        }
        Taken::Strided { .. } | Taken::TensorMap { .. } => actual.class() == ptx::Class::Bytes,
        Taken::Value { known: None, .. } => actual.pointer().is_none(),
        _ => actual.size() == 8 && matches!(actual.class(), ptx::Class::Integer | ptx::Class::Bits),
    }
}
