// SPDX-License-Identifier: MIT
#include "tools/doctor/report/time_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "tools/doctor/facts/attribution.hpp"
#include "tools/doctor/facts/derived.hpp"
#include "tools/doctor/report/format.hpp"
#include "tools/output/text.hpp"
#include "tools/support/shell.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/units.hpp"

namespace freehold::doctor::report {
namespace {
using Kind = Column::Kind;

constexpr std::size_t kColumns = 5;  // settings side by side
constexpr std::size_t kRows = 8;     // call sites, and of each of the other lists
constexpr std::size_t kLongestName = 34;
constexpr std::string_view kAnonymous = "(anonymous namespace)::";

// Without the explanation, which stands in the sentences above the tables.
std::string column_name(const Variant& variant) {
  const std::string text = text_of(variant);
  return text.substr(0, text.find(" ("));
}

// The first, the last, and others evenly between them.
template <class T>
std::vector<T> thinned(const std::vector<T>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return some;
}

std::string share_text(double value) { return value > 0 && value < 0.005 ? "<1%" : fmt::format("{:.0f}%", 100 * value); }

// "parse.cpp:210 parse(std::string const&)"
std::string where(const Place& place) {
  const Frame& frame = place.frame();
  const std::string at = short_text(frame);
  if (frame.file.empty() || frame.function.empty()) return at;
  std::string function = frame.function;
  for (std::size_t found; (found = function.find(kAnonymous)) != std::string::npos;)
    function.erase(found, kAnonymous.size());
  return at + "  " + function;
}

std::string title_of(const Diagnosis& diagnosis) {
  const std::vector<std::string>& command = diagnosis.settings.command;
  return "freehold doctor: " + (diagnosis.example || command.empty() ? "the bundled example" : shell_words(command));
}

// The first step and what it brings. Without a verdict a step decides it rather.
void say_what_to_do(const Diagnosis& diagnosis, const Words& words, Document& out) {
  const char* const label = diagnosis.verdict.cause == Cause::kUndecided ? "Decide" : "Do";
  if (words.steps.empty())
    out.parts.emplace_back(Line{label, words.advice});
  else
    out.parts.emplace_back(Line{label, words.steps.front().what + ":", words.steps.front().lines});
  out.parts.emplace_back(Line{"Brings", words.gain});
  out.parts.emplace_back(Line{"", words.bound});
}

void add_evidence(const Diagnosis& diagnosis, const Words& words, Document& out) {
  out.parts.emplace_back(Section{"Evidence"});
  std::string sentences;
  for (const std::string& sentence : words.because | std::views::drop(1)) sentences += sentence + ' ';
  out.parts.emplace_back(Line{"", sentences});
  Rows parts;
  for (const Part& part : diagnosis.verdict.parts)
    parts.push_back({percent_text(part.share), std::string(text_of(part.cause))});
  out.parts.emplace_back(Table{{{.title = "of what is lost"}, {.title = "by", .kind = Kind::kText}}, std::move(parts)});
}

void add_steps(const Diagnosis& diagnosis, const Words& words, Document& out) {
  if (words.steps.empty() || diagnosis.verdict.cause == Cause::kUndecided) return;
  out.parts.emplace_back(Section{"Steps"});
  out.parts.emplace_back(Line{"", words.advice});
  for (const Step& step : words.steps | std::views::drop(1)) out.parts.emplace_back(Line{"", step.what + ":", step.lines});
}

std::vector<std::string> variant_row(const Experiment& experiment, std::size_t variant,
                                     const std::vector<Setting>& settings) {
  std::vector<std::string> row{column_name(experiment.variants[variant])};
  const Cell* last = nullptr;
  for (const Setting& setting : settings) {
    const Cell* const cell = experiment.find(variant, setting);
    const auto seconds = if_measured(cost, cell);
    if (seconds) last = cell;
    const auto faster = cell == nullptr ? std::nullopt : speed(experiment, *cell);
    row.push_back(seconds ? seconds_text(*seconds) : cell != nullptr && !cell->failure.empty() ? "failed" : "-");
    row.push_back(faster ? fmt::format("{:.2f}", *faster) : "");
  }
  const auto peak = if_measured(peak_bytes, last);
  row.push_back(last != nullptr && last->trials.size() > 1 ? fmt::format("{:.0f}%", 100 * spread(costs_of(*last))) : "-");
  row.push_back(peak ? bytes_text(static_cast<std::uint64_t>(*peak)) : "-");
  return row;
}

// Seconds, and how many times as fast as the same allocator in the first setting.
void add_measurements(const Diagnosis& diagnosis, Document& out) {
  const Experiment& experiment = diagnosis.experiment;
  const std::vector<Setting> settings = thinned(experiment.sweep(), kColumns);
  if (settings.empty()) return;
  out.parts.emplace_back(Section{"Measured", "time, and how many times as fast as in the first column"});
  std::vector<Column> columns{{.kind = Kind::kText, .widest = kLongestName - 8}};
  for (const Setting& setting : settings) {
    columns.push_back({.title = describe(setting)});
    columns.push_back({});
  }
  columns.push_back({.title = "spread"});
  columns.push_back({.title = "peak"});
  Rows rows;
  for (std::size_t variant = 0; variant < experiment.variants.size(); ++variant) {
    if (was_tried(experiment, variant)) rows.push_back(variant_row(experiment, variant, settings));
  }
  out.parts.emplace_back(Table{std::move(columns), std::move(rows)});
  for (const Cell& cell : experiment.cells) {
    if (cell.variant != 0 || cell.setting.copies < 2) continue;
    const auto seconds = if_measured(cost, &cell);
    const auto faster = speed(experiment, cell);
    if (seconds && faster)
      out.parts.emplace_back(
          Line{"", fmt::format("{} as processes that share nothing, {} times the work: {}, {:.2f} times as fast",
                               describe(cell.setting), cell.setting.copies, seconds_text(*seconds), *faster)});
  }
}

void add_fixes(const Diagnosis& diagnosis, Document& out) {
  const Verdict& verdict = diagnosis.verdict;
  if (verdict.fixes.empty()) return;
  out.parts.emplace_back(Section{"Tried", "how many times as fast on " + describe(verdict.all)});
  Rows rows;
  for (const Fix* fix : best_first(verdict)) {
    const bool measured = fix->gain.value > 0;
    rows.push_back({column_name(diagnosis.experiment.variants[fix->variant]), measured ? value_text(fix->gain) : "-",
                    measured ? range_text(fix->gain) : "",
                    fix->memory.value > 0 ? fmt::format("× {:.2f}", fix->memory.value) : "-",
                    std::string(judgement_of(*fix))});
  }
  out.parts.emplace_back(Table{{{.title = "with", .kind = Kind::kText, .widest = kLongestName},
                                {.title = "faster"},
                                {.title = "limits", .kind = Kind::kText},
                                {.title = "peak memory"},
                                {.kind = Kind::kText}},
                               std::move(rows)});
}

// The first rows of a list, and how many more there are.
void add_firsts(const auto& all, std::vector<Column> columns, Document& out, auto row_of) {
  Rows rows;
  for (const auto& one : all | std::views::take(kRows)) rows.push_back(row_of(one));
  out.parts.emplace_back(Table{std::move(columns), std::move(rows)});
  if (all.size() > kRows) out.parts.emplace_back(Line{"", fmt::format("and {} more", all.size() - kRows)});
}

void add_sites(const Attribution& recorded, Document& out) {
  if (recorded.sites.empty()) return;
  out.parts.emplace_back(Section{"Call sites", "share of the time in malloc and free, and who frees the blocks"});
  add_firsts(recorded.sites,
             {{.title = "share"},
              {.title = "allocations"},
              {.title = "ns each"},
              {.title = "bytes each"},
              {.title = "by others"},
              {.title = "where", .kind = Kind::kCode}},
             out, [](const AllocationSite& site) -> std::vector<std::string> {
               return {share_text(site.time_share),
                       count_text(site.time.calls),
                       fmt::format("{:.0f}", site.time.mean_ns()),
                       fmt::format("{}{:.0f}", site.fixed_size ? "" : "~", site.typical_bytes),
                       share_text(site.freed_elsewhere),
                       where(site.place)};
             });
}

void add_locks(const Attribution& recorded, Document& out) {
  if (recorded.lock_waits.empty()) return;
  out.parts.emplace_back(Section{"Locks", "of the program, that its threads wait for: share of their time"});
  add_firsts(recorded.lock_waits, {{.title = "share"}, {.title = "waits"}, {.title = "where", .kind = Kind::kCode}}, out,
             [](const WaitSite& site) -> std::vector<std::string> {
               return {share_text(site.share), count_text(site.count), where(site.place)};
             });
}

void add_advice(const Attribution& recorded, const Words& words, Document& out) {
  if (words.sites.empty()) return;
  out.parts.emplace_back(Section{"Advised", "for the hottest sites, by what was recorded of them"});
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < words.sites.size(); ++i)
    sentences.push_back(fmt::format("{}: {}", recorded.sites[words.sites[i].site].place.text(), words.fits[i]));
  out.parts.emplace_back(sentences);
}

void add_notes(const Words& words, const std::string& page, Document& out) {
  std::vector<std::string> notes = words.findings;
  notes.insert(notes.end(), words.notes.begin(), words.notes.end());
  notes.emplace_back(kOfRanges);
  if (!page.empty()) notes.push_back("The whole report: " + page);
  out.parts.emplace_back(Section{"Notes"});
  out.parts.emplace_back(notes);
}

}  // namespace

Document document_of(const Diagnosis& diagnosis, const Words& words, const Gate& gate, const std::string& page) {
  Document out{title_of(diagnosis), machine_line(diagnosis.machine)};
  out.parts.emplace_back(Line{"Asked", diagnosis.verdict.one_thread ? "Does the allocator cost it time?"
                                                                    : "Is the allocator why it does not scale?"});
  out.parts.emplace_back(Headline{"Answer", words.headline});
  if (!words.because.empty()) out.parts.emplace_back(Line{"Sure", words.because.front()});
  say_what_to_do(diagnosis, words, out);
  out.parts.emplace_back(Judgement{text_of(gate)});
  add_evidence(diagnosis, words, out);
  add_steps(diagnosis, words, out);
  add_measurements(diagnosis, out);
  add_fixes(diagnosis, out);
  if (const Attribution* const recorded = diagnosis.recorded.get()) {
    add_sites(*recorded, out);
    add_locks(*recorded, out);
    add_advice(*recorded, words, out);
  }
  add_notes(words, page, out);
  return out;
}

}  // namespace freehold::doctor::report
