// SPDX-License-Identifier: MIT
// Does: threads look values up in one dictionary, and copy its shared_ptr for each of them.
// Why:  people found that the reference count of the dictionary was the bottleneck of a pipeline, and used plain pointers.
//       github.com/hyrise/hyrise-v1/pull/302, rebuilt from that description alone.
// Case shared_dictionary: {n} 40000000
//   Truth: own-sharing
//   Right: own-sharing
#include "tests/doctor/public/rebuilt.hpp"

namespace {

struct Table {
  std::shared_ptr<std::vector<unsigned>> dictionary = std::make_shared<std::vector<unsigned>>(1024, 3);
  [[nodiscard]] std::shared_ptr<std::vector<unsigned>> dictionary_at() const { return dictionary; }
};

}  // namespace

int main(int argc, char** argv) {
  const Table table;
  rebuilt::in_threads(argc, argv, [&](unsigned, long values) {
    unsigned long sum = 0;
    for (long i = 0; i < values; ++i) sum += (*table.dictionary_at())[static_cast<std::size_t>(i) & 1023];
    rebuilt::keep(sum);
  });
}
