//! Compares variables with the PTX that their source gives now.

use std::{fmt::Write, path::Path};

use crate::{declaration::StaticDeclaration, layout::ArgLayout};

/// Adds what differs to `differences`, each on a line of its own.
///
/// # Errors
///
/// If that is no PTX that can be read.
pub(super) fn compare(
    declarations: &[&StaticDeclaration],
    ptx: &str,
    source: &Path,
    differences: &mut String,
) -> Result<(), String> {
    let source = source.display();
    let module = gridcall_ptx::Module::parse(ptx)
        .map_err(|error| format!("the PTX of {source} cannot be read: {error}"))?;
    for declaration in declarations {
        let &StaticDeclaration {
            name, file, line, ..
        } = declaration;
        for variant in declaration.variants {
            let symbol = of_all_files(variant.symbol);
            let now = module
                .variables()
                .iter()
                .find(|one| of_all_files(one.name()) == symbol);
            let (path, at) = (variant.image.path, variant.line);
            let differs = match now {
                Some(variable) => {
                    elsewhere(variable, variant.space).or_else(|| otherwise(variable, declaration))
                }
                // Of the others C++ has told, and none need be there that nothing uses.
                None if declaration.cpp.is_none() => Some("gives no such variable".to_owned()),
                None => None,
            };
            if let Some(differs) = differs {
                let _ = writeln!(
                    differences,
                    "  {file}:{line}: `{name}` is `{}` in `{}` at {path}:{at}, but the source now \
                     {differs}: compile the PTX again",
                    variant.symbol, variant.space
                );
            }
        }
    }
    Ok(())
}

fn elsewhere(now: &gridcall_ptx::Variable, space: &str) -> Option<String> {
    let there = now.space().to_string();
    (there != space).then(|| format!("puts it in `{there}`"))
}

/// What C++ cannot name has the size and alignment that the PTX says.
fn otherwise(now: &gridcall_ptx::Variable, declaration: &StaticDeclaration) -> Option<String> {
    let ArgLayout { size, align, .. } = declaration.layout;
    let fits = now.size() == Some(size) && now.align() >= align;
    (declaration.cpp.is_none() && !fits).then(|| format!("declares it `{now}`"))
}

/// A mangled name without the parts that are made of a file's path: those of variables that other
/// files cannot name.
fn of_all_files(symbol: &str) -> String {
    let mut rest = symbol;
    let mut plain = String::new();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        plain.push_str(before);
        let digits = number.len()
            - number
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let (length, name) = number.split_at(digits);
        let length = length.parse().unwrap_or(usize::MAX);
        match name.get(..length) {
            Some(part) if part.starts_with("_INTERNAL_") || part.starts_with("_GLOBAL__N_") => {}
            Some(_) => plain.push_str(&number[..digits + length]),
            // No name that a compiler made.
            None => {
                plain.push_str(number);
                return plain;
            }
        }
        rest = &name[length..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_file_is_no_part_of_a_name() {
        let one = "_ZN27_INTERNAL_d683f7e5_4_b_cu_k29_GLOBAL__N__d683f7e5_4_b_cu_k6hiddenE";
        let other =
            "_ZN32_INTERNAL_0a0b0c0d_9_verify_cu_k34_GLOBAL__N__0a0b0c0d_9_verify_cu_k6hiddenE";
        assert_eq!(of_all_files(one), of_all_files(other));
        assert_ne!(of_all_files(one), of_all_files("_ZN1m6hiddenE"));
        assert_ne!(of_all_files("_ZN1a1xE"), of_all_files("_ZN1b1xE"));
        assert_ne!(of_all_files("_ZN1a2bcE"), of_all_files("_ZN2ab1cE"));
        assert_eq!(of_all_files("taps"), "taps");
        assert_ne!(of_all_files("taps5"), of_all_files("taps6"));
        assert_eq!(
            of_all_files("taps99999999999999999999999"),
            "taps99999999999999999999999"
        );
    }
}
