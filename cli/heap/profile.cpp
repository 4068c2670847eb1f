// SPDX-License-Identifier: MIT
#include "cli/heap/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/heap/table.hpp"
#include "freehold/profile/byte_sampler.hpp"
#include "tools/doctor/facts/call_sites.hpp"
#include "tools/live/profile.hpp"
#include "tools/output/json.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/live_process.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::cli::heap {
namespace {

namespace fs = std::filesystem;
using freehold::doctor::Frame;
using freehold::doctor::Symbols;
using freehold::live::LiveHeapProfile;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kHead = "freehold heap profile 1", kEnd = "end\n";
constexpr std::string_view kJsonFormat = "freehold-heap-profile";

std::vector<StackMeasure> measures(bool has_pins) {
  std::vector<StackMeasure> all = {{"inuse_objects", "count"}, {"inuse_space", "bytes"}, {"peak_objects", "count"},
                                   {"peak_space", "bytes"},    {"pinning", "count"},     {"pinned", "bytes"},
                                   {"sharing", "count"},       {"span_pinned", "bytes"}};
  if (!has_pins) all.resize(2 * static_cast<std::size_t>(Moment::kPinned));
  return all;
}

// Rows with equal stacks are one.
class Builder {
 public:
  std::uint32_t place_of(const Frame& frame) {
    const auto key = std::tuple(frame.function, frame.file, frame.line, frame.module, frame.inlined, frame.is_runtime_code);
    const auto [found, is_new] = places_.try_emplace(key, static_cast<std::uint32_t>(frames_.size()));
    if (is_new) frames_.push_back(frame);
    return found->second;
  }
  std::vector<std::uint32_t> places_of(std::span<const Frame> frames) {
    std::vector<std::uint32_t> places;
    for (const Frame& frame : frames) places.push_back(place_of(frame));
    return places;
  }
  struct Row {
    std::array<double, 2 * kMoments.size()> values{};
    std::array<std::uint64_t, kMoments.size()> samples{};
    std::array<double, kMoments.size()> variances{};
  };
  Row& row(const std::vector<std::uint32_t>& frames, const std::string& heap) { return rows_[{frames, heap}]; }

  // Adds all rows, `factor` times.
  void add(const HeapProfile& profile, double factor) {
    std::vector<std::uint32_t> places;
    for (const Frame& frame : profile.stacks.frames) places.push_back(place_of(frame));
    for (std::size_t i = 0; i < profile.stacks.rows.size(); ++i) {
      std::vector<std::uint32_t> frames;
      for (const std::uint32_t frame : profile.stacks.rows[i].frames) frames.push_back(places[frame]);
      Row& to = row(frames, profile.stacks.rows[i].heap);
      for (std::size_t m = 0; m < profile.stacks.measures.size(); ++m)
        to.values[m] += factor * profile.stacks.rows[i].values[m];
      for (std::size_t m = 0; m < to.samples.size(); ++m) to.samples[m] += profile.samples[i][m];
      for (std::size_t m = 0; m < to.variances.size(); ++m) to.variances[m] += profile.variances[i][m];
    }
  }

  // The rows into a profile, which gets these and its measures.
  void finish(HeapProfile& profile) && {
    profile.stacks.measures = measures(profile.has_pins);
    profile.stacks.shown_first = bytes_of(Moment::kNow);
    profile.stacks.frames = std::move(frames_);
    profile.stacks.rows.clear();
    profile.samples.clear();
    profile.variances.clear();
    for (const auto& [of, row] : rows_) {
      profile.stacks.rows.push_back(
          {of.first, {row.values.begin(), row.values.begin() + profile.stacks.measures.size()}, of.second});
      profile.samples.push_back(row.samples);
      profile.variances.push_back(row.variances);
    }
    profile.stacks.period_type = {"space", "bytes"};
    profile.stacks.period = profile.mean;
  }

 private:
  std::vector<Frame> frames_;
  std::map<std::tuple<std::string, std::string, unsigned, std::string, bool, bool>, std::uint32_t> places_;
  std::map<std::pair<std::vector<std::uint32_t>, std::string>, Row> rows_;  // by stack and heap
};

// ---- what a process wrote

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Failure(kExitRefused, fmt::format("{}: {}", printable(name), why));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end != 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::optional<std::uint64_t> number_of(std::string_view word, int base = 10) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return error == std::errc() && end == word.data() + word.size() && !word.empty() ? std::optional(value) : std::nullopt;
}

// A process says this of its profile: addresses, and the map that names are found by.
struct Recording {
  std::uint64_t pid = 0;
  LiveHeapProfile said;
};

// False if the line is not part of a recording.
bool take_sample(Recording& to, std::span<const std::string_view> words, std::string_view line) {
  freehold::live::LiveSampledBlock sample;
  if (words.size() > 5 && words[5] == "heap")  // its name is the rest, with whatever spaces
    sample.heap = freehold::live::heap_text({std::min(words[5].end() + 1, line.end()), line.end()});
  else if (words.size() != 5)
    return false;
  sample.is_in_use = words[0] != "peak";
  sample.was_at_peak = words[0] != "now";
  std::uint64_t* const numbers[] = {&sample.bytes, &sample.size, &sample.mean, &sample.stack};
  for (std::size_t i = 0; i < std::size(numbers); ++i) {
    const auto number = number_of(words[i + 1]);
    if (!number) return false;
    *numbers[i] = *number;
  }
  to.said.blocks.push_back(sample);
  return true;
}
bool take_stack(Recording& to, std::span<const std::string_view> words) {
  const auto number = words.size() < 2 ? std::nullopt : number_of(words[1]);
  if (!number) return false;
  auto& addresses = to.said.stacks[*number];
  for (const std::string_view word : words.subspan(2)) {
    const auto address = number_of(word, 16);
    if (!address) return false;
    addresses.push_back(*address);
  }
  return true;
}
bool take_line(Recording& to, std::string_view line) {
  const auto words = words_of(line);
  if (words.empty()) return false;
  if (words[0] == "stack") return take_stack(to, words);
  if (words[0] == "now" || words[0] == "peak" || words[0] == "both") return take_sample(to, words, line);
  if (words[0] == "program") {
    to.said.program = line.substr(std::min(line.size(), words[0].size() + 1));
    return true;
  }
  const auto number = words.size() == 2 ? number_of(words[1]) : std::nullopt;
  if (!number) return false;
  if (words[0] == "pid") to.pid = *number;
  if (words[0] == "mean") to.said.mean = *number;
  if (words[0] == "sampled") to.said.sampled = *number;
  if (words[0] == "lost") to.said.lost = *number;
  if (words[0] == "time_ns") to.said.time_ns = static_cast<std::int64_t>(*number);
  return true;
}

Recording recording_of(std::string_view text, const std::string& name) {
  Recording recording;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) refuse(name, "this heap profile was cut off: its last line has no end");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (is_first && line != kHead) break;
    if (is_first) continue;
    if (line == "maps") {
      if (!text.ends_with(kEnd)) refuse(name, "this heap profile was cut off: its memory map has no end");
      recording.said.maps = text.substr(0, text.size() - kEnd.size());
      return recording;
    }
    if (!take_line(recording, line)) refuse(name, fmt::format("this heap profile is damaged: '{}'", printable(line)));
  }
  refuse(name, recording.pid != 0 ? "this heap profile was cut off: it has no memory map"
                                  : "not a heap profile: FREEHOLD_PROFILE_FILE and freehold_profile_write() write them");
}

// A folder for the copy of a memory map, whose name tells Symbols the process. Throws Failure where there is no room for it.
class MapsFile {
 public:
  MapsFile(std::uint64_t pid, const std::string& maps) : path_(folder_.path() / fmt::format("{}-0.maps", pid)) {
    write_file(path_, maps);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  TemporaryFolder folder_{"heap"};
  fs::path path_;
};

// Freehold's own calls, and malloc's: in a program that links it statically a stack begins with them.
bool is_allocator_frame(const Frame& frame) {
  constexpr std::array kNames = {"malloc",   "calloc", "realloc", "reallocarray", "posix_memalign",    "aligned_alloc",
                                 "memalign", "valloc", "pvalloc", "freehold_new", "freehold_new_array"};
  const std::string_view name = frame.function;
  return name.starts_with("freehold::alloc::") || name.starts_with("freehold::heap::") ||
         name.starts_with("freehold::check::") || name.starts_with("freehold::os::") || name.starts_with("operator new") ||
         std::ranges::find(kNames, name) != kNames.end();
}

std::vector<Frame> named(Symbols& symbols, const std::vector<std::uint64_t>& addresses) {
  std::vector<Frame> frames;
  // An address lies in the instruction that calls; Symbols takes the one behind it.
  for (const std::uint64_t address : addresses) std::ranges::copy(symbols.frames(address + 1), std::back_inserter(frames));
  const auto first = std::ranges::find_if_not(frames, is_allocator_frame);
  if (first != frames.end()) frames.erase(frames.begin(), first);
  return frames;
}

// Leaves names out if the files that it ran are not there. Throws Failure if there is no room for a copy of its map.
HeapProfile profile_of(std::uint64_t pid, const LiveHeapProfile& said, bool pins = false) {
  const MapsFile maps(pid, said.maps);
  Symbols symbols(maps.path());
  Builder builder;
  std::map<std::uint64_t, std::vector<std::uint32_t>> known;
  for (const freehold::live::LiveSampledBlock& sample : said.blocks) {
    const auto [frames, is_new] = known.try_emplace(sample.stack);
    if (const auto stack = said.stacks.find(sample.stack); is_new && stack != said.stacks.end())
      frames->second = builder.places_of(named(symbols, stack->second));
    const double blocks = profile::blocks_behind(sample.size, sample.mean);
    const double bytes = blocks * static_cast<double>(sample.bytes);
    Builder::Row& row = builder.row(frames->second, sample.heap);
    const auto add = [&](Moment moment, double count, double sum) {
      row.values[blocks_of(moment)] += count;
      row.values[bytes_of(moment)] += sum;
      ++row.samples[static_cast<std::size_t>(moment)];
      row.variances[static_cast<std::size_t>(moment)] += (1 - 1 / blocks) * sum * sum;
    };
    if (sample.is_in_use) add(Moment::kNow, blocks, bytes);
    if (sample.was_at_peak) add(Moment::kPeak, blocks, bytes);
    if (!sample.is_in_use || sample.pins.page.part == 0) continue;
    add(Moment::kPinned, blocks, blocks * sample.pins.page.part);
    add(Moment::kSpanPinned, blocks * sample.pins.page.others, blocks * sample.pins.span.part);
  }
  HeapProfile profile;
  profile.program = said.program;
  profile.pid = pid;
  profile.mean = said.mean;
  profile.sampled = said.sampled;
  profile.lost = said.lost;
  profile.has_pins = pins;
  profile.free_bytes = said.free_bytes;
  profile.stacks.time_ns = said.time_ns;
  std::move(builder).finish(profile);
  return profile;
}

// ---- JSON

std::string text_at(const json& object, const char* name) {
  return object.contains(name) && object.at(name).is_string() ? object.at(name).get<std::string>() : std::string();
}

// Leaves out the library's own words.
std::string what_is_wrong(const json::exception& error) {
  constexpr int kNoSuchKey = 403, kNoSuchElement = 401,
                kOwnFirst = 501;  // by nlohmann::json; and those that are thrown here
  if (error.id == kNoSuchElement) return "a list in it is too short";
  if (error.id != kNoSuchKey && error.id < kOwnFirst) return "a value in it is of the wrong kind";
  const std::string_view text = error.what();
  const std::size_t prefix = text.find("] ");
  return printable(std::string(text.substr(prefix == std::string_view::npos ? 0 : prefix + 2)));
}

ordered_json sums_json(const HeapProfile& profile, Moment moment) {
  return {{"blocks", profile.sum(blocks_of(moment))},
          {"bytes", profile.sum(bytes_of(moment))},
          {"samples", profile.sample_count(moment)}};
}

}  // namespace

double HeapProfile::sum(std::size_t measure) const {
  double sum = 0;
  for (const StackRow& row : stacks.rows) sum += row.values[measure];
  return sum;
}

std::uint64_t HeapProfile::sample_count(Moment moment) const {
  std::uint64_t count = 0;
  for (const auto& one : samples) count += one[static_cast<std::size_t>(moment)];
  return count;
}

HeapProfile profile_of_recording(std::string_view text, const std::string& name) {
  const Recording recording = recording_of(text, name);
  if (recording.said.maps.empty())
    fmt::print(
        stderr,
        "freehold: {}: the process could not read its memory map (no /proc, or no descriptor left): nothing has a name\n",
        printable(name));
  return profile_of(recording.pid, recording.said);
}

HeapProfile read_profile(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || fs::is_directory(file)) refuse(file.string(), fs::is_directory(file) ? "this is a folder" : error_text(errno));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::string_view kGzip = "\x1F\x8B";
  if (text.starts_with(kGzip))
    refuse(file.string(),
           "compressed, as --format pprof writes it for other tools; 'heap show' reads what --format json writes");
  if (!text.starts_with('{')) return profile_of_recording(text, file.string());
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) refuse(file.string(), "this JSON is damaged, or was cut off");
  const json version = parsed.value("version", json());
  if (text_at(parsed, "format") != kJsonFormat || version != 1)
    refuse(file.string(), "not a heap profile of this version: 'freehold heap' with --format json writes them");
  try {
    return profile_of_json(parsed);
  } catch (const json::exception& error) {
    refuse(file.string(), fmt::format("this heap profile is damaged: {}", what_is_wrong(error)));
  }
}

HeapProfile merged(std::span<const HeapProfile> profiles) {
  HeapProfile sum = profiles.front();
  if (profiles.size() == 1) return sum;
  Builder builder;
  for (const HeapProfile& one : profiles) builder.add(one, 1);
  for (const HeapProfile& one : profiles.subspan(1)) {
    sum.processes += one.processes;
    sum.sampled += one.sampled;
    sum.lost += one.lost;
  }
  std::move(builder).finish(sum);
  return sum;
}

HeapProfile growth(const HeapProfile& before, const HeapProfile& after) {
  HeapProfile grown = after;
  Builder builder;
  builder.add(after, 1);
  builder.add(before, -1);
  std::move(builder).finish(grown);
  return grown;
}

ordered_json json_of(const HeapProfile& profile) {
  const auto frames = list_json(profile.stacks.frames, [](const Frame& frame) {
    return ordered_json{{"function", frame.function}, {"file", frame.file},       {"line", frame.line},
                        {"module", frame.module},     {"inlined", frame.inlined}, {"runtime_code", frame.is_runtime_code}};
  });
  const std::size_t moments = profile.stacks.measures.size() / 2;
  const auto known = [moments](const auto& of_all) { return std::vector(of_all.begin(), of_all.begin() + moments); };
  ordered_json stacks = ordered_json::array();
  for (std::size_t i = 0; i < profile.stacks.rows.size(); ++i) {
    stacks.push_back({{"frames", profile.stacks.rows[i].frames},
                      {"values", profile.stacks.rows[i].values},
                      {"samples", known(profile.samples[i])},
                      {"variances", known(profile.variances[i])}});
    if (!profile.stacks.rows[i].heap.empty()) stacks.back()["heap"] = profile.stacks.rows[i].heap;
  }
  ordered_json names = {"blocks in use", "bytes in use", "blocks at the peak", "bytes at the peak"};
  if (profile.has_pins)
    for (const char* name : {"blocks that pin", "free bytes that they pin", "other blocks on their pages",
                             "free bytes of their spans that they pin"})
      names.push_back(name);
  ordered_json all = {{"format", kJsonFormat},
                      {"version", 1},
                      {"program", profile.program},
                      {"pid", profile.pid},
                      {"processes", profile.processes},
                      {"time_ns", profile.stacks.time_ns},
                      {"distance_bytes", profile.mean},
                      {"sampled_blocks", profile.sampled},
                      {"lost_blocks", profile.lost},
                      {"in_use", sums_json(profile, Moment::kNow)},
                      {"peak", sums_json(profile, Moment::kPeak)},
                      {"values", std::move(names)},
                      {"frames", frames},
                      {"stacks", std::move(stacks)}};
  if (profile.has_pins) all["free_bytes"] = profile.free_bytes;
  return all;
}

HeapProfile profile_of_json(const json& from) {
  HeapProfile profile;
  profile.program = text_at(from, "program");
  const auto count = [&from](const char* name) {
    const json& value = from.at(name);
    if (!value.is_number_unsigned()) throw json::other_error::create(502, std::string(name) + " is no count", &value);
    return value.get<std::uint64_t>();
  };
  profile.pid = count("pid");
  profile.processes = from.contains("processes") ? count("processes") : 1;
  profile.mean = count("distance_bytes");
  profile.sampled = count("sampled_blocks");
  profile.lost = count("lost_blocks");
  profile.has_pins = from.contains("free_bytes");
  if (profile.has_pins) profile.free_bytes = count("free_bytes");
  profile.stacks.time_ns = from.at("time_ns").get<std::int64_t>();
  Builder builder;
  std::vector<std::uint32_t> places;
  for (const json& one : from.at("frames"))
    places.push_back(builder.place_of({.function = text_at(one, "function"),
                                       .file = text_at(one, "file"),
                                       .line = one.at("line").get<unsigned>(),
                                       .module = text_at(one, "module"),
                                       .inlined = one.at("inlined").get<bool>(),
                                       .is_runtime_code = one.value("runtime_code", false)}));
  for (const json& one : from.at("stacks")) {
    std::vector<std::uint32_t> frames;
    for (const json& frame : one.at("frames")) {
      const auto number = frame.get<std::size_t>();
      if (number >= places.size()) throw json::other_error::create(501, "a stack has a frame that is not there", &one);
      frames.push_back(places[number]);
    }
    Builder::Row& row = builder.row(frames, text_at(one, "heap"));
    const std::size_t moments = profile.has_pins ? kMoments.size() : static_cast<std::size_t>(Moment::kPinned);
    for (std::size_t m = 0; m < 2 * moments; ++m) row.values[m] += one.at("values").at(m).get<double>();
    for (std::size_t m = 0; m < moments; ++m) row.samples[m] += one.at("samples").at(m).get<std::uint64_t>();
    for (std::size_t m = 0; m < moments; ++m) row.variances[m] += one.at("variances").at(m).get<double>();
  }
  std::move(builder).finish(profile);
  return profile;
}

std::string why_no_profile_read(freehold::live::LiveRefusal refusal, pid_t pid, std::uint32_t version) {
  constexpr LiveSubject kSubject{"heap profile", profile::kLiveProfileVersion};
  return why_refused(refusal, pid, kSubject, version);
}

HeapProfile snapshot_of(pid_t pid, bool pins) {
  const freehold::live::LiveProfileAnswer answer = freehold::live::read_live_profile(pid, pins);
  if (answer.refusal != freehold::live::LiveRefusal::kNone)
    throw Failure(kExitRefused, why_no_profile_read(answer.refusal, pid, answer.version));
  return profile_of(static_cast<std::uint64_t>(pid), answer.profile, pins);
}

void MostPinned::look(pid_t pid) {
  constexpr std::chrono::milliseconds kPatience{50};
  constexpr double kMore = 1.05;  // than the former look, to be worth keeping
  freehold::live::LiveProfileAnswer answer = freehold::live::read_live_profile(pid, true, kPatience);
  if (answer.refusal != freehold::live::LiveRefusal::kNone) return;
  double pinned = 0;
  for (const auto& block : answer.profile.blocks)
    if (block.is_in_use) pinned += profile::blocks_behind(block.size, block.mean) * block.pins.page.part;
  if (pinned <= kMore * most_) return;
  most_ = pinned;
  pid_ = pid;
  said_ = std::move(answer.profile);
}

std::string MostPinned::advice() const {
  if (most_ == 0) return {};
  return pins_advice_of(profile_of(static_cast<std::uint64_t>(pid_), said_, true));
}

}  // namespace freehold::cli::heap
