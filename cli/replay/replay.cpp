// SPDX-License-Identifier: MIT
#include "cli/replay/replay.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "cli/support/worker_group.hpp"

namespace freehold::cli::replay {
namespace {

constexpr std::uint32_t kBatch = 64;
constexpr std::uint32_t kMostTries = 200'000;  // for a slot, each with a yield: seconds

std::uint64_t resident_bytes() {
  std::uint64_t all = 0, resident = 0;
  if (FILE* const file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    if (std::fscanf(file, "%lu %lu", &all, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// How many of a thread's blocks are ready for others. Written by that thread.
struct alignas(64) Ready {
  std::atomic<std::uint32_t> count{0};
};

struct Shared {
  const Program& program;
  Memory& memory;
  bool is_checked;
  std::vector<void*> places;
  std::vector<Ready> ready;
  std::atomic<bool> gave_up{false};
};

class Runner {
 public:
  Runner(Shared& shared, std::uint32_t index)
      : shared_(shared), me_(shared.program.threads[index]), index_(index), seen_(shared.program.threads.size()) {}

  void run(const std::vector<Program::Step>& steps) {
    for (const Program::Step& step : steps) {
      if (!(step.is_end ? end(step) : begin(step))) return;
    }
    publish();
  }
  [[nodiscard]] bool correct() const { return correct_; }

 private:
  // False: a thread gave up.
  [[nodiscard]] bool begin(const Program::Step& step) {
    void* block = shared_.memory.acquire();
    if (block == nullptr && (block = wait_for_slot()) == nullptr) return false;
    std::memcpy(block, &step.place, std::min<std::size_t>(sizeof step.place, shared_.program.bytes));
    shared_.places[step.place] = block;
    if (step.is_handed_over && ++made_ - published_ >= kBatch) publish();
    return true;
  }
  [[nodiscard]] bool end(const Program::Step& step) {
    if (step.is_handed_over && step.allocator != index_ && !wait_for(step)) return false;
    void* const block = shared_.places[step.place];
    if (shared_.is_checked)
      correct_ &= std::memcmp(block, &step.place, std::min<std::size_t>(sizeof step.place, shared_.program.bytes)) == 0;
    shared_.memory.release(block);
    return true;
  }
  void publish() {
    published_ = made_;
    shared_.ready[index_].count.store(published_, std::memory_order_release);  // release: pairs with wait_for()
  }
  [[nodiscard]] bool wait_for(const Program::Step& step) {
    const std::uint32_t number = step.place - shared_.program.threads[step.allocator].first_place;
    if (number < seen_[step.allocator]) return true;
    const auto& ready = shared_.ready[step.allocator].count;
    while ((seen_[step.allocator] = ready.load(std::memory_order_acquire)) <= number) {
      if (published_ != made_) publish();
      if (shared_.gave_up.load(std::memory_order_relaxed)) return false;  // relaxed: only ends the loop
      ::sched_yield();
    }
    return true;
  }
  [[nodiscard]] void* wait_for_slot() {
    publish();
    for (std::uint32_t i = 0; i < kMostTries && !shared_.gave_up.load(std::memory_order_relaxed); ++i) {
      ::sched_yield();
      if (void* const block = shared_.memory.acquire(); block != nullptr) return block;
    }
    shared_.gave_up.store(true, std::memory_order_relaxed);
    return nullptr;
  }

  Shared& shared_;
  const Program::Thread& me_;
  std::uint32_t index_;
  std::vector<std::uint32_t> seen_;  // ready blocks of each thread, as last looked at
  std::uint32_t made_ = 0, published_ = 0;
  bool correct_ = true;
};

Outcome replay_here(const Program& program, const Maker& maker) {
  std::vector<void*> places(program.places);
  std::fill(places.begin(), places.end(), &places);  // its pages are there
  std::fill(places.begin(), places.end(), nullptr);
  const std::uint64_t before = resident_bytes();
  const std::unique_ptr<Memory> memory = maker.make(slots_for(program), program.bytes);
  Shared shared{.program = program,
                .memory = *memory,
                .is_checked = maker.kind != Kind::kBaseline,
                .places = std::move(places),
                .ready = std::vector<Ready>(program.threads.size())};
  GroupReport report;
  run_group(
      Mode::kThreads, static_cast<std::uint32_t>(program.threads.size()),
      [&](GroupWorker& worker) {
        Runner runner(shared, worker.index());
        runner.run(program.threads[worker.index()].set_up);
        worker.start();
        runner.run(program.threads[worker.index()].steps);
        worker.finish();
        return runner.correct();
      },
      report);
  const std::uint64_t after = resident_bytes();
  return {.elapsed_ns = report.elapsed_ns,
          .resident_bytes = after > before ? after - before : 0,
          .complete = !shared.gave_up.load(),
          .correct = report.correct != 0};
}

}  // namespace

Program program_of(const freehold::doctor::SiteTrace& trace) {
  Program program;
  program.threads.resize(trace.threads);
  program.bytes = trace.bytes;
  program.peak_live = trace.peak_live;
  constexpr std::uint16_t kLivesOn = 0xffff;
  std::vector<std::uint16_t> begun_by(trace.blocks), ended_by(trace.blocks, kLivesOn);
  for (const auto& step : trace.steps) (step.is_end ? ended_by : begun_by)[step.block] = step.thread;
  const auto is_handed_over = [&](std::uint32_t block) {
    return ended_by[block] != kLivesOn && ended_by[block] != begun_by[block];
  };
  // Those that a thread hands over lie together, then all others.
  std::vector<std::uint32_t> next(trace.threads), place(trace.blocks);
  for (std::uint32_t block = 0; block < trace.blocks; ++block) next[begun_by[block]] += is_handed_over(block);
  for (unsigned t = 0; t < trace.threads; ++t) {
    program.threads[t].first_place = program.places;
    program.places += std::exchange(next[t], program.places);
  }
  for (std::uint32_t block = 0; block < trace.blocks; ++block)
    place[block] = is_handed_over(block) ? next[begun_by[block]]++ : program.places++;
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const auto& step = trace.steps[i];
    Program::Thread& thread = program.threads[step.thread];
    (i < trace.set_up ? thread.set_up : thread.steps)
        .push_back({.place = place[step.block],
                    .allocator = begun_by[step.block],
                    .is_end = step.is_end,
                    .is_handed_over = is_handed_over(step.block)});
    if (i >= trace.set_up) ++(step.is_end ? program.ends : program.begins);
  }
  return program;
}

std::size_t slots_for(const Program& program) { return 2 * std::size_t{program.peak_live} + 8192 * program.threads.size(); }

Outcome replay(const Program& program, const Maker& maker) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe for a replay");
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::runtime_error("no process for a replay");
  }
  if (child == 0) {
    int code = 1;
    try {
      const Outcome outcome = replay_here(program, maker);
      if (::write(ends[1], &outcome, sizeof outcome) == static_cast<ssize_t>(sizeof outcome)) code = 0;
    } catch (const std::exception&) {  // the exit code says it
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  Outcome outcome;
  ssize_t got = 0;
  do {
    got = ::read(ends[0], &outcome, sizeof outcome);
  } while (got < 0 && errno == EINTR);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (got != static_cast<ssize_t>(sizeof outcome)) throw std::runtime_error("a replay through " + maker.name + " died");
  return outcome;
}

}  // namespace freehold::cli::replay
