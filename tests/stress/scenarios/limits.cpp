// SPDX-License-Identifier: MIT
// Memory that runs out: an answer, not a crash; and memory that comes back can be used again.
#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <new>

#include "tests/stress/scenarios/scenario.hpp"

namespace freehold::test {
namespace {

struct Link {
  Link* next;
};

// Takes blocks of n bytes until there are no more. Returns how many bytes there were.
std::size_t exhaust(std::size_t n, Link*& chain) {
  std::size_t bytes = 0;
  for (;;) {
    errno = EBADMSG;
    auto* link = static_cast<Link*>(CApi::allocate(n));
    if (link == nullptr) break;
    require(errno == EBADMSG, "a malloc that found memory has changed errno");
    std::memset(link, 1, n);
    link->next = chain;
    chain = link;
    bytes += n;
    require(bytes < std::size_t{8} << 30, "no limit is in force");
  }
  require(errno == ENOMEM, "errno is not ENOMEM");
  return bytes;
}
void release(Link*& chain) {
  while (chain != nullptr) {
    Link* next = chain->next;
    CApi::deallocate(chain);
    chain = next;
  }
}

// limits_exhaust_and_recover: the figures are the least and the greatest that a size could get.
SCENARIO(limits_exhaust_and_recover) {
  double least = 1e9, greatest = 0;
  for (const std::size_t n : {std::size_t{64}, std::size_t{1000}, 20 * kKiB, 200 * kKiB, 3 * kMiB, std::size_t{64}}) {
    Link* chain = nullptr;
    const std::size_t bytes = exhaust(n, chain);
    // At the limit all calls still answer.
    require(CApi::reallocate(chain, 900 * kMiB) == nullptr, "a resize beyond the limit");
    require(CApi::allocate_zeroed(900 * kMiB) == nullptr, "a block beyond the limit");
    require(CApi::allocate_aligned(64 * kMiB, 64 * kMiB) == nullptr || bytes < 64 * kMiB,
            "an aligned block beyond the limit");
    release(chain);
    CApi::trim();
    std::printf("blocks_of %zu %.1f\n", n, static_cast<double>(bytes) / kMiB);
    least = std::min(least, static_cast<double>(bytes) / kMiB);
    greatest = std::max(greatest, static_cast<double>(bytes) / kMiB);
  }
  figure("least_mib", least);
  figure("greatest_mib", greatest);
  Churn(1, 100, 16 * kKiB).run(20'000);
}

// limits_large_after_small: what small blocks have left serves a large one, whose limit counts it still; and small ones
// again.
SCENARIO(limits_large_after_small) {
  constexpr std::size_t kLarge = 9 * kMiB;
  Table<char*> small(number(arguments, 0) * kMiB / 160);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < small.size(); ++i) {
      small[i] = static_cast<char*>(CApi::allocate(16 + i % 288));
      require(small[i] != nullptr, "small blocks do not fit");
      std::memset(small[i], static_cast<int>(i), 16 + i % 288);
    }
    for (std::size_t i = 0; i < small.size(); ++i) {
      require(small[i][15] == static_cast<char>(i), "a small block has changed");
      CApi::deallocate(small[i]);
    }
    auto* const large = static_cast<char*>(CApi::allocate_zeroed(kLarge));
    require(large != nullptr, "a large block where small ones were is refused");
    require(std::all_of(large, large + kLarge, [](char c) { return c == 0; }), "a zeroed block is not zero");
    std::memset(large, 1, kLarge);
    CApi::deallocate(large);
  }
}

// Starts n threads that wait, with no malloc of their own before; `before` runs, then all of them run `work`.
template <class Before, class Work>
void in_waiting_threads(std::size_t n, Before&& before, Work& work) {
  struct Shared {
    Work& work;
    std::atomic<unsigned> next{0};
    std::atomic<bool> go{false};
  } shared{work};
  SmallStacks stacks(256 * kKiB);
  std::vector<pthread_t> threads(n);
  for (pthread_t& t : threads)
    t = stacks.start(
        [](void* argument) -> void* {
          auto& common = *static_cast<Shared*>(argument);
          while (!common.go) ::usleep(100);
          common.work(common.next++);
          return nullptr;
        },
        &shared);
  before();
  shared.go = true;
  for (pthread_t t : threads) pthread_join(t, nullptr);
}

SCENARIO(limits_four_threads_exhaust) {
  for (int round = 0; round < 3; ++round) {
    auto work = [](unsigned t) {
      Link* chain = nullptr;
      exhaust(std::size_t{100} << 3 * t, chain);
      release(chain);
    };
    in_waiting_threads(4, [] {}, work);
  }
  CApi::trim();
  Churn(1, 100, 16 * kKiB).run(20'000);
}

// Threads that begin and end while there is nothing left: no cache can be made for them.
SCENARIO(limits_threads_at_exhaustion) {
  for (int round = 0; round < 5; ++round) {
    Link* chain = nullptr;
    auto work = [](unsigned) {
      for (int i = 0; i < 100; ++i) {
        void* p = CApi::allocate(100);
        if (p != nullptr) std::memset(p, 1, 100);
        CApi::deallocate(p);
      }
    };
    const auto fill_up = [&] {
      exhaust(32 * kKiB, chain);
      exhaust(48, chain);
    };
    in_waiting_threads(6, fill_up, work);
    release(chain);
  }
  CApi::trim();
  Churn(1, 100, 16 * kKiB).run(20'000);
}

SCENARIO(limits_operator_new_throws) {
  std::vector<char*> blocks;
  blocks.reserve(1 << 20);
  bool thrown = false;
  try {
    for (;;) {
      blocks.push_back(new char[50'000]);
      std::memset(opaque(blocks.back()), 1, 50'000);
      require(blocks.size() < 100'000, "no limit is in force");
    }
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  require(thrown, "nothing was thrown");
  for (char* p : blocks) delete[] p;
  blocks.assign(1000, nullptr);
  for (char*& p : blocks) p = new char[5000];
  for (char* p : blocks) delete[] p;
}

// Threads that go on at the same moment, as nearly as a machine can: they do not sleep.
class StartLine {
 public:
  explicit StartLine(unsigned threads) : threads_(threads) {}
  void wait() {
    const unsigned round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_ = 0;
      round_ = round + 1;
    }
    for (unsigned looks = 0; round_.load() == round; ++looks)
      if (looks > 1000) ::sched_yield();
  }

 private:
  const unsigned threads_;
  std::atomic<unsigned> arrived_{0}, round_{0};
};

// To the n-th CPU that the program may use, counted round: on one CPU threads seldom meet.
void stay_on_cpu(unsigned n) {
  cpu_set_t all, one;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) return;
  n %= static_cast<unsigned>(CPU_COUNT(&all));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all) && n-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ::sched_setaffinity(0, sizeof one, &one);
      return;
    }
}

// Threads ask at the same time for more than half of the limit each (the environment's, of 1 GiB): one gets it at most.
SCENARIO(limits_large_blocks_at_once) {
  constexpr unsigned kThreads = 4, kRounds = 5000;
  constexpr std::size_t kBytes = 600 * kMiB;
  StartLine line(kThreads);
  std::atomic<unsigned> granted{0};
  unsigned most = 0, rounds_with_more = 0, rounds_with_none = 0;
  in_threads(kThreads, [&](unsigned thread) {
    stay_on_cpu(thread);
    for (unsigned round = 0; round < kRounds; ++round) {
      line.wait();
      void* const block = CApi::allocate(kBytes);
      granted += block != nullptr;
      line.wait();
      if (thread == 0) {
        const unsigned now = granted.exchange(0);
        most = std::max(most, now);
        rounds_with_more += now > 1;
        rounds_with_none += now == 0;
      }
      CApi::deallocate(block);
      line.wait();
    }
  });
  figure("rounds_with_none", rounds_with_none);
  figure("rounds_with_more", rounds_with_more);
  figure("most_at_once", most);
}

// limits_live_data MIB [THREADS]: so much is live, in each thread a share, sizes from 64 bytes to 512 KiB at random; blocks
// are replaced until all were, then half is freed and taken again in other sizes, three times.
void replace_live_data(std::size_t most, std::size_t seed) {
  constexpr std::size_t kMean = 10'000;
  struct Block {
    char* address;
    std::size_t bytes;
  };
  std::vector<Block> blocks;
  blocks.reserve(most / kMean * 2);
  std::size_t live = blocks.capacity() * sizeof(Block);
  Random random(seed);
  const auto fill = [&] {
    std::size_t taken = 0;
    for (;;) {
      const std::size_t octave = std::size_t{64} << random.below(13), bytes = octave + random.below(octave);
      if (live + bytes > most || blocks.size() == blocks.capacity()) return taken;
      auto* const block = static_cast<char*>(CApi::allocate(bytes));
      require(block != nullptr, "no memory");
      std::memset(block, 1, bytes);
      blocks.push_back({block, bytes});
      live += bytes;
      taken += bytes;
    }
  };
  const auto drop = [&] {
    const std::size_t i = random.below(blocks.size());
    CApi::deallocate(blocks[i].address);
    live -= blocks[i].bytes;
    blocks[i] = blocks.back();
    blocks.pop_back();
  };
  for (int round = 0; round < 3; ++round) {
    fill();
    for (std::size_t replaced = 0; replaced < most; replaced += fill()) drop();
    for (std::size_t half = blocks.size() / 2; half != 0; --half) drop();
  }
  for (const Block& block : blocks) CApi::deallocate(block.address);
}
SCENARIO(limits_live_data) {
  const std::size_t most = count_of(arguments, 100) * kMiB;
  const unsigned threads = arguments.size() < 2 ? 1 : count_of({arguments[1]}, 1);
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(replace_live_data, most / threads, t);
  replace_live_data(most / threads, threads);
  for (std::thread& thread : others) thread.join();
}

// limits_live_data_and_cut MIB FILE BYTES: the same once the limit that stands in the file was changed.
SCENARIO(limits_live_data_and_cut) {
  std::ofstream limit(arguments.at(1));
  require(static_cast<bool>(limit << arguments.at(2) << std::flush), "no other limit");
  replace_live_data(count_of(arguments, 100) * kMiB, 1);
}

// limits_sizes_that_change: fills 40 MiB with blocks of one size, of which one in 200 stays; 64 sizes. How much was
// resident.
SCENARIO(limits_sizes_that_change) {
  constexpr std::size_t kLive = 40 * kMiB, kSizes = 64;
  std::vector<std::pair<char*, std::size_t>> blocks;
  blocks.reserve(kLive / 64);
  Random random(7);
  std::size_t live = 0;
  for (std::size_t size = 1; size <= kSizes; ++size) {
    for (const std::size_t bytes = 64 * size; live + bytes <= kLive; live += bytes) {
      blocks.emplace_back(static_cast<char*>(CApi::allocate(bytes)), bytes);
      require(blocks.back().first != nullptr, "no memory");
      std::memset(blocks.back().first, 1, bytes);
    }
    std::erase_if(blocks, [&](const auto& block) {
      if (random.below(200) == 0) return false;
      live -= block.second;
      CApi::deallocate(block.first);
      return true;
    });
  }
  figure("peak_mib", peak_mib());
}

std::atomic<std::size_t> calls, told_used, told_limit;

using Callback = void (*)(std::size_t, std::size_t, void*);
void on_memory_pressure(Callback callback, void* context) {
  const auto set = reinterpret_cast<void (*)(Callback, void*)>(::dlsym(RTLD_DEFAULT, "freehold_on_memory_pressure"));
  require(set != nullptr, "no freehold_on_memory_pressure");
  set(callback, context);
}

// limits_callback BYTES: takes 24 MiB in blocks of this size beside a group that is nearly full, and is called back, which
// may allocate.
SCENARIO(limits_callback) {
  const std::size_t bytes = count_of(arguments, kMiB);
  static int context;
  on_memory_pressure(
      [](std::size_t used, std::size_t limit, void* given) {
        require(given == &context, "another context");
        CApi::deallocate(CApi::allocate(2 * kMiB));
        ++calls;
        told_used = used;
        told_limit = limit;
      },
      &context);
  for (std::size_t taken = 0; taken < 24 * kMiB; taken += bytes) {
    auto* const block = static_cast<char*>(CApi::allocate(bytes));
    require(block != nullptr, "no memory");
    std::memset(block, 1, bytes);
  }
  figure("calls", static_cast<double>(calls));
  figure("used_mib", static_cast<double>(told_used) / kMiB);
  figure("limit_mib", static_cast<double>(told_limit) / kMiB);
  on_memory_pressure(nullptr, nullptr);
  const std::size_t before = calls;
  for (int i = 0; i < 8; ++i) require(CApi::allocate(kMiB) != nullptr, "no memory");
  require(calls == before, "called after it was withdrawn");
}

// limits_callback_frees: sheds blocks of the size that is being allocated. None is lost: the newest is the next to be used.
SCENARIO(limits_callback_frees) {
  static std::vector<void*> shed(200);
  static void* newest = nullptr;
  for (void*& block : shed) block = CApi::allocate(64);
  on_memory_pressure(
      [](std::size_t, std::size_t, void*) {
        ++calls;
        for (int i = 0; i < 4 && !shed.empty(); ++i, shed.pop_back()) CApi::deallocate(newest = shed.back());
      },
      nullptr);
  for (std::size_t taken = 0; taken < 24 * kMiB; taken += 64) {
    newest = nullptr;
    require(CApi::allocate(64) != nullptr, "no memory");
    if (void* const freed = newest; freed != nullptr) require(CApi::allocate(64) == freed, "a freed block was lost");
  }
  figure("calls", static_cast<double>(calls));
}

// limits_growth: a block that is half of the limit grows page by page, and one of ten times the limit is never used.
SCENARIO(limits_growth) {
  on_memory_pressure([](std::size_t, std::size_t, void*) { ++calls; }, nullptr);
  void* block = CApi::allocate(50 * kMiB);
  for (std::size_t i = 1; i <= 20; ++i) block = CApi::reallocate(block, 50 * kMiB + i * 4 * kKiB);
  CApi::deallocate(CApi::allocate(1000 * kMiB));
  figure("calls", static_cast<double>(calls));
}

// limits_cancelled: malloc is no place where a thread is cancelled, be it at a look at the limit.
SCENARIO(limits_cancelled) {
  pthread_t thread;
  const auto work = [](void*) -> void* {
    pthread_cancel(pthread_self());
    CApi::deallocate(CApi::allocate(20 * kMiB));
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    return nullptr;
  };
  void* result = PTHREAD_CANCELED;
  require(pthread_create(&thread, nullptr, work, nullptr) == 0 && pthread_join(thread, &result) == 0, "no thread");
  require(result == nullptr, "cancelled in malloc");
}

}  // namespace
}  // namespace freehold::test
