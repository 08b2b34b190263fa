//! What holds for any text: no panic, no more than linear time, and well-formed declarations come back.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use gridcall_ptx::{Code, Module, Operand, StateSpace, Statement};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Reads all that can be read of a text, checks what always holds, and counts what there is.
fn read_all(text: &str) -> usize {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(error) => {
            let position = error.position();
            assert!(position.line >= 1 && position.column >= 1);
            let lines = text.split('\n').count();
            assert!(position.line as usize <= lines, "{error} in {lines} lines");
            assert!(!error.to_string().contains('\n'));
            return 0;
        }
    };
    let mut count = module.entries().len() + module.functions().len() + module.files().len();
    for entry in module.entries() {
        assert!(module.entry(entry.name()).is_some());
        let mut end = 0;
        for param in entry.params() {
            assert!(param.align().is_power_of_two());
            assert!(param.offset() >= end && param.offset().is_multiple_of(param.align()));
            end = param.offset() + param.size();
            count += param.to_string().len();
        }
        assert_eq!(entry.params_size(), end);
    }
    let entries = module.entries().iter().map(|entry| entry.body());
    let functions = module.functions().iter().map(|function| function.body());
    for body in entries.chain(functions).flatten() {
        let slice = &text[body.range()];
        assert!(slice.starts_with('{') && slice.ends_with('}'));
        if let Ok(code) = body.parse(text) {
            count += check_code(&code, body.position().line);
        }
    }
    for variable in module.variables() {
        if let Ok(elements) = variable.elements(text) {
            let size = variable.size().unwrap_or(0);
            assert!(elements.iter().all(|element| element.offset < size));
            count += elements.len();
        }
    }
    count
}

fn check_code(code: &Code<'_>, first_line: u32) -> usize {
    let mut depth = 0;
    for statement in code.statements() {
        match statement {
            Statement::Open(_) => depth += 1,
            Statement::Close(_) => depth -= 1,
            Statement::Instruction(instruction) => {
                assert!(instruction.position.line >= first_line);
                assert!(!instruction.opcode.is_empty());
                assert!(
                    instruction
                        .modifiers
                        .iter()
                        .all(|modifier| !modifier.is_empty())
                );
            }
            _ => {}
        }
        assert!(depth >= 0);
    }
    assert_eq!(depth, 0);
    code.statements().len()
}

/// The smaller texts of the corpus.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    let texts = paths
        .into_iter()
        .map(|path| fs::read_to_string(path).unwrap());
    texts.filter(|text| text.len() < 12_000).collect()
});

/// Words of the language, and what may stand between them.
const TOKENS: &[&str] = &[
    ".version",
    "9.5",
    ".target",
    "sm_90",
    ".address_size",
    "64",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".weak",
    ".param",
    ".reg",
    ".global",
    ".const",
    ".shared",
    ".local",
    ".align",
    "8",
    ".b8",
    ".u32",
    ".u64",
    ".f32",
    ".pred",
    ".v4",
    ".ptr",
    ".maxntid",
    ".reqntid",
    ".pragma",
    ".loc",
    ".file",
    ".section",
    ".alias",
    ".attribute",
    ".managed",
    ".callprototype",
    ".branchtargets",
    ".noreturn",
    ".unified",
    "k",
    "x",
    "%r1",
    "%p1",
    "%tid",
    ".x",
    "$L1",
    "_",
    "ld",
    "mov",
    "call",
    "bra",
    "generic",
    "inlined_at",
    "function_name",
    "WARP_SZ",
    "0",
    "1",
    "2",
    "0x1F",
    "0f3F800000",
    "0d3FF0000000000000",
    "1.5",
    "99999999999999999999",
    "0b1",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "~",
    "|",
    "&",
    "^",
    "?",
    "@",
    "@@DWARF",
    "\"a\"",
    "\"",
    "//",
    "/*",
    "*/",
    "#",
    ".",
    "\n",
    "ü",
    "\0",
];

fn token_soup() -> impl Strategy<Value = String> {
    prop::collection::vec((select(TOKENS), select(&[" ", "", "\n", "\t"][..])), 0..200).prop_map(
        |tokens| {
            tokens
                .into_iter()
                .flat_map(|(token, blank)| [token, blank])
                .collect()
        },
    )
}

#[derive(Clone, Debug)]
enum Mutation {
    Delete(Index, usize),
    Insert(Index, &'static str),
    Replace(Index, char),
    Repeat(Index, usize),
    Truncate(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), 1_usize..40).prop_map(|(at, length)| Mutation::Delete(at, length)),
        (any::<Index>(), select(TOKENS)).prop_map(|(at, token)| Mutation::Insert(at, token)),
        (any::<Index>(), any::<char>()).prop_map(|(at, with)| Mutation::Replace(at, with)),
        (any::<Index>(), 1_usize..200).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        any::<Index>().prop_map(Mutation::Truncate),
    ]
}

fn mutate(text: &mut String, mutation: &Mutation) {
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let place = |at: &Index| boundary(at.index(text.len() + 1));
    let end = |at: usize, length: usize| boundary(text.len().min(at + length));
    match mutation {
        Mutation::Delete(at, length) => {
            let at = place(at);
            text.replace_range(at..end(at, *length), "");
        }
        Mutation::Insert(at, token) => text.insert_str(place(at), token),
        Mutation::Replace(at, with) => {
            let at = place(at);
            text.replace_range(at..end(at, 1), &with.to_string());
        }
        Mutation::Repeat(at, length) => {
            let at = place(at);
            let piece = text[at..end(at, *length)].to_owned();
            text.insert_str(at, &piece);
        }
        Mutation::Truncate(at) => text.truncate(place(at)),
    }
}

#[derive(Clone, Debug)]
struct Written {
    name: String,
    params: Vec<(String, usize, usize, bool)>,
    maxntid: Option<[u32; 3]>,
    blank: &'static str,
}

fn written() -> impl Strategy<Value = Written> {
    let scalar = select(
        &[
            (".u8", 1),
            (".u16", 2),
            (".s32", 4),
            (".u64", 8),
            (".f32", 4),
            (".f64", 8),
            (".b128", 16),
        ][..],
    );
    let scalar = scalar.prop_map(|(ty, size)| (ty.to_owned(), size, size, false));
    let array = (0_u32..8, 1_usize..5000).prop_map(|(log_align, size)| {
        let align = 1 << log_align;
        (format!(".align {align} .b8 [{size}]"), size, align, true)
    });
    let pointer =
        (select(&["", " .global", " .const"][..]), 0_u32..8).prop_map(|(space, log_align)| {
            (
                format!(".u64 .ptr{space} .align {}", 1 << log_align),
                8,
                8,
                false,
            )
        });
    (
        "[a-zA-Z$_%][a-zA-Z0-9_$]{0,30}",
        prop::collection::vec(prop_oneof![scalar, array, pointer], 0..20),
        prop::option::of([1_u32..1025, 1_u32..1025, 1_u32..65]),
        select(&["\n", " ", "\n\t", " // { \" ,\n", " /* ) */ ", "\r\n\r\n"][..]),
    )
        .prop_map(|(name, params, maxntid, blank)| Written {
            name,
            params,
            maxntid,
            blank,
        })
}

fn write(entries: &[Written]) -> String {
    let mut text = String::from(".version 8.7\n.target sm_90\n.address_size 64\n");
    for (
        number,
        Written {
            name,
            params,
            maxntid,
            blank,
        },
    ) in entries.iter().enumerate()
    {
        write!(
            text,
            ".visible{blank}.entry{blank}{name}_{number}{blank}({blank}"
        )
        .unwrap();
        for (index, (declaration, ..)) in params.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let (before, dims) = match declaration.split_once('[') {
                Some((before, dims)) => (before, format!("[{dims}")),
                None => (declaration.as_str(), String::new()),
            };
            let before = before.replace(' ', blank);
            write!(
                text,
                "{comma}{blank}.param{blank}{before}{blank}p{index}{dims}{blank}"
            )
            .unwrap();
        }
        text.push(')');
        if let Some([x, y, z]) = maxntid {
            write!(text, "{blank}.maxntid{blank}{x},{blank}{y},{z}").unwrap();
        }
        write!(
            text,
            "{blank}{{{blank}{{ mov.b64 {{%r1,%r2}}, %rd1; }}{blank}ret;{blank}}}\n\n"
        )
        .unwrap();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let text = String::from_utf8_lossy(&bytes);
        read_all(&text);
        read_all(&format!(".version 9.5 .target sm_90 {text}"));
        read_all(&format!(".version 9.5 .target sm_90 .entry k() {{ {text} }}"));
    }

    #[test]
    fn token_soups_do_no_harm(soup in token_soup()) {
        read_all(&soup);
        read_all(&format!(".version 9.5 .target sm_90 {soup}"));
        read_all(&format!(".version 9.5 .target sm_90 .entry k({soup}"));
        read_all(&format!(".version 9.5 .target sm_90 .entry k() {{ {soup} ;}}"));
        read_all(&format!(".version 9.5 .target sm_90 .global .u64 x[] = {{{soup}}};"));
    }

    #[test]
    fn mutated_compiler_output_does_no_harm(
        text in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut text = text.get(&TEXTS).clone();
        for mutation in &mutations {
            mutate(&mut text, mutation);
        }
        read_all(&text);
    }

    #[test]
    fn what_is_written_is_read(entries in prop::collection::vec(written(), 0..12)) {
        let text = write(&entries);
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(module.entries().len(), entries.len());
        for (number, written) in entries.iter().enumerate() {
            let entry = module.entry(&format!("{}_{number}", written.name)).unwrap();
            prop_assert_eq!(entry.directives().maxntid(), written.maxntid);
            prop_assert_eq!(entry.params().len(), written.params.len());
            let mut end = 0_usize;
            for (param, (declaration, size, align, is_array)) in
                entry.params().iter().zip(&written.params)
            {
                prop_assert_eq!(&param.to_string(), declaration);
                prop_assert_eq!(param.space(), StateSpace::Param);
                prop_assert_eq!((param.size(), param.align()), (*size, *align));
                prop_assert_eq!(param.is_array(), *is_array);
                prop_assert_eq!(param.offset(), end.next_multiple_of(*align));
                end = param.offset() + size;
                let line = text.lines().nth(param.position().line as usize - 1).unwrap();
                prop_assert!(line[param.position().column as usize - 1..].starts_with(param.name()));
            }
            let code = entry.body().unwrap().parse(&text).unwrap();
            prop_assert_eq!(code.statements().len(), 4);
            let first = code.instructions().next().unwrap();
            prop_assert!(matches!(first.operands[0], Operand::Vector(_)));
        }
    }
}

/// Every repetition here is one that a reader that looks twice would take hours for.
#[test]
fn long_texts_take_linear_time() {
    const SIZE: usize = 1_000_000;
    let head = ".version 9.5\n.target sm_90\n";
    let pieces = [
        "{",
        "}",
        "{}",
        "(",
        "[",
        "\"",
        "\" ",
        "\"\n",
        "/",
        "/*",
        "/**/",
        "//",
        "//\n",
        "#",
        "# 1",
        "# 1\n",
        "@",
        "@@",
        "\n",
        " ",
        ";",
        ",",
        "a",
        "a ",
        "a:",
        "1",
        "1,",
        "{1},",
        ".",
        ".a",
        ".a ",
        ".a\n",
        ".a,\n",
        "-",
        "!",
        "a-1,",
        "1+",
        "(1)",
        "1?",
        "\\",
        "\\\"",
        "%",
        "ü",
        "\0",
        ".entry k{}",
        ".func f;",
        ".global .u8 x;",
        ".file 1 \"",
        ".reg .u32 %r<9>;",
        "$L: ",
        "ld.u32 %r1, [%rd1+4];",
        "@%p1 bra L;",
        "p: .callprototype _ (.param .u32 _);",
        "[1]",
        "/\"{",
        "{/}\"",
        ".section x {}",
        ".a {",
        "0x",
        "0f3F800000,",
        ".5",
        "1e",
        "generic(x),",
        "0xFF(x),",
        ".loc 1 1 1\n",
    ];
    for piece in pieces {
        let long = piece.repeat(SIZE / piece.len());
        for text in [
            format!("{long}{head}"),
            format!("{head}{long}"),
            format!("{head}.entry k({long}"),
            format!("{head}.entry k() {long}"),
            format!("{head}.entry k() {{ {long} }}"),
            format!("{head}.entry k() {{ mov {long}; }} .entry l() {{}}"),
            format!("{head}.global .u8 x{long};"),
            format!("{head}.global .u8 x[] = {{{long}}};"),
            format!("{head}.global .u8 x[9] = {{{long}}};"),
        ] {
            let start = Instant::now();
            read_all(&text);
            let time = start.elapsed();
            assert!(time < Duration::from_secs(10), "{piece:?} took {time:?}");
        }
    }
}
