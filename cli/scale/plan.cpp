#include "cli/scale/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>

#include "cli/support/failure.hpp"

namespace freehold::cli::scale {
namespace {

constexpr std::uint32_t kMostWorkers = 1024;

std::string known_names(const auto& all) {
  std::vector<std::string_view> names;
  for (const auto value : all) names.push_back(name_of(value));
  return fmt::format("{}", fmt::join(names, ", "));
}

template <class T>
std::vector<T> parse_names(const std::string& option, const std::string& text, const auto& all,
                           const std::function<std::optional<T>(std::string_view)>& find) {
  std::vector<T> chosen;
  for (const std::string& name : split_list(option, text)) {
    const std::optional<T> value = find(name);
    if (!value)
      throw Failure(kExitRefused, fmt::format("{}: '{}' is none of {}", option, printable(name), known_names(all)));
    chosen.push_back(*value);
  }
  std::ranges::sort(chosen);
  chosen.erase(std::ranges::unique(chosen).begin(), chosen.end());
  return chosen;
}

void add_cells(std::vector<Cell>& cells, const Settings& settings, Workload test, Mode mode) {
  for (std::size_t subject = 0; subject < settings.subjects.size(); ++subject) {
    if (runs_as_processes(test) && settings.subjects[subject].source != Source::kMalloc) continue;
    for (const std::uint32_t workers : workers_of(settings, test)) cells.push_back({test, mode, subject, workers});
  }
}

}  // namespace

std::vector<std::string> split_list(const std::string& option, const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (std::ranges::find(words, "") != words.end()) {
    throw Failure(kExitRefused, fmt::format("{}: an empty entry in '{}'", option, printable(text)));
  }
  return words;
}

std::uint32_t parse_number(const std::string& option, const std::string& text, std::uint32_t least, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a number from {} to {}", option, printable(text), least, most));
  }
  return value;
}

std::vector<std::uint32_t> parse_workers(const std::string& text) {
  std::vector<std::uint32_t> workers{1};
  for (const std::string& word : split_list("--workers", text)) {
    workers.push_back(parse_number("--workers", word, 1, kMostWorkers));
  }
  std::ranges::sort(workers);
  workers.erase(std::ranges::unique(workers).begin(), workers.end());
  return workers;
}

std::vector<Workload> parse_tests(const std::string& text) {
  return parse_names<Workload>("--test", text, kWorkloads, workload_of);
}
std::vector<Mode> parse_modes(const std::string& text) { return parse_names<Mode>("--mode", text, kModes, mode_of); }

std::vector<Subject> subjects_of(const std::vector<Allocator>& allocators) {
  std::vector<Subject> subjects;
  for (const Allocator& allocator : allocators) subjects.push_back({allocator.name, allocator.library, Source::kMalloc});
  for (const Source source : {Source::kOwnerMutex, Source::kOwnerLockFree}) {
    subjects.push_back({std::string(name_of(source)), "", source});
  }
  for (auto subject = subjects.begin(); subject != subjects.end(); ++subject) {
    if (std::find_if(subjects.begin(), subject, [&](const Subject& s) { return s.name == subject->name; }) != subject) {
      throw Failure(kExitRefused, fmt::format("--allocator: the name '{}' is taken; give one of them another as NAME=PATH",
                                              printable(subject->name)));
    }
  }
  return subjects;
}

std::vector<std::uint32_t> workers_of(const Settings& settings, Workload test) {
  if (test != Workload::kHandover) return settings.workers;
  std::vector<std::uint32_t> pairs{2};
  for (const std::uint32_t workers : settings.workers) {
    if (workers > 2 && workers % 2 == 0) pairs.push_back(workers);
  }
  return pairs;
}

std::vector<Cell> cells_of(const Settings& settings) {
  std::vector<Cell> cells;
  for (const Mode mode : settings.modes) {
    for (const Workload test : settings.tests) {
      if (runs_as_processes(test)) add_cells(cells, settings, test, mode);
    }
  }
  const bool threads = std::ranges::find(settings.modes, Mode::kThreads) != settings.modes.end();
  for (const Workload test : settings.tests) {
    if (threads && !runs_as_processes(test)) add_cells(cells, settings, test, Mode::kThreads);
  }
  return cells;
}

std::vector<std::size_t> order_of(const std::vector<Cell>& cells, std::uint32_t set) {
  std::vector<std::size_t> order(cells.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(set);
  std::ranges::shuffle(order, random);
  // Cells that differ in the subject alone form a group, which stands where the first of them stands; within it, and
  // between the groups, the order stays what chance made it.
  std::vector<std::size_t> place(cells.size());
  std::map<std::tuple<Workload, Mode, std::uint32_t>, std::size_t> place_of_group;
  const auto group = [&](std::size_t i) { return std::tuple(cells[i].test, cells[i].mode, cells[i].workers); };
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    place_of_group.try_emplace(group(order[i]), i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(place_of_group.at(group(i)), place[i]); });
  return order;
}

}  // namespace freehold::cli::scale
