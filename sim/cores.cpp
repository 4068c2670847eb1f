// SPDX-License-Identifier: MIT
#include "sim/cores.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace freehold::sim {
namespace {

constexpr unsigned kLineShift = std::countr_zero(base::kCacheLine);
constexpr unsigned kPageShift = 12;

constinit Cores* g_cores = nullptr;
constinit std::uint64_t g_epoch = 1;
constinit sync::ExitCalls g_outside_at_exit{};

}  // namespace

bool CoreSet::is_on_both_sides_of(unsigned n) const noexcept {
  bool below = false, above = false;
  for (unsigned core = 0; core < kMaxCores; ++core) (core < n ? below : above) |= has(core);
  return below && above;
}

std::uint64_t Directory::lines_on_both_sides_of(unsigned cores) const noexcept {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(lines_, [cores](const Line& line) { return line.known.is_on_both_sides_of(cores); }));
}

void Directory::grow() {
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

Tally& Tally::operator+=(const Tally& other) noexcept {
  accesses += other.accesses;
  misses += other.misses;
  first += other.first;
  fetched += other.fetched;
  locks += other.locks;
  hand_overs += other.hand_overs;
  waits += other.waits;
  calls += other.calls;
  served += other.served;
  far += other.far;
  return *this;
}

Tally Tally::operator-(const Tally& other) const noexcept {
  return {.accesses = accesses - other.accesses,
          .misses = misses - other.misses,
          .first = first - other.first,
          .fetched = fetched - other.fetched,
          .locks = locks - other.locks,
          .hand_overs = hand_overs - other.hand_overs,
          .waits = waits - other.waits,
          .calls = calls - other.calls,
          .served = served - other.served,
          .far = far - other.far};
}

Cores::Cores(unsigned cores, unsigned quantum, Turns turns, unsigned nodes, unsigned seed)
    : quantum_(quantum), nodes_(nodes), turns_(turns), random_(seed), left_(quantum) {
  if (cores == 0 || cores > kMaxCores || quantum == 0 || nodes == 0 || nodes > cores)
    throw std::invalid_argument("simulated cores: their number, the quantum or the nodes are out of range");
  for (unsigned i = 0; i < cores; ++i) {
    cores_.push_back(std::make_unique<Core>());
    cores_[i]->fibre.start(&Cores::core_main, this);
  }
  running_ = cores;
}
Cores::~Cores() = default;

void Cores::run(std::function<void(unsigned)> body) {
  const MayLeak fibres_may_be_abandoned;
  body_ = std::move(body);
  g_cores = this;
  coherent::cores_run = true;
  Fibre::change(caller_, cores_[0]->fibre);
  coherent::cores_run = false;
  g_cores = nullptr;
  if (hang_) throw std::runtime_error("the simulated cores wait for each other for ever");
}

void Cores::core_main(void* self) {
  auto& cores = *static_cast<Cores*>(self);
  const unsigned me = cores.current_;
  Core& mine = *cores.cores_[me];
  ++cores.left_;  // the core has not stopped before an access, as it does later on
  cores.body_(me);
  mine.at_exit.run();
  mine.state = State::kEnded;
  if (++cores.ended_ == cores.cores_.size()) Fibre::change(mine.fibre, cores.caller_);
  --cores.running_;
  cores.next();
}

void Cores::touch(const void* at, bool write, const std::source_location& site) {
  if (--left_ == 0) next();
  Core& core = *cores_[current_];
  const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(at) >> kLineShift;
  Line& line = directory_.at(number);
  ++core.tally.accesses;
  if (write ? line.copies.is_only(current_) : line.copies.has(current_)) return;
  if (line.known.has(current_))
    ++core.tally.misses;
  else
    ++(line.copies.is_empty() ? core.tally.first : core.tally.fetched);
  if (nodes_ > 1) count_node(number, line.copies, write);
  if (notes_places_ && !line.copies.is_empty()) ++places_[{number << kLineShift, site.file_name(), site.line()}];
  line.known.add(current_);
  if (write)
    line.copies.become(current_);
  else
    line.copies.add(current_);
}

// The running core misses the line, of which others have copies. A read takes the copy that is nearest; a write makes all
// go.
void Cores::count_node(std::uintptr_t line, const CoreSet& copies, bool write) {
  Tally& tally = cores_[current_]->tally;
  const unsigned mine = node_of(current_), from = first_of(mine), end = first_of(mine + 1);
  const unsigned home = home_of(line >> (kPageShift - kLineShift));
  ++tally.served;
  const bool near = copies.has_between(from, end);
  const bool far = copies.has_between(0, from) || copies.has_between(end, static_cast<unsigned>(cores_.size()));
  tally.far += (near || far ? far && (write || !near) : home != mine) ? 1 : 0;
}

void Cores::use_block(const void* block) {
  if (nodes_ == 1) return;
  Tally& tally = cores_[current_]->tally;
  ++tally.served;
  tally.far += home_of(reinterpret_cast<std::uintptr_t>(block) >> kPageShift) != node_of(current_) ? 1 : 0;
}

void Cores::choose_next() noexcept {
  const auto cores = static_cast<unsigned>(cores_.size());
  left_ = quantum_;
  if (turns_ == Turns::kRandom) {
    left_ = 1 + static_cast<unsigned>(random_()) % (2 * quantum_ - 1);
    current_ = static_cast<unsigned>(random_()) % cores;
  }
  do {
    current_ = current_ + 1 == cores ? 0 : current_ + 1;
  } while (cores_[current_]->state != State::kRuns);
}

void Cores::next() {
  const unsigned from = current_;
  if (running_ == 0 || ++idle_turns_ > kPatience) {
    hang_ = true;
    Fibre::change(cores_[from]->fibre, caller_);
  }
  choose_next();
  if (current_ != from) Fibre::change(cores_[from]->fibre, cores_[current_]->fibre);
}

void Cores::wait(const void* at) {
  Core& core = *cores_[current_];
  core.state = State::kWaits;
  core.waits_on = at;
  core.ticket = ++tickets_;
  --running_;
  next();
}

// The core that has waited longest goes first.
void Cores::notify(const void* at, bool all) {
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

void Cores::took_lock(const void* lock) {
  Tally& tally = cores_[current_]->tally;
  ++tally.locks;
  const auto [place, is_new] = last_holder_.try_emplace(lock, current_);
  if (!is_new && place->second != current_) ++tally.hand_overs;
  place->second = current_;
}

bool Cores::has_lock(std::uintptr_t line) const noexcept {
  return std::ranges::any_of(last_holder_, [line](const auto& lock) {
    return reinterpret_cast<std::uintptr_t>(lock.first) - line < base::kCacheLine;
  });
}

namespace coherent {
constinit bool cores_run = false;
void touch(const void* at, bool write, const std::source_location& site) noexcept { g_cores->touch(at, write, site); }
void pause() noexcept { g_cores->next(); }
void wait(const void* at) noexcept { g_cores->wait(at); }
void notify(const void* at, bool all) noexcept { g_cores->notify(at, all); }
void took_lock(const void* lock) noexcept {
  if (cores_run) g_cores->took_lock(lock);
}
void waited() noexcept {
  if (cores_run) ++g_cores->cores_[g_cores->current_]->tally.waits;
}
void called_system() noexcept {
  if (cores_run) ++g_cores->cores_[g_cores->current_]->tally.calls;
}
void gave_back(const void* memory, std::size_t bytes) noexcept {
  if (!cores_run || g_cores->nodes_ == 1) return;
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  for (std::uintptr_t page = at >> kPageShift; page < (at + bytes) >> kPageShift; ++page) g_cores->homes_.erase(page);
}
void at_thread_exit(sync::ExitCall call) noexcept {
  (cores_run ? g_cores->cores_[g_cores->current_]->at_exit : g_outside_at_exit).add(call);
}
unsigned core() noexcept { return cores_run ? g_cores->current_ : kMaxCores; }
unsigned node() noexcept { return cores_run ? g_cores->node_of(g_cores->current_) : 0; }
std::uint64_t epoch() noexcept { return g_epoch; }
}  // namespace coherent

void end_outside_of_cores() noexcept {
  g_outside_at_exit.run();
  g_outside_at_exit = {};
  ++g_epoch;
}

}  // namespace freehold::sim
