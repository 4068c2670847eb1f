// SPDX-License-Identifier: MIT
#include "tools/doctor/run/plan.hpp"

#include <algorithm>

namespace freehold::doctor {
namespace {

// Which tasks a level of importance is about.
enum class Group : std::uint8_t {
  kSystemEnds,
  kFreeholdEnds,
  kMainAll,  // these two, on all CPUs
  kMainEnds,
  kMainInner,  // these two, between one CPU and all
  kPaddedAll,
  kOthersAll,  // these, and glibc with its switches
  kOthersAlone,
  kCopies,
  kCrowded,
  kPeersAll,
  kPeersAlone,
  kPeersInner,
  kRecordingAll,
  kRecordingAlone,
  kSampled,
  kDelays,
};

// Short enough for a program that does nothing but allocate, long enough to show in one that spends a fiftieth there.
constexpr unsigned kDelays_ns[] = {30, 90};

struct Level {
  Group group;
  unsigned runs;
  bool decides = false;
};

constexpr Level kLevels[] = {
    {Group::kSystemEnds, 1},
    {Group::kFreeholdEnds, 1},
    {Group::kRecordingAll, 1, true},
    {Group::kSampled, 1, true},
    {Group::kMainEnds, 2, true},
    {Group::kPaddedAll, 1, true},
    {Group::kCrowded, 1, true},
    {Group::kMainAll, 3},
    {Group::kCopies, 1, true},
    {Group::kOthersAll, 1, true},
    {Group::kRecordingAlone, 1, true},
    {Group::kMainEnds, 3},
    {Group::kOthersAlone, 1, true},
    {Group::kOthersAll, 2},
    {Group::kCopies, 2},
    {Group::kDelays, 1},
    {Group::kPeersAll, 1},
    {Group::kPeersAlone, 1},
    {Group::kMainInner, 1},
    {Group::kOthersAlone, 3},
    {Group::kOthersAll, 3},
    {Group::kCopies, 3},
    {Group::kDelays, 3},
    {Group::kPeersAll, 3},
    {Group::kPeersAlone, 3},
    {Group::kMainInner, 3},
    {Group::kMainEnds, 5},
    {Group::kOthersAlone, 5},
    {Group::kOthersAll, 5},
    {Group::kCopies, 5},
    {Group::kDelays, 5},
    {Group::kPeersAll, 5},
    {Group::kPeersAlone, 5},
    {Group::kMainInner, 5},
    {Group::kPeersInner, 3},
    {Group::kMainEnds, kMostRounds},
    {Group::kOthersAlone, kMostRounds},
    {Group::kOthersAll, kMostRounds},
    {Group::kPeersAll, kMostRounds},
    {Group::kPeersAlone, kMostRounds},
    {Group::kMainInner, kMostRounds},
    {Group::kPeersInner, kMostRounds},
};

// Questions to other mallocs are answered if malloc takes no time. The time goes into trials of the program itself; padded
// blocks and Freehold say whether it matters where blocks lie. Then come all the levels.
constexpr Level kFirstWhereMallocIsIdle[] = {
    {Group::kSystemEnds, 1},
    {Group::kFreeholdEnds, 1},
    {Group::kRecordingAll, 1, true},
    {Group::kSampled, 1, true},
    {Group::kSystemEnds, 2, true},
    {Group::kPaddedAll, 1, true},
    {Group::kCrowded, 1, true},
    {Group::kCopies, 1, true},
    {Group::kRecordingAlone, 1, true},
    {Group::kSystemEnds, 3},
    {Group::kCopies, 2},
    {Group::kPaddedAll, 2},
    {Group::kMainAll, 2},
    {Group::kSystemEnds, 5},
    {Group::kCopies, 3},
    {Group::kPaddedAll, 3},
    {Group::kSystemEnds, kMostRounds},
};

class Classifier {
 public:
  Classifier(std::span<const Task> tasks, std::span<const Variant> variants) : variants_(variants) {
    for (const Task& task : tasks) {
      if (task.variant != 0 || !task.is_cell() || task.setting.copies > 1) continue;
      if (first_.cpus == 0 || is_less(task.setting, first_)) first_ = task.setting;
      if (last_.cpus == 0 || is_less(last_, task.setting)) last_ = task.setting;
    }
  }

  [[nodiscard]] bool is_in(Group group, const Task& task) const {
    const Treatment treatment = variants_[task.variant].treatment;
    const bool all = task.setting == last_;
    const bool alone = task.setting == first_;
    if (task.delay_ns > 0) return group == Group::kDelays;
    if (task.crowded) return group == Group::kCrowded;
    if (task.sampled) return group == Group::kSampled;
    if (task.recording) return group == (all ? Group::kRecordingAll : Group::kRecordingAlone);
    if (task.setting.copies > 1) return group == Group::kCopies;
    const bool system = treatment == Treatment::kNone;
    const bool main = system || treatment == Treatment::kFreehold;
    const bool peer = treatment == Treatment::kPeer;
    switch (group) {
      case Group::kSystemEnds: return system && (all || alone);
      case Group::kFreeholdEnds: return treatment == Treatment::kFreehold && (all || alone);
      case Group::kMainEnds: return main && (all || alone);
      case Group::kMainAll: return main && all;
      case Group::kMainInner: return main && !all && !alone;
      case Group::kPaddedAll: return treatment == Treatment::kPadded && all;
      case Group::kOthersAll: return !main && !peer && all;
      case Group::kOthersAlone: return !main && !peer && alone;
      case Group::kPeersAll: return peer && all;
      case Group::kPeersAlone: return peer && alone;
      case Group::kPeersInner: return peer && !all && !alone;
      default: return false;
    }
  }

 private:
  static bool is_less(const Setting& a, const Setting& b) {
    return a.width() != b.width() ? a.width() < b.width() : a.threads < b.threads;
  }

  std::span<const Variant> variants_;
  Setting first_{.cpus = 0}, last_{.cpus = 0};
};

}  // namespace

std::vector<Setting> sweep_of(const Settings& settings, unsigned cpus) {
  std::vector<Setting> sweep;
  for (const unsigned width : settings.widths) {
    if (settings.parallelism == ParallelismControl::kAffinity)
      sweep.push_back({.threads = 0, .cpus = width});
    else
      sweep.push_back({.threads = width, .cpus = cpus});
  }
  return sweep;
}

std::vector<Task> tasks_of(const Settings& settings, std::span<const Variant> variants, unsigned cpus, bool record,
                           bool delay) {
  const std::vector<Setting> sweep = sweep_of(settings, cpus);
  std::vector<Task> tasks;
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    const Treatment treatment = variants[variant].treatment;
    const bool is_main = treatment == Treatment::kNone || treatment == Treatment::kFreehold || treatment == Treatment::kPeer;
    // All CPUs first: what is run in the order of the tasks is of most use if it is ended early.
    for (auto setting = sweep.rbegin(); setting != sweep.rend(); ++setting) {
      const bool is_end = setting == sweep.rbegin() || *setting == sweep.front();
      if (is_main || is_end) tasks.push_back({.variant = variant, .setting = *setting});
    }
  }
  if (cpus > 1 && !settings.server.used())
    tasks.push_back({.variant = 0, .setting = {.threads = sweep.front().threads, .cpus = 1, .copies = cpus}});
  if (cpus > 1 && sweep.size() > 1 && !settings.server.used() && settings.parallelism != ParallelismControl::kAffinity)
    tasks.push_back({.variant = 0, .setting = {.threads = sweep.back().threads, .cpus = 1}, .crowded = true});
  if (record) {
    tasks.push_back({.variant = 0, .setting = sweep.back(), .recording = true});
    if (sweep.size() > 1) tasks.push_back({.variant = 0, .setting = sweep.front(), .recording = true});
  }
  // A server spends its time on its clients, not on a given amount of work.
  if (sweep.size() > 1 && !settings.server.used()) {
    tasks.push_back({.variant = 0, .setting = sweep.back(), .sampled = true});
    tasks.push_back({.variant = 0, .setting = sweep.front(), .sampled = true});
  }
  if (record && delay) {
    for (const unsigned delay_ns : kDelays_ns)
      tasks.push_back({.variant = 0, .setting = sweep.back(), .recording = false, .delay_ns = delay_ns});
  }
  return tasks;
}

std::vector<Goal> goals_of(std::span<const Task> tasks, std::span<const Variant> variants, bool malloc_is_idle) {
  const Classifier classifier(tasks, variants);
  std::vector<Goal> goals;
  const auto add = [&](std::span<const Level> levels, bool may_decide) {
    for (const Level& level : levels)
      for (std::size_t task = 0; task < tasks.size(); ++task)
        if (classifier.is_in(level.group, tasks[task]))
          goals.push_back({.task = task, .runs = level.runs, .decides = level.decides && may_decide});
  };
  if (malloc_is_idle) add(kFirstWhereMallocIsIdle, true);
  add(kLevels, !malloc_is_idle);
  return goals;
}

std::vector<Goal> goals_of(std::span<const Task> tasks, unsigned rounds) {
  std::vector<Goal> goals;
  for (std::size_t task = 0; task < tasks.size(); ++task)
    goals.push_back({.task = task, .runs = tasks[task].is_trial() ? rounds : 1, .essential = true});
  return goals;
}

std::vector<unsigned> targets_of(std::span<const Goal> goals, std::span<const unsigned> done,
                                 std::span<const double> seconds, double seconds_left) {
  std::vector<unsigned> targets(done.begin(), done.end());
  double left = seconds_left;
  for (const Goal& goal : goals) {
    unsigned& target = targets[goal.task];
    while (target < goal.runs) {
      const double cost = seconds[goal.task];
      if (seconds_left >= 0 && cost > left && !goal.essential) break;
      left -= cost;
      ++target;
    }
  }
  return targets;
}

}  // namespace freehold::doctor
