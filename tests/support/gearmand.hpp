// SPDX-License-Identifier: MIT
// A job server and machines that work for it, as child processes on loopback: killed with this process, whatever ends that,
// and with the object.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace freehold::test {

class ChildProcess {
 public:
  ChildProcess() = default;
  // Pre: the calling thread lives as long as the child should.
  explicit ChildProcess(std::vector<std::string> command) {
    std::vector<char*> arguments;
    for (std::string& argument : command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~ChildProcess() { kill(); }
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool lives() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }
  // With SIGKILL, and waits for its end. Nothing happens if it has ended.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

inline sockaddr_in loopback(unsigned port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
inline unsigned free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t bytes = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), bytes);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes);
  ::close(socket);
  return ntohs(address.sin_port);
}
inline bool listens(unsigned port, const std::string& host = "127.0.0.1") {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(port);
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

class JobServer {
 public:
  // Empty if it is not installed.
  static std::string program() {
    for (const char* path :
         {"/usr/sbin/gearmand", "/usr/local/sbin/gearmand", "/usr/bin/gearmand", "/usr/local/bin/gearmand"})
      if (::access(path, X_OK) == 0) return path;
    return "";
  }
  // A job that `retries` workers have left unanswered has failed. Pre: program() is not empty.
  explicit JobServer(unsigned retries) {
    for (int attempt = 0; attempt < 3 && !up_; ++attempt) {  // somebody else may take the port before it does
      port_ = free_port();
      process_ = ChildProcess({program(), "--listen", "127.0.0.1", "--port", std::to_string(port_), "--job-retries",
                               std::to_string(retries), "--log-file", "none", "--pid-file", "", "--threads", "2"});
      for (int i = 0; i < 1000 && process_.lives() && !(up_ = listens(port_)); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  // The same on another host: in a network namespace, at an address of that.
  JobServer(const std::string& name_space, const std::string& host, unsigned port) : port_(port) {
    process_ = ChildProcess({"/usr/sbin/ip", "netns", "exec", name_space, program(), "--listen", host, "--port",
                             std::to_string(port), "--job-retries", "5", "--log-file", "none", "--pid-file", ""});
    for (int i = 0; i < 1000 && process_.lives() && !(up_ = listens(port, host)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  [[nodiscard]] bool ok() const { return up_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void kill() { process_.kill(); }
  // It keeps its connections and says nothing any more.
  void stop() const { ::kill(process_.pid(), SIGSTOP); }

 private:
  unsigned port_ = 0;
  bool up_ = false;
  ChildProcess process_;
};

}  // namespace freehold::test
