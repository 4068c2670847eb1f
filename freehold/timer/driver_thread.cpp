// SPDX-License-Identifier: MIT
#include <memory>
#include <system_error>

#include "freehold/timer/driver.hpp"

namespace freehold::timer {
namespace {

struct Start {
  void (*run)(void* context);
  void* context;
};

}  // namespace

void DriverThread::start(void (*run)(void* context), void* context) {
  auto start = std::make_unique<Start>(run, context);
  const auto begin = [](void* what) -> void* {
    const std::unique_ptr<Start> mine(static_cast<Start*>(what));
    mine->run(mine->context);
    return nullptr;
  };
  is_joinable_ = true;  // before the thread looks
  if (const int error = ::pthread_create(&thread_, nullptr, begin, start.get()); error != 0) {
    is_joinable_ = false;
    throw std::system_error(error, std::generic_category());
  }
  (void)start.release();
}

void DriverThread::join() noexcept {
  ::pthread_join(thread_, nullptr);
  is_joinable_ = false;
}

}  // namespace freehold::timer
