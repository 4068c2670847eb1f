// SPDX-License-Identifier: MIT
#include "sim/strategy.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>

namespace freehold::sim {
namespace {

// States seen before, with the budgets left there. A lossy set: forgetting costs time, not soundness.
class VisitedStates {
 public:
  explicit VisitedStates(std::size_t limit) : limit_(std::bit_ceil(std::max<std::size_t>(limit, 2))) {}

  // Returns whether the state was entered with budgets at least as large; else enters it.
  bool covers(std::uint64_t state, unsigned preemptions, unsigned stale) {
    state |= 1;  // 0 marks an empty entry
    if (used_ * 2 >= entries_.size() && entries_.size() < limit_) grow();
    for (std::size_t at = slot(state), probes = 0; probes < 16; at = (at + 1) & (entries_.size() - 1), ++probes) {
      Entry& entry = entries_[at];
      if (entry.state == 0) {
        entry = {state, static_cast<std::uint16_t>(preemptions), static_cast<std::uint16_t>(stale)};
        ++used_;
        return false;
      }
      if (entry.state == state) {
        if (entry.preemptions >= preemptions && entry.stale >= stale) return true;
        // Neither need dominate; the newer replaces the older.
        entry.preemptions = static_cast<std::uint16_t>(preemptions);
        entry.stale = static_cast<std::uint16_t>(stale);
        return false;
      }
    }
    return false;  // no room nearby
  }

 private:
  struct Entry {
    std::uint64_t state = 0;
    std::uint16_t preemptions = 0, stale = 0;
  };

  std::size_t slot(std::uint64_t state) const noexcept { return (state >> 20) & (entries_.size() - 1); }

  void grow() {
    std::vector<Entry> old(entries_.size() * 4);
    old.swap(entries_);
    used_ = 0;
    for (const Entry& entry : old) {
      if (entry.state != 0) covers(entry.state, entry.preemptions, entry.stale);
    }
  }

  std::size_t limit_;
  std::size_t used_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(1024);
};

// Depth first over the tree of answers. Each execution repeats the path to the deepest node with an untried answer.
class Exhaustive final : public Chooser {
 public:
  explicit Exhaustive(const Options& options)
      : preemptions_(options.preemptions),
        stale_(options.stale),
        reduction_(options.reduction),
        visited_(options.visited_states) {}

  bool begin() override {
    if (started_) {
      while (!path_.empty() && path_.back().untried == 0) path_.pop_back();
      if (path_.empty()) return false;
      Node& node = path_.back();
      node.answer = static_cast<std::uint8_t>(std::countr_zero(node.untried));
      node.untried &= node.untried - 1;
    }
    started_ = true;
    at_ = 0;
    preemptions_left_ = preemptions_;
    stale_left_ = stale_;
    return true;
  }

  unsigned schedule(unsigned current, std::uint32_t enabled) override {
    const bool may_stay = (enabled >> current & 1) != 0;
    unsigned answer = 0;
    if (at_ < path_.size()) {
      answer = repeat(enabled);
    } else {
      const std::uint32_t options = may_stay && preemptions_left_ == 0 ? 1u << current : enabled;
      answer = may_stay ? current : static_cast<unsigned>(std::countr_zero(enabled));
      path_.push_back({enabled, options & ~(1u << answer), static_cast<std::uint8_t>(answer)});
      ++at_;
    }
    if (may_stay && answer != current) --preemptions_left_;
    return answer;
  }

  unsigned choose(Choice what, unsigned count) override {
    const std::uint32_t all = count >= 32 ? ~0u : (1u << count) - 1;
    const std::uint32_t question = all ^ (static_cast<std::uint32_t>(what) << 29);
    unsigned answer = 0;
    if (at_ < path_.size()) {
      answer = repeat(question);
    } else {
      const bool dear = (what == Choice::kRead && stale_left_ == 0) || (what == Choice::kMove && preemptions_left_ == 0);
      path_.push_back({question, dear ? 0 : all & ~1u, 0});
      ++at_;
    }
    if (what == Choice::kRead && answer != 0) --stale_left_;
    if (what == Choice::kMove && answer != 0) --preemptions_left_;
    return answer;
  }

  bool visited(std::uint64_t state) override {
    return reduction_ && at_ >= path_.size() && visited_.covers(state, preemptions_left_, stale_left_);
  }

  void end(std::uint32_t) override {
    if (at_ < path_.size()) inconsistency_ = "the execution ended before its prefix was repeated";
  }

  const char* inconsistency() const noexcept override { return inconsistency_; }

 private:
  struct Node {
    std::uint32_t question;  // to notice a scenario that is not deterministic
    std::uint32_t untried;
    std::uint8_t answer;
  };

  unsigned repeat(std::uint32_t question) noexcept {
    const Node& node = path_[at_++];
    if (node.question != question) inconsistency_ = "the same answers led to another question";
    return node.answer;
  }

  const unsigned preemptions_, stale_;
  const bool reduction_;
  VisitedStates visited_;
  std::vector<Node> path_;
  std::size_t at_ = 0;
  unsigned preemptions_left_ = 0, stale_left_ = 0;
  bool started_ = false;
  const char* inconsistency_ = nullptr;
};

// The thread of the highest priority runs. Priorities are random; at depth-1 random steps the running thread's drops
// below all. A bug of that depth is found with probability at least 1/(threads · steps^(depth-1)).
class Pct final : public Chooser {
 public:
  explicit Pct(const Options& options)
      : random_(options.seed), left_(options.executions), depth_(std::max(options.depth, 1u)), stale_(options.stale) {}

  bool begin() override {
    if (left_ == 0) return false;
    --left_;
    for (unsigned i = 0; i < kMaxThreads; ++i) priority_[i] = static_cast<int>(i + depth_);
    std::shuffle(std::begin(priority_), std::end(priority_), random_);
    changes_.clear();
    for (unsigned i = 1; i < depth_; ++i) changes_.push_back(below(longest_) + 1);
    lowest_ = 0;
    step_ = 0;
    stale_left_ = stale_;
    return true;
  }

  unsigned schedule(unsigned current, std::uint32_t enabled) override {
    ++step_;
    const bool paused = (enabled >> current & 1) == 0;
    if (paused || std::find(changes_.begin(), changes_.end(), step_) != changes_.end()) priority_[current] = --lowest_;
    unsigned best = kMaxThreads;
    for (std::uint32_t rest = enabled; rest != 0; rest &= rest - 1) {
      const auto thread = static_cast<unsigned>(std::countr_zero(rest));
      if (best == kMaxThreads || priority_[thread] > priority_[best]) best = thread;
    }
    return best;
  }

  unsigned choose(Choice what, unsigned count) override {
    if (what == Choice::kMove) return below(8) != 0 ? 0 : 1 + below(count - 1);
    if (what == Choice::kCrash) return below(longest_) == 0 ? 1 : 0;
    if (what != Choice::kRead) return below(count);
    if (stale_left_ == 0 || below(4) != 0) return 0;
    --stale_left_;
    return 1 + below(count - 1);
  }

  bool visited(std::uint64_t) override { return false; }
  void end(std::uint32_t steps) override { longest_ = std::max(longest_, steps); }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((random_() & 0xffffffff) * bound >> 32); }

  std::mt19937_64 random_;
  std::uint64_t left_;
  const unsigned depth_, stale_;
  int priority_[kMaxThreads + 1] = {};  // the last: no thread ran yet
  std::vector<std::uint32_t> changes_;
  int lowest_ = 0;
  std::uint32_t step_ = 0, longest_ = 16;
  unsigned stale_left_ = 0;
};

class Replayer final : public Chooser {
 public:
  explicit Replayer(const Answers& answers) : answers_(answers) {}

  bool begin() override { return !std::exchange(done_, true); }
  unsigned schedule(unsigned current, std::uint32_t enabled) override {
    const bool forced = std::has_single_bit(enabled);
    const unsigned fallback = (enabled >> current & 1) != 0 ? current : static_cast<unsigned>(std::countr_zero(enabled));
    if (forced || at_ >= answers_.size()) return fallback;
    const unsigned answer = answers_[at_++];
    if (answer < 32 && (enabled >> answer & 1) != 0) return answer;
    inconsistency_ = "the replay names a thread that cannot run";
    return fallback;
  }
  unsigned choose(Choice, unsigned count) override {
    if (at_ >= answers_.size()) return 0;
    const unsigned answer = answers_[at_++];
    if (answer < count) return answer;
    inconsistency_ = "the replay names a choice that does not exist";
    return 0;
  }
  bool visited(std::uint64_t) override { return false; }
  void end(std::uint32_t) override {}
  const char* inconsistency() const noexcept override { return inconsistency_; }

 private:
  Answers answers_;
  std::size_t at_ = 0;
  bool done_ = false;
  const char* inconsistency_ = nullptr;
};

}  // namespace

std::unique_ptr<Chooser> make_chooser(const Options& options) {
  switch (options.strategy) {
    case Strategy::kExhaustive: return std::make_unique<Exhaustive>(options);
    case Strategy::kPct: return std::make_unique<Pct>(options);
  }
  throw std::invalid_argument("unknown strategy");
}

std::unique_ptr<Chooser> make_replayer(const Answers& answers) { return std::make_unique<Replayer>(answers); }

std::string to_string(const Answers& answers) {
  std::string text;
  for (std::size_t i = 0; i < answers.size();) {
    std::size_t end = i;
    while (end < answers.size() && answers[end] == answers[i]) ++end;
    text += static_cast<char>('a' + answers[i]);
    if (end - i > 1) text += std::to_string(end - i);
    i = end;
  }
  return text;
}

Answers parse_answers(const std::string& text) {
  Answers answers;
  for (std::size_t i = 0; i < text.size();) {
    const char letter = text[i++];
    std::size_t count = 0;
    const std::size_t digits = i;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      count = count * 10 + static_cast<std::size_t>(text[i] - '0');
    }
    if (letter < 'a' || letter > 'z' || count > 1'000'000) throw std::invalid_argument("malformed replay string: " + text);
    answers.insert(answers.end(), digits == i ? 1 : count, static_cast<std::uint8_t>(letter - 'a'));
  }
  return answers;
}

}  // namespace freehold::sim
