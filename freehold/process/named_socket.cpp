// SPDX-License-Identifier: MIT
#include "freehold/process/named_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "freehold/process/table/shared_memory.hpp"

namespace freehold::process {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr int kAnswerTime = 10'000;  // milliseconds

bool is_name(const std::string& name) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.size() <= kLongestName && name.find_first_not_of(kLetters) == std::string::npos;
}
std::string not_a_name(const std::string& name) {
  return "\"" + name.substr(0, kLongestName) + "\" is no name for a pool: 1 to 64 letters, digits, and any of _ - .";
}

struct Address {
  explicit Address(const std::string& name) {
    const std::string path = "freehold-pool/" + std::to_string(::geteuid()) + "/" + name;
    all.sun_family = AF_UNIX;  // and a zero byte, for an abstract name
    std::memcpy(all.sun_path + 1, path.data(), path.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  }
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&all); }
  sockaddr_un all{};
  socklen_t bytes = 0;
};

std::string closed(int& fd, std::string why) {
  if (fd >= 0) ::close(fd);
  fd = -1;
  return why;
}

}  // namespace

NamedSocket::NamedSocket(const std::string& name) {
  if (!is_name(name)) {
    error_ = not_a_name(name);
    return;
  }
  const Address address(name);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ >= 0 && ::bind(fd_, address.get(), address.bytes) == 0 && ::listen(fd_, SOMAXCONN) == 0) return;
  const int refused = errno;
  error_ = closed(fd_, refused == EADDRINUSE ? "another process serves a pool of the name " + name + " already"
                                             : "cannot serve " + name + ": " + std::strerror(refused));
}
NamedSocket::~NamedSocket() {
  if (fd_ >= 0) ::close(fd_);
}

int NamedSocket::accept() const noexcept { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

int connect_to(const std::string& name, std::string& error) {
  int fd = -1;
  if (!is_name(name)) {
    error = not_a_name(name);
    return fd;
  }
  const Address address(name);
  fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address.get(), address.bytes) != 0) {
    const int refused = errno;
    error = closed(fd, refused == ECONNREFUSED
                           ? "no process serves a pool of the name " + name + ": start freehold workers --serve " + name
                           : "cannot connect to the pool " + name + ": " + std::strerror(refused));
    return fd;
  }
  // Any user may take an abstract name, so the server has to be checked.
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != ::geteuid()) {
    error = closed(fd, "the pool " + name + " is another user's");
    return fd;
  }
  pollfd answer{fd, POLLIN, 0};
  if (::poll(&answer, 1, kAnswerTime) != 1)
    error = closed(fd, "the server of the pool " + name + " (process " + std::to_string(peer.pid) + ") does not answer");
  return fd;
}

}  // namespace freehold::process
