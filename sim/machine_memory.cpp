// SPDX-License-Identifier: MIT
// The machine's memory: which stores a load may read, what happens before what, and races on plain data.
#include <algorithm>
#include <cstring>

#include "sim/machine.hpp"

namespace freehold::sim {
namespace {

using machine::hex, machine::mix, machine::place;

constexpr bool acquires(Order order) noexcept {
  return order == Order::acquire || order == Order::consume || order == Order::acq_rel || order == Order::seq_cst;
}
constexpr bool releases(Order order) noexcept {
  return order == Order::release || order == Order::acq_rel || order == Order::seq_cst;
}

std::uint64_t read_memory(const void* at, unsigned bytes) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

const char* text(Order order) noexcept {
  switch (order) {
    case Order::relaxed: return "relaxed";
    case Order::consume: return "consume";
    case Order::acquire: return "acquire";
    case Order::release: return "release";
    case Order::acq_rel: return "acq_rel";
    case Order::seq_cst: return "seq_cst";
  }
  return "?";
}

const char* text(Modify how) noexcept {
  switch (how) {
    case Modify::kExchange: return "exchange";
    case Modify::kAdd: return "fetch_add";
    case Modify::kSub: return "fetch_sub";
    case Modify::kAnd: return "fetch_and";
    case Modify::kOr: return "fetch_or";
  }
  return "?";
}

constexpr std::uint64_t apply(Modify how, std::uint64_t old, std::uint64_t operand, unsigned bytes) noexcept {
  std::uint64_t value = 0;
  switch (how) {
    case Modify::kExchange: value = operand; break;
    case Modify::kAdd: value = old + operand; break;
    case Modify::kSub: value = old - operand; break;
    case Modify::kAnd: value = old & operand; break;
    case Modify::kOr: value = old | operand; break;
  }
  return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::string stale(std::uint32_t back) { return back == 0 ? "" : " (" + std::to_string(back) + " stores ago)"; }

}  // namespace

Location& Machine::locate(const void* at, unsigned bytes) {
  const std::uint64_t in_memory = read_memory(at, bytes);
  const auto [location, is_new] = locations_.at(at);
  if (is_new) {
    location->stores[0] = {in_memory, 1, Lanes{}, View{}, 0};
    location->count = 1;
    location->waiting = 0;
    location->born = 0;
    location->number = locations_.size();
    return *location;
  }
  if (location->back(0).value != in_memory) {
    const bool ended = machine::is_per_thread(at);
    message_ = label(at) +
               (ended ? " is used, the storage of a thread that has ended" : " was changed without the machine's knowledge");
    stop(ended ? Failure::kCheck : Failure::kScenario);
  }
  if (location->born != 0 && location->born > self().now.hb[location->born_by] && location->born_by != current_) {
    message_ = "data race: " + label(at) + " is used by T" + std::to_string(current_) + ", its construction by T" +
               std::to_string(location->born_by) + " did not happen before";
    stop(Failure::kRace);
  }
  return *location;
}

std::int16_t Machine::tick() noexcept {
  Thread& thread = self();
  ++thread.clock;
  thread.now.hb[current_] = thread.now.seen[current_] = thread.clock;
  return thread.clock;
}

// The number of this access in S, or 0 if it has no place there.
std::int16_t Machine::enter_sc(Order order) noexcept {
  if (order != Order::seq_cst) return 0;
  Thread& thread = self();
  thread.hash = mix(thread.hash, sc_fence_hash_);
  return ++sc_count_;
}

// How many of the newest stores the running thread may read.
std::uint32_t Machine::readable(Location& location, std::int16_t sc_number) noexcept {
  const Lanes horizon = self().now.seen;
  const auto hides_older = [&](const Store& store) {
    if (any(store.seen <= horizon)) return true;
    return sc_number != 0 && (store.seen[kScLane] <= sc_number || store.seen[store.writer] <= sc_before_[store.writer]);
  };
  const std::uint32_t kept = location.kept();
  std::uint32_t n = 1;
  while (n < kept && !hides_older(location.back(n - 1))) ++n;
  return n;
}

// The running thread reads the store.
void Machine::read(Store& store, Order order) noexcept {
  Thread& thread = self();
  if (store.seen[current_] == kNever) store.seen[current_] = thread.clock;
  (acquires(order) ? thread.now : thread.on_acquire).join(store.release);
  thread.hash = mix(thread.hash, store.hash);
}

// The running thread writes the next store of the location. `continues`: as a read-modify-write, it carries on the
// release sequence of the store it replaces.
void Machine::write(Location& location, void* at, unsigned bytes, std::uint64_t value, Order order, std::int16_t sc_number,
                    bool continues) noexcept {
  Thread& thread = self();
  const Store& former = location.back(0);
  View release = releases(order) ? thread.now : thread.on_release;
  if (continues) release.join(former.release);
  thread.hash = mix(mix(thread.hash, former.hash), value);
  ++location.count;
  Store& store = location.back(0);
  store.value = value;
  store.hash = thread.hash;
  store.release = release;
  store.seen = Lanes{} + kNever;
  store.seen[current_] = thread.clock;
  if (sc_number != 0) {
    store.seen[kScLane] = sc_number;
    sc_sum_ += thread.hash;  // a later fence can tell that it came later
  }
  store.writer = static_cast<std::uint8_t>(current_);
  std::memcpy(at, &value, bytes);
}

std::uint64_t Machine::load(const void* at, unsigned bytes, Order order, const Site& site) {
  point();
  Location& location = locate(at, bytes);
  tick();
  const std::int16_t sc_number = enter_sc(order);
  const std::uint32_t candidates = readable(location, sc_number);
  const std::uint32_t back = candidates > 1 ? choose(Choice::kRead, candidates) : 0;
  Store& store = location.back(back);
  read(store, order);
  if (tracing_) note(site, "load", at, std::string(text(order)) + " -> " + hex(store.value) + stale(back));
  return store.value;
}

void Machine::store(void* at, unsigned bytes, std::uint64_t value, Order order, const Site& site) {
  point();
  Location& location = locate(at, bytes);
  tick();
  const std::int16_t sc_number = enter_sc(order);
  write(location, at, bytes, value, order, sc_number, false);
  if (tracing_) note(site, "store", at, std::string(text(order)) + " " + hex(value));
}

std::uint64_t Machine::modify(void* at, unsigned bytes, Modify how, std::uint64_t operand, Order order, const Site& site) {
  point();
  Location& location = locate(at, bytes);
  tick();
  const std::int16_t sc_number = enter_sc(order);
  Store& former = location.back(0);
  const std::uint64_t old = former.value;
  const std::uint64_t value = apply(how, old, operand, bytes);
  read(former, order);
  write(location, at, bytes, value, order, sc_number, true);
  if (tracing_) {
    note(site, text(how), at, std::string(text(order)) + " " + hex(operand) + ": " + hex(old) + " -> " + hex(value));
  }
  return old;
}

bool Machine::compare_exchange(void* at, unsigned bytes, std::uint64_t& expected, std::uint64_t desired, bool weak,
                               Order success, Order failure, const Site& site) {
  point();
  Location& location = locate(at, bytes);
  tick();
  const bool matches = location.back(0).value == expected;
  // It may do these, the ordinary course first: succeed, or fail having read so many stores back.
  constexpr std::uint8_t kSucceed = 0xff;
  std::uint8_t outcomes[Location::kHistory + 2];
  unsigned count = 0;
  outcomes[count++] = matches ? kSucceed : 0;
  if (matches && weak) outcomes[count++] = 0;
  const std::uint32_t candidates =
      readable(location, failure == Order::seq_cst ? static_cast<std::int16_t>(sc_count_ + 1) : 0);
  for (std::uint32_t back = 1; back < candidates; ++back) {
    if (weak || location.back(back).value != expected) outcomes[count++] = static_cast<std::uint8_t>(back);
  }
  const std::uint8_t outcome = outcomes[count > 1 ? choose(Choice::kRead, count) : 0];
  const bool succeeds = outcome == kSucceed;
  const Order order = succeeds ? success : failure;
  self().hash = mix(self().hash, succeeds ? 9 : 10);  // else a failure and a store of the same value would be a success
  const std::int16_t sc_number = enter_sc(order);
  Store& store = location.back(succeeds ? 0 : outcome);
  const std::uint64_t old = store.value;
  read(store, order);
  if (succeeds) write(location, at, bytes, desired, order, sc_number, true);
  if (tracing_) {
    note(site, weak ? "cas_weak" : "cas_strong", at,
         std::string(text(order)) + " " + hex(expected) + " by " + hex(desired) + ": " +
             (succeeds ? "succeeds" : "fails, " + hex(old) + stale(outcome)));
  }
  expected = old;
  return succeeds;
}

// An atomic comes to life in memory that threads may have used before. What was stored there is gone; an access that
// the construction does not happen before is a data race.
void Machine::construct(void* at, unsigned bytes) {
  const std::int16_t clock = tick();
  const auto [location, is_new] = locations_.at(at);
  Thread& thread = self();
  thread.hash = mix(thread.hash, 2);
  location->stores[0] = {read_memory(at, bytes), thread.hash, Lanes{}, View{}, 0};
  location->count = 1;
  location->waiting = 0;
  location->born = clock;
  location->born_by = static_cast<std::uint8_t>(current_);
  if (is_new) location->number = locations_.size();
}

// Not a scheduling point: if threads are ordered here, it is by atomics, and if not, the clocks tell in any order. An
// access belongs to the time after the thread's last atomic one, whose release must not cover it, hence clock + 1.
void Machine::var(const void* at, bool write, const Site& site) {
  Thread& thread = self();
  const auto [cell, is_new] = cells_.at(at);
  if (is_new) {
    cell->written = 0;
    cell->read = Lanes{};
  }
  const auto now = static_cast<std::int16_t>(thread.clock + 1);
  const auto race = [&](unsigned other, const char* did, const Site& other_site) {
    message_ = "data race on " + label(at) + ": T" + std::to_string(current_) + (write ? " writes" : " reads") + " at " +
               place(site) + ", T" + std::to_string(other) + did + place(other_site) +
               ", and neither happens before the other";
    stop(Failure::kRace);
  };
  if (cell->written != 0 && cell->writer != current_ && cell->written > thread.now.hb[cell->writer]) {
    race(cell->writer, " wrote at ", cell->write_site);
  }
  if (write) {
    Lanes known = thread.now.hb;
    known[current_] = kNever;
    if (any(cell->read > known)) {
      unsigned reader = 0;
      while (cell->read[reader] <= known[reader]) ++reader;
      race(reader, " read, last of all at ", cell->read_site);
    }
    cell->writer = static_cast<std::uint8_t>(current_);
    cell->written = now;
    cell->read = Lanes{};
    cell->write_site = site;
  } else {
    cell->read[current_] = now;
    cell->read_site = site;
  }
  if (tracing_) note(site, write ? "var store" : "var load", at, "");
}

void Machine::fence(Order order, const Site& site) {
  if (order == Order::relaxed) return;
  const bool sc = order == Order::seq_cst;
  if (sc) point();  // the others are local to the thread
  tick();
  Thread& thread = self();
  if (acquires(order)) thread.now.join(thread.on_acquire);
  if (sc) {
    fence_sc(thread);
  } else {
    thread.hash = mix(thread.hash, 3);
  }
  if (releases(order)) thread.on_release = thread.now;
  if (tracing_) note(site, "fence", nullptr, text(order));
}

// Its place in the order S.
void Machine::fence_sc(Thread& thread) noexcept {
  thread.now.seen = sim::join(thread.now.seen, sc_seen_);
  thread.now.seen[kScLane] = ++sc_count_;
  sc_seen_ = thread.now.seen;
  sc_before_ = sim::join(sc_before_, thread.now.hb);
  thread.hash = mix(thread.hash, sc_sum_);
  sc_fence_hash_ = thread.hash;
  sc_sum_ += thread.hash;
}

// A full fence in every thread, wherever it stands: what membarrier's interrupts do.
void Machine::heavy_fence(const Site& site) {
  point();
  tick();
  const auto fence_fully = [this](Thread& thread) {
    thread.now.join(thread.on_acquire);
    fence_sc(thread);
    thread.on_release = thread.now;
  };
  fence_fully(self());
  for (unsigned i = 0; i < spawned_; ++i)
    if (i != current_) fence_fully(*threads_[i]);
  fence_fully(self());
  if (tracing_) note(site, "heavy fence", nullptr, "");
}

}  // namespace freehold::sim
