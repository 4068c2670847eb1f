// SPDX-License-Identifier: MIT
#include "cli/doctor/results_json.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "cli/doctor/format.hpp"
#include "cli/report/json.hpp"

namespace freehold::cli::doctor {
namespace {
using namespace freehold::doctor;
using nlohmann::ordered_json;

std::string_view name_of(WaitKind kind) {
  switch (kind) {
    case WaitKind::kMutex: return "mutex";
    case WaitKind::kReadLock: return "read-lock";
    case WaitKind::kWriteLock: return "write-lock";
    case WaitKind::kSpinLock: return "spin-lock";
    case WaitKind::kCondition: return "condition";
    case WaitKind::kSemaphore: return "semaphore";
    case WaitKind::kFutexLock: return "futex-lock";
    case WaitKind::kFutexWait: return "futex-wait";
  }
  __builtin_unreachable();
}

// Frames recur in thousands of stacks: each is written once, stacks name it by its place.
class Frames {
 public:
  explicit Frames(std::size_t longest_name) : longest_name_(longest_name) {}

  std::size_t place_of(const Frame& frame) {
    const auto key = std::tuple(frame.function, frame.file, frame.line, frame.module, frame.inlined);
    const auto [found, is_new] = places_.try_emplace(key, json_.size());
    if (is_new)
      json_.push_back({{"function", text_or_null(clipped(frame.function))},
                       {"file", text_or_null(frame.file)},
                       {"line", frame.line == 0 ? ordered_json(nullptr) : ordered_json(frame.line)},
                       {"module", text_or_null(frame.module)},
                       {"inlined", frame.inlined}});
    return found->second;
  }
  ordered_json json() && { return std::move(json_); }
  [[nodiscard]] std::string clipped(const std::string& name) const {
    return name.size() > longest_name_ ? name.substr(0, longest_name_) + "…" : name;
  }

 private:
  std::size_t longest_name_;
  std::map<std::tuple<std::string, std::string, unsigned, std::string, bool>, std::size_t> places_;
  ordered_json json_ = ordered_json::array();
};

class Writer {
 public:
  explicit Writer(const Limits& limits) : limits_(limits), frames_(limits.characters_of_a_name) {}

  ordered_json recording(const Attribution& of) {
    ordered_json json = totals(of);
    json["sites"] = list(of.sites, limits_.sites, [this](const AllocationSite& site) { return site_json(site); });
    json["sites_left_out"] = of.sites.size() - std::min(of.sites.size(), limits_.sites);
    json["lock_waits"] = list(of.lock_waits, limits_.sites, [this](const WaitSite& site) { return wait_json(site); });
    json["idle_waits"] = list(of.idle_waits, limits_.sites, [this](const WaitSite& site) { return wait_json(site); });
    json["remote_sites"] = list(of.remote_sites, limits_.sites, [&](const RemoteSites& row) {
      return ordered_json{{"allocated_at", site_text(of, row.site)},
                          {"site", row.site},
                          {"freed_at", place_json(row.freed_at)},
                          {"frees", row.frees},
                          {"share", row.share}};
    });
    json["remote_threads"] = list(of.remote_threads, limits_.sites, [](const RemoteThreads& row) {
      return ordered_json{{"from", row.from}, {"to", row.to}, {"frees", row.frees}, {"share", row.share}};
    });
    json["sharing"] = list(of.sharing, limits_.sites, [this](const SharingSites& row) {
      return ordered_json{{"places", {place_json(row.places[0]), place_json(row.places[1])}},
                          {"bytes", {row.bytes[0], row.bytes[1]}},
                          {"lines", row.lines},
                          {"lines_for_long", row.lines_for_long}};
    });
    json["sizes"] = list(of.sizes, all(), [](const SizeBin& bin) {
      return ordered_json{{"most_bytes", bin.most_bytes}, {"allocations", bin.allocations}, {"bytes", bin.bytes}};
    });
    json["lifetimes"] = list(of.lifetimes, all(), [](const LifetimeBin& bin) {
      return ordered_json{{"most_s", bin.most_s}, {"blocks", bin.blocks}};
    });
    json["lived_on"] = of.live_at_exit;
    json["history"] = list(of.history, all(), [](const TimePoint& point) {
      return ordered_json{
          {"at_s", point.at_s}, {"live_bytes", point.live_bytes}, {"allocations_per_s", point.allocations_per_s}};
    });
    json["frames"] = std::move(frames_).json();
    return json;
  }

 private:
  static constexpr std::size_t all() { return std::numeric_limits<std::size_t>::max(); }

  template <class Row>
  static ordered_json list(const std::vector<Row>& rows, std::size_t most, auto json_of) {
    ordered_json json = ordered_json::array();
    for (const Row& row : rows) {
      if (json.size() == most) break;
      json.push_back(json_of(row));
    }
    return json;
  }

  static ordered_json call_json(const CallTime& time) {
    return {{"calls", time.calls},
            {"cpu_s", time.cpu_s},
            {"cpu_s_error", time.cpu_s_error},
            {"blocked_s", time.blocked_s},
            {"blocked_s_error", time.blocked_s_error},
            {"mean_ns", time.mean_ns()}};
  }

  static ordered_json totals(const Attribution& of) {
    return {{"processes", of.processes},
            {"threads", of.threads},
            {"seconds", of.seconds},
            {"cpu_s", of.cpu_s},
            {"thread_s", of.thread_s},
            {"samples", of.samples},
            {"dropped", of.dropped},
            {"probe_share", of.probe_share},
            {"mapped_bytes", of.mapped_bytes},
            {"allocating", call_json(of.allocating)},
            {"freeing", call_json(of.freeing)},
            {"allocations_per_s", of.allocations_per_s},
            {"frees_per_s", of.frees_per_s},
            {"cpu_share", of.cpu_share},
            {"cpu_share_error", of.cpu_share_error},
            {"blocked_share", of.blocked_share},
            {"blocked_share_error", of.blocked_share_error},
            {"lock_wait_s", of.lock_wait_s},
            {"lock_wait_share", of.lock_wait_share},
            {"idle_s", of.idle_s},
            {"idle_share", of.idle_share},
            {"peak_live_bytes", of.peak_live_bytes},
            {"live_bytes_at_end", of.live_bytes_at_end},
            {"remote_share", of.remote_share},
            {"lines_watched", of.lines_watched},
            {"lines_shared", of.lines_shared},
            {"shared_line_share", of.shared_line_share},
            {"lines_shared_for_long", of.lines_shared_for_long}};
  }

  ordered_json place_json(const Place& place) {
    ordered_json stacks = ordered_json::array();
    for (const SiteStack& stack : place.stacks) {
      if (stacks.size() == limits_.stacks_of_a_site) break;
      ordered_json frames = ordered_json::array();
      for (const Frame& frame : stack.frames) {
        if (frames.size() == limits_.frames_of_a_stack) break;
        frames.push_back(frames_.place_of(frame));
      }
      stacks.push_back({{"share", stack.share}, {"frames", std::move(frames)}, {"all_frames", stack.frames.size()}});
    }
    return {{"text", text_of(place)},
            {"via", text_or_null(frames_.clipped(place.via))},
            {"stacks", std::move(stacks)},
            {"all_stacks", place.all_stacks}};
  }

  static std::string text_of(const Place& place) {
    return place.stacks.empty() || place.stacks.front().frames.empty() ? "unknown" : short_text(place.frame());
  }
  static std::string site_text(const Attribution& of, std::size_t site) {
    return site < of.sites.size() ? text_of(of.sites[site].place) : "unknown";
  }

  ordered_json site_json(const AllocationSite& site) {
    return {{"place", place_json(site.place)},
            {"time", call_json(site.time)},
            {"time_share", site.time_share},
            {"bytes", site.bytes},
            {"typical_bytes", site.typical_bytes},
            {"fixed_size", site.fixed_size},
            {"freed_elsewhere", site.freed_elsewhere},
            {"median_lifetime_s", or_null(site.median_lifetime_s)},
            {"live_bytes_at_peak", site.live_bytes_at_peak},
            {"samples", site.samples}};
  }

  ordered_json wait_json(const WaitSite& site) {
    return {{"place", place_json(site.place)},
            {"kind", name_of(site.kind)},
            {"count", site.count},
            {"seconds", site.seconds},
            {"share", site.share}};
  }

  const Limits& limits_;
  Frames frames_;
};

}  // namespace

ordered_json recording_json(const Attribution& recorded, const Limits& limits) { return Writer(limits).recording(recorded); }

}  // namespace freehold::cli::doctor
