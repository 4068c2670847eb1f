// SPDX-License-Identifier: MIT
#include "freehold/process/worker/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "freehold/os/mapped_file.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/process/client/spin.hpp"
#include "freehold/process/process_info.hpp"
#include "freehold/process/table/shared_memory.hpp"
#include "freehold/process/table/task_table.hpp"
#include "freehold/process/worker/confinement.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {

namespace {
constexpr int kForkedChild = 127;  // as of a shell's child whose exec has failed

// When memory runs out, the system ends a worker, whose task fails, and not the program that has the pool.
void prefer_to_be_killed() noexcept {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, "1000", 4);
  ::close(file);
}
}  // namespace

// The table of the supervisor that started this process, and the worker's place in it.
class Worker::AttachedTable {
 public:
  // Attaches; false: no supervisor has started this process.
  [[nodiscard]] bool attach() noexcept;
  [[nodiscard]] int run(freehold_component* component) noexcept;

 private:
  [[nodiscard]] bool hide_from_children(const SharedMemory& memory) noexcept;
  void run_task(Table& table, const Claim& claim, freehold_component* component) noexcept;
  [[nodiscard]] int retire(std::uint64_t tasks) noexcept;

  const std::uint64_t born_ = now();
  SharedMemory memory_;
  TableShape shape_;
  const bool* original_ = nullptr;  // false in a forked child, where the page is wiped
  unsigned slot_ = 0;
  WorkerLimits limits_;
  std::uint64_t rss_checked_at_ = 0;
};

Worker::Worker() noexcept : table_(std::make_unique<AttachedTable>()) {
  if (!table_->attach()) table_.reset();
}
Worker::~Worker() = default;
int Worker::run(freehold_component* component) noexcept { return table_->run(component); }

bool Worker::AttachedTable::attach() noexcept {
  const char* const text = std::getenv(kWorkerVariable);
  int parent = 0;
  unsigned epoch = 0;
  unsigned long long idle = 0, age = 0, tasks = 0, rss = 0;
  if (text == nullptr ||
      std::sscanf(text, "%u %d %u %llu %llu %llu %llu", &slot_, &parent, &epoch, &idle, &age, &tasks, &rss) != 7)
    return false;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(WorkerExit::kClosed));  // it died before we asked
  limits_ = {.idle = idle, .max_age = age, .max_tasks = tasks, .max_rss = rss};
  SharedMemory memory = SharedMemory::attach(kTableDescriptor);
  const std::optional<TableShape> shape =
      memory.ok() ? Table::shape_of(memory.data(), memory.bytes()) : std::optional<TableShape>();
  if (!shape) return false;
  shape_ = *shape;
  if (!hide_from_children(memory)) return false;
  prefer_to_be_killed();
  Table table(memory.data(), shape_);
  // A component that runs over its buffer, or over the table's end, meets these.
  table.layout().for_each_guard([](std::byte* page, std::size_t bytes) { os::MappedFile::forbid(page, bytes); });
  if (slot_ >= table.shape().workers) return false;
  if (!table.workers().enter(slot_, identity_of(0), epoch)) ::_exit(static_cast<int>(WorkerExit::kClosed));
  if (const char* const how = std::getenv(kConfineVariable); how != nullptr) {
    const char* part = "";
    if (const int error = confine(confinement_of(how), part); error != 0) {
      std::fprintf(stderr, "freehold-worker: %s refuses: %s\n", part, std::strerror(error));
      ::_exit(static_cast<int>(WorkerExit::kNotConfined));
    }
  }
  memory_ = static_cast<SharedMemory&&>(memory);
  return true;
}

// Keeps table and descriptors from the children of the component, and from the programs that they exec.
bool Worker::AttachedTable::hide_from_children(const SharedMemory& memory) noexcept {
  for (const int fd : {kTableDescriptor, kWakeupDescriptor}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  void* const mark = os::MappedFile::map_zero_in_children(os::page_bytes());
  if (mark == nullptr || !os::MappedFile::keep_from_children(memory.data(), memory.bytes())) return false;
  original_ = ::new (mark) bool(true);
  return true;
}

int Worker::AttachedTable::run(freehold_component* component) noexcept {
  Table table(memory_.data(), shape_);
  table.workers().set_up(slot_, true);
  notify(kWakeupDescriptor);
  std::uint64_t tasks = 0;
  AdaptiveSpin spin;
  for (;;) {
    if (const std::optional<Claim> claim = table.try_claim(slot_)) {
      run_task(table, *claim, component);
      if (const int status = retire(++tasks); status != 0) return status;
      continue;
    }
    if (table.closed()) return static_cast<int>(WorkerExit::kClosed);
    if (spin.until([&] { return table.any_ready(); })) continue;
    const std::uint64_t begun = limits_.idle == 0 ? 0 : now();
    const bool uncalled = table.wait_for_work(slot_, limits_.idle == 0 ? sync::kForever : limits_.idle);
    if (uncalled && limits_.idle != 0 && now() - begun >= limits_.idle && !table.any_ready())
      return static_cast<int>(WorkerExit::kIdle);
  }
}

void Worker::AttachedTable::run_task(Table& table, const Claim& claim, freehold_component* component) noexcept {
  auto& entry = table.entries()[claim.entry];
  if (entry.limit.load(std::memory_order_relaxed) != 0) entry.began(now());
  std::size_t bytes = 0;
  const bool& original = *original_;
  const int code = component(table.layout().input(claim.entry), std::min(entry.input_bytes.load(), shape_.max_input),
                             table.layout().output(claim.entry), table.shape().max_output, &bytes);
  if (!original) ::_exit(kForkedChild);  // a child of the component has returned, because its exec failed, say
  if (code != 0) {
    const Table::Retried retried = table.retry(claim, code, now());
    if (retried == Table::Retried::kRevoked) ::_exit(static_cast<int>(WorkerExit::kRevoked));
    if (retried == Table::Retried::kYes) {
      table.workers().count_ended(slot_);
      return table.workers().count_retried(slot_);
    }
  }
  Failure failure;
  if (code != 0) failure = {FailureKind::kComponent, code};
  if (code == 0 && bytes > table.shape().max_output)
    failure = {FailureKind::kComponent, -1};          // it says that it has written beyond its buffer
  if (failure.kind != FailureKind::kNone) bytes = 0;  // a length beyond the output would be taken for damage
  if (!table.complete(claim, bytes, failure)) ::_exit(static_cast<int>(WorkerExit::kRevoked));
  table.workers().count_ended(slot_);
}

// Returns the exit status if this was the last task, else 0.
int Worker::AttachedTable::retire(std::uint64_t tasks) noexcept {
  constexpr std::uint64_t kTasksBetweenChecks = 64;
  if (limits_.max_tasks != 0 && tasks >= limits_.max_tasks) return static_cast<int>(WorkerExit::kMaxTasks);
  if (limits_.max_age == 0 && limits_.max_rss == 0) return 0;
  const std::uint64_t time = now();
  if (limits_.max_age != 0 && time - born_ >= limits_.max_age) return static_cast<int>(WorkerExit::kMaxAge);
  if (limits_.max_rss == 0 || (tasks % kTasksBetweenChecks != 0 && time - rss_checked_at_ < 1'000'000)) return 0;
  rss_checked_at_ = time;
  return own_resident_bytes(0) > limits_.max_rss ? static_cast<int>(WorkerExit::kMaxRss) : 0;
}

}  // namespace freehold::process
