#!/usr/bin/env bash
# Runs what tests/bundle.sh packed, beside which it lies. Needs a GPU and its driver, nothing else.
#
#     ./run.sh                 the tests, then the examples
#     ./run.sh NAME..          the tests whose names contain one of these
#     ./run.sh --sanitizer     the tests under compute-sanitizer's memcheck, without those that provoke faults, trace or need
#                              NVRTC; COMPUTE_SANITIZER names the program if it is not on PATH or in /usr/local/cuda/bin
#     ./run.sh --bench         the benchmarks
#
# Exits with 1 if anything failed.
set -u
cd "$(dirname "$0")"

# A test that finds no device fails, as does one that would be left out for want of it.
export GRIDCALL_TEST_REQUIRE_DEVICE=1
failed=()

run() {
    printf '\n=== %s\n' "$*"
    "$@" || failed+=("$* ended with $?")
}

sanitizer() {
    for program in "${COMPUTE_SANITIZER:-compute-sanitizer}" /usr/local/cuda/bin/compute-sanitizer; do
        command -v "$program" && return
    done
    echo "no compute-sanitizer: set COMPUTE_SANITIZER to its path" >&2
    return 1
}

case ${1-} in
    --sanitizer)
        memcheck=$(sanitizer) || exit 1
        # The tests ask the driver for what it must refuse, and check its answers themselves. Those that put another
        # driver in place of the real one leave the sanitizer nothing to stand on. Under it kernels run one after another,
        # so those that prove that two overlap cannot pass, nor those that time the caches.
        run "$memcheck" --tool memcheck --report-api-errors no --error-exitcode 1 tests/launch --skip faults:: --skip driver:: \
            --skip a_dependent_launch_begins --skip a_programmatic_event_lets --skip what_persists_is_still --skip a_carveout_divides
        # A launch then holds up all others of the process, also behind a kernel that waits for its test: one test at a
        # time. The sanitizer has threads of its own, which one test counts; random programs take minutes under it.
        run "$memcheck" --tool memcheck --report-api-errors no --error-exitcode 1 tests/buffer --test-threads=1 \
            --skip faults:: --skip many_futures_need_one_thread --skip programs::
        run "$memcheck" --tool memcheck --report-api-errors no --error-exitcode 1 tests/graph --skip faults::
        run "$memcheck" --tool memcheck --report-api-errors no --error-exitcode 1 tests/interop
        ;;
    --bench)
        run benches/launch
        ;;
    '')
        # Those of NVRTC say of each test that it is skipped where there is none.
        for test in tests/*; do
            run "$test"
        done
        for example in examples/*; do
            # The one that needs more than a driver.
            [ "$example" = examples/08-nvrtc ] && [ -z "${GRIDCALL_NVRTC-}${CUDA_PATH-}${CUDA_HOME-}" ] && continue
            run "$example"
        done
        ;;
    *)
        for test in tests/*; do
            run "$test" "$@"
        done
        ;;
esac

printf '\n'
if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED: %s\n' "${failed[@]}"
    exit 1
fi
echo "all passed"
