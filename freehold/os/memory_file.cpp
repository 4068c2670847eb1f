// SPDX-License-Identifier: MIT
#include "freehold/os/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "freehold/base/keep_errno.hpp"

namespace freehold::os {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

int create_memory_file(const char* name, std::uint64_t bytes) noexcept {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (::fchmod(fd, S_IRUSR | S_IWUSR) == 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(fd, F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) == 0)
    return fd;
  const base::KeepErrno keep;
  ::close(fd);
  return -1;
}

bool is_sealed_memory_file(int fd) noexcept {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSizeSeals) == kSizeSeals;
}

void punch_hole(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

}  // namespace freehold::os
