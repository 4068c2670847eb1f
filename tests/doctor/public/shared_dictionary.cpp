// SPDX-License-Identifier: MIT
// Does: threads look values up in one dictionary, and copy its shared_ptr for each of them.
// Why:  people found that the reference count of the dictionary was the bottleneck of a pipeline, and used plain pointers.
//       github.com/hyrise/hyrise-v1/pull/302, rebuilt from that description alone.
// Case shared_dictionary: {n} 40000000
//   Truth: own-sharing
//   Right: own-sharing
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

struct Table {
  std::shared_ptr<std::vector<unsigned>> dictionary = std::make_shared<std::vector<unsigned>>(1024, 3);
  [[nodiscard]] std::shared_ptr<std::vector<unsigned>> dictionary_at() const { return dictionary; }
};

void look_up(const Table& table, int values, unsigned long& sum) {
  unsigned long own = 0;
  for (int i = 0; i < values; ++i) own += (*table.dictionary_at())[static_cast<std::size_t>(i) & 1023];
  sum = own;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, values = argc > 2 ? std::atoi(argv[2]) : 40000000;
  const Table table;
  std::vector<unsigned long> sums(64 * static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] { look_up(table, values / threads, sums[64 * static_cast<std::size_t>(i)]); });
  for (auto& thread : running) thread.join();
  return sums[0] == 1;
}
