// SPDX-License-Identifier: MIT
#include "tools/doctor/run/own_allocators.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "tools/doctor/facts/own_malloc.hpp"
#include "tools/doctor/run/call_counter.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr std::uint64_t kFewCalls = 100;  // that say nothing of shares

// Threads and processes come and go while the program runs: looked for this often.
constexpr auto kLook = std::chrono::milliseconds(2);

// Why nothing could be counted; empty: it was.
std::string count(std::vector<OwnAllocator>& all, const std::vector<OwnMalloc>& own, const std::set<std::string>& files,
                  const std::function<Run(double)>& run, double seconds) {
  std::vector<std::set<FunctionPlace>> groups{malloc_functions(files)};
  for (const OwnMalloc& one : own)
    groups.push_back(one.is_reached || one.use_malloc ? std::set<FunctionPlace>{} : one.functions);
  CallCounter counter(std::move(groups));
  {
    const std::jthread looking([&counter](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        std::vector<pid_t> family = live::family_of(::getpid());
        family.erase(family.begin());  // the doctor itself
        counter.look(family);
        std::this_thread::sleep_for(kLook);
      }
    });
    // A run that is ended early has the same shares, as all are counted at the same time.
    static_cast<void>(run(seconds));
  }
  const std::vector<std::uint64_t> calls = counter.calls();
  const std::uint64_t sum = std::accumulate(calls.begin(), calls.end(), std::uint64_t{0});
  if (!counter.why().empty()) return counter.why();
  if (sum < kFewCalls) return "it ended too soon";
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (own[i].is_reached || own[i].use_malloc || own[i].functions.empty()) continue;
    all[i].calls = calls[i + 1];
    all[i].malloc_calls = calls[0];
    all[i].reached = static_cast<double>(calls[0]) / static_cast<double>(sum);
  }
  return {};
}

}  // namespace

std::vector<OwnAllocator> own_allocators_of(const std::set<std::string>& files, const std::function<Run(double)>& run,
                                            double seconds) {
  const std::vector<OwnMalloc> own = own_mallocs(files);
  std::vector<OwnAllocator> all;
  for (const OwnMalloc& one : own) {
    OwnAllocator& added = all.emplace_back();
    added.name = one.name;
    added.file = one.file;
    if (one.use_malloc) added.use_malloc = one.use_malloc->first + '=' + one.use_malloc->second;
    if (one.is_reached) added.reached = 1;
  }
  const bool is_countable = std::ranges::any_of(
      own, [](const OwnMalloc& one) { return !one.is_reached && !one.use_malloc && !one.functions.empty(); });
  if (!is_countable) return all;
  const std::string why = seconds > 0 ? count(all, own, files, run, seconds) : "the first run left no time for it";
  for (OwnAllocator& one : all) {
    if (!one.reached && one.use_malloc.empty()) one.why_not_counted = why;
  }
  return all;
}

void set_reach(OwnAllocator& own, double calls, double switched_calls) {
  // With fewer calls than without the switch, the switch did not work.
  if (switched_calls < kFewCalls || switched_calls <= calls) return;
  own.reached = calls / switched_calls;
  own.malloc_calls = static_cast<std::uint64_t>(calls);
  own.calls = static_cast<std::uint64_t>(switched_calls - calls);
  own.why_not_counted.clear();
}

void add_switches(std::vector<Variant>& variants, const std::vector<OwnAllocator>& own) {
  const auto freehold = std::ranges::find(variants, Treatment::kFreehold, &Variant::treatment);
  const auto preload = freehold == variants.end() ? std::vector<std::string>{} : freehold->preload;
  for (const OwnAllocator& one : own) {
    const auto is_there = [&one](const Variant& variant) { return variant.name == one.use_malloc; };
    if (one.use_malloc.empty() || std::ranges::any_of(variants, is_there)) continue;
    const std::size_t equals = one.use_malloc.find('=');
    Variant with{.treatment = Treatment::kPeer,
                 .name = one.use_malloc,
                 .preload = {},
                 .environment = {{one.use_malloc.substr(0, equals), one.use_malloc.substr(equals + 1)}}};
    variants.push_back(with);
    if (preload.empty()) continue;
    with.name = "freehold, " + one.use_malloc;
    with.preload = preload;
    variants.push_back(std::move(with));
  }
}

}  // namespace freehold::doctor
