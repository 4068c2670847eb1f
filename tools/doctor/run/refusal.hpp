// SPDX-License-Identifier: MIT
// Why a program cannot be examined. The command turns it into a sentence with the way out.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace freehold::doctor {

enum class Refusal : std::uint8_t {
  kNotExecutable,        // detail: why
  kFails,                // as it is; detail: how, more: its last line
  kFailsLater,           // it worked once and then no more; detail: how
  kNoEnd,                // of the program, within `seconds`
  kNoEndOfLoad,          // of a server's load, within `seconds`
  kNotReady,             // a server that never served
  kHidden,               // the kernel does not let its memory be read
  kTooShort,             // it ended before its memory could be read
  kInterruptedAtFirst,   // before the program had ended for the first time
  kInterruptedTooEarly,  // before there was anything to tell
  kNoFolder,             // for recordings; detail: the folder, more: why
  kNoTemporaryFolder,    // the same
};

class Refused : public std::exception {
 public:
  explicit Refused(Refusal why, std::string detail = {}, std::string more = {}, double seconds = 0)
      : why_(why), detail_(std::move(detail)), more_(std::move(more)), seconds_(seconds) {}
  [[nodiscard]] Refusal why() const noexcept { return why_; }
  [[nodiscard]] const std::string& detail() const noexcept { return detail_; }
  [[nodiscard]] const std::string& more() const noexcept { return more_; }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  [[nodiscard]] const char* what() const noexcept override { return "the program cannot be examined"; }

 private:
  Refusal why_;
  std::string detail_, more_;
  double seconds_;
};

}  // namespace freehold::doctor
