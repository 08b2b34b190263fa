#!/usr/bin/env bash
# Packs the tests that launch, the examples and the benchmarks into target/bundle, for a machine that has a GPU and no Rust.
#
#     tests/bundle.sh          then, on the other machine: target/bundle/run.sh
#
# The other machine needs x86-64 Linux (or whatever this one is), a glibc no older than this one's, and the NVIDIA driver.
# The programs carry their PTX: nothing else is read at run time.
set -euo pipefail
cd "$(dirname "$0")/.."

bundle=target/bundle
rm -rf "$bundle"
mkdir -p "$bundle"/{tests,examples,benches}

# Each message of cargo names a program that it made, and what it is. The emulator, which is in all of them, has nothing to do on
# a machine that has a GPU, and is made small.
build() {
    cargo "$@" --release --config 'profile.release.package.gridcall-emulator.opt-level="s"' --message-format=json-render-diagnostics | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable"):
        print(message["target"]["kind"][0], message["target"]["name"], message["executable"])
'
}

pack() {
    while read -r kind name executable; do
        case $kind in
            test) to=tests ;;
            example) to=examples ;;
            bin | bench) to=benches ;;
            *) echo "what is a $kind?" >&2 && exit 1 ;;
        esac
        cp "$executable" "$bundle/$to/$name"
        strip "$bundle/$to/$name"
    done
}

build test --package gridcall-tests --test launch --test buffer --test graph --test interop --test nvrtc --no-run | pack
# By itself: the others launch without what it needs.
build test --package gridcall-tests --features trace --test trace --no-run | pack
build build --package gridcall-benches --bin launch --package gridcall-examples --examples | pack
cp tests/run.sh "$bundle/run.sh"

for program in tests/{launch,buffer,graph,interop,nvrtc,trace} benches/launch $(basename -s .rs examples/[0-9]*.rs | sed 's,^,examples/,'); do
    [ -x "$bundle/$program" ] || { echo "$program is missing" >&2 && exit 1; }
done
size=$(du -sm "$bundle" | cut -f1)
[ "$size" -lt 80 ] || { echo "$bundle has $size MiB, 80 are allowed" >&2 && exit 1; }
echo "$bundle: $size MiB"
