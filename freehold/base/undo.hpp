// SPDX-License-Identifier: MIT
// A scope guard: calls `f()` at the end of the scope, unless dismissed. It takes the place of catch (...) { f(); throw; }
// and also works in programs without exceptions.
#pragma once
#include <utility>

namespace freehold::base {

template <class F>
class [[nodiscard]] Undo {
 public:
  explicit Undo(F f) noexcept : f_(std::move(f)) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (!dismissed_) f_();
  }
  void dismiss() noexcept { dismissed_ = true; }

 private:
  F f_;
  bool dismissed_ = false;
};

}  // namespace freehold::base
