#include "freehold/doctor/recording.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <tuple>
#include <unordered_map>

namespace freehold::doctor {
namespace {

// One thread's record, as it stands in the file.
struct RawRecord {
  RecordKind kind{};
  std::uint32_t thread = 0;
  std::uint64_t ticks = 0;
  std::size_t order = 0;  // in the file
  StackId stack = 0;
  Sample sample{};
  PageEvent page{};
};

class Reader {
 public:
  Reader(std::vector<char> bytes, const FileHeader& header) : bytes_(std::move(bytes)), header_(header) {}

  Recording read() {
    result_.pid = header_.pid;
    result_.parent = header_.parent;
    result_.dropped = header_.dropped;
    result_.fast_path_ns = static_cast<double>(header_.fast_path_picoseconds) / 1000;
    result_.seconds = static_cast<double>(header_.last.ns - header_.begin.ns) / 1e9;
    if (header_.last.ticks > header_.begin.ticks)
      ns_per_tick_ = static_cast<double>(header_.last.ns - header_.begin.ns) /
                     static_cast<double>(header_.last.ticks - header_.begin.ticks);
    static_cast<void>(stack_id({}));  // 0: no stack
    for (std::size_t at = kExtentBytes; at + sizeof(ExtentHeader) <= bytes_.size(); at += kExtentBytes) read_extent(at);
    std::ranges::sort(records_, {}, [](const RawRecord& record) { return std::pair(record.ticks, record.order); });
    put_blocks_together();
    weigh_by_totals();
    find_shared_lines();
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

  void read_record(const RecordHeader& header, std::size_t body, std::size_t bytes, std::uint32_t thread) {
    const auto is_whole = [&](std::size_t body_bytes) {
      return bytes >= body_bytes + header.depth * sizeof(std::uint64_t) && header.depth <= kMaxDepth;
    };
    RawRecord record{.kind = header.kind, .thread = thread};
    switch (header.kind) {
      case RecordKind::kAllocate:
      case RecordKind::kFree:
      case RecordKind::kTimedFree:
        if (!is_whole(sizeof(Sample))) return;
        record.sample = load<Sample>(body);
        record.ticks = record.sample.ticks;
        record.stack = read_stack(body + sizeof(Sample), header.depth);
        break;
      case RecordKind::kPageAllocate:
      case RecordKind::kPageFree:
        if (!is_whole(sizeof(PageEvent))) return;
        record.page = load<PageEvent>(body);
        record.ticks = record.page.ticks;
        record.stack = read_stack(body + sizeof(PageEvent), header.depth);
        break;
      case RecordKind::kThread: {
        if (!is_whole(sizeof(ThreadTotals))) return;
        const auto totals = load<ThreadTotals>(body);
        auto& known = result_.threads[thread];
        if (totals.allocations + totals.frees < known.allocations + known.frees) return;  // the latest are the largest
        known = {.allocations = totals.allocations,
                 .frees = totals.frees,
                 .cpu_s = static_cast<double>(totals.cpu_ns) / 1e9,
                 .probe_s = static_cast<double>(totals.probe_ticks) * ns_per_tick_ / 1e9};
        return;
      }
      default: return;
    }
    record.order = records_.size();
    records_.push_back(record);
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
        // Another block at this place has ended, though nobody saw it.
        living[sample.block] = result_.blocks.size();
        BlockSample& block = result_.blocks.emplace_back();
        block.address = sample.block;
        block.bytes = sample.size;
        block.weight = static_cast<double>(sample.weight);
        block.began_s = seconds(sample.ticks);
        block.call_ns = call_ns(sample);
        block.waited_s = sample.waited_us / 1e6;
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
                                 .thread = record.thread,
                                 .stack = record.stack});
      }
    }
  }

  // What a thread called after its last sample is in its totals, if it came to an end.
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

  // Goes through the pages' events in order and looks at who lives on the lines in which a new block begins and ends. Lines
  // between these are its own.
  void find_shared_lines() {
    struct Resident {
      std::uint64_t block, bytes;
      std::uint32_t thread;
      StackId stack;
    };
    std::unordered_map<std::uint64_t, std::vector<Resident>> lines;
    std::set<std::tuple<std::uint64_t, StackId, StackId>> known;
    std::set<std::uint64_t> watched;
    std::uint64_t epoch = 0;
    for (const RawRecord& record : records_) {
      if (record.kind != RecordKind::kPageAllocate && record.kind != RecordKind::kPageFree) continue;
      const PageEvent& event = record.page;
      if (event.epoch != epoch) {
        epoch = event.epoch;
        lines.clear();
      }
      const auto each_line = [&](std::uint64_t block, std::uint64_t bytes, auto&& visit) {
        const std::uint64_t first = block / 64, last = (block + (bytes == 0 ? 0 : bytes - 1)) / 64;
        visit(first);
        if (last != first) visit(last);
      };
      const auto end_block = [&](std::uint64_t line) {
        std::erase_if(lines[line], [&](const Resident& r) { return r.block == event.block; });
      };
      if (record.kind == RecordKind::kPageFree) {
        end_block(event.block / 64);  // its last line is put right when something else begins there
        continue;
      }
      each_line(event.block, event.size, [&](std::uint64_t line) {
        watched.insert(line);
        auto& residents = lines[line];
        // What overlaps has ended unseen.
        std::erase_if(residents, [&](const Resident& r) {
          return r.block < event.block + std::max<std::uint64_t>(event.size, 1) &&
                 event.block < r.block + std::max<std::uint64_t>(r.bytes, 1);
        });
        for (const Resident& r : residents) {
          if (r.thread == record.thread) continue;
          if (!known.emplace(line, std::min(r.stack, record.stack), std::max(r.stack, record.stack)).second) continue;
          result_.shared_lines.push_back({.line = line,
                                          .threads = {r.thread, record.thread},
                                          .stacks = {r.stack, record.stack},
                                          .bytes = {r.bytes, event.size}});
        }
        residents.push_back({event.block, event.size, record.thread, record.stack});
      });
    }
    result_.lines_watched = watched.size();
  }

  std::vector<char> bytes_;
  FileHeader header_;
  double ns_per_tick_ = 1;
  std::vector<RawRecord> records_;
  std::map<std::vector<std::uint64_t>, StackId> stack_ids_;
  Recording result_;
};

}  // namespace

std::optional<Recording> read_recording(const std::filesystem::path& file, NoRecording& no) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    no.why = file.string() + " cannot be read";
    return std::nullopt;
  }
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
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
