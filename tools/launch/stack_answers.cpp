// SPDX-License-Identifier: MIT
#include "tools/launch/stack_answers.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tools/doctor/facts/symbols.hpp"
#include "tools/support/failure.hpp"
#include "tools/support/output_file.hpp"

namespace freehold::inline tools {
namespace {

struct Request {
  pid_t process = 0;
  std::vector<std::uint64_t> addresses;
  FileDescriptor answer;
};

// None: the last process that could ask has ended.
std::optional<Request> receive(int socket) {
  std::uint64_t addresses[64];  // StackRequest of freehold/check/report.hpp
  iovec data{addresses, sizeof addresses};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  do got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  Request request;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    ucred sender{};
    int fd = -1;
    if (part->cmsg_type == SCM_CREDENTIALS && part->cmsg_len == CMSG_LEN(sizeof sender)) {
      std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
      request.process = sender.pid;
    } else if (part->cmsg_type == SCM_RIGHTS && part->cmsg_len == CMSG_LEN(sizeof fd)) {
      std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
      request.answer = FileDescriptor(fd);
    }
  }
  request.addresses.assign(addresses, addresses + static_cast<std::size_t>(got) / sizeof addresses[0]);
  return request;
}

// The names of the process that asked last. Its map changes when it loads a library.
class StackNames {
 public:
  // Null: its map cannot be read.
  [[nodiscard]] doctor::Symbols* of(pid_t process) {
    const std::string path = fmt::format("/proc/{}/maps", process);
    std::ifstream in(path);
    std::string maps{std::istreambuf_iterator<char>(in), {}};
    if (maps.empty()) return nullptr;
    if (process != process_ || maps != maps_) symbols_ = std::make_unique<doctor::Symbols>(path);
    process_ = process;
    maps_ = std::move(maps);
    return symbols_.get();
  }

 private:
  pid_t process_ = 0;
  std::string maps_;
  std::unique_ptr<doctor::Symbols> symbols_;
};

std::string lines_of(doctor::Symbols& symbols, const std::vector<std::uint64_t>& addresses) {
  std::string text;
  unsigned number = 0;
  for (const std::uint64_t address : addresses)  // in the instruction that calls; Symbols takes the one behind it
    for (const doctor::Frame& frame : symbols.frames(address + 1))
      text += fmt::format("freehold:     #{} {}\n", number++, printable(frame.text()));
  return text + '\0';
}

}  // namespace

StackSocket stack_socket() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  constexpr int kOn = 1;
  ::setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void answer_stacks(FileDescriptor command) {
  if (!command) return;
  std::thread([socket = std::move(command)] {
    sigset_t broken_pipe;  // the signal of a program that was killed and reads no more
    ::sigemptyset(&broken_pipe);
    ::sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    StackNames names;
    while (const std::optional<Request> request = receive(socket.get()))
      if (doctor::Symbols* const symbols = names.of(request->process); symbols != nullptr)
        write_all(request->answer.get(), lines_of(*symbols, request->addresses));
  }).detach();
}

}  // namespace freehold::inline tools
