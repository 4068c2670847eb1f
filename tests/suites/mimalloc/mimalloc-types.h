// SPDX-License-Identifier: MIT
/* Constants of mimalloc that its tests use. */
#ifndef FREEHOLD_SUITES_MIMALLOC_TYPES_H
#define FREEHOLD_SUITES_MIMALLOC_TYPES_H

#define MI_DEBUG 0
#define MI_MAX_ALIGN_SIZE 16
#define MI_ALIGNMENT_MAX ((size_t)16 << 20)

#endif
