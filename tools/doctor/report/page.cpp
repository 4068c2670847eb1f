// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "tools/doctor/report/memory.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/doctor/report/verdict_text.hpp"
#include "tools/output/assets.hpp"
#include "tools/output/page.hpp"

namespace freehold::doctor::report {
namespace {

// With names of this length everywhere, three quarters of a mebibyte.
constexpr Limits kPageLimits{
    .sites = 300, .stacks_of_a_site = 3, .frames_of_a_stack = 16, .characters_of_a_name = 160, .alone = false};

// So that a page stays small.
constexpr std::size_t kMostSitesOfPage = 200, kMostFramesOfPage = 24, kMostPoints = 1000;

// Every n-th point, and the last one.
nlohmann::ordered_json thinned_history(const nlohmann::ordered_json& points) {
  const std::size_t step = points.size() / kMostPoints + 1;
  if (step == 1) return points;
  auto kept = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < points.size(); i += step) kept.push_back(points[i]);
  if ((points.size() - 1) % step != 0) kept.push_back(points.back());
  return kept;
}

}  // namespace

std::string page_of(const Diagnosis& diagnosis) {
  return tools::page_of({.title = "Freehold: the doctor",
                         .brand = "Freehold · doctor",
                         .question = "Is the allocator why it does not scale?",
                         .sections = assets::doctor_html,
                         .script = assets::doctor_js},
                        results_json(diagnosis, kPageLimits));
}

std::string page_of(const MemoryDiagnosis& diagnosis) {
  nlohmann::ordered_json json = json_of(diagnosis);
  if (!json["recording"].is_null()) {
    auto& recording = json["recording"];
    recording["history"] = thinned_history(recording["history"]);
    auto& sites = recording["sites"];
    while (sites.size() > kMostSitesOfPage) sites.erase(sites.size() - 1);
    for (auto& site : sites)
      while (site["stack"].size() > kMostFramesOfPage) site["stack"].erase(site["stack"].size() - 1);
  }
  return tools::page_of({.title = "Freehold: the doctor, memory",
                         .brand = "Freehold · doctor",
                         .question = "Why does it take so much memory?",
                         .sections = assets::memory_html,
                         .script = assets::memory_js},
                        json);
}

}  // namespace freehold::doctor::report
