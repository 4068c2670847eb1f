// SPDX-License-Identifier: MIT
// Timers in a libuv loop: a timing wheel on one uv_timer_t of the loop. Needs libuv's headers.
//
//   #include <freehold/timer_uv.hpp>
//
//   freehold::timer::UvTimers<> timers(*uv_default_loop());
//   timers.set_after(timers.create([&] { connection.ping(); }), 30s);
//   uv_run(uv_default_loop(), UV_RUN_DEFAULT);                     // returns when no timer is armed and no work is left
//
// Guide: docs/timers.md.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/timer.hpp"
#include "freehold/timer/loop_timers.hpp"
#include "freehold/timer/uv_timers.hpp"
