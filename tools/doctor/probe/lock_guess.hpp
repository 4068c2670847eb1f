// SPDX-License-Identifier: MIT
// Whether something that threads wait for and wake each other by is a lock: a futex, or a POSIX semaphore.
//
// A thread that had to wait for a lock releases it later itself, and so wakes one of the others. A thread that waits for
// work, a barrier or its turn is woken by another thread, and wakes no other by the same address. So for each address the
// waits are counted, and how many of them the same thread followed by a release. If at least half of them were, it is a
// lock. Waits that were recorded before that was known are corrected when the recording is read.
//
// Any thread. Memory: a table of fixed size; addresses with the same hash displace each other. Cost: a few relaxed loads.
#pragma once

namespace freehold::doctor::probe {

// A wait of this thread for the address is over. Returns whether the address is a lock, as far as is known.
[[nodiscard]] bool waited_for_lock(const void* address) noexcept;
// This thread wakes one of the threads that wait for the address.
void released(const void* address) noexcept;

}  // namespace freehold::doctor::probe
