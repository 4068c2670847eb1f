// SPDX-License-Identifier: MIT
// Does: threads write numbers into string streams of their own, one for each number.
// Why:  every stream copies the global locale, whose references all threads count in one place; people found it by profiles
//       and benchmarks. github.com/llvm/llvm-project/pull/73533, rebuilt from that description alone.
// Case stream_locale: {n} 2500000
//   Truth: own-sharing
//   Right: own-sharing
#include <sstream>

#include "tests/doctor/public/rebuilt.hpp"

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned me, long numbers) {
    for (long i = 0; i < numbers; ++i) {
      std::ostringstream text;
      text << (i & 1023) + me;
      rebuilt::keep(text);
    }
  });
}
