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

}  // namespace

int main(int count, char** words) {
  constexpr const char* kSettings = "mild|medium|severe";
  const fault::Options options = fault::options(count, words, kSettings, 8);
  std::size_t megabytes = 0;
  if (options.is("mild"))
    megabytes = 8;
  else if (options.is("medium"))
    megabytes = 16;
  else if (options.is("severe"))
    megabytes = 20;
  else
    fault::no_such_setting(kSettings);
  std::vector<std::unique_ptr<Record>> results(options.threads);
  fault::in_threads(options.threads, [&](unsigned me) {
    fault::compute(options.part(200e6));
    results[me] = load(megabytes);
    fault::compute(options.part(200e6));
  });
}
