#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libfreehold.so exports what its version script lists, all of it and nothing else; it needs libc alone; and its thread-local
# storage is a few words, so that a program which loads it late has room for it. Once loaded it stays.
#   exports.sh LIBRARY SCRIPT
set -euo pipefail
library=$1
"$(dirname "$0")"/symbols.sh "$library" "$2"

needed=$(readelf --wide --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
[[ $needed == libc.so.6 ]] || { echo "needs $needed"; exit 1; }
# What it uses of a C++ runtime is weak.
strong=$(nm --dynamic --undefined-only --format=posix "$library" | grep -E ' U$|U +$' | grep -E '^(_Z|__cxa_(begin|end|throw)|__gxx)' || true)
[[ -z $strong ]] || { echo "must have: $strong"; exit 1; }
tls=$(readelf --wide --program-headers "$library" | awk '$1 == "TLS" { print $6 }')
((${tls:-0} <= 64)) || { echo "$tls bytes of thread-local storage"; exit 1; }
# dlclose must leave it where it is: other threads' destructors and blocks point into it.
readelf --wide --dynamic "$library" | grep -q 'FLAGS_1.*NODELETE' || { echo "may be unloaded"; exit 1; }
