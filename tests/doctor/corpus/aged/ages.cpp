// SPDX-License-Identifier: MIT
// Programs that age their heap by a load, and then work beside what is left of it:
//
//   ages LOAD WORK load     the load, and an end at which nothing is freed
//   ages LOAD WORK work     the work, on the heap that the process begins with; prints its CPU seconds
//   ages LOAD WORK both     the work after the load; prints the same
//   ages LOAD WORK meet     what the heap is like before main ("constructed") and in it
//   ages LOAD WORK loaded   the same after the load
//
// Work and load share no data: what age costs is the heap's doing. Only tests and script/doctor_corpus run this.
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <forward_list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

std::size_t free_chunks() {
  const auto info = ::mallinfo2();
  return info.ordblks + info.smblks;
}
const std::size_t g_constructed = free_chunks();

constexpr std::uint64_t kSeed = 88172645463325252U;
std::uint64_t g_random = kSeed;
std::uint64_t draw(std::uint64_t below) {
  g_random ^= g_random << 13;  // Marsaglia's xorshift64
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return g_random % below;
}
char* block(std::uint64_t bytes) { return static_cast<char*>(std::memset(std::malloc(bytes), 1, bytes)); }

std::vector<char*> g_kept;

// Temporary blocks between those that stay: two of three are freed at the end, in order.
void parse() {
  std::vector<char*> temporary;
  for (int i = 0; i < 360'000; ++i) (i % 3 == 0 ? g_kept : temporary).push_back(block(24 + draw(200)));
  for (char* const each : temporary) std::free(each);
}
// Most of what was built is removed again, in any order.
void index() {
  for (int i = 0; i < 300'000; ++i) g_kept.push_back(block(16 + draw(i % 4 == 0 ? 400 : 80)));
  for (std::size_t i = g_kept.size() - 1; i > 0; --i) std::swap(g_kept[i], g_kept[draw(i + 1)]);
  for (; g_kept.size() > 90'000; g_kept.pop_back()) std::free(g_kept.back());
}
// A cache that is full: for each block another one, whichever, goes.
void cache() {
  for (int i = 0; i < 80'000; ++i) g_kept.push_back(block(16 + draw(600)));
  for (int i = 0; i < 300'000; ++i) {
    char*& place = g_kept[draw(g_kept.size())];
    std::free(place);
    place = block(16 + draw(600));
  }
  for (std::size_t i = 0; i < g_kept.size(); i += 2) std::free(g_kept[i]);
}

std::uint64_t list() {
  std::uint64_t sum = 0;
  for (int round = 0; round < 10; ++round) {
    std::forward_list<std::uint64_t> numbers;
    for (int i = 0; i < 200'000; ++i) numbers.push_front(draw(1000));
    for (int pass = 0; pass < 10; ++pass)
      for (const std::uint64_t number : numbers) sum += number;
  }
  return sum;
}
std::uint64_t tree() {
  std::uint64_t sum = 0;
  std::map<std::uint64_t, std::string> names;
  for (int i = 0; i < 600'000; ++i) {
    names[draw(100'000)] = std::string(20 + draw(60), 'x');
    sum += names.erase(draw(100'000));
  }
  return sum + names.size();
}
std::uint64_t table() {
  std::unordered_map<std::uint64_t, std::vector<char>> blocks;
  std::uint64_t sum = 0;
  for (int i = 0; i < 1'500'000; ++i) {
    std::vector<char>& found = blocks[draw(60'000)];
    sum += found.size();
    found = std::vector<char>(16 + draw(300));
  }
  return sum;
}
std::uint64_t strings() {
  std::uint64_t sum = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::string> words(150'000);
    for (std::string& word : words) word = std::string(24, 'a') + std::to_string(draw(1'000'000'000));
    std::ranges::sort(words);
    sum += words.front().size();
  }
  return sum;
}
std::uint64_t messages() {
  std::deque<std::string> queue;
  std::uint64_t sum = 0;
  for (int i = 0; i < 3'000'000; ++i) {
    queue.emplace_back(30 + draw(500), 'm');
    if (queue.size() < 20'000) continue;
    sum += static_cast<std::uint64_t>(queue.front()[7]);
    queue.pop_front();
  }
  return sum;
}

const std::map<std::string, void (*)()> kLoads{{"parse", parse}, {"index", index}, {"cache", cache}};
const std::map<std::string, std::uint64_t (*)()> kWorks{
    {"list", list}, {"tree", tree}, {"table", table}, {"strings", strings}, {"messages", messages}};

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void tell_what_is_met() {
  Dl_info where{};
  static_cast<void>(::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &where));
  std::printf("constructed %zu\nchunks %zu\nlive %zu\nmalloc %s\n", g_constructed, free_chunks(), ::mallinfo2().uordblks,
              where.dli_fname);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string phase = argc == 4 ? argv[3] : "";
  if (argc != 4 || !kLoads.contains(argv[1]) || !kWorks.contains(argv[2])) return 2;
  if (phase == "load" || phase == "both" || phase == "loaded") kLoads.at(argv[1])();
  if (phase == "meet" || phase == "loaded") tell_what_is_met();
  if (phase == "work" || phase == "both") {
    g_random = kSeed;
    const double began_s = cpu_seconds();
    const std::uint64_t sum = kWorks.at(argv[2])();
    std::printf("seconds %.6f\nsum %llu\n", cpu_seconds() - began_s, static_cast<unsigned long long>(sum));
  }
  std::fflush(stdout);
  ::_exit(0);
}
