// SPDX-License-Identifier: MIT
// A barrier whose last thread does something before all go on. It never allocates.
#ifndef FREEHOLD_SUITES_ONETBB_SPIN_BARRIER_H
#define FREEHOLD_SUITES_ONETBB_SPIN_BARRIER_H

#include <atomic>
#include <thread>

namespace utils {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  template <typename Callback>
  void wait(const Callback& callback) {
    const int epoch = epoch_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      callback();
      arrived_.store(0);
      epoch_.store(epoch + 1);
    } else {
      while (epoch_.load() == epoch) std::this_thread::yield();
    }
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int> epoch_{0};
};

}  // namespace utils

#endif
