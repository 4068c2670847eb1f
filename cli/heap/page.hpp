// SPDX-License-Identifier: MIT
// A heap profile as one HTML page that needs nothing else: flame graphs, and sites to sort and to search.
// cli/report/heap.html and heap.js within the frame that all pages share.
#pragma once
#include <string>

#include "cli/heap/profile.hpp"

namespace freehold::cli::heap {

// In use now and at the peak. At most kPageStacks stacks of each, the heaviest; the page says what is left out.
[[nodiscard]] std::string page_of(const HeapProfile& profile);
// What grew and what shrank between two profiles at that moment, and both.
[[nodiscard]] std::string growth_page_of(const HeapProfile& before, const HeapProfile& after, Moment moment);

}  // namespace freehold::cli::heap
