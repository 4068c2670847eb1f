#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Private heaps and pools of an installed Freehold in a program under AddressSanitizer: each misuse ends it with a report, and
# a long program without misuse ends well, whatever the compiler leaves for the linker to choose.
#   run.sh INSTALL_PREFIX WORK_FOLDER CXX
set -euo pipefail
prefix=$1 work=$2 cxx=$3
sources=$(dirname "${BASH_SOURCE[0]}")
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name freehold.pc)")
export PKG_CONFIG_PATH ASAN_OPTIONS=detect_stack_use_after_return=0
mkdir -p "$work"
read -ra cflags <<<"$(pkg-config --cflags freehold-heap)"
read -ra libs <<<"$(pkg-config --libs freehold-heap)"

# reported PROGRAM EXPECTED KIND HEAP BYTES: it ends with EXPECTED and names the function that did it.
reported() {
  local program=$1 expected=$2 out
  shift 2
  if out=$("$program" "$@" 2>&1); then
    echo "$*: not seen"
    exit 1
  fi
  if ! grep -Eq "$expected" <<<"$out" || { [[ $expected == *Sanitizer* ]] && ! grep -q "in .*misuse" <<<"$out"; }; then
    printf '%s: expected "%s", got\n%s\n' "$*" "$expected" "$out"
    exit 1
  fi
}

for level in -O0 -O2; do
  program=$work/heap$level
  "$cxx" "$level" -g1 -std=c++20 -fsanitize=address -fno-omit-frame-pointer "${cflags[@]}" "$sources/heap.cpp" -o "$program" "${libs[@]}"
  for heap in shared locked; do
    for bytes in 0 40 16000 60000; do
      reported "$program" "AddressSanitizer: (use-after-poison|heap-use-after-free)" release_twice $heap $bytes
      reported "$program" "AddressSanitizer: (use-after-poison|heap-use-after-free)" release_twice_with_size $heap $bytes
      reported "$program" "AddressSanitizer: (use-after-poison|heap-use-after-free)" use_after_release $heap $bytes
    done
    reported "$program" "freehold: free of a pointer into the middle of a block" release_interior $heap 40
  done
  for seed in 1 $RANDOM; do
    "$program" innocent "$seed" || { echo "$program innocent $seed" && exit 1; }
  done
done

read -ra cflags <<<"$(pkg-config --cflags freehold-pool)"
read -ra libs <<<"$(pkg-config --libs freehold-pool)"
"$cxx" -O0 -g1 -w -std=c++20 -fsanitize=address "${cflags[@]}" "$sources/pool.cpp" -o "$work/pool" "${libs[@]}"
for pool in best single-thread tagged-stack; do
  "$work/pool" innocent $pool >"$work/pool.out"
  reported "$work/pool" "freehold: double free" release_twice $pool
done

# Freehold's malloc beside the sanitizer's: one line, and no crash.
read -ra libs <<<"$(pkg-config --libs freehold-static)"
read -ra cflags <<<"$(pkg-config --cflags freehold-static)"
"$cxx" -fsanitize=address -std=c++20 "${cflags[@]}" "$sources/../project/active.cpp" -o "$work/malloc" "${libs[@]}"
status=0
out=$("$work/malloc" 2>&1) || status=$?
[[ $status == 2 && $out == "freehold: this program is built with a sanitizer"* ]] || { echo "beside freehold-static: $status: $out"; exit 1; }
