/* Freehold's C API beside malloc itself. All functions: any thread, not async-signal-safe. */
#ifndef FREEHOLD_MALLOC_H
#define FREEHOLD_MALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options compiled into a program that cannot set its environment: define this variable, with C linkage and default
   visibility, as a list of NAME:VALUE with commas between. Names and values are those of the FREEHOLD_... variables of
   docs/tuning.md in lower case; a variable that is set wins. Read once, before the first block. Example:

     const char* freehold_options = "purge_delay_ms:100,huge_pages:off";

   Under LD_PRELOAD the program must export it (-rdynamic, or -Wl,--export-dynamic-symbol=freehold_options). */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const char* freehold_options;

/* 1 if malloc in this process is Freehold's: asks malloc for a block and looks whose it is. 0 if another malloc won.
   Cost: one allocation. */
int freehold_is_active(void);

/* Gives all free memory back to the system now, the calling thread's cache included. Returns bytes given back. */
size_t freehold_trim(void);

/* The same for event loops, when there is nothing to do: quick when nothing is due. Returns bytes given back. */
size_t freehold_idle(void);

/* Limits what blocks and the memory kept for them take together, in bytes; 0: no limit. Beyond it free memory goes back
   first; then requests fail with ENOMEM (operator new: the new handler, then std::bad_alloc), and one line on standard error
   says so, once. Blocks that exist stay. Returns the former limit. FREEHOLD_LIMIT_BYTES sets it at the start. */
size_t freehold_set_limit(size_t bytes);

/* Fills `out` with a freehold::alloc::Stats (freehold/alloc/stats.hpp) of at most `size` bytes; returns 0, or -1 with errno
   EINVAL if `size` is not that of the struct this library was built with. Cost: one pass over all spans. */
int freehold_stats(void* out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
