// SPDX-License-Identifier: MIT
// A runtime takes its own mutex around every malloc and free.
// The runtime of a compiler did so for systems whose malloc is not safe with threads; that made a faster
// malloc useless.
#include <mutex>

#include "tests/doctor/corpus/programs/rebuilt.hpp"

namespace {

std::mutex g_runtime;

void* runtime_malloc(std::size_t bytes) {
  const std::lock_guard lock(g_runtime);
  return std::malloc(bytes);
}
void runtime_free(void* block) {
  const std::lock_guard lock(g_runtime);
  std::free(block);
}
void compute(long arrays) {
  for (long i = 0; i < arrays; ++i) {
    auto* const array = static_cast<double*>(runtime_malloc(64 * sizeof(double)));
    for (int at = 0; at < 64; ++at) array[at] = at * 0.5;
    rebuilt::keep(array[i & 63]);
    runtime_free(array);
  }
}

}  // namespace

int main(int argc, char** argv) {
  rebuilt::in_threads(argc, argv, [](unsigned, long arrays) { compute(arrays); });
}
