// SPDX-License-Identifier: MIT
#include "cli/mcp/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>

#include "cli/support/failure.hpp"
#include "cli/support/file_descriptor.hpp"
#include "cli/support/standard_streams.hpp"
#include "cli/support/temporary_folder.hpp"
#include "freehold/os/child_environment.hpp"

namespace freehold::cli::mcp {
namespace {
using nlohmann::json;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr const char* kProtocol = "2025-06-18";
constexpr auto kProgressEvery = std::chrono::seconds(5);
constexpr std::size_t kMostLine = std::size_t{16} << 20;
constexpr std::size_t kMostOutput = std::size_t{64} << 20;  // of a call's process; the rest is dropped
constexpr std::size_t kMostText = std::size_t{64} << 10;    // the end of what a program printed
enum : int { kParseError = -32700, kInvalidRequest = -32600, kNoSuchMethod = -32601, kInvalidArguments = -32602 };

void send(ordered_json message) {
  message["jsonrpc"] = "2.0";
  print_to_stdout(message.dump(-1, ' ', false, json::error_handler_t::replace) + '\n');
}
void send_result(const json& id, ordered_json result) { send({{"id", id}, {"result", std::move(result)}}); }
void send_error(const json& id, int code, const std::string& text) {
  send({{"id", id}, {"error", {{"code", code}, {"message", text}}}});
}

// What a tool answers: a text, and the same as data where it is JSON.
ordered_json answer_of(std::string text, const std::string& output, bool failed) {
  ordered_json result{{"content", ordered_json::array()}, {"isError", failed}};
  ordered_json data = ordered_json::parse(output, nullptr, false);
  if (data.is_object()) {
    if (text.empty()) text = output;
    result["structuredContent"] = std::move(data);
  } else {
    text += output;
    if (text.size() > kMostText) text.erase(0, text.size() - kMostText);
  }
  result["content"].push_back({{"type", "text"}, {"text", std::move(text)}});
  return result;
}

struct Pipe {
  FileDescriptor read_end, write_end;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure(kExitRefused, fmt::format("no pipe: {}", error_text(errno)));
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
  }
};

}  // namespace

// A call's process.
class Server::Running {
 public:
  Running(Waiting asked, const Interrupts& interrupts) : asked_(std::move(asked)) {
    std::vector<std::string> words = asked_.call.words;
    words.insert(words.begin(), "freehold");
    if (const auto result = std::ranges::find(words, kResultFile); result != words.end())
      *result = result_file_ = folder_.emplace("mcp").path() / "result";
    Pipe output, complaint;
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, output.write_end.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, complaint.write_end.get(), STDERR_FILENO);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setsigmask(&attributes, &interrupts.original_mask());
    const int error = ::posix_spawn(&pid_, "/proc/self/exe", &files, &attributes, os::pointers_to(words).data(), ::environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw Failure(kExitRefused, fmt::format("cannot start freehold: {}", error_text(error)));
    output_ = std::move(output.read_end);
    complaint_ = std::move(complaint.read_end);
  }
  ~Running() {
    if (pid_ <= 0) return;
    interrupt();
    ::waitpid(pid_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] const json& id() const { return asked_.id; }
  [[nodiscard]] int output() const { return output_.get(); }
  [[nodiscard]] int complaint() const { return complaint_.get(); }
  // It ends its programs, and then itself.
  void interrupt() const { ::kill(pid_, SIGTERM); }
  void be_silent() { silent_ = true; }

  void read_output() { read_from(output_, out_); }
  void read_complaint() { read_from(complaint_, err_); }
  [[nodiscard]] bool has_ended() const { return !output_ && !complaint_; }

  void tell_progress() {
    const auto now = Clock::now();
    if (asked_.progress_token.is_null() || now < next_) return;
    next_ = now + kProgressEvery;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    send({{"method", "notifications/progress"},
          {"params", {{"progressToken", asked_.progress_token}, {"progress", seconds}, {"message", "running"}}}});
  }
  void answer() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    if (silent_) return;
    ordered_json result = answer_of(err_, out_, !WIFEXITED(status) || WEXITSTATUS(status) != 0);
    if (!result_file_.empty()) {
      std::ifstream file(result_file_);
      ordered_json data = ordered_json::parse(file, nullptr, false);
      if (data.is_object()) result["structuredContent"] = std::move(data);
    }
    send_result(asked_.id, std::move(result));
  }

 private:
  static void read_from(FileDescriptor& from, std::string& to) {
    char buffer[16'384];
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got > 0) {
      if (to.size() < kMostOutput) to.append(buffer, static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      from.close();
    }
  }

  Waiting asked_;
  pid_t pid_ = -1;
  FileDescriptor output_, complaint_;
  std::string out_, err_, result_file_;
  std::optional<TemporaryFolder> folder_;
  bool silent_ = false;
  Clock::time_point begin_ = Clock::now(), next_ = begin_ + kProgressEvery;
};

void Server::take_call(const json& id, const json& parameters) {
  const auto name = parameters.find("name");
  if (name == parameters.end() || !name->is_string()) return send_error(id, kInvalidArguments, "tools/call needs a name");
  const json arguments = parameters.value("arguments", json::object());
  if (!arguments.is_object()) return send_error(id, kInvalidArguments, "arguments must be an object");
  const json meta = parameters.value("_meta", json::object());
  try {
    Waiting asked{.id = id, .progress_token = {}, .call = call_of(name->get<std::string>(), arguments)};
    if (meta.is_object()) asked.progress_token = meta.value("progressToken", json());
    if (asked.call.words.empty())
      send_result(id, answer_of(std::move(asked.call.text), "", false));
    else
      waiting_.push_back(std::move(asked));
  } catch (const Failure& failure) {
    send_error(id, kInvalidArguments, failure.what());
  }
}

void Server::take_request(const json& id, const std::string& method, const json& parameters) {
  if (method == "initialize") {
    send_result(id, {{"protocolVersion", kProtocol},
                     {"capabilities", {{"tools", ordered_json::object()}}},
                     {"serverInfo", {{"name", "freehold"}, {"version", FREEHOLD_VERSION}}}});
  } else if (method == "ping") {
    send_result(id, ordered_json::object());
  } else if (method == "tools/list") {
    send_result(id, {{"tools", tools_list()}});
  } else if (method == "tools/call") {
    take_call(id, parameters);
  } else {
    send_error(id, kNoSuchMethod, fmt::format("there is no method '{}'", printable(method)));
  }
}

void Server::cancel(const json& id) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.id == id; });
  if (running_ == nullptr || running_->id() != id) return;
  running_->be_silent();
  running_->interrupt();
}

void Server::take(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (message.is_discarded()) return send_error(nullptr, kParseError, "this line is not JSON");
  const bool is_object = message.is_object();
  const json id = is_object ? message.value("id", json()) : json();
  if (!is_object || !message.contains("method") || !message["method"].is_string()) {
    if (!is_object || !message.contains("result")) send_error(id, kInvalidRequest, "a request is an object with a method");
    return;
  }
  const std::string method = message["method"];
  json parameters = message.value("params", json::object());
  if (!parameters.is_object()) parameters = json::object();
  if (!id.is_null()) return take_request(id, method, parameters);
  if (method == "notifications/cancelled") cancel(parameters.value("requestId", json()));
}

void Server::take_lines(std::string& input) {
  std::size_t begin = 0;
  for (std::size_t end; (end = input.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end > begin) take(input.substr(begin, end - begin));
  }
  input.erase(0, begin);
}

// False: there is no more.
bool Server::read_input(std::string& input) {
  char buffer[16'384];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  input.append(buffer, static_cast<std::size_t>(got));
  take_lines(input);
  if (input.size() > kMostLine) throw Failure(kExitRefused, "mcp: a message is longer than 16 MiB");
  return true;
}

int Server::serve() {
  std::string input;
  std::optional<Running> running;
  for (;;) {
    if (!running && !waiting_.empty()) {
      running_ = &running.emplace(std::move(waiting_.front()), interrupts_);
      waiting_.pop_front();
    }
    // poll() passes over descriptors below zero.
    pollfd files[]{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                   {.fd = interrupts_.fd(), .events = POLLIN, .revents = 0},
                   {.fd = running ? running->output() : -1, .events = POLLIN, .revents = 0},
                   {.fd = running ? running->complaint() : -1, .events = POLLIN, .revents = 0}};
    constexpr int kTick_ms = 1'000;
    if (::poll(files, std::size(files), running ? kTick_ms : -1) < 0 && errno != EINTR)
      throw Failure(kExitRefused, fmt::format("mcp: {}", error_text(errno)));
    if (const int signal = interrupts_.arrived(); signal != 0) return 128 + signal;
    if (files[0].revents != 0 && !read_input(input)) return 0;
    if (!running) continue;
    if (files[2].revents != 0) running->read_output();
    if (files[3].revents != 0) running->read_complaint();
    running->tell_progress();
    if (!running->has_ended()) continue;
    running_ = nullptr;
    running->answer();
    running.reset();
  }
}

}  // namespace freehold::cli::mcp
