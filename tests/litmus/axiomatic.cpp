// SPDX-License-Identifier: MIT
#include "tests/litmus/axiomatic.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace freehold::litmus {
namespace {

using Order = std::memory_order;
using Events = std::uint32_t;  // a set of events

constexpr unsigned kMaxEvents = kLocations + kMaxInstructions;
constexpr unsigned kNone = kMaxEvents;

constexpr Events bit(unsigned event) noexcept { return Events{1} << event; }

template <class Visit>
void for_each(Events events, Visit&& visit) {
  for (; events != 0; events &= events - 1) visit(static_cast<unsigned>(std::countr_zero(events)));
}

// A relation between events: for each, those that it is related to.
struct Relation {
  std::array<Events, kMaxEvents> to{};

  void add(unsigned from, unsigned event) noexcept { to[from] |= bit(event); }
  [[nodiscard]] bool has(unsigned from, unsigned event) const noexcept { return (to[from] & bit(event)) != 0; }
  friend Relation operator|(Relation a, const Relation& b) noexcept {
    for (unsigned i = 0; i < kMaxEvents; ++i) a.to[i] |= b.to[i];
    return a;
  }
};

// First a, then b.
Relation then(const Relation& a, const Relation& b) noexcept {
  Relation result;
  for (unsigned i = 0; i < kMaxEvents; ++i) for_each(a.to[i], [&](unsigned middle) { result.to[i] |= b.to[middle]; });
  return result;
}
Relation closure(Relation r) noexcept {
  for (unsigned middle = 0; middle < kMaxEvents; ++middle)
    for (unsigned i = 0; i < kMaxEvents; ++i)
      if (r.has(i, middle)) r.to[i] |= r.to[middle];
  return r;
}
Relation or_same(Relation r) noexcept {
  for (unsigned i = 0; i < kMaxEvents; ++i) r.add(i, i);
  return r;
}
Relation between(Events from, Relation r, Events to) noexcept {
  for (unsigned i = 0; i < kMaxEvents; ++i) r.to[i] = (from & bit(i)) != 0 ? r.to[i] & to : 0;
  return r;
}
bool reflexive(const Relation& r) noexcept {
  for (unsigned i = 0; i < kMaxEvents; ++i)
    if (r.has(i, i)) return true;
  return false;
}
bool cyclic(const Relation& r) noexcept { return reflexive(closure(r)); }

constexpr bool is_acquire(Order order) noexcept {
  return order == Order::acquire || order == Order::acq_rel || order == Order::seq_cst;
}
constexpr bool is_release(Order order) noexcept {
  return order == Order::release || order == Order::acq_rel || order == Order::seq_cst;
}

// The first events are the initial stores, one for each location; then come the instructions in the order of the program.
class Enumeration {
 public:
  explicit Enumeration(const Program& program) : program_(program), locations_(program.locations()) {
    Events before = 0;
    for (unsigned i = 0; i < locations_; ++i) {
      at_[i].kind = Kind::kStore;
      at_[i].order = Order::relaxed;
      at_[i].location = static_cast<std::uint8_t>(i);
      before |= bit(i);
    }
    initial_ = before;
    events_ = locations_;
    for (const Thread& thread : program.threads) {
      Events earlier = before;
      for (const Instruction& instruction : thread) {
        at_[events_] = instruction;
        for_each(earlier, [&](unsigned event) { sb_.add(event, events_); });
        earlier |= bit(events_);
        if (instruction.reads()) readers_.push_back(events_);
        ++events_;
      }
    }
  }

  Allowed run() {
    choose_source(0);
    return result_;
  }

 private:
  [[nodiscard]] bool same_location(unsigned a, unsigned b) const noexcept {
    return at_[a].kind != Kind::kFence && at_[b].kind != Kind::kFence && at_[a].location == at_[b].location;
  }

  // ---- rf

  void choose_source(std::size_t reader) {
    if (reader == readers_.size()) {
      choose_failures(0, 0);
      return;
    }
    const unsigned event = readers_[reader];
    for (unsigned store = 0; store < events_; ++store) {
      if (store == event || !at_[store].may_write() || !same_location(store, event) || sb_.has(event, store)) continue;
      source_[event] = store;
      choose_source(reader + 1);
    }
  }

  // Which of the weak compare-exchanges fail though they read what they expect.
  void choose_failures(std::size_t reader, Events failing) {
    while (reader < readers_.size() && at_[readers_[reader]].kind != Kind::kWeakCas) ++reader;
    if (reader == readers_.size()) {
      with_sources(failing);
      return;
    }
    choose_failures(reader + 1, failing);
    choose_failures(reader + 1, failing | bit(readers_[reader]));
  }

  void with_sources(Events failing) {
    if (!evaluate(failing)) return;
    happens_before();
    if (reflexive(hb_)) return;
    choose_next_store(0, initial_ & bit(0), 0);
  }

  // The values, once every read has its store. False if there is no such execution: a failed compare-exchange stores
  // nothing, one that reads something else does not fail for no reason, and no value comes from itself.
  bool evaluate(Events failing) {
    writers_ = initial_;
    Events known = initial_;
    for (unsigned event = locations_; event < events_; ++event) {
      if (at_[event].kind == Kind::kStore) value_[event] = at_[event].operand;
      if (at_[event].kind == Kind::kStore) writers_ |= bit(event);
      if (!at_[event].reads()) known |= bit(event);
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (const unsigned event : readers_) {
        if ((known & bit(event)) != 0 || (known & bit(source_[event])) == 0) continue;
        if ((writers_ & bit(source_[event])) == 0 || !execute(event, (failing & bit(event)) != 0)) return false;
        known |= bit(event);
        progress = true;
      }
    }
    return known == bit(events_) - 1;
  }

  bool execute(unsigned event, bool fails) {
    const Instruction& i = at_[event];
    const std::uint8_t old = value_[source_[event]];
    read_[event] = old;
    order_[event] = i.order;
    if (i.compares()) {
      if (fails && old != i.expected) return false;
      if (fails || old != i.expected) {
        order_[event] = i.failure;
        return true;
      }
    }
    if (!i.may_write()) return true;
    value_[event] = i.kind == Kind::kAdd ? static_cast<std::uint8_t>(old + i.operand) : i.operand;
    writers_ |= bit(event);
    return true;
  }

  [[nodiscard]] Order order(unsigned event) const noexcept { return at_[event].reads() ? order_[event] : at_[event].order; }

  // ---- hb

  // The event synchronises with what reads from the release sequence of `store`.
  void happens_before() {
    rf_ = Relation{};
    for (const unsigned event : readers_) rf_.add(source_[event], event);
    seq_cst_ = fences_ = 0;
    for (unsigned event = locations_; event < events_; ++event) {
      if (order(event) != Order::seq_cst) continue;
      seq_cst_ |= bit(event);
      if (at_[event].kind == Kind::kFence) fences_ |= bit(event);
    }
    Relation sw;
    for_each(writers_ & ~initial_, [&](unsigned store) {
      const Events from = side(store, is_release, true);
      if (from == 0) return;
      Events to = 0;
      for_each(readers_of_sequence(store), [&](unsigned reader) { to |= side(reader, is_acquire, false); });
      for_each(from, [&](unsigned event) { sw.to[event] |= to; });
    });
    hb_ = closure(sb_ | sw);
  }

  // The access itself, if it releases (acquires), and the fences that do so before (after) it.
  template <class Is>
  [[nodiscard]] Events side(unsigned access, Is is, bool before) const {
    Events result = is(order(access)) ? bit(access) : 0;
    for (unsigned event = locations_; event < events_; ++event) {
      if (at_[event].kind != Kind::kFence || !is(order(event))) continue;
      if (before ? sb_.has(event, access) : sb_.has(access, event)) result |= bit(event);
    }
    return result;
  }

  // Of the store, and of the read-modify-writes that read from one another since.
  [[nodiscard]] Events readers_of_sequence(unsigned store) const {
    Events result = 0;
    for (Events sequence = bit(store); sequence != 0;) {
      Events next = 0;
      for_each(sequence, [&](unsigned member) { next |= rf_.to[member] & ~result; });
      result |= next;
      sequence = next & writers_;
    }
    return result;
  }

  // ---- mo

  // Appends a store to the order of the location. `placed` are those of all locations that have their place.
  void choose_next_store(unsigned location, Events placed, unsigned last) {
    if (location == locations_) {
      judge();
      return;
    }
    Events rest = 0;
    for_each(writers_ & ~placed, [&](unsigned store) { rest |= at_[store].location == location ? bit(store) : 0; });
    if (rest == 0) {
      const unsigned next = location + 1;
      choose_next_store(next, placed | (next < locations_ ? bit(next) : 0), next);
      return;
    }
    for_each(rest, [&](unsigned store) {
      const bool overtakes = (rest & ~bit(store) & earlier_in_thread(store)) != 0;
      if (overtakes || (at_[store].reads() && source_[store] != last)) return;
      after_[last] = store;
      choose_next_store(location, placed | bit(store), store);
    });
    after_[last] = kNone;
  }

  [[nodiscard]] Events earlier_in_thread(unsigned event) const noexcept {
    Events result = 0;
    for (unsigned other = 0; other < events_; ++other) result |= sb_.has(other, event) ? bit(other) : 0;
    return result;
  }

  // ---- the axioms

  void judge() {
    Relation next;
    for_each(writers_, [&](unsigned store) {
      if (after_[store] != kNone) next.add(store, after_[store]);
    });
    const Relation mo = closure(next);
    Relation fr;
    for (const unsigned event : readers_) fr.to[event] = mo.to[source_[event]] & ~bit(event);
    const Relation eco = closure(rf_ | mo | fr);
    if (reflexive(eco) || reflexive(then(hb_, eco))) return;
    const Relation order = partial_order(mo, fr, eco);
    if (cyclic(order)) return;
    const Relation done = sb_ | rf_;
    const Needs needs = cyclic(done)                ? Needs::kLoadBuffering
                        : cyclic(done | mo)         ? Needs::kModificationOrder
                        : cyclic(done | mo | order) ? Needs::kOrderOfSeqCst
                                                    : Needs::kNothing;
    const auto [entry, is_new] = result_.outcomes.try_emplace(observed(), needs);
    if (!is_new) entry->second = std::min(entry->second, needs);
  }

  // psc of RC11.
  [[nodiscard]] Relation partial_order(const Relation& mo, const Relation& fr, const Relation& eco) const {
    if (seq_cst_ == 0) return {};
    const Events all = bit(events_) - 1;
    Relation elsewhere, here;  // sb and hb, between different locations and within one
    for (unsigned a = 0; a < events_; ++a) {
      for_each(sb_.to[a], [&](unsigned b) { elsewhere.to[a] |= same_location(a, b) ? 0 : bit(b); });
      for_each(hb_.to[a], [&](unsigned b) { here.to[a] |= same_location(a, b) ? bit(b) : 0; });
    }
    const Relation scb = sb_ | then(then(elsewhere, hb_), elsewhere) | here | mo | fr;
    const Relation before = between(seq_cst_, or_same({}), seq_cst_) | between(fences_, or_same(hb_), all);
    const Relation after = between(seq_cst_, or_same({}), seq_cst_) | between(all, or_same(hb_), fences_);
    const Relation of_fences = between(fences_, hb_ | then(then(hb_, eco), hb_), fences_);
    return then(then(before, scb), after) | of_fences;
  }

  [[nodiscard]] std::string observed() const {
    Observed seen;
    for (const unsigned event : readers_) {
      seen.read[event - locations_] = read_[event];
      seen.swapped[event - locations_] = (writers_ & bit(event)) != 0;
    }
    for_each(writers_, [&](unsigned store) {
      if (after_[store] == kNone) seen.last[at_[store].location] = value_[store];
    });
    return outcome(program_, seen);
  }

  const Program& program_;
  const unsigned locations_;
  unsigned events_ = 0;
  std::array<Instruction, kMaxEvents> at_{};
  std::vector<unsigned> readers_;
  Events initial_ = 0;
  Relation sb_;

  // The candidate.
  std::array<unsigned, kMaxEvents> source_{};
  std::array<std::uint8_t, kMaxEvents> value_{}, read_{};
  std::array<Order, kMaxEvents> order_{};
  Events writers_ = 0, seq_cst_ = 0, fences_ = 0;
  Relation rf_, hb_;
  std::array<unsigned, kMaxEvents> after_ = filled_with_none();  // the next store of the location

  static constexpr std::array<unsigned, kMaxEvents> filled_with_none() {
    std::array<unsigned, kMaxEvents> result{};
    result.fill(kNone);
    return result;
  }

  Allowed result_;
};

}  // namespace

Allowed allowed_by_axioms(const Program& program) { return Enumeration(program).run(); }

std::uint64_t candidates(const Program& program) noexcept {
  std::array<std::uint64_t, kLocations> stores{}, reads{};
  std::uint64_t result = 1;
  for (const Thread& thread : program.threads) {
    for (const Instruction& i : thread) {
      if (i.may_write()) ++stores[i.location];
      if (i.reads()) ++reads[i.location];
      if (i.kind == Kind::kWeakCas) result *= 2;
    }
  }
  for (unsigned location = 0; location < kLocations; ++location) {
    for (std::uint64_t n = 2; n <= stores[location]; ++n) result *= n;
    for (std::uint64_t n = 0; n < reads[location]; ++n) result *= stores[location] + 1;
  }
  return result;
}

}  // namespace freehold::litmus
