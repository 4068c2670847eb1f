// SPDX-License-Identifier: MIT
#include "tools/doctor/report/attached.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {
using freehold::live::LiveFigure;
using freehold::live::LiveFigures;
using nlohmann::ordered_json;

constexpr double kLittle = 0.05;  // share of the CPU time: less is not worth another malloc
constexpr double kMuch = 0.20;

std::string headline_of(const Attached& of) {
  if (!of.in_malloc) return "Nothing can be said of its allocator: it was not seen running.";
  const Estimate& share = *of.in_malloc;
  const bool sleeps = of.asleep_in_malloc && of.asleep_in_malloc->low > 0.02;
  if (sleeps)
    return fmt::format(
        "Its threads wait for each other inside malloc and free, {} of their time; {} of its CPU time is spent there.",
        percent_text(*of.asleep_in_malloc), percent_text(share));
  if (share.high < kLittle && of.in_memory_calls->high < kLittle)
    return fmt::format("Hardly the allocator: malloc and free take {} of its CPU time.", percent_text(share));
  if (share.low > kMuch) return fmt::format("Much of its CPU time, {}, is spent in malloc and free.", percent_text(share));
  return fmt::format("malloc and free take {} of its CPU time.", percent_text(share));
}

std::string malloc_text(const Attached& of) {
  std::string text = of.malloc_file.empty() ? "not known where from" : of.malloc_file;
  if (of.is_freehold) text += " (Freehold)";
  for (const std::string& own : of.own_allocators) text += ", beside " + own;
  return text;
}

void add_rows(const Attached& of, unsigned cpus, std::string& out) {
  const double cpu = of.user_s + of.system_s;
  const auto row = [&out](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<34}{}\n", name, printable(value));
  };
  row("malloc", malloc_text(of));
  if (of.is_counted) {
    row("threads", std::to_string(of.threads));
    row("CPUs that it keeps busy",
        fmt::format("{:.2f} of {}, {:.0f}% of that in the kernel", of.seconds > 0 ? cpu / of.seconds : 0.0, cpus,
                    cpu > 0 ? 100 * of.system_s / cpu : 0.0));
    if (of.waited_for_cpu_s && of.seconds > 0)
      row("threads that wait for a CPU", fmt::format("{:.2f} on the average", *of.waited_for_cpu_s / of.seconds));
  }
  if (of.in_own_allocators) row("CPU time in its own allocators", percent_text(*of.in_own_allocators));
  if (of.in_memory_calls) row("CPU time in mmap, munmap and such", percent_text(*of.in_memory_calls));
  if (of.asleep_in_malloc) row("asleep in malloc's lock", percent_text(*of.asleep_in_malloc) + " of the threads' time");
  if (of.is_counted && of.seconds > 0) {
    row("page faults", count_text(static_cast<double>(of.page_faults) / of.seconds) + " a second");
    row("waits", count_text(static_cast<double>(of.voluntary_switches) / of.seconds) + " a second");
  }
  if (of.malloc_calls_per_s) row("calls of malloc", count_text(*of.malloc_calls_per_s) + " a second");
  if (of.own_calls_per_s) row("calls of its allocators", count_text(*of.own_calls_per_s) + " a second");
  std::string memory = bytes_text(of.resident_bytes);
  if (of.huge_bytes > 0) memory += fmt::format(", {} in huge pages", bytes_text(of.huge_bytes));
  if (of.swapped_bytes > 0) memory += fmt::format(", {} swapped out", bytes_text(of.swapped_bytes));
  if (of.freehold_bytes > 0) memory += fmt::format(", {} of it Freehold's", bytes_text(of.freehold_bytes));
  row("memory", memory);
}

// What there is, in its order.
std::string held_text(const LiveFigures& held) {
  std::string out = "\nHELD by Freehold, by its own figures\n";
  const auto row = [&](std::string_view name, LiveFigure figure, auto&& in_words) {
    if (const auto value = held[figure]) out += fmt::format("  {:<34}{}\n", name, in_words(*value));
  };
  const auto count = [](std::uint64_t n) { return count_text(static_cast<double>(n)); };
  row("slots up to 32 KiB, used or cached", LiveFigure::kSlotBytes, bytes_text);
  row("spans that these lie in", LiveFigure::kClassSpanBytes, [&](std::uint64_t bytes) {
    const auto returned = held[LiveFigure::kReturnedBytes].value_or(0);
    return bytes_text(bytes) + (returned > 0 ? fmt::format(", {} of it given back", bytes_text(returned)) : "");
  });
  row("blocks above 32 KiB", LiveFigure::kRunBytes, bytes_text);
  row("blocks with a mapping each", LiveFigure::kDirectBytes, bytes_text);
  row("free, not given back yet", LiveFigure::kFreeDirtyBytes,
      [&](std::uint64_t bytes) { return bytes_text(bytes + held[LiveFigure::kKeptBytes].value_or(0)); });
  row("given back since the start", LiveFigure::kPurgedBytes, [&](std::uint64_t bytes) {
    const auto calls = held[LiveFigure::kPurgeCalls].value_or(0);
    return bytes_text(bytes) + (calls > 0 ? fmt::format(", in {} system calls", count(calls)) : "");
  });
  row("threads with a cache", LiveFigure::kThreads, count);
  row("room left in the caches' budget", LiveFigure::kCacheRoomBytes, bytes_text);
  row("limit", LiveFigure::kLimitBytes,
      [](std::uint64_t bytes) { return bytes == 0 ? std::string("none") : bytes_text(bytes); });
  return out;
}

ordered_json json_of(const std::optional<LiveFigures>& held) {
  if (!held) return nullptr;
  ordered_json json;
#define FREEHOLD_ADD(name, figure, text) \
  if (*#name != '\0') json[#name] = (*held)[LiveFigure::figure];
  FREEHOLD_LIVE_FIGURES(FREEHOLD_ADD)
#undef FREEHOLD_ADD
  return json;
}

std::string note_text(const AttachNote& note) {
  switch (note.kind) {
    case AttachNote::Kind::kCallsNotCounted: return fmt::format("Calls were not counted: {}.", note.why);
    case AttachNote::Kind::kNotSampled:
      return fmt::format("Where it spends its CPU time could not be sampled: {}.", note.why);
    case AttachNote::Kind::kHardlyRan: {
      std::string text = "It hardly ran: nothing can be said of where it spends its CPU time.";
      if (!note.children.empty()) text += fmt::format(" It has started others: {}.", fmt::join(note.children, ", "));
      return text;
    }
    case AttachNote::Kind::kKernelNotSampled:
      return "Time in the kernel was not sampled (kernel.perf_event_paranoid): page faults in malloc are missing.";
    case AttachNote::Kind::kSamplesLost: return fmt::format("{} samples found no room.", note.count);
    case AttachNote::Kind::kSleepersNotSeen:
      return "What its threads sleep in could not be looked at (/proc/PID/task/*/syscall).";
  }
  __builtin_unreachable();
}

// Refuses before anything is waited for.
void check(pid_t pid) {
  using live::LiveRefusal;
  if (pid == ::getpid()) throw Failure(kExitRefused, "that is the doctor itself; name another process");
  if (const LiveRefusal refusal = live::refusal_of(pid); refusal != LiveRefusal::kNone)
    throw Failure(kExitRefused, why_refused(refusal, pid, {}, 0));
}

}  // namespace

AttachedReport attach(const doctor::AttachSettings& settings, Interrupts& interrupts, Progress& progress) {
  check(settings.pid);
  AttachedReport report;
  report.machine = this_machine();
  report.date = today();
  report.process =
      doctor::attach(settings, {.stop_fd = interrupts.fd(),
                                .signal = [&interrupts] { return interrupts.arrived(); },
                                .show_watching = [&] { progress.show(fmt::format("watching process {}", settings.pid)); },
                                .show_naming = [&] { progress.show("looking up names"); }});
  for (const AttachNote& note : report.process.notes) report.notes.push_back(note_text(note));
  progress.wipe();
  return report;
}

std::vector<std::string> unknown_of(const Attached& of) {
  std::vector<std::string> unknown{
      "Whether another malloc, or more CPUs, would make it faster: that takes trials. freehold doctor -- PROGRAM does them.",
      "Which places of the program allocate, who frees what, and what shares cache lines: that takes a probe from the "
      "start."};
  if (of.held)
    unknown.emplace_back(
        "What Freehold holds in each size class, and how much of it caches hold: freehold stats PID tells.");
  else if (of.is_freehold)
    unknown.emplace_back(
        "What Freehold holds: the process ended, its memory may not be read (kernel.yama.ptrace_scope; root may), or its "
        "Freehold is of another version. freehold run --stats tells it at the end.");
  if (!of.malloc_calls_per_s)
    unknown.emplace_back("How often it allocates: --count-calls counts for a moment, and slows it down while it counts.");
  return unknown;
}

std::string text_of(const AttachedReport& report) {
  const Attached& of = report.process;
  std::string out = fmt::format("freehold doctor attach: process {}, {}\n{}\n", of.settings.pid, printable(of.command),
                                machine_line(report.machine));
  out += wrap(printable(headline_of(of)), kWidth, "");
  out += fmt::format("\nWATCHED for {:.1f} s, {} samples\n", of.seconds, of.samples);
  add_rows(of, report.machine.cpus, out);
  if (!of.functions.empty()) out += "\nWHERE its CPU time goes\n";
  for (const HotFunction& function : of.functions)
    out +=
        fmt::format("  {:>4}  {}\n", percent_text(function.share).starts_with("less") ? "<1%" : percent_text(function.share),
                    printable(function.text).substr(0, kWidth - 8));
  if (of.held) out += held_text(*of.held);
  out += "\nWHAT CANNOT BE KNOWN from outside\n" + list_of(unknown_of(of), kWidth);
  std::vector<std::string> notes = report.notes;
  if (of.has_ended) notes.emplace_back("The process ended while it was watched.");
  if (of.signal != 0) notes.emplace_back("Interrupted: this is what was seen until then.");
  if (!notes.empty()) out += '\n' + list_of(notes, kWidth);
  return out;
}

ordered_json json_of(const AttachedReport& report) {
  const Attached& of = report.process;
  ordered_json json = {{"schema", kAttachedSchema},
                       {"date", report.date},
                       {"machine", machine_json(report.machine)},
                       {"pid", of.settings.pid},
                       {"command", of.command},
                       {"headline", headline_of(of)},
                       {"seconds", of.seconds},
                       {"complete", of.signal == 0 && !of.has_ended}};
  ordered_json counted =
      FREEHOLD_JSON_OF(of, threads, user_s, system_s, voluntary_switches, involuntary_switches, page_faults);
  if (!of.is_counted)
    for (ordered_json& figure : counted) figure = nullptr;
  json.update(counted);
  json.update(FREEHOLD_JSON_OF(of, waited_for_cpu_s, resident_bytes, anonymous_bytes, huge_bytes, swapped_bytes,
                               freehold_bytes, is_freehold, own_allocators, samples, in_malloc, in_own_allocators,
                               in_memory_calls, asleep_in_malloc, malloc_calls_per_s, own_calls_per_s));
  json["malloc_file"] = text_or_null(of.malloc_file);
  json["held"] = json_of(of.held);
  json["functions"] =
      list_json(of.functions, [](const auto& function) { return FREEHOLD_JSON_OF(function, text, kind, share); });
  json["unknown"] = unknown_of(of);
  json["notes"] = report.notes;
  return json;
}

}  // namespace freehold::doctor::report
