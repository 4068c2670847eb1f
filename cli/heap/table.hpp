// SPDX-License-Identifier: MIT
// Heap profiles as a terminal shows them: by site, which is the first frame of the program's own (the doctor's rule).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/heap/profile.hpp"

namespace freehold::cli::heap {

struct Site {
  freehold::doctor::Frame frame;  // no function: stacks are not known
  std::string heap;               // the private heap that its blocks lie in; empty: none
  double blocks = 0, bytes = 0;
  std::uint64_t samples = 0;
  double variance = 0;  // variance of the bytes
  // For Moment::kPinned: bytes in use, and the sums of Moment::kSpanPinned.
  double held = 0, others = 0, of_spans = 0;
  std::vector<std::uint32_t> heaviest;  // its heaviest stack: the frames from the site outwards
  double heaviest_bytes = 0;
};

// Those with most bytes first; of a growth, those that changed most.
[[nodiscard]] std::vector<Site> sites_of(const HeapProfile& profile, Moment moment);

// "parse(std::string const&) at parse.cpp:210", "heap orders: no call stack".
[[nodiscard]] std::string site_name(const Site& site);

// Half of the interval that 95 of 100 such estimates lie in, as a share of the bytes; at most 1.
[[nodiscard]] double relative_error(const Site& site);

struct TableOptions {
  Moment moment = Moment::kNow;
  std::size_t top = 20;    // sites; 0: all
  bool stacks = false;     // with the heaviest stack of each site
  bool is_growth = false;  // signs
};
[[nodiscard]] std::string table_of(const HeapProfile& profile, const TableOptions& options);
// Returns a line for each of the sites that pin four fifths of the pinned memory: how much, by which blocks, and what helps.
// A site that pins less than a heap holds has none.
[[nodiscard]] std::string pins_advice_of(const HeapProfile& profile);
// "./prog (process 4711): 48 MiB in 1,000,000 blocks in use, at most 61 MiB; 190 samples, one in 512 KiB".
[[nodiscard]] std::string headline_of(const HeapProfile& profile);

// A heap profile as one HTML page that needs nothing else: flame graphs, and sites to sort and to search.
// tools/output/heap.html and heap.js within the frame that all pages share.

// In use now and at the peak. At most kPageStacks stacks of each, the heaviest; the page says what is left out.
[[nodiscard]] std::string page_of(const HeapProfile& profile);
// Writes what grew and what shrank between two profiles at that moment, and both.
[[nodiscard]] std::string growth_page_of(const HeapProfile& before, const HeapProfile& after, Moment moment);

}  // namespace freehold::cli::heap
