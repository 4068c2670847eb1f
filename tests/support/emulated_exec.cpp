// SPDX-License-Identifier: MIT
// Takes the place of libc's exec functions in a test that runs under an emulator: programs for the emulated processor are
// started by the emulator, too; all others as they are. After fork() nothing here allocates.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "tests/support/emulated.hpp"

namespace {

constexpr const char* kEmulator[] = {FREEHOLD_TEST_EMULATOR};  // the program and its options
constexpr std::size_t kWords = std::size(kEmulator);
constexpr std::size_t kMostArguments = 1000;

// Returns whether `path` is an ELF file for the processor that this one is for.
bool is_for_us(const char* path) {
  constexpr std::size_t kMachineAt = 18;
  const auto machine_of = [](const char* file) {
    std::array<unsigned char, kMachineAt + 2> head{};
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    const bool read = fd >= 0 && ::read(fd, head.data(), head.size()) == static_cast<ssize_t>(head.size());
    if (fd >= 0) ::close(fd);
    return read && std::memcmp(head.data(),
                               "\x7f"
                               "ELF",
                               4) == 0
               ? head[kMachineAt] | head[kMachineAt + 1] << 8
               : -1;
  };
  return machine_of(path) == machine_of("/proc/self/exe");
}

class Arguments {
 public:
  Arguments(const char* path, char* const argv[]) {
    std::size_t n = 0;
    for (const char* word : kEmulator) words_[n++] = const_cast<char*>(word);
    words_[n++] = const_cast<char*>("-0");
    words_[n++] = argv[0];
    words_[n++] = const_cast<char*>(path);
    for (std::size_t i = 1; argv[i] != nullptr && n < words_.size() - 1; ++i) words_[n++] = argv[i];
    words_[n] = nullptr;
  }
  [[nodiscard]] char* const* words() const { return words_.data(); }

 private:
  std::array<char*, kMostArguments + kWords + 4> words_;
};

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define FREEHOLD_TEST_EXPORT extern "C" [[gnu::visibility("default")]]

FREEHOLD_TEST_EXPORT int freehold_test_is_emulated() { return 1; }

FREEHOLD_TEST_EXPORT int execve(const char* path, char* const argv[], char* const environment[]) noexcept {
  if (!is_for_us(path)) return static_cast<int>(::syscall(SYS_execve, path, argv, environment));
  const Arguments arguments(path, argv);
  return static_cast<int>(::syscall(SYS_execve, kEmulator[0], arguments.words(), environment));
}

FREEHOLD_TEST_EXPORT int execv(const char* path, char* const argv[]) noexcept { return execve(path, argv, environ); }

FREEHOLD_TEST_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  if (std::strchr(file, '/') != nullptr) return execve(file, argv, environ);
  return next<decltype(&execvp)>("execvp")(file, argv);
}

FREEHOLD_TEST_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                                     const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
  const auto spawn = next<decltype(&posix_spawn)>("posix_spawn");
  if (!is_for_us(path)) return spawn(pid, path, actions, attributes, argv, environment);
  const Arguments arguments(path, argv);
  return spawn(pid, kEmulator[0], actions, attributes, arguments.words(), environment);
}
