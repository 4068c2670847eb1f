// SPDX-License-Identifier: MIT
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/doctor/report/results_json.hpp"
#include "tools/output/assets.hpp"
#include "tools/output/page.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

// So that a page stays small. With names of this length everywhere, three quarters of a mebibyte.
constexpr std::size_t kMostSites = 300, kMostStacks = 3, kMostFrames = 16, kMostCharacters = 160, kMostPoints = 1000;

void cut(ordered_json& list, std::size_t most) {
  auto& rows = list.get_ref<ordered_json::array_t&>();
  if (rows.size() > most) rows.resize(most);
}

// Every n-th point, and the last one.
void thin(ordered_json& points) {
  const std::size_t step = points.size() / kMostPoints + 1;
  if (step == 1) return;
  auto kept = ordered_json::array();
  for (std::size_t i = 0; i < points.size(); i += step) kept.push_back(points[i]);
  if ((points.size() - 1) % step != 0) kept.push_back(points.back());
  points = std::move(kept);
}

void shorten(ordered_json& name) {
  if (name.is_string() && name.get_ref<const std::string&>().size() > kMostCharacters)
    name = name.get<std::string>().substr(0, kMostCharacters) + "…";
}

// Cuts the stacks of every place below `json`, and gives the frames that are left new numbers.
void cut_stacks(ordered_json& json, const ordered_json& frames, std::map<std::size_t, std::size_t>& numbers,
                ordered_json& kept) {
  if (!json.is_structured()) return;
  if (json.is_object() && json.contains("stacks")) {
    cut(json["stacks"], kMostStacks);
    shorten(json["via"]);
    for (ordered_json& stack : json["stacks"]) {
      cut(stack["frames"], kMostFrames);
      for (ordered_json& frame : stack["frames"]) {
        const auto [number, is_new] = numbers.try_emplace(frame.get<std::size_t>(), kept.size());
        if (is_new) kept.push_back(frames[frame.get<std::size_t>()]);
        frame = number->second;
      }
    }
    return;
  }
  for (ordered_json& part : json) cut_stacks(part, frames, numbers, kept);
}

// Keeps what a person would read of a recording. What is left out is counted.
void cut_recording(ordered_json& recording) {
  const std::size_t sites = recording["sites"].size();
  for (const char* const list : {"sites", "lock_waits", "idle_waits", "remote_sites", "remote_threads", "sharing"})
    cut(recording[list], kMostSites);
  recording["sites_left_out"] = sites - recording["sites"].size();
  const ordered_json frames = std::exchange(recording["frames"], nullptr);
  auto kept = ordered_json::array();
  std::map<std::size_t, std::size_t> numbers;
  cut_stacks(recording, frames, numbers, kept);
  for (ordered_json& frame : kept) shorten(frame["function"]);
  recording["frames"] = std::move(kept);
}

}  // namespace

std::string page_of(ordered_json report) {
  report["recording_alone"] = nullptr;
  if (!report["recording"].is_null()) cut_recording(report["recording"]);
  return tools::page_of({.title = "Freehold: the doctor",
                         .brand = "Freehold · doctor",
                         .question = "Is the allocator why it does not scale?",
                         .sections = assets::doctor_html,
                         .script = assets::doctor_js},
                        report);
}

std::string memory_page_of(ordered_json report) {
  if (ordered_json& recording = report["recording"]; !recording.is_null()) {
    thin(recording["history"]);
    cut(recording["sites"], kMostSites);
    for (ordered_json& site : recording["sites"]) cut(site["stack"], kMostFrames);
  }
  return tools::page_of({.title = "Freehold: the doctor, memory",
                         .brand = "Freehold · doctor",
                         .question = "Why does it take so much memory?",
                         .sections = assets::memory_html,
                         .script = assets::memory_js},
                        report);
}

}  // namespace freehold::doctor::report
