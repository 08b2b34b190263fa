//! Which mistakes the CUDA compiler contradicts: all in one compilation, each a declaration of its
//! own.

use std::panic::catch_unwind;

use gridcall::__private::{AnyDeclaration, Cpp, Declaration, Needs, Param};

/// The parameter `v` of each kernel that takes a scalar or an array of scalars, by the name of its
/// kind.
const SPELLINGS: [(&str, &str); 38] = [
    ("bool", "bool"),
    ("char", "i8"),
    ("schar", "i8"),
    ("uchar", "u8"),
    ("short", "i16"),
    ("ushort", "u16"),
    ("int", "i32"),
    ("uint", "u32"),
    ("long", "i64"),
    ("ulong", "u64"),
    ("longlong", "i64"),
    ("ulonglong", "u64"),
    ("size", "u64"),
    ("i8", "i8"),
    ("u16", "u16"),
    ("i64", "i64"),
    ("float", "f32"),
    ("double", "f64"),
    ("enum_u8", "u8"),
    ("const_int", "i32"),
    ("float_ptr", "&mut f32"),
    ("float_cptr", "&f32"),
    ("float_cptr_restrict", "&f32"),
    ("double_cptr", "&f64"),
    ("int_ptr", "&mut i32"),
    ("int_cptr", "&i32"),
    ("uint_cptr", "&u32"),
    ("longlong_cptr", "&i64"),
    ("size_cptr", "&u64"),
    ("uchar_cptr", "&u8"),
    ("bool_ptr", "&mut bool"),
    ("float4_cptr", "&f32"),
    ("float3_ptr", "&mut f32"),
    ("ptr_ptr", "&u64"),
    ("atomic_ptr", "&mut i32"),
    ("inout_ptr", "&mut f32"),
    ("unused_ptr", "&f32"),
    ("volatile_ptr", "&mut i32"),
];

/// A parameter as `&f32`, `&mut f32` or `f32` says.
fn param(name: &'static str, shown: &'static str) -> Param {
    match shown.strip_prefix('&') {
        None => Param::scalar(name, shown, 0, shown),
        Some(elem) => match elem.strip_prefix("mut ") {
            Some(elem) => Param::array(name, shown, 0, elem, true, false),
            None => Param::array(name, shown, 0, elem, false, false),
        },
    }
}

/// Declares a kernel; `line` tells it from the others in what is said.
fn declare(kernel: String, params: Vec<Param>, line: u32) -> AnyDeclaration {
    let kernel: &'static str = kernel.leak();
    AnyDeclaration::Kernel(Box::leak(Box::new(Declaration {
        kernel,
        entry: kernel,
        variants: &[],
        file: "case",
        line,
        params: params.leak(),
        params_size: 0,
        requires: &[],
        block: None,
        needs: Needs::NONE,
        may_alias: &[],
        cpp: Cpp {
            name: kernel,
            params: None,
            source: Some("witnesses/signatures.cu"),
            instance: None,
        },
        statics_mut: &[],
    })))
}

/// A scalar of another width, class and sign.
fn others(scalar: &str) -> [Option<&'static str>; 3] {
    match scalar {
        "bool" => [Some("u16"), None, None],
        "i8" => [Some("i16"), None, None],
        "u8" => [Some("u16"), None, Some("i8")],
        "i16" => [Some("i32"), None, Some("u16")],
        "u16" => [Some("u32"), None, Some("i16")],
        "i32" => [Some("i64"), Some("f32"), Some("u32")],
        "u32" => [Some("u64"), Some("f32"), Some("i32")],
        "i64" => [Some("i32"), Some("f64"), Some("u64")],
        "u64" => [Some("u32"), Some("f64"), Some("i64")],
        "f32" => [Some("f64"), Some("i32"), None],
        "f64" => [Some("f32"), Some("i64"), None],
        _ => [None; 3],
    }
}

/// Every mistake of every kernel: its kind, and `v` as it is declared.
fn mistakes() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut all = Vec::new();
    for (spelling, right) in SPELLINGS {
        let (open, elem) = match right.rfind(['&', ' ']) {
            Some(end) => right.split_at(end + 1),
            None => ("", right),
        };
        for (kind, other) in ["other width", "other class", "other sign"]
            .into_iter()
            .zip(others(elem))
        {
            // An address is an integer of either sign; an enum has the sign of its values.
            let right_too = kind == "other sign" && matches!(spelling, "ptr_ptr" | "enum_u8");
            if let Some(other) = other.filter(|_| !right_too) {
                all.push((kind, spelling, &*format!("{open}{other}").leak()));
            }
        }
        match open {
            "&" => all.push(("const dropped", spelling, &*format!("&mut {elem}").leak())),
            "&mut " => all.push(("const added", spelling, &*format!("&{elem}").leak())),
            _ => {}
        }
        if open.is_empty() {
            all.push(("pointer for a value", spelling, "&f32"));
        } else {
            all.push(("integer for a pointer", spelling, "u64"));
        }
    }
    all
}

#[test]
fn every_mistake_is_contradicted_by_the_compiler() {
    if !gridcall::__private::has_compiler() {
        println!("not run, as there is no CUDA compiler");
        return;
    }
    let right: Vec<AnyDeclaration> = SPELLINGS
        .iter()
        .flat_map(|(spelling, shown)| ["c", "m"].map(|mark| (format!("{mark}_{spelling}"), *shown)))
        .map(|(kernel, shown)| {
            declare(kernel, vec![param("v", shown), param("out", "&mut i32")], 0)
        })
        .collect();
    gridcall::__private::verify(env!("CARGO_MANIFEST_DIR"), &right);

    let wrong = mistakes();
    let mut declarations = Vec::new();
    for (number, (_, spelling, shown)) in (1..).zip(&wrong) {
        let params = vec![param("v", shown), param("out", "&mut i32")];
        declarations.push(declare(format!("c_{spelling}"), params, number));
    }
    // One too few, one too many.
    let few = u32::try_from(wrong.len()).unwrap() + 1;
    declarations.push(declare("c_int".into(), vec![param("v", "i32")], few));
    let many = vec![
        param("v", "i32"),
        param("out", "&mut i32"),
        param("more", "u32"),
    ];
    declarations.push(declare("c_int".into(), many, few + 1));
    let said = catch_unwind(|| {
        gridcall::__private::verify(env!("CARGO_MANIFEST_DIR"), &declarations);
    });
    let said = said.expect_err("wrong declarations were found right");
    let said = said.downcast_ref::<String>().unwrap();
    let contradicted = |line: u32| said.contains(&format!("case:{line}: "));
    let missed: Vec<_> = (1..)
        .zip(&wrong)
        .filter(|(line, _)| !contradicted(*line))
        .map(|(_, case)| case)
        .collect();
    assert!(missed.is_empty(), "{missed:?}\n{said}");
    assert!(contradicted(few) && contradicted(few + 1), "{said}");
    let docs = include_str!("../../docs/witnesses.md");
    let count = format!("all {} of ", wrong.len() + 2);
    assert!(
        docs.contains(&count),
        "docs/witnesses.md does not say `{count}`"
    );
}
