// SPDX-License-Identifier: MIT
// The errors that were reported while it lives; the operations go on without the culprit.
#pragma once
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "freehold/base/check.hpp"

namespace freehold::test {

class HeapErrors {
 public:
  HeapErrors() : former_(base::set_fatal_handler(note)) { seen.clear(); }
  ~HeapErrors() { base::set_fatal_handler(former_); }
  HeapErrors(const HeapErrors&) = delete;
  HeapErrors& operator=(const HeapErrors&) = delete;
  struct Seen {
    base::HeapError error;
    const void* address;
    bool operator==(const Seen&) const = default;
  };
  static inline std::vector<Seen> seen;

  // Exactly this one was reported since the last call.
  static void expect(base::HeapError error, const void* at) {
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(std::string_view(base::text(seen[0].error)), base::text(error));
    EXPECT_EQ(seen[0].address, at);
    seen.clear();
  }
  static void expect_none() { EXPECT_TRUE(seen.empty()) << base::text(seen[0].error); }

 private:
  static void note(base::HeapError error, const void* address) { seen.push_back({error, address}); }
  base::FatalHandler former_;
};

}  // namespace freehold::test
