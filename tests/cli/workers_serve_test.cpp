// SPDX-License-Identifier: MIT
// freehold workers --serve: other processes attach by name, and are told what is wrong when they cannot.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "freehold/process.hpp"
#include "freehold/process/table/shared_memory.hpp"
#include "freehold/process/table/task_table.hpp"
#include "tests/cli/command.hpp"

namespace freehold::tests {
namespace {
using namespace std::chrono_literals;
using process::AttachedClient;

class WorkersServe : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> words() const {
    return {command_path(), "workers", "--component", built("libworkers_component.so"), "--workers", "2", "--serve", name_};
  }
  // Attaches as soon as the server is up.
  [[nodiscard]] std::unique_ptr<AttachedClient> attach() const {
    for (int i = 0; i < 1000; ++i) {
      auto client = std::make_unique<AttachedClient>(name_);
      if (client->ok()) return client;
      std::this_thread::sleep_for(10ms);
    }
    return nullptr;
  }
  [[nodiscard]] std::string error_of_attach() const { return AttachedClient(name_).error(); }
  [[nodiscard]] std::string second_server() const {
    std::vector<std::string> arguments = words();
    arguments.erase(arguments.begin());
    const Ended second = freehold(arguments);
    expect_refused(second, "");
    return second.err;
  }
  // Each test has another name: a former test's workers may still hold its socket.
  const std::string name_ =
      "test-" + std::to_string(::getpid()) + "-" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(WorkersServe, ClientsAttachByName_SecondServerIsRefused) {
  EXPECT_TRUE(contains(error_of_attach(), "no process serves a pool of the name " + name_)) << error_of_attach();
  Process server(words());
  const auto one = attach(), other = attach();
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->submit("hello").get().text(), "HELLO");
  EXPECT_EQ(other->submit("refuse 7").get().error(), (process::Failure{process::FailureKind::kComponent, 7}));
  EXPECT_TRUE(contains(second_server(), "another process serves a pool of the name " + name_ + " already"));
  EXPECT_EQ(one->submit("again").get().text(), "AGAIN");
  ::kill(server.pid(), SIGTERM);
}
TEST_F(WorkersServe, CtrlC_ClientsAreTold_NameIsFree) {
  for (int run = 0; run < 2; ++run) {
    Process server(words());
    const auto client = attach();
    ASSERT_TRUE(client);
    process::Future hangs = client->submit("sleep 60000");
    process::Future more = client->submit("sleep 1");
    EXPECT_TRUE(more.get().ok());
    ::kill(server.pid(), SIGINT);
    EXPECT_TRUE(server.wait().exited_with(130));
    EXPECT_EQ(hangs.get().error().kind, process::FailureKind::kNoWorker);
    EXPECT_FALSE(client->submit("x").valid());
  }
}
TEST_F(WorkersServe, ServerKilled_ClientsAreTold_AnotherTakesTheName) {
  auto server = std::make_unique<Process>(words());
  const auto client = attach();
  ASSERT_TRUE(client);
  process::Future hangs = client->submit("sleep 60000");
  ::kill(server->pid(), SIGKILL);
  EXPECT_EQ(hangs.get().error().kind, process::FailureKind::kNoWorker);
  server.reset();
  EXPECT_TRUE(contains(error_of_attach(), "no process serves")) << error_of_attach();
  server = std::make_unique<Process>(words());
  const auto next = attach();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->submit("hello").get().text(), "HELLO");
}
// A server of the next version, as far as a client can see.
TEST_F(WorkersServe, TwoVersions_RefusedInOneLineWithBoth) {
  process::SharedMemory memory = process::SharedMemory::create("next", process::Table::bytes({}));
  process::Table::create(memory.data(), {});
  ++static_cast<char*>(memory.data())[8];
  const process::NamedSocket socket(name_);
  ASSERT_TRUE(socket.ok()) << socket.error();
  std::jthread server([&] {
    int peer = -1;
    while ((peer = socket.accept()) < 0) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(process::send_client_setup(peer, {memory.fd(), 0, 1, 1}));
    ::close(peer);
  });
  const std::string own = std::to_string(process::Table::kVersion), next = std::to_string(process::Table::kVersion + 1);
  EXPECT_EQ(error_of_attach(),
            "the pool is of another version of Freehold: its table is version " + next + ", this program's version " + own);
}
TEST_F(WorkersServe, BadNamesAndOptions_OneLineAndExit2) {
  EXPECT_TRUE(contains(AttachedClient(std::string("a/b")).error(), "is no name for a pool"));
  const std::string so = built("libworkers_component.so");
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--serve", "", "--component", so},
                                             {"--serve", "a b", "--component", so},
                                             {"--serve", std::string(65, 'a'), "--component", so},
                                             {"--serve", name_},
                                             {"--serve", name_, "--component", so, "--tasks", "-"},
                                             {"--serve", name_, "--component", "missing.so"}}) {
    std::vector<std::string> arguments = bad;
    arguments.insert(arguments.begin(), "workers");
    expect_refused(freehold(arguments), "");
  }
}

}  // namespace
}  // namespace freehold::tests
