// SPDX-License-Identifier: MIT
// The servers that are named, a connection's calls to libgearman and from it, and the probe of a server's host.
#include <libgearman/gearman.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "freehold/process/gearman/gearman_connection.hpp"
#include "freehold/process/process_info.hpp"

namespace freehold::process::gearman {

namespace {

// How often a thread that waits for a server checks whether it has to stop.
constexpr std::chrono::milliseconds kClientTick(50);
// A server that has not accepted a task for so long is given up for another.
constexpr Nanoseconds kAcceptTime = std::chrono::seconds(3);

// Tells whether a server's host is still there while a task waits for its answer: an idle connection does not show that a
// host has vanished. Connects from time to time, without blocking; two failures in a row mean that the host is gone. A host
// whose server is stopped is still there: its system accepts connections.
class HostProbe {
 public:
  explicit HostProbe(Nanoseconds every) : every_(static_cast<std::uint64_t>(every.count())), last_(now()) {}
  ~HostProbe() { close(); }
  HostProbe(const HostProbe&) = delete;
  HostProbe& operator=(const HostProbe&) = delete;

  // Asked every tick.
  [[nodiscard]] bool is_gone(const Server& server) {
    if (socket_ < 0) {
      if (every_ != 0 && now() - last_ >= every_) begin(server);
      return failures_ >= kFailures;
    }
    pollfd connected{socket_, POLLOUT, 0};
    const bool answered = ::poll(&connected, 1, 0) == 1;
    if (!answered && now() - last_ < std::min<std::uint64_t>(every_, kConnectTime)) return false;
    int error = ETIMEDOUT;
    socklen_t length = sizeof error;
    if (answered) ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length);
    failures_ = error == 0 ? 0 : failures_ + 1;
    close();
    return failures_ >= kFailures;
  }

 private:
  static constexpr unsigned kFailures = 2;
  static constexpr std::uint64_t kConnectTime = 3'000'000'000;

  void begin(const Server& server) {
    last_ = now();
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_socktype = SOCK_STREAM;
    // A name that cannot be looked up says nothing of the host.
    if (::getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &wanted, &found) != 0) return;
    socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ >= 0 && ::connect(socket_, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
      ++failures_;
      close();
    }
    ::freeaddrinfo(found);
  }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  const std::uint64_t every_;  // nanoseconds; 0: never
  std::uint64_t last_;         // the time of the last beginning
  int socket_ = -1;
  unsigned failures_ = 0;  // in a row
};

}  // namespace

Outcome Connection::run(const std::string& unique, const std::string& workload, const std::function<bool()>& unwanted) {
  answer_.clear();
  outcome_ = Outcome::kNone;
  accepted_ = false;
  if (client_ == nullptr) open();
  gearman_return_t code = GEARMAN_SUCCESS;
  gearman_task_st* const job = gearman_client_add_task(client_, nullptr, this, function_.c_str(), unique.c_str(),
                                                       workload.data(), workload.size(), &code);
  if (job == nullptr) return lost();
  const std::uint64_t begun = now();
  HostProbe probe(host_check_);
  for (;;) {
    code = gearman_client_run_tasks(client_);
    if (outcome_ != Outcome::kNone) break;
    if (unwanted()) {
      close();  // the server forgets a job for which no client waits
      return Outcome::kDropped;
    }
    if (code != GEARMAN_IO_WAIT && code != GEARMAN_TIMEOUT) return lost();
    if (probe.is_gone(servers_[server_])) return lost();
    if (!accepted_ && now() - begun > static_cast<std::uint64_t>(kAcceptTime.count())) return lost();
    code = gearman_client_wait(client_);
    if (code != GEARMAN_SUCCESS && code != GEARMAN_TIMEOUT) return lost();
  }
  gearman_task_free(job);
  return outcome_;
}

void Connection::next_server() {
  close();
  server_ = (server_ + 1) % servers_.size();
}

void Connection::open() {
  client_ = gearman_client_create(nullptr);
  gearman_client_remove_servers(client_);  // those of $GEARMAN_SERVERS
  gearman_client_add_options(client_, GEARMAN_CLIENT_NON_BLOCKING);
  gearman_client_set_timeout(client_, static_cast<int>(kClientTick.count()));
  gearman_client_add_server(client_, servers_[server_].host.c_str(), servers_[server_].port);
  gearman_client_set_created_fn(client_, [](gearman_task_st* job) {
    of(job).accepted_ = true;
    return GEARMAN_SUCCESS;
  });
  gearman_client_set_complete_fn(client_, [](gearman_task_st* job) {
    of(job).answer_.assign(static_cast<const char*>(gearman_task_data(job)), gearman_task_data_size(job));
    of(job).outcome_ = Outcome::kAnswered;
    return GEARMAN_SUCCESS;
  });
  gearman_client_set_fail_fn(client_, [](gearman_task_st* job) {
    of(job).outcome_ = Outcome::kFailed;
    return GEARMAN_SUCCESS;
  });
}

void Connection::close() {
  if (client_ != nullptr) gearman_client_free(std::exchange(client_, nullptr));
}

Outcome Connection::lost() {
  close();
  return Outcome::kLost;
}

Connection& Connection::of(gearman_task_st* job) { return *static_cast<Connection*>(gearman_task_context(job)); }

std::optional<std::vector<Server>> parse_servers(const std::vector<std::string>& texts, std::string& error) {
  constexpr unsigned kDefaultPort = 4730;
  std::vector<Server> servers;
  for (const std::string& text : texts) {
    const std::size_t bracket = text.rfind(']'), colon = text.rfind(':');
    const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
    std::string host = text.substr(0, has_port ? colon : std::string::npos);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    char* end = nullptr;
    const unsigned long port = has_port ? std::strtoul(text.c_str() + colon + 1, &end, 10) : kDefaultPort;
    if (host.empty() || port == 0 || port > 65535 || (has_port && *end != '\0')) {
      error = "not a server: " + text;
      return std::nullopt;
    }
    servers.push_back({host, static_cast<in_port_t>(port)});
  }
  if (servers.empty()) {
    error = "no server";
    return std::nullopt;
  }
  return servers;
}

}  // namespace freehold::process::gearman
