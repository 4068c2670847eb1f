#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The consumer's programs, built with what pkg-config says about an installed Freehold.
#   pkg_config.sh INSTALL_PREFIX WORK_FOLDER CC CXX
set -euo pipefail
prefix=$1 work=$2 cc=$3 cxx=$4
sources=$(dirname "${BASH_SOURCE[0]}")/project

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name freehold.pc)")
export PKG_CONFIG_PATH
mkdir -p "$work"
# use PACKAGES SOURCE NEEDED: builds and runs the program; NEEDED of Freehold's shared libraries it needs.
use() {
  local package=$1 source=$2 needed=$3 compiler=$cxx standard="-O2 -std=c++20" program=$work/$1-$2.out
  if [[ $source == *.c ]]; then compiler=$cc standard=-std=c11; fi
  local cflags libs libdir
  read -ra cflags <<<"$(pkg-config --cflags "$package")"
  read -ra libs <<<"$(pkg-config --libs "$package")"
  libdir=$(pkg-config --variable=libdir "${package%% *}")
  "$compiler" $standard "${cflags[@]}" "$sources/$source" -o "$program" -Wl,--as-needed "${libs[@]}" -Wl,-rpath,"$libdir"
  echo "$package, $source:"
  "$program"
  [[ $(readelf -d "$program" | grep -c 'NEEDED.*libfreehold' || true) == "$needed" ]]
}
for source in active.c active.cpp unmentioned.c; do
  use freehold "$source" 1
  use freehold-static "$source" 0
done
# Scopes and counts, for which a program has heaps and Freehold's malloc.
use freehold scope.c 1
for source in scope.c scope.cpp; do
  use "freehold-heap freehold" "$source" 1
  use "freehold-heap freehold-static" "$source" 0
done
# Each part by itself, which leaves malloc alone.
use freehold-pool pool.cpp 0
use freehold-pool pool_only.cpp 0
use freehold-heap heap.cpp 0
use freehold-heap heap.c 0
use freehold-timer timer.cpp 0
use freehold-process process.cpp 0
use freehold-process-c process_c.c 1
use freehold-thread-alloc thread_alloc.c 0
use freehold-thread-alloc-owner-pages thread_alloc.c 0
use freehold-thread-alloc-article thread_alloc.c 0
# By Meson, whose libraries come from pkg-config, too; the prefix is not one where the linker looks by itself.
rm -rf "$work/meson"
CC=$cc CXX=$cxx meson setup "$work/meson" "$(dirname "$sources")" >"$work/meson.log" && meson test -C "$work/meson" >>"$work/meson.log" ||
  { cat "$work/meson.log"; exit 1; }
