// SPDX-License-Identifier: MIT
#include "freehold/process/client/future.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include "freehold/process/client/callbacks.hpp"
#include "freehold/process/client/client.hpp"
#include "freehold/process/client/spin.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {
namespace {

// One for each thread: threads differ in what they wait for.
thread_local constinit AdaptiveSpin t_spin{};

std::uint32_t milliseconds_of(std::optional<Nanoseconds> time, std::uint64_t most) noexcept {
  return static_cast<std::uint32_t>(std::min(nanoseconds_of(time) / 1'000'000, most));
}

}  // namespace

Result::~Result() {
  if (entry_.client != nullptr) entry_.client->release(entry_.ticket);
}

bool Future::wait_for(std::optional<Nanoseconds> timeout) noexcept {
  Client* const client = entry_.client;
  if (client == nullptr) return true;
  const Ticket ticket = entry_.ticket;
  const auto over = [client, ticket] { return client->is_over(ticket); };
  if (over() || ((!timeout || timeout->count() > 0) && t_spin.until(over))) return true;
  const std::uint64_t end = deadline_of(timeout);
  while (!over()) {
    const std::uint64_t left = left_until(end);
    if (left == 0) return false;
    client->table_.entries().wait(ticket, client->longest_wait(left));
    if (!over()) client->check_waiting_task(ticket);
    if (client->pool_is_gone()) return true;  // and get() says so
  }
  return true;
}

Result Future::get() noexcept {
  if (!valid()) return Result(failure_of(submit_error_));
  wait();
  Result result;
  Client& client = *std::exchange(entry_.client, nullptr);
  const Ticket ticket = entry_.ticket;
  if (client.table_.entries().take_result(ticket)) {
    result.entry_ = EntryHandle(client, ticket, entry_.begun);
    client.give_back_input(ticket);
    const auto [failure, bytes, none] = client.read_result(ticket);
    result.failure_ = failure;
    result.bytes_ = {client.table_.layout().output(ticket.entry), bytes};
  } else if (std::optional<Client::Stored> stored = client.take_stored(ticket)) {
    result.failure_ = stored->failure;
    result.bytes_ = {stored->output.get(), stored->bytes};
    result.memory_ = {stored->output.release(), [](void* bytes) { delete[] static_cast<std::byte*>(bytes); }};
  } else {
    // The pool's process is dead, or the table was overwritten.
    result.failure_ = {client.pool_is_gone() ? FailureKind::kNoWorker : FailureKind::kCorrupt, 0};
    client.forget_entry();
  }
  result.has_output_ = result.failure_.kind == FailureKind::kNone;
  client.counts_.count_delivered(now() - entry_.begun, result.has_output_);
  return result;
}

void Future::cancel() noexcept {
  if (!valid()) return;
  Client& client = *std::exchange(entry_.client, nullptr);
  if (!client.table_.drop(entry_.ticket) && client.take_stored(entry_.ticket)) return;  // its entry is already given back
  client.forget_entry();
}

void Future::kill() noexcept {
  if (!valid()) return;
  {
    Client& client = *entry_.client;
    const std::lock_guard guard(client.stored_lock_);  // or the entry might be another task's by now
    if (client.table_.kill(entry_.ticket)) {
      notify(client.wakeup_fd_);
      client.forget_entry();
      entry_.client = nullptr;
      return;
    }
  }
  cancel();
}

void Future::then(std::function<void(Result)> function) {
  if (!valid()) return function(get());
  Client& client = *entry_.client;
  client.callbacks().add(std::move(*this), std::move(function));  // which may destroy this future
}

Draft::~Draft() {
  if (entry_.client != nullptr) entry_.client->release(entry_.ticket);
}

std::span<std::byte> Draft::room() const noexcept {
  if (!valid()) return {};
  Table& table = entry_.client->table_;
  return {table.layout().input(entry_.ticket.entry), static_cast<std::size_t>(table.shape().max_input)};
}

Future Draft::submit(std::size_t bytes) noexcept {
  if (!valid()) return Future(submit_error_);
  Client& client = *entry_.client;
  if (bytes > client.table_.shape().max_input) return Future(SubmitError::kTooLarge);
  const RetryOptions& retry = options_.retry;
  TaskParameters parameters{
      .limit = nanoseconds_of(options_.run_timeout),
      .attempts = options_.max_attempts,
      .priority = options_.priority,
      .submitted = entry_.begun,
      .retry = {.codes = retry.codes, .attempts = retry.max_attempts, .delay_ms = milliseconds_of(retry.delay, UINT32_MAX)}};
  if (const std::uint64_t within = nanoseconds_of(options_.total_timeout); within != 0) {
    parameters.expires = entry_.begun + within;
    parameters.within_ms = milliseconds_of(options_.total_timeout, INT32_MAX);
  }
  if (client.table_.submit(entry_.ticket, client.slot_, bytes, parameters) == Submitted::kNotifySupervisor)
    notify(client.wakeup_fd_);
  client.counts_.count_submitted();
  return Future(std::move(entry_));
}

}  // namespace freehold::process
