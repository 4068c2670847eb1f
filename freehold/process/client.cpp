#include "freehold/process/client.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "freehold/process/callbacks.hpp"
#include "freehold/process/named_socket.hpp"

namespace freehold::process {
namespace {

// One for each thread: threads differ in what they wait for.
thread_local constinit AdaptiveSpin t_spin{};

// When a wait of so long ends; kForever if never.
std::uint64_t deadline_of(Nanoseconds time) noexcept {
  if (time == kWaitForEver) return sync::kForever;
  return now() + static_cast<std::uint64_t>(time.count() < 0 ? 0 : time.count());
}
std::uint64_t nanoseconds_of(Nanoseconds time) noexcept {
  return time == kWaitForEver ? 0 : static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}
// How long it is until then, kForever if for ever, 0 if it is over.
std::uint64_t left_until(std::uint64_t end) noexcept {
  if (end == sync::kForever) return sync::kForever;
  const std::uint64_t time = now();
  return time < end ? end - time : 0;
}

// Nanoseconds for which submit() waits for an entry before it moves results out of the table, at first and at most.
constexpr std::uint64_t kFirstWait = 100'000, kLongestWait = 5'000'000;

}  // namespace

// ---- Result and Future

Result::~Result() {
  if (client_ != nullptr) client_->release(ticket_);
}
Result::Result(Result&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      ticket_(other.ticket_),
      failure_(other.failure_),
      has_output_(std::exchange(other.has_output_, false)),
      bytes_(std::exchange(other.bytes_, {})),
      copy_(std::move(other.copy_)) {}
Result& Result::operator=(Result&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(ticket_, other.ticket_);
  std::swap(failure_, other.failure_);
  std::swap(has_output_, other.has_output_);
  std::swap(bytes_, other.bytes_);
  std::swap(copy_, other.copy_);
  return *this;
}

Future::Future(Future&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      ticket_(other.ticket_),
      begun_(other.begun_),
      submit_error_(other.submit_error_) {}
Future& Future::operator=(Future&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(ticket_, other.ticket_);
  std::swap(begun_, other.begun_);
  std::swap(submit_error_, other.submit_error_);
  return *this;
}

bool Future::wait_for(Nanoseconds time) noexcept {
  if (client_ == nullptr) return true;
  const auto over = [this] { return client_->is_over(ticket_); };
  if (over() || (time.count() > 0 && t_spin.until(over))) return true;
  const std::uint64_t end = deadline_of(time);
  while (!over()) {
    const std::uint64_t left = left_until(end);
    if (left == 0) return false;
    client_->table_.wait_for_result(ticket_, client_->longest_wait(left));
    if (!over()) client_->check_waiting_task(ticket_);
    if (client_->pool_is_gone()) return true;  // and get() says so
  }
  return true;
}

Result Future::get() noexcept {
  Result result;
  if (client_ == nullptr) {
    result.failure_ = failure_of(submit_error_);
    return result;
  }
  wait();
  Client& client = *std::exchange(client_, nullptr);
  if (client.table_.take(ticket_)) {
    result.client_ = &client;
    result.ticket_ = ticket_;
    const auto [failure, bytes, none] = client.read_result(ticket_);
    result.failure_ = failure;
    result.bytes_ = {client.table_.output(ticket_.entry), bytes};
  } else if (std::optional<Client::Stored> stored = client.take_stored(ticket_)) {
    result.failure_ = stored->failure;
    result.copy_ = std::move(stored->output);
    result.bytes_ = {result.copy_.get(), stored->bytes};
  } else {
    // The pool's process is dead, or something has written into the table.
    result.failure_ = {client.pool_is_gone() ? FailureKind::kNoWorker : FailureKind::kCorrupt, 0};
    client.held_.fetch_sub(1, std::memory_order_relaxed);
  }
  result.has_output_ = result.failure_.kind == FailureKind::kNone;
  if (!result.has_output_) client.failed_.fetch_add(1, std::memory_order_relaxed);
  client.latencies_.add(now() - begun_);
  return result;
}

void Future::cancel() noexcept {
  if (client_ == nullptr) return;
  Client& client = *std::exchange(client_, nullptr);
  if (!client.table_.drop(ticket_) && client.take_stored(ticket_)) return;  // no entry of ours any more
  client.held_.fetch_sub(1, std::memory_order_relaxed);
}

void Future::kill() noexcept {
  if (client_ == nullptr) return;
  {
    const std::lock_guard guard(client_->stored_lock_);  // or the entry might be another task's by now
    if (client_->table_.kill(ticket_)) {
      notify(client_->wakeup_fd_);
      client_->held_.fetch_sub(1, std::memory_order_relaxed);
      client_ = nullptr;
      return;
    }
  }
  cancel();
}

void Future::then(std::function<void(Result)> function) {
  if (client_ == nullptr) return function(get());
  Client& client = *client_;
  client.callbacks().add(std::move(*this), std::move(function));  // which may destroy this future
}

// ---- Client

Client::Client(const SharedMemory& memory, const TableShape& shape, unsigned slot, int wakeup_fd) noexcept
    : table_(memory.data(), shape), slot_(slot), wakeup_fd_(wakeup_fd) {}
Client::~Client() = default;

Callbacks& Client::callbacks() {
  std::call_once(has_callbacks_, [this] { callbacks_ = std::make_unique<Callbacks>(*this); });
  return *callbacks_;
}

Future Client::submit(std::span<const std::byte> input, const TaskOptions& options) noexcept {
  if (input.size() > table_.shape().max_input) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return Future(SubmitError::kTooLarge);
  }
  Draft draft = this->draft(options);
  if (!draft.valid()) return Future(draft.submit_error());
  if (!input.empty()) std::memcpy(draft.room().data(), input.data(), input.size());
  return draft.submit(input.size());
}

Draft Client::draft(const TaskOptions& options) noexcept {
  Draft draft;
  draft.begun_ = now();
  draft.options_ = options;
  const bool gone = table_.closed() || pool_is_gone();
  const std::optional<Ticket> ticket = gone ? std::nullopt : acquire(options.wait_while_full);
  if (!ticket) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    draft.submit_error_ = gone ? SubmitError::kNoWorker : SubmitError::kFull;
    return draft;
  }
  draft.client_ = this;
  draft.ticket_ = *ticket;
  return draft;
}

Draft::~Draft() {
  if (client_ != nullptr) client_->release(ticket_);
}
Draft::Draft(Draft&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      ticket_(other.ticket_),
      options_(other.options_),
      begun_(other.begun_),
      submit_error_(other.submit_error_) {}
Draft& Draft::operator=(Draft&& other) noexcept {
  std::swap(client_, other.client_);
  std::swap(ticket_, other.ticket_);
  std::swap(options_, other.options_);
  std::swap(begun_, other.begun_);
  std::swap(submit_error_, other.submit_error_);
  return *this;
}

std::span<std::byte> Draft::room() const noexcept {
  if (client_ == nullptr) return {};
  return {client_->table_.input(ticket_.entry), static_cast<std::size_t>(client_->table_.shape().max_input)};
}

Future Draft::submit(std::size_t bytes) noexcept {
  if (client_ == nullptr) return Future(submit_error_);
  if (bytes > client_->table_.shape().max_input) return Future(SubmitError::kTooLarge);
  Client& client = *std::exchange(client_, nullptr);
  const RetryOptions& retry = options_.retry;
  const std::uint64_t delay = nanoseconds_of(retry.delay) / 1'000'000;
  TaskParameters parameters{.limit = nanoseconds_of(options_.limit),
                            .attempts = options_.attempts,
                            .priority = options_.priority,
                            .submitted = begun_,
                            .retry = {.codes = retry.codes,
                                      .attempts = retry.attempts,
                                      .delay_ms = static_cast<std::uint32_t>(std::min<std::uint64_t>(delay, UINT32_MAX))}};
  if (const std::uint64_t within = nanoseconds_of(options_.within); within != 0) {
    parameters.expires = begun_ + within;
    parameters.within_ms = static_cast<std::uint32_t>(std::min<std::uint64_t>(within / 1'000'000, INT32_MAX));
  }
  if (client.table_.submit(ticket_, client.slot_, bytes, parameters) == Submitted::kNotifySupervisor)
    notify(client.wakeup_fd_);
  client.submitted_.fetch_add(1, std::memory_order_relaxed);
  return {client, ticket_, begun_};
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

std::optional<Ticket> Client::acquire(Nanoseconds wait) noexcept {
  held_.fetch_add(1, std::memory_order_relaxed);
  std::optional<Ticket> ticket = table_.try_acquire(slot_);
  if (ticket) return ticket;
  const std::uint64_t end = deadline_of(wait);
  // Others may be about to get results, which saves the copy. Who has submitted all these tasks may be waiting right here.
  std::uint64_t wait_time = kFirstWait;
  while (wait.count() > 0 && !(ticket = table_.try_acquire(slot_))) {
    const std::uint64_t left = left_until(end);
    if (left == 0) break;
    table_.wait_for_space(std::min(left, wait_time));
    if (pool_is_gone()) break;
    store_results();
    if (wait_time < kLongestWait)
      wait_time *= 2;
    else
      look_for_lost_entries();
  }
  if (ticket)
    table_.pass_on_space();
  else
    held_.fetch_sub(1, std::memory_order_relaxed);
  return ticket;
}

// What a task that was taken has left, checked; without its output.
Client::Stored Client::read_result(Ticket ticket) noexcept {
  Stored result{.failure = table_.failure(ticket.entry), .bytes = 0, .output = nullptr};
  const std::uint64_t bytes = table_.output_bytes(ticket.entry);
  if (result.failure.kind > FailureKind::kCorrupt || bytes > table_.shape().max_output) {
    result.failure = {FailureKind::kCorrupt, 0};
    suspect_damage();
  }
  if (result.failure.kind == FailureKind::kNone) result.bytes = static_cast<std::size_t>(bytes);
  return result;
}

// Moves all results of this client that are there out of the table.
void Client::store_results() noexcept {
  const std::lock_guard guard(stored_lock_);
  for (std::uint32_t i = 0; i < table_.shape().entries; ++i) {
    const std::optional<Ticket> ticket = table_.result_of(i, slot_);
    if (!ticket || !table_.take(*ticket)) continue;
    Stored result = read_result(*ticket);
    if (result.bytes != 0) {
      result.output = std::make_unique_for_overwrite<std::byte[]>(result.bytes);
      std::memcpy(result.output.get(), table_.output(i), result.bytes);
    }
    stored_.emplace(id_of(*ticket), std::move(result));
    release(*ticket);
  }
}
std::optional<Client::Stored> Client::take_stored(Ticket ticket) noexcept {
  const std::lock_guard guard(stored_lock_);
  const auto found = stored_.find(id_of(ticket));
  if (found == stored_.end()) return std::nullopt;
  Stored result = std::move(found->second);
  stored_.erase(found);
  return result;
}

// Now and then while a client waits: damage wakes nobody, and the supervisor may be at rest.
void Client::check_waiting_task(Ticket ticket) noexcept {
  const std::optional<TaskWord> word = table_.look(ticket);
  if (!word || word->is_over()) return;
  if (!word->waits() && word->state() != TaskState::kRunning) {
    const std::lock_guard guard(stored_lock_);  // its result is not on its way out
    if (table_.look(ticket) == word) suspect_damage();
  }
  notify(wakeup_fd_);
}
// The table is full, by more entries of ours than we hold.
void Client::look_for_lost_entries() noexcept {
  for (int look = 0; look < 3; ++look)
    if (table_.count_of(slot_) <= held_.load(std::memory_order_relaxed)) return;
  suspect_damage();
}
void Client::suspect_damage() noexcept {
  damage_suspected_.store(true, std::memory_order_relaxed);
  notify(wakeup_fd_);
}

bool Client::is_over(Ticket ticket) const noexcept {
  const std::optional<TaskWord> word = table_.look(ticket);
  return !word || word->is_over();
}

// A pool that is gone wakes nobody, nor does one whose table is damaged.
std::uint64_t Client::longest_wait(std::uint64_t nanoseconds) const noexcept {
  return std::min<std::uint64_t>(nanoseconds, pool_ < 0 ? 250'000'000 : 100'000'000);
}
bool Client::pool_is_gone() const noexcept {
  if (pool_ < 0) return false;
  pollfd ends[2]{{pool_, POLLRDHUP, 0}, {pool_process_, POLLIN, 0}};
  return ::poll(ends, 2, 0) != 0;
}

// Of a task that was taken.
void Client::release(Ticket ticket) noexcept {
  table_.drop(ticket);
  held_.fetch_sub(1, std::memory_order_relaxed);
}

ClientStats Client::stats() const noexcept {
  ClientStats stats;
  stats.submitted = submitted_.load(std::memory_order_relaxed);
  stats.failed = failed_.load(std::memory_order_relaxed);
  stats.refused = refused_.load(std::memory_order_relaxed);
  stats.delivered = latencies_.count();
  stats.median = latencies_.percentile(0.5);
  stats.p90 = latencies_.percentile(0.9);
  stats.p99 = latencies_.percentile(0.99);
  return stats;
}

AttachedClient::AttachedClient(int socket) : socket_(socket) { attach(); }
AttachedClient::AttachedClient(const std::string& name) : socket_(connect_to(name, error_)) {
  if (socket_ >= 0) attach();
}

void AttachedClient::attach() {
  ClientSetup setup;
  error_ = "the pool has refused: no slot is left for another process, or it is another user's";
  if (!receive_client_setup(socket_, setup)) return;
  wakeup_fd_ = setup.wakeup_fd;
  process_ = setup.process;
  memory_ = SharedMemory::attach(setup.memory);
  const std::optional<TableShape> shape =
      memory_.ok() ? Table::shape_of(memory_.data(), memory_.bytes()) : std::optional<TableShape>();
  const auto version = memory_.ok() ? Table::version_of(memory_.data(), memory_.bytes()) : std::optional<std::uint32_t>();
  if (version && *version != Table::kVersion)
    error_ = "the pool is of another version of Freehold: its table is version " + std::to_string(*version) +
             ", this program's version " + std::to_string(Table::kVersion);
  else
    error_ = "what the pool has sent is no task table, or a damaged one";
  if (!shape || setup.number >= shape->clients) return;
  error_.clear();
  client_.emplace(memory_, *shape, setup.number, wakeup_fd_);
  client_->pool_ = socket_;
  client_->pool_process_ = process_;
}
AttachedClient::~AttachedClient() {
  client_.reset();
  if (wakeup_fd_ >= 0) ::close(wakeup_fd_);
  if (process_ >= 0) ::close(process_);
  if (socket_ >= 0) ::close(socket_);
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t n = 0;
  for (const auto& bucket : buckets_) n += bucket.load(std::memory_order_relaxed);
  return n;
}

std::uint64_t Histogram::percentile(double share) const noexcept {
  const auto wanted = static_cast<double>(count()) * share;
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    n += buckets_[i].load(std::memory_order_relaxed);
    if (n != 0 && static_cast<double>(n) >= wanted) return middle_of(i);
  }
  return 0;
}

}  // namespace freehold::process
