// SPDX-License-Identifier: MIT
#include "freehold/check/report.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "freehold/base/keep_errno.hpp"
#include "freehold/os/file_identity.hpp"
#include "freehold/os/modules.hpp"
#include "freehold/os/process_memory.hpp"
#include "freehold/os/program_options.hpp"
#include "freehold/os/sandbox.hpp"
#include "freehold/os/undisturbed.hpp"

namespace freehold::check {
namespace {

constexpr os::OptionName kReportFd{"report_fd", os::EnvironmentOnly{}};
constexpr int kMostMilliseconds = 30'000;  // a program of a gigabyte of debug information takes several seconds

constinit int g_socket = -1;
constinit os::FileIdentity g_identity;
constinit std::atomic<bool> g_hint_is_due{false};

// Sends the addresses and the pipe's end.
[[nodiscard]] bool send_request(void* const* addresses, unsigned count, int answer) noexcept {
  StackRequest request;
  std::copy(addresses, addresses + count, reinterpret_cast<void**>(request));
  iovec data{request, count * sizeof request[0]};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof answer)] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof answer);
  std::memcpy(CMSG_DATA(rights), &answer, sizeof answer);
  return ::sendmsg(g_socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(data.iov_len);
}

// Copies the answer to standard error. False if its end did not come.
[[nodiscard]] bool copy_answer(int from) noexcept {
  char text[kLineBytes];
  for (;;) {
    pollfd ready{from, POLLIN, 0};
    if (const int events = ::poll(&ready, 1, kMostMilliseconds); events <= 0) {
      if (events < 0 && errno == EINTR) continue;
      return false;
    }
    const ssize_t got = ::read(from, text, sizeof text);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const bool is_end = text[got - 1] == '\0';
    os::write_to_standard_error(text, static_cast<std::size_t>(got) - (is_end ? 1 : 0));
    if (is_end) return true;
  }
}

// Does not ask where a filter of system calls may end the process for the question.
[[nodiscard]] bool command_writes_stack(void* const* addresses, unsigned count) noexcept {
  const base::KeepErrno keep;
  if (g_socket < 0 || count > std::size(StackRequest{}) || os::is_confined() || !g_identity.is_of(g_socket)) return false;
  const os::NotCancelled not_cancelled;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const bool was_sent = send_request(addresses, count, ends[1]);
  ::close(ends[1]);  // the answer's end is the command's alone: its death is an end of file
  const bool was_written = was_sent && copy_answer(ends[0]);
  ::close(ends[0]);
  return was_written;
}

}  // namespace

void prepare_stack_requests() noexcept {
  std::uint64_t number = 0;
  os::read_number(kReportFd, number);
  g_hint_is_due.store(number == 0, std::memory_order_relaxed);
  if (number == 0 || number > 0x7fffffff) return;
  const base::KeepErrno keep;
  int type = 0;
  socklen_t bytes = sizeof type;
  const int fd = static_cast<int>(number);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_SEQPACKET) return;  // the program closed it
  g_identity = os::FileIdentity::of(fd);
  g_socket = fd;
}

void detail_stack(void* const* addresses, unsigned count) noexcept {
  if (count == 0) detail("  no call stack");
  if (count == 0 || command_writes_stack(addresses, count)) return;
  for (unsigned i = 0; i < count; ++i) {
    DetailLine line;
    line.add("  #");
    line.add(i);
    line.add(" ");
    line.add(static_cast<const void*>(addresses[i]));
    if (os::Module module; os::find_module(addresses[i], module)) {
      line.add(" ");
      line.add(module.path);
      line.add("+");
      line.add(reinterpret_cast<const void*>(module.offset));
    }
    line.write();
  }
}

void hint_at_lines() noexcept {
  if (g_hint_is_due.exchange(false, std::memory_order_relaxed))  // relaxed: a mode
    detail("\"freehold run --leaks -- PROGRAM\", or --stacks N, prints functions and lines instead of addresses");
}

void detail_bytes(const void* begin, std::size_t count, std::uint8_t expected) noexcept {
  std::uint8_t bytes[16];
  count = std::min(count, sizeof bytes);
  DetailLine line;
  line.add(begin);
  line.add(":");
  if (!os::read_process_memory(::getpid(), reinterpret_cast<std::uintptr_t>(begin), bytes, count)) {
    line.add(" cannot be read");
    count = 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    line.add(bytes[i] == expected ? " " : " [");
    line.add(Byte{bytes[i]});
    if (bytes[i] != expected) line.add("]");
  }
  line.write();
}

}  // namespace freehold::check
