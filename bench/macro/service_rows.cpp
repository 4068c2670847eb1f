// SPDX-License-Identifier: MIT
// The rows of `script/bench service` about traffic: survivors of a spike, changing mixes, long tails, threads that come and
// go, and the distribution of a fleet. `service_rows NAME [SCALE]` runs a row, prints one line of JSON, and sleeps until its
// standard input ends; `service_rows --list` names them.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/macro/service.hpp"
#include "freehold/heap_scope.h"

namespace freehold::bench {
namespace {

constexpr double kMiB = 1 << 20;

// The pages that hold a part of one of the blocks, which it sorts.
double held_mib(Block* first, Block* last) {
  std::sort(first, last, [](const Block& a, const Block& b) { return a.start < b.start; });
  std::uintptr_t held = 0, next = 0;
  for (; first != last; ++first) {
    const auto from = reinterpret_cast<std::uintptr_t>(first->start), to = from + first->bytes - 1;
    held += (to >> 12) + 1 - std::max(next, from >> 12);
    next = (to >> 12) + 1;
  }
  return static_cast<double>(held) * 4096 / kMiB;
}

// ---- survivors of a spike -------------------------------------------------------------------------------------------

struct Spike {
  std::size_t bytes;         // size of each block; 0: 16 B to 2 KiB, as many in each doubling
  std::size_t per_survivor;  // blocks that survive or die together
};

// One block in fifteen survives. Figures: live bytes, and the pages that hold a part of one, in MiB.
constexpr std::size_t kSpikeBytes = 400u << 20, kOneIn = 15;

Figures survivors(const Spike& spike, double scale) {
  const auto wanted = scaled(scale, kSpikeBytes);
  SharedTable<Block> blocks(wanted / (spike.bytes != 0 ? spike.bytes : 256) + 1);
  Random random(1);
  std::size_t count = 0;
  for (std::size_t sum = 0; sum < wanted && count < blocks.size(); sum += blocks[count++].bytes)
    blocks[count] = allocate(spike.bytes != 0 ? spike.bytes : random.log_size(4, 11));
  rest();
  std::size_t kept = 0, live = 0;
  for (std::size_t i = 0; i < count; i += spike.per_survivor) {
    const bool dies = random.below(kOneIn) != 0;
    for (std::size_t j = i; j < std::min(count, i + spike.per_survivor); ++j) {
      if (dies) release(blocks[j]);
      if (dies) continue;
      live += blocks[j].bytes;
      blocks[kept++] = blocks[j];
    }
  }
  return {{{"live_mib", static_cast<double>(live) / kMiB}, {"held_mib", held_mib(blocks.begin(), blocks.begin() + kept)}}};
}

constexpr Spike kSpikes[] = {{0, 1}, {0, 1000}, {48, 1}, {1024, 1}};
template <std::size_t kWhich>
Figures survivors_of(double scale) {
  return survivors(kSpikes[kWhich], scale);
}

// A scope of a private heap around a session, if the malloc has such.
class Session {
 public:
  Session() {
    if (create_ == nullptr) return;
    heap_ = create_(nullptr);
    enter_(heap_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (create_ == nullptr) return;
    leave_();
    destroy_(heap_);
  }
  // A block that outlives the session.
  [[nodiscard]] Block allocate_for_good(std::size_t bytes) const {
    if (create_ != nullptr) enter_(nullptr);
    const Block block = allocate(bytes);
    if (create_ != nullptr) leave_();
    return block;
  }

 private:
  template <class Function>
  static Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  }
  decltype(&freehold_heap_create) create_ = find<decltype(freehold_heap_create)>("freehold_heap_create");
  decltype(&freehold_heap_destroy) destroy_ = find<decltype(freehold_heap_destroy)>("freehold_heap_destroy");
  decltype(&freehold_heap_enter) enter_ = find<decltype(freehold_heap_enter)>("freehold_heap_enter");
  decltype(&freehold_heap_leave) leave_ = find<decltype(freehold_heap_leave)>("freehold_heap_leave");
  freehold_heap_t* heap_ = nullptr;
};

// The same in a session that says which of its blocks survive it.
Figures survivors_of_session(double scale) {
  constexpr std::size_t kBytes = 48;
  const auto count = scaled(scale, kSpikeBytes) / kBytes;
  SharedTable<Block> blocks(count), kept(count);
  Random random(1);
  std::size_t dying = 0, surviving = 0;
  {
    const Session session;
    for (std::size_t i = 0; i < count; ++i) {
      if (random.below(kOneIn) != 0)
        blocks[dying++] = allocate(kBytes);
      else
        kept[surviving++] = session.allocate_for_good(kBytes);
    }
    rest();
    for (std::size_t i = 0; i < dying; ++i) release(blocks[i]);
  }
  return {{{"live_mib", static_cast<double>(surviving * kBytes) / kMiB},
           {"held_mib", held_mib(kept.begin(), kept.begin() + surviving)}}};
}

// ---- a thread that only frees ---------------------------------------------------------------------------------------

Figures only_frees(double scale) {
  constexpr std::size_t kRing = 1 << 17, kPublish = 64;
  const auto count = scaled(scale, 6'000'000) / kPublish * kPublish;
  SharedTable<Block> ring(kRing);
  alignas(64) std::atomic<std::uint64_t> made{0};
  alignas(64) std::atomic<std::uint64_t> freed{0};
  run_threads(2, [&](unsigned t) {
    Random random(1);
    for (std::uint64_t i = 0; i < count; i += kPublish) {
      if (t == 0) {
        while (i + kPublish > freed.load(std::memory_order_acquire) + kRing) std::this_thread::yield();
        for (std::uint64_t j = i; j < i + kPublish; ++j) ring[j % kRing] = allocate(random.log_size(4, 11), t);
        made.store(i + kPublish, std::memory_order_release);
      } else {
        while (made.load(std::memory_order_acquire) < i + kPublish) std::this_thread::yield();
        for (std::uint64_t j = i; j < i + kPublish; ++j) release(ring[j % kRing], t);
        freed.store(i + kPublish, std::memory_order_release);
      }
    }
  });
  return {};
}

// ---- mixes that change ------------------------------------------------------------------------------------------------

// Each phase has a mix of sizes and replaces the blocks of the one before at random; one in twenty stays for ever. Figure:
// the pages that hold one of these, in MiB.
Figures phases(double scale) {
  struct Phase {
    unsigned low_log2, high_log2;
  };
  constexpr Phase kPhases[] = {{4, 6}, {6, 8}, {11, 13}, {8, 10}, {14, 16}, {5, 7}, {9, 11}};
  constexpr std::size_t kLiveBytes = 96u << 20;
  SharedTable<Block> blocks(8u << 20), kept(1u << 20);
  Random random(2);
  std::size_t end = 0, stay = 0;
  const auto end_or_keep = [&](Block& block) { random.below(20) != 0 ? release(block) : void(kept[stay++] = block); };
  for (const auto& [low, high] : kPhases) {
    const std::size_t old_count = std::exchange(end, 0), at = blocks.size() - old_count;
    std::shuffle(blocks.begin(), blocks.begin() + old_count, std::minstd_rand(1));
    std::move_backward(blocks.begin(), blocks.begin() + old_count, blocks.end());  // new ones are entered below
    std::size_t sum = 0, dropped = 0, dropped_bytes = 0;
    const auto wanted = scaled(scale, kLiveBytes);
    while (sum < wanted || dropped < old_count) {
      if (sum < wanted) {
        blocks[end] = allocate(random.log_size(low, high));
        sum += blocks[end++].bytes;
      }
      for (; dropped < old_count && (dropped_bytes < sum || sum >= wanted); ++dropped) {
        dropped_bytes += blocks[at + dropped].bytes;
        end_or_keep(blocks[at + dropped]);
      }
    }
  }
  for (std::size_t i = 0; i < end; ++i) end_or_keep(blocks[i]);
  return {{{"held_mib", held_mib(kept.begin(), kept.begin() + stay)}}};
}

// ---- long tails -------------------------------------------------------------------------------------------------------

// Lifetimes in allocations by Pareto's distribution (shape 1.1): most blocks die soon, a few stay nearly for ever.
Figures heavy_tail(double scale) {
  struct Mortal {
    std::uint64_t end;
    Block block;
    bool operator<(const Mortal& other) const { return end > other.end; }
  };
  constexpr double kShape = 1.1, kShortest = 20'000;
  const auto count = scaled(scale, 4'000'000);
  SharedTable<Mortal> heap(4'000'000);
  Random random(3);
  std::size_t n = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double u = static_cast<double>((random.next() >> 11) + 1) / static_cast<double>(1ull << 53);
    const double life = std::min(scale * kShortest * std::pow(u, -1 / kShape), 1e9);
    heap[n++] = {i + static_cast<std::uint64_t>(life), allocate(random.log_size(4, 12))};
    std::push_heap(heap.begin(), heap.begin() + n);
    while (n != 0 && heap[0].end <= i) {
      std::pop_heap(heap.begin(), heap.begin() + n);
      release(heap[--n].block);
    }
  }
  return {};
}

// ---- threads ----------------------------------------------------------------------------------------------------------

// Threads come and go, four at a time. Each replaces blocks that former threads left.
Figures threads(double scale) {
  constexpr unsigned kGenerations = 60, kAtOnce = 4;
  constexpr std::size_t kEach = 40'000;
  const auto places = scaled(scale, kEach);
  SharedTable<Block> blocks(kAtOnce * places);
  for (unsigned generation = 0; generation < kGenerations; ++generation)
    run_threads(kAtOnce, [&](unsigned t) {
      Random random(generation * kAtOnce + t + 1);
      // Another part than the thread of that number had before.
      Block* const part = blocks.begin() + (t + generation) % kAtOnce * places;
      for (std::size_t i = 0; i < places; ++i) {
        Block& block = part[random.below(places)];
        release(block, t);
        if (random.below(4) != 0) block = allocate(random.log_size(4, 11), t);
      }
    });
  return {};
}

// Four threads build caches, drop nine tenths of them, and sleep.
Figures then_idle(double scale) {
  constexpr unsigned kThreads = 4;
  const auto places = scaled(scale, 250'000);
  static SharedTable<Block>* const blocks = new (std::nothrow) SharedTable<Block>(kThreads * places);
  static std::latch loaded(kThreads);
  for (unsigned t = 0; t < kThreads; ++t)
    std::thread([t, places] {
      Random random(t + 1);
      Block* const mine = blocks->begin() + t * places;
      for (std::size_t i = 0; i < places; ++i) mine[i] = allocate(random.log_size(4, 11), t);
      rest();
      for (std::size_t i = 0; i < places; ++i)
        if (random.below(10) != 0) release(mine[i], t);
      loaded.count_down();
      for (;;) pause();
    }).detach();
  loaded.wait();
  return {};
}

// ---- a fleet ----------------------------------------------------------------------------------------------------------

// A server's profile as google/tcmalloc published it (testing/empirical_distributions.cc, "Beta", 2021): sizes, allocations
// a second and live objects, here summed up in bands of half a doubling. Lifetimes follow: live objects / allocations a
// second.
struct Band {
  std::uint32_t bytes, rate, live;
};
constexpr Band kFleet[] = {
    {3, 1900, 3941},     {8, 5328, 17207},   {13, 164, 323},     {17, 16419, 31755},  {26, 11400, 45024},
    {34, 57679, 188252}, {51, 23433, 95487}, {73, 16011, 74987}, {109, 10939, 37199}, {146, 10782, 24072},
    {208, 3649, 9900},   {302, 3029, 9742},  {445, 1241, 3622},  {593, 2505, 3719},   {867, 346, 1119},
    {1143, 3329, 2215},  {1651, 214, 1179},  {2320, 172, 609},   {3271, 44, 303},     {5176, 1210, 192},
    {6363, 23, 195},     {9293, 257, 91},    {12961, 28, 24},    {19015, 35, 19},     {27843, 22, 11},
    {35178, 29, 25},     {53264, 1, 4},      {69529, 124, 14},   {113781, 1, 1},      {262144, 24, 1},
    {1048576, 1, 1},
};

// The profile for half a minute of simulated time, in three waves between all of its live objects and two fifths of them.
Figures fleet(double scale) {
  constexpr std::size_t kBands = std::size(kFleet);
  std::array<std::size_t, kBands> first{}, live{};
  std::size_t places = 0, rates = 0;
  for (std::size_t b = 0; b < kBands; ++b) {
    first[b] = places;
    places += kFleet[b].live;
    rates += kFleet[b].rate;
  }
  SharedTable<Block> blocks(places);
  SharedTable<std::uint8_t> band_of(rates);
  for (std::size_t b = 0, at = 0; b < kBands; ++b)
    for (std::uint32_t i = 0; i < kFleet[b].rate; ++i) band_of[at++] = static_cast<std::uint8_t>(b);
  Random random(4);
  const auto count = scaled(scale, 30 * rates);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t b = band_of[random.below(rates)];
    const double wave = 0.7 + 0.3 * std::cos(6 * 3.141592653589793 * static_cast<double>(i) / static_cast<double>(count));
    const auto most = static_cast<std::size_t>(std::ceil(wave * kFleet[b].live));
    Block* const mine = blocks.begin() + first[b];
    // Toward the level in steps, so that a class which is seldom used follows the wave as well.
    for (unsigned step = 0; step < 4 && live[b] >= most; ++step) {
      Block& victim = mine[random.below(live[b])];
      release(victim);
      victim = mine[--live[b]];
    }
    for (unsigned step = 0; step < 2 && live[b] < most; ++step)
      mine[live[b]++] = allocate(kFleet[b].bytes - random.below(kFleet[b].bytes / 4 + 1));
  }
  return {};
}

constexpr ServiceRow kRows[] = {
    {"idle", "4 threads build caches of 280 MB, drop nine tenths, sleep", then_idle},
    {"survivors_random", "a spike of 400 MB, 16 B-2 KiB; 1 block in 15 survives at random", survivors_of<0>},
    {"survivors_sessions", "the same, 1 session of 1,000 blocks in 15", survivors_of<1>},
    {"survivors_48", "the same at random, all blocks of 48 B", survivors_of<2>},
    {"survivors_48_scope", "the same, the spike in a scope of Freehold's, survivors not", survivors_of_session},
    {"survivors_1024", "the same at random, all blocks of 1 KiB", survivors_of<3>},
    {"only_frees", "a thread frees all that another allocates, 16 B-2 KiB", only_frees},
    {"phases", "7 phases with mixes of sizes of their own, 1 block in 20 stays", phases},
    {"heavy_tail", "lifetimes of Pareto's distribution, 16 B-4 KiB", heavy_tail},
    {"threads", "240 threads, 4 at a time, replace the blocks of former ones", threads},
    {"fleet", "sizes and lifetimes of a server of a fleet, as tcmalloc published them", fleet},
};

int run(const ServiceRow& row, double scale) {
  (void)Live::get();
  const auto start = Clock::now();
  const Figures figures = row.run(scale);
  std::printf("{\"row\": \"%s\", \"seconds\": %.3f", row.name, std::chrono::duration<double>(Clock::now() - start).count());
  for (const Figure& figure : figures)
    if (figure.name != nullptr) std::printf(", \"%s\": %.3f", figure.name, figure.value);
  std::printf("}\n");
  std::fflush(stdout);
  char end;
  while (read(STDIN_FILENO, &end, 1) > 0) {
  }
  _exit(0);
}

}  // namespace

ServiceRows traffic_rows() { return kRows; }

}  // namespace freehold::bench

int main(int argc, char** argv) {
  using namespace freehold::bench;
  return row_main<ServiceRow>("service_rows", {traffic_rows(), fork_and_line_rows()}, run, argc, argv);
}
