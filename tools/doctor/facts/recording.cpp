// SPDX-License-Identifier: MIT
#include "tools/doctor/facts/recording.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace freehold::doctor {
namespace {

// One thread's record, as it stands in the file.
struct RawRecord {
  RecordKind kind{};
  std::uint32_t thread = 0;
  std::uint64_t ticks = 0;
  std::size_t order = 0;  // in the file
  StackId stack = 0;
  union {
    Sample sample{};
    PageEvent page;
    Wait wait;
  };
};

// Blocks on the cache lines in which they begin and end, in the order of what happens to them; lines between these are their
// own. Finds the lines on which blocks of two threads lie at the same time.
class Lines {
 public:
  Lines(std::vector<SharedLine>& found, bool is_in_watched) : found_(found), is_in_watched_(is_in_watched) {}

  void begin(std::uint64_t block, std::uint64_t bytes, std::uint32_t thread, StackId stack, double at_s) {
    each_line(block, bytes, [&](std::uint64_t line) {
      auto& residents = lines_[line];
      std::erase_if(residents, [&](Resident& r) {
        const bool has_ended_unseen =
            r.block < block + std::max<std::uint64_t>(bytes, 1) && block < r.block + std::max<std::uint64_t>(r.bytes, 1);
        if (has_ended_unseen) close(r, 0, at_s);
        return has_ended_unseen;
      });
      Resident made{block, bytes, thread, stack, {}};
      for (Resident& r : residents)
        if (r.thread != thread) meet(line, r, made, at_s);
      residents.push_back(std::move(made));
    });
  }
  void end(std::uint64_t block, std::uint32_t thread, double at_s) {
    const auto first = lines_.find(block / 64);
    if (first == lines_.end()) return;
    const auto known = std::ranges::find(first->second, block, &Resident::block);
    if (known == first->second.end()) return;
    each_line(block, known->bytes, [&](std::uint64_t line) {
      std::erase_if(lines_[line], [&](Resident& r) {
        if (r.block == block) close(r, thread, at_s);
        return r.block == block;
      });
    });
  }
  // Nothing is known of any line from here on.
  void clear(double at_s) {
    for (auto& [line, residents] : lines_)
      for (Resident& r : residents) close(r, 0, at_s);
    lines_.clear();
  }

 private:
  struct Resident {
    std::uint64_t block, bytes;
    std::uint32_t thread;
    StackId stack;
    std::vector<std::pair<std::size_t, unsigned>> met;  // of found_, and which of the two it is
  };

  template <class Visit>
  static void each_line(std::uint64_t block, std::uint64_t bytes, const Visit& visit) {
    const std::uint64_t first = block / 64, last = (block + (bytes == 0 ? 0 : bytes - 1)) / 64;
    visit(first);
    if (last != first) visit(last);
  }
  // Once for each line and pair of stacks, and again as long as a thread came to use both.
  void meet(std::uint64_t line, Resident& one, Resident& other, double at_s) {
    const auto key = std::tuple(line, std::min(one.stack, other.stack), std::max(one.stack, other.stack));
    const auto [known, is_new] = known_.try_emplace(key, found_.size());
    if (!is_new && (found_.size() >= kMostFound || !has_common_user(found_[known->second]))) return;
    known->second = found_.size();
    one.met.emplace_back(found_.size(), 0);
    other.met.emplace_back(found_.size(), 1);
    found_.push_back({.line = line,
                      .threads = {one.thread, other.thread},
                      .stacks = {one.stack, other.stack},
                      .bytes = {one.bytes, other.bytes},
                      .together_s = -at_s,  // until one of them ends
                      .is_in_watched = is_in_watched_});
  }
  void close(const Resident& resident, std::uint32_t thread, double at_s) {
    for (const auto& [at, side] : resident.met) {
      SharedLine& shared = found_[at];
      shared.ending_threads[side] = thread;
      if (shared.together_s <= 0) shared.together_s = std::max(at_s + shared.together_s, 1e-9);
    }
  }

  static constexpr std::size_t kMostFound = 200'000;

  std::vector<SharedLine>& found_;
  bool is_in_watched_;
  std::unordered_map<std::uint64_t, std::vector<Resident>> lines_;
  std::map<std::tuple<std::uint64_t, StackId, StackId>, std::size_t> known_;
};

class Reader {
 public:
  Reader(std::vector<char> bytes, const FileHeader& header) : bytes_(std::move(bytes)), header_(header) {}

  Recording read() {
    result_.pid = header_.pid;
    result_.parent = header_.parent;
    result_.dropped = header_.dropped;
    result_.is_whole = header_.is_whole != 0;
    result_.mapped_bytes = static_cast<double>(header_.mapped_bytes);
    result_.fast_path_ns = static_cast<double>(header_.fast_path_picoseconds) / 1000;
    result_.began_s = static_cast<double>(header_.begin.ns) / 1e9;
    result_.cpu_s = static_cast<double>(header_.cpu_ns) / 1e9;
    result_.seconds = static_cast<double>(header_.last.ns - header_.begin.ns) / 1e9;
    if (header_.last.ticks > header_.begin.ticks)
      ns_per_tick_ = static_cast<double>(header_.last.ns - header_.begin.ns) /
                     static_cast<double>(header_.last.ticks - header_.begin.ticks);
    result_.mapping_s = static_cast<double>(header_.mapping_ticks) * ns_per_tick_ / 1e9;
    static_cast<void>(stack_id({}));  // 0: no stack
    for (std::size_t at = kExtentBytes; at + sizeof(ExtentHeader) <= bytes_.size(); at += kExtentBytes) read_extent(at);
    std::ranges::sort(records_, {}, [](const RawRecord& record) { return std::pair(record.ticks, record.order); });
    put_blocks_together();
    if (header_.is_by_bytes == 0) weigh_by_totals();  // where bytes are counted, a gap's end is no matter of calls
    find_shared_lines();
    find_lines_of_sampled();
    name_locks();
    return std::move(result_);
  }

 private:
  template <class T>
  [[nodiscard]] T load(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  void read_extent(std::size_t at) {
    const auto extent = load<ExtentHeader>(at);
    std::size_t end = at + sizeof extent + std::min<std::size_t>(extent.used, kExtentBytes - sizeof extent);
    end = std::min(end, bytes_.size());
    for (at += sizeof extent; at + sizeof(RecordHeader) <= end;) {
      const auto header = load<RecordHeader>(at);
      if (header.bytes < sizeof header || at + header.bytes > end) return;  // cut short
      read_record(header, at + sizeof header, header.bytes - sizeof header, extent.thread);
      at += header.bytes;
    }
  }

  // No such block is there, and any number of them would lie on one line: blocks that do not overlap are at most 64 of a
  // line.
  [[nodiscard]] static bool wraps(std::uint64_t block, std::uint64_t bytes) { return bytes >= ~block; }

  void read_record(const RecordHeader& header, std::size_t body, std::size_t bytes, std::uint32_t thread) {
    const auto is_whole = [&](std::size_t body_bytes) {
      return bytes >= body_bytes + header.depth * sizeof(std::uint64_t) && header.depth <= kMaxDepth;
    };
    RawRecord record;
    record.kind = header.kind;
    record.thread = thread;
    switch (header.kind) {
      case RecordKind::kAllocate:
      case RecordKind::kFree:
      case RecordKind::kTimedFree:
        if (!is_whole(sizeof(Sample))) return;
        record.sample = load<Sample>(body);
        if (wraps(record.sample.block, record.sample.size)) return;
        record.ticks = record.sample.ticks;
        record.stack = read_stack(body + sizeof(Sample), header.depth);
        break;
      case RecordKind::kPageAllocate:
      case RecordKind::kPageFree:
        if (!is_whole(sizeof(PageEvent))) return;
        record.page = load<PageEvent>(body);
        if (wraps(record.page.block, record.page.size)) return;
        record.ticks = record.page.ticks;
        record.stack = read_stack(body + sizeof(PageEvent), header.depth);
        break;
      case RecordKind::kThread: {
        if (!is_whole(sizeof(ThreadTotals))) return;
        const auto totals = load<ThreadTotals>(body);
        auto& known = result_.threads[thread];
        saw(known, totals.ticks);
        if (totals.allocations + totals.frees < known.allocations + known.frees) return;  // the latest are the largest
        known.allocations = totals.allocations;
        known.frees = totals.frees;
        known.cpu_s = static_cast<double>(totals.cpu_ns) / 1e9;
        known.probe_s = static_cast<double>(totals.probe_ticks) * ns_per_tick_ / 1e9;
        return;
      }
      case RecordKind::kWait:
        if (!is_whole(sizeof(Wait))) return;
        record.wait = load<Wait>(body);
        record.ticks = record.wait.ticks;
        record.stack = read_stack(body + sizeof(Wait), header.depth);
        add_wait(record);
        saw(result_.threads[thread], record.ticks);
        saw(result_.threads[thread], record.ticks + record.wait.duration);
        return;
      default: return;
    }
    saw(result_.threads[thread], record.ticks);
    record.order = records_.size();
    records_.push_back(record);
  }

  void saw(RecordedThread& thread, std::uint64_t ticks) const {
    const double at_s = seconds(ticks);
    thread.began_s = thread.last_s == 0 ? at_s : std::min(thread.began_s, at_s);
    thread.last_s = std::max(thread.last_s, at_s);
  }
  void add_wait(const RawRecord& record) {
    const Wait& wait = record.wait;
    if (wait.kind >= kWaitKinds || !(wait.weight >= 1)) return;
    result_.waits.push_back({.weight = wait.weight,
                             .waited_s = static_cast<double>(wait.duration) * ns_per_tick_ / 1e9,
                             .kind = static_cast<WaitKind>(wait.kind),
                             .lock = wait.lock,
                             .thread = record.thread,
                             .stack = record.stack});
  }

  // A futex or a semaphore that turned out to be a lock was one from the beginning.
  void name_locks() {
    std::set<std::uint64_t> locks;
    for (const WaitSample& wait : result_.waits)
      if (wait.kind == WaitKind::kFutexLock) locks.insert(wait.lock);
    for (WaitSample& wait : result_.waits)
      if ((wait.kind == WaitKind::kFutexWait || wait.kind == WaitKind::kSemaphore) && locks.contains(wait.lock))
        wait.kind = WaitKind::kFutexLock;
  }

  [[nodiscard]] StackId read_stack(std::size_t at, unsigned depth) {
    std::vector<std::uint64_t> stack(depth);
    std::memcpy(stack.data(), bytes_.data() + at, depth * sizeof(std::uint64_t));
    return stack_id(std::move(stack));
  }
  [[nodiscard]] StackId stack_id(std::vector<std::uint64_t> stack) {
    const auto [found, is_new] = stack_ids_.try_emplace(std::move(stack), static_cast<StackId>(result_.stacks.size()));
    if (is_new) result_.stacks.push_back(found->first);
    return found->second;
  }

  [[nodiscard]] double call_ns(const Sample& sample) const {
    const double ticks = static_cast<double>(sample.duration) - static_cast<double>(header_.empty_call_ticks);
    return std::max(ticks, 0.0) * ns_per_tick_;
  }
  [[nodiscard]] double seconds(std::uint64_t ticks) const {
    return (static_cast<double>(ticks) - static_cast<double>(header_.begin.ticks)) * ns_per_tick_ / 1e9;
  }

  void put_blocks_together() {
    std::unordered_map<std::uint64_t, std::size_t> living;  // by address, an index into blocks
    for (const RawRecord& record : records_) {
      const Sample& sample = record.sample;
      if (record.kind == RecordKind::kAllocate) {
        // Another block at this place has ended, though that was not seen.
        const auto [place, is_new] = living.try_emplace(sample.block, result_.blocks.size());
        if (!is_new) result_.blocks[place->second].is_end_watched = false;
        place->second = result_.blocks.size();
        BlockSample& block = result_.blocks.emplace_back();
        block.address = sample.block;
        block.bytes = sample.size;
        block.weight = static_cast<double>(sample.weight);
        if (header_.is_by_bytes != 0) block.weight /= static_cast<double>(counted_bytes(sample.size));
        block.began_s = seconds(sample.ticks);
        block.call_ns = call_ns(sample);
        block.waited_s = sample.waited_us / 1e6;
        block.preempted_s = sample.preempted_us / 1e6;
        block.is_end_watched = sample.end_is_watched != 0;
        block.thread = record.thread;
        block.stack = record.stack;
      } else if (record.kind == RecordKind::kFree) {
        const auto found = living.find(sample.block);
        if (found == living.end()) continue;
        BlockSample& block = result_.blocks[found->second];
        block.ended_s = seconds(sample.ticks);
        block.ending_thread = record.thread;
        block.ending_stack = record.stack;
        living.erase(found);
      } else if (record.kind == RecordKind::kTimedFree) {
        result_.frees.push_back({.weight = static_cast<double>(sample.weight),
                                 .call_ns = call_ns(sample),
                                 .waited_s = sample.waited_us / 1e6,
                                 .preempted_s = sample.preempted_us / 1e6,
                                 .thread = record.thread,
                                 .stack = record.stack});
      }
    }
  }

  // A thread's calls after its last sample are in its totals, if it came to an end.
  void weigh_by_totals() {
    struct Sums {
      double large = 0, sampled = 0, frees = 0;
    };
    std::map<std::uint32_t, Sums> sums;
    for (const BlockSample& block : result_.blocks)
      (block.bytes < kLargeBytes ? sums[block.thread].sampled : sums[block.thread].large) += block.weight;
    for (const FreeSample& end : result_.frees) sums[end.thread].frees += end.weight;
    const auto factor = [](double total, double sum) { return sum > 0 && total > sum ? total / sum : 1; };
    for (BlockSample& block : result_.blocks) {
      if (block.bytes >= kLargeBytes) continue;
      const Sums& of = sums[block.thread];
      block.weight *= factor(static_cast<double>(result_.threads[block.thread].allocations) - of.large, of.sampled);
    }
    for (FreeSample& end : result_.frees)
      end.weight *= factor(static_cast<double>(result_.threads[end.thread].frees), sums[end.thread].frees);
  }

  // The pages' events, in order.
  void find_shared_lines() {
    Lines lines(result_.shared_lines, true);
    std::unordered_set<std::uint64_t> watched;
    std::uint64_t epoch = 0;
    for (const RawRecord& record : records_) {
      if (record.kind != RecordKind::kPageAllocate && record.kind != RecordKind::kPageFree) continue;
      const PageEvent& event = record.page;
      const double at_s = seconds(event.ticks);
      if (event.epoch != epoch) {
        epoch = event.epoch;
        lines.clear(at_s);
      }
      if (record.kind == RecordKind::kPageFree) {
        lines.end(event.block, record.thread, at_s);
        continue;
      }
      lines.begin(event.block, event.size, record.thread, record.stack, at_s);
      watched.insert(event.block / 64);
      watched.insert((event.block + std::max<std::uint64_t>(event.size, 1) - 1) / 64);
    }
    lines.clear(result_.seconds);
    result_.lines_watched = watched.size();
  }

  // A block that lives for long is seldom allocated while its page is watched, but it may have been sampled.
  void find_lines_of_sampled() {
    Lines lines(result_.shared_lines, false);
    for (const RawRecord& record : records_) {
      const Sample& sample = record.sample;
      if (record.kind == RecordKind::kAllocate && sample.end_is_watched != 0)
        lines.begin(sample.block, sample.size, record.thread, record.stack, seconds(sample.ticks));
      else if (record.kind == RecordKind::kFree)
        lines.end(sample.block, record.thread, seconds(sample.ticks));
    }
    lines.clear(result_.seconds);
  }

  std::vector<char> bytes_;
  FileHeader header_;
  double ns_per_tick_ = 1;
  std::vector<RawRecord> records_;
  std::map<std::vector<std::uint64_t>, StackId> stack_ids_;
  Recording result_;
};

}  // namespace

bool has_common_user(const SharedLine& shared) {
  for (const std::uint32_t one : {shared.threads[0], shared.ending_threads[0]})
    for (const std::uint32_t other : {shared.threads[1], shared.ending_threads[1]})
      if (one != 0 && one == other) return true;
  return false;
}

std::optional<Recording> read_recording(const std::filesystem::path& file, NoRecording& no) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    no.why = file.string() + " cannot be read";
    return std::nullopt;
  }
  std::error_code none;
  std::vector<char> bytes(std::filesystem::file_size(file, none));
  if (none) bytes.clear();
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  FileHeader header;
  if (bytes.size() < sizeof header) {
    no.why = file.string() + " is too short for a recording";
    return std::nullopt;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kTraceMagic) {
    no.why = file.string() + " is not a recording of this version of the probe";
    return std::nullopt;
  }
  return Reader(std::move(bytes), header).read();
}

}  // namespace freehold::doctor
