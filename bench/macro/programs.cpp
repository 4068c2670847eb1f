// SPDX-License-Identifier: MIT
// Typical work of programs: strings, JSON documents, hash maps that grow, requests whose blocks are freed together, messages
// handed to another thread. They use the standard library and nlohmann-json as any program would. A row's time is the
// program's, of which malloc is a part.
#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "bench/macro/rows.hpp"

namespace freehold::bench {
namespace {

std::string random_text(Random& random, std::size_t bytes) {
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>('a' + random.below(26));
  return text;
}

// Text is cut into words, the words are sorted and joined again: strings of 4 to 60 bytes, vectors that grow.
template <unsigned kThreads>
Outcome strings(double scale) {
  constexpr std::size_t kWords = 20'000;
  const auto rounds = scaled(scale, 60 / kThreads);
  std::vector<std::uint64_t> made(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    Random random(t + 1);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      std::vector<std::string> words;
      for (std::size_t i = 0; i < kWords; ++i) words.emplace_back(4 + random.below(57), static_cast<char>('a' + i % 26));
      std::vector<std::string> sorted = words;
      std::sort(sorted.begin(), sorted.end(), [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
      });
      std::string joined;
      for (const auto& word : sorted) joined += word + ' ';
      made[t] += 2 * words.size() + (joined.empty() ? 1 : 0);
    }
  });
  return {sum_of(made), seconds, sum_of(made)};
}

// A service's answer: objects in an array, with strings, numbers and a list of tags.
nlohmann::json document(Random& random, std::size_t entries) {
  nlohmann::json result = nlohmann::json::array();
  for (std::size_t i = 0; i < entries; ++i) {
    nlohmann::json tags = nlohmann::json::array();
    for (std::size_t n = random.below(6); n > 0; --n) tags.push_back(random_text(random, 3 + random.below(20)));
    result.push_back({{"id", i},
                      {"name", random_text(random, 8 + random.below(24))},
                      {"address", {{"street", random_text(random, 20 + random.below(30))}, {"number", random.below(200)}}},
                      {"balance", static_cast<double>(random.below(100'000)) / 100},
                      {"tags", std::move(tags)}});
  }
  return result;
}

// Documents are parsed, changed and written. An operation is one document's entry.
template <unsigned kThreads>
Outcome json(double scale) {
  constexpr std::size_t kEntries = 400;
  const auto rounds = scaled(scale, 240 / kThreads);
  Random random(1);
  const std::string text = document(random, kEntries).dump();
  std::vector<std::uint64_t> written(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      auto parsed = nlohmann::json::parse(text);
      for (auto& entry : parsed) entry["round"] = round;
      if (parsed.size() != kEntries) give_up("a document was changed");
      written[t] += parsed.dump().size();
    }
  });
  return {kThreads * rounds * kEntries, seconds, sum_of(written)};
}

// Several maps from strings to strings grow side by side, lose a third of their keys, and grow on.
template <unsigned kThreads>
Outcome hash_maps(double scale) {
  constexpr unsigned kMaps = 4;
  const auto keys = scaled(scale, 480'000 / kThreads);
  std::vector<std::uint64_t> operations(kThreads);
  const double seconds = run_threads(kThreads, [&](unsigned t) {
    Random random(t + 1);
    std::vector<std::unordered_map<std::string, std::string>> maps(kMaps);
    for (std::uint64_t i = 0; i < keys; ++i) {
      auto& map = maps[i % kMaps];
      map.emplace("key:of:the:record:" + std::to_string(i), std::string(8 + random.below(120), 'v'));
      ++operations[t];
      if (i % 3 == 2)
        operations[t] += maps[random.below(kMaps)].erase("key:of:the:record:" + std::to_string(random.below(i)));
    }
  });
  return {sum_of(operations), seconds, sum_of(operations)};
}

// A server: each request takes blocks of many sizes, 16 B to 16 KiB and now and then a buffer, and frees them together when
// it is answered. A thread has several requests under way.
class Request {
 public:
  explicit Request(Random& random) {
    const std::size_t count = 20 + random.below(60);
    blocks_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t dice = random.below(100);
      const std::size_t bytes = dice < 80   ? random.log_size(4, 8)
                                : dice < 98 ? random.log_size(8, 13)
                                            : random.log_size(13, 17);
      auto* block = static_cast<char*>(must(std::malloc(bytes)));
      block[0] = static_cast<char>(i);
      block[bytes - 1] = static_cast<char>(i);
      if (bytes < 1024) std::fill(block, block + bytes, static_cast<char>(i));
      blocks_.push_back(block);
    }
  }
  ~Request() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i][0] != static_cast<char>(i)) give_up("a block was overwritten");
      std::free(blocks_[i]);
    }
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  std::size_t size() const { return blocks_.size(); }

 private:
  std::vector<char*> blocks_;
};

template <unsigned kThreads, bool kOnTwoCpus>
Outcome requests(double scale) {
  constexpr std::size_t kUnderWay = 16;
  const auto count = scaled(scale, 160'000 / kThreads);
  std::vector<std::uint64_t> blocks(kThreads);
  const double seconds = run_threads(
      kThreads,
      [](unsigned t) {
        if (kOnTwoCpus) pin_to_cpu(t % 2);
      },
      [&](unsigned t) {
        Random random(t + 1);
        std::vector<std::unique_ptr<Request>> under_way(kUnderWay);
        for (std::uint64_t i = 0; i < count; ++i) {
          auto& place = under_way[random.below(kUnderWay)];
          place = std::make_unique<Request>(random);
          blocks[t] += place->size();
        }
      });
  return {sum_of(blocks), seconds, sum_of(blocks)};
}

// A message as generated code makes them: optional strings, repeated fields, children that are allocated one by one.
struct Message {
  explicit Message(Random& random, unsigned depth) : name(8 + random.below(40), 'n') {
    values.reserve(random.below(12));
    for (std::size_t i = 0; i < values.capacity(); ++i) values.push_back(i);
    if (random.below(2) == 0) note = std::make_unique<std::string>(16 + random.below(100), 'c');
    if (depth == 0) return;
    for (std::size_t i = 2 + random.below(5); i > 0; --i) children.push_back(std::make_unique<Message>(random, depth - 1));
  }
  // Every string and value is read, as a handler would.
  std::uint64_t read() const {
    std::uint64_t nodes =
        1 + (name[0] == 'n' ? 0 : 1'000'000) + (values.empty() || values.back() + 1 == values.size() ? 0 : 1'000'000);
    for (const auto& child : children) nodes += child->read();
    return nodes;
  }

  std::string name;
  std::vector<std::uint64_t> values;
  std::unique_ptr<std::string> note;
  std::vector<std::unique_ptr<Message>> children;
};

// A place for one message between two threads.
class Mailbox {
 public:
  void put(Message* message) {
    while (place_.load(std::memory_order_acquire) != nullptr) std::this_thread::yield();
    place_.store(message, std::memory_order_release);  // pairs with the exchange in take()
  }
  Message* take() {
    for (;;) {
      if (Message* message = place_.exchange(nullptr, std::memory_order_acq_rel)) return message;
      std::this_thread::yield();
    }
  }

 private:
  alignas(64) std::atomic<Message*> place_{nullptr};
};

// One thread of each pair builds trees, the other reads and destroys them. An operation is one node.
template <unsigned kPairs>
Outcome trees(double scale) {
  constexpr std::size_t kPlaces = 8;
  const auto count = scaled(scale, 12'000 / kPairs);
  std::vector<std::vector<Mailbox>> boxes(kPairs);
  for (auto& places : boxes) places = std::vector<Mailbox>(kPlaces);
  std::vector<std::uint64_t> nodes(kPairs);
  const double seconds = run_threads(2 * kPairs, pin_to_cpu, [&](unsigned t) {
    auto& places = boxes[t / 2];
    Random random(t + 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      Mailbox& box = places[i % kPlaces];
      if (t % 2 == 0) {
        box.put(new Message(random, 3));
      } else {
        const std::unique_ptr<Message> message(box.take());
        nodes[t / 2] += message->read();
      }
    }
  });
  return {sum_of(nodes), seconds, sum_of(nodes)};
}

// Two threads hand each other batches through vectors under a lock. Nothing keeps one from running ahead, as in a program
// whose queue has no bound: its messages wait in the other's queue.
Outcome batches(double scale) {
  constexpr std::size_t kBatch = 256;
  constexpr std::size_t kBytes = 64;
  const auto rounds = scaled(scale, 30'000);
  struct alignas(64) Box {
    std::mutex mutex;
    std::vector<std::uint64_t*> blocks;
  };
  Box boxes[2];
  std::uint64_t freed[2] = {};
  const auto drop = [&](unsigned t, std::vector<std::uint64_t*>& blocks) {
    for (auto* block : blocks) {
      if (*block != t) give_up("a block was overwritten");
      std::free(block);
    }
    freed[t] += blocks.size();
    blocks.clear();
  };
  const double seconds = run_threads(2, pin_to_cpu, [&](unsigned t) {
    std::vector<std::uint64_t*> batch;
    std::vector<std::uint64_t*> received;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < kBatch; ++i) {
        batch.push_back(static_cast<std::uint64_t*>(must(std::malloc(kBytes))));
        *batch.back() = 1 - t;
      }
      {
        const std::scoped_lock lock(boxes[1 - t].mutex);
        boxes[1 - t].blocks.insert(boxes[1 - t].blocks.end(), batch.begin(), batch.end());
      }
      batch.clear();
      {
        const std::scoped_lock lock(boxes[t].mutex);
        boxes[t].blocks.swap(received);
      }
      drop(t, received);
    }
  });
  for (unsigned t = 0; t < 2; ++t) drop(t, boxes[t].blocks);
  const std::uint64_t blocks = 2 * rounds * kBatch;
  if (freed[0] + freed[1] != blocks) give_up("a block was lost");
  return {blocks, seconds, blocks};
}

constexpr Row kRows[] = {
    {"strings_1t", "1 thread cuts text into words, sorts and joins them", strings<1>},
    {"strings_4t", "4 threads, the same", strings<4>},
    {"json_1t", "1 thread parses, changes and writes JSON documents", json<1>},
    {"json_4t", "4 threads, the same", json<4>},
    {"maps_1t", "1 thread, 4 hash maps of strings grow side by side", hash_maps<1>},
    {"maps_4t", "4 threads, the same", hash_maps<4>},
    {"requests_1t", "1 thread serves requests, 20-80 blocks of 16 B-128 KiB freed together", requests<1, false>},
    {"requests_8t_2cpus", "8 threads on 2 CPUs, the same", requests<8, true>},
    {"trees_2t", "1 thread builds trees of messages, another reads and frees them", trees<1>},
    {"trees_8t", "4 such pairs", trees<4>},
    {"batches_2t", "2 threads hand each other batches of 256 blocks through locked vectors", batches},
};

}  // namespace

Rows program_like_rows() { return kRows; }

}  // namespace freehold::bench
