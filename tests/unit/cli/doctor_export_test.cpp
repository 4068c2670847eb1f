// SPDX-License-Identifier: MIT
// Which exports are understood, and collapsed stacks. Readers of the other formats: tests/cli/exports.py, heap_exports.py.
#include "cli/doctor/export.hpp"
#include "cli/support/failure.hpp"
#include "tests/support/test.hpp"

namespace freehold::cli::doctor {
namespace {
using freehold::doctor::Frame;
using freehold::doctor::Measure;
using freehold::doctor::Profile;

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
