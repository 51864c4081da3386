#!/bin/sh
# Makes the Python environment of the oracles in <cache>/venv and prints its interpreter. The product and its test suite
# never need it. <cache> is $HEARTH_CACHE, $XDG_CACHE_HOME/hearth or ~/.cache/hearth. Needs python3 (3.11) with venv,
# a C compiler and binutils, and about 2.5 GB of disk. Does nothing when the environment is there and current.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv="${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/venv"
python="$venv/bin/python"
stamp="$venv/requirements.done"

if ! cmp -s "$here/requirements.txt" "$stamp"; then
    echo "making the environment in $venv: some minutes, about 2.5 GB" >&2
    [ -x "$python" ] || python3 -m venv "$venv"
    nice "$python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt" >&2
    nice "$python" "$here/stub_cuda.py" "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >&2
    "$python" -c 'import torch, transformers; assert torch.ones(2).sum() == 2' >&2
    cp "$here/requirements.txt" "$stamp"
fi
echo "$python"
