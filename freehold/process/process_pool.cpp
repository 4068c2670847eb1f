// SPDX-License-Identifier: MIT
#include "freehold/process/process_pool.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "freehold/os/cpu.hpp"
#include "freehold/process/client/client.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/supervisor/supervisor.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold {

using namespace process;

namespace {

constexpr const char* kPlaces[] = {"freehold-worker", "../libexec/freehold/freehold-worker", "../bin/freehold-worker"};

// Finds the program beside a file, or where it would lie if both were installed; empty if it is not there.
std::string find_beside(std::string file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos) return "";
  file.resize(slash + 1);
  for (const char* place : kPlaces)
    if (::access((file + place).c_str(), X_OK) == 0) return file + place;
  return "";
}

// A program that only this user and root can have put there. The path of a header came with the caller's build.
bool is_trusted(const std::string& file) {
  const auto is_ours = [](const struct stat& info) { return info.st_uid == ::geteuid() || info.st_uid == 0; };
  struct stat program{}, folder{};
  if (::stat(file.c_str(), &program) != 0 || ::stat(file.substr(0, file.rfind('/')).c_str(), &folder) != 0) return false;
  const bool is_sticky = (folder.st_mode & S_ISVTX) != 0;
  return is_ours(program) && is_ours(folder) && (program.st_mode & S_IWOTH) == 0 &&
         ((folder.st_mode & S_IWOTH) == 0 || is_sticky);
}

// In the prefix of an installed header, PREFIX/include/freehold/detail/process/...; or in the one that was configured.
std::string find_installed(const char* header) {
  const std::filesystem::path prefix = std::filesystem::path(header).parent_path() / "../../../..";
  for (const char* place : {"bin/freehold-worker", "libexec/freehold/freehold-worker", "tools/freehold/freehold-worker"})
    if (const std::string file = (prefix / place).lexically_normal().string();
        file.starts_with('/') && ::access(file.c_str(), X_OK) == 0 && is_trusted(file))
      return file;
  return ::access(FREEHOLD_INSTALLED_WORKER, X_OK) == 0 ? FREEHOLD_INSTALLED_WORKER : "";
}

}  // namespace

std::string find_worker_program(const char* header) {
  if (const char* named = std::getenv("FREEHOLD_WORKER_PROGRAM"); named != nullptr) return named;
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  std::string found = length > 0 ? find_beside(std::string(path, static_cast<std::size_t>(length))) : "";
  // This code's own library: in Python, say, the program is not ours.
  Dl_info info{};
  std::filesystem::path library;
  if (found.empty() && ::dladdr(reinterpret_cast<const void*>(&find_beside), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code none;
    library = std::filesystem::canonical(info.dli_fname, none);
    found = find_beside(library.string());
  }
  if (found.empty()) found = find_installed(header);
  // A multiarch folder is one deeper: lib/x86_64-linux-gnu.
  if (found.empty()) found = find_beside(library.parent_path().string());
  return found.empty() ? "freehold-worker" : found;
}

namespace {

// A path that a worker can use whatever the current folder is when it starts. A name without a folder is left to the search
// for programs, or libraries, unless such a file lies here.
std::string absolute(const std::string& path) {
  std::error_code none;
  if (path.empty() || (path.find('/') == std::string::npos && !std::filesystem::exists(path, none))) return path;
  const std::filesystem::path full = std::filesystem::absolute(path, none);
  return none ? path : full.string();
}

// The options with everything that has a default.
ProcessPoolOptions completed(ProcessPoolOptions options, const char* header) {
  std::vector<std::string>& command = options.command;
  if (command.empty() && !options.component.empty())
    command = {options.worker_program.empty() ? find_worker_program(header) : options.worker_program,
               absolute(options.component)};
  if (!command.empty() && command[0].find('/') != std::string::npos) command[0] = absolute(command[0]);
  if (options.max_workers == 0) options.max_workers = 2 * os::usable_cpus().cpus;
  options.max_workers = std::min(options.max_workers, TaskWord::kMaxWorkers);
  options.max_attempts = std::clamp(options.max_attempts, 1u, TaskWord::kMaxAttempts);
  for (std::vector<std::string>* paths : {&options.confinement.readable, &options.confinement.writable})
    for (std::string& path : *paths) path = absolute(path);
  if (!options.component.empty()) options.confinement.readable.push_back(absolute(options.component));
  return options;
}

// Why a pool with these options cannot be; empty if it can.
std::string wrong_with(const ProcessPoolOptions& options, const TableShape& shape) {
  if (options.command.empty()) return "neither a component nor a command";
  if (Table::bytes(shape) == 0)
    return "so many max_open_tasks, or so large max_input_bytes and max_output_bytes, are no table";
  if (options.inherited.size() > kLowestPoolDescriptor - kFirstInherited) return "more descriptors to inherit than five";
  for (const int fd : options.inherited)
    if (::fcntl(fd, F_GETFD) < 0) return "a descriptor to inherit is not open";
  if (!options.memory_cgroup.empty() && !options.kill_rss_bytes) return "memory_cgroup needs kill_rss_bytes";
  return "";
}

}  // namespace

ProcessPool::ProcessPool(const ProcessPoolOptions& given, const char* header) {
  ProcessPoolOptions options = completed(given, header);
  run_timeout_ = options.run_timeout;
  retry_ = options.retry;
  const TableShape shape{.entries = options.max_open_tasks,
                         .workers = options.max_workers,
                         .clients = std::min(options.max_clients, TaskWord::kMaxClients - 1) + 1,
                         .max_input = options.max_input_bytes,
                         .max_output = options.max_output_bytes};
  setup_error_ = wrong_with(options, shape);
  if (!setup_error_.empty()) return;
  memory_ = std::make_unique<SharedMemory>(SharedMemory::create("freehold tasks", Table::bytes(shape)));
  if (memory_->ok()) wakeup_fd_ = open_wakeup();
  if (wakeup_fd_ >= 0) {
    Table::create(memory_->data(), shape);
    client_ = std::make_unique<Client>(*memory_, 0, wakeup_fd_);
    supervisor_ = std::make_unique<Supervisor>(*memory_, wakeup_fd_, std::move(options), client_.get());
    setup_error_ = supervisor_->setup_error();
    if (setup_error_.empty() && supervisor_->start()) return;
    supervisor_.reset();
    if (!setup_error_.empty()) return;
  }
  setup_error_ = std::string("the system refuses: ") + std::strerror(errno);
}

ProcessPool::~ProcessPool() {
  // Callbacks may use the pool until the last of them has returned, so nothing that they look at changes before.
  draining_.store(true);
  if (supervisor_) supervisor_->stop();
  if (client_) client_->end_callbacks();
  supervisor_.reset();
  client_.reset();
  if (wakeup_fd_ >= 0) ::close(wakeup_fd_);
}

bool ProcessPool::ok() const {
  if (supervisor_) supervisor_->wait_for_worker();
  return error().empty();
}
std::string ProcessPool::error() const { return supervisor_ ? supervisor_->broken() : setup_error_; }

Future ProcessPool::submit(Input input, const TaskOptions& options) {
  if (!accepts()) return Future(FailureKind::kNoWorker);
  TaskOptions all = options;
  if (!all.run_timeout) all.run_timeout = run_timeout_;
  if (all.retry.max_attempts == 0) all.retry = retry_;
  return client_->submit(input, all);
}
bool ProcessPool::accepts() const noexcept {
  return supervisor_ && !supervisor_->is_broken() && !draining_.load(std::memory_order_relaxed);
}

bool ProcessPool::drain(std::optional<Nanoseconds> timeout) {
  draining_.store(true);
  return !supervisor_ || client_->drain(std::nullopt, timeout);
}

void ProcessPool::serve(int socket) {
  if (supervisor_)
    supervisor_->serve(socket);
  else
    ::close(socket);
}

ProcessPoolStats ProcessPool::stats() const {
  if (!supervisor_) return {};
  ProcessPoolStats stats = client_->stats();
  stats.workers = supervisor_->stats();
  return stats;
}

std::vector<int> ProcessPool::worker_pids() const { return supervisor_ ? supervisor_->pids() : std::vector<int>{}; }

}  // namespace freehold
