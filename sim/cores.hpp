// SPDX-License-Identifier: MIT
// 1 to 384 simulated cores in front of one memory, and a directory that knows which core has a copy of which line (MESI,
// caches without bounds). A core is a fibre; it runs for a quantum of accesses, then another core goes on. coherence.hpp and
// engine/ run their workloads on it; CoherentAtomics (coherence.hpp) is the policy that reports the accesses.
//
// An access is a miss if the line has to come from elsewhere, or other cores' copies have to go. A core's first access to a
// line is counted apart: `first` if the line lies in no other core's cache, `fetched` if it comes from there.
// The machine may have memory nodes, each with as many neighbouring cores. The core that touches a page first decides on
// which node the page lies. A line is far if another node serves it: by a copy, or by its memory where no core has a copy.
// One Cores runs at a time in a process. Cost: about 20 ns an access.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <source_location>
#include <unordered_map>
#include <utility>
#include <vector>

#include "freehold/base/bits.hpp"
#include "freehold/sync/atomics.hpp"
#include "sim/fibre.hpp"

namespace freehold::sim {

inline constexpr unsigned kMaxCores = 384;

// CoherentAtomics reports these to the cores that run; implemented in cores.cpp.
namespace coherent {
extern constinit bool cores_run;  // else every access is a plain one
// The running core is about to access it; others may go first.
void touch(const void* at, bool write, const std::source_location& site) noexcept;
void pause() noexcept;
void wait(const void* at) noexcept;
void notify(const void* at, bool all) noexcept;
void took_lock(const void* lock) noexcept;  // the running core holds it now
void waited() noexcept;                     // the running core is about to sleep for a lock
void called_system() noexcept;
void gave_back(const void* memory, std::size_t bytes) noexcept;  // the next touch decides about its nodes again
void at_thread_exit(sync::ExitCall call) noexcept;
[[nodiscard]] unsigned core() noexcept;        // kMaxCores outside of the cores' threads
[[nodiscard]] unsigned node() noexcept;        // the running core's
[[nodiscard]] std::uint64_t epoch() noexcept;  // another one for every count
}  // namespace coherent

// Ends the thread that is outside of the cores: its at_thread_exit() calls are made, its per_thread() objects are gone.
void end_outside_of_cores() noexcept;

// A set of cores.
class CoreSet {
 public:
  [[nodiscard]] bool has(unsigned core) const noexcept { return (words_[core / 64] >> core % 64 & 1) != 0; }
  void add(unsigned core) noexcept { words_[core / 64] |= base::bit(core % 64); }
  [[nodiscard]] bool is_only(unsigned core) const noexcept {
    CoreSet only;
    only.add(core);
    return words_ == only.words_;
  }
  [[nodiscard]] bool is_empty() const noexcept { return words_ == decltype(words_){}; }
  // One of the cores [from, end) is in it.
  [[nodiscard]] bool has_between(unsigned from, unsigned end) const noexcept {
    for (unsigned core = from; core < end; ++core)
      if (has(core)) return true;
    return false;
  }
  // Returns whether it holds one of the first `n` cores and one of the others.
  [[nodiscard]] bool is_on_both_sides_of(unsigned n) const noexcept;
  void become(unsigned core) noexcept {
    words_ = {};
    add(core);
  }

 private:
  std::array<std::uint64_t, kMaxCores / 64> words_{};
};

// A line of memory: the cores that have a copy, and those that ever had one. Whether a single copy is exclusive or modified
// makes no difference to what is counted.
struct Line {
  CoreSet copies;
  CoreSet known;
};

// Lines by address; open addressing, growing.
class Directory {
 public:
  [[nodiscard]] std::uint64_t lines_on_both_sides_of(unsigned cores) const noexcept;
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
  void grow();

  std::vector<std::uintptr_t> keys_ = std::vector<std::uintptr_t>(1024);
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(1024);
  std::vector<Line> lines_;
};

// One core's counts so far.
struct Tally {
  std::uint64_t accesses = 0;
  std::uint64_t misses = 0;
  std::uint64_t first = 0;       // the core's first access to a line that no other core has
  std::uint64_t fetched = 0;     // the core's first access to a line that another one has
  std::uint64_t locks = 0;       // taken
  std::uint64_t hand_overs = 0;  // taken from another core: it held the lock last
  std::uint64_t waits = 0;       // sleeps for a lock
  std::uint64_t calls = 0;       // to the system
  std::uint64_t served = 0;      // lines that came, or whose other copies went; on a machine with several nodes
  std::uint64_t far = 0;         // those that another node served

  Tally& operator+=(const Tally& other) noexcept;
  [[nodiscard]] Tally operator-(const Tally& other) const noexcept;
};

// The core that goes on after a quantum.
enum class Turns : std::uint8_t {
  kInOrder,  // the next one, after exactly a quantum
  kRandom,   // any, after a quantum or so; by the seed
};

class Cores {
 public:
  // Names a miss: the line's address, and the place in the source.
  struct Place {
    std::uintptr_t line;
    const char* file;
    std::uint32_t row;
    auto operator<=>(const Place&) const = default;
  };
  using Places = std::map<Place, std::uint64_t>;

  // Throws std::invalid_argument.
  Cores(unsigned cores, unsigned quantum, Turns turns = Turns::kInOrder, unsigned nodes = 1, unsigned seed = 1);
  ~Cores();
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  // Runs body(core) on every core. Throws std::runtime_error if they wait for each other for ever; their stacks are
  // abandoned then. The body throws nothing.
  void run(std::function<void(unsigned core)> body);

  // By a body. It waits for something that is no atomic: another core goes on.
  void next();
  // By a body: the program uses the first line of a block, which comes from memory.
  void use_block(const void* block);
  // By a body, now and then: without it the cores count as waiting for each other after kPatience turns.
  void progress() noexcept { idle_turns_ = 0; }
  // Notes misses by place from now on, or stops that; a map lookup each.
  void note_places(bool whether) noexcept { notes_places_ = whether; }

  [[nodiscard]] const Tally& tally(unsigned core) const noexcept { return cores_[core]->tally; }
  [[nodiscard]] const Directory& directory() const noexcept { return directory_; }
  // Returns whether a lock that was taken lies on the line at this address.
  [[nodiscard]] bool has_lock(std::uintptr_t line) const noexcept;
  [[nodiscard]] const Places& places() const noexcept { return places_; }

 private:
  friend void coherent::touch(const void* at, bool write, const std::source_location& site) noexcept;
  friend void coherent::wait(const void* at) noexcept;
  friend void coherent::notify(const void* at, bool all) noexcept;
  friend void coherent::took_lock(const void* lock) noexcept;
  friend void coherent::waited() noexcept;
  friend void coherent::called_system() noexcept;
  friend void coherent::gave_back(const void* memory, std::size_t bytes) noexcept;
  friend unsigned coherent::node() noexcept;
  friend void coherent::at_thread_exit(sync::ExitCall call) noexcept;
  friend unsigned coherent::core() noexcept;

  // Turns in which no thread makes progress.
  static constexpr std::uint64_t kPatience = 10'000'000;
  static constexpr std::size_t kStackBytes = 64 * 1024;

  enum class State : std::uint8_t { kRuns, kWaits, kEnded };
  struct Core {
    Fibre fibre{kStackBytes};
    State state = State::kRuns;
    const void* waits_on = nullptr;
    std::uint64_t ticket = 0;
    Tally tally;
    sync::ExitCalls at_exit{};
  };

  static void core_main(void* self);
  void touch(const void* at, bool write, const std::source_location& site);
  void wait(const void* at);
  void notify(const void* at, bool all);
  void took_lock(const void* lock);
  // The cores [node * cores / nodes, (node + 1) * cores / nodes) are of one node.
  [[nodiscard]] unsigned first_of(unsigned node) const noexcept {
    return node * static_cast<unsigned>(cores_.size()) / nodes_;
  }
  [[nodiscard]] unsigned node_of(unsigned core) const noexcept {
    return ((core + 1) * nodes_ - 1) / static_cast<unsigned>(cores_.size());
  }
  [[nodiscard]] unsigned home_of(std::uintptr_t page) { return homes_.try_emplace(page, node_of(current_)).first->second; }
  void count_node(std::uintptr_t line, const CoreSet& copies, bool write);
  void choose_next() noexcept;

  unsigned quantum_, nodes_;
  Turns turns_;
  std::minstd_rand random_;
  std::function<void(unsigned)> body_;
  Fibre caller_;
  std::vector<std::unique_ptr<Core>> cores_;
  Directory directory_;
  std::unordered_map<std::uintptr_t, unsigned> homes_;  // the node of each page
  std::map<const void*, unsigned> last_holder_;         // the last holder of each lock
  Places places_;
  bool notes_places_ = false;
  unsigned current_ = 0;
  unsigned left_;  // accesses of the running core's quantum
  unsigned running_ = 0, ended_ = 0;
  std::uint64_t tickets_ = 0;
  std::uint64_t idle_turns_ = 0;
  bool hang_ = false;
};

}  // namespace freehold::sim
