// SPDX-License-Identifier: MIT
/* A library that is preloaded, with its own malloc: libc's. */
#include <stddef.h>

extern void* __libc_malloc(size_t bytes);
extern void __libc_free(void* block);

void* malloc(size_t bytes) { return __libc_malloc(bytes); }
void free(void* block) { __libc_free(block); }
