#include "freehold/process/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "freehold/base/bits.hpp"
#include "freehold/process/worker_protocol.hpp"

namespace freehold::process {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::uint64_t kPage = 4096;

void* map_guarded(int fd, std::size_t bytes) noexcept {
  const std::size_t all = base::align_up(bytes, kPage) + 2 * kPage;
  void* const room = ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  void* const data =
      ::mmap(static_cast<std::byte*>(room) + kPage, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    const int saved = errno;
    ::munmap(room, all);
    errno = saved;
  } else {
    ::madvise(data, bytes, MADV_DONTDUMP);  // reading it for a core dump would make all its pages exist
  }
  return data;
}

int closed_with_errno(int fd) noexcept {
  const int saved = errno;
  if (fd >= 0) ::close(fd);
  errno = saved;
  return -1;
}

}  // namespace

SharedMemory SharedMemory::create(const char* name, std::uint64_t bytes) noexcept {
  const int low = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (low < 0) return {};
  const int fd = ::fcntl(low, F_DUPFD_CLOEXEC, kLowestPoolDescriptor);
  closed_with_errno(low);
  if (fd < 0) return {};
  if (::fchmod(fd, S_IRUSR | S_IWUSR) != 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
    closed_with_errno(fd);
    return {};
  }
  return attach(fd);
}

SharedMemory SharedMemory::attach(int fd) noexcept {
  SharedMemory memory;
  struct stat status{};
  if (::fstat(fd, &status) != 0) return memory;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  void* data = MAP_FAILED;
  if (seals >= 0 && (seals & kSeals) == kSeals)
    data = map_guarded(fd, static_cast<std::size_t>(status.st_size));
  else
    errno = EINVAL;
  if (data == MAP_FAILED) {
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
  ::munmap(static_cast<std::byte*>(data_) - kPage, base::align_up(bytes_, kPage) + 2 * kPage);
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
  const std::uint64_t begin = base::align_up(offset, kPage);
  const std::uint64_t end = base::align_down(offset + bytes, kPage);
  if (begin >= end) return;
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
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

  static constexpr std::size_t kBytes = 3 * sizeof(int);  // of the descriptors
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
