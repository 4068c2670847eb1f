// SPDX-License-Identifier: MIT
// Programs that confine themselves by a filter of system calls (seccomp), or are started under one: filters WHEN WHOSE
// ACTION. A refused call ends the program (`kill`) or fails (`errno`). The lists are those of systemd, OpenSSH,
// Chromium and Docker, as far as a C program meets them; `five` is what malloc and free may use after the start.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstddef>

#include "tests/stress/scenarios/scenario.hpp"

namespace freehold::test {
namespace {

using Word = std::uint32_t;
constexpr Word kAllow = SECCOMP_RET_ALLOW, kRefuse = 0;  // kRefuse: the filter's action
constexpr Word fails(int error) { return SECCOMP_RET_ERRNO | static_cast<Word>(error); }

// A call that is allowed: whatever its arguments are, or for some values of one, or if it has no other bits than these.
struct Rule {
  int call;
  int argument = -1;
  std::vector<Word> values{};
  Word bits = 0;
  Word otherwise = kRefuse;
};
using Rules = std::vector<Rule>;

template <class... More>
Rules together(Rules rules, const More&... more) {
  (rules.insert(rules.end(), more.begin(), more.end()), ...);
  return rules;
}

const Rules kFive{{SYS_mmap}, {SYS_munmap}, {SYS_mremap}, {SYS_madvise}, {SYS_futex}};
const Rules kEnd{{SYS_write}, {SYS_exit}, {SYS_exit_group}, {SYS_rt_sigreturn}};
const Rules kThreads{{SYS_clone},           {SYS_clone3}, {SYS_rt_sigaction}, {SYS_rt_sigprocmask},
                     {SYS_set_robust_list}, {SYS_rseq},   {SYS_mprotect},     {SYS_wait4}};
const Rules kSystemdDefault{{SYS_clock_gettime}, {SYS_clock_nanosleep}, {SYS_execve},          {SYS_exit},
                            {SYS_exit_group},    {SYS_futex},           {SYS_getpid},          {SYS_gettid},
                            {SYS_membarrier},    {SYS_nanosleep},       {SYS_prlimit64},       {SYS_rseq},
                            {SYS_rt_sigreturn},  {SYS_sched_yield},     {SYS_set_robust_list}, {SYS_set_tid_address}};
const Rules kSystemService{
    {SYS_brk},          {SYS_openat},         {SYS_read},
    {SYS_write},        {SYS_close},          {SYS_lseek},
    {SYS_pread64},      {SYS_newfstatat},     {SYS_fstat},
    {SYS_faccessat},    {SYS_readlinkat},     {SYS_getrandom},
    {SYS_madvise},      {SYS_mmap},           {SYS_mprotect},
    {SYS_mremap},       {SYS_munmap},         {SYS_prctl},
    {SYS_rt_sigaction}, {SYS_rt_sigprocmask}, {SYS_sched_getaffinity},
    {SYS_sysinfo},      {SYS_tgkill},         {SYS_clone},
    {SYS_clone3},       {SYS_wait4},          {SYS_kill},
    {SYS_uname},        {SYS_getuid},         {SYS_statx},
    {SYS_ioctl},
#if defined(__x86_64__)
    {SYS_open},         {SYS_access},         {SYS_arch_prctl},
    {SYS_readlink},     {SYS_stat},
#endif
};
constexpr Word kReadWrite = PROT_READ | PROT_WRITE;
const Rules kOpenSsh{
    {SYS_brk},
    {SYS_clock_gettime},
    {SYS_close},
    {SYS_exit},
    {SYS_exit_group},
    {SYS_futex,
     1,
     {FUTEX_WAIT, FUTEX_WAIT_PRIVATE, FUTEX_WAIT_BITSET, FUTEX_WAIT_BITSET_PRIVATE, FUTEX_WAKE, FUTEX_WAKE_PRIVATE}},
    {SYS_getpid},
    {SYS_getrandom},
    {SYS_gettid},
    {SYS_madvise,
     2,
     {MADV_NORMAL, MADV_FREE, MADV_DONTNEED, MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK},
     0,
     fails(EINVAL)},
    {SYS_mmap, 3, {}, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE, fails(EINVAL)},
    {SYS_mprotect, 2, {}, kReadWrite},
    {SYS_mremap},
    {SYS_munmap},
    {SYS_nanosleep},
    {SYS_clock_nanosleep},
    {SYS_read},
    {SYS_rt_sigprocmask},
    {SYS_write},
    {SYS_openat, 0, {}, 0, fails(EACCES)}};
const Rules kChromium{{SYS_brk},
                      {SYS_clock_gettime},
                      {SYS_close},
                      {SYS_exit},
                      {SYS_exit_group},
                      {SYS_futex},
                      {SYS_getpid},
                      {SYS_getrandom},
                      {SYS_gettid},
                      {SYS_madvise, 2, {MADV_DONTNEED, MADV_RANDOM, MADV_REMOVE, MADV_NORMAL, MADV_FREE}, 0, fails(EPERM)},
                      {SYS_mmap, 3, {}, MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE | MAP_FIXED},
                      {SYS_mprotect, 2, {}, kReadWrite | PROT_EXEC},
                      {SYS_mremap},
                      {SYS_munmap},
                      {SYS_mincore},
                      {SYS_nanosleep},
                      {SYS_sched_yield},
                      {SYS_rseq},
                      {SYS_set_robust_list, 0, {}, 0, fails(EPERM)},
                      {SYS_prctl, 0, {PR_GET_NAME, PR_SET_NAME, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_SET_VMA}},
                      {SYS_read},
                      {SYS_rt_sigaction},
                      {SYS_rt_sigprocmask},
                      {SYS_rt_sigreturn},
                      {SYS_clone},
                      {SYS_tgkill},
                      {SYS_write},
                      {SYS_wait4},
                      {SYS_clone3, 0, {}, 0, fails(ENOSYS)},
                      {SYS_openat, 0, {}, 0, fails(EPERM)}};
// Lists that refuse little: all that malloc could want but what is not in them.
const Rules kDocker = together(kSystemdDefault, kSystemService, Rules{{SYS_mincore}});

// Podman's differs in calls that no C program here makes.
const Rules kPodman = kDocker;
// Firejail's refuses what is in the list.
const Rules kFirejail{{SYS_mincore},
                      {SYS_mbind},
                      {SYS_set_mempolicy},
                      {SYS_migrate_pages},
                      {SYS_move_pages},
                      {SYS_userfaultfd},
                      {SYS_bpf},
                      {SYS_perf_event_open},
                      {SYS_ptrace},
                      {SYS_kcmp},
                      {SYS_process_vm_readv},
                      {SYS_io_uring_setup},
                      {SYS_process_vm_writev},
                      {SYS_vmsplice},
                      {SYS_membarrier},
                      {SYS_personality}};

struct Filter {
  const char* whose;
  Rules rules;
  bool has_threads;
  bool refuses = false;  // what is in the list, and nothing else
};
const std::vector<Filter>& filters() {
  static const std::vector<Filter> all{{"five", together(kFive, kEnd), false},
                                       {"five_and_threads", together(kFive, kEnd, kThreads), true},
                                       {"systemd_default", together(kSystemdDefault, kFive, kEnd), false},
                                       {"systemd_system_service", together(kSystemdDefault, kSystemService), true},
                                       {"openssh", kOpenSsh, false},
                                       {"chromium", kChromium, true},
                                       {"docker", kDocker, true},
                                       {"podman", kPodman, true},
                                       {"firejail", kFirejail, true, true}};
  return all;
}

std::vector<sock_filter> program_of(const Filter& filter, Word refuse) {
  const Rules& rules = filter.rules;
  std::vector<sock_filter> program;
  const auto add = [&](int code, Word k, std::uint8_t yes = 0, std::uint8_t no = 0) {
    program.push_back({static_cast<std::uint16_t>(code), yes, no, k});
  };
  const auto load = [&](std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<Word>(offset)); };
  const auto give = [&](Word action) { add(BPF_RET | BPF_K, action == kRefuse ? refuse : action); };
  load(offsetof(seccomp_data, nr));
  for (const Rule& rule : rules) {
    const std::size_t length = rule.argument < 0 ? 1 : 2 + (rule.values.empty() ? 3 : 2 * rule.values.size());
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<Word>(rule.call), 0, static_cast<std::uint8_t>(length));
    if (rule.argument >= 0) {
      load(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(rule.argument));
      if (rule.values.empty()) {
        add(BPF_ALU | BPF_AND | BPF_K, ~rule.bits);
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
        give(kAllow);
      }
      for (const Word value : rule.values) {
        add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        give(kAllow);
      }
      give(rule.otherwise);
    } else {
      give(filter.refuses ? kRefuse : kAllow);
    }
  }
  give(filter.refuses ? kAllow : kRefuse);
  return program;
}

const Filter& filter_of(const std::string& whose) {
  for (const Filter& filter : filters())
    if (whose == filter.whose) return filter;
  fail("no filter " + whose);
}
std::vector<sock_filter> program_of(const Arguments& arguments) {
  return program_of(filter_of(arguments[1]), arguments[2] == "kill" ? SECCOMP_RET_KILL_PROCESS : fails(EPERM));
}

void confine(const std::vector<sock_filter>& program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  require(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0, "seccomp");
}

// Root needs no promise before: libseccomp does the same where it is told so.
void confine_by_number(const std::vector<sock_filter>& program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  require(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0, "seccomp");
}

// Everything that malloc and free do: they grow, give back, move and count.
void use_memory() {
  constexpr std::size_t kSmall = 600;
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 12 * kMiB / kSmall; ++i) {
    blocks.push_back(CApi::allocate(kSmall));
    require(blocks.back() != nullptr, "no small block");
    std::memset(blocks.back(), 1, kSmall);
  }
  for (std::size_t bytes = 20'000; bytes < 10 * kMiB; bytes *= 5) {
    char* block = static_cast<char*>(CApi::allocate(bytes));
    require(block != nullptr, "no large block");
    block[0] = block[bytes - 1] = 1;
    for (int i = 0; i < 3; ++i) {
      block = static_cast<char*>(CApi::reallocate(block, bytes << i));
      require(block != nullptr && block[0] == 1 && block[bytes - 1] == 1, "realloc lost something");
    }
    CApi::deallocate(block);
  }
  for (void* block : blocks) CApi::deallocate(block);
  Churn(7).run(3000);
#if defined(__GLIBC__)
  (void)::mallinfo2();
#endif
  (void)::malloc_trim(0);
}

void use_threads_and_fork() {
  for (int round = 0; round < 2; ++round)
    in_threads(2, [](unsigned t) {
      Churn(t).run(500);
      use_memory();
    });
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      use_memory();
      std::exit(0);
    }
    if (child < 0) return;  // Chromium's list has threads only
    int status = 1;
    require(::waitpid(child, &status, 0) == child && status == 0, "the child failed");
  }
}

void use_all(const Filter& filter) {
  use_memory();
  if (filter.has_threads) use_threads_and_fork();
}

// Threads that were there before the filter, and one of Freehold's with them; they go on under it and do not end.
void confine_beside_threads(const std::vector<sock_filter>& program) {
  static sem_t go, done, never;  // std::atomic::wait makes other calls
  constexpr int kThreadsBefore = 3;
  for (int i = 0; i < kThreadsBefore; ++i)
    std::thread([] {
      Churn churn(3);
      churn.run(100);
      ::sem_post(&done);
      ::sem_wait(&go);
      churn.run(1000);
      use_memory();
      ::sem_post(&done);
      ::sem_wait(&never);  // not for `go`, of which each thread needs one
    }).detach();
  for (int i = 0; i < kThreadsBefore; ++i) ::sem_wait(&done);
  use_memory();
  confine(program);
  for (int i = 0; i < kThreadsBefore; ++i) ::sem_post(&go);
  for (int i = 0; i < kThreadsBefore; ++i) ::sem_wait(&done);
}

// Threads whose memory grows to what the purger is started for, a little earlier or later.
void confine_beside_the_purgers_start(const std::vector<sock_filter>& program) {
  constexpr unsigned kChildren = 40, kStep_us = 250;
  for (unsigned i = 0; i < kChildren; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      static sem_t begun;
      for (int t = 0; t < 2; ++t)
        std::thread([] {
          CApi::deallocate(CApi::allocate(1));
          ::sem_post(&begun);
          for (;;) use_memory();
        }).detach();
      for (int t = 0; t < 2; ++t) ::sem_wait(&begun);
      ::usleep(i * kStep_us);
      confine(program);
      use_memory();
      ::_exit(0);
    }
    int status = 1;
    require(::waitpid(child, &status, 0) == child, "waitpid");
    require(status == 0, "a child ended with status " + std::to_string(status));
  }
}

// arguments: when, whose, action.
SCENARIO(filters) {
  const Filter& filter = filter_of(arguments[1]);
  const auto program = program_of(arguments);
  const std::string& when = arguments[0];
  if (when == "at_once") {
    confine(program);
  } else if (when == "child") {
    use_memory();
    if (const pid_t child = ::fork(); child != 0) {
      int status = 1;
      require(::waitpid(child, &status, 0) == child, "waitpid");
      require(status == 0, "the child ended with status " + std::to_string(status));
      return;
    }
    confine(program);
  } else if (when == "by_number") {
    use_memory();
    confine_by_number(program);
  } else if (when == "threads") {
    confine_beside_threads(program);
  } else if (when == "purger_starts") {
    return confine_beside_the_purgers_start(program);
  } else if (when == "exec") {
    confine(program);
    ::execl("/proc/self/exe", "filtered", "filters", "already", arguments[1].c_str(), arguments[2].c_str(), nullptr);
    fail("exec");
  }
  use_all(filter);
  std::exit(0);  // with the handlers that are called at the exit
}

// filter_in_vfork: a child of vfork announces a filter; its parent still gets the helper thread, and names its mappings.
SCENARIO(filter_in_vfork) {
  use_memory();
  const pid_t child = ::vfork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::_exit(0);
  }
  require(::waitpid(child, nullptr, 0) == child, "waitpid");
  static sem_t done;
  std::thread([] {
    CApi::deallocate(CApi::allocate(100));
    ::sem_post(&done);
    for (;;) ::pause();
  }).detach();
  ::sem_wait(&done);
  use_memory();
  std::size_t threads = 0;
  for (int i = 0; i < 100 && threads < 3; ++i, ::usleep(10'000))
    threads = static_cast<std::size_t>(memory_mib("/proc/self/status", "\nThreads:") * 1024);
  figure("threads", static_cast<double>(threads));
}

}  // namespace
}  // namespace freehold::test
