#!/usr/bin/env bash
# The consumer's programs, built with what pkg-config says about an installed Freehold.
#   pkg_config.sh INSTALL_PREFIX WORK_FOLDER CC CXX
set -euo pipefail
prefix=$1 work=$2 cc=$3 cxx=$4
sources=$(dirname "${BASH_SOURCE[0]}")/project

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name freehold.pc)")
export PKG_CONFIG_PATH
mkdir -p "$work"
for package in freehold freehold-static; do
  read -ra cflags <<<"$(pkg-config --cflags "$package")"
  read -ra libs <<<"$(pkg-config --libs "$package")"
  libdir=$(pkg-config --variable=libdir "$package")
  for source in active.c active.cpp unmentioned.c; do
    case $source in
      *.c) compiler=$cc ;;
      *) compiler=$cxx ;;
    esac
    program=$work/$package-$source.out
    "$compiler" "${cflags[@]}" "$sources/$source" -o "$program" -Wl,--as-needed "${libs[@]}" -Wl,-rpath,"$libdir"
    echo "$package, $source:"
    "$program"
    # Each package is what it claims to be: only the shared one needs libfreehold.so.
    needs=$(readelf -d "$program" | grep -c 'NEEDED.*libfreehold' || true)
    [[ $package == freehold && $needs == 1 || $package == freehold-static && $needs == 0 ]]
  done
done
