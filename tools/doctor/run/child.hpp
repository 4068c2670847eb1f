// SPDX-License-Identifier: MIT
// A child process in its own process group: started with what LaunchOptions say, listened to, waited for. Its life is at
// most that of the Child: what is left of the group is killed.
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tools/doctor/run/event_count.hpp"
#include "tools/doctor/run/program.hpp"

namespace freehold::doctor {

// Seconds of CLOCK_MONOTONIC.
[[nodiscard]] double now_s() noexcept;

// The end of what a pipe brought.
class Tail {
 public:
  explicit Tail(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;
  ~Tail();

  // Makes the pipe; returns the end to write to, -1: no pipe.
  [[nodiscard]] int open();
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Takes what is there.
  void read();
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::size_t most_bytes_;
  int fd_ = -1;
  std::string text_;
};

class Child {
 public:
  Child(Command command, const LaunchOptions& options, const Host& host);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] bool is_up() const noexcept { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Why it could not be started; empty: it was.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }
  // To poll: readable when it has ended (-1: the kernel has no such descriptor), or when it has written something.
  [[nodiscard]] int end_fd() const noexcept { return end_fd_; }
  [[nodiscard]] Tail& out() noexcept { return out_; }
  [[nodiscard]] Tail& err() noexcept { return err_; }

  // Reads what was written, and reaps it if it has ended.
  void attend();
  void signal_group(int signal) const noexcept;

  // Once it is no longer up:
  [[nodiscard]] const Trial& trial() const noexcept { return trial_; }

 private:
  void start(const LaunchOptions& options, const Host& host);

  Command command_;
  pid_t pid_ = -1;
  pid_t group_ = -1;
  int end_fd_ = -1;
  double began_s_ = 0;
  Tail out_, err_;
  std::string why_not_;
  Trial trial_;
  EventCount instructions_;
};

}  // namespace freehold::doctor
