#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A static Rust program of musl with Freehold as its allocator, beside one with musl's malloc (packaging/rust/musl): what is resident,
# and instructions. No package has Rust's standard library for musl: it is compiled from Debian's rust-web-src, with the crates that it
# names. Exit code 77, and a line that says why: something cannot be had here.
#   musl_static_rust.sh FOLDER CXX FLAGS LIBUNWIND
set -euo pipefail

folder=$1 cxx=$2 flags=$3 unwinder=$4
root=$(realpath "$(dirname "$0")/../..")
skip() {
  echo "musl_static_rust: not tested: $1"
  exit 77
}

cargo=
for rustc in $(type -ap rustc); do
  cargo=${rustc%rustc}cargo
  [[ -x $cargo && -d $("$rustc" --print sysroot)/lib/rustlib/src/rust/library/std ]] && break
  cargo=
done
[[ $cargo ]] || skip "there is no Rust with the sources of its standard library: script/bootstrap musl_rust"

mkdir -p "$folder/program"
cp -r "$root/packaging/rust/musl/." "$folder/program" # a copy, since cargo writes its lock file beside it
sed -i "s|path = \"\.\.\"|path = \"$root/packaging/rust\"|" "$folder/program/Cargo.toml"
# Debian's unwinder, by which the standard library finds callers, was built for glibc: it needs a few names of glibc's.
musl-gcc -O2 -c "$root/tests/support/glibc_names.c" -o "$folder/glibc_names.o"
printf '#!/bin/sh\nexec musl-gcc "$@" "%s" -l:libc.a\n' "$folder/glibc_names.o" >"$folder/linker"
chmod +x "$folder/linker"

! command -v ccache >/dev/null || cxx="ccache $cxx"
target=x86_64-unknown-linux-musl
export RUSTC=$rustc RUSTC_BOOTSTRAP=1 CARGO_TERM_COLOR=never CARGO_TARGET_DIR=$folder/target
export CXX_x86_64_unknown_linux_musl=$cxx CXXFLAGS_x86_64_unknown_linux_musl=$flags
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER=$folder/linker
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS="-C link-self-contained=no -C relocation-model=static -L native=${unwinder%/*}"
arguments=(--quiet --manifest-path "$folder/program/Cargo.toml" --target "$target" -Z "build-std=std,panic_abort")
"$cargo" fetch "${arguments[@]}" || skip "the crates that the standard library is made of cannot be had"
"$cargo" build --release "${arguments[@]}"

ours=$CARGO_TARGET_DIR/$target/release/ours peer=$CARGO_TARGET_DIR/$target/release/peer failed=
fail() {
  echo "musl_static_rust: $1" >&2
  failed=1
}
! readelf --program-headers "$ours" | grep -q INTERP || fail "the program is not static"
"$ours" threads
for mib in 60 20 4; do
  kib=$("$ours" live $mib 6) theirs=$("$peer" live $mib 6)
  echo "$mib MiB live: $kib KiB are resident; with musl's malloc $theirs KiB"
  ((2 * kib <= 3 * theirs)) || fail "more than 1.5 times as much is resident"
done
count() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'; }
instructions=$(count "$ours" live 4 6) theirs=$(count "$peer" live 4 6)
echo "4 MiB live: $instructions instructions; with musl's malloc $theirs"
((2 * instructions <= theirs)) || fail "it executes more than half of the instructions"
[[ ! $failed ]]
