// SPDX-License-Identifier: MIT
#include "tools/doctor/report/attach_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ranges>

#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/live/named_figures.hpp"
#include "tools/output/text.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

constexpr double kLittle = 0.05;  // share of the CPU time: less is not worth another malloc
constexpr double kMuch = 0.20;

std::string headline_of(const Attached& attached) {
  if (!attached.in_malloc) return "Nothing can be said of its allocator: it was not seen running.";
  const Estimate& share = *attached.in_malloc;
  const bool sleeps = attached.asleep_in_malloc && attached.asleep_in_malloc->low > 0.02;
  if (sleeps)
    return fmt::format(
        "Its threads wait for each other inside malloc and free, {} of their time; {} of its CPU time is spent there.",
        percent_text(*attached.asleep_in_malloc), percent_text(share));
  if (share.high < kLittle && attached.in_memory_calls->high < kLittle)
    return fmt::format("Hardly the allocator: malloc and free take {} of its CPU time.", percent_text(share));
  if (share.low > kMuch) return fmt::format("Much of its CPU time, {}, is spent in malloc and free.", percent_text(share));
  return fmt::format("malloc and free take {} of its CPU time.", percent_text(share));
}

std::string malloc_text(const Attached& attached) {
  std::string text = attached.malloc_file.empty() ? "not known where from" : attached.malloc_file;
  if (attached.is_freehold) text += " (Freehold)";
  for (const std::string& own : attached.own_allocators) text += ", beside " + own;
  return text;
}

// The watched figures, a row each: what it is, and how much.
Rows rows_of(const Attached& attached, unsigned cpus) {
  const double cpu = attached.user_s + attached.system_s;
  Rows rows;
  const auto row = [&rows](const char* name, std::string value) { rows.push_back({name, std::move(value)}); };
  row("malloc", malloc_text(attached));
  if (attached.is_counted) {
    row("threads", std::to_string(attached.threads));
    row("CPUs that it keeps busy",
        fmt::format("{:.2f} of {}, {:.0f}% of that in the kernel", attached.seconds > 0 ? cpu / attached.seconds : 0.0, cpus,
                    cpu > 0 ? 100 * attached.system_s / cpu : 0.0));
    if (attached.waited_for_cpu_s && attached.seconds > 0)
      row("threads that wait for a CPU",
          fmt::format("{:.2f} on the average", *attached.waited_for_cpu_s / attached.seconds));
  }
  if (attached.in_own_allocators) row("CPU time in its own allocators", percent_text(*attached.in_own_allocators));
  if (attached.in_memory_calls) row("CPU time in mmap, munmap and such", percent_text(*attached.in_memory_calls));
  if (attached.asleep_in_malloc)
    row("asleep in malloc's lock", percent_text(*attached.asleep_in_malloc) + " of the threads' time");
  if (attached.is_counted && attached.seconds > 0) {
    row("page faults", count_text(static_cast<double>(attached.page_faults) / attached.seconds) + " a second");
    row("waits", count_text(static_cast<double>(attached.voluntary_switches) / attached.seconds) + " a second");
  }
  if (attached.malloc_calls_per_s) row("calls of malloc", count_text(*attached.malloc_calls_per_s) + " a second");
  if (attached.own_calls_per_s) row("calls of its allocators", count_text(*attached.own_calls_per_s) + " a second");
  std::string memory = bytes_text(attached.resident_bytes);
  if (attached.huge_bytes > 0) memory += fmt::format(", {} in huge pages", bytes_text(attached.huge_bytes));
  if (attached.swapped_bytes > 0) memory += fmt::format(", {} swapped out", bytes_text(attached.swapped_bytes));
  if (attached.freehold_bytes > 0) memory += fmt::format(", {} of it Freehold's", bytes_text(attached.freehold_bytes));
  row("memory", memory);
  return rows;
}

ordered_json held_json(const std::optional<live::LiveStats>& held) {
  if (!held) return nullptr;
  ordered_json json;
  for (const live::Figure& figure : live::figures_of(*held)) json[figure.name] = figure.value;
  return json;
}

}  // namespace

std::vector<std::string> unknown_of(const Attached& attached) {
  std::vector<std::string> unknown{
      "Whether another malloc, or more CPUs, would make it faster: that takes trials. freehold doctor -- PROGRAM does them.",
      "Which places of the program allocate, who frees what, and what shares cache lines: that takes a probe from the "
      "start."};
  if (attached.held)
    unknown.emplace_back(
        "What Freehold holds in each size class, and how much of it caches hold: freehold stats PID tells.");
  else if (attached.is_freehold)
    unknown.emplace_back(
        "What Freehold holds: the process ended, its memory may not be read (kernel.yama.ptrace_scope; root may), or its "
        "Freehold is of another version. freehold run --stats tells it at the end.");
  if (!attached.malloc_calls_per_s)
    unknown.emplace_back("How often it allocates: --count-calls counts for a moment, and slows it down while it counts.");
  return unknown;
}

Document document_of(const AttachedReport& report) {
  using Kind = Column::Kind;
  const std::vector<Column> figures{{.kind = Kind::kText}, {.kind = Kind::kText}};
  const Attached& attached = report.process;
  Document out{fmt::format("freehold doctor attach: process {}, {}", attached.settings.pid, attached.command),
               machine_line(report.machine)};
  out.parts.emplace_back(Line{"Asked", "Does the allocator cost it time?"});
  out.parts.emplace_back(Headline{"Answer", headline_of(attached)});
  out.parts.emplace_back(Section{"Watched", fmt::format("for {:.1f} s, {} samples", attached.seconds, attached.samples)});
  out.parts.emplace_back(Table{figures, rows_of(attached, report.machine.cpus)});
  Rows functions;
  for (const HotFunction& function : attached.functions)
    functions.push_back({function.share < 0.005 ? "<1%" : percent_text(function.share), function.text});
  if (!functions.empty()) out.parts.emplace_back(Section{"Where its CPU time goes"});
  out.parts.emplace_back(Table{{{}, {.kind = Kind::kCode}}, std::move(functions)});
  if (attached.held) {
    out.parts.emplace_back(Section{"Held", "by Freehold, by its own figures"});
    Rows held;
    for (const live::Figure& figure : live::figures_of(*attached.held))
      held.push_back({figure.words, figure.is_bytes ? bytes_text(figure.value) : std::to_string(figure.value)});
    constexpr std::size_t kHeaps = 8;  // the largest
    std::vector<live::LiveHeapFigures> heaps = attached.held->heaps;
    std::ranges::stable_sort(heaps, std::greater{}, &live::LiveHeapFigures::live_bytes);
    for (const live::LiveHeapFigures& heap : heaps | std::views::take(kHeaps))
      held.push_back({fmt::format("heap {}", heap.name.empty() ? "(no name)" : printable(heap.name)),
                      fmt::format("{} in {} blocks, {} held", bytes_text(heap.live_bytes),
                                  count_text(static_cast<double>(heap.live_objects)), bytes_text(heap.held_bytes))});
    out.parts.emplace_back(Table{figures, std::move(held)});
  }
  out.parts.emplace_back(Section{"What cannot be known", "from outside"});
  out.parts.emplace_back(unknown_of(attached));
  std::vector<std::string> notes = report.notes;
  if (attached.has_ended) notes.emplace_back("The process ended while it was watched.");
  if (attached.signal != 0) notes.emplace_back("Interrupted: this is what was seen until then.");
  if (!notes.empty()) out.parts.emplace_back(Section{"Notes"});
  out.parts.emplace_back(notes);
  return out;
}

ordered_json json_of(const AttachedReport& report) {
  const Attached& attached = report.process;
  ordered_json json = {{"schema", kAttachedSchema},
                       {"date", report.date},
                       {"machine", machine_json(report.machine)},
                       {"pid", attached.settings.pid},
                       {"command", attached.command},
                       {"headline", headline_of(attached)},
                       {"seconds", attached.seconds},
                       {"complete", attached.signal == 0 && !attached.has_ended}};
  ordered_json counted =
      FREEHOLD_JSON_OF(attached, threads, user_s, system_s, voluntary_switches, involuntary_switches, page_faults);
  if (!attached.is_counted)
    for (ordered_json& figure : counted) figure = nullptr;
  json.update(counted);
  json.update(FREEHOLD_JSON_OF(attached, waited_for_cpu_s, resident_bytes, anonymous_bytes, huge_bytes, swapped_bytes,
                               freehold_bytes, is_freehold, own_allocators, samples, in_malloc, in_own_allocators,
                               in_memory_calls, asleep_in_malloc, malloc_calls_per_s, own_calls_per_s));
  json["malloc_file"] = text_or_null(attached.malloc_file);
  json["held"] = held_json(attached.held);
  json["heaps"] = nullptr;
  if (attached.held)
    json["heaps"] = list_json(attached.held->heaps, [](const live::LiveHeapFigures& heap) {
      return FREEHOLD_JSON_OF(heap, name, live_objects, live_bytes, held_bytes);
    });
  json["functions"] =
      list_json(attached.functions, [](const auto& function) { return FREEHOLD_JSON_OF(function, text, kind, share); });
  json["unknown"] = unknown_of(attached);
  json["notes"] = report.notes;
  return json;
}

}  // namespace freehold::doctor::report
