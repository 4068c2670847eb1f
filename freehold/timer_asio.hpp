// SPDX-License-Identifier: MIT
// Timers in a Boost.Asio io_context: a timing wheel on one steady_timer of the context. Needs Boost's headers.
//
//   #include <freehold/timer_asio.hpp>
//
//   boost::asio::io_context context;
//   freehold::timer::AsioTimers<> timers(context);
//   timers.set_after(timers.create([&] { connection.ping(); }), 30s);
//   context.run();                                                 // returns when no timer is armed and no work is left
//
// Guide: docs/timers.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/timer.hpp"
#include "freehold/timer/asio_timers.hpp"
#include "freehold/timer/loop_timers.hpp"
