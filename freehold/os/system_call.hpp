// SPDX-License-Identifier: MIT
// The kernel's calls by their instruction, under the names and with the results that libc gives them. A program may have an
// mmap, an open or a getpid that takes locks or calls malloc (profilers and shims do): code that runs inside
// malloc calls these, and never runs such a function. They are no cancellation points either.
//
// Returns as libc's do: -1 (of mmap and mremap MAP_FAILED) and errno on an error. Threads: any. Cost: the call of the
// kernel.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <type_traits>

// A sanitizer keeps account of the mappings that it sees. In 32 bits, in which the laboratory alone is built, libc's calls
// do.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__i386__)
#define FREEHOLD_LIBC_MAPS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FREEHOLD_LIBC_MAPS 1
#endif
#endif

namespace freehold::os {

// The call of this number, and of these arguments: numbers or pointers, at most six.
[[gnu::always_inline]] inline long system_call_of_words(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                                                        long e = 0, long f = 0) noexcept {
#if defined(__i386__)
  return ::syscall(number, a, b, c, d, e, f);
#else
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long call asm("x8") = number;
  register long result asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(result) : "r"(call), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
#else
#error "how this processor calls the system"
#endif
  constexpr long kMostErrors = 4095;
  if (result >= 0 || result < -kMostErrors) return result;
  errno = static_cast<int>(-result);
  return -1;
#endif
}

template <class T>
[[nodiscard]] long as_word(T value) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<long>(value);
  else if constexpr (std::is_null_pointer_v<T>)
    return 0;
  else
    return static_cast<long>(value);
}
template <class... Arguments>
long system_call(long number, Arguments... arguments) noexcept {
  static_assert(sizeof...(arguments) <= 6);
  return system_call_of_words(number, as_word(arguments)...);
}

namespace kernel {

#if defined(FREEHOLD_LIBC_MAPS)
using ::madvise, ::mmap, ::mprotect, ::mremap, ::munmap;
#else
inline void* mmap(void* address, std::size_t bytes, int access, int flags, int fd, off_t offset) noexcept {
  return reinterpret_cast<void*>(system_call(SYS_mmap, address, bytes, access, flags, fd, offset));
}
inline int munmap(void* address, std::size_t bytes) noexcept {
  return static_cast<int>(system_call(SYS_munmap, address, bytes));
}
inline int mprotect(void* address, std::size_t bytes, int access) noexcept {
  return static_cast<int>(system_call(SYS_mprotect, address, bytes, access));
}
inline int madvise(void* address, std::size_t bytes, int advice) noexcept {
  return static_cast<int>(system_call(SYS_madvise, address, bytes, advice));
}
inline void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, void* to = nullptr) noexcept {
  return reinterpret_cast<void*>(system_call(SYS_mremap, address, bytes, new_bytes, flags, to));
}
#endif

inline int open(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(system_call(SYS_openat, AT_FDCWD, path, flags, mode));
}
inline int close(int fd) noexcept { return static_cast<int>(system_call(SYS_close, fd)); }
inline ssize_t read(int fd, void* to, std::size_t bytes) noexcept { return system_call(SYS_read, fd, to, bytes); }
inline ssize_t pread(int fd, void* to, std::size_t bytes, off_t offset) noexcept {
  return system_call(SYS_pread64, fd, to, bytes, offset);
}
inline ssize_t write(int fd, const void* from, std::size_t bytes) noexcept {
  return system_call(SYS_write, fd, from, bytes);
}
inline ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t offset) noexcept {
  return system_call(SYS_pwrite64, fd, from, bytes, offset);
}
inline int fcntl(int fd, int operation, long argument = 0) noexcept {
  return static_cast<int>(system_call(SYS_fcntl, fd, operation, argument));
}
#if defined(__i386__)  // cmake/m32.cmake makes off_t, rlimit and this one the forms that the kernel has
inline constexpr long kFstat = SYS_fstat64, kFstatat = SYS_fstatat64;
#else
inline constexpr long kFstat = SYS_fstat, kFstatat = SYS_newfstatat;
#endif
inline int fstat(int fd, struct stat* status) noexcept { return static_cast<int>(system_call(kFstat, fd, status)); }
inline int stat(const char* path, struct stat* status, int flags = 0) noexcept {
  return static_cast<int>(system_call(kFstatat, AT_FDCWD, path, status, flags));
}
inline bool is_accessible(const char* path, int how) noexcept {
  return system_call(SYS_faccessat, AT_FDCWD, path, how) == 0;
}
inline ssize_t readlink(const char* path, char* to, std::size_t bytes) noexcept {
  return system_call(SYS_readlinkat, AT_FDCWD, path, to, bytes);
}
inline int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(system_call(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
inline int unlink(const char* path) noexcept { return static_cast<int>(system_call(SYS_unlinkat, AT_FDCWD, path, 0)); }

inline pid_t getpid() noexcept { return static_cast<pid_t>(system_call(SYS_getpid)); }
inline pid_t gettid() noexcept { return static_cast<pid_t>(system_call(SYS_gettid)); }
inline int tgkill(pid_t process, pid_t thread, int signal) noexcept {
  return static_cast<int>(system_call(SYS_tgkill, process, thread, signal));
}
inline int getrlimit(int resource, rlimit* limit) noexcept {
  return static_cast<int>(system_call(SYS_prlimit64, 0, resource, nullptr, limit));
}
inline int prctl(int operation, unsigned long a, unsigned long b = 0, unsigned long c = 0, unsigned long d = 0) noexcept {
  return static_cast<int>(system_call(SYS_prctl, operation, a, b, c, d));
}

// Which argument of a call of this number is the thread that gets a signal, which is the next argument; -1: none is.
[[nodiscard]] constexpr int signalled_argument(long number) noexcept {
  return number == SYS_tkill ? 0 : number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo ? 1 : -1;
}
// Sets of signals as the kernel has them: signal n is bit n - 1.
using SignalSet = std::uint64_t;
[[nodiscard]] constexpr SignalSet signal_bit(int signal) noexcept { return SignalSet{1} << (signal - 1); }
// All of the program's. Those between are libc's own, which it needs in every thread (setuid, cancellation).
[[nodiscard]] inline SignalSet all_signals() noexcept {
  constexpr int kFirstOfLibc = 32;
#if defined(__GLIBC__)
  constexpr int kOfLibc = 2;
#else
  constexpr int kOfLibc = 3;
#endif
  return ~(((SignalSet{1} << kOfLibc) - 1) << (kFirstOfLibc - 1));
}
inline void sigprocmask(int how, const SignalSet* set, SignalSet* before) noexcept {
  (void)system_call(SYS_rt_sigprocmask, how, set, before, sizeof *set);
}
inline SignalSet sigpending() noexcept {
  SignalSet pending = 0;
  (void)system_call(SYS_rt_sigpending, &pending, sizeof pending);
  return pending;
}
// The number of a signal that waited, or -1.
inline int sigtimedwait(const SignalSet& set, const timespec& time) noexcept {
  return static_cast<int>(system_call(SYS_rt_sigtimedwait, &set, nullptr, &time, sizeof set));
}
// Ends the process by SIGABRT as libc's abort() does: a handler of the program's runs first.
[[noreturn]] inline void abort() noexcept {
  const SignalSet aborting = signal_bit(SIGABRT);
  sigprocmask(SIG_UNBLOCK, &aborting, nullptr);
  (void)tgkill(getpid(), gettid(), SIGABRT);
  constexpr std::uint64_t kByDefault[4] = {};  // the kernel's struct sigaction
  (void)system_call(SYS_rt_sigaction, SIGABRT, &kByDefault[0], nullptr, sizeof aborting);
  (void)tgkill(getpid(), gettid(), SIGABRT);
  __builtin_trap();
}

}  // namespace kernel
}  // namespace freehold::os
