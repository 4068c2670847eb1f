// SPDX-License-Identifier: MIT
#include "freehold/process/client/client.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "freehold/process/client/callbacks.hpp"
#include "freehold/process/client/spin.hpp"
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

// One for each thread: threads differ in what they wait for.
thread_local constinit AdaptiveSpin t_spin{};

std::uint32_t milliseconds_of(std::optional<Nanoseconds> time, std::uint64_t most) noexcept {
  return static_cast<std::uint32_t>(std::min(nanoseconds_of(time) / 1'000'000, most));
}

}  // namespace

Client::Client(const SharedMemory& memory, const TableShape& shape, unsigned slot, int wakeup_fd, int pool_socket,
               int pool_process) noexcept
    : memory_(memory),
      table_(memory.data(), shape),
      slot_(slot),
      wakeup_fd_(wakeup_fd),
      pool_socket_(pool_socket),
      pool_process_(pool_process) {}
Client::~Client() = default;

void Client::then(EntryHandle entry, std::function<void(Result)> function) {
  std::call_once(has_callbacks_, [this] { callbacks_ = std::make_unique<Callbacks>(*this); });
  callbacks_->add(std::move(entry), std::move(function));
}
void Client::end_callbacks() noexcept {
  if (callbacks_) callbacks_->end();
}

Future Client::submit(Input task, const TaskOptions& options) noexcept {
  const std::span<const std::byte> input = task.bytes();
  const std::uint64_t begun = now();
  FailureKind error = FailureKind::kFull;
  std::optional<Ticket> ticket;
  if (input.size() > table_.shape().max_input)
    error = FailureKind::kTooLarge;
  else if (input.size() >= kCheckedBytes && available_memory() / 8 * 7 < input.size())
    error = FailureKind::kNoMemory;  // a page that cannot be had is no error of a copy: the system kills
  else if (table_.closed() || pool_is_gone())
    error = FailureKind::kNoWorker;
  else
    ticket = acquire(options.submit_timeout, error);
  if (!ticket) {
    counts_.count_refused();
    return Future(error);
  }
  if (!input.empty()) std::memcpy(table_.layout().input(ticket->entry), input.data(), input.size());
  const RetryOptions& retry = options.retry;
  TaskParameters parameters{
      .limit = nanoseconds_of(options.run_timeout),
      .attempts = options.max_attempts,
      .priority = options.priority,
      .submitted = begun,
      .retry = {.codes = retry.codes, .attempts = retry.max_attempts, .delay_ms = milliseconds_of(retry.delay, UINT32_MAX)}};
  if (const std::uint64_t within = nanoseconds_of(options.total_timeout); within != 0) {
    parameters.expires = begun + within;
    parameters.within_ms = milliseconds_of(options.total_timeout, INT32_MAX);
  }
  if (table_.submit(*ticket, slot_, input.size(), parameters) == Submitted::kNotifySupervisor) notify(wakeup_fd_);
  counts_.count_submitted();
  return Future(EntryHandle(*this, *ticket, begun));
}

bool Client::drain(std::optional<unsigned> client, std::optional<Nanoseconds> timeout) const noexcept {
  const std::uint64_t end = deadline_of(timeout);
  while (table_.entries().open_of(client) != 0 && !pool_is_gone()) {
    if (left_until(end) == 0) return false;
    constexpr timespec kPollInterval{0, 2'000'000};
    ::nanosleep(&kPollInterval, nullptr);
  }
  return true;
}

ProcessPoolStats Client::stats() const noexcept {
  ProcessPoolStats stats;
  stats.tasks = counts_.stats();
  stats.waiting = table_.entries().waiting();
  stats.running = table_.entries().count(TaskState::kRunning);
  stats.max_open_tasks = table_.shape().entries;
  return stats;
}

// `error` changes where waiting is of no use.
std::optional<Ticket> Client::acquire(std::optional<Nanoseconds> wait, FailureKind& error) noexcept {
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
      error = FailureKind::kNoMemory;
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

bool Client::wait_for(Ticket ticket, std::optional<Nanoseconds> timeout) noexcept {
  const auto over = [this, ticket] { return is_over(ticket); };
  if (over() || ((!timeout || timeout->count() > 0) && t_spin.until(over))) return true;
  const std::uint64_t end = deadline_of(timeout);
  while (!over()) {
    const std::uint64_t left = left_until(end);
    if (left == 0) return false;
    table_.entries().wait(ticket, longest_wait(left));
    if (!over()) check_waiting_task(ticket);
    if (pool_is_gone()) return true;  // and get() says so
  }
  return true;
}

Result Client::get(EntryHandle entry) noexcept {
  wait_for(entry.ticket, std::nullopt);
  Result result = take_result(entry);
  counts_.count_delivered(now() - entry.begun, result.ok());
  return result;
}
Result Client::take_result(const EntryHandle& entry) noexcept {
  const Ticket ticket = entry.ticket;
  if (table_.entries().take_result(ticket)) {
    give_back_input(ticket);
    const auto [failure, bytes, none] = read_result(ticket);
    return {EntryHandle(*this, ticket, entry.begun), failure, std::span(table_.layout().output(ticket.entry), bytes)};
  }
  if (std::optional<Stored> stored = take_stored(ticket)) {
    const std::span<const std::byte> bytes(stored->output.get(), stored->bytes);
    return {Result::Memory(stored->output.release(), [](void* output) { delete[] static_cast<std::byte*>(output); }),
            stored->failure, bytes};
  }
  // The pool's process is dead, or the table was overwritten.
  forget_entry();
  return Result(Failure{pool_is_gone() ? FailureKind::kNoWorker : FailureKind::kCorrupt, 0});
}

void Client::cancel(Ticket ticket) noexcept {
  if (!table_.drop(ticket) && take_stored(ticket)) return;  // its entry is already given back
  forget_entry();
}

void Client::kill(Ticket ticket) noexcept {
  {
    const std::lock_guard guard(stored_lock_);  // or the entry might be another task's by now
    if (table_.kill(ticket)) {
      notify(wakeup_fd_);
      return forget_entry();
    }
  }
  cancel(ticket);
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
