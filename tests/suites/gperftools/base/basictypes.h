// SPDX-License-Identifier: MIT
#ifndef FREEHOLD_SUITES_GPERFTOOLS_BASICTYPES_H
#define FREEHOLD_SUITES_GPERFTOOLS_BASICTYPES_H

#include <stdint.h>

typedef int32_t int32;
typedef int64_t int64;
typedef uint32_t uint32;
typedef uint64_t uint64;

#endif
