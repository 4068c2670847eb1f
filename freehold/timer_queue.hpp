// SPDX-License-Identifier: MIT
// Timers in the order of their exact times, and the containers that they are made of.
//
//   #include <freehold/timer_queue.hpp>
//
//   freehold::TimerQueue<> timers;                                 // as TimerWheel
//
//   TimerQueue                  set and cancel in O(log n), in exact order
//   timer::IntrusiveList        objects that bring their links along: struct Job : timer::ListHook<Job>
//   timer::IntrusiveMultimap    the same by a key: struct Job : timer::MultimapHook<Job, Time>
//
// Guide: docs/timers.md. Rounded up to ticks, in O(1): TimerWheel in freehold/timer.hpp.
#pragma once
#include "freehold/base/cxx20.hpp"
#include "freehold/timer/intrusive_list.hpp"
#include "freehold/timer/intrusive_multimap.hpp"
#include "freehold/timer/timer_queue.hpp"
