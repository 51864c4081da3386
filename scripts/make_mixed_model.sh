#!/usr/bin/env bash
# Makes tests/data/models/llama-mixed.gguf: the trained llama of the same folder with its matrices in every dtype that
# Hearth computes with, so that one small file takes a contract test through all linear kernels. Needs the peer's tools
# (scripts/build_peer.sh). The result is deterministic.
#
# usage: make_mixed_model.sh [OUT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

from=tests/data/models/llama-bf16.gguf
out=${1:-tests/data/models/llama-mixed.gguf}
bin=$(scripts/build_peer.sh --where)

dtypes=(q4_0 q4_1 q5_0 q5_1 q8_0 q2_K q3_K q4_K q5_K q6_K iq4_nl iq4_xs mxfp4 f16 f32)
matrices=(attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down)
types=()
n=0
for layer in 0 1 2 3 4 5; do
    for matrix in "${matrices[@]}"; do
        types+=(--tensor-type "blk\\.$layer\\.$matrix=${dtypes[n++ % ${#dtypes[@]}]}")
    done
done
"$bin/llama-quantize" "${types[@]}" --token-embedding-type q8_0 "$from" "$out" Q4_K >&2
