// SPDX-License-Identifier: MIT
#include "tools/doctor/report/aged_answer.hpp"

#include <fmt/format.h>

#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/shell.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {
using nlohmann::ordered_json;

// A difference that decides nothing: programs differ by as much with the places at which their libraries lie.
constexpr double kNoMatter = 1.1;

std::string headline_of(const AgedDiagnosis& diagnosis) {
  const std::string_view cause = cause_of(diagnosis);
  const AgedMalloc& own = diagnosis.mallocs.front();
  const auto age = cpu_change(own.fresh, own.aged);
  return fmt::format("{}: it takes {} the CPU time that it takes on a fresh one, {} for {}.",
                     cause == "aged-heap" ? "An aged heap slows the program down"
                     : cause == "none"    ? "An aged heap does not slow the program down"
                                          : "It is open whether an aged heap slows the program down",
                     times_text(*age->ratio), seconds_text(age->after.value), seconds_text(age->before.value));
}

Line advice_of(const AgedDiagnosis& diagnosis) {
  const AgedMalloc* const better = better_aged(diagnosis.mallocs);
  if (better == nullptr) return {"Do", "Keep its malloc: of those that were tried none is faster there beyond chance."};
  const auto change = cpu_change(diagnosis.mallocs.front().aged, better->aged);
  const bool is_freehold = better->variant.treatment == Treatment::kFreehold;
  return {"Do",
          fmt::format("Use {}: on the aged heap it takes {} the CPU time that it takes now.", text_of(better->variant),
                      times_text(*change->ratio)),
          {(is_freehold ? "freehold run -- " : "env LD_PRELOAD=" + shell_words(better->variant.preload) + ' ') +
           shell_words(diagnosis.command)}};
}

std::string ratio_text(const std::optional<Change>& change) {
  if (!change) return "–";
  const std::string range = range_text(*change->ratio), value = value_text(*change->ratio);
  return range.empty() ? value : fmt::format("{} ({})", value, range);
}

std::string history_text(const AgedDiagnosis& diagnosis) {
  const History& history = diagnosis.history;
  return fmt::format(
      "The history {}: {} mallocs; {} of the blocks stay, {}. It is played before main, and is not in the figures.",
      diagnosis.recording.empty() ? "is made up, of blocks of the program's sizes" : "is " + printable(diagnosis.recording),
      count_text(static_cast<double>(history.mallocs)), count_text(static_cast<double>(history.survivors)),
      bytes_text(history.live_bytes));
}

}  // namespace

std::string_view cause_of(const AgedDiagnosis& diagnosis) {
  const AgedMalloc& own = diagnosis.mallocs.front();
  const auto change = cpu_change(own.fresh, own.aged);
  if (change->ratio->high < kNoMatter) return "none";
  return change->ratio->low > 1 ? "aged-heap" : "undecided";
}

Document document_of(const AgedDiagnosis& diagnosis) {
  using Kind = Column::Kind;
  Document out{"freehold doctor --aged: " + shell_words(diagnosis.command), machine_line(diagnosis.machine)};
  out.parts.emplace_back(Line{"Asked", "How much slower is it on an aged heap?"});
  out.parts.emplace_back(Headline{"Answer", headline_of(diagnosis)});
  out.parts.emplace_back(advice_of(diagnosis));
  out.parts.emplace_back(Section{"Mallocs", "CPU time of a run"});
  Rows rows;
  for (const AgedMalloc& malloc : diagnosis.mallocs) {
    const auto age = cpu_change(malloc.fresh, malloc.aged);
    rows.push_back({malloc.variant.name, age ? seconds_text(age->before.value) : "–",
                    age ? seconds_text(age->after.value) : "–", ratio_text(age),
                    ratio_text(cpu_change(diagnosis.mallocs.front().aged, malloc.aged)), malloc.failure});
  }
  out.parts.emplace_back(Table{{{.title = "malloc", .kind = Kind::kText},
                                {.title = "fresh"},
                                {.title = "aged"},
                                {.title = "aged / fresh"},
                                {.title = "aged / own aged"},
                                {.title = "", .kind = Kind::kText}},
                               std::move(rows)});
  std::vector<std::string> notes = diagnosis.notes;
  notes.push_back(history_text(diagnosis));
  notes.emplace_back(kOfRanges);
  out.parts.emplace_back(Section{"Notes"});
  out.parts.emplace_back(std::move(notes));
  return out;
}

ordered_json json_of(const AgedDiagnosis& diagnosis) {
  const auto ratio_json = [](const std::optional<Change>& change) { return change ? change->ratio : std::nullopt; };
  const auto malloc_json = [&](const AgedMalloc& malloc) -> ordered_json {
    const auto age = cpu_change(malloc.fresh, malloc.aged);
    return {{"name", malloc.variant.name},
            {"fresh_s", age ? std::optional(age->before) : std::nullopt},
            {"aged_s", age ? std::optional(age->after) : std::nullopt},
            {"ratio", ratio_json(age)},
            {"against_own", ratio_json(cpu_change(diagnosis.mallocs.front().aged, malloc.aged))},
            {"trials", malloc.aged.all.size()},
            {"failure", text_or_null(malloc.failure)}};
  };
  const AgedMalloc* const better = better_aged(diagnosis.mallocs);
  return {{"schema", "freehold-doctor-aged/1"},
          {"date", diagnosis.date},
          {"complete", diagnosis.signal == 0},
          {"machine", machine_json(diagnosis.machine)},
          {"command", diagnosis.command},
          {"cause", cause_of(diagnosis)},
          {"headline", headline_of(diagnosis)},
          {"better", better == nullptr ? ordered_json(nullptr) : ordered_json(better->variant.name)},
          {"recording", text_or_null(diagnosis.recording)},
          {"history", FREEHOLD_JSON_OF(diagnosis.history, mallocs, survivors, peak_bytes, live_bytes)},
          {"mallocs", list_json(diagnosis.mallocs, malloc_json)},
          {"notes", diagnosis.notes}};
}

}  // namespace freehold::doctor::report
