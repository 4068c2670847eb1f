// SPDX-License-Identifier: MIT
// Holds memory of known sizes until its standard input ends, for readers outside. Says "ready" on standard output.
//
//   live_subject hold         blocks, private heaps, pools, and three threads with names
//   live_subject cross        50,000 blocks that one thread allocated and another has freed
//   live_subject fork         a child that holds more than its parent, which names it: "ready PID"
//   live_subject churn        threads, heaps, pools and children come and go all the time
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "freehold/heap.hpp"
#include "freehold/pool.hpp"

namespace {

struct Customer {
  char name[40];
};

// Volatile: the compiler may not leave out a value that is never used.
void* volatile g_last;

void allocate(int n, std::size_t bytes) {
  for (int i = 0; i < n; ++i) g_last = std::memset(std::malloc(bytes), 1, bytes);
}

void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::_Exit(1);
}
void wait_for_the_end() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) continue;
}

void hold() {
  freehold::PrivateHeap orders({.name = "orders", .limit_bytes = std::size_t{64} << 20});
  freehold::PrivateHeap empty({.name = "empty \"\\\n heap"});
  freehold::PrivateHeap unnamed;
  for (int i = 0; i < 1000; ++i) g_last = orders.allocate(100);
  g_last = orders.allocate(300'000);
  g_last = unnamed.allocate(1000);
  freehold::ObjectPool<Customer> customers(10'000, {.name = "customers"});
  auto sessions = freehold::ObjectPool<Customer>::growing(100'000, {.name = "sessions"});
  freehold::ObjectPool<Customer> hidden(10);
  std::vector<freehold::ObjectPool<Customer>::Handle> handles;
  for (int i = 0; i < 500; ++i) handles.push_back(customers.make());
  for (int i = 0; i < 200; ++i) handles.push_back(sessions.make());
  handles.push_back(hidden.make());
  std::barrier all_have(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      ::prctl(PR_SET_NAME, ("worker-" + std::to_string(t)).c_str());
      allocate(5'000, 256);
      all_have.arrive_and_wait();
      wait_for_the_end();
    });
  allocate(5'000, 256);
  all_have.arrive_and_wait();
  say("ready\n");
  wait_for_the_end();
  for (std::thread& thread : threads) thread.join();
}

void cross() {
  std::vector<void*> blocks(50'000);
  std::atomic<int> step{0};
  std::thread producer([&] {
    for (void*& block : blocks) block = std::malloc(64);
    step = 1;
    while (step != 2) ::usleep(1000);
  });
  while (step != 1) ::usleep(1000);
  for (void* const block : blocks) std::free(block);
  say("ready\n");
  wait_for_the_end();
  step = 2;
  producer.join();
}

void fork_one() {
  freehold::PrivateHeap heap({.name = "before"});
  g_last = heap.allocate(100);
  int to_child[2];
  if (::pipe(to_child) != 0) std::_Exit(1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(to_child[1]);
    freehold::PrivateHeap own({.name = "the child's"});
    for (int i = 0; i < 100; ++i) g_last = own.allocate(100);
    allocate(20'000, 1024);
    say("ready " + std::to_string(::getpid()) + "\n");
    char byte = 0;
    while (::read(to_child[0], &byte, 1) > 0) continue;
    std::_Exit(0);
  }
  wait_for_the_end();
  ::close(to_child[1]);
  ::waitpid(child, nullptr, 0);
}

void churn() {
  std::atomic<bool> goes_on{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (goes_on) {
        std::vector<std::thread> few;
        for (int i = 0; i < 4; ++i)
          few.emplace_back([] {
            freehold::PrivateHeap heap({.name = "short-lived"});
            freehold::ObjectPool<Customer> pool(1000, {.name = "short-lived"});
            auto one = pool.make();
            std::vector<void*> blocks(2'000);
            for (void*& block : blocks) block = std::malloc(48);
            g_last = heap.allocate(64);
            for (void* const block : blocks) std::free(block);
          });
        for (std::thread& thread : few) thread.join();
      }
    });
  threads.emplace_back([&] {
    while (goes_on) {
      const pid_t child = ::fork();
      if (child == 0) {
        allocate(5'000, 80);
        std::_Exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
  });
  say("ready\n");
  wait_for_the_end();
  goes_on = false;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (mode == "hold") return hold(), 0;
  if (mode == "cross") return cross(), 0;
  if (mode == "fork") return fork_one(), 0;
  if (mode == "churn") return churn(), 0;
  return 2;
}
