//! How long a text of 10 MB with 700 entries takes to read, in milliseconds, the best of ten.
//!
//! `cargo bench -p gridcall-ptx` measures what an optimised program sees, and with `--profile dev` what a
//! procedural macro does.

use std::fmt::Write;
use std::time::Instant;

use gridcall_ptx::Module;

fn main() {
    let text = text(700, 10_000_000);
    println!("{} bytes", text.len());
    let module = Module::parse(&text).expect("the text is well-formed");
    assert_eq!(module.entries().len(), 700);
    println!(
        "declarations: {:.1} ms",
        best(|| Module::parse(&text).map(|module| module.entries().len()))
    );
    println!(
        "all code:     {:.1} ms",
        best(|| {
            let bodies = module.entries().iter().filter_map(|entry| entry.body());
            bodies
                .map(|body| body.parse(&text).map(|code| code.statements().len()))
                .sum()
        })
    );
}

fn best(read: impl Fn() -> Result<usize, gridcall_ptx::Error>) -> f64 {
    let time = || {
        let start = Instant::now();
        let count = read().expect("the text is well-formed");
        assert!(count > 0);
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..10).map(|_| time()).fold(f64::INFINITY, f64::min)
}

/// Kernels as nvcc writes them, of about equal size.
fn text(entries: usize, bytes: usize) -> String {
    let mut text =
        String::from("//\n// Generated\n//\n\n.version 9.5\n.target sm_90\n.address_size 64\n\n");
    for entry in 0..entries {
        writeln!(text, ".visible .entry kernel_{entry}(").unwrap();
        for param in 0..6 {
            let (ty, comma) = (
                ["u64", "u32", "f32"][param % 3],
                if param < 5 { "," } else { "" },
            );
            writeln!(text, "\t.param .{ty} kernel_{entry}_param_{param}{comma}").unwrap();
        }
        text.push_str(")\n.maxntid 256, 1, 1\n{\n\t.reg .pred \t%p<9>;\n\t.reg .b64 \t%rd<99>;\n");
        let end = bytes * (entry + 1) / entries;
        let mut block = 0;
        while text.len() + 600 < end {
            write!(
                text,
                "\n\tld.param.u64 \t%rd1, [kernel_{entry}_param_0];\n\
                 \tmul.wide.u32 \t%rd10, %r2, 4;\n\
                 \tadd.s64 \t%rd11, %rd1, %rd10;\n\
                 \tsetp.ge.s32 \t%p1, %r5, %r7;\n\
                 \t@%p1 bra \t$L__BB{entry}_{block};\n\
                 \tld.global.nc.v4.f32 \t{{%f1, %f2, %f3, %f4}}, [%rd11+-16];\n\
                 \tfma.rn.f32 \t%f5, %f1, %f2, 0f3F800000;\n\
                 \tmov.b64 \t%rd12, {{%r1, %r2}};\n\
                 \t// begin inline asm\n\
                 \t{{ cvt.rn.f16.f32 %rs1, %f5;}}\n\n\
                 \t// end inline asm\n\
                 \tst.global.f32 \t[%rd12+4], %f5;\n\
                 $L__BB{entry}_{block}:\n"
            )
            .unwrap();
            block += 1;
        }
        text.push_str("\tret;\n\n}\n");
    }
    text
}
