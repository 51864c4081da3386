#!/usr/bin/env bash
# Builds Hearth and runs its tests. The last line is the sum: N passed, N failed[, N skipped].
#
# usage: test.sh [--quick | --long]
#
#   --quick  the release build and its fast tests and checks
#   (none)   the release build and all its tests and checks; the same with clang; address, undefined-behaviour and
#            thread sanitizers; ten seconds of each fuzz target; kernels on emulated older processors
#   --long   the same with a minute of each fuzz target
#
# Packages that are missing are installed first (scripts/packages.sh). Nothing else needs a network. With CI=true a
# skipped test that is not labelled optional counts as failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=full
fuzz_seconds=10
case "${1:-}" in
    "") ;;
    --quick) mode=quick ;;
    --long) fuzz_seconds=60 ;;
    *) sed -n '2,/^set /{/^#/p}' "$0" | cut -c3- >&2; exit 2 ;;
esac

jobs=$(getconf _NPROCESSORS_ONLN)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
say() { echo "test: $*" >&2; }

# step NAME COMMAND...: runs it and notes how it went (77: skipped). Answers its exit status.
step() {
    local name=$1 start=$SECONDS log=$results/step.log
    shift
    local status=0
    "$@" >"$log" 2>&1 </dev/null || status=$?
    case "$status" in
        0) echo "passed $name" >>"$results/steps" ;;
        77) echo "skipped $name" >>"$results/steps" ;;
        *) echo "failed $name" >>"$results/steps"; tail -n 60 "$log" >&2 ;;
    esac
    say "$name: exit status $status after $((SECONDS - start)) s"
    return "$status"
}

# shellcheck disable=SC2317 # called through step
build() {
    local folder=$1 preset=$2 compiler=$3
    CC=$compiler cmake --preset "$preset" -B "$folder" -DHEARTH_TESTS=ON && cmake --build "$folder"
}

# leg NAME PRESET COMPILER CTEST-OPTIONS...: builds into build/NAME and runs tests there.
leg() {
    local name=$1 preset=$2 compiler=$3 folder=build/$1 start=$SECONDS
    shift 3
    step "build $name" build "$folder" "$preset" "$compiler" || return 0
    ctest --test-dir "$folder" --show-only=json-v1 >"$results/$name.json"
    # The sum at the end judges; CTest prints the output of what failed.
    "${fixed_addresses[@]}" ctest --test-dir "$folder" --output-on-failure --output-junit "$results/$name.xml" \
        --parallel "$jobs" --schedule-random "$@" </dev/null >"$results/ctest.log" 2>&1 || true
    grep -v -E ' Start +[0-9]+: |  (Passed|\*\*\*Skipped) ' "$results/ctest.log" >&2 || true
    say "$name: tests took $((SECONDS - start)) s"
}

# Sanitizers of gcc 12 and clang 14 cannot place their shadow memory where newer kernels put random addresses.
fixed_addresses=()
if setarch -R true 2>/dev/null; then fixed_addresses=(setarch -R); fi

scripts/packages.sh install build test

compiler=${CC:-cc}
if [ "$mode" = quick ]; then
    leg release release "$compiler" --label-exclude slow
else
    leg release release "$compiler"
    leg clang release clang --label-exclude 'checks|install|optional|slow'
    leg asan asan "$compiler" --label-exclude 'checks|install|optional|slow'
    leg tsan tsan "$compiler" --label-regex threaded
    step fuzz scripts/fuzz.sh "$fuzz_seconds" || true
fi

status=0
python3 scripts/report.py "$results" || status=$?
exit "$status"
