// SPDX-License-Identifier: MIT
#include "freehold/process/client/attached_client.hpp"

#include <unistd.h>

#include "freehold/process/named_socket.hpp"

namespace freehold::process {

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
  std::optional<TableShape> shape;
  std::optional<std::uint32_t> version;
  if (memory_.ok()) {
    shape = Table::shape_of(memory_.data(), memory_.bytes());
    version = Table::version_of(memory_.data(), memory_.bytes());
  }
  if (version && *version != Table::kVersion)
    error_ = "the pool is of another version of Freehold: its table is version " + std::to_string(*version) +
             ", this program's version " + std::to_string(Table::kVersion);
  else
    error_ = "what the pool has sent is no task table, or a damaged one";
  if (!shape || setup.number >= shape->clients) return;
  error_.clear();
  client_.emplace(memory_, *shape, setup.number, wakeup_fd_);
  client_->pool_socket_ = socket_;
  client_->pool_process_ = process_;
}

AttachedClient::~AttachedClient() {
  client_.reset();
  for (const int fd : {wakeup_fd_, process_, socket_})
    if (fd >= 0) ::close(fd);
}

}  // namespace freehold::process
