#!/usr/bin/env bash
# Installs a build into a folder of its own, moves that folder, and builds and runs users' programs against it: through
# pkg-config, through find_package with the shared and the static library, and the program that docs/api.md shows.
#
# usage: install.sh BUILD-FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(realpath ../..)
model=$root/tests/data/models/llama-bf16.gguf

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/first" >"$work/log"
mv "$work/first" "$work/moved"
prefix=$work/moved
lib=$(dirname "$(find "$prefix" -name libhearth.a)")
export LD_LIBRARY_PATH=$lib PKG_CONFIG_PATH=$lib/pkgconfig

version=$(pkg-config --modversion hearth)
[ -f "$lib/libhearth.so.$version" ] || fail "no libhearth.so.$version"
[ "$(readlink "$lib/libhearth.so.${version%%.*}")" = "libhearth.so.$version" ] || fail "no link with the major version"
objdump -p "$lib/libhearth.so" | grep -q "SONAME *libhearth.so.${version%%.*}\$" || fail "wrong SONAME"
"$prefix/bin/hearth" --version | grep -qF "$version" || fail "the installed program does not say $version"
# An installed file that names the tree it was built in would break elsewhere.
if grep -rlF -e "$root" -e "$build" "$prefix" --include='*.cmake' --include='*.pc' --include='*.h'; then
    fail "the files above name the build tree"
fi

read -ra flags < <(pkg-config --cflags --libs hearth)
warnings=(-std=c17 -Wall -Wextra -Wpedantic -Werror)
cc "${warnings[@]}" -o "$work/user_pkgconfig" user.c "${flags[@]}"

awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$root/docs/api.md" >"$work/api.c"
cc "${warnings[@]}" -o "$work/api" "$work/api.c" "${flags[@]}"

mkdir "$work/source"
cp -r project user.c "$work/source"
if ! { cmake -S "$work/source/project" -B "$work/project" -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$work/project"; } >"$work/log" 2>&1; then
    cat "$work/log"
    fail "the user's project does not build"
fi

# Same bits: every way to link gives the same text.
"$work/user_pkgconfig" "$model" >"$work/expected"
[ -s "$work/expected" ] || fail "no text"
for program in user_shared user_static; do
    "$work/project/$program" "$model" | cmp - "$work/expected" || fail "$program differs"
done
"$work/api" "$model" "And God said" >"$work/answer"
grep -q '[a-z]' "$work/answer" || fail "the program of docs/api.md prints nothing"
if "$work/user_pkgconfig" "$work/absent.gguf" 2>"$work/refusal"; then fail "an absent model opens"; fi
grep -q "absent.gguf" "$work/refusal" || fail "the refusal does not name the file"
