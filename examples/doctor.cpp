// SPDX-License-Identifier: MIT
// `freehold doctor` examines this program when it is given none: statistics of a web shop's log, by as many threads as there
// are CPUs. Every thread parses a part of the log into messages and hands them on; its neighbour counts and frees them.
// Nothing is shared but the letter boxes, so it should be N times as fast on N CPUs. The allocator decides whether it is.
//
//   doctor [LINES]    prints the sums, which do not depend on the number of threads
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr unsigned kLines = 600'000;
constexpr unsigned kDifferentLines = 512;
constexpr std::size_t kBatch = 256;
constexpr std::size_t kFullBox = 8;  // batches: whoever finds the neighbour's box full empties the own one first

// {"user":"u17","path":"/cart/add","status":"200","bytes":"5120","tags":["mobile","returning"]}
std::string line_of(unsigned number) {
  static constexpr const char* kPaths[] = {"/", "/search?q=shoes", "/cart/add", "/cart/pay", "/account/orders/history"};
  const unsigned chance = number * 2654435761U >> 8;
  std::string line = R"({"user":"customer-)" + std::to_string(chance % 997) + R"(","path":")" + kPaths[chance % 5];
  line +=
      R"(","status":")" + std::to_string(chance % 50 == 0 ? 500 : 200) + R"(","bytes":")" + std::to_string(chance % 9000);
  line += R"(","agent":"Mozilla/5.0 X11; Linux x86_64","tags":["mobile","returning-customer","newsletter-)";
  return line + std::to_string(chance % 12) + R"("]})";
}

struct Message {
  std::map<std::string, std::string> fields;
  std::vector<std::string> tags;
};

// As much of JSON as the log has: an object of texts, and one list of texts.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::unique_ptr<Message> parse() {
    auto message = std::make_unique<Message>();
    take('{');
    do {
      std::string name = text();
      take(':');
      if (rest_.front() == '[')
        list(message->tags);
      else
        message->fields.emplace(std::move(name), text());
    } while (take(','));
    return message;
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string text() {
    take('"');
    const std::size_t end = rest_.find('"');
    std::string found(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return found;
  }
  void list(std::vector<std::string>& texts) {
    take('[');
    do texts.push_back(text());
    while (take(','));
    take(']');
  }

  std::string_view rest_;
};

using Batch = std::vector<std::unique_ptr<Message>>;

class LetterBox {
 public:
  // False: full.
  bool put(Batch& batch) {
    const std::lock_guard lock(mutex_);
    if (batches_.size() >= kFullBox) return false;
    batches_.push_back(std::move(batch));
    return true;
  }
  Batch take() {
    const std::lock_guard lock(mutex_);
    if (batches_.empty()) return {};
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::deque<Batch> batches_;
};

struct Sums {
  std::uint64_t messages = 0;
  std::uint64_t errors = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tags = 0;

  void count(const Message& message) {
    ++messages;
    if (message.fields.at("status") == "500") ++errors;
    const std::string& size = message.fields.at("bytes");
    std::uint64_t value = 0;
    std::from_chars(size.data(), size.data() + size.size(), value);
    bytes += value;
    tags += message.tags.size();
  }
};

class Worker {
 public:
  Worker(const std::vector<std::string>& log, LetterBox& own, LetterBox& neighbours)
      : log_(log), own_(own), neighbours_(neighbours) {}

  void parse(unsigned first, unsigned last) {
    Batch batch;
    for (unsigned line = first; line < last; ++line) {
      batch.push_back(Parser(log_[line % log_.size()]).parse());
      if (batch.size() < kBatch && line + 1 < last) continue;
      while (!neighbours_.put(batch)) {
        if (!count_batch()) std::this_thread::yield();
      }
      batch = Batch();
      count_batch();
    }
  }
  bool count_batch() {
    const Batch batch = own_.take();
    for (const auto& message : batch) sums_.count(*message);
    return !batch.empty();
  }
  [[nodiscard]] const Sums& sums() const { return sums_; }

 private:
  const std::vector<std::string>& log_;
  LetterBox& own_;
  LetterBox& neighbours_;
  Sums sums_;
};

}  // namespace

int main(int count, char** words) {
  const auto lines = count > 1 ? static_cast<unsigned>(std::strtoul(words[1], nullptr, 10)) : kLines;
  std::vector<std::string> log;
  for (unsigned i = 0; i < kDifferentLines; ++i) log.push_back(line_of(i));
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<LetterBox> boxes(threads);
  std::vector<Worker> workers;
  for (unsigned i = 0; i < threads; ++i) workers.emplace_back(log, boxes[i], boxes[(i + 1) % threads]);
  std::atomic<unsigned> parsing = threads;
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const auto part = [&](unsigned n) { return static_cast<unsigned>(std::uint64_t{lines} * n / threads); };
      workers[i].parse(part(i), part(i + 1));
      --parsing;
      while (parsing.load() > 0) {
        if (!workers[i].count_batch()) std::this_thread::yield();
      }
      while (workers[i].count_batch()) {
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  Sums sums;
  for (const Worker& worker : workers) {
    sums.messages += worker.sums().messages;
    sums.errors += worker.sums().errors;
    sums.bytes += worker.sums().bytes;
    sums.tags += worker.sums().tags;
  }
  std::printf("%llu messages, %llu errors, %llu bytes, %llu tags\n", static_cast<unsigned long long>(sums.messages),
              static_cast<unsigned long long>(sums.errors), static_cast<unsigned long long>(sums.bytes),
              static_cast<unsigned long long>(sums.tags));
}
