// SPDX-License-Identifier: MIT
// Threads look values up in one dictionary, and copy its shared_ptr for each of them.
// People found that the reference count of the dictionary was the bottleneck of a pipeline, and used plain
// pointers.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

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
