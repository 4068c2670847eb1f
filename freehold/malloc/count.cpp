// SPDX-License-Identifier: MIT
// freehold_count_begin() and freehold_count_end() of freehold/malloc.h.
#include "freehold/alloc/observe/count.hpp"

#include <errno.h>
#include <stddef.h>

#include "freehold/base/sized_struct.hpp"
#include "freehold/malloc.h"
#include "freehold/malloc/export.hpp"

namespace alloc = freehold::alloc;

extern "C" {

FREEHOLD_EXPORT int freehold_count_begin(int on_allocation) {
  if (on_allocation < FREEHOLD_COUNT || on_allocation > FREEHOLD_ABORT_AFTER_REPORT) {
    errno = EINVAL;
    return -1;
  }
  return alloc::begin_count(static_cast<alloc::OnAllocation>(on_allocation)) ? 0 : -1;
}

FREEHOLD_EXPORT int freehold_count_end(freehold_count_t* out, size_t size) {
  alloc::Counts counts;
  if (out == nullptr || size < sizeof out->size || !alloc::end_count(counts)) {
    errno = EINVAL;
    return -1;
  }
  const freehold_count_t ours{sizeof ours,        counts.allocations, counts.frees, counts.allocated_bytes,
                              counts.freed_bytes, counts.peak_bytes};
  return freehold::base::fill_sized(out, size, ours) ? 0 : -1;
}

}  // extern "C"
