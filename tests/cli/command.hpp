// SPDX-License-Identifier: MIT
// Runs the freehold command as a user does: another process, its exit status, what it printed. Nothing runs for ever.
#pragma once
#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/folder.hpp"

namespace freehold::tests {

using test::content_of;
using test::Folder;

struct Ended {
  int status = 0;  // as of waitpid
  std::string out;
  std::string err;

  [[nodiscard]] bool exited_with(int code) const;
  [[nodiscard]] bool killed_by(int signal) const;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// A process whose outputs go through pipes. Killed with its process group if the test ends before it.
class Process {
 public:
  // `prepare` runs in the child before exec.
  explicit Process(std::vector<std::string> words, const Environment& extra = {}, const std::function<void()>& prepare = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Reads standard output until it contains `text`. False at its end, or when time is up.
  bool wait_for_output(const std::string& text);
  // Reads to the end of both outputs and waits for the process. Killed, which fails most tests, when time is up.
  Ended wait(std::chrono::seconds limit = std::chrono::seconds(60));

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Ended ended_;
};

// The command with these arguments, from start to end.
Ended freehold(std::vector<std::string> arguments, const Environment& extra = {});
// Its path, and those of the programs and libraries that the tests build.
std::string command_path();
std::string built(const std::string& name);
// The bundled example, which allocates in as many threads as there are CPUs, for some hundredths of a second.
std::string example();

// "a 'b c' ''" as a shell splits it.
std::vector<std::string> words_of(const std::string& line);
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
// True once the process has ended. A process may die of its parent's death a moment later, and be a zombie for longer.
bool is_gone(pid_t pid);
// How many lines a text has: an error is one.
long lines_of(const std::string& text);
// Expects one line on standard error that begins as an error does and has these words, and nothing else.
inline void expect_refused(const Ended& ended, const std::string& words, int code = 2) {
  EXPECT_TRUE(ended.exited_with(code)) << ended.status << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_EQ(ended.err.rfind("freehold: ", 0), 0u) << ended.err;
  EXPECT_NE(ended.err.find(words), std::string::npos) << words << '\n' << ended.err;
}

}  // namespace freehold::tests
