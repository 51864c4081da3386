#!/bin/sh
# Builds llama.cpp's tools, the peer that benches and oracles compare with, once, into <cache>/peer, and prints the
# folder of the binaries as the only line on standard output. <cache> is $HEARTH_CACHE, $XDG_CACHE_HOME/hearth or
# ~/.cache/hearth. The source comes in the Python package llama-cpp-python, which is downloaded, not installed.
# Needs python3 with pip, cmake, a C++ compiler and, if there, ninja. Takes about 15 minutes on two cores.
#
# usage: build_peer.sh [--where]    (--where prints the folder if the tools are built, and fails if they are not)
set -eu

version=0.3.36
tools="llama-bench llama-batched-bench llama-perplexity llama-quantize llama-completion llama-tokenize llama-server"
peer="${HEARTH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hearth}/peer"
archive="$peer/llama_cpp_python-$version.tar.gz"
source="$peer/llama_cpp_python-$version/vendor/llama.cpp"
bin="$source/build/bin"

say() { echo "build_peer: $*" >&2; }

is_built() {
    for tool in $tools; do
        [ -x "$bin/$tool" ] || return 1
    done
}

case "${1:-}" in
    "") ;;
    --where) is_built || { say "not built in $bin"; exit 1; }; echo "$bin"; exit 0 ;;
    *) say "unknown argument $1 (only --where is known)"; exit 2 ;;
esac

if is_built; then
    echo "$bin"
    exit 0
fi

mkdir -p "$peer"
# One build at a time: a second one waits, then finds the tools built.
exec 9>"$peer/lock"
if command -v flock >/dev/null; then
    flock 9
    if is_built; then
        echo "$bin"
        exit 0
    fi
fi

if [ ! -f "$source/CMakeLists.txt" ]; then
    if [ ! -f "$archive" ]; then
        say "downloading llama-cpp-python $version (77 MB)"
        download=$(mktemp -d "$peer/download.XXXXXX")
        trap 'rm -rf "$download"' EXIT
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
            --dest "$download" "llama-cpp-python==$version" >&2 || {
            say "no download (no network or no pip?): put llama_cpp_python-$version.tar.gz into $peer"
            exit 1
        }
        mv "$download"/*.tar.gz "$archive"
    fi
    say "unpacking"
    unpack=$(mktemp -d "$peer/unpack.XXXXXX")
    tar -xzf "$archive" -C "$unpack"
    rm -rf "$peer/llama_cpp_python-$version"
    mv "$unpack/llama_cpp_python-$version" "$peer/"
    rmdir "$unpack"
fi

if [ ! -f "$source/build/CMakeCache.txt" ]; then
    generator=
    command -v ninja >/dev/null && generator="-G Ninja"
    # shellcheck disable=SC2086 # an empty generator must vanish
    cmake -S "$source" -B "$source/build" $generator -DCMAKE_BUILD_TYPE=Release \
        -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF >&2
fi
say "building $tools (about 15 minutes on two cores)"
# shellcheck disable=SC2086 # a list of targets
nice cmake --build "$source/build" --parallel "$(getconf _NPROCESSORS_ONLN)" --target $tools >&2
echo "$bin"
