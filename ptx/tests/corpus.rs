//! Compiler output: nvcc, NVRTC, clang, Triton, numba and rustc.

use std::fs;
use std::path::PathBuf;

use gridcall_ptx::{Module, Operand, Param, Statement, Version};

fn texts() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut texts: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, fs::read_to_string(file.path()).unwrap())
        })
        .collect();
    texts.sort();
    texts
}

#[test]
fn every_text_is_read() {
    let texts = texts();
    assert_eq!(texts.len(), 85);
    for (name, text) in texts {
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let entries = text.lines().filter(|line| line.contains(".entry ")).count();
        assert_eq!(module.entries().len(), entries, "{name}");
        for entry in module.entries() {
            let body = entry.body().unwrap().range();
            assert!(
                text[body.clone()].starts_with('{') && text[body].ends_with('}'),
                "{name}"
            );
        }
    }
}

#[test]
fn all_code_and_all_values_are_read() {
    for (name, text) in texts() {
        let module = Module::parse(&text).unwrap();
        let entries = module.entries().iter().map(|entry| entry.body());
        let functions = module.functions().iter().map(|function| function.body());
        let mut instructions = 0;
        for body in entries.chain(functions).flatten() {
            let code = body
                .parse(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            instructions += code.instructions().count();
        }
        assert!(instructions > 0, "{name}");
        for variable in module.variables() {
            let elements = variable
                .elements(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let size = variable.size().unwrap_or(0);
            assert!(
                elements.iter().all(|element| element.offset < size),
                "{name}"
            );
        }
    }
}

fn text(name: &str) -> String {
    let (_, text) = texts().into_iter().find(|(file, _)| file == name).unwrap();
    text
}

/// What nvcc, NVRTC and clang make of each C++ type, by the name of the kernel behind its prefix.
const SPELLINGS: &[(&str, &str)] = &[
    ("bool char schar uchar e8 i8 enum_u8", ".u8"),
    ("short ushort u16", ".u16"),
    ("int uint e32 enum_int constval const_int", ".u32"),
    (
        "long ulong ll longlong ull ulonglong sizet size ec enum_class i64 memptr",
        ".u64",
    ),
    ("float", ".f32"),
    ("double", ".f64"),
    ("half bf16", ".align 2 .b8 [2]"),
    ("half2 bf162 uchar4 bits", ".align 4 .b8 [4]"),
    ("fp8 empty s1", ".align 1 .b8 [1]"),
    ("char3 s3", ".align 1 .b8 [3]"),
    ("packed", ".align 1 .b8 [5]"),
    ("pair derived", ".align 4 .b8 [8]"),
    ("float2 cfloat", ".align 8 .b8 [8]"),
    ("float3 int3 dim3 s12", ".align 4 .b8 [12]"),
    (
        "float4 double2 longlong2 cdouble i128 a16 aligned16",
        ".align 16 .b8 [16]",
    ),
    (
        "sp gridconst mixed with_pointer grid_constant",
        ".align 8 .b8 [16]",
    ),
    ("arr array_inside", ".align 4 .b8 [20]"),
    ("long4", ".align 16 .b8 [32]"),
    ("a64 aligned64", ".align 64 .b8 [64]"),
    ("big", ".align 1 .b8 [4096]"),
];

fn spelling(kernel: &str) -> Option<&'static str> {
    SPELLINGS
        .iter()
        .find(|(kernels, _)| kernels.split(' ').any(|name| name == kernel))
        .map(|&(_, spelling)| spelling)
}

/// Each kernel of `texts` takes one value, as its name says, and a pointer behind it.
fn assert_spellings(texts: &[&str], prefix: &str, least: usize) {
    for &name in texts {
        let text = text(name);
        let module = Module::parse(&text).unwrap();
        let pointer = if name.contains("sm_100") {
            ".u64 .ptr .align 1"
        } else {
            ".u64"
        };
        let mut checked = 0;
        for entry in module.entries() {
            let Some(kernel) = entry.name().strip_prefix(prefix) else {
                continue;
            };
            let is_pointer = kernel.contains("ptr") && kernel != "fnptr" && kernel != "memptr";
            let expected = if is_pointer {
                Some(pointer)
            } else {
                spelling(kernel)
            };
            let (Some(expected), [value, out]) = (expected, entry.params()) else {
                continue;
            };
            assert_eq!(value.to_string(), expected, "{kernel} in {name}");
            assert_eq!(out.to_string(), pointer, "{kernel} in {name}");
            let expected = value.size().next_multiple_of(8);
            assert_eq!(
                (value.offset(), out.offset()),
                (0, expected),
                "{kernel} in {name}"
            );
            assert_eq!(entry.params_size(), expected + 8, "{kernel} in {name}");
            checked += 1;
        }
        assert!(checked >= least, "{checked} kernels of {name} are known");
    }
}

#[test]
fn nvcc_spells_types_as_known() {
    assert_spellings(
        &[
            "signatures.nvcc13.sm_75.ptx",
            "signatures.nvcc13.sm_100.ptx",
        ],
        "c_",
        60,
    );
}

#[test]
fn nvrtc_and_clang_spell_types_as_known() {
    let texts = [
        "sigzoo.nvrtc13.sm_75.ptx",
        "sigzoo.nvrtc13.sm_90.ptx",
        "sigzoo.nvrtc13.sm_100.ptx",
        "sigzoo.clang19.sm_75.ptx",
    ];
    assert_spellings(&texts, "z_", 50);
}

#[test]
fn packed_parameters_of_several_kinds() {
    let text = text("signatures.nvcc13.sm_75.ptx");
    let module = Module::parse(&text).unwrap();
    let offsets = |entry: &str| -> Vec<usize> {
        module
            .entry(entry)
            .unwrap()
            .params()
            .iter()
            .map(Param::offset)
            .collect()
    };
    assert_eq!(offsets("c_saxpy"), [0, 4, 8, 16]);
    assert_eq!(offsets("c_bounded"), [0, 8, 16, 20, 24]);
    assert_eq!(module.entry("c_bounded").unwrap().params_size(), 25);
    assert_eq!(module.entry("c_none").unwrap().params_size(), 0);
    assert_eq!(module.version(), Version { major: 9, minor: 5 });
}

#[test]
fn directives_of_bounds_and_clusters() {
    let text = text("bounds_cluster.nvrtc13.sm_90.ptx");
    let module = Module::parse(&text).unwrap();
    let directives = |entry: &str| module.entry(entry).unwrap().directives();
    assert_eq!(directives("bounds2").maxntid(), Some([256, 1, 1]));
    assert_eq!(directives("bounds2").minnctapersm(), Some(2));
    assert_eq!(directives("bounds2").maxclusterrank(), None);
    assert_eq!(directives("bounds3").maxclusterrank(), Some(4));
    assert_eq!(directives("cluster2").reqnctapercluster(), Some([2, 1, 1]));
    assert!(directives("cluster2").explicitcluster());
    assert_eq!(directives("maxnreg32").maxnreg(), Some(32));
    assert!(
        module
            .entries()
            .iter()
            .all(|entry| entry.directives().unknown().is_empty())
    );
}

#[test]
fn a_kernel_of_triton() {
    let text = text("tri_add.triton34.sm_75.ptx");
    let module = Module::parse(&text).unwrap();
    let entry = module.entry("tri_add").unwrap();
    let params: Vec<String> = entry.params().iter().map(ToString::to_string).collect();
    let pointer = ".u64 .ptr .global .align 1";
    assert_eq!(params, [pointer, pointer, pointer, ".u32", pointer]);
    assert_eq!(entry.directives().reqntid(), Some([128, 1, 1]));
    assert_eq!(module.files()[0].name(), "tri.py");

    let code = entry.body().unwrap().parse(&text).unwrap();
    let count = |opcode| {
        code.instructions()
            .filter(|found| found.opcode == opcode)
            .count()
    };
    assert_eq!((count("ld"), count("st"), count("ret")), (4 + 16, 8, 1));
    let guarded = code
        .instructions()
        .filter(|found| found.guard.is_some())
        .count();
    assert_eq!(guarded, 24);
    let locs = code
        .statements()
        .iter()
        .filter(|found| matches!(found, Statement::Loc(_)))
        .count();
    assert_eq!(locs, 15);
}

#[test]
fn calls_and_their_scopes() {
    let text = text("gridstride_printf.nvrtc13.sm_90.ptx");
    let module = Module::parse(&text).unwrap();
    assert_eq!(module.function("vprintf").unwrap().params().len(), 2);
    let code = module.entries()[0].body().unwrap().parse(&text).unwrap();
    let call = code
        .instructions()
        .find(|found| found.opcode == "call")
        .unwrap();
    let names = |operand: &Operand<'_>| match operand {
        Operand::List(list) => list.len(),
        Operand::Name("vprintf") => 100,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        call.operands.iter().map(names).collect::<Vec<_>>(),
        [1, 100, 2]
    );
    let depth = code
        .statements()
        .iter()
        .fold(0, |depth, statement| match statement {
            Statement::Open(_) => depth + 1,
            Statement::Close(_) => depth - 1,
            _ => depth,
        });
    assert_eq!(depth, 0);
    let format = module
        .variables()
        .iter()
        .find(|v| v.name().contains("str"))
        .unwrap();
    let bytes: Vec<u8> = format
        .elements(&text)
        .unwrap()
        .into_iter()
        .map(|element| match element.value {
            gridcall_ptx::Value::Constant(constant) => {
                u8::try_from(constant.bits(format.ty()).unwrap()).unwrap()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        "negative at %d: %d (%f)\n"
    );
}
