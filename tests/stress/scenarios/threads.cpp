// SPDX-License-Identifier: MIT
// Threads: very many, very short, idle, with small stacks, with destructors of their own, cancelled, interrupted.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <algorithm>

#include <barrier>
#include <latch>
#include <memory>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "freehold/os/system_call.hpp"
#include "tests/stress/scenarios/scenario.hpp"

namespace freehold::test {
namespace {

// A thread's little life: some blocks of several sizes, all freed.
void live_briefly(std::uint64_t seed) {
  void* blocks[24];
  for (std::size_t i = 0; i < std::size(blocks); ++i) {
    const std::size_t n = 16 + (seed * 37 + i * i * 13) % 3000;
    blocks[i] = CApi::allocate(n);
    fill(blocks[i], n, seed + i);
  }
  for (std::size_t i = 0; i < std::size(blocks); ++i) {
    require(intact(blocks[i], 16 + (seed * 37 + i * i * 13) % 3000, seed + i), "a block changed");
    CApi::deallocate(blocks[i]);
  }
}

SCENARIO(threads_one_after_another) {
  const unsigned batches = count_of(arguments, 10'000) / 100;
  for (unsigned batch = 0; batch < batches; ++batch) in_threads(100, [=](unsigned t) { live_briefly(batch * 100 + t); });
}

SCENARIO(threads_two_thousand_alive) {
  static std::latch everyone(2001), done(1);
  SmallStacks stacks(64 * kKiB);
  std::vector<pthread_t> threads;
  for (std::size_t t = 0; t < 2000; ++t)
    threads.push_back(stacks.start(
        [](void* number) -> void* {
          const auto seed = reinterpret_cast<std::uintptr_t>(number);
          void* mine = CApi::allocate(100 + seed % 900);
          fill(mine, 100, seed);
          everyone.arrive_and_wait();
          live_briefly(seed);
          done.wait();
          require(intact(mine, 100, seed), "a block changed");
          CApi::deallocate(mine);
          return nullptr;
        },
        reinterpret_cast<void*>(t)));
  everyone.arrive_and_wait();
  figure("resident_mib", resident_mib());
  done.count_down();
  for (pthread_t t : threads) pthread_join(t, nullptr);
}

SCENARIO(threads_hundred_thousand_leak_nothing) {
  // How many run at once is chance, and decides what is resident: the most of the first half is what they may cost.
  double first_half = 0;
  for (unsigned batch = 0; batch < 1000; ++batch) {
    in_threads(100, [=](unsigned t) { live_briefly(batch + t); });
    if (batch < 500) first_half = std::max(first_half, resident_mib());
  }
  figure("growth_mib", resident_mib() - first_half);
}

// Blocks of short threads are freed by the next ones: no thread's memory may stay behind.
SCENARIO(threads_heirs_leak_nothing) {
  std::vector<void*> inherited[20];
  double after_some = 0;
  for (unsigned generation = 0; generation < 600; ++generation) {
    in_threads(20, [&](unsigned t) {
      for (void* p : inherited[t]) CApi::deallocate(p);
      inherited[t].clear();
      for (std::size_t i = 0; i < 300; ++i) inherited[t].push_back(CApi::allocate(16 + (i * 31 + generation) % 2000));
    });
    std::swap(inherited[generation % 20], inherited[(generation * 7 + 3) % 20]);
    if (generation == 99) after_some = resident_mib();
  }
  figure("growth_mib", resident_mib() - after_some);
  for (auto& list : inherited)
    for (void* p : list) CApi::deallocate(p);
}

// 500 threads that were busy once and now sleep: what do their caches hold?
SCENARIO(threads_five_hundred_idle) {
  constexpr std::size_t kThreads = 500;
  static std::barrier step(static_cast<std::ptrdiff_t>(kThreads + 1));
  SmallStacks stacks(256 * kKiB);
  std::vector<pthread_t> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.push_back(stacks.start(
        [](void* number) -> void* {
          char stack[8 * kKiB];
          std::memset(opaque(&stack[0]), 1, sizeof stack);
          step.arrive_and_wait();  // stacks and thread descriptors are there
          step.arrive_and_wait();
          const auto seed = reinterpret_cast<std::uintptr_t>(number);
          for (int round = 0; round < 3; ++round)
            for (std::size_t n = 16; n <= 32 * kKiB; n += n / 4) {
              void* blocks[64];
              const std::size_t count = n < 4 * kKiB ? 64 : 8;
              for (std::size_t i = 0; i < count; ++i) std::memset(blocks[i] = CApi::allocate(n - seed % 8), 1, n - seed % 8);
              for (std::size_t i = 0; i < count; ++i) CApi::deallocate(blocks[i]);
            }
          step.arrive_and_wait();
          step.arrive_and_wait();
          return nullptr;
        },
        reinterpret_cast<void*>(t)));
  step.arrive_and_wait();
  const double before = resident_mib();
  step.arrive_and_wait();
  step.arrive_and_wait();
  figure("before_trim_mib", resident_mib() - before);
  CApi::trim();  // what remains is in caches
  figure("held_mib", resident_mib() - before);
  step.arrive_and_wait();
  for (pthread_t t : threads) pthread_join(t, nullptr);
  CApi::trim();
  figure("after_exit_mib", resident_mib() - before);
}

// The refill, the drain, the claim of a span and the end of a thread fit the smallest stack that POSIX allows.
SCENARIO(threads_with_the_smallest_stack) {
  SmallStacks stacks(PTHREAD_STACK_MIN);
  for (std::size_t i = 0; i < 200; ++i) {
    const pthread_t thread = stacks.start(
        [](void* number) -> void* {
          void* blocks[150];
          const auto n = reinterpret_cast<std::uintptr_t>(number);
          for (std::size_t k = 0; k < std::size(blocks); ++k) blocks[k] = CApi::allocate(16 + n * 13 + k % 2 * 40 * kKiB);
          for (void*& p : blocks) p = CApi::reallocate(p, 4000 + n);
          for (void* p : blocks) CApi::deallocate(p);
          CApi::deallocate(CApi::allocate_zeroed(300 * kKiB));
          CApi::deallocate(CApi::allocate_aligned(64 * kKiB, 100));
          CApi::trim();
          return nullptr;
        },
        reinterpret_cast<void*>(i));
    pthread_join(thread, nullptr);
  }
}

// ---- the end of a thread ----------------------------------------------------------------------------------------------

pthread_key_t g_early_key, g_late_key;

// A destructor that allocates, frees, and comes again for every round that POSIX grants.
template <pthread_key_t& key>
void persistent_destructor(void* value) {
  auto* rounds = static_cast<int*>(value);
  live_briefly(static_cast<std::uint64_t>(*rounds));
  if (++*rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
    pthread_setspecific(key, rounds);
  else
    CApi::deallocate(rounds);
}

struct Frees {
  explicit Frees(std::size_t n) : block(CApi::allocate(n)) {}
  ~Frees() {
    CApi::deallocate(block);
    live_briefly(3);
  }
  void* block;
};

SCENARIO(threads_destructors_allocate_and_free) {
  pthread_key_create(&g_early_key, persistent_destructor<g_early_key>);
  double after_some = 0;
  for (int i = 0; i < 3000; ++i) {
    std::thread([i] {
      thread_local Frees before(100);  // constructed before this thread's first malloc
      live_briefly(static_cast<std::uint64_t>(i));
      thread_local Frees after(5000);
      opaque(&before);
      opaque(&after);
      for (pthread_key_t key : {g_early_key, g_late_key})
        if (key != 0 && pthread_getspecific(key) == nullptr) pthread_setspecific(key, CApi::allocate_zeroed(sizeof(int)));
    }).join();
    if (i == 100) pthread_key_create(&g_late_key, persistent_destructor<g_late_key>);
    if (i == 500) after_some = resident_mib();
  }
  figure("growth_mib", resident_mib() - after_some);
}

// Cancelled between two calls: malloc itself is no cancellation point.
SCENARIO(threads_cancelled) {
  for (int i = 0; i < 150; ++i) {
    std::atomic<bool> started{false};
    pthread_t thread;
    require(pthread_create(
                &thread, nullptr,
                [](void* flag) -> void* {
                  for (std::uint64_t n = 0;; ++n) {
                    live_briefly(n);
                    if (n == 3) *static_cast<std::atomic<bool>*>(flag) = true;
                    pthread_testcancel();
                  }
                },
                &started) == 0,
            "pthread_create");
    while (!started) std::this_thread::yield();
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    live_briefly(static_cast<std::uint64_t>(i));
  }
}

// main returns while other threads go on: exit handlers, static destructors and malloc's users meet.
SCENARIO(threads_outlive_main) {
  for (unsigned t = 0; t < 8; ++t)
    std::thread([t] {
      for (std::uint64_t i = t;; ++i) live_briefly(i);
    }).detach();
  ::usleep(20'000);
}

SCENARIO(threads_interrupted_by_signals) {
  struct sigaction action = {};
  static std::atomic<unsigned> signals{0};
  action.sa_handler = [](int) { signals.fetch_add(1, std::memory_order_relaxed); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPROF, &action, nullptr);
  ::sigaction(SIGUSR1, &action, nullptr);
  const itimerval often = {{0, 500}, {0, 500}};
  ::setitimer(ITIMER_PROF, &often, nullptr);
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 4; ++t) workers.emplace_back([t] { Churn(t, 100, 8 * kKiB).run(200'000); });
  std::thread pest([&] {
    while (!stop) {
      for (std::thread& t : workers) ::pthread_kill(t.native_handle(), SIGUSR1);
      ::usleep(300);
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  stop = true;
  pest.join();
  for (std::thread& t : workers) t.join();
  require(signals > 500, "few signals came: " + std::to_string(signals));
}

// threads_stopped_by_signals [raw]: as a garbage collector may, a thread stops all that /proc lists, each by a signal, and
// waits until all have answered. `raw`: by the system's call, past libc. The figure: Freehold's own threads among them.
std::atomic<int> g_stopped{0};
std::atomic<unsigned> g_collections{0};
void stop_until_collected(int) {
  const unsigned now = g_collections;
  ++g_stopped;
  while (g_collections == now) ::usleep(100);
  --g_stopped;
}
void await_stopped(int count) {
  for (int i = 0; g_stopped != count; ++i) {
    require(i < 50'000, "a thread does not answer");
    ::usleep(100);
  }
}
SCENARIO(threads_stopped_by_signals) {
  struct sigaction action{};
  action.sa_handler = stop_until_collected;
  action.sa_flags = SA_RESTART;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  Load load(2);
  const std::vector<char> much(16 * kMiB, 1);
  int helpers = 0;
  for (int round = 0; round < 30; ++round) {
    ::usleep(50'000);
    std::vector<pid_t> threads;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::ifstream(task.path() / "comm") >> name;
      helpers += name == "freehold-purge" ? 1 : 0;
      threads.push_back(std::stoi(task.path().filename()));
    }
    int asked = 0;
    for (const pid_t thread : threads) {
      if (thread == ::gettid()) continue;
      long sent = 0;
      if (!arguments.empty())
        sent = os::system_call(SYS_tgkill, ::getpid(), thread, SIGUSR1);
      else if (round % 2 == 0)
        sent = ::tgkill(::getpid(), thread, SIGUSR1);
      else
        sent = ::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1);
      require(sent == 0 || errno == ESRCH, "tgkill");
      asked += sent == 0 ? 1 : 0;
    }
    await_stopped(asked);
    ++g_collections;
    await_stopped(0);
  }
  figure("helpers", helpers);
}

// Forks at random moments, in a thread before which no other runs on this CPU.
void fork_often(const std::atomic<bool>& stop, double& longest_ms) {
  for (unsigned i = 0; !stop.load(); ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200 + i * 379 % 2000));
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(0);
    require(child > 0, "fork");
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    longest_ms = std::max(longest_ms, took.count());
    ::waitpid(child, nullptr, 0);
  }
}

// A thread of the highest priority forks on the only CPU, and preempts the thread that gives memory back (the environment
// has it work all the time).
SCENARIO(threads_fork_by_a_real_time_thread) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
  require(::sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
  constexpr std::size_t kBlocks = 300, kBytes = 70'000;
  std::array<char*, kBlocks> blocks{};
  std::atomic<bool> stop{false};
  double longest_ms = 0;
  std::thread forks([&] {
    sched_param priority{};
    priority.sched_priority = 1;
    if (::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority) != 0) return figure("not_allowed", 1);
    fork_often(stop, longest_ms);
  });
  for (int round = 0; round < 20; ++round) {
    for (char*& block : blocks) {
      block = static_cast<char*>(CApi::allocate(kBytes));
      std::memset(block, 1, kBytes);
    }
    for (std::size_t i = 0; i < kBlocks; ++i) CApi::deallocate(blocks[i * 7 % kBlocks]);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  stop = true;
  forks.join();
  figure("longest_ms", longest_ms);
}

}  // namespace
}  // namespace freehold::test
