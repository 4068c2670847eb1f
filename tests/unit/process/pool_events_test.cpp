// SPDX-License-Identifier: MIT
// The words of the log: each reason and each event has its own.
#include "freehold/process/supervisor/pool_events.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

namespace freehold::process {
namespace {

TEST(PoolEvents, Failures_EachHasItsWords) {
  EXPECT_EQ(text(Failure{FailureKind::kNone, 0}), "it is well");
  EXPECT_EQ(text(Failure{FailureKind::kSignal, 0}), "its worker was killed");
  EXPECT_EQ(text(Failure{FailureKind::kSignal, 9}),
            "its worker was killed by signal 9 (the system does that where memory runs out)");
  EXPECT_EQ(text(Failure{FailureKind::kExit, 3}), "its worker exited with status 3");
  EXPECT_EQ(text(Failure{FailureKind::kDeadline, 50}), "it took longer than 50 ms");
  EXPECT_EQ(text(Failure{FailureKind::kMemory, 200}), "its worker grew beyond 200 MiB");
  EXPECT_EQ(text(Failure{FailureKind::kComponent, 42}), "the component returned 42");
  EXPECT_EQ(text(Failure{FailureKind::kNoWorker, 0}),
            "no worker can be started or reached, or the pool takes no more tasks");
  EXPECT_EQ(text(Failure{FailureKind::kCorrupt, 0}), "a component has written into the table of tasks");
  EXPECT_EQ(text(Failure{FailureKind::kFull, 0}), "as many tasks as max_open_tasks wait or run already");
  EXPECT_EQ(text(Failure{FailureKind::kTooLarge, 0}), "its input is longer than max_input_bytes");
  EXPECT_EQ(text(Failure{FailureKind::kNoMemory, 0}), "too little memory is left for it");
  EXPECT_EQ(text(Failure{FailureKind::kNoTask, 0}), "it was dropped, or its result was taken before");
}

TEST(PoolEvents, Events_OneLineThatNamesWorkerTaskAndReason) {
  using Kind = PoolEvent::Kind;
  PoolEvent event{.worker = 17, .reason = {FailureKind::kExit, 3}, .task = 5, .attempt = 2, .text = "why", .last_lines = {}};
  const auto line_of = [&](Kind kind) {
    event.kind = kind;
    return text(event);
  };
  event.exit_reason = ExitReason::kIdle;
  EXPECT_EQ(line_of(Kind::kWorkerEnded), "worker 17 has ended: idle");
  const std::string task = "task 5, attempt 2, worker 17: its worker exited with status 3; ";
  EXPECT_EQ(line_of(Kind::kTaskHandedOn), task + "it goes to another one");
  EXPECT_EQ(line_of(Kind::kTaskFailed), task + "it has failed");
  EXPECT_EQ(line_of(Kind::kTaskDropped), task + "it was cancelled");
  EXPECT_EQ(line_of(Kind::kStartFailed), "a worker program why");
  EXPECT_EQ(line_of(Kind::kBroken), "why");
  EXPECT_EQ(line_of(Kind::kDamaged),
            "a component has written into the task table (why): all its workers and tasks begin anew");
}

}  // namespace
}  // namespace freehold::process
