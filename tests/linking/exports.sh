#!/usr/bin/env bash
# libfreehold.so exports its API, all of it and nothing else; it needs libc alone; and its thread-local storage is a few
# words, so that a program which loads it late has room for it. Once loaded it stays.
#   exports.sh LIBRARY
set -euo pipefail
library=$1

wanted() {
  printf '%s\n' malloc free calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc cfree \
    malloc_usable_size free_sized free_aligned_sized malloc_trim mallinfo mallinfo2 mallopt malloc_stats malloc_info \
    freehold_is_active freehold_trim freehold_idle freehold_set_limit freehold_stats freehold_class_stats
  printf '%s\n' __libc_{malloc,free,cfree,calloc,realloc,memalign,valloc,pvalloc} __posix_memalign
  # operator new and new[]: plain, nothrow, aligned, aligned nothrow; operator delete and delete[]: the same, and sized.
  printf '%s\n' _Zn{w,a}m{,RKSt9nothrow_t,St11align_val_t,St11align_val_tRKSt9nothrow_t} \
    _Zd{l,a}Pv{,m,RKSt9nothrow_t,St11align_val_t,mSt11align_val_t,St11align_val_tRKSt9nothrow_t}
}
diff <(wanted | sort) <(nm --dynamic --defined-only --format=posix "$library" | cut -d' ' -f1 | sort) || {
  echo "the exports (>) are not the expected ones (<)"
  exit 1
}

needed=$(readelf --wide --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux')
[[ $needed == libc.so.6 ]] || { echo "needs $needed"; exit 1; }
# What it uses of a C++ runtime is weak.
strong=$(nm --dynamic --undefined-only --format=posix "$library" | grep -E ' U$|U +$' | grep -E '^(_Z|__cxa_(begin|end|throw)|__gxx)' || true)
[[ -z $strong ]] || { echo "must have: $strong"; exit 1; }
tls=$(readelf --wide --program-headers "$library" | awk '$1 == "TLS" { print $6 }')
((${tls:-0} <= 64)) || { echo "$tls bytes of thread-local storage"; exit 1; }
# dlclose must leave it where it is: other threads' destructors and blocks point into it.
readelf --wide --dynamic "$library" | grep -q 'FLAGS_1.*NODELETE' || { echo "may be unloaded"; exit 1; }
