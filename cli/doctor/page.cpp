// SPDX-License-Identifier: MIT
#include "cli/doctor/page.hpp"

#include <nlohmann/json.hpp>

#include "cli/doctor/results_json.hpp"
#include "cli/report/assets.hpp"
#include "cli/report/page.hpp"

namespace freehold::cli::doctor {
namespace {

// With names of this length everywhere, three quarters of a mebibyte.
constexpr Limits kPageLimits{
    .sites = 300, .stacks_of_a_site = 3, .frames_of_a_stack = 16, .characters_of_a_name = 160, .alone = false};

}  // namespace

std::string page_of(const Diagnosis& diagnosis) {
  return cli::page_of({.title = "Freehold: the doctor",
                       .brand = "Freehold · doctor",
                       .question = "Is the allocator why it does not scale?",
                       .sections = assets::doctor_html,
                       .script = assets::doctor_js},
                      results_json(diagnosis, kPageLimits));
}

}  // namespace freehold::cli::doctor
