#!/usr/bin/env bash
# Compares every C file with what clang-format 14 (Debian 12's) makes of it under .clang-format.
#
# usage: check_format.sh [--fix | --self-test]     --fix formats in place. Exit status 77: no clang-format 14 here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

formatter=
for name in clang-format-14 clang-format; do
    if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 14\.'; then
        formatter=$name
        break
    fi
done
if [ -z "$formatter" ]; then
    echo "skipped: no clang-format 14 (Debian 12: apt install clang-format); other versions format differently" >&2
    exit 77
fi

sources() { find include src tests -name '*.[ch]' -not -path 'tests/data/*' -print0 | sort -z; }

case "${1:-}" in
    "") sources | xargs -0 "$formatter" --dry-run -Werror ;;
    --fix) sources | xargs -0 "$formatter" -i ;;
    --self-test)
        planted=$(mktemp -d)
        trap 'rm -rf "$planted"' EXIT
        cp .clang-format "$planted/"
        printf 'int  planted( void ){return 0 ;}\n' >"$planted/planted.c"
        if "$formatter" --dry-run -Werror "$planted/planted.c" 2>/dev/null; then
            echo "MISSED: a badly formatted file"
            exit 1
        fi
        echo "found: a badly formatted file"
        ;;
    *) echo "usage: check_format.sh [--fix | --self-test]" >&2; exit 2 ;;
esac
