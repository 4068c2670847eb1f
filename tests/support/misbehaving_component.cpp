// SPDX-License-Identifier: MIT
// A component that does what its input says: "echo TEXT", "pid", "size N" (so many bytes), "slow TEXT" (an echo that takes
// 0.3 ms), "sleep MS", "hang", "stop", "crash", "exit N", "fail N", "hold MIB". Also "once FILE" (crashes unless the file is
// there, which it makes), "log FILE" (adds a byte to the file and crashes), "count FILE" (adds a byte and takes 0.15 s).
// Also "patricide FILE" (kills the supervisor unless the file is there, which it makes). Also "open" (descriptors),
// "openexec" (those of a program that it runs), "fork" (a child of it returns from the component, too, and first), "leave
// FILE" (a child lives on, its number in the file), "leavehang FILE" (and so does the task). Also "wild SEED N" (writes N
// times into the table's words), "again" (makes running tasks ready), "over" (writes
// a page beyond its output), "input FD" (what it reads there), "say TEXT" (on standard error, and exits with 3). Also
// "refuse N FILE" (returns N and adds a byte to the file, unless that has two; then an echo). Also "note X FILE" (adds X to
// the file), "read FILE", "write FILE", "run FILE" and "socket" (the errno of that). Also "last TEXT" (all of its output is
// the input's last letter), "full" (all of its output), "fill" (the same, and crashes), "lie N" (says that it has written
// more than there is room for, and returns N).
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "freehold/component.h"

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

// Finds the table's words: the first mapping of its memory that can be written to.
std::uint64_t* table_words(std::size_t& count) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  unsigned long begin = 0, end = 0;
  for (char line[512]; std::fgets(line, sizeof line, maps) != nullptr;)
    if (std::strstr(line, "memfd:") != nullptr && std::sscanf(line, "%lx-%lx rw", &begin, &end) == 2) break;
  std::fclose(maps);
  count = (end - begin) / sizeof(std::uint64_t);
  return reinterpret_cast<std::uint64_t*>(begin);
}
// "SEED N": writes into N words of the table at random.
void write_wildly(const char* how) {
  unsigned seed = 0, n = 0;
  std::sscanf(how, "%u %u", &seed, &n);
  std::size_t count = 0;
  std::uint64_t* const words = table_words(count);
  std::mt19937_64 random(seed);
  for (; n > 0; --n) {
    volatile std::uint64_t& word = words[random() % count];
    switch (random() % 4) {
      case 0: word = random(); break;
      case 1: word = random() % 1024; break;
      case 2: word = word ^ std::uint64_t{1} << (random() % 64); break;
      default: word = 0;
    }
  }
}

}  // namespace

extern "C" int freehold_run(const void* input, std::size_t input_bytes, void* output, std::size_t capacity,
                            std::size_t* output_bytes) {
  if (input_bytes > 4 && std::memcmp(input, "last", 4) == 0) {
    std::memset(output, static_cast<const char*>(input)[input_bytes - 1], capacity);
    *output_bytes = capacity;
    return 0;
  }
  const std::string text(static_cast<const char*>(input), input_bytes);
  const std::size_t space = text.find(' ');
  const std::string verb = text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  const auto number = static_cast<unsigned>(std::strtoul(rest.c_str(), nullptr, 10));
  if (verb == "pid") return answer(std::to_string(::getpid()), output, capacity, output_bytes);
  if (verb == "open") return answer(open_descriptors(), output, capacity, output_bytes);
  if (verb == "input") {
    char bytes[256];
    const ssize_t n = ::read(static_cast<int>(number), bytes, sizeof bytes);
    return answer(n < 0 ? "none" : std::string(bytes, static_cast<std::size_t>(n)), output, capacity, output_bytes);
  }
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
  if (verb == "refuse") {
    const std::string path = rest.substr(rest.find(' ') + 1);
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    const bool refuses = ::lseek(file, 0, SEEK_END) < 2;
    const bool written = !refuses || ::write(file, "x", 1) == 1;
    ::close(file);
    if (refuses) return written ? static_cast<int>(number) : 1001;
  }
  if (verb == "read" || verb == "write") {
    const int file = ::open(rest.c_str(), verb == "read" ? O_RDONLY | O_CLOEXEC : O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const int error = file < 0 ? errno : 0;
    if (file >= 0) ::close(file);
    return answer(std::to_string(error), output, capacity, output_bytes);
  }
  if (verb == "run") {
    const int status = std::system(rest.c_str());
    return answer(std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 256), output, capacity, output_bytes);
  }
  if (verb == "socket") {
    const int socket = ::socket(number == 0 ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int error = socket < 0 ? errno : 0;
    if (socket >= 0) ::close(socket);
    return answer(std::to_string(error), output, capacity, output_bytes);
  }
  if (verb == "note") {
    const int file = ::open(rest.substr(2).c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    const bool written = ::write(file, rest.data(), 1) == 1;
    ::close(file);
    return written ? 0 : 1001;
  }
  if (verb == "say") {
    std::fprintf(stderr, "%s\n", rest.c_str());
    std::_Exit(3);
  }
  if (verb == "fill" || verb == "full") {
    std::memset(output, 'x', capacity);
    *output_bytes = capacity;
    if (verb == "full") return ::usleep(50'000);
    ::kill(::getpid(), SIGKILL);
  }
  if (verb == "lie") {
    *output_bytes = capacity + 1;
    return static_cast<int>(number);
  }
  if (verb == "wild") write_wildly(rest.c_str());
  if (verb == "again") {
    std::size_t count = 0;
    std::uint64_t* const words = table_words(count);
    for (std::size_t i = 0; i < count; ++i)
      if ((words[i] & 7) == 3 && words[i] >> 32 != 0) words[i] ^= 1;
  }
  if (verb == "over") std::memset(output, 'x', capacity + 4096);
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
