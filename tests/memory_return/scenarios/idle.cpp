// SPDX-License-Identifier: MIT
// A program that used much memory and now does little: 300,000 blocks of 0.5 to 2 KiB, written, freed in order, then five
// seconds. Nothing is called that asks for memory to be given back, except where a scenario's name says so.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <utility>

#include <semaphore.h>

#include "tests/memory_return/scenarios/probe.hpp"

extern "C" __attribute__((weak)) std::size_t freehold_idle(void);
extern "C" __attribute__((weak)) std::size_t freehold_trim(void);
extern "C" __attribute__((weak)) int freehold_worth_moving(const void*);

namespace freehold::test {
namespace {

constexpr double kIdleSeconds = 5;
constexpr std::size_t kPageBytes = 4096;

std::size_t bytes_of(std::size_t i, std::size_t n) { return i < n / 2 ? 512 : i < n / 6 * 5 ? 1024 : 2048; }

// The mix, one size after the other, as one thread's `n` blocks.
class Mix {
 public:
  explicit Mix(std::size_t n) : blocks_(n) {}
  void allocate() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = allocate_written(bytes_of(i, blocks_.size()));
  }
  // In order; all but every keep-th (0: all).
  void release(std::size_t keep) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (keep != 0 && i % keep == 0) continue;
      CApi::deallocate(blocks_[i]);
      blocks_[i] = nullptr;
    }
  }
  // In order; all but the first share of each size, which lies densely.
  void release_all_but_first(std::size_t share) {
    const std::size_t n = blocks_.size(), starts[] = {0, n / 2, n / 6 * 5, n};
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t i = starts[k] + (starts[k + 1] - starts[k]) / share; i < starts[k + 1]; ++i) {
        CApi::deallocate(blocks_[i]);
        blocks_[i] = nullptr;
      }
  }
  // The pages that the kept blocks lie on, which is the least that can be resident.
  [[nodiscard]] double live_pages_mib() {
    Table<std::uintptr_t> pages(2 * blocks_.size());
    std::size_t n = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i] == nullptr) continue;
      const auto from = reinterpret_cast<std::uintptr_t>(blocks_[i]);
      for (std::uintptr_t page = from / kPageBytes; page <= (from + bytes_of(i, blocks_.size()) - 1) / kPageBytes; ++page)
        pages[n++] = page;
    }
    std::sort(pages.begin(), pages.begin() + n);
    n = static_cast<std::size_t>(std::unique(pages.begin(), pages.begin() + n) - pages.begin());
    return static_cast<double>(n * kPageBytes) / static_cast<double>(kMiB);
  }

 private:
  Table<void*> blocks_;
};

// The most threads that this process was seen to have.
class ThreadWatch {
 public:
  void look() { most_ = std::max(most_, count_threads()); }
  void sleep(double seconds) {
    const double end = wall_seconds() + seconds;
    while (wall_seconds() < end) {
      look();
      ::usleep(50'000);
    }
  }
  [[nodiscard]] double most() const { return static_cast<double>(most_); }

 private:
  std::size_t most_ = 0;
};

// 2,000 pairs of malloc and free a second. `held`: each block stays for half a second; otherwise it is freed at once.
void make_pairs(bool held, ThreadWatch& watch) {
  constexpr std::size_t kBurst = 20, kBurstsPerSecond = 100;
  Table<void*> blocks(held ? kBurst * kBurstsPerSecond / 2 : 1);
  Random random(7);
  std::size_t next = 0;
  const double end = wall_seconds() + kIdleSeconds;
  while (wall_seconds() < end) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      void*& block = blocks[next++ % blocks.size()];
      if (held) CApi::deallocate(block);
      block = allocate_written(512 + random.below(1537));
      if (!held) CApi::deallocate(block);
      if (!held) block = nullptr;
    }
    watch.look();
    ::usleep(1'000'000 / kBurstsPerSecond);
  }
  for (void*& block : blocks) CApi::deallocate(block);
}

void pass_time(const std::string& how, ThreadWatch& watch) {
  if (how == "sleep") return watch.sleep(kIdleSeconds);
  require(how == "pairs" || how == "held", "sleep, pairs or held");
  make_pairs(how == "held", watch);
}

void report(ThreadWatch& watch, double resident) {
  figure("resident_mib", resident);
  watch.look();
  figure("threads", watch.most());
}

// KEEP (every KEEP-th stays, 0: none) and what is done then: sleep, pairs, held.
SCENARIO(idle_one_thread) {
  ThreadWatch watch;
  Mix mix(300'000);
  mix.allocate();
  const double full = private_mib();
  watch.look();
  mix.release(number(arguments, 0));
  const double freed = private_mib();
  pass_time(word(arguments, 1), watch);
  const double resident = private_mib();
  figure("full_mib", full);  // printing allocates: not before the blocks are gone
  figure("freed_mib", freed);
  report(watch, resident);
}

// Fills a thread's cache with blocks of every size up to 32 KiB.
void fill_cache() {
  Table<void*> blocks(64);
  for (std::size_t bytes = 16; bytes <= 32 * kKiB; bytes += bytes / 4) {
    for (void*& block : blocks) block = allocate_written(bytes);
    for (void*& block : blocks) CApi::deallocate(block);
  }
}

// Three threads that did their part and sleep for ever, as a pool of workers without work. Never joined.
class Sleepers {
 public:
  static constexpr unsigned kCount = 3;
  template <class Work>
  explicit Sleepers(Work work) {
    for (unsigned t = 0; t < kCount; ++t)
      std::thread([this, work, t] {
        work(t);
        ++ready_;
        for (;;) ::pause();
      }).detach();
  }
  void await() const {
    while (ready_ != kCount) ::usleep(1000);
  }

 private:
  std::atomic<unsigned> ready_{0};
};

// KEEP, HOW as above; KEEP "dense": the first quarter of each size stays.
SCENARIO(idle_four_threads) {
  ThreadWatch watch;
  static Mix mixes[4] = {Mix(75'000), Mix(75'000), Mix(75'000), Mix(75'000)};
  const std::string keep = word(arguments, 0);
  const auto work = [&keep](unsigned t) {
    mixes[t].allocate();
    if (keep == "dense")
      mixes[t].release_all_but_first(4);
    else
      mixes[t].release(std::strtoull(keep.c_str(), nullptr, 0));
    fill_cache();
  };
  static Sleepers sleepers(work);
  work(3);
  sleepers.await();
  double live = 0;
  for (Mix& mix : mixes) live += mix.live_pages_mib();
  const double freed = private_mib();
  pass_time(word(arguments, 1), watch);
  const double resident = private_mib();
  figure("live_mib", live);
  figure("freed_mib", freed);
  report(watch, resident);
}

// The same with nothing kept where the system refuses one thread more, as RLIMIT_NPROC does: not to root.
SCENARIO(idle_four_threads_and_no_more) {
  static sem_t go;
  static Mix mixes[4] = {Mix(75'000), Mix(75'000), Mix(75'000), Mix(75'000)};
  const auto work = [](unsigned t) {
    mixes[t].allocate();
    mixes[t].release(0);
    fill_cache();
  };
  static Sleepers sleepers([work](unsigned t) {
    ::sem_wait(&go);
    work(t);
  });
  require(::geteuid() != 0 || ::setuid(65534) == 0, "setuid");
  const rlimit none{1, 1};
  require(::setrlimit(RLIMIT_NPROC, &none) == 0, "setrlimit");
  for (unsigned t = 0; t < Sleepers::kCount; ++t) ::sem_post(&go);
  work(3);
  sleepers.await();
  ThreadWatch watch;
  report(watch, private_mib());
}

// 200 MiB of small blocks, freed in any order: nearly all pages become free at the end.
SCENARIO(idle_freed_in_any_order) {
  constexpr std::size_t kBlocks = kMiB, kBytes = 200;
  Table<void*> blocks(kBlocks);
  for (void*& block : blocks) block = allocate_written(kBytes);
  Random random(7);
  for (std::size_t i = kBlocks; i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
  for (void* const block : blocks) CApi::deallocate(block);
  figure("resident_mib", private_mib());
}

// Grows to 256 MiB and shrinks to 1/16 of that, ten times, then sleeps. What giving back costs such a program is printed.
SCENARIO(idle_after_a_sawtooth) {
  constexpr std::size_t kBlocks = 256 * kKiB, kTeeth = 10;
  ThreadWatch watch;
  Table<void*> blocks(kBlocks);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const double cpu = cpu_seconds();
  for (std::size_t tooth = 0; tooth < kTeeth; ++tooth) {
    for (void*& block : blocks)
      if (block == nullptr) block = allocate_written(1024);
    for (std::size_t i = kBlocks / 16; i < kBlocks; ++i) {
      CApi::deallocate(blocks[i]);
      blocks[i] = nullptr;
    }
  }
  ::getrusage(RUSAGE_SELF, &after);
  const double spent = cpu_seconds() - cpu;
  pass_time("sleep", watch);
  const double resident = private_mib();
  figure("minor_faults", static_cast<double>(after.ru_minflt - before.ru_minflt));
  figure("cpu_ms", spent * 1e3);
  figure("live_mib", static_cast<double>(kBlocks / 16) / 1024);
  report(watch, resident);
}

struct Node {
  Node* next;
  char payload[28];
};
// Builds and drops a list of a million nodes, six times; THREADS share it.
SCENARIO(idle_lists_built_and_dropped) {
  const std::size_t threads = number(arguments, 0), nodes = 1'000'000 / threads;
  const auto work = [nodes] {
    for (int round = 0; round < 6; ++round) {
      Node* head = nullptr;
      for (std::size_t i = 0; i < nodes; ++i) {
        auto* const node = static_cast<Node*>(CApi::allocate(sizeof(Node)));
        node->next = head;
        head = node;
      }
      while (head != nullptr) CApi::deallocate(std::exchange(head, head->next));
    }
  };
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  std::thread others[4];
  for (std::size_t t = 1; t < threads; ++t) others[t] = std::thread(work);
  work();
  for (std::size_t t = 1; t < threads; ++t) others[t].join();
  ::getrusage(RUSAGE_SELF, &after);
  figure("minor_faults", static_cast<double>(after.ru_minflt - before.ru_minflt));
}

// An event loop that says when it has nothing to do. THREADS: 1 or 4.
SCENARIO(idle_by_call) {
  using Idle = std::size_t (*)();
  Idle idle = opaque(&freehold_idle);  // the compiler must not take a weak symbol for present
  if (idle == nullptr) return figure("absent", 1);
  static Mix mix(300'000);
  if (number(arguments, 0) == 4) {
    static Sleepers sleepers([](unsigned) { fill_cache(); });
    sleepers.await();
  }
  mix.allocate();
  mix.release(0);
  const std::size_t first = idle();
  const double resident = private_mib();
  const std::size_t second = idle();
  figure("given_back_mib", static_cast<double>(first) / static_cast<double>(kMiB));
  figure("resident_mib", resident);
  figure("given_back_twice_mib", static_cast<double>(second) / static_cast<double>(kMiB));
  Churn(3).run(2000);
}

// A heap of 128 MiB, 16 B to 2 KiB, of which one block in fifteen is left at random. Then the program moves, in any order,
// what is worth it.
SCENARIO(idle_after_moving) {
  constexpr std::size_t kBlocks = 384 * kKiB;
  auto* const worth_moving = opaque(&freehold_worth_moving);
  auto* const trim = opaque(&freehold_trim);
  if (worth_moving == nullptr || trim == nullptr) return figure("absent", 1);
  Random random(7);
  Table<char*> blocks(kBlocks);
  Table<std::size_t> sizes(kBlocks);
  const double before = private_mib();
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::size_t low = std::size_t{16} << random.below(7);
    sizes[i] = low + random.below(low);
    blocks[i] = static_cast<char*>(allocate_written(sizes[i]));
    std::memset(blocks[i], static_cast<int>(i), sizes[i]);
  }
  std::size_t live = 0, left = 0, moved = 0;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (random.below(15) != 0) {
      CApi::deallocate(blocks[i]);
      continue;
    }
    live += sizes[i];
    blocks[left] = blocks[i];
    sizes[left++] = sizes[i] << 8 | (i & 0xff);
  }
  trim();
  const double fragmented = private_mib() - before;
  for (std::size_t i = left; i > 1; --i) {
    const std::size_t j = random.below(i);
    std::swap(blocks[i - 1], blocks[j]);
    std::swap(sizes[i - 1], sizes[j]);
  }
  for (std::size_t i = 0; i < left; ++i) {
    if (worth_moving(blocks[i]) == 0) continue;
    char* const old = blocks[i];
    blocks[i] = static_cast<char*>(CApi::allocate(sizes[i] >> 8));
    std::memcpy(blocks[i], old, sizes[i] >> 8);
    CApi::deallocate(old);
    ++moved;
  }
  trim();
  const double resident = private_mib() - before;
  std::size_t again = 0, damaged = 0;
  for (std::size_t i = 0; i < left; ++i) {
    again += worth_moving(blocks[i]) != 0 ? 1 : 0;
    for (std::size_t b = 0; b < sizes[i] >> 8; ++b)
      damaged += static_cast<unsigned char>(blocks[i][b]) != (sizes[i] & 0xff) ? 1 : 0;
  }
  figure("live_mib", static_cast<double>(live) / static_cast<double>(kMiB));
  figure("fragmented_mib", fragmented);
  figure("resident_mib", resident);
  figure("moved_share", static_cast<double>(moved) / static_cast<double>(left));
  figure("worth_moving_again_share", static_cast<double>(again) / static_cast<double>(left));
  figure("damaged", static_cast<double>(damaged));
}

}  // namespace
}  // namespace freehold::test
