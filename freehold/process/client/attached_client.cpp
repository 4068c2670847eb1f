// SPDX-License-Identifier: MIT
#include "freehold/process/client/attached_client.hpp"

#include <unistd.h>

#include <atomic>

#include "freehold/process/client/client.hpp"

namespace freehold::process {

struct AttachedClient::Attachment {
  explicit Attachment(int to) noexcept : socket(to) {}
  ~Attachment() {
    client.reset();
    for (const int fd : {wakeup_fd, process, socket})
      if (fd >= 0) ::close(fd);
  }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // Returns why it cannot be; empty if it is.
  [[nodiscard]] std::string attach();

  const int socket;
  int wakeup_fd = -1, process = -1;
  SharedMemory memory;
  std::optional<Client> client;  // none unless error_ is empty
  std::atomic<bool> draining{false};
};

std::string AttachedClient::Attachment::attach() {
  ClientSetup setup;
  if (!receive_client_setup(socket, setup))
    return "the pool has refused: no slot is left for another process, or it is another user's";
  wakeup_fd = setup.wakeup_fd;
  process = setup.process;
  memory = SharedMemory::attach(setup.memory);
  std::optional<TableShape> shape;
  std::optional<std::uint32_t> version;
  if (memory.ok()) {
    shape = Table::shape_of(memory.data(), memory.bytes());
    version = Table::version_of(memory.data(), memory.bytes());
  }
  if (version && *version != Table::kVersion)
    return "the pool is of another version of Freehold: its table is version " + std::to_string(*version) +
           ", this program's version " + std::to_string(Table::kVersion);
  if (!shape || setup.number >= shape->clients) return "what the pool has sent is no task table, or a damaged one";
  client.emplace(memory, *shape, setup.number, wakeup_fd, socket, process);
  return "";
}

AttachedClient::AttachedClient(int socket) : pool_(std::make_unique<Attachment>(socket)) { error_ = pool_->attach(); }
AttachedClient::AttachedClient(const std::string& name) : pool_(std::make_unique<Attachment>(connect_to(name, error_))) {
  if (pool_->socket >= 0) error_ = pool_->attach();
}
AttachedClient::~AttachedClient() = default;

std::string AttachedClient::error() const {
  return error_.empty() && pool_->client->pool_is_gone() ? "the process that serves the pool has ended" : error_;
}
bool AttachedClient::accepts() const noexcept { return pool_->client && !pool_->draining.load(std::memory_order_relaxed); }

Future AttachedClient::submit(Input input, const TaskOptions& options) noexcept {
  return accepts() ? pool_->client->submit(input, options) : Future(FailureKind::kNoWorker);
}
bool AttachedClient::drain(std::optional<Nanoseconds> timeout) {
  pool_->draining.store(true);
  return !pool_->client || pool_->client->drain(pool_->client->slot(), timeout);
}
ProcessPoolStats AttachedClient::stats() const noexcept {
  return pool_->client ? pool_->client->stats() : ProcessPoolStats();
}

}  // namespace freehold::process
