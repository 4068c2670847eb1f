#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks libfreehold.so as the dynamic linker sees it: it needs libc alone, has a versioned name, is fully relocated at start
# (no writable function pointers), and exports its API and nothing else.
#   shared_library.sh LIBRARY
set -euo pipefail
library=$1
failed=0
expect() { # what, wanted, got
  [[ $2 == "$3" ]] || { printf '%s: wanted\n%s\ngot\n%s\n' "$1" "$2" "$3"; failed=1; }
}
dynamic=$(readelf --wide --dynamic "$library")
expect "needed libraries" "libc.so.6" "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic" | grep -v '^ld-linux' | sort)"
expect "soname" "libfreehold.so.0.1" "$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' <<<"$dynamic")"
expect "binding" 1 "$(grep -c 'FLAGS_1.*NOW' <<<"$dynamic" || true)"
api='malloc|calloc|realloc|free|reallocarray|posix_memalign|aligned_alloc|memalign|valloc|pvalloc|malloc_usable_size'
api+='|free_sized|free_aligned_sized|malloc_trim|mallinfo2?|mallopt|malloc_stats|malloc_info|cfree'
api+='|__libc_(malloc|free|cfree|calloc|realloc|memalign|valloc|pvalloc)|__posix_memalign'
api+='|dlopen|prctl|syscall|tgkill|vfork' # as libc's: a plugin's malloc, that the program confines itself, signals to the helper, a child's caches
api+='|_Zn[wa].*|_Zd[la].*|freehold_.*|thread_(alloc|realloc|free)'
expect "exports that are not its API" "" \
  "$(nm --dynamic --defined-only --format=posix "$library" | cut -d' ' -f1 | grep -vxE "$api" || true)"
exit "$failed"
