// SPDX-License-Identifier: MIT
// The parts that GearmanPool and GearmanSupervisor share: the headers before input and output on the wire, the list of
// servers, and a wait with a time.
#pragma once
#include <netinet/in.h>

#include <bit>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "freehold/process/table/task.hpp"

namespace freehold::process::gearman {

static_assert(std::endian::native == std::endian::little, "the byte order on the wire is that of this machine");
constexpr std::uint32_t kMagic = 0x31485246;  // "FRH1"

struct TaskHeader {
  std::uint32_t magic = kMagic, unused = 0;
  std::uint64_t limit = 0;  // nanoseconds
};
struct AnswerHeader {
  std::uint32_t magic = kMagic;
  FailureKind kind = FailureKind::kNone;
  std::int32_t value = 0;
  std::uint32_t unused = 0;
};

template <class Header>
std::string with_header(const Header& header, std::span<const std::byte> bytes) {
  std::string text(sizeof header + bytes.size(), '\0');
  std::memcpy(text.data(), &header, sizeof header);
  if (!bytes.empty()) std::memcpy(text.data() + sizeof header, bytes.data(), bytes.size());
  return text;
}
// None if the message is not one of ours.
template <class Header>
std::optional<Header> parse_header(const void* data, std::size_t bytes) {
  Header header;
  if (bytes < sizeof header) return std::nullopt;
  std::memcpy(&header, data, sizeof header);
  return header.magic == kMagic ? std::optional(header) : std::nullopt;
}

struct Server {
  std::string host;
  in_port_t port = 0;
};

// Returns none and the reason if one of them is not understood.
[[nodiscard]] std::optional<std::vector<Server>> parse_servers(const std::vector<std::string>& texts, std::string& error);

// Returns whether the condition holds.
template <class Holds>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::optional<Nanoseconds> time,
                Holds holds) {
  if (time) return changed.wait_for(lock, *time, holds);
  changed.wait(lock, holds);
  return true;
}

}  // namespace freehold::process::gearman
