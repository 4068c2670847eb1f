// SPDX-License-Identifier: MIT
// The checks of a supervisor at every tick: deadlines, memory, hung starts, stuck tasks, damage, pages to give back.
#include "freehold/process/supervisor/supervisor.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "freehold/process/client/client.hpp"
#include "freehold/process/process_info.hpp"

namespace freehold::process {
namespace {

// A limit of 25 days and more is the greatest value of a failure.
std::int32_t value_of(std::uint64_t milliseconds) noexcept {
  return static_cast<std::int32_t>(std::min<std::uint64_t>(milliseconds, INT32_MAX));
}

// The supervisor's knowledge outside the table, see TableSupervision::find_damage().
struct KnownState {
  std::uint32_t own_epoch;
  const std::function<bool(unsigned)> is_live, is_connected;
  const std::function<bool(std::uint32_t, TaskWord)> lasts;
  std::vector<bool> asked;

  [[nodiscard]] static bool closed() noexcept { return false; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return own_epoch; }
  [[nodiscard]] bool has_another(unsigned worker) {
    const bool before = asked[worker];
    asked[worker] = true;
    return before;
  }
};

}  // namespace

void Supervisor::kill_overdue(std::uint64_t time) noexcept {
  // A worker that was stopped before it could note when it began has begun when a check first saw it.
  const auto since = [&](const Claim& claim, std::uint64_t started, std::uint64_t limit) -> std::uint64_t {
    const std::uint64_t seen = watch_.unchanged_since(claim.entry, claim.word, time);
    const std::uint64_t begun = started != 0 ? started : seen;
    if (time <= begun || time - begun <= limit) return begun;
    return has_had_cpu_time(claim, time, time - begun - limit) ? begun : 0;
  };
  while (const std::optional<Claim> claim = supervision_.find_overdue(time, since)) {
    if (claim->word.worker() >= table_.shape().workers) continue;  // damage, which the next check finds
    const auto& entry = table_.entries()[claim->entry];
    const std::uint64_t limit = entry.limit.load(std::memory_order_relaxed);
    const std::uint64_t milliseconds = entry.expired(time) ? entry.parameters().within_ms() : limit / 1'000'000;
    Slot& worker = slots_[claim->word.worker()];
    worker.kill_reason = {FailureKind::kDeadline, value_of(milliseconds)};
    worker.cancelled = limit == entry.kKilled;
    kill(claim->word.worker());
  }
}

// A worker that waited for a CPU when its task's limit passed gets 5 ms of CPU time before it is killed. Without that, 1 of
// a million empty tasks failed at a limit of 20 ms on a machine with four runnable threads for each CPU.
bool Supervisor::has_had_cpu_time(const Claim& claim, std::uint64_t time, std::uint64_t beyond) noexcept {
  constexpr std::uint64_t kOwnTime = 5'000'000, kMostGrace = 1'000'000'000;
  if (claim.word.worker() >= table_.shape().workers) return false;
  Slot& slot = slots_[claim.word.worker()];
  const std::uint64_t waited = time_without_cpu(slot.pid.load(std::memory_order_relaxed));
  if (!slot.overdue.same_attempt(claim.word) || slot.overdue_entry != claim.entry) {
    slot.overdue = claim.word;
    slot.overdue_entry = claim.entry;
    slot.overdue_since = time;
    slot.overdue_cpu_wait = waited;
    return false;
  }
  const std::uint64_t elapsed = time - slot.overdue_since, lost = waited - slot.overdue_cpu_wait;
  return beyond >= kMostGrace || elapsed >= lost + kOwnTime;
}

void Supervisor::kill_large(std::uint64_t time) noexcept {
  if (!options_.kill_rss_bytes || groups_ || time - last_memory_check_ < kTick) return;
  last_memory_check_ = time;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    const int pid = slots_[slot].pid.load(std::memory_order_relaxed);
    if (pid == 0 || own_resident_bytes(pid) <= *options_.kill_rss_bytes) continue;
    const std::optional<Claim> claim = table_.entries().running(slot);
    if (claim && !claim->word.overdue() && !table_.entries().mark_for_kill(*claim))
      continue;  // it has just finished: not now
    slots_[slot].kill_reason = {FailureKind::kMemory, static_cast<std::int32_t>(*options_.kill_rss_bytes >> 20)};
    kill(slot);
  }
}

void Supervisor::kill_hung_starts(std::uint64_t time) noexcept {
  const std::uint64_t limit = nanoseconds_of(options_.load_timeout);
  for (unsigned slot = 0; limit != 0 && slot < table_.shape().workers; ++slot) {
    Slot& worker = slots_[slot];
    if (worker.pid.load(std::memory_order_relaxed) == 0 || table_.workers().is_up(slot) || time <= worker.born) continue;
    if (time - worker.born <= limit) continue;
    worker.kill_reason = {FailureKind::kDeadline, value_of(limit / 1'000'000)};
    kill(slot);
  }
}

void Supervisor::help_stuck_tasks(std::uint64_t time) noexcept {
  const auto stuck = [&](std::uint32_t entry, TaskWord word) {
    const bool is_stuck = time - watch_.unchanged_since(entry, word, time) >= kTick;
    if (!word.is_over()) return is_stuck;
    // Once: a result may wait for its client for any time.
    return is_stuck && watch_.help(entry);
  };
  supervision_.help_stuck(stuck);
}

// Gives back the pages that free entries do not need; after a delay, since a task of 1 MiB costs several times as much with
// fresh pages. Returns after how long to check again.
std::uint64_t Supervisor::purge(std::uint64_t time) {
  std::uint64_t next = sync::kForever;
  for (std::uint32_t i = 0; table_.layout().has_large_areas() && i < table_.shape().entries; ++i) {
    const TaskWord word = table_.entries().word(i);
    if (word.state() != TaskState::kFree || watch_.is_clean(i, word.generation())) continue;
    const std::uint64_t free_for = time - watch_.unchanged_since(i, word, time);
    if (free_for < kPurgeDelay) {
      next = std::min(next, kPurgeDelay - free_for);
      continue;
    }
    const std::optional<Ticket> ticket = table_.try_acquire_entry(i, TaskWord::kPurger);
    if (!ticket) continue;
    const auto give_back = [&](std::uint64_t offset, std::uint64_t bytes) { memory_.purge(offset, bytes); };
    table_.layout().purge_input(i, give_back);
    table_.layout().purge_output(i, give_back);
    watch_.set_clean(i, ticket->generation);
    table_.drop(*ticket);
  }
  return next;
}

// A slot's count of retries is the worker's to write: it never falls, and each takes a run.
bool Supervisor::may_have_retried(unsigned slot, std::uint64_t count, std::uint64_t time) const noexcept {
  constexpr std::uint64_t kShortestRun = 100, kSlack = 1000;  // nanoseconds; retries after `time` was taken
  const std::uint64_t before = slots_[slot].retried.load(std::memory_order_relaxed);
  const std::uint64_t seen_at = retried_seen_at_.load(std::memory_order_relaxed);
  return count - before <= (time > seen_at ? time - seen_at : 0) / kShortestRun + kSlack;
}

// Returns whether all counts are possible; others are set back.
bool Supervisor::note_retried(std::uint64_t time) noexcept {
  bool possible = true;
  for (unsigned slot = 0; slot < table_.shape().workers; ++slot) {
    std::atomic<std::uint64_t>& before = slots_[slot].retried;
    const std::uint64_t count = table_.workers().retried(slot);
    if (may_have_retried(slot, count, time)) {
      before.store(count, std::memory_order_relaxed);
    } else {
      table_.workers().count_retried(slot, before.load(std::memory_order_relaxed) - count);
      possible = false;
    }
  }
  retried_seen_at_.store(time, std::memory_order_relaxed);
  return possible;
}

void Supervisor::look_for_damage(std::uint64_t time) {
  KnownState known{
      .own_epoch = epoch_,
      .is_live = [&](unsigned worker) { return slots_[worker].pid.load(std::memory_order_relaxed) != 0; },
      .is_connected = [&](unsigned client) { return clients_.is_connected(client); },
      .lasts = [&](std::uint32_t i, TaskWord word) { return time - watch_.unchanged_since(i, word, time) >= 2 * kTick; },
      .asked = std::vector<bool>(table_.shape().workers)};
  const char* damaged = supervision_.find_damage(known);
  if (!note_retried(time) && damaged == nullptr) damaged = "a worker's counts";
  const bool reported = local_client_ != nullptr && local_client_->take_damage_suspicion();
  if (damaged == nullptr && (reported || task_revoked_)) damaged = "a task's state";
  if (damaged != nullptr) reset_table(damaged);
}

void Supervisor::reset_table(const char* damaged) {
  report({.kind = PoolEvent::Kind::kDamaged, .text = damaged, .last_lines = {}});
  wait_until_dead(0);
  task_revoked_ = false;
  damaged_.fetch_add(1, std::memory_order_relaxed);
  epoch_ = static_cast<std::uint32_t>(damaged_.load(std::memory_order_relaxed) << 16 | (now() >> 20 & 0xffff));
  // Odd multiples of the time: no ticket has this generation, but by a chance of 2^-32.
  supervision_.reset(static_cast<std::uint32_t>(now() * 0x9e3779b97f4a7c15 >> 32), epoch_);
  watch_.reset();
}

}  // namespace freehold::process
