// SPDX-License-Identifier: MIT
#include <stddef.h>

#define PTR_IS_ALIGNED(pointer, alignment) (((unsigned long)(pointer) & ((alignment) - 1)) == 0)
#define PTR_ALIGN_UP(pointer, alignment) \
  ((__typeof__(pointer))(((unsigned long)(pointer) + (alignment) - 1) & ~((unsigned long)(alignment) - 1)))
