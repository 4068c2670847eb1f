// SPDX-License-Identifier: MIT
#include "lab/experiment/memory.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

namespace freehold::lab {
namespace {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// Private, anonymous, writable: heaps and pools.
std::vector<Mapping> own_mappings() {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char rights[5] = {};
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %lu", &mapping.begin, &mapping.end, rights,
                    &inode) != 4)
      continue;
    if (std::string_view(rights) == "rw-p" && inode == 0 && line.find("[stack") == std::string::npos)
      mappings.push_back(mapping);
  }
  return mappings;
}

}  // namespace

void make_resident(std::size_t most_bytes) {
  for (const auto& [begin, end] : own_mappings()) {
    // A kernel before 5.14 does not know how; the test then pays for the first touch.
    if (end - begin <= most_bytes) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
  }
}

void keep_heap() {
  constexpr int kNever = 1 << 30;
  ::mallopt(M_TRIM_THRESHOLD, kNever);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the greatest it accepts
}

void warm_heap(std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<void*> pieces(bytes / kPiece + 1);
  for (void*& piece : pieces) {
    piece = std::malloc(kPiece);
    if (piece == nullptr) break;
    for (std::size_t i = 0; i < kPiece; i += 4096) static_cast<volatile char*>(piece)[i] = 0;
  }
  for (void* const piece : pieces) std::free(piece);
}

std::size_t heap_bytes() { return ::mallinfo2().uordblks; }

}  // namespace freehold::lab
