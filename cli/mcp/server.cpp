// SPDX-License-Identifier: MIT
#include "cli/mcp/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>

#include "cli/support/failure.hpp"
#include "cli/support/file_descriptor.hpp"
#include "cli/support/output_file.hpp"
#include "freehold/os/child_environment.hpp"

namespace freehold::cli::mcp {
namespace {
using nlohmann::json;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr const char* kProtocol = "2025-06-18";
constexpr auto kProgressEvery = std::chrono::seconds(5);
constexpr auto kPatience = std::chrono::seconds(2);  // with a call that is to end
constexpr int kMostDepth = 64;                       // of a message: values are copied and written by recursion
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

void keep_end(std::string& text) {
  if (text.size() > kMostText) text.erase(0, text.size() - kMostText);
}

// What a tool answers: a text, and its data, if any. A text that is missing is the data's.
ordered_json answer_of(std::string text, ordered_json data, bool failed) {
  ordered_json result{{"content", ordered_json::array()}, {"isError", failed}};
  if (data.is_object()) {
    if (text.empty()) text = data.dump(2, ' ', false, json::error_handler_t::replace);
    result["structuredContent"] = std::move(data);
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
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
};

// In the child: in a session without a terminal, and told when the server ends, however that ends.
[[noreturn]] void become(std::vector<std::string> words, const Pipe& output, const Pipe& complaint, const sigset_t& mask,
                         pid_t server) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  if (nothing > STDERR_FILENO) ::close(nothing);
  ::dup2(output.write_end.get(), STDOUT_FILENO);
  ::dup2(complaint.write_end.get(), STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (::getppid() == server) ::execv("/proc/self/exe", os::pointers_to(words).data());
  ::_exit(kExitCannotExecute);
}

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
    const pid_t server = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw Failure(kExitRefused, fmt::format("cannot start freehold: {}", error_text(errno)));
    if (pid_ == 0) become(words, output, complaint, interrupts.original_mask(), server);
    output_ = std::move(output.read_end);
    complaint_ = std::move(complaint.read_end);
  }
  ~Running() {
    if (pid_ <= 0) return;
    interrupt();
    while (!has_ended()) {
      pollfd files[]{{.fd = output(), .events = POLLIN, .revents = 0}, {.fd = complaint(), .events = POLLIN, .revents = 0}};
      constexpr int kTick_ms = 20;
      ::poll(files, std::size(files), kTick_ms);
      read_all();
      end_if_late();
    }
    reap();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] const json& id() const { return asked_.id; }
  [[nodiscard]] int output() const { return output_.get(); }
  [[nodiscard]] int complaint() const { return complaint_.get(); }
  // It ends its programs, and then itself.
  void interrupt() {
    silent_ = true;
    end_ = Clock::now() + kPatience;
    ::kill(pid_, SIGTERM);
  }
  void end_if_late() const {
    if (silent_ && Clock::now() >= end_) ::kill(-pid_, SIGKILL);
  }

  void read_all() {
    read_from(output_, out_);
    read_from(complaint_, err_);
  }
  // Its own end counts: what a program left behind may hold the pipes for longer.
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return (!output_ && !complaint_) ||
           (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_);
  }

  void tell_progress() {
    const auto now = Clock::now();
    if (asked_.progress_token.is_null() || now < next_) return;
    next_ = now + kProgressEvery;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    send({{"method", "notifications/progress"},
          {"params", {{"progressToken", asked_.progress_token}, {"progress", seconds}, {"message", "running"}}}});
  }
  void answer() {
    read_all();
    const int status = reap();
    if (silent_) return;
    ordered_json data;
    if (result_file_.empty()) {
      data = ordered_json::parse(out_, nullptr, false);
    } else {  // what the program printed is no data
      std::ifstream file(result_file_);
      data = ordered_json::parse(file, nullptr, false);
    }
    std::string text = std::move(err_);
    if (!result_file_.empty() || !data.is_object()) text += out_;
    keep_end(text);
    send_result(asked_.id, answer_of(std::move(text), std::move(data), !WIFEXITED(status) || WEXITSTATUS(status) != 0));
  }

 private:
  // As much as a pipe holds: a program that never ends its output does not keep the server.
  static void read_from(FileDescriptor& from, std::string& to) {
    char buffer[16'384];
    for (int i = 0; from && i < 5; ++i) {
      const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
      if (got > 0 && to.size() < kMostOutput) to.append(buffer, static_cast<std::size_t>(got));
      if (got < 0 && errno == EAGAIN) return;
      if (got == 0 || (got < 0 && errno != EINTR)) from.close();
    }
  }
  // Of a call that is to end, what its programs started ends, too.
  int reap() {
    int status = 0;
    if (silent_) ::kill(-pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

  Waiting asked_;
  pid_t pid_ = -1;
  FileDescriptor output_, complaint_;
  std::string out_, err_, result_file_;
  std::optional<TemporaryFolder> folder_;
  bool silent_ = false;
  Clock::time_point begin_ = Clock::now(), next_ = begin_ + kProgressEvery, end_;
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
      send_result(id, answer_of(std::move(asked.call.text), {}, false));
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
  running_->interrupt();
}

void Server::take(const std::string& line) {
  bool is_deep = false;
  const auto note_depth = [&](int depth, json::parse_event_t, const json&) { return !(is_deep |= depth > kMostDepth); };
  const json message = json::parse(line, note_depth, false);
  if (is_deep) return send_error(nullptr, kInvalidRequest, fmt::format("a message is nested {} deep at most", kMostDepth));
  if (message.is_discarded()) return send_error(nullptr, kParseError, "this line is not JSON");
  const bool is_object = message.is_object();
  const json id = is_object ? message.value("id", json()) : json();
  if (!id.is_null() && !id.is_string() && !id.is_number_integer())
    return send_error(nullptr, kInvalidRequest, "an id is a string or an integer of 64 bits");
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
    running->read_all();
    running->tell_progress();
    running->end_if_late();
    if (!running->has_ended()) continue;
    running_ = nullptr;
    running->answer();
    running.reset();
  }
}

}  // namespace freehold::cli::mcp
