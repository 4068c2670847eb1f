// SPDX-License-Identifier: MIT
#define MALLOC_ALIGNMENT ((size_t)_Alignof(max_align_t))
#define MALLOC_ALIGN_MASK (MALLOC_ALIGNMENT - 1)
#include <stddef.h>
