// SPDX-License-Identifier: MIT
// The requirements on every process pool, tested on the shared-memory table and, where libgearman and gearmand are
// installed, on two job servers and three machines on loopback. Then workers, machines and a server are killed under load,
// and every task is counted.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "freehold/process.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/proc.hpp"
#include "tests/support/test.hpp"
#ifdef FREEHOLD_GEARMAN_WORKER
#include "freehold/process_gearman.hpp"
#include "tests/support/gearmand.hpp"
#endif

namespace freehold {
namespace {

using namespace std::chrono_literals;
using process::Failure;
using process::FailureKind;
using test::comes_true;

constexpr std::uint32_t kEntries = 32;
constexpr unsigned kAttempts = 2;
constexpr std::size_t kMaxBytes = 256 << 10;

struct Table {
  using Pool = ProcessPool;
  static std::string missing() { return ""; }
  static void start() {}
  static void stop() {}
  static ProcessPoolOptions options() {
    ProcessPoolOptions how;
    how.component = FREEHOLD_TEST_COMPONENT;
    how.worker_program = FREEHOLD_WORKER_PROGRAM;
    how.max_workers = 6;
    how.max_open_tasks = kEntries;
    how.max_input_bytes = how.max_output_bytes = kMaxBytes;
    how.max_attempts = kAttempts;
    return how;
  }
};

#ifdef FREEHOLD_GEARMAN_WORKER
using test::ChildProcess;
using test::JobServer;

// Two servers and machines with two slots each.
struct Cluster {
  std::vector<JobServer> servers;
  std::vector<ChildProcess> machines;

  explicit Cluster(unsigned how_many, unsigned retries = 5) {
    for (int i = 0; i < 2; ++i) servers.emplace_back(retries);
    for (unsigned i = 0; i < how_many; ++i) add_machine();
  }
  void add_machine(const std::string& component = FREEHOLD_TEST_COMPONENT) {
    std::vector<std::string> command = {
        FREEHOLD_GEARMAN_WORKER, "-n", "2", "-a", std::to_string(kAttempts), "-b", std::to_string(kMaxBytes), "-w",
        FREEHOLD_WORKER_PROGRAM};
    for (const JobServer& server : servers) command.insert(command.end(), {"-s", server.address()});
    command.push_back(component);
    machines.emplace_back(command);
  }
  [[nodiscard]] std::size_t dead() {
    return static_cast<std::size_t>(std::ranges::count_if(machines, [](ChildProcess& machine) { return !machine.lives(); }));
  }
  [[nodiscard]] GearmanPoolOptions options() const {
    GearmanPoolOptions how;
    for (const JobServer& server : servers) how.servers.push_back(server.address());
    how.max_open_tasks = kEntries;
    how.max_connections = kEntries;
    how.max_input_bytes = kMaxBytes;
    return how;
  }
};

struct Gearman {
  using Pool = GearmanPool;
  static std::string missing() { return JobServer::program().empty() ? "gearmand is not installed" : ""; }
  static void start() {
    if (missing().empty()) cluster = std::make_unique<Cluster>(3);
  }
  static void stop() { cluster.reset(); }
  static GearmanPoolOptions options() { return cluster->options(); }
  static inline std::unique_ptr<Cluster> cluster;
};
using Backends = testing::Types<Table, Gearman>;
#else
using Backends = testing::Types<Table>;
#endif

template <class Backend>
class ProcessBackend_Conformance : public testing::Test {
 protected:
  static void SetUpTestSuite() { Backend::start(); }
  static void TearDownTestSuite() { Backend::stop(); }
  void SetUp() override {
    if (!Backend::missing().empty()) GTEST_SKIP() << Backend::missing();
    pool = std::make_unique<typename Backend::Pool>(Backend::options());
    ASSERT_TRUE(pool->ok()) << pool->error();
  }
  std::unique_ptr<typename Backend::Pool> pool;
};
TYPED_TEST_SUITE(ProcessBackend_Conformance, Backends);

TYPED_TEST(ProcessBackend_Conformance, SmallAndLarge_ResultsOfTheComponent) {
  EXPECT_EQ(this->pool->call("echo hello").text(), "hello");
  const auto empty = this->pool->call("echo ");
  EXPECT_TRUE(empty.ok());
  EXPECT_EQ(empty.bytes().size(), 0u);
  EXPECT_EQ(this->pool->call("size " + std::to_string(kMaxBytes)).text(), std::string(kMaxBytes, 'x'));
  std::string large(kMaxBytes - 5, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 256);
  EXPECT_EQ(this->pool->call("echo " + large).text(), large);
  const auto stats = this->pool->stats();
  EXPECT_EQ(stats.tasks.submitted, 4u);
  EXPECT_EQ(stats.tasks.delivered, 4u);
  EXPECT_GT(stats.tasks.median, 0u);
}
TYPED_TEST(ProcessBackend_Conformance, Batch_EachItsOwnResult) {
  std::vector<decltype(this->pool->submit(""))> futures;
  for (unsigned i = 0; i < kEntries; ++i) futures.push_back(this->pool->submit("echo " + std::to_string(i)));
  for (unsigned i = kEntries; i-- > 0;) EXPECT_EQ(futures[i].get().text(), std::to_string(i));
}
TYPED_TEST(ProcessBackend_Conformance, ComponentRefuses_ItsNumber) {
  EXPECT_EQ(this->pool->call("fail 42").error(), (Failure{FailureKind::kComponent, 42}));
  EXPECT_EQ(this->pool->call("fail -7").error().kind, FailureKind::kComponent);
  EXPECT_EQ(this->pool->stats().tasks.failed, 2u);
}
TYPED_TEST(ProcessBackend_Conformance, WorkerCrashesOnce_TaskIsTriedAgain) {
  const test::Folder folder;
  EXPECT_TRUE(this->pool->call("once " + (folder / "mark")).ok());
  EXPECT_TRUE(std::filesystem::exists(folder / "mark")) << "it did not crash";
}
TYPED_TEST(ProcessBackend_Conformance, PoisonTasks_FailWithTheReasonAfterTheirAttempts_OthersGoOn) {
  const test::Folder folder;
  const std::string log = folder / "log";
  auto crashes = this->pool->submit("crash"), exits = this->pool->submit("exit 7"), logs = this->pool->submit("log " + log);
  std::vector<decltype(this->pool->submit(""))> good;
  for (int i = 0; i < 20; ++i) good.push_back(this->pool->submit("echo " + std::to_string(i)));
  for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(good[i].get().text(), std::to_string(i));
  EXPECT_EQ(crashes.get().error(), (Failure{FailureKind::kSignal, SIGKILL}));
  EXPECT_EQ(exits.get().error(), (Failure{FailureKind::kExit, 7}));
  EXPECT_EQ(logs.get().error(), (Failure{FailureKind::kSignal, SIGKILL}));
  EXPECT_EQ(std::filesystem::file_size(log), kAttempts);
}
TYPED_TEST(ProcessBackend_Conformance, Deadline_Reason_OthersUnharmed) {
  auto hangs = this->pool->submit("hang", {.run_timeout = 50ms});
  auto slow = this->pool->submit("sleep 80");
  EXPECT_EQ(hangs.get().error(), (Failure{FailureKind::kDeadline, 50}));
  EXPECT_TRUE(slow.get().ok());
}
TYPED_TEST(ProcessBackend_Conformance, WaitFor_TimesOutThenGets) {
  auto future = this->pool->submit("sleep 50");
  EXPECT_FALSE(future.wait_for(1ms));
  EXPECT_TRUE(future.wait_for(20s));
  EXPECT_TRUE(future.get().ok());
  EXPECT_FALSE(future.valid());
}
TYPED_TEST(ProcessBackend_Conformance, Full_RefusesTimesOut_CancelMakesRoom) {
  std::vector<decltype(this->pool->submit(""))> sleep;
  for (unsigned i = 0; i < kEntries; ++i) sleep.push_back(this->pool->submit("sleep 100"));
  EXPECT_EQ(this->pool->submit("echo x", {.submit_timeout = 0ns}).error().kind, FailureKind::kFull);
  EXPECT_EQ(this->pool->submit("echo x", {.submit_timeout = 1ms}).error().kind, FailureKind::kFull);
  sleep.clear();  // drops them all
  auto next = this->pool->submit("echo x");
  ASSERT_TRUE(next.valid());
  EXPECT_EQ(next.get().text(), "x");
}
TYPED_TEST(ProcessBackend_Conformance, NoTask_FutureAndResultSayWhy) {
  const std::string large(kMaxBytes + 1, 'x');
  auto refused = this->pool->submit(large);
  EXPECT_FALSE(refused.valid());
  EXPECT_EQ(refused.error(), Failure{FailureKind::kTooLarge});
  EXPECT_EQ(refused.get().error(), Failure{FailureKind::kTooLarge});
  EXPECT_EQ(this->pool->call(large).error(), Failure{FailureKind::kTooLarge});
  auto taken = this->pool->submit("echo x");
  EXPECT_TRUE(taken.get().ok());
  EXPECT_EQ(taken.get().error(), Failure{FailureKind::kNoTask});
}
TYPED_TEST(ProcessBackend_Conformance, Cancelled_WaitingTaskDoesNotBegin) {
  const test::Folder folder;
  const std::string mark = folder / "mark";
  std::vector<decltype(this->pool->submit(""))> busy;
  for (int i = 0; i < 12; ++i) busy.push_back(this->pool->submit("sleep 60"));  // twice the workers
  auto waits = this->pool->submit("once " + mark);
  waits.cancel();
  EXPECT_FALSE(waits.valid());
  for (auto& future : busy) EXPECT_TRUE(future.get().ok());
  EXPECT_EQ(this->pool->call("echo after").text(), "after");
  EXPECT_FALSE(std::filesystem::exists(mark));
}
TYPED_TEST(ProcessBackend_Conformance, ManyClients_EveryTaskItsOwnResult) {
  constexpr unsigned kClients = 8, kTasks = 100;
  std::atomic<unsigned> right{0};
  std::vector<std::thread> clients;
  for (unsigned c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      for (unsigned i = 0; i < kTasks; ++i) {
        const std::string text = std::to_string(c) + "/" + std::to_string(i);
        if (this->pool->call("echo " + text).text() == text) ++right;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, kClients * kTasks);
  EXPECT_EQ(this->pool->stats().tasks.delivered, kClients * kTasks);
  EXPECT_EQ(this->pool->stats().tasks.failed, 0u);
}

#ifdef FREEHOLD_GEARMAN_WORKER
TEST(Gearman_Conformance, WrongOptions_SaysSo) {
  EXPECT_FALSE(GearmanPool(GearmanPoolOptions{}).ok());
  for (const char* server : {"", ":4730", "host:", "host:x", "host:70000", "host:0"}) {
    GearmanPoolOptions how;
    how.servers = {server};
    GearmanPool pool(how);
    EXPECT_FALSE(pool.ok()) << server;
    EXPECT_EQ(pool.submit("x").error().kind, FailureKind::kNoWorker);
  }
}
TEST(Gearman_Conformance, NoServer_FailsInTime) {
  GearmanPoolOptions how;
  how.servers = {"127.0.0.1:" + std::to_string(test::free_port()), "[::1]:" + std::to_string(test::free_port())};
  how.server_timeout = 100ms;
  GearmanPool pool(how);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ(pool.call("echo x").error(), (Failure{FailureKind::kNoWorker, 0}));
}

class Gearman_Failures : public testing::Test {
 protected:
  void SetUp() override {
    if (JobServer::program().empty()) GTEST_SKIP() << "gearmand is not installed";
  }
  const test::Folder folder;
  const std::string file = folder / "file";
};

TEST_F(Gearman_Failures, ServerLostInATask_TheFirstRunsAnswer_NoSecondRun) {
  Cluster cluster(1);
  GearmanPool pool(cluster.options());
  auto future = pool.submit("count " + file);  // the first connection is to the first server
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(file); }));
  cluster.servers[0].kill();
  const auto result = future.get();
  EXPECT_EQ(result.text(), file);
  EXPECT_EQ(std::filesystem::file_size(file), 1u) << "it was run again";
  EXPECT_EQ(pool.stats().resubmitted, 1u);
}
TEST_F(Gearman_Failures, InputBeyondTheMachinesLimit_FailsWithThatReason) {
  Cluster cluster(1);
  GearmanPoolOptions how = cluster.options();
  how.max_input_bytes = 2 * kMaxBytes;
  GearmanPool pool(how);
  EXPECT_EQ(pool.call(std::string(kMaxBytes + 1, 'x')).error(), Failure{FailureKind::kTooLarge});
}
TEST_F(Gearman_Failures, ServerSaysNothing_TheOthersTasksAreRun) {
  Cluster cluster(1);
  GearmanPoolOptions how = cluster.options();
  how.servers = {cluster.servers[1].address()};
  GearmanPool pool(how);
  ASSERT_TRUE(pool.call("echo up").ok());
  cluster.servers[0].stop();
  std::this_thread::sleep_for(300ms);  // both slots have asked it again
  EXPECT_EQ(pool.call("echo x").text(), "x");
}
// Another host, as far as TCP can see: a network namespace, gone with the object.
class OtherHost {
 public:
  OtherHost()
      : name_("fh" + std::to_string(::getpid() % 100'000)), net_("10.231." + std::to_string(::getpid() % 250) + ".") {
    up_ = ::geteuid() == 0 && run("ip netns add " + name_) &&
          run("ip link add " + name_ + "a type veth peer name " + name_ + "b netns " + name_) &&
          run("ip addr add " + net_ + "1/24 dev " + name_ + "a") && run("ip link set " + name_ + "a up") &&
          run("ip netns exec " + name_ + " ip addr add " + net_ + "2/24 dev " + name_ + "b") &&
          run("ip netns exec " + name_ + " ip link set " + name_ + "b up");
  }
  ~OtherHost() {
    run("ip link del " + name_ + "a");
    run("ip netns del " + name_);
  }
  OtherHost(const OtherHost&) = delete;
  OtherHost& operator=(const OtherHost&) = delete;
  [[nodiscard]] bool ok() const { return up_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string address() const { return net_ + "2"; }
  // Nothing comes or goes any more, and neither side learns of it; this side's end stays up, or its route would be another
  // one.
  void vanish() const { run("ip netns exec " + name_ + " ip link set " + name_ + "b down"); }

 private:
  static bool run(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }
  std::string name_, net_;
  bool up_ = false;
};

TEST_F(Gearman_Failures, ServersHostVanishesInTasks_TheyGoToTheNextServer) {
  const OtherHost host;
  if (!host.ok()) GTEST_SKIP() << "no network namespace can be made: that takes root and iproute2";
  const test::JobServer there(host.name(), host.address(), 4730);
  ASSERT_TRUE(there.ok());
  Cluster cluster(1);
  // Both servers have machines; the task is at the one that vanishes.
  const test::ChildProcess machine({FREEHOLD_GEARMAN_WORKER, "-s", host.address(), "-n", "2", "-b",
                                    std::to_string(kMaxBytes), "-w", FREEHOLD_WORKER_PROGRAM, FREEHOLD_TEST_COMPONENT});
  GearmanPoolOptions how = cluster.options();
  how.servers = {host.address()};
  ASSERT_TRUE(GearmanPool(how).call("echo up").ok());
  how.servers = {host.address(), cluster.servers[0].address(), cluster.servers[1].address()};
  how.host_check_interval = 300ms;
  GearmanPool pool(how);
  // 10 of this test's 13 s libgearman waits in closing the connection: it lingers.
  auto future = pool.submit("sleep 1500");
  std::this_thread::sleep_for(200ms);
  host.vanish();
  EXPECT_EQ(future.get().text(), "1500");
  EXPECT_EQ(pool.stats().resubmitted, 1u);
}
TEST_F(Gearman_Failures, MachineKilledInATask_AnotherRunsItAtOnce) {
  Cluster cluster(2);
  GearmanPool pool(cluster.options());
  ASSERT_TRUE(pool.call("echo up").ok());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(pool.call("patricide " + file).text(), file);
  RecordProperty("milliseconds", static_cast<int>((std::chrono::steady_clock::now() - begin) / 1ms));
  EXPECT_TRUE(comes_true([&] { return cluster.dead() == 1; }));  // its connections are closed before it can be reaped
  EXPECT_EQ(pool.stats().resubmitted, 0u);
}
TEST_F(Gearman_Failures, TaskKillsItsMachines_FailsAfterTheServersRetries) {
  Cluster cluster(4, 2);
  GearmanPool pool(cluster.options());
  EXPECT_EQ(pool.call("patricide /no/such/folder/file").error(), (Failure{FailureKind::kSignal, 0}));
  EXPECT_EQ(pool.call("echo x").text(), "x");
  EXPECT_TRUE(comes_true([&] { return cluster.dead() == 2; }));
}
TEST_F(Gearman_Failures, MachineWithoutItsComponent_LeavesTheTasksToOthersAndEnds) {
  Cluster cluster(0);
  cluster.add_machine("/no/such/component.so");
  GearmanPool pool(cluster.options());
  auto future = pool.submit("echo x");
  EXPECT_TRUE(comes_true([&] { return cluster.dead() == 1; }));
  EXPECT_FALSE(future.wait_for(0ns));
  cluster.add_machine();
  EXPECT_EQ(future.get().text(), "x");
}

// The children of the machines, from /proc.
std::vector<int> workers_of(const std::vector<ChildProcess>& machines) {
  std::vector<int> pids;
  for (const ChildProcess& machine : machines) {
    const std::string tasks = "/proc/" + std::to_string(machine.pid()) + "/task";
    std::error_code gone;
    for (std::filesystem::directory_iterator thread(tasks, gone), end; !gone && thread != end; thread.increment(gone)) {
      std::ifstream children(thread->path() / "children");
      for (int pid = 0; children >> pid;) pids.push_back(pid);
    }
  }
  return pids;
}

TEST_F(Gearman_Failures, WorkersMachinesAndAServerKilledUnderLoad_NothingLostNoneTwice) {
  Cluster cluster(3);
  GearmanPool pool(cluster.options());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> submitted{0}, right{0};
  constexpr unsigned kClients = 4;
  std::array<std::atomic<unsigned>, kClients> batches{};  // that each client has got
  std::mutex lock;
  std::vector<std::string> wrong;
  std::vector<std::thread> clients;
  for (unsigned c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      for (unsigned n = 0; !stop; ++n, ++batches[c]) {
        std::vector<process::GearmanFuture> futures;
        for (unsigned i = 0; i < 4; ++i) {
          futures.push_back(pool.submit("slow " + std::to_string(c) + "/" + std::to_string(n) + "/" + std::to_string(i)));
          ++submitted;
        }
        for (unsigned i = 0; i < 4; ++i) {
          const std::string text = std::to_string(c) + "/" + std::to_string(n) + "/" + std::to_string(i);
          const auto result = futures[i].get();
          if (result.ok() && result.text() == text) {
            ++right;
          } else {
            const std::lock_guard guard(lock);
            wrong.push_back(text + ": '" + std::string(result.text()) + "', failure " +
                            std::to_string(static_cast<int>(result.error().kind)) + " " +
                            std::to_string(result.error().value));
          }
        }
      }
    });
  // A task fails when its worker is killed twice. So the next kill waits until every client has begun and got a batch: then
  // no task is left whose worker was killed before.
  const auto goes_on = [&] {
    std::array<unsigned, kClients> before{};
    for (unsigned c = 0; c < kClients; ++c) before[c] = batches[c];
    return comes_true([&] {
      for (unsigned c = 0; c < kClients; ++c)
        if (batches[c] < before[c] + 2) return false;
      return true;
    });
  };
  std::mt19937 random(std::random_device{}());
  EXPECT_TRUE(goes_on());
  unsigned killed = 0;
  for (int i = 0; i < 12; ++i) {
    const std::vector<int> workers = workers_of(cluster.machines);
    if (!workers.empty()) killed += ::kill(workers[random() % workers.size()], SIGKILL) == 0;
    EXPECT_TRUE(goes_on()) << "after a worker";
    if (i % 4 == 1) {
      cluster.machines.erase(cluster.machines.begin() + static_cast<long>(random() % 3));  // kills it
      EXPECT_TRUE(goes_on()) << "after a machine";
      cluster.add_machine();
    }
    if (i == 6) {
      cluster.servers[1].kill();
      EXPECT_TRUE(goes_on()) << "after the server";
    }
  }
  EXPECT_GT(killed, 6u);
  stop = true;
  for (std::thread& client : clients) client.join();
  for (const std::string& what : wrong) ADD_FAILURE() << what;
  EXPECT_EQ(right, submitted);
  const GearmanPoolStats stats = pool.stats();
  EXPECT_EQ(stats.tasks.submitted, submitted);
  EXPECT_EQ(stats.tasks.delivered, submitted);
  std::printf("%s\n", text(pool.stats()).c_str());
}
#endif

}  // namespace
}  // namespace freehold
