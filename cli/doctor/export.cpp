// SPDX-License-Identifier: MIT
#include "cli/doctor/export.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/report/json.hpp"
#include "cli/support/failure.hpp"
#include "cli/support/output_file.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Frame;
using freehold::doctor::kMeasures;
using freehold::doctor::Measure;
using freehold::doctor::Profile;
using freehold::doctor::ProfileRow;
using nlohmann::ordered_json;

std::string function_of(const Frame& frame) {
  // An address says nothing to a reader, and is another one in each run.
  if (!frame.function.empty() && !frame.function.starts_with("0x")) return frame.function;
  return frame.module.empty() ? "unknown" : "unknown in " + frame.module.substr(frame.module.rfind('/') + 1);
}

std::int64_t whole(double value) { return std::llround(std::min(value, 9e18)); }
double value_of(const ProfileRow& row, Measure measure) { return row.values[static_cast<std::size_t>(measure)]; }

// ---- protocol buffers: a field is its number and wire type, then a number, or a length and as many bytes

class Message {
 public:
  void number(unsigned field, std::uint64_t value) {
    if (value == 0) return;  // the default is left out
    varint(field << 3);
    varint(value);
  }
  void bytes(unsigned field, std::string_view content) {
    varint(field << 3 | 2);
    varint(content.size());
    bytes_ += content;
  }
  void message(unsigned field, const Message& inner) { bytes(field, inner.bytes_); }
  void packed(unsigned field, std::span<const std::uint64_t> values) {
    Message inner;
    for (const std::uint64_t value : values) inner.varint(value);
    bytes(field, inner.bytes_);
  }
  [[nodiscard]] const std::string& text() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

class Strings {
 public:
  Strings() { static_cast<void>(place_of("")); }  // the first is empty, says the format
  std::uint64_t place_of(const std::string& text) {
    const auto [found, is_new] = places_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return texts_; }

 private:
  std::map<std::string, std::uint64_t> places_;
  std::vector<std::string> texts_;
};

Message value_type(Strings& strings, const std::string& type, const std::string& unit) {
  Message message;
  message.number(1, strings.place_of(type));
  message.number(2, strings.place_of(unit));
  return message;
}

// A location and a function for each frame, by its number.
void add_frame(Message& profile, Strings& strings, const Frame& frame, std::uint64_t id) {
  Message function, line, location;
  function.number(1, id);
  function.number(2, strings.place_of(function_of(frame)));
  function.number(3, strings.place_of(function_of(frame)));
  function.number(4, strings.place_of(frame.file.empty() ? frame.module : frame.file));
  line.number(1, id);
  line.number(2, frame.line);
  location.number(1, id);
  location.message(4, line);
  profile.message(4, location);
  profile.message(5, function);
}

std::string gzipped(const std::string& text) {
  constexpr int kGzip = 16 + MAX_WBITS;
  z_stream stream{};
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Failure(kExitRefused, "--export: there is no memory to compress the profile");
  std::string out(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

// Semicolons divide frames, the last blank divides off the number.
std::string collapsed_name(const Frame& frame) {
  std::string name = printable(function_of(frame));
  std::ranges::replace(name, ';', ':');
  return name;
}

Export export_of(const std::string& text) {
  const std::size_t equals = text.find('='), colon = std::min(text.find(':'), equals);
  const auto refuse = [&text](const std::string& why) {
    throw Failure(kExitRefused, fmt::format("--export: '{}': {}", printable(text), why));
  };
  if (equals == std::string::npos) refuse("which file? speedscope=FILE, pprof=FILE, collapsed=FILE or collapsed:bytes=FILE");
  const std::string format = text.substr(0, colon);
  Export one;
  one.file = text.substr(equals + 1);
  if (format == "speedscope")
    one.format = ExportFormat::kSpeedscope;
  else if (format == "pprof")
    one.format = ExportFormat::kPprof;
  else if (format == "collapsed")
    one.format = ExportFormat::kCollapsed;
  else
    refuse(fmt::format("'{}' is none of speedscope, pprof, collapsed", printable(format)));
  if (colon == equals) return one;
  const std::string wanted = text.substr(colon + 1, equals - colon - 1);
  std::string names;
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(measure));
    if (name_of(measure) != wanted || one.format != ExportFormat::kCollapsed) continue;
    one.measure = measure;
    return one;
  }
  refuse(one.format != ExportFormat::kCollapsed ? format + " has all measures; leave this one out"
                                                : fmt::format("'{}' is none of {}", printable(wanted), names));
  __builtin_unreachable();
}

}  // namespace

std::vector<Export> exports_of(std::span<const std::string> texts) {
  std::vector<Export> exports;
  for (const std::string& text : texts) {
    exports.push_back(export_of(text));
    check_writable(exports.back().file);
  }
  return exports;
}

std::string exported(const Profile& profile, const Export& how, const std::string& name) {
  switch (how.format) {
    case ExportFormat::kSpeedscope: return speedscope_of(profile, name);
    case ExportFormat::kPprof:
      return pprof_of(
          profile,
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
    case ExportFormat::kCollapsed: return collapsed_of(profile, how.measure);
  }
  __builtin_unreachable();
}

std::string speedscope_of(const Profile& profile, const std::string& name) {
  ordered_json frames = ordered_json::array(), profiles = ordered_json::array();
  for (const Frame& frame : profile.frames) {
    ordered_json one{{"name", function_of(frame)}};
    if (!frame.file.empty())
      one["file"] = frame.file;
    else if (!frame.module.empty())
      one["file"] = frame.module;
    if (frame.line != 0) one["line"] = frame.line;
    frames.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    ordered_json samples = ordered_json::array(), weights = ordered_json::array();
    double sum = 0;
    for (const ProfileRow& row : profile.rows) {
      const double value = value_of(row, measure);
      if (value <= 0) continue;
      samples.push_back(std::vector<std::uint32_t>(row.frames.rbegin(), row.frames.rend()));  // outermost first
      weights.push_back(value);
      sum += value;
    }
    if (samples.empty()) continue;
    const std::string_view unit = unit_of(measure);
    profiles.push_back({{"type", "sampled"},
                        {"name", name_of(measure)},
                        {"unit", unit == "count" ? "none" : unit},
                        {"startValue", 0},
                        {"endValue", sum},
                        {"samples", std::move(samples)},
                        {"weights", std::move(weights)}});
  }
  return text_of(ordered_json{{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                              {"shared", {{"frames", std::move(frames)}}},
                              {"profiles", std::move(profiles)},
                              {"name", name},
                              {"exporter", "freehold doctor"}});
}

std::string pprof_of(const Profile& profile, std::int64_t time_ns) {
  Message out;
  Strings strings;
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const auto measure = static_cast<Measure>(i);
    out.message(1, value_type(strings, std::string(name_of(measure)), std::string(unit_of(measure))));
  }
  for (const ProfileRow& row : profile.rows) {
    std::vector<std::uint64_t> locations, values;
    for (const std::uint32_t frame : row.frames) locations.push_back(std::uint64_t{frame} + 1);  // 0 is no location
    for (const double value : row.values) values.push_back(static_cast<std::uint64_t>(whole(value)));
    Message sample;
    sample.packed(1, locations);
    sample.packed(2, values);
    out.message(2, sample);
  }
  for (std::size_t i = 0; i < profile.frames.size(); ++i) add_frame(out, strings, profile.frames[i], i + 1);
  const std::uint64_t first_shown = strings.place_of(std::string(name_of(Measure::kTime)));
  for (const std::string& text : strings.all()) out.bytes(6, text);
  out.number(9, static_cast<std::uint64_t>(time_ns));
  out.number(10, static_cast<std::uint64_t>(whole(profile.seconds * 1e9)));
  out.number(14, first_shown);
  return gzipped(out.text());
}

std::string collapsed_of(const Profile& profile, Measure measure) {
  std::map<std::string, double> lines;
  for (const ProfileRow& row : profile.rows) {
    if (value_of(row, measure) <= 0) continue;
    std::string stack;
    for (auto frame = row.frames.rbegin(); frame != row.frames.rend(); ++frame)
      stack += (stack.empty() ? "" : ";") + collapsed_name(profile.frames[*frame]);
    lines[stack.empty() ? "unknown" : stack] += value_of(row, measure);
  }
  std::string out;
  for (const auto& [stack, value] : lines) {
    if (whole(value) > 0) out += fmt::format("{} {}\n", stack, whole(value));
  }
  return out;
}

}  // namespace freehold::cli::doctor
