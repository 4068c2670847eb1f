// A component that does what its input says: "echo TEXT", "pid", "size N" (so many bytes), "slow TEXT" (an echo that takes
// 0.3 ms), "sleep MS", "hang", "stop", "crash", "exit N", "fail N", "hold MIB", "once FILE" (crashes unless the file is
// there, which it makes), "log FILE" (adds a byte to the file and crashes), "count FILE" (adds a byte and takes 0.15 s),
// "patricide FILE" (kills the supervisor unless the file is there, which it makes), "open" (descriptors), "openexec" (those
// of a program that it runs), "fork" (a child of it returns from the component, too, and first), "leave FILE" (a child lives
// on, its number in the file), "leavehang FILE" (and so does the task).
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "freehold/process/component.h"

namespace {

int answer(const std::string& text, void* output, std::size_t capacity, std::size_t* bytes) {
  if (text.size() > capacity) return 1000;
  std::memcpy(output, text.data(), text.size());
  *bytes = text.size();
  return 0;
}

std::string open_descriptors() {
  std::string open;
  for (int fd = 0; fd < 1024; ++fd)
    if (::fcntl(fd, F_GETFD) >= 0) open += std::to_string(fd) + " ";
  return open;
}

}  // namespace

extern "C" int freehold_run(const void* input, std::size_t input_bytes, void* output, std::size_t capacity,
                            std::size_t* output_bytes) {
  const std::string text(static_cast<const char*>(input), input_bytes);
  const std::size_t space = text.find(' ');
  const std::string verb = text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  const auto number = static_cast<unsigned>(std::strtoul(rest.c_str(), nullptr, 10));
  if (verb == "pid") return answer(std::to_string(::getpid()), output, capacity, output_bytes);
  if (verb == "open") return answer(open_descriptors(), output, capacity, output_bytes);
  if (verb == "size") return answer(std::string(number, 'x'), output, capacity, output_bytes);
  if (verb == "fail") return static_cast<int>(number);
  if (verb == "crash") ::kill(::getpid(), SIGKILL);  // a sanitizer would catch others
  if (verb == "exit") std::_Exit(static_cast<int>(number));
  if (verb == "slow") ::usleep(300);
  if (verb == "sleep") ::usleep(number * 1000);
  if (verb == "stop") ::kill(::getpid(), SIGSTOP);
  if (verb == "hang")
    for (;;) ::pause();
  if (verb == "once" && ::access(rest.c_str(), F_OK) != 0) {
    ::close(::open(rest.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ::kill(::getpid(), SIGKILL);
  }
  if (verb == "log" || verb == "count") {
    const int file = ::open(rest.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (::write(file, "x", 1) != 1) return 1001;
    ::close(file);
    if (verb == "log") ::kill(::getpid(), SIGKILL);
    ::usleep(150'000);
  }
  if (verb == "patricide" && ::access(rest.c_str(), F_OK) != 0) {
    ::close(::open(rest.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ::kill(::getppid(), SIGKILL);
    for (;;) ::pause();
  }
  if (verb == "openexec") {
    char names[512];
    std::FILE* const ls = ::popen("ls /proc/self/fd | tr '\\n' ' '", "r");
    const std::size_t length = ls == nullptr ? 0 : std::fread(names, 1, sizeof names, ls);
    ::pclose(ls);
    return answer(std::string(names, length), output, capacity, output_bytes);
  }
  if (verb == "fork") {
    const pid_t child = ::fork();
    if (child == 0) return 0;
    ::waitpid(child, nullptr, 0);
  }
  if (verb == "leave" || verb == "leavehang") {
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) ::pause();
    std::FILE* const file = std::fopen(rest.c_str(), "we");
    std::fprintf(file, "%d", child);
    std::fclose(file);
    if (verb == "leavehang")
      for (;;) ::pause();
  }
  if (verb == "hold") {
    static volatile char* held;  // and used, so the compiler and the leak checker leave it
    held = static_cast<volatile char*>(std::malloc(std::size_t{number} << 20));
    for (std::size_t i = 0; i < std::size_t{number} << 20; i += 4096) held[i] = 1;
    ::usleep(100'000);
  }
  return answer(rest, output, capacity, output_bytes);
}
