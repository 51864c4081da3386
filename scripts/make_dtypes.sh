#!/usr/bin/env bash
# Makes one model in several dtypes, all matrices of a file in the same, for benches: <cache>/dtypes/NAME.gguf, from a
# model that is quantized already. Their text is worse than that of files made from the original weights; their speed is
# the same. Needs the peer's tools (scripts/build_peer.sh). A file that is there stays.
#
# usage: make_dtypes.sh [--from MODEL.gguf] [NAME...]      default: Qwen2.5-Coder-1.5B of the cache, in all dtypes below
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}
from=$cache/models/qwen2.5-coder-1.5b.gguf
names=(Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS F16 BF16)

if [ "${1:-}" = --from ]; then
    from=${2:?--from needs a file}
    shift 2
fi
[ $# -eq 0 ] || names=("$@")
[ -f "$from" ] || { echo "make_dtypes: no $from; scripts/fetch_models.sh fetches models" >&2; exit 1; }
bin=$(scripts/build_peer.sh --where)
mkdir -p "$cache/dtypes"

made=
trap '[ -z "$made" ] || rm -f "$made"' EXIT
for name in "${names[@]}"; do
    to=$cache/dtypes/$name.gguf
    [ ! -f "$to" ] || continue
    echo "make_dtypes: $to" >&2
    made=$to.part
    "$bin/llama-quantize" --allow-requantize --pure "$from" "$made" "$name" >"$cache/dtypes/$name.log" 2>&1 || {
        tail -n 5 "$cache/dtypes/$name.log" >&2
        exit 1
    }
    mv "$made" "$to"
    rm "$cache/dtypes/$name.log"
    made=
done
