// SPDX-License-Identifier: MIT
#include "sim/explore.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <stdexcept>

#include "sim/machine.hpp"

namespace freehold::sim {
namespace {

// Returns what the user asked to replay: the environment's, or else the command line's.
std::string requested_replay() {
  if (const char* text = std::getenv("FREEHOLD_REPLAY"); text != nullptr) return text;
  std::ifstream arguments("/proc/self/cmdline");
  const std::string flag = "--replay=";
  for (std::string argument; std::getline(arguments, argument, '\0');) {
    if (argument.starts_with(flag)) return argument.substr(flag.size());
  }
  return {};
}

std::uint64_t number_from(const char* variable, std::uint64_t fallback) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// A search beyond the bounds that a test has chosen, as script/soak asks for.
struct Beyond {
  bool asked = std::getenv("FREEHOLD_SIM_SEED") != nullptr;
  std::uint64_t seed = number_from("FREEHOLD_SIM_SEED", 0);
  unsigned preemptions = static_cast<unsigned>(number_from("FREEHOLD_SIM_PREEMPTIONS", 0));
  unsigned stale = static_cast<unsigned>(number_from("FREEHOLD_SIM_STALE", 0));

  [[nodiscard]] Options of(Options options) const {
    if (!asked) return options;
    options.seed += seed;
    options.depth += preemptions;
    options.preemptions += preemptions;
    options.stale += stale;
    if (options.strategy == Strategy::kPct) options.executions *= number_from("FREEHOLD_SIM_TIMES", 1);
    return options;
  }
};

const char* text(Failure failure) noexcept {
  switch (failure) {
    case Failure::kNone: return "none";
    case Failure::kCheck: return "check";
    case Failure::kRace: return "race";
    case Failure::kDeadlock: return "deadlock";
    case Failure::kLivelock: return "livelock";
    case Failure::kScenario: return "scenario";
  }
  return "?";
}

// Runs the one execution of these answers, with a trace.
Result replay(const Options& options, const std::function<void(Execution&)>& scenario, const Answers& answers) {
  const auto chooser = make_replayer(answers);
  Machine machine(options, *chooser, true);
  chooser->begin();
  machine.execute(scenario);
  Result result;
  result.executions = 1;
  result.steps = machine.steps();
  result.failure = machine.failure();
  if (result.failure != Failure::kNone) result.message = machine.message();
  if (const char* why = chooser->inconsistency(); why != nullptr) {
    result.failure = Failure::kScenario;
    result.message = why;
  }
  result.trace = machine.trace();
  result.replay = options.name + ":" + to_string(answers);
  result.complete = true;
  return result;
}

Result explore_all(const Options& options, const std::function<void(Execution&)>& scenario) {
  Result result;
  const auto chooser = make_chooser(options);
  Machine machine(options, *chooser, false);
  while (result.failure == Failure::kNone) {
    if (!chooser->begin()) {
      result.complete = true;
      break;
    }
    if (result.executions == options.executions) break;
    machine.execute(scenario);
    ++result.executions;
    result.pruned += machine.pruned() ? 1 : 0;
    result.steps += machine.steps();
    result.asked_cpu |= machine.asked_cpu();
    chooser->end(machine.steps());
    if (const char* why = chooser->inconsistency(); why != nullptr) {
      result.failure = Failure::kScenario;
      result.message = std::string("the scenario is not deterministic: ") + why;
      return result;
    }
    result.failure = machine.failure();
  }
  if (result.failure == Failure::kNone) return result;
  const Result again = replay(options, scenario, machine.answers());
  result.message = machine.message();
  result.replay = again.replay;
  result.trace = again.trace;
  if (again.failure != result.failure) {
    result.message += " (and the replay ended otherwise: the scenario is not deterministic)";
    result.failure = Failure::kScenario;
  }
  return result;
}

}  // namespace

Execution::Body& Execution::new_body() {
  if (count_ == kMaxThreads) throw std::logic_error("more threads than the machine has");
  return bodies_[count_++];
}

void Execution::run(void* final_check, void (*call)(void*)) {
  checked_ = true;
  Machine::active()->run(*this, final_check, call);
  clear();
}

void Execution::clear() noexcept {
  while (count_ > 0) {
    --count_;
    bodies_[count_].destroy(bodies_[count_].storage);
  }
}

Result explore(const Options& chosen, const std::function<void(Execution&)>& scenario) {
  const Beyond beyond;
  const Options options = beyond.of(chosen);
  const std::string requested = requested_replay();
  const std::size_t colon = requested.rfind(':');
  Result result;
  if (colon != std::string::npos && requested.substr(0, colon) == options.name) {
    result = replay(options, scenario, parse_answers(requested.substr(colon + 1)));
    std::printf("[ replayed ] %s\n%s", options.name.c_str(), result.trace.c_str());
  } else {
    result = explore_all(options, scenario);
    if (beyond.asked && result.executions == options.executions) result.complete = true;  // as far as it goes
    if (options.print) {
      std::printf("[ explored ] %s: %llu executions (%llu cut short), %llu steps%s%s\n", options.name.c_str(),
                  static_cast<unsigned long long>(result.executions), static_cast<unsigned long long>(result.pruned),
                  static_cast<unsigned long long>(result.steps), result.complete ? ", complete" : "",
                  result.failure == Failure::kNone ? "" : (std::string(", failed: ") + text(result.failure)).c_str());
    }
  }
  std::fflush(stdout);
  return result;
}

void fail(std::string message) {
  if (Machine::active() == nullptr) throw std::logic_error("outside of a scenario: " + message);
  Machine::active()->fail(std::move(message));
}

void fail(const char* message) {
  if (Machine::active() == nullptr) throw std::logic_error(std::string("outside of a scenario: ") + message);
  Machine::active()->fail(message);
}

void name(const void* address, const char* text) {
  if (Machine::active() != nullptr) Machine::active()->name(address, text);
}

void end_outside_thread() {
  if (Machine::active() != nullptr) Machine::active()->end_outside_thread();
}

void set_outside_cpu(unsigned cpu) {
  if (Machine::active() != nullptr) Machine::active()->set_outside_cpu(cpu);
}

std::uint32_t await_end(std::uint32_t known, std::uint32_t of, Site site) {
  return Machine::active()->await_end(known, of, site);
}

bool is_dead(unsigned thread) noexcept { return Machine::active()->is_dead(thread); }

unsigned thread_index() noexcept { return report::threads_run ? Machine::active()->thread() : 0; }

std::ostream& operator<<(std::ostream& out, Failure failure) { return out << text(failure); }

std::ostream& operator<<(std::ostream& out, const Result& result) {
  out << result.executions << " executions, " << (result.complete ? "complete" : "not complete");
  if (result.failure == Failure::kNone) return out;
  return out << "\n"
             << text(result.failure) << ": " << result.message << "\n"
             << result.trace << "replay with FREEHOLD_REPLAY='" << result.replay << "'";
}

}  // namespace freehold::sim
