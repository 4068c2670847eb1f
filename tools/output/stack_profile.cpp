// SPDX-License-Identifier: MIT
#include "tools/output/stack_profile.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tools/support/failure.hpp"

namespace freehold::inline tools {
namespace {
using freehold::doctor::Frame;

std::int64_t whole(double value) { return std::llround(std::clamp(value, -9e18, 9e18)); }

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

Message value_type(Strings& strings, const StackMeasure& measure) {
  Message message;
  message.number(1, strings.place_of(measure.name));
  message.number(2, strings.place_of(measure.unit));
  return message;
}

// How a viewer names a frame. Viewers make one node of all that has one name, so code without a name is called by its place
// in its file: libx.so+0x1234.
std::string function_of(const Frame& frame) {
  const std::string module = frame.module.substr(frame.module.rfind('/') + 1);
  if (frame.function.empty()) return module.empty() ? "unknown" : "unknown in " + module;
  return frame.function.starts_with("0x") && !module.empty() ? module + '+' + frame.function : frame.function;
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
    throw Failure(kExitRefused, "there is no memory to compress the profile");
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

}  // namespace

std::string pprof_of(const StackProfile& profile) {
  Message out;
  Strings strings;
  for (std::size_t i = 0; i < profile.measures.size(); ++i) {
    out.message(1, value_type(strings, profile.measures[i]));
  }
  for (const StackRow& row : profile.rows) {
    std::vector<std::uint64_t> locations, values;
    for (const std::uint32_t frame : row.frames) locations.push_back(std::uint64_t{frame} + 1);  // 0 is no location
    for (const double value : row.values) values.push_back(static_cast<std::uint64_t>(whole(value)));
    Message sample;
    sample.packed(1, locations);
    sample.packed(2, values);
    if (!row.heap.empty()) {
      Message label;
      label.number(1, strings.place_of("heap"));
      label.number(2, strings.place_of(row.heap));
      sample.message(3, label);
    }
    out.message(2, sample);
  }
  for (std::size_t i = 0; i < profile.frames.size(); ++i) add_frame(out, strings, profile.frames[i], i + 1);
  const std::uint64_t first_shown =
      profile.measures.empty() ? 0 : strings.place_of(profile.measures[profile.shown_first].name);
  Message period_type;
  if (!profile.period_type.name.empty()) period_type = value_type(strings, profile.period_type);
  for (const std::string& text : strings.all()) out.bytes(6, text);
  out.number(9, static_cast<std::uint64_t>(profile.time_ns));
  out.number(10, static_cast<std::uint64_t>(whole(profile.seconds * 1e9)));
  if (!profile.period_type.name.empty()) out.message(11, period_type);
  out.number(12, profile.period);
  out.number(14, first_shown);
  return gzipped(out.text());
}

}  // namespace freehold::inline tools
