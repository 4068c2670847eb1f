// SPDX-License-Identifier: MIT
// Fault: the program itself maps and unmaps memory all the time. malloc has no part in it.
// Two CPUs take 1.1 to 1.3 times as long as one, with every allocator, nearly all of it in the kernel.
#include <fcntl.h>
#include <sys/mman.h>

#include "tests/doctor/faults/fault.hpp"

namespace {

void touch(char* block, std::size_t bytes) {
  for (std::size_t page = 0; page < bytes; page += 4096) block[page] = 'x';
}

void* map(std::size_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) std::abort();
  return block;
}

void buffers(std::size_t rounds, std::size_t bytes) {
  for (std::size_t i = 0; i < rounds; ++i) {
    void* block = map(bytes);
    touch(static_cast<char*>(block), bytes);
    munmap(block, bytes);
  }
}

// A region that is emptied between uses.
void discarded(std::size_t rounds, std::size_t bytes) {
  void* region = map(bytes);
  for (std::size_t i = 0; i < rounds; ++i) {
    touch(static_cast<char*>(region), bytes);
    madvise(region, bytes, MADV_DONTNEED);
  }
  munmap(region, bytes);
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"small", fault::each(40e3, [](unsigned, std::size_t part) { buffers(part, 16 << 10); })},
                     {"medium", fault::each(20e3, [](unsigned, std::size_t part) { buffers(part, 64 << 10); })},
                     {"discarded", fault::each(60e3, [](unsigned, std::size_t part) { discarded(part, 16 << 10); })}});
}
