// SPDX-License-Identifier: MIT
#include "tools/doctor/run/sampler.hpp"

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "freehold/os/mapped_file.hpp"
#include "freehold/os/perf_event.hpp"
#include "tools/live/process.hpp"

namespace freehold::doctor {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kDataBytes = 16 * kPage;  // a power of two: what comes in 50 ms has room
constexpr std::uint16_t kDeepest = 32;
constexpr std::uint64_t kKernel = std::uint64_t{1} << 63;  // addresses from here on are the kernel's

// Records may wrap around the ring's end.
std::vector<std::uint64_t> words_at(const char* data, std::uint64_t at, std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
  const std::size_t begin = at % kDataBytes, first = std::min(bytes, kDataBytes - begin);
  std::memcpy(words.data(), data + begin, first);
  std::memcpy(reinterpret_cast<char*>(words.data()) + first, data, bytes - first);
  return words;
}

// header, address, ids, length of the chain, chain. The program's own part begins behind a mark.
std::uint64_t program_address(const std::vector<std::uint64_t>& words) {
  if (words.size() < 4) return 0;
  const std::size_t end = std::min<std::size_t>(words.size(), 4 + words[3]);
  for (std::size_t i = 4; i + 1 < end; ++i) {
    if (words[i] == static_cast<std::uint64_t>(PERF_CONTEXT_USER)) return words[i + 1];
  }
  return words[1] < kKernel ? words[1] : 0;
}

}  // namespace

Sampler::~Sampler() {
  for (const auto& [thread, event] : events_) {
    os::MappedFile::unmap(event.ring, kPage + kDataBytes);
    ::close(event.fd);
  }
}

int Sampler::open(pid_t thread) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = static_cast<std::uint64_t>(period_s_ * 1e9);
  attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
  attributes.sample_max_stack = kDeepest;
  attributes.exclude_kernel = sees_kernel_ ? 0 : 1;
  attributes.exclude_hv = 1;
  const int fd = os::open_perf_event(attributes, thread);
  if (fd < 0 && (errno == EACCES || errno == EPERM) && sees_kernel_) {
    sees_kernel_ = false;
    return open(thread);
  }
  return fd;
}

void Sampler::look(const std::vector<pid_t>& processes) {
  for (const pid_t process : processes) {
    for (const pid_t thread : live::threads_of(process)) {
      if (!why_.empty() || events_.size() >= kMostThreads) return;
      if (events_.contains(thread)) continue;
      const int fd = open(thread);
      if (fd < 0 && errno == ESRCH) continue;
      if (fd < 0) {
        why_ = errno == EACCES || errno == EPERM ? "the kernel does not permit it (kernel.perf_event_paranoid)"
                                                 : std::string("the kernel refuses it: ") + std::strerror(errno);
        return;
      }
      void* const ring = os::MappedFile::map_shared(fd, kPage + kDataBytes);
      if (ring == nullptr) {
        ::close(fd);
        if (events_.empty()) why_ = std::string("no memory for its samples: ") + std::strerror(errno);
        return;
      }
      events_[thread] = {fd, static_cast<char*>(ring)};
    }
  }
}

void Sampler::drain(const std::function<void(std::uint64_t)>& take) {
  for (auto& [thread, event] : events_) drain(event, take);
}

void Sampler::drain(Event& event, const std::function<void(std::uint64_t)>& take) {
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(event.ring);
  const char* const data = event.ring + kPage;
  // acquire: pairs with the kernel's release after it has written the records before `head`.
  const std::uint64_t head = std::atomic_ref(page.data_head).load(std::memory_order_acquire);
  std::uint64_t tail = page.data_tail;
  while (head - tail >= sizeof(perf_event_header)) {
    const std::vector<std::uint64_t> first = words_at(data, tail, sizeof(perf_event_header));
    perf_event_header header{};
    std::memcpy(&header, first.data(), sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    const std::vector<std::uint64_t> words = words_at(data, tail, header.size);
    if (header.type == PERF_RECORD_SAMPLE) take(program_address(words));
    if (header.type == PERF_RECORD_LOST && words.size() > 2) lost_ += words[2];
    tail += header.size;
  }
  // release: pairs with the kernel's acquire before it writes over what was read.
  std::atomic_ref(page.data_tail).store(tail, std::memory_order_release);
}

}  // namespace freehold::doctor
