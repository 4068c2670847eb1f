// SPDX-License-Identifier: MIT
#include "cli/stats_json.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "cli/stats_table.hpp"

namespace freehold::cli {
namespace {
using nlohmann::ordered_json;

ordered_json class_json(const alloc::ClassStats& c) {
  return {{"slot_bytes", c.slot_bytes}, {"spans", c.spans},     {"slots", c.slots},
          {"free_slots", c.free_slots}, {"refills", c.refills}, {"drains", c.drains}};
}

}  // namespace

ordered_json stats_json(const alloc::Stats& s) {
  ordered_json classes = ordered_json::array();
  for (std::uint32_t i = 0; i < s.class_count; ++i) classes.push_back(class_json(s.classes[i]));
  return {
      {"version", s.version},
      {"reserved_bytes", s.reserved_bytes},
      {"committed_bytes", s.committed_bytes},
      {"small_span_bytes", s.small_span_bytes},
      {"run_bytes", s.run_bytes},
      {"free_dirty_bytes", s.free_dirty_bytes},
      {"direct_bytes", s.direct_bytes},
      {"metadata_bytes", s.metadata_bytes},
      {"cached_limit_bytes", s.cached_limit_bytes},
      {"purged_bytes", s.purged_bytes},
      {"purge_calls", s.purge_calls},
      {"span_claims", s.span_claims},
      {"span_returns", s.span_returns},
      {"lock_waits", s.lock_waits},
      {"threads", s.threads},
      {"peak_threads", s.peak_threads},
      {"late_frees", s.late_frees},
      {"cpus", s.cpus},
      {"cpus_source", text_of(s.cpus_source)},
      {"cache_mode", text_of(s.cache_mode)},
      {"huge_pages", text_of(s.huge_pages)},
      {"classes", std::move(classes)},
  };
}

}  // namespace freehold::cli
