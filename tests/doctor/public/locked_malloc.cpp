// SPDX-License-Identifier: MIT
// Does: a runtime takes its own mutex around every malloc and free.
// Why:  the runtime of a compiler did so for systems whose malloc is not safe with threads; that made a faster malloc
// useless.
//       github.com/flang-compiler/flang/pull/460, rebuilt from that description alone.
// Case locked_malloc: {n} 12000000
//   Truth: own-lock
//   Right: own-lock
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

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
void compute(int arrays) {
  for (int i = 0; i < arrays; ++i) {
    auto* const array = static_cast<double*>(runtime_malloc(64 * sizeof(double)));
    for (int at = 0; at < 64; ++at) array[at] = at * 0.5;
    const volatile double kept = array[i & 63];
    static_cast<void>(kept);
    runtime_free(array);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, arrays = argc > 2 ? std::atoi(argv[2]) : 12000000;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(compute, arrays / threads);
  for (auto& thread : running) thread.join();
}
