// SPDX-License-Identifier: MIT
// A pool of threads serves requests in turn; each builds one large answer and frees it, while small data stays.
// People measured that the peak of one request stays resident once for each thread of the pool, and half of it
// with two arenas.
#include "tests/doctor/corpus/programs/rebuilt.hpp"

int main(int, char** argv) {
  std::vector<rebuilt::Block> kept(64);
  std::vector<std::thread> pool;
  for (int me = 0; me < std::atoi(argv[1]); ++me)
    pool.emplace_back([&, me] {
      rebuilt::idle(20 * me);  // one request at a time
      std::vector<rebuilt::Block> answer;
      for (int i = 0; i < 12'000; ++i) answer.push_back(rebuilt::block(400));
      kept[static_cast<std::size_t>(me)] = std::move(answer.back());
      answer.clear();
      rebuilt::idle(600);
    });
  for (std::thread& thread : pool) thread.join();
}
