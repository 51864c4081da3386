#!/usr/bin/env bash
# Builds the fuzz targets with clang, address and undefined-behaviour sanitizers, and runs each for a while from its
# saved corpus. An input that breaks one is kept in build/fuzz/found and named.
#
# usage: fuzz.sh [[--seconds] N] [--keep] [NAME...]
#
#   N       seconds for each target (default 10)
#   --keep  add what was found to cover new code to tests/fuzz/corpus
#   NAME    gguf, tokenizer, ...: only these targets
#
# Exit status: 0 nothing was found, 1 something was, 77 no clang with libFuzzer here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=10 keep=no names=()
while [ $# -gt 0 ]; do
    case "$1" in
        --seconds) seconds=${2:?fuzz.sh: --seconds needs a number}; shift ;;
        --keep) keep=yes ;;
        -*) sed -n '2,/^set /{/^#/p}' "$0" | cut -c3- >&2; exit 2 ;;
        *[!0-9]*) names+=("$1") ;;
        *) seconds=$1 ;;
    esac
    shift
done

clang=$(command -v clang || command -v clang-14 || true)
folder=build/fuzz
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
echo 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n) { return d && n > 1000000; }' >"$probe/probe.c"
if [ -z "$clang" ] || ! "$clang" -w -fsanitize=fuzzer,address "$probe/probe.c" -o "$probe/probe" 2>"$probe/log"; then
    echo "skipped: no clang with libFuzzer (Debian 12: apt install clang)" >&2
    cat "$probe/log" >&2 2>/dev/null || true
    exit 77
fi

# Sanitizers of clang 14 cannot place their shadow memory where newer kernels put random addresses.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi

if [ ${#names[@]} -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        name=${source#tests/fuzz/fuzz_}
        names+=("${name%.c}")
    done
fi
CC=$clang cmake --preset debug -B "$folder" -DHEARTH_FUZZ=ON -DHEARTH_SANITIZE=address,undefined,fuzzer-no-link >&2
cmake --build "$folder" --target "${names[@]/#/fuzz_}" >&2

mkdir -p "$folder/found"
status=0
for name in "${names[@]}"; do
    program=$(find "$folder" -name "fuzz_$name" -type f -perm -u+x)
    saved=tests/fuzz/corpus/$name grown=$folder/corpus/$name
    mkdir -p "$grown"
    options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=65536)
    options+=(-print_final_stats=1 -verbosity=0 -artifact_prefix="$folder/found/$name-")
    if [ -f "tests/fuzz/$name.dict" ]; then options+=(-dict="tests/fuzz/$name.dict"); fi
    echo "fuzz: $name, $seconds s" >&2
    if ! "${fixed_addresses[@]}" "$program" "${options[@]}" "$grown" "$saved" >"$folder/$name.log" 2>&1; then
        status=1
        tail -n 60 "$folder/$name.log"
        echo "fuzz: $name: FOUND, see $folder/found and $folder/$name.log"
        continue
    fi
    grep -E 'number_of_executed_units' "$folder/$name.log" >&2 || true
    if [ "$keep" = yes ]; then
        "${fixed_addresses[@]}" "$program" -merge=1 -verbosity=0 "$saved" "$grown" >/dev/null 2>&1
        for input in "$saved"/*; do
            case "$input" in *.bin) ;; *) mv "$input" "$input.bin" ;; esac
        done
    fi
done
exit $status
