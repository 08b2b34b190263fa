//! Names that a C++ compiler made of a kernel's name and its parameters.

use cpp_demangle::{DemangleOptions, Symbol};

/// Those of `symbols` that are C++ functions called `name`, in any namespace, with their C++ form.
pub(crate) fn of_base_name<'a>(name: &str, symbols: &[&'a str]) -> Vec<(&'a str, String)> {
    symbols
        .iter()
        // Demangling is slow; a mangled name holds the length of each name it is made of.
        .filter(|symbol| {
            symbol.starts_with("_Z") && symbol.contains(&format!("{}{name}", name.len()))
        })
        .filter_map(|&symbol| {
            let demangled = demangle(symbol)?;
            (base_name(&demangled) == name).then_some((symbol, demangled))
        })
        .collect()
}

/// `relu(float*, int)` of `_Z4reluPfi`.
fn demangle(symbol: &str) -> Option<String> {
    let symbol = Symbol::new(symbol).ok()?;
    symbol
        .demangle_with_options(&DemangleOptions::new().no_return_type())
        .ok()
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
        let found = of_base_name("relu", &symbols);
        let shown: Vec<&str> = found.iter().map(|(_, shown)| shown.as_str()).collect();
        assert_eq!(shown[0], "relu(float*, int)");
        assert_eq!(shown[1], "math::relu(float*, int)");
        assert!(shown[2].starts_with("relu<float>("), "{}", shown[2]);
        assert!(!shown.iter().any(|shown| shown.contains("scale")));
    }

    #[test]
    fn an_unnamed_namespace_is_no_parameter_list() {
        assert_eq!(base_name("(anonymous namespace)::relu(float*)"), "relu");
        assert_eq!(base_name("a::b::add<int (*)(int)>(float*)"), "add");
    }
}
