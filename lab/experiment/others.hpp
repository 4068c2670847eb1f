// SPDX-License-Identifier: MIT
// The share of the CPUs that other programs have beside measurements. The system counts CPU time in steps of 10 ms, so a
// short measurement is judged with what went before it: by a window of at least 0.3 s, which is 2% off with two CPUs.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>

namespace freehold::lab {

class OthersShare {
 public:
  // Seconds since some moment; CPU seconds that others had until then.
  struct Mark {
    double now_s = 0;
    double others_s = 0;
  };
  // mark() is asked at the beginning and the end of each measurement.
  OthersShare(unsigned cpus, std::function<Mark()> mark) : cpus_(cpus), mark_(std::move(mark)) { begin(); }

  // A measurement begins.
  void begin() {
    marks_.push_back(mark_());
    begin_s_ = marks_.back().now_s;
  }
  // The share during the measurement that ends, or in the window.
  [[nodiscard]] double end() {
    marks_.push_back(mark_());
    const Mark& last = marks_.back();
    const double from_s = std::min(begin_s_, last.now_s - kWindow_s);
    while (marks_.size() > 2 && marks_[1].now_s <= from_s) marks_.pop_front();
    const Mark& first = marks_.front();
    return std::max(0.0, last.others_s - first.others_s) / (std::max(1e-3, last.now_s - first.now_s) * cpus_);
  }

 private:
  static constexpr double kWindow_s = 0.3;

  unsigned cpus_;
  std::function<Mark()> mark_;
  std::deque<Mark> marks_;  // the first one is the last before the window
  double begin_s_ = 0;
};

}  // namespace freehold::lab
