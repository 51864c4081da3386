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
if ! { cmake --preset release -DHEARTH_TESTS=OFF && cmake --build --preset release; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi

say "model"
model=$(scripts/fetch_models.sh smollm2)

say "answer"
prompt="<|im_start|>user
$question<|im_end|>
<|im_start|>assistant
"
echo "build/release/hearth run -m $model -n 128 --seed 1 -p '$prompt'" >&2
build/release/hearth run -m "$model" -n 128 --seed 1 -p "$prompt"
