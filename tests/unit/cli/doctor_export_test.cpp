// SPDX-License-Identifier: MIT
// Recordings in other people's formats, read back by readers that share nothing with the writers.
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/doctor/export.hpp"
#include "cli/support/failure.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Frame;
using freehold::doctor::Measure;
using freehold::doctor::Profile;
using nlohmann::json;

// main calls parse, which allocates 10 times, 640 bytes; and drain, which frees 7 of them in another thread, and waits.
Profile some_profile() {
  Profile profile;
  profile.frames = {{.function = "malloc", .file = {}, .line = 0, .module = "/lib/libc.so.6"},
                    {.function = "parse(std::string; int)", .file = "src/parse.cpp", .line = 210, .module = "/opt/p"},
                    {.function = "main", .file = "src/main.cpp", .line = 12, .module = "/opt/p"},
                    {.function = "drain()", .file = "src/sink.cpp", .line = 90, .module = "/opt/p"},
                    {.function = {}, .file = {}, .line = 0, .module = "/lib/libx.so"}};
  profile.rows = {{.frames = {0, 1, 2}, .values = {10, 640, 1500, 0, 0, 0, 0}},
                  {.frames = {3, 2}, .values = {0, 0, 700.4, 7, 7, 0, 2.5e9}},
                  {.frames = {4}, .values = {1, 8, 0, 0, 0, 0, 0}},
                  {.frames = {}, .values = {2, 16, 0, 0, 0, 0, 0}}};
  profile.seconds = 1.5;
  return profile;
}

std::string collapsed(const Profile& profile, Measure measure) {
  return collapsed_of(stacks_of(profile), static_cast<std::size_t>(measure));
}

std::string inflated(const std::string& gzip) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

// A message as its fields: numbers, and bytes.
struct Fields {
  std::multimap<unsigned, std::uint64_t> numbers;
  std::multimap<unsigned, std::string> bytes;

  explicit Fields(const std::string& message) {
    std::size_t at = 0;
    const auto varint = [&] {
      std::uint64_t value = 0;
      for (unsigned shift = 0; at < message.size(); shift += 7) {
        const auto byte = static_cast<unsigned char>(message[at++]);
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) break;
      }
      return value;
    };
    while (at < message.size()) {
      const std::uint64_t tag = varint();
      if ((tag & 7) == 0) {
        numbers.emplace(tag >> 3, varint());
      } else {
        EXPECT_EQ(tag & 7, 2u);
        const std::uint64_t length = varint();
        EXPECT_LE(at + length, message.size());
        if (at + length > message.size()) return;
        bytes.emplace(tag >> 3, message.substr(at, length));
        at += length;
      }
    }
  }
  [[nodiscard]] std::vector<std::string> all(unsigned field) const {
    std::vector<std::string> found;
    for (auto [one, end] = bytes.equal_range(field); one != end; ++one) found.push_back(one->second);
    return found;
  }
  [[nodiscard]] std::uint64_t number(unsigned field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
};

std::vector<std::uint64_t> numbers_in(const std::string& packed) {
  std::vector<std::uint64_t> values;
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char c : packed) {
    const auto byte = static_cast<unsigned char>(c);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    values.push_back(value);
    value = shift = 0;
  }
  return values;
}

TEST(DoctorExport, Speedscope_StacksAndWeights) {
  const json file = json::parse(speedscope_of(stacks_of(some_profile()), "parser"));
  EXPECT_EQ(file.at("$schema"), "https://www.speedscope.app/file-format-schema.json");
  const json& frames = file.at("shared").at("frames");
  EXPECT_EQ(frames.at(1), (json{{"name", "parse(std::string; int)"}, {"file", "src/parse.cpp"}, {"line", 210}}));
  EXPECT_EQ(frames.at(4).at("name"), "unknown in libx.so");
  std::map<std::string, json> by_name;
  for (const json& one : file.at("profiles")) {
    EXPECT_EQ(one.at("samples").size(), one.at("weights").size());
    double sum = 0;
    for (const json& weight : one.at("weights")) sum += weight.get<double>();
    EXPECT_DOUBLE_EQ(sum, one.at("endValue").get<double>());
    by_name[one.at("name")] = one;
  }
  EXPECT_EQ(by_name.size(), 6u);  // nobody waited for a lock
  EXPECT_EQ(by_name.at("bytes").at("unit"), "bytes");
  EXPECT_EQ(by_name.at("allocations").at("unit"), "none");
  EXPECT_EQ(by_name.at("allocations").at("samples").at(0), (json{2, 1, 0}));  // outermost first
  EXPECT_EQ(by_name.at("remote-frees").at("weights"), json{7.0});
  EXPECT_EQ(by_name.at("idleness").at("unit"), "nanoseconds");
}

TEST(DoctorExport, Pprof_ReadByItsFieldNumbers) {
  StackProfile stacks = stacks_of(some_profile());
  stacks.time_ns = 1'700'000'000'000'000'000;
  const Fields file(inflated(pprof_of(stacks)));
  const std::vector<std::string> strings = file.all(6);
  ASSERT_FALSE(strings.empty());
  EXPECT_EQ(strings.front(), "");
  std::vector<std::string> types;
  for (const std::string& type : file.all(1)) {
    const Fields fields(type);
    types.push_back(strings.at(fields.number(1)) + '/' + strings.at(fields.number(2)));
  }
  EXPECT_EQ(types, (std::vector<std::string>{"allocations/count", "bytes/bytes", "time/nanoseconds", "frees/count",
                                             "remote-frees/count", "lock-waits/nanoseconds", "idleness/nanoseconds"}));
  std::map<std::uint64_t, std::string> functions, locations;
  for (const std::string& one : file.all(5)) functions[Fields(one).number(1)] = strings.at(Fields(one).number(2));
  for (const std::string& one : file.all(4)) {
    const Fields location(one), line(location.all(4).at(0));
    locations[location.number(1)] = functions.at(line.number(1)) + ':' + std::to_string(line.number(2));
  }
  const std::vector<std::string> samples = file.all(2);
  ASSERT_EQ(samples.size(), 4u);
  const Fields first(samples[0]), second(samples[1]);
  std::string stack;
  for (const std::uint64_t location : numbers_in(first.all(1).at(0))) stack += locations.at(location) + ' ';
  EXPECT_EQ(stack, "malloc:0 parse(std::string; int):210 main:12 ");  // innermost first
  EXPECT_EQ(numbers_in(first.all(2).at(0)), (std::vector<std::uint64_t>{10, 640, 1500, 0, 0, 0, 0}));
  EXPECT_EQ(numbers_in(second.all(2).at(0)), (std::vector<std::uint64_t>{0, 0, 700, 7, 7, 0, 2'500'000'000}));
  EXPECT_EQ(file.number(9), 1'700'000'000'000'000'000u);
  EXPECT_EQ(file.number(10), 1'500'000'000u);
  EXPECT_EQ(strings.at(file.number(14)), "time");
}

TEST(DoctorExport, Collapsed_OneLineForAStack) {
  EXPECT_EQ(collapsed(some_profile(), Measure::kBytes),
            "main;parse(std::string: int);malloc 640\nunknown 16\nunknown in libx.so 8\n");
  EXPECT_EQ(collapsed(some_profile(), Measure::kLockWaits), "");
}

TEST(DoctorExport, NotUnderstood_OneLine) {
  for (const std::string text :
       {"", "speedscope", "speedscope:", "=x", "svg=/tmp/x", "pprof:bytes=/tmp/x", "collapsed:lines=/tmp/x",
        "collapsed:=/tmp/x", "speedscope=", "pprof=/no/such/folder/x", "collapsed=-"}) {
    try {
      static_cast<void>(exports_of(std::vector{text}));
      ADD_FAILURE() << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_code(), kExitRefused);
      EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos);
    }
  }
  const auto exports = exports_of(std::vector<std::string>{"collapsed:remote-frees=/tmp/a=b"});
  EXPECT_EQ(exports.at(0).measure, Measure::kRemoteFrees);
  EXPECT_EQ(exports.at(0).file, "/tmp/a=b");
}

}  // namespace
}  // namespace freehold::cli::doctor
