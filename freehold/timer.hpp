// SPDX-License-Identifier: MIT
// Timers: thousands or millions of them, set and cancelled in some ten nanoseconds each, in memory of their own.
//
//   #include <freehold/timer.hpp>
//
//   freehold::timer::Driver<> timers;                              // a timing wheel with a thread that calls what is due
//   const auto id = timers.create(callback, context);
//   timers.set_after(id, 30s);                                     // from any thread
//   freehold::timer::OwnedTimer ping(timers, [&] { connection.ping(); });
//   ping.every(30s);
//
//   TimerWheel                  a hierarchical timing wheel: set and cancel in O(1), rounded up to ticks
//   TimerQueue                  exact times, in O(log n); needs the headers of Boost.Intrusive, and is left out without them
//   timer::HeapTimerQueue,      the queues of "Practical testing 30", to be measured: on a private heap,
//   timer::ContainerTimerQueue, on an allocator of your own,
//   timer::DequeTimerQueue      and with that article's containers; they are left out without exceptions
//   timer::Driver               any of them that several threads may use, with a thread of its own
//   timer::OwnedTimer           a timer as an object, once or periodic
//   timer::Sleep                co_await
//   timer::IntrusiveList,       containers of objects that bring their links along
//   timer::IntrusiveMultimap
//
// In an event loop: freehold/timer_asio.hpp, freehold/timer_uv.hpp. Guide, with what all structures promise: docs/timers.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/timer/driver.hpp"
#include "freehold/timer/intrusive_list.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/owned_timer.hpp"
#include "freehold/timer/sleep.hpp"
#include "freehold/timer/timer.hpp"
#include "freehold/timer/timer_wheel.hpp"
#if __has_include(<boost/intrusive/set.hpp>)
#include "freehold/timer/intrusive_multimap.hpp"
#include "freehold/timer/timer_queue.hpp"
#endif
#ifdef __cpp_exceptions  // by which containers say that their allocator has no memory
#include "freehold/timer/container_timer_queue.hpp"
#include "freehold/timer/deque_timer_queue.hpp"
#include "freehold/timer/heap_timer_queue.hpp"
#endif
