// SPDX-License-Identifier: MIT
// Large blocks that grow, and a process that has as many mappings as the system allows.
#include <pthread.h>
#include <sys/resource.h>

#include "tests/memory_return/scenarios/probe.hpp"

namespace freehold::test {
namespace {

constexpr std::size_t kPageBytes = 4096;
// A malloc that moves blocks by copying makes them resident whole: the scenario then makes do with fewer buffers.
constexpr double kMostResidentMib = 1024;

// A different word at the beginning of each buffer and perhaps at its end: enough to see that its contents moved along, and
// little memory.
struct Sparse {
  bool also_end;

  [[nodiscard]] std::size_t last(std::size_t bytes) const { return also_end ? bytes - sizeof(std::uint64_t) : 0; }
  void write(void* block, std::size_t bytes, std::uint64_t stamp) const {
    for (const std::size_t at : {std::size_t{0}, last(bytes)}) {
      const std::uint64_t word = stamp ^ at;
      std::memcpy(static_cast<char*>(block) + at, &word, sizeof word);
    }
  }
  [[nodiscard]] bool intact(const void* block, std::size_t bytes, std::uint64_t stamp) const {
    for (const std::size_t at : {std::size_t{0}, last(bytes)}) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(block) + at, sizeof word);
      if (word != (stamp ^ at)) return false;
    }
    return true;
  }
};

void* do_nothing(void* p) { return p; }

// The process can still start threads and map memory.
void use_the_system() {
  SmallStacks stacks(256 * kKiB);
  std::array<pthread_t, 8> threads;
  for (pthread_t& thread : threads) thread = stacks.start(do_nothing, nullptr);
  for (const pthread_t thread : threads) require(pthread_join(thread, nullptr) == 0, "pthread_join");
  std::array<void*, 64> maps;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    maps[i] =
        ::mmap(nullptr, kPageBytes, i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(maps[i] != MAP_FAILED, "mmap");
  }
  for (void* p : maps) ::munmap(p, kPageBytes);
}

// COUNT buffers of FROM bytes with WORDS written, then each grown to TO, then all freed and trimmed.
SCENARIO(mappings_growing_buffers) {
  const std::size_t wanted = number(arguments, 0), from = number(arguments, 1), to = number(arguments, 2);
  const Sparse sparse{number(arguments, 3) > 1};
  Table<void*> blocks(wanted);
  std::size_t n = 0, grown = 0;
  for (; n < wanted && (n % 512 != 0 || private_mib() < kMostResidentMib / 2); ++n) {
    blocks[n] = CApi::allocate(from);
    require(blocks[n] != nullptr, "no memory");
    sparse.write(blocks[n], from, n);
  }
  for (; grown < n && (grown % 512 != 0 || private_mib() < kMostResidentMib); ++grown) {
    blocks[grown] = CApi::reallocate(blocks[grown], to);
    require(blocks[grown] != nullptr, "realloc");
    require(sparse.intact(blocks[grown], from, grown), "contents lost in growing");
  }
  const std::size_t live = count_mappings();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  figure("faults_grown", static_cast<double>(usage.ru_minflt));
  figure("live_mib", private_mib());
  use_the_system();
  for (std::size_t i = 0; i < n; ++i) {
    require(sparse.intact(blocks[i], from, i), "contents lost later");
    CApi::deallocate(blocks[i]);
  }
  const std::size_t freed = count_mappings();
  CApi::trim();
  const std::size_t trimmed = count_mappings();
  use_the_system();
  figure("buffers", static_cast<double>(grown));
  figure("mappings_live", static_cast<double>(live));
  figure("mappings_freed", static_cast<double>(freed));
  figure("mappings_trimmed", static_cast<double>(trimmed));
  figure("peak_mib", memory_mib("/proc/self/status", "\nVmHWM:"));
  figure("resident_mib", private_mib());
}

// 64 buffers that grow in turn, 16 KiB at a time, from 64 KiB to 4 MiB, as a server's do. Every page is written.
SCENARIO(mappings_64_growing_buffers) {
  constexpr std::size_t kBuffers = 64, kStep = 16 * kKiB, kTo = 4 * kMiB;
  Table<unsigned char*> buffers(kBuffers);
  std::size_t calls = 0, most = 0;
  double cpu = 0;
  for (std::size_t bytes = 64 * kKiB, old = 0; bytes <= kTo; old = bytes, bytes += kStep) {
    for (std::size_t b = 0; b < kBuffers; ++b) {
      const double start = cpu_seconds();
      auto* p = static_cast<unsigned char*>(CApi::reallocate(buffers[b], bytes));
      cpu += cpu_seconds() - start;
      ++calls;
      require(p != nullptr, "realloc");
      buffers[b] = p;
      for (std::size_t at = old; at < bytes; at += kPageBytes) fill(p + at, 16, b << 32 | at);
    }
    if (bytes % (256 * kKiB) != 0) continue;
    most = std::max(most, count_mappings());
    for (std::size_t b = 0; b < kBuffers; ++b)
      for (std::size_t at = 0; at < bytes; at += kPageBytes)
        require(intact(buffers[b] + at, 16, b << 32 | at), "contents lost in growing");
  }
  for (unsigned char* p : buffers) CApi::deallocate(p);
  CApi::trim();
  figure("mappings_live", static_cast<double>(most));
  figure("mappings_trimmed", static_cast<double>(count_mappings()));
  figure("resident_mib", private_mib());
  figure("us_a_call", cpu / static_cast<double>(calls) * 1e6);
}

// Uses up the mappings that a process may have, except a few. Neighbouring pages differ in their protection.
class FullOfMappings {
 public:
  FullOfMappings() {
    pages_ = ::mmap(nullptr, kPages * kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(pages_ != MAP_FAILED, "mmap");
    while (2 * used_ + 1 < kPages && ::mprotect(page(2 * used_), kPageBytes, PROT_READ) == 0) ++used_;
    limited_ = 2 * used_ + 1 < kPages;
  }
  // Each makes room for two mappings.
  void give_up(std::size_t n) {
    for (; n != 0 && used_ != 0; --n) ::mprotect(page(2 * --used_), kPageBytes, PROT_NONE);
  }
  ~FullOfMappings() { ::munmap(pages_, kPages * kPageBytes); }
  FullOfMappings(const FullOfMappings&) = delete;
  FullOfMappings& operator=(const FullOfMappings&) = delete;
  [[nodiscard]] bool limited() const { return limited_; }

 private:
  static constexpr std::size_t kPages = 140'000;
  [[nodiscard]] void* page(std::size_t i) const { return static_cast<char*>(pages_) + (i + 1) * kPageBytes; }
  void* pages_;
  std::size_t used_ = 0;
  bool limited_ = false;
};

// Allocates, resizes and frees blocks of up to 4 MiB; null is an answer, lost contents are not.
class Survivor {
 public:
  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) step(random_.below(kBlocks));
    for (std::size_t i = 0; i < kBlocks; ++i) check(i);
  }
  void release_all() {
    for (std::size_t i = 0; i < kBlocks; ++i) release(i);
  }
  [[nodiscard]] double refused() const { return static_cast<double>(refused_); }
  [[nodiscard]] double granted() const { return static_cast<double>(granted_); }

 private:
  static constexpr std::size_t kBlocks = 96;
  struct Block {
    void* address;
    std::size_t bytes;
    std::uint64_t stamp;
  };
  std::size_t random_bytes() {
    switch (random_.below(4)) {
      case 0: return 16 + random_.below(4 * kKiB);
      case 1: return 4 * kKiB + random_.below(200 * kKiB);
      default: return 200 * kKiB + random_.below(4 * kMiB - 200 * kKiB);
    }
  }
  void check(std::size_t i) {
    const Block& b = blocks_[i];
    if (b.address != nullptr) require(intact(b.address, b.bytes, b.stamp), "contents lost");
  }
  void release(std::size_t i) {
    check(i);
    CApi::deallocate(blocks_[i].address);
    blocks_[i] = {};
  }
  void put(std::size_t i, void* p, std::size_t bytes) {
    blocks_[i] = {p, bytes, ++stamp_};
    fill(p, bytes, stamp_);
    ++granted_;
  }
  void refuse() {
    require(errno == ENOMEM, "refused with another errno than ENOMEM");
    ++refused_;
  }
  void step(std::size_t i) {
    Block& b = blocks_[i];
    const std::size_t bytes = random_bytes();
    errno = 0;
    if (b.address == nullptr) {
      void* p = random_.below(8) == 0 ? CApi::allocate_aligned(64 * kKiB, bytes) : CApi::allocate(bytes);
      return p != nullptr ? put(i, p, bytes) : refuse();
    }
    if (random_.below(2) == 0) return release(i);
    check(i);
    void* p = CApi::reallocate(b.address, bytes);
    if (p == nullptr) {
      refuse();
      return check(i);  // as it was
    }
    require(b.bytes > bytes ? intact(p, bytes, b.bytes, b.stamp) : intact(p, b.bytes, b.stamp), "contents lost by realloc");
    put(i, p, bytes);
  }

  Table<Block> blocks_{kBlocks};
  Random random_{11};
  std::uint64_t stamp_ = 0;
  std::size_t refused_ = 0, granted_ = 0;
};

// ROOM: how many mappings more the process may make. Then the room is back, and everything works.
SCENARIO(mappings_all_used) {
  static Survivor survivor;
  survivor.run(500);
  {
    FullOfMappings full;
    if (!full.limited()) return figure("unlimited", 1);
    full.give_up((number(arguments, 0) + 1) / 2);
    survivor.run(3000);
    CApi::trim();
    survivor.run(1000);
    survivor.release_all();
    CApi::trim();
    survivor.run(1000);
  }
  survivor.run(1000);
  survivor.release_all();
  void* p = allocate_written(64 * kMiB);
  CApi::deallocate(p);
  CApi::trim();
  use_the_system();
  figure("refused", survivor.refused());
  figure("granted", survivor.granted());
  figure("mappings_trimmed", static_cast<double>(count_mappings()));
  figure("resident_mib", private_mib());
}

}  // namespace
}  // namespace freehold::test
