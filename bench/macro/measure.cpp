// SPDX-License-Identifier: MIT
// Runs a command under each of several preloads, turn and turn about, and prints one JSON line per run: wall and CPU time,
// peak memory, page faults, exit status. Python cannot do it: a child's peak memory begins with its parent's at the exec, so
// the parent must be small (this program is linked statically), and start-up is measured in tenths of a millisecond.
//
//   measure [--rounds N] [--silent] {--preload LIBRARY | --plain}… -- COMMAND ARGS…
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kMost = 32;
constexpr char kVariable[] = "LD_PRELOAD=";

struct Task {
  const char* preloads[kMost] = {};  // nullptr: none
  int preload_count = 0;
  int rounds = 1;
  bool silent = false;
  char** command = nullptr;
};

[[noreturn]] void usage() {
  std::fprintf(stderr, "usage: measure [--rounds N] [--silent] {--preload LIBRARY | --plain}... -- COMMAND ARGS...\n");
  std::exit(2);
}

Task parse(char** argument) {
  Task task;
  for (; *argument != nullptr && std::strcmp(*argument, "--") != 0; ++argument) {
    if (std::strcmp(*argument, "--silent") == 0) {
      task.silent = true;
    } else if (std::strcmp(*argument, "--rounds") == 0 && argument[1] != nullptr) {
      task.rounds = std::atoi(*++argument);
    } else if (task.preload_count < kMost && std::strcmp(*argument, "--plain") == 0) {
      task.preloads[task.preload_count++] = nullptr;
    } else if (task.preload_count < kMost && std::strcmp(*argument, "--preload") == 0 && argument[1] != nullptr) {
      task.preloads[task.preload_count++] = *++argument;
    } else {
      usage();
    }
  }
  if (*argument == nullptr || argument[1] == nullptr || task.preload_count == 0) usage();
  task.command = argument + 1;
  return task;
}

// Our environment without LD_PRELOAD, with `preload` instead. The last entry's buffer is static: one child at a time.
char** environment_with(const char* preload) {
  static char* entries[4096];
  static char setting[4096 + sizeof kVariable];
  int count = 0;
  for (char** entry = environ; *entry != nullptr && count < 4094; ++entry)
    if (std::strncmp(*entry, kVariable, sizeof kVariable - 1) != 0) entries[count++] = *entry;
  if (preload != nullptr) {
    std::snprintf(setting, sizeof setting, "%s%s", kVariable, preload);
    entries[count++] = setting;
  }
  entries[count] = nullptr;
  return entries;
}

long long nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }
long long microseconds(const timeval& time) { return time.tv_sec * 1'000'000LL + time.tv_usec; }

void run(const Task& task, int which) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (task.silent) posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  timespec start;
  timespec end;
  pid_t child = 0;
  char** environment = environment_with(task.preloads[which]);
  clock_gettime(CLOCK_MONOTONIC, &start);
  if (posix_spawnp(&child, task.command[0], &actions, nullptr, task.command, environment) != 0) {
    std::fprintf(stderr, "measure: cannot run %s\n", task.command[0]);
    std::exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  clock_gettime(CLOCK_MONOTONIC, &end);
  posix_spawn_file_actions_destroy(&actions);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  std::printf(
      "{\"preload\": %d, \"wall_ns\": %lld, \"user_us\": %lld, \"system_us\": %lld, \"peak_kib\": %ld, \"faults\": %ld, "
      "\"status\": %d}\n",
      which, nanoseconds(end) - nanoseconds(start), microseconds(usage.ru_utime), microseconds(usage.ru_stime),
      usage.ru_maxrss, usage.ru_minflt, code);
  std::fflush(stdout);
}

}  // namespace

int main(int, char** argv) {
  const Task task = parse(argv + 1);
  for (int round = 0; round < task.rounds; ++round)
    for (int i = 0; i < task.preload_count; ++i) run(task, (i + round) % task.preload_count);
}
