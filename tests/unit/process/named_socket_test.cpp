// SPDX-License-Identifier: MIT
// Pools by name: who may take a name, and who is believed to serve it.
#include "freehold/process/named_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace freehold::process {
namespace {

std::string own_name(const char* name) { return name + std::to_string(::getpid()); }

TEST(NamedSocket, NoNameOrATakenOne_Refused) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a/b"), std::string(65, 'x')}) {
    const NamedSocket refused(name);
    EXPECT_FALSE(refused.ok()) << name;
    EXPECT_NE(refused.error().find("is no name for a pool"), std::string::npos) << refused.error();
  }
  const std::string name = own_name("taken-");
  const NamedSocket first(name);
  ASSERT_TRUE(first.ok()) << first.error();
  const NamedSocket second(name);
  EXPECT_FALSE(second.ok());
  EXPECT_EQ(second.error(), "another process serves a pool of the name " + name + " already");
}

// Any user may take an abstract name.
TEST(NamedSocket, AnotherUserServesTheName_NotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kNobody = 65534;
  const std::string name = own_name("foreign-");
  const std::string path = "freehold-pool/0/" + name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
    const bool listens = ::seteuid(kNobody) == 0 &&
                         ::bind(socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && ::listen(socket, 1) == 0;
    ::_exit(listens ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::string error;
  EXPECT_EQ(connect_to(name, error), -1);
  EXPECT_EQ(error, "the pool " + name + " is another user's");
  ::close(socket);
}

}  // namespace
}  // namespace freehold::process
