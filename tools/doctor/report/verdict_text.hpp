// SPDX-License-Identifier: MIT
// The verdict as a person would say it: first whether it is the allocator, then the figures that say so, what was tried, and
// what to do. The terminal, the JSON and the page all show these sentences.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/report/diagnosis.hpp"
#include "tools/doctor/verdict/site_advice.hpp"

namespace freehold::doctor::report {

struct VerdictText {
  std::string headline;              // one sentence
  std::vector<std::string> because;  // the figures behind it, a sentence each
  std::string bound;                 // "No allocator can make it more than 2% faster"; empty: not known
  std::string tried;                 // "Tried: Freehold 1.9 times (1.8 to 2.0) as fast, …"; empty: nothing was
  std::string advice;                // "Do: …"; empty: nothing needs to be done
};
[[nodiscard]] VerdictText verdict_text_of(const Diagnosis& diagnosis);

// What is to be known beside the verdict, a sentence each: failures, what recording cost, memory, noise, hazards.
[[nodiscard]] std::vector<std::string> findings_of(const Diagnosis& diagnosis);

// A step to take: what it is for, and the exact lines.
struct Recommendation {
  std::string what;
  std::string lines;  // of a shell, CMake or C++
};
// Empty where there is nothing to be done.
[[nodiscard]] std::vector<Recommendation> recommendations_of(const Diagnosis& diagnosis);

// What serves a hot site instead of malloc, and why: "a pool: its blocks are all of 48 bytes. …"
[[nodiscard]] std::string text_of(const doctor::SiteAdvice& advice, const doctor::Attribution& recorded);

// A cause in a few words, for legends: "locks of the allocator".
[[nodiscard]] std::string_view text_of(doctor::Cause cause) noexcept;
// "Freehold", "glibc with 2 arenas (memory pools)", "jemalloc"
[[nodiscard]] std::string text_of(const doctor::Variant& variant);
// The program's name without its folder.
[[nodiscard]] std::string program_name(const Diagnosis& diagnosis);
// The fixes that were tried: the greatest gain first, those that failed last.
[[nodiscard]] std::vector<const doctor::Fix*> best_first(const doctor::Verdict& verdict);
// Whether there is no verdict because the trials cannot tell more work from work that is done in vain (--work).
[[nodiscard]] bool is_work_unclear(const Diagnosis& diagnosis) noexcept;
// "helps", "may be chance", "the program fails"
[[nodiscard]] std::string_view judgement_of(const doctor::Fix& fix) noexcept;
// Whether the treatment made a difference that is not chance, to the better or to the worse.
[[nodiscard]] bool is_beyond_chance(const doctor::Fix& fix) noexcept;

// The parts of verdict_text.hpp that fill files of their own.

// Whether there are two settings, so that something can be said of scaling.
[[nodiscard]] inline bool was_compared(const doctor::Verdict& verdict) { return !(verdict.alone == verdict.all); }
[[nodiscard]] std::string headline_of(const Diagnosis& diagnosis);
// The figures behind the verdict, a sentence each.
[[nodiscard]] std::vector<std::string> evidence_of(const Diagnosis& diagnosis);

// Sentences about the allocators that a program brings along.

// A sentence or two. Needs what was recorded, where nothing could be counted.
[[nodiscard]] std::string text_of(const OwnAllocator& own, const Diagnosis& diagnosis);

// A diagnosis for the terminal: the verdict in words, then the figures behind it as short tables.

// Lines of at most 100 characters, but for what is to be pasted. `page`: the file with the report as HTML; empty: none.
// Names come from the program and from the user: no control character of theirs reaches the terminal.
[[nodiscard]] std::string summary_of(const Diagnosis& diagnosis, const std::string& page);
// A diagnosis as one self-contained HTML page. Its recording has at most kPageLimits, and the number of rows left out.
[[nodiscard]] std::string page_of(const Diagnosis& diagnosis);

}  // namespace freehold::doctor::report
