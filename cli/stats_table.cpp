// SPDX-License-Identifier: MIT
#include "cli/stats_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/support/units.hpp"

namespace freehold::cli {
namespace {

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.0f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

bool saw_work(const alloc::ClassStats& c) { return c.spans != 0 || c.refills != 0; }

}  // namespace

std::string stats_table(const alloc::Stats& s, const std::string& system_huge_pages) {
  std::string out;
  const auto line = [&out](const char* name, const std::string& value, const char* meaning) {
    out += fmt::format("  {:<22}{:>10}   {}\n", name, value, meaning);
  };
  out += "memory\n";
  line("reserved", bytes_text(s.reserved_bytes), "address space to grow into");
  line("committed", bytes_text(s.committed_bytes), "readable and writable");
  line("small blocks", bytes_text(s.small_span_bytes), "spans of size classes");
  line("page runs", bytes_text(s.run_bytes), "blocks above 32 KiB");
  line("mapped one by one", bytes_text(s.direct_bytes), "blocks too large for the arena");
  line("free, kept", bytes_text(s.free_dirty_bytes), "for reuse, until purged");
  line("caches, at most", bytes_text(s.cached_limit_bytes), "limit of all thread caches now");
  line("metadata, at most", bytes_text(s.metadata_bytes), "bitmaps, caches and maps");
  out += "events\n";
  line("given back", bytes_text(s.purged_bytes), fmt::format("to the system, in {} calls", s.purge_calls).c_str());
  line("spans claimed", std::to_string(s.span_claims), fmt::format("and {} returned", s.span_returns).c_str());
  line("threads, peak", std::to_string(s.peak_threads), fmt::format("{} at the end", s.threads).c_str());
  line("waits for a lock", std::to_string(s.lock_waits), "of the engine's own locks");
  line("late frees", std::to_string(s.late_frees), "after a thread's cache was gone");
  out += fmt::format("in force: {} CPUs ({}), caches by {}, huge pages {} (the system's mode: {})\n", s.cpus,
                     text_of(s.cpus_source), text_of(s.cache_mode), text_of(s.huge_pages),
                     system_huge_pages.empty() ? "unknown" : system_huge_pages);
  out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>12} {:>12}\n", "slot", "spans", "slots", "free", "refills", "drains");
  for (std::uint32_t i = 0; i < s.class_count; ++i) {
    const alloc::ClassStats& c = s.classes[i];
    if (!saw_work(c)) continue;
    out += fmt::format("{:>10} {:>8} {:>12} {:>8} {:>12} {:>12}\n", bytes_text(c.slot_bytes), c.spans, c.slots,
                       percent(c.free_slots, c.slots), c.refills, c.drains);
  }
  return out;
}

using nlohmann::ordered_json;

ordered_json stats_json(const alloc::Stats& s) {
  ordered_json json = {{"version", s.version}}, classes = ordered_json::array();
#define FREEHOLD_ADD(name, public_name) json[#name] = s.name;
  FREEHOLD_FIGURES(FREEHOLD_ADD)
#undef FREEHOLD_ADD
  json["cpus"] = s.cpus;
  json["cpus_source"] = text_of(s.cpus_source);
  json["cache_mode"] = text_of(s.cache_mode);
  json["huge_pages"] = text_of(s.huge_pages);
  for (std::uint32_t i = 0; i < s.class_count; ++i) {
#define FREEHOLD_PAIR(name) {#name, s.classes[i].name},
    classes.push_back({FREEHOLD_CLASS_FIGURES(FREEHOLD_PAIR)});
#undef FREEHOLD_PAIR
  }
  json["classes"] = std::move(classes);
  return json;
}

}  // namespace freehold::cli
