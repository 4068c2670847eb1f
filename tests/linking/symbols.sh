#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library's exported symbols are those that its version script lists, all of them and no others.
#   symbols.sh LIBRARY SCRIPT
set -euo pipefail
listed=$(sed -n '/global:/,/local:/s/^ *\([A-Za-z_][A-Za-z_0-9]*\);$/\1/p' "$2")
[[ -n $listed ]] || { echo "$2 lists nothing"; exit 1; }
exported=$(nm --dynamic --defined-only --format=posix "$1" | cut -d' ' -f1)
diff <(LC_ALL=C sort <<<"$listed") <(LC_ALL=C sort <<<"$exported") || {
  echo "$1: exported (>) is not what $2 lists (<)"
  exit 1
}
