#!/usr/bin/env bash
# The packages that Hearth needs from Debian 12, in one place.
#
# usage: packages.sh list GROUP...       names
#        packages.sh missing GROUP...    names of those whose tool or library is not there
#        packages.sh install GROUP...    installs the missing ones with apt-get; asks through sudo when not root
#
# groups: build (compile Hearth), fetch (download a model), test (scripts/test.sh)
set -euo pipefail

# group, package, and how to tell that what it brings is there, from wherever it came
table() {
    cat <<'TABLE'
build build-essential    compiles c && compiles c++
build cmake              has cmake
build ninja-build        has ninja
build pkg-config         has pkg-config
build libutf8proc-dev    library libutf8proc
build libjansson-dev     library jansson
build libedit-dev        library libedit
fetch python3            has python3
fetch python3-pip        python3 -m pip --version
fetch ca-certificates    test -e /etc/ssl/certs/ca-certificates.crt
test  python3            has python3
test  libcmocka-dev      library cmocka
test  clang              has clang
test  libclang-rt-14-dev sanitizes clang
test  clang-format       has clang-format
test  shellcheck         has shellcheck
test  libsimde-dev       test -e /usr/include/simde/x86/avx512.h
test  qemu-user          has qemu-x86_64
TABLE
}

has() { command -v "$1"; }
library() { pkg-config --exists "$1"; }
compiles() { echo '#include <stdlib.h>' | cc -x "$1" -fsyntax-only -; }
sanitizes() { echo 'int main(void) { return 0; }' | "$1" -fsanitize=address,fuzzer-no-link -x c -o /dev/null -; }

packages_of() {
    local group package probe
    while read -r group package probe; do
        case " $groups " in *" $group "*) ;; *) continue ;; esac
        if [ "$1" = all ] || ! eval "$probe" </dev/null >/dev/null 2>&1; then echo "$package"; fi
    done < <(table)
}

install() {
    local missing command
    missing=$(packages_of missing | sort -u | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086 # a list of words
    set -- $missing
    command="apt-get install -y --no-install-recommends $*"
    echo "packages: missing: $*" >&2
    if ! command -v apt-get >/dev/null; then
        echo "packages: this is no Debian: install what these packages of Debian 12 bring, then run again" >&2
        return 1
    fi
    if [ "$(id -u)" -eq 0 ]; then
        apt-get update -q >&2 || echo "packages: apt-get update failed; going on with the lists that are there" >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        echo "packages: asking sudo to run: $command" >&2
        sudo apt-get update -q >&2 || echo "packages: apt-get update failed; going on with the lists that are there" >&2
        sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
    else
        echo "packages: run this as root, then run again: $command" >&2
        return 1
    fi
}

verb=${1:-}
groups=${*:2}
for group in $groups; do
    case "$group" in build | fetch | test) ;; *) verb= ;; esac
done
case "$verb${groups:+ with groups}" in
    "list with groups") packages_of all | sort -u ;;
    "missing with groups") packages_of missing | sort -u ;;
    "install with groups") install ;;
    *) sed -n '2,/^set /{/^# /p}' "$0" | cut -c3- >&2; exit 2 ;;
esac
