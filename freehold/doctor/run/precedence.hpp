// SPDX-License-Identifier: MIT
// Makes the runs of an examination go before other processes that keep the machine busy.
#pragma once
#include <string>

namespace freehold::doctor {

// While it is taken, the calling thread and the programs that it starts run before processes of usual priority: at nice
// -20, and so does their session, which the kernel weighs as one (autogroup). That needs CAP_SYS_NICE; without it nothing
// changes. The end gives back what was there. If the process is killed, its session keeps its weight until it is left.
class Precedence {
 public:
  Precedence() = default;
  Precedence(const Precedence&) = delete;
  Precedence& operator=(const Precedence&) = delete;
  ~Precedence();

  // Tries once. Returns whether it is taken.
  bool take();
  [[nodiscard]] bool is_taken() const noexcept { return taken_; }

 private:
  bool tried_ = false, taken_ = false;
  int nice_before_ = 0;
  std::string group_nice_before_;  // empty: the session has no group, or kept its weight
};

}  // namespace freehold::doctor
