// SPDX-License-Identifier: MIT
// The memory of a table, how another process gets it, and that another user neither gets it nor serves a pool's name. Names
// that are taken or none: cli.workers.
#include "freehold/process/table/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "freehold/process/named_socket.hpp"

namespace freehold::process {
namespace {

TEST(SharedMemory_Unit, Created_SealedPrivateAndZero) {
  SharedMemory memory = SharedMemory::create("test", 1 << 20);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory.bytes(), 1u << 20);
  EXPECT_EQ(static_cast<char*>(memory.data())[12345], 0);
  EXPECT_NE(::ftruncate(memory.fd(), 4096), 0);
  EXPECT_NE(::ftruncate(memory.fd(), 1 << 21), 0);
  struct stat status{};
  ASSERT_EQ(::fstat(memory.fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_NE(::fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, 0);
}
TEST(SharedMemory_Unit, AttachedThroughASocket_SameMemory) {
  SharedMemory memory = SharedMemory::create("test", 4096);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_TRUE(send_client_setup(ends[0], {memory.fd(), 0, 1, 77}));
  ClientSetup passed;
  ASSERT_TRUE(receive_client_setup(ends[1], passed));
  EXPECT_EQ(passed.number, 77u);
  EXPECT_NE(::fcntl(passed.wakeup_fd, F_GETFD) & FD_CLOEXEC, 0);
  ::close(passed.wakeup_fd);
  ::close(passed.process);
  SharedMemory other = SharedMemory::attach(passed.memory);
  ASSERT_TRUE(other.ok());
  static_cast<char*>(memory.data())[7] = 'x';
  EXPECT_EQ(static_cast<char*>(other.data())[7], 'x');
  ::close(ends[0]);
  EXPECT_FALSE(receive_client_setup(ends[1], passed));
  EXPECT_EQ(errno, ENODATA);
  ::close(ends[1]);
}
TEST(SharedMemory_Unit, NotSealed_Refused) {
  const int fd = ::memfd_create("not ours", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  EXPECT_FALSE(SharedMemory::attach(fd).ok());
  EXPECT_EQ(errno, EINVAL);
}
TEST(SharedMemory_Unit, NeitherMemoryNorSocket_Refused) {
  EXPECT_FALSE(SharedMemory::attach(-1).ok());
  EXPECT_EQ(errno, EBADF);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_FALSE(send_client_setup(ends[1], {0, 0, 1, 1}));
  EXPECT_EQ(errno, ENOTSOCK);
  ClientSetup none;
  EXPECT_FALSE(receive_client_setup(ends[0], none));
  EXPECT_EQ(errno, ENOTSOCK);
  ::close(ends[0]);
  ::close(ends[1]);
}
TEST(SharedMemory_Unit, AnotherUsersSocket_GetsNoTable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const bool is_other = ::seteuid(kNobody) == 0;
    const bool sent = send_client_setup(ends[0], {ends[0], ends[0], 1, 1});
    ::_exit(is_other && !sent && errno == EACCES ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}
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
TEST(SharedMemory_Unit, GivenBack_NoPagesAndZeroAgain) {
  SharedMemory memory = SharedMemory::create("test", 1 << 20);
  std::memset(memory.data(), 1, 1 << 20);
  struct stat before{}, after{};
  ::fstat(memory.fd(), &before);
  memory.purge(4000, (1 << 20) - 4000);
  ::fstat(memory.fd(), &after);
  EXPECT_EQ(before.st_blocks - after.st_blocks, ((1 << 20) - 4096) / 512);
  EXPECT_EQ(static_cast<char*>(memory.data())[4095], 1);
  EXPECT_EQ(static_cast<char*>(memory.data())[4096], 0);
}

}  // namespace
}  // namespace freehold::process
