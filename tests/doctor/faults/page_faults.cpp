// SPDX-License-Identifier: MIT
// Fault: malloc gives memory back to the system and fetches it again all the time. The system zeroes every page again, locks
// the address space while it does so, and tells the other CPUs of every page that goes. Two CPUs take 1.1 to 1.3 times as
// long as one, nearly all of it in the kernel; an allocator that keeps the memory needs less than a tenth of the time.
#include <malloc.h>

#include <memory>

#include "tests/doctor/faults/fault.hpp"

namespace {

// A buffer for each step of the work, of which the first `used` bytes are written.
void buffers(std::size_t rounds, std::size_t bytes, std::size_t used) {
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::unique_ptr<char[]> buffer(new char[bytes]);
    for (std::size_t page = 0; page < used; page += 4096) buffer[page] = 'x';
    fault::keep(buffer.get());
  }
}

// Small blocks, enough that the heap shrinks when they go.
void batches(std::size_t rounds) {
  std::vector<std::unique_ptr<char[]>> batch(50);
  for (std::size_t i = 0; i < rounds; ++i) {
    for (std::unique_ptr<char[]>& block : batch) {
      block.reset(new char[3000]);
      block[0] = 'x';
    }
    for (std::unique_ptr<char[]>& block : batch) block.reset();
  }
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words,
                    {{"threshold",
                      [](const auto& options) {
                        mallopt(M_MMAP_THRESHOLD, 128 << 10);  // fixed: it no longer adapts to what is freed
                        fault::each(10e3, [](unsigned, std::size_t part) { buffers(part, 130 << 10, 130 << 10); })(options);
                      }},  // Larger than glibc's largest threshold.
                     {"generous", fault::each(25e3, [](unsigned, std::size_t part) { buffers(part, 40 << 20, 32 << 10); })},
                     {"trimmed", [](const auto& options) {
                        mallopt(M_TRIM_THRESHOLD, 64 << 10);
                        fault::each(25e3, [](unsigned, std::size_t part) { batches(part); })(options);
                      }}});
}
