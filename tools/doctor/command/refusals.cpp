// SPDX-License-Identifier: MIT
#include "tools/doctor/command/refusals.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace freehold::doctor::command {

Failure failure_of(const Refused& refused, const std::string& program, const Settings& settings, int signal) {
  const std::string detail = printable(refused.detail()), more = printable(refused.more());
  const auto refuse = [](const std::string& line) { return Failure(kExitRefused, line); };
  switch (refused.why()) {
    case Refusal::kNotExecutable: return {kExitCannotExecute, fmt::format("cannot execute {}: {}", program, detail)};
    case Refusal::kFails:
      return refuse(fmt::format("{} fails as it is: {}{}{}; to examine it all the same: --allow-failure", program, detail,
                                more.empty() ? "" : ": ", more));
    case Refusal::kFailsLater: return refuse(fmt::format("{} works once and then no more: {}", program, detail));
    case Refusal::kNoEnd:
      return refuse(
          fmt::format("{} did not end within {:.0f} s; if it serves until it is told to end, say how long it "
                      "shall: --for 10s --load 'COMMAND'; if it takes so long, give it time: --budget {:.0f}",
                      program, refused.seconds(), 10 * refused.seconds()));
    case Refusal::kNoEndOfLoad:
      return refuse(
          fmt::format("the load of {} did not end within {:.0f} s; end it with --for 10s", program, refused.seconds()));
    case Refusal::kNotReady:
      return refuse(
          fmt::format("{} did not become ready: no socket of its listens{}; say when it is: --ready 'sleep 3', "
                      "or another command that succeeds then",
                      program, settings.server.ready.empty() ? "" : ", or the command of --ready fails"));
    case Refusal::kHidden:
      return refuse(
          fmt::format("{} does not let its memory be read: it forbids core dumps (PR_SET_DUMPABLE), or has rights that you "
                      "have not; run freehold {}",
                      program, ::geteuid() == 0 ? "with the right CAP_SYS_PTRACE" : "as root"));
    case Refusal::kTooShort:
      return refuse(fmt::format("{} ended before its memory could be read; give it more to do", program));
    case Refusal::kInterruptedAtFirst: return {128 + signal, "interrupted before the program had ended for the first time"};
    case Refusal::kInterruptedTooEarly: return {128 + signal, "interrupted before there was anything to tell"};
    case Refusal::kNoFolder: return refuse(fmt::format("cannot make {}: {}", detail, more));
    case Refusal::kNoTemporaryFolder:
      return refuse(fmt::format("no folder for recordings in {}: {}; set TMPDIR", detail, more));
  }
  __builtin_unreachable();
}

}  // namespace freehold::doctor::command
