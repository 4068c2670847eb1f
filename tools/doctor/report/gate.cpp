// SPDX-License-Identifier: MIT
#include "tools/doctor/report/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/doctor/report/results_json.hpp"
#include "tools/doctor/verdict/memory_verdict.hpp"
#include "tools/support/arguments.hpp"
#include "tools/support/failure.hpp"

namespace freehold::doctor::report {
namespace {
using doctor::Cause;
using doctor::Estimate;
using doctor::MemoryCause;
using nlohmann::ordered_json;

struct KnownCause {
  std::string_view name;
  bool blames_allocator;
};

template <class Kind>
std::vector<KnownCause> causes(std::size_t count) {
  std::vector<KnownCause> known;
  for (std::size_t i = 0; i < count; ++i) {
    const auto cause = static_cast<Kind>(i);
    known.push_back({name_of(cause), blames_allocator(cause)});
  }
  return known;
}

[[noreturn]] void refuse(const std::string& file, std::string_view why) {
  throw Failure(kExitRefused,
                fmt::format("{}: {}; a report is what 'freehold doctor --json FILE' writes", printable(file), why));
}

}  // namespace

int Gate::exit_code() const noexcept {
  return fails == Answer::kYes ? kExitFails : fails == Answer::kNo ? kExitHolds : kExitUndecided;
}

std::string text_of(const Gate& gate) {
  if (gate.asked.empty()) return {};
  const char* const answer = gate.fails == Answer::kYes ? "fails" : gate.fails == Answer::kNo ? "passes" : "undecided";
  const std::string text = fmt::format("{}: {}: {}\n", answer, gate.asked, gate.because);
  if (gate.fails != Answer::kUndecided) return text;
  return text + "Undecided: a longer --budget or a quiet machine may decide it.\n";
}

FailOn::FailOn(Question question, const std::optional<std::string>& list) {
  if (!list) return;
  list_ = *list;
  const auto known =
      question == Question::kTime ? causes<Cause>(doctor::kCauses) : causes<MemoryCause>(doctor::kMemoryCauses);
  for (const std::string& name : split_list("--fail-on", list_)) {
    const std::size_t before = causes_.size();
    for (const auto& [cause, blames_allocator] : known) {
      if (name == cause || (name == "allocator" && blames_allocator)) causes_.push_back(cause);
    }
    if (causes_.size() != before) continue;
    std::vector<std::string_view> names{"allocator"};
    for (const KnownCause& cause : known) names.push_back(cause.name);
    refuse_name("--fail-on", name, names);
  }
}

Gate FailOn::judge(std::string_view cause) const {
  if (!is_asked()) return {};
  const bool is_named = std::ranges::find(causes_, cause) != causes_.end();
  return {.asked = "--fail-on " + list_,
          .fails = is_named               ? Answer::kYes
                   : cause == "undecided" ? Answer::kUndecided
                                          : Answer::kNo,
          .because = fmt::format("the cause is {}", printable(cause))};
}

double parse_percentage(const std::string& option, const std::string& text) {
  constexpr double kMost = 1000;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || std::string_view(end, text.data() + text.size()) != "%" || !(value >= 0 && value <= kMost))
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a percentage: 10%, 2.5%", option, printable(text)));
  return value / 100;
}

std::optional<Estimate> lost_in(const ordered_json& report) {
  const ordered_json& verdict = report.at("verdict");
  if (verdict.at("speedup").at("value").get<double>() <= 0) return std::nullopt;
  return verdict.at("lost").get<Estimate>();
}

ordered_json read_report(const std::string& file) {
  std::ifstream in(file);
  if (!in) refuse(file, fmt::format("cannot be read: {}", error_text(errno)));
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios_base::failure&) {
    refuse(file, "cannot be read: it is a folder");
  }
  ordered_json report = ordered_json::parse(text, nullptr, false);
  if (report.is_discarded()) refuse(file, "is not JSON");
  if (!report.is_object() || !report.contains("schema")) refuse(file, "is JSON, but no report");
  if (report["schema"] != kSchema)
    refuse(file, fmt::format("has the schema {}, where {} can be read", printable(report["schema"].dump()), kSchema));
  try {
    if (!doctor::cause_of(report.at("verdict").at("cause").get<std::string>()))
      refuse(file, "is damaged (its cause is none)");
    static_cast<void>(markdown_of(report, Gate{}));
  } catch (const ordered_json::exception& error) {
    refuse(file, fmt::format("is damaged ({})", printable(error.what())));
  }
  return report;
}

double parse_seconds(const std::string& option, const std::string& text) {
  constexpr double kLongest_s = 1e6;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size());
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || !std::isfinite(value) || value * factor <= 0 || value * factor > kLongest_s)
    throw Failure(kExitRefused, fmt::format("{}: '{}' is not a time: 10, 2.5s, 300ms, 2m", option, printable(text)));
  return value * factor;
}

void add_summary(tools::Command& command, std::optional<std::string>& file) {
  command.add_option("--summary", file, "Write the answer in Markdown, for the page of a job", "FILE");
}

}  // namespace freehold::doctor::report
