// SPDX-License-Identifier: MIT
#include "tools/doctor/run/schedule.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "tools/doctor/run/child.hpp"
#include "tools/doctor/run/timeouts.hpp"

namespace freehold::doctor {
namespace {

constexpr unsigned kRepeatsOfDisturbed = 6;  // in all, of each task
constexpr double kInTime = 1.5;              // times what a run was expected to take

}  // namespace

Schedule::Schedule(std::vector<Task> tasks, std::vector<Goal> goals, const Effort& effort)
    : tasks_(std::move(tasks)),
      goals_(std::move(goals)),
      effort_(effort),
      done_(tasks_.size()),
      elapsed_(tasks_.size()),
      repeats_(tasks_.size()) {}

std::optional<std::size_t> Schedule::index_of(const Task& task) const {
  const auto found = std::ranges::find(tasks_, task);
  if (found == tasks_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - tasks_.begin());
}

double Schedule::estimate(std::size_t task) const {
  if (done_[task] > 0) return elapsed_[task].expected_s();
  const Setting& setting = tasks_[task].setting;
  const double factor = tasks_[task].is_trial() ? 1 : kRecordingCost;
  const auto plain = index_of({.variant = 0, .setting = setting});
  if (plain && done_[*plain] > 0) return factor * elapsed_[*plain].expected_s();
  if (effort_.serves) return factor * effort_.first_elapsed_s;
  return factor * std::max(effort_.first_elapsed_s, effort_.first_cpu_s / setting.width());
}

std::vector<unsigned> Schedule::targets() const {
  std::vector<double> seconds(tasks_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) seconds[i] = estimate(i);
  const double left = effort_.rounds > 0 ? -1 : time_left();
  return targets_of(goals_, done_, seconds, left);
}

double Schedule::seconds_left(const std::vector<unsigned>& targets) const {
  double seconds = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) seconds += (targets[i] - std::min(targets[i], done_[i])) * estimate(i);
  return seconds;
}

std::vector<std::size_t> Schedule::order_of_round(unsigned round) const {
  const std::vector<unsigned> wanted = targets();
  const auto is_open = [&](const Goal& goal) { return done_[goal.task] < std::min(goal.runs, wanted[goal.task]); };
  std::vector<std::size_t> trials, others;
  for (const Goal& goal : std::ranges::any_of(first_, is_open) ? first_ : goals_) {
    const bool is_trial = tasks_[goal.task].is_trial();
    if (round == 0 && !is_trial && effort_.rounds == 0 && !trials.empty()) return trials;
    std::vector<std::size_t>& order = is_trial ? trials : others;
    if (std::ranges::find(order, goal.task) == order.end() && wanted[goal.task] > done_[goal.task] &&
        (round > 0 || is_trial))
      order.push_back(goal.task);
  }
  if (round == 0 && !trials.empty()) return trials;
  // Each order once forwards and once backwards (A B B A): what drifts meets both halves of each pair alike.
  std::ranges::shuffle(trials, std::mt19937((round + 1) / 2));
  if (round % 2 == 0) std::ranges::reverse(trials);
  others.insert(others.end(), trials.begin(), trials.end());
  return others;
}

void Schedule::count(std::size_t task, double elapsed_s, bool was_disturbed) {
  ++done_[task];
  elapsed_[task].add(elapsed_s, was_disturbed);
  note_faster_than_first(task, elapsed_s);
  if (!was_disturbed || effort_.rounds > 0 || repeats_[task] >= kRepeatsOfDisturbed) return;
  ++repeats_[task];
  // A first run is one, disturbed or not: what tells something else comes before its repetition.
  for (Goal& goal : goals_)
    if (goal.task == task && !goal.essential && goal.runs > 1) ++goal.runs;
}

void Schedule::note_faster_than_first(std::size_t task, double elapsed_s) {
  const auto widest = std::ranges::max(tasks_, {}, [](const Task& each) { return each.setting.width(); }).setting;
  const bool is_as_first = tasks_[task].variant == 0 && tasks_[task].is_cell() && tasks_[task].setting == widest;
  if (!is_as_first || effort_.serves || elapsed_s >= effort_.first_elapsed_s) return;
  effort_.first_elapsed_s = elapsed_s;
  effort_.first_cpu_s = std::min(effort_.first_cpu_s, elapsed_s * tasks_[task].setting.width());
}

double Schedule::time_left() const {
  return effort_.rounds > 0 ? kFirstTimeout_s : std::max(0.0, effort_.began_s + effort_.budget_s - now_s());
}

double Schedule::in_time(std::size_t task) const {
  const double in_time_s = std::max(time_left(), kInTime * estimate(task));
  return effort_.rounds > 0 ? in_time_s : std::min(in_time_s, time_left() + effort_.grace_s);
}

bool Schedule::has_time() const {
  const double left = time_left();
  for (const Goal& goal : goals_)
    if (estimate(goal.task) <= left) return true;
  return false;
}

bool Schedule::can_decide() const {
  const std::vector<unsigned> wanted = targets();
  return std::ranges::none_of(
      goals_, [&](const Goal& goal) { return goal.decides && done_[goal.task] < std::min(goal.runs, wanted[goal.task]); });
}

bool Schedule::run_again(const std::vector<std::size_t>& variants, unsigned runs) {
  std::vector<Goal> more;
  const unsigned most = std::ranges::max(tasks_, {}, [](const Task& task) { return task.setting.width(); }).setting.width();
  const unsigned least = std::ranges::min(tasks_, {}, [](const Task& task) { return task.setting.width(); }).setting.width();
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    const Task& what = tasks_[task];
    const bool is_end = what.setting.width() == most || what.setting.width() == least;
    const bool is_given_up = std::ranges::find(goals_, task, &Goal::task) == goals_.end();
    if (!what.is_cell() || !is_end || is_given_up) continue;
    if (std::ranges::find(variants, what.variant) == variants.end()) continue;
    for (unsigned run = 1; run <= runs; ++run) more.push_back({.task = task, .runs = done_[task] + run});
  }
  // The task that ran least tells least, and everything is compared with the program as it is.
  std::ranges::stable_sort(more, {},
                           [this](const Goal& goal) { return std::pair(goal.runs, tasks_[goal.task].variant != 0); });
  goals_.insert(goals_.begin(), more.begin(), more.end());
  first_ = more;
  const std::vector<unsigned> wanted = targets();
  return std::ranges::any_of(more, [&](const Goal& goal) { return wanted[goal.task] > done_[goal.task]; });
}

void Schedule::replan(std::vector<Goal> goals) {
  std::erase_if(goals,
                [this](const Goal& goal) { return std::ranges::find(goals_, goal.task, &Goal::task) == goals_.end(); });
  goals_ = std::move(goals);
}

void Schedule::give_up(std::size_t task) {
  for (std::vector<Goal>* const goals : {&goals_, &first_})
    std::erase_if(*goals, [task](const Goal& goal) { return goal.task == task; });
}

}  // namespace freehold::doctor
