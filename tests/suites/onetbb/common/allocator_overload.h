// SPDX-License-Identifier: MIT
// The malloc under test always replaces the system's: nothing is skipped.
#ifndef FREEHOLD_SUITES_ONETBB_ALLOCATOR_OVERLOAD_H
#define FREEHOLD_SUITES_ONETBB_ALLOCATOR_OVERLOAD_H

#define HARNESS_SKIP_TEST 0
#define MALLOC_UNIXLIKE_OVERLOAD_ENABLED 1

#endif
