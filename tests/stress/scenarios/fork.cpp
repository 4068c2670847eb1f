// SPDX-License-Identifier: MIT
// Children of a process whose other threads were in the middle of malloc. A child that hangs is ended by its alarm.
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <barrier>

#include "freehold/malloc.h"
#include "freehold/os/pages.hpp"
#include "tests/stress/scenarios/scenario.hpp"

extern char** environ;

namespace freehold::test {
namespace {

// Allocates in a new process: in its first thread, in a new one, and after that.
void use_malloc(std::uint64_t seed) {
  {
    Churn churn(seed);
    churn.run(600);
  }
  std::thread([=] { Churn(seed + 1).run(200); }).join();
  Churn(seed + 2).run(200);
}

template <class Child>
pid_t start_child(Child&& child) {
  const pid_t pid = ::fork();
  require(pid >= 0, "fork");
  if (pid == 0) {
    ::alarm(30);
    child();
    ::_exit(0);
  }
  return pid;
}

void await(pid_t pid) {
  int status = 0;
  require(::waitpid(pid, &status, 0) == pid, "waitpid");
  require(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM), "a child hung");
  require(status == 0, "a child ended with status " + std::to_string(status));
}

SCENARIO(fork_under_load) {
  Load load(4);
  // The child owns a copy of these: it may read and free them, and the parent must not notice.
  Churn mine(1);
  mine.run(3000);
  for (int i = 0; i < 25; ++i) {
    const pid_t child = start_child([&] {
      mine.check_all();
      mine.release_all();
      use_malloc(static_cast<std::uint64_t>(i));
      if (i % 2 == 0) std::exit(0);  // with its handlers and destructors
    });
    await(child);
    mine.check_all();
    mine.run(100);
  }
}

// fork_beside_full_bins: other threads' full arrays are emptied while the process is copied; the child gives back the rest.
SCENARIO(fork_beside_full_bins) {
  Background others;
  others.add(2, [] {
    static thread_local std::vector<void*> blocks(20'000);
    for (void*& block : blocks) block = CApi::allocate(32);
    for (void* const block : blocks) CApi::deallocate(block);
  });
  for (int i = 0; i < 300; ++i) await(start_child([] { CApi::deallocate(CApi::allocate(100)); }));
}

SCENARIO(fork_from_many_threads) {
  Load load(2);
  std::barrier all(4);
  in_threads(4, [&all](unsigned t) {
    Churn churn(t);
    all.arrive_and_wait();
    for (unsigned i = 0; i < 12; ++i) {
      churn.run(100);
      await(start_child([&] {
        churn.check_all();
        use_malloc(t * 100 + i);
      }));
    }
  });
}

// Threads begin and end all the time: fork meets the making and the dissolving of caches.
SCENARIO(fork_amid_short_threads) {
  Background makers;
  makers.add(2, [] { in_threads(4, [](unsigned i) { Churn(i).run(60); }); });
  for (int i = 0; i < 40; ++i) await(start_child([&] { use_malloc(static_cast<std::uint64_t>(i)); }));
}

// Blocks that another thread held at the fork are still blocks in the child.
SCENARIO(fork_child_frees_blocks_of_other_threads) {
  std::vector<void*> blocks;
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> owners;
  std::vector<void*> held[3];
  for (unsigned t = 0; t < 3; ++t)
    owners.emplace_back([&, t] {
      for (std::size_t i = 0; i < 3000; ++i) {
        held[t].push_back(CApi::allocate(16 + i % 5000));
        fill(held[t].back(), 16 + i % 5000, i);
      }
      ++ready;
      Churn churn(t);
      while (!stop) churn.run(10);
    });
  while (ready < 3) std::this_thread::yield();
  for (int i = 0; i < 10; ++i)
    await(start_child([&] {
      for (auto& list : held)
        for (std::size_t k = 0; k < list.size(); ++k) {
          require(intact(list[k], 16 + k % 5000, k), "a block changed in the child");
          CApi::deallocate(list[k]);
        }
      use_malloc(77);
    }));
  stop = true;
  for (std::thread& t : owners) t.join();
  for (auto& list : held)
    for (std::size_t k = 0; k < list.size(); ++k) {
      require(intact(list[k], 16 + k % 5000, k), "a block changed in the parent");
      CApi::deallocate(list[k]);
    }
}

// Processes that only ever fork: what a fork costs in memory must not add up from generation to generation.
SCENARIO(fork_chain_of_daemons) {
  const double first = resident_mib();
  for (int generation = 0; generation < 60; ++generation) {
    // The child goes on, the parent waits for the whole rest of the chain.
    const pid_t pid = ::fork();
    require(pid >= 0, "fork");
    if (pid > 0) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      std::_Exit(status == 0 ? 0 : 1);
    }
    ::alarm(60);
    in_threads(2, [](unsigned t) { Churn(t, 100, 2 * kKiB).run(500); });
  }
  require(resident_mib() - first < 8, "the chain grew by " + std::to_string(resident_mib() - first) + " MiB");
}

void spawn_true(const char** argv) {
  pid_t child = -1;
  require(::posix_spawn(&child, argv[0], nullptr, nullptr, const_cast<char**>(argv), environ) == 0, "posix_spawn");
  await(child);
}
[[gnu::noinline]] void vfork_true(const char** argv) {
  const pid_t child = ::vfork();
  if (child == 0) {
    ::execve(argv[0], const_cast<char**>(argv), environ);
    ::_exit(1);
  }
  await(child);
}
SCENARIO(spawn_under_load) {
  Load load(3);
  in_threads(2, [](unsigned) {
    const char* argv[] = {"/bin/true", nullptr};
    for (int i = 0; i < 25; ++i) {
      spawn_true(argv);
      vfork_true(argv);
    }
  });
}

// vfork_allocates: children of vfork that do more than POSIX lets them, beside threads of the same caches.
void use_small_blocks(unsigned rounds) {
  for (std::uintptr_t* blocks[64]; rounds != 0; --rounds) {
    for (auto*& block : blocks) {
      block = static_cast<std::uintptr_t*>(CApi::allocate(48));
      require(block != nullptr, "no block");
      *block = reinterpret_cast<std::uintptr_t>(&block);
    }
    for (auto*& block : blocks) {
      require(*block == reinterpret_cast<std::uintptr_t>(&block), "a block has two owners");
      CApi::deallocate(block);
    }
  }
}
[[gnu::noinline]] void vfork_and_allocate() {
  const pid_t child = ::vfork();
  if (child == 0) {
    use_small_blocks(500);
    ::_exit(0);
  }
  await(child);
}
SCENARIO(vfork_allocates) {
  Background others;
  others.add(3, [] { use_small_blocks(1); });
  in_threads(2, [](unsigned) {
    for (int i = 0; i < 100; ++i) {
      vfork_and_allocate();
      use_small_blocks(1);
    }
  });
  // Its threads go on with the caches that they had.
  freehold_stats_t before, after;
  auto* const stats = reinterpret_cast<decltype(&freehold_stats)>(::dlsym(RTLD_DEFAULT, "freehold_stats"));
  if (stats == nullptr) return;
  vfork_and_allocate();
  use_small_blocks(1);
  stats(&before, sizeof before);
  use_small_blocks(100);
  stats(&after, sizeof after);
  require(after.late_frees == before.late_frees && after.threads == before.threads, "a thread has lost its caches");
}

void allocate_all_sizes() {
  for (std::size_t n = 16; n < 400 * kKiB; n += n / 4 + 16) {
    void* blocks[40];
    for (void*& p : blocks) p = CApi::allocate(n);
    for (void* p : blocks) CApi::deallocate(p);
  }
}

// Handlers of the program allocate too, before and after ours.
SCENARIO(fork_handlers_allocate) {
  ::pthread_atfork(allocate_all_sizes, allocate_all_sizes, allocate_all_sizes);
  Load load(3);
  for (int i = 0; i < 10; ++i) await(start_child([] { use_malloc(5); }));
}

// ---- fork waits for locks of libc and of others, whose holders allocate --------------------------------------------------

// A stream with a line of 60,000 bytes.
std::FILE* stream_of_a_long_line() {
  std::string text(60'000, 'x');
  text.back() = '\n';
  std::FILE* const stream = ::fdopen(::memfd_create("line", 0), "r+");
  require(stream != nullptr && std::fwrite(text.data(), 1, text.size(), stream) == text.size(), "fwrite");
  return stream;
}
// The line grows by realloc while the stream's lock is held.
void read_long_line() {
  static thread_local std::FILE* const stream = stream_of_a_long_line();
  std::rewind(stream);
  char* line = nullptr;
  std::size_t room = 0;
  require(::getline(&line, &room, stream) == 60'000, "getline");
  CApi::deallocate(line);
  ::usleep(50);  // stdio's locks are not fair: others would wait for long
}

// fflush(nullptr) holds stdio's list, which fork wants, and waits for streams whose holders wait for malloc.
SCENARIO(fork_amid_stdio) {
  Background others;
  others.add(4, read_long_line);
  others.add(1, [] { std::fflush(nullptr); });
  const unsigned forks = count_of(arguments, 150);  // forks of each thread
  std::barrier all(3);
  in_threads(3, [&](unsigned t) {
    all.arrive_and_wait();
    for (unsigned i = 0; i < forks; ++i)
      await(start_child([=] {
        if (i % 50 != 0) return;
        use_malloc(t);
      }));
  });
  require(peak_mib() < 64, "what was put off during forks added up");
}

// The databases of names have a lock that fork takes; their readers allocate under it. The dynamic linker has one, too.
SCENARIO(fork_amid_names_and_libraries) {
  require(arguments.size() == 1, "which plug-in?");
  Background others;
  others.add(1, [] {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICSERV;
    if (::getaddrinfo("localhost", "80", &hints, &found) == 0) ::freeaddrinfo(found);
  });
  others.add(1, [] {
    passwd entry{}, *found = nullptr;
    char text[4096];
    (void)::getpwnam_r("root", &entry, text, sizeof text, &found);
  });
  others.add(1, [&arguments] {
    void* const plugin = ::dlopen(arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
    require(plugin != nullptr, "dlopen");
    ::dlclose(plugin);
  });
  for (int i = 0; i < 60; ++i) await(start_child([] { use_malloc(4); }));
}

// ---- fork while another thread gives much memory back ----------------------------------------------------------------

// Free slots scattered over so much memory: few blocks stay, so that most pages are free (half of them, where they are
// large), few of them neighbours. The blocks that stay are freed by the next call, which asks for as much: the malloc keeps
// what it frees.
class Scattered {
 public:
  explicit Scattered(std::size_t bytes) : blocks_(bytes / kBlockBytes) {}
  ~Scattered() { free_where(true); }
  Scattered(const Scattered&) = delete;
  Scattered& operator=(const Scattered&) = delete;

  void make() {
    free_where(true);
    for (void*& block : blocks_) block = std::memset(CApi::allocate(kBlockBytes), 1, kBlockBytes);
    free_where(false);
  }

 private:
  static constexpr std::size_t kBlockBytes = 1024;
  static constexpr std::size_t kOf =
      std::max<std::size_t>(32, 2 * os::kLargestPageBytes / kBlockBytes);  // one of so many stays
  void free_where(bool all) {
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (all || i % kOf != 0) {
        CApi::deallocate(blocks_[i]);
        blocks_[i] = nullptr;
      }
  }
  std::vector<void*> blocks_;
};

// Counts the forks that were over before the other thread's malloc_trim was, of those where it had much to do: on a machine
// that is very busy, free memory goes back before.
SCENARIO(fork_amid_trim) {
  constexpr std::size_t kMemory = 200 * kMiB;
  constexpr int kMostTries = 15, kEnough = 5;
  std::atomic<int> begun{0}, ended{0}, tries{0};
  std::atomic<bool> has_much{false}, stop{false};
  std::thread trimmer([&] {
    Scattered memory(kMemory);
    memory.make();
    ::usleep(600'000);  // the purger thread has begun: more may be kept than where no thread gives back in time
    for (int i = 0; !stop; ++i) {
      memory.make();
      has_much = memory_mib("/proc/self/status", "\nVmRSS:") >= 0.75 * (kMemory / kMiB);
      begun = i + 1;
      CApi::trim();
      ended = i + 1;
      while (tries <= i) ::usleep(1000);
    }
  });
  int good_tries = 0, amid = 0;
  for (int i = 0; i < kMostTries && good_tries < kEnough; ++i) {
    while (begun <= i) ::usleep(100);
    const pid_t child = start_child([] {});
    const bool is_amid = ended <= i;
    await(child);
    while (ended <= i) ::usleep(1000);
    good_tries += has_much;
    amid += has_much && is_amid;
    stop = i + 1 == kMostTries || good_tries == kEnough;
    tries = i + 1;
  }
  trimmer.join();
  figure("long_trims", good_tries);
  figure("forks_amid_trim", amid);
}

// ---- fork from a signal's handler ----------------------------------------------------------------------------------------

volatile sig_atomic_t g_forks = 0, g_failures = 0;
volatile sig_atomic_t g_is_child = 0;

// In the parent.
void count_fork(pid_t child) {
  int status = 1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) g_failures = g_failures + 1;
  g_forks = g_forks + 1;
}

void fork_in_handler(int) {
  if (g_is_child != 0) return;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(30);
    g_is_child = 1;
    if (g_forks % 2 == 0) ::_exit(0);
    return;  // and goes on where malloc was interrupted
  }
  count_fork(pid);
}

// A program of one thread, whose handler forks wherever the program may be; both processes go on.
SCENARIO(fork_from_signal_handler) {
  struct sigaction action{};
  action.sa_handler = fork_in_handler;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval period{{0, 3000}, {0, 3000}};
  ::setitimer(ITIMER_REAL, &period, nullptr);
  Churn churn(11);
  const int forks = static_cast<int>(count_of(arguments, 200));
  while (g_forks < forks && g_is_child == 0) churn.run(20);
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  churn.check_all();
  churn.run(500);
  churn.check_all();
  if (g_is_child != 0) {
    use_malloc(12);
    std::_Exit(0);
  }
  require(g_failures == 0, "children failed");
}

// One signal, some time after the call: however long a fork takes, the program goes on between two.
void start_alarm(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval once{{0, 0}, {0, 700 + 100 * (g_forks % 8)}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

void fork_and_exit_in_handler(int) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  count_fork(pid);
  start_alarm(fork_and_exit_in_handler);
}

// The handler's fork comes while the program reads the malloc's statistics.
SCENARIO(fork_from_signal_handler_amid_statistics) {
  const auto stats = reinterpret_cast<decltype(&freehold_stats)>(::dlsym(RTLD_DEFAULT, "freehold_stats"));
  for (int i = 0; i < 20'000; ++i) std::memset(CApi::allocate(4000), 1, 1);  // a pass over many spans takes its time
  constexpr int kHalf = 60;
  static freehold_stats_t room;
  start_alarm(fork_and_exit_in_handler);
  while (g_forks < kHalf) require(mallinfo2().uordblks != 0, "mallinfo2");
  while (g_forks < 2 * kHalf && stats != nullptr) require(stats(&room, sizeof room) == 0, "freehold_stats");
  ::signal(SIGALRM, SIG_IGN);
  require(g_failures == 0, "children failed");
}

// The child goes on where the program was interrupted; the parent waits for it there. Half of the forks come late: the
// purger thread's next round falls into what the program was interrupted in.
void fork_and_go_on_in_handler(int) {
  if (g_forks % 2 == 0) ::usleep(12'000);
  const pid_t pid = ::fork();
  if (pid == 0) {
    g_is_child = 1;
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(8);
    return;
  }
  count_fork(pid);
  if (g_failures == 0) start_alarm(fork_and_go_on_in_handler);
}

// A child that goes on does this: it may allocate, free, give memory back, and fork.
[[noreturn]] void use_malloc_and_fork_again() {
  Churn(13).run(200);
  CApi::trim();
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  int status = 1;
  ::_exit(pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
}

// One thread of the program's, and the malloc's own one, which gives memory back all the time (the environment says so).
SCENARIO(fork_from_signal_handler_beside_purger_thread) {
  constexpr std::size_t kBlocks = 200, kBytes = 70'000;
  std::array<char*, kBlocks> blocks{};
  for (int i = 0; i < 24; ++i) std::memset(CApi::allocate(kMiB), 1, kMiB);
  const int forks = static_cast<int>(count_of(arguments, 300));
  start_alarm(fork_and_go_on_in_handler);
  while (g_is_child == 0 && g_forks < forks && g_failures == 0) {
    for (char*& block : blocks) {
      block = static_cast<char*>(CApi::allocate(kBytes));
      block[0] = block[kBytes / 2] = 1;
    }
    for (std::size_t i = 0; i < kBlocks; ++i) CApi::deallocate(blocks[i * 7 % kBlocks]);  // neighbours at different times
    CApi::trim();
  }
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  if (g_is_child == 0)
    ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);  // no more forks; the last one's child is told apart below
  if (g_is_child != 0) {
    ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    use_malloc_and_fork_again();
  }
  figure("forks", g_forks);
  require(g_failures == 0, "a child hung or failed");
}

}  // namespace
}  // namespace freehold::test
