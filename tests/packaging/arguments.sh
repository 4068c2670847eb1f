#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# script/package answers bad arguments with one line and status 2.
#   arguments.sh SCRIPT
set -euo pipefail
package=$1
empty=$(mktemp -d)
trap 'rmdir "$empty"' EXIT

# refuses WORD...: the script, with these arguments.
refuses() {
  local status=0 said
  said=$("$package" "$@" 2>&1 </dev/null) || status=$?
  if ((status != 2)) || [[ $(wc -l <<<"$said") != 1 ]]; then
    printf 'script/package %s: status %s\n%s\n' "$*" "$status" "$said"
    exit 1
  fi
}
refuses
refuses --test
refuses nosuch
refuses --test nosuch
refuses ../script
refuses deb --nosuch
refuses --test deb --nosuch
refuses wheel --nosuch
refuses wheel --build
refuses wheel --build "$empty"
refuses wheel --build "$empty" more
refuses --test wheel --machine
refuses --test wheel --machine nosuch
refuses crate --nosuch
refuses --test crate --nosuch
refuses conan --nosuch
refuses --test conan --nosuch
refuses vcpkg --nosuch
refuses --test vcpkg --nosuch
refuses container more
refuses --test container more
