// SPDX-License-Identifier: MIT
// guards_program KIND: does something that guarded blocks must bear, or misuses a block in a way that is of their pages; the
// other ways are malloc_program's. For FREEHOLD_GUARD_RATE=1, where every block of at most a page has a separate page. If
// the process is not ended for it, prints "still alive" and exits with 0.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/active_malloc.hpp"
#include "tests/support/c_api.hpp"

namespace freehold::test {
namespace {

// Blocks are used through these: to the compiler the pointers could be anything.
volatile char* g_block;
void write(std::ptrdiff_t at) { opaque(g_block)[at] = 1; }
char read(std::ptrdiff_t at) { return opaque(g_block)[at]; }

char* block_of(std::size_t n) {
  auto* const p = static_cast<char*>(CApi::allocate(n));
  std::memset(p, 7, n);
  g_block = p;
  return p;
}
void release(void* p) { CApi::deallocate(p); }

[[noreturn]] void own_handler(int) { ::_exit(42); }
struct sigaction g_former;
void chaining_handler(int signal, siginfo_t* info, void* context) {
  static constexpr char kLine[] = "my own lines first\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine, sizeof kLine - 1);
  g_former.sa_sigaction(signal, info, context);
}
void install(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  ::sigaction(SIGSEGV, &action, &g_former);
}
void install_chaining() {
  struct sigaction action{};
  action.sa_sigaction = chaining_handler;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &g_former);
}

void use_a_signal_stack(char* memory, std::size_t bytes) {
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = bytes;
  if (::sigaltstack(&stack, nullptr) != 0) std::abort();
}

// The system writes this to a signal stack before the handler begins: the registers, as many as the processor has.
char* g_stack_end;
std::size_t g_frame_bytes;
std::size_t bytes_of_a_signals_frame() {
  static char room[256 * 1024];
  g_stack_end = room + sizeof room;
  use_a_signal_stack(room, sizeof room);
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t* info, void* context) {
    g_frame_bytes =
        static_cast<std::size_t>(g_stack_end - std::min(reinterpret_cast<char*>(info), static_cast<char*>(context)));
  };
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGUSR1, &action, nullptr);
  ::raise(SIGUSR1);
  return g_frame_bytes;
}

// A signal stack that has so much beside the signal's frame, and no access below.
void use_a_signal_stack_with(std::size_t bytes) {
  constexpr std::size_t kPage = 65'536, kRoom = 2 * kPage;
  const std::size_t size = bytes_of_a_signals_frame() + bytes;
  void* const memory = ::mmap(nullptr, kPage + kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (size > kRoom || memory == MAP_FAILED || ::mprotect(memory, kPage, PROT_NONE) != 0) std::abort();
  use_a_signal_stack(static_cast<char*>(memory) + kPage, size);
}

void use_after_free() {
  release(block_of(40));
  write(8);
}

// Ends as the child did.
void in_a_child(void (*f)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) std::abort();
  if (WIFSIGNALED(status)) ::raise(WTERMSIG(status));
}

// Counts how many of many blocks, allocated and freed in turns so that arrays run empty, have a separate page. Their size is
// exact; that of others is the slot's.
void count_guarded(int turns) {
  constexpr std::size_t kBlocks = 2'000, kBytes = 100;
  std::vector<void*> blocks(kBlocks);
  unsigned long guarded = 0, all = 0;
  for (int turn = 0; turn < turns; ++turn) {
    for (void*& p : blocks) {
      p = CApi::allocate(kBytes);
      guarded += CApi::usable_size(p) == kBytes ? 1 : 0;
      ++all;
    }
    for (void* p : blocks) release(p);
  }
  std::printf("guarded %lu\nall %lu\n", guarded, all);
}

// Threads pass blocks on, others fork: all sizes below, at and above a page.
void many_threads() {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([t] {
      for (unsigned i = 0; i < 300; ++i) {
        const std::size_t bytes = 1 + (t * 7919 + i * 104'729) % 6'000;
        auto* const p = static_cast<unsigned char*>(i % 3 == 0   ? CApi::allocate_zeroed(bytes)
                                                    : i % 3 == 1 ? CApi::allocate(bytes)
                                                                 : CApi::allocate_aligned(64, bytes));
        for (std::size_t k = 0; i % 3 == 0 && k < bytes; ++k)
          if (p[k] != 0) std::abort();
        std::memset(p, static_cast<int>(t + 1), bytes);
        auto* const q = static_cast<unsigned char*>(CApi::reallocate(p, bytes + i % 50));
        for (std::size_t k = 0; k < bytes; ++k)
          if (q[k] != t + 1) std::abort();
        std::thread([q] { release(q); }).join();
      }
    });
  for (int i = 0; i < 20; ++i) in_a_child([] { release(block_of(100)); });
  for (std::thread& thread : threads) thread.join();
}

// Standard error is a pipe that is full: who reports waits. The end to read from.
int fill_standard_error() {
  int ends[2];
  if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) std::abort();
  static constexpr char kRubbish[4096] = {};
  ::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
  for (std::size_t bytes : {sizeof kRubbish, std::size_t{1}})
    while (::write(STDERR_FILENO, kRubbish, bytes) > 0) {
    }
  ::fcntl(STDERR_FILENO, F_SETFL, 0);
  return ends[0];
}
pthread_t start_a_report() {
  pthread_t thread;
  release(block_of(40));
  if (::pthread_create(&thread, nullptr, [](void*) -> void* { return write(0), nullptr; }, nullptr) != 0) std::abort();
  ::usleep(300'000);  // until it waits for the pipe
  return thread;
}
// A child of fork reports, too, though the thread that was at it has not come along.
void fork_amid_a_report() {
  const int before = ::dup(STDERR_FILENO);
  static_cast<void>(fill_standard_error());
  static_cast<void>(start_a_report());
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(before, STDERR_FILENO);
    ::alarm(20);
    use_after_free();
    ::_exit(0);
  }
  int status = 0;
  for (int i = 0; i < 1000 && ::waitpid(child, &status, WNOHANG) == 0; ++i) ::usleep(10'000);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) {
    ::kill(child, SIGKILL);
    ::_exit(1);
  }
  ::_exit(0);
}
// A reporting thread goes on, though it was cancelled during the report.
void cancelled_amid_a_report() {
  const int pipe = fill_standard_error();
  ::pthread_cancel(start_a_report());
  char some[4096];
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < 500; ++i) {
    while (::read(pipe, some, sizeof some) > 0) {
    }
    ::usleep(10'000);
  }
}

const std::map<std::string, void (*)()>& kinds() {
  static const std::map<std::string, void (*)()> all = {
      // no misuse: the controls
      {"none", [] { release(block_of(100)); }},
      {"many_threads", many_threads},
      {"count_guarded", [] { count_guarded(500); }},
      {"realloc_to_the_same_size",
       [] {
         char* const p = block_of(100);
         if (CApi::reallocate(p, CApi::usable_size(p)) != p) std::abort();
         release(p);
       }},
      {"count_few_guarded", [] { count_guarded(1); }},
      {"freed_by_parent_and_child",
       [] {
         char* const p = block_of(100);
         in_a_child([] { write(99), release(const_cast<char*>(g_block)); });
         write(99);
         release(p);
       }},
      {"refused_by_the_system",
       [] {
         release(block_of(100));
         const int file = ::open("/dev/zero", O_RDONLY);
         if (::read(file, const_cast<char*>(g_block), 1) != -1) std::abort();  // EFAULT, no signal
       }},
      // the processor refuses
      {"use_after_free_in_a_child", [] { in_a_child(use_after_free); }},
      {"write_behind_a_page", [] { block_of(4096), write(4096); }},
      {"read_before_a_page", [] { block_of(4096), static_cast<void>(read(-1)); }},
      {"use_after_free_on_a_small_signal_stack",
       [] {
         use_a_signal_stack_with(1024);
         use_after_free();
       }},
      {"fork_amid_a_report", fork_amid_a_report},
      {"cancelled_amid_a_report", cancelled_amid_a_report},
      // the processor, or the free, by where the block lies
      {"overflow_by_many",
       [] {
         char* const p = block_of(48);
         for (int i = 0; i < 5'000; ++i) write(48 + i);
         release(p);
       }},
      {"overflow_after_a_smaller_realloc",
       [] {
         g_block = static_cast<char*>(CApi::reallocate(block_of(4096), 3072));
         write(3072), release(const_cast<char*>(g_block));
       }},
      {"overflow_of_an_aligned_block",
       [] {
         g_block = static_cast<char*>(CApi::allocate_aligned(256, 256));
         write(256), release(const_cast<char*>(g_block));
       }},
      // the free
      {"size_of_freed",
       [] {
         char* const p = block_of(40);
         release(p), static_cast<void>(CApi::usable_size(p));
       }},
      // other faults and other handlers
      {"null_pointer", [] { g_block = nullptr, write(16); }},
      {"signal_from_elsewhere", [] { ::kill(::getpid(), SIGSEGV); }},
      {"bus_error",
       [] {
         const int file = ::memfd_create("empty", 0);
         g_block = static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
         write(0);
       }},
      {"own_handler_later", [] { install(own_handler), use_after_free(); }},
      {"own_handler_that_chains", [] { install_chaining(), use_after_free(); }},
      {"ignored_and_sent", [] { install(SIG_IGN), ::kill(::getpid(), SIGSEGV); }},
  };
  return all;
}

}  // namespace
}  // namespace freehold::test

int main(int argc, char** argv) {
  using namespace freehold::test;
  if (freehold_is_expected() && !freehold_answers()) return 3;
  const auto found = argc == 2 ? kinds().find(argv[1]) : kinds().end();
  if (found == kinds().end()) return 2;
  found->second();
  std::puts("still alive");
  return 0;
}
