// SPDX-License-Identifier: MIT
// A program for the probe to watch: each role does one thing, of known amount. Prints "ok" at its end.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/doctor/subject_locks.hpp"

namespace {

constexpr unsigned kMany = 400'000;

// A million bytes a thousand at a time: `kMany` allocations and as many frees, all by one thread.
[[gnu::noinline]] void* site_of_counts(std::size_t bytes) {
  void* made = std::malloc(bytes);
  asm volatile("" : "+r"(made));  // no tail call, which would leave no frame
  return made;
}
[[gnu::noinline]] void counts() {
  void* held[64] = {};
  for (unsigned i = 0; i < kMany; ++i) {
    void*& place = held[i % 64];
    std::free(place);
    place = site_of_counts(100);
  }
  for (void* block : held) std::free(block);
}

// 20 MB in small blocks, 40 MB in larger ones, and 200 large ones of 100'000 bytes with smaller ones between them: all live
// at the end.
void sizes() {
  const auto allocate = [](unsigned count, std::size_t bytes) {
    for (unsigned i = 0; i < count; ++i) {
      void* kept = std::malloc(bytes);
      asm volatile("" : "+r"(kept));
    }
  };
  allocate(400'000, 50);
  allocate(10'000, 4'000);
  for (unsigned i = 0; i < 200; ++i) {
    allocate(1, 100'000);
    allocate(100, 60);
  }
}

// Every block is allocated here and freed there.
void remote() {
  constexpr unsigned kRing = 1024;
  static std::atomic<void*> ring[kRing];
  std::thread consumer([] {
    for (unsigned i = 0; i < kMany; ++i) {
      void* block = nullptr;
      while ((block = ring[i % kRing].exchange(nullptr)) == nullptr) sched_yield();
      std::free(block);
    }
  });
  for (unsigned i = 0; i < kMany; ++i) {
    while (ring[i % kRing].load() != nullptr) sched_yield();
    ring[i % kRing].store(std::malloc(64));
  }
  consumer.join();
}

// A thread allocates 40 blocks and frees every second one, whose places another thread's blocks get: neighbours belong to
// different threads, by the allocator's doing. 600 times. Blocks of 64 bytes have a line each.
void neighbours(std::size_t bytes) {
  constexpr unsigned kRounds = 600, kAtOnce = 20;
  static std::atomic<unsigned> turn{0};
  const auto body = [bytes](unsigned me) {
    std::vector<void*> held;
    held.reserve(std::size_t{kRounds} * kAtOnce);
    for (unsigned round = 0; round < kRounds; ++round) {
      // Asleep, since on a busy machine it takes a time slice of somebody else until a thread that yields goes on.
      for (unsigned now = turn; now % 2 != me; now = turn) turn.wait(now);
      void* given_up[kAtOnce] = {};
      for (void*& other : given_up) {
        held.push_back(aligned_alloc(bytes, bytes));
        if (me == 0) other = aligned_alloc(bytes, bytes);
      }
      for (void* block : given_up) std::free(block);
      ++turn;
      turn.notify_one();
    }
    for (void* block : held) std::free(block);
  };
  std::thread other(body, 1);
  body(0);
  other.join();
}

// Every entry point, with what each must keep to.
void entries() {
  for (unsigned i = 0; i < 1000; ++i) {
    auto* a = static_cast<unsigned char*>(std::calloc(10, 20));
    for (unsigned b = 0; b < 200; ++b)
      if (a[b] != 0) std::abort();
    std::memset(a, 7, 200);
    a = static_cast<unsigned char*>(std::realloc(a, 5000));
    for (unsigned b = 0; b < 200; ++b)
      if (a[b] != 7) std::abort();
    a = static_cast<unsigned char*>(reallocarray(a, 10, 10));
    std::free(a);
    void* b = nullptr;
    if (posix_memalign(&b, 256, 100) != 0 || reinterpret_cast<std::uintptr_t>(b) % 256 != 0) std::abort();
    std::free(b);
    for (void* block : {memalign(64, 10), aligned_alloc(128, 128), valloc(10), pvalloc(10)}) {
      if (block == nullptr || malloc_usable_size(block) < 9) std::abort();
      std::free(block);
    }
  }
  for (unsigned i = 0; i < 1000; ++i) {
    char* volatile made = new char[9];
    delete[] made;
  }
  errno = 0;
  volatile std::size_t too_many = ~std::size_t{0} / 2;
  if (reallocarray(nullptr, too_many, 4) != nullptr || errno != ENOMEM) std::abort();
  void* volatile refused = std::malloc(too_many);  // volatile: a compiler may leave such a call out
  if (refused != nullptr) std::abort();
  void* untouched = &errno;
  if (posix_memalign(&untouched, 3, 10) != EINVAL || untouched != &errno) std::abort();
}

// A child that works on, and one that becomes another program.
void forks() {
  void* before = std::malloc(100'000);
  const pid_t child = fork();
  if (child == 0) {
    std::free(before);
    for (int i = 0; i < 20; ++i) {
      void* volatile first_ones = std::malloc(70'001);
      std::free(first_ones);
    }
    counts();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::abort();
  if (fork() == 0) {
    execl("/proc/self/exe", "subject", "counts", nullptr);
    _exit(1);
  }
  waitpid(-1, &status, 0);
  if (status != 0) std::abort();
  std::free(before);
}

// Large blocks, of which each is recorded: more than a few extents hold.
void record_much() {
  for (int i = 0; i < 5'000; ++i) {
    void* volatile block = std::malloc(70'001);
    std::free(block);
  }
}

constexpr int kFirstNumber = 3, kEndOfNumbers = 256;

[[nodiscard]] int open_descriptors() {
  int open = 0;
  for (int fd = 0; fd < 2 * kEndOfNumbers; ++fd) open += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

// Opens FREEHOLD_SUBJECT_FILE under every small number, as a program does that closes what it did not open.
void take_all_numbers() {
  const int file = ::open(std::getenv("FREEHOLD_SUBJECT_FILE"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, "hello\n", 6) != 6) std::abort();
  for (int fd = kFirstNumber; fd < kEndOfNumbers; ++fd)
    if (fd != file && ::dup2(file, fd) != fd) std::abort();
}

// In a child; aborts where that does not end well.
template <class Body>
void in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) std::abort();
}

// Goes to another folder, opens its own files under all small numbers, and goes on, as its child does.
void takes_numbers() {
  if (::chdir("/") != 0) std::abort();
  take_all_numbers();
  for (int i = 0; i < 2; ++i) {  // before the probe has seen it, and after
    in_child([] {
      for (int fd = kFirstNumber; fd < kEndOfNumbers; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) std::abort();
      record_much();
    });
    if (i == 0) record_much();
  }
  const int open = open_descriptors();
  in_child([open] {
    if (open_descriptors() != open) std::abort();  // its recording instead of the parent's
  });
}

// The same after the recording was moved to another place, and another file has its path. Children have no file at all.
void loses_recording() {
  const std::string folder = std::getenv("FREEHOLD_PROBE_DIRECTORY");
  if (std::rename(folder.c_str(), (folder + "-moved").c_str()) != 0) std::abort();
  take_all_numbers();
  record_much();
  in_child([] {
    record_much();
    in_child(record_much);
    std::thread(record_much).join();
    ::pthread_exit(nullptr);  // its last thread: it ends well
  });
  const std::string other = folder + "/" + std::to_string(::getpid()) + "-0.trace";
  if (::mkdir(folder.c_str(), 0700) != 0) std::abort();
  const int file = ::open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, "other\n", 6) != 6 || ::close(file) != 0) std::abort();
  record_much();
}

// Small blocks of all sizes, by every way to ask for them: how many begin on a line that another one ends on?
void lines() {
  std::vector<std::pair<std::uintptr_t, std::size_t>> blocks;
  for (std::size_t bytes = 1; bytes <= 200; ++bytes) {
    void* aligned = nullptr;
    if (posix_memalign(&aligned, 32, bytes) != 0) std::abort();
    for (void* block : {std::malloc(bytes), std::calloc(1, bytes), std::realloc(std::malloc(1), bytes),
                        std::aligned_alloc(16, bytes), memalign(64, bytes), aligned})
      blocks.emplace_back(reinterpret_cast<std::uintptr_t>(block), bytes);
  }
  std::sort(blocks.begin(), blocks.end());
  unsigned shared = 0;
  for (std::size_t i = 1; i < blocks.size(); ++i)
    shared += (blocks[i - 1].first + blocks[i - 1].second - 1) / 64 == blocks[i].first / 64;
  std::printf("%u lines shared\n", shared);
}

// Hides a block from the compiler, which otherwise leaves out an allocation that is never used and takes it for a success.
bool is_refused(void* block) {
  asm volatile("" : "+r"(block));
  return block == nullptr;
}

// Impossible requests are refused, and the blocks stay.
void impossible() {
  volatile std::size_t most = SIZE_MAX;
  void* (*volatile reallocate)(void*, std::size_t) = std::realloc;  // GCC would hold the block to be gone
  char* const block = static_cast<char*>(std::malloc(10));
  std::strcpy(block, "untouched");
  for (std::size_t below = 0; below < 200; ++below) {
    if (!is_refused(std::malloc(most - below)) || !is_refused(reallocate(block, most - below)) ||
        !is_refused(std::calloc(most - below, 2)) || !is_refused(memalign(64, most - below)))
      std::exit(1);
  }
  if (std::strcmp(block, "untouched") != 0 || errno != ENOMEM) std::exit(1);
  std::free(block);
}

// A short burst of allocations at once, of which every tenth block lives on: a program's beginning.
void* volatile g_survivors[20'000];
[[gnu::noinline]] void burst() {
  std::vector<void*> blocks;
  blocks.reserve(200'000);
  for (std::size_t i = 0; i < 200'000; ++i) {
    void* const block = std::malloc(100);
    if (i % 10 == 0)
      g_survivors[i / 10] = block;
    else
      blocks.push_back(block);
  }
  for (void* const block : blocks) std::free(block);
}

// Code made at run time, without unwind information, as CPython's trampolines are: the allocation is called through it
// twice.
using Step = void (*)(int);
Step g_trampoline = nullptr;
std::size_t g_deep_bytes = 0;  // what the deepest call allocates; 0: small blocks
void* volatile g_deep = nullptr;
[[gnu::noinline]] void allocate_through(int depth) {
  if (depth == 0) {
    for (int i = 0; i < 20'000; ++i) {
      void* volatile block = std::malloc(100 + static_cast<std::size_t>(i % 7));
      std::free(block);
    }
  } else if (depth < 0) {
    g_deep = std::malloc(g_deep_bytes);
    std::free(g_deep);
  } else {
    g_trampoline(depth == 1 && g_deep_bytes != 0 ? -1 : depth - 1);
  }
  asm volatile("" ::: "memory");  // no tail call
}
[[gnu::noinline]] void trampolines(bool with_frame_pointer) {
  // rdi stays; the target is in rcx: mov $target,%rcx, then one of the two frames.
  unsigned char code[64] = {0x48, 0xb9};
  const auto target = reinterpret_cast<std::uint64_t>(&allocate_through);
  std::memcpy(code + 2, &target, sizeof target);
  const unsigned char plain[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
  if (with_frame_pointer)
    std::memcpy(code + 10, framed, sizeof framed);
  else
    std::memcpy(code + 10, plain, sizeof plain);
  void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::exit(1);
  std::memcpy(at, code, sizeof code);
  if (::mprotect(at, 4096, PROT_READ | PROT_EXEC) != 0) std::exit(1);
  const std::string name = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  if (std::FILE* const names = std::fopen(name.c_str(), "we"); names != nullptr) {
    std::fprintf(names, "%lx %x py::build:/home/me/work.py\n", reinterpret_cast<unsigned long>(at), 64);
    std::fclose(names);
  }
  g_trampoline = reinterpret_cast<Step>(at);
  allocate_through(2);
  // Large blocks, of which each is recorded, from ever deeper calls.
  for (int depth = 3; depth < 40; ++depth) {
    g_deep_bytes = (std::size_t{1} << 17) + static_cast<std::size_t>(depth);
    allocate_through(depth);
  }
}

// Ends while another thread of it runs.
void ends_beside_a_thread() {
  static std::atomic<bool> runs = false;
  std::thread([] {
    for (;;) runs = true;
  }).detach();
  while (!runs) {
  }
}

// Two threads map and unmap 500 regions of a MiB each, and touch one page of each.
void maps() {
  const auto work = [] {
    for (int i = 0; i < 500; ++i) {
      void* const region = ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (region == MAP_FAILED) std::abort();
      *static_cast<volatile char*>(region) = 1;
      ::munmap(region, 1 << 20);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

// Binds itself to its first CPU once it has run for a moment, as a library does that is initialised then. Two threads need
// a tenth of a second of that CPU each.
void binds_itself() {
  const auto spin = [](long ns) {
    timespec time{};
    do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    while (time.tv_sec == 0 && time.tv_nsec < ns);
  };
  spin(12'000'000);
  cpu_set_t all, first;
  CPU_ZERO(&first);
  ::sched_getaffinity(0, sizeof all, &all);
  int cpu = 0;
  while (CPU_ISSET(cpu, &all) == 0) ++cpu;
  CPU_SET(cpu, &first);
  ::sched_setaffinity(0, sizeof first, &first);
  std::thread other([&] { spin(100'000'000); });
  spin(112'000'000);
  other.join();
}

// Goes into the group of the process that started it, and does not end soon.
void leaves_its_group() {
  if (::setpgid(0, ::getpgid(::getppid())) != 0) std::exit(1);
  ::sleep(30);
}

}  // namespace

int main(int count, char** words) {
  const struct {
    std::string_view name;
    void (*play)();
  } roles[] = {{"counts", counts},
               {"remote", remote},
               {"neighbours", [] { neighbours(16); }},
               {"apart", [] { neighbours(64); }},
               {"entries", entries},
               {"forks", forks},
               {"takes_numbers", takes_numbers},
               {"loses_recording", loses_recording},
               {"stream", stream},
               {"locks", locks},
               {"other_locks", other_locks},
               {"lock_results", lock_results},
               {"lines", lines},
               {"burst", burst},
               {"sizes", sizes},
               {"trampoline", [] { trampolines(false); }},
               {"framed_trampoline", [] { trampolines(true); }},
               {"impossible", impossible},
               {"ends_beside_a_thread", ends_beside_a_thread},
               {"maps", maps},
               {"binds_itself", binds_itself},
               {"leaves_its_group", leaves_its_group}};
  for (const auto& role : roles)
    if (count > 1 && role.name == words[1]) {
      role.play();
      std::puts("ok");
      return 0;
    }
  return 2;
}
