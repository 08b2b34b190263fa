#!/bin/sh
# Prints what a launch costs the host in instructions, heap allocations and driver calls. Needs valgrind and a C compiler.
set -eu

cd "$(dirname "$0")/../.."
out=target/instructions
rm -rf "$out"
mkdir -p "$out"

cc -shared -fPIC -O2 -Wl,-soname,libcuda.so.1 -o "$out/libcuda.so.1" benches/instructions/driver.c
ln -s libcuda.so.1 "$out/libcuda.so"
cargo build --release --quiet -p gridcall-benches --bin instructions

LD_LIBRARY_PATH=$out valgrind --tool=callgrind --callgrind-out-file="$out/dump" --log-file="$out/valgrind.log" \
    --toggle-collect=gridcall_benches::measured --dump-after=gridcall_benches::measured \
    target/release/instructions measure "$out"
target/release/instructions report "$out"
