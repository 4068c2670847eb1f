// SPDX-License-Identifier: MIT
#include "cli/workers/run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <optional>

#include "freehold/process.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/interrupts.hpp"

namespace freehold::cli::workers {
namespace {

constexpr int kStatusInterval = 250;  // milliseconds between two lines of status

// Prints an event on standard error, unless a worker just ended or a task was dropped.
void log(const process::PoolEvent& event) {
  using Kind = process::PoolEvent::Kind;
  if (event.kind == Kind::kWorkerEnded || event.kind == Kind::kTaskDropped) return;
  say(fmt::format("freehold workers: {}\n", printable(text(event))));
}

}  // namespace

int serve(ServeSettings settings) {
  std::optional<Interrupts> interrupts(std::in_place);  // before the pool: its thread inherits the mask
  const process::NamedSocket socket(settings.name);
  if (!socket.ok()) throw Failure(kExitRefused, fmt::format("--serve: {}", socket.error()));
  if (!settings.quiet) settings.pool.log = log;
  ProcessPool pool(settings.pool);
  if (const std::string error = pool.error(); !error.empty()) throw Failure(kExitRefused, error);
  if (!settings.quiet)
    say(fmt::format("freehold workers: process {} serves {} to processes of this user\n", ::getpid(), settings.name));
  Progress progress;
  while (interrupts->arrived() == 0) {
    pollfd files[]{{socket.fd(), POLLIN, 0}, {interrupts->fd(), POLLIN, 0}};
    ::poll(files, 2, progress.is_shown() ? kStatusInterval : -1);
    for (int peer = -1; (peer = socket.accept()) >= 0;) pool.serve(peer);
    if (progress.is_shown()) progress.show(text(pool.stats()));
  }
  const int signal = interrupts->arrived();
  interrupts.reset();  // the next Ctrl-C ends this process at once; its workers go with it
  return 128 + signal;
}

}  // namespace freehold::cli::workers
