// SPDX-License-Identifier: MIT
// The worker that runs commands, called as a component is.
#include "freehold/process/command_job.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace freehold::process {
namespace {

constexpr std::size_t kCapacity = 4096;

struct Answer {
  int status = 0;
  CommandResult result;
  std::string out, err;
};
Answer answer_of(std::string_view command) {
  std::string input("7");
  input.push_back('\0');
  input += command;
  std::array<char, kCapacity> output{};
  std::size_t bytes = 0;
  Answer answer;
  answer.status = run_command_job(input.data(), input.size(), output.data(), output.size(), &bytes);
  if (answer.status != 0) return answer;
  std::memcpy(&answer.result, output.data(), sizeof answer.result);
  const char* const text = output.data() + sizeof answer.result;
  answer.out.assign(text, answer.result.out_bytes);
  answer.err.assign(text + answer.result.out_bytes, answer.result.err_bytes);
  return answer;
}

// A signal that interrupts system calls, every two milliseconds.
class Interrupted {
 public:
  Interrupted() {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 2000}, {0, 2000}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interrupted() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
};

// The end of a file leaves errno as it is: that of the poll which a signal had interrupted. It was taken for the read's, and
// the file was read again for ever.
TEST(CommandJob, SignalsBeforeTheEndOfTheOutput_Ends) {
  const Interrupted interrupted;
  const Answer answer = answer_of("sleep 0.1; echo done");
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, "done\n");
}

// A command may close its output and go on.
TEST(CommandJob, OutputIsClosedBeforeTheEnd_StatusAllTheSame) {
  const Interrupted interrupted;
  const Answer answer = answer_of("echo done; exec >&- 2>&-; sleep 0.1; exit 4");
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, "done\n");
  EXPECT_EQ(WEXITSTATUS(answer.result.status), 4);
}

TEST(CommandJob, NoDescriptorIsLeft_NotStartedAndWhy) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Answer answer = answer_of("echo out");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.result.started_errno, EMFILE);
  EXPECT_EQ(answer.out + answer.err, "");
}

TEST(CommandJob, NoJobNumberOrNoRoomForTheResult_Refused) {
  char output[sizeof(CommandResult)];
  std::size_t bytes = 77;
  EXPECT_EQ(run_command_job("echo", 4, output, sizeof output, &bytes), kJobTooLong);
  EXPECT_EQ(run_command_job("7\0echo", 6, output, sizeof output - 1, &bytes), kJobTooLong);
  EXPECT_EQ(bytes, 77u);
}

}  // namespace
}  // namespace freehold::process
