#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The README's source line configures the tree where nothing else is installed than `script/bootstrap demo` brings.
#   only_demo.sh TREE
set -euo pipefail
tree=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$tree"
cmake --preset release -B "$scratch/build" -D CMAKE_PROJECT_INCLUDE_BEFORE="$tree/tests/packaging/only_demo.cmake" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
grep --quiet 'libgearman was not found' "$scratch/log" # what was hidden was not found
