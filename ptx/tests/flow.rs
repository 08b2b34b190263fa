//! What is claimed of a kernel's parameters, and what is not.

use std::fs;
use std::path::PathBuf;

use gridcall_ptx::{Flow, Module, Param, ParamFlow, Reach, ScalarType};

/// A kernel with two arrays, a 64-bit integer and a 32-bit one.
fn flow(body: &str) -> Flow {
    let text = format!(
        ".version 9.5
        .target sm_90
        .global .align 8 .u64 table[4];
        .func far (.param .b64 p) {{ ret; }}
        .entry k(.param .u64 x, .param .u64 y, .param .u64 n, .param .u32 i) {{
            .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %fd<9>; .reg .pred %p<9>;
            .reg .u64 address; .reg .b64 a<4>;
            ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [n]; ld.param.u32 %r1, [i];
            {body}
            ret;
        }}"
    );
    let module = Module::parse(&text).unwrap();
    module.entries()[0].flow(&text).unwrap()
}

/// `R4`, `W4x2` and so on for each access, `?` if there may be others.
fn shown(param: &ParamFlow) -> String {
    let mut shown: Vec<String> = param
        .accesses()
        .iter()
        .map(|access| {
            let reach = match access.reach {
                Reach::Read => "R",
                Reach::Write => "W",
                Reach::Update => "U",
            };
            let ty = access.ty.map_or("?", ScalarType::as_str);
            let lanes = if access.lanes > 1 {
                format!("x{}", access.lanes)
            } else {
                String::new()
            };
            let step = access.step.map_or(String::new(), |step| format!("/{step}"));
            format!("{reach}{ty}{lanes}{step}")
        })
        .collect();
    if !param.is_complete() {
        shown.push("?".to_owned());
    }
    shown.join(" ")
}

/// What is claimed of `x`, `y` and `n`.
fn claims(body: &str) -> [String; 3] {
    let flow = flow(body);
    [0, 1, 2].map(|index| shown(&flow.params()[index]))
}

#[test]
fn follows_a_pointer_to_its_accesses() {
    let body = "cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5;
        ld.global.f32 %f1, [%rd6]; st.global.f32 [%rd6+8], %f1;";
    assert_eq!(claims(body), ["R.f32/4 W.f32/4", "", ""]);
    let body = "ld.f64 %fd1, [%rd1]; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];";
    assert_eq!(claims(body), ["R.f64", "R.f32x4", ""]);
    let body = "atom.global.add.u32 %r2, [%rd1], 3; red.global.add.f32 [%rd2], %f1;";
    assert_eq!(claims(body), ["U.u32", "U.f32", ""]);
    let body = "mad.lo.s64 %rd4, %rd3, 8, %rd1; ld.global.nc.L2::128B.u64 %rd5, [%rd4];";
    assert_eq!(claims(body), ["R.u64/8", "", ""]);
    let body = "shl.b64 %rd4, %rd3, 3; add.s64 %rd5, %rd4, %rd1; ld.global.u32 %r2, [%rd5];";
    assert_eq!(claims(body), ["R.u32/8", "", ""]);
    let body = "mov.u64 address, %rd1; add.u64 a2, address, 4; ld.global.u8 %r2, [a2];";
    assert_eq!(claims(body), ["R.u8/4", "", ""]);
}

#[test]
fn follows_a_pointer_around_a_loop() {
    let body = "mov.u64 %rd4, %rd1; again: ld.global.f32 %f1, [%rd4]; add.s64 %rd4, %rd4, 16;
        setp.ne.s64 %p1, %rd4, %rd3; @%p1 bra again;";
    assert_eq!(claims(body), ["R.f32/16", "", ""]);
    assert!(flow(body).params()[0].is_inspected());
}

#[test]
fn an_integer_of_64_bits_may_be_a_pointer() {
    assert_eq!(claims("ld.global.u32 %r2, [%rd3];"), ["", "", "R.u32"]);
    let body = "add.s64 %rd4, %rd1, %rd3; ld.global.u8 %r2, [%rd4];";
    assert_eq!(claims(body), ["?", "", "?"]);
    let body = "mul.lo.s64 %rd4, %rd3, 4; add.s64 %rd5, %rd1, %rd4; ld.global.u32 %r2, [%rd5];";
    assert_eq!(claims(body), ["R.u32/4", "", ""]);
}

#[test]
fn claims_nothing_of_what_may_be_either() {
    let body = "shl.b64 %rd4, %rd3, 3; add.s64 %rd4, %rd4, %rd1; ld.global.u32 %r2, [%rd4];";
    assert_eq!(claims(body), ["?", "", "?"]);
    let body = "selp.b64 %rd4, %rd1, %rd2, %p1; st.global.f32 [%rd4], %f1;";
    assert_eq!(claims(body), ["?", "?", ""]);
    let body = "mov.u64 %rd4, %rd1; @%p1 mov.u64 %rd4, %rd2; st.global.f32 [%rd4], %f1;";
    assert_eq!(claims(body), ["?", "?", ""]);
    let body = "ld.global.u64 %rd4, [%rd1]; st.global.f32 [%rd4], %f1;";
    assert_eq!(claims(body), ["R.u64", "", ""]);
    let body = "ld.global.u64 %rd4, [%rd1]; add.s64 %rd5, %rd4, %rd2; st.global.f32 [%rd5], %f1;";
    assert_eq!(claims(body), ["R.u64", "?", ""]);
    let body = "mov.u64 %rd4, table; add.s64 %rd5, %rd4, %rd3; st.global.f32 [%rd5], %f1;";
    assert_eq!(claims(body), ["", "", "?"]);
    let body = "sub.s64 %rd4, %rd1, %rd2; add.s64 %rd5, %rd4, %rd3; ld.global.u8 %r2, [%rd5];";
    assert_eq!(claims(body), ["?", "?", "?"]);
    let body = "and.b64 %rd4, %rd1, -16; ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];";
    assert_eq!(claims(body), ["?", "", ""]);
    assert_eq!(claims("ld.global.f32 %f1, [%rd19];"), ["", "", ""]);
}

#[test]
fn what_goes_away_is_not_complete() {
    for body in [
        "st.global.u64 [%rd2], %rd1;",
        "{ .param .b64 p0; st.param.b64 [p0], %rd1; call far, (p0); }",
        "call far, (%rd1);",
        "strange.new.instruction %r1, [%rd1];",
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2}, [%rd1], %r3;",
        "cp.async.ca.shared.global [%r1], [%rd1], 16;",
        "mov.u64 %rd9, x; ld.param.u64 %rd8, [%rd9];",
        "ld.param.u32 %r5, [x];",
        "atom.global.exch.b64 %rd9, [%rd2], %rd1;",
        "mov.b64 {%r5, %r6}, %rd1; mov.b64 %rd9, {%r5, %r6}; st.global.u8 [%rd9], %r1;",
        "cvta.to.shared.u64 %rd9, %rd1; ld.shared.u8 %r2, [%rd9];",
    ] {
        assert_eq!(claims(body)[0], "?", "{body}");
    }
    assert!(!flow("call far, (%rd1);").params()[0].is_read_only());
}

#[test]
fn a_write_is_certain_though_the_pointer_goes_away() {
    let claims = claims("st.global.f32 [%rd1], %f1; st.global.u64 [%rd2], %rd1;");
    assert_eq!(claims, ["W.f32 ?", "W.u64", ""]);
}

#[test]
fn floats_are_told_by_their_use() {
    let body = "ld.global.b32 %r5, [%rd1]; add.rn.f32 %r6, %r5, %r5; st.global.b32 [%rd2], %r6;";
    assert_eq!(claims(body), ["R.f32", "W.f32", ""]);
    let body = "ld.global.b32 %r5, [%rd1]; add.s32 %r6, %r5, %r5; st.global.b32 [%rd2], %r6;";
    assert_eq!(claims(body), ["R.b32", "W.b32", ""]);
}

#[test]
fn knows_what_is_not_used_or_looked_at() {
    let text = ".version 9.5 .target sm_90
        .entry k(.param .u64 x, .param .u64 y) { .reg .b64 %rd<9>; ld.param.u64 %rd1, [x]; ret; }";
    let module = Module::parse(text).unwrap();
    let flow = module.entries()[0].flow(text).unwrap();
    assert_eq!(
        [0, 1].map(|index| flow.params()[index].is_used()),
        [true, false]
    );
    let null = "setp.eq.s64 %p1, %rd1, 0; and.b64 %rd4, %rd2, 15; setp.eq.s64 %p2, %rd4, 0;";
    let flow = self::flow(null);
    assert_eq!(
        [0, 1].map(|index| flow.params()[index].is_inspected()),
        [false, true]
    );
}

/// The parameters and the results of each call of `x`, `y` and `n`.
fn calls(body: &str) -> [Vec<(Vec<String>, Vec<String>)>; 3] {
    let shown = |params: &[Param]| params.iter().map(ToString::to_string).collect();
    let flow = flow(body);
    [0, 1, 2].map(|index| {
        let calls = flow.params()[index].calls().iter();
        calls
            .map(|call| (shown(&call.params), shown(&call.returns)))
            .collect()
    })
}

#[test]
fn follows_a_function_to_its_calls() {
    let of_float = || (vec![".b32".to_owned()], vec![".b32".to_owned()]);
    let prototype = "p: .callprototype (.param .b32 _) _ (.param .b32 _);";
    assert_eq!(
        calls(&format!(
            "{{ {prototype} call (a0), %rd1, (a1), p; }} {{ {prototype} mov.u64 %rd5, %rd2; call (a0), %rd5, (a1), p; }}"
        )),
        // Which of two prototypes it is cannot be told by the label.
        [vec![], vec![], vec![]]
    );
    assert_eq!(
        calls(&format!(
            "{prototype} mov.u64 %rd5, %rd2; call (a0), %rd1, (a1), p; call.uni (a0), %rd5, (a1), p;"
        )),
        [vec![of_float()], vec![of_float()], vec![]]
    );
    // In a loop it stays what it is.
    let [x, ..] = calls(&format!(
        "L: {prototype} call (a0), %rd1, (a1), p; @%p1 bra L;"
    ));
    assert_eq!(x, [of_float()]);
    let nothing = calls("p: .callprototype _ (.param .b64 _); call %rd3, (%rd1), p;");
    assert_eq!(nothing[2], [(vec![".b64".to_owned()], vec![])]);
    for body in [
        "add.s64 %rd1, %rd1, 16; call %rd1, (), p;",
        "selp.b64 %rd5, %rd1, %rd2, %p1; call %rd5, (), p;",
        "call far, (%rd1);",
        "call (%rd1), far, (%rd2);",
    ] {
        let body = format!("p: .callprototype _ (); {body}");
        assert_eq!(calls(&body), [vec![], vec![], vec![]], "{body}");
    }
    // A list of functions has no prototype.
    assert_eq!(calls("l: .calltargets far; call %rd1, (a0), l;")[0], []);
}

#[test]
fn what_a_call_is_given_is_not_followed() {
    let prototype = "p: .callprototype (.param .b64 _) _ (.param .b64 _);";
    let [x, y, n] = claims(&format!(
        "{prototype} call (%rd2), %rd3, (%rd1), p; st.global.u32 [%rd2], 1; ld.global.u32 %r2, [%rd1];"
    ));
    assert_eq!((x.as_str(), y.as_str(), n.as_str()), ("?", "?", "?"));
}

fn corpus(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Every spelling of a parameter, each used as its type says: what is claimed is true, and of plain
/// pointers all is claimed.
#[test]
fn the_signatures_are_told_right() {
    let written = [
        "float_ptr",
        "int_ptr",
        "bool_ptr",
        "bf16_ptr",
        "float3_ptr",
        "pair_ptr",
        "void_ptr",
        "atomic_ptr",
        "inout_ptr",
    ];
    for name in [
        "signatures.nvcc13.sm_75.ptx",
        "signatures.nvcc13.sm_100.ptx",
    ] {
        let text = corpus(name);
        let module = Module::parse(&text).unwrap();
        let mut pointers = 0;
        for entry in module
            .entries()
            .iter()
            .filter(|entry| entry.params().len() == 2)
        {
            let Some(spelling) = entry.name().strip_prefix("c_") else {
                continue;
            };
            let flow = entry.flow(&text).unwrap();
            let [value, out] = flow.params() else {
                panic!("{spelling}")
            };
            assert!(out.write().is_some(), "{name}: {spelling}");
            assert!(out.is_complete(), "{name}: {spelling}");
            let is_pointer = spelling.contains("ptr");
            assert_eq!(
                value.write().is_some(),
                written.contains(&spelling),
                "{name}: {spelling}"
            );
            if spelling == "unused_ptr" {
                assert!(!value.is_used());
            } else if is_pointer {
                pointers += 1;
                assert!(value.is_complete(), "{name}: {spelling}");
                assert!(!value.accesses().is_empty(), "{name}: {spelling}");
            } else {
                assert!(value.accesses().is_empty(), "{name}: {spelling}");
            }
        }
        assert_eq!(pointers, 22, "{name}");
    }
}

#[test]
fn all_of_the_corpus_is_followed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let (mut pointers, mut told) = (0, 0);
    for file in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let module = Module::parse(&text).unwrap();
        for entry in module.entries() {
            let flow = entry.flow(&text).unwrap();
            for (param, flow) in entry.params().iter().zip(flow.params()) {
                // Nothing but a pointer is dereferenced.
                assert!(param.size() == 8 || flow.accesses().is_empty());
                pointers += usize::from(!flow.accesses().is_empty());
                told += usize::from(flow.is_complete() && !flow.accesses().is_empty());
            }
        }
    }
    println!("{pointers} parameters are followed to memory, {told} of them wholly");
    assert!(told * 10 > pointers * 9, "{told} of {pointers}");
}
