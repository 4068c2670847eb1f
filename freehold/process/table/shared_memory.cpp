// SPDX-License-Identifier: MIT
#include "freehold/process/table/shared_memory.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/os/mapped_file.hpp"
#include "freehold/os/memory_file.hpp"
#include "freehold/os/pages.hpp"
#include "freehold/process/worker/worker_protocol.hpp"

namespace freehold::process {
namespace {

int closed_with_errno(int fd) noexcept {
  const int saved = errno;
  if (fd >= 0) ::close(fd);
  errno = saved;
  return -1;
}

}  // namespace

SharedMemory SharedMemory::create(const char* name, std::uint64_t bytes) noexcept {
  const int fd = above_worker_descriptors(os::create_memory_file(name, bytes));
  return fd < 0 ? SharedMemory() : attach(fd);
}

SharedMemory SharedMemory::attach(int fd) noexcept {
  SharedMemory memory;
  struct stat status{};
  if (::fstat(fd, &status) != 0) return memory;
  void* data = nullptr;
  if (os::is_sealed_memory_file(fd))
    data = os::MappedFile::map_shared_guarded(fd, static_cast<std::size_t>(status.st_size));
  else
    errno = EINVAL;
  if (data == nullptr) {
    closed_with_errno(fd);
    return memory;
  }
  memory.fd_ = fd;
  memory.data_ = data;
  memory.bytes_ = static_cast<std::uint64_t>(status.st_size);
  return memory;
}

SharedMemory::~SharedMemory() {
  if (data_ == nullptr) return;
  os::MappedFile::unmap_guarded(data_, bytes_);
  ::close(fd_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void SharedMemory::purge(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  // Whole pages only: the system clears the rest of a hole, too.
  const std::uint64_t begin = base::align_up(offset, os::page_bytes());
  const std::uint64_t end = base::align_down(offset + bytes, os::page_bytes());
  if (begin < end) os::punch_hole(fd_, begin, end - begin);
}

namespace {

// A message of one number and three descriptors. Not movable: the header points into it.
struct SetupMessage {
  explicit SetupMessage(std::uint32_t& number) noexcept : data{&number, sizeof number} {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  SetupMessage(const SetupMessage&) = delete;
  SetupMessage& operator=(const SetupMessage&) = delete;

  static constexpr std::size_t kBytes = 3 * sizeof(int);  // bytes of the descriptors
  iovec data;
  alignas(cmsghdr) char control[CMSG_SPACE(kBytes)] = {};
  msghdr header{};
};

}  // namespace

bool send_client_setup(int socket, const ClientSetup& setup) noexcept {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  if (peer.uid != ::geteuid()) {
    errno = EACCES;
    return false;
  }
  std::uint32_t number = setup.number;
  const int fds[3] = {setup.memory, setup.wakeup_fd, setup.process};
  SetupMessage message(number);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(rights), fds, sizeof fds);
  return ::sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof number;
}

bool receive_client_setup(int socket, ClientSetup& setup) noexcept {
  int fds[3] = {-1, -1, -1};
  SetupMessage message(setup.number);
  const ssize_t got = ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC);
  if (got < 0) return false;
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  if (got != sizeof setup.number || rights == nullptr || rights->cmsg_type != SCM_RIGHTS ||
      rights->cmsg_len != CMSG_LEN(sizeof fds)) {
    errno = ENODATA;
    return false;
  }
  std::memcpy(fds, CMSG_DATA(rights), sizeof fds);
  setup.memory = fds[0];
  setup.wakeup_fd = fds[1];
  setup.process = fds[2];
  return true;
}

}  // namespace freehold::process
