// SPDX-License-Identifier: MIT
// A program that serves: started, waited for until it serves, loaded, ended.
#include <sys/wait.h>

#include <algorithm>

#include "tools/doctor/run/attendance.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr double kReadyEvery_s = 0.1;  // between two looks whether it serves

// The phases of a service: up, ready, loaded, ended.
class Serving {
 public:
  Serving(const Command& command, const LaunchOptions& options, const Service& service, double deadline, const Host& host)
      : service_(service), deadline_(deadline), attendance_(host), program_(attendance_.start(command, options)) {}

  Run run() {
    Run run;
    if (!program_.why_not().empty()) {
      run.ending = Ending::kNotStarted;
      run.why = program_.why_not();
      return run;
    }
    run.ending = get_ready();
    double load_cpu_s = 0;
    double wall_s = 0;
    if (run.ending == Ending::kEnded) run.ending = serve(run, wall_s, load_cpu_s);
    finish(run);
    run.trial.wall_s = wall_s;
    // To be taken off what others had.
    run.trial.stolen_s = attendance_.absent_s() - load_cpu_s;
    return run;
  }
  [[nodiscard]] Watch::Times times() const { return attendance_.times(); }

 private:
  // kEnded: go on.
  Ending look_around(double deadline) const {
    if (attendance_.stopped()) return Ending::kStopped;
    if (!program_.is_up()) return Ending::kEndedEarly;
    return attendance_.now() >= deadline ? Ending::kOutOfTime : Ending::kEnded;
  }

  bool says_ready() {
    if (service_.ready.empty()) return live::listens(program_.pid());
    Child& asked = attendance_.start(shell(service_.ready), {});
    while (asked.is_up() && attendance_.now() < deadline_ && !attendance_.stopped()) attendance_.wait(deadline_);
    const bool yes = !asked.is_up() && asked.why_not().empty() && ended_well(asked.trial());
    attendance_.forget_last();
    return yes;
  }

  Ending get_ready() {
    if (service_.load.empty()) return Ending::kEnded;
    for (;;) {
      if (const Ending ending = look_around(deadline_); ending != Ending::kEnded)
        return ending == Ending::kOutOfTime ? Ending::kNotReady : ending;
      if (says_ready()) return Ending::kEnded;
      const double until = attendance_.now() + kReadyEvery_s;
      while (attendance_.now() < until && look_around(until) == Ending::kEnded) attendance_.wait(until);
    }
  }

  // The load, or just the time.
  Ending serve(Run& run, double& wall_s, double& load_cpu_s) {
    const double begin = attendance_.now();
    const double until = service_.seconds > 0 ? std::min(deadline_, begin + service_.seconds) : deadline_;
    Child* const load = service_.load.empty() ? nullptr : &attendance_.start(shell(service_.load), {});
    Ending ending = Ending::kEnded;
    while (ending == Ending::kEnded && (load == nullptr || load->is_up())) {
      attendance_.wait(until);
      ending = load == nullptr || load->is_up() ? look_around(until) : Ending::kEnded;
    }
    wall_s = attendance_.now() - begin;
    const bool time_is_up = ending == Ending::kOutOfTime && service_.seconds > 0 && until < deadline_;
    if (load != nullptr) {
      if (load->is_up()) attendance_.end(std::span<Child* const>(&load, 1), grace_s());
      run.output = load->out().text();
      load_cpu_s = load->trial().cpu_s();
      if (ending == Ending::kEnded && !ended_well(load->trial())) {
        ending = Ending::kLoadFailed;
        run.why = last_words_of(*load);
      }
    }
    return time_is_up ? Ending::kEnded : ending;
  }

  // A process that ignores SIGTERM is killed when the deadline is there.
  [[nodiscard]] double grace_s() const { return std::clamp(deadline_ - attendance_.now(), kGraceStopped_s, kGrace_s); }

  void finish(Run& run) {
    Child* const program = &program_;
    if (program_.is_up()) {
      attendance_.end(std::span<Child* const>(&program, 1), run.ending == Ending::kStopped ? kGraceStopped_s : grace_s());
      run.trial = program_.trial();
      // It ended because it was told to: only a crash on the way is its own.
      const int status = run.trial.wait_status;
      if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL) run.trial.wait_status = 0;
    } else {
      run.trial = program_.trial();
    }
    run.last_words = last_words_of(program_);
    if (service_.load.empty()) run.output = program_.out().text();
    attendance_.report(run);
  }

  static Command shell(const std::string& text) {
    return {.file = "/bin/sh", .arguments = {"sh", "-c", text}, .keep_output = true};
  }

  const Service& service_;
  double deadline_;
  Attendance attendance_;
  Child& program_;
};

}  // namespace

Run run_service(const Command& command, const LaunchOptions& options, const Service& service, double seconds,
                const Host& host) {
  const std::vector<unsigned> cpus = cpus_of(std::span(&options, 1));
  const Busy busy_before = busy_on(cpus);
  Serving serving(command, options, service, now_s() + seconds, host);
  Run run = serving.run();
  add_stolen(run, busy_on(cpus) - busy_before, run.trial.cpu_s(), 1, serving.times());
  return run;
}

}  // namespace freehold::doctor
