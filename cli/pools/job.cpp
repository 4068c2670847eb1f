#include "cli/pools/job.hpp"

#include <stdexcept>

#include "cli/support/arguments.hpp"

namespace freehold::cli::pools {
namespace {

constexpr std::size_t kWords = 10;

template <class T>
T require(std::optional<T> value) {
  if (!value) throw std::runtime_error("a word that pools-worker does not know");
  return *value;
}

std::uint32_t number(const std::string& word) { return static_cast<std::uint32_t>(std::stoul(word)); }

}  // namespace

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
  return {job.pool,
          std::string(name_of(job.test)),
          std::string(name_of(job.context)),
          std::to_string(job.threads),
          std::to_string(job.operations),
          std::to_string(job.slot_bytes),
          std::to_string(job.milliseconds),
          std::to_string(job.reads),
          std::to_string(job.shards),
          job.counted ? "1" : "0"};
}

Job job_of(const std::vector<std::string>& words) {
  if (words.size() != kWords) throw std::runtime_error("pools-worker is started by freehold pools");
  return {.pool = words[0],
          .test = require(test_of(words[1])),
          .context = require(context_of(words[2])),
          .threads = number(words[3]),
          .operations = std::stoull(words[4]),
          .slot_bytes = number(words[5]),
          .milliseconds = number(words[6]),
          .reads = number(words[7]),
          .shards = number(words[8]),
          .counted = words[9] == "1"};
}

}  // namespace freehold::cli::pools
