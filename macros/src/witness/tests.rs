//! Which mistake is caught by which witness, on a kernel for every spelling of a parameter.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the files that they are about"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use gridcall_ptx as ptx;
use quote::ToTokens;

use super::*;
use crate::artifact::{Place, Text};
use crate::{check, cuda, input};

/// The parameter `v` of `c_<spelling>` and `m_<spelling>`, as Rust declares it.
const SPELLINGS: [(&str, &str); 73] = [
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
    ("size", "usize"),
    ("i8", "i8"),
    ("u16", "u16"),
    ("i64", "i64"),
    ("float", "f32"),
    ("double", "f64"),
    ("half", "f16"),
    ("bf16", "bf16"),
    ("half2", "Half2"),
    ("fp8", "F8E4M3"),
    ("float2", "Float2"),
    ("float3", "Float3"),
    ("float4", "Float4"),
    ("double2", "Double2"),
    ("int3", "Int3"),
    ("uchar4", "UChar4"),
    ("char3", "Char3"),
    ("longlong2", "LongLong2"),
    ("cfloat", "Complex<f32>"),
    ("cdouble", "Complex<f64>"),
    ("enum_u8", "Colour"),
    ("enum_int", "Level"),
    ("enum_class", "Wide"),
    ("pair", "Pair"),
    ("mixed", "Mixed"),
    ("nested", "Nested"),
    ("with_pointer", "WithPointer"),
    ("aligned16", "Aligned16"),
    ("aligned64", "Aligned64"),
    ("array_inside", "ArrayInside"),
    ("union", "Either"),
    ("packed", "Packed"),
    ("bits", "Bits"),
    ("derived", "Derived"),
    ("empty", "Empty"),
    ("big", "Big"),
    ("grid_constant", "WithPointer"),
    ("const_int", "i32"),
    ("float_ptr", "&mut [f32]"),
    ("float_cptr", "&[f32]"),
    ("float_cptr_restrict", "&[f32]"),
    ("double_cptr", "&[f64]"),
    ("int_ptr", "&mut [i32]"),
    ("int_cptr", "&[i32]"),
    ("uint_cptr", "&[u32]"),
    ("longlong_cptr", "&[i64]"),
    ("size_cptr", "&[usize]"),
    ("uchar_cptr", "&[u8]"),
    ("bool_ptr", "&mut [bool]"),
    ("half_cptr", "&[f16]"),
    ("bf16_ptr", "&mut [bf16]"),
    ("float4_cptr", "&[Float4]"),
    ("float3_ptr", "&mut [Float3]"),
    ("pair_cptr", "&[Pair]"),
    ("pair_ptr", "&mut [Pair]"),
    ("void_ptr", "&mut [i32]"),
    ("ptr_ptr", "&[u64]"),
    ("volatile_ptr", "&[i32]"),
    ("atomic_ptr", "&mut [i32]"),
    ("inout_ptr", "&mut [f32]"),
    ("unused_ptr", "&[f32]"),
];

/// The kernels with other parameters, by what their entries are declared as.
const OTHERS: [(&str, &str); 10] = [
    ("c_saxpy", "n: u32, a: f32, x: &[f32], y: &mut [f32]"),
    ("m_saxpy", "n: u32, a: f32, x: &[f32], y: &mut [f32]"),
    (
        "c_bounded",
        "in_: &[f32], out: &mut [f32], rows: i32, cols: i32, invert: bool",
    ),
    (
        "deep::er::m_scoped",
        "p: Pair, k: i64, x: &[f64], y: &mut [f64]",
    ),
    (
        "m_add<float>",
        "x: &[f32], y: &[f32], z: &mut [f32], n: i32",
    ),
    (
        "m_add<double>",
        "x: &[f64], y: &[f64], z: &mut [f64], n: i32",
    ),
    ("m_add<int>", "x: &[i32], y: &[i32], z: &mut [i32], n: i32"),
    ("m_over", "y: &mut [f32]"),
    ("m_over", "y: &mut [f64]"),
    ("c_none", ""),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn artifact(arch: &str) -> Artifact {
    let absolute = folder().join(format!("ptx/tests/corpus/signatures.nvcc13.{arch}.ptx"));
    let source = std::fs::read_to_string(&absolute).unwrap();
    let module = ptx::Module::parse(&source).unwrap();
    Artifact {
        place: Place {
            shown: "signatures.ptx".to_owned(),
            absolute,
            variables: Vec::new(),
        },
        text: Arc::new(Text { source, module }),
    }
}

fn source() -> Cuda {
    let absolute = folder().join("tests/witnesses/signatures.cu");
    let text = std::fs::read_to_string(&absolute).unwrap();
    Cuda {
        place: Some(Place {
            shown: "signatures.cu".to_owned(),
            absolute,
            variables: Vec::new(),
        }),
        shown: "signatures.cu".to_owned(),
        source: Arc::new(cuda::read(&text)),
    }
}

/// All right declarations: the name of the kernel and its parameters.
fn declarations() -> Vec<(String, String)> {
    let spelled = SPELLINGS.iter().flat_map(|(spelling, ty)| {
        ["c", "m"].map(|mark| {
            (
                format!("{mark}_{spelling}"),
                format!("v: {ty}, out: &mut [i32]"),
            )
        })
    });
    let others = OTHERS
        .iter()
        .map(|(name, params)| (name.to_string(), params.to_string()));
    spelled.chain(others).collect()
}

/// Who contradicts a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Witness {
    Header,
    Name,
    Source,
    Code,
}

const WITNESSES: [Witness; 4] = [
    Witness::Header,
    Witness::Name,
    Witness::Source,
    Witness::Code,
];

/// Each witness that contradicts, with its first message.
fn heard(name: &str, params: &str, artifact: &Artifact, cuda: &Cuda) -> Vec<(Witness, String)> {
    let block = format!("unsafe extern \"C\" {{ #[name({name:?})] unsafe fn k({params}); }}");
    let declarations = input::declarations(block.parse().unwrap());
    let [parsed] = declarations.kernels.as_slice() else {
        panic!("{block}")
    };
    let Some(kernel) = &parsed.kernel else {
        panic!("{block}")
    };
    let mut report = Report::default();
    let entry = check::against(&parsed.outline, kernel, artifact, &mut report);
    let mut heard = Vec::new();
    if !report.is_empty() {
        let (_, message) = report.shown(&block).remove(0);
        heard.push((Witness::Header, message));
        return heard;
    }
    let subject = Subject::new(&parsed.outline, kernel, entry.unwrap(), artifact);
    let flow = subject.flow.as_ref().unwrap();
    for (witness, contradictions) in [
        (Witness::Name, name::check(&subject)),
        (Witness::Source, source::check(&subject, cuda)),
        (Witness::Code, code::check(&subject, flow, false)),
    ] {
        let first = contradictions.into_iter().next();
        heard.extend(first.map(|contradiction| (witness, contradiction.message)));
    }
    heard
}

#[test]
fn right_declarations_are_not_contradicted() {
    let cuda = source();
    assert!(!cuda.source.open);
    for arch in ["sm_75", "sm_100"] {
        let artifact = artifact(arch);
        let all = declarations();
        assert_eq!(all.len(), 156);
        assert_eq!(artifact.module().entries().len(), 156);
        for (name, params) in all {
            let heard = heard(&name, &params, &artifact, &cuda);
            assert!(heard.is_empty(), "{arch} {name}({params}): {heard:?}");
        }
    }
}

/// A parameter as it is declared.
type Parts = Vec<(String, String)>;

fn parts(params: &str) -> Parts {
    let parser = syn::punctuated::Punctuated::<syn::FnArg, syn::Token![,]>::parse_terminated;
    syn::parse::Parser::parse_str(parser, params)
        .unwrap()
        .iter()
        .map(|argument| {
            let syn::FnArg::Typed(argument) = argument else {
                panic!("{params}")
            };
            (
                argument.pat.to_token_stream().to_string(),
                crate::describe::ty(&argument.ty),
            )
        })
        .collect()
}

fn joined(parts: &Parts) -> String {
    let all: Vec<String> = parts
        .iter()
        .map(|(name, ty)| format!("{name}: {ty}"))
        .collect();
    all.join(", ")
}

/// A scalar of another width, class and sign.
fn other(scalar: &str) -> [Option<&'static str>; 3] {
    match scalar {
        "bool" => [Some("u16"), None, None],
        "i8" => [Some("i16"), None, Some("u8")],
        "u8" => [Some("u16"), None, Some("i8")],
        "i16" => [Some("i32"), Some("f16"), Some("u16")],
        "u16" => [Some("u32"), Some("f16"), Some("i16")],
        "i32" => [Some("i64"), Some("f32"), Some("u32")],
        "u32" => [Some("u64"), Some("f32"), Some("i32")],
        "i64" => [Some("i32"), Some("f64"), Some("u64")],
        "u64" | "usize" => [Some("u32"), Some("f64"), Some("i64")],
        "f32" => [Some("f64"), Some("i32"), None],
        "f64" => [Some("f32"), Some("i64"), None],
        "f16" | "bf16" => [Some("f32"), Some("u16"), None],
        _ => [None; 3],
    }
}

/// Elements that are certainly others.
fn other_pointee(elem: &str) -> &'static str {
    match elem {
        "Pair" => "Mixed",
        "f32" => "u8",
        "Float3" => "Int3",
        "Float4" => "Int4",
        _ => "f32",
    }
}

/// Every mistake in one declaration, by kind.
fn mistakes(params: &str) -> Vec<(&'static str, String)> {
    let right = parts(params);
    let mut wrong = Vec::new();
    let mut with = |kind, index: usize, ty: String| {
        let mut parts = right.clone();
        parts[index].1 = ty;
        wrong.push((kind, joined(&parts)));
    };
    for (index, (_, ty)) in right.iter().enumerate() {
        let (open, elem) = match ty.strip_suffix(']') {
            Some(slice) => slice.split_at(slice.find('[').unwrap() + 1),
            None => ("", ty.as_str()),
        };
        let close = if open.is_empty() { "" } else { "]" };
        for (kind, scalar) in ["other width", "other class", "other sign"]
            .into_iter()
            .zip(other(elem))
        {
            if let Some(scalar) = scalar {
                with(kind, index, format!("{open}{scalar}{close}"));
            }
        }
        match open {
            "&[" => with("const dropped", index, format!("&mut [{elem}]")),
            "&mut [" => with("const added", index, format!("&[{elem}]")),
            _ => {}
        }
        if !open.is_empty() {
            with(
                "other pointee",
                index,
                format!("{open}{}]", other_pointee(elem)),
            );
            with("integer for a pointer", index, "u64".to_owned());
        } else if matches!(elem, "u64" | "i64" | "usize") {
            with("pointer for an integer", index, "&[f32]".to_owned());
        }
    }
    for index in 0..right.len() {
        let mut parts = right.clone();
        parts.remove(index);
        wrong.push(("dropped", joined(&parts)));
    }
    let mut parts = right.clone();
    parts.push(("extra".to_owned(), "u32".to_owned()));
    wrong.push(("added", joined(&parts)));
    for index in 1..right.len() {
        let mut parts = right.clone();
        parts.swap(index - 1, index);
        wrong.push(("exchanged", joined(&parts)));
    }
    wrong
}

/// Changes after which a declaration is right again.
fn is_right_too(kind: &str, name: &str, params: &str) -> bool {
    if matches!(kind, "added" | "dropped" | "exchanged") {
        return false;
    }
    let v = params.split(", ").next().unwrap_or_default();
    match name.trim_start_matches("c_").trim_start_matches("m_") {
        // `char` has the sign of the platform.
        "char" => v == "v: u8",
        // `void` is anything.
        "void_ptr" => v.starts_with("v: &mut ["),
        // `volatile int*` may be written, though the code does not.
        "volatile_ptr" => v == "v: &mut [i32]",
        // An address is an integer of either sign.
        "ptr_ptr" => v == "v: &[i64]",
        // The other overload.
        "over" => ["y: &mut [f32]", "y: &mut [f64]"].contains(&params),
        _ => false,
    }
}

/// Of one kind of mistake: how often it was made, and by whom it was contradicted.
#[derive(Default)]
struct Count {
    made: usize,
    by: [usize; 4],
    missed: Vec<String>,
}

fn counts(mark: &str, artifact: &Artifact, cuda: &Cuda) -> BTreeMap<&'static str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (name, params) in declarations() {
        let is_mangled = !name.starts_with("c_");
        if is_mangled != (mark == "m") {
            continue;
        }
        for (kind, wrong) in mistakes(&params) {
            if is_right_too(kind, &name, &wrong) {
                continue;
            }
            let heard = heard(&name, &wrong, artifact, cuda);
            let count = counts.entry(kind).or_default();
            count.made += 1;
            for (witness, _) in &heard {
                count.by[*witness as usize] += 1;
            }
            if heard.is_empty() {
                count.missed.push(format!("{name}({wrong})"));
            }
        }
    }
    counts
}

/// A table of the docs.
fn table(counts: &BTreeMap<&'static str, Count>) -> String {
    let mut table = String::from(
        "| mistake | made | header | C++ name | CUDA source | code | missed |\n|---|---|---|---|---|---|---|\n",
    );
    for (kind, count) in counts {
        let [header, name, source, code] = WITNESSES.map(|witness| count.by[witness as usize]);
        let (made, missed) = (count.made, count.missed.len());
        let _ = writeln!(
            table,
            "| {kind} | {made} | {header} | {name} | {source} | {code} | {missed} |"
        );
    }
    table
}

/// The docs hold the counts; a change of them is a change of the docs.
#[test]
fn mistakes_are_caught_by_the_first_witness_that_can() {
    let docs = std::fs::read_to_string(folder().join("docs/witnesses.md")).unwrap();
    let cuda = source();
    let mut tables = Vec::new();
    for arch in ["sm_75", "sm_100"] {
        let artifact = artifact(arch);
        for (mark, names) in [("c", "`extern \"C\"`"), ("m", "C++ names")] {
            let counts = counts(mark, &artifact, &cuda);
            for (kind, count) in &counts {
                assert!(
                    count.missed.is_empty(),
                    "{arch}: {kind}: {:?}",
                    count.missed
                );
            }
            tables.push(format!(
                "Kernels with {names}, compiled for {arch}:\n\n{}",
                table(&counts)
            ));
        }
    }
    println!("{}", tables.join("\n"));
    for table in tables {
        assert!(docs.contains(&table), "docs/witnesses.md has other counts");
    }
}

/// Without the source, what a kernel with `extern "C"` does is all that tells.
#[test]
fn messages_name_both_places_and_the_cure() {
    let (artifact, cuda) = (artifact("sm_75"), source());
    let said = |name: &str, params: &str| -> Vec<String> {
        heard(name, params, &artifact, &cuda)
            .into_iter()
            .map(|(_, message)| message)
            .collect()
    };
    let line =
        |text: &str, wanted: &str| text.lines().position(|line| line.contains(wanted)).unwrap() + 1;
    let ptx_line = |wanted: &str| line(&artifact.text.source, wanted);
    let cu = std::fs::read_to_string(folder().join("tests/witnesses/signatures.cu")).unwrap();
    assert_eq!(
        said("m_float_cptr", "v: &[i32], out: &mut [i32]"),
        [
            format!(
                "parameter 0, `v`, of `k` is `&[i32]`, but by its name the entry at signatures.ptx:{}, \
                 `_Z12m_float_cptrPKfPi`, takes `float const*`: write `&[f32]`",
                ptx_line(".entry _Z12m_float_cptrPKfPi(")
            ),
            format!(
                "parameter 0, `v`, of `k` is `&[i32]`, but signatures.cu:{} declares `const float* v`: \
                 write `&[f32]`",
                line(&cu, " m_float_cptr(")
            ),
        ]
    );
    let [source, code] = &said("c_float_ptr", "v: &[f32], out: &mut [i32]")[..] else {
        panic!()
    };
    assert!(source.ends_with(
        "declares `float* v`: the kernel may write to it: write `&mut [f32]`, or `const` in the kernel \
         if it only reads"
    ), "{source}");
    assert!(
        code.contains("but the kernel writes to it at signatures.ptx:"),
        "{code}"
    );
    assert!(code.ends_with(": write `&mut [f32]`"), "{code}");
    let [_, code] = &said("c_double_cptr", "v: u64, out: &mut [i32]")[..] else {
        panic!()
    };
    assert!(
        code.contains("takes it for an address, reading there at signatures.ptx:"),
        "{code}"
    );
    assert!(code.ends_with("write `v: &[f64]`"), "{code}");
    let [_, code] = &said("c_double_cptr", "v: &[f32], out: &mut [i32]")[..] else {
        panic!()
    };
    assert!(code.contains("8 bytes at once"), "{code}");
    let [_, code] = &said("c_float_cptr", "v: &[f64], out: &mut [i32]")[..] else {
        panic!()
    };
    assert!(code.contains("elements of `f32`"), "{code}");
}

/// The folders with PTX and its source: those of `kernels/`, and what
/// `kernels/build.sh --arch sm_90 target/kernels-sm_90` and the like have made of it.
fn compiled() -> Vec<(PathBuf, PathBuf)> {
    let kernels = folder().join("kernels");
    let mut folders = vec![kernels.clone()];
    let made = std::fs::read_dir(folder().join("target"))
        .into_iter()
        .flatten();
    folders.extend(
        made.filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .unwrap_or_default();
                name.starts_with("kernels-")
            }),
    );
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .filter_map(|path| {
            // `axpy.nvrtc13.sm_75.ptx` is made of `axpy.cu`.
            let name = path.file_name()?.to_str()?.split('.').next()?;
            let source = [path.with_file_name(name), kernels.join(name)]
                .map(|source| source.with_extension("cu"))
                .into_iter()
                .find(|source| source.is_file())?;
            Some((path, source))
        })
        .collect()
}

/// The code says nothing against what the source declares: it writes through no `const`, accesses
/// nothing wider than its type is aligned, and takes no integer for an address.
#[test]
fn no_claim_of_the_code_is_false() {
    let (mut pointers, mut integers) = (0, 0);
    let mut wider = BTreeSet::new();
    for (path, source) in compiled() {
        let text = std::fs::read_to_string(&path).unwrap();
        let source = cuda::read(&std::fs::read_to_string(&source).unwrap());
        let module = ptx::Module::parse(&text).unwrap();
        for entry in module.entries() {
            let (name, namespace) = match name::signature(entry.name()) {
                Some(signature) => (signature.name, Some(signature.namespace)),
                None => (entry.name().to_owned(), None),
            };
            let kernels = source.kernels.iter().filter(|kernel| {
                kernel.name == name && namespace.iter().all(|outer| *outer == kernel.namespace)
            });
            let kernels: Vec<&cuda::Kernel> = kernels.collect();
            let [kernel] = kernels.as_slice() else {
                continue;
            };
            let Some(params) = &kernel.params else {
                continue;
            };
            let flow = entry.flow(&text).unwrap();
            for (param, flow) in params.iter().zip(flow.params()) {
                let place = format!("{}: {} of {}", path.display(), param.text, entry.name());
                match &param.ty {
                    cuda::Type::Pointer(pointee) => {
                        pointers += usize::from(!flow.accesses().is_empty());
                        assert!(!pointee.is_const || flow.write().is_none(), "{place}");
                        let align = pointee.ty.layout().map(|layout| layout.align);
                        let narrowest = flow.accesses().iter().filter_map(ptx::Access::bytes).min();
                        if let (Some(align), Some(narrowest), false) =
                            (align, narrowest, flow.is_inspected())
                            && narrowest > align
                        {
                            wider.insert(format!("{} {}", kernel.name, param.text));
                        }
                    }
                    cuda::Type::Scalar(_) => {
                        integers += 1;
                        assert!(flow.accesses().is_empty(), "{place}");
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(
        pointers > 50 && integers > 50,
        "{pointers} pointers, {integers} scalars"
    );
    println!("{pointers} pointers and {integers} scalars");
    // Its source casts the pointer to those of wider vectors, which needs the alignment indeed.
    assert_eq!(
        wider,
        BTreeSet::from(["echo_vectors unsigned char*".to_owned()])
    );
}
