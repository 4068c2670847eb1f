// SPDX-License-Identifier: MIT
// Fault: memory, not time. Each thread now and then needs much, never two at once; glibc keeps it in the arena of each
// thread that ever did, where the others cannot use it.
// Two CPUs take half the time of one. At the peak glibc holds 55 to 110 MiB, with one arena, or with Freehold, 11 to 25.
#include <memory>
#include <mutex>

#include "tests/doctor/faults/fault.hpp"

namespace {

struct Record {
  char text[300];
};

// Loads many records, and keeps the last, which holds the rest of the arena in place.
std::unique_ptr<Record> load(std::size_t megabytes) {
  static std::mutex one_at_a_time;
  const std::lock_guard guard(one_at_a_time);
  std::vector<std::unique_ptr<Record>> records((megabytes << 20) / sizeof(Record));
  for (std::unique_ptr<Record>& record : records) {
    record = std::make_unique<Record>();
    std::memset(record->text, 'x', sizeof record->text);
  }
  return std::move(records.back());
}

auto loads(std::size_t megabytes) {
  return [=](const fault::Options& options) {
    std::vector<std::unique_ptr<Record>> results(options.threads);
    fault::in_threads(options.threads, [&](unsigned me) {
      fault::compute(options.part(200e6));
      results[me] = load(megabytes);
      fault::compute(options.part(200e6));
    });
  };
}

}  // namespace

int main(int count, char** words) {
  return fault::run(count, words, {{"mild", loads(8)}, {"medium", loads(16)}, {"severe", loads(20)}}, 8);
}
