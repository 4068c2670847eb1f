// SPDX-License-Identifier: MIT
// KeepErrno: what is tried in its scope and refused is no error of the caller's. POSIX asks it of free; programs that look
// at errno after a call of their own, with a malloc in between, need it of a malloc that succeeds.
#pragma once
#include <cerrno>

namespace freehold::base {

class KeepErrno {
 public:
  KeepErrno() noexcept = default;
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_ = errno;
};

}  // namespace freehold::base
