// SPDX-License-Identifier: MIT
// The machine's CPUs: which one a thread is on, and restartable sequences, which a move or an interrupt ends.
#include <algorithm>

#include "sim/machine.hpp"

namespace freehold::sim {
using machine::hex, machine::mix;

// A thread within a restartable sequence on the CPU where another thread runs has been preempted.
void Machine::arrive_on_cpu(const Thread& runner) noexcept {
  for (unsigned i = 0; i < spawned_; ++i) {
    Thread& other = *threads_[i];
    if (&other != &runner && other.in_sequence && other.cpu == runner.cpu) interrupt(other);
  }
}

void Machine::interrupt(Thread& thread) noexcept {
  thread.in_sequence = false;
  thread.hash = mix(thread.hash, 7);
}

// At points where it makes a difference, the running thread may find itself on another CPU, or, in a sequence, interrupted
// on its own.
void Machine::perhaps_move(bool in_sequence) {
  if (options_.cpus == 0) return;
  const unsigned answers = options_.cpus + (in_sequence ? 1 : 0);
  if (answers < 2) return;
  const unsigned answer = choose(Choice::kMove, answers);
  if (answer == 0) return;
  Thread& thread = self();
  if (answer < options_.cpus) {
    thread.cpu = (thread.cpu + answer) % options_.cpus;
    thread.hash = mix(thread.hash, 8 + thread.cpu);
    arrive_on_cpu(thread);
  }
  if (in_sequence) interrupt(thread);
  if (tracing_) {
    trace_.push_back("T" + std::to_string(current_) +
                     (answer < options_.cpus ? " moves to CPU " + std::to_string(thread.cpu) : " is interrupted"));
  }
}

unsigned Machine::cpu() {
  asked_cpu_ = true;
  if (phase_ != Phase::kThreads) return outside_cpu_;
  perhaps_move(false);
  self().hash = mix(self().hash, 16 + self().cpu);  // it knows where it is now
  return self().cpu;
}

unsigned Machine::sequence_begin() {
  asked_cpu_ = true;
  if (phase_ != Phase::kThreads) return outside_cpu_;
  perhaps_move(false);
  point();
  Thread& thread = self();
  const Cpu& here = cpus_[thread.cpu];
  tick();
  thread.now.join(here.view);
  thread.hash = mix(mix(thread.hash, 24 + thread.cpu), here.hash);
  thread.in_sequence = true;
  if (tracing_) trace_.push_back("T" + std::to_string(current_) + " begins a sequence on CPU " + std::to_string(thread.cpu));
  return thread.cpu;
}

bool Machine::sequence_store(void* at, unsigned bytes, std::uint64_t value, bool commits, const Site& site) {
  point();
  Thread& thread = self();
  if (thread.in_sequence) perhaps_move(true);
  if (!thread.in_sequence) {
    if (tracing_) note(site, "abort", at, "");
    return false;
  }
  Location& location = locate(at, bytes);
  tick();
  write(location, at, bytes, value, Order::relaxed, 0, false);
  if (commits) {
    Cpu& here = cpus_[thread.cpu];
    here.view.join(thread.now);
    here.hash = thread.hash;
    thread.in_sequence = false;
  }
  if (tracing_) note(site, commits ? "commit" : "seq. store", at, hex(value));
  return true;
}

}  // namespace freehold::sim
