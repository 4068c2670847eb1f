// SPDX-License-Identifier: MIT
#include "lab/pools/job.hpp"

#include "cli/support/arguments.hpp"
#include "lab/experiment/job_words.hpp"

namespace freehold::cli::pools {
std::string_view name_of(Trial test) {
  switch (test) {
    case Trial::kShort: return "short";
    case Trial::kLong: return "long";
    case Trial::kSingle: return "single";
    case Trial::kRandom: return "random";
    case Trial::kRing: return "ring";
    case Trial::kPair: return "pair";
    case Trial::kCrc: return "crc";
  }
  __builtin_unreachable();
}

std::string_view name_of(Context context) {
  switch (context) {
    case Context::kFresh: return "fresh";
    case Context::kPolluted: return "polluted";
    case Context::kHalfUsed: return "half";
    case Context::kAlmostFull: return "full";
  }
  __builtin_unreachable();
}

std::optional<Trial> test_of(std::string_view name) { return value_of<Trial>(kTests, name); }
std::optional<Context> context_of(std::string_view name) { return value_of<Context>(kContexts, name); }

std::vector<std::string> words_of(const Job& job) {
  return job_words(job.pool, job.test, job.context, job.threads, job.operations, job.slot_bytes, job.milliseconds, job.reads,
                   job.shards, job.counted);
}

Job job_of(const std::vector<std::string>& words) {
  JobWords next(kWorkerCommand, words, 10);
  return {.pool = next.text(),
          .test = next.named(test_of),
          .context = next.named(context_of),
          .threads = next.number(),
          .operations = next.large_number(),
          .slot_bytes = next.number(),
          .milliseconds = next.number(),
          .reads = next.number(),
          .shards = next.number(),
          .counted = next.flag()};
}

}  // namespace freehold::cli::pools
