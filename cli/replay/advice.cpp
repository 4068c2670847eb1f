// SPDX-License-Identifier: MIT
#include "cli/replay/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <exception>

#include "cli/replay/replay.hpp"
#include "cli/report/text.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/machine.hpp"
#include "cli/support/statistics.hpp"

namespace freehold::cli::replay {
namespace {
using freehold::doctor::SiteTrace;

constexpr double kWorthAChange = 0.9;    // of malloc's time: a smaller gain is no reason to change code
constexpr double kWorthMoreCode = 0.85;  // of the drop-in library's time
constexpr double kLeastTime = 0.02;      // of malloc's: the least that may be left after the baseline is subtracted

struct Measured {
  std::vector<double> pair_ns, resident;
  std::string failure;
};

void measure(const Program& program, const Maker& maker, unsigned cpus, Measured& into) {
  if (!into.failure.empty()) return;
  try {
    const Outcome outcome = replay(program, maker);
    if (!outcome.complete) into.failure = "ran out of slots while threads held free ones";
    if (!outcome.correct) into.failure = "a block was overwritten";
    const double pairs = static_cast<double>(std::max<std::uint64_t>(program.begins + program.ends, 2)) / 2;
    const auto busy = static_cast<double>(std::min<std::size_t>(cpus, program.threads.size()));
    into.pair_ns.push_back(static_cast<double>(outcome.elapsed_ns) * busy / pairs);
    into.resident.push_back(static_cast<double>(outcome.resident_bytes));
  } catch (const std::exception& error) {
    into.failure = error.what();
  }
}

std::string type_name(const std::string& pool) {
  if (pool == "single-thread") return "freehold::SingleThreadPool";
  std::string name;
  bool begins = true;
  for (const char c : pool) {
    if (c != '-') name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '-';
  }
  return fmt::format("freehold::pool::NativePool<freehold::pool::{}>", name);
}

class Judge {
 public:
  Judge(const SiteTrace& trace, const Program& program, const std::vector<Measured>& measured) : measured_(measured) {
    advice_.site = trace.site;
    advice_.bytes = trace.bytes;
    advice_.threads = trace.threads;
    advice_.blocks = trace.blocks;
    advice_.peak_live = trace.peak_live;
    advice_.cpu_share = trace.cpu_share;
    advice_.program_pair_ns = trace.pair_ns;
    advice_.capacity = std::bit_ceil(std::max<std::size_t>(2 * trace.peak_live, 64 * program.threads.size()));
  }

  SiteAdvice judge() {
    add_rows();
    const Row* const malloc = find(Kind::kMalloc);
    advice_.best = "malloc";
    if (malloc != nullptr) choose(*malloc);
    return std::move(advice_);
  }

 private:
  void add_rows() {
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const Measured& of = measured_[i];
      if (of.pair_ns.empty() && of.failure.empty()) continue;  // not tried
      Row row{.name = makers()[i].name, .kind = makers()[i].kind, .failure = of.failure};
      if (of.failure.empty()) {
        row.pair_ns = median(of.pair_ns);
        row.spread = spread(of.pair_ns);
        row.resident_bytes = median(of.resident);
      }
      if (row.kind == Kind::kBaseline) baseline_ns_ = row.pair_ns;
      advice_.rows.push_back(std::move(row));
    }
    std::ranges::sort(advice_.rows, {}, [](const Row& row) {
      return std::tuple(row.kind == Kind::kBaseline, !row.failure.empty(), row.pair_ns);
    });
  }
  [[nodiscard]] const Row* find(Kind kind) const {
    const auto found =
        std::ranges::find_if(advice_.rows, [&](const Row& row) { return row.kind == kind && row.failure.empty(); });
    return found == advice_.rows.end() ? nullptr : &*found;
  }
  [[nodiscard]] double ratio(const Row& row, const Row& malloc) const {
    const double all = std::max(malloc.pair_ns - baseline_ns_, 1e-3);
    return std::max((row.pair_ns - baseline_ns_) / all, kLeastTime);
  }

  void choose(const Row& malloc) {
    const Row* best = nullptr;
    for (const Row& row : advice_.rows)
      if (row.failure.empty() && (row.kind == Kind::kPool || row.kind == Kind::kHeap)) {
        best = &row;
        break;  // the fastest first
      }
    const Row* const drop_in = find(Kind::kEngine);
    if (drop_in != nullptr && (best == nullptr || ratio(*best, malloc) > kWorthMoreCode * ratio(*drop_in, malloc)))
      best = drop_in;
    if (best == nullptr || ratio(*best, malloc) > kWorthAChange) {
      advice_.sentence = "The system's malloc serves this site as well as any pool or heap here. Leave it.";
      return;
    }
    advice_.best = best->name;
    advice_.ratio = ratio(*best, malloc);
    advice_.gain = advice_.cpu_share * (1 - advice_.ratio);
    advice_.code = code_for(best->name, best->kind, advice_.site, advice_.bytes, advice_.capacity);
    advice_.sentence =
        best->kind == Kind::kEngine
            ? fmt::format(
                  "Run the program under libfreehold (freehold run -- …): {:.2f} of malloc's time. No pool is enough "
                  "faster to be worth a change of code. Saves about {:.1f}% of the program's CPU time.",
                  advice_.ratio, 100 * advice_.gain)
            : fmt::format("Use the {} {}: {:.2f} of malloc's time. Saves about {:.0f}% of the program's CPU time.",
                          best->kind == Kind::kHeap ? "heap" : "pool", best->name, advice_.ratio, 100 * advice_.gain);
  }

  const std::vector<Measured>& measured_;
  SiteAdvice advice_;
  double baseline_ns_ = 0;
};

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

std::string code_for(const std::string& name, Kind kind, const std::string& site, std::uint64_t bytes,
                     std::size_t capacity) {
  const std::string head =
      fmt::format("struct Node {{ unsigned char bytes[{}]; }};  // the type that is made in {}\n", bytes, printable(site));
  if (kind != Kind::kPool && kind != Kind::kHeap) return {};
  if (kind == Kind::kPool) {
    return fmt::format(
        "#include \"freehold/pool.hpp\"\n\n"
        "{}"
        "using Pool = {};\n"
        "freehold::ObjectPool<Node, Pool> g_nodes({});\n\n"
        "void use() {{\n"
        "  auto node = g_nodes.make();  // instead of new; null when all are in use; back when it ends{}\n"
        "}}\n",
        head, type_name(name), capacity, name == "single-thread" ? "" : ", in any thread");
  }
  const bool shared = name == "private-heap";
  return fmt::format(
      "#include \"freehold/heap.hpp\"\n"
      "#include <new>\n\n"
      "{}"
      "freehold::{} g_heap;{}\n\n"
      "Node* make() {{ return new (g_heap.allocate(sizeof(Node))) Node; }}  // check for null if the heap has a limit\n"
      "void end(Node* node) {{\n"
      "  node->~Node();\n"
      "  g_heap.deallocate(node, sizeof(Node));\n"
      "}}\n",
      head, shared ? "PrivateHeap" : "OwnerLockedHeap", shared ? "" : "  // for one thread");
}

Advice advice_of(const std::vector<SiteTrace>& traces, const ReplaySettings& settings,
                 const std::function<bool()>& is_interrupted) {
  const unsigned cpus = this_machine().cpus;
  Advice advice;
  for (const SiteTrace& trace : traces) {
    const Program program = program_of(trace);
    std::vector<Measured> measured(makers().size());
    for (unsigned round = 0; round < settings.repeat; ++round)
      for (std::size_t i = 0; i < makers().size(); ++i) {
        if (is_interrupted()) {
          advice.complete = false;
          return advice;
        }
        if (trace.threads == 1 || !makers()[i].one_thread) measure(program, makers()[i], cpus, measured[i]);
      }
    advice.sites.push_back(Judge(trace, program, measured).judge());
  }
  return advice;
}

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
