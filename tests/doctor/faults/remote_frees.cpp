// SPDX-License-Identifier: MIT
// Fault: blocks are freed by another thread than the one that allocated them. A table of parsed documents that every
// thread renews: it builds one out of small blocks, puts it into the table and drops the one that was there.
// Two CPUs take, of the time on one: mild 0.7, small 1.1, medium 1.7; with Freehold 0.5 to 0.7, and a third of the time.
#include <atomic>
#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

using Document = std::vector<std::unique_ptr<char[]>>;

std::atomic<Document*> g_table[64];

void renew(unsigned me, std::size_t rounds, std::size_t bytes, std::size_t work) {
  fault::Random random(me);
  for (std::size_t i = 0; i < rounds; ++i) {
    auto made = std::make_unique<Document>(200);
    for (std::unique_ptr<char[]>& word : *made) {
      word.reset(new char[bytes]);
      word[0] = 'x';
      fault::compute(work);
    }
    const std::unique_ptr<Document> dropped(g_table[random() % 64].exchange(made.release()));
  }
}

}  // namespace

int main(int count, char** words) {
  const int code =
      fault::run(count, words,
                 {{"small", fault::each(50e3, [](unsigned me, std::size_t part) { renew(me, part, 64, 0); })},
                  {"medium", fault::each(40e3, [](unsigned me, std::size_t part) { renew(me, part, 200, 0); })},
                  {"mild", fault::each(20e3, [](unsigned me, std::size_t part) { renew(me, part, 100, 30); })}});
  for (std::atomic<Document*>& document : g_table) delete document.load();
  return code;
}
