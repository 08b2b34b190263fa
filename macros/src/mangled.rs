//! Names that a C++ compiler made of a kernel's name and its parameters.

use cpp_demangle::{DemangleOptions, Symbol};

/// Those of `symbols` that are C++ functions called `name`, with their C++ form.
///
/// The name may be that of the function alone, in any namespace; or `math::add`; or one instance of
/// a template, `add<float>`.
pub(crate) fn called<'a>(name: &str, symbols: &[&'a str]) -> Vec<(&'a str, String)> {
    let base = base_name(name);
    symbols
        .iter()
        // Demangling is slow; a mangled name holds the length of each name it is made of.
        .filter(|symbol| {
            symbol.starts_with("_Z") && symbol.contains(&format!("{}{base}", base.len()))
        })
        .filter_map(|&symbol| {
            let demangled = demangle(symbol)?;
            is_called(&demangled, name).then_some((symbol, demangled))
        })
        .collect()
}

fn is_called(demangled: &str, name: &str) -> bool {
    let mut without_list = demangled;
    if let Some(open) = parameter_list(demangled) {
        without_list = &demangled[..open];
    }
    let plain = |name: &str| name.replace([' ', '\t'], "");
    let (function, name) = (plain(without_list), plain(name));
    let (function, instance) = split_instance(&function);
    let (name, asked) = split_instance(&name);
    let is_path = function == name || function.ends_with(&format!("::{name}"));
    is_path && (asked.is_empty() || asked == instance)
}

/// Where the parameters of a demangled function start.
fn parameter_list(demangled: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in demangled.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (character == '(').then_some(at);
        }
    }
    None
}

/// `float*, int` of `_Z4reluPfi`.
pub(crate) fn parameters(symbol: &str) -> Option<String> {
    let demangled = demangle(symbol)?;
    let list = demangled.get(parameter_list(&demangled)? + 1..)?;
    Some(list.strip_suffix(')')?.to_owned())
}

/// `add` and `<float>` of `add<float>`.
fn split_instance(name: &str) -> (&str, &str) {
    name.split_at(name.find('<').unwrap_or(name.len()))
}

/// `relu(float*, int)` of `_Z4reluPfi`.
pub(crate) fn demangle(symbol: &str) -> Option<String> {
    let symbol = Symbol::new(symbol).ok()?;
    symbol
        .demangle_with_options(&DemangleOptions::new().no_return_type())
        .ok()
}

/// The path by which C++ names a variable outside of its own namespaces: `math::ramp` of
/// `_ZN22_INTERNAL_0_4_k_cu_hash4math4rampE`. None for one of a function.
pub(crate) fn variable_path(symbol: &str) -> Option<String> {
    if symbol.starts_with("_ZZ") {
        return None;
    }
    let path = demangle(symbol).unwrap_or_else(|| symbol.to_owned());
    // What only its own file can name has a namespace of the compiler's in front.
    let path = path.replace("(anonymous namespace)::", "");
    let named = |part: &&str| !part.starts_with("_INTERNAL_") && !part.starts_with("_GLOBAL__N_");
    let path = path
        .split("::")
        .filter(named)
        .collect::<Vec<_>>()
        .join("::");
    Some(path)
}

/// `add` of `math::add<float>(float*)`.
fn base_name(demangled: &str) -> &str {
    // Its parenthesis is not that of the parameters.
    let demangled = demangled
        .strip_prefix("(anonymous namespace)::")
        .unwrap_or(demangled);
    let end = demangled.find(['<', '(']).unwrap_or(demangled.len());
    let start = demangled[..end]
        .rfind([':', ' '])
        .map_or(0, |last| last + 1);
    &demangled[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_plain_functions_templates_and_namespaces() {
        let symbols = [
            "_Z4reluPfi",
            "_ZN4math4reluEPfi",
            "_Z4reluIfEvPT_i",
            "_Z5scalePf",
            "relu4relu",
            "_Z4relu",
        ];
        let found = called("relu", &symbols);
        let shown: Vec<&str> = found.iter().map(|(_, shown)| shown.as_str()).collect();
        assert_eq!(shown[0], "relu(float*, int)");
        assert_eq!(shown[1], "math::relu(float*, int)");
        assert!(shown[2].starts_with("relu<float>("), "{}", shown[2]);
        assert!(!shown.iter().any(|shown| shown.contains("scale")));
    }

    #[test]
    fn a_name_may_be_a_path_or_an_instance() {
        let symbols = [
            "_ZN4math4reluEPfi",
            "_Z4reluIfEvPT_i",
            "_Z4reluIiEvPT_i",
            "_Z4reluPfi",
        ];
        let found = |name: &str| -> Vec<&str> {
            called(name, &symbols)
                .iter()
                .map(|(symbol, _)| *symbol)
                .collect()
        };
        assert_eq!(found("math::relu"), ["_ZN4math4reluEPfi"]);
        assert_eq!(found("relu<int>"), ["_Z4reluIiEvPT_i"]);
        assert_eq!(found("relu< float >"), ["_Z4reluIfEvPT_i"]);
        assert_eq!(found("relu").len(), 4);
        assert_eq!(found("th::relu"), [""; 0]);
    }

    #[test]
    fn variables_are_named_as_their_file_names_them() {
        for (symbol, path) in [
            ("taps", Some("taps")),
            ("_ZN4math6offsetE", Some("math::offset")),
            ("_ZN1m1vIfEE", Some("m::v<float>")),
            ("_ZN27_INTERNAL_d683f7e5_4_b_cu_k1m4rampE", Some("m::ramp")),
            (
                "_ZN27_INTERNAL_d683f7e5_4_b_cu_k29_GLOBAL__N__d683f7e5_4_b_cu_k6hiddenE",
                Some("hidden"),
            ),
            ("_ZN12_GLOBAL__N_16hiddenE", Some("hidden")),
            ("_ZZ1kPfE5count", None),
            ("_ZZ3useE5calls", None),
        ] {
            assert_eq!(variable_path(symbol).as_deref(), path, "{symbol}");
        }
    }

    #[test]
    fn an_unnamed_namespace_is_no_parameter_list() {
        assert_eq!(base_name("(anonymous namespace)::relu(float*)"), "relu");
        assert_eq!(base_name("a::b::add<int (*)(int)>(float*)"), "add");
    }
}
