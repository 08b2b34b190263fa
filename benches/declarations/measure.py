#!/usr/bin/env python3
"""Measures how long 1,000 kernel declarations take to check.

Writes a PTX file of about 10 MB with 1,000 entries and a crate that declares them all, and times
`cargo check` of that crate alone, its dependencies built before, in the default debug profile, where
procedural macros are not optimised. Three crates are timed: one without declarations, one with all
declarations in one block, and one with a tenth of them, each with a `#[kernel]` of its own: those make
the compiler include the file once for each.

    python3 benches/declarations/measure.py [--count 1000] [--rounds 3]
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARAMS = [".u32", ".f32", ".u64", ".u64", ".u64", ".u32", ".f32", ".u64", ".u64", ".u32"]
# Real entries have bodies; the reader steps over them.
BODY_LINE = "\tfma.rn.f32 \t%f7, %f1, %f5, %f6;\n"


def ptx(count, entry_bytes):
    body = BODY_LINE * (entry_bytes // len(BODY_LINE))
    text = [".version 8.0\n.target sm_75\n.address_size 64\n"]
    for i in range(count):
        params = ",\n".join(f"\t.param {ty} kernel{i}_param_{n}" for n, ty in enumerate(PARAMS))
        text.append(f"\n.visible .entry kernel{i}(\n{params}\n)\n{{\n{body}\tret;\n}}\n")
    return "".join(text)


def declaration(i):
    return (
        f"    /// Kernel {i}.\n"
        "    #[requires(x.len() >= n, y.len() >= n)]\n"
        f"    pub safe fn kernel{i}(n: u32, a: f32, x: &[f32], y: &mut [f32], z: &[u8],\n"
        "        m: i32, b: f32, u: &[f64], v: &mut [i32], k: i32);\n"
    )


def block(count):
    inner = "".join(declaration(i) for i in range(count))
    return f'#[gridcall::kernel(ptx = "kernels.ptx")]\nunsafe extern "C" {{\n{inner}}}\n'


def singles(count):
    attribute = '#[gridcall::kernel(ptx = "kernels.ptx")]\n'
    return "".join(attribute + declaration(i) for i in range(count))


def check(crate):
    start = time.monotonic()
    subprocess.run(["cargo", "check", "--quiet", "--offline"], cwd=crate, check=True)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    crate = target / "benches" / "declarations"
    (crate / "src").mkdir(parents=True, exist_ok=True)
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "declarations"\nversion = "0.0.0"\nedition = "2024"\n\n'
        f'[dependencies]\ngridcall = {{ path = "{ROOT / "runtime"}" }}\n\n[workspace]\n'
    )
    shutil.copy(ROOT / "Cargo.lock", crate / "Cargo.lock")
    text = ptx(options.count, 10_000)
    (crate / "kernels.ptx").write_text(text)
    print(f"{options.count} entries, {len(text) / 1e6:.1f} MB of PTX")

    few = options.count // 10
    forms = [
        ("no declarations", ""),
        (f"{options.count} in one block", block(options.count)),
        (f"{few} each alone", singles(few)),
    ]
    for name, source in forms:
        times = []
        for _ in range(options.rounds + 1):
            (crate / "src" / "lib.rs").write_text(source + f"// {time.monotonic()}\n")
            times.append(check(crate))
        # The first also builds what the crate depends on.
        print(f"{name:>20}: {statistics.median(times[1:]):.2f} s")


if __name__ == "__main__":
    main()
