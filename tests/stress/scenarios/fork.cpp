// Children of a process whose other threads were in the middle of malloc. A child that hangs is ended by its alarm.
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/stress/scenarios/scenario.hpp"

extern char** environ;

namespace freehold::test {
namespace {

// Allocates in a new process: in its first thread, in one of its own, and after that.
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

SCENARIO(fork_from_many_threads) {
  Load load(2);
  in_threads(4, [](unsigned t) {
    Churn churn(t);
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
  std::atomic<bool> stop{false};
  std::vector<std::thread> makers;
  for (unsigned t = 0; t < 2; ++t)
    makers.emplace_back([&, t] {
      while (!stop) in_threads(4, [t](unsigned i) { Churn(10 * t + i).run(60); });
    });
  for (int i = 0; i < 40; ++i) await(start_child([&] { use_malloc(static_cast<std::uint64_t>(i)); }));
  stop = true;
  for (std::thread& t : makers) t.join();
}

void descend(int depth) {
  if (depth == 0) return;
  Load load(2);
  Churn churn(static_cast<std::uint64_t>(depth));
  churn.run(500);
  await(start_child([=] { descend(depth - 1); }));
  churn.check_all();
}
SCENARIO(fork_nested) {
  for (int i = 0; i < 3; ++i) descend(5);
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

}  // namespace
}  // namespace freehold::test
