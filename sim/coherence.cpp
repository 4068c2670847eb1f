#include "sim/coherence.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/fibre.hpp"

namespace freehold::sim {
namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr unsigned kLineShift = std::countr_zero(base::kCacheLine);
// Turns in which nobody completes a pair.
constexpr std::uint64_t kPatience = 10'000'000;

class CoreSet {
 public:
  [[nodiscard]] bool has(unsigned core) const noexcept { return (words_[core / 64] >> core % 64 & 1) != 0; }
  void add(unsigned core) noexcept { words_[core / 64] |= base::bit(core % 64); }
  [[nodiscard]] bool is_only(unsigned core) const noexcept {
    CoreSet only;
    only.add(core);
    return words_ == only.words_;
  }
  // Whether it holds one of the first `n` cores and one of the others.
  [[nodiscard]] bool is_on_both_sides_of(unsigned n) const noexcept {
    bool below = false, above = false;
    for (unsigned core = 0; core < kMaxCores; ++core) (core < n ? below : above) |= has(core);
    return below && above;
  }
  void become(unsigned core) noexcept {
    words_ = {};
    add(core);
  }

 private:
  std::array<std::uint64_t, kMaxCores / 64> words_{};
};

// A line of memory: who has a copy, and who ever had one. Whether a single copy is exclusive or modified makes no difference
// to what is counted.
struct Line {
  CoreSet copies;
  CoreSet known;
};

// Lines by address; open addressing, growing.
class Directory {
 public:
  [[nodiscard]] std::uint64_t lines_on_both_sides_of(unsigned cores) const noexcept {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(lines_, [cores](const Line& line) { return line.known.is_on_both_sides_of(cores); }));
  }
  Line& at(std::uintptr_t line) {
    std::size_t i = find(line);
    if (keys_[i] == 0) {
      if ((lines_.size() + 1) * 2 > keys_.size()) {
        grow();
        i = find(line);
      }
      keys_[i] = line;
      places_[i] = static_cast<std::uint32_t>(lines_.size());
      lines_.emplace_back();
    }
    return lines_[places_[i]];
  }

 private:
  [[nodiscard]] std::size_t find(std::uintptr_t line) const noexcept {
    std::size_t i = (line * 0x9e3779b97f4a7c15u >> 32) & (keys_.size() - 1);
    while (keys_[i] != 0 && keys_[i] != line) i = (i + 1) & (keys_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<std::uintptr_t> keys(keys_.size() * 2);
    std::vector<std::uint32_t> places(keys.size());
    keys.swap(keys_);
    places.swap(places_);
    for (std::size_t old = 0; old < keys.size(); ++old) {
      if (keys[old] == 0) continue;
      const std::size_t i = find(keys[old]);
      keys_[i] = keys[old];
      places_[i] = places[old];
    }
  }

  std::vector<std::uintptr_t> keys_ = std::vector<std::uintptr_t>(1024);
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(1024);
  std::vector<Line> lines_;
};

class Cores {
 public:
  Cores(const CoherenceOptions& options, const PoolDoor& door) : options_(options), door_(door), mailboxes_(options.cores) {
    for (unsigned i = 0; i < options.cores; ++i) {
      cores_.push_back(std::make_unique<Core>());
      cores_[i]->fibre.start(&Cores::core_main, this);
    }
    running_ = options.cores;
  }

  CoherenceCount run();

  void touch(const void* at, bool write) {
    if (--left_ == 0) next();
    Core& core = *cores_[current_];
    Line& line = directory_.at(reinterpret_cast<std::uintptr_t>(at) >> kLineShift);
    ++core.accesses;
    if (write ? line.copies.is_only(current_) : line.copies.has(current_)) return;
    ++(line.known.has(current_) ? core.misses : core.cold);
    line.known.add(current_);
    if (write)
      line.copies.become(current_);
    else
      line.copies.add(current_);
  }

  // Hands over to the next core that can run.
  void next() {
    left_ = options_.quantum;
    const unsigned from = current_;
    if (running_ == 0 || ++idle_turns_ > kPatience) {
      hang_ = true;
      Fibre::change(cores_[from]->fibre, caller_);
    }
    do {
      current_ = current_ + 1 == options_.cores ? 0 : current_ + 1;
    } while (cores_[current_]->state != State::kRuns);
    if (current_ != from) Fibre::change(cores_[from]->fibre, cores_[current_]->fibre);
  }

  void wait(const void* at) {
    Core& core = *cores_[current_];
    core.state = State::kWaits;
    core.waits_on = at;
    core.ticket = ++tickets_;
    --running_;
    next();
  }

  // Who has waited longest goes first.
  void notify(const void* at, bool all) {
    for (;;) {
      Core* woken = nullptr;
      for (const auto& core : cores_) {
        if (core->state == State::kWaits && core->waits_on == at && (woken == nullptr || core->ticket < woken->ticket))
          woken = core.get();
      }
      if (woken == nullptr) return;
      woken->state = State::kRuns;
      ++running_;
      if (!all) return;
    }
  }

  [[nodiscard]] unsigned current() const noexcept { return current_; }
  [[nodiscard]] sync::ExitCalls& exit_calls() noexcept { return cores_[current_]->at_exit; }

 private:
  enum class State : std::uint8_t { kRuns, kWaits, kEnded };
  struct Core {
    Fibre fibre{kStackBytes};
    State state = State::kRuns;
    const void* waits_on = nullptr;
    std::uint64_t ticket = 0;
    std::uint64_t accesses = 0, misses = 0, cold = 0;
    CoherenceCount warm{};  // what was counted until the end of the warm-up
    CoherenceCount done{};  // until the end of the last pair
    sync::ExitCalls at_exit{};
  };

  [[nodiscard]] CoherenceCount count_of(const Core& core) const noexcept {
    return {.pairs = options_.pairs, .accesses = core.accesses, .misses = core.misses, .cold = core.cold};
  }

  static void core_main(void* self) {
    auto& cores = *static_cast<Cores*>(self);
    Core& mine = *cores.cores_[cores.current_];
    cores.left_ = cores.options_.quantum + 1;  // the core has not stopped before an access, as it does later on
    cores.work(cores.options_.warm_up);
    mine.warm = cores.count_of(mine);
    cores.work(cores.options_.pairs);
    mine.done = cores.count_of(mine);
    mine.at_exit.run();
    mine.state = State::kEnded;
    if (++cores.ended_ == cores.options_.cores) Fibre::change(mine.fibre, cores.caller_);
    --cores.running_;
    cores.next();
  }

  void work(unsigned pairs) {
    if (options_.workload == Workload::kOwnSlots)
      own_slots(pairs);
    else
      exchange(pairs);
  }

  [[nodiscard]] void* acquire() {
    for (;;) {
      if (void* const slot = door_.acquire(door_.pool); slot != nullptr) return slot;
      next();
    }
  }
  void release(void* slot) {
    door_.release(door_.pool, slot);
    idle_turns_ = 0;
  }

  void own_slots(unsigned pairs) {
    void* slots[kMaxHeld];
    for (unsigned done = 0; done < pairs;) {
      const unsigned n = std::min(options_.held, pairs - done);
      for (unsigned i = 0; i < n; ++i) slots[i] = acquire();
      for (unsigned i = 0; i < n; ++i) release(slots[i]);
      done += n;
    }
  }

  // The mailboxes are not the pool's: they cost nothing.
  void exchange(unsigned pairs) {
    const unsigned me = current_;
    void*& his = mailboxes_[(me + 1) % options_.cores];
    for (unsigned done = 0; done < pairs; ++done) {
      void* const slot = acquire();
      while (his != nullptr) next();
      his = slot;
      while (mailboxes_[me] == nullptr) next();
      release(std::exchange(mailboxes_[me], nullptr));
    }
  }

  static constexpr unsigned kMaxHeld = 256;
  friend CoherenceCount sim::count_misses(const CoherenceOptions& options, const PoolDoor& door);

  const CoherenceOptions& options_;
  const PoolDoor& door_;
  Fibre caller_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::vector<void*> mailboxes_;
  Directory directory_;
  unsigned current_ = 0;
  unsigned left_ = 0;  // accesses of the running core's quantum
  unsigned running_ = 0, ended_ = 0;
  std::uint64_t tickets_ = 0;
  std::uint64_t idle_turns_ = 0;
  bool hang_ = false;
};

constinit Cores* g_cores = nullptr;
constinit std::uint64_t g_epoch = 1;
constinit sync::ExitCalls g_outside_at_exit{};

CoherenceCount Cores::run() {
  const MayLeak fibres_may_be_abandoned;
  g_cores = this;
  coherent::cores_run = true;
  Fibre::change(caller_, cores_[0]->fibre);
  coherent::cores_run = false;
  g_cores = nullptr;
  if (hang_) throw std::runtime_error("the simulated cores wait for each other for ever");
  CoherenceCount sum;
  for (unsigned i = 0; i < options_.cores && i < options_.counted; ++i) {
    const auto& core = cores_[i];
    sum.pairs += options_.pairs;
    sum.accesses += core->done.accesses - core->warm.accesses;
    sum.misses += core->done.misses - core->warm.misses;
    sum.cold += core->done.cold - core->warm.cold;
  }
  sum.lines_with_company = directory_.lines_on_both_sides_of(options_.counted);
  return sum;
}

}  // namespace

namespace coherent {
constinit bool cores_run = false;
void touch(const void* at, bool write) noexcept { g_cores->touch(at, write); }
void pause() noexcept { g_cores->next(); }
void wait(const void* at) noexcept { g_cores->wait(at); }
void notify(const void* at, bool all) noexcept { g_cores->notify(at, all); }
void at_thread_exit(sync::ExitCall call) noexcept { (cores_run ? g_cores->exit_calls() : g_outside_at_exit).add(call); }
unsigned core() noexcept { return cores_run ? g_cores->current() : kMaxCores; }
std::uint64_t epoch() noexcept { return g_epoch; }
}  // namespace coherent

void end_outside_of_cores() noexcept {
  g_outside_at_exit.run();
  g_outside_at_exit = {};
  ++g_epoch;
}

CoherenceCount count_misses(const CoherenceOptions& options, const PoolDoor& door) {
  if (options.cores == 0 || options.cores > kMaxCores || options.quantum == 0 || options.held == 0 ||
      options.held > Cores::kMaxHeld)
    throw std::invalid_argument("coherence: cores, quantum or held slots out of range");
  Cores cores(options, door);
  return cores.run();
}

}  // namespace freehold::sim
