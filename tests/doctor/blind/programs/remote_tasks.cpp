// SPDX-License-Identifier: MIT
// Does: a thread makes tasks (std::function with a string in it), others run and destroy them; 1000 tasks go through the
// queue at once.
//       With one thread it makes and runs them in turn.
// Why:  blocks cross threads, two for each task. The queue's lock is taken once for a thousand tasks, so it cannot be
//       what is waited for.
// Case remote_tasks: {n} 12000000
//   Truth: remote-frees
//   Right: remote-frees allocator-lock mixed+
//   Seen: strace -f -c of a twenty-fourth of it: 2046 futex calls for 500 batches and malloc's lock
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>

#include "tests/doctor/blind/programs/common.h"

namespace {

using Batch = std::vector<std::function<std::size_t()>>;
std::mutex mutex;
std::condition_variable changed;
std::deque<Batch> queue;
bool ended;

Batch make_batch(long first) {
  Batch batch;
  batch.reserve(1000);
  for (long i = 0; i < 1000; ++i)
    batch.push_back([number = first + i, name = std::string(40 + i % 50, 'x')] { return name.size() + number; });
  return batch;
}

std::size_t run_batch(const Batch& batch) {
  std::size_t sum = 0;
  for (const auto& task : batch) sum += task();
  return sum;
}

void produce(long batches) {
  for (long i = 0; i < batches; ++i) {
    Batch batch = make_batch(i);
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return queue.size() < 32; });
    queue.push_back(std::move(batch));
    changed.notify_all();
  }
  std::scoped_lock lock(mutex);
  ended = true;
  changed.notify_all();
}

void consume(std::size_t& sum) {
  for (;;) {
    Batch batch;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [] { return !queue.empty() || ended; });
      if (queue.empty()) return;
      batch = std::move(queue.front());
      queue.pop_front();
      changed.notify_all();
    }
    sum += run_batch(batch);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = std::atoi(argv[1]);
  const long batches = std::atol(argv[2]) / 1000;
  std::size_t sum[64] = {};
  in_threads(threads, [&](int i) {
    if (i > 0) return consume(sum[i]);
    if (threads > 1) return produce(batches);
    for (long k = 0; k < batches; ++k) sum[0] += run_batch(make_batch(k));
  });
  std::printf("%ld batches, first sum %zu\n", batches, sum[threads - 1]);
}
