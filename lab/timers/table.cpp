// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "lab/timers/experiment.hpp"
#include "tools/output/text.hpp"

namespace freehold::lab::timers {
namespace {

constexpr std::size_t kColumns = 6;  // figures beside each other

// A row's phase, shown in one column.
struct Column {
  Row row;
  Phase phase = Phase::kAll;
};

std::vector<Column> columns_of(const Settings& settings, bool sums_only) {
  std::vector<Column> columns;
  for (const Row& row : rows_of(settings)) {
    const std::vector<Phase>& phases = phases_of(row.test);
    for (const Phase phase : phases) {
      if (!sums_only || phase == phases.back()) columns.push_back({row, phase});
    }
  }
  return columns;
}

std::string short_number(std::uint32_t n) {
  if (n >= 1'000'000 && n % 1'000'000 == 0) return fmt::format("{}M", n / 1'000'000);
  if (n >= 1'000 && n % 1'000 == 0) return fmt::format("{}k", n / 1'000);
  return std::to_string(n);
}

std::string heading(const Row& row) { return fmt::format("{} {}", name_of(row.test), short_number(row.timers)); }

std::string subheading(const Column& column) {
  if (column.row.test == Trial::kShared) return fmt::format("{} user{}", column.row.users, column.row.users == 1 ? "" : "s");
  return column.row.test == Trial::kRearm ? "a pair" : std::string(name_of(column.phase));
}

class Tables {
 public:
  explicit Tables(const Results& results) : results_(results) {
    for (const Candidate* one : results.settings.structures) width_ = std::max(width_, one->name.size());
  }

  void head() {
    const Settings& s = results_.settings;
    out_.print("{}medians of {} set{}; load: {} threads\n", machine_line(results_.machine), s.repeat,
               s.repeat == 1 ? "" : "s", s.background);
  }

  void targets() {
    const std::vector<Claim> all = targets_of(results_);
    if (all.empty()) return;
    out_.print("\n{:<68}{:>8}{:>14}{:>10}\n", "- missed, ? undecided", "ratio", "limits", "wanted");
    for (const Claim& t : all) {
      const char mark = t.outcome == Outcome::kReproduced ? ' ' : t.outcome == Outcome::kRefuted ? '-' : '?';
      out_.print("{} {:<66}{:>8.2f}{:>14}{:>10}\n", mark, t.statement, t.ratio->median,
                 fmt::format("{:.2f}-{:.2f}", t.ratio->least, t.ratio->greatest),
                 fmt::format("{} {}", t.at_least ? ">=" : "<=", t.threshold));
    }
  }

  void alone() {
    figures("NANOSECONDS of CPU per operation, nothing else running", false, [](const Series& series, Phase phase) {
      return series.job.load == Load::kAlone ? number(figures_of(&series, phase, Figure::kCpu)) : "";
    });
    figures(fmt::format("AGAINST {}: ratio of CPU time, nothing else running", kArticlesQueue), true,
            [this](const Series& series, Phase phase) {
              if (series.job.load != Load::kAlone) return std::string();
              return number(ratios_of(&series, results_.find(series.job.row(), Load::kAlone, kArticlesQueue), phase));
            });
  }

  // Beside threads of a load: CPU time, how it grew, the clock on the wall, and how often a user slept.
  void loaded(Load load, std::string_view what) {
    const auto only = [load](auto figure) {
      return [load, figure](const Series& series, Phase phase) {
        return series.job.load == load ? figure(series, phase) : std::string();
      };
    };
    figures(fmt::format("NANOSECONDS of CPU beside threads that {}, and divided by those alone", what), true,
            only([this](const Series& series, Phase phase) {
              const Series* const alone = results_.find(series.job.row(), Load::kAlone, series.job.name());
              const auto ratio = median_of(ratios_of(&series, alone, phase));
              return fmt::format("{}{}", number(figures_of(&series, phase, Figure::kCpu)),
                                 ratio ? fmt::format(" {:4.2f}", *ratio) : "");
            }));
    figures(fmt::format("NANOSECONDS on the wall beside threads that {}", what), true,
            only([](const Series& series, Phase phase) { return number(figures_of(&series, phase, Figure::kWall)); }));
    figures(fmt::format("SLEEPS of the users per thousand operations beside threads that {}", what), true,
            only([](const Series& series, Phase phase) { return number(figures_of(&series, phase, Figure::kSleeps)); }));
  }

  void notes() {
    const std::string notes = list_of(notes_of(results_), kWidth);
    if (!notes.empty()) out_.print("\n{}", notes);
  }

  std::string text() && { return std::move(out_).take(); }

 private:
  // The text of a series in a phase; empty if nothing is shown.
  using Text = std::function<std::string(const Series&, Phase)>;

  [[nodiscard]] static std::string number(const Sets& sets) { return figure_text(median_of(sets), "-"); }

  void figures(const std::string& title, bool sums_only, const Text& text) {
    const std::vector<Column> columns = columns_of(results_.settings, sums_only);
    out_.print("\n{}\n", title);
    for (std::size_t first = 0; first < columns.size(); first += kColumns)
      block(std::span(columns).subspan(first, std::min(kColumns, columns.size() - first)), text);
  }

  void block(std::span<const Column> columns, const Text& text) {
    out_.print("\n{:<{}}", "", width_);
    for (std::size_t i = 0; i < columns.size(); ++i)
      out_.print(" {:>13}", i == 0 || columns[i].row != columns[i - 1].row ? heading(columns[i].row) : "");
    out_.print("\n{:<{}}", "", width_);
    for (const Column& column : columns) out_.print(" {:>13}", subheading(column));
    out_.print("\n");
    for (const Candidate* const structure : results_.settings.structures) {
      std::string line;
      bool any = false;
      for (const Column& column : columns) {
        const std::string value = text_in(column, structure->name, text);
        any |= !value.empty();
        line += fmt::format(" {:>13}", value);
      }
      if (any) out_.print("{:<{}}{}\n", structure->name, width_, line);
    }
  }

  [[nodiscard]] std::string text_in(const Column& column, std::string_view structure, const Text& text) const {
    for (const Load load : results_.settings.loads) {
      const Series* const series = results_.find(column.row, load, structure);
      if (series == nullptr) continue;
      if (std::string value = text(*series, column.phase); !value.empty()) return value;
    }
    return {};
  }

  const Results& results_;
  std::size_t width_ = 8;
  TextWriter out_;
};

}  // namespace

std::string table_of(const Results& results) {
  const auto has = [&](Load load) { return std::ranges::count(results.settings.loads, load) > 0; };
  Tables tables(results);
  tables.head();
  tables.targets();
  if (has(Load::kAlone)) tables.alone();
  if (has(Load::kBusy)) tables.loaded(Load::kBusy, "touch memory");
  if (has(Load::kHeap)) tables.loaded(Load::kHeap, "allocate and free");
  tables.notes();
  return std::move(tables).text();
}

}  // namespace freehold::lab::timers
