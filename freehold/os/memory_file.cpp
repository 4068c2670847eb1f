// SPDX-License-Identifier: MIT
#include "freehold/os/memory_file.hpp"

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

int create_memory_file(const char* name, std::uint64_t bytes) noexcept {
  const auto fd = static_cast<int>(system_call(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0) return -1;
  if (system_call(SYS_fchmod, fd, S_IRUSR | S_IWUSR) == 0 && system_call(SYS_ftruncate, fd, bytes) == 0 &&
      kernel::fcntl(fd, F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) == 0)
    return fd;
  const base::KeepErrno keep;
  kernel::close(fd);
  return -1;
}

bool is_sealed_memory_file(int fd) noexcept {
  const int seals = kernel::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSizeSeals) == kSizeSeals;
}

void punch_hole(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  (void)system_call(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

}  // namespace freehold::os
