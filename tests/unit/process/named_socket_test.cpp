// SPDX-License-Identifier: MIT
// Another user is not believed to serve a pool's name. Names that are taken or none: cli.workers.
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

// Any user may take an abstract name.
TEST(NamedSocket, AnotherUserServesTheName_NotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kNobody = 65534;
  const std::string name = "foreign-" + std::to_string(::getpid());
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
