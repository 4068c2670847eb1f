// SPDX-License-Identifier: MIT
// A diagnosis in sentences, composed once: whether it is the allocator, the figures that say so, what to do, and what that
// brings. The terminal, the JSON and the page all show these.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/report/diagnosis.hpp"
#include "tools/doctor/verdict/site_advice.hpp"

namespace freehold::doctor::report {

// A step to take: what it is for, and the exact lines.
struct Step {
  std::string what;
  std::string lines;  // of a shell, CMake or C++
};

struct Words {
  std::string headline;               // one sentence
  std::vector<std::string> because;   // the figures behind it, a sentence each
  std::string bound;                  // "No allocator can make it more than 2% faster"; empty: not known
  std::string gain;                   // "1.9 times (1.8 to 2.0) as fast with Freehold"; empty: nothing helps
  std::string advice;                 // "Run it with Freehold."; empty: nothing needs to be done
  std::vector<Step> steps;            // the same as lines to paste
  std::vector<std::string> findings;  // what is to be known beside the verdict: failures, noise, memory, hazards
  std::vector<std::string> notes;     // the diagnosis's, and what a preload does not reach
  std::vector<SiteAdvice> sites;      // what fits the hottest call sites instead of malloc, and
  std::vector<std::string> fits;      // the same in words: "a pool: its blocks are all of 48 bytes. …"
};
[[nodiscard]] Words words_of(const Diagnosis& diagnosis);

// The parts of it: `because`, `findings` and `notes`; `steps`, `sites` and `fits`.
void add_evidence(const Diagnosis& diagnosis, Words& words);
void add_steps(const Diagnosis& diagnosis, Words& words);

// The doctor's line again, with `effort` before its other options: "--repeat 15".
[[nodiscard]] std::string line_again(const Settings& settings, const std::string& program, std::string_view effort,
                                     Work work);
inline constexpr double kMoreTime = 3;  // times the budget that was too short

// Tells of an allocator that the program brings along. Needs what was recorded, where nothing could be counted.
[[nodiscard]] std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis);
// The program's name without its folder.
[[nodiscard]] std::string program_name(const Diagnosis& diagnosis);
// Says whether the verdict is missing because the trials cannot tell more work from work that is done in vain (--work).
[[nodiscard]] bool is_work_unclear(const Diagnosis& diagnosis) noexcept;
// Says whether two settings were run, so that something can be said of scaling.
[[nodiscard]] inline bool was_compared(const Verdict& verdict) { return !(verdict.alone == verdict.all); }

}  // namespace freehold::doctor::report
