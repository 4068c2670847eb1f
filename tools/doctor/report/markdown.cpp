// SPDX-License-Identifier: MIT
#include "tools/doctor/report/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/results_json.hpp"
#include "tools/output/text.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/shell.hpp"

namespace freehold::doctor::report {
namespace {
using doctor::Estimate;
using nlohmann::ordered_json;

constexpr std::size_t kSites = 5;

class Page : TextWriter {
 public:
  explicit Page(const ordered_json& report) : report_(report), verdict_(report.at("verdict")) {}

  std::string text(const Gate& gate) && {
    print("## freehold doctor: {}\n\n", text_of(report_.at("program"), "name"));
    print("**{}**\n\n{}", text_of(verdict_, "headline"), markdown_of(gate));
    figures();
    sentence(verdict_.at("advice"));
    fixes();
    sites();
    details();
    return std::move(*this).take();
  }

 private:
  // A member's text as Markdown.
  static std::string text_of(const ordered_json& of, const char* member) {
    return markdown_text(of.at(member).get<std::string>());
  }
  void sentence(const ordered_json& text) {
    if (!text.is_null() && !text.get<std::string>().empty()) print("{}\n\n", markdown_text(text.get<std::string>()));
  }

  void figures() {
    if (verdict_.at("speedup").at("value").get<double>() <= 0) return;
    print("| | |\n|---|---|\n");
    print("| {} instead of {} | {} as fast, where {:.3g} would be ideal |\n", text_of(verdict_.at("all"), "text"),
          text_of(verdict_.at("alone"), "text"), times_text(verdict_.at("speedup").get<Estimate>()),
          verdict_.at("ideal_speedup").get<double>());
    print("| of its time there is lost | {} |\n", percent_text(verdict_.at("lost").get<Estimate>()));
    for (const auto& part : verdict_.at("parts"))
      print("| of that: {} | {} |\n", text_of(part, "text"), percent_text(part.at("share").get<Estimate>()));
    print("\n");
  }

  void fixes() {
    if (report_.at("fixes").empty()) return;
    print("| tried | times as fast | limits | peak memory | |\n|---|--:|--:|--:|---|\n");
    for (const auto& fix : report_.at("fixes"))
      print("| {}{} | {} | {} | {} | {} |\n", text_of(fix, "text"), fix.at("best").get<bool>() ? " ←" : "",
            fix.at("gain_text").get<std::string>(), fix.at("range_text").get<std::string>(),
            fix.at("memory").is_null() ? "–" : fmt::format("{:.2f} ×", fix.at("memory").at("value").get<double>()),
            text_of(fix, "judgement"));
    print("\n");
  }

  void sites() {
    const ordered_json& recording = report_.at("recording");
    if (recording.is_null() || recording.at("sites").empty()) return;
    print("malloc and free take {} of its CPU time. Where:\n\n", percent_text(recording.at("cpu_share").get<double>()));
    print("| share | allocations | bytes | place |\n|--:|--:|--:|---|\n");
    std::size_t rows = 0;
    for (const auto& site : recording.at("sites")) {
      if (++rows > kSites) break;
      print("| {} | {} | {} | {} |\n", percent_text(site.at("time_share").get<double>()),
            count_text(site.at("time").at("calls").get<double>()), count_text(site.at("typical_bytes").get<double>()),
            markdown_code(site.at("place").at("text").get<std::string>()));
    }
    print("\n");
  }

  void details() {
    print("<details><summary>How this was measured</summary>\n\n");
    for (const char* list : {"findings", "notes"}) {
      for (const auto& text : report_.at(list)) print("* {}\n", markdown_text(text.get<std::string>()));
    }
    print("* A range is where nine of ten repetitions of all this would end.\n\n");
    const auto command = report_.at("settings").at("command").get<std::vector<std::string>>();
    const ordered_json& machine = report_.at("machine");
    print("{}, {} CPUs, {}, {}. The command: {}\n\n</details>\n", text_of(machine, "cpu_model"),
          machine.at("cpus").get<unsigned>(), text_of(machine, "system"), report_.at("date").get<std::string>(),
          markdown_code(shell_words(command)));
  }

  const ordered_json& report_;
  const ordered_json& verdict_;
};

// What HTML would take for its own, and the characters of `special` as `escape` writes them.
template <class Escape>
std::string escaped(std::string_view text, std::string_view special, Escape escape) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (special.find(c) != std::string_view::npos)
      out += escape(c);
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  return escaped(text, "\\`*_[]|#~", [](char c) { return std::string{'\\', c}; });
}

std::string markdown_code(std::string_view text) {
  // HTML rather than backticks: a name may have backticks, and a table would still split at its bars.
  return "<code>" + escaped(text, "\\`*_[]|~", [](char c) { return fmt::format("&#{};", int{c}); }) + "</code>";
}

std::string markdown_of(const Gate& gate) {
  if (gate.asked.empty()) return {};
  const char* const answer = gate.fails == Answer::kYes  ? "❌ fails"
                             : gate.fails == Answer::kNo ? "✅ passes"
                                                         : "❔ undecided";
  return fmt::format("| gate | | |\n|---|---|---|\n| {} | {} | {} |\n\n", markdown_code(gate.asked), answer,
                     markdown_text(gate.because));
}

std::string markdown_of(const ordered_json& report, const Gate& gate) { return Page(report).text(gate); }

}  // namespace freehold::doctor::report
