#include "freehold/process/confine.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <sstream>

namespace freehold::process {
namespace {

constexpr const char* kAlwaysReadable[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/proc/self"};

// Bits of the kernel's interface, by the version that brought them; older headers lack some.
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14, kDeviceControl = std::uint64_t{1} << 15;
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | kTruncate | kDeviceControl;

std::uint64_t handled_by(long version) noexcept {
  const unsigned bits = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
  return (std::uint64_t{1} << bits) - 1;
}

// Returns an errno. A path that is not there needs no rule.
int allow(int rules, const char* path, std::uint64_t access) noexcept {
  const int file = ::open(path, O_PATH | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? 0 : errno;
  struct stat status{};
  int error = ::fstat(file, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISDIR(status.st_mode)) access &= kOfFiles;
  const landlock_path_beneath_attr rule{.allowed_access = access, .parent_fd = file};
  if (error == 0 && ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) error = errno;
  ::close(file);
  return error;
}

int confine_files(const Confinement& confinement) noexcept {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0) return errno;
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = handled_by(version);
  // The first member alone: what every version knows.
  const int rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0));
  if (rules < 0) return errno;
  int error = 0;
  const auto add = [&](const char* path, std::uint64_t access) {
    if (error == 0) error = allow(rules, path, access & handled.handled_access_fs);
  };
  for (const char* path : kAlwaysReadable) add(path, kRead);
  add("/dev/null", kRead | LANDLOCK_ACCESS_FS_WRITE_FILE);
  for (const std::string& path : confinement.readable) add(path.c_str(), kRead);
  for (const std::string& path : confinement.writable) add(path.c_str(), handled.handled_access_fs);
  if (error == 0 && ::syscall(SYS_landlock_restrict_self, rules, 0) != 0) error = errno;
  ::close(rules);
  return error;
}

constexpr std::uint32_t kForeignCalls = 0x40000000;  // those of the x32 ABI, by other numbers

int refuse_sockets() noexcept {
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
      unless(BPF_JEQ, SYS_io_uring_setup, 1),  // whose operations no filter sees
      statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0 ? 0 : errno;
}

}  // namespace

std::string text_of(const Confinement& confinement) {
  std::string text = confinement.no_network ? "n\n" : "";
  if (confinement.files) text += "f\n";
  for (const std::string& path : confinement.readable) text += "r" + path + "\n";
  for (const std::string& path : confinement.writable) text += "w" + path + "\n";
  return text;
}

Confinement confinement_of(const std::string& text) {
  Confinement confinement;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    switch (line[0]) {
      case 'n': confinement.no_network = true; break;
      case 'f': confinement.files = true; break;
      case 'r': confinement.readable.push_back(line.substr(1)); break;
      default: confinement.writable.push_back(line.substr(1));
    }
  }
  return confinement;
}

int confine(const Confinement& confinement, const char*& part) noexcept {
  part = "no_new_privs";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  part = "Landlock";
  if (confinement.files)
    if (const int error = confine_files(confinement); error != 0) return error;
  part = "seccomp";
  return confinement.no_network ? refuse_sockets() : 0;
}

}  // namespace freehold::process
