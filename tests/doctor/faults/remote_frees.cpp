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
  constexpr const char* kSettings = "mild|small|medium";
  const fault::Options options = fault::options(count, words, kSettings);
  fault::in_threads(options.threads, [&](unsigned me) {
    if (options.is("small"))
      renew(me, options.part(50e3), 64, 0);
    else if (options.is("medium"))
      renew(me, options.part(40e3), 200, 0);
    else if (options.is("mild"))
      renew(me, options.part(20e3), 100, 30);
    else
      fault::no_such_setting(kSettings);
  });
  for (std::atomic<Document*>& document : g_table) delete document.load();
}
