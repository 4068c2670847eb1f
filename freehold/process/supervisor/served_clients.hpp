// SPDX-License-Identifier: MIT
// The other processes that use a pool: each has a slot of the table and a socket, by whose end the pool knows that it is
// gone.
//
// Threads: the supervisor's; add() any.
#pragma once
#include <mutex>
#include <vector>

#include "freehold/process/table/shared_memory.hpp"

namespace freehold::process {

class ServedClients {
 public:
  // `clients`: slots of the table; slot 0 is this process's own.
  ServedClients(const SharedMemory& memory, int wakeup_fd, unsigned clients)
      : memory_(memory), wakeup_fd_(wakeup_fd), sockets_(clients, -1) {}
  ~ServedClients();
  ServedClients(const ServedClients&) = delete;
  ServedClients& operator=(const ServedClients&) = delete;

  // Takes the socket over, for the next accept().
  void add(int socket);
  // Gives each socket a slot. It is closed if its process belongs to another user, or if no slot is left.
  void accept();
  // Pre: its end of the socket is closed. The system does that after the process's memory is gone.
  void remove(unsigned slot) noexcept;
  void remove_all() noexcept;

  [[nodiscard]] bool is_connected(unsigned slot) const noexcept { return slot == 0 || sockets_[slot] >= 0; }
  // The socket of each slot; -1: free.
  [[nodiscard]] const std::vector<int>& sockets() const noexcept { return sockets_; }

 private:
  const SharedMemory& memory_;
  const int wakeup_fd_;
  std::mutex pending_lock_;
  std::vector<int> pending_;
  std::vector<int> sockets_;
};

}  // namespace freehold::process
