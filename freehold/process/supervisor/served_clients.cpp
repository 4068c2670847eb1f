// SPDX-License-Identifier: MIT
#include "freehold/process/supervisor/served_clients.hpp"

#include <unistd.h>

#include <utility>

#include "freehold/os/process_handle.hpp"

namespace freehold::process {

ServedClients::~ServedClients() {
  remove_all();
  for (const int socket : pending_) ::close(socket);
}

void ServedClients::add(int socket) {
  const std::lock_guard guard(pending_lock_);
  pending_.push_back(socket);
}

void ServedClients::accept() {
  std::vector<int> pending;
  {
    const std::lock_guard guard(pending_lock_);
    pending.swap(pending_);
  }
  for (const int socket : pending) {
    unsigned slot = 1;
    while (slot < sockets_.size() && sockets_[slot] >= 0) ++slot;
    // A child of this process may have a copy of the socket, so its end does not tell the client that this process is dead;
    // the pidfd does.
    const int self = slot < sockets_.size() ? os::open_process(::getpid()) : -1;
    if (self >= 0 && send_client_setup(socket, {memory_.fd(), wakeup_fd_, self, slot}))
      sockets_[slot] = socket;
    else
      ::close(socket);
    if (self >= 0) ::close(self);
  }
}

void ServedClients::remove(unsigned slot) noexcept { ::close(std::exchange(sockets_[slot], -1)); }
void ServedClients::remove_all() noexcept {
  for (unsigned slot = 1; slot < sockets_.size(); ++slot)
    if (sockets_[slot] >= 0) remove(slot);
}

}  // namespace freehold::process
