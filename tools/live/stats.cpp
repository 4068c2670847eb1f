// SPDX-License-Identifier: MIT
#include "tools/live/stats.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <utility>

#include "freehold/heap/live_heap.hpp"
#include "freehold/pool/named_pools.hpp"
#include "freehold/sync/change_count.hpp"
#include "freehold/sync/live_list.hpp"
#include "tools/live/memory.hpp"
#include "tools/live/proc_folder.hpp"
#include "tools/live/process.hpp"

namespace freehold::live {
namespace {
using alloc::LiveClasses;
using alloc::LiveDirectory;
using alloc::LiveTables;
using alloc::LiveThreads;
using Counter = sync::ChangeCount<sync::NativeAtomics>;

// A damaged process must not make us allocate or loop without end.
constexpr std::size_t kMostThreads = 100'000, kMostListed = 10'000;
constexpr std::uint64_t kMostSpans = std::uint64_t{1} << 26;
constexpr std::uint32_t kMostRecordBytes = 64 << 10;  // largest record of a thread, or of one of a heap's bins
constexpr std::uint32_t kMostSpanBytes = 1 << 20, kLeastSlotBytes = 8;
constexpr std::uint64_t kMostPoolWords = std::uint64_t{1} << 27;
constexpr unsigned kMostShards = 1024;
constexpr unsigned kTries = 10;

template <class T>
T at(const std::vector<std::byte>& record, std::size_t offset) {
  T value{};
  if (offset + sizeof(T) <= record.size()) std::memcpy(&value, record.data() + offset, sizeof(T));
  return value;
}

// Follows a list until it did not change during the walk: `begin()` forgets what was read, `visit(address)` reads a record
// and makes the address that of the next one. False: the list was changed each time, or a record cannot be read.
template <class Begin, class Visit>
bool follow(LiveMemory& memory, std::uint64_t first, std::uint64_t changes, std::size_t most, Begin begin, Visit visit) {
  for (unsigned tries = 0; tries < kTries; ++tries) {
    begin();
    std::uint64_t seen = 0, now = 0, record = 0;
    if (!memory.read(changes, seen) || !memory.read(first, record)) return false;
    bool readable = true;
    for (std::size_t n = 0; record != 0 && n < most && readable; ++n) readable = visit(record);
    if (!memory.read(changes, now)) return false;
    if (readable && record == 0 && seen == now && !Counter::is_amid(seen)) return true;
  }
  return false;
}

class Engine {
 public:
  Engine(LiveMemory& memory, std::uint64_t directory) : memory_(memory), directory_(directory) {}

  // False: it cannot be read.
  bool read(LiveStats& to) {
    const auto figures = read_live_figures(memory_, directory_);
    if (!figures || !memory_.read(directory_ + offsetof(LiveDirectory, tables), tables_)) return false;
    const LiveClasses& classes = tables_.classes;
    if (tables_.bytes != sizeof tables_ || classes.count == 0 || classes.count > alloc::kMostLiveClasses ||
        tables_.threads.record_bytes > kMostRecordBytes)
      return false;
    to.figures = *figures;
    return read_threads(to) && read_spans(to);
  }

 private:
  bool read_threads(LiveStats& to) {
    const LiveThreads& layout = tables_.threads;
    const std::size_t count = tables_.classes.count;
    std::vector<std::uint64_t> past_refills(count), past_drains(count);
    std::vector<std::byte> record(layout.record_bytes);
    const auto begin = [&] {
      to.threads.clear();
      to.classes.assign(count - 1, {});
      to.remote_frees = to.refills = to.drains = 0;
      const bool past =
          memory_.read(tables_.classes.past_refills, past_refills) && memory_.read(tables_.classes.past_drains, past_drains);
      for (std::size_t c = 1; past && c < count; ++c) {
        to.classes[c - 1].slot_bytes = tables_.classes.slot_bytes[c];
        to.classes[c - 1].refills = past_refills[c];
        to.classes[c - 1].drains = past_drains[c];
      }
      if (const auto figures = read_live_figures(memory_, directory_))
        to.remote_frees = (*figures)[LiveFigure::kRemoteFrees].value_or(0);
    };
    const auto visit = [&](std::uint64_t& address) {
      if (!memory_.read(address, record)) return false;
      add_thread(record, to);
      address = at<std::uint64_t>(record, layout.next);
      return true;
    };
    to.lists_changed |= !follow(memory_, layout.first, layout.changes, kMostThreads, begin, visit);
    for (const LiveClass& c : to.classes) {
      to.refills += c.refills;
      to.drains += c.drains;
    }
    return memory_.error() != ESRCH;
  }

  void add_thread(const std::vector<std::byte>& record, LiveStats& to) const {
    const LiveThreads& layout = tables_.threads;
    LiveThread thread;
    thread.thread = at<std::int32_t>(record, layout.thread);
    thread.granted_bytes = at<std::uint64_t>(record, layout.granted_bytes);
    thread.remote_frees = at<std::uint64_t>(record, layout.remote_frees);
    for (std::size_t c = 1; c < tables_.classes.count; ++c) {
      const std::size_t bin = layout.bins + c * layout.bin_stride;
      const auto refills = at<std::uint64_t>(record, bin + layout.bin_refills);
      const auto drains = at<std::uint64_t>(record, bin + layout.bin_drains);
      const std::uint64_t entered = entries(at<std::uint64_t>(record, bin + layout.bin_array),
                                            at<std::uint64_t>(record, layout.tops + c * sizeof(std::uint64_t)),
                                            at<std::uint16_t>(record, bin + layout.bin_capacity));
      // Marks of the heap profile are entries, but no slots.
      const std::uint64_t cached =
          entered - std::min<std::uint64_t>(entered, at<std::uint16_t>(record, bin + layout.bin_marks));
      thread.refills += refills;
      thread.drains += drains;
      thread.cached_bytes += cached * tables_.classes.slot_bytes[c];
      to.classes[c - 1].refills += refills;
      to.classes[c - 1].drains += drains;
      to.classes[c - 1].cached_slots += cached;
    }
    to.remote_frees += thread.remote_frees;
    to.threads.push_back(thread);
  }
  // The owner may just have moved its array: then the two do not fit.
  static std::uint64_t entries(std::uint64_t array, std::uint64_t top, std::uint16_t capacity) {
    const std::uint64_t first = array + sizeof(std::uint64_t);
    if (array == 0 || top < first) return 0;
    const std::uint64_t n = (top - first) / sizeof(std::uint64_t);
    return n <= capacity ? n : 0;
  }

  bool read_spans(LiveStats& to) {
    const LiveClasses& layout = tables_.classes;
    std::uint64_t spans = 0;
    if (!memory_.read(layout.span_count, spans) || spans > kMostSpans || layout.span_bytes > kMostSpanBytes) return false;
    std::vector<std::vector<std::uint64_t>> batches(layout.count);  // addresses of spans whose words are not counted yet
    std::vector<std::uint8_t> classes;
    for (std::uint64_t first = 0; first < spans; first += classes.size()) {
      constexpr std::uint64_t kPiece = 64 << 10;
      classes.resize(std::min(kPiece, spans - first));
      if (!memory_.read(layout.span_classes + first, classes)) return false;
      for (std::size_t i = 0; i < classes.size(); ++i) {
        const std::uint8_t c = classes[i];
        if (c == 0 || c >= layout.count || layout.slot_bytes[c] < kLeastSlotBytes) continue;
        const auto& [words, stride] = layout.tables[layout.slot_bytes[c] >= layout.few_words_from ? 1 : 0];
        batches[c].push_back(words + (first + i) * stride);
        if (batches[c].size() == kBatch && !count_spans(c, batches[c], to)) return false;
      }
    }
    for (std::size_t c = 1; c < layout.count; ++c) {
      if (!batches[c].empty() && !count_spans(c, batches[c], to)) return false;
      to.classes[c - 1].free_slots = std::min(to.classes[c - 1].free_slots, to.classes[c - 1].slots);
    }
    return true;
  }

  bool count_spans(std::size_t c, std::vector<std::uint64_t>& batch, LiveStats& to) {
    LiveClass& one = to.classes[c - 1];
    const std::uint64_t slots = tables_.classes.span_bytes / tables_.classes.slot_bytes[c];
    one.spans += batch.size();
    one.slots += batch.size() * slots;
    const bool read = memory_.count_bits(batch, (slots + 63) / 64, one.free_slots);
    batch.clear();
    return read;
  }

  static constexpr std::size_t kBatch = 256;
  LiveMemory& memory_;
  std::uint64_t directory_;
  LiveTables tables_{};
};

// ---- private heaps, and pools that have a name ------------------------------------------------------------------------

class Lists {
 public:
  explicit Lists(LiveMemory& memory) : memory_(memory) {}

  void read(std::uint64_t directory, LiveStats& to) {
    LiveListHead head{};
    if (!memory_.read(directory, head) || head.version != sync::kLiveListVersion) return;
    if (head.kind == sync::LiveList::kHeaps && head.data_bytes == sizeof(heap::LiveHeap)) read_heaps(head, to);
    if (head.kind == sync::LiveList::kPools && head.data_bytes == sizeof(pool::LivePool)) read_pools(head, to);
  }

 private:
  // Copies the records first, which takes little time, so that the list seldom changes during the copy; `add` reads the
  // rest.
  template <class Data, class Figures, class Add>
  void read_list(const LiveListHead& head, std::vector<Figures>& figures, bool& changed, Add add) {
    std::vector<Data> records;
    const auto visit = [&](std::uint64_t& address) {
      Data data{};
      std::uint64_t next = 0;
      if (!memory_.read(address + head.data, data) || !memory_.read(address + head.next, next)) return false;
      records.push_back(data);
      address = next;
      return true;
    };
    changed |= !follow(memory_, head.first, head.changes, kMostListed, [&] { records.clear(); }, visit);
    std::ranges::reverse(records);  // the oldest first
    for (const Data& data : records)
      if (auto one = add(data)) figures.push_back(std::move(*one));
  }

  void read_heaps(const LiveListHead& head, LiveStats& to) {
    heap::LiveHeapLayout layout{};
    if (head.layout_bytes != sizeof layout || !memory_.read(head.layout, layout) ||
        layout.classes > heap::kMostLiveHeapClasses ||
        std::max(layout.central_stride, layout.shard_stride) > kMostRecordBytes)
      return;
    read_list<heap::LiveHeap>(head, to.heaps, to.lists_changed,
                              [&](const heap::LiveHeap& one) -> std::optional<LiveHeapFigures> {
                                if (one.calls == layout.ended_calls) return ended_heap_figures(one, layout);
                                if (one.calls != layout.calls) return std::nullopt;
                                return heap_figures(one, layout);
                              });
  }

  // A heap that has ended before the last of its blocks. None: it has gone with that.
  std::optional<LiveHeapFigures> ended_heap_figures(const heap::LiveHeap& of, const heap::LiveHeapLayout& layout) {
    LiveHeapFigures figures;
    const auto number = [&](std::uint32_t offset, std::uint64_t& value) { return memory_.read(of.heap + offset, value); };
    if (!number(layout.ended_blocks, figures.live_objects) || !number(layout.ended_bytes, figures.live_bytes) ||
        !number(layout.ended_held_bytes, figures.held_bytes))
      return std::nullopt;
    figures.name = memory_.text(of.name) + " (ended)";
    figures.used_bytes = figures.held_bytes;
    return figures;
  }

  // None: it has ended since.
  std::optional<LiveHeapFigures> heap_figures(const heap::LiveHeap& of, const heap::LiveHeapLayout& layout) {
    LiveHeapFigures figures;
    const std::uint64_t heap = of.heap;
    std::uint64_t limit = 0, large_bytes = 0, core = 0;
    const auto number = [&](std::uint32_t offset, std::uint64_t& value) { return memory_.read(heap + offset, value); };
    if (!number(layout.limit_bytes, limit) || !number(layout.used_bytes, figures.used_bytes) ||
        !number(layout.held_bytes, figures.held_bytes) || !number(layout.slabs, figures.slabs) ||
        !number(layout.large_blocks, figures.large_blocks) || !number(layout.large_bytes, large_bytes) ||
        !number(layout.conflicts, figures.conflicts) || !number(layout.core, core))
      return std::nullopt;
    figures.name = memory_.text(of.name);
    if (limit != ~std::uint64_t{0}) figures.limit_bytes = limit;
    std::uint64_t objects = 0, bytes = 0;  // wrap as the counters do
    const auto add_bins = [&](std::uint64_t bins, std::uint32_t stride, std::uint32_t live) {
      std::vector<std::byte> copy(std::size_t{layout.classes} * stride);
      if (!memory_.read(bins, copy)) return;
      for (std::size_t c = 0; c < layout.classes; ++c) {
        const auto n = at<std::uint64_t>(copy, c * stride + live);
        objects += n;
        bytes += n * layout.slot_bytes[c];
      }
    };
    std::uint32_t shard_count = 0;
    if (core != 0 && memory_.read(core + layout.shard_count, shard_count) && shard_count <= kMostShards) {
      add_bins(core + layout.central_bins, layout.central_stride, layout.central_live);
      std::vector<std::uint64_t> shards(shard_count);
      if (!memory_.read(core + layout.shards, shards)) return std::nullopt;
      for (const std::uint64_t shard : shards)
        if (shard != 0) add_bins(shard + layout.shard_bins, layout.shard_stride, layout.shard_live);
    }
    // A block that moved between two bins while they were read may be counted twice, or be missing.
    const auto at_least_0 = [](std::uint64_t n) { return static_cast<std::int64_t>(n) < 0 ? 0 : n; };
    figures.live_objects = at_least_0(objects) + figures.large_blocks;
    figures.live_bytes = at_least_0(bytes) + large_bytes;
    return figures;
  }

  void read_pools(const LiveListHead& head, LiveStats& to) {
    read_list<pool::LivePool>(
        head, to.pools, to.lists_changed,
        [&](const pool::LivePool& one) -> std::optional<LivePoolFigures> { return pool_figures(one); });
  }

  LivePoolFigures pool_figures(const pool::LivePool& of) {
    LivePoolFigures figures;
    figures.name = memory_.text(of.name);
    figures.slot_bytes = of.slot_bytes;
    if (of.capacity != ~std::uint64_t{0}) figures.capacity = of.capacity;
    std::uint32_t opened = 0;
    if (of.words == 0 || of.words_a_span == 0 || !memory_.read(of.opened_words, opened) || opened > kMostPoolWords)
      return figures;
    std::uint64_t free = 0;
    if (!memory_.count_bits(of.words, opened, free)) return figures;
    const std::uint64_t in_part = std::min<std::uint64_t>(opened % of.words_a_span * std::uint64_t{64}, of.slots_a_span);
    const std::uint64_t slots = std::min(of.capacity, opened / of.words_a_span * std::uint64_t{of.slots_a_span} + in_part);
    figures.opened_slots = slots;
    figures.taken_slots = slots > free ? slots - free : 0;
    return figures;
  }

  LiveMemory& memory_;
};

void name_threads(pid_t pid, LiveStats& stats) {
  for (LiveThread& thread : stats.threads) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread.thread) + "/comm");
    std::getline(file, thread.name);
  }
  std::ranges::sort(stats.threads, {}, &LiveThread::thread);
}

}  // namespace

LiveAnswer read_live_stats(pid_t pid) {
  LiveAnswer answer;
  answer.refusal = refusal_of(pid);
  if (answer.refusal != LiveRefusal::kNone) return answer;
  const std::string maps = maps_of(pid);
  LiveMemory memory(pid, kMostScannedBytes);
  const std::vector<LiveMemory::Mark> marks = memory.marks(maps);
  const auto refuse = [&](LiveRefusal why) {
    answer.refusal = refusal_meanwhile(pid, memory.error(), why);
    return answer;
  };
  if (marks.empty() && (memory.error() == EPERM || memory.error() == ENOSYS)) return refuse(LiveRefusal::kMemoryNotToBeRead);
  // If there are several engines, one serves malloc, and others at most their own library: the one that holds most.
  std::optional<LiveStats> best;
  std::uint64_t most = 0;
  bool is_damaged = false;
  for (const LiveMemory::Mark& mark : marks) {
    if (mark.kind != LiveMemory::Kind::kEngine) continue;
    std::uint32_t version = 0;
    if (!memory.read(mark.address + offsetof(LiveDirectory, version), version)) continue;
    if (version != alloc::kLiveVersion) {
      answer.version = version;
      continue;
    }
    LiveStats stats;
    if (!Engine(memory, mark.address).read(stats)) {
      is_damaged = true;
      continue;
    }
    const std::uint64_t bytes = held_bytes(stats.figures);
    if (best && bytes <= most) continue;
    most = bytes;
    best = std::move(stats);
  }
  if (!best && answer.version != 0) return refuse(LiveRefusal::kOtherVersion);
  if (!best && is_damaged) return refuse(LiveRefusal::kChanging);
  if (!best && maps.find("/libfreehold.so") != std::string::npos) return refuse(LiveRefusal::kNotBegun);
  if (!best) return refuse(LiveRefusal::kNoFreehold);
  answer.stats = std::move(*best);
  Lists lists(memory);
  for (const LiveMemory::Mark& mark : marks)
    if (mark.kind == LiveMemory::Kind::kList) lists.read(mark.address, answer.stats);
  name_threads(pid, answer.stats);
  if (const std::string rollup = text_of_proc_file(proc_folder(pid) / "smaps_rollup"); !rollup.empty())
    answer.stats.huge_page_bytes = number_in(rollup, "AnonHugePages:") * 1024;
  return answer;
}

}  // namespace freehold::live
