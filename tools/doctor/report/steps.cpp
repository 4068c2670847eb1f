// SPDX-License-Identifier: MIT
// The next steps, as lines that can be pasted.
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/words.hpp"
#include "tools/support/shell.hpp"

namespace freehold::doctor::report {
namespace {

using Steps = std::vector<Step>;

// The program's line, with as many threads as were tried. The bundled example, which was not typed, is named by its file.
std::string line_of(const Diagnosis& diagnosis) {
  const Settings& settings = diagnosis.settings;
  if (settings.command.empty()) return shell_word(diagnosis.program);
  std::vector<std::string> words = settings.command;
  const std::string most = settings.widths.empty() ? "{n}" : std::to_string(settings.widths.back());
  for (std::string& word : words) {
    for (std::size_t at = word.find("{n}"); settings.parallelism == ParallelismControl::kArgument && at != std::string::npos;
         at = word.find("{n}", at + most.size()))
      word.replace(at, 3, most);
  }
  return shell_words(words);
}

void add_option(std::string& line, std::string_view name, const std::string& value) {
  if (!value.empty()) line += fmt::format(" {} {}", name, shell_word(value));
}

void add_option(std::string& line, std::string_view name, double seconds) {
  if (seconds > 0) line += fmt::format(" {} {}", name, seconds);
}

std::string again(const Diagnosis& diagnosis, std::string_view effort, Work work) {
  const std::string line = line_again(diagnosis.settings, diagnosis.program, effort, work);
  return diagnosis.example ? line.substr(0, line.find(" -- ")) : line;
}

std::string with_environment(const Variant& variant, const std::string& line) {
  std::string before;
  for (const auto& [name, value] : variant.environment) before += fmt::format("{}={} ", name, shell_word(value));
  if (!variant.preload.empty())
    before += fmt::format("LD_PRELOAD={} ", shell_word(fmt::format("{}", fmt::join(variant.preload, ":"))));
  return before + line;
}

std::string most_allocating_site(const Diagnosis& diagnosis) {
  const Attribution* const recorded = diagnosis.recorded.get();
  if (recorded == nullptr) return {};
  if (!recorded->sharing.empty()) return short_text(recorded->sharing.front().places[0].frame());
  return recorded->sites.empty() ? std::string() : short_text(recorded->sites.front().place.frame());
}

void add_freehold(const Diagnosis& diagnosis, const Variant& variant, Steps& out) {
  const std::string line = line_of(diagnosis);
  out.push_back({"Run it with Freehold, without changing anything", "freehold run -- " + line});
  out.push_back({"The same from a script, a unit file or a container", with_environment(variant, line)});
  out.push_back({"Or link Freehold into it, in CMake",
                 fmt::format("find_package(freehold REQUIRED)\ntarget_link_libraries({} PRIVATE freehold::malloc)",
                             program_name(diagnosis))});
}

void add_padding(const Diagnosis& diagnosis, Steps& out) {
  const std::string site = most_allocating_site(diagnosis);
  out.push_back({site.empty() ? "Put each object that threads hold on a separate cache line"
                              : fmt::format("Put each object that is allocated at {} on a separate cache line", site),
                 "struct alignas(64) Item { … };"});
}

void add_fix(const Diagnosis& diagnosis, const Fix& fix, Steps& out) {
  const Variant& variant = diagnosis.experiment.variants[fix.variant];
  switch (variant.treatment) {
    case Treatment::kNone: break;
    case Treatment::kFreehold: add_freehold(diagnosis, variant, out); break;
    case Treatment::kPadded: add_padding(diagnosis, out); break;
    case Treatment::kCappedArenas:
    case Treatment::kHighThresholds:
    case Treatment::kPeer:
      out.push_back({fmt::format("Run it with {}", text_of(variant)), with_environment(variant, line_of(diagnosis))});
  }
}

// Freehold where it helps, though something else helped a little more: it is here already.
const Fix* freehold_too(const Diagnosis& diagnosis) {
  const Verdict& verdict = diagnosis.verdict;
  const auto found = std::ranges::find_if(verdict.fixes, [&](const Fix& fix) {
    return fix.helps && diagnosis.experiment.variants[fix.variant].treatment == Treatment::kFreehold;
  });
  if (found == verdict.fixes.end() || &verdict.fixes[*verdict.best_fix] == &*found) return nullptr;
  return &*found;
}

// Says what to ask the doctor next, if it has no verdict.
void add_question(const Diagnosis& diagnosis, Steps& out) {
  const Settings& settings = diagnosis.settings;
  if (!was_compared(diagnosis.verdict) && diagnosis.signal != 0) {
    out.push_back({"Ask again, and let it finish", again(diagnosis, "", settings.work)});
  } else if (!was_compared(diagnosis.verdict) && settings.budget_s > 0) {
    out.push_back({"Ask again, with more time",
                   again(diagnosis, fmt::format("--budget {}", kMoreTime * settings.budget_s), settings.work)});
  } else if (is_work_unclear(diagnosis)) {
    out.push_back({"If the threads share the work", again(diagnosis, "", Work::kFixed)});
    out.push_back({"If each thread brings its own work", again(diagnosis, "", Work::kPerThread)});
  } else if (diagnosis.verdict.doubt == Doubt::kBusyMachine && !settings.ahead_of_others) {
    out.push_back({"Ask again when less runs beside it, or before the others, whom that holds up",
                   again(diagnosis, "--ahead-of-others", settings.work)});
  } else {
    out.push_back({"Ask again, with more repetitions", again(diagnosis, "--repeat 15", settings.work)});
  }
}

void add_next_look(const Diagnosis& diagnosis, Steps& out) {
  const std::string line = line_of(diagnosis);
  switch (diagnosis.verdict.cause) {
    case Cause::kOwnSharing:
      out.push_back({"See which lines the CPUs fight for (where the machine counts it)",
                     fmt::format("perf c2c record -- {} && perf c2c report", line)});
      break;
    case Cause::kSerial:
      out.push_back({"See what runs while the other CPUs idle", fmt::format("perf record -g -- {} && perf report", line)});
      break;
    case Cause::kOwnPageFaults:
      out.push_back({"See who maps and unmaps", fmt::format("strace -f -c -e trace=%memory {}", line)});
      break;
    case Cause::kOwnMalloc:
      out.push_back({"See where threads wait in it", fmt::format("perf record -g -- {} && perf report", line)});
      break;
    case Cause::kOwnLock:
      if (diagnosis.spins_at)
        out.push_back({"See what the loop waits for", fmt::format("perf record -g -- {} && perf report", line)});
      else
        out.push_back({"See which thread holds the lock", fmt::format("perf trace -s -e futex -- {}", line)});
      break;
    case Cause::kUndecided: add_question(diagnosis, out); break;
    default: break;
  }
}

std::string fit_text(const SiteAdvice& advice, const Attribution& recorded) {
  const AllocationSite& site = recorded.sites[advice.site];
  const std::string bytes = counted(static_cast<std::uint64_t>(site.typical_bytes), "byte");
  const auto reason = [&]() -> std::string {
    switch (advice.fit) {
      case SiteFit::kPool: return fmt::format("a pool: its blocks are all of {}", bytes);
      case SiteFit::kHeap:
        return fmt::format("a heap, if its blocks can end together: they have many sizes, usually {}", bytes);
      case SiteFit::kNotOfManyFreed:
        return fmt::format(
            "neither pool nor heap: its blocks have many sizes, usually {}, and other threads free most of them", bytes);
      case SiteFit::kNotOfLasting:
        return fmt::format("neither pool nor heap: most of its blocks, usually of {}, are never freed", bytes);
      case SiteFit::kNotOfLarge: return fmt::format("neither pool nor heap: its blocks are large, usually of {}", bytes);
    }
    __builtin_unreachable();
  }();
  return fmt::format("{}. Allocating and freeing them takes {} of the program's CPU time.", reason,
                     percent_text(advice.cpu_share));
}

std::vector<Step> steps_of(const Diagnosis& diagnosis) {
  Steps out;
  const Verdict& verdict = diagnosis.verdict;
  if (own_failure(diagnosis.experiment) != nullptr) return out;
  if (!blames_allocator(verdict.cause)) add_next_look(diagnosis, out);
  if (verdict.best_fix) {
    add_fix(diagnosis, verdict.fixes[*verdict.best_fix], out);
    if (const Fix* const too = freehold_too(diagnosis)) add_fix(diagnosis, *too, out);
  }
  return out;
}

}  // namespace

std::string line_again(const Settings& settings, const std::string& program, std::string_view effort, Work work) {
  std::string line = "freehold doctor";
  if (!effort.empty()) line += fmt::format(" {}", effort);
  if (settings.parallelism != ParallelismControl::kAffinity)
    line += fmt::format(" --threads {}", fmt::join(settings.widths, ","));
  if (settings.parallelism == ParallelismControl::kEnvironment) add_option(line, "--env", settings.parallelism_text);
  if (work != Work::kAuto) line += fmt::format(" --work {}", work == Work::kFixed ? "fixed" : "per-thread");
  const Server& server = settings.server;
  add_option(line, "--load", server.load);
  add_option(line, "--ready", server.ready);
  add_option(line, "--for", server.seconds);
  add_option(line, "--throughput", server.throughput);
  if (settings.allow_failure) line += " --allow-failure";
  const bool is_known = !settings.command.empty();
  line += " -- " + (is_known ? shell_words(settings.command) : shell_word(program));
  return settings.input.empty() ? line : line + " < " + shell_word(settings.input);
}

void add_steps(const Diagnosis& diagnosis, Words& words) {
  words.steps = steps_of(diagnosis);
  const Attribution* const recorded = diagnosis.recorded.get();
  if (recorded == nullptr) return;
  words.sites = advice_of(*recorded);
  for (const SiteAdvice& one : words.sites) words.fits.push_back(fit_text(one, *recorded));
}

}  // namespace freehold::doctor::report
