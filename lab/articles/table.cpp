// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "cli/report/text.hpp"
#include "lab/articles/findings.hpp"

namespace freehold::cli::articles {
namespace {

// Characters, not bytes.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

void add_claim(std::string& out, const Claim& claim) {
  out += fmt::format("\n  {:<13} {}\n", name_of(claim.verdict), claim.statement);
  const std::string indent(16, ' ');
  if (!claim.figure.empty()) out += wrap(claim.figure, kWidth, indent);
  if (claim.ratio)
    out += fmt::format("{}{:.2f} ({:.2f}–{:.2f} in the sets), reproduced from {:.2f} {}\n", indent, *claim.ratio,
                       *claim.least, *claim.greatest, claim.threshold, claim.at_least ? "up" : "down");
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

}  // namespace

std::string table_of(const Results& results, const Findings& findings) {
  std::string out = machine_line(results.machine);
  out += fmt::format("medians of {} sets\n", results.plan.choice.repeat);
  for (std::uint32_t article = kFirstArticle; article <= kLastArticle; ++article) {
    if (std::ranges::count(findings.claims, article, &Claim::article) == 0) continue;
    out += fmt::format("\nARTICLE {}\n", article);
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

}  // namespace freehold::cli::articles
