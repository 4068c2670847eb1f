// SPDX-License-Identifier: MIT
// Timers: thousands or millions of them, set and cancelled in some ten nanoseconds each, in memory of their own.
//
//   #include <freehold/timer.hpp>
//
//   freehold::timer::Driver<> timers;                              // a timing wheel with a thread that calls what is due
//   const auto id = timers.create([&] { connection.ping(); });
//   timers.set_after(id, 30s);                                     // from any thread
//   freehold::timer::OwnedTimer ping(timers, [&] { connection.ping(); });
//   ping.every(30s);
//
//   TimerWheel                  a hierarchical timing wheel: set and cancel in O(1), rounded up to ticks
//   timer::Driver               timers that several threads may use, with their own thread
//   timer::OwnedTimer           a timer as an object, once or periodic
//   timer::Sleep                co_await
//
// Exact times: freehold/timer_queue.hpp. In an event loop: freehold/timer_asio.hpp, freehold/timer_uv.hpp. Guide, with
// what all structures promise: docs/timers.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/timer/driver.hpp"
#include "freehold/timer/locking.hpp"
#include "freehold/timer/owned_timer.hpp"
#include "freehold/timer/timer.hpp"
#include "freehold/timer/timer_wheel.hpp"
