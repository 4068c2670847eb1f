// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/heap/table.hpp"
#include "tools/doctor/facts/call_sites.hpp"
#include "tools/output/assets.hpp"
#include "tools/output/page.hpp"

namespace freehold::cli::heap {
namespace {
using freehold::doctor::Frame;
using nlohmann::ordered_json;

// A page of some megabytes at most, as a browser draws it within a second.
constexpr std::size_t kPageStacks = 3000, kPageSites = 500, kPageNameCharacters = 300;

std::string cut(const std::string& name) {
  return name.size() <= kPageNameCharacters ? name : name.substr(0, kPageNameCharacters) + "…";
}

// The frames of all views, each once.
class FrameList {
 public:
  std::size_t place_of(const Frame& frame) {
    const ordered_json one = {{"function", cut(frame.function)},
                              {"file", frame.file},
                              {"line", frame.line},
                              {"module", frame.module},
                              {"inlined", frame.inlined},
                              {"text", cut(frame.text())},
                              {"library", freehold::doctor::is_library_frame(frame)}};
    const auto [found, is_new] =
        places_.try_emplace(one.dump(-1, ' ', false, ordered_json::error_handler_t::replace), list_.size());
    if (is_new) list_.push_back(one);
    return found->second;
  }
  ordered_json take() && { return std::move(list_); }

 private:
  std::map<std::string, std::size_t> places_;
  ordered_json list_ = ordered_json::array();
};

ordered_json places_of(FrameList& frames, const HeapProfile& profile, const std::vector<std::uint32_t>& stack) {
  ordered_json places = ordered_json::array();
  for (const std::uint32_t frame : stack) places.push_back(frames.place_of(profile.stacks.frames[frame]));
  return places;
}

// `sign`: of the rows that are shown, as what grew or what shrank.
ordered_json view_json(const char* name, const HeapProfile& profile, Moment moment, double sign, FrameList& frames) {
  std::vector<std::size_t> rows;
  const auto bytes = [&](std::size_t i) { return sign * profile.stacks.rows[i].values[bytes_of(moment)]; };
  for (std::size_t i = 0; i < profile.stacks.rows.size(); ++i)
    if (bytes(i) > 0) rows.push_back(i);
  std::ranges::stable_sort(rows, std::greater{}, bytes);
  double left_out = 0;
  for (std::size_t i = kPageStacks; i < rows.size(); ++i) left_out += bytes(rows[i]);
  ordered_json stacks = ordered_json::array(), sites = ordered_json::array();
  double all = 0, blocks = 0;
  std::uint64_t samples = 0;
  for (const std::size_t row : rows) {
    all += bytes(row);
    blocks += sign * profile.stacks.rows[row].values[blocks_of(moment)];
    samples += profile.samples[row][static_cast<std::size_t>(moment)];
  }
  for (std::size_t i = 0; i < std::min(rows.size(), kPageStacks); ++i) {
    const StackRow& row = profile.stacks.rows[rows[i]];
    ordered_json places = places_of(frames, profile, row.frames);
    if (!row.heap.empty()) places.push_back(frames.place_of({"heap " + printable(row.heap), "", 0, ""}));
    stacks.push_back({{"frames", std::move(places)},
                      {"bytes", std::round(bytes(rows[i]))},
                      {"blocks", std::round(sign * row.values[blocks_of(moment)])}});
  }
  const std::vector<Site> known = sites_of(profile, moment);
  for (const Site& site : known) {
    if (sites.size() == kPageSites) break;
    if (sign * site.bytes <= 0) continue;
    sites.push_back({{"text", site_name(site)},
                     {"bytes", std::round(sign * site.bytes)},
                     {"blocks", std::round(sign * site.blocks)},
                     {"samples", site.samples},
                     {"error", relative_error(site)},
                     {"frames", places_of(frames, profile, site.heaviest)}});
  }
  const auto all_sites = std::ranges::count_if(known, [sign](const Site& site) { return sign * site.bytes > 0; });
  return {{"name", name},
          {"sign", sign},
          {"bytes", std::round(all)},
          {"blocks", std::round(blocks)},
          {"samples", samples},
          {"stacks", std::move(stacks)},
          {"stacks_left_out", rows.size() - std::min(rows.size(), kPageStacks)},
          {"bytes_left_out", std::round(left_out)},
          {"all_sites", all_sites},
          {"sites", std::move(sites)}};
}

ordered_json head_json(const HeapProfile& profile) {
  const std::time_t time = profile.stacks.time_ns / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32] = "";
  if (profile.stacks.time_ns != 0) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {{"program", profile.program},
          {"pid", profile.pid},
          {"date", text},
          {"distance_bytes", profile.mean},
          {"sampled_blocks", profile.sampled},
          {"lost_blocks", profile.lost},
          {"bytes", std::round(profile.sum(bytes_of(Moment::kNow)))},
          {"peak_bytes", std::round(profile.sum(bytes_of(Moment::kPeak)))}};
}

std::string page_with(const char* question, const ordered_json& json) {
  return tools::page_of({.title = "Freehold: the heap profile",
                         .brand = "Freehold · heap profile",
                         .question = question,
                         .sections = assets::heap_html,
                         .script = assets::heap_js},
                        json);
}

}  // namespace

std::string page_of(const HeapProfile& profile) {
  FrameList frames;
  ordered_json views = ordered_json::array();
  if (profile.has_pins) views.push_back(view_json("free memory that is pinned", profile, Moment::kPinned, 1, frames));
  views.push_back(view_json("in use", profile, Moment::kNow, 1, frames));
  views.push_back(view_json("at the peak", profile, Moment::kPeak, 1, frames));
  return page_with("What holds the memory?", {{"profiles", {head_json(profile)}},
                                              {"is_growth", false},
                                              {"views", std::move(views)},
                                              {"frames", std::move(frames).take()}});
}

std::string growth_page_of(const HeapProfile& before, const HeapProfile& after, Moment moment) {
  FrameList frames;
  const HeapProfile grown = growth(before, after);
  ordered_json views = ordered_json::array();
  views.push_back(view_json("what grew", grown, moment, 1, frames));
  views.push_back(view_json("what shrank", grown, moment, -1, frames));
  views.push_back(view_json("later", after, moment, 1, frames));
  views.push_back(view_json("earlier", before, moment, 1, frames));
  return page_with("What grew?", {{"profiles", {head_json(before), head_json(after)}},
                                  {"is_growth", true},
                                  {"views", std::move(views)},
                                  {"frames", std::move(frames).take()}});
}

}  // namespace freehold::cli::heap
