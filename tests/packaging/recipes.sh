#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A release's recipes fetch its tarball by the address and the hash that they name, here from a folder: vcpkg's port by a stand-in for
# vcpkg's functions, which CMake has; Conan's recipe by Conan, in script/package --test conan.
#   recipes.sh TREE CMAKE
set -euo pipefail
tree=$1 cmake=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' "$tree/CMakeLists.txt")
server=$scratch/server/releases/download/v$version
mkdir -p "$server" "$scratch/out"
tar --create --gzip --directory="$tree" --transform="s|^|freehold-$version/|" --file="$server/freehold-$version.tar.gz" CMakeLists.txt LICENSE cmake
fail() { echo "$1" && exit 1; }

export SOURCE_DATE_EPOCH=1700000000
recipes() { "$tree/packaging/release/recipes" "$server/freehold-$version.tar.gz" "$@"; }
recipes "file://$scratch/server" "$scratch/out"
before=$(sha256sum "$scratch"/out/*)
sleep 1.1 && recipes "file://$scratch/server" "$scratch/out"
[[ $(sha256sum "$scratch"/out/*) == "$before" ]] || fail "the same recipes have other bytes"
for file in "$scratch"/out/*.tgz; do tar --extract --gzip --directory="$scratch" --file="$file"; done
grep -q "homepage.*file://$scratch/server" "$scratch/conan/conandata.yml" || fail "Conan's recipe lacks the address"
grep -q "sha256: \"$(sha256sum <"$server/freehold-$version.tar.gz" | cut -d' ' -f1)\"" "$scratch/conan/conandata.yml" || fail "Conan's recipe lacks the hash"
grep -q "\"homepage\": \"file://$scratch/server\"" "$scratch/freehold/vcpkg.json" || fail "the port lacks the address"
grep -q "^+  checkout fh \$version_fh file://$scratch/server$" "$scratch/out/freehold-$version-mimalloc-bench.patch" || fail "mimalloc-bench's entry lacks the address"
git apply --numstat "$scratch/out/freehold-$version-mimalloc-bench.patch" >/dev/null || fail "mimalloc-bench's entry is no patch"

cat >"$scratch/vcpkg.cmake" <<'END'
function(vcpkg_download_distfile variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "URLS;FILENAME;SHA512" "")
  file(DOWNLOAD "${arg_URLS}" "${WORK}/${arg_FILENAME}" STATUS status EXPECTED_HASH SHA512=${arg_SHA512})
  set(${variable} "${WORK}/${arg_FILENAME}" PARENT_SCOPE)
endfunction()
function(vcpkg_extract_source_archive variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${WORK}/source")
  file(GLOB folder "${WORK}/source/*")
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  file(SHA256 "${arg_SOURCE_PATH}/CMakeLists.txt" hash)
  message("configures ${hash}")
endfunction()
foreach(name vcpkg_check_features vcpkg_cmake_install vcpkg_cmake_config_fixup vcpkg_fixup_pkgconfig vcpkg_copy_tools vcpkg_install_copyright)
  cmake_language(EVAL CODE "macro(${name})\nendmacro()")
endforeach()
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
set(PORT freehold)
include("${PORTFILE}")
END
port() {
  mkdir -p "$scratch/work"
  (cd "$scratch/freehold" && "$cmake" -DWORK="$scratch/work" -DPORTFILE="$scratch/freehold/portfile.cmake" -P "$scratch/vcpkg.cmake" 2>&1) || true
  rm -rf "$scratch/work"
}
[[ $(port) == *"configures $(sha256sum <"$tree/CMakeLists.txt" | cut -d' ' -f1)"* ]] || fail "the port does not reach the sources: $(port)"
echo more >>"$server/freehold-$version.tar.gz"
[[ $(port) != *configures* ]] || fail "the port takes a tarball with another hash"

for wrong in "" "no address" 'file://a"b'; do
  status=0
  said=$(recipes "$wrong" "$scratch/out" 2>&1) || status=$?
  [[ $status == 2 && $(wc -l <<<"$said") == 1 ]] || fail "the address '$wrong': exit code $status: $said"
done
