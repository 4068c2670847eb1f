#include "freehold/process/process_pool.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "freehold/os/cpu.hpp"

namespace freehold {

using namespace process;

namespace {

constexpr const char* kPlaces[] = {"freehold-worker", "../libexec/freehold/freehold-worker", "../bin/freehold-worker"};

// Beside a file, or where it would lie if both were installed.
std::string find_beside(std::string file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos) return "";
  file.resize(slash + 1);
  for (const char* place : kPlaces)
    if (::access((file + place).c_str(), X_OK) == 0) return file + place;
  return "";
}

}  // namespace

std::string find_worker_program() {
  if (const char* named = std::getenv("FREEHOLD_WORKER_PROGRAM"); named != nullptr) return named;
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  std::string found = length > 0 ? find_beside(std::string(path, static_cast<std::size_t>(length))) : "";
  // This code's own library, for programs of others: Python, say.
  Dl_info info{};
  if (found.empty() && ::dladdr(reinterpret_cast<const void*>(&find_worker_program), &info) != 0 &&
      info.dli_fname != nullptr) {
    std::error_code none;
    const std::filesystem::path library = std::filesystem::canonical(info.dli_fname, none);
    if (!none) found = find_beside(library.string());
    // A multiarch folder is one deeper: lib/x86_64-linux-gnu.
    if (!none && found.empty()) found = find_beside(library.parent_path().string());
  }
  return found.empty() ? "freehold-worker" : found;
}

namespace {

// What a worker that is started later finds, whatever the current folder is then. A name without a folder is looked for
// among the programs, or the libraries, unless there is such a file here.
std::string absolute(const std::string& path) {
  std::error_code none;
  if (path.empty() || (path.find('/') == std::string::npos && !std::filesystem::exists(path, none))) return path;
  const std::filesystem::path full = std::filesystem::absolute(path, none);
  return none ? path : full.string();
}

}  // namespace

ProcessPool::ProcessPool(const ProcessPoolOptions& options) {
  const auto nanoseconds = [](Nanoseconds time) { return static_cast<std::uint64_t>(std::max<long>(time.count(), 0)); };
  defaults_.limit = options.limit;
  defaults_.retry = options.retry;
  SupervisorOptions how;
  how.command = options.command;
  if (how.command.empty() && !options.component.empty())
    how.command = {options.worker_program.empty() ? find_worker_program() : options.worker_program,
                   absolute(options.component)};
  if (!how.command.empty() && how.command[0].find('/') != std::string::npos) how.command[0] = absolute(how.command[0]);
  how.max_workers =
      std::min(options.max_workers != 0 ? options.max_workers : 2 * os::usable_cpus().cpus, TaskWord::kMaxWorkers);
  how.min_workers = options.min_workers;
  how.attempts = std::clamp(options.attempts, 1u, TaskWord::kMaxAttempts);
  how.log = options.log;
  how.keep_standard_error = options.keep_standard_error;
  how.load_limit = nanoseconds(options.load_limit);
  how.limits = {.idle = nanoseconds(options.idle),
                .max_age = nanoseconds(options.max_age),
                .max_tasks = options.max_tasks,
                .max_rss = options.max_rss};
  how.kill_rss = options.kill_rss;
  const TableShape shape{.entries = options.entries,
                         .workers = how.max_workers,
                         .clients = std::min(options.client_processes, TaskWord::kMaxClients - 1) + 1,
                         .max_input = options.max_input,
                         .max_output = options.max_output};
  const std::uint64_t bytes = Table::bytes(shape);
  if (how.command.empty() || bytes == 0) {
    setup_error_ = how.command.empty() ? "neither a component nor a command" : "a table of that shape cannot be";
    return;
  }
  how.memory_cgroup = options.memory_cgroup;
  if (!how.memory_cgroup.empty() && how.kill_rss == 0) {
    setup_error_ = "a memory cgroup needs a limit, kill_rss";
    return;
  }
  how.confinement = options.confinement;
  for (std::vector<std::string>* paths : {&how.confinement.readable, &how.confinement.writable})
    for (std::string& path : *paths) path = absolute(path);
  if (!options.component.empty()) how.confinement.readable.push_back(absolute(options.component));
  memory_ = SharedMemory::create("freehold tasks", bytes);
  const int low = memory_.ok() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
  wakeup_fd_ = low >= 0 ? ::fcntl(low, F_DUPFD_CLOEXEC, 10) : -1;  // above what a worker gets
  if (low >= 0) ::close(low);
  if (wakeup_fd_ >= 0) {
    Table::create(memory_.data(), shape);
    client_ = std::make_unique<Client>(memory_, 0, wakeup_fd_);
    how.local_client = client_.get();
    supervisor_ = std::make_unique<Supervisor>(memory_, wakeup_fd_, std::move(how));
    setup_error_ = supervisor_->setup_error();
    if (setup_error_.empty() && supervisor_->start()) return;
    supervisor_.reset();
    if (!setup_error_.empty()) return;
  }
  setup_error_ = std::string("the system refuses: ") + std::strerror(errno);
}

ProcessPool::~ProcessPool() {
  supervisor_.reset();
  client_.reset();
  if (wakeup_fd_ >= 0) ::close(wakeup_fd_);
}

std::string ProcessPool::error() const { return supervisor_ ? supervisor_->broken() : setup_error_; }

Future ProcessPool::submit(std::span<const std::byte> input, const TaskOptions& options) {
  return accepts() ? client_->submit(input, options) : Future(SubmitError::kNoWorker);
}
Draft ProcessPool::draft(const TaskOptions& options) {
  return accepts() ? client_->draft(options) : Draft(SubmitError::kNoWorker);
}
bool ProcessPool::accepts() const noexcept {
  return supervisor_ && !supervisor_->is_broken() && !draining_.load(std::memory_order_relaxed);
}

bool ProcessPool::drain(Nanoseconds time) {
  draining_.store(true);
  if (!supervisor_) return true;
  const Table& table = client_->table();
  const std::uint64_t begun = now();
  for (;;) {
    if (table.open_of(std::nullopt) == 0) return true;
    if (time != kWaitForEver && now() - begun >= static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)))
      return false;
    constexpr timespec kLook{0, 2'000'000};
    ::nanosleep(&kLook, nullptr);
  }
}

std::size_t ProcessPool::submit_all(std::span<const std::span<const std::byte>> inputs, std::span<Future> futures) {
  return accepts() ? client_->submit_all(inputs, futures, defaults_) : 0;
}

Result ProcessPool::call(std::string_view input) {
  Future future = submit(input);
  return future.valid() ? future.get() : Result(Failure{FailureKind::kNoWorker, 0});
}

void ProcessPool::serve(int socket) {
  if (supervisor_)
    supervisor_->serve(socket);
  else
    ::close(socket);
}

ProcessPoolStats ProcessPool::stats() const {
  ProcessPoolStats stats;
  if (!supervisor_) return stats;
  const Table& table = client_->table();
  stats.tasks = client_->stats();
  stats.workers = supervisor_->stats();
  stats.waiting = table.waiting();
  stats.running = table.count(TaskState::kRunning);
  stats.entries = table.shape().entries;
  return stats;
}

std::string ProcessPool::status() const { return text(stats()); }

std::string text(const ProcessPoolStats& s) {
  char line[512];
  int used =
      std::snprintf(line, sizeof line,
                    "waiting %u, running %u of %u; %u workers; %llu done, %llu failed, %llu refused; median %.0f us, "
                    "99%% %.0f us; %llu handed on; ended:",
                    s.waiting, s.running, s.entries, s.workers.live, static_cast<unsigned long long>(s.tasks.delivered),
                    static_cast<unsigned long long>(s.tasks.failed), static_cast<unsigned long long>(s.tasks.refused),
                    static_cast<double>(s.tasks.median) / 1e3, static_cast<double>(s.tasks.p99) / 1e3,
                    static_cast<unsigned long long>(s.workers.handed_on));
  std::string text(line, static_cast<std::size_t>(used));
  for (std::size_t i = 0; i < kExitReasons; ++i) {
    if (s.workers.ended[i] == 0) continue;
    used = std::snprintf(line, sizeof line, " %s %llu", process::text(static_cast<ExitReason>(i)),
                         static_cast<unsigned long long>(s.workers.ended[i]));
    text.append(line, static_cast<std::size_t>(used));
  }
  return text;
}

std::vector<int> ProcessPool::worker_pids() const { return supervisor_ ? supervisor_->pids() : std::vector<int>{}; }

}  // namespace freehold
