//! Forms of instructions that are rarely seen, a few lines of PTX each.

mod support;

use gridcall_emulator::exec::{FaultKind, Launch, Program};
use support::{Memory, Params, launch, lower, run};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

const REGISTERS: &str = "
.reg .pred p, q, z;
.reg .b16 h<9>;
.reg .b32 r<20>;
.reg .f32 f<8>;
.reg .f64 d<4>;
.reg .b64 rd<8>;
.reg .b128 w<4>;
ld.param.u64 rd0, [out];
";

/// Runs a body on some threads over 64 words of memory, `rd0` being their address.
fn words(threads: u32, start: &[u32], body: &str) -> Vec<u32> {
    let text = format!("{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS} {body} ret; }}");
    let program = lower(&text);
    assert_eq!(program.kernels()[0].unsupported, [], "{body}");
    let mut memory = Memory::new();
    let mut all = start.to_vec();
    all.resize(64, 0);
    let out = memory.hold_u32(&all);
    let launch = launch(&program, "k", Params::new().u64(out).done(), vec![]);
    if let Err(fault) = run(
        &mut memory,
        Launch {
            block: [threads, 1, 1],
            ..launch
        },
    ) {
        panic!("{fault}\n{body}");
    }
    memory.u32s(out)
}

#[test]
fn sixteen_bytes_at_once() {
    let got = words(
        1,
        &[1, 2, 3, 4],
        "ld.global.b128 w0, [rd0];
         mov.b128 {rd1, rd2}, w0;
         mov.b128 w1, {rd2, rd1};
         st.global.b128 [rd0+16], w1;
         atom.global.exch.b128 w2, [rd0], w1;
         st.global.b128 [rd0+32], w2;
         atom.global.cas.b128 w3, [rd0], w1, w0;
         st.global.b128 [rd0+48], w3;",
    );
    assert_eq!(got[..16], [1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4, 1, 2]);
}

#[test]
fn atomic_operations_on_vectors() {
    let f = |value: f32| value.to_bits();
    let got = words(
        4,
        &[f(1.0), f(2.0), f(3.0), f(4.0), 0x3c00_3c00, 0],
        "mov.f32 f0, 0f3F000000; mov.f32 f1, 0f3F800000;
         atom.global.v2.f32.add {f2, f3}, [rd0], {f0, f1};
         red.global.v2.f32.add [rd0+8], {f1, f0};
         mov.b32 r0, 0x3C004000;
         red.global.add.noftz.f16x2 [rd0+16], r0;
         mov.b16 h0, 0x3C00;
         atom.global.add.noftz.f16 h1, [rd0+20], h0;",
    );
    assert_eq!(
        got[..6],
        [f(3.0), f(6.0), f(7.0), f(6.0), 0x4500_4880, 0x4400]
    );
}

#[test]
fn compare_and_combine() {
    let got = words(
        1,
        &[],
        "setp.eq.s32 z, 1, 1;
         mov.u32 r1, 5;
         set.lt.and.u32.s32 r2, r1, 7, z;
         set.lt.and.u32.s32 r3, r1, 7, !z;
         set.gt.or.f32.s32 f0, r1, 7, z;
         st.global.u32 [rd0], r2; st.global.u32 [rd0+4], r3; st.global.f32 [rd0+8], f0;
         setp.lt.xor.s32 p|q, r1, 7, z;
         selp.u32 r4, 1, 0, p; selp.u32 r5, 1, 0, q;
         st.global.u32 [rd0+12], r4; st.global.u32 [rd0+16], r5;
         mov.b32 r6, 0x3C004000; mov.b32 r7, 0x40003C00;
         setp.lt.f16x2 p|q, r6, r7;
         selp.u32 r4, 1, 0, p; selp.u32 r5, 1, 0, q;
         st.global.u32 [rd0+20], r4; st.global.u32 [rd0+24], r5;
         set.gt.f16x2.f16x2 r8, r6, r7;
         st.global.u32 [rd0+28], r8;
         lop3.or.b32 r9|p, r1, 3, 0, 0xc0, !z;
         selp.u32 r10, 1, 0, p;
         st.global.u32 [rd0+32], r9; st.global.u32 [rd0+36], r10;",
    );
    assert_eq!(
        got[..10],
        [u32::MAX, 0, 1.0_f32.to_bits(), 0, 1, 0, 1, 0x3c00, 1, 1]
    );
}

#[test]
fn compare_halves_and_combine() {
    // The upper halves compare 1 > 2, the lower ones 2 > 1.
    let got = words(
        1,
        &[],
        "setp.eq.s32 z, 1, 1;
         mov.b32 r0, 0x3C004000; mov.b32 r1, 0x40003C00;
         set.gt.u32.f16x2 r2, r0, r1; st.global.u32 [rd0], r2;
         set.gt.and.s32.f16x2 r2, r0, r1, z; st.global.u32 [rd0+4], r2;
         set.gt.and.f16x2.f16x2 r2, r0, r1, !z; st.global.u32 [rd0+8], r2;
         set.gt.or.ftz.f16x2.f16x2 r2, r0, r1, z; st.global.u32 [rd0+12], r2;
         set.gt.xor.f16x2.f16x2 r2, r0, r1, z; st.global.u32 [rd0+16], r2;
         set.lt.or.u32.f16x2 r0, r0, r1, !z; st.global.u32 [rd0+20], r0;
         mov.b32 r0, 0x3F804000; mov.b32 r1, 0x40003F80;
         set.gt.xor.bf16x2.bf16x2 r2, r0, r1, z; st.global.u32 [rd0+24], r2;
         set.gt.and.u32.bf16x2 r2, r0, r1, z; st.global.u32 [rd0+28], r2;",
    );
    assert_eq!(
        got[..8],
        [
            0xffff,
            0xffff,
            0,
            0x3c00_3c00,
            0x3c00_0000,
            0xffff_0000,
            0x3f80_0000,
            0xffff
        ]
    );
}

#[test]
fn packed_integers() {
    let got = words(
        1,
        &[],
        "mov.b32 r0, 0x7FFF8000; mov.b32 r1, 0x00010001;
         add.u16x2 r2, r0, r1; st.global.u32 [rd0], r2;
         max.s16x2 r3, r0, r1; st.global.u32 [rd0+4], r3;
         min.s16x2.relu r4, r0, r1; st.global.u32 [rd0+8], r4;
         mov.s32 r5, 70000; mov.s32 r6, -5;
         cvt.pack.sat.s16.s32 r7, r5, r6; st.global.u32 [rd0+12], r7;
         cvt.pack.sat.u8.s32.b32 r8, r5, r6, 0x1234; st.global.u32 [rd0+16], r8;
         min.relu.s32 r9, r6, r5; st.global.u32 [rd0+20], r9;",
    );
    assert_eq!(
        got[..6],
        [
            0x8000_8001,
            0x7fff_0001,
            0x0001_0000,
            0x7fff_fffb,
            0x1234_ff00,
            0
        ]
    );
}

#[test]
fn signs_of_smallest_and_largest() {
    let f = |value: f32| value.to_bits();
    let got = words(
        1,
        &[],
        "mov.f32 f0, 0fC0000000; mov.f32 f1, 0f3F800000; mov.f32 f2, 0f7FC00000;
         min.xorsign.abs.f32 f3, f0, f1; st.global.f32 [rd0], f3;
         max.xorsign.abs.f32 f3, f0, f1; st.global.f32 [rd0+4], f3;
         max.NaN.f32 f3, f0, f2; st.global.f32 [rd0+8], f3;
         max.f32 f3, f0, f2; st.global.f32 [rd0+12], f3;",
    );
    assert_eq!(got[..4], [f(-1.0), f(-2.0), 0x7fff_ffff, f(-2.0)]);
}

#[test]
fn barriers_that_count() {
    let got = words(
        64,
        &[],
        "mov.u32 r0, %tid.x;
         setp.lt.u32 p, r0, 20;
         bar.red.popc.u32 r1, 1, p;
         barrier.red.aligned.and.pred q, 2, p;
         barrier.red.or.pred z, 3, p;
         selp.u32 r2, 1000, 0, q; selp.u32 r3, 2000, 0, z;
         add.u32 r1, r1, r2; add.u32 r1, r1, r3;
         mad.wide.u32 rd1, r0, 4, rd0;
         st.global.u32 [rd1], r1;",
    );
    assert_eq!(got, vec![2020; 64]);
}

#[test]
fn tables_of_branches_and_functions() {
    let text = format!(
        "{HEAD}
.global .align 8 .u64 table[2] = {{twice, thrice}};
.func (.reg .u32 y) twice(.reg .u32 x) {{ add.u32 y, x, x; ret; }}
.func (.reg .u32 y) thrice(.reg .u32 x) {{ mul.lo.u32 y, x, 3; ret; }}
.visible .entry k(.param .u64 out) {{
    .reg .b32 r<8>; .reg .b64 rd<4>;
    ld.param.u64 rd0, [out];
    mov.u32 r0, %tid.x;
    mad.wide.u32 rd0, r0, 4, rd0;
    and.b32 r1, r0, 3;
targets: .branchtargets a, b, c, a;
    brx.idx r1, targets;
a:  mov.u32 r2, 10; bra.uni done;
b:  mov.u32 r2, 20; bra.uni done;
c:  mov.u32 r2, 30;
done:
    and.b32 r3, r0, 1;
    mov.u64 rd1, table;
    mad.wide.u32 rd1, r3, 8, rd1;
    ld.global.u64 rd2, [rd1];
kind: .callprototype (.reg .u32 _) _ (.reg .u32 _);
    call (r4), rd2, (r2), kind;
    st.global.u32 [rd0], r4;
    ret;
}}"
    );
    let program = lower(&text);
    let mut memory = Memory::new();
    let out = memory.hold_u32(&[0; 32]);
    run(
        &mut memory,
        launch(&program, "k", Params::new().u64(out).done(), vec![]),
    )
    .unwrap();
    let wanted: Vec<u32> = (0..32)
        .map(|t| [10, 20, 30, 10][t & 3] * if t & 1 == 1 { 3 } else { 2 })
        .collect();
    assert_eq!(memory.u32s(out), wanted);
}

#[test]
fn registers_of_one_name_in_many_scopes() {
    let got = words(
        1,
        &[],
        "{ .reg .b32 t; mov.u32 t, 1; { .reg .b32 t; mov.u32 t, 2; st.global.u32 [rd0], t; } st.global.u32 [rd0+4], t; }
         { .reg .b64 t; mov.u64 t, 3; st.global.u64 [rd0+8], t; bra over; over: }
         bra over; mov.u32 r0, 9; st.global.u32 [rd0+16], r0; over:
         .reg .v2 .b32 pair; mov.b32 pair.x, 5; mov.b32 pair.y, 6; st.global.v2.b32 [rd0+24], pair;",
    );
    assert_eq!(got[..8], [2, 1, 3, 0, 0, 0, 5, 6]);
}

#[test]
fn what_an_assembler_takes_is_taken() {
    let program = lower(include_str!("kernels/rare.ptx"));
    let missing: Vec<&str> = program.kernels()[0]
        .unsupported
        .iter()
        .map(|missing| missing.instruction.as_str())
        .collect();
    // What `.oob` takes for out of bounds, the manual does not say.
    assert_eq!(missing, ["fma.rn.oob.f16", "fma.rn.oob.relu.bf16x2"]);
}

#[test]
fn matrices_need_a_whole_warp() {
    let text = format!(
        "{HEAD}.visible .entry k() {{ .reg .b32 r<4>; movmatrix.sync.aligned.m8n8.trans.b16 r0, r1; ret; }}"
    );
    let program = lower(&text);
    let short = Launch {
        block: [16, 1, 1],
        ..launch(&program, "k", vec![], vec![])
    };
    assert_eq!(
        run(&mut Memory::new(), short).unwrap_err().kind,
        FaultKind::BadMask
    );
}

#[test]
fn variables_and_what_they_begin_as() {
    let text = format!(
        "{HEAD}
.const .align 4 .b32 few[4] = {{1, 0x2}};
.visible .global .align 8 .u64 there = generic(few)+4;
.global .align 1 .b8 bytes[8] = {{0xFF(few), 0xFF00(few)}};
.global .f32 number = 1.5;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k() {{ .shared .align 4 .b8 fixed[100]; .reg .b32 r; mov.u32 r, fixed; mov.u32 r, dynamic; ret; }}"
    );
    let program = Program::lower(&text).unwrap();
    let names: Vec<(&str, u64)> = program
        .variables()
        .iter()
        .map(|v| (v.name.as_str(), v.size))
        .collect();
    assert_eq!(
        names,
        [("few", 16), ("there", 8), ("bytes", 8), ("number", 4)]
    );
    assert_eq!(
        program.variables()[0].initial[..8],
        [1, 0, 0, 0, 2, 0, 0, 0]
    );
    let there = program.variables()[1].relocations[0];
    assert_eq!((there.variable, there.value(0x1000)), (0, 0x1004));
    let upper = program.variables()[2].relocations[1];
    assert_eq!(
        (upper.offset, upper.size, upper.value(0x1234)),
        (1, 1, 0x12)
    );
    assert_eq!(program.variables()[3].initial, 1.5_f32.to_le_bytes());
    assert_eq!(program.kernels()[0].shared_bytes, 100);
    assert_eq!(program.kernels()[0].const_bytes, 16);
}

#[test]
fn local_memory_that_nobody_wrote() {
    let run_body = |body: &str| {
        let text = format!(
            "{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS} .local .align 8 .b8 depot[32];
             mov.u64 rd1, depot; cvta.local.u64 rd2, rd1; {body} ret; }}"
        );
        let mut memory = Memory::new();
        let out = memory.hold_u32(&[0; 64]);
        run(
            &mut memory,
            launch(&lower(&text), "k", Params::new().u64(out).done(), vec![]),
        )
        .map(|_| memory.u32s(out)[0])
    };
    let fault =
        run_body("st.local.u32 [rd1], 7; ld.local.u32 r0, [rd1+8]; st.global.u32 [rd0], r0;")
            .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Uninitialised, "{fault}");
    let fault = run_body("ld.u32 r0, [rd2+16]; add.u32 r0, r0, 1; st.u32 [rd2], r0;").unwrap_err();
    assert_eq!(fault.kind, FaultKind::Uninitialised, "{fault}");
    // A bit-field that is set, and a struct that is copied with what nobody set.
    let set = "ld.u32 r0, [rd2]; and.b32 r1, r0, -256; or.b32 r1, r1, 7; st.u32 [rd2], r1;
               ld.u32 r2, [rd2]; and.b32 r2, r2, 255; st.global.u32 [rd0], r2;";
    assert_eq!(run_body(set), Ok(7));
    let copy = "st.local.u64 [rd1], 5; ld.u64 rd3, [rd2]; ld.u64 rd4, [rd2+8];
                st.u64 [rd2+16], rd3; st.u64 [rd2+24], rd4;
                ld.u32 r0, [rd2+16]; st.global.u32 [rd0], r0;";
    assert_eq!(run_body(copy), Ok(5));
}

#[test]
fn the_line_of_a_call_stands_for_one_without() {
    let text = format!(
        "{HEAD}.func stop() {{ trap; ret; }}
.visible .entry k() {{ .loc 1 12 5
call stop, (); ret; }}
.file 1 \"k.cu\""
    );
    let fault = run(
        &mut Memory::new(),
        launch(&lower(&text), "k", vec![], vec![]),
    )
    .unwrap_err();
    assert_eq!(fault.position.unwrap().line, 4);
    assert_eq!(fault.source.unwrap().to_string(), "k.cu:12");
}

#[test]
fn many_variables_by_one_name() {
    let got = words(
        1,
        &[],
        ".local .align 8 .b64 slot<3>;
         st.local.u32 [slot0], 1; st.local.u32 [slot1], 2; st.local.u32 [slot2], 3;
         ld.local.u32 r0, [slot1]; st.global.u32 [rd0], r0;
         ld.local.u32 r0, [slot0]; st.global.u32 [rd0+4], r0;",
    );
    assert_eq!(got[..2], [2, 1]);
}

#[test]
fn barriers_of_clusters_order_warps() {
    let body = |wait: &str| {
        let text = format!(
            "{HEAD}.visible .entry k(.param .u64 out) {{ {REGISTERS} .shared .align 4 .b32 box;
             mov.u32 r0, %tid.x;
             setp.eq.u32 p, r0, 70; @p st.shared.u32 [box], 5;
             {wait}
             ld.shared.u32 r1, [box];
             mad.wide.u32 rd1, r0, 4, rd0; setp.lt.u32 q, r0, 64; @q st.global.u32 [rd1], r1; ret; }}"
        );
        let mut memory = Memory::new();
        let out = memory.hold_u32(&[0; 64]);
        let launch = launch(&lower(&text), "k", Params::new().u64(out).done(), vec![]);
        run(
            &mut memory,
            Launch {
                block: [96, 1, 1],
                ..launch
            },
        )
        .map(|_| memory.u32s(out))
    };
    let both = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
    assert_eq!(body(both), Ok(vec![5; 64]));
    assert_eq!(body("").unwrap_err().kind, FaultKind::SharedRace);
}
