// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "tools/doctor/report/format.hpp"
#include "tools/doctor/report/memory.hpp"
#include "tools/doctor/report/words.hpp"
#include "tools/output/text.hpp"
#include "tools/support/shell.hpp"

namespace freehold::doctor::report {
namespace {

constexpr std::size_t kSitesShown = 5;
constexpr double kMebibyte = 1 << 20;

std::string reason_of(MemoryCause cause) {
  switch (cause) {
    case MemoryCause::kLittle: return "little: there is nothing to explain";
    case MemoryCause::kLiveData: return "live data: it has not freed what it holds, and no malloc can hold much less";
    case MemoryCause::kLeak:
      return "live data that grows from beginning to end, and none of it is freed: a leak, or a store without a limit";
    case MemoryCause::kOneBlock: return "live data, most of it in one block";
    case MemoryCause::kRounding: return "small blocks: headers and steps between sizes take more than the data";
    case MemoryCause::kArenas: return "glibc's arenas: several hold free memory that one would use again";
    case MemoryCause::kCaches: return "glibc's caches of threads, which hold free blocks";
    case MemoryCause::kFreePages: return "whole free pages, which malloc keeps and could give back";
    case MemoryCause::kHoles: return "holes between live blocks: what survives keeps pages from being given back";
    case MemoryCause::kMappings: return "memory that the program maps itself, not malloc";
    case MemoryCause::kStacks: return "stacks of threads, not malloc";
    case MemoryCause::kFiles: return "code, static data and mapped files, not malloc";
    case MemoryCause::kShared: return "files in tmpfs or shared mappings, not malloc";
    case MemoryCause::kPageTables: return "the kernel's page tables: pages are used far apart";
    case MemoryCause::kMixed: return "several things at once, of which none is most of it";
    case MemoryCause::kUndecided: return "undecided";
  }
  __builtin_unreachable();
}

const MemoryFix* fix_by(const MemoryDiagnosis& diagnosis, MemoryTreatment treatment) {
  for (const MemoryFix& fix : diagnosis.verdict.fixes)
    if (diagnosis.experiment.cells[fix.cell].variant.treatment == treatment && fix.helps) return &fix;
  return nullptr;
}

std::string saves(const MemoryFix* fix) {
  return fix == nullptr ? std::string(", which was not measured") : fmt::format(": measured, {}", effect_text(*fix));
}

bool is_not_mallocs(MemoryCause cause) { return cause >= MemoryCause::kMappings && cause <= MemoryCause::kPageTables; }

// Says whether so much of the live data at its peak is never used that it could be given back.
bool has_spare_capacity(const MemoryDiagnosis& diagnosis) {
  constexpr double kLeastSpare = 0.1;
  const auto& verdict = diagnosis.verdict;
  return verdict.parts.untouched_bytes >= kLeastSpare * (verdict.parts[MemoryPart::kLive] + verdict.parts.untouched_bytes);
}

std::string mapping_remedy_of(const MemoryDiagnosis& diagnosis) {
  if (!diagnosis.own) return "Look for mmap in the program: no malloc can change it. ";
  const auto& [name, program, use_malloc] = *diagnosis.own;
  if (use_malloc.empty()) return fmt::format("Look at what {} holds with its own tools: no malloc can change it. ", name);
  return fmt::format("Ask again with {} in the environment: {} maps memory itself, and its sites are seen only then. ",
                     use_malloc, name);
}

// Says what to do about the cause itself.
std::string remedy_of(const MemoryDiagnosis& diagnosis) {
  switch (diagnosis.verdict.cause) {
    case MemoryCause::kLeak: return "Free at the first site below what is not needed any more, or limit the store. ";
    case MemoryCause::kLiveData: return "Hold less at the sites below. ";
    case MemoryCause::kOneBlock:
      return has_spare_capacity(diagnosis)
                 ? "Give the block's spare capacity back (shrink_to_fit, swap), or hold it for a shorter time. "
                 : "Hold the block for a shorter time, or make it smaller: its pages are used, at least once. ";
    case MemoryCause::kRounding:
      return "Put these blocks into a pool (freehold::ObjectPool has no headers), or into larger blocks. ";
    case MemoryCause::kArenas:
      return fmt::format("Set MALLOC_ARENA_MAX=1{}. ", saves(fix_by(diagnosis, MemoryTreatment::kOneArena)));
    case MemoryCause::kCaches:
      return fmt::format("Set GLIBC_TUNABLES=glibc.malloc.tcache_count=0{}, or use fewer threads. ",
                         saves(fix_by(diagnosis, MemoryTreatment::kNoCaches)));
    case MemoryCause::kFreePages:
      return fmt::format("Call malloc_trim(0) when the program is idle{}. ",
                         saves(fix_by(diagnosis, MemoryTreatment::kTrimmed)));
    case MemoryCause::kHoles:
      return "Allocate what survives from a separate pool or heap (freehold::ObjectPool, freehold::PrivateHeap). ";
    case MemoryCause::kMappings: return mapping_remedy_of(diagnosis);
    case MemoryCause::kStacks: return "Use fewer threads, or less of each stack. ";
    case MemoryCause::kFiles:
      return "Map less of the files at a time; of variables (static arrays, .bss, .data), use less, or allocate them when "
             "they are needed. ";
    case MemoryCause::kShared: return "Put the files on a disk, or remove them sooner. ";
    case MemoryCause::kPageTables: return "Use addresses closer together, or huge pages. ";
    case MemoryCause::kLittle:
    case MemoryCause::kMixed:
    case MemoryCause::kUndecided: return {};
  }
  __builtin_unreachable();
}

struct Row {
  MemoryPart part;
  double bytes, at_peak;
};
std::vector<Row> rows_of(const MemoryDiagnosis& diagnosis) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < kMemoryParts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    rows.push_back({part, diagnosis.verdict.parts[part], diagnosis.verdict.at_peak[part]});
  }
  std::ranges::sort(rows, {}, [](const Row& row) { return std::pair(-row.bytes, row.part); });
  std::erase_if(rows, [](const Row& row) { return row.bytes < kMebibyte / 20 && row.at_peak < kMebibyte / 20; });
  return rows;
}

std::string row_text(const MemoryDiagnosis& diagnosis, MemoryPart part) {
  if (part == MemoryPart::kHoles && diagnosis.verdict.missing == MemoryFact::kDropped)
    return "in malloc: free, or live and not recorded";
  const bool is_rest = part == MemoryPart::kHoles && !diagnosis.verdict.is_divided;
  return is_rest ? "free in malloc: not divided further" : text_of(part);
}

double share_of(double bytes, double whole) { return whole > 0 ? bytes / whole : 0; }

// With the caller, as far as it is known: the site may be a function that all of the program allocates through.
std::string site_text(const LiveSite& site) {
  const auto& frames = site.place.stacks.front().frames;
  return frames.size() < 2 ? frames.front().text() : fmt::format("{}, from {}", frames[0].text(), short_text(frames[1]));
}

std::string habit_of(const LiveSite& site) {
  if (site.grows()) return ", never freed, grows all along";
  return site.is_kept() ? ", never freed" : "";
}

std::vector<LiveSite> sites_of(const MemoryDiagnosis& diagnosis) {
  std::vector<LiveSite> sites;
  if (!diagnosis.experiment.record) return sites;
  for (const LiveSite& site : diagnosis.experiment.record->sites)
    if (sites.size() < kSitesShown && site.at_peak >= 0.01 * diagnosis.experiment.record->peak_live) sites.push_back(site);
  return sites;
}

// Names the doctor's options that give the next run what this one lacked. Without --allocators all that is there is tried.
std::string effort_of(const MemoryDiagnosis& diagnosis) {
  const Settings& settings = diagnosis.settings;
  const bool lacks_time = diagnosis.is_cut && settings.budget_s > 0;
  return lacks_time ? fmt::format("--budget {}", kMoreTime * settings.budget_s) : std::string("--repeat 5");
}

std::vector<const MemoryFix*> fixes_of(const MemoryDiagnosis& diagnosis) {
  std::vector<const MemoryFix*> fixes;
  for (const MemoryFix& fix : diagnosis.verdict.fixes) fixes.push_back(&fix);
  std::ranges::sort(fixes, {}, [](const MemoryFix* fix) { return std::tuple(!fix->helps, -fix->saved.value, fix->cell); });
  return fixes;
}

}  // namespace

std::string mebibytes_text(double bytes) {
  const double mebibytes = bytes / kMebibyte;
  return std::abs(mebibytes) < 9.95 ? fmt::format("{:.1f} MiB", mebibytes) : fmt::format("{:.0f} MiB", mebibytes);
}

std::string effect_text(const MemoryFix& fix) {
  const auto& saved = fix.saved;
  constexpr double kShown = kMebibyte / 20;  // less is 0.0
  if ((saved.low <= 0 && saved.high >= 0) || std::abs(saved.value) < kShown) return "no clear difference";
  const bool is_less = saved.value > 0;
  const double sign = is_less ? 1 : -1, low = std::min(sign * saved.low, sign * saved.high),
               high = std::max(sign * saved.low, sign * saved.high);
  return fmt::format("{} {} ({:.1f} to {:.1f})", mebibytes_text(sign * saved.value), is_less ? "less" : "more",
                     low / kMebibyte, high / kMebibyte);
}

std::string effect_text(const MemoryDiagnosis& diagnosis, const MemoryFix& fix) {
  if (fix.failed) return fmt::format("failed: {}", diagnosis.experiment.cells[fix.cell].failure);
  if (diagnosis.experiment.cells[fix.cell].trials.empty()) return "not run";
  return effect_text(fix);
}

std::string text_of(MemoryPart part) {
  switch (part) {
    case MemoryPart::kLive: return "live data";
    case MemoryPart::kRounding: return "headers and rounding of live blocks";
    case MemoryPart::kArenas: return "free in malloc: in several arenas";
    case MemoryPart::kCaches: return "free in malloc: in caches of threads";
    case MemoryPart::kFreePages: return "free in malloc: whole pages";
    case MemoryPart::kHoles: return "free in malloc: holes between live blocks";
    case MemoryPart::kMappings: return "mappings of the program's own";
    case MemoryPart::kStacks: return "stacks";
    case MemoryPart::kFiles: return "code, variables, mapped files";
    case MemoryPart::kShared: return "shared memory, files in tmpfs";
    case MemoryPart::kPageTables: return "page tables";
  }
  __builtin_unreachable();
}

std::string doubt_text(const MemoryDiagnosis& diagnosis) {
  if (!diagnosis.verdict.missing) return {};
  switch (*diagnosis.verdict.missing) {
    case MemoryFact::kDropped:
      return diagnosis.experiment.record ? "the recording is not whole, so that live data is not known; a note says why"
                                         : "nothing was recorded, so that live data is not known";
    case MemoryFact::kTrials: return "the program was run only once";
    case MemoryFact::kRecordedDiffers: return "the recorded run held another amount than the others";
    case MemoryFact::kLiveExceeds:
      return "more data was recorded as live than memory was used: blocks that the program does not touch, or too few "
             "samples";
    case MemoryFact::kMoreSaved: return "another malloc saves more than this one is said to hold beside live data";
    case MemoryFact::kDivided:
      return diagnosis.is_cut ? "most of it is free in malloc, and there was no time to try where"
                              : "most of it is free in malloc, and where was not tried: arenas, caches, trimmed";
    case MemoryFact::kMaySave:
      return "most of it is free in malloc, and a setting of glibc's may give it back, but the runs differ too much to say "
             "so";
    default: return "what it holds is near a limit between two causes";
  }
}

std::string headline_of(const MemoryDiagnosis& diagnosis) {
  const auto& verdict = diagnosis.verdict;
  std::string why = reason_of(verdict.cause);
  if (verdict.cause == MemoryCause::kMixed) {
    const auto rows = rows_of(diagnosis);
    if (rows.size() > 1)
      why = fmt::format("several things, first of all {} and {}", text_of(rows[0].part), text_of(rows[1].part));
  }
  if (verdict.cause == MemoryCause::kUndecided) why += ": " + doubt_text(diagnosis);
  return fmt::format("It takes {}: {}.", mebibytes_text(verdict.mean_bytes), why);
}

std::string advice_of(const MemoryDiagnosis& diagnosis) {
  const auto& verdict = diagnosis.verdict;
  std::string advice = remedy_of(diagnosis);
  if (verdict.cause == MemoryCause::kLittle || verdict.cause == MemoryCause::kUndecided) return advice;
  if (is_not_mallocs(verdict.cause)) {  // what helps there helps by chance, or with the rest
    advice.pop_back();
    return advice;
  }
  if (verdict.best_fix) {
    const MemoryFix& best = verdict.fixes[*verdict.best_fix];
    advice += fmt::format("Of what was tried, {} helps most: {}.", diagnosis.experiment.cells[best.cell].variant.how.name,
                          effect_text(best));
  } else {
    advice += "Nothing that was tried helps beyond chance.";
  }
  return advice;
}

Document document_of(const MemoryDiagnosis& diagnosis, const Gate& gate) {
  using Kind = Column::Kind;
  const auto& [settings, verdict, record] = std::tie(diagnosis.settings, diagnosis.verdict, diagnosis.experiment.record);
  Document out{"freehold doctor --memory: " + shell_words(settings.command), machine_line(diagnosis.machine)};
  out.parts.emplace_back(Line{"Asked", "Why does it take so much memory?"});
  out.parts.emplace_back(Headline{"Answer", headline_of(diagnosis)});
  out.parts.emplace_back(Line{"Do", advice_of(diagnosis)});
  if (verdict.cause == MemoryCause::kUndecided)
    out.parts.emplace_back(Line{
        "Decide", "Ask again:", line_again(settings, diagnosis.program, "--memory " + effort_of(diagnosis), settings.work)});
  out.parts.emplace_back(Judgement{text_of(gate)});

  out.parts.emplace_back(
      Section{"Parts", record ? "mean over the recorded run, and when most was resident" : "nothing was recorded"});
  Rows parts;
  for (const Row& row : rows_of(diagnosis))
    parts.push_back({fmt::format("{:.0f}%", 100 * share_of(row.bytes, verdict.mean_bytes)), mebibytes_text(row.bytes),
                     mebibytes_text(row.at_peak), row_text(diagnosis, row.part)});
  out.parts.emplace_back(
      Table{{{.title = "share"}, {.title = "mean"}, {.title = "resident peak"}, {.title = "what", .kind = Kind::kText}},
            std::move(parts)});
  if (verdict.parts.untouched_bytes >= kMebibyte)
    out.parts.emplace_back(Line{
        "", fmt::format("Allocated and never used, so not resident: {}.", mebibytes_text(verdict.parts.untouched_bytes))});

  if (const auto sites = sites_of(diagnosis); !sites.empty()) {
    out.parts.emplace_back(
        Section{"Live data", fmt::format("when most was live, {} (another moment than the resident peak, perhaps)",
                                         mebibytes_text(record->peak_live))});
    Rows rows;
    for (const LiveSite& site : sites)
      rows.push_back({fmt::format("{:.0f}%", 100 * share_of(site.at_peak, record->peak_live)), mebibytes_text(site.at_peak),
                      site_text(site) + habit_of(site)});
    out.parts.emplace_back(
        Table{{{.title = "share"}, {.title = "bytes"}, {.title = "site", .kind = Kind::kCode}}, std::move(rows)});
  }

  if (!verdict.fixes.empty()) out.parts.emplace_back(Section{"Tried", "mean over the run"});
  Rows tried;
  for (const MemoryFix* fix : fixes_of(diagnosis))
    tried.push_back({diagnosis.experiment.cells[fix->cell].variant.how.name, effect_text(diagnosis, *fix)});
  out.parts.emplace_back(
      Table{{{.title = "with", .kind = Kind::kText}, {.title = "", .kind = Kind::kText}}, std::move(tried)});

  if (!diagnosis.notes.empty()) out.parts.emplace_back(Section{"Notes"});
  out.parts.emplace_back(diagnosis.notes);
  return out;
}

}  // namespace freehold::doctor::report
