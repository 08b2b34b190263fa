//! Which variables kernels use.

use gridcall_ptx::Module;

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// Each variable that `k` uses, with `r` where it only reads, and the line of a certain write.
fn uses(text: &str) -> Vec<(String, bool, Option<u32>)> {
    let text = format!("{HEAD}{text}");
    let module = Module::parse(&text).unwrap();
    let entry = module.entry("k").unwrap();
    let uses = module.variable_uses(&text, entry).unwrap();
    uses.into_iter()
        .map(|one| {
            let name = one.variable.name().to_owned();
            (name, one.is_read_only, one.write.map(|at| at.line))
        })
        .collect()
}

fn one(body: &str) -> (bool, Option<u32>) {
    let found = uses(&format!(
        ".global .align 4 .b8 a[64];\n.visible .entry k(.param .u64 p) {{\n{body}\nret; }}"
    ));
    let [(name, read_only, write)] = &found[..] else {
        panic!("one variable, not {found:?}");
    };
    assert_eq!(name, "a");
    (*read_only, *write)
}

#[test]
fn kernels_of_nvcc() {
    let text = include_str!("../../kernels/symbols.ptx");
    let module = Module::parse(text).unwrap();
    let uses = |kernel: &str| -> Vec<(&str, bool, bool)> {
        let entry = module.entry(kernel).unwrap();
        let uses = module.variable_uses(text, entry).unwrap();
        uses.iter()
            .map(|one| (one.variable.name(), one.is_read_only, one.write.is_some()))
            .collect()
    };
    assert_eq!(
        uses("filter"),
        [("taps", true, false), ("scale", true, false)]
    );
    assert_eq!(uses("fill_window"), [("window", true, false)]);
    assert_eq!(uses("copy_ramp"), [("ramp", true, false)]);
    assert_eq!(uses("copy_tiles"), [("tiles", true, false)]);
    assert_eq!(uses("count_above"), [("hits", false, true)]);
    assert_eq!(uses("copy_hits"), [("hits", true, false)]);
    assert_eq!(uses("mark"), [("marks", false, true)]);
    // By a function, which is not followed.
    assert_eq!(uses("copy_offset"), [("_ZN4math6offsetE", false, false)]);
    assert_eq!(uses("scale_by"), []);

    let text = include_str!("../../kernels/functions.ptx");
    let module = Module::parse(text).unwrap();
    let uses = |kernel: &str| -> Vec<&str> {
        let entry = module.entry(kernel).unwrap();
        let uses = module.variable_uses(text, entry).unwrap();
        uses.iter().map(|one| one.variable.name()).collect()
    };
    // By a function that it may be told to call.
    assert_eq!(uses("map"), ["calls"]);
    assert_eq!(uses("map_table"), ["calls", "op_table"]);
}

#[test]
fn reads_are_told_from_writes() {
    assert_eq!(one("ld.global.u32 %r1, [a];"), (true, None));
    assert_eq!(one("mov.u64 %rd1, a;\nld.u32 %r1, [%rd1];"), (true, None));
    assert_eq!(
        one("mov.u64 %rd1, a+8;\nadd.s64 %rd2, %rd1, 4;\nld.global.u32 %r1, [%rd2+4];"),
        (true, None)
    );
    assert_eq!(one("st.global.u32 [a+4], 1;"), (false, Some(6)));
    assert_eq!(
        one("mov.u64 %rd1, a;\ncvta.global.u64 %rd2, %rd1;\nred.add.u32 [%rd2], 1;"),
        (false, Some(8))
    );
}

#[test]
fn an_address_that_goes_elsewhere_may_be_written_to() {
    for body in [
        "mov.u64 %rd1, a;\nst.global.u64 [%rd9], %rd1;",
        "mov.u64 %rd1, a;\nxor.b64 %rd2, %rd1, %rd3;\nst.global.u32 [%rd2], 1;",
        "ld.param.u64 %rd2, [p];\nmov.u64 %rd1, a;\nadd.s64 %rd3, %rd1, %rd2;\nst.u32 [%rd3], 1;",
        "mov.b64 {%r1, %r2}, a;",
        "prefetch.global.L2 [a];",
        "st.param.b64 [x], a;",
    ] {
        assert_eq!(one(body), (false, None), "{body}");
    }
}

#[test]
fn functions_and_initial_values_lead_further() {
    let text =
        ".global .u32 a; .global .u64 to_a = generic(a); .global .u64 calls = g; .global .u32 b;
        .global .u32 none; .shared .u32 s;
        .func g() { st.global.u32 [b], 1; ret; }
        .func f() { ld.global.u64 %rd1, [calls]; ret; }
        .entry k() { ld.global.u64 %rd1, [to_a]; call f, (); ld.shared.u32 %r1, [s]; ret; }";
    let found = uses(text);
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["a", "to_a", "calls", "b"]);
    // Nobody followed where their addresses go.
    let read_only: Vec<bool> = found.iter().map(|(_, read_only, _)| *read_only).collect();
    assert_eq!(read_only, [false, true, false, false]);
}

#[test]
fn a_call_by_an_address_may_reach_what_has_one() {
    let text = ".global .u32 a; .global .u32 b; .global .u32 c; .global .u32 d; .global .u64 to_f = f;
        .func f() { st.global.u32 [a], 1; ret; }
        .func g() { st.global.u32 [b], 1; ret; }
        .func named() { st.global.u32 [c], 1; ret; }
        .func second() { st.global.u32 [d], 1; ret; }
        .alias second_name, second;
        .entry other(.param .u64 out) { mov.u64 %rd1, g; st.global.u64 [%rd2], %rd1; call named, (); ret; }
        .entry last() { mov.u64 %rd1, second_name; st.global.u64 [%rd2], %rd1; ret; }";
    let names = |kernel: &str| -> Vec<String> {
        let found = uses(&format!("{text}\n{kernel}"));
        found.into_iter().map(|(name, ..)| name).collect()
    };
    let by_address = "{ p: .callprototype _ (); call %rd1, (), p; }";
    // Not `named`, of which nobody has the address.
    assert_eq!(
        names(&format!(
            ".entry k(.param .u64 op) {{ ld.param.u64 %rd1, [op]; {by_address} ret; }}"
        )),
        ["a", "b", "d"]
    );
    let through =
        format!(".func through() {{ {by_address} ret; }} .entry k() {{ call through, (); ret; }}");
    assert_eq!(names(&through), ["a", "b", "d"]);
    assert_eq!(names(".entry k() { call named, (); ret; }"), ["c"]);
    // A list holds all there are.
    let listed = ".entry k() { l: .calltargets g; call %rd1, (), l; ret; }";
    assert_eq!(names(listed), ["b"]);
}

#[test]
fn a_name_of_the_body_is_another() {
    let text = ".global .align 4 .b8 a[8];
        .entry k() { .local .align 4 .b8 a[8]; mov.u64 %rd1, a; st.local.u32 [%rd1], 1; ret; }";
    assert!(uses(text).iter().all(|(.., write)| write.is_none()));
}

#[test]
fn recursion_ends() {
    let text = ".global .u32 a; .func f() { call f, (); st.global.u32 [a], 1; ret; }
        .entry k() { call f, (); ret; }";
    assert_eq!(uses(text), [("a".to_owned(), false, None)]);
}
