// SPDX-License-Identifier: MIT
#include "sim/engine/whole_engine.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/engine/counted_engine.hpp"

namespace freehold::sim {
namespace {

using Cache = CountedEngine::Cache;

constexpr unsigned kHeldOwn = 4;
constexpr unsigned kQueue = 64;  // blocks that wait for the core that frees them

// More than a bin holds (64 KiB, 128 slots), and a few where there is no bin.
unsigned held_by_many(std::size_t bytes) {
  return static_cast<unsigned>(std::clamp<std::size_t>(2 * alloc::NativeConfig::kBinBytes / bytes, 8, 256));
}
// Enough for bins to have grown, and for many rounds of kMany.
unsigned enough_pairs(std::size_t bytes) { return bytes <= 1024 ? 512 : 128; }

class Run {
 public:
  explicit Run(const EngineOptions& options)
      : options_(options),
        pairs_(options.pairs != 0 ? options.pairs : enough_pairs(options.bytes)),
        engine_(options.cores),
        cores_(options.cores, options.quantum, Turns::kRandom, options.nodes, options.seed),
        workers_(options.cores),
        counted_(options.cores - (only_purges(options.cores - 1) ? 1 : 0)) {}

  EngineCount count();

 private:
  struct Worker {
    Cache* cache = nullptr;
    std::deque<void*> inbox;  // for this core to free
    std::vector<void*> held;  // its own
    std::uint64_t pairs = 0;  // done so far; under kProducer halves, of the core's kind
    Tally warm, done;         // when the warm-up and the counted pairs were over
    std::uint64_t warm_pairs = 0, done_pairs = 0;
    bool is_done = false;
  };

  void work(unsigned me);
  void purge();
  void begin_thread(Worker& worker) {
    worker.cache = engine_.core().attach();
    if (worker.cache == nullptr) fail("there is no memory for a thread's cache");
  }
  void end_thread(Worker& worker) noexcept {
    if (worker.cache != nullptr) engine_.core().detach(std::exchange(worker.cache, nullptr));
  }

  void round(unsigned me);
  void own_round(unsigned me, unsigned held);
  void neighbour_round(unsigned me);
  void producer_round(unsigned me);
  // The core that frees what the core `me` allocates.
  [[nodiscard]] unsigned neighbour_of(unsigned me) const noexcept { return (me + 1) % options_.cores; }
  [[nodiscard]] bool only_purges(unsigned me) const noexcept {
    return options_.workload == EngineWorkload::kPurge && options_.cores > 1 && me + 1 == options_.cores;
  }
  [[nodiscard]] bool frees(unsigned me) const noexcept {
    return options_.workload != EngineWorkload::kProducer || options_.cores == 1 || me % 2 == 1;
  }
  [[nodiscard]] std::uint64_t freed() const noexcept {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < counted_; ++i) sum += frees(i) ? workers_[i].pairs : 0;
    return sum;
  }

  [[nodiscard]] void* allocate(unsigned me);
  void deallocate(unsigned me, void* block);
  void take_from_inbox(unsigned me);
  void note(unsigned me);
  void free_what_is_under_way();
  void fail(const char* what) {
    if (failure_ == nullptr) failure_ = what;
  }
  void add_places(EngineCount& count) const;

  // A block's first word says that it is in use, and since when.
  static constexpr std::uint64_t kStamp = 0x5fee401d'00000000;

  const EngineOptions& options_;
  unsigned pairs_;
  CountedEngine engine_;
  Cores cores_;
  std::vector<Worker> workers_;
  unsigned counted_;                                  // cores: all but the one that purges
  unsigned warm_ = 0, done_ = 0;                      // workers
  std::uint64_t pairs_before_ = 0, pairs_noted_ = 0;  // all cores', when the first and the last of them was counted
  std::uint64_t serial_ = 0;
  const char* failure_ = nullptr;
};

void* Run::allocate(unsigned me) {
  auto* const block = static_cast<std::uint64_t*>(engine_.allocate(*workers_[me].cache, options_.bytes));
  if (block == nullptr) {
    fail("the engine ran out of memory");
    return nullptr;
  }
  if ((*block >> 32) == kStamp >> 32) fail("the engine gave a block to two cores");
  *block = kStamp | (++serial_ & 0xffffffff);
  cores_.use_block(block);
  return block;
}

void Run::deallocate(unsigned me, void* block) {
  if (block == nullptr) return;
  auto* const stamp = static_cast<std::uint64_t*>(block);
  if ((*stamp >> 32) != kStamp >> 32) fail("a block changed while it was in use");
  *stamp = 0;
  engine_.deallocate(*workers_[me].cache, block);
  cores_.progress();
}

// Frees one block of the inbox, or lets others fill it.
void Run::take_from_inbox(unsigned me) {
  Worker& worker = workers_[me];
  if (worker.inbox.empty()) return cores_.next();
  void* const block = worker.inbox.front();
  worker.inbox.pop_front();
  deallocate(me, block);
  ++worker.pairs;
}

void Run::own_round(unsigned me, unsigned held) {
  Worker& worker = workers_[me];
  for (unsigned i = 0; i < held; ++i) worker.held.push_back(allocate(me));
  for (void* const block : worker.held) deallocate(me, block);
  worker.held.clear();
  worker.pairs += held;
}

void Run::neighbour_round(unsigned me) {
  std::deque<void*>& outbox = workers_[neighbour_of(me)].inbox;
  if (outbox.size() < kQueue) outbox.push_back(allocate(me));
  take_from_inbox(me);
}

void Run::producer_round(unsigned me) {
  Worker& worker = workers_[me];
  if (options_.cores == 1) return own_round(me, kHeldOwn);
  if (frees(me)) return take_from_inbox(me);
  std::deque<void*>& outbox = workers_[neighbour_of(me)].inbox;
  if (outbox.size() >= kQueue) return cores_.next();
  outbox.push_back(allocate(me));
  ++worker.pairs;
}

void Run::round(unsigned me) {
  Worker& worker = workers_[me];
  switch (options_.workload) {
    case EngineWorkload::kOwn: return own_round(me, kHeldOwn);
    case EngineWorkload::kMany: return own_round(me, held_by_many(options_.bytes));
    case EngineWorkload::kPurge:
      own_round(me, held_by_many(options_.bytes));
      if (options_.cores == 1) (void)engine_.core().relief().trim();
      return;
    case EngineWorkload::kNeighbour: return neighbour_round(me);
    case EngineWorkload::kProducer: return producer_round(me);
    case EngineWorkload::kChurn:
      own_round(me, kHeldOwn);
      if (worker.pairs % kChurnThreadPairs == 0) {
        end_thread(worker);
        begin_thread(worker);
      }
      return;
  }
}

// Counting begins with a core's last warm-up pair and ends with its last counted one; it works on until all are done.
void Run::note(unsigned me) {
  Worker& worker = workers_[me];
  if (worker.warm_pairs == 0 && worker.pairs >= pairs_) {
    worker.warm = cores_.tally(me);
    worker.warm_pairs = worker.pairs;
    if (++warm_ == counted_) {
      pairs_before_ = freed();
      cores_.note_places(options_.note_places);
    }
  }
  if (!worker.is_done && worker.pairs >= 2 * std::uint64_t{pairs_}) {
    worker.done = cores_.tally(me);
    worker.done_pairs = worker.pairs;
    worker.is_done = true;
    if (++done_ == counted_) {
      pairs_noted_ = freed() - pairs_before_;
      cores_.note_places(false);
    }
  }
}

void Run::work(unsigned me) {
  begin_thread(workers_[me]);
  while (done_ < counted_ && failure_ == nullptr) {
    round(me);
    note(me);
  }
  end_thread(workers_[me]);
}

void Run::purge() {
  while (done_ < counted_ && failure_ == nullptr) {
    (void)engine_.core().relief().trim();
    cores_.next();
  }
}

// Blocks that were handed to a core that has ended.
void Run::free_what_is_under_way() {
  Worker& last = workers_[0];
  begin_thread(last);
  if (last.cache == nullptr) return;
  for (Worker& worker : workers_)
    for (void* const block : worker.inbox)
      if (block != nullptr) engine_.deallocate(*last.cache, block);
  end_thread(last);
}

EngineCount Run::count() {
  for (Worker& worker : workers_) worker.held.reserve(held_by_many(options_.bytes));
  cores_.run([this](unsigned me) { only_purges(me) ? purge() : work(me); });
  free_what_is_under_way();
  if (failure_ == nullptr && !engine_.is_empty_and_sound()) fail("the engine's invariants do not hold at the end");
  if (failure_ != nullptr) throw std::logic_error(failure_);

  EngineCount count;
  for (unsigned i = 0; i < counted_; ++i) {
    const Worker& worker = workers_[i];
    const Tally tally = worker.done - worker.warm;
    if (frees(i)) count.pairs += worker.done_pairs - worker.warm_pairs;
    count.accesses += tally.accesses;
    count.misses += tally.misses + tally.fetched;
    count.locks += tally.locks;
    count.hand_overs += tally.hand_overs;
    count.waits += tally.waits;
    count.calls += tally.calls;
    count.served += tally.served;
    count.far += tally.far;
  }
  if (options_.note_places) add_places(count);
  return count;
}

void Run::add_places(EngineCount& count) const {
  std::map<std::pair<std::string, std::string>, MissPlace> merged;
  for (const auto& [place, misses] : cores_.places()) {
    std::string source(place.file);
    source.erase(0, source.rfind('/') + 1);
    source += ':' + std::to_string(place.row);
    std::string object(engine_.object_at(place.line));
    if (const std::ptrdiff_t offset = engine_.offset_in_core(place.line); offset >= 0)
      object += '+' + std::to_string(offset);
    if (cores_.has_lock(place.line)) object += " (a lock)";
    MissPlace& sum = merged[{source, object}];
    sum.source = source;
    sum.object = object;
    sum.misses_per_pair += static_cast<double>(misses) / static_cast<double>(pairs_noted_);
    ++sum.lines;
  }
  for (auto& [key, place] : merged) count.places.push_back(std::move(place));
  std::ranges::sort(count.places, std::ranges::greater{}, &MissPlace::misses_per_pair);
}

}  // namespace

std::string_view name_of(EngineWorkload workload) noexcept {
  switch (workload) {
    case EngineWorkload::kOwn: return "own";
    case EngineWorkload::kMany: return "many";
    case EngineWorkload::kNeighbour: return "neighbour";
    case EngineWorkload::kProducer: return "producer";
    case EngineWorkload::kChurn: return "churn";
    case EngineWorkload::kPurge: return "purge";
  }
  return {};
}

EngineCount count_engine(const EngineOptions& options) {
  if (options.bytes == 0 || options.bytes > kMaxEngineBytes || options.cores == 0 || options.cores > kMaxCores ||
      options.quantum == 0 || options.nodes == 0 || options.nodes > options.cores)
    throw std::invalid_argument("simulated engine: bytes, cores, quantum or nodes out of range");
  return Run(options).count();
}

}  // namespace freehold::sim
