#!/usr/bin/env bash
# Compiles every kernels/*.cu to PTX with a pinned nvcc; needs python3 with venv, g++ and no GPU.
#
#   kernels/build.sh                    write each .ptx beside its .cu
#   kernels/build.sh --check            fail if a committed .ptx is not what its .cu gives
#   kernels/build.sh --arch sm_90 DIR   write the PTX of another architecture into DIR
#
# An nvcc on PATH is not used: the committed PTX must not depend on the machine that builds it.
set -euo pipefail
shopt -s nullglob

called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
toolchain=../target/cuda-toolchain
base_arch=sm_75

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

main() {
    case "${1-}" in
        "") [ $# -eq 0 ] || usage; install_toolchain; compile_all "$base_arch" . ;;
        --check) [ $# -eq 1 ] || usage; install_toolchain; check ;;
        --arch) [ $# -eq 3 ] || usage; build_for "$2" "$3" ;;
        *) usage ;;
    esac
}

usage() {
    echo "usage: kernels/build.sh [--check | --arch sm_NN DIR]" >&2
    exit 2
}

# Sets `bin`; installs the wheels if they are missing or the pinned versions changed.
install_toolchain() {
    if ! cmp -s requirements.txt "$toolchain/installed.txt"; then
        echo "installing the pinned CUDA compiler into target/cuda-toolchain"
        rm -rf "$toolchain"
        python3 -m venv "$toolchain"
        "$toolchain/bin/pip" install --quiet --disable-pip-version-check \
            --no-deps --only-binary :all: --require-hashes -r requirements.txt
        cp requirements.txt "$toolchain/installed.txt"
    fi
    local found=("$toolchain"/lib/python3*/site-packages/nvidia/cu13/bin)
    bin=${found[0]:?no compiler in target/cuda-toolchain, remove that folder and run again}
}

# compile_all ARCH DIR
compile_all() {
    local source
    for source in *.cu; do
        compile "$1" "$source" "$2/${source%.cu}.ptx"
    done
}

# compile ARCH SOURCE PTX. A source may name more flags in a line `// nvcc flags: ...`, and in a line `// nvcc arch: sm_NN` the
# oldest architecture that has what it uses.
#
# Two things would tie the PTX to the folder it is built in. The compiler puts a hash of the
# source's absolute path into the names of internal symbols, and nvcc has no option for that path: so the steps which nvcc
# would run are run here, with the path replaced. And `.file` names sources by absolute path: the file's name is kept.
compile() {
    local flags arch=$1 oldest
    oldest=$(sed -n 's|^// nvcc arch: ||p' "$2")
    if [ -n "$oldest" ] && [ "${oldest#sm_}" -gt "${arch#sm_}" ]; then arch=$oldest; fi
    read -ra flags < <(sed -n 's|^// nvcc flags: ||p' "$2") || true
    TMPDIR=$scratch "$bin/nvcc" --dryrun -ptx "-arch=compute_${arch#sm_}" -lineinfo "${flags[@]}" \
        -o "$scratch/out.ptx" "$2" 2> "$scratch/dryrun" || { cat "$scratch/dryrun" >&2; exit 1; }
    sed -nE -e "s|(--orig_src_path_name) \"[^\"]*\"|\1 \"kernels/$2\"|" -e 's/^#\$ (gcc |"\$CICC_PATH)/\1/p' \
        "$scratch/dryrun" > "$scratch/steps"
    CICC_PATH=$bin/../nvvm/bin sh -e "$scratch/steps"
    sed -E 's|^([[:space:]]*\.file[[:space:]]+[0-9]+ ")[^"]*/|\1|' "$scratch/out.ptx" > "$3"
    rm "$scratch/out.ptx"
}

build_for() {
    local out
    install_toolchain
    out=$(cd "$called_from" && mkdir -p "$2" && cd "$2" && pwd)
    compile_all "$1" "$out"
}

check() {
    local failed=0 ptx
    mkdir "$scratch/built"
    compile_all "$base_arch" "$scratch/built"
    for ptx in "$scratch"/built/*.ptx; do
        same_as_committed "$ptx" || failed=1
    done
    for ptx in *.ptx; do
        [ -e "${ptx%.ptx}.cu" ] || { echo "kernels/$ptx has no ${ptx%.ptx}.cu"; failed=1; }
        assembles "$ptx" || failed=1
    done
    for ptx in handwritten/*.ptx; do
        if head -n 1 "$ptx" | grep -q '^// Refused:'; then
            is_refused "$ptx" || failed=1
        else
            assembles "$ptx" || failed=1
        fi
    done
    [ "$failed" -eq 0 ] || { echo "the check failed; kernels/build.sh writes a missing or stale .ptx"; exit 1; }
    echo "every .ptx is what its .cu gives, and assembles for those of sm_75 and sm_90 that it is for"
}

same_as_committed() {
    local committed
    committed=$(basename "$1")
    if [ ! -e "$committed" ]; then
        echo "kernels/${committed%.ptx}.cu has no $committed"
        return 1
    fi
    diff -u --label "kernels/$committed" --label "built from ${committed%.ptx}.cu" "$committed" "$1"
}

assembles() {
    local arch target
    target=$(sed -n 's|^\.target sm_\([0-9]*\).*|\1|p' "$1")
    for arch in sm_75 sm_90; do
        # PTX of an architecture is for that one and later ones.
        [ "$target" -le "${arch#sm_}" ] || continue
        "$bin/ptxas" "-arch=$arch" -o "$scratch/out.cubin" "$1" || { echo "kernels/$1 does not assemble for $arch"; return 1; }
    done
}

is_refused() {
    if "$bin/ptxas" -arch=sm_90 -o "$scratch/out.cubin" "$1" 2> "$scratch/errors"; then
        echo "kernels/$1 assembles, though it is there to be refused"
        return 1
    fi
}

main "$@"
