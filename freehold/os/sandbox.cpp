// SPDX-License-Identifier: MIT
#include "freehold/os/sandbox.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "freehold/os/system_call.hpp"

namespace freehold::os {
namespace {

// Bits of the kernel's interface, by the version that brought them; older headers lack some.
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14, kDeviceControl = std::uint64_t{1} << 15;
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | kTruncate | kDeviceControl;

std::uint64_t handled_by(long version) noexcept {
  const unsigned bits = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
  return (std::uint64_t{1} << bits) - 1;
}

}  // namespace

bool announces_filter(long operation) noexcept { return operation == PR_SET_NO_NEW_PRIVS || operation == PR_SET_SECCOMP; }
bool announces_filter(long number, long first) noexcept {
  return (number == SYS_prctl && announces_filter(first)) ||
         (number == SYS_seccomp && (first == SECCOMP_SET_MODE_STRICT || first == SECCOMP_SET_MODE_FILTER));
}

int forbid_new_privileges() noexcept { return kernel::prctl(PR_SET_NO_NEW_PRIVS, 1) == 0 ? 0 : errno; }

FileRules::FileRules() noexcept {
  const long version = system_call(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0) {
    error_ = errno;
    return;
  }
  handled_ = handled_by(version);
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = handled_;
  // The size of the first member alone, which every version knows.
  rules_ = static_cast<int>(system_call(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0));
  if (rules_ < 0) error_ = errno;
}

FileRules::~FileRules() {
  if (rules_ >= 0) kernel::close(rules_);
}

int FileRules::allow(const char* path, FileAccess access) noexcept {
  if (error_ != 0) return error_;
  std::uint64_t allowed = access == FileAccess::kAll ? handled_ : kRead & handled_;
  if (access == FileAccess::kReadWrite) allowed |= LANDLOCK_ACCESS_FS_WRITE_FILE;
  const int file = kernel::open(path, O_PATH | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? 0 : errno;
  struct stat status{};
  int error = kernel::fstat(file, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISDIR(status.st_mode)) allowed &= kOfFiles;
  const landlock_path_beneath_attr rule{.allowed_access = allowed, .parent_fd = file};
  if (error == 0 && system_call(SYS_landlock_add_rule, rules_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) error = errno;
  kernel::close(file);
  return error;
}

int FileRules::enforce() noexcept {
  if (error_ != 0) return error_;
  return system_call(SYS_landlock_restrict_self, rules_, 0) == 0 ? 0 : errno;
}

#if defined(__x86_64__)

int refuse_sockets() noexcept {
  constexpr std::uint32_t kForeignCalls = 0x40000000;  // those of the x32 ABI, by other numbers
  constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr), kArchitecture = offsetof(seccomp_data, arch);
  const auto statement = [](int code, std::uint32_t k) { return sock_filter{static_cast<std::uint16_t>(code), 0, 0, k}; };
  // Jumps to the next statement, or past `skip` of them.
  const auto unless = [](int test, std::uint32_t k, std::uint8_t skip) {
    return sock_filter{static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), 0, skip, k};
  };
  sock_filter program[] = {
      statement(BPF_LD | BPF_W | BPF_ABS, kArchitecture),
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64},
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      statement(BPF_LD | BPF_W | BPF_ABS, kNumber),
      unless(BPF_JGE, kForeignCalls, 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      unless(BPF_JEQ, SYS_socket, 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      unless(BPF_JEQ, SYS_io_uring_setup, 1),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return system_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0 ? 0 : errno;
}

#else

int refuse_sockets() noexcept { return ENOSYS; }

#endif

}  // namespace freehold::os
