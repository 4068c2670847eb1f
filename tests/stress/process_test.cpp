// SPDX-License-Identifier: MIT
// Workers and supervisors are killed at random moments while clients call. The oracle: every task is delivered once, with
// its own output; afterwards the table is empty and no process, descriptor or mapping is left. FREEHOLD_TEST_SCALE
// multiplies the kills (script/soak: 3; 20 makes the 1,000 workers and 60 supervisors of docs/process.md).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "freehold/base/poison.hpp"
#include "freehold/process.hpp"
#include "freehold/process/client/attached_client.hpp"
#include "freehold/process/client/client.hpp"
#include "freehold/process/supervisor/supervisor.hpp"
#include "tests/support/proc.hpp"

extern char** environ;

namespace freehold::process {
namespace {

using namespace std::chrono_literals;

unsigned scale() {
  const char* const text = std::getenv("FREEHOLD_TEST_SCALE");
  return text == nullptr ? 1 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}
unsigned seed() {
  const char* const text = std::getenv("FREEHOLD_TEST_SEED");
  const unsigned value = text == nullptr ? std::random_device{}() : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  std::printf("FREEHOLD_TEST_SEED=%u\n", value);
  return value;
}
std::size_t mapped_tables() {
  std::size_t n = 0;
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  for (char line[512]; std::fgets(line, sizeof line, maps) != nullptr;) n += std::strstr(line, "memfd:") != nullptr;
  std::fclose(maps);
  return n;
}

// Threads that call until they are told to stop, by one task after the other or by several at a time.
class Clients {
 public:
  Clients(unsigned threads, Client& client) {
    for (unsigned t = 0; t < threads; ++t) threads_.emplace_back([this, t, &client] { run(t, client); });
  }
  ~Clients() { stop(); }
  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  void run(unsigned thread, Client& client) {
    for (std::uint64_t n = 0; !stop_; ++n) {
      std::vector<std::string> texts;
      std::vector<Future> futures;
      for (unsigned i = 0; i <= thread; ++i) {
        texts.push_back(std::to_string(thread) + "/" + std::to_string(n) + "/" + std::to_string(i));
        futures.push_back(client.submit((i % 2 == 0 ? "slow " : "echo ") + texts.back()));
      }
      for (unsigned i = 0; i <= thread; ++i) {
        const Result result = futures[i].get();
        if (result.ok() && result.text() == texts[i]) {
          ++delivered_;
        } else {
          ++wrong_;
          ADD_FAILURE() << texts[i] << " gave '" << result.text() << "', failure " << static_cast<int>(result.error().kind)
                        << " " << result.error().value;
        }
      }
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> delivered_{0}, wrong_{0};
};

// Returns whether more tasks are delivered, within half a minute.
bool goes_on(const Clients& clients) {
  const std::uint64_t before = clients.delivered();
  for (const auto end = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < end;) {
    if (clients.delivered() >= before + 20) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

class Process_Stress : public testing::Test {
 protected:
  void SetUp() override {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become ours, and are counted
    descriptors_ = test::open_descriptors();
  }
  void TearDown() override {
    int orphans = 0;
    for (int i = 0; i < 1000 && ::waitpid(-1, nullptr, WNOHANG) >= 0; ++i) {
      ++orphans;
      std::this_thread::sleep_for(5ms);
    }
    EXPECT_LT(orphans, 1000) << "a process is left";
    EXPECT_EQ(test::open_descriptors(), descriptors_);
    EXPECT_EQ(mapped_tables(), 0u);
  }
  std::size_t descriptors_ = 0;
};

TEST_F(Process_Stress, WorkersKilledUnderLoad_EveryTaskDeliveredOnce) {
  std::mt19937 random(seed());
  const unsigned kills = 50 * scale();
  {
    SharedMemory memory = SharedMemory::create("stress", Table::bytes({.entries = 16, .workers = 3}));
    Table::create(memory.data(), {.entries = 16, .workers = 3});
    const int wakeup_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), high_wakeup_fd = ::fcntl(wakeup_fd, F_DUPFD_CLOEXEC, 10);
    ::close(wakeup_fd);
    Client client(memory, 0, high_wakeup_fd);
    ProcessPoolOptions how;
    how.command = {FREEHOLD_WORKER_PROGRAM, FREEHOLD_COMPONENT};
    how.max_workers = 3;
    how.max_attempts = TaskWord::kMaxAttempts;
    Supervisor supervisor(memory, high_wakeup_fd, how);
    ASSERT_TRUE(supervisor.start());
    Clients clients(4, client);
    for (unsigned killed = 0; killed < kills;) {
      ASSERT_TRUE(goes_on(clients)) << "after " << killed << " kills";
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
      const std::vector<int> pids = supervisor.pids();
      // A number that the supervisor has just reaped is hardly another process's already.
      if (!pids.empty() && ::kill(pids[random() % pids.size()], SIGKILL) == 0) ++killed;
    }
    clients.stop();
    EXPECT_EQ(clients.wrong(), 0u);
    const ClientStats stats = client.stats().tasks;
    EXPECT_EQ(stats.submitted, clients.delivered());
    EXPECT_EQ(stats.delivered, stats.submitted);
    const SupervisorStats workers = supervisor.stats();
    EXPECT_GT(workers.handed_on, 0u);
    EXPECT_EQ(client.table().entries().count(TaskState::kFree), 16u);
    EXPECT_GT(workers.ended[static_cast<std::size_t>(ExitReason::kSignal)], kills / 4);
    std::printf("%llu tasks, %u kills, %llu handed on\n", static_cast<unsigned long long>(stats.delivered), kills,
                static_cast<unsigned long long>(workers.handed_on));
    supervisor.stop();
    TableSupervision(client.table()).check_invariants();
    ::close(high_wakeup_fd);
  }
}

pid_t spawn_supervisor(const SharedMemory& memory, int wakeup_fd) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, memory.fd(), kTableDescriptor);
  ::posix_spawn_file_actions_adddup2(&files, wakeup_fd, kWakeupDescriptor);
  std::string program = FREEHOLD_SUPERVISOR, workers = "3", worker = FREEHOLD_WORKER_PROGRAM, component = FREEHOLD_COMPONENT;
  char* const arguments[] = {program.data(), workers.data(), worker.data(), component.data(), nullptr};
  pid_t pid = 0;
  EXPECT_EQ(::posix_spawn(&pid, program.c_str(), &files, nullptr, arguments, environ), 0);
  ::posix_spawn_file_actions_destroy(&files);
  return pid;
}

TEST_F(Process_Stress, SupervisorsKilledUnderLoad_TheNextTakesOver) {
  std::mt19937 random(seed());
  const unsigned kills = 3 * scale();
  SharedMemory memory = SharedMemory::create("stress", Table::bytes({.entries = 16, .workers = 3}));
  Table::create(memory.data(), {.entries = 16, .workers = 3});
  const int low_wakeup_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
            wakeup_fd = ::fcntl(low_wakeup_fd, F_DUPFD_CLOEXEC, 10);
  ::close(low_wakeup_fd);
  Client client(memory, 0, wakeup_fd);
  Clients clients(4, client);
  for (unsigned i = 0; i <= kills; ++i) {
    const pid_t supervisor = spawn_supervisor(memory, wakeup_fd);
    EXPECT_TRUE(goes_on(clients)) << "after " << i << " supervisors";
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    if (i == kills) clients.stop();  // the last one lives until all is done
    ::kill(supervisor, SIGKILL);
    ASSERT_EQ(::waitpid(supervisor, nullptr, 0), supervisor);
  }
  EXPECT_EQ(clients.wrong(), 0u);
  EXPECT_EQ(client.stats().tasks.submitted, clients.delivered());
  EXPECT_EQ(client.table().entries().count(TaskState::kFree), 16u);
  std::printf("%llu tasks, %u supervisors\n", static_cast<unsigned long long>(clients.delivered()), kills + 1);
  memory = SharedMemory();
  ::close(wakeup_fd);
}

// A component writes anywhere in the table, a few words or thousands, while good tasks run. Tasks may fail or be wrong; the
// client lives, no process waits for ever, and afterwards all is well. A million writes at scale 20.
TEST_F(Process_Stress, ComponentWritesWildly_ClientLivesAndPoolMendsItself) {
  std::mt19937 random(seed());
  const unsigned writes = 50'000 * scale();
  {
    ProcessPool pool({.component = FREEHOLD_COMPONENT,
                      .worker_program = FREEHOLD_WORKER_PROGRAM,
                      .max_workers = 3,
                      .max_open_tasks = 70,
                      .max_input_bytes = 4096,
                      .max_output_bytes = 4096});
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> good{0}, bad{0};
    std::vector<std::thread> clients;
    for (int c = 0; c < 3; ++c) {
      clients.emplace_back([&] {
        while (!stop) {
          const bool right = pool.call("echo some text").text() == "some text";
          ++(right ? good : bad);
          if (!right) std::this_thread::sleep_for(100us);
        }
      });
    }
    for (unsigned done = 0; done < writes;) {
      const unsigned n = 1 + (random() % 4 != 0 ? random() % 20 : random() % 10'000);
      Future wild = pool.submit("wild " + std::to_string(random()) + " " + std::to_string(n));
      if (!wild.valid()) {
        std::this_thread::sleep_for(1ms);  // the damage says that the pool is closed
        continue;
      }
      ASSERT_TRUE(wild.wait_for(60s)) << text(pool.stats());
      if (wild.get().ok()) done += n;
    }
    stop = true;
    for (std::thread& client : clients) client.join();
    // The supervisor looks for damage at every tick while there are tasks. Until the last damage was seen answers may be
    // wrong, then none of a hundred.
    const auto was_looked_at = std::chrono::steady_clock::now() + 500ms;
    for (unsigned strictly = 0; strictly < 100;) {
      Future future;
      const auto accepted = [&] { return (future = pool.submit("echo x")).valid(); };
      for (const auto end = std::chrono::steady_clock::now() + 30s; !accepted() && std::chrono::steady_clock::now() < end;)
        std::this_thread::sleep_for(5ms);
      ASSERT_TRUE(future.valid()) << pool.error();
      const bool is_strict = std::chrono::steady_clock::now() >= was_looked_at;
      ASSERT_TRUE(future.wait_for(30s)) << text(pool.stats());
      const Result result = future.get();
      EXPECT_TRUE(!is_strict || result.text() == "x") << strictly;
      strictly += is_strict ? 1 : 0;
    }
    std::printf("%u writes, %llu good tasks, %llu bad ones, made anew %llu times\n", writes,
                static_cast<unsigned long long>(good), static_cast<unsigned long long>(bad),
                static_cast<unsigned long long>(pool.stats().workers.damaged));
    EXPECT_GT(pool.stats().workers.damaged, 0u);
    EXPECT_LE(pool.stats().workers.retried, 1'000'000u) << "an unchecked figure of the table's";
  }
}

// The table's memory once more, as another process of this user has it. Its areas are left out: they are contents.
struct OtherMapping {
  OtherMapping() {
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (!std::filesystem::read_symlink(file, gone).string().starts_with("/memfd:freehold tasks")) continue;
      const int fd = std::atoi(file.path().filename().c_str());
      void* const address = ::mmap(nullptr, kWritten, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (address != MAP_FAILED) words = {static_cast<std::uint64_t*>(address), kWritten / sizeof(std::uint64_t)};
    }
  }
  ~OtherMapping() { ::munmap(words.data(), words.size_bytes()); }
  static constexpr std::size_t kWritten = 8192;
  std::span<std::uint64_t> words;
};

// Another process of this user writes over the table that a client in this one is attached to, all of it, between its calls.
// A call ends with an error or an answer, whichever words it meets, and no memory is taken for what they say.
TEST_F(Process_Stress, TableIsWrittenOver_AttachedClientEndsWithinBounds) {
  std::mt19937_64 random(seed());
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const pid_t server = ::fork();
  if (server == 0) {
    ::close(ends[1]);
    ProcessPool pool({.component = FREEHOLD_COMPONENT,
                      .worker_program = FREEHOLD_WORKER_PROGRAM,
                      .max_workers = 2,
                      .max_open_tasks = 16,
                      .max_input_bytes = 4096,
                      .max_output_bytes = 4096});
    pool.serve(ends[0]);
    for (;;) ::pause();
  }
  ::close(ends[0]);
  {
    AttachedClient attached(ends[1]);
    ASSERT_TRUE(attached.ok()) << attached.error();
    ASSERT_EQ(attached.submit("echo x").get().text(), "x");
    const OtherMapping table;
    ASSERT_TRUE(table.words.data() != nullptr);
    const std::size_t before = test::own_memory().resident, server_before = test::memory_of(server).resident;
    std::uint64_t good = 0, bad = 0;
    for (unsigned round = 0; round < 300 * scale(); ++round) {
      for (std::uint64_t n = 1 + random() % 8; n > 0; --n) {
        std::uint64_t& word = table.words[random() % table.words.size()];
        word = random() % 3 == 0 ? random() : word ^ std::uint64_t{1} << random() % 64;
      }
      Future future = attached.submit("echo some text", {.submit_timeout = 10ms});
      ASSERT_TRUE(!future.valid() || future.wait_for(60s)) << round;
      const bool right = future.get().text() == "some text";
      ++(right ? good : bad);
      if (!right) std::this_thread::sleep_for(1ms);  // the table is being made anew
    }
    EXPECT_LT(test::own_memory().resident, before + (std::size_t{64} << 20));
    EXPECT_LT(test::memory_of(server).resident, server_before + (std::size_t{64} << 20));
    EXPECT_EQ(::waitpid(server, nullptr, WNOHANG), 0) << "the pool's process has ended";
    std::printf("%llu answers, %llu errors\n", static_cast<unsigned long long>(good), static_cast<unsigned long long>(bad));
    EXPECT_GT(good, 0U);
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
}

// Ten million at scale 50.
TEST_F(Process_Stress, ManyTasks_NobodyGrows) {
  const std::uint64_t tasks = std::uint64_t{200'000} * scale();
  // AddressSanitizer would have each worker keep 256 MiB of freed memory. Without that its allocator grows by a MiB at a
  // time.
  const char* const given = std::getenv("ASAN_OPTIONS");
  ::setenv("ASAN_OPTIONS",
           ((given != nullptr ? given + std::string(":") : "") + "quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
               .c_str(),
           1);
  {
    ProcessPool pool(
        {.component = FREEHOLD_COMPONENT, .worker_program = FREEHOLD_WORKER_PROGRAM, .max_workers = 2, .min_workers = 2});
    ASSERT_TRUE(pool.ok()) << pool.error();
    const std::string input = "echo " + std::string(1000, 'x');
    std::vector<Future> futures(64);
    std::uint64_t delivered = 0;
    std::size_t own = 0, workers = 0;
    const auto sizes = [&](std::size_t& mine, std::size_t& theirs) {
      mine = test::own_memory().resident;
      theirs = 0;
      for (const int pid : pool.worker_pids()) theirs += test::memory_of(pid).resident;
    };
    for (std::uint64_t n = 0; n < tasks; ++n) {
      Future& future = futures[n % futures.size()];
      if (future.valid()) delivered += future.get().text().size() == 1000;
      future = pool.submit(input);
      if (n == tasks / 4) sizes(own, workers);
    }
    for (Future& future : futures) delivered += future.get().text().size() == 1000;
    EXPECT_EQ(delivered, tasks);
    std::size_t own_at_end = 0, workers_at_end = 0;
    sizes(own_at_end, workers_at_end);
    EXPECT_LT(own_at_end, own + (1 << 20));
    EXPECT_LT(workers_at_end, workers + (base::kAddressSanitizer ? 8 << 20 : 1 << 20));
    std::printf("%llu tasks; client %zu KiB, then %zu; workers %zu, then %zu\n", static_cast<unsigned long long>(tasks),
                own >> 10, own_at_end >> 10, workers >> 10, workers_at_end >> 10);
    EXPECT_EQ(pool.stats().workers.ended[static_cast<std::size_t>(ExitReason::kSignal)], 0u);
  }
}

}  // namespace
}  // namespace freehold::process
