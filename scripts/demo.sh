#!/usr/bin/env bash
# From a fresh Debian 12 to an answer: installs the build packages that are missing, builds Hearth, fetches a small
# model (SmolLM2-135M-Instruct, 98 MB) into the user's cache and asks it something.
#
# usage: demo.sh [PROMPT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

question=${1:-What is a hearth, and why did people sit around it?}
say() { printf '\n== %s\n' "$*" >&2; }

say "packages"
scripts/packages.sh install build
# Only the download needs these: a model that is in the cache does without them.
scripts/packages.sh install fetch || say "going on without the packages above"

say "build"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
build() { cmake --preset release -DHEARTH_TESTS=OFF && cmake --build --preset release; }
# Everything goes into the log; of it, how far the build is ("[42/137] ...") is shown, on a terminal in one line.
progress() {
    local line shown=-1
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        local done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
        ((done > 0)) || continue
        if [ -t 2 ]; then
            printf '\rcompiled %s of %s files\033[K' "$done" "$all" >&2
        elif ((done * 4 / all != shown)); then
            shown=$((done * 4 / all))
            echo "compiled $done of $all files" >&2
        fi
    done
    if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}
if ! build 2>&1 | progress; then
    cat "$log" >&2
    exit 1
fi

say "model"
model=$(scripts/fetch_models.sh smollm2)

say "answer"
echo "build/release/hearth run -m $model -n 128 --seed 1 -p '$question'" >&2
build/release/hearth run -m "$model" -n 128 --seed 1 -p "$question"
echo
say "to go on talking: build/release/hearth chat"
