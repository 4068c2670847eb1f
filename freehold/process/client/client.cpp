// SPDX-License-Identifier: MIT
#include "freehold/process/client/client.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "freehold/process/client/callbacks.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {
namespace {

// Inputs from here on are compared with the memory that is left, for some 50 us.
constexpr std::size_t kCheckedBytes = std::size_t{16} << 20;
// Nanoseconds for which submit() waits for an entry before it moves results out of the table, at first and at most.
constexpr std::uint64_t kFirstWait = 100'000, kLongestWait = 5'000'000;
// The longest sleep before a client looks around: neither damage nor the end of another process wakes it.
constexpr std::uint64_t kLongestSleep = 250'000'000, kLongestAttachedSleep = 100'000'000;

}  // namespace

Client::Client(const SharedMemory& memory, const TableShape& shape, unsigned slot, int wakeup_fd) noexcept
    : memory_(memory), table_(memory.data(), shape), slot_(slot), wakeup_fd_(wakeup_fd) {}
Client::~Client() = default;

Callbacks& Client::callbacks() {
  std::call_once(has_callbacks_, [this] { callbacks_ = std::make_unique<Callbacks>(*this); });
  return *callbacks_;
}

void Client::end_callbacks() noexcept {
  if (callbacks_) callbacks_->end();
}

Future Client::submit(Input task, const TaskOptions& options) noexcept {
  const std::span<const std::byte> input = task.bytes();
  if (input.size() > table_.shape().max_input) {
    counts_.count_refused();
    return Future(SubmitError::kTooLarge);
  }
  // A page that cannot be had is no error of a copy: the system kills.
  if (input.size() >= kCheckedBytes && available_memory() / 8 * 7 < input.size()) {
    counts_.count_refused();
    return Future(SubmitError::kNoMemory);
  }
  Draft draft = this->draft(options);
  if (!draft.valid()) return Future(draft.submit_error());
  if (!input.empty()) std::memcpy(draft.room().data(), input.data(), input.size());
  return draft.submit(input.size());
}

Draft Client::draft(const TaskOptions& options) noexcept {
  const std::uint64_t begun = now();
  const bool gone = table_.closed() || pool_is_gone();
  SubmitError error = gone ? SubmitError::kNoWorker : SubmitError::kFull;
  const std::optional<Ticket> ticket = gone ? std::nullopt : acquire(options.submit_timeout, error);
  if (ticket) return {EntryHandle(*this, *ticket, begun), options};
  counts_.count_refused();
  return Draft(error);
}

std::size_t Client::submit_all(std::span<const std::span<const std::byte>> inputs, std::span<Future> futures,
                               const TaskOptions& options) noexcept {
  std::size_t n = 0;
  for (; n < inputs.size(); ++n) {
    futures[n] = submit(inputs[n], options);
    if (!futures[n].valid()) break;
  }
  return n;
}

// `error` changes where waiting is of no use.
std::optional<Ticket> Client::acquire(std::optional<Nanoseconds> wait, SubmitError& error) noexcept {
  held_.fetch_add(1, std::memory_order_relaxed);
  std::optional<Ticket> ticket = table_.try_acquire(slot_);
  if (ticket) return ticket;
  const std::uint64_t end = deadline_of(wait);
  // Other threads may be about to get results, which saves the copy. Or the thread that would get them is waiting here.
  std::uint64_t wait_time = kFirstWait;
  while ((!wait || wait->count() > 0) && !(ticket = table_.try_acquire(slot_))) {
    const std::uint64_t left = left_until(end);
    if (left == 0) break;
    table_.wait_for_space(std::min(left, wait_time));
    if (pool_is_gone()) break;
    if (!store_results()) {
      error = SubmitError::kNoMemory;
      break;
    }
    if (wait_time < kLongestWait)
      wait_time *= 2;
    else
      look_for_lost_entries();
  }
  if (ticket)
    table_.pass_on_space();
  else
    forget_entry();
  return ticket;
}

// The end of a task that was taken, checked, without its output.
Client::Stored Client::read_result(Ticket ticket) noexcept {
  Stored result{.failure = table_.entries()[ticket.entry].failure.load(), .bytes = 0, .output = nullptr};
  const std::uint64_t bytes = table_.entries()[ticket.entry].output_bytes.load();
  if (result.failure.kind > FailureKind::kCorrupt || bytes > table_.shape().max_output) {
    result.failure = {FailureKind::kCorrupt, 0};
    suspect_damage();
  }
  if (result.failure.kind == FailureKind::kNone) result.bytes = static_cast<std::size_t>(bytes);
  return result;
}

// Moves every result of this client out of the table. False: there is no memory for one, and it stays there.
bool Client::store_results() noexcept {
  const std::lock_guard guard(stored_lock_);
  for (std::uint32_t i = 0; i < table_.shape().entries; ++i) {
    const std::optional<Ticket> ticket = table_.entries().result_of(i, slot_);
    if (!ticket) continue;
    const auto bytes =
        static_cast<std::size_t>(std::min(table_.entries()[i].output_bytes.load(), table_.shape().max_output));
    std::unique_ptr<std::byte[]> output(bytes == 0 ? nullptr : new (std::nothrow) std::byte[bytes]);
    if (bytes != 0 && (output == nullptr || (bytes >= kCheckedBytes && available_memory() / 8 * 7 < bytes))) return false;
    if (!table_.entries().take_result(*ticket)) continue;
    Stored result = read_result(*ticket);
    if (result.bytes > bytes) result = {.failure = {FailureKind::kCorrupt, 0}, .bytes = 0, .output = nullptr};
    if (result.bytes != 0) std::memcpy(output.get(), table_.layout().output(i), result.bytes);
    if (result.bytes != 0) result.output = std::move(output);
    stored_.emplace(id_of(*ticket), std::move(result));
    give_back_input(*ticket);
    release(*ticket);
  }
  return true;
}
std::optional<Client::Stored> Client::take_stored(Ticket ticket) noexcept {
  const std::lock_guard guard(stored_lock_);
  const auto found = stored_.find(id_of(ticket));
  if (found == stored_.end()) return std::nullopt;
  Stored result = std::move(found->second);
  stored_.erase(found);
  return result;
}

// A waiting client looks from time to time: damage does not wake it, and the supervisor may be asleep.
void Client::check_waiting_task(Ticket ticket) noexcept {
  const std::optional<TaskWord> word = table_.entries().look(ticket);
  if (!word || word->is_over()) return;
  if (!word->waits() && word->state() != TaskState::kRunning) {
    const std::lock_guard guard(stored_lock_);  // its result is not on its way out
    if (table_.entries().look(ticket) == word) suspect_damage();
  }
  notify(wakeup_fd_);
}
// The table is full, by more entries of ours than we hold.
void Client::look_for_lost_entries() noexcept {
  for (int look = 0; look < 3; ++look)
    if (table_.entries().count_of(slot_) <= held_.load(std::memory_order_relaxed)) return;
  suspect_damage();
}
void Client::suspect_damage() noexcept {
  damage_suspected_.store(true, std::memory_order_relaxed);
  notify(wakeup_fd_);
}

bool Client::is_over(Ticket ticket) const noexcept {
  const std::optional<TaskWord> word = table_.entries().look(ticket);
  return !word || word->is_over();
}

std::uint64_t Client::longest_wait(std::uint64_t nanoseconds) const noexcept {
  return std::min<std::uint64_t>(nanoseconds, pool_socket_ < 0 ? kLongestSleep : kLongestAttachedSleep);
}
bool Client::pool_is_gone() const noexcept {
  if (pool_socket_ < 0) return false;
  pollfd ends[2]{{pool_socket_, POLLRDHUP, 0}, {pool_process_, POLLIN, 0}};
  return ::poll(ends, 2, 0) != 0;
}

// The task is over and was taken: its input is not read any more.
void Client::give_back_input(Ticket ticket) const noexcept {
  if (table_.entries()[ticket.entry].input_bytes.load() >= table_.layout().kPromptBytes)
    table_.layout().purge_input(ticket.entry, [&](std::uint64_t at, std::uint64_t bytes) { memory_.purge(at, bytes); });
}

// The task was taken. One that failed may have written any length.
void Client::release(Ticket ticket) noexcept {
  const bool failed = table_.entries()[ticket.entry].failure.load().kind != FailureKind::kNone;
  if ((failed ? table_.shape().max_output : table_.entries()[ticket.entry].output_bytes.load()) >=
      table_.layout().kPromptBytes)
    table_.layout().purge_output(ticket.entry, [&](std::uint64_t at, std::uint64_t bytes) { memory_.purge(at, bytes); });
  table_.drop(ticket);
  forget_entry();
}

}  // namespace freehold::process
