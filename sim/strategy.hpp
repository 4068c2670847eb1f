// SPDX-License-Identifier: MIT
// Strategies decide, at every choice of an execution, what happens next. The machine asks; a strategy answers from its own
// state and learns when an execution begins. Its answers make up the replay string, so every strategy's failures are
// replayed alike, by one more strategy.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/explore.hpp"

namespace freehold::sim {

// Questions of the machine beside which thread runs next. The answer 0 is the ordinary course of things.
enum class Choice : std::uint8_t {
  kRead,      // how many stores back a load reads; a spurious failure or wake-up. Not 0: costs one of Options::stale
  kDecide,    // A::decide: 0 the value, 1 the alternative
  kNotified,  // which of the waiting threads is woken
  kCrash,     // not 0: the running thread stops for ever. Asked while Options::crashes are left
  kMove,      // not 0: the thread goes to another CPU, or is interrupted on its own. Costs a preemption
};

class Chooser {
 public:
  virtual ~Chooser() = default;

  // Prepares the next execution. Returns false if none is left.
  virtual bool begin() = 0;

  // The thread that runs next: a bit of `enabled`, which is not 0. `current` ran last; leaving it while it is enabled is a
  // preemption.
  virtual unsigned schedule(unsigned current, std::uint32_t enabled) = 0;

  // One of 0 … count-1; count is 2 to 32.
  virtual unsigned choose(Choice what, unsigned count) = 0;

  // Returns whether the execution can end here, because an equal state has been explored from with budgets no smaller.
  // `state` identifies what the threads have done so far and which one ran last.
  virtual bool visited(std::uint64_t state) = 0;

  // The execution took so many scheduling points.
  virtual void end(std::uint32_t steps) = 0;

  // The scenario answered differently than before in the same situation: why, or nullptr.
  [[nodiscard]] virtual const char* inconsistency() const noexcept { return nullptr; }
};

std::unique_ptr<Chooser> make_chooser(const Options& options);

// The answers of one execution, in order: thread numbers and choices.
using Answers = std::vector<std::uint8_t>;
std::unique_ptr<Chooser> make_replayer(const Answers& answers);

// "cab3a": a letter per answer, a count after it if repeated.
std::string to_string(const Answers& answers);
// Throws std::invalid_argument.
Answers parse_answers(const std::string& text);

}  // namespace freehold::sim
