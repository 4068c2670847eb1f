// SPDX-License-Identifier: MIT
#include "cli/replay/advice.hpp"

#include <fmt/format.h>

#include "cli/report/text.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::replay {
namespace {

double malloc_ns(const SiteAdvice& site) {
  for (const Row& row : site.rows)
    if (row.kind == Kind::kMalloc) return row.pair_ns;
  return 0;
}

void add_row(std::string& text, const Row& row, double malloc) {
  if (!row.failure.empty()) {
    text += fmt::format("  {:<24}  {}\n", row.name, row.failure);
    return;
  }
  text += fmt::format("  {:<24}{:>9.1f}{:>9}{:>8.0f}%{:>11.1f}\n", row.name, row.pair_ns,
                      malloc > 0 ? fmt::format("{:.2f}", row.pair_ns / malloc) : "", 100 * row.spread,
                      row.resident_bytes / 1048576);
}

}  // namespace

std::string table_of(const Advice& advice) {
  std::string text;
  for (const SiteAdvice& site : advice.sites) {
    text += fmt::format("{}\n  {} blocks of {} bytes, {} alive at most, {} thread{}; {:.1f}% of the program's CPU time\n\n",
                        printable(site.site), site.blocks, site.bytes, site.peak_live, site.threads,
                        site.threads == 1 ? "" : "s", 100 * site.cpu_share);
    text += fmt::format("  {:<24}{:>9}{:>9}{:>9}{:>11}\n", "", "ns/pair", "/malloc", "spread", "MiB more");
    for (const Row& row : site.rows) add_row(text, row, malloc_ns(site));
    text += fmt::format("\n{}", wrap(site.sentence, kWidth, "  "));
    if (!site.code.empty()) text += fmt::format("\n{}", site.code);
    text += '\n';
  }
  if (advice.sites.empty()) text += "No site allocates blocks of one size often enough for a pool. Try freehold run.\n";
  if (!advice.complete) text += "Interrupted: some sites are missing.\n";
  return text;
}

}  // namespace freehold::cli::replay
