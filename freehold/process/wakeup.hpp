// SPDX-License-Identifier: MIT
// The wakeup eventfd of a pool: clients notify it when the supervisor has to look at the table, and the supervisor polls it.
// It is inherited by workers and passed to attached clients. Any thread.
#pragma once

namespace freehold::process {

// Opens one, non-blocking, closed on exec, above the descriptors that a worker gets. Returns -1 and errno.
[[nodiscard]] int open_wakeup() noexcept;
// Makes it readable.
void notify(int wakeup_fd) noexcept;
// Makes it unreadable until the next notify().
void drain_wakeup(int wakeup_fd) noexcept;

}  // namespace freehold::process
