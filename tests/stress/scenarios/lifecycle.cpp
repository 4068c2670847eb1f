// SPDX-License-Identifier: MIT
// Before main, after exit, libraries that come and go.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "tests/stress/scenarios/scenario.hpp"

namespace freehold::test {
namespace {

// Allocated before anything of C++ has been initialised, freed after everything has been destroyed.
void* g_from_constructor = nullptr;

[[gnu::constructor(101)]] void before_everything() {
  g_from_constructor = CApi::allocate(1000);
  fill(g_from_constructor, 1000, 42);
  for (std::size_t n = 1; n < 300 * kKiB; n = n * 2 + 1) CApi::deallocate(CApi::allocate_zeroed(n));
}

[[gnu::destructor(101)]] void after_everything() {
  const bool kept = intact(g_from_constructor, 1000, 42);
  CApi::deallocate(g_from_constructor);
  for (std::size_t n = 1; n < 300 * kKiB; n = n * 2 + 1) CApi::deallocate(CApi::allocate_zeroed(n));
  static constexpr char kGood[] = "after_everything 1\n", kBad[] = "after_everything 0\n";
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, kept ? kGood : kBad, sizeof kGood - 1);
}

// A static object whose destructor frees what main's thread and others allocated.
struct Registry {
  std::vector<std::string> names = std::vector<std::string>(1000, std::string(100, 'x'));
  bool wants_a_thread = false;
  ~Registry() {
    names.push_back("one more");
    names.clear();
    names.shrink_to_fit();
    if (wants_a_thread) std::thread([] { Churn(1).run(500); }).join();
  }
};
Registry g_registry;

SCENARIO(lifecycle_before_main_and_after_exit) {
  thread_local std::unique_ptr<std::string> of_main = std::make_unique<std::string>(1000, 'y');
  opaque(&of_main);
  g_registry.wants_a_thread = true;
  std::thread([] { g_registry.names.resize(5000, std::string(200, 'z')); }).join();
  std::atexit([] { Churn(2).run(2000); });
  Churn(3).run(2000);
  require(intact(g_from_constructor, 1000, 42), "a block from before main changed");
}

// lifecycle_dlopen LIBRARY: Freehold's own library as a plug-in: loads (its thread-local data fit), works by name.
SCENARIO(lifecycle_dlopen) {
  require(arguments.size() == 1, "which library?");
  for (int i = 0; i < 3; ++i) {
    void* library = ::dlopen(arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
    require(library != nullptr, library == nullptr ? ::dlerror() : "");
    const auto allocate = reinterpret_cast<void* (*)(std::size_t)>(::dlsym(library, "malloc"));
    const auto release = reinterpret_cast<void (*)(void*)>(::dlsym(library, "free"));
    const auto is_active = reinterpret_cast<int (*)()>(::dlsym(library, "freehold_is_active"));
    require(allocate != nullptr && release != nullptr && is_active != nullptr, "a function is missing");
    require(allocate != &std::malloc, "this program's malloc came back");
    in_threads(4, [=](unsigned t) {
      std::vector<void*> blocks(2000);
      for (std::size_t k = 0; k < blocks.size(); ++k) fill(blocks[k] = allocate(k), k, k + t);
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        require(intact(blocks[k], k, k + t), "a block changed");
        release(blocks[k]);
      }
      Churn(t).run(500);  // the program's own malloc is unharmed
    });
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      for (std::size_t k = 0; k < 3000; ++k) release(allocate(k));
      ::_exit(0);
    }
    ::dlclose(library);  // may stay loaded; must not leave a thread's end pointing nowhere
    std::thread([] { Churn(9).run(300); }).join();
  }
}

// lifecycle_dlclose LIBRARY: threads that allocated by Freehold end after the program has closed it; a fork follows.
SCENARIO(lifecycle_dlclose) {
  require(arguments.size() == 1, "which library?");
  void* library = ::dlopen(arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, library == nullptr ? ::dlerror() : "");
  const auto allocate = reinterpret_cast<void* (*)(std::size_t)>(::dlsym(library, "malloc"));
  std::atomic<int> ready{0};
  std::atomic<bool> closed{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::size_t k = 0; k < 100; ++k) fill(allocate(k), k, k);
      ++ready;
      while (!closed) std::this_thread::yield();
    });
  while (ready < 4) std::this_thread::yield();
  require(::dlclose(library) == 0, "dlclose");
  closed = true;
  for (std::thread& t : threads) t.join();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 1;
  require(::waitpid(child, &status, 0) == child && status == 0, "the child");
}

// lifecycle_plugin PLUGIN: a library with constructors, destructors, thread-local data and exceptions, again and again.
SCENARIO(lifecycle_plugin) {
  require(arguments.size() == 1, "which plug-in?");
  for (int i = 0; i < 20; ++i) {
    void* plugin = ::dlopen(arguments[0].c_str(), RTLD_NOW | RTLD_LOCAL);
    require(plugin != nullptr, plugin == nullptr ? ::dlerror() : "");
    const auto use = reinterpret_cast<int (*)()>(::dlsym(plugin, "plugin_use"));
    require(use != nullptr && use() == 0, "the plug-in failed");
    in_threads(3, [=](unsigned) { require(use() == 0, "the plug-in failed in a thread"); });
    ::dlclose(plugin);
  }
}

// All kinds of blocks, threads and a fork, quickly: for tools that run a program slowly.
std::atomic<bool> g_stopped{false};

void stop_for_ever(int) {
  g_stopped = true;
  for (;;) ::pause();
}

// lifecycle_exit_beside_a_stopped_thread TIMES: a signal's handler stops a thread for ever, as a collector's or a debugger's
// does, most times during malloc or free; then the program ends as usual.
SCENARIO(lifecycle_exit_beside_a_stopped_thread) {
  const unsigned times = arguments.empty() ? 1 : static_cast<unsigned>(std::stoul(arguments[0]));
  for (unsigned i = 0; i < times; ++i) {
    const pid_t child = ::fork();
    require(child >= 0, "no fork");
    if (child == 0) {
      ::alarm(10);
      ::close(STDOUT_FILENO);
      std::signal(SIGUSR1, stop_for_ever);
      std::thread works([] {
        static void* blocks[8192];
        for (;;) {
          for (void*& block : blocks) block = CApi::allocate(64);
          for (void* const block : blocks) CApi::deallocate(block);
        }
      });
      ::usleep(500 + i * 7919 % 1500);
      ::pthread_kill(works.native_handle(), SIGUSR1);
      while (!g_stopped) ::usleep(100);
      works.detach();
      ::usleep(200);
      std::exit(0);
    }
    int status = 0;
    require(::waitpid(child, &status, 0) == child && status == 0, "the end was not as usual: " + std::to_string(status));
  }
}

SCENARIO(lifecycle_smoke) {
  Churn(1).run(5000);
  in_threads(3, [](unsigned t) { Churn(t, 100, 64 * kKiB).run(2000); });
}

}  // namespace
}  // namespace freehold::test
