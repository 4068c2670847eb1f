// SPDX-License-Identifier: MIT
#include "lab/articles/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lab/experiment/assets.hpp"
#include "lab/experiment/command.hpp"
#include "tools/output/json.hpp"
#include "tools/output/page.hpp"
#include "tools/output/text.hpp"

namespace freehold::lab::articles {
namespace {

// Characters, not bytes.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

void add_claim(std::string& out, const Claim& claim) {
  out += fmt::format("\n  {:<13} {}\n", name_of(claim.outcome), claim.statement);
  const std::string indent(16, ' ');
  if (!claim.figure.empty()) out += wrap(claim.figure, kWidth, indent);
  if (claim.ratio) out += wrap(ratio_text(claim), kWidth, indent);
  if (!claim.limits.empty()) out += wrap("Limits: " + claim.limits + ".", kWidth, indent);
}

void add_table(std::string& out, const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(length_of(column));
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], length_of(row[i]));
  out += '\n' + wrap(table.title + '.', kWidth, "  ");
  const auto add_row = [&](const std::vector<std::string>& row) {
    out += "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - length_of(row[i]), ' ');
      out += i == 0 ? row[i] + fill : "  " + fill + row[i];
    }
    out += '\n';
  };
  add_row(table.columns);
  for (const auto& row : table.rows) add_row(row);
}

using nlohmann::ordered_json;

ordered_json claim_json(const Claim& claim) {
  ordered_json json{{"article", claim.article},
                    {"id", claim.id},
                    {"claim", claim.statement},
                    {"verdict", name_of(claim.outcome)},
                    {"figure", text_or_null(claim.figure)},
                    {"limits", text_or_null(claim.limits)}};
  json.update(ratio_json(claim));
  return json;
}

ordered_json plot_json(const Plot& plot) {
  const auto numbers = [](const std::vector<std::optional<double>>& values) {
    return list_json(values, [](const auto& value) -> ordered_json { return or_null(value); });
  };
  return {{"article", plot.article},
          {"title", plot.title},
          {"x_name", plot.x_name},
          {"y_name", plot.y_name},
          {"x", plot.x},
          {"lines", list_json(plot.lines, [&](const Plot::Line& line) -> ordered_json {
             return {{"label", line.label},
                     {"values", numbers(line.values)},
                     {"least", numbers(line.least)},
                     {"greatest", numbers(line.greatest)},
                     {"article", numbers(line.article)}};
           })}};
}

ordered_json bars_json(const Bars& bars) {
  return {{"article", bars.article},
          {"title", bars.title},
          {"unit", bars.unit},
          {"unit_of_article", bars.unit_of_article},
          {"bars", list_json(bars.bars, [](const Bars::Bar& bar) -> ordered_json {
             const auto of_value = [&](double Range::* part) {
               return bar.value ? ordered_json(*bar.value.*part) : ordered_json(nullptr);
             };
             return {{"label", bar.label},
                     {"kind", bar.kind},
                     {"value", of_value(&Range::median)},
                     {"least", of_value(&Range::least)},
                     {"greatest", of_value(&Range::greatest)},
                     {"article", or_null(bar.article)},
                     {"default", bar.is_default}};
           })}};
}

}  // namespace

PageParts page_parts() {
  return {.title = "Freehold: the articles",
          .brand = "Freehold · five articles, claim by claim",
          .question = "Which claims of the articles hold on this machine?",
          .sections = assets::articles_html,
          .script = assets::articles_js};
}

std::string table_of(const Results& results) {
  const Findings findings = findings_of(results);
  std::string out = machine_line(results.machine);
  for (std::uint32_t article = kFirstArticle; article <= kLastArticle; ++article) {
    if (std::ranges::count(findings.claims, article, &Claim::article) == 0) continue;
    out += fmt::format("\nARTICLE {}\n", article) + wrap(counts_of(results, article), kWidth, "  ");
    for (const Claim& claim : findings.claims) {
      if (claim.article == article) add_claim(out, claim);
    }
    for (const Table& table : findings.tables) {
      if (table.article == article) add_table(out, table);
    }
  }
  if (!findings.notes.empty()) out += '\n' + list_of(findings.notes, kWidth);
  return out;
}

ordered_json results_json(const Results& results) {
  const Findings findings = findings_of(results);
  ordered_json tables = list_json(findings.tables, [](const Table& table) -> ordered_json {
    return {{"article", table.article}, {"title", table.title}, {"columns", table.columns}, {"rows", table.rows}};
  });
  const Choice& choice = results.choice;
  ordered_json json = head_json("freehold-articles", results);
  json.update({{"settings",
                {{"articles", choice.articles}, {"repeat", choice.repeat}, {"quick", choice.quick}, {"full", choice.full}}},
               {"counts", list_json(choice.articles, [&](std::uint32_t article) { return counts_of(results, article); })},
               {"claims", list_json(findings.claims, claim_json)},
               {"tables", std::move(tables)},
               {"plots", list_json(findings.plots, plot_json)},
               {"bars", list_json(findings.bars, bars_json)},
               {"notes", findings.notes}});
  return json;
}

}  // namespace freehold::lab::articles
