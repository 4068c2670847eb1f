// SPDX-License-Identifier: MIT
#include "cli/doctor/gate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/doctor/memory.hpp"
#include "cli/doctor/results_json.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;
using nlohmann::ordered_json;

constexpr Word kReportWords[] = {
    {"allocator", WordKind::kShare},  {"lost", WordKind::kShare},         {"speedup", WordKind::kRatio},
    {"gain", WordKind::kRatio, true}, {"memory", WordKind::kRatio, true}, {"cause", WordKind::kCause},
    {"bound", WordKind::kRatio},      {"failed", WordKind::kFlag, true},  {"noisy", WordKind::kFlag},
};

// "arenas" and "padded" are what --allocators calls them; the report has "glibc, 2 arenas".
std::string short_name(const ordered_json& variant) {
  const auto treatment = variant.at("treatment").get<std::string>();
  if (treatment == "high-thresholds") return "thresholds";
  return treatment == "capped-arenas" ? "arenas" : variant.at("name").get<std::string>();
}

// Of what is lost: a verdict that does not name the allocator excludes that it explains more.
constexpr double kUnnamedPart = 0.1;

// Share of the time that is saved if the cost is divided by `gain`.
double saved(double gain) { return gain > 1 ? 1 - 1 / gain : 0; }

// Peak memory has as many figures as there are trials: between the least and the greatest of both lies the ratio.
std::optional<Estimate> memory_ratio(const ordered_json& with, const ordered_json& without) {
  std::vector<double> mine, other;
  for (const auto& trial : with.at("trials")) mine.push_back(trial.at("peak_rss_bytes").get<double>());
  for (const auto& trial : without.at("trials")) other.push_back(trial.at("peak_rss_bytes").get<double>());
  if (mine.empty() || other.empty() || std::ranges::min(mine) <= 0 || std::ranges::min(other) <= 0) return std::nullopt;
  const double value = with.at("peak_rss_bytes").get<double>() / without.at("peak_rss_bytes").get<double>();
  return Estimate{std::min(value, std::ranges::min(mine) / std::ranges::max(other)), value,
                  std::max(value, std::ranges::max(mine) / std::ranges::min(other))};
}

class Reader {
 public:
  explicit Reader(const ordered_json& report)
      : report_(report), verdict_(report.at("verdict")), variants_(report.at("experiment").at("variants")) {}

  Facts facts() {
    if (const auto cause = freehold::doctor::cause_of(verdict_.at("cause").get<std::string>()))
      facts_.cause = name_of(*cause);
    facts_.flags["noisy"] = verdict_.at("noisy").get<bool>();
    add_fixes();
    add_failures();
    add_memory();
    // Of a program that was run in one setting alone, nothing is known of scaling.
    if (verdict_.at("speedup").at("value").get<double>() > 0) add_loss();
    return std::move(facts_);
  }

 private:
  void add_fixes() {
    Estimate best;
    for (const auto& fix : report_.at("fixes")) {
      if (fix.at("failed").get<bool>() || fix.at("gain").is_null()) continue;
      const auto& variant = variants_.at(fix.at("variant").get<std::size_t>());
      const Estimate gain = fix.at("gain").get<Estimate>();
      facts_.figures[fmt::format("gain({})", short_name(variant))] = gain;
      best = {std::max(best.low, gain.low), std::max(best.value, gain.value), std::max(best.high, gain.high)};
      // Padding tells of lines that blocks share; it is no allocator that could save anything.
      if (variant.at("treatment") != "padded") most_gain_ = std::max(most_gain_, gain.high);
    }
    if (best.value > 0) facts_.figures["gain(best)"] = best;
  }

  void add_failures() {
    bool any = false;
    for (const auto& cell : report_.at("experiment").at("cells")) {
      const auto variant = cell.at("variant").get<std::size_t>();
      const bool failed = !cell.at("failure").is_null();
      any = any || failed;
      if (variant == 0) continue;
      bool& flag = facts_.flags[fmt::format("failed({})", short_name(variants_.at(variant)))];
      flag = flag || failed;
    }
    facts_.flags["failed"] = any;
  }

  void add_memory() {
    const ordered_json& all = verdict_.at("all");
    const ordered_json* own = nullptr;
    for (const auto& cell : report_.at("experiment").at("cells")) {
      if (cell.at("variant") == 0 && cell.at("setting") == all) own = &cell;
    }
    if (own == nullptr) return;
    Estimate best;
    for (const auto& cell : report_.at("experiment").at("cells")) {
      if (cell.at("variant") == 0 || cell.at("setting") != all) continue;
      const auto ratio = memory_ratio(cell, *own);
      if (!ratio) continue;
      facts_.figures[fmt::format("memory({})", short_name(variants_.at(cell.at("variant").get<std::size_t>())))] = *ratio;
      if (best.value == 0 || ratio->value < best.value) best = *ratio;
    }
    if (best.value > 0) facts_.figures["memory(best)"] = best;
  }

  // The allocator's share of the time on all CPUs. The report has it as a share of what is lost, and as nothing where no
  // other allocator surely helps; how much it could still be, the verdict says, and without one the limits of what was
  // tried and of the loss.
  void add_loss() {
    const Estimate lost = verdict_.at("lost").get<Estimate>(), of_lost = verdict_.at("allocator_share").get<Estimate>();
    facts_.figures["lost"] = lost;
    facts_.figures["speedup"] = verdict_.at("speedup").get<Estimate>();
    const bool is_innocent = !verdict_.at("blames_allocator").get<bool>() && facts_.cause && *facts_.cause != "undecided";
    if (of_lost.value > 0) {
      facts_.figures["allocator"] = {lost.low * of_lost.low, lost.value * of_lost.value, lost.high * of_lost.high};
    } else if (is_innocent) {
      facts_.figures["allocator"] = {0, 0, kUnnamedPart * lost.high};
    } else if (most_gain_ > 0) {
      facts_.figures["allocator"] = {0, 0, std::min(saved(most_gain_), lost.high)};
    }
    cap_by_most_gain();
  }
  // What no allocator could save, none saves.
  void cap_by_most_gain() {
    const auto most = verdict_.find("most_gain");
    if (most == verdict_.end() || most->is_null()) return;
    const Estimate gain = most->get<Estimate>();
    facts_.figures["bound"] = gain;
    const double share = saved(gain.high);
    Estimate& allocator = facts_.figures.try_emplace("allocator", Estimate{0, 0, share}).first->second;
    allocator = {std::min(allocator.low, share), std::min(allocator.value, share), std::min(allocator.high, share)};
  }

  const ordered_json& report_;
  const ordered_json& verdict_;
  const ordered_json& variants_;
  Facts facts_;
  double most_gain_ = 0;  // that another allocator could bring
};

[[noreturn]] void refuse(const std::string& file, std::string_view why) {
  throw Failure(kExitRefused,
                fmt::format("{}: {}; a report is what 'freehold doctor --json FILE' writes", printable(file), why));
}

const CauseNames& memory_causes() {
  static const CauseNames names = [] {
    CauseNames made;
    std::vector<std::string_view> blamed;
    for (std::size_t i = 0; i < kMemoryCauses; ++i) {
      const auto cause = static_cast<MemoryCause>(i);
      made.causes.push_back(name_of(cause));
      if (blames_allocator(cause)) blamed.push_back(name_of(cause));
    }
    made.groups = {
        {"allocator", blamed},
        {"live", {name_of(MemoryCause::kLiveData), name_of(MemoryCause::kLeak), name_of(MemoryCause::kOneBlock)}}};
    return made;
  }();
  return names;
}

const Word kMemoryWords[] = {{"memory", WordKind::kBytes},
                             {"peak", WordKind::kBytes},
                             {"live", WordKind::kShare},
                             {"free", WordKind::kShare},
                             {"leak", WordKind::kShare},
                             {"saved", WordKind::kShare, true},
                             {"cause", WordKind::kCause, false, &memory_causes},
                             {"failed", WordKind::kFlag, true}};

void add_shares(Facts& facts, const ordered_json& verdict) {
  const double whole = verdict.at("mean_bytes").get<double>();
  // What the measures do not agree on is not known.
  if (!verdict.at("doubt").is_null() || whole <= 0) return;
  constexpr std::array kFree = {MemoryPart::kRounding, MemoryPart::kArenas, MemoryPart::kCaches, MemoryPart::kFreePages,
                                MemoryPart::kHoles};
  double live = 0, free = 0;
  for (const auto& part : verdict.at("parts")) {
    const auto name = part.at("part").get<std::string>();
    const double share = part.at("mean_bytes").get<double>() / whole;
    if (name == name_of(MemoryPart::kLive)) live = share;
    if (std::ranges::any_of(kFree, [&name](MemoryPart one) { return name == name_of(one); })) free += share;
  }
  const double leak = live * verdict.at("leak_share").get<double>();
  facts.figures["live"] = {live, live, live};
  facts.figures["free"] = {free, free, free};
  facts.figures["leak"] = {leak, leak, leak};
}

void add_fixes(Facts& facts, const ordered_json& fixes, double whole) {
  Estimate best;
  bool is_known = false;
  for (const auto& fix : fixes) {
    if (fix.at("failed").get<bool>() || fix.at("saved_bytes").is_null() || whole <= 0) continue;
    const Estimate saved = fix.at("saved_bytes").get<Estimate>();
    const Estimate share{saved.low / whole, saved.value / whole, saved.high / whole};
    facts.figures[fmt::format("saved({})", memory_treatment_name(fix.at("name").get<std::string>()))] = share;
    is_known = true;
    best = {std::max(best.low, share.low), std::max(best.value, share.value), std::max(best.high, share.high)};
  }
  if (is_known) facts.figures["saved(best)"] = best;
}

}  // namespace

std::span<const Word> report_words() noexcept { return kReportWords; }

std::vector<Condition> conditions_of(std::string_view option, std::span<const std::string> texts,
                                     std::span<const Word> words) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) conditions.emplace_back(option, text, words);
  return conditions;
}

void check_treatments(std::string_view option, std::span<const Condition> conditions, std::span<const std::string> names) {
  for (const Condition& condition : conditions) {
    for (const std::string& name : condition.arguments()) {
      if (std::ranges::find(names, name) != names.end()) continue;
      throw Failure(kExitRefused, fmt::format("{}: there is no treatment '{}' here; there are {}", option, printable(name),
                                              printable(fmt::format("{}", fmt::join(names, ", ")))));
    }
  }
}

Facts facts_of(const ordered_json& report) { return Reader(report).facts(); }

std::vector<std::string> treatments_of(const ordered_json& report) {
  std::vector<std::string> names{"best"};
  for (const auto& variant : report.at("experiment").at("variants")) {
    if (variant.at("treatment") != "none") names.push_back(short_name(variant));
  }
  return names;
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
    static_cast<void>(facts_of(report));
    static_cast<void>(markdown_of(report, Gate{}));
  } catch (const ordered_json::exception& error) {
    refuse(file, fmt::format("is damaged ({})", printable(error.what())));
  }
  return report;
}

int Gate::exit_code() const noexcept {
  return fails == Answer::kYes ? kExitFails : fails == Answer::kNo ? kExitHolds : kExitUndecided;
}

Gate judge(std::span<const Condition> conditions, const Facts& facts) {
  Gate gate;
  for (const Condition& condition : conditions) {
    gate.conditions.emplace_back(condition.text(), condition.judge(facts));
    gate.fails = std::max(gate.fails, gate.conditions.back().second.answer);
  }
  return gate;
}

std::string text_of(const Gate& gate) {
  std::string text;
  for (const auto& [condition, judgement] : gate.conditions) {
    const char* const answer = judgement.answer == Answer::kYes  ? "fails: the condition holds"
                               : judgement.answer == Answer::kNo ? "passes: the condition does not hold"
                                                                 : "undecided";
    text += fmt::format("{}: --fail-if '{}': {}\n", answer, printable(condition),
                        printable(fmt::format("{}", fmt::join(judgement.because, "; "))));
  }
  if (gate.fails != Answer::kUndecided) return text;
  const bool is_between = std::ranges::any_of(gate.conditions, [](const auto& of) { return of.second.is_between_limits; });
  text += is_between ? "Undecided: the limits lie on both sides. A longer --budget or a quiet machine narrows them.\n"
                     : "Undecided: what the condition names is not known. A longer --budget may measure it.\n";
  return text;
}

std::span<const Word> memory_words() noexcept { return kMemoryWords; }

std::string memory_treatment_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"glibc, 1 arena", "arenas"}, {"glibc, no caches", "caches"}, {"glibc, trimmed", "trimmed"}};
  for (const auto& [of_report, of_option] : kNames)
    if (name == of_report) return std::string(of_option);
  return std::string(name);
}

Facts memory_facts_of(const ordered_json& report) {
  Facts facts;
  const ordered_json& verdict = report.at("verdict");
  const auto known = memory_causes().causes;
  if (const auto cause = std::ranges::find(known, verdict.at("cause").get<std::string>()); cause != known.end())
    facts.cause = *cause;
  add_shares(facts, verdict);
  bool any = false;
  for (const auto& cell : report.at("trials")) {
    const bool is_own = &cell == &report.at("trials").front(), failed = !cell.at("failure").is_null();
    any = any || failed;
    if (is_own || (!failed && cell.at("trials").empty())) continue;  // not run: not known
    facts.flags[fmt::format("failed({})", memory_treatment_name(cell.at("name").get<std::string>()))] = failed;
  }
  facts.flags["failed"] = any;
  facts.figures["memory"] = verdict.at("run_mean_bytes").get<Estimate>();
  facts.figures["peak"] = verdict.at("run_peak_bytes").get<Estimate>();
  add_fixes(facts, report.at("fixes"), facts.figures["memory"].value);
  return facts;
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

void GateOptions::add_to(cli::Command& command, const std::string& example) {
  command.add_repeatable("--fail-if", fail_if,
                         fmt::format("Exit with 1 if this holds, 3 if it cannot be told: '{}'; may be repeated", example),
                         "CONDITION");
  command.add_option("--summary", summary, "Write the answer in Markdown, for the page of a job", "FILE");
}

void GateOptions::check() const {
  if (summary) check_writable(*summary);
}

}  // namespace freehold::cli::doctor
