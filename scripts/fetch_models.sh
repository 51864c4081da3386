#!/bin/sh
# Fetches real models (GGUF files) into the user's cache: see fetch_models.py, or run with --help.
set -eu

if ! command -v python3 >/dev/null 2>&1; then
    echo "fetch_models: python3 is needed to fetch models (Debian: apt install python3 python3-pip)." >&2
    echo "Without it, put SmolLM2-135M-Instruct Q4_1 (98362432 bytes) at" >&2
    echo "  ${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/models/smollm2.gguf" >&2
    exit 1
fi
exec python3 "$(dirname "$0")/fetch_models.py" "$@"
